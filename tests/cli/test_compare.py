"""compare and first as a user types them."""

import itertools
import json
import shlex
import shutil

import numpy as np
import pytest
from rebuild import rebuild
from smalltree import api, chain, write
from typer.testing import CliRunner

import dumpsim
from dumpsim.cli.app import app
from dumpsim.cli.compare import empty_columns
from dumpsim.core.errors import BadInputError

V = [np.full((2, 3), float(n), np.float32) for n in range(5)]


def run(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


@pytest.fixture
def dumps(tmp_path):
    worse = [*V[:2], V[2] + 1, V[3], V[4] * np.nan]
    extra = ("Cast", "Default/Cast-op7", [V[0]], [V[0]])
    return write(tmp_path / "a", [*chain(*worse), extra]), write(tmp_path / "b", chain(*V))


def test_compare_shows_what_differs_and_counts_the_rest(dumps):
    found = run("compare", *dumps)
    assert found.exit_code == 1
    head, *rows = found.stdout.splitlines()
    cells = [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]
    assert [(row["op_name"], row["io"]) for row in cells] == [
        ("Default_Add-op1", "output"),
        ("Default_Add-op2", "input"),
        ("Default_Add-op3", "output"),
    ]
    assert (cells[0]["outside"], cells[0]["count"], cells[0]["max_absolute"]) == ("6", "6", "1")
    assert cells[2]["note"] == "6 NaN or Inf in A only"
    assert "in A only: 2 tensors of Default_Cast-op7" in found.stderr
    assert "8 pairs compared: 3 differs, 5 equal, 2 only_a" in found.stderr


def test_compare_json_csv_and_choice(dumps, tmp_path):
    found = run("compare", *dumps, "--json", "--csv", tmp_path / "rows.csv")
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert len(rows) == 10
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 11
    some = run("compare", *dumps, "--json", "--op", "*add-op0").stdout.splitlines()
    assert [json.loads(line)["verdict"] for line in some] == ["equal", "equal"]


def test_exit_codes_of_compare(dumps):
    a, b = dumps
    assert run("compare", b, b).exit_code == 0
    assert run("compare", a, b, "--op", "*Add-op0").exit_code == 0
    assert run("compare", a, b, "--op", "*Cast*").exit_code == 1  # nothing to compare
    assert run("compare", b, b, "--iteration", "3").exit_code == 1
    assert run("compare", a, a, "--strict").exit_code == 0
    assert run("compare", a, b, "--tol", "*:0:1", "--op", "*Add-op[012]").exit_code == 0
    assert run("compare", a, b, "--tol", "*:0:1", "--op", "*Add-op[01]", "--strict").exit_code == 0
    next(a.rglob("*Add-op0*input*")).write_bytes(b"")
    assert run("compare", a, b).exit_code == 3


def test_first_says_who_where_and_what_next(dumps):
    a, b = dumps
    found = run("first", a)
    assert found.exit_code == 1
    lines = found.stdout.splitlines()
    assert lines[0] == "nan made by Add  Default_Add-op3  (rank 0, iteration 0)"
    assert lines[1].strip() == "output.0: 6 NaN"
    assert lines[-2].strip() == f"next: dumpsim show {a} --op Default_Add-op3 --iteration 0"
    both = run("first", a, b, "--json")
    assert json.loads(both.stdout)["op_name"] == "Default_Add-op1"
    clean = run("first", b)
    assert (clean.exit_code, clean.stdout) == (
        0,
        "4 operators, 8 tensors looked at: no NaN, no infinity that is not intended\n",
    )


def test_few_operators_are_ranked_without_a_word_of_more(tmp_path):
    """One addition of two has another result than its operands give."""
    half = [("Add", "Default/Add-op1", [V[1], V[2]], [V[3]])]
    a = write(tmp_path / "a", [("Add", "Default/Add-op0", [V[0], V[1]], [V[1] * 1.5]), *half])
    b = write(tmp_path / "b", [("Add", "Default/Add-op0", [V[0], V[1]], [V[1]]), *half])
    found = run("first", a, b)
    assert "operators ranked by the difference that their inputs do not explain" in found.stdout
    assert "Default_Add-op0" in found.stdout
    assert "more: see" not in found.stdout


def test_the_next_command_works(dumps):
    a, b = dumps
    for arguments in ((a,), (a, b)):
        words = json.loads(run("first", *arguments, "--json").stdout)["next"].split()
        found = run(*words[1:])
        assert found.exit_code in (0, 1)
        assert words[words.index("--op") + 1] in found.stdout


def test_first_says_what_it_could_not_look_at(tmp_path):
    left = write(tmp_path / "a", [("Add", "Default/Add-op0", [V[0]], [])])
    right = write(tmp_path / "b", [("Add", "Default/Add-op0", [], [V[0]])], iteration=2)
    found = run("first", left, right)
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        "0 operators, 0 tensors compared",
        "not compared: rank 0, iteration 0: in A only; rank 0, iteration 2: in B only",
        "nothing could be compared; try --match order",
    ]
    ordered = run("first", left, right, "--match", "order", "--json")
    assert (ordered.exit_code, ordered.stdout) == (1, "")
    assert "not compared: 1 tensor in A only, 1 tensor in B only" in ordered.stderr


