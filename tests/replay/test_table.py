"""The whole operator table: what real MindSpore 2.10 computed on a CPU lies within the bounds, and what it did not."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ops.cases import CASES, Case, arrays
from ops.evaluator import Builder, Value, content_of, operands_of

from dumpsim.ops.table import find
from dumpsim.replay.call import refusal
from dumpsim.replay.kernel import Computed, compute
from dumpsim.replay.measure import measure
from dumpsim.replay.slope import MACHINES, Machine

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ops"
SINGLE = 2.0**-24
# WeightQuantBatchMatmul takes halves, which the cases do not draw
CASES_HERE = [c for c in CASES if arrays(c) and not refusal(c.op) and c.op != "WeightQuantBatchMatmul"]
RECORDED = [case for case in CASES_HERE if case.real is not None]
# in inference the CPU kernel writes nothing but its first output, as it does with outputs 1 and 2 in training
UNWRITTEN = {"BatchNorm": (1, 2, 3, 4)}


@cache
def recorded() -> dict[str, np.ndarray[Any, Any]]:
    with np.load(FIXTURES / "values.npz") as stored:
        return dict(stored)


def outputs_of(case: Case) -> list[np.ndarray[Any, Any]]:
    prefix = f"{case.id}/out"
    names = sorted((name for name in recorded() if name.startswith(prefix)), key=lambda name: int(name[len(prefix) :]))
    return [recorded()[name] for name in names]


def recomputed(case: Case, machine: str, outputs: list[np.ndarray[Any, Any]]) -> list[Any]:
    operands = tuple(content_of(one) for one in operands_of(case, arrays(case)))
    real = bool(outputs) and outputs[0].dtype.kind == "f"
    return compute(
        find(case.op),
        operands,
        {**find(case.op).attrs, **case.attrs},
        machine=Machine(unit=SINGLE, slopes=MACHINES[machine]),
        real=real,
    )


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.id)
def test_real_results_are_explained(case):
    outputs = outputs_of(case)
    for slot, (dumped, computed) in enumerate(zip(outputs, recomputed(case, "cpu", outputs), strict=False)):
        if slot in UNWRITTEN.get(case.op, ()):
            continue
        found = measure(dumped, computed, dumped.dtype.name, SINGLE)
        assert found.excess <= 1, found


@pytest.mark.parametrize("case", CASES_HERE, ids=lambda case: case.id)
def test_results_of_the_emulation_are_explained(case):
    """The kernels in float32 lie within the bounds of good functions, and one wrong element does not."""
    inputs = arrays(case)
    value: Value = Builder().emit(case.op, *operands_of(case, inputs), **case.attrs)
    content = value.content if isinstance(value.content, tuple) else (value.content,)
    outputs = [np.asarray(one) for one in content]
    for dumped, computed in zip(outputs, recomputed(case, "device", outputs), strict=True):
        assert measure(dumped, computed, dumped.dtype.name, SINGLE).excess <= 1
        finite = np.flatnonzero(np.isfinite(dumped.reshape(-1)) & (np.abs(dumped.reshape(-1)) > 1e-3))
        if dumped.dtype.kind == "f" and finite.size:
            wrong = dumped.copy()
            wrong.reshape(-1)[finite[0]] *= 1.01
            found = measure(wrong, computed, dumped.dtype.name, SINGLE)
            assert found.excess > 1
            assert found.index == finite[0]


def test_the_worst_element_of_a_large_output_is_found_beyond_the_first_piece():
    """Elements are compared piece by piece; numbers out of the range of a piece do not change another."""
    value = np.linspace(1, 2, 100_000)
    dumped = value.astype(np.float32)
    dumped[70_001] *= np.float32(1 + 1e-5)
    for changes in ({}, {3: np.inf}, {99_999: np.nan}):
        expected, own = value.copy(), dumped.copy()
        for at, special in changes.items():
            expected[at] = own[at] = special
        found = measure(own, Computed(expected, 0.0), "float32", SINGLE)
        assert (found.index, found.outside) == (70_001, 1)
        own[50_000] = np.nan
        found = measure(own, Computed(expected, 0.0), "float32", SINGLE)
        assert (found.index, found.error, found.outside) == (50_000, np.inf, 2)
