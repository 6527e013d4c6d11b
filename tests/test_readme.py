"""The README's commands and its Python are run as they stand, with a small script for `train.py`."""

import json
import os
import re
import socket
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

from dumpsim.modes.support import markdown

README = Path(__file__).parents[1] / "README.md"

SCRIPT = """
import numpy as np
from mindspore import Tensor, context, nn

context.set_context(mode=context.GRAPH_MODE)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 3)
        self.relu = nn.ReLU()

    def construct(self, x):
        x = self.conv1(x)
        return self.relu(x)


net = Net()
for _ in range(3):
    net(Tensor(np.ones((1, 1, 4, 4), np.float32)))
"""

LINE = 175  # the line that the README asks for, here `x = self.conv1(x)`

PLAN = {"faults": [{"kind": "slow_disk", "megabytes_per_second": 1000}]}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def commands() -> list[str]:
    lines = (line for block in blocks("sh") for line in block.splitlines())
    return [line.partition("  #")[0].rstrip() for line in lines if line.startswith("dumpsim ")]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with all that the commands name; DUMP is a tree that a script has written."""
    root = tmp_path_factory.mktemp("readme")
    before = SCRIPT.partition("self.conv1(x)")[0].count("\n")
    (root / "train.py").write_text("\n" * (LINE - 1 - before) + SCRIPT)
    settings = {"dump_mode": 0, "path": str(root / "DUMP"), "net_name": "Net", "iteration": "all"}
    settings |= {"saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0]}
    config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True}}
    (root / "dump.json").write_text(json.dumps(config))
    (root / "acl.json").write_text(json.dumps({"dump": {"dump_path": str(root), "dump_list": [{}]}}))
    (root / "plan.json").write_text(json.dumps(PLAN))
    run("dumpsim run --quiet --config dump.json train.py", root)
    whole = {"common_dump_settings": settings | {"path": str(root / "O2DUMP")}}
    (root / "whole.json").write_text(json.dumps(whole))
    (root / "whole.py").write_text(SCRIPT.replace("GRAPH_MODE)", "GRAPH_MODE, jit_level='O2')"))
    run("dumpsim run --quiet --config whole.json whole.py", root)
    (root / "dump.json").write_text(json.dumps(config).replace("DUMP", "OTHER"))
    ranks = {"path": str(root / "RANKS"), "support_device": [0, 1, 2, 3]}
    (root / "ranks.json").write_text(json.dumps(config | {"common_dump_settings": settings | ranks}))
    return root


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(command: str, root: Path) -> subprocess.CompletedProcess[str]:
    command = re.sub(r"^dumpsim", f"{sys.executable} -m dumpsim", command)
    command = command.replace(" msrun ", f" msrun --master_port={free_port()} ")  # the default one may be taken
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MINDSPORE", "MS_", "DUMPSIM"))}
    env["PYTHONPATH"] = str(README.parent)
    result = subprocess.run(command, shell=True, cwd=root, env=env, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, f"{command}\n{result.stderr[-1000:]}"
    return result


def test_the_commands_work_as_written(place):
    found = commands()
    assert len(found) >= 12
    for command in found:
        run(command, place)
    assert json.loads((place / "dump.schema.json").read_text())["properties"]
    assert (place / "OTHER" / "rank_0").is_dir()
    assert sorted(path.name for path in (place / "RANKS").iterdir()) == [f"rank_{rank}" for rank in range(4)]
    assert (place / "logs" / "worker_1.log").is_file()


def test_a_line_of_the_script_finds_its_tensors(place):
    lines = run("dumpsim ls DUMP --source train.py:175 --json", place).stdout.splitlines()
    assert {json.loads(line)["op_type"] for line in lines} == {"Conv2D"}


@pytest.mark.report
def test_the_python_works_as_written(place, monkeypatch):
    monkeypatch.chdir(place)
    (code,) = (block for block in blocks("python") if "dumpsim.open" in block)
    weight = np.arange(64 * 3 * 49, dtype=np.float32).reshape(64, 3, 7, 7)
    import dumpsim

    names = {
        "array": weight,
        "arrays": [weight, weight],
        "weight": weight,
        "raw": dumpsim.to_device(weight, "FRACTAL_Z"),
    }
    exec(compile(code, str(README), "exec"), names)


def test_the_ranks_work_as_written(place):
    (code,) = (block for block in blocks("python") if "launch(" in block)
    (place / "ranks.py").write_text(code)
    output = run("dumpsim run --quiet ranks.py", place).stdout
    assert output == f"{[f'rank {rank} of 4, 10 steps' for rank in range(4)]}\n"


def test_the_setup_is_two_commands():
    text = README.read_text("utf-8")
    body = re.search(r"<!-- commands -->\n```sh\n(.*?)```\n<!-- end of commands -->", text, re.DOTALL)
    assert body is not None
    assert len(body.group(1).splitlines()) == 2


def test_the_support_table_is_that_of_the_profiles():
    text = README.read_text("utf-8")
    shown = text.partition("<!-- support -->\n")[2].partition("<!-- end of support -->")[0]
    assert shown.strip() == markdown().strip()


def test_the_pytest_example_works_as_written(tmp_path):
    (code,) = (block for block in blocks("python") if "pytest.mark.npu" in block)
    assert "mindspore" in code
    (tmp_path / "test_network.py").write_text(code)
    plugin = any(point.value == "dumpsim.testing.plugin" for point in entry_points(group="pytest11"))
    pytest_ = f"{sys.executable} -m pytest -W error" + ("" if plugin else " -p dumpsim.testing.plugin")
    run(f"{pytest_} --update-golden", tmp_path)
    assert (tmp_path / "golden" / "test_network" / "test_the_dump_of_my_network" / "dump" / "rank_0").is_dir()
    for options in ("", "-n 2"):
        assert "1 passed" in run(f"{pytest_} {options}", tmp_path).stdout


def _test_on_ranks(tmp_path):
    """Write the README's tests on ranks, and return how to start pytest and how the README does it with processes."""
    (code,) = (block for block in blocks("python") if "pytest.mark.ranks" in block)
    (tmp_path / "test_ranks.py").write_text(code)
    (line,) = (line for block in blocks("sh") for line in block.splitlines() if "--dumpsim-ranks" in line)
    plugin = any(point.value == "dumpsim.testing.plugin" for point in entry_points(group="pytest11"))
    return f"{sys.executable} -m pytest" + ("" if plugin else " -p dumpsim.testing.plugin"), line.partition("  #")[0]


def test_the_tests_on_ranks_work_as_written(tmp_path):
    pytest_, _ = _test_on_ranks(tmp_path)
    assert "2 passed" in run(f"{pytest_} -W error", tmp_path).stdout


@pytest.mark.slow
def test_workers_are_ranks_as_written(tmp_path):
    pytest_, line = _test_on_ranks(tmp_path)
    assert "5 passed" in run(line.replace("pytest", pytest_, 1), tmp_path).stdout  # test_part on every worker


@pytest.mark.torch
def test_the_api_dump_works_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = (block for block in blocks("python") if "api_dump_init" in block)
    exec(compile(code, str(README), "exec"), {"__name__": "readme"})
    assert len(list((tmp_path / "before" / "rank0" / "torch_api_dump").iterdir())) > 6
    assert any((tmp_path / "tables").iterdir())
