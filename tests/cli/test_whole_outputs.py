"""Whole outputs of commands over dumps whose every number is known."""

import json

import numpy as np
import pytest
from smalltree import chain, write
from typer.testing import CliRunner

from dumpsim.cli.app import app

V = [np.full((2, 3), float(n), np.float32) for n in range(4)]
RAMP = np.arange(6, dtype=np.float32).reshape(2, 3)
BAD = np.where(RAMP == 5, np.float32(np.nan), RAMP)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command beside two dumps: results of the operators 1 and 3 differ, the last one has a NaN."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a", chain(V[0], V[1], V[2] + 1, V[3], BAD))
    write(tmp_path / "b", chain(*V, RAMP))

    def ran(*words):
        found = CliRunner().invoke(app, list(map(str, words)))
        return found.exit_code, found.stdout.splitlines(), found.stderr.splitlines()

    return ran


def file_of(dump, number, io):
    stamp = 1_700_000_000_000_001 + 2 * number + (io == "output")
    return f"{dump}/rank_0/Net/0/0/Add.Default_Add-op{number}.0.0.{stamp}.{io}.0.DefaultFormat.npy"


def test_first_of_one_dump(run):
    assert run("first", "a") == (1, [
        "nan made by Add  Default_Add-op3  (rank 0, iteration 0)",
        "  output.0: 1 NaN",
        "  its inputs are finite",
        f"  {file_of('a', 3, 'output')}",
        "  next: dumpsim show a --op Default_Add-op3 --iteration 0",
        "4 operators, 8 tensors looked at",
    ], [])  # fmt: skip


@pytest.mark.parametrize("every", [False, True])
def test_first_of_two_dumps(run, every):
    code, out, err = run("first", "a", "b", *(["--all"] if every else []))
    assert (code, err) == (1, [])
    first = [
        "difference made by Add  Default_Add-op1  (rank 0, iteration 0)",
        "  output.0: 6 of 6 elements beyond the tolerance (rtol 0.0001, atol 0.0002); largest difference 1, "
        "relative 0.5, cosine 1.000000",
        "  its inputs agree",
        f"  {file_of('a', 1, 'output')}",
        f"  {file_of('b', 1, 'output')}",
        "  next: dumpsim compare a b --all --op Default_Add-op1 --iteration 0",
    ]
    second = [
        "difference made by Add  Default_Add-op3  (rank 0, iteration 0)",
        "  output.0: 1 of 6 elements beyond the tolerance (rtol 0.0001, atol 0.0003); 1 NaN or Inf in A only",
        "  its inputs agree",
        f"  {file_of('a', 3, 'output')}",
        f"  {file_of('b', 3, 'output')}",
        "  next: dumpsim compare a b --all --op Default_Add-op3 --iteration 0",
    ]
    assert out[: -4 - 1] == first + (second if every else [])
    assert [line.split("\t") for line in out[-4:-1]] == [
        ["error_in", "error_out", "explained", "verdict", "op_type", "op_name", "reason"],
        ["0", "0.5", "9.54e-07", "suspect", "Add", "Default_Add-op1", ""],
        ["0", "inf", "9.54e-07", "suspect", "Add", "Default_Add-op3", ""],
    ]
    assert out[-1] == "4 operators, 8 tensors compared"


def test_show_of_a_tensor_with_nan(run):
    bar = "█" * 40
    parts = [f"{n / 4:g} .. {n / 4 + 0.25:g}" for n in range(16)]
    full = {0, 4, 8, 12, 15}  # 4 belongs to the last part
    code, out, err = run("show", "a", "--op", "*Add-op3", "--io", "output")
    assert (code, err) == (0, [])
    assert out[:5] == [
        "Add  Default_Add-op3:output.0",
        "  rank 0, graph 0, iteration 0, time 1700000000000008",
        "  float32 (2, 3), DefaultFormat, 24 B",
        f"  {file_of('a', 3, 'output')}",
        "  max nan, min nan, avg nan, l2norm nan, count 6, negative 0, positive 4, zero 1, nan 1, positive_inf 0, "
        "negative_inf 0",
    ]
    assert [" ".join(line.split()) for line in out[5:21]] == [
        f"{part} {bar} 1" if at in full else f"{part} 0" for at, part in enumerate(parts)
    ]
    assert out[21:] == ["  values 0 1 2 3 4 nan", ""]


