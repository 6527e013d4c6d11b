"""Functions that create tensors. With constant arguments, they make constants of a graph. [observed 2.10]"""

from typing import Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._checkparam import check_non_negative_int
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import abstract_name, expect, takes, type_text
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops._signatures import number_of
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.frontends.mindspore.ops.function.arithmetic import is_number
from dumpsim.frontends.mindspore.ops.function.elementwise import cast_type, not_cast

__all__ = [
    "arange",
    "eye",
    "fill",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "normal",
    "one_hot",
    "ones",
    "ones_like",
    "rand",
    "randint",
    "randn",
    "range",
    "standard_normal",
    "tuple_to_array",
    "uniform",
    "zeros",
    "zeros_like",
]


def _extents(size: Any, op_type: str = "") -> tuple[int, ...]:
    if isinstance(size, Tensor):
        size = size.tolist()
    extents = (size,) if isinstance(size, int) else tuple(int(n) for n in size)
    for at, extent in enumerate(extents):
        if extent < 0 and op_type:
            article = "the" if op_type == "Ones" else "the the"  # [2.10 observed]
            raise ScriptValueError(
                f"For primitive[{op_type}], {article} {at}th dimension of input shape must be greater than or equal to "
                f"0, but got {extent}."
            )
        if extent < 0:
            raise ScriptValueError(f"a negative extent in {extents}", where="shape")
    return extents


def _filled(size: Any, value: Any, dtype: Any, op_type: str = "FillV2") -> Tensor:
    return Tensor._around(np.full(_extents(size, op_type), value, mstype.type_of(dtype).numpy))


@takes("Zeros")
def zeros(size: Any, dtype: Any = None) -> Tensor:
    """Zeros.

    Examples
    --------
    >>> zeros((2,), mstype.int32)
    Tensor(shape=[2], dtype=Int32, value= [0, 0])
    """
    return _filled(size, 0, dtype or mstype.float32, "Zeros")


@takes("Ones")
def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Ones."""
    return _filled(shape, 1, dtype or mstype.float32, "Ones")


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Fill a shape with one value, as Int64 if `dtype` is None. [2.10 observed]"""
    if not isinstance(size, (tuple, list)):
        raise ScriptTypeError(f"For 'ops.full', 'size' must be a tuple or list of ints, but got {type_text(size)}.")
    if dtype is not None and not isinstance(dtype, DType):
        raise ScriptTypeError(f"For 'ops.full', 'dtype' must be mindspore.type, but got {dtype}.")
    if not isinstance(fill_value, Tensor) and not is_number(fill_value):
        raise not_cast(fill_value)
    if isinstance(fill_value, Tensor) and fill_value.ndim > 1:
        raise ScriptValueError(
            "For primitive[FillV2], the dimension of the input [fill_value] must be in [0,1], but got "
            f"{fill_value.ndim}."
        )
    if isinstance(fill_value, Tensor) and fill_value.size != 1:
        raise ScriptValueError(
            f"For primitive[FillV2], the size of the input [fill_value] must be equal to 1, but got {fill_value.size}."
        )
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return _filled(size, value, mstype.int64 if dtype is None else dtype)


def fill(type: Any, shape: Any, value: Any) -> Tensor:
    """Fill a shape with one value; the type is the first argument. An int as shape counts as (). [2.10 observed]"""
    extents = () if isinstance(shape, int) else shape
    return full(extents, value, dtype=None if type is None and is_number(value) else cast_type(type))


@takes("ZerosLike")
def zeros_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Zeros in the shape of a tensor: a constant, since the shape is constant."""
    return _filled(input.shape, 0, input.dtype if dtype is None else cast_type(dtype))


@takes("OnesLike")
def ones_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Ones in the shape of a tensor."""
    return _filled(input.shape, 1, input.dtype if dtype is None else cast_type(dtype))


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """One value in the shape of a tensor."""
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"For ops.full_like, the argument 'x' must be tensor, but got {type_text(input)}")
    return full(input.shape, fill_value, dtype=input.dtype if dtype is None else dtype)


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """Numbers from `start` to before `end`.

    Examples
    --------
    >>> arange(3)
    Tensor(shape=[3], dtype=Int64, value= [0, 1, 2])
    """
    if end is None:
        start, end = 0, start
    for bound in (start, end, step):
        if not isinstance(bound, Tensor) and not is_number(bound):
            raise ScriptTypeError(
                "For arange, the input type must be int or float or a TensorScalar in [mindspore.int32, "
                f"mindspore.float32, mindspore.int64, mindspore.float64], but got {abstract_name(bound)}"
            )
    shapes = [tuple(bound.shape) if isinstance(bound, Tensor) else () for bound in (start, end, step)]
    if any(shapes):
        raise ScriptValueError(
            "For arange, the input args must be a TensorScalar, but got start shape:{}, end shape:{}, step "
            "shape:{}".format(*shapes)
        )
    bounds = [bound.item() if isinstance(bound, Tensor) else bound for bound in (start, end, step)]
    if bounds[2] == 0:
        raise ScriptValueError("For Range, delta cannot be equal to zero.")
    kind = dtype or (mstype.float32 if any(isinstance(bound, float) for bound in bounds) else mstype.int64)
    return Tensor._around(np.arange(*bounds).astype(mstype.type_of(kind).numpy))


