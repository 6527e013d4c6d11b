"""ls, show and stat as a user types them."""

import contextlib
import inspect
import io
import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
from rebuild import rebuild
from smalltree import api

from dumpsim.cli import main
from dumpsim.cli.selection import reads


def dumpsim(*arguments, **options):
    """Run a command: in this process, which has the modules already, unless options ask for one of its own."""
    command = ["dumpsim", *map(str, arguments)]
    if options:
        command = [sys.executable, "-m", *command]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(command, ended.value.code or 0, out.read(), err.read())


@pytest.fixture
def tree(tmp_path):
    rebuild("lenet_fwd", tmp_path)
    return tmp_path


def test_a_reading_command_has_a_path_the_choice_of_tensors_and_its_own_options(tree):
    called = []

    @reads
    def look(dump, first: bool = False, second: int = 3) -> None:
        """Look at a dump."""
        called.append((len(list(dump)), first, second))

    choice = ["op", "op_type", "io", "slot", "dtype", "rank", "graph", "iteration", "step", "source"]
    one, *others = inspect.signature(look).parameters.values()
    assert (one.name, one.kind, one.default) == ("path", one.POSITIONAL_OR_KEYWORD, one.empty)
    assert {each.kind for each in others} == {one.KEYWORD_ONLY}
    assert [(each.name, each.default) for each in others] == [
        *((name, None) for name in choice), ("first", False), ("second", 3)
    ]  # fmt: skip
    assert list(look.__annotations__) == ["path", *choice, "first", "second"]
    assert (look.__name__, look.__doc__) == ("look", "Look at a dump.")
    total = len(dumpsim("ls", tree, "--paths").stdout.splitlines())
    look(tree, **dict.fromkeys(choice), first=True, second=5)
    look(tree, **{**dict.fromkeys(choice), "io": "input"}, first=False, second=3)
    assert called[0] == (total, True, 5)
    assert 0 < called[1][0] < total


def test_ls_is_tab_separated_when_piped(tree):
    result = dumpsim("ls", tree, "--type", "conv2d")
    head, *rows = result.stdout.splitlines()
    assert head.split("\t")[3:6] == ["op_type", "op_name", "io"]
    assert {row.split("\t")[4] for row in rows} >= {"Default/conv1-Conv2d/Conv2D-op0"}
    assert "\x1b" not in result.stdout


def test_ls_json_lines_are_the_same_rows(tree):
    rows = [json.loads(line) for line in dumpsim("ls", tree, "--json").stdout.splitlines()]
    assert len(rows) == len(dumpsim("ls", tree).stdout.splitlines()) - 1
    assert {"op_name", "shape", "dtype", "path", "max"} <= rows[0].keys()


def test_ls_summary_counts(tree):
    (row,) = (json.loads(line) for line in dumpsim("ls", tree, "--summary", "--json").stdout.splitlines())
    assert row["tensors"] == len(dumpsim("ls", tree, "--json").stdout.splitlines())
    assert (row["graph"], row["iteration"]) == (0, 0)


def test_paths_can_be_fed_to_other_tools(tree):
    paths = dumpsim("ls", tree, "--paths", "--op", "*fc3*").stdout.splitlines()
    assert paths
    assert all(np.load(path).ndim <= 2 for path in paths)


def test_show_has_histogram_and_values(tree):
    result = dumpsim("show", tree, "--type", "BiasAdd", "--io", "output", "--limit", "1")
    assert "█" in result.stdout
    facts = json.loads(dumpsim("show", tree, "--type", "BiasAdd", "--io", "output", "--limit", "1", "--json").stdout)
    array = np.load(facts["path"])
    assert sum(facts["histogram"]["counts"]) == array.size
    assert facts["max"] == pytest.approx(array.max())
    assert np.allclose(facts["values"], array.reshape(-1)[:12])


def test_show_names_the_line_of_the_script_that_made_a_tensor(tree):
    """The innermost of those that the graph gives: ``script.py:27, 22~30/    x = self.relu(self.fc1(x))/``."""
    words = ("show", tree, "--io", "output", "--limit", "1000")
    texts = dumpsim(*words).stdout.split("\n\n")[:-1]
    facts = [json.loads(line) for line in dumpsim(*words, "--json").stdout.splitlines()]
    made = [[line for line in text.splitlines() if line.startswith("  made by")] for text in texts]
    assert sum(map(len, made)) > 5
    for lines, each in zip(made, facts, strict=True):
        for source in each["source"][-1:]:
            file, line, code = re.fullmatch(r"(\S+):(\d+)[~\d]*, \S+/ *(.*)/", source).groups()
            assert lines == [f"  made by {file}:{line}  {code}"]
        assert bool(lines) == bool(each["source"])


