"""Scatter operators, which write to a Parameter or a copy of a tensor, and extremes of segments."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.ops.bounds import Bounds, legal_vectors, rows, vectors
from dumpsim.ops.gradient import shape_of
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import output, same_dtype, tensor_of, value_of, vector

__all__ = ["OPS", "infer_copy"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]
Change = Callable[[Array, Any, Array], None]


def _divide_at(target: Array, places: Any, values: Array) -> None:
    """Divide one after the other; integers round towards zero."""
    if target.dtype.kind == "f":
        np.divide.at(target, places, values)
        return
    index = places[0] if len(places) == 1 else np.ravel_multi_index(places, target.shape[: len(places)])
    rows = target.reshape(-1, *target.shape[len(places) :])
    for place, value in zip(index.reshape(-1), values.reshape(-1, *rows.shape[1:]), strict=True):
        rows[place] = np.trunc(rows[place] / value).astype(target.dtype)


def _put(target: Array, places: Any, values: Array) -> None:
    target[places] = values


_CHANGES: Mapping[str, Change] = {
    "Update": _put,
    "Add": np.add.at,
    "Sub": np.subtract.at,
    "Mul": np.multiply.at,
    "Div": _divide_at,
    "Max": np.maximum.at,
    "Min": np.minimum.at,
}


def _checked(op: str, abstracts: Sequence[Abstract], names: Sequence[str]) -> tuple[TensorType, TensorType, TensorType]:
    x, index, updates = (tensor_of(op, a, name) for a, name in zip(abstracts, names, strict=True))
    if index.dtype.name not in ("int32", "int64"):
        raise ScriptTypeError(
            f"For primitive[{op}], the input argument[{names[1]}] must be a type of "
            f"{{Tensor[Int32], Tensor[Int64]}}, but got Tensor[{index.dtype.title}]."
        )
    same_dtype(op, {names[0]: x, names[2]: updates})
    return x, index, updates


def _infer_rows(op: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, index, updates = _checked(op, abstracts, ("input_x", "indices", "updates"))
        if updates.shape != (*index.shape, *x.shape[1:]):
            quoted = f"'{op}'" if op == "ScatterSub" else op
            raise ScriptValueError(
                f"For {quoted}, updates_shape = indices_shape + input_x_shape[1:], but got input_x_shape: "
                f"{_extents(x)}, indices_shape: {_extents(index)}, updates_shape: {_extents(updates)}."
            )
        return abstracts[0]

    return infer


def _extents(tensor: TensorType) -> str:
    return f"({', '.join(map(str, tensor.shape))})"


def _infer_nd(op: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, index, updates = _checked(op, abstracts, ("input_x", "indices", "updates"))
        rank, rows = len(index.shape), len(index.shape) - 1
        what = f"For primitive[{op}], the"
        for name, number, least in (("indices", rank, 2), ("updates", len(updates.shape), 1)):
            if number < least:
                raise ScriptValueError(
                    f"{what} dimension of '{name}' must be greater than or equal to {least} , but got {number}."
                )
        depth = index.shape[-1]
        if depth > len(x.shape):
            raise ScriptValueError(
                f"{what} the value of last dimension of 'indices' must be less than or equal to the dimension of "
                f"'input_x' which is {len(x.shape)} , but got {depth}."
            )
        if len(updates.shape) != rows + len(x.shape) - depth:
            raise ScriptValueError(
                f"{what} len(updates.shape)' must be equal to len(indices.shape) - 1 + len(input_x.shape) - "
                f"indices.shape[-1] which is {rows + len(x.shape) - depth} , but got {len(updates.shape)}."
            )
        for at in range(rows):
            if index.shape[at] != updates.shape[at]:
                raise ScriptValueError(
                    f"{what} {at}th dimension of indices must be equal to {at}th dimension of updates which is "
                    f"{updates.shape[at]} , but got {index.shape[at]}."
                )
        for at in range(rows, len(updates.shape)):
            own = at - rows + depth
            if updates.shape[at] != x.shape[own]:
                raise ScriptValueError(
                    f"{what} {at}th dimension of updates must be equal to {own}th dimension of "
                    f"input_x.shape[indices.shape[-1]:] which is {x.shape[own]} , but got {updates.shape[at]}."
                )
        return abstracts[0]

    return infer


def infer_copy(op: str, indices: str = "indices") -> Infer:
    """Return the rule of an operator that changes a copy; `indices` is what the vendor's error of a type names."""

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, index, updates = _checked(op, abstracts, ("input_x", indices, "updates"))
        if len(index.shape) < 2:
            raise ScriptValueError(
                f"For {op}, the dimension of 'indices' cannot be less than 2,  but got {len(index.shape)}"
            )
        depth = index.shape[-1]
        if depth > len(x.shape):
            raise ScriptValueError(
                f"For {op}, the last dimension of 'indices' must be less than or equal to the dimension of 'input_x', "
                f"but got the last dimension of 'indices': {depth} and the dimension of 'input_x': {len(x.shape)}"
            )
        wanted = (*index.shape[:-1], *x.shape[depth:])
        if updates.shape != wanted and op == "TensorScatterAdd":
            raise ScriptValueError(
                f"For {op}, indices_shape must equal to updates_shape, but got indices_shape: {list(wanted)}, "
                f"updates_shape: {list(updates.shape)}."
            )
        if updates.shape != wanted:
            raise ScriptValueError(
                f"For {op}, updates_shape = indices_shape[:-1] + x_shape[indices_shape[-1]:], but got x_shape: "
                f"{_extents(x)}, indices_shape: {_extents(index)}, updates_shape: {_extents(updates)}."
            )
        return output(x.dtype, x.shape)

    return infer


