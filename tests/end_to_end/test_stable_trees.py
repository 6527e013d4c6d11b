"""Dump trees of drawn networks stay as they are, since golden files of users rest on them.

The truth is the tree of an earlier commit: it shows no error by itself, but that a change reaches the files. A change
that is meant is recorded by ``python tests/end_to_end/test_stable_trees.py`` and noted in the changelog. What operators
compute depends on the machine and is left out.
"""

import json
import os
import re
import runpy
import sys
import tempfile
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1])]

from corpus import generate  # noqa: E402
from inprocess import TARGETS, dump  # noqa: E402
from stabletrees import digests  # noqa: E402

RECORD = Path(__file__).parents[2] / "fixtures" / "dump" / "stable_trees.json"
SEED = 261128
MODES = tuple(TARGETS)
NETS = {f"{number:02}_{kind}": number for number, kind in enumerate(2 * list(generate.KINDS))}
EACH = {"saved_data": "full", "statistic_category": ["max", "min", "avg", "count", "negative zero count", "l2norm"]}
SAMPLE = {"sample_mode": 1, "sample_num": 5, "iteration": "0|1-2"}
# the settings that nets take in turns
SETTINGS = {
    "O0": ({}, EACH, {"save_kernel_args": True, "input_output": 2}, {**EACH, "stat_calc_mode": "device"}, SAMPLE,
           {"op_debug_mode": 3}, {"saved_data": "statistic"}),
    "O1": ({"iteration": "all"}, {"saved_data": "full"}, {"input_output": 1}),
    "O2": ({}, {**EACH, "file_format": "npy"}, {"iteration": "all", "file_format": "npy"}, {"op_debug_mode": 3}),
    "GPU": ({"iteration": "all"}, EACH, {"saved_data": "statistic", "input_output": 1}),
    "CPU": ({"iteration": "all"}, {"input_output": 2}, SAMPLE),
}  # fmt: skip


def script(number: int, mode: str) -> str:
    """The script of a net for a mode."""
    _, text = generate.generate(SEED, number)
    text = re.sub(r"^(import|from) mindspore", r"\1 dumpsim.frontends.mindspore", text, flags=re.MULTILINE)
    return text.replace('device_target="CPU"', f'device_target="{TARGETS[mode]}"')


def found_in(folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, mode: str) -> dict[str, str]:
    """A digest for each kind of file, and one of the error if the net cannot run."""
    file = folder / "net.py"
    file.write_text(script(number, mode))
    settings = SETTINGS[mode][number % len(SETTINGS[mode])]
    left = dump(folder, monkeypatch, mode, lambda: runpy.run_path(str(file)), **settings)
    found = digests(left.files(), folder)
    if left.error is not None:
        found["error"] = f"{type(left.error).__name__}: {left.error}"[:60]
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("net", NETS)
def test_a_tree_stays_as_it_is(tmp_path, monkeypatch, capsys, net, mode):
    found = found_in(tmp_path, monkeypatch, NETS[net], mode)
    assert found == json.loads(RECORD.read_text("utf-8"))[f"{net} {mode}"]


def record() -> None:
    """Write the digests of all nets in all modes."""
    found = {}
    for net, number in NETS.items():
        for mode in MODES:
            with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
                found[f"{net} {mode}"] = found_in(Path(os.path.realpath(folder)), patch, number, mode)
    RECORD.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    record()
