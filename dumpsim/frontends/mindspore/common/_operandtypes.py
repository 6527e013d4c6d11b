"""Python types that each operator accepts op by op, and the error of MindSpore for any other. [observed 2.10]

The types are those that the real package lists in its errors (``record_operand_types.py``); graphs have other texts.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from types import MappingProxyType, NoneType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.ops.opdef import OpDef

__all__ = [
    "Argument",
    "abstract_name",
    "check",
    "check_has_dtype",
    "check_has_shape",
    "check_implicit",
    "check_is_tensor",
    "expect",
    "is_tensor",
    "not_a_type",
    "parsed",
    "plain",
    "record",
    "takes",
    "type_name",
    "type_text",
]


_SCALARS = (bool, int, float, complex, np.number, np.bool_, np.ndarray)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def is_tensor(value: Any) -> bool:
    """Whether a value is a Tensor; the class is imported late since its module imports this one."""
    return isinstance(value, _tensor_class())


@cache
def _tensor_class() -> type:
    return import_module("dumpsim.frontends.mindspore.common.tensor").Tensor  # type: ignore[no-any-return]


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_float(value: Any) -> bool:
    return isinstance(value, (float, np.floating))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating))


def _several(kind: type[list[Any]] | type[tuple[Any, ...]], inner: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind) and all(map(inner, value))


#: Predicates by the name of the type in the vendor's errors: a bool is not an int, an int is not a float.
_ACCEPTS: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "Tensor": is_tensor,
        "Number": _is_number,
        "int": _is_int,
        "float": _is_float,
        "bool": lambda value: isinstance(value, bool),
        "string": lambda value: isinstance(value, str),
        "mindspore.dtype": lambda value: isinstance(value, DType),
        "tuple of int": _several(tuple, _is_int),
        "list of int": _several(list, _is_int),
        "tuple of float": _several(tuple, _is_float),
        "list of float": _several(list, _is_float),
        "tuple of Number": _several(tuple, _is_number),
        "tuple of Tensor": _several(tuple, is_tensor),
        "list of tensor": _several(list, is_tensor),
    }
)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an operator.

    Attributes
    ----------
    name : str
    kinds : tuple of str
        The types that it accepts, as the vendor's errors name them.
    optional : bool
        It may be None.
    tensor : bool
        It may be a Tensor.
    """

    name: str
    kinds: tuple[str, ...]
    optional: bool
    tensor: bool

    def is_number(self, value: Any) -> bool:
        """Whether a value is the number of a string."""
        return self.kinds == ("string",) and isinstance(value, int)

    def takes(self, value: Any) -> bool:
        """Whether a value has one of the types."""
        if value is None:
            return self.optional
        return any(_ACCEPTS[kind](value) for kind in self.kinds)


@cache
def record(part: str) -> Mapping[str, Any]:
    """Return one part of the recorded types: ``primitives`` or ``overloads``."""
    import gzip
    import json
    from importlib.resources import files

    data = files("dumpsim.frontends.mindspore").joinpath("operand_types.json.gz").read_bytes()
    return MappingProxyType(json.loads(gzip.decompress(data))[part])


def parsed(text: str, optional: str) -> tuple[Argument, ...]:
    """Parse the arguments of a recorded error, such as ``x=<Tensor>, axis=<int, tuple of int>``.

    Examples
    --------
    >>> [(one.name, one.kinds) for one in parsed("x=<Tensor>, axis=<int, tuple of int>", "")]
    [('x', ('Tensor',)), ('axis', ('int', 'tuple of int'))]
    """
    parts = (part.partition("=<") for part in text.rstrip(">").split(">, ") if part)
    names = optional.split()
    return tuple(
        Argument(name, tuple(kinds.split(", ")), name in names, "Tensor" in kinds.split(", "))
        for name, _, kinds in parts
    )


@cache
def _arguments(op_type: str) -> tuple[tuple[Argument, ...], tuple[Argument, ...]] | None:
    """Return the arguments of a primitive's call and constructor, or None if it is not recorded."""
    row = record("primitives").get(op_type)
    if row is None:
        return None
    settings, _, operands = row[0][1:-1].partition(")(")
    return parsed(operands, row[1]), parsed(settings, row[1])


def type_name(value: Any) -> str:
    """Return the name of a value's type in the vendor's errors.

    Examples
    --------
    >>> type_name(None), type_name((1, ["a", 2.0])), type_name({})
    ('None', 'Tuple<int, List<string, float>>', "<class 'dict'>")
    """
    if value is None:
        return "None"
    if is_tensor(value):
        return "Tensor"
    if isinstance(value, DType):
        return "mindspore.dtype"
    if isinstance(value, (tuple, list)):
        return f"{'Tuple' if isinstance(value, tuple) else 'List'}<{', '.join(map(type_name, value))}>"
    if type(value) in (bool, int, float):
        return type(value).__name__
    if isinstance(value, str):
        return "string"
    return type_text(value)


