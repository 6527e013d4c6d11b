"""Whole outputs of commands over dumps whose every number is known."""

import json

import numpy as np
import pytest
from smalltree import api, chain, write
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


def test_ls_has_summaries_and_paths(run):
    code, out, err = run("ls", "a", "--summary")
    assert (code, err) == (0, [])
    assert [line.split("\t") for line in out] == [
        ["rank", "net", "graph", "iteration", "operators", "tensors", "bytes"],
        ["0", "Net", "0", "0", "4", "8", str(8 * 24)],
    ]
    assert run("ls", "a", "--paths") == (
        0, [file_of("a", number, io) for number in range(4) for io in ("input", "output")], []
    )  # fmt: skip
    assert run("ls", "a", "-p", "--op", "Add-op3", "--io", "output") == (0, [file_of("a", 3, "output")], [])
    assert run("ls", "a", "--overflow") == (1, OVERFLOWS, ["nothing matches"])


OVERFLOWS = ["rank step iteration unit task_id stream_id status meaning operators".replace(" ", "\t")]


def test_a_summary_has_a_row_an_iteration_and_rank(run, tmp_path):
    for rank, iteration, count in ((0, 1, 2), (0, 2, 3), (1, 1, 4)):
        write(tmp_path / "c", chain(*V[:count]), rank=rank, iteration=iteration)
    rows = [json.loads(line) for line in run("ls", "c", "--summary", "--json")[1]]
    assert [(row["rank"], row["iteration"], row["operators"], row["tensors"], row["bytes"]) for row in rows] == [
        (0, 1, 1, 2, 48), (0, 2, 2, 4, 96), (1, 1, 3, 6, 144)
    ]  # fmt: skip


def test_each_choice_of_tensors_leaves_those_that_it_names(run, tmp_path):
    """Two ranks, two iterations, two types."""
    for rank in (0, 1):
        for iteration in (0, 3):
            ops = [("Add", "Default/Add-op0", [V[0], V[1]], [V[2]]),
                   ("Mul", "Default/x/Mul-op1", [V[1].astype(np.float16)], [V[2].astype(np.float16)])]  # fmt: skip
            write(tmp_path / "c", ops, rank=rank, iteration=iteration)

    def chosen(*words):
        return [json.loads(line) for line in run("ls", "c", *words, "--json")[1]]

    assert len(chosen()) == 4 * 5
    for words, name, value, count in (
        (["--rank", "1"], "rank", 1, 10), (["--iteration", "3"], "iteration", 3, 10), (["--type", "mul"], "op_type",
        "Mul", 8), (["--op", "add-op"], "op_name", "Default_Add-op0", 12), (["--op", "*x_Mul*"], "op_name",
        "Default_x_Mul-op1", 8), (["--io", "output"], "io", "output", 8), (["--slot", "1"], "slot", 1, 4),
        (["--dtype", "float16"], "dtype", "float16", 8), (["--graph", "0"], "graph", 0, 20),
    ):  # fmt: skip
        rows = chosen(*words)
        assert (len(rows), {row[name] for row in rows}) == (count, {value})
    assert chosen("--rank", "1", "--iteration", "0", "--type", "Add", "--slot", "1")[0]["path"].startswith("c/rank_1/")
    for words in (["--graph", "1"], ["--step", "1"], ["--slot", "2"], ["--source", "net.py:3"]):
        code, _, err = run("ls", "c", *words)
        assert (code, err[0]) == (1, "nothing matches")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_stat_finds_bad_tensors_whatever_it_prints_of_them(run, tmp_path, value):
    write(tmp_path / "c", chain(V[1], np.where(RAMP == 5, np.float32(value), V[1])))
    for columns in ("max", "min", "count"):
        code, out, err = run("stat", "c", "--bad", "--columns", columns)
        assert (code, len(out), err) == (1, 2, [])
        rows = [json.loads(line) for line in run("stat", "c", "--json", "--columns", columns)[1]]
        computed = [[name for name in ("max", "min", "count", "nan") if row[name] is not None] for row in rows]
        assert computed == [[columns]] * 2


def test_replay_takes_no_more_than_the_bound_of_rounding_for_granted(run, tmp_path):
    """Sums in float32 that are some units in the last place too large."""
    x, y = np.float32([1.25]), np.float32([2.5])
    ulp = np.spacing(x + y)
    write(tmp_path / "c", [("Add", f"Default/Add-op{n}", [x, y], [x + y + n * ulp]) for n in range(40)])
    rows = [json.loads(line) for line in run("replay", "c", "--json")[1]]
    assert {row["verdict"] for row in rows} == {"ok", "suspect"}
    for row in rows:
        assert row["verdict"] == ("suspect" if row["error"] > row["explained"] else "ok")
    assert [json.loads(line) for line in run("replay", "c", "--json", "--factor", "1")[1]] == rows
    good = [sum(row["verdict"] == "ok" for row in rows)]
    for factor in (2, 3):
        found = [json.loads(line) for line in run("replay", "c", "--json", "--factor", factor)[1]]
        good.append(sum(row["verdict"] == "ok" for row in found))
    assert good[0] < good[1] < good[2]


