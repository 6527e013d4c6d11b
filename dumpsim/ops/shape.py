"""Operators that change the shape or order of elements."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import shape_of, unbroadcast
from dumpsim.ops.opdef import Grad, GradBuilder, OpDef
from dumpsim.ops.rules import axis_of, constant, ints_of, output, size_of, tensor_of, value_of, vector

__all__ = ["OPS", "resolved_shape"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def resolved_shape(shape: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a Reshape, with a -1 replaced.

    Raises
    ------
    ScriptValueError
        For more than one -1, or a different number of elements.
    """
    if list(wanted).count(-1) > 1:
        raise ScriptValueError(
            f"For primitive[Reshape], at most one component of shape can be -1, but got {vector(wanted)}"
        )
    total, known = size_of(shape), size_of(n for n in wanted if n != -1)
    dynamic = -1 in shape
    result = tuple((-1 if dynamic else total // known if known else 0) if n == -1 else n for n in wanted)
    if not dynamic and size_of(result) != total:
        raise ScriptValueError(
            "For primitive[Reshape], the accumulate of x_shape must be equal to out_shape, but got x_shape: "
            f"{vector(shape)}, and "
            f"out_shape: {vector(result)}"
        )
    return result


def _infer_reshape(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Reshape", abstracts[0], "input")
    return output(x.dtype, resolved_shape(x.shape, ints_of("Reshape", abstracts[1], "shape")))


def _infer_flatten(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Flatten", abstracts[0], "x")
    if not x.shape:
        return output(x.dtype, (1,))
    return output(x.dtype, (x.shape[0], -1 if -1 in x.shape[1:] else size_of(x.shape[1:])))


def _infer_expand(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("ExpandDims", abstracts[0], "input_x")
    axis, rank = value_of("ExpandDims", abstracts[1], "axis"), len(x.shape)
    if not -rank - 1 <= axis <= rank:
        raise ScriptValueError(f"ExpandDimserror: axis value invalid. axis: {axis}, input dims: {rank}")
    place = axis % (rank + 1)
    return output(x.dtype, (*x.shape[:place], 1, *x.shape[place:]))


def _squeezed(shape: Sequence[int], axis: Any) -> tuple[int, ...]:
    if axis is None or axis == ():
        return tuple(n for n in shape if n != 1)
    named = (axis,) if isinstance(axis, int) else axis
    gone = {axis_of("Squeeze", a, len(shape)) for a in named}
    # dimensions other than 1 are retained [2.10 observed]
    return tuple(n for i, n in enumerate(shape) if not (i in gone and n == 1))


def _infer_squeeze(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Squeeze", abstracts[0], "input")
    return output(x.dtype, _squeezed(x.shape, value_of("Squeeze", abstracts[1], "axis")))


def _grad_reshape(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("Reshape", dout, shape_of(operands[0])), *(None for _ in operands[1:])


def _infer_transpose(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Transpose", abstracts[0], "input")
    permutation = ints_of("Transpose", abstracts[1], "input_perm")
    rank = len(x.shape)
    if len(permutation) != rank:
        raise ScriptValueError(
            f"For 'Transpose', size of perm should equal to rank of x, but got {len(permutation)} and {rank}!"
        )
    places = [axis_of("Transpose", p, rank, "perm value") for p in permutation]
    for place in places:
        if places.count(place) > 1:
            raise ScriptValueError(f"For 'Transpose', perms should all be unique dim, but{place} is not unique!")
    return output(x.dtype, (x.shape[p] for p in places))


def _grad_transpose(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    permutation = [p % len(constant(operands[1])) for p in constant(operands[1])]
    return b.emit("Transpose", dout, tuple(permutation.index(i) for i in range(len(permutation)))), None


def _broadcast_shape(shape: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    missing = len(target) - len(shape)
    padded = (1,) * missing + tuple(shape)
    if missing < 0 or any(n not in (1, m) and m != -1 for n, m in zip(padded, target, strict=True)):
        raise ScriptValueError(
            "For 'BroadcastTo', in order to broadcast, each dimension pair must be equal or input dimension is 1 or "
            "target dimension is "
            f"-1. But got x_shape: {vector(shape)}, target shape: {vector(target)}."
        )
    return tuple(n if m == -1 else m for n, m in zip(padded, target, strict=True))


def _infer_broadcast(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("BroadcastTo", abstracts[0], "input")
    return output(x.dtype, _broadcast_shape(x.shape, ints_of("BroadcastTo", abstracts[1], "shape")))


def _grad_broadcast(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The sum keeps its axes and is reshaped, unlike that of a broadcast of two operands. [2.10 observed]"""
    shape, full = shape_of(operands[0]), shape_of(out)
    if shape == full:
        return dout, None
    padded = (1,) * (len(full) - len(shape)) + shape
    dx = unbroadcast(b, dout, padded, full)
    return b.emit("Reshape", dx, shape) if padded != shape else dx, None


def _infer_tile(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Tile", abstracts[0], "input")
    multiples = ints_of("Tile", abstracts[1], "dims")
    for at, number in enumerate(multiples):
        if number < 0:
            raise ScriptValueError(
                f"For 'Tile', 'dims' cannot contain negative integer numbers, but got {number} in {at}th."
            )
    rank = max(len(x.shape), len(multiples))
    padded = (1,) * (rank - len(x.shape)) + x.shape
    counts = (1,) * (rank - len(multiples)) + multiples
    return output(x.dtype, (-1 if n == -1 else n * m for n, m in zip(padded, counts, strict=True)))


def _grad_tile(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    shape, multiples = shape_of(operands[0]), tuple(constant(operands[1]))
    rank = max(len(shape), len(multiples))
    padded = (1,) * (rank - len(shape)) + shape
    counts = (1,) * (rank - len(multiples)) + multiples
    pieces = tuple(n for pair in zip(counts, padded, strict=True) for n in pair)
    dx = b.emit("SumExt", b.emit("Reshape", dout, pieces), tuple(range(0, 2 * rank, 2)), False, None)
    return b.emit("Reshape", dx, shape) if shape_of(dx) != shape else dx, None


def _infer_reverse(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("ReverseV2", abstracts[0], "x")
    axes = [axis_of("ReverseV2", axis, len(x.shape)) for axis in ints_of("ReverseV2", abstracts[1], "axis")]
    for axis in axes:
        if axes.count(axis) > 1:
            raise ScriptValueError(f"For ReverseV2, 'axis' cannot contain duplicate dimensions, but got {axis}")
    return output(x.dtype, x.shape)


def _grad_reverse(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("ReverseV2", dout, constant(operands[1])), None


def _infer_tri(name: str) -> Any:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        if len(x.shape) < 2:
            raise ScriptValueError(f"For '{name}', the rank of the input must be at least 2, but got {len(x.shape)}.")
        return output(x.dtype, x.shape)

    return infer


def _grad_triu(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("Triu", dout, constant(operands[1])), None


def _grad_tril(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("Tril", dout, **attrs),)


def _infer_diagonal(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Diag", abstracts[0], "input")
    if not x.shape:
        raise ScriptValueError("For primitive[Diag], the input rank must be greater than or equal to 1, but got 0.")
    return output(x.dtype, (*x.shape, *x.shape))


def _diagonal(x: Array) -> Array:
    return np.diag(x.ravel()).reshape(*x.shape, *x.shape)


def _grad_diagonal(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("DiagPart", dout),)


def _infer_diagonal_part(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("DiagPart", abstracts[0], "input_x")
    half = len(x.shape) // 2
    if len(x.shape) % 2 or x.shape[:half] != x.shape[half:]:
        raise ScriptValueError(f"For 'DiagPart', both halves of the shape {vector(x.shape)} must be equal.")
    return output(x.dtype, x.shape[:half])


def _diagonal_part(x: Array) -> Any:
    shape = x.shape[: x.ndim // 2]
    return x.reshape(size_of(shape), -1).diagonal().reshape(shape)


def _grad_diagonal_part(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("Diag", dout),)


def _view(
    name: str,
    operands: tuple[str, ...],
    infer: Any,
    kernel: Any,
    defaults: tuple[Any, ...] = (),
    grad: Grad = _grad_reshape,
) -> OpDef:
    """Return an operator without a kernel on the device: its output is the operand's memory. [spec observed 1.2]"""
    return OpDef(
        name=name,
        operands=operands,
        defaults=defaults,
        infer=infer,
        kernel=kernel,
        grad=grad,
        prim_func=True,
        alias={0: 0},
        view=True,
    )


OPS = (
    _view("Reshape", ("input", "shape"), _infer_reshape, lambda x, shape: x.reshape(tuple(shape))),
    _view("Flatten", ("x",), _infer_flatten, lambda x: x.reshape((*x.shape[:1], -1))),
    _view("ExpandDims", ("input_x", "axis"), _infer_expand, lambda x, axis: np.expand_dims(x, axis)),
    _view("Squeeze", ("input", "axis"), _infer_squeeze, lambda x, axis=(): x.reshape(_squeezed(x.shape, axis)), ((),)),
    OpDef(
        name="Transpose",
        operands=("input", "input_perm"),
        infer=_infer_transpose,
        kernel=lambda x, permutation: np.ascontiguousarray(x.transpose(permutation)),
        grad=_grad_transpose,
        prim_func=True,
    ),
    OpDef(
        name="BroadcastTo",
        operands=("input", "shape"),
        infer=_infer_broadcast,
        kernel=lambda x, shape: np.broadcast_to(x, _broadcast_shape(x.shape, shape)),
        grad=_grad_broadcast,
        prim_func=True,
    ),
    OpDef(name="Tile", operands=("input", "dims"), infer=_infer_tile, kernel=np.tile, grad=_grad_tile, prim_func=True),
    OpDef(
        name="ReverseV2",
        operands=("x", "axis"),
        infer=_infer_reverse,
        kernel=lambda x, axis: np.flip(x, axis),
        grad=_grad_reverse,
        prim_func=True,
    ),
    OpDef(
        name="Triu",
        operands=("input", "diagonal"),
        defaults=(0,),
        infer=_infer_tri("Triu"),
        kernel=np.triu,
        grad=_grad_triu,
        prim_func=True,
    ),
    OpDef(
        name="Tril",
        operands=("x",),
        infer=_infer_tri("Tril"),
        kernel=lambda x, *, diagonal=0: np.tril(x, diagonal),
        grad=_grad_tril,
        attrs={"diagonal": 0},
        input_names=["x"],
        output_names=["y"],
    ),
    OpDef(
        name="Diag",
        operands=("input",),
        infer=_infer_diagonal,
        kernel=_diagonal,
        grad=_grad_diagonal,
        prim_func=True,
    ),
    OpDef(
        name="DiagPart",
        operands=("input_x",),
        infer=_infer_diagonal_part,
        kernel=_diagonal_part,
        grad=_grad_diagonal_part,
    ),
)
