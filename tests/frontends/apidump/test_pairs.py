"""One net in torch and in MindSpore with the same weights, dumped anew on both sides and compared."""

import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.analysis.apicompare.compare import api_dump_compare

pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "fixtures" / "apidump"
X01 = FIXTURES / "x01_torch_vs_ms"
STEPS = {"cnn": 3, "transformer": 3, "recurrent": 3, "encoder": 3, "arguments": 3}
RENAMED = {
    "NN_Dense": "NN_Linear",
    "NN_Embedding": "Functional_embedding",
    "Tensor_swapaxes": "Tensor_transpose",
    "Functional_cat": "Torch_cat",
    "Functional_matmul": "Torch_matmul",
    "Functional_split": "Torch_split",
    "Functional_stack": "Torch_stack",
    "Functional_sum": "Torch_sum",
    "Functional_tanh": "Torch_tanh",
}
ALONE = {"transformer": ["Functional_embedding_{}_forward_input.1"]}  # torch's function is given the table


@cache
def torch_half():
    spec = importlib.util.spec_from_file_location("apidump_pytorch_half", FIXTURES / "pairs" / "pytorch_half.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_cells(script, *args):
    command = [sys.executable, "-m", "dumpsim", "run", "--manifest", "none", str(script), *map(str, args)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout.splitlines()[-1])


def rows(path):
    with path.open(newline="") as file:
        return [row for row in csv.reader(file) if row]


def arrays(path, framework):
    return {file.stem: np.load(file) for file in (path / "rank0" / f"{framework}_api_dump").iterdir()}


# -- the stored pair, made anew


@pytest.fixture(scope="module")
def x01(tmp_path_factory):
    folder = tmp_path_factory.mktemp("x01")
    [loss] = torch_half().run("x01", X01 / "w.npz", folder / "pt")
    shutil.copyfile(X01 / "x01_ms.txt", folder / "x01_ms.py")
    assert run_cells(folder / "x01_ms.py", X01 / "w.npz", folder / "ms") == pytest.approx(loss, abs=1e-4)
    return folder


@pytest.mark.parametrize("order", ["ms_pt", "pt_ms"])
def test_a_fresh_pair_is_matched_as_the_stored_one_is(x01, tmp_path, order, capsys):
    origin, target = order.split("_")
    api_dump_compare(x01 / origin, x01 / target, tmp_path)
    stored = X01 / f"cmp_{order}"
    assert sorted(os.listdir(tmp_path)) == sorted(os.listdir(stored))
    name = "ts_api_mapping_0.csv"
    assert (tmp_path / name).read_bytes() == (stored / name).read_bytes()
    for name in ("ts_api_forward_compare_0.csv", "ts_api_backward_compare_0.csv"):  # all but the last digits
        ours, theirs = rows(tmp_path / name), rows(stored / name)
        assert [row[:6] for row in ours] == [row[:6] for row in theirs]


@pytest.mark.parametrize(("side", "framework"), [("pt", "torch"), ("ms", "mindspore")])
def test_a_fresh_half_holds_what_the_stored_one_does(x01, side, framework):
    fresh, stored = arrays(x01 / side, framework), arrays(X01 / side, framework)
    assert sorted(fresh) == sorted(stored)
    for name, array in stored.items():
        assert fresh[name].dtype == array.dtype
        np.testing.assert_allclose(fresh[name], array, rtol=0, atol=1e-5, err_msg=name)


# -- other nets, three training steps


@pytest.fixture(scope="module", params=list(STEPS))
def pair(request, tmp_path_factory):
    """(name, folder with the two dumps)"""
    name = request.param
    folder = tmp_path_factory.mktemp(name)
    torch_half().make_weights(name, folder / "w.npz")
    losses = torch_half().run(name, folder / "w.npz", folder / "pt")
    script = FIXTURES / "pairs" / "mindspore_half.py"
    assert run_cells(script, name, folder / "w.npz", folder / "ms") == pytest.approx(losses, abs=1e-5)
    return name, folder


def partner(call):
    """torch's call of the same place: these nets call in the same order in both frameworks."""
    label, _, count = call.rpartition("_")
    return f"{RENAMED.get(label, label)}_{count}"


def test_every_call_of_every_step_has_its_partner(pair, tmp_path, capsys):
    name, folder = pair
    api_dump_compare(folder / "ms", folder / "pt", tmp_path)
    for step in range(STEPS[name]):
        _, *mapping = rows(tmp_path / f"ts_api_mapping_{step}.csv")
        calls = [(ours, theirs) for ours, theirs in mapping if not theirs.startswith("LAYER_")]
        assert len(calls) > 10
        assert [theirs for _, theirs in calls] == [partner(ours) for ours, _ in calls]


def test_values_and_gradients_are_equal_within_rounding(pair, tmp_path, capsys):
    name, folder = pair
    api_dump_compare(folder / "ms", folder / "pt", tmp_path, rtol=1e-4, atol=1e-6)
    for step in range(STEPS[name]):
        for direction in ("forward", "backward"):
            _, *table = rows(tmp_path / f"ts_api_{direction}_compare_{step}.csv")
            assert len(table) > 10
            alone = ALONE.get(name, []) if direction == "forward" else []
            assert [row[1] for row in table if row[4] != "True"] == [pattern.format(step) for pattern in alone]
