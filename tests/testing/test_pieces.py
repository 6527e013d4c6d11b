"""Small pieces of the plugin, called directly."""

import sys

import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.testing.golden import _plain, place
from dumpsim.testing.localranks import _below, _noted, short
from dumpsim.testing.neutral import NeutralTree
from dumpsim.testing.outcome import Outcome, output_sections, rank_sections
from dumpsim.testing.ranks import _meant, named
from dumpsim.testing.treediff import _graph_text


@pytest.mark.parametrize(
    ("size", "meant"),
    [("4", "ranks(4)"), ("0", None), ("x", None), ("-1", None), ("", None), ([2, 3], "ranks(2, 3)"),
     ((4,), "ranks(4)"), ([], None), ([1, "2"], None), (4.0, "ranks(4)"), (1.0, "ranks(1)"), (0.0, None), (2.5, None),
     (None, None)],
)  # fmt: skip
def test_what_a_wrong_number_of_ranks_probably_means(size, meant):
    assert _meant(size) == meant


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([7], "rank 7"), ([1, 0], "ranks 0, 1"), ([0, 1, 2], "ranks 0-2"), ([0, 2, 3, 5, 6, 7], "ranks 0, 2, 3, 5-7")],
)  # fmt: skip
def test_ranks_in_a_row_are_a_span(ranks, text):
    assert named(ranks) == text


def failing():
    raise KeyError("deep\nmore")


def test_the_frames_below_a_function_are_shown():
    def outer():
        failing()

    def other():
        pass

    try:
        outer()
    except KeyError:
        trace = sys.exc_info()[2]
    assert _below(outer, trace).tb_frame.f_code is failing.__code__
    assert _below(failing, trace) is None
    assert _below(other, trace) is trace
    assert _below(other, None) is None


def test_the_rank_of_an_error_is_in_its_notes():
    error = ValueError("x")
    assert _noted(error, 4) is None
    error.add_note("raised in rank 12 of 14")
    error.add_note("raised in rank 2 of 4")
    assert (_noted(error, 4), _noted(error, 14), _noted(error, 3)) == (2, 12, None)


def test_an_error_is_one_line():
    assert short(ValueError("one\ntwo")) == "ValueError: one"
    assert short(KeyError()) == "KeyError"
    assert short(pytest.fail.Exception("lost\nmore")) == "lost"


def test_what_ranks_have_alike_is_shown_once():
    first = Outcome(rank=1, state="failed", reason="E: 5", traceback="at 0x1f in rank 1")
    same = Outcome(rank=3, state="failed", reason="E: 5", traceback="at 0x2e in rank 3")
    other = Outcome(rank=0, state="failed", reason="E: 6", traceback="E: 6 ")
    stopped = [Outcome(rank=n, state="stopped", reason="rank 1 has raised E") for n in (2, 4)]
    assert rank_sections([*stopped, other, same, first], first=1) == [
        ("ranks 1, 3", "failed: E: 5 (traceback above)"), ("rank 0", "failed: E: 6"),
        ("ranks 2, 4", "stopped: rank 1 has raised E"),
    ]  # fmt: skip
    alone = rank_sections([same], first=None)
    assert alone == [("rank 3", "failed: E: 5\nat 0x2e in rank 3")]
    assert rank_sections([Outcome(rank=0, state="passed")], None) == [("rank 0", "passed")]
    output = [Outcome(rank=0, out="rank 0 a"), Outcome(rank=1, out="rank 1 a", err="e"), Outcome(rank=2)]
    assert output_sections(output) == [
        ("Captured stdout call (ranks 0, 1)", "rank 0 a"), ("Captured stderr call (rank 1)", "e")
    ]  # fmt: skip


def test_roots_are_replaced_in_texts_alone_the_inner_one_first(tmp_path):
    inner = tmp_path / "dump"
    inner.mkdir()
    text = f"{inner}/a and {tmp_path}/b".encode()
    for name in ("a.ir", "b.npy", "c.pb"):
        (inner / name).write_bytes(text)
    tree = NeutralTree(inner, {"tmp_path": str(tmp_path), "dump": str(inner)}, ignore=["*.x", "d/*"])
    assert tree.data("a.ir") == b"<dump>/a and <tmp_path>/b"
    assert tree.data("b.npy") == tree.data("c.pb") == text  # no text, and no graph
    assert NeutralTree(inner).data("a.ir") == text
    assert tree.names() == ["a.ir", "b.npy", "c.pb"]
    assert tree.same("b.npy", NeutralTree(inner), "c.pb")
    assert not tree.same("a.ir", NeutralTree(inner), "a.ir")
    (inner / "d").mkdir()
    (inner / "d" / "e").touch()
    assert tree.names() == ["a.ir", "b.npy", "c.pb"]
    (inner / "l").symlink_to(inner)
    with pytest.raises(BadInputError, match="not a regular file"):
        tree.names()


def test_a_graph_that_is_none_is_shown_as_bytes():
    assert _graph_text(b"\xff" * 17) == f"ff {'ff' * 16}"  # sixteen bytes a word
    assert _graph_text(b"") == ""


@pytest.mark.parametrize(
    ("name", "plain"),
    [("TestStep.test_loss[fp16]", None), ("a=b,c+d_e.f-g", None), ("a b", "a-b-"), ("-a.", "a-"), ("é", "-"),
     ("x" * 300, "x" * 60)],
)  # fmt: skip
def test_a_name_that_no_file_system_takes_has_a_digest(name, plain):
    found = _plain(name)
    if plain is None:
        assert found == name
    else:
        assert found != name
        assert found.startswith(plain)
        assert len(found) < 255
        assert found == _plain(name) != _plain(name + " ")


def test_trees_of_tests_have_places_of_their_own(tmp_path):
    file = tmp_path / "test_net.py"
    names = ["t.py::test_a", "t.py::test_b", "t.py::T::test_a", "t.py::test_a[x/y]", "t.py::test_a[x:y]"]
    places = [place(tmp_path, file, name) for name in names]
    assert len(set(places)) == len(names)
    assert places[0] == tmp_path / "test_net" / "test_a"
    assert places[2] == tmp_path / "test_net" / "T.test_a"