def _rows(change: Change) -> Callable[..., Array]:
    def run(input_x: Array, indices: Array, updates: Array, **attrs: Any) -> Array:
        flat = indices.reshape(-1)
        legal = (flat >= 0) & (flat < input_x.shape[0])
        change(input_x, (flat[legal],), updates.reshape(-1, *input_x.shape[1:])[legal])
        return input_x

    return np.errstate(all="ignore")(run)


def _rows_in_range(op: str) -> Bounds:
    text = f"For '{op}', the value of indices should be in [0, {{size}}), but got '{{value}}' in indices."
    return rows(1, lambda x, indices, updates, **attrs: x.shape[0], text)


def _nd_in_range(op: str, how: str) -> Bounds:
    """Return the bounds with the vendor's texts, which differ between operators. [observed 2.10]"""

    def shape(x: Array, indices: Array, updates: Array, **attrs: Any) -> tuple[int, ...]:
        return tuple(x.shape)

    if op.startswith("Tensor"):
        return vectors(1, shape, f"For '{op}', the {{row}}-th value of 'indices'[{{value}}] is out of range[{{size}}].")
    if how != "Update":
        return vectors(1, shape, "")
    text = f"For '{op}', indices out of range for input_x. Please check the indices which is [const vector]"
    return vectors(1, shape, text + "{{{vector}}}", error=ScriptValueError)


def _columns(indices: Array) -> tuple[Array, ...]:
    return tuple(np.moveaxis(indices, -1, 0))


def _nd(change: Change, *, copies: bool) -> Callable[..., Array]:
    def run(input_x: Array, indices: Array, updates: Array, **attrs: Any) -> Array:
        target = np.array(input_x) if copies else input_x
        legal = legal_vectors(indices, target.shape)
        change(target, _columns(indices[legal]), updates[legal])
        return target

    return np.errstate(all="ignore")(run)


def _grad_sum(*, negative: bool) -> Grad:
    """Return the gradient of TensorScatterAdd, or of TensorScatterSub, which is negative."""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        gathered = b.emit("GatherNd", dout, operands[1])
        return dout, None, b.emit("Neg", gathered) if negative else gathered

    return grad


