"""Operators on NaN, infinities, zeros and large numbers: what is computed, in whichever MindSpore it is run.

``python special.py FILE`` in an environment with MindSpore 2.10 records what its CPU kernels give;
``dumpsim run --mindspore 2.10 --device cpu special.py FILE`` writes what ours give.
"""

import base64
import json
import lzma
import sys

import numpy as np

NAN, INF = np.nan, np.inf
NUMBERS = [
    NAN,
    INF,
    -INF,
    0.0,
    -0.0,
    1,
    -1,
    0.5,
    -0.5,
    2,
    -2,
    3.5,
    -3.5,
    1e-30,
    -1e-30,
    1e30,
    -1e30,
    88,
    -88,
    100,
    -104,
]
ROWS = {
    "nan first": [NAN, 1, 2, 3],
    "nan inside": [1, NAN, 2, 3],
    "nan last": [1, 2, 3, NAN],
    "two nan": [3, NAN, 1, NAN, 5],
    "all nan": [NAN] * 4,
    "infinities": [INF, 1, -INF, 2],
    "two infinities": [1, INF, INF, 2],
    "all -infinity": [-INF] * 4,
    "far apart": [0, 100, -100, 200],
    "zeros": [0.0, -0.0, 0.0, -0.0],
    "equal": [2, 2, 1, 1],
}
INTEGERS = [0, 1, 2, 3, 5, 7, 100]
FLOATS = ("float16", "float32", "float64")
WHOLE = ("int8", "int16", "int32", "int64", "uint8")
UNARY = (
    "Abs Neg Exp Log Sqrt Rsqrt Square Reciprocal Inv Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf "
    "ReLU ReLU6 Sigmoid Softsign GeLU FastGeLU SeLU Mish HSigmoid HSwish Floor Ceil Round Rint Sign IsNan IsInf "
    "IsFinite HShrink SoftShrink Softplus NanToNum LogSoftmax Softmax Trunc L2Loss LogicalNot"
)
BINARY = (
    "Add Sub Mul Div RealDiv DivNoNan FloorDiv Mod FloorMod Pow Maximum Minimum Atan2 SquaredDifference Xdivy Xlogy "
    "TruncateDiv TruncateMod Equal NotEqual Less LessEqual Greater GreaterEqual MulNoNan Heaviside ApproximateEqual "
    "SmoothL1Loss LogicalAnd LogicalOr LogicalXor"
)
SLOPES = "ReluGrad TanhGrad EluGrad HSwishGrad ReLU6Grad HSigmoidGrad HShrinkGrad SoftShrinkGrad"
OF_INTEGERS = "Add Sub Mul Div RealDiv FloorDiv Mod FloorMod Maximum Minimum TruncateDiv TruncateMod Less Equal"