def test_stat_prints_the_statistics_that_are_asked_for(run):
    code, out, err = run("stat", "a", "--columns", "count,zero", "--op", "Add-op3", "--io", "output")
    assert (code, err) == (0, [])
    assert [line.split("\t")[-2:] for line in out] == [["count", "zero"], ["6", "1"]]
    head, row = (line.split("\t") for line in run("stat", "a", "--columns", "all", "--op", "Add-op1")[1][:2])
    assert head[7:] == [
        "max",
        "min",
        "avg",
        "l2norm",
        "count",
        "negative",
        "positive",
        "zero",
        "nan",
        "positive_inf",
        "negative_inf",
    ]
    assert row[7:] == ["1", "1", "1", f"{6**0.5:.6g}", "6", "0", "6", "0", "0", "0", "0"]
    code, out, err = run("stat", "a", "--bad", "--columns", "max")
    assert (code, err) == (1, [])
    assert [line.split("\t")[2:] for line in out[1:]] == [
        ["Default_Add-op3", "output", "0", "float32", "(2,3)", "nan"]
    ]  # fmt: skip
    assert run("stat", "a", "--op", "nothing*")[0] == 1
    assert run("stat", "a", "--op", "nothing*", "--bad")[0] == 1


def test_a_file_that_cannot_be_read_is_named_by_every_reader(run, tmp_path):
    broken = tmp_path / file_of("a", 2, "output")
    broken.write_bytes(b"\x93NUMPY")
    for words in (["ls"], ["ls", "--summary"], ["stat"], ["stat", "--bad"], ["show"]):
        code, _, err = run(words[0], "a", *words[1:])
        assert (code, len(err)) == (3, 1)
        assert err[0].startswith(f"dumpsim: {file_of('a', 2, 'output')}: ")
    assert run("ls", "a", "--op", "Add-op0")[0] == 0
    assert run("ls", "a", "--summary")[1][1].split("\t")[4:] == ["4", "7", str(7 * 24)]


@pytest.fixture
def wide(run, tmp_path):
    """Twenty numbers in each of ten tensors."""
    x = np.arange(20, dtype=np.int32)
    write(tmp_path / "w", [("Data", f"x{n}", [], [x + n]) for n in range(10)])
    return run


def test_show_has_eight_tensors_with_sixteen_bars_and_twelve_values(wide):
    code, out, err = wide("show", "w")
    assert (code, err) == (0, ["2 more; narrow the selection or raise --limit"])
    assert [line for line in out if line.startswith("Data  ")] == [f"Data  x{n}:output.0" for n in range(8)]
    assert [line for line in out if line.startswith("  values ")] == [
        "  values " + " ".join(str(v + n) for v in range(12)) for n in range(8)
    ]
    assert sum(" .. " in line for line in out) == 8 * 16
    facts = [json.loads(line) for line in wide("show", "w", "--json")[1]]
    assert [len(one["histogram"]["counts"]) for one in facts] == [16] * 8
    code, out, err = wide("show", "w", "--limit", "10", "--values", "0", "--bins", "1")
    assert (code, err, sum(" .. " in line for line in out), "values" in "".join(out)) == (0, [], 10, False)
    for words in (["--limit", "0"], ["--values", "-1"], ["--bins", "0"], ["--bins", "201"]):
        code, out, err = wide("show", "w", *words)
        assert (code, out) == (2, [])
        assert words[0] in " ".join(err)
    assert wide("show", "w", "--bins", "200", "--limit", "1")[0] == 0


def test_show_of_an_api_dump_has_no_more_than_it_knows(run, tmp_path):
    api(tmp_path / "c", [("NN_ReLU_0_forward_output", [1.0, 2.0])], npy=False)
    assert run("show", "c") == (0, [
        "ReLU  NN_ReLU_0_forward:output.0", "  rank 0, iteration 0, time 0", "  float32 (2,), DefaultFormat, 0 B",
        "  max 2, min 1, avg 1.5", "",
    ], [])  # fmt: skip


def test_compare_treats_nan_as_equal_unless_told(run):
    assert run("compare", "a", "a")[0] == 0
    code, out, err = run("compare", "a", "a", "--no-equal-nan", "--op", "Add-op3")
    assert (code, err[0]) == (1, "2 pairs compared: 1 differs, 1 equal")
    head, row = (line.split("\t") for line in out)
    assert dict(zip(head, row, strict=True))["outside"] == "1"


