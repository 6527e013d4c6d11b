"""Which tensors and iterations of two dumps are pairs, worked out by hand for operators of names and shapes alone."""

from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from smalltree import chain, write

from dumpsim.analysis.align import Match
from dumpsim.analysis.namemap import NO_NAMES
from dumpsim.analysis.pairing import Accuracy, Together, flags, idle, pairs_of, together
from dumpsim.analysis.tolerance import rule, usual
from dumpsim.core.errors import BadInputError


def entries(text):
    """Tensors of ``name:slot:2x3``; a scalar has no extents."""
    found = []
    for word in text.split():
        label, slot, dims = word.split(":")
        shape = tuple(map(int, dims.split("x"))) if dims else ()
        found.append(SimpleNamespace(label=label, slot=int(slot), shape=shape, name=SimpleNamespace(shape=shape)))
    return tuple(found)


def op(name, inputs, outputs, *, api=False, backward=False):
    inputs, outputs = entries(inputs), entries(outputs)
    return SimpleNamespace(
        op_name=name, inputs=inputs, outputs=outputs, entries=(*inputs, *outputs), api=api, backward=backward
    )


def pairs(left, right):
    """``a-b`` for a pair, with the note of a tensor that is alone."""
    found = pairs_of(Match(left=tuple(left), right=tuple(right), by="order"))
    sides = [[one.label if one is not None else "" for one in (pair.left, pair.right)] for pair in found]
    return [f"{a}-{b}" + (f" {pair.note}" if pair.note else "") for (a, b), pair in zip(sides, found, strict=True)]


def turned(found):
    """The same pairs for the other order of the dumps."""
    ends = (words.partition(" ")[0].split("-") for words in found)
    return sorted(f"{b}-{a}" for a, b in ends)


def test_tensors_of_two_operators_are_paired_by_slot_then_by_shape():
    """Dimensions of 1 do not count; a tensor is paired once, and the rest stays alone."""
    one = op("A", "a0:0:2x3 a1:1:4 a2:2:5 a3:3:4 a4:4:4", "o0:0:7 o1:1:8")
    other = op("B", "b0:0:9 b7:7:1x4 b8:8:4x1 b9:9:7 b3:3:2", "r1:1:8 r2:2:7")
    assert pairs([one], [other]) == [
        "a0-b0", "a1-b7", "a2-", "a3-b3", "a4-b8", "-b9", "o0-r2", "o1-r1"
    ]  # fmt: skip
    assert pairs([other], [one]) == ["b0-a0", "b7-a1", "b8-a4", "b9-", "b3-a3", "-a2", "r1-o1", "r2-o0"]
    assert pairs([op("A", "a0:0:2", "")], [op("B", "", "r0:0:2")]) == ["a0-", "-r0"]
    assert pairs([op("A", "a0:0:2 a1:1:3", "")], [op("B", "b2:2:3", "")]) == ["a0-", "a1-b2"]
    assert pairs([op("A", "a0:0:", "")], [op("B", "b1:1:1x1", "")]) == ["a0-b1"]


def test_operators_of_one_dump_alone_have_no_pairs():
    ops = [op("A", "a0:0:2 a1:1:3", "o0:0:4"), op("B", "", "r0:0:2")]
    assert pairs(ops, []) == ["a0-", "a1-", "o0-", "r0-"]
    assert pairs([], ops) == ["-a0", "-a1", "-o0", "-r0"]


PARTS = [
    op("P", "p0:0:2x3 p1:1:3x4", "po:0:2x4"),
    op("Q", "q0:0:2x4 q1:1:4", "qo:0:2x4"),
    op("R", "r1:0:5 r0:1:2x4 r2:2:2x4", "ro:0:2x4"),
]


def test_a_fused_operator_is_paired_with_its_parts():
    """What one part gives to the next is inside; inputs keep their order, so that p1, which was passed by, is lost."""
    whole = op("W", "w0:0:2x3 w1:1:4 w2:2:3x4 w3:3:1x2x4", "wo:0:2x4 w9:1:9")
    inner = ["p1", "po", "q0", "qo", "r1", "r0"]
    found = pairs([whole], PARTS)
    assert found == ["w0-p0", "w1-q1", "w2-", "w3-r2", *(f"-{one} inside W" for one in inner), "wo-ro", "w9-"]
    other = pairs(PARTS, [whole])
    assert other == ["p0-w0", "q1-w1", "-w2", "r2-w3", *(f"{one}- inside W" for one in inner), "ro-wo", "-w9"]
    assert turned(found) == sorted(word.partition(" ")[0] for word in other)


