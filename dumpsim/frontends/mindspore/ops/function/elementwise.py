"""Operators on one tensor, element by element."""

from collections.abc import Callable
from types import MappingProxyType, NoneType
from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._capture.custom_gradient import with_gradient
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._capture.libfunction import parsed_once
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import expect, not_a_type, takes, type_name
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.frontends.mindspore.ops.function.arithmetic import binary, cast_to, is_number, maximum, minimum, promote

# function -> operator type, for functions that only call the operator
_PLAIN = MappingProxyType(
    {
        "abs": "Abs",
        "arctanh": "Atanh",
        "acos": "ACos",
        "acosh": "Acosh",
        "asin": "Asin",
        "asinh": "Asinh",
        "atan": "Atan",
        "atanh": "Atanh",
        "ceil": "Ceil",
        "cos": "Cos",
        "cosh": "Cosh",
        "erf": "Erf",
        "erfc": "Erfc",
        "exp": "Exp",
        "expm1": "Expm1",
        "floor": "Floor",
        "isfinite": "IsFinite",
        "isinf": "IsInf",
        "isnan": "IsNan",
        "log": "Log",
        "log1p": "Log1p",
        "logical_not": "LogicalNot",
        "mish": "Mish",
        "neg": "Neg",
        "reciprocal": "Reciprocal",
        "rsqrt": "Rsqrt",
        "sigmoid": "Sigmoid",
        "sign": "Sign",
        "sin": "Sin",
        "sinh": "Sinh",
        "sqrt": "Sqrt",
        "square": "Square",
        "tan": "Tan",
        "tanh": "Tanh",
        "trunc": "Trunc",
    }
)

__all__ = [
    *_PLAIN,
    "absolute",
    "cast",
    "clamp",
    "clip",
    "clip_by_value",
    "deepcopy",
    "logical_and",
    "logical_or",
    "logical_xor",
    "negative",
    "round",
]


def _plain(name: str, op_type: str) -> Callable[[Tensor], Tensor]:
    def function(input: Tensor) -> Tensor:
        result: Tensor = call(op_type, [input])
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{op_type} of every element."
    return function


globals().update({name: _plain(name, op_type) for name, op_type in _PLAIN.items()})


def absolute(input: Tensor) -> Tensor:
    """Alias of `abs`."""
    return single("Abs", [input])


def negative(input: Tensor) -> Tensor:
    """Alias of `neg`."""
    return single("Neg", [input])


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Round to the nearest integer, halves to even."""
    return single("Round", [input, decimals])


@parsed_once
def cast(input: Any, dtype: Any) -> Tensor:
    """Convert to another number type; for the same type, no operator runs.

    Examples
    --------
    >>> cast(Tensor([1.5, -2.5]), mstype.int32)
    Tensor(shape=[2], dtype=Int32, value= [ 1, -2])
    """
    return unshared_cast(input, dtype)


def cast_type(dtype: Any) -> mstype.Number:
    """Return the number type of a cast.

    Raises
    ------
    ScriptTypeError
        For anything else, Python's types and numpy's too.
    """
    if not isinstance(dtype, DType):
        raise not_a_type("Cast", "dtype", dtype)
    return mstype.type_of(dtype)


def not_cast(value: Any) -> ScriptTypeError:
    """Return the error of a cast of what is no tensor."""
    return ScriptTypeError(f'Failed calling Cast with "Cast()(input={type_name(value)}, dtype=mindspore.dtype)".')


def unshared_cast(input: Any, dtype: Any) -> Tensor:
    """Like `cast`, but in the scope of the call."""
    kind = cast_type(dtype)
    if is_number(input):
        return Tensor(input, kind)
    if not isinstance(input, Tensor):
        raise not_cast(input)
    if input._dtype == kind:
        return input
    return single("Cast", [input, kind])


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Clip values to two bounds: a composite operator. [observed 2.10]

    Examples
    --------
    >>> clamp(Tensor([1.0, 5.0]), 2.0, 3.0).asnumpy()
    array([2., 3.], dtype=float32)
    """
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        expect("ClampScalar", input, min, max)
    if min is None and max is None:
        raise ScriptValueError("For Clamp, at least one of 'min' or 'max' must not be None.")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        result: Tensor = clip_by_value(input, min, max)
        return result
    return single("ClampScalar", [input, min, max])


clip = clamp


def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """Like `clamp`, without the composite operator."""
    if clip_value_min is None and clip_value_max is None:
        raise ScriptValueError(
            "For 'clip_by_value', at least one of 'clip_value_min' or 'clip_value_max' must not be None"
        )
    if not isinstance(x, (Tensor, tuple, list)):
        raise ScriptTypeError(
            "For 'clip_by_value', the type of argument 'x' must be Tensor or tuple[Tensor] or list[Tensor]"
        )
    for name, bound in (("clip_value_min", clip_value_min), ("clip_value_max", clip_value_max)):
        if not isinstance(bound, (NoneType, Tensor, float, int)):
            raise ScriptTypeError(
                f"For 'clip_by_value', the type of argument '{name}' must be not one of None, Tensor, float, int"
            )
    if not isinstance(x, Tensor):
        return tuple(clip_by_value(one, clip_value_min, clip_value_max) for one in x)
    result = x
    if clip_value_min is not None:
        result = maximum(result, cast_to(clip_value_min, x._dtype))
    if clip_value_max is not None:
        result = minimum(result, cast_to(clip_value_max, x._dtype))
    return result


def logical_and(input: Tensor, other: Any) -> Tensor:
    """Whether both are true."""
    return binary("LogicalAnd", input, other)


def logical_or(input: Tensor, other: Any) -> Tensor:
    """Whether at least one of both is true."""
    return binary("LogicalOr", input, other)


def logical_xor(input: Tensor, other: Any) -> Tensor:
    """Whether exactly one of both is true."""
    x, y = promote("LogicalXor", input, other)
    return single("LogicalXor", [x, y])


@takes("Identity")
def deepcopy(input_x: Tensor) -> Tensor:
    """Copy a tensor."""
    if input_x._symbol is not None:
        return input_x
    copied: Tensor = with_gradient(Tensor(input_x), [input_x], lambda gradients: gradients)
    return copied
