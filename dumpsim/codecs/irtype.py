"""Parser of the types in IR text: ``<Tuple[Tensor[Float32]*2], TupleShape((2), (3))>``."""

import re

from dumpsim.core.abstract import (
    Abstract,
    FunctionType,
    MonadType,
    NoneType,
    ObjectType,
    ScalarType,
    StringType,
    TensorType,
    TupleType,
    TypeType,
)
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import DtypeError, UnreadableError
from dumpsim.core.irdoc import KernelIo

__all__ = ["parse_kernel_ios", "parse_type", "parse_types", "split_list"]

_KERNEL_IO = re.compile(  # lengths are limited, since a search through a run of letters would be quadratic otherwise
    r"<?(\w{1,40}?)x([A-Za-z][A-Za-z0-9_]{0,60})\[const vector\][{\[]([^}\]]{0,400})[}\]]>?"
)


def split_list(text: str, separator: str = ", ") -> list[str]:
    """Split at separators outside of brackets and strings.

    Examples
    --------
    >>> split_list('%1, (I64(0), I64(1)), "a, b"')
    ['%1', '(I64(0), I64(1))', '"a, b"']
    """
    parts: list[str] = []
    depth = start = position = 0
    quoted = False
    while position < len(text):
        char = text[position]
        if char == '"':
            quoted = not quoted
        elif not quoted:
            if char in "([{<":
                depth += 1
            elif char in ")]}>":
                depth -= 1
            elif depth == 0 and text.startswith(separator, position):
                parts.append(text[start:position])
                position += len(separator)
                start = position
                continue
        position += 1
    if text[start:]:
        parts.append(text[start:])
    return parts


def parse_kernel_ios(text: str, where: str) -> tuple[KernelIo, ...]:
    """Parse device types: ``<Float32xDefaultFormat[const vector]{2, 3}>, ...``."""
    return tuple(
        KernelIo(dtype=kind, format=layout, shape=_dims(dims, where)) for kind, layout, dims in _KERNEL_IO.findall(text)
    )


def parse_types(text: str, where: str) -> tuple[Abstract, ...]:
    """Parse the types between the brackets of a line."""
    return tuple(parse_type(part, where) for part in split_list(text))


def parse_type(text: str, where: str) -> Abstract:
    """Parse one type in angle brackets.

    Raises
    ------
    UnreadableError
        For text that is not a type, an unknown data type, or text that is not a shape.

    Examples
    --------
    >>> parse_type("<Ref[Tensor[Float32]], (3), ref_key=bn.gamma, is_parameter, is_inplace>", "ir").inplace
    True
    """
    fields = split_list(text.strip()[1:-1])
    if len(fields) < 2:
        if fields == ["null"]:
            return NoneType()
        raise UnreadableError(f"{text!r} is not a type", where=where, code="DS-IR-006")
    abstract = _build(fields[0], fields[1], where)
    extras = fields[2:]
    if isinstance(abstract, TensorType):
        key = next((extra[8:] for extra in extras if extra.startswith("ref_key=")), None)
        return TensorType(
            dtype=abstract.dtype,
            shape=abstract.shape,
            ref_key=key,
            inplace="is_inplace" in extras,
            constant="value=..." in extras,
        )
    if isinstance(abstract, TupleType) and any(extra.startswith("elements_use_flags") for extra in extras):
        return TupleType(items=abstract.items, value=(), counted=not abstract.items)
    return abstract


def _build(name: str, shape: str, where: str) -> Abstract:
    """Make a type from its name and its shape."""
    if name.startswith("Ref["):
        name = name[4:-1]
    if name.startswith("Tensor["):
        return TensorType(dtype=_dtype(name[7:-1], where), shape=_dims(shape, where))
    if name.startswith(("Tuple[", "List[")):
        names = _unfold(split_list(name[name.index("[") + 1 : -1], ","))
        shapes = split_list(shape[shape.index("(") + 1 : -1]) if "(" in shape else []
        if len(names) != len(shapes):
            raise UnreadableError(f"{len(names)} types with {len(shapes)} shapes", where=where, code="DS-IR-007")
        return TupleType(items=tuple(_build(n, s, where) for n, s in zip(names, shapes, strict=True)))
    simple: dict[str, Abstract] = {
        "UMonad": MonadType(kind="U"),
        "IOMonad": MonadType(kind="IO"),
        "String": StringType(),
        "TypeType": TypeType(),
        "None": NoneType(),
        "TypeNone": NoneType(),
        "Func": FunctionType(),
    }
    if name.startswith("Object:"):
        return ObjectType(name[7:])
    return simple[name] if name in simple else ScalarType(dtype=_dtype(name, where))


def _unfold(names: list[str]) -> list[str]:
    """Expand repetitions: ``Tensor[Float32]*2`` is two types."""
    result: list[str] = []
    for name in names:
        base, star, count = name.rpartition("*")
        result += [base] * int(count) if star and count.isdigit() and int(count) <= 1 << 16 else [name]
    return result


def _dtype(name: str, where: str) -> DType:
    try:
        return dtype(name)
    except DtypeError as error:
        raise UnreadableError(error.what, where=where, code="DS-IR-008") from None


def _dims(text: str, where: str) -> tuple[int, ...]:
    try:
        return tuple(int(dim) for dim in text.strip("()").split(",") if dim.strip())
    except ValueError:
        raise UnreadableError(f"{text!r} is not a shape", where=where, code="DS-IR-009") from None