def _grad_scale(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Gradient of TensorScatterMul: the previous values times the gradient at their indices."""
    x, index, updates = operands
    dx = b.emit("TensorScatterMul", dout, index, updates)
    return dx, None, b.emit("Mul", b.emit("GatherNd", x, index), b.emit("GatherNd", dout, index))


def _grad_ratio(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Gradient of TensorScatterDiv."""
    x, index, updates = operands
    dx = b.emit("TensorScatterDiv", dout, index, updates)
    product = b.emit("Mul", b.emit("GatherNd", x, index), b.emit("GatherNd", dout, index))
    return dx, None, b.emit("Neg", b.emit("RealDiv", product, b.emit("Mul", updates, updates)))


def _grad_extreme(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Gradient of TensorScatterMax and TensorScatterMin: shared among the elements that equal the result."""
    x, index, updates = operands
    kind = dout.abstract.dtype
    chosen = b.emit("Cast", b.emit("Equal", x, out), kind)
    taken = b.emit("Cast", b.emit("Equal", b.emit("GatherNd", out, index), updates), kind)
    count = b.emit("TensorScatterAdd", chosen, index, taken)
    each = b.emit("RealDiv", dout, count)
    return b.emit("Mul", each, chosen), None, b.emit("Mul", b.emit("GatherNd", each, index), taken)


_GRADS: Mapping[str, Grad] = {
    "Add": _grad_sum(negative=False),
    "Sub": _grad_sum(negative=True),
    "Mul": _grad_scale,
    "Div": _grad_ratio,
    "Max": _grad_extreme,
    "Min": _grad_extreme,
}


def _infer_index_add(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, index, y = _checked("IndexAdd", abstracts, ("x", "indices", "y"))
    axis = attrs["axis"] % len(x.shape)
    if len(index.shape) != 1 or y.shape != (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]):
        raise ScriptValueError(
            f"For 'IndexAdd', 'y' {vector(y.shape)} must have the shape of 'x' {vector(x.shape)} with "
            f"{index.shape} places along axis {axis}."
        )
    return abstracts[0]


def _index_add(
    x: Array, indices: Array, y: Array, *, axis: int = 0, use_lock: bool = True, check_index_bound: bool = True
) -> Array:
    legal = (indices >= 0) & (indices < x.shape[axis])
    np.add.at(np.moveaxis(x, axis, 0), indices[legal], np.moveaxis(y, axis, 0)[legal])
    return x


def _infer_segments(op: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, index = tensor_of(op, abstracts[0], "x"), tensor_of(op, abstracts[1], "segment_ids", ("int32", "int64"))
        count = value_of(op, abstracts[2], "num_segments")
        if count <= 0:
            raise ScriptValueError(
                f"For primitive[{op}], the num_segments's value must be greater than 0, but got {count}."
            )
        if not index.shape:
            raise ScriptValueError(f"For '{op}', segment_ids value cannot be 0-D.")
        if x.shape[: len(index.shape)] != index.shape:
            raise ScriptValueError(f"For {op}, the first shape of input_x should be equal to length of segments_id")
        return output(x.dtype, (count, *x.shape[len(index.shape) :]))

    return infer


def _segments(change: Change, start: Callable[[np.dtype[Any]], Any]) -> Callable[..., Array]:
    def run(x: Array, segment_ids: Array, num_segments: int) -> Array:
        rest = x.shape[segment_ids.ndim :]
        total = np.full((int(num_segments), *rest), start(x.dtype), x.dtype)
        flat = segment_ids.reshape(-1)
        legal = (flat >= 0) & (flat < num_segments)
        change(total, (flat[legal],), x.reshape(-1, *rest)[legal])
        return total

    return run


def _grad_segments(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Gradient of the extremes of segments: shared among the elements that equal the result."""
    x, index, _ = operands
    kind = dout.abstract.dtype
    chosen = b.emit("Cast", b.emit("Equal", x, b.emit("Gather", out, index, 0, 0)), kind)
    number = b.emit("UnsortedSegmentSum", chosen, index, shape_of(out)[0])
    each = b.emit("DivNoNan", dout, number)
    return b.emit("Mul", b.emit("Gather", each, index, 0, 0), chosen), None, None


def _lowest(kind: np.dtype[Any]) -> Any:
    return np.finfo(kind).min if kind.kind == "f" else np.iinfo(kind).min


def _highest(kind: np.dtype[Any]) -> Any:
    return np.finfo(kind).max if kind.kind == "f" else np.iinfo(kind).max


def _grad_written(op_type: str) -> Grad:
    """Return the gradient of a write: that of the result, and its part at the indices. [observed 2.10]"""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        axis = (attrs.get("axis", 0), 0) if op_type == "Gather" else ()
        return dout, None, b.emit(op_type, dout, operands[1], *axis)

    return grad


def _written(
    name: str, infer: Infer, kernel: Callable[..., Array], attrs: Attrs, bounds: Bounds, grad: Grad | None
) -> OpDef:
    return OpDef(
        name=name,
        operands=("input_x", "indices", "updates"),
        infer=infer,
        kernel=kernel,
        attrs=attrs,
        bounds=bounds,
        fixed={"side_effect_mem": True},
        input_names=[
            "input_x" if name in ("ScatterSub", "ScatterNdSub", "ScatterNdUpdate") else "x",
            "indices",
            "value" if name == "ScatterNdUpdate" else "updates",
        ],
        output_names=["y"],
        updates=(0,),
        alias={0: 0},
        side_effect="mem",
        grad=grad,
    )


OPS = (
    *(
        _written(
            f"Scatter{how}",
            _infer_rows(f"Scatter{how}"),
            _rows(change),
            {"use_locking": how == "Update"},
            _rows_in_range(f"Scatter{how}"),
            _grad_written("Gather") if how in ("Update", "Max", "Min") else None,  # the vendor's rules [observed 2.10]
        )
        for how, change in _CHANGES.items()
    ),
    *(
        _written(
            f"ScatterNd{how}",
            _infer_nd(f"ScatterNd{how}"),
            _nd(change, copies=False),
            {"use_locking": how == "Update"},
            _nd_in_range(f"ScatterNd{how}", how),
            _grad_written("GatherNd") if how == "Update" else None,
        )
        for how, change in _CHANGES.items()
    ),
    *(
        OpDef(
            name=f"TensorScatter{how}",
            operands=("input_x", "indices", "updates"),
            infer=infer_copy(f"TensorScatter{how}"),
            kernel=_nd(change, copies=True),
            bounds=_nd_in_range(f"TensorScatter{how}", how),
            grad=_GRADS[how],
            prim_func=how == "Add",
            input_names=["input_x", "indices", "updates"] if how != "Add" else (),
            output_names=["y"] if how != "Add" else (),
        )
        for how, change in _CHANGES.items()
        if how != "Update"
    ),
    OpDef(
        name="IndexAdd",
        operands=("x", "indices", "y"),
        infer=_infer_index_add,
        kernel=_index_add,
        bounds=rows(1, lambda x, indices, y, *, axis, **attrs: x.shape[axis], ""),
        attrs={"axis": 0, "use_lock": True, "check_index_bound": True},
        fixed={"side_effect_mem": True},
        input_names=["input_x", "indices", "input_y"],
        output_names=["output"],
        updates=(0,),
        alias={0: 0},
        side_effect="mem",
        grad=_grad_written("Gather"),
    ),
    *(
        OpDef(
            name=name,
            operands=("x", "segment_ids", "num_segments"),
            infer=_infer_segments(name),
            kernel=_segments(change, start),
            bounds=rows(1, lambda x, index, count: count, "", operand="segment_ids"),
            grad=grad,
            input_names=["x", "segment_ids", "num_segments"],
            output_names=["y"],
        )
        for name, change, start, grad in (
            ("UnsortedSegmentMax", np.maximum.at, _lowest, _grad_segments),
            ("UnsortedSegmentMin", np.minimum.at, _highest, _grad_segments),
            ("UnsortedSegmentProd", np.multiply.at, lambda kind: 1, None),
        )
    ),
)
