"""What ``first`` prints of a search, of which every part is known."""

import json
import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from smalltree import chain, write
from typer.testing import CliRunner

from dumpsim.analysis.amplify import Blame
from dumpsim.analysis.finding import Finding
from dumpsim.analysis.first import Search
from dumpsim.analysis.scan import INTENDED
from dumpsim.cli.app import app

V = [np.full((2, 3), float(n), np.float32) for n in range(2)]


def run(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


def finding(number, kind="received", **more):
    given = {"what": "nan", "rank": 0, "iteration": 0, "op_type": "Add", "op_name": f"Add-op{number}",
             "tensor": "output.0", "basis": "order", "next": f"next {number}"}  # fmt: skip
    return Finding(kind=kind, **{**given, **more})


def blame(number, **more):
    given = {"rank": 0, "iteration": 0, "op_type": "Add", "op_name": f"Add-op{number}", "error_in": 0.001234,
             "error_out": math.inf, "explained": math.nan, "verdict": "suspect",
             "reason": f"reason {number}"}  # fmt: skip
    return Blame(**{**given, **more})


@pytest.fixture
def searched(tmp_path, monkeypatch):
    """Print what a search has found, for one dump or for two; returns the code, the output and the words of errors."""
    root = write(tmp_path / "a", chain(*V[:2]))

    def shown(*words, pair=False, **found):
        result = Search(**{"findings": (), "operators": 0, **found})
        monkeypatch.setattr(import_module("dumpsim.replay.first"), "first", lambda *dumps, **options: result)
        found = run("first", *[root] * (1 + pair), *words)
        return found.exit_code, found.stdout.splitlines(), found.stderr.splitlines()

    return shown


BASIS = {
    "inputs": ("its inputs are finite", "its inputs agree"),
    "statistics": ("the statistics of its inputs are finite, which their elements need not do",
                   "the statistics of its inputs agree, which their elements need not do"),
    "infinite": ("its inputs have infinities, and no NaN",) * 2,
    "gradient": ("the gradient that flows into it and all results before it are finite",
                 "the gradient that flows into it and all results before it agree"),
    "graph": ("its inputs were not dumped; the graph names the operators that made them, whose results are finite",
              "its inputs were not dumped; the graph names the operators that made them, whose results agree"),
    "order": ("its inputs were not dumped; all results before it are finite",
              "its inputs were not dumped; all results before it agree"),
    "argument": ("its inputs are finite, a number that it was given does not",
                 "its inputs agree, a number that it was given does not"),
    "detached": ("one dump alone has its backward",) * 2,
}  # fmt: skip


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("basis", BASIS)
def test_a_maker_is_shown_with_the_state_of_its_inputs(searched, basis, pair):
    for kind in ("made", "amplified"):
        code, out, err = searched(pair=pair, findings=(finding(1, kind, basis=basis),), operators=1, tensors=1)
        assert (code, out[:3], err) == (1, [
            f"nan {kind} by Add  Add-op1  (rank 0, iteration 0)", "  output.0", f"  {BASIS[basis][pair]}",
        ], [])  # fmt: skip
        assert out[3:] == ["  next: next 1", f"1 operator, 1 tensor {'compared' if pair else 'looked at'}"]
    assert len(searched(findings=(finding(1, "made", basis="alone"),), operators=1, tensors=1)[1]) == 4


def test_a_finding_is_shown_with_all_that_is_known_of_it(searched):
    one = finding(
        1, "received", rank=3, iteration=None, detail="2 NaN", note="a word", source="net.py:7", code="x = y",
        path="a/x.npy", other_path="b/x.npy", other_name="Other-op1", basis="inputs",
    )  # fmt: skip
    lines = [
        "nan received by Add  Add-op1  (rank 3)", "  output.0: 2 NaN", "  a word",
        "  the runs start from different weights or data: start both from one checkpoint and one batch",
        "  in B Other-op1", "  script line net.py:7  x = y", "  a/x.npy", "  b/x.npy", "  next: next 1",
    ]  # fmt: skip
    assert searched(pair=True, findings=(one,), operators=2, tensors=3) == (
        1, [*lines, "2 operators, 3 tensors compared"], []
    )  # fmt: skip
    start = lines.pop(3)
    assert searched(findings=(one,), operators=2, tensors=3)[1][:-1] == lines
    for number, told in ((0, True), (1, False)):
        _, out, _ = searched(pair=True, findings=(replace(one, iteration=number),), operators=2, tensors=3)
        assert (start in out) is told
    for kind in ("made", "given"):
        assert start not in searched(pair=True, findings=(replace(one, kind=kind),), operators=2, tensors=3)[1]
    same = replace(one, op_name="Default/Add-op1", other_name="Default_Add-op1")  # as a file and a graph write it
    assert not [line for line in searched(pair=True, findings=(same,), operators=1, tensors=1)[1] if "in B" in line]


@pytest.mark.parametrize(("count", "maker", "shown"), [
    (3, None, [0, 1, 2]), (4, None, [0, 1, 2]), (4, 3, [0, 1, 2, 3]), (7, 5, [0, 1, 2, 5]), (5, 1, [0, 1, 2])
])  # fmt: skip
def test_findings_fill_a_screen(searched, count, maker, shown):
    found = tuple(finding(n, "made" if n == maker else "received", basis="alone") for n in range(count))
    _, out, _ = searched(findings=found, operators=9, tensors=9)
    assert [line.split()[4] for line in out if line.startswith("nan ")] == [f"Add-op{n}" for n in shown]
    left = [f"{count - len(shown)} more, received or given: see --all or --json"] * (count > len(shown))
    assert [line for line in out if "more" in line] == left
    _, out, _ = searched("--all", findings=found, operators=9, tensors=9)
    assert [line.split()[4] for line in out if line.startswith("nan ")] == [f"Add-op{n}" for n in range(count)]
    assert not [line for line in out if "more" in line]


@pytest.mark.parametrize(("count", "words"), [(5, []), (6, []), (6, ["--all"])])
def test_five_operators_are_ranked(searched, count, words):
    found = {"findings": (finding(0, "made"), finding(1)), "operators": 9, "tensors": 9,
             "ranking": tuple(blame(n) for n in range(count))}  # fmt: skip
    rows = count if words else 5
    _, out, _ = searched(*words, pair=True, **found)
    at = out.index("operators ranked by the difference that their inputs do not explain (relative differences):")
    assert [line.split("\t") for line in out[at + 1 : at + 2 + rows]] == [
        ["error_in", "error_out", "explained", "verdict", "op_type", "op_name", "reason"],
        *(["0.00123", "inf", "", "suspect", "Add", f"Add-op{n}", f"reason {n}"] for n in range(rows)),
    ]
    more = ["1 more: see --all or --json"] if rows < count else []
    assert out[at + 2 + rows :] == [*more, "9 operators, 9 tensors compared"]
    code, out, err = searched(*words, "--json", pair=True, **found)
    one, other = map(json.loads, out)
    assert (code, err) == (1, ["9 operators, 9 tensors compared"])
    assert [each["op_name"] for each in one["ranking"]] == [f"Add-op{n}" for n in range(rows)]
    assert "ranking" not in other


COVERAGE = [
    # what the search has counted, exit code, lines for one dump (None: as for two), lines for two
    ({"operators": 2, "tensors": 1}, 0, ["2 operators, 1 tensor looked at: no NaN, no infinity that is not intended"],
     ["2 operators, 1 tensor compared: no difference"]),
    ({"operators": 1, "tensors": 2, "passed_on": 1}, 0,
     ["1 operator, 2 tensors looked at: no NaN, no infinity that is not intended"],
     ["1 operator, 2 tensors compared: no difference"]),
    ({"operators": 3, "tensors": 4, "skipped": (("in A only", 1), ("in B only", 2))}, 0,
     ["3 operators, 4 tensors looked at: no NaN, no infinity that is not intended",
      "not looked at: 1 tensor in A only, 2 tensors in B only"],
     ["3 operators, 4 tensors compared: no difference", "not compared: 1 tensor in A only, 2 tensors in B only"]),
    ({"operators": 0, "skipped": (("in A only", 1),)}, 1,
     ["0 operators, 0 tensors looked at", "not looked at: 1 tensor in A only", "nothing could be looked at"],
     ["0 operators, 0 tensors compared", "not compared: 1 tensor in A only", "nothing could be compared"]),
    ({"operators": 0, "skipped": (("in A only", 1),), "unmatched": ("a", "b", "c", "d")}, 1, None,
     ["0 operators, 0 tensors compared", "not compared: 1 tensor in A only", "not compared: a; b; c; d",
      "nothing could be compared; try --match order"]),
    ({"operators": 1, "tensors": 1, "unmatched": ("a", "b", "c", "d", "e")}, 0, None,
     ["1 operator, 1 tensor compared: no difference", "not compared: a; b; c; d ..."]),
]  # fmt: skip


@pytest.mark.parametrize(("found", "code", "one", "two"), COVERAGE)
def test_what_was_looked_at_and_what_was_not(searched, found, code, one, two):
    if one is not None:
        assert searched(**found) == (code, one, [])
    assert searched(pair=True, **found) == (code, two, [])
    assert searched("--json", pair=True, **found) == (code, [], two)


def test_results_that_are_passed_on_are_counted(searched):
    for count, said in ((0, ""), (1, "; 1 operator passes it on"), (2, "; 2 operators pass it on")):
        _, out, _ = searched(findings=(finding(0),), operators=2, tensors=2, passed_on=count)
        assert out[-1] == f"2 operators, 2 tensors looked at{said}"


def test_what_could_not_be_read_ends_with_its_own_code(searched):
    code, _, err = searched(operators=1, tensors=1, idle=("no tensor matches 'x'",), unreadable=("f: is cut",))
    assert (code, err) == (3, ["dumpsim: no tensor matches 'x'", "dumpsim: f: is cut"])
    code, _, err = searched("--iteration", "7", operators=0)
    assert (code, len(err)) == (1, 1)
    assert err[0].endswith("/a: no iteration 7; there is 0")
    assert searched("--iteration", "7", operators=0, skipped=(("in A only", 1),))[2] == []


def test_options_of_first_reach_the_search(tmp_path, monkeypatch):
    root = write(tmp_path / "a", chain(*V[:2]))
    asked = []

    def search(*dumps, **options):
        asked.append((len(dumps), options))
        return Search(findings=(), operators=0)

    monkeypatch.setattr(import_module("dumpsim.replay.first"), "first", search)
    given = {"allow": (), "intended": INTENDED, "tol": (), "match": "number", "name_map": None, "everything": False,
             "jobs": None, "scheduler": None}  # fmt: skip
    for words, changes in (
        ([], {}), (["--allow", "a*", "--allow", "b"], {"allow": ["a*", "b"]}), (["--no-intended"], {"intended": ()}),
        (["--tol", "*:1"], {"tol": ["*:1"]}), (["--match", "order"], {"match": "order"}),
        (["--map", "m.yaml"], {"name_map": Path("m.yaml")}), (["--all"], {"everything": True}),
        (["--jobs", "2"], {"jobs": 2}), (["--scheduler", "tcp://x"], {"scheduler": "tcp://x"}),
    ):  # fmt: skip
        run("first", root, *words)
        count, options = asked.pop()
        assert callable(options.pop("progress"))
        assert (count, options) == (1, given | changes)
    run("first", root, root)
    assert asked.pop()[0] == 2