def range(start: Any, end: Any, step: Any, maxlen: int = 1000000) -> Tensor:
    """Like `arange`, with bounds of one number type."""
    expect("Range", start, end, step)
    for bound in (start, end, step):
        if isinstance(bound, Tensor) and bound.size != 1:
            raise ScriptValueError(f"Can only convert tensor with one element to number, but got {bound!r}")
    kinds = [bound.dtype if isinstance(bound, Tensor) else mstype.type_of(type(bound)) for bound in (start, end, step)]
    if len(set(kinds)) > 1:
        names = ", ".join(map(str, kinds))
        raise ScriptTypeError(f"For Range, the dtypes of inputs must be the same, but got ({names}).")
    return arange(start, end, step)


def linspace(start: Any, end: Any, steps: int) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, as Float32."""
    return single("LinSpace", [Tensor(start, mstype.float32), Tensor(end, mstype.float32), steps])


def eye(n: int, m: int | None = None, dtype: Any = None) -> Tensor:
    """Ones on the diagonal."""
    return single("Eye", [n, n if m is None else m, mstype.type_of(dtype or mstype.float32)])


def one_hot(indices: Tensor, depth: int, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Tensor:
    """Add an axis with `on_value` at the index and `off_value` elsewhere."""
    on = on_value if isinstance(on_value, Tensor) else Tensor(on_value)
    off = off_value if isinstance(off_value, Tensor) else Tensor(off_value, on.dtype)
    return single("OneHot", [indices, depth, on, off, axis])


def meshgrid(*inputs: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Grids of coordinates."""
    number = number_of("Meshgrid", "indexing", indexing, ("ij", "xy"))
    grids: tuple[Tensor, ...] = call("Meshgrid", [tuple(inputs), number])
    return grids


def _drawn(what: str, values: Any, dtype: Any) -> Tensor:
    from dumpsim.frontends.mindspore._current import capturing

    if capturing() is not None:
        raise UnsupportedError(
            "random tensors inside a graph are not emulated", where=f"ops.{what}", nearest="nn.Dropout"
        )
    return Tensor(np.asarray(values), dtype or mstype.float32)


def standard_normal(shape: Any, seed: int | None = None) -> Tensor:
    """Normally distributed numbers, drawn from numpy's generator."""
    return _drawn("standard_normal", np.random.standard_normal(_extents(shape)), None)


def normal(shape: Any, mean: float, stddev: float, seed: int | None = None) -> Tensor:
    """Normally distributed numbers with the given mean and standard deviation."""
    return _drawn("normal", np.random.normal(mean, stddev, _extents(shape)), None)


def uniform(shape: Any, minval: Any, maxval: Any, seed: int | None = None, dtype: Any = None) -> Tensor:
    """Uniformly distributed numbers."""
    low, high = (bound.item() if isinstance(bound, Tensor) else bound for bound in (minval, maxval))
    return _drawn("uniform", np.random.uniform(low, high, _extents(shape)), dtype)


def randn(*size: Any, dtype: Any = None, seed: int | None = None) -> Tensor:
    """Like `standard_normal`, with the extents as arguments."""
    _check_random("randn", seed, dtype)
    return _drawn("randn", np.random.standard_normal(_shape_of(size)), dtype)


def rand(*size: Any, dtype: Any = None, seed: int | None = None) -> Tensor:
    """Uniformly distributed numbers in [0, 1), with the extents as arguments."""
    _check_random("rand", seed, dtype)
    return _drawn("rand", np.random.random_sample(_shape_of(size)), dtype)


def _check_random(name: str, seed: Any, dtype: Any) -> None:
    if dtype is not None and dtype not in mstype.float_type:
        raise ScriptValueError(f"For '{name}', the 'dtype' must be a float type, but got {dtype}.")
    if seed is not None:
        check_non_negative_int(seed, "seed", name)


def _shape_of(size: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape given by the arguments; one element without arguments."""
    return _extents(size[0] if _is_shape(size) else size or (1,))


def randint(low: int, high: int, size: Any, seed: int | None = None, *, dtype: Any = None) -> Tensor:
    """Uniformly distributed integers."""
    return _drawn("randint", np.random.randint(low, high, _extents(size)), dtype or mstype.int64)


def tuple_to_array(input_x: tuple[Any, ...]) -> Tensor:
    """Convert numbers to a tensor: int32 if the first one is an int, else float32.

    Examples
    --------
    >>> tuple_to_array((1, 2.5)).asnumpy(), tuple_to_array((1.0, 2)).asnumpy()
    (array([1, 2], dtype=int32), array([1., 2.], dtype=float32))
    """
    return Tensor(np.array(input_x, np.int32 if isinstance(input_x[0], int) else np.float32))


def _is_shape(size: tuple[Any, ...]) -> bool:
    return len(size) == 1 and isinstance(size[0], (tuple, list))
