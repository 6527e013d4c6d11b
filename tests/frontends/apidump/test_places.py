"""Names of the leaves of arguments, and what is said of those without a record."""

from dataclasses import dataclass

import numpy as np
import pytest

from dumpsim.frontends.apidump.places import leaves, tensors, unrecorded, words


class Tensor:
    pass


@dataclass
class Pair:
    first: object
    second: object


T = Tensor()


@pytest.mark.parametrize("into", [False, True])
@pytest.mark.parametrize(
    ("value", "places"),
    [
        (T, [""]),
        ([], []),
        ([T], [".0"]),
        ((T, [T, (T,)], T), [".0", ".1.0", ".1.1.0", ".2"]),
        ([[], ()], []),
    ],
)
def test_places_in_sequences(value, places, into):
    found = list(leaves(value, into_dicts=into))
    assert found == [(place, T) for place in places]


def test_dicts_are_entered_on_request():
    value = [{"a": T, "b/c": [T, 1]}]
    assert list(leaves(value)) == [(".0", value[0])]
    assert list(leaves(value, into_dicts=True)) == [(".0.a", T), (".0.b_c.0", T), (".0.b_c.1", 1)]


def test_a_container_in_itself_is_a_leaf():
    loop = [T]
    loop.append({"again": loop, "twice": [T]})
    assert list(leaves(loop)) == [(".0", T), (".1", loop[1])]
    found = list(leaves(loop, into_dicts=True))
    assert [place for place, _ in found] == [".0", ".1.again", ".1.twice.0"]
    assert found[1][1] is loop
    same = [T]
    assert [place for place, _ in leaves([same, same])] == [".0.0", ".1.0"]  # beside each other, not within


def test_words_are_valid_unique_and_not_too_long():
    keys = ["a", "a", "a", "a_2", "ä-ß", "x" * 64, "x" * 65, "x" * 64 + "y", 3, 3.5, None]
    long = "x" * 64
    assert words(keys) == ["a", "a_2", "a_3", "a_2_2", "___", long, f"{long}_2", f"{long}_3", "3", "3_5", "None"]


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        ({"a": T, "b": [T, {"c": T}], "d": 1}, ("tensor in a dict", 3)),
        ({T, 1}, ("tensor in a set", 1)),
        (frozenset({T}), ("tensor in a set", 1)),
        ({"a": 1}, ("tensor in a dict", 0)),
        (Pair(T, (T, 2)), ("tensor in a dataclass", 2)),
        (Pair, ("", 0)),
        (np.ones(2), ("value of numpy", 1)),
        (np.int64(2), ("value of numpy", 1)),
        (np.float64(2), ("", 0)),  # a float of Python
        (1j, ("complex number", 1)),
        (True, ("", 0)),
        (3, ("", 0)),
        (2.5, ("", 0)),
        ("text", ("", 0)),
        (None, ("", 0)),
    ],
)
def test_what_has_no_record_is_counted(leaf, said):
    assert unrecorded(leaf, Tensor) == said


def test_tensors_are_counted_in_every_container():
    assert tensors([T, (T, {T}), {"a": frozenset({T}), T: 1}, 1, "T"], Tensor) == 4
    assert (tensors(T, Tensor), tensors(1, Tensor), tensors([], Tensor)) == (1, 0, 0)