@pytest.mark.parametrize(("value", "code"), [(1.0, 0), (float("nan"), 1), (float("inf"), 1), (None, 1)])
def test_stat_finds_bad_tensors_by_statistics_without_counts(tmp_path, value, code):
    """As an API dump has them: maximum, minimum and mean; or none, where stacks alone were asked for."""
    place = tmp_path / "rank0"
    place.mkdir()
    records = [("input.0", 1.0), ("output", value)] if value is not None else [("input.0", float("nan"))]
    lines = [[f"Torch_log_0_forward_{io}", 1, [], "torch.float32", [2], [v] * 3] for io, v in records]
    lines.append(["LAYER_net_forward_input", 1, [], "torch.float32", [1], [0.0] * 3])
    (place / "torch_api_dump_info.pkl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = dumpsim("stat", tmp_path, "--bad", "--json")
    assert result.returncode == code
    shown = [json.loads(line)["io"] for line in result.stdout.splitlines()]
    assert shown == (["output"] if code and value is not None else [])
    assert ("1 tensor has neither values nor statistics" in result.stderr) == (value is None)


def test_stat_finds_bad_tensors_and_says_so_by_its_code(tmp_path):
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    for number, values in enumerate(([1.0, 2.0], [1.0, np.nan], [np.inf, 0.0])):
        np.save(place / f"Op.Default_Op-op{number}.0.0.{number + 1}.output.0.DefaultFormat.npy", np.array(values))
    assert dumpsim("stat", tmp_path).returncode == 0
    result = dumpsim("stat", tmp_path, "--bad", "--json")
    assert result.returncode == 1
    assert [json.loads(line)["op_name"] for line in result.stdout.splitlines()] == ["Default_Op-op1", "Default_Op-op2"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["ls", "/nonexistent"], 3, "does not exist"),
        (["stat", "{tree}", "--columns", "maxx"], 2, "did you mean 'max'"),
        (["ls", "{tree}", "--op", "nothing*"], 1, "nothing matches"),
        (["show", "{tree}", "--op", "nothing*"], 1, "nothing matches\n  no operator called 'nothing*'; nearest of "),
        (["stat", "{tree}", "--op", "nothing*"], 1, "nothing matches\n  no operator called 'nothing*'; nearest of "),
        (["replay", "{tree}", "--iteration", "9"], 1, "{tree}: no iteration 9; there is 0"),
        (["ls", "{tree}", "--io", "in"], 2, "input, output"),
        (["ls", "{tree}", "--source", "train.py:x"], 2, "'x' is not a line"),
        (["check", "--schema", "fault"], 2, "did you mean 'faults'"),
        (["run", "--manifest", "{tree}/none/m.json", __file__], 2, "none' does not exist"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_exit_codes(tree, arguments, code, text):
    result = dumpsim(*(a.replace("{tree}", str(tree)) for a in arguments))
    assert result.returncode == code
    assert text.replace("{tree}", str(tree)) in result.stderr


def test_show_leaves_out_what_an_api_dump_does_not_have(tmp_path):
    root = api(tmp_path, [("NN_ReLU_0_forward_output", [1.0, 2.0])])
    lines = dumpsim("show", root).stdout.splitlines()
    assert lines[:2] == ["ReLU  NN_ReLU_0_forward:output.0", "  rank 0, iteration 0, time 0"]


@pytest.mark.parametrize("command", [["stat"], ["ls"], ["show", "--limit", "1000"]])
def test_a_broken_file_is_named_and_hides_no_other(tree, command):
    whole = len(dumpsim(*command, tree, "--json").stdout.splitlines())
    path = next(tree.rglob("BiasAdd*fc1*output*.npy"))
    path.write_bytes(path.read_bytes()[:200])
    result = dumpsim(*command, tree, "--json")
    assert result.returncode == 3
    assert f"{path.name}: byte 128" in result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == whole - 1 > 0
    assert str(path) not in {row["path"] for row in rows}


@pytest.mark.parametrize("command", [["ls"], ["ls", "--json"], ["stat"], ["show", "--limit", "1000"]])
def test_a_reader_that_leaves_early_is_no_error(tmp_path, command):
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    for number in range(600):  # more than a pipe holds
        name = f"Op.Default_{'long' * 40}_Op-op{number}.0.0.{number + 1}.output.0.DefaultFormat.npy"
        np.save(place / name, np.zeros(2, np.float32))
    process = subprocess.Popen(
        [sys.executable, "-m", "dumpsim", *command, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 0


def test_a_table_on_a_terminal_is_aligned_and_bold(tree):
    main, other = pty.openpty()
    with open(main, "rb", buffering=0) as terminal:
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"COLUMNS": "250"}
        command = [sys.executable, "-m", "dumpsim", "ls", str(tree), "--type", "Conv2D"]
        process = subprocess.Popen(command, stdout=other, stderr=subprocess.DEVNULL, env=environment)
        os.close(other)
        text = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while piece := terminal.read(4096):
                text += piece
        assert process.wait(60) == 0
    head, *lines = text.decode().splitlines()
    assert head.startswith("\x1b[1mrank  graph")
    piped = dumpsim("ls", tree, "--type", "Conv2D").stdout.splitlines()[1:]
    assert ["".join(line.split()) for line in lines] == ["".join(line.split()) for line in piped] != []
    begin = head.index("op_type") - len("\x1b[1m")
    assert {line[begin : begin + 6] for line in lines} == {"Conv2D"}


def test_complex_numbers_are_pairs_in_json(tmp_path):
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    np.save(place / "Op.Default_Op-op0.0.0.1.output.0.DefaultFormat.npy", np.array([1 + 2j, complex(0, np.nan)]))
    (facts,) = (json.loads(line) for line in dumpsim("show", tmp_path, "--json").stdout.splitlines())
    assert facts["values"] == [[1.0, 2.0], [0.0, "nan"]]


def test_fault_plans_are_checked(tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"faults": [{"kind": "disk_full"}, {"kind": "overflow", "op": "Add", "nth": 0}]}))
    result = dumpsim("check", "--schema", "faults", plan, "--json")
    assert result.returncode == 1
    found = [json.loads(line)["where"].partition(": ")[2] for line in result.stdout.splitlines()]
    assert found == ["$.faults[0].after_bytes", "$.faults[1].nth"]
    plan.write_text(json.dumps({"faults": [{"kind": "overflow", "op": "Add"}]}))
    assert dumpsim("check", "--schema", "faults", plan).returncode == 0
    assert dumpsim("check", "--schema", "faults", tmp_path / "none.json").returncode == 3
