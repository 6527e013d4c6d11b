"""Whether two dumps are of one network: how many of their operators have a counterpart."""

import json
import logging

import numpy as np
import pytest
from smalltree import api, chain, write
from typer.testing import CliRunner

import dumpsim
from dumpsim.analysis.apicompare.compare import api_dump_compare
from dumpsim.analysis.coverage import Coverage, Group
from dumpsim.cli.app import app
from dumpsim.core.errors import BadInputError

V = [np.full((2, 3), float(n), np.float32) for n in range(4)]


def run(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


def others(kind, count):
    """Operators that the other dump does not have."""
    return [(kind, f"Default/{kind}-op{n}", [np.full((n + 2, 7), n, np.float32)], [V[0]]) for n in range(count)]


@pytest.fixture
def strangers(tmp_path):
    """Three operators in common, which agree, and many that are not."""
    a = write(tmp_path / "a", [*chain(*V), *others("Sin", 40)])
    return a, write(tmp_path / "b", [*chain(*V), *others("Conv3D", 9)])


def test_dumps_of_different_networks_do_not_agree(strangers):
    found = dumpsim.compare(*strangers)
    assert found.counts == {"equal": 6, "only_a": 80, "only_b": 18}
    assert (found.coverage.matched, found.coverage.operators) == ((3, 3), (43, 12))
    assert (found.matched, found.ok) == (0.25, False)
    assert dumpsim.compare(*strangers, min_matched=0.25).ok


def test_the_command_says_so_first(strangers):
    said = (
        "only 3 of 43 operators of A and 3 of 12 of B have a counterpart, less than a share of 0.5: "
        "these may be dumps of different networks"
    )
    found = run("compare", *strangers)
    assert (found.exit_code, found.stdout.splitlines()[0]) == (1, said)
    assert found.stderr.splitlines()[0] == f"dumpsim: {said}"
    as_json = run("compare", *strangers, "--json")
    assert as_json.exit_code == 1
    assert {json.loads(line)["matched_share"] for line in as_json.stdout.splitlines()} == {0.25}
    assert as_json.stderr.splitlines()[0] == f"dumpsim: {said}"
    for share, code in (("0.25", 0), ("0.26", 1), ("0", 0)):
        assert run("compare", *strangers, "--min-matched", share).exit_code == code
    assert run("compare", *strangers, "--op", "*Add*").exit_code == 0
    assert isinstance(run("compare", *strangers, "--min-matched", "1.5").exception, BadInputError)


def test_a_dump_of_a_few_operators_beside_one_of_all_is_of_the_same_network(tmp_path):
    a = write(tmp_path / "a", chain(*V)[:1])
    found = dumpsim.compare(a, write(tmp_path / "b", [*chain(*V), *others("Sin", 40)]))
    assert (found.matched, found.ok) == (1.0, True)


@pytest.mark.parametrize("kind", ["TransData", "Cast", "Data", "Load"])
def test_what_compilers_put_in_does_not_count(tmp_path, kind):
    """Otherwise 3 of 43 operators of one side and 3 of 45 of the other would have a counterpart."""
    sides = [
        write(tmp_path / name, [*chain(*V), *others(kind, 40), *others("Sin", alone)])
        for name, alone in (("a", 0), ("b", 2))
    ]
    found = dumpsim.compare(*sides, tol=["*:9:9"])
    assert found.coverage.operators[0] in (3, 43)  # counted where the two are matched with each other
    assert found.matched == 1.0
    lonely = write(tmp_path / "c", chain(*V))
    assert dumpsim.compare(lonely, sides[0]).coverage.operators == (3, 3)


def test_the_parts_of_a_fused_operator_have_a_counterpart(tmp_path):
    parts = [
        ("MatMul", "Default/MatMul-op0", [V[0]], [V[1]]),
        ("BiasAdd", "Default/BiasAdd-op0", [V[1]], [V[2]]),
    ]
    whole = [("MatMul", "Default/MatMul-op0Default/BiasAdd-op0", [V[0]], [V[2]])]
    found = dumpsim.compare(write(tmp_path / "a", parts), write(tmp_path / "b", whole))
    assert (found.coverage.matched, found.coverage.operators) == ((2, 1), (2, 1))


def test_calls_of_different_networks(tmp_path, caplog, capsys):
    def calls(names, size):
        return [
            record
            for n, name in enumerate(names)
            for record in (
                (f"{name}_forward_input.0", np.ones((size, n + 2), np.float32)),
                (f"{name}_forward_output", np.ones((size, n + 3), np.float32)),
            )
        ]

    shared = calls(["NN_ReLU_0"], 1)
    a = api(tmp_path / "a", [*shared, *calls(["NN_Conv2d_0", "Torch_sin_0", "Torch_tan_0"], 3)])
    b = api(tmp_path / "b", [*shared, *calls([f"NN_LSTM_{n}" for n in range(5)], 4)])
    assert not dumpsim.compare(a, b).ok
    with caplog.at_level(logging.WARNING):
        result = api_dump_compare(a, b)
    assert result.matched < 0.5
    assert not result.passes
    assert result.notes[0].startswith("only 1 of 4 operators of A and 1 of 6 of B have a counterpart")
    assert result.notes[0] in caplog.text
    same = api_dump_compare(a, a)
    assert (same.matched, same.passes, same.notes) == (1.0, True, ())


def test_a_group_counts_for_both_sides_where_it_is_compared():
    both, apart = (Group(left=("a", "b"), right=("c",), compared=compared) for compared in (True, False))
    left, right = Group(left=("d",), right=()), Group(left=(), right=("e", "f", "g"))
    found = Coverage.of([both, apart, left, right])
    assert (found.matched, found.operators) == ((2, 1), (5, 5))
    assert found.share == 2 / 5
    assert Coverage.of([right]).share == Coverage.of([]).share == Coverage().share == 0
    assert Coverage.of([both, right]).share == 1
    assert [group.any(lambda name: name == "c") for group in (both, left)] == [True, False]


@pytest.mark.parametrize(("least", "short"), [(0.4, False), (0.5, True), (0.0, False)])
def test_a_share_below_the_least_is_told(least, short):
    found = Coverage(matched=(2, 1), operators=(5, 5))
    assert found.shortfall(least) == (
        f"only 2 of 5 operators of A and 1 of 5 of B have a counterpart, less than a share of {least:g}: these may be "
        "dumps of different networks" if short else ""
    )  # fmt: skip
    assert Coverage().shortfall(0.5) == ""
    assert Coverage(operators=(0, 3)).shortfall(0.5) != ""
