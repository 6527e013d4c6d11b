"""Numbers of nodes in the IR text of small networks, as MindSpore 2.10 gave them on a CPU."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from dumpsim.core.settings import RunSettings
from dumpsim.emulate import environment

RECORD = json.loads(
    (Path(__file__).resolve().parents[2] / "fixtures" / "mindspore_2_10" / "cnode_numbers.json").read_text()
)
DUMP = {
    "op_debug_mode": 0,
    "dump_mode": 1,
    "net_name": "N",
    "iteration": "0",
    "saved_data": "tensor",
    "input_output": 0,
    "kernels": ["none of them"],
    "support_device": [0],
}
# what an if or while on a tensor takes behind its last kernel graph is not modelled, and no earlier graph shows it
OPEN = {"net_after_control_flow": 2}
# the vendor names the parameter of an inner branch by the variable: it takes no number there
UNNAMED = {"elif_on_tensor": 2}


def gaps(graphs: list[list[int]]) -> list[int]:
    """From the Return of each graph to the first number of the next; the first number of the first graph."""
    return [graphs[0][0], *(after[0] - before[1] for before, after in pairwise(graphs))]


def numbers(directory: Path) -> list[list[int]]:
    """First number and number of the Return of each kernel graph."""
    found = {}
    for path in directory.glob("ms_output_trace_code_graph_*.ir"):
        text = path.read_text("utf-8")
        end = re.search(r"CNode_(\d+)\{\[0\]: ValueNode<Primitive> Return", text)
        assert end is not None
        used = [int(number) for number in re.findall(r"(?:CNode|Parameter)_(\d+)\)", text)]
        found[int(path.stem.rpartition("_")[2])] = [min([*used, int(end[1])]), int(end[1])]
    return [found[graph] for graph in sorted(found)]


# each case is a process of its own, which begins with the modules that one process has imported for all of them
DRIVER = """
import os, runpy, sys
from importlib import import_module
from pkgutil import iter_modules
import mindspore.nn, mindspore.ops
for room in ("device", "graph", "graph.mindspore", "ops", "runtime", "dump", "frontends.mindspore._capture"):
    for module in iter_modules(import_module("dumpsim." + room).__path__, "dumpsim." + room + "."):
        import_module(module.name)
for line in sys.stdin:
    folder = line.strip()
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.environ["MINDSPORE_DUMP_CONFIG"] = folder + "/dump.json"
        runpy.run_path("script.py", run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run the script of a folder; returns its exit code and what it says on stderr."""
    settings = RunSettings(mindspore="2.10", device="cpu", manifest=None, quiet=True)
    errors = tmp_path_factory.mktemp("driver") / "errors"
    with (
        open(errors, "w") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", DRIVER], env=environment(settings, {"PATH": os.environ["PATH"]}),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
        ) as driver,
    ):  # fmt: skip

        def ask(folder):
            print(folder, file=driver.stdin, flush=True)
            return driver.stdout.readline().strip(), errors.read_text()[-2000:]

        yield ask
        driver.stdin.close()


@pytest.mark.parametrize("case", RECORD["cases"], ids=lambda case: case["name"])
def test_what_is_compiled_before_a_graph_takes_numbers(run, case, tmp_path_factory):
    root = tmp_path_factory.mktemp("numbers")
    (root / "script.py").write_text(RECORD["preamble"] + case["script"])
    (root / "dump.json").write_text(
        json.dumps(
            {
                "common_dump_settings": {**DUMP, "path": str(root / "out")},
                "e2e_dump_settings": {"enable": True, "trans_flag": True},
            }
        )
    )
    code, errors = run(root)
    assert code == "0", errors
    modelled = min(OPEN.get(case["name"], 99), UNNAMED.get(case["name"], 99))
    found = numbers(root / "out" / "rank_0" / "graphs")
    assert len(found) == len(case["graphs"])
    assert gaps(found)[:modelled] == gaps(case["graphs"])[:modelled]
