"""Types of outputs for operands with extents that only the run knows (-1).

Most rules compare and compute extents as if all were known. What follows from an open extent is open, and what is
compared with one fits until the run shows whether it does, as in the vendor's rules. [observed 2.10]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.core.errors import ScriptRuntimeError

__all__ = ["has_open", "infer_open"]

Infer = Callable[[Sequence[Abstract], Mapping[str, Any]], Abstract]

# operators whose rule in MindSpore takes -1 for an extent like others, and refuses it [observed 2.10]
_REFUSING = frozenset({"KLDivLoss", "ReverseSequence"})


class _Open(int):
    """An extent of -1 that stays open whatever is computed with it; nothing is left when it is divided."""

    __slots__ = ()

    def _same(self, *_: Any) -> "_Open":
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _same
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __abs__ = __ceil__ = __floor__ = _same  # type: ignore[assignment]

    def __mod__(self, other: int) -> int:
        return 0

    __rmod__ = __mod__


class _Fitting(_Open):
    """An open extent that equals each other one, and is neither less nor greater."""

    __slots__ = ()

    def _yes(self, other: object) -> bool:
        return True

    def _no(self, other: object) -> bool:
        return False

    __eq__ = _yes
    __ne__ = __lt__ = __gt__ = __le__ = __ge__ = _no
    __hash__ = int.__hash__


def has_open(abstracts: Sequence[Abstract]) -> bool:
    """Whether a tensor among the operands has an open extent.

    Examples
    --------
    >>> from dumpsim.core.dtype import dtype
    >>> x = TensorType(dtype=dtype("float32"), shape=(2, -1))
    >>> has_open([TupleType(items=(x,))]), has_open([replace(x, shape=(2, 3))])
    (True, False)
    """
    return any(
        -1 in one.shape if isinstance(one, TensorType) else isinstance(one, TupleType) and has_open(one.items)
        for one in abstracts
    )


def infer_open(name: str, rule: Infer, abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    """Return the type that a rule gives for operands with open extents.

    Raises
    ------
    ScriptValueError, ScriptRuntimeError, ScriptTypeError
        The operands do not fit, whatever their open extents are.

    Examples
    --------
    >>> from dumpsim.core.dtype import dtype
    >>> def flat(abstracts, attrs):
    ...     rows, columns = abstracts[0].shape
    ...     return replace(abstracts[0], shape=(rows * columns + 4,))
    >>> infer_open("Flat", flat, [TensorType(dtype=dtype("float32"), shape=(2, -1))], {}).shape
    (-1,)
    """
    if name in _REFUSING:
        return rule(abstracts, attrs)
    try:
        return _closed(rule(_with(_Open(-1), abstracts), attrs))
    except (ScriptRuntimeError, ValueError) as error:
        try:
            return _closed(rule(_with(_Fitting(-1), abstracts), attrs))
        except (ScriptRuntimeError, ValueError):
            raise error from None


def _with(extent: _Open, abstracts: Sequence[Abstract]) -> list[Abstract]:
    """The operands with this extent where theirs are open."""
    found: list[Abstract] = []
    for one in abstracts:
        if isinstance(one, TensorType) and -1 in one.shape:
            one = replace(one, shape=tuple(extent if n == -1 else n for n in one.shape))
        elif isinstance(one, TupleType):
            one = replace(one, items=tuple(_with(extent, one.items)))
        found.append(one)
    return found


def _closed(abstract: Abstract) -> Abstract:
    """The type with -1 for what is open."""
    if isinstance(abstract, TensorType):
        return replace(abstract, shape=tuple(-1 if int(n) < 0 else int(n) for n in abstract.shape))
    if isinstance(abstract, TupleType):
        return replace(abstract, items=tuple(map(_closed, abstract.items)))
    return abstract
