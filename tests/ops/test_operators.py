"""Every operator in one form: values, gradients and gradient graphs against MindSpore 2.10, and finite differences."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from ops.cases import CASES, Case, arrays
from ops.evaluator import Builder, Value, operands_of, values_in

from dumpsim.core.abstract import TensorType
from dumpsim.ops.table import find, names

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ops"
RECORDED = [case for case in CASES if case.real is not None and arrays(case)]
SLOPES_RECORDED = [case for case in RECORDED if case.grad in ("both", "vendor")]
FINITE = [case for case in CASES if case.grad in ("both", "finite", "attention") and not find(case.op).stop]
SAME_OPERATORS = [case for case in SLOPES_RECORDED if not case.slopes and not find(case.op).stop]
# nodes that the recorder leaves out of its lists, and the forward operator itself
STRUCTURE = {"MakeTuple", "Depend", "TupleGetItem"}


@cache
def recorded() -> dict[str, np.ndarray[Any, Any]]:
    with np.load(FIXTURES / "values.npz") as stored:
        return dict(stored)


@cache
def graphs() -> dict[str, dict[str, list[str]]]:
    return dict(json.loads((FIXTURES / "graphs.json").read_text()))


def _is_float(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind == "f"


def ids(case: Case) -> str:
    return case.id


def flat(value: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(v) for v in value] if isinstance(value, tuple) else [np.asarray(value)]


def weights_of(case: Case, outputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any] | None]:
    """As in the recorder."""
    rng = np.random.RandomState(crc32(case.id.encode()) ^ 1)
    return [np.asarray(rng.randn(*o.shape), np.float32) if o.dtype.kind == "f" else None for o in outputs]


def close(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], tolerance: float) -> None:
    assert ours.shape == theirs.shape
    if theirs.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs)
        return
    size = float(np.max(np.abs(theirs), initial=0.0, where=np.isfinite(theirs)))
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * max(size, 1e-6))


def run(case: Case, inputs: Sequence[np.ndarray[Any, Any]], builder: Builder) -> tuple[list[Any], Value]:
    operands = operands_of(case, inputs)
    return operands, builder.emit(case.op, *operands, **case.attrs)


def slopes(case: Case, inputs: Sequence[np.ndarray[Any, Any]], builder: Builder) -> list[Any]:
    """Gradients of the weighted sum of the outputs, one entry per tensor operand, from the operator's rule."""
    operands, out = run(case, inputs, builder)
    weights = [
        None if weight is None else Value(tensor, weight.astype(array.dtype))
        for weight, tensor, array in zip(
            weights_of(case, flat(out.content)),
            getattr(out.abstract, "items", (out.abstract,)),
            flat(out.content),
            strict=True,
        )
    ]
    dout = tuple(weights) if isinstance(out.content, tuple) else weights[0]
    gradients = builder.gradients(case, operands, out, dout)
    assert len(gradients) == len(operands)
    found: list[Any] = []
    for operand, gradient in zip(operands, gradients, strict=True):
        if isinstance(operand, tuple) and values_in(operand):
            found.extend(gradient if gradient is not None else [None] * len(operand))
        elif isinstance(operand, Value):
            found.append(gradient)
    return found


def array_of(gradient: Any) -> np.ndarray[Any, Any] | None:
    return np.asarray(gradient.content if isinstance(gradient, Value) else gradient) if gradient is not None else None


@pytest.mark.parametrize("case", RECORDED, ids=ids)
def test_values_are_those_of_mindspore(case: Case) -> None:
    _, out = run(case, arrays(case), Builder())
    for index, ours in enumerate(flat(out.content)):
        if index in case.undefined:
            continue
        theirs = recorded()[f"{case.id}/out{index}"]
        if theirs.dtype == np.float16:
            ours = ours.astype(np.float16)
        assert ours.dtype == theirs.dtype
        close(ours, theirs, case.tolerance)


@pytest.mark.parametrize("case", SLOPES_RECORDED, ids=ids)
def test_gradients_are_those_of_mindspore(case: Case) -> None:
    inputs = arrays(case)
    if find(case.op).stop:
        gradients: list[Any] = [None] * len(inputs)
    else:
        gradients = slopes(case, inputs, Builder())
    for index, (array, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        if array.dtype.kind == "f":
            ours = array_of(gradient)
            theirs = recorded()[f"{case.id}/grad{index}"]
            close(np.zeros_like(theirs) if ours is None else ours, theirs, 5 * case.tolerance)


@pytest.mark.parametrize("case", FINITE, ids=ids)
def test_gradients_are_those_of_finite_differences(case: Case) -> None:
    inputs = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays(case)]
    gradients = slopes(case, inputs, Builder())
    weights = weights_of(case, flat(run(case, inputs, Builder())[1].content))
    if case.grad == "attention":
        weights[:3] = [None, None, None]

    def total() -> float:
        outputs = flat(run(case, inputs, Builder())[1].content)
        counted = zip(outputs[:1], weights[:1], strict=True) if case.first else zip(outputs, weights, strict=True)
        return float(sum((o * w).sum() for o, w in counted if w is not None))

    for array, gradient in zip(inputs, gradients, strict=True):
        if array.dtype.kind != "f" or gradient is None:
            continue
        ours = array_of(gradient)
        assert ours is not None
        assert ours.shape == array.shape
        for place in np.ndindex(*array.shape) if array.size <= 40 else _some(array.shape):
            kept, step = array[place], 1e-6
            array[place] = kept + step
            above = total()
            array[place] = kept - step
            below = total()
            array[place] = kept
            assert ours[place] == pytest.approx((above - below) / (2 * step), rel=2e-4, abs=2e-5)