def test_first_fills_no_more_than_a_screen_and_keeps_the_maker(tmp_path):
    """A bad weight on each of many ranks; the last one makes something bad besides."""
    bad = V[1] * np.nan
    for rank in range(20):
        log = [("Log", "Default/Log-op0", [V[1]], [bad])] if rank == 19 else []
        write(tmp_path, [*log, ("Data", "w", [], [bad])], rank=rank)
    found = run("first", tmp_path)
    lines = found.stdout.splitlines()
    assert len(lines) < 24
    assert [line for line in lines if line.startswith("nan made by Log  Default_Log-op0  (rank 19")]
    assert "16 more, received or given: see --all or --json" in lines


def test_compare_leads_to_first(dumps):
    a, b = dumps
    assert run("compare", a, b).stderr.splitlines()[-1] == f"next: dumpsim first {a} {b}"
    assert "next:" not in run("compare", b, b).stderr


def test_the_next_command_asks_the_same(tmp_path):
    """What was chosen and tolerated, here by order where the iterations have other numbers."""
    a = write(tmp_path / "a", chain(V[0], V[1] * 1.5, V[2] * 3))
    b = write(tmp_path / "b", chain(*V[:3]), iteration=2)
    options = ["--tol", "*:0.6:0", "--match", "order"]
    line = run("compare", a, b, *options).stderr.splitlines()[-1]
    assert line == f"next: dumpsim first {a} {b} --tol '*:0.6:0' --match order"
    found = run("first", a, b, *options, "--json")
    words = shlex.split(json.loads(found.stdout)["next"])
    assert words[-4:] == options
    again = run(*words[1:])
    assert (again.exit_code, "Default_Add-op1\toutput" in again.stdout) == (1, True)


def test_names_of_a_file(tmp_path):
    left = api(tmp_path / "a", [("NN_Mine_0_forward_input.0", V[0]), ("NN_Mine_0_forward_output", V[1])])
    right = api(tmp_path / "b", [("NN_Mish_0_forward_input.0", V[0]), ("NN_Mish_0_forward_output", V[2])])
    names = tmp_path / "names.yaml"
    names.write_text("NN.Mine: NN.Mish\n")
    found = run("compare", left, right, "--map", names)
    assert "2 pairs compared: 1 differs, 1 equal" in found.stderr
    assert found.stderr.splitlines()[-1] == f"next: dumpsim first {left} {right} --map {names}"
    told = json.loads(run("first", left, right, "--map", names, "--json").stdout)
    assert (told["op_name"], told["other_name"]) == ("NN_Mine_0_forward", "NN_Mish_0_forward")
    assert f"--map {names}" in told["next"]
    names.write_text("Mine: Mish\n")
    assert "is not the name of an API" in str(run("compare", left, right, "--map", names).exception)


def test_what_the_dumps_do_not_have_is_told(dumps):
    a, b = dumps
    for command in ("compare", "first"):
        found = run(command, a, b, "--iteration", 7)
        assert found.exit_code == 1
        assert [f"{root}: no iteration 7; there is 0" in found.stderr for root in dumps] == [True, True]
        assert f"{a}: no step 1; the dump counts none" in run(command, a, b, "--step", 1).stderr
    there = sorted({entry.op_name for root in dumps for entry in dumpsim.open(root)})
    said = f"no operator called '*sub*'; there are {', '.join(there)}"
    assert said in run("compare", a, b, "--op", "*sub*").stderr
    assert "no tensor matches 'sub'" in run("first", a, b, "--tol", "sub:1").stderr
    assert "no tensor matches 'sub'" in run("compare", a, b, "--tol", "sub:1").stderr


def test_rows_have_a_place_to_go_before_anything_is_compared(dumps, tmp_path):
    found = run("compare", *dumps, "--csv", tmp_path / "none" / "rows.csv")
    assert str(found.exception) == f"--csv: the directory {str(tmp_path / 'none')!r} does not exist"
    assert (type(found.exception), found.stdout) == (BadInputError, "")
    assert str(run("compare", *dumps, "--csv", tmp_path).exception) == f"--csv: {tmp_path} is a directory"


def test_names_that_files_and_graphs_write_differently_are_one(tmp_path):
    """A tree with graphs has slashes in its names, one without has not."""
    rebuild("simple_3steps", tmp_path / "a")
    rebuild("simple_3steps", tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "rank_0" / "graphs")
    path = next((tmp_path / "b").rglob("MatMul.*fc2*output*.npy"))
    path.chmod(0o600)
    np.save(path, np.load(path) * 2)
    found = run("compare", tmp_path / "a", tmp_path / "b")
    assert "Default/fc2-Dense/MatMul-op0" in found.stdout
    assert "B: " not in found.stdout
    assert "in B" not in run("first", tmp_path / "a", tmp_path / "b").stdout


