"""IR text of the reference nets, compared with that of MindSpore 2.10."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import recorded

import dumpsim

CASES = [
    "simple_3steps",
    "lenet_fwd",
    "dtypes",
    "longname",
    "iter_ABAB",
    "multi_output_constants",
    "control_flow",
]


def node_lines(text):
    """The text without source lines and pointers; numbers that nodes get when they are printed count from 0."""
    numbers = {}

    def renamed(match):
        return numbers.setdefault(match.group(0), f"{match.group(1)}_#{len(numbers)}")

    lines = [line for line in text.splitlines() if "# In file" not in line and "subgraph instance" not in line]
    text = re.sub(r"(?<![A-Za-z])(CNode|Parameter)_\d+", renamed, "\n".join(lines))
    return re.sub(r"(%para\d+__)\d+", r"\1#", text)


@pytest.fixture(scope="module", params=CASES)
def run(request, tmp_path_factory):
    """A case, and the graphs that its script compiled in this run, by graph id."""
    case = recorded.load(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DUMPSIM", "MINDSPORE"))}
    environment |= {"MS_DEV_SAVE_GRAPHS": "1", "MS_DEV_SAVE_GRAPHS_PATH": str(folder)}
    environment["PYTHONPATH"] = str(Path(dumpsim.__file__).parents[1])
    command = [sys.executable, "-m", "dumpsim", "run", "--mindspore", "2.10", "--device", "cpu", "--manifest", "none"]
    # no check of the exit code: the last net of `dtypes` fails when it is dumped, as intended
    subprocess.run([*command, str(case.script), *case.arguments], env=environment, cwd=folder, capture_output=True)
    saved = folder.glob("trace_code_graph_*.ir")
    return case, {int(re.findall(r"\d+", path.name)[0]): path.read_text() for path in saved}


def test_graphs_are_equal_line_by_line(run):
    case, texts = run
    for name, expected in case.graph_texts.items():
        number = int(re.findall(r"(\d+)\.ir", name)[0])
        assert node_lines(texts[number]) == node_lines(expected), name
