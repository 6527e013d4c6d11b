"""What a filter chooses, and what is told where it chooses nothing."""

from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rebuild import rebuild
from smalltree import chain, write

import dumpsim
from dumpsim.analysis.choice import Choice, absent, named
from dumpsim.analysis.place import Place
from dumpsim.archive.naming import escape
from dumpsim.core.errors import BadInputError
from dumpsim.core.irdoc import SourceLine


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


def line_of(path, number, end=None, code="y = x"):
    return SourceLine(path=path, line=number, end_line=end or number, column=0, end_column=1, code=code)


@pytest.mark.parametrize(
    ("source", "line", "found"),
    [
        ("net.py", line_of("net.py", 7), True), ("net.py", line_of("a/net.py", 7), True),
        ("./net.py", line_of("a/net.py", 7), True), ("a/net.py", line_of("b/a/net.py", 7), True),
        ("net.py", line_of("subnet.py", 7), False), ("a/net.py", line_of("net.py", 7), False),
        ("net.py:7", line_of("net.py", 7), True), ("net.py:6", line_of("net.py", 7), False),
        ("net.py:8", line_of("net.py", 7), False), ("net.py:8", line_of("net.py", 7, 9), True),
        ("net.py:9", line_of("net.py", 7, 9), True), ("net.py:10", line_of("net.py", 7, 9), False),
        *(("net.py:8", line_of("net.py", 7, 9, f"  {word}f:"), False) for word in ("def ", "class ", "@")),
        ("net.py:7", line_of("net.py", 7, 9, "def f(x):"), True), ("net.py:07", line_of("net.py", 7), True),
        ("C:net.py:7", line_of("C:net.py", 7), True),
    ],
)  # fmt: skip
def test_a_line_of_the_script_chooses_what_it_made(source, line, found):
    choice = Choice(source=source)
    assert choice(SimpleNamespace(source=(line_of("other.py", 7), line))) is found
    assert not choice(SimpleNamespace(source=()))


@pytest.mark.parametrize("source", ["net.py:", "net.py:x", "net.py:-1", "net.py:7:x"])
def test_what_is_no_line_is_refused(source):
    with pytest.raises(BadInputError, match="is not a line"):
        Choice(source=source)


def test_fields_are_answered_one_by_one():
    place = Place(path=Path(), rank=1, graph_id=2, iteration=3, step=4)
    entry = SimpleNamespace(op_type="Add", op_name="Default/Add-op0", io="input", slot=1, dtype="float32", place=place)
    right = {"op": "add", "op_type": "add", "io": "INPUT", "slot": 1, "dtype": "Float32", "rank": 1, "graph": 2,
             "iteration": 3, "step": 4}  # fmt: skip
    wrong = {"op": "mul", "op_type": "ad", "io": "output", "slot": 0, "dtype": "float16", "rank": 0, "graph": 1,
             "iteration": 0, "step": 0}  # fmt: skip
    assert sorted(Choice(**right).answered(entry)) == sorted(right)
    assert list(Choice(**wrong).answered(entry)) == []
    for name in right:
        assert list(Choice(**{name: right[name]}).answered(entry)) == [name]
        one, other = Choice(**{name: right[name]}), Choice(**{name: wrong[name]})
        assert (one.asked, other.asked) == ({name: right[name]}, {name: wrong[name]})
        assert (one(entry) and one.near(place), other(entry) and other.near(place)) == (True, False)
    assert Choice().asked == {}
    assert Choice()(entry)
    assert Choice().near(place)
    with pytest.raises(BadInputError, match="'in' is neither; allowed: input, output"):
        Choice(io="in")


def entry_of(name, iteration=0, dtype="float32", step=None):
    place = Place(path=Path(), rank=1, iteration=iteration, step=step)
    return SimpleNamespace(op_type=name.title(), op_name=name, io="input", slot=1, dtype=dtype, place=place, rank=1,
                           iteration=iteration, graph_id=None, source=(line_of("a/net.py", 7),))  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"iteration": 7}, ["no iteration 7; there are 0, 3"]), ({"iteration": 3}, []), ({}, []),
        ({"step": 1}, ["no step 1; the dump counts none"]), ({"graph": 1}, ["no graph 1; the dump counts none"]),
        ({"op": "sub", "slot": 0}, ["no operator called 'sub'; there are add, mul", "no slot 0; there is 1"]),
        ({"op": "add", "iteration": 3},
         ["each of op, iteration matches some tensor, but no tensor matches all of them"]),
        ({"op": "add", "iteration": 7}, ["no iteration 7; there are 0, 3"]),
        ({"dtype": "int8", "op_type": "mul"}, ["no dtype 'int8'; there are float16, float32"]),
        ({"source": "net.py:9"}, ["no operator made by 'net.py:9'; there is net.py:7"]),
        ({"where": lambda entry: False}, ["no tensor passes the test"]),
    ],
)  # fmt: skip
def test_each_field_that_nothing_matches_has_a_line(asked, lines):
    entries = [entry_of("add"), entry_of("mul", 3, "float16")]
    assert list(absent(Choice(**asked), iter(entries))) == lines
    assert list(absent(Choice(**asked), [])) == []


def test_entries_are_read_until_every_field_is_answered():
    read = []

    def entries():
        for entry in (entry_of("add"), entry_of("mul", 3), entry_of("sub", 4)):
            read.append(entry.op_name)
            yield entry

    assert len(list(absent(Choice(op="add", iteration=3), entries()))) == 1
    assert read == ["add", "mul"]