def test_parts_that_pass_nothing_on_keep_all_their_inputs():
    parts = [op("P", "p0:0:2", "po:0:9"), op("Q", "q0:0:3 q1:1:2", "qo:0:7")]
    whole = op("W", "w0:0:2 w1:1:2 w2:2:3", "wo:0:7")
    assert pairs([whole], parts) == ["w0-p0", "w1-q1", "w2-", "-po inside W", "-q0 inside W", "wo-qo"]
    assert pairs([op("W", "w0:0:8", "wo:0:7")], parts) == [
        "w0-", "-p0 inside W", "-po inside W", "-q0 inside W", "-q1 inside W", "wo-qo"
    ]  # fmt: skip


def test_calls_of_api_dumps_are_paired_at_their_ends():
    first = op("NN_A_0_forward", "a0:0:2x3", "ao:0:2x4", api=True)
    last = op("NN_B_0_forward", "b0:0:2x4 b1:1:4", "bo:0:2x4", api=True)
    whole = op("NN_C_0_forward", "c0:0:2x3 c1:1:3x4", "co:0:2x4", api=True)
    inner = ["ao", "b0", "b1"]
    assert pairs([first, last], [whole]) == [
        "a0-c0", "-c1", "bo-co", *(f"{one}- inside NN_C_0_forward" for one in inner)
    ]  # fmt: skip
    assert pairs([whole], [first, last]) == [
        "c0-a0", "c1-", "co-bo", *(f"-{one} inside NN_C_0_forward" for one in inner)
    ]  # fmt: skip


def test_calls_that_ran_backward_have_the_gradients_of_the_last_ones_in_common():
    first = op("NN_A_0_backward", "a0:0:2x3", "", api=True, backward=True)
    last = op("NN_B_0_backward", "b0:0:2x4", "", api=True, backward=True)
    other = op("NN_C_0_backward", "c0:0:2x4", "", api=True, backward=True)
    assert pairs([first, last], [other]) == ["b0-c0", "a0- inside NN_C_0_backward"]
    assert pairs([other], [first, last]) == ["c0-b0", "-a0 inside NN_C_0_backward"]


def test_a_call_of_an_api_dump_and_an_operator_of_a_graph_are_paired_by_slot():
    call, node = op("NN_A_0", "a0:0:2 a1:1:3", "", api=True), op("A", "b1:1:3 b0:0:2", "")
    assert pairs([call], [node]) == ["a0-b0", "a1-b1"]
    assert pairs([node], [call]) == ["b1-a1", "b0-a0"]


def typed(name, dtype):
    return SimpleNamespace(dtype=dtype, answers=lambda pattern: fnmatchcase(name, pattern))


def test_after_a_pair_of_two_floating_types_the_narrower_one_decides():
    accuracy = Accuracy()
    wide, narrow = typed("a", "float32"), typed("a", "float16")
    mixed = usual({"float32", "float16"})
    assert mixed != usual({"float32"})
    assert accuracy.of(wide, wide) == usual({"float32"})
    assert accuracy.of(typed("a", "int32"), wide) == usual({"int32", "float32"})
    assert accuracy.of(wide, wide) == usual({"float32"})  # one floating type alone
    assert accuracy.of(wide, narrow) == accuracy.of(wide, wide) == mixed
    assert accuracy.of(typed("a", "int32"), typed("a", "int32")) == usual({"int32"})
    assert accuracy.of(typed("a", "float64"), typed("a", "float64")) == usual({"float64", "float32", "float16"})


def test_of_several_rules_the_last_one_that_matches_either_side_counts():
    accuracy = Accuracy([rule("*:1:2"), rule("c*:3:4"), rule("d:5:6")])
    found = [
        accuracy.of(typed(one, "float32"), typed(other, "float32"))
        for one, other in (("a", "b"), ("cat", "b"), ("a", "c"), ("d", "c"), ("c", "d"))
    ]
    assert [(one.rtol, one.atol) for one in found] == [(1, 2), (3, 4), (3, 4), (5, 6), (5, 6)]