def type_text(value: Any) -> str:
    """Return the text of a value's type: ``<class 'mindspore.common.tensor.Tensor'>``."""
    return str(type(value)).replace("dumpsim.frontends.", "")


#: Names of the operands in the signature of older primitives that have one with names. [wheel ops/operations]
_SIGNED: Mapping[str, tuple[str, ...]] = MappingProxyType({"Xdivy": ("x", "y")})


@cache
def _row(op_type: str, count: int) -> tuple[Argument, ...]:
    """Return the arguments in the order of our operands: those of the vendor's call, then any settings.

    The result is empty if their number differs from that of our operands.
    """
    called, settings = _arguments(op_type) or ((), ())
    return called + settings if count == len(called) + len(settings) else called if count == len(called) else ()


@cache
def _tuples(op_type: str, count: int) -> tuple[tuple[int, Argument], ...]:
    """Return index and argument of each operand that may be a tuple of ints."""
    return tuple(one for one in enumerate(_row(op_type, count)) if "tuple of int" in one[1].kinds)


def plain(definition: OpDef, operands: Sequence[Any]) -> list[Any]:
    """Return the operands, with ints and lists of ints as tuples where the operator accepts these."""
    given = list(operands)
    for index, argument in _tuples(definition.name, len(definition.operands)):
        value = given[index] if index < len(given) else None
        if isinstance(value, list) and argument.takes(value):
            given[index] = tuple(value)
        elif type(value) is int and argument.takes(value):
            given[index] = (value,)
    return given


def check_is_tensor(name: str, value: Any, owner: str) -> None:
    """Refuse an argument of a function of the vendor's library that is no Tensor, with the type as graphs call it.

    Examples
    --------
    >>> check_is_tensor("input", (1, 2.0), "hardtanh")
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptTypeError: For 'hardtanh', the 'input' must be a Tensor, but got 'Tuple[Int64,Float32]'
    """
    if not is_tensor(value):
        raise ScriptTypeError(f"For '{owner}', the '{name}' must be a Tensor, but got '{abstract_name(value)}'")


def check_has_dtype(value: Any) -> None:
    """Refuse what has no number type, as functions do that look at the number type of an argument first."""
    if not is_tensor(value):
        raise ScriptTypeError(
            "For Primitive[Dtype], the input argument[input_x] must be a Tensor, CSRTensor or COOTensor, but got "
            f"{type_text(value)}."
        )


def check_has_shape(value: Any) -> None:
    """Refuse what has no shape, as functions do that look at the shape of an argument first."""
    if not is_tensor(value):
        raise ScriptTypeError(f"For primitive[Shape], the input argument must be Tensor, but got {type_text(value)}.")


def abstract_name(value: Any) -> str:
    """Return the name of a constant's type in graphs.

    Examples
    --------
    >>> abstract_name(2), abstract_name([1.0, 2.0])
    ('Int64', 'List[Float32*2]')
    """
    if isinstance(value, (tuple, list)):
        inner = [abstract_name(one) for one in value]
        listed = f"{inner[0]}*{len(inner)}" if len(set(inner)) == 1 < len(inner) else ",".join(inner)
        return f"{'Tuple' if isinstance(value, tuple) else 'List'}[{listed}]"
    if isinstance(value, dict):
        kinds = ",".join(map(abstract_name, value.values()))
        return f"Dictionary[[{''.join(f'{key},' for key in value)}],[{kinds}]]"
    if is_tensor(value):
        return f"Tensor[{value._dtype.title}]"
    known = {np.ndarray: "External", bool: "Bool", int: "Int64", float: "Float32", str: "String", NoneType: "None"}
    return known.get(type(value), "TypeType" if isinstance(value, DType) else type(value).__name__)


def check_implicit(op_type: str, names: Mapping[int, str], operands: Sequence[Any]) -> None:
    """Refuse what MindSpore cannot convert to the common type of several operands.

    Parameters
    ----------
    op_type : str
    names : mapping of int to str
        The indices of the operands that have one type, and their names in the error.
    operands : sequence

    Examples
    --------
    >>> check_implicit("Hypot", {0: "var", 1: "var"}, [1.5, "a"])
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptTypeError: For 'Hypot', the 2th input var can not be implicitly converted. \
Its type is String. Only support Tensor or Scalar.
    """
    given = {at: operands[at] for at in names if at < len(operands)}
    wrong = {at: value for at, value in given.items() if not (is_tensor(value) or isinstance(value, _SCALARS))}
    for at, value in wrong.items():
        if len(wrong) == len(given):
            return  # there is no type to convert to
        if isinstance(value, (tuple, list, str)):
            kind = abstract_name(tuple(value) if isinstance(value, list) else value)
        else:
            kind = f'None, value is "{value.title if isinstance(value, DType) else value}"'
        raise ScriptTypeError(
            f"For '{op_type}', the {at + 1}th input {names[at]} can not be implicitly converted. Its type is {kind}. "
            "Only support Tensor or Scalar."
        )