def test_show_as_json(run):
    code, out, err = run("show", "a", "--limit", "1", "--values", "2", "--bins", "2", "--json")
    assert (code, err) == (0, ["7 more; narrow the selection or raise --limit"])
    (line,) = out
    assert json.loads(line) == {
        "rank": 0, "graph": 0, "iteration": 0, "op_type": "Add", "op_name": "Default_Add-op0", "io": "input", "slot": 0,
        "dtype": "float32", "shape": [2, 3], "format": "DefaultFormat", "nbytes": 24, "path": file_of("a", 0, "input"),
        "source": [], "max": 0.0, "min": 0.0, "avg": 0.0, "l2norm": 0.0, "count": 6, "negative": 0, "positive": 0,
        "zero": 6, "nan": 0, "positive_inf": 0, "negative_inf": 0,
        "histogram": {"edges": [-0.5, 0.0, 0.5], "counts": [0, 6]}, "values": [0.0, 0.0],
    }  # fmt: skip
    exact = run("show", "a", "--limit", "8", "--json")
    assert (len(exact[1]), exact[2]) == (8, [])


def test_stat_and_ls_have_a_row_a_tensor(run):
    values = [0, 1, 1, 3, 3, 3, 3, None]
    code, out, err = run("stat", "a")
    assert (code, err) == (0, [])
    names = "iteration op_type op_name io slot dtype shape max min avg l2norm nan positive_inf negative_inf"
    assert out[0] == names.replace(" ", "\t")
    for at, (line, value) in enumerate(zip(out[1:], values, strict=True)):
        numbers = ["nan"] * 4 if value is None else [*[f"{value:g}"] * 3, f"{value * 6**0.5:.6g}"]
        place = ["0", "Add", f"Default_Add-op{at // 2}", ("input", "output")[at % 2], "0", "float32", "(2,3)"]
        assert line.split("\t") == [*place, *numbers, str(int(value is None)), "0", "0"]
    assert run("stat", "a", "--bad")[0] == 1
    assert run("stat", "b", "--bad") == (0, [out[0]], [])
    listed = run("ls", "a", "--io", "output")[1]
    assert listed[0] == "rank graph iteration op_type op_name io slot dtype shape format".replace(" ", "\t")
    assert [line.split("\t") for line in listed[1:]] == [
        ["0", "0", "0", "Add", f"Default_Add-op{n}", "output", "0", "float32", "(2,3)", "DefaultFormat"]
        for n in range(4)
    ]


def test_compare_has_a_row_a_pair(run):
    code, out, err = run("compare", "a", "b", "--all")
    assert code == 1
    assert err == ["8 pairs compared: 3 differs, 5 equal", "next: dumpsim first a b"]
    names = (
        "op_type op_name io slot matched_by verdict outside count cosine max_absolute max_relative dtype other_dtype"
    )
    assert out[0] == f"{names} shape note".replace(" ", "\t")
    far = {3: ["6", "6", "1", "1", "0.5"], 4: ["6", "6", "1", "1", "0.5"], 7: ["1", "6", "nan", "nan", "nan"]}
    for at, line in enumerate(out[1:]):
        name = ["Add", f"Default_Add-op{at // 2}", ("input", "output")[at % 2], "0", "name"]
        numbers = ["differs", *far[at]] if at in far else ["equal", "0", "6", "1", "0", "0"]
        note = "1 NaN or Inf in A only" if at == 7 else ""
        assert line.split("\t") == [*name, *numbers, "float32", "float32", "(2,3)", note]
    assert len(out) == 9
    few = run("compare", "a", "b")[1]
    assert [line.split("\t")[1:3] for line in few[1:]] == [
        ["Default_Add-op1", "output"], ["Default_Add-op2", "input"], ["Default_Add-op3", "output"]
    ]  # fmt: skip


def test_compare_as_json_has_every_measure(run):
    code, out, _ = run("compare", "a", "b", "--json")
    assert (code, len(out)) == (1, 8)
    rows = [json.loads(line) for line in out]
    for row, number, io in ((rows[3], 1, "output"), (rows[7], 3, "output"), (rows[0], 0, "input")):
        assert (row["path"], row["other_path"]) == (file_of("a", number, io), file_of("b", number, io))
    names = {"rank": 0, "iteration": 0, "op_type": "Add", "op_name": "Default_Add-op1", "io": "output", "slot": 0}
    assert rows[3] == {
        **names, "other_type": "Add", "other_name": "Default_Add-op1", "other_io": "output", "other_slot": 0,
        "matched_by": "name", "verdict": "differs", "basis": "values", "dtype": "float32", "other_dtype": "float32",
        "shape": [2, 3], "other_shape": [2, 3], "outside": 6, "count": 6, "rtol": 0.0001, "atol": 0.0002,
        # six elements of 3 against 2
        "cosine": 1.0, "max_absolute": 1.0, "accumulated_relative": 6 * 0.5, "relative_euclidean": 0.5,
        "kullback_leibler": 0.0, "mean_absolute": 1.0, "root_mean_square": 1.0, "max_relative": 0.5,
        "mean_relative": 0.5, "mean": 3.0, "deviation": 0.0, "other_mean": 2.0, "other_deviation": 0.0, "note": "",
        "source": "", "path": file_of("a", 1, "output"), "other_path": file_of("b", 1, "output"), "matched_share": 1.0,
    }  # fmt: skip
    assert (rows[7]["other_mean"], rows[7]["other_deviation"]) == (2.5, pytest.approx((35 / 12) ** 0.5))
    assert (rows[7]["mean"], rows[7]["max_absolute"], rows[7]["atol"]) == ("nan", "nan", pytest.approx(0.0003))
    equal = ("verdict", "outside", "rtol", "max_absolute", "note")
    assert [rows[0][name] for name in equal] == ["equal", 0, 0.0001, 0.0, ""]


