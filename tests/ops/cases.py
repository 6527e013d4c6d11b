"""One line per operator case: what goes in, and how real MindSpore is called with the same.

Both sides read this: `fixtures/ops/record.py`, which runs real MindSpore 2.10, and the tests. Tensors are named a, b,
c, ... in the order
of the operands; `real` is the call with ``P = mindspore.ops.operations``, ``G = mindspore.ops.auto_generate`` and
``O = mindspore.ops.operations._grad_ops``, ``mint`` and ``ops``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

__all__ = ["CASES", "Case", "Draw", "Kind", "arrays"]


@dataclass(frozen=True, slots=True)
class Draw:
    """A tensor operand: how its elements are drawn."""

    how: str
    shape: tuple[int, ...]
    high: int = 0

    def array(self, rng: np.random.RandomState) -> np.ndarray[Any, Any]:
        if self.how == "normal":
            return np.asarray(rng.randn(*self.shape), np.float32)
        if self.how == "positive":
            return np.asarray(rng.rand(*self.shape) + 0.3, np.float32)
        if self.how == "unit":
            return np.asarray(rng.rand(*self.shape) * 0.8 + 0.1, np.float32)
        if self.how == "int":
            return np.asarray(rng.randint(0, self.high, self.shape), np.int32)
        if self.how == "signed":
            return np.asarray(rng.randint(1, self.high, self.shape) * rng.choice([-1, 1], self.shape), np.int32)
        if self.how == "bool":
            return np.asarray(rng.rand(*self.shape) > 0.5)
        if self.how == "above":
            return np.asarray(rng.rand(*self.shape) + 1.1, np.float32)
        if self.how == "ones":
            return np.ones(self.shape, np.float32)
        if self.how == "special":
            return np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5], np.float32)
        raise ValueError(self.how)


@dataclass(frozen=True, slots=True)
class Kind:
    """A number type as an operand."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A call of one operator.

    Attributes
    ----------
    id : the operator type, with ``.detail`` where it has several cases
    operands : `Draw`, `Kind`, tuples of `Draw` and Python constants
    real : the call of real MindSpore; None where it has no kernel for the CPU
    grad : ``both``: gradients are compared with MindSpore's and with finite differences; ``vendor``, ``finite``: with
    one of them; ``attention``: finite, of the output alone; ``none``
    tolerance : relative to the largest element
    first : the gradient rule takes the first output alone, as the vendor's does
    undefined : outputs that the vendor's kernel leaves as its memory was
    slopes : why the gradient has other operators than MindSpore's; "" where they must be equal
    """

    id: str
    operands: tuple[Any, ...]
    real: str | None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    grad: str = "both"
    tolerance: float = 2e-6
    first: bool = False
    undefined: tuple[int, ...] = ()
    slopes: str = ""

    @property
    def op(self) -> str:
        return self.id.split(".")[0]


def arrays(case: Case) -> list[np.ndarray[Any, Any]]:
    """The tensors of a case, in order; the same on every machine."""
    rng = np.random.RandomState(crc32(case.id.encode()))
    draws: list[Draw] = []
    for operand in case.operands:
        draws.extend(d for d in (operand if isinstance(operand, tuple) else (operand,)) if isinstance(d, Draw))
    return [draw.array(rng) for draw in draws]


def f(*shape: int) -> Draw:
    return Draw("normal", shape)


def p(*shape: int) -> Draw:
    return Draw("positive", shape)


def u(*shape: int) -> Draw:
    return Draw("unit", shape)


def i(high: int, *shape: int) -> Draw:
    return Draw("int", shape, high)


def n(high: int, *shape: int) -> Draw:
    return Draw("signed", shape, high)


def b(*shape: int) -> Draw:
    return Draw("bool", shape)


def ones(*shape: int) -> Draw:
    return Draw("ones", shape)


SPECIAL = Draw("special", (6,))


def case(id: str, *operands: Any, real: str | None = "", **more: Any) -> Case:
    if real == "":
        count = sum(isinstance(o, Draw) for o in operands)
        real = f"P.{id.split('.')[0]}()({', '.join('abcdef'[:count])})"
    return Case(id=id, operands=operands, real=real, **more)


_CONV: dict[str, Any] = {
    "out_channel": 4,
    "kernel_size": 3,
    "pad_mode": "valid",
    "pad": (0, 0, 0, 0),
    "stride": (1, 1, 1, 1),
    "dilation": (1, 1, 1, 1),
    "group": 1,
    "mode": 1,
    "format": "NCHW",
}
_POOL: dict[str, Any] = {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "pad_mode": "VALID", "format": "NCHW"}
_FOLDED = "the compiler folds constants that only PYNATIVE computes"

ARITHMETIC = (
    case("Add", f(2, 3), f(3)),
    case("Add.wide", f(4, 2, 3), f(1, 3)),
    case("Add.column", f(2, 3), f(2, 1)),
    case("Add.number", f(2, 3), f()),
    case("Add.int", n(9, 2, 3), n(9, 3), grad="none"),
    case("Sub", f(2, 3), f(3)),
    case("Sub.int", n(9, 2, 3), n(9, 3), grad="none"),
    case("Mul", f(2, 3), f(3)),
    case("Mul.both", f(1, 3), f(2, 1)),
    case("Mul.one", f(2, 3), f(1)),
    case("Mul.two", f(4, 2, 3), f(2, 1)),
    case("Mul.int", n(9, 2, 3), n(9, 3), grad="none"),
    case("Div", f(2, 3), p(3)),
    case("Div.int", n(9, 6), n(4, 6), grad="none"),
    case("RealDiv", f(2, 3), p(3)),
    case("RealDiv.int", n(9, 6), n(4, 6), grad="none"),
    case("DivNoNan", f(2, 3), p(3)),
    case("FloorDiv", f(2, 3), p(3)),
    case("FloorDiv.int", n(9, 6), n(4, 6), grad="none"),
    case("Mod", p(2, 3), p(3)),
    case("Mod.int", n(9, 6), n(4, 6), grad="none"),
    case("FloorMod", f(2, 3), p(3)),
    case("FloorMod.int", n(9, 6), n(4, 6), grad="none"),
    case("Pow", p(2, 3), f(3)),
    case("Pow.int", n(5, 6), i(4, 6), grad="none"),
    case("Maximum", f(2, 3), f(3)),
    case("Minimum", f(2, 3), f(2, 3)),
    case("Atan2", f(2, 3), p(2, 3)),
    case("AddN", (f(2, 3), f(2, 3), f(2, 3)), real="P.AddN()([a, b, c])"),
    case("AccumulateNV2", (f(2, 3), f(2, 3)), real=None),
)

MATH = (
    case("Neg", f(2, 3)),
    case("Neg.int", n(9, 5), grad="none"),
    case("Abs", f(2, 3)),
    case("Abs.int", n(9, 5), grad="none"),
    case("Square", f(2, 3)),
    case("Square.int", n(9, 5), grad="none"),
    case("Sign", f(2, 3)),
    case("Floor", f(2, 3)),
    case("Ceil", f(2, 3)),
    case("Trunc", f(2, 3)),
    case("Rint", f(2, 3), grad="none"),
    case("Round", f(2, 3), 0, real="P.Round()(a)"),
    case("Sqrt", p(2, 3)),
    case("Rsqrt", p(2, 3)),
    case("Reciprocal", p(2, 3)),
    case("Exp", f(2, 3)),
    case("Expm1", f(2, 3)),
    case("Log", p(2, 3)),
    case("Log1p", p(2, 3)),
    case("Sin", f(2, 3)),
    case("Cos", f(2, 3)),
    case("Tan", f(2, 3)),
    case("Atan", f(2, 3)),
    case("Sinh", f(2, 3)),
    case("Cosh", f(2, 3)),
    case("Tanh", f(2, 3)),
    case("Sigmoid", f(2, 3)),
    case("Erf", f(4, 6)),
    case("Erfc", f(4, 6), tolerance=5e-6),
    case("IsNan", SPECIAL, grad="none"),
    case("IsInf", SPECIAL, grad="none"),
    case("IsFinite", SPECIAL, grad="none"),
    case("Cast", f(2, 3), Kind("float16"), real="P.Cast()(a, ms.float16)", grad="none"),
    case("Cast.int", f(2, 3), Kind("int32"), real="P.Cast()(a, ms.int32)", grad="none"),
    case("Cast.bool", f(2, 3), Kind("bool"), real="P.Cast()(a, ms.bool_)", grad="none"),
    case("Cast.float", n(9, 4), Kind("float32"), real="P.Cast()(a, ms.float32)", grad="none"),
    case("SqrtGrad", p(2, 3), f(2, 3), real="G.SqrtGrad()(a, b)", grad="none"),
    case("RsqrtGrad", p(2, 3), f(2, 3), real="G.RsqrtGrad()(a, b)", grad="none"),
    case("TanhGrad", f(2, 3), f(2, 3), real="G.TanhGrad()(a, b)", slopes="second gradients are not compared by name"),
    case(
        "SigmoidGrad",
        u(2, 3),
        f(2, 3),
        real="G.SigmoidGrad()(a, b)",
        slopes="second gradients are not compared by name",
    ),
    case("AtanGrad", f(2, 3), f(2, 3), real="G.AtanGrad()(a, b)", grad="none"),
)

COMPARE = (
    case("Equal", i(3, 6), i(3, 6), grad="none"),
    case("NotEqual", i(3, 6), i(3, 6), grad="none"),
    case("Less", f(2, 3), f(3), grad="none"),
    case("LessEqual", i(3, 6), i(3, 6), grad="none"),
    case("Greater", f(2, 3), f(3), grad="none"),
    case("GreaterEqual", i(3, 6), i(3, 6), grad="none"),
    case("LogicalAnd", b(6), b(6), grad="none"),
    case("LogicalOr", b(6), b(6), grad="none"),
    case("LogicalXor", b(6), b(6), grad="none"),
    case("LogicalNot", b(6), grad="none"),
    case("Select", b(2, 3), f(2, 3), f(2, 3)),
    case("MaskedFill", f(2, 3), b(2, 3), 0.5, real="P.MaskedFill()(a, b, 0.5)"),
)

MATRIX = (
    case("MatMul", f(2, 3), f(3, 4), False, False),
    case("MatMul.nt", f(2, 3), f(4, 3), False, True, real="P.MatMul(False, True)(a, b)"),
    case("MatMul.tn", f(3, 2), f(3, 4), True, False, real="P.MatMul(True, False)(a, b)"),
    case("MatMul.tt", f(3, 2), f(4, 3), True, True, real="P.MatMul(True, True)(a, b)"),
    case("BatchMatMul", f(5, 2, 3), f(5, 3, 4), False, False),
    case("BatchMatMul.nt", f(2, 2, 2, 3), f(2, 2, 4, 3), False, True, real="P.BatchMatMul(False, True)(a, b)"),
    case("MatMulExt", f(2, 3), f(3, 4), real="ops.matmul(a, b)"),
    case("MatMulExt.mixed", f(5, 2, 3), f(3, 4), real="ops.matmul(a, b)"),
    case("MatMulExt.batch", f(5, 2, 3), f(5, 3, 4), real="ops.matmul(a, b)"),
    case(
        "MatMulExt.vector",
        f(5, 2, 3),
        f(3),
        real="ops.matmul(a, b)",
        slopes="products with vectors take more nodes here",
    ),
    case("Dense", f(2, 3), f(4, 3), f(4), real="ops.dense(a, b, c)"),
    case("BiasAdd", f(2, 3, 4, 4), f(3), 0),
    case("BiasAdd.flat", f(2, 3), f(3), 0),
    case("BiasAddGrad", f(2, 3, 4, 4), 0, real="G.BiasAddGrad()(a)", grad="none"),
)

CONV = (
    case("Conv2D", f(2, 3, 8, 8), f(4, 3, 3, 3), attrs=_CONV, real="P.Conv2D(4, 3)(a, b)"),
    case(
        "Conv2D.pad",
        f(2, 3, 9, 8),
        f(4, 3, 3, 3),
        attrs=_CONV | {"pad_mode": "pad", "pad": (1, 1, 1, 1), "stride": (1, 1, 2, 2)},
        real="P.Conv2D(4, 3, pad_mode='pad', pad=1, stride=2)(a, b)",
    ),
    case(
        "Conv2D.same",
        f(2, 3, 8, 7),
        f(4, 3, 5, 4),
        attrs=_CONV | {"kernel_size": (5, 4), "pad_mode": "same", "stride": (1, 1, 2, 2)},
        real="P.Conv2D(4, (5, 4), pad_mode='same', stride=2)(a, b)",
    ),
    case(
        "Conv2D.group",
        f(2, 6, 8, 8),
        f(6, 2, 3, 3),
        attrs=_CONV | {"out_channel": 6, "pad_mode": "same", "group": 3},
        real="P.Conv2D(6, 3, pad_mode='same', group=3)(a, b)",
    ),
    case(
        "Conv2D.dilated",
        f(2, 3, 9, 9),
        f(4, 3, 3, 3),
        attrs=_CONV | {"dilation": (1, 1, 2, 2)},
        real="P.Conv2D(4, 3, dilation=2)(a, b)",
    ),
)

POOL = (
    case("MaxPool", f(2, 3, 8, 8), attrs=_POOL, real="P.MaxPool(2, 2)(a)"),
    case(
        "MaxPool.same",
        f(2, 3, 7, 7),
        attrs=_POOL | {"kernel_size": (1, 1, 3, 3), "pad_mode": "SAME"},
        real="P.MaxPool(3, 2, 'same')(a)",
    ),
    case("AvgPool", f(2, 3, 8, 8), (2, 2), (2, 2), 2, 0, real="P.AvgPool(2, 2)(a)"),
    case("AvgPool.same", f(2, 3, 7, 7), (3, 3), (2, 2), 1, 0, real="P.AvgPool(3, 2, 'same')(a)"),
    case("AdaptiveAvgPool2D", f(2, 3, 7, 8), attrs={"output_size": (3, 2)}, real="P.AdaptiveAvgPool2D((3, 2))(a)"),
)

NORM = (
    case(
        "LayerNorm",
        f(2, 3, 4),
        f(4),
        f(4),
        -1,
        -1,
        1e-7,
        real="P.LayerNorm(-1, -1)(a, b, c)",
        first=True,
        tolerance=1e-5,
    ),
    case(
        "LayerNorm.two",
        f(2, 3, 4),
        f(3, 4),
        f(3, 4),
        1,
        1,
        1e-5,
        real="P.LayerNorm(1, 1, 1e-5)(a, b, c)",
        first=True,
        tolerance=1e-5,
    ),
    case(
        "BatchNorm",
        f(3, 2, 4, 4),
        f(2),
        f(2),
        f(2),
        p(2),
        True,
        1e-5,
        0.1,
        0,
        real="P.BatchNorm(is_training=True)(a, b, c, d, e)",
        first=True,
        undefined=(1, 2),
        tolerance=2e-5,
    ),
    case(
        "BatchNorm.infer",
        f(3, 2, 4, 4),
        f(2),
        f(2),
        f(2),
        p(2),
        False,
        1e-5,
        0.1,
        0,
        real="P.BatchNorm(is_training=False)(a, b, c, d, e)",
        first=True,
        undefined=(1, 2, 3, 4),
        tolerance=1e-5,
    ),
    case(
        "GroupNorm",
        f(2, 6, 4, 4),
        3,
        f(6),
        f(6),
        1e-5,
        real="G.GroupNorm()(a, 3, b, c, 1e-5)",
        first=True,
        tolerance=1e-5,
    ),
    case("L2Normalize", f(2, 3), attrs={"axis": 1, "epsilon": 1e-4}, real="P.L2Normalize(1)(a)", tolerance=1e-5),
)

ACTIVATION = (
    case("ReLU", f(2, 3)),
    case("ReLU.int", n(9, 5), grad="none"),
    case("ReluGrad", f(2, 3), f(2, 3), real="G.ReluGrad()(a, b)", grad="finite"),
    case("ReLU6", Draw("normal", (4, 4))),
    case("GeLU", f(4, 4)),
    case("FastGeLU", f(4, 4)),
    case("HSwish", f(4, 4)),
    case("HSigmoid", f(4, 4)),
    case("Elu", f(4, 4), 1.0),
    case("SeLU", f(4, 4), grad="vendor", real="P.SeLU()(a)"),
    case("Softplus", f(4, 4)),
    case("Mish", f(4, 4), tolerance=5e-6),
    case("SiLU", f(4, 4), real="ops.silu(a)"),
    case("Softmax", f(2, 3), (-1,)),
    case("Softmax.first", f(2, 3), (0,), real="P.Softmax(0)(a)"),
    case("LogSoftmax", f(2, 3), -1),
)

REDUCE = (
    case("ReduceSum", f(2, 3, 4), (1,), False, False, real="P.ReduceSum()(a, (1,))"),
    case("ReduceSum.all", f(2, 3), (), False, False, real="P.ReduceSum()(a)"),
    case("ReduceSum.keep", f(2, 3), (0,), True, False, real="P.ReduceSum(True)(a, (0,))"),
    case("ReduceSum.int", n(9, 2, 3), (1,), False, False, real="P.ReduceSum()(a, (1,))", grad="none"),
    case("ReduceSum.bool", b(2, 3), (1,), False, False, real="P.ReduceSum()(a, (1,))", grad="none"),
    case("ReduceMean", f(2, 3, 4), (0, 2), False, real="P.ReduceMean()(a, (0, 2))"),
    case("ReduceMean.int", n(99, 2, 3), (1,), False, real="P.ReduceMean()(a, (1,))", grad="none"),
    case("ReduceMax", f(2, 3), (1,), False, real="P.ReduceMax()(a, (1,))"),
    case("ReduceMax.all", f(2, 3), (), False, real="P.ReduceMax()(a)"),
    case("ReduceMin", f(2, 3), (1,), True, real="P.ReduceMin(True)(a, (1,))"),
    case("ReduceProd", f(2, 3), (1,), False, real="P.ReduceProd()(a, (1,))"),
    case("ReduceAll", b(2, 3), (1,), False, real="P.ReduceAll()(a, (1,))", grad="none"),
    case("ReduceAny", b(2, 3), (1,), False, real="P.ReduceAny()(a, (1,))", grad="none"),
    case("SumExt", f(2, 3, 4), (0, 2), False, None, real="a.sum((0, 2))"),
    case("SumExt.int", n(9, 2, 3), None, False, None, real="a.sum()", grad="none"),
    case("MeanExt", f(2, 3), (1,), False, None, real="mint.mean(a, 1)"),
    case("Argmax", f(2, 5), -1, None, real="P.Argmax()(a)", grad="none"),
    case("Argmin", f(2, 5), -1, None, real="P.Argmin()(a)", grad="none"),
    case("ArgMaxWithValue", f(2, 5), 1, False, real="P.ArgMaxWithValue(1)(a)"),
    case("ArgMinWithValue", f(2, 5), 0, True, real="P.ArgMinWithValue(0, True)(a)"),
)

SHAPE = (
    case("Reshape", f(2, 3), (3, -1), real="P.Reshape()(a, (3, -1))"),
    case("Flatten", f(2, 3, 4)),
    case("ExpandDims", f(2, 3), 1, real="P.ExpandDims()(a, 1)"),
    case("Squeeze", f(2, 1, 3), (1,), real="P.Squeeze(1)(a)"),
    case("Transpose", f(2, 3, 4), (2, 0, 1), real="P.Transpose()(a, (2, 0, 1))"),
    case("BroadcastTo", f(2, 3), (4, 2, 3), real="P.BroadcastTo((4, 2, 3))(a)"),
    case("Tile", f(2, 3), (2, 2), real="P.Tile()(a, (2, 2))"),
    case("ReverseV2", f(2, 3), (1,), real="P.ReverseV2([1])(a)"),
    case("Pad", f(2, 3), attrs={"paddings": ((1, 1), (0, 2))}, real="P.Pad(((1, 1), (0, 2)))(a)"),
    case("PadV3", f(2, 3), (1, 2), 0.0, real="ops.pad(a, (1, 2))"),
    case(
        "PadV3.reflect",
        f(2, 3, 4, 5),
        (1, 2, 3, 0),
        None,
        attrs={"mode": "reflect"},
        real="ops.pad(a, (1, 2, 3, 0), 'reflect')",
    ),
    case(
        "PadV3.edge",
        f(2, 3, 4, 5),
        (1, 2, 5, -1),
        None,
        attrs={"mode": "edge"},
        real="ops.pad(a, (1, 2, 5, -1), 'replicate')",
    ),
    case(
        "PadV3.circular",
        f(2, 3, 4, 5),
        (1, 2, 3, -1),
        None,
        attrs={"mode": "circular"},
        real="ops.pad(a, (1, 2, 3, -1), 'circular')",
    ),
    case("Triu", f(3, 4), 1, real="ops.triu(a, 1)"),
    case("Tril", f(3, 4), attrs={"diagonal": -1}, real="ops.tril(a, -1)"),
    case("Concat", (f(2, 3), f(2, 4)), 1, real="ops.cat([a, b], 1)"),
    case("Split", f(2, 4), 1, 2, real="P.Split(1, 2)(a)", slopes=_FOLDED),
    case("Stack", (f(2, 3), f(2, 3)), attrs={"axis": 1, "num": None}, real="P.Stack(1)([a, b])"),
    case("Unstack", f(2, 3), attrs={"axis": 1, "num": None}, real="P.Unstack(1)(a)"),
    case("SplitWithSize", f(2, 7), (3, 4), 1, real="ops.split(a, [3, 4], 1)", slopes="ops.split is another operator"),
)

INDEX = (
    case(
        "StridedSlice",
        f(4, 5),
        (0, 1),
        (3, 5),
        (2, 2),
        0,
        0,
        0,
        0,
        0,
        real="P.StridedSlice()(a, (0, 1), (3, 5), (2, 2))",
    ),
    case(
        "StridedSlice.row",
        f(4, 5),
        (1,),
        (2,),
        (1,),
        252,
        252,
        0,
        0,
        1,
        real="P.StridedSlice(252, 252, 0, 0, 1)(a, (1,), (2,), (1,))",
    ),
    case(
        "StridedSlice.back",
        f(4, 5),
        (3, 0),
        (0, 5),
        (-1, 1),
        0,
        0,
        0,
        0,
        0,
        grad="finite",  # the vendor's rule refuses negative strides
        real="P.StridedSlice()(a, (3, 0), (0, 5), (-1, 1))",
    ),
    case("Slice", f(3, 4), (0, 1), (2, 2), real="P.Slice()(a, (0, 1), (2, 2))"),
    case("Gather", f(5, 3), i(5, 2, 2), 0, 0, real="P.Gather()(a, b, 0)"),
    case("Gather.last", f(3, 5), i(5, 2, 2), 1, 0, real="P.Gather()(a, b, 1)", slopes="node count differs off axis 0"),
    case("GatherD", f(2, 4), 1, i(4, 2, 3), real="P.GatherD()(a, 1, b)"),
    case("GatherNd", f(3, 4), i(3, 2, 2), real="P.GatherNd()(a, b)"),
    case("ScatterNd", i(3, 2, 1), f(2, 4), (3, 4), real="P.ScatterNd()(a, b, (3, 4))"),
    case("TensorScatterUpdate", f(5, 4), Draw("int", (1, 1), 5), f(1, 4), real="P.TensorScatterUpdate()(a, b, c)"),
    case("UnsortedSegmentSum", f(4, 3), i(3, 4), 3, real="P.UnsortedSegmentSum()(a, b, 3)", slopes=_FOLDED),
    case("OneHot", i(4, 3), 4, ones(), Draw("normal", ()), -1, real="P.OneHot()(a, 4, b, c)", grad="none"),
    case("TopK", f(2, 5), 2, attrs={"sorted": True}, real="P.TopK()(a, 2)", slopes="the compiler casts k"),
    case(
        "Sort",
        f(2, 5),
        attrs={"axis": -1, "descending": False},
        real="P.Sort()(a)",
        slopes="the vendor sorts again with TopK",
    ),
    case(
        "Sort.down",
        f(2, 5),
        attrs={"axis": -1, "descending": True},
        real="P.Sort(descending=True)(a)",
        slopes="as Sort",
    ),
    case("Unique", i(4, 9), real="P.Unique()(a)", grad="none"),
    case("CumSum", f(2, 4), 1, False, False, real="P.CumSum()(a, 1)"),
    case("CumSum.other", f(2, 4), 1, True, True, real="P.CumSum(True, True)(a, 1)"),
    case("CumProd", p(2, 4), 1, False, False, real="P.CumProd()(a, 1)"),
)

CREATE = (
    case("ZerosLike", f(2, 3)),
    case("OnesLike", n(5, 4), grad="none"),
    case("Zeros", (2, 3), Kind("float32"), real="P.Zeros()((2, 3), ms.float32)", grad="none"),
    case("Ones", (2, 3), Kind("int32"), real="P.Ones()((2, 3), ms.int32)", grad="none"),
    case("FillV2", (2, 3), f(), real="P.FillV2()((2, 3), a)", slopes=_FOLDED),
    case("Eye", 2, 3, Kind("float32"), real="P.Eye()(2, 3, ms.float32)", grad="none"),
)

LOSS = (
    case(
        "SparseSoftmaxCrossEntropyWithLogits",
        f(4, 5),
        i(5, 4),
        attrs={"is_grad": False, "sens": 1.0},
        tolerance=5e-6,
    ),
    # the rule is right for labels that add up to 1
    case("SoftmaxCrossEntropyWithLogits", f(4, 5), u(4, 5), tolerance=5e-6, grad="vendor", first=True),
    case("SmoothL1Loss", f(2, 3), f(2, 3), 1.0, 2, real="P.SmoothL1Loss(1.0, 'none')(a, b)"),
    case("BinaryCrossEntropy", u(2, 3), u(2, 3), None, 1, real="P.BinaryCrossEntropy('mean')(a, b)", tolerance=5e-6),
    case("L2Loss", f(2, 3)),
)

COMPOSITE = (
    case("Muls", f(2, 3), 1.5, real="a * 1.5"),
    case("Divs", f(2, 3), 2, real="a / 2"),
    case("PowTensorScalar", p(2, 3), 3, real="a ** 3", slopes="the script's ** is Pow"),
    case("ClampScalar", f(4, 4), -0.5, 0.5, real="ops.clamp(a, -0.5, 0.5)"),
    case("Max", f(2, 3), real="a.max()", slopes="the branch on NaN is decided at once here"),
    case("Min", f(2, 3), real="a.min()", slopes="as Max"),
    case("ProdExt", f(2, 3), None, False, None, real="a.prod()", slopes="the vendor counts zeros by control flow"),
    case("RemainderTensorTensor", f(2, 3), p(3), real="a % b"),
    case("RemainderTensorScalar", f(2, 3), 2, real="a % 2"),
)

MORE = (
    case("ACos", u(2, 3)),
    case("Asin", u(2, 3)),
    case("Acosh", Draw("above", (2, 3))),
    case("Asinh", f(2, 3)),
    case("Atanh", u(2, 3)),
    case("BitwiseAnd", i(99, 6), i(99, 6), grad="none"),
    case("BitwiseOr", i(99, 6), i(99, 6), grad="none"),
    case("BitwiseXor", i(99, 6), i(99, 6), grad="none"),
    case("Invert", n(99, 6), grad="none"),
    case("Diag", f(3)),
    case("DiagPart", f(3, 3)),
    case("LinSpace", f(), f(), 4, real="P.LinSpace()(a, b, 4)", grad="none"),
    case("Meshgrid", (f(3), f(2)), 1, real="P.Meshgrid()((a, b))", slopes=_FOLDED),
    case("Meshgrid.ij", (f(3), f(2), f(2)), 0, real="P.Meshgrid('ij')((a, b, c))", slopes=_FOLDED),
    case("NonZero", i(2, 3, 3), grad="none"),
    case("SigmoidCrossEntropyWithLogits", f(2, 3), u(2, 3), slopes="labels have no gradient here", grad="vendor"),
    case(
        "BCEWithLogitsLoss",
        f(2, 3),
        u(2, 3),
        p(2, 3),
        p(2, 3),
        1,
        real="P.BCEWithLogitsLoss()(a, b, c, d)",
        tolerance=5e-6,
        grad="vendor",  # the weights have no gradient
    ),
    case(
        "BCEWithLogitsLoss.plain",
        f(2, 3),
        u(2, 3),
        None,
        None,
        1,
        real="ops.binary_cross_entropy_with_logits(a, b)",
        tolerance=5e-6,
    ),
    case("NLLLoss", f(2, 3), i(3, 2), p(3), 1, -100, real="P.NLLLoss('mean')(a, b, c)", grad="vendor", first=True),
    case("NLLLoss.none", f(2, 3), i(3, 2), p(3), 2, -100, real="P.NLLLoss('none')(a, b, c)", grad="vendor", first=True),
    case("KLDivLoss", f(2, 3), u(2, 3), attrs={"reduction": "mean"}, real="P.KLDivLoss('mean')(a, b)", grad="vendor"),
    case("KLDivLoss.sum", f(2, 3), u(2, 3), attrs={"reduction": "sum"}, real="P.KLDivLoss('sum')(a, b)", grad="vendor"),
    case("PReLU", f(2, 3, 2), f(3)),
    case("PReLU.one", f(2, 3), f(1)),
    case("Softsign", f(2, 3)),
    case("LpNorm", f(2, 3), attrs={"axis": 1}, real="P.LpNorm(axis=1)(a)"),
    case(
        "MaxPoolWithArgmaxV2",
        f(2, 3, 8, 7),
        attrs={"kernel_size": (1, 1, 3, 3), "strides": (1, 1, 2, 2), "pads": (1, 1, 1, 1)},
        real="P.MaxPoolWithArgmaxV2(3, 2, 1)(a)",
        first=True,
    ),
    case(
        "MaxPoolWithArgmaxV2.ceil",
        f(1, 2, 8, 8),
        attrs={"kernel_size": (1, 1, 3, 3), "strides": (1, 1, 2, 2), "ceil_mode": True},
        real="P.MaxPoolWithArgmaxV2(3, 2, ceil_mode=True)(a)",
        first=True,
    ),
)

_OTHER = "dumpsim's rule has operators of its own"
FURTHER = (
    case("SquaredDifference", f(2, 3), f(3), slopes=_OTHER),
    case("Xdivy", f(2, 3), p(3), slopes=_OTHER),
    case("Xlogy", f(2, 3), p(3), real="G.Xlogy()(a, b)", slopes=_OTHER),
    case("MulNoNan", f(2, 3), f(3), slopes=_OTHER, grad="finite"),
    case("TruncateDiv", f(6), p(6), grad="none"),
    case("TruncateDiv.int", n(9, 6), n(4, 6), grad="none"),
    case("TruncateMod", f(6), p(6), grad="finite"),
    case("Hypot", f(2, 3), f(3), slopes=_OTHER),
    case("Fmax", f(2, 3), f(2, 3), grad="finite"),
    case("Fmin", f(2, 3), f(2, 3), real=None, grad="finite"),
    case("Heaviside", f(2, 3), f(3), grad="none"),
    case("LeftShift", n(9, 6), i(4, 6), real="P.LeftShift()(a, b)", grad="none"),
    case("RightShift", n(99, 6), i(4, 6), real="P.RightShift()(a, b)", grad="none"),
    case("LogAddExp", f(2, 3), f(3), real=None, grad="finite"),
    case("LogAddExp2", f(2, 3), f(3), real=None, grad="finite"),
    case("Gcd", n(99, 6), n(99, 6), real=None, grad="none"),
    case("IsClose", f(2, 3), f(2, 3), real="G.IsClose()(a, b)", grad="none"),
    case("ApproximateEqual", f(2, 3), f(2, 3), attrs={"tolerance": 0.5}, real="P.ApproximateEqual(0.5)(a, b)",
         grad="none"),
    case("Lerp", f(2, 3), f(2, 3), f(3), real="G.Lerp()(a, b, c)", slopes=_OTHER),
    case("Addcmul", f(2, 3), f(2, 3), f(3), f(1), real="G.Addcmul()(a, b, c, d)", slopes=_OTHER),
    case("Addcdiv", f(2, 3), f(2, 3), p(3), f(1), real="G.Addcdiv()(a, b, c, d)", slopes=_OTHER, tolerance=1e-5),
    case("Log2", p(2, 3), real=None, grad="finite"),
    case("Log10", p(2, 3), real=None, grad="finite"),
    case("Exp2", f(2, 3), real=None, grad="finite"),
    case("Frac", f(2, 3), real=None, grad="finite"),
    case("Inv", p(2, 3), slopes=_OTHER),
    case("NanToNum", Draw("special", (6,)), 0.5, None, None, real=None, grad="none"),
    case("NanToNum.slope", f(2, 3), 0.5, None, None, real=None, grad="finite"),
    case("TensorScatterAdd", f(4, 3), i(4, 2, 1), f(2, 3), slopes=_OTHER),
    case("TensorScatterSub", f(4, 3), i(4, 2, 1), f(2, 3), slopes=_OTHER),
    case("TensorScatterMul", f(4, 3), i(4, 1, 1), f(1, 3), slopes=_OTHER),
    case("TensorScatterDiv", f(4, 3), i(4, 1, 1), p(1, 3), slopes=_OTHER),
    case("TensorScatterMax", f(4, 3), i(4, 2, 1), f(2, 3), slopes=_OTHER, grad="finite"),
    case("TensorScatterMin", f(4, 3), i(4, 2, 1), f(2, 3), slopes=_OTHER, grad="finite"),
    case("UnsortedSegmentMax", f(12, 2), i(2, 12), 2, real="P.UnsortedSegmentMax()(a, b, 2)", grad="finite"),
    case("UnsortedSegmentMin", f(12, 2), i(2, 12), 2, real="P.UnsortedSegmentMin()(a, b, 2)", grad="finite"),
    case("UnsortedSegmentProd", f(5, 2), i(3, 5), 3, real="P.UnsortedSegmentProd()(a, b, 3)", grad="none"),
    case("Roll", f(3, 4), (1, 2), (0, 1), real=None, grad="finite"),
    case("Roll.flat", f(3, 4), 2, None, real=None, grad="finite"),
    case("ReverseSequence", f(3, 4), i(4, 3), attrs={"seq_dim": 1, "batch_dim": 0},
         real="P.ReverseSequence(1, 0)(a, b)", slopes=_OTHER),
    case("DepthToSpace", f(2, 8, 2, 3), attrs={"block_size": 2}, real="P.DepthToSpace(2)(a)", slopes=_OTHER),
    case("SpaceToDepth", f(2, 2, 4, 6), attrs={"block_size": 2}, real="P.SpaceToDepth(2)(a)", slopes=_OTHER),
    case("IndexSelect", f(3, 4), 1, i(4, 5), real=None, grad="finite"),
    case("IndexSelect.rows", f(3, 4), 0, i(3, 5), real=None, grad="finite"),
    case("RepeatInterleaveInt", f(3, 4), 2, 0, None, real=None, grad="finite"),
    case("RepeatInterleaveInt.flat", f(3, 4), 3, None, None, real=None, grad="finite"),
    case("MaskedSelect", f(3, 4), b(3, 4), real="P.MaskedSelect()(a, b)", grad="none"),
    *(
        case(
            f"Resize{how}.{name}", f(1, 2, 3, 4), size, align, half,
            real=f"G.Resize{how}({align}, {half})(a, {size})", slopes=_OTHER, tolerance=5e-6,
        )
        for how in ("BilinearV2", "NearestNeighborV2")
        for name, size, align, half in (
            ("up", (5, 9), False, False), ("down", (2, 3), False, False), ("aligned", (5, 7), True, False),
            ("half", (7, 5), False, True),
        )
    ),
    case("HShrink", f(2, 6), 0.5, real="P.HShrink(0.5)(a)", slopes=_OTHER),
    case("SoftShrink", f(2, 6), 0.5, real="P.SoftShrink(0.5)(a)", slopes=_OTHER),
    case("Logit", u(2, 3), 1e-5, real="P.Logit(1e-5)(a)", slopes=_OTHER),
    case("Threshold", f(2, 6), 0.1, -2.0, real=None, grad="finite"),
    case("Hardtanh", f(2, 6), -1, 1, real=None, grad="finite"),
    case("LeakyReLUExt", f(2, 6), 0.1, real=None, grad="finite"),
    case("CeLU", f(2, 6), 0.7, real="P.CeLU(0.7)(a)", slopes=_OTHER),
    case("Swiglu", f(2, 6), -1, real=None, grad="finite"),
    case("Swiglu.first", f(4, 3), 0, real=None, grad="finite"),
    case("GLU", f(2, 6), -1, real="P.GLU(-1)(a)", slopes=_OTHER),
    case("LogSigmoid", f(2, 6), real=None, grad="finite", first=True),
)  # fmt: skip

_CONV3D: dict[str, Any] = {
    "out_channel": 4,
    "kernel_size": (2, 3, 2),
    "pad_mode": "valid",
    "pad": (0, 0, 0, 0, 0, 0),
    "strides": (1, 1, 1, 1, 1),
    "dilations": (1, 1, 1, 1, 1),
    "groups": 1,
}
_MEANS = {"kernel_size": (1, 1, 1, 2, 3), "strides": (1, 1, 2, 2, 2)}
PRODUCTS = (
    case("Mm", f(2, 3), f(3, 4), real=None, grad="finite"),
    case("Mv", f(2, 3), f(3), real=None, grad="finite"),
    case("Dot", f(3), f(3), real=None, grad="finite"),
    case("Outer", f(3), f(2), real=None, grad="finite"),
    case("Ger", f(3), f(2), slopes=_OTHER),
    case("Addmm", f(4), f(2, 3), f(3, 4), 0.5, 2.0, real=None, grad="finite"),
    case("Addmv", f(2), f(2, 3), f(3), 1, 1, real=None, grad="finite"),
    case("Addbmm", f(2, 4), f(5, 2, 3), f(5, 3, 4), 0.5, 2.0, real=None, grad="finite"),
    case("Baddbmm", f(5, 2, 4), f(5, 2, 3), f(5, 3, 4), 0.5, 2.0, real=None, grad="finite"),
    case("Einsum", (f(2, 3), f(3, 4)), attrs={"equation": "ab,bc->ac"}, real=None, grad="finite"),
    case("Einsum.sum", (f(2, 3, 4),), attrs={"equation": "abc->b"}, real=None, grad="finite"),
    case("Einsum.batch", (f(2, 3, 4), f(2, 4, 5), f(5)), attrs={"equation": "bij,bjk,k->bi"}, real=None,
         grad="finite"),
    *(
        case(f"Conv3D.{name}", x, w, attrs=_CONV3D | attrs, real=f"P.Conv3D(4, (2, 3, 2), {call})(a, b)",
             slopes=_OTHER, tolerance=1e-5)
        for name, x, w, attrs, call in (
            ("valid", f(2, 3, 4, 5, 4), f(4, 3, 2, 3, 2), {}, ""),
            ("same", f(1, 3, 4, 5, 4), f(4, 3, 2, 3, 2), {"pad_mode": "same", "strides": (1, 1, 2, 2, 1)},
             "pad_mode='same', stride=(2, 2, 1)"),
            ("pad", f(1, 2, 4, 5, 4), f(4, 2, 2, 3, 2), {"pad_mode": "pad", "pad": (1, 0, 1, 1, 0, 1)},
             "pad_mode='pad', pad=(1, 0, 1, 1, 0, 1)"),
            ("group", f(1, 4, 3, 4, 3), f(4, 2, 2, 3, 2), {"groups": 2}, "group=2"),
        )
    ),
    *(
        case(f"AvgPool3D.{name}", f(2, 2, 3, 5, 6), attrs=_MEANS | attrs, real=f"P.AvgPool3D((1, 2, 3), 2, {call})(a)")
        for name, attrs, call in (
            ("valid", {}, "'valid'"),
            ("same", {"pad_mode": "SAME", "count_include_pad": False}, "'same', count_include_pad=False"),
            ("pad", {"pad_mode": "PAD", "pad_list": (0, 0, 1, 0, 1, 1)}, "'pad', (0, 0, 1, 0, 1, 1)"),
            ("ceil", {"pad_mode": "PAD", "pad_list": (0, 0, 0, 0, 1, 0), "ceil_mode": True, "count_include_pad": False},
             "'pad', (0, 0, 0, 0, 1, 0), True, False"),
            ("divisor", {"pad_mode": "PAD", "pad_list": (0, 0, 1, 0, 1, 1), "divisor_override": 4},
             "'pad', (0, 0, 1, 0, 1, 1), divisor_override=4"),
        )
    ),
    case("Conv3D.dilated", f(1, 2, 4, 7, 4), f(4, 2, 2, 3, 2), attrs=_CONV3D | {"dilations": (1, 1, 1, 2, 2)},
         real=None, grad="finite"),
)  # fmt: skip

_FLASH = (None,) * 7
# operators of Ascend: no kernel for the CPU, so finite differences and tests/ops/test_fused.py
ASCEND = (
    case("RmsNorm", f(2, 3, 4), p(4), 1e-6, real=None, grad="finite", first=True),
    case("RmsNorm.axes", f(2, 3, 4), p(3, 4), 1e-6, real=None, grad="finite", first=True),
    case("RotaryPositionEmbedding", f(2, 3, 2, 4), f(1, 3, 1, 4), f(1, 3, 1, 4), 0, real=None, grad="finite"),
    case("RotaryPositionEmbedding.pairs", f(2, 3, 2, 4), f(1, 3, 1, 4), f(1, 3, 1, 4), 1, real=None, grad="finite"),
    *(
        case(
            f"FlashAttentionScore.{name}",
            *operands, *more, 2, 1.0, 0.5, 2147483647, 2147483647, 0, layout, mode,
            real=None, grad="attention",
        )
        for name, operands, more, layout, mode in (
            ("BSH", (f(2, 3, 8), f(2, 5, 8), f(2, 5, 8)), _FLASH, 0, 0),
            ("BNSD", (f(2, 2, 3, 4), f(2, 1, 5, 4), f(2, 1, 5, 4)), _FLASH, 1, 0),
            ("SBH", (f(3, 2, 8), f(5, 2, 8), f(5, 2, 8)), _FLASH, 2, 3),
            ("BSND", (f(2, 3, 2, 4), f(2, 5, 2, 4), f(2, 5, 2, 4)), (f(1, 2, 3, 5), *_FLASH[1:]), 3, 0),
        )
    ),
    case("WeightQuantBatchMatmul", f(2, 3), i(9, 3, 4), p(4), real=None, grad="none"),
    case("AllReduce", f(2, 3), real=None, grad="none"),
    case("AllGather", f(2, 3), real=None, grad="none"),  # no reduction of float64: gradients are in test_collective.py
    case("ReduceScatter", f(2, 3), real=None, grad="none"),
    case("Broadcast", (f(2, 3), f(2)), real=None, grad="none"),
    case("FloatStatus", f(2, 3), real=None, grad="none"),
    case("AllFinite", (f(2, 3), f(2)), real=None, grad="none"),
)  # fmt: skip

# gradient operators by themselves, which the cases above call through the rules
GRADIENTS = (
    case("EluGrad", f(4, 6), f(4, 6), real="G.EluGrad()(a, b)", grad="none"),
    case("FastGeLUGrad", f(4, 6), f(4, 6), real="G.FastGeLUGrad()(a, b)", grad="none"),
    case("GeLUGrad", f(4, 6), f(4, 6), f(4, 6), real="G.GeLUGrad()(a, b, c)", grad="none"),
    case("HSigmoidGrad", f(4, 6), f(4, 6), real="G.HSigmoidGrad()(a, b)", grad="none"),
    case("HSwishGrad", f(4, 6), f(4, 6), real="G.HSwishGrad()(a, b)", grad="none"),
    case("ReLU6Grad", f(4, 6), f(4, 6), real="G.ReLU6Grad()(a, b)", grad="none"),
    case("PReLUGrad", f(2, 3, 2), f(2, 3, 2), f(3), real="G.PReLUGrad()(a, b, c)", grad="none"),
    case("SoftplusGrad", f(4, 6), f(4, 6), real="O.SoftplusGrad()(a, b)", grad="none"),
    case("LogSoftmaxGrad", f(2, 3), f(2, 3), -1, real="G.LogSoftmaxGrad(-1)(a, b)", grad="none"),
    case("LogSoftmaxGrad.first", f(2, 3), f(2, 3), 0, real="G.LogSoftmaxGrad(0)(a, b)", grad="none"),
    case("ACosGrad", u(2, 3), f(2, 3), real="G.ACosGrad()(a, b)", grad="none"),
    case("AsinGrad", u(2, 3), f(2, 3), real="G.AsinGrad()(a, b)", grad="none"),
    case("AcoshGrad", p(2, 3), f(2, 3), real="G.AcoshGrad()(a, b)", grad="none"),
    case("AsinhGrad", f(2, 3), f(2, 3), real="G.AsinhGrad()(a, b)", grad="none"),
    case("HShrinkGrad", f(4, 6), f(4, 6), 0.5, real="G.HShrinkGrad(0.5)(a, b)", grad="none"),
    case("SoftShrinkGrad", f(4, 6), f(4, 6), 0.5, real="G.SoftShrinkGrad(0.5)(a, b)", grad="none"),
    case("SmoothL1LossGrad", f(2, 3), f(2, 3), f(2, 3), 1.5, 2, real="G.SmoothL1LossGrad(1.5, 'none')(a, b, c)",
         grad="none"),
    case("SmoothL1LossGrad.mean", f(2, 3), f(2, 3), f(), 0.5, 1, real="G.SmoothL1LossGrad(0.5, 'mean')(a, b, c)",
         grad="none"),
    case("BinaryCrossEntropyGrad", u(2, 3), u(2, 3), f(2, 3), p(2, 3), 2,
         real="G.BinaryCrossEntropyGrad('none')(a, b, c, d)", grad="none", tolerance=5e-6),
    case("BinaryCrossEntropyGrad.mean", u(2, 3), u(2, 3), f(), None, 1,
         real="G.BinaryCrossEntropyGrad('mean')(a, b, c, None)", grad="none", tolerance=5e-6),
    case("SigmoidCrossEntropyWithLogitsGrad", f(2, 3), u(2, 3), f(2, 3),
         real="O.SigmoidCrossEntropyWithLogitsGrad()(a, b, c)", grad="none"),
    case("KLDivLossGrad", f(2, 3), f(2, 3), p(2, 3), attrs={"reduction": "none"},
         real="O.KLDivLossGrad('none')(a, b, c)", grad="none"),
    case("NLLLossGrad", f(2, 3), f(2), i(3, 2), p(3), p(), 2, -100,
         real="G.NLLLossGrad('none')(a, b, c, d, e)", grad="none"),
    case("NLLLossGrad.mean", f(4, 3), f(), i(3, 4), p(3), p(), 1, 1,
         real="G.NLLLossGrad('mean', 1)(a, b, c, d, e)", grad="none"),
    case("L2NormalizeGrad", f(2, 3), f(2, 3), f(2, 3), attrs={"axis": 1, "epsilon": 1e-4},
         real="O.L2NormalizeGrad(1)(a, b, c)", grad="none", tolerance=1e-5),
    case("AvgPoolGrad", f(2, 3, 8, 8), f(2, 3, 4, 4), f(2, 3, 4, 4), (2, 2), (2, 2), 2, 0,
         real="G.AvgPoolGrad(2, 2)(a, b, c)", grad="none"),
    case("Conv2DBackpropInput", f(2, 4, 6, 6), f(4, 3, 3, 3), (2, 3, 8, 8), attrs=_CONV,
         real="P.Conv2DBackpropInput(4, 3)(a, b, (2, 3, 8, 8))", slopes=_OTHER, tolerance=5e-6),
    case("Conv2DBackpropInput.strides", f(2, 4, 4, 4), f(4, 3, 3, 2), (2, 3, 8, 7), grad="finite",
         attrs=_CONV | {"kernel_size": (3, 2), "pad_mode": "same", "stride": (1, 1, 2, 2)}, real=None),
    case("Conv2DBackpropFilter", f(2, 4, 6, 6), f(2, 3, 8, 8), (4, 3, 3, 3), attrs=_CONV,
         real=None, grad="finite"),
    case("Conv2DBackpropFilter.strides", f(2, 4, 4, 4), f(2, 3, 8, 7), (4, 3, 3, 2), grad="finite",
         attrs=_CONV | {"kernel_size": (3, 2), "pad_mode": "same", "stride": (1, 1, 2, 2)}, real=None),
    case("GatherDGradV2", f(3, 4), 1, i(4, 3, 2), f(3, 2), real="G.GatherDGradV2()(a, 1, b, c)", grad="none"),
    case("SliceGrad", f(2, 2), f(3, 4), (0, 1), (2, 2), real="O.SliceGrad()(a, b, (0, 1), (2, 2))", grad="none"),
    case("StridedSliceGrad", f(2, 2), (4, 5), (0, 1), (3, 5), (2, 2), real=None, grad="finite"),
    case("StridedSliceGrad.row", f(5), (4, 5), (1,), (2,), (1,), attrs={"shrink_axis_mask": 1}, real=None,
         grad="finite"),
    case("GluGrad", f(2, 3), f(2, 6), -1, real="O.GluGrad(-1)(a, b)", grad="none"),
    case("DropoutGrad", f(2, 3), p(2, 3), attrs={"keep_prob": 0.75}, real="O.DropoutGrad(0.75)(a, b)", grad="none"),
    case("ResizeBilinearGrad", f(1, 2, 5, 9), f(1, 2, 3, 4), False, False,
         real="G.ResizeBilinearGrad(False, False)(a, b)", grad="none", tolerance=5e-6),
    case("ResizeBilinearGrad.aligned", f(1, 2, 5, 9), f(1, 2, 3, 4), True, False,
         real="G.ResizeBilinearGrad(True, False)(a, b)", grad="none", tolerance=5e-6),
    case("ResizeNearestNeighborV2Grad", f(1, 2, 5, 9), (3, 4), False, False,
         real="G.ResizeNearestNeighborV2Grad(False, False)(a, (3, 4))", grad="none"),
    case("SoftmaxBackward", f(2, 3, 4), u(2, 3, 4), 1, real="G.SoftmaxBackward()(a, b, 1)", grad="none"),
    case("SoftmaxBackward.last", f(2, 3, 4), u(2, 3, 4), -1, real="G.SoftmaxBackward()(a, b, -1)", grad="none"),
    case("SiLUGrad", f(4, 6), f(4, 6), real="G.SiLUGrad()(a, b)", grad="none"),
)  # fmt: skip

# what mint and operators of Python become, with numbers beside tensors
TWINS = (
    case("AddExt", f(2, 3), f(3), 2, real="mint.add(a, b, alpha=2)", slopes=_OTHER),
    case("AddExt.one", f(2, 3), f(3), 1, real="mint.add(a, b)", slopes=_OTHER),
    case("SubExt", f(2, 3), f(3), 2, real="mint.sub(a, b, alpha=2)", slopes=_OTHER),
    case("SubExt.one", f(2, 3), f(3), 1, real="mint.sub(a, b)", slopes=_OTHER),
    case("AddScalar", f(2, 3), 2.5, 2, real="mint.add(a, 2.5, alpha=2)", slopes=_OTHER),
    case("SubScalar", f(2, 3), 2.5, 2, real="mint.sub(a, 2.5, alpha=2)", slopes=_OTHER),
    case("EqScalar", i(3, 6), 1, real="a == 1", grad="none"),
    case("LessScalar", f(2, 3), 0.25, real="a < 0.25", grad="none"),
    case("GreaterEqualScalar", i(3, 6), 1, real="a >= 1", grad="none"),
    case("RemainderScalarTensor", 7, p(2, 3), real="7 % a", grad="none"),
    case("DivMod", f(2, 3), p(3), 2, real="mint.div(a, b, rounding_mode='floor')", grad="none"),
    case("DivMod.cut", f(2, 3), p(3), 1, real="mint.div(a, b, rounding_mode='trunc')", grad="none"),
    case("PowScalarTensor", 2.5, f(2, 3), real="mint.pow(2.5, a)", slopes=_OTHER),
    case("BatchMatMulExt", f(5, 2, 3), f(5, 3, 4), real="mint.bmm(a, b)", slopes=_OTHER),
    case("ConstantPadND", f(2, 3), (1, -1, 0, 2), 0.5, real="mint.nn.functional.pad(a, (1, -1, 0, 2), 'constant', 0.5)",
         slopes=_OTHER),
    case("Embedding", i(5, 2, 3), f(5, 4), None, None, 2.0, False, real="mint.nn.functional.embedding(a, b)",
         grad="finite"),
    case("FlattenExt", f(2, 3, 4), 1, 2, real="mint.flatten(a, 1, 2)", slopes=_OTHER),
    case("LogSoftmaxExt", f(2, 3), 0, None, real="mint.nn.functional.log_softmax(a, 0)", slopes=_OTHER),
    case("MaxDim", f(2, 5), 1, False, real="mint.max(a, 1)", slopes=_OTHER),
    case("MaxDim.keep", f(2, 5), 0, True, real="mint.max(a, 0, True)", slopes=_OTHER),
    case("MinDim", f(2, 5), -1, False, real="mint.min(a, -1)", slopes=_OTHER),
    case("ArgMaxExt", f(2, 5), 1, False, real="mint.argmax(a, 1)", grad="none"),
    case("ArgMaxExt.all", f(2, 5), None, False, real="mint.argmax(a)", grad="none"),
    case("ArgMaxExt.keep", f(2, 5), 0, True, real="mint.argmax(a, 0, True)", grad="none"),
    case("OnesLikeExt", f(2, 3), None, real="mint.ones_like(a)", grad="none"),
    case("OnesLikeExt.int", f(2, 3), Kind("int32"), real="mint.ones_like(a, dtype=ms.int32)", grad="none"),
    case("ZerosLikeExt", f(2, 3), None, real="mint.zeros_like(a)", grad="none"),
    case("ZerosLikeExt.int", f(2, 3), Kind("int32"), real="mint.zeros_like(a, dtype=ms.int32)", grad="none"),
    case("MaskedFillScalar", f(2, 3), b(2, 3), 0.5, real=None, grad="finite"),
    case("ReduceStd", f(2, 3, 4), (1,), True, False, real="G.ReduceStd((1,), True, False)(a)", slopes=_OTHER,
         tolerance=1e-5),
    case("ReduceStd.keep", f(2, 3, 4), (0, 2), False, True, real="G.ReduceStd((0, 2), False, True)(a)", slopes=_OTHER,
         tolerance=1e-5),
    case("SoftplusExt", f(4, 6), 2.0, 1.0, real=None, grad="finite"),
    case("ViewAs", f(2, 3), f(3, 2), real=None, grad="finite"),
    case("Scatter", f(3, 4), 0, i(3, 1, 4), f(1, 4), 0, real=None, grad="finite"),
    case("Scatter.last", f(4, 3), 1, i(3, 4, 1), f(4, 1), 0, real=None, grad="finite"),
    case("ScatterValue", f(3, 4), 0, i(3, 2, 4), 0.5, 0, real=None, grad="finite"),
    case("TensorScatterElements", f(3, 4), i(3, 1, 4), f(1, 4), 0, 0,
         real="P.TensorScatterElements(0, 'none')(a, b, c)", slopes=_OTHER),
    case("TensorScatterElements.last", f(4, 3), i(3, 4, 1), f(4, 1), 1, 0,
         real="P.TensorScatterElements(1, 'none')(a, b, c)", slopes=_OTHER),
    case("EmbeddingLookup", f(5, 3), i(7, 2, 2), 1, real="P.EmbeddingLookup()(a, b, 1)", grad="none"),
    case("TransposeView", f(2, 3, 4), (2, 0, 1), real=None, grad="finite"),
    case("TransposeExtView", f(2, 3, 4), 0, -1, real=None, grad="finite"),
    case("ExpandDimsView", f(2, 3), 1, real=None, grad="finite"),
    case("NarrowView", f(2, 5), 1, 1, 3, real=None, grad="finite"),
    case("SelectExtView", f(2, 5), 1, 3, real=None, grad="finite"),
    case("ChunkView", f(2, 5), 2, 1, real=None, grad="finite"),
    case("SplitTensorView", f(2, 5), 2, 1, real=None, grad="finite"),
    case("UnstackExtView", f(2, 5), 1, real=None, grad="finite"),
    case("InplaceAddExt", f(2, 3), f(3), 2, real=None, grad="finite"),
    case("InplaceAddsExt", f(2, 3), 2.5, 2, real=None, grad="finite"),
    case("InplaceSubExt", f(2, 3), f(3), 2, real=None, grad="finite"),
    case("InplaceSubScalar", f(2, 3), 2.5, 2, real=None, grad="finite"),
    case("InplaceMul", f(2, 3), f(3), real=None, grad="finite"),
    case("InplaceMuls", f(2, 3), 2.5, real=None, grad="finite"),
    case("InplaceDiv", f(2, 3), p(3), real=None, grad="finite"),
    case("InplaceDivs", f(2, 3), 2.5, real=None, grad="finite"),
    case("InplaceFloorDivide", f(2, 3), p(3), real=None, grad="none"),
    case("InplaceFloorDivides", f(2, 3), 0.5, real=None, grad="none"),
    case("InplaceRemainderTensorTensor", f(2, 3), p(3), real=None, grad="finite"),
    case("InplaceRemainderTensorScalar", f(2, 3), 0.5, real=None, grad="finite"),
)  # fmt: skip

# every option of operators that the cases above show with one
OPTIONS = (
    # the vendor's gradient of a CPU ignores the masks [2.10 observed]
    case("StridedSlice.masks", f(4, 5, 6), (1, 2, 1), (3, 4, 5), (1, 2, 2), 1, 4, 0, 0, 0,
         real="P.StridedSlice(1, 4)(a, (1, 2, 1), (3, 4, 5), (1, 2, 2))", grad="finite"),
    case("StridedSlice.rest", f(4, 5, 6), (1, 0, 2), (3, 0, 5), (1, 1, 2), 0, 0, 2, 0, 0,
         real="P.StridedSlice(0, 0, 2)(a, (1, 0, 2), (3, 0, 5), (1, 1, 2))", slopes=_OTHER),
    case("StridedSlice.more", f(4, 5), (0, 1, 2), (0, 3, 5), (1, 1, 2), 0, 0, 0, 1, 0,
         real=None, grad="finite"),
    case("StridedSlice.fewer", f(4, 5, 6), (-1, 1, 2), (0, 3, 5), (1, 1, 2), 0, 0, 0, 0, 5,
         real="P.StridedSlice(0, 0, 0, 0, 5)(a, (-1, 1, 2), (0, 3, 5), (1, 1, 2))", grad="finite"),
    case("Gather.batch", f(3, 5, 2), i(5, 3, 4), 1, 1, real="ops.gather(a, b, 1, 1)", grad="none"),
    case("Gather.batches", f(2, 3, 4, 5), i(5, 2, 3, 2), 3, 2, real="ops.gather(a, b, 3, 2)", grad="none"),
    case("Gather.back", f(3, 5, 2), i(5, 3, 4), -2, -1, real="ops.gather(a, b, -2, -1)", grad="none"),
    case("Gather.middle", f(3, 5, 2), i(5, 2, 2), -2, 0, real="ops.gather(a, b, -2)", slopes=_OTHER),
    case("GatherD.first", f(4, 3), -2, i(4, 2, 3), real="P.GatherD()(a, -2, b)", slopes=_OTHER),
    case("GatherNd.rows", f(3, 4), i(3, 2, 1), real="P.GatherNd()(a, b)", slopes=_OTHER),
    case("OneHot.first", i(4, 2, 3), 4, f(), f(), 0, real="P.OneHot(0)(a, 4, b, c)", grad="none"),
    case("OneHot.middle", i(4, 2, 3), 4, f(), f(), 1, real="P.OneHot(1)(a, 4, b, c)", grad="none"),
    case("UnsortedSegmentSum.two", f(2, 3, 4), i(3, 2, 3), 3, real="P.UnsortedSegmentSum()(a, b, 3)", slopes=_OTHER),
    case("SmoothL1Loss.mean", f(2, 3), f(2, 3), 0.5, 1, real="P.SmoothL1Loss(0.5, 'mean')(a, b)", slopes=_OTHER),
    case("SmoothL1Loss.sum", f(2, 3), f(2, 3), 2.0, 0, real="P.SmoothL1Loss(2.0, 'sum')(a, b)", slopes=_OTHER),
    case("BinaryCrossEntropy.none", u(2, 3), u(2, 3), p(2, 3), 2, real="P.BinaryCrossEntropy('none')(a, b, c)",
         slopes=_OTHER, tolerance=5e-6, grad="vendor"),
    case("BinaryCrossEntropy.sum", u(2, 3), u(2, 3), p(2, 3), 0, real="P.BinaryCrossEntropy('sum')(a, b, c)",
         slopes=_OTHER, tolerance=5e-6, grad="vendor"),
    case("BCEWithLogitsLoss.none", f(2, 3), u(2, 3), p(2, 3), p(2, 3), 2,
         real="P.BCEWithLogitsLoss('none')(a, b, c, d)", tolerance=5e-6, grad="vendor", slopes=_OTHER),
    case("BCEWithLogitsLoss.sum", f(2, 3), u(2, 3), p(2, 3), p(2, 3), 0,
         real="P.BCEWithLogitsLoss('sum')(a, b, c, d)", tolerance=5e-6, grad="vendor", slopes=_OTHER),
    case("NLLLoss.sum", f(4, 3), i(3, 4), p(3), 0, 1, real="P.NLLLoss('sum', 1)(a, b, c)", grad="vendor", first=True,
         slopes=_OTHER),
    case("NLLLoss.ignored", f(4, 3), i(3, 4), p(3), 1, 2, real="P.NLLLoss('mean', 2)(a, b, c)", grad="vendor",
         first=True, slopes=_OTHER),
    case("KLDivLoss.none", f(2, 3), u(2, 3), attrs={"reduction": "none"}, real="P.KLDivLoss('none')(a, b)",
         grad="vendor", slopes=_OTHER),
    case("KLDivLoss.batch", f(2, 3), u(2, 3), attrs={"reduction": "batchmean"}, real="P.KLDivLoss('batchmean')(a, b)",
         grad="vendor", slopes=_OTHER),
    case("LpNorm.keep", f(2, 3), attrs={"axis": (0, 1), "keep_dims": True}, real="P.LpNorm((0, 1), 2, True)(a)",
         slopes=_OTHER),
    case("LpNorm.one", f(2, 3), attrs={"axis": 0, "p": 1}, real="P.LpNorm(0, 1)(a)", grad="none"),
    case("LpNorm.three", f(2, 3), attrs={"axis": -1, "p": 3, "epsilon": 2.0}, real="P.LpNorm(-1, 3, False, 2.0)(a)",
         grad="none", tolerance=5e-6),
    case("L2Normalize.small", f(2, 3), attrs={"axis": 0, "epsilon": 2.0}, real="P.L2Normalize(0, 2.0)(a)", grad="none",
         tolerance=1e-5),
    case("TopK.unsorted", f(2, 5), 5, attrs={"sorted": True}, real="P.TopK()(a, 5)", slopes=_OTHER),
    case("Sort.first", f(4, 3), attrs={"axis": 0, "descending": True}, real="P.Sort(0, True)(a)", slopes=_OTHER),
    *(
        case(f"{op}.{'first' if axis == 0 else 'back'}{number}", p(3, 4), axis, exclusive, reverse,
             real=f"P.{op}({exclusive}, {reverse})(a, {axis})", slopes=_OTHER, tolerance=5e-6)
        for op in ("CumSum", "CumProd")
        for number, (axis, exclusive, reverse) in enumerate(
            ((0, False, True), (0, True, False), (-1, True, True), (-2, False, False))
        )
    ),
    *(
        case(f"{op}.{number}", f(2, 3, 4), axis, keep, *more, real=f"P.{op}({keep})(a, {axis})", slopes=_OTHER,
             tolerance=5e-6)
        for op, more in (("ReduceSum", (False,)), ("ReduceMean", ()), ("ReduceMax", ()), ("ReduceMin", ()),
                         ("ReduceProd", ()))
        for number, (axis, keep) in enumerate((((0, -1), True), ((-2,), False), ((1, 2), False)))
    ),
    *(
        case(f"{op}.{number}", f(2, 3, 4), axis, keep, real=f"P.{op}({axis}, {keep})(a)", slopes=_OTHER)
        for op in ("ArgMaxWithValue", "ArgMinWithValue")
        for number, (axis, keep) in enumerate(((0, False), (-2, True), (2, False)))
    ),
    case("ReduceProd.number", f(), (), False, real=None, grad="finite"),
    case("Conv3D.apart", f(1, 2, 2, 2, 2), f(4, 2, 2, 3, 2),
         attrs=_CONV3D | {"pad_mode": "pad", "pad": (3, 3, 3, 3, 3, 3), "dilations": (1, 1, 2, 2, 2)}, real=None,
         grad="finite"),
    case("Argmax.first", f(2, 5), 0, None, real="P.Argmax(0)(a)", grad="none"),
    case("Argmin.first", f(2, 5), -2, None, real="P.Argmin(-2)(a)", grad="none"),
    case("Softmax.middle", f(2, 3, 4), (-2,), real="P.Softmax(-2)(a)", slopes=_OTHER),
    case("LogSoftmax.first", f(2, 3, 4), 0, real="P.LogSoftmax(0)(a)", slopes=_OTHER),
    case("Elu.one", f(4, 4), 1.0, real="P.Elu(1.0)(a)"),
    case("Transpose.two", f(2, 3), (1, 0), real="P.Transpose()(a, (1, 0))", slopes=_OTHER),
    case("Squeeze.all", f(1, 2, 1), (), real="P.Squeeze()(a)", slopes=_OTHER),
    case("ExpandDims.last", f(2, 3), -1, real="P.ExpandDims()(a, -1)", slopes=_OTHER),
    case("Tile.more", f(2, 3), (2, 1, 3), real="P.Tile()(a, (2, 1, 3))", slopes=_OTHER),
    case("BroadcastTo.rest", f(2, 1), (3, -1, 4), real="P.BroadcastTo((3, -1, 4))(a)", slopes=_OTHER),
    case("ReverseV2.two", f(2, 3, 4), (0, -1), real="P.ReverseV2([0, -1])(a)", slopes=_OTHER),
    case("ReverseSequence.rows", f(3, 4), i(3, 4), attrs={"seq_dim": 0, "batch_dim": 1},
         real="P.ReverseSequence(0, 1)(a, b)", slopes=_OTHER),
    case("DepthToSpace.three", f(1, 9, 2, 1), attrs={"block_size": 3}, real="P.DepthToSpace(3)(a)", slopes=_OTHER),
    case("SpaceToDepth.three", f(1, 2, 3, 6), attrs={"block_size": 3}, real="P.SpaceToDepth(3)(a)", slopes=_OTHER),
    case("Concat.first", (f(2, 3), f(1, 3), f(3, 3)), 0, real="ops.cat([a, b, c], 0)", slopes=_OTHER),
    case("Concat.back", (f(2, 3, 1), f(2, 2, 1)), -2, real="ops.cat([a, b], -2)", slopes=_OTHER),
    case("Stack.first", (f(2, 3), f(2, 3), f(2, 3)), attrs={"axis": -3, "num": None}, real="P.Stack(-3)([a, b, c])",
         slopes=_OTHER),
    case("Unstack.back", f(2, 3, 4), attrs={"axis": -2, "num": None}, real="P.Unstack(-2)(a)", slopes=_OTHER),
    case("Split.first", f(6, 2), 0, 3, real="P.Split(0, 3)(a)", slopes=_OTHER),
    case("Triu.below", f(4, 3), -1, real="ops.triu(a, -1)", slopes=_OTHER),
    case("Tril.above", f(4, 3), attrs={"diagonal": 1}, real="ops.tril(a, 1)", slopes=_OTHER),
    case("BiasAdd.wide", f(2, 3, 4, 4, 2), f(3), 2, real=None, grad="finite"),
    case("BiasAdd.last", f(2, 4, 4, 3), f(3), 1, real=None, grad="finite"),
    case("BiasAddGrad.last", f(2, 4, 4, 3), 1, real=None, grad="none"),
    case("Dense.wide", f(2, 5, 3), f(4, 3), None, real="ops.dense(a, b)", slopes=_OTHER),
    case("Dense.bias", f(2, 5, 3), f(4, 3), f(4), real="ops.dense(a, b, c)", slopes=_OTHER),
    case("MatMulExt.row", f(3), f(5, 3, 4), real="ops.matmul(a, b)", slopes=_OTHER),
    case("MatMulExt.dot", f(3), f(3), real="ops.matmul(a, b)", slopes=_OTHER),
    case("MatMulExt.wide", f(2, 1, 2, 3), f(5, 3, 4), real="ops.matmul(a, b)", slopes=_OTHER),
    case("BatchMatMul.tn", f(2, 3, 2), f(2, 3, 4), True, False, real="P.BatchMatMul(True, False)(a, b)", slopes=_OTHER),
    case("BatchMatMul.tt", f(2, 3, 2), f(2, 4, 3), True, True, real="P.BatchMatMul(True, True)(a, b)", slopes=_OTHER),
    case("BatchMatMul.spread", f(2, 1, 2, 3), f(5, 3, 4), False, False, real=None, grad="finite"),
    case("MaxPool.uneven", f(2, 2, 9, 7), attrs=_POOL | {"kernel_size": (1, 1, 3, 2), "strides": (1, 1, 2, 1)},
         real="P.MaxPool((3, 2), (2, 1))(a)", slopes=_OTHER),
    case("AvgPool.uneven", f(2, 2, 9, 7), (3, 2), (2, 1), 1, 0, real="P.AvgPool((3, 2), (2, 1), 'same')(a)",
         slopes=_OTHER),
    case("Conv2D.uneven", f(1, 2, 9, 7), f(4, 2, 3, 2),
         attrs=_CONV | {"kernel_size": (3, 2), "pad_mode": "pad", "pad": (2, 0, 1, 1), "stride": (1, 1, 2, 1)},
         real="P.Conv2D(4, (3, 2), pad_mode='pad', pad=(2, 0, 1, 1), stride=(2, 1))(a, b)", slopes=_OTHER,
         tolerance=5e-6),
    case("AdaptiveAvgPool2D.plain", f(3, 5, 7), attrs={"output_size": (5, 3)}, real="P.AdaptiveAvgPool2D((5, 3))(a)",
         slopes=_OTHER),
    case("BatchNorm.flat", f(6, 3), p(3), f(3), f(3), p(3), True, 1e-3, 0.3, 0,
         real="P.BatchNorm(True, 1e-3, 0.3)(a, b, c, d, e)", first=True, undefined=(1, 2), tolerance=2e-5,
         slopes=_OTHER),
    case("GroupNorm.one", f(2, 4, 3), 1, f(4), f(4), 1e-3, real="G.GroupNorm()(a, 1, b, c, 1e-3)", first=True,
         tolerance=2e-5, slopes=_OTHER),
    case("LayerNorm.flat", f(4, 5), f(5), f(5), 1, 1, 1e-3, real="P.LayerNorm(1, 1, 1e-3)(a, b, c)", first=True,
         tolerance=2e-5, slopes=_OTHER),
    case("RmsNorm.whole", f(3, 4), p(3, 4), 1e-6, real=None, grad="finite", first=True),
    case("PReLU.flat", f(4, 3), f(3), real="P.PReLU()(a, b)", slopes=_OTHER),
    case("GLU.first", f(4, 3), 0, real="P.GLU(0)(a)", slopes=_OTHER),
    case("IsClose.wide", f(2, 3), f(2, 3), 0.5, 0.25, False, real="G.IsClose(0.5, 0.25, False)(a, b)", grad="none"),
    case("IsClose.nan", SPECIAL, SPECIAL, 1e-5, 1e-8, True, real="G.IsClose(1e-5, 1e-8, True)(a, b)", grad="none"),
    case("ClampScalar.low", f(4, 4), -0.5, None, real="ops.clamp(a, -0.5)", slopes=_OTHER),
    case("ClampScalar.high", f(4, 4), None, 0.5, real="ops.clamp(a, None, 0.5)", slopes=_OTHER),
    case("Meshgrid.three", (f(3), f(2), f(4)), 1, real="P.Meshgrid()((a, b, c))", slopes=_OTHER),
    case("SplitWithSize.first", f(7, 2), (1, 4, 2), 0, real="ops.split(a, [1, 4, 2], 0)", slopes=_OTHER),
    case("SumExt.keep", f(2, 3, 4), (0, -1), True, None, real="a.sum((0, -1), keepdims=True)", slopes=_OTHER),
    case("MeanExt.keep", f(2, 3, 4), (0, -1), True, None, real="mint.mean(a, (0, -1), True)", slopes=_OTHER),
    case("ProdExt.axis", p(2, 3), 1, True, None, real="mint.prod(a, 1, True)", slopes=_OTHER),
    case("FlashAttentionScore.dropped", f(2, 2, 3, 4), f(2, 1, 5, 4), f(2, 1, 5, 4), None, b(2, 2, 3, 5),
         *(None,) * 5, 2, 0.8, 0.5, 2147483647, 2147483647, 0, 1, 0, real=None, grad="attention"),
    case("FlashAttentionScore.band", f(2, 4, 8), f(2, 5, 8), f(2, 5, 8), *_FLASH, 2, 1.0, 0.5, 1, 1, 0, 0, 4,
         real=None, grad="attention"),
)  # fmt: skip

CASES = (
    ARITHMETIC
    + MATH
    + COMPARE
    + MATRIX
    + CONV
    + POOL
    + NORM
    + ACTIVATION
    + REDUCE
    + SHAPE
    + INDEX
    + CREATE
    + LOSS
    + COMPOSITE
    + MORE
    + FURTHER
    + PRODUCTS
    + ASCEND
    + GRADIENTS
    + TWINS
    + OPTIONS
)
