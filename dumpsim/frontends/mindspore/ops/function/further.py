"""Functions of operators with settings: gates, scatters into Parameters, resizing of images."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._capture.values import abstract_of
from dumpsim.frontends.mindspore._checkparam import check_positive_int, check_value_type
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common._operandtypes import (
    abstract_name,
    check_has_dtype,
    check_implicit,
    check_is_tensor,
    expect,
    takes,
    type_text,
)
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import inner_single, single
from dumpsim.frontends.mindspore.ops.function.arithmetic import cast_to, is_number
from dumpsim.ops.promotion import operand_type
from dumpsim.ops.table import find

__all__ = [
    "adaptive_avg_pool2d",
    "addbmm",
    "addmv",
    "celu",
    "dtype",
    "einsum",
    "glu",
    "hardshrink",
    "index_add",
    "interpolate",
    "isclose",
    "logit",
    "logsigmoid",
    "nan_to_num",
    "numel",
    "pixel_shuffle",
    "repeat_interleave",
    "reverse_sequence",
    "roll",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd_add",
    "scatter_nd_div",
    "scatter_nd_max",
    "scatter_nd_min",
    "scatter_nd_mul",
    "scatter_nd_sub",
    "scatter_sub",
    "scatter_update",
    "softshrink",
]


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``."""
    return single("Addmv", [input, mat, vec, beta, alpha])


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * sum(batch1 @ batch2)``, summed over the batch."""
    expect("BatchMatMul", batch1, batch2)
    return single("Addbmm", [input, batch1, batch2, beta, alpha])


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sum of products in Einstein's notation, ``ij,jk->ik``.

    Raises
    ------
    ValueError
        For an equation that does not fit the operands.
    """
    if not isinstance(equation, str):
        raise ScriptTypeError("the equation must be str!")
    tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    return single("Einsum", [tuple(tensors)], {"equation": equation})


@takes("CeLU")
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """`x` where it is positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere.

    Raises
    ------
    ValueError
        For an `alpha` of 0.
    """
    if alpha == 0:
        raise ScriptValueError("For 'celu', the 'alpha' must not be 0.")
    return single("CeLU", [x, float(alpha)])


def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half along `axis`, gated by the sigmoid of the second."""
    expect("Split", x, axis, 2)
    return single("GLU", [x, axis])


@takes("HShrink")
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 between ``-lambd`` and `lambd`, the operand elsewhere."""
    return inner_single("HShrink", [input, float(lambd)])


@takes("SoftShrink")
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The operand moved towards 0 by `lambd`; 0 between ``-lambd`` and `lambd`."""
    return inner_single("SoftShrink", [input, float(lambd)])


def logsigmoid(x: Tensor) -> Tensor:
    """Logarithm of the sigmoid, by the operators Sigmoid and Log: minus infinity far below 0. [observed 2.10]

    `nn.LogSigmoid` uses other operators.

    Examples
    --------
    >>> logsigmoid(Tensor([0.0])).asnumpy().round(4)
    array([-0.6931], dtype=float32)
    """
    return single("Log", [single("Sigmoid", [x])])


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Inverse of the sigmoid, for the operand clipped to ``[eps, 1 - eps]``."""
    given = -1.0 if eps is None else eps
    expect("Logit", input, given)
    return single("Logit", [input, given])


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether elements are equal within ``atol + rtol * abs(other)``."""
    return single("IsClose", [input, other, float(rtol), float(atol), equal_nan])


def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN and the infinities by numbers."""
    return inner_single("NanToNum", [input, nan, posinf, neginf])


