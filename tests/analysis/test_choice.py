"""What a filter chooses, and what is told where it chooses nothing."""

from fnmatch import fnmatchcase

import numpy as np
import pytest
from rebuild import rebuild
from smalltree import chain, write

import dumpsim
from dumpsim.analysis.choice import named
from dumpsim.archive.naming import escape


@pytest.fixture(scope="module")
def lenet(tmp_path_factory):
    root = tmp_path_factory.mktemp("lenet")
    rebuild("lenet_fwd", root)
    return root


def told(dump, **asked):
    chosen = dump.filter(**asked)
    assert len(chosen) == 0
    return list(chosen.absent())


def test_a_word_is_a_part_of_the_name_and_a_glob_the_whole(tmp_path):
    v = [np.full(2, float(n), np.float32) for n in range(13)]
    dump = dumpsim.open(write(tmp_path, chain(*v)))  # Default/Add-op0 to 11
    assert {entry.op_name for entry in dump.filter(op="add-op1")} == {"Default_Add-op1"}
    assert {entry.op_name for entry in dump.filter(op="*ADD-OP1*")} == {f"Default_Add-op{n}" for n in (1, 10, 11)}
    assert len(dump.filter(op="Default/Add-op3")) == len(dump.filter(op="*Add-op3")) == 2
    assert len(dump.filter(op="Add")) == len(dump)
    assert len(dump.filter(op="Add*")) == 0


@pytest.mark.parametrize("seed", range(20))
def test_globs_choose_as_before(seed):
    random = np.random.default_rng(seed)
    letters = list("aB1/-_*?[]!")
    for _ in range(200):
        pattern = "".join(random.choice(letters, 5)) + "*"
        name = "".join(random.choice(letters[:6], 6))
        assert named(pattern)(name) == fnmatchcase(escape(name.lower()), escape(pattern.lower())), (pattern, name)


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"iteration": 7}, "no iteration 7; there is 0"),
        ({"rank": 3}, "no rank 3; there is 0"),
        ({"dtype": "fp32"}, "(did you mean 'float32'?)"),
        ({"op_type": "Conv3D"}, "no operator of type 'Conv3D'; nearest of "),
        ({"op": "conv9"}, "Default/conv1-Conv2d/Conv2D-op0"),
        ({"source": "lenet.py:999"}, "no operator made by 'lenet.py:999'; "),
        ({"step": 4}, "no step 4; the dump counts none"),
        ({"where": lambda entry: False}, "no tensor passes the test"),
    ],
)
def test_what_the_dump_has_instead_is_told(lenet, asked, line):
    (said,) = told(dumpsim.open(lenet), **asked)
    assert line in said


def test_fields_that_exclude_each_other_are_told(lenet):
    dump = dumpsim.open(lenet)
    assert told(dump, op_type="Conv2D", op="relu") == [
        "each of op, op_type matches some tensor, but no tensor matches all of them"
    ]
    assert told(dump, op_type="Conv2D", iteration=2) == ["no iteration 2; there is 0"]
    assert list(dump.filter(op_type="Conv2D").absent()) == []