def check(definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> None:
    """Check the types of the operands.

    Parameters
    ----------
    definition : OpDef
    operands : sequence
        The operands of the caller; trailing ones may be missing.
    attrs : mapping

    Raises
    ------
    ScriptTypeError
        If an operand has another type; with the vendor's text.
    """
    if definition.promotes and _arguments(definition.name) is None:
        names = _SIGNED.get(definition.name, ("var",) * len(definition.operands))
        check_implicit(definition.name, {at: names[at] for at in definition.promotes}, operands)
    row = _row(definition.name, len(definition.operands))
    for argument, value in zip(row, operands, strict=False):
        # the vendor passes settings that are strings as numbers
        if (argument.tensor and is_tensor(value)) or argument.takes(value) or argument.is_number(value):
            continue
        missing = len(row) - len(operands)
        given = [*operands, *definition.defaults[len(definition.defaults) - missing :]]
        if argument.kinds == ("mindspore.dtype",):
            raise not_a_type(definition.name, argument.name, value)
        raise _refused(definition.name, {**attrs, **dict(zip((one.name for one in row), given, strict=False))})


def takes(op_type: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function that passes its arguments on to a primitive; op by op, they are checked first.

    Parameters
    ----------
    op_type : str
        The primitive of the vendor, which need not be the operator that runs here. Its arguments are those of the call,
        then those of the constructor.
    """

    def decorated(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: _P.args, **options: _P.kwargs) -> _R:
            if capturing() is None and (options or not all(map(is_tensor, args))):
                _check_call(op_type, signature, args, options)
            return function(*args, **options)

        return checked

    return decorated


def _check_call(op_type: str, signature: inspect.Signature, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    try:
        bound = signature.bind(*args, **options)
    except TypeError:
        return  # the function raises the error
    bound.apply_defaults()
    _check_values(op_type, tuple(bound.arguments.values()))


def expect(op_type: str, *values: Any) -> None:
    """Check what a function passes on to a primitive, op by op.

    Parameters
    ----------
    op_type : str
        The primitive of the vendor, which need not be the operator that runs here.
    *values
        Arguments of the call, then those of the constructor; trailing ones that are always valid may be left out.

    Raises
    ------
    ScriptTypeError
        If one has another type; with the vendor's text.

    Examples
    --------
    >>> expect("Split", 1.5, 0, 2)
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptTypeError: Failed calling Split with "Split(axis=int, output_num=int)(input_x=float)".
    """
    if capturing() is None:
        _check_values(op_type, values)


def _check_values(op_type: str, given: Sequence[Any]) -> None:
    called, settings = _arguments(op_type) or ((), ())
    values = dict(zip((one.name for one in (*called, *settings)), given, strict=False))
    for argument in (*called, *settings):  # names are looked up before types are checked
        value = values.get(argument.name)
        if argument.kinds == ("mindspore.dtype",) and value is not None and not isinstance(value, DType):
            raise not_a_type(op_type, argument.name, value)
        if argument.kinds == ("string",) and value is not None and not isinstance(value, str):
            raise ScriptTypeError(
                f"For '{op_type}', the input '{argument.name}' should be a str, but got {type(value)}."
            )
    if not all(one.takes(values[one.name]) for one in (*called, *settings) if one.name in values):
        raise _refused(op_type, values)


def not_a_type(op_type: str, name: str, value: Any) -> ScriptTypeError:
    """Return the error of an argument that is no number type."""
    return ScriptTypeError(f"For '{op_type}', the input '{name}' should be mindspore dtype, but got {value}.")


def _refused(op_type: str, values: Mapping[str, Any]) -> ScriptTypeError:
    """Return the error of a call; arguments without a value have one of their type."""
    called, settings = _arguments(op_type) or ((), ())
    texts = [", ".join(f"{one.name}={_given(one, values)}" for one in part) for part in (settings, called)]
    return ScriptTypeError(f'Failed calling {op_type} with "{op_type}({texts[0]})({texts[1]})".')


def _given(argument: Argument, values: Mapping[str, Any]) -> str:
    """Return the type that an error shows for an argument: strings and number types have been looked up before."""
    if argument.name not in values or argument.kinds in (("string",), ("mindspore.dtype",)):
        return argument.kinds[0]
    return type_name(values[argument.name])