def test_first_says_how_to_start_two_runs_alike(tmp_path):
    a, b = (write(tmp_path / name, chain(*[value + n for value in V])) for n, name in enumerate("ab"))
    found = run("first", a, b)
    assert found.exit_code == 1
    assert "start both from one checkpoint" in found.stdout
    assert (
        "checkpoint"
        not in run("first", *(write(tmp_path / n, chain(*V[:2], v)) for n, v in zip("cd", V, strict=False))).stdout
    )


@pytest.mark.parametrize(("count", "more"), [(8, ""), (9, " and 1 more"), (10, " and 2 more")])
def test_what_only_one_side_has_is_named_up_to_eight_and_shown_with_its_own_names(tmp_path, count, more):
    extra = [("Cast", f"Default/Cast-op{n}", [], [V[n % 3]]) for n in range(count)]
    a, b = write(tmp_path / "a", chain(*V[:2])), write(tmp_path / "b", [*chain(*V[:2]), *extra])
    found = run("compare", a, b)
    names = ", ".join(f"Default_Cast-op{n}" for n in range(8))
    counts = f"2 pairs compared: 2 equal, {count} only_b"
    assert found.stderr.splitlines() == [f"in B only: {count} tensors of {names}{more}", counts]
    assert (found.exit_code, found.stdout) == (0, "")
    found = run("compare", a, b, "--all")
    head, *rows = found.stdout.splitlines()
    cells = [dict(zip(head.split("\t"), row.split("\t"), strict=True)) for row in rows]
    assert [row["verdict"] for row in cells] == ["equal"] * 2 + ["only_b"] * count
    assert {(row["op_type"], row["op_name"], row["io"], row["slot"]) for row in cells[2:]} == {
        ("Cast", f"Default_Cast-op{n}", "output", "0") for n in range(count)
    }
    # who sees each of them in a row needs no names
    assert found.stderr.splitlines() == run("compare", a, b, "--json").stderr.splitlines() == [counts]


def test_tensors_inside_fused_operators_are_counted_apart(tmp_path):
    calls = ("NN_Mine_0_forward_input.0", V[0]), ("NN_Mine_0_forward_output", V[1])
    a = api(tmp_path / "a", calls)
    b = api(tmp_path / "b", [(f"NN_{name}_0_forward_{io}", values) for name, io, values in (
        ("Dense", "input.0", V[0]), ("Dense", "output", V[2]), ("ReLU", "input.0", V[2]), ("ReLU", "output", V[1]),
        ("Tanh", "output", V[1]),
    )])  # fmt: skip
    names = tmp_path / "names.yaml"
    names.write_text("NN.Mine: [NN.Dense, NN.ReLU]\n")
    assert run("compare", a, b, "--map", names).stderr.splitlines() == [
        "in B only: 1 tensors of NN_Tanh_0_forward",
        "in B only: 2 tensors inside operators that are fused on the other side",
        "2 pairs compared: 2 equal, 3 only_b",
    ]


def test_a_column_is_empty_if_no_row_has_a_value_in_it():
    """The columns of ranks and iterations are left out as well when all of them are 0."""
    for numbers, texts in itertools.product(
        itertools.product([None, 0, 1], repeat=2), [("", None), ("", "x"), (0.0, "")]
    ):
        rows = [{"rank": number, "note": text} for number, text in zip(numbers, texts, strict=True)]
        empty = {"rank"} if set(numbers) <= {None, 0} else set()
        assert empty_columns(rows, ["rank"], ["note"]) == (empty | {"note"} if set(texts) <= {None, ""} else empty)


def test_iterations_of_other_numbers_lead_to_the_order(tmp_path):
    """Where nothing else can be compared."""
    a, b = write(tmp_path / "a", chain(*V[:2])), write(tmp_path / "b", chain(*V[:2]), iteration=1)
    assert "--match order" not in run("compare", a, a, "--op", "*Sub*").stderr
    both = write(tmp_path / "both", chain(*V[:2]))
    assert run("compare", a, write(both, chain(*V[:2]), iteration=1)).stderr.splitlines()[1:] == [
        "not compared: rank 0, iteration 1: in B only", "2 pairs compared: 2 equal, 2 only_b"
    ]  # fmt: skip
    assert run("compare", a, b).stderr.splitlines()[2:] == [
        "not compared: rank 0, iteration 0: in A only",
        "not compared: rank 0, iteration 1: in B only",
        "--match order pairs iterations by their order and ignores their numbers",
        "0 pairs compared: 2 only_a, 2 only_b",
    ]


def test_first_shows_names_of_both_sides(tmp_path):
    calls = [("NN_{}_0_forward_input.0", V[0]), ("NN_{}_0_forward_output", V[1])]
    left = api(tmp_path / "a", [(name.format("Mine"), value) for name, value in calls])
    right = api(tmp_path / "b", [(name.format("Mish"), value * 2) for name, value in calls])
    names = tmp_path / "names.yaml"
    names.write_text("NN.Mine: NN.Mish\n")
    assert "  in B NN_Mish_0_forward" in run("first", left, right, "--map", names).stdout.splitlines()
    right = api(tmp_path / "c", [(name.format("Mine"), value * 2) for name, value in calls])
    assert "  in B" not in run("first", left, right).stdout