V = [np.full((2, 3), float(n), np.float32) for n in range(3)]


def tree(root, places):
    for rank, iteration in places:
        write(root, chain(*V), rank=rank, iteration=iteration)
    return root


def numbers(found):
    return [tuple(one and (one.rank, one.iteration) for one in pair) for pair in found.pairs]


def test_iterations_are_paired_by_rank_and_number_or_by_order(tmp_path):
    a, b = tree(tmp_path / "a", [(0, 0), (0, 2), (1, 0)]), tree(tmp_path / "b", [(2, 0), (0, 1), (0, 0)])
    found = together(a, b)
    assert numbers(found) == [
        ((0, 0), (0, 0)), (None, (0, 1)), ((0, 2), None), ((1, 0), None), (None, (2, 0))
    ]  # fmt: skip
    assert found.unmatched == (
        "rank 0, iteration 1: in B only", "rank 0, iteration 2: in A only", "rank 1, iteration 0: in A only",
        "rank 2, iteration 0: in B only",
    )  # fmt: skip
    assert (found.roots, found.unreadable, found.unused, found.names) == ((a, b), [], (), NO_NAMES)
    found = together(a, b, match="order")
    assert numbers(found) == [((0, 0), (0, 0)), ((0, 2), (0, 1)), ((1, 0), None), (None, (2, 0))]
    with pytest.raises(BadInputError, match=r"unknown way of matching 'ordr'; .*did you mean 'order'"):
        together(a, b, match="ordr")


def test_the_only_ranks_of_two_dumps_are_a_pair(tmp_path):
    a, b = tree(tmp_path / "a", [(1, 0), (1, 3)]), tree(tmp_path / "b", [(4, 3)])
    assert numbers(together(a, b)) == [((1, 0), None), ((1, 3), (4, 3))]
    both = tree(tmp_path / "c", [(4, 3), (1, 3)])
    assert numbers(together(a, both)) == [((1, 0), None), ((1, 3), (1, 3)), (None, (4, 3))]


def test_pairs_are_in_the_order_of_iterations(tmp_path):
    a, b = tree(tmp_path / "a", [(0, 1)]), tree(tmp_path / "b", [(0, 0), (0, 1)])
    assert numbers(together(a, b)) == [(None, (0, 0)), ((0, 1), (0, 1))]


def test_constants_have_no_iteration():
    one, other = SimpleNamespace(rank=3, iteration=None), SimpleNamespace(rank=0, iteration=0)
    found = Together(pairs=[(None, one), (other, other), (other, None)], unreadable=[], roots=(), names=NO_NAMES)
    assert found.unmatched == ("rank 3, constants: in B only", "rank 0, iteration 0: in A only")


@pytest.mark.parametrize(
    ("tol", "match", "names", "words"),
    [
        ([], "number", None, ()), (["*:1", "a:2"], "number", None, ("--tol", "*:1", "--tol", "a:2")),
        ([], "order", None, ("--match", "order")), ([], "number", {"a": "b"}, ()),
        (["*:1"], "order", Path("n.json"), ("--tol", "*:1", "--match", "order", "--map", "n.json")),
        ([], "number", "n.yaml", ("--map", "n.yaml")),
    ],
)  # fmt: skip
def test_settings_are_options_of_a_suggested_command(tol, match, names, words):
    assert flags(tol, match, names) == words


def test_patterns_that_match_no_tensor_are_told(tmp_path):
    found = together(tree(tmp_path / "a", [(0, 0)]), tree(tmp_path / "b", [(0, 0), (0, 1)]))
    every = [one for pair in found.pairs for one in pair]
    assert idle([], every) == idle(["*Add*", "add"], every) == ()
    assert idle(["*Ad*", "Adz", "*Adz*", "Conv2D", "Adz"], every) == (
        "no tensor matches 'Adz' (did you mean 'Add'?)", "no tensor matches '*Adz*' (did you mean 'Add'?)",
        "no tensor matches 'Conv2D'",
    )  # fmt: skip
    assert idle(["Add"], [None]) == ("no tensor matches 'Add'",)
