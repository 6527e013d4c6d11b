"""Views of `mint`: different strides over the same elements.

A graph on a CPU runs each view as a kernel of its own, with its settings as operands. [observed 2.10] The operators of
their gradients have not been recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptRuntimeError, ScriptValueError
from dumpsim.ops.gradient import part_or_zeros, shape_of
from dumpsim.ops.opdef import Grad, GradBuilder, OpDef
from dumpsim.ops.rules import axis_of, constant, output, tensor_of, tuple_of, value_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]
Kernel = Callable[..., Any]

_PROBES = (997, 1009)
# views that need the extent of the axis ``dim``: what they raise [observed 2.10, without the text of UnstackExtView]
_NEED_EXTENT = MappingProxyType(
    {
        "ChunkView": (
            ScriptRuntimeError,
            "For ChunkView, the dimension corresponds to the specified 'dims' is dynamic, which is not supported now.",
        ),
        "SplitTensorView": (ScriptValueError, "Unsupported dynamic shape for graph mode."),
        "UnstackExtView": (ScriptRuntimeError, "For UnstackExtView, the extent of 'dim' must be known."),
    }
)


def _common(arrays: Sequence[Array]) -> tuple[int, ...]:
    """The shape of arrays whose extents differ where they are open."""
    return tuple(n if n == m else -1 for n, m in zip(*(array.shape for array in arrays), strict=True))


def _view(name: str, settings: tuple[str, ...], kernel: Kernel, grad: Grad, defaults: tuple[Any, ...] = ()) -> OpDef:
    """Return a view; its shape is inferred by applying the kernel to broadcast arrays, which need no memory.

    What differs between two arrays with different extents in place of open ones is open.
    """

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        named = [value_of(name, abstract, each) for abstract, each in zip(abstracts[1:], settings, strict=True)]
        for each, value in zip(settings, named, strict=True):
            if each.startswith("dim"):
                axis_of(name, value, len(x.shape), each, extra=int(name == "ExpandDimsView"))
            if each == "dim" and name in _NEED_EXTENT and x.shape[value] == -1:
                kind, text = _NEED_EXTENT[name]
                raise kind(text)
        tried = [tuple(probe if n == -1 else n for n in x.shape) for probe in _PROBES]
        results = [kernel(np.broadcast_to(np.zeros((), np.bool_), shape), *named) for shape in tried]
        if isinstance(results[0], tuple):
            return tuple_of(*(output(x.dtype, _common(pair)) for pair in zip(*results, strict=True)))
        return output(x.dtype, _common(results))

    return OpDef(
        name=name,
        operands=("input", *settings),
        defaults=defaults,
        infer=infer,
        kernel=kernel,
        grad=grad,
        prim_func=True,
    )


def _pieces(x: Array, size: int, dim: int) -> tuple[Array, ...]:
    return tuple(np.split(x, range(size, x.shape[dim], size), dim))


def _chunks(x: Array, chunks: int, dim: int) -> tuple[Array, ...]:
    return _pieces(x, -(-x.shape[dim] // chunks), dim)


def _narrowed(x: Array, dim: int, start: int, length: int) -> Array:
    return np.moveaxis(np.moveaxis(x, dim, 0)[start : start + length], 0, dim)


def _nothing(operands: Sequence[Any]) -> tuple[None, ...]:
    return (None,) * (len(operands) - 1)


def _grad_transpose(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    rank = len(shape_of(operands[0]))
    order = [axis % rank for axis in constant(operands[1])]
    return b.emit("Transpose", dout, tuple(order.index(axis) for axis in range(rank))), None


def _grad_swap(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("TransposeExtView", dout, constant(operands[1]), constant(operands[2])), None, None


def _grad_reshape(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("Reshape", dout, shape_of(operands[0])), None


def _grad_narrow(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return _put_back(b, operands, dout, constant(operands[2])), *_nothing(operands)


def _grad_select(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    dim = constant(operands[1])
    return _put_back(b, operands, b.emit("ExpandDims", dout, dim), constant(operands[2])), *_nothing(operands)


def _put_back(b: GradBuilder, operands: Sequence[Any], dout: Any, start: int) -> Any:
    """Return the gradient of one range along an axis, with zeros elsewhere."""
    x, shape = operands[0], shape_of(operands[0])
    axis = constant(operands[1]) % len(shape)
    begin = tuple(start % shape[axis] if at == axis else 0 for at in range(len(shape)))
    return b.emit("SliceGrad", dout, x, begin, shape_of(dout))


def _grad_pieces(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("Concat", _parts(b, out, dout), constant(operands[2])), None, None


def _grad_unstack(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    parts = _parts(b, out, dout)
    return b.emit("Stack", parts, num=len(parts), axis=constant(operands[1])), None


def _parts(b: GradBuilder, out: Any, dout: Any) -> tuple[Any, ...]:
    items: Sequence[TensorType] = out.abstract.items
    return tuple(part_or_zeros(b, dout, at, out) for at in range(len(items)))


OPS = (
    _view("TransposeView", ("input_perm",), lambda x, order: np.transpose(x, order), _grad_transpose),
    _view("TransposeExtView", ("dim0", "dim1"), np.swapaxes, _grad_swap),
    _view("ExpandDimsView", ("dim",), np.expand_dims, _grad_reshape),
    _view("NarrowView", ("dim", "start", "length"), _narrowed, _grad_narrow),
    _view("SelectExtView", ("dim", "index"), lambda x, dim, at: np.moveaxis(x, dim, 0)[at], _grad_select),
    _view("SplitTensorView", ("split_size", "dim"), _pieces, _grad_pieces, (0,)),
    _view("ChunkView", ("chunks", "dim"), _chunks, _grad_pieces, (0,)),
    _view("UnstackExtView", ("dim",), lambda x, dim=0: tuple(np.moveaxis(x, dim, 0)), _grad_unstack, (0,)),
)
