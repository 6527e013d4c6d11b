"""The first bad operator where inputs were not dumped: a graph names their makers, or nothing does."""

import numpy as np
import pytest
from smallgraph import MONAD, SmallGraph, of, place
from smalltree import write

import dumpsim

GOOD = np.ones((2, 3), np.float32)
NAN = np.full((2, 3), np.nan, np.float32)
INF = np.full((2, 3), np.inf, np.float32)


def text():
    """Exp of x; its sum with the weight; an operator of the weight alone; the product of the last two."""
    graph = SmallGraph()
    x, w = graph.param("x", 2, 3), graph.param("net.w", 2, 3)
    exp = graph.node("Exp", [x], of(2, 3))
    loaded = graph.node("Load", [w, MONAD], of(2, 3))
    add = graph.node("Add", [exp, loaded], of(2, 3))
    neg = graph.node("Neg", [loaded], of(2, 3))
    graph.node("Mystery", [graph.node("Depend", [add, neg], of(2, 3)), neg], of(2, 3))
    return graph.text()


NAMES = {"Exp": "Default/Exp-op0", "Add": "Default/Add-op2", "Neg": "Default/Neg-op3", "Mystery": "Default/Mystery-op5"}


def outputs(root, extra=(), **results):
    """A tree of results alone, with the graph."""
    write(root, [*extra, *((kind, NAMES[kind], [], [result]) for kind, result in results.items())])
    place(root, text())
    return root


def said(search):
    return [(one.kind, one.what, one.op_name, one.tensor, one.basis, one.note) for one in search]


def test_an_operator_whose_producers_are_good_made_it(tmp_path):
    root = outputs(tmp_path, Exp=GOOD, Add=NAN, Neg=GOOD, Mystery=NAN)
    found = dumpsim.first(root, everything=True)
    note = "not dumped, and perhaps bad before: net.w"
    assert said(found) == [("made", "nan", "Default/Add-op2", "output.0", "graph", note)]
    assert (found.passed_on, found.operators, found.tensors) == (1, 4, 4)


def test_each_operator_answers_for_what_its_own_producers_lack(tmp_path):
    """Neg reads nothing that is bad, so its infinity is its own; Mystery has both from before."""
    root = outputs(tmp_path, Exp=NAN, Add=NAN, Neg=INF, Mystery=np.where(GOOD > 0, NAN, INF))
    found = dumpsim.first(root, everything=True)
    assert [(one.kind, one.what, one.op_name, one.basis) for one in found] == [
        ("made", "nan", "Default/Exp-op0", "graph"), ("made", "inf", "Default/Neg-op3", "graph"),
    ]  # fmt: skip


def test_a_parameter_that_was_dumped_is_not_called_missing(tmp_path):
    root = outputs(tmp_path, [("Data", "net.w", [], [GOOD])], Exp=GOOD, Add=NAN, Neg=GOOD, Mystery=NAN)
    assert said(dumpsim.first(root)) == [("made", "nan", "Default/Add-op2", "output.0", "graph", "")]


def test_without_the_result_of_a_producer_the_order_decides(tmp_path):
    root = outputs(tmp_path, Add=NAN, Neg=GOOD, Mystery=NAN)
    assert said(dumpsim.first(root)) == [("made", "nan", "Default/Add-op2", "output.0", "order", "")]


def relative(own, other):
    return float(np.linalg.norm(own.astype(float) - other) / np.linalg.norm(other.astype(float)))


def test_differences_of_producers_explain_that_of_a_result(tmp_path):
    """Neg differs most before Mystery, Exp most before Add; each counts for its readers alone."""
    v = {kind: np.random.default_rng(n).normal(size=(2, 3)).astype(np.float32) for n, kind in enumerate(NAMES)}
    golden = outputs(tmp_path / "b", **v)
    factors = {"Exp": 1 + 2e-6, "Neg": 1 + 1e-6, "Add": 1 + 4e-6, "Mystery": 1.5}
    own = {kind: v[kind] * np.float32(factors[kind]) for kind in v}
    found = dumpsim.first(outputs(tmp_path / "a", **own), golden)
    (maker,) = found
    assert said(found) == [("made", "difference", "Default/Mystery-op5", "output.0", "graph", "")]
    apart = {kind: relative(own[kind], v[kind]) for kind in v}
    assert maker.error_in == pytest.approx(max(apart["Add"], apart["Neg"]), rel=1e-6)
    assert maker.error_out == pytest.approx(apart["Mystery"], rel=1e-6)
    assert maker.explained == pytest.approx(max(3 * apart["Add"], 16 * 2.0**-24), rel=1e-6)
    ranked = {one.op_type: one for one in found.ranking}
    assert ranked["Add"].error_in == pytest.approx(apart["Exp"], rel=1e-6)
    assert ranked["Neg"].error_in == ranked["Exp"].error_in == 0.0
    assert [one.verdict for one in found.ranking] == ["suspect", "ok", "ok", "ok"]


