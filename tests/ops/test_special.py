"""What the CPU's operators make of NaN, infinities and zeros, against MindSpore 2.10 (special.json.xz)."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.ops import special

RECORDED = Path(__file__).parents[2] / "fixtures/mindspore_2_10/special.json.xz"

# operators whose recorded values come from an approximation of the exponential function, or from an order of
# computation, that the kernels do not follow
APPROXIMATE = {
    "CumProd far apart float16",
    "Elu numbers float32",
    "Exp numbers float32",
    "LogSigmoid numbers float16",
    "LogSigmoid numbers float32",
    "SoftmaxCrossEntropyWithLogits far apart float32",
    "TruncateDiv pairs int64",
    "UnsortedSegmentMax all -infinity float16",
    "UnsortedSegmentMax all nan float16",
    "UnsortedSegmentMin all nan float16",
}
RTOL = {2: 4e-3, 4: 2e-5, 8: 1e-5}


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    path = tmp_path_factory.mktemp("special") / "ours.json.xz"
    command = [sys.executable, "-m", "dumpsim", "run", "--quiet", "--manifest", "none", "--mindspore", "2.10"]
    subprocess.run([*command, "--device", "cpu", special.__file__, path], check=True, cwd=path.parent)
    return special.read(path)


def sort_of(numbers):
    """0 for zeros, 1 for finite numbers, 2 for infinities with their sign, 3 for NaN."""
    return np.select([np.isnan(numbers), np.isinf(numbers), numbers == 0], [3, 2 * np.sign(numbers), 0], 1)


def agree(one, other):
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return bool((one == other).all())
    with np.errstate(all="ignore"):
        if (sort_of(one) != sort_of(other)).any():
            return False
    finite = np.isfinite(one)
    small = 1e-5 if one.dtype.itemsize == 2 else 1e-37
    return np.allclose(one[finite], other[finite], rtol=RTOL[one.dtype.itemsize], atol=small)


def test_numbers_are_those_of_mindspore(ours):
    recorded = special.read(RECORDED)
    assert len(recorded) > 2000
    assert not set(recorded) - set(ours)
    wrong = {name for name in recorded if not all(map(agree, recorded[name], ours[name])) and "LogSoftmax" not in name}
    assert wrong == APPROXIMATE


def test_log_softmax_along_the_last_axis(ours):
    recorded = special.read(RECORDED)
    names = [name for name in recorded if name.startswith("LogSoftmax") and "axis 0" not in name]
    assert len(names) >= 35
    assert [name for name in names if not all(map(agree, recorded[name], ours[name]))] == []


def test_accelerators_follow_ieee():
    from dumpsim.ops.cpu import on_target
    from dumpsim.ops.table import find

    x = np.array([np.nan, 1], np.float32)
    for name in ("ReLU", "Maximum", "ReduceMax", "Softmax"):
        assert on_target(find(name), "Ascend", [x]) is find(name)
        assert on_target(find(name), "GPU", [x]) is find(name)
        assert on_target(find(name), "CPU", [x]) is not find(name)


def test_no_chance_makes_an_infinite_loss():
    from dumpsim.ops.cpu import on_target
    from dumpsim.ops.table import find

    loss = find("SparseSoftmaxCrossEntropyWithLogits")
    logits, label = np.array([[0, 87]], np.float32), np.array([0], np.int32)
    assert loss.kernel(logits, label) == 87
    assert on_target(loss, "CPU", [logits]).kernel(logits, label) == np.inf  # [observed 2.10]
    assert on_target(loss, "CPU", [logits]).kernel(logits - [[0, 1]], label) == 86
