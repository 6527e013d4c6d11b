"""Concatenating, stacking and splitting tensors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.ops.gradient import part_or_zeros
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import axis_of, constant, output, same_dtype, tensor_of, tensors_in, tuple_of, value_of, vector

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _symbols(operand: Any) -> tuple[TensorType, ...]:
    """Return the types of a tuple operand, which is a Python tuple or one symbol."""
    if isinstance(operand, tuple | list):
        return tuple(item.abstract for item in operand)
    return tuple(operand.abstract.items)


def _infer_concat(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    tensors = tensors_in("Concat", abstracts[0], "tensors")
    first = tensors[0]
    axis = axis_of("Concat", value_of("Concat", abstracts[1], "axis"), len(first.shape))
    kind = same_dtype("Concat", {f"tensors[{i}]": t for i, t in enumerate(tensors)})
    for tensor in tensors[1:]:
        if len(tensor.shape) != len(first.shape):
            raise ScriptValueError(
                f"For primitive[Concat], the rank of the tensors must be equal, but got {len(first.shape)} and "
                f"{len(tensor.shape)}."
            )
        for i, (n, m) in enumerate(zip(first.shape, tensor.shape, strict=True)):
            if i != axis and n != m:
                shapes = ", ".join(vector(t.shape) for t in tensors)
                raise ScriptValueError(
                    f"For primitive[Concat], shapes of tensors must match except in given concat axis {axis}, but got "
                    f"mismatch in {i}"
                    f"(all input shapes are [const vector]{{{shapes}}})!"
                )
    length = sum(t.shape[axis] for t in tensors)
    return output(kind, (*first.shape[:axis], length, *first.shape[axis + 1 :]))


def _grad_concat(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    tensors, axis = _symbols(operands[0]), constant(operands[1])
    sizes = tuple(t.shape[axis] for t in tensors)
    pieces = b.emit("SplitWithSize", dout, sizes, axis)
    return tuple(b.item(pieces, i) for i in range(len(sizes))), None


def _infer_split(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Split", abstracts[0], "input_x")
    axis = axis_of("Split", value_of("Split", abstracts[1], "axis"), len(x.shape))
    count = value_of("Split", abstracts[2], "output_num")
    if count < 1 or x.shape[axis] % count:
        raise ScriptValueError(
            f"For 'Split', x_shape[{axis}] must be divisible by output_num = {count}, but got {x.shape[axis]}"
        )
    piece = output(x.dtype, (*x.shape[:axis], x.shape[axis] // count, *x.shape[axis + 1 :]))
    return tuple_of(*(piece,) * count)


def _grad_split(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    parts = tuple(part_or_zeros(b, dout, i, out) for i in range(len(out.abstract.items)))
    return b.emit("Concat", parts, constant(operands[1])), None, None


def _split_sizes(abstracts: Sequence[Abstract], out: Any, attrs: Attrs) -> Any:
    x = tensor_of("Split", abstracts[0], "input_x")
    count = value_of("Split", abstracts[2], "output_num")
    axis = axis_of("Split", value_of("Split", abstracts[1], "axis"), len(x.shape))
    return (x.shape[axis] // count,) * count


def _infer_stack(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    tensors = tensors_in("Stack", abstracts[0], "x")
    first = tensors[0]
    kind = same_dtype("Stack", {f"x[{i}]": t for i, t in enumerate(tensors)})
    for i, tensor in enumerate(tensors):
        if tensor.shape != first.shape:
            raise ScriptValueError(f"For Stack element {i} shapein input can not pack with first element")
    axis = axis_of("Stack", attrs["axis"], len(first.shape), "Stack axis", extra=1, is_closed=True)
    return output(kind, (*first.shape[:axis], len(tensors), *first.shape[axis:]))


def _grad_stack(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    count = len(_symbols(operands[0]))
    pieces = b.emit("Unstack", dout, num=count, axis=attrs["axis"])
    return (tuple(b.item(pieces, i) for i in range(count)),)


def _count(abstracts: Sequence[Abstract], out: Any, attrs: Attrs) -> int:
    return len(tensors_in("Stack", abstracts[0], "x"))


def _infer_unstack(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Unstack", abstracts[0], "x")
    axis = axis_of("Unstack", attrs["axis"], len(x.shape), "axis")
    if x.shape[axis] == -1:
        raise UnsupportedError("an axis whose extent only the run knows", where="Unstack")
    if attrs["num"] not in (None, x.shape[axis]):
        raise ScriptValueError(
            f"For 'Unstack', 'num' must be the size {x.shape[axis]} of axis {axis}, but got {attrs['num']}."
        )
    piece = output(x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))
    return tuple_of(*(piece,) * x.shape[axis])


def _unstack(x: Array, *, axis: int = 0, num: int | None = None) -> tuple[Array, ...]:
    return tuple(np.moveaxis(x, axis, 0))


def _grad_unstack(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    parts = tuple(part_or_zeros(b, dout, i, out) for i in range(len(out.abstract.items)))
    return (b.emit("Stack", parts, num=len(parts), axis=attrs["axis"]),)


OPS = (
    OpDef(
        name="Concat",
        operands=("tensors", "axis"),
        defaults=(0,),
        infer=_infer_concat,
        kernel=lambda tensors, axis=0: np.concatenate(tensors, axis),
        grad=_grad_concat,
        fixed={"dyn_input_sizes": lambda abstracts, out, attrs: (len(abstracts[0].items), -1)},
        prim_func=True,
    ),
    OpDef(
        name="Split",
        operands=("input_x", "axis", "output_num"),
        defaults=(0, 1),
        infer=_infer_split,
        kernel=lambda x, axis=0, count=1: tuple(np.split(x, count, axis)),
        grad=_grad_split,
        fixed={"size_splits": _split_sizes},
        prim_func=True,
    ),
    OpDef(
        name="Stack",
        operands=("x",),
        infer=_infer_stack,
        kernel=lambda tensors, *, axis=0, num=None: np.stack(tensors, axis),
        grad=_grad_stack,
        attrs={"num": None, "axis": 0},
        fixed={"num": _count, "N": _count, "dyn_input_sizes": lambda abstracts, out, attrs: (len(abstracts[0].items),)},
        input_names=["x"],
        output_names=["y"],
    ),
    OpDef(
        name="Unstack",
        operands=("x",),
        infer=_infer_unstack,
        kernel=_unstack,
        grad=_grad_unstack,
        attrs={"num": None, "axis": 0},
        fixed={"num": lambda abstracts, out, attrs: len(out.items)},
        input_names=["x"],
        output_names=["y"],
    ),
)