def test_without_a_graph_all_differences_before_explain_it(tmp_path):
    v = {kind: np.random.default_rng(n).normal(size=(2, 3)).astype(np.float32) for n, kind in enumerate(NAMES)}
    factors = {"Exp": 1 + 4e-6, "Neg": 1 + 1e-6, "Add": 1 + 2e-6, "Mystery": 1.5}
    own = {kind: v[kind] * np.float32(factors[kind]) for kind in v}
    trees = [
        write(tmp_path / side, [(kind, NAMES[kind], [], [values[kind]]) for kind in NAMES])
        for side, values in (("a", own), ("b", v))
    ]
    found = dumpsim.first(*trees)
    assert said(found) == [("made", "difference", "Default_Mystery-op5", "output.0", "order", "")]
    exp = relative(own["Exp"], v["Exp"])
    errors = [one.error_in for one in sorted(found.ranking, key=lambda one: list(NAMES).index(one.op_type))]
    assert errors == pytest.approx([0.0, exp, exp, exp], rel=1e-6)


GAP = "the iterations between 0 and {} were not dumped"


@pytest.mark.parametrize(("later", "gap"), [(1, ""), (2, GAP.format(2)), (7, GAP.format(7))])
def test_iterations_that_were_not_dumped_may_have_made_it(tmp_path, later, gap):
    good = [("Add", "Default/Add-op0", [GOOD], [GOOD])]
    for name, ops, expected in (
        ("received", [("Add", "Default/Add-op0", [NAN], [NAN])], "no operator before it in the dump has it"),
        ("given", [("Data", "w", [], [NAN]), *good], ""),
        ("made", [("Add", "Default/Add-op0", [GOOD], [NAN])], None),
    ):
        write(tmp_path / name, good)
        (finding,) = dumpsim.first(write(tmp_path / name, ops, iteration=later))
        assert (finding.kind, finding.iteration) == (name, later)
        assert finding.note == ("" if expected is None else "; ".join(filter(None, (expected, gap))))


def test_a_rank_is_named_where_there_are_several_or_it_is_not_the_first(tmp_path):
    ops = [("Add", "Default/Add-op0", [GOOD], [NAN])]
    for name, ranks, words in (("a", (0,), ""), ("b", (3,), " --rank 3"), ("c", (0, 1), " --rank 0")):
        for rank in ranks:
            write(tmp_path / name, ops, rank=rank)
        found = dumpsim.first(tmp_path / name)
        root = tmp_path / name
        assert found.maker.next == f"dumpsim show {root} --op Default_Add-op0 --iteration 0{words}"


def test_all_facts_of_a_finding(tmp_path):
    (finding,) = dumpsim.first(
        write(tmp_path / "a", [("Log", "Default/Log-op0", [GOOD], [np.array([1, np.nan], "f")])])
    )
    (file,) = (tmp_path / "a").rglob("*.output.0.*")
    assert finding.as_dict() == {
        "kind": "made", "what": "nan", "rank": 0, "iteration": 0, "op_type": "Log", "op_name": "Default_Log-op0",
        "tensor": "output.0", "basis": "inputs", "detail": "1 NaN", "source": "", "code": "", "path": str(file),
        "other_path": None, "other_name": "", "note": "",
        "next": f"dumpsim show {tmp_path}/a --op Default_Log-op0 --iteration 0",
        "error_in": None, "error_out": None, "explained": None, "verdict": "",
    }  # fmt: skip


def test_all_facts_of_a_difference(tmp_path):
    """(3, 4) and (3, 5): one of two elements is 1 apart; the norms are 5 and root 34."""
    x = np.array([1, 2], np.float32)
    for name, made in (("a", [3, 4]), ("b", [3, 5])):
        write(tmp_path / name, [("Exp", "Default/Exp-op0", [x], [np.array(made, np.float32)])])
    found = dumpsim.first(tmp_path / "a", tmp_path / "b")
    (finding,) = found
    files = [str(next((tmp_path / name).rglob("*.output.0.*"))) for name in "ab"]
    cosine = (3 * 3 + 4 * 5) / (5 * 34**0.5)
    facts = finding.as_dict()
    detail = facts.pop("detail")
    assert detail.endswith(f"; largest difference 1, relative {1 / 34**0.5:.4g}, cosine {cosine:.6f}")
    assert detail.startswith("1 of 2 elements")
    error = facts.pop("error_out")
    assert error == pytest.approx(1 / 34**0.5)
    assert facts == {
        "kind": "made", "what": "difference", "rank": 0, "iteration": 0, "op_type": "Exp",
        "op_name": "Default_Exp-op0", "tensor": "output.0", "basis": "inputs", "source": "", "code": "",
        "path": files[0], "other_path": files[1], "other_name": "Default_Exp-op0",
        "note": "", "next": f"dumpsim compare {tmp_path}/a {tmp_path}/b --all --op Default_Exp-op0 --iteration 0",
        "error_in": 0.0, "explained": facts["explained"], "verdict": "suspect",
    }  # fmt: skip
    (row,) = found.ranking
    assert row.as_dict() == {
        "rank": 0, "iteration": 0, "op_type": "Exp", "op_name": "Default_Exp-op0", "other_name": "Default_Exp-op0",
        "tensor": "output.0", "error_in": 0.0, "error_out": error, "explained": facts["explained"],
        "verdict": "suspect", "basis": row.basis, "reason": row.reason,
    }  # fmt: skip