def cases():
    """Pairs of a name, ``<operator> <what> <number type>``, and a function that computes it."""
    import mindspore
    from mindspore import Tensor, ops
    from mindspore.ops import operations as P  # noqa: N812
    from mindspore.ops.operations import _grad_ops as G  # noqa: N812

    def tensor(values, kind):
        with np.errstate(all="ignore"):
            return Tensor(np.array(values).astype(kind))

    first, second = (part.ravel() for part in np.meshgrid(NUMBERS, NUMBERS))
    for kind in FLOATS:
        a, b, one = tensor(first, kind), tensor(second, kind), tensor(NUMBERS, kind)
        for name in UNARY.split():
            yield f"{name} numbers {kind}", lambda name=name, one=one: getattr(P, name)()(one)
        for name in BINARY.split():
            yield f"{name} pairs {kind}", lambda name=name, a=a, b=b: getattr(P, name)()(a, b)
        for name in SLOPES.split():
            yield f"{name} pairs {kind}", lambda name=name, a=a, b=b: getattr(G, name)()(a, b)
        yield f"LeakyReLU numbers {kind}", lambda one=one: ops.leaky_relu(one, 0.1)
        yield f"Elu numbers {kind}", lambda one=one: ops.elu(one)
        yield f"LogSigmoid numbers {kind}", lambda one=one: ops.logsigmoid(one)
        yield f"Threshold numbers {kind}", lambda one=one: ops.threshold(one, 0.1, 20.0)
        yield f"Hardtanh numbers {kind}", lambda one=one: ops.hardtanh(one)
        yield f"ClampScalar numbers {kind}", lambda one=one: ops.clamp(one, 0.5, 2.0)
        yield f"clip_by_value numbers {kind}", lambda one=one: ops.clip_by_value(one, 0.5, 2.0)
        yield f"Lerp pairs {kind}", lambda a=a, b=b: ops.lerp(a, b, 0.5)
        yield f"AddN pairs {kind}", lambda a=a, b=b: ops.addn([a, b])
        for to in ("int8", "uint8", "int16", "int32", "int64", "bool", *FLOATS):
            yield (
                f"Cast {to} {kind}",
                lambda one=one, to=to: P.Cast()(one, getattr(mindspore, f"{to}_" if to == "bool" else to)),
            )
        for what, row in ROWS.items():
            x = tensor([row, row[::-1]], kind)
            plane = tensor([[[row, row[::-1], row]]], kind)
            for name in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"):
                for axis in (1, 0, ()):
                    yield (
                        f"{name} {what}, axis {axis} {kind}",
                        lambda name=name, x=x, axis=axis: getattr(P, name)()(x, axis),
                    )
            for name in ("Argmax", "Argmin", "ArgMaxWithValue", "ArgMinWithValue", "Softmax", "LogSoftmax"):
                for axis in (-1, 0):
                    yield (
                        f"{name} {what}, axis {axis} {kind}",
                        lambda name=name, x=x, axis=axis: getattr(P, name)(axis)(x),
                    )
            for name in ("CumSum", "CumProd"):
                yield f"{name} {what} {kind}", lambda name=name, x=x: getattr(P, name)()(x, 1)
            yield f"Sort {what} {kind}", lambda x=x: P.Sort()(x)
            yield f"Sort down {what} {kind}", lambda x=x: P.Sort(-1, True)(x)
            yield f"L2Normalize {what} {kind}", lambda x=x: P.L2Normalize(1)(x)
            yield f"MatMul {what} {kind}", lambda x=x: P.MatMul(transpose_b=True)(x, x)
            yield f"MatMul of zeros {what} {kind}", lambda x=x: P.MatMul(transpose_b=True)(x, ops.zeros_like(x))
            yield f"Select {what} {kind}", lambda x=x: ops.where(x > 1, x, 0 * x)
            yield f"MaskedFill {what} {kind}", lambda x=x, kind=kind: P.MaskedFill()(x, x > 1, tensor(7, kind))
            yield f"MaxPool 1 {what} {kind}", lambda plane=plane: P.MaxPool((1, 2), 1)(plane)
            yield f"MaxPool 2 {what} {kind}", lambda plane=plane: P.MaxPool(2, 1)(plane)
            yield f"MaxPool same {what} {kind}", lambda plane=plane: P.MaxPool(3, 2, "same")(plane)
            yield f"AvgPool {what} {kind}", lambda plane=plane: P.AvgPool(2, 1)(plane)
            for how, pool in (("1", P.MaxPool((1, 2), 1)), ("2", P.MaxPool(2, 1))):
                slope = mindspore.grad(lambda one, pool=pool: pool(one).sum())
                yield f"MaxPoolGrad {how} {what} {kind}", lambda plane=plane, slope=slope: slope(plane)
            labels = tensor([0, 1], "int32")
            for at in (0, 1):
                yield (
                    f"SparseSoftmaxCrossEntropyWithLogits {what}, row {at} {kind}",
                    lambda x=x, at=at, labels=labels: P.SparseSoftmaxCrossEntropyWithLogits()(
                        x[at : at + 1], labels[:1]
                    ),
                )
            yield (
                f"SparseSoftmaxCrossEntropyWithLogits gradient {what} {kind}",
                lambda x=x, labels=labels: P.SparseSoftmaxCrossEntropyWithLogits(is_grad=True)(x, labels),
            )
            chosen = tensor(np.eye(len(row))[:2], kind)
            yield (
                f"SoftmaxCrossEntropyWithLogits {what} {kind}",
                lambda x=x, chosen=chosen: P.SoftmaxCrossEntropyWithLogits()(x, chosen),
            )
            segments = tensor([0, 0, 1, 1, 1][: len(row)], "int32")
            for name in ("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentSum"):
                yield (
                    f"{name} {what} {kind}",
                    lambda name=name, x=x, segments=segments: getattr(P, name)()(x[0], segments, 2),
                )
            places = tensor([[0], [0], [1], [1], [1]][: len(row)], "int32")
            for name in ("TensorScatterMax", "TensorScatterMin", "TensorScatterAdd"):
                yield (
                    f"{name} {what} {kind}",
                    lambda name=name, x=x, places=places: getattr(P, name)()(x[1], places, x[0]),
                )
    generator = np.random.default_rng(1)
    for count in (1, 2, 3, 4, 7, 8, 15, 30, 61, 200):
        for kind in ("float16", "float32", "int32"):
            numbers = generator.integers(0, 2 + count // 3, (3, count)).astype(kind)
            if kind != "int32":
                numbers[1][generator.random(count) < 0.2] = NAN
            x = Tensor(numbers)
            for k in sorted({1, (count + 3) // 4, (count + 1) // 2, count}):
                yield f"TopK {k} of {count} {kind}", lambda x=x, k=k: P.TopK()(x, k)
                yield f"TopK {k} of {count}, not sorted {kind}", lambda x=x, k=k: P.TopK(sorted=False)(x, k)
            yield f"Sort {count} {kind}", lambda x=x: P.Sort()(x)
            yield f"Sort down {count} {kind}", lambda x=x: P.Sort(-1, True)(x)
    for kind in WHOLE:
        low = (
            [-1, -2, -3, -7, np.iinfo(kind).min, np.iinfo(kind).max, np.iinfo(kind).min + 1]
            if kind != "uint8"
            else [255, 254]
        )
        left, right = (part.ravel() for part in np.meshgrid(INTEGERS + low, INTEGERS + low))
        for name in OF_INTEGERS.split():
            keep = np.full(left.shape, True)
            if name in ("RealDiv", "Div", "FloorDiv", "Mod", "FloorMod", "TruncateDiv", "TruncateMod"):
                keep &= ~((left == np.iinfo(kind).min) & (right == -1))  # stops the process
            if name in ("FloorDiv", "Mod", "FloorMod", "TruncateDiv", "TruncateMod"):
                keep &= right != 0  # an error
            a, b = tensor(left[keep], kind), tensor(right[keep], kind)
            yield f"{name} pairs {kind}", lambda name=name, a=a, b=b: getattr(P, name)()(a, b)
        one = tensor([INTEGERS + low, (INTEGERS + low)[::-1]], kind)
        for name in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"):
            for axis in (1, 0, ()):
                yield (
                    f"{name} integers, axis {axis} {kind}",
                    lambda name=name, one=one, axis=axis: getattr(P, name)()(one, axis),
                )


def compute():
    """What each case gives: lists of arrays; cases that are refused are left out."""
    from mindspore import context

    context.set_context(mode=context.PYNATIVE_MODE)
    found = {}
    for name, run in cases():
        try:
            result = run()
            results = result if isinstance(result, tuple | list) else (result,)
            found[name] = [one.asnumpy() for one in results]
        except (TypeError, ValueError, RuntimeError, AttributeError):
            continue
    return found


def write(path, found):
    coded = {
        name: [[str(one.dtype), list(one.shape), base64.b64encode(one.tobytes()).decode()] for one in results]
        for name, results in found.items()
    }
    with lzma.open(path, "wt", encoding="utf-8", preset=9) as file:
        json.dump(coded, file, separators=(",", ":"))


def read(path):
    with lzma.open(path, "rt", encoding="utf-8") as file:
        coded = json.load(file)
    return {
        name: [np.frombuffer(base64.b64decode(text), kind).reshape(shape) for kind, shape, text in results]
        for name, results in coded.items()
    }


if __name__ == "__main__":
    write(sys.argv[1], compute())
