"""Random numbers with a seed, compared with those of real MindSpore 2.10 on the CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[3] / "fixtures/frontends/mindspore/random"
RECORDED = json.loads((HERE / "recorded.json").read_text())


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The numbers that the recording script draws on the emulation."""
    folder = tmp_path_factory.mktemp("random")
    command = [sys.executable, "-m", "dumpsim", "run", "--mindspore", "2.10", "--device", "cpu", "-q", "--manifest",
               "none", str(HERE / "record.py"), str(folder / "drawn.json")]  # fmt: skip
    subprocess.run(command, check=True, cwd=folder)
    return json.loads((folder / "drawn.json").read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_numbers_are_the_recorded_ones(name, drawn):
    assert drawn[name] == RECORDED[name]
