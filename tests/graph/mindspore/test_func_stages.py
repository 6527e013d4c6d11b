"""Func graphs of whole compilations against those of real MindSpore's front end: structure, tokens, numbers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from corpus import pack
from funcgraphs import outline, read_stage

import dumpsim

NETS = ["h_if", "h_while", "r1_186_while"]  # the last one has an unused read
# of others operands are not printed
MORE = [
    "r1_049_return",
    "r1_065_if",
    "r1_094_nets",
    "r1_145_if",
    "h_paramloop",
    "r1_007_for",
    "r1_027_for",
    "r1_107_for",
    "r1_189_return",
    "r1_006_while",  # closures in the vendor's order
    "r1_046_while",  # the code after a loop repeats a computation from before it
    "r1_148_mixed",  # an unused variable that a loop passes on
]


def made(net, folder):
    """The func graphs that the net's script makes here, by compile."""
    (folder / "net.py").write_text(pack.load(net)["script"])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DUMPSIM", "MINDSPORE"))}
    environment |= {"MS_DEV_SAVE_GRAPHS": "1", "MS_DEV_SAVE_GRAPHS_PATH": str(folder)}
    environment["PYTHONPATH"] = str(Path(dumpsim.__file__).parents[1])
    command = [sys.executable, "-m", "dumpsim", "run", "--mindspore", "2.10", "--device", "cpu", "--manifest", "none"]
    subprocess.run([*command, "net.py"], env=environment, cwd=folder, capture_output=True, check=True)
    return [unwrapped(*read_stage(path.read_text())) for path in sorted(folder.glob("21_validate_*.ir"))]


def unwrapped(root, functions):
    """The root without the tuples that our text puts around results."""
    for function in functions.values():
        function.output = function.output.operands[0]
    return root


@pytest.mark.parametrize("net", [*NETS, *(pytest.param(net, marks=pytest.mark.slow) for net in MORE)])
def test_func_graphs_are_those_of_the_vendor(net, tmp_path):
    wanted = [read_stage(compiled["backend_pass"])[0] for compiled in pack.load_stages(net)]
    assert [outline(root) for root in made(net, tmp_path)] == [outline(root) for root in wanted]
