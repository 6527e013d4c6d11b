"""Operators that create tensors from a shape, a number or a pattern."""

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType, ScalarType, TensorType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import part
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.rules import (
    constant,
    ints_of,
    is_constant,
    output,
    same_dtype,
    tensor_of,
    tensors_in,
    tuple_of,
    type_of,
    value_of,
)

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer_like(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        return output(x.dtype, x.shape)

    return infer


def _type_of(name: str, abstract: Abstract, default: DType) -> DType:
    if isinstance(abstract, NoneType):
        return default
    kind = value_of(name, abstract, "dtype")
    return kind if isinstance(kind, DType) else default


def _infer_shaped(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        shape = ints_of(name, abstracts[0], "shape")
        if any(n < 0 for n in shape):
            raise ScriptValueError(f"For '{name}', every dimension of 'shape' must be at least 0, but got {shape}.")
        return output(_type_of(name, abstracts[1], dtype("float32")), shape)

    return infer


def _numpy(kind: DType | None) -> Any:
    return np.float32 if kind is None else kind.numpy


def _infer_fill(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return output(tensor_of("FillV2", abstracts[1], "value").dtype, ints_of("FillV2", abstracts[0], "shape"))


def _grad_fill(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return None, b.emit("SumExt", dout, (), False, None)


def _infer_fill_scalar(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    shape, value, kind = abstracts
    default = value.dtype if isinstance(value, ScalarType) else dtype("float32")
    return output(_type_of("FillScalar", kind, default), ints_of("FillScalar", shape, "size"))


def _infer_range(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    bounds = abstracts[:3]
    kind = next((a.dtype for a in bounds if isinstance(a, TensorType | ScalarType)), dtype("int64"))
    if not all(isinstance(a, ScalarType) and is_constant(a) for a in bounds):
        return output(kind, (-1,))
    start, limit, delta = (value_of("Range", a, n) for a, n in zip(bounds, ("start", "limit", "delta"), strict=True))
    if delta == 0:
        raise ScriptValueError("For 'Range', the value of 'delta' must not be 0.")
    if (limit - start) * delta < 0:
        raise ScriptValueError(f"For 'Range', 'delta' {delta} leads away from 'limit': start {start}, limit {limit}.")
    return output(kind, (max(0, ceil((limit - start) / delta)),))


def _range(start: Any, limit: Any, delta: Any, max_length: int = 1000000) -> Array:
    if all(isinstance(n, int) for n in (start, limit, delta)):
        return np.arange(start, limit, delta, dtype=np.int64)
    kind = (
        np.float32
        if all(isinstance(n, int | float) for n in (start, limit, delta))
        else np.result_type(start, limit, delta)
    )
    return np.arange(start, limit, delta, dtype=kind)


def _infer_eye(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    n, m = value_of("Eye", abstracts[0], "n"), value_of("Eye", abstracts[1], "m")
    return output(_type_of("Eye", abstracts[2], dtype("float32")), (n, m))


def _infer_shape(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Shape", abstracts[0], "input")
    return tuple_of(*(ScalarType(dtype=dtype("int64"), value=n if n >= 0 else None) for n in x.shape))


def _infer_line(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    ends = {name: tensor_of("LinSpace", each, name) for each, name in zip(abstracts, ("start", "stop"), strict=False)}
    for name, end in ends.items():
        if end.shape:
            raise ScriptValueError(
                f"For primitive[LinSpace], the rank of '{name}' must be equal to 0, but got {len(end.shape)}."
            )
    count = value_of("LinSpace", abstracts[2], "num")
    if count <= 0:
        raise ScriptValueError(f"For primitive[LinSpace], the num must be greater than 0, but got {count}.")
    return output(same_dtype("LinSpace", ends), (count,))


def _line(start: Any, stop: Any, num: int) -> Array:
    return np.linspace(float(start), float(stop), num).astype(np.asarray(start).dtype)


def _infer_nonzero(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return output("int64", (-1, len(tensor_of("NonZero", abstracts[0], "input").shape)))


_XY = 1  # Meshgrid's operand indexing: xy swaps the axes of the first two outputs


def _infer_grid(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    tensors = tensors_in("Meshgrid", abstracts[0], "inputs")
    sizes = [t.size for t in tensors]
    if value_of("Meshgrid", abstracts[1], "indexing") == _XY and len(sizes) > 1:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    return tuple_of(*(output(t.dtype, sizes) for t in tensors))


def _grid(tensors: Sequence[Array], indexing: int = _XY) -> tuple[Array, ...]:
    return tuple(np.meshgrid(*tensors, indexing="xy" if indexing == _XY else "ij"))


def _grad_grid(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    count = len(out.abstract.items)
    slopes = []
    for i in range(count):
        axis = 1 - i if constant(operands[1]) == _XY and i < 2 and count > 1 else i
        slope = part(b, dout, i)
        others = tuple(a for a in range(count) if a != axis)
        slopes.append(slope if slope is None or not others else b.emit("SumExt", slope, others, False, None))
    return tuple(slopes), None


OPS = (
    OpDef(
        name="ZerosLike",
        operands=("x",),
        infer=_infer_like("ZerosLike"),
        kernel=np.zeros_like,
        prim_func=True,
        stop=True,
    ),
    OpDef(
        name="OnesLike", operands=("x",), infer=_infer_like("OnesLike"), kernel=np.ones_like, prim_func=True, stop=True
    ),
    OpDef(
        name="Zeros",
        operands=("size", "dtype"),
        defaults=(None,),
        infer=_infer_shaped("Zeros"),
        kernel=lambda size, kind=None: np.zeros(size, _numpy(type_of(kind))),
        prim_func=True,
        stop=True,
    ),
    OpDef(
        name="Ones",
        operands=("shape", "dtype"),
        defaults=(None,),
        infer=_infer_shaped("Ones"),
        kernel=lambda shape, kind=None: np.ones(shape, _numpy(kind)),
        prim_func=True,
        stop=True,
    ),
    OpDef(
        name="FillV2",
        operands=("shape", "value"),
        infer=_infer_fill,
        kernel=lambda shape, value: np.full(shape, value, np.asarray(value).dtype),
        grad=_grad_fill,
        input_names=("shape", "value"),
        output_names=("y",),
    ),
    OpDef(
        name="FillScalar",
        operands=("size", "fill_value", "dtype"),
        defaults=(None,),
        infer=_infer_fill_scalar,
        kernel=lambda size, value, kind=None: np.full(size, value, _fill_type(value, kind)),
        prim_func=True,
        composite=True,
        stop=True,
    ),
    OpDef(
        name="Range",
        operands=("start", "limit", "delta", "max_length"),
        defaults=(1000000,),
        infer=_infer_range,
        kernel=_range,
        prim_func=True,
        stop=True,
    ),
    OpDef(
        name="Eye",
        operands=("n", "m", "dtype"),
        defaults=(None,),
        infer=_infer_eye,
        kernel=lambda n, m, kind=None: np.eye(n, m, dtype=_numpy(type_of(kind))),
        prim_func=True,
        stop=True,
    ),
    OpDef(
        name="Shape",
        operands=("input",),
        infer=_infer_shape,
        kernel=lambda x: tuple(int(n) for n in x.shape),
        prim_func=True,
        stop=True,
        engine="host",
    ),
    OpDef(
        name="LinSpace",
        operands=("start", "stop", "num"),
        infer=_infer_line,
        kernel=_line,
        prim_func=True,
        stop=True,
    ),
    OpDef(
        name="NonZero",
        operands=("input",),
        infer=_infer_nonzero,
        kernel=lambda x: np.argwhere(x).astype(np.int64),
        fixed={"output_is_dynamic_shape": True},
        largest=lambda shapes: (prod(shapes[0]), len(shapes[0])),
        prim_func=True,
        stop=True,
    ),
    OpDef(
        name="Meshgrid",
        operands=("inputs", "indexing"),
        defaults=(_XY,),
        infer=_infer_grid,
        kernel=_grid,
        grad=_grad_grid,
        fixed={"dyn_input_sizes": lambda abstracts, out, attrs: (len(abstracts[0].items), -1)},
        prim_func=True,
    ),
)


def _fill_type(value: Any, kind: DType | None) -> Any:
    """Return the number type of a fill: the requested one, else that of the Python number."""
    if kind is not None:
        return kind.numpy
    return np.bool_ if isinstance(value, bool) else np.int64 if isinstance(value, int) else np.float32