def test_compare_chooses_tensors_of_both(run, tmp_path):
    for name, add in (("c", 0), ("d", 1)):
        for rank in (0, 1):
            for iteration in (0, 3):
                write(tmp_path / name, chain(V[1], V[2] + add * rank), rank=rank, iteration=iteration)
    code, out, err = run("compare", "c", "d", "--rank", "1", "--iteration", "3")
    assert (code, err) == (1, [
        "2 pairs compared: 1 differs, 1 equal", "next: dumpsim first c d --rank 1 --iteration 3"
    ])  # fmt: skip
    assert [line.split("\t")[:4] for line in out] == [
        ["rank", "iteration", "op_type", "op_name"], ["1", "3", "Add", "Default_Add-op0"]
    ]  # fmt: skip
    assert run("compare", "c", "d", "--rank", "0")[0] == 0
    assert run("compare", "c", "d", "--tol", "*:0:1")[0] == 0


def test_compare_shows_both_names_of_a_pair(run, tmp_path):
    calls = [("NN_{}_0_forward_input.0", V[0]), ("NN_{}_0_forward_output", V[1])]
    api(tmp_path / "c", [(name.format("Mine"), value) for name, value in calls])
    api(tmp_path / "d", [(name.format("Mish"), value * 2) for name, value in calls])
    (tmp_path / "names.yaml").write_text("NN.Mine: NN.Mish\n")
    _, out, _ = run("compare", "c", "d", "--map", "names.yaml", "--all")
    rows = [dict(zip(out[0].split("\t"), line.split("\t"), strict=True)) for line in out[1:]]
    assert [(row["op_name"], row["note"]) for row in rows] == [("NN_Mine_0_forward", "B: NN_Mish_0_forward")] * 2
    api(
        tmp_path / "e", [*((name.format("Mine"), value) for name, value in calls), ("Torch_abs_0_forward_output", V[0])]
    )
    _, out, _ = run("compare", "c", "e", "--all")
    row = dict(zip(out[0].split("\t"), out[-1].split("\t"), strict=True))
    assert (row["verdict"], row["op_type"], row["op_name"], row["io"], row["slot"], row["shape"]) == (
        "only_b", "abs", "Torch_abs_0_forward", "output", "0", "(2,3)"
    )  # fmt: skip
    code, out, err = run("compare", "e", "c", "--strict")
    assert (code, out, err) == (1, [], ["in A only: 1 tensors of Torch_abs_0_forward",
                                        "2 pairs compared: 2 equal, 1 only_a"])  # fmt: skip
    assert run("compare", "e", "c")[0] == 0


def test_replay_has_options_for_each_choice(run, tmp_path):
    third = np.float32([1 / 3, 2 / 3])
    ops = [("Mul", "Default/Mul-op0", [third, third], [third * third + np.float32(2e-8)]),
           ("ReLU", "Default/ReLU-op1", [V[1]], [V[1]])]  # fmt: skip
    write(tmp_path / "c", ops)
    write(tmp_path / "c", [ops[1]], rank=1, iteration=3)
    code, out, err = run("replay", "c")
    assert (code, err) == (1, ["3 operators recomputed: 2 ok, 1 suspect"])
    assert [line.split("\t")[:3] for line in out] == [["op_type", "op_name", "verdict"],
                                                      ["Mul", "Default_Mul-op0", "suspect"]]  # fmt: skip
    assert run("replay", "c", "--factor", "1000") == (0, [], ["3 operators recomputed: 3 ok"])
    assert run("replay", "c", "--compute", "mul:float16")[0] == 0
    assert run("replay", "c", "--rank", "1") == (0, [], ["1 operator recomputed: 1 ok"])
    assert run("replay", "c", "--iteration", "3") == (0, [], ["1 operator recomputed: 1 ok"])
    code, out, _ = run("replay", "c", "--op", "*ReLU*", "--all")
    assert (code, [line.split("\t")[:2] for line in out]) == (0, [
        ["rank", "iteration"], ["0", "0"], ["1", "3"]
    ])  # fmt: skip
    code, out, err = run("replay", "c", "--op", "none*")
    assert (code, out, err[-1]) == (1, [], "0 operators recomputed: no operators")
    assert err[0].startswith("dumpsim: no operator called 'none*'; ")
    code, _, err = run("replay", "c", "--step", "1")
    assert (code, err[0]) == (1, "dumpsim: c: no step 1; the dump counts none")
    next((tmp_path / "c").rglob("Mul*output*")).write_bytes(b"")
    assert run("replay", "c")[0] == 3