def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Shift elements along `dims`; those moved beyond one end reappear at the other."""
    return inner_single("Roll", [input, shifts, dims])


def reverse_sequence(x: Tensor, seq_lengths: Tensor, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """Reverse the first `seq_lengths` elements of each row of a batch."""
    return single("ReverseSequence", [x, seq_lengths], {"seq_dim": seq_dim, "batch_dim": batch_dim})


def repeat_interleave(input: Tensor, repeats: int, axis: int | None = None) -> Tensor:
    """Repeat each element `repeats` times, along an axis or in the flattened tensor.

    Raises
    ------
    NotImplementedError
        For a different number of repeats per element.
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int):
        raise UnsupportedError(
            f"repeats of type {type(repeats).__name__} are not emulated", where="ops.repeat_interleave"
        )
    return single("RepeatInterleaveInt", [input, repeats, axis, None])


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Turn channels into pixels: ``(..., C * r * r, H, W)`` becomes ``(..., C, H * r, W * r)``."""
    check_positive_int(upscale_factor, "upscale_factor")
    check_is_tensor("input", input, "pixel_shuffle")
    if input.ndim < 3:
        raise ScriptValueError(
            f"For pixel_shuffle, the dimension of `input` should be larger than 2, but got {input.ndim}."
        )
    if input.shape[-3] % (upscale_factor * upscale_factor):
        raise ScriptValueError(
            "For 'pixel_shuffle', the length of third to last dimension is not divisibleby `upscale_factor` squared."
        )
    *batch, channels, height, width = input.shape
    rest = channels // (upscale_factor * upscale_factor)
    count = len(batch)
    x = single("Reshape", [input, (*batch, rest, upscale_factor, upscale_factor, height, width)])
    order = (*range(count), count, count + 3, count + 1, count + 4, count + 2)
    x = single("Transpose", [x, order])
    return single("Reshape", [x, (*batch, rest, height * upscale_factor, width * upscale_factor)])


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Resize images (N, C, H, W).

    Parameters
    ----------
    size : int or (int, int), optional
    scale_factor : float or (float, float), optional
        Exactly one of `size` and `scale_factor` is required.
    mode : str
        ``nearest`` or ``bilinear``.

    Raises
    ------
    ValueError
        For both or none of `size` and `scale_factor`.
    NotImplementedError
        For other modes, and for tensors of other ranks.
    """
    if mode not in ("nearest", "bilinear") or input.ndim != 4:
        raise UnsupportedError(
            f"mode {mode!r} of a tensor with {input.ndim} dimensions is not emulated", where="ops.interpolate",
            allowed=("nearest and bilinear of (N, C, H, W)",),
        )  # fmt: skip
    if size is None and scale_factor is None:
        raise ScriptValueError("For 'interpolate', 'size' and 'scale_factor' cannot be both empty")
    if size is not None and scale_factor is not None:
        raise ScriptValueError("For 'interpolate', 'size' and 'scale_factor' cannot be set simultaneously")
    if size is None:
        factors = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor, scale_factor)
        size = tuple(int(n * factor) for n, factor in zip(input.shape[2:], factors, strict=True))
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if mode == "nearest":
        if align_corners is not None:
            raise ScriptValueError(
                "For 'interpolate', 'align_corners' option cannot currently be set with the mode = nearest, "
                "and dim = 4D"
            )
        return single("ResizeNearestNeighborV2", [input, pair, False, False])
    return single("ResizeBilinearV2", [input, pair, bool(align_corners), not align_corners])


def index_add(
    x: Tensor, indices: Tensor, y: Tensor, axis: int, use_lock: bool = True, check_index_bound: bool = True
) -> Tensor:
    """Add `y` to the elements at `indices` along an axis of the Parameter `x`."""
    settings = {"axis": axis, "use_lock": use_lock, "check_index_bound": check_index_bound}
    return single("IndexAdd", [x, indices, y], settings)


def _written(op_type: str, variable: Any, indices: Any, updates: Any, **attrs: Any) -> Tensor:
    """Write to a Parameter or tensor; op by op, numbers and tensors of another type are converted first."""
    for name, value in attrs.items():
        check_value_type(name, value, [bool], op_type)
    if capturing() is None:
        variable, updates = _of_one_type(op_type, variable, indices, updates)
    result: Tensor = call(op_type, [variable, indices, updates], attrs)
    return result


