"""Mistakes in scripts: class and text of the errors, compared with those of MindSpore 2.10."""

import builtins
import json
from pathlib import Path

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
import dumpsim.frontends.mindspore.dataset as ds
from dumpsim.frontends.mindspore import Model, Tensor, nn, ops
from dumpsim.frontends.mindspore.common.initializer import initializer
from dumpsim.frontends.mindspore.communication import create_group, get_rank

RECORDED = Path(__file__).parents[3] / "fixtures" / "frontends" / "mindspore" / "script_errors" / "recorded.json"
CASES = json.loads(RECORDED.read_text("utf-8"))


def rows():
    ones = np.ones((2, 1), np.float32)
    return ds.NumpySlicesDataset((ones, ones), ["data", "label"], shuffle=False).batch(1)


NAMES = {
    "Model": Model, "Tensor": Tensor, "create_group": create_group, "ds": ds, "get_rank": get_rank,
    "initializer": initializer, "ms": ms, "nn": nn, "np": np, "rows": rows,
}  # fmt: skip


@pytest.fixture(autouse=True)
def cpu():
    """The device on which the errors were recorded."""
    ms.set_context(device_target="CPU")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["call"])
def test_errors_are_those_of_mindspore(case):
    if not case["error"]:
        eval(case["call"], dict(NAMES))
        return
    with pytest.raises(getattr(builtins, case["error"])) as caught:
        eval(case["call"], dict(NAMES))
    assert case["text"].strip('" ') in str(caught.value).replace(f"{ms.__name__}.", "mindspore.")


def test_most_calls_are_mistakes():
    assert sum(bool(case["error"]) for case in CASES) > 240


@pytest.mark.parametrize(
    ("operator", "kind", "right", "wrong", "text"),
    [
        (ops.MatMul, "uint16", (3, 2), (2, 3), "For 'MatMul' the input dimensions must be equal"),
        (ops.MatMul, "bfloat16", (3, 2), (4, 2), "For 'MatMul' the input dimensions must be equal"),
        (ops.Maximum, "bfloat16", (2, 3), (4, 5), "For 'Maximum', input1.shape and input2.shape need to broadcast"),
    ],
)
def test_a_missing_kernel_is_told_of_after_wrong_shapes(operator, kind, right, wrong, text):
    """[observed 2.10, on a CPU]"""
    given, right, wrong = (Tensor(np.ones(shape), getattr(ms, kind)) for shape in ((2, 3), right, wrong))
    with pytest.raises(ValueError, match=text):
        operator()(given, wrong)
    with pytest.raises(TypeError, match=rf"Select CPU operator\[{operator.__name__}\] fail"):
        operator()(given, right)
