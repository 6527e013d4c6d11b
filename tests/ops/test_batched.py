"""Operators that may compute several ranks at once give each of them the bits that it would have alone."""

from typing import Any

import numpy as np
import pytest

from dumpsim.core.dtype import dtype
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import MODULES, find, names
from dumpsim.runtime.engine.numpy import NumpyEngine
from dumpsim.runtime.stack import Stack, compute_stack

BATCHED = [name for name in names() if find(name).batched]
SLOPES = {name for name in BATCHED if name.lower().endswith("grad")}
INTEGERS = {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert"}
KINDS = ("float32", "float16", "int32")
RANKS = 5
PAIRS = [((7, 9), (7, 9)), ((3, 7, 9), (9,)), ((9,), (3, 7, 1)), ((33,), ()), ((64, 67), (64, 67))]  # odd, for tails
PRODUCTS = [
    ((3, 4), (4, 5), False, False),
    ((1, 7), (7, 1), False, False),
    ((33, 65), (65, 17), False, False),
    ((65, 33), (17, 65), True, True),
    ((64, 128), (64, 128), False, True),
    ((96, 40), (96, 56), True, False),
    ((2, 3, 17, 19), (2, 3, 19, 23), False, False),
]


def drawn(name: str) -> list[tuple[Any, ...]]:
    """Operands of an operator: shapes for tensors, which ranks have their own values of, and host values."""
    if name in ("MatMul", "BatchMatMul"):
        return [product for product in PRODUCTS if name == "BatchMatMul" or len(product[0]) == 2]
    if name == "Cast":
        return [((7, 9), dtype(kind)) for kind in ("float32", "float16", "int32", "bool", "bfloat16")]
    if name == "AddN":
        return [(((7, 9), (7, 9), (7, 9)),), (((64, 67),),)]
    if name == "Select":
        return [((7, 9), (7, 9), (7, 9)), ((9,), (7, 1), (7, 9))]
    definition = find(name)
    tensors = len(definition.operands) - len(definition.defaults)
    if tensors == 1:
        return [((7, 9), *definition.defaults), ((4111,), *definition.defaults), ((), *definition.defaults)]
    same = [((7, 9),) * tensors, ((64, 67),) * tensors]
    return PAIRS if tensors == 2 and name not in SLOPES else [(*shapes, *definition.defaults) for shapes in same]


def is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in value)


def tensor(shape: tuple[int, ...], kind: str, rng: np.random.RandomState) -> np.ndarray[Any, Any]:
    values = rng.randn(*shape) * 3
    if kind == "int32":
        return np.asarray(np.round(values * 4), np.int32)
    if kind == "bool":
        return np.asarray(values > 0)
    flat = np.asarray(values, kind).reshape(-1)
    flat[: flat.size // 8] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 60000.0], flat.size // 8)
    return flat.reshape(shape)


def operand(value: Any, kind: str, own: bool, rng: np.random.RandomState) -> Any:
    if is_shape(value):
        each = [tensor(value, kind, rng) for _ in range(RANKS if own else 1)]
        return Stack([np.stack(each[:3]), np.stack(each[3:])]) if own else each[0]
    if isinstance(value, tuple):
        return tuple(operand(item, kind, own, rng) for item in value)
    return value


def of_rank(value: Any, rank: int) -> Any:
    if isinstance(value, Stack):
        return value[rank]
    return tuple(of_rank(item, rank) for item in value) if isinstance(value, tuple) else value


def alone(definition: OpDef, operands: list[Any], rank: int) -> list[np.ndarray[Any, Any]]:
    mine = [of_rank(value, rank) for value in operands]
    return [np.asarray(each) for each in NumpyEngine().compute(definition, mine, dict(definition.attrs)).results]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BATCHED)
def test_the_bits_of_the_loop(name, kind):
    definition, rng = find(name), np.random.RandomState(11)
    kind = "bool" if name.startswith("Logical") else kind
    computed = 0
    for values in drawn(name):
        tensors = [at for at, value in enumerate(values) if is_shape(value) or isinstance(value, tuple)]
        for replicated in (None, *(tensors if len(tensors) > 1 else ())):
            operands = [
                operand(value, "bool" if name == "Select" and at == 0 else kind, at != replicated, rng)
                for at, value in enumerate(values)
            ]
            if name in INTEGERS and kind.startswith("float"):
                with pytest.raises(TypeError):
                    alone(definition, operands, 0)
                continue
            loop = [alone(definition, operands, rank) for rank in range(RANKS)]
            shapes = [each.shape for each in loop[0]]
            got = compute_stack(NumpyEngine(), definition, operands, dict(definition.attrs), shapes)
            computed += 1
            assert len(got.results) == len(shapes)
            for slot, result in enumerate(got.results):
                for rank in range(RANKS):
                    mine, expected = np.ascontiguousarray(result[rank]), np.ascontiguousarray(loop[rank][slot])
                    assert mine.dtype == expected.dtype
                    assert mine.shape == expected.shape
                    assert mine.tobytes() == expected.tobytes(), (values, replicated, rank)
    assert computed or (name in INTEGERS and kind.startswith("float"))


def test_most_of_a_network_is_batched():
    assert {"GeLUGrad", "MatMul", "BatchMatMul"} <= set(BATCHED)
    one_by_one = " ".join(MODULES[name] for name in ("arithmetic", "bits", "compare", "elementwise")).split()
    assert set(one_by_one) - {"AccumulateNV2", "MaskedFill"} <= set(BATCHED)
    for name in BATCHED:
        definition = find(name)
        assert not any((definition.updates, definition.random, definition.device, definition.bounds)), name