def _of_one_type(op_type: str, variable: Any, indices: Any, updates: Any) -> tuple[Any, Any]:
    first, _, last = find(op_type).input_names
    if isinstance(variable, Tensor) and (isinstance(updates, Tensor) or is_number(updates)):
        kind = operand_type([abstract_of(variable), abstract_of(updates)])
        if kind != variable._dtype:
            raise ScriptTypeError(
                "Data type conversion is not supported for a 'Parameter', nor for the input tensor of an in-place "
                f"operator, the argument[{first}]'s data type of primitive[{op_type}] is {variable._dtype}, which "
                f"cannot be converted to data type {kind} automatically."
            )
    check_implicit(op_type, {0: first, 2: last}, [variable, indices, updates])
    one_is_tensor = isinstance(variable, Tensor) or isinstance(updates, Tensor)
    suffix = "" if op_type in ("ScatterSub", "ScatterNdUpdate") else " type"
    for name, value in (("indices", indices), ("input_x", variable)):
        if not isinstance(value, Tensor) and not (name == "input_x" and one_is_tensor):
            given = "Int64" if isinstance(value, bool) else abstract_name(value)
            raise ScriptTypeError(
                f"For Primitive[{op_type}], the type of input argument[{name}{suffix}] must be Tensor but got {given}."
            )
    kind = operand_type([abstract_of(variable), abstract_of(updates)])
    return cast_to(variable, kind), cast_to(updates, kind)


def scatter_update(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Replace rows of a Parameter."""
    return _written("ScatterUpdate", input_x, indices, updates)


def scatter_add(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Add to rows of a Parameter."""
    return _written("ScatterAdd", input_x, indices, updates)


def scatter_sub(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Subtract from rows of a Parameter."""
    return _written("ScatterSub", input_x, indices, updates)


def scatter_mul(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Multiply rows of a Parameter."""
    return _written("ScatterMul", input_x, indices, updates)


def scatter_div(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Divide rows of a Parameter."""
    return _written("ScatterDiv", input_x, indices, updates)


def scatter_max(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Replace rows of a Parameter by the maximum of them and the updates."""
    return _written("ScatterMax", input_x, indices, updates)


def scatter_min(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Replace rows of a Parameter by the minimum of them and the updates."""
    return _written("ScatterMin", input_x, indices, updates)


def scatter_nd_add(input_x: Tensor, indices: Tensor, updates: Tensor, use_locking: bool = False) -> Tensor:
    """Add to elements of a Parameter."""
    return _written("ScatterNdAdd", input_x, indices, updates, use_locking=use_locking)


def scatter_nd_sub(input_x: Tensor, indices: Tensor, updates: Tensor, use_locking: bool = False) -> Tensor:
    """Subtract from elements of a Parameter."""
    return _written("ScatterNdSub", input_x, indices, updates, use_locking=use_locking)


def scatter_nd_mul(input_x: Tensor, indices: Tensor, updates: Tensor, use_locking: bool = False) -> Tensor:
    """Multiply elements of a Parameter."""
    return _written("ScatterNdMul", input_x, indices, updates, use_locking=use_locking)


def scatter_nd_div(input_x: Tensor, indices: Tensor, updates: Tensor, use_locking: bool = False) -> Tensor:
    """Divide elements of a Parameter."""
    return _written("ScatterNdDiv", input_x, indices, updates, use_locking=use_locking)


def scatter_nd_max(input_x: Tensor, indices: Tensor, updates: Tensor, use_locking: bool = False) -> Tensor:
    """Replace elements of a Parameter by the maximum of them and the updates."""
    return _written("ScatterNdMax", input_x, indices, updates, use_locking=use_locking)


def scatter_nd_min(input_x: Tensor, indices: Tensor, updates: Tensor, use_locking: bool = False) -> Tensor:
    """Replace elements of a Parameter by the minimum of them and the updates."""
    return _written("ScatterNdMin", input_x, indices, updates, use_locking=use_locking)


def dtype(input_x: Tensor) -> Any:
    """The number type.

    Examples
    --------
    >>> dtype(Tensor([1.0]))
    mindspore.float32
    """
    check_has_dtype(input_x)
    return input_x.dtype


def numel(input: Tensor) -> int:
    """Number of elements.

    Examples
    --------
    >>> numel(Tensor([1.0, 2.0]))
    2
    """
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"For numel, input must be a Tensor, but got {type_text(input)}.")
    return int(input.size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows, for a given output size; None keeps the extent of the input.

    Examples
    --------
    >>> adaptive_avg_pool2d(Tensor([[[[1.0, 3.0]]]]), 1).asnumpy()
    array([[[[2.]]]], dtype=float32)
    """
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    size = (input.shape[-2] if height is None else height, input.shape[-1] if width is None else width)
    return single("AdaptiveAvgPool2D", [input], {"output_size": size})
