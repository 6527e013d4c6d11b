"""Number types that meet, the error function, random numbers, windows of the optimizers."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.core.abstract import ScalarType, TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import ScriptTypeError
from dumpsim.ops.promotion import common_type, operand_type
from dumpsim.ops.special import erf, erfc
from dumpsim.ops.table import find

# what MindSpore 2.10 gave for a + b
MEETINGS = [
    ("uint8", "int8", "int16"),
    ("float16", "bfloat16", "float32"),
    ("float16", "int64", "float16"),
    ("float32", "int32", "float32"),
    ("bool", "int32", "int32"),
    ("uint16", "uint16", "uint16"),
    ("uint8", "int16", "int16"),
    ("int8", "int16", "int16"),
    ("bfloat16", "float32", "float32"),
    ("bool", "uint8", "uint8"),
    ("bool", "uint16", "uint16"),
    ("int32", "int64", "int64"),
    ("complex64", "float32", "complex64"),
    ("complex64", "float64", "complex128"),
    ("complex64", "int64", "complex64"),
]
REFUSED = [("uint16", "int16"), ("uint16", "float32"), ("uint32", "int32")]
# tensor, number, result
NUMBERS: list[tuple[str, Any, str]] = [
    ("int32", 1.5, "float32"),
    ("bool", 2, "int64"),
    ("uint8", 2, "uint8"),
    ("int8", 2, "int8"),
    ("float16", 2.5, "float16"),
    ("float64", 2.5, "float64"),
    ("bool", 2.5, "float32"),
    ("int8", 2.5, "float32"),
    ("int8", True, "int8"),
]


@pytest.mark.parametrize(("first", "second", "result"), MEETINGS)
def test_two_tensors_meet(first: str, second: str, result: str) -> None:
    assert common_type(dtype(first), dtype(second)).name == result
    assert common_type(dtype(second), dtype(first)).name == result


@pytest.mark.parametrize(("first", "second"), REFUSED)
def test_types_that_never_meet(first: str, second: str) -> None:
    with pytest.raises(ScriptTypeError, match=r"Type implicit conversion between \w+ and UInt\d+ is not supported"):
        common_type(dtype(first), dtype(second))


@pytest.mark.parametrize(("kind", "number", "result"), NUMBERS)
def test_tensor_and_number(kind: str, number: Any, result: str) -> None:
    name = "bool" if isinstance(number, bool) else "int64" if isinstance(number, int) else "float32"
    operands = [TensorType(dtype=dtype(kind), shape=(1,)), ScalarType(dtype=dtype(name), value=number)]
    assert operand_type(operands).name == result


@given(st.floats(-30, 30))
def test_error_functions_are_those_of_the_c_library(x: float) -> None:
    assert float(erf(np.array(x))) == pytest.approx(math.erf(x), rel=1e-12, abs=1e-300)
    if x < 25:
        assert float(erfc(np.array(x))) == pytest.approx(math.erfc(x), rel=1e-12)


def test_random_numbers_follow_seed_and_counter() -> None:
    normal = find("StandardNormal").kernel
    first = normal((1000,), 1, 2, counter=0)
    assert np.array_equal(first, normal((1000,), 1, 2, counter=0))
    for other in (normal((1000,), 1, 2, counter=1), normal((1000,), 2, 2, counter=0), normal((1000,), 1, 3, counter=0)):
        assert not np.array_equal(first, other)
    assert abs(float(first.mean())) < 0.15
    assert float(first.std()) == pytest.approx(1, abs=0.1)


def test_dropout_scales_what_it_keeps() -> None:
    x = np.full((100, 100), 3.0, np.float32)
    y, mask = find("Dropout").kernel(x, 0.75, 5, 6, counter=3)
    assert set(np.unique(mask)) == {0.0, 1.0}
    assert float(mask.mean()) == pytest.approx(0.75, abs=0.03)
    np.testing.assert_array_equal(y, np.where(mask == 1, np.float32(4), np.float32(0)))
    slope = find("DropoutGrad").kernel(np.ones_like(x), mask, keep_prob=0.75)
    np.testing.assert_allclose(slope, mask / np.float32(0.75))


@pytest.mark.parametrize("name", ["ApplyMomentum", "SGD", "Adam", "AdamWeightDecay"])
def test_large_optimizer_steps_are_those_of_their_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dumpsim.ops import optimizer

    rng = np.random.RandomState(0)
    definition = find(name)
    numbers = {
        "learning_rate": 0.1,
        "momentum": 0.9,
        "lr": 0.01,
        "beta1": 0.9,
        "beta2": 0.99,
        "epsilon": 1e-8,
        "decay": 0.1,
    }
    numbers |= {"beta1_power": 0.9, "beta2_power": 0.99}
    operands = [
        np.float32(numbers[o]) if o in numbers else np.abs(rng.randn(7, 11)).astype(np.float32)
        for o in definition.operands
    ]
    whole = [np.array(o) for o in operands]
    definition.kernel(*whole)
    monkeypatch.setattr(optimizer, "_BLOCK", 10)
    parts = [np.array(o) for o in operands]
    definition.kernel(*parts)
    for ours, expected, before, index in zip(parts, whole, operands, range(len(parts)), strict=True):
        np.testing.assert_array_equal(ours, expected)
        assert (index in definition.updates) == (not np.array_equal(ours, before))


@pytest.mark.parametrize("op", ["HSigmoid", "HSwish", "ReLU6", "ReLU"])
def test_slopes_of_functions_in_pieces_are_those_of_differences_in_each_piece(op: str) -> None:
    """Far from the corners at 0, 3 and 6, on both sides."""
    x = np.linspace(-7.25, 7.25, 60)
    kernel = find(op).kernel
    expected = (kernel(x + 1e-6) - kernel(x - 1e-6)) / 2e-6
    name = "ReluGrad" if op == "ReLU" else f"{op}Grad"
    np.testing.assert_allclose(find(name).kernel(np.full_like(x, 2.0), x), 2 * expected, rtol=1e-6, atol=1e-6)