@pytest.mark.parametrize("case", [case for case in FINITE if sum(map(_is_float, arrays(case))) > 1], ids=ids)
def test_a_constant_operand_leaves_the_gradients_of_the_others(case: Case) -> None:
    """It may have none itself, since nobody asks for it."""
    operands = operands_of(case, [a.astype(np.float64) if _is_float(a) else a for a in arrays(case)])
    out = Builder().emit(case.op, *operands, **case.attrs)
    weights = tuple(
        Value(tensor, np.cos(np.arange(array.size, dtype=array.dtype)).reshape(array.shape))
        for array, tensor in zip(flat(out.content), getattr(out.abstract, "items", (out.abstract,)), strict=True)
    )
    dout = weights if isinstance(out.content, tuple) else weights[0]
    whole = Builder().gradients(case, operands, out, dout)
    for at, operand in enumerate(operands):
        if isinstance(operand, Value) and isinstance(operand.abstract, TensorType):
            constant = Value(replace(operand.abstract, constant=True), operand.content)
            found = Builder().gradients(case, [*operands[:at], constant, *operands[at + 1 :]], out, dout)
            for place, (ours, theirs) in enumerate(zip(found, whole, strict=True)):
                if place != at or ours is not None:
                    assert (ours is None) is (theirs is None)
                    if not isinstance(ours, tuple | None):
                        np.testing.assert_array_equal(array_of(ours), array_of(theirs))


def _some(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    rng = np.random.RandomState(0)
    return [tuple(int(rng.randint(n)) for n in shape) for _ in range(25)]


@pytest.mark.parametrize("case", SAME_OPERATORS, ids=ids)
def test_gradients_are_made_of_the_operators_that_mindspore_keeps(case: Case) -> None:
    builder = Builder(expanding=True)
    kept: list[Value] = []
    waiting = [v for g in slopes(case, arrays(case), builder) if isinstance(g, Value) for v in (g,)]
    while waiting:
        node = waiting.pop()
        if node.op and not any(node is other for other in kept):
            kept.append(node)
            waiting.extend(node.inputs)
    ours = Counter(node.op for node in kept if node.op not in STRUCTURE)
    assert ours == Counter(graphs()[case.id]["backward"])


@pytest.mark.parametrize("case", [c for c in CASES if find(c.op).composite], ids=ids)
def test_expansions_compute_the_same_with_the_operators_of_mindspore(case: Case) -> None:
    whole = run(case, arrays(case), Builder())[1]
    builder = Builder(expanding=True)
    replaced = run(case, arrays(case), builder)[1]
    parts = [v.content for v in replaced.inputs] if replaced.op == "MakeTuple" else flat(replaced.content)
    for ours, theirs in zip(parts, flat(whole.content), strict=True):
        close(ours, theirs, 2e-6)
    if case in RECORDED and case.op not in ("SplitWithSize", "PowTensorScalar", "ConstantPadND"):
        recorded_names = [name for name in graphs()[case.id]["forward"] if name != "RealMakeTuple"]
        assert Counter(n.op for n in builder.made) == Counter(recorded_names)


@pytest.mark.parametrize("case", [c for c in RECORDED if c.op not in ("ZerosLike", "OnesLike")], ids=ids)
def test_the_compiler_expands_what_is_not_in_its_graphs(case: Case) -> None:
    """Zeros and ones are constants of the graph, without a node."""
    assert find(case.op).composite is (case.op not in graphs()[case.id]["forward"])


def test_index_is_equal_to_the_tables() -> None:
    from importlib import import_module

    from dumpsim.ops.table import MODULES

    for module, listed in MODULES.items():
        table = [op.name for op in import_module(f"dumpsim.ops.{module}").OPS]
        assert sorted(table) == sorted(listed.split())
    every = [name for listed in MODULES.values() for name in listed.split()]
    assert len(every) == len(set(every))
    assert sorted(every) == list(names())


def test_index_loads_no_family() -> None:
    code = "import sys, dumpsim.ops.table as table; table.names(); assert 'numpy' not in sys.modules, 'numpy'"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=FIXTURES.parents[1])