def test_first_as_json(run):
    (line,) = run("first", "a", "--json")[1]
    assert json.loads(line) == {
        "kind": "made", "what": "nan", "rank": 0, "iteration": 0, "op_type": "Add", "op_name": "Default_Add-op3",
        "tensor": "output.0", "basis": "inputs", "detail": "1 NaN", "source": "", "code": "",
        "path": file_of("a", 3, "output"), "other_path": None, "other_name": "", "note": "",
        "next": "dumpsim show a --op Default_Add-op3 --iteration 0", "error_in": None, "error_out": None,
        "explained": None, "verdict": "",
    }  # fmt: skip
    (line,) = run("first", "a", "b", "--json")[1]
    found = json.loads(line)
    names = ("op_name", "other_name", "path", "other_path", "error_in", "error_out", "verdict")
    assert [found[name] for name in names] == [
        "Default_Add-op1", "Default_Add-op1", file_of("a", 1, "output"), file_of("b", 1, "output"), 0.0, 0.5, "suspect"
    ]  # fmt: skip
    assert found["explained"] == found["ranking"][0]["explained"] == 16 * 2.0**-24
    assert [(one["op_name"], one["error_in"], one["error_out"]) for one in found["ranking"]] == [
        ("Default_Add-op1", 0.0, 0.5), ("Default_Add-op3", 0.0, "inf")
    ]  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
def test_replay(run, tmp_path, as_json):
    ops = [("ReLU", "Default/ReLU-op0", [V[1]], [V[1]]), ("ReLU", "Default/ReLU-op1", [V[1]], [V[2]]),
           ("Odd", "Default/Odd-op1", [V[1]], [V[2]])]  # fmt: skip
    write(tmp_path / "c", ops)
    code, out, err = run("replay", "c", *(["--json"] if as_json else []))
    assert code == 1
    assert [line.strip() for line in err] == [
        "skipped: 1 Odd: unknown operator type", "2 operators recomputed: 1 ok, 1 skipped, 1 suspect"
    ]  # fmt: skip
    place = {"graph": 0, "iteration": 0, "rank": 0, "source": ""}
    if as_json:
        assert [json.loads(line) for line in out] == [
            {"op_name": "Default_ReLU-op1", "op_type": "ReLU", "error": 1.0, "explained": 0.0, "verdict": "suspect",
             "reason": "output.0[0, 0], 6 of 6 elements", **place},
            {"op_name": "Default_ReLU-op0", "op_type": "ReLU", "error": 0.0, "explained": 0.0, "verdict": "ok",
             "reason": "", **place},
            {"op_name": "Default_Odd-op1", "op_type": "Odd", "error": None, "explained": None, "verdict": "skipped",
             "reason": "unknown operator type", **place},
        ]  # fmt: skip
    else:
        assert [line.split("\t") for line in out] == [
            ["op_type", "op_name", "verdict", "error", "explained", "excess", "reason"],
            ["ReLU", "Default_ReLU-op1", "suspect", "1", "0", "inf", "output.0[0, 0], 6 of 6 elements"],
        ]


def test_first_says_of_what_was_received_where_it_comes_from_alone(run, tmp_path):
    bad = np.full((2, 3), np.inf, np.float32)
    write(tmp_path / "c", [("Neg", "Default/Neg-op0", [bad], [-bad])])
    code, out, err = run("first", "c")
    assert (code, err) == (1, [])
    assert out[0] == "inf received by Neg  Default_Neg-op0  (rank 0, iteration 0)"
    assert not any("its inputs" in line for line in out)
    assert out[2].strip() == "no operator before it in the dump has it"
