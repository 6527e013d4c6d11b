"""Running one kernel: out-of-range indexes by target, kernels without values, wrong results."""

from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.errors import DeviceError, ScriptRuntimeError, UnknownValueError
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find
from dumpsim.runtime.compute import compute, skip, stopping_index

X = np.arange(12, dtype=np.float32).reshape(4, 3)
READS = (X, np.array([1, 4], np.int32), 0, 0)
WRITES = (X, np.array([1, 4], np.int32), np.ones((2, 3), np.float32))


def at(target):
    return SimpleNamespace(chip=SimpleNamespace(target=target))


@pytest.mark.parametrize(("op", "operands"), [("Gather", READS), ("ScatterUpdate", WRITES)])
def test_an_ai_core_gets_the_index_and_the_cpu_refuses_it(op, operands):
    definition = find(op)
    found = stopping_index(at("Ascend"), definition, operands, definition.attrs, full_name="Default/X-op0")
    assert found is not None
    assert (found.value, found.place) == (4, (1,))
    with pytest.raises(ScriptRuntimeError, match=r"\[0, 4\)"):
        stopping_index(at("CPU"), definition, operands, definition.attrs, full_name="Default/X-op0")


def test_the_gpu_refuses_a_read_and_ignores_a_write():
    gather, scatter = find("Gather"), find("ScatterUpdate")
    with pytest.raises(ScriptRuntimeError):
        stopping_index(at("GPU"), gather, READS, gather.attrs, full_name="Default/X-op0")
    assert stopping_index(at("GPU"), scatter, WRITES, scatter.attrs, full_name="Default/X-op0") is None


@pytest.mark.parametrize("target", ["CPU", "GPU", "Ascend"])
def test_a_legal_index_stops_nothing(target):
    gather = find("Gather")
    legal = (X, np.array([0, 3], np.int32), 0, 0)
    assert stopping_index(at(target), gather, legal, gather.attrs, full_name="Default/X-op0") is None


def test_a_kernel_with_the_wrong_number_of_results_is_named():
    definition = OpDef(name="Two", operands=("x",), infer=lambda a, k: a[0], kernel=lambda x: x)
    engine = SimpleNamespace(name="one", compute=lambda *a: SimpleNamespace(results=[X]))
    with pytest.raises(DeviceError, match="Two gave 1 results for 2 outputs"):
        compute(engine, at("CPU"), definition, [X], {}, full_name="Default/Two-op0", counter=0, outputs=2)


def test_outputs_that_a_target_leaves_are_zero():
    definition = OpDef(name="Two", operands=("x",), infer=lambda a, k: a[0], kernel=lambda x: x)
    engine = SimpleNamespace(name="two", compute=lambda *a: SimpleNamespace(results=[X, X + 1]))
    got = compute(
        engine, at("CPU"), definition, [X], {}, full_name="Default/Two-op0", counter=0, outputs=2, unwritten=[1]
    )
    assert np.array_equal(got.results[0], X)
    assert not got.results[1].any()


def test_a_kernel_whose_shape_needs_values_cannot_be_skipped():
    engine = SimpleNamespace(name="null")
    skip(engine, find("Gather"), full_name="Default/Gather-op0", open_shape=False)
    with pytest.raises(UnknownValueError, match="the shape of the result of NonZero"):
        skip(engine, find("NonZero"), full_name="Default/NonZero-op0", open_shape=True)


@pytest.mark.parametrize(
    ("op", "fault", "text"),
    [
        ("TensorDump", None, "the data that TensorDump sends to the host"),
        ("Print", None, "the data that Print sends to the host"),
        ("ScalarSummary", None, None),
        ("NPUGetFloatStatus", None, None),
        ("NPUGetFloatStatusV2", "stomp", None),
        ("Mul", "stomp", None),
        ("Mul", "overflow", "the result that an overflow fault changes"),
    ],
)
def test_what_needs_values_is_refused_by_an_engine_without_them(op, fault, text):
    engine, faults = SimpleNamespace(name="null"), [SimpleNamespace(kind=fault)] if fault else []
    if text is None:
        skip(engine, find(op), full_name="Default/X-op0", open_shape=False, faults=faults)
        return
    with pytest.raises(UnknownValueError) as caught:
        skip(engine, find(op), full_name="Default/X-op0", open_shape=False, faults=faults)
    text = f"Default/X-op0: {text} is not known: the null engine computes no values [DS-ENG-001]"
    assert str(caught.value) == text
