"""The marker ``ranks``, and how reports name ranks."""

import inspect
import unittest
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import BadInputError, nearest

__all__ = ["asked", "check", "marker_of", "misspelt", "named", "sizes"]

_WHERE = "@pytest.mark.ranks"


def sizes(marker: Any) -> tuple[int, ...]:
    """Return the numbers of ranks that a marker asks for.

    Raises
    ------
    BadInputError
        For a missing number, a number below 1, a repeated number, and keywords.

    Examples
    --------
    >>> import pytest
    >>> sizes(pytest.mark.ranks(1, 2, 4))
    (1, 2, 4)
    >>> sizes(pytest.mark.ranks("4"))
    Traceback (most recent call last):
    dumpsim.core.errors.BadInputError: @pytest.mark.ranks('4'): '4' is not a number of ranks; allowed: 1 or more (did \
you mean 'ranks(4)'?) [DS-TST-004]
    """
    if marker.kwargs:
        name = next(iter(marker.kwargs))
        raise _wrong(f"unknown keyword {name!r}", f"{_WHERE}({name}=...)", allowed=("numbers only: ranks(4)",))
    if not marker.args:
        raise _wrong("no number of ranks is given", f"{_WHERE}()", allowed=("ranks(4)", "several: ranks(1, 2, 4)"))
    for size in marker.args:
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise _wrong(
                f"{size!r} is not a number of ranks",
                f"{_WHERE}({size!r})",
                allowed=("1 or more",),
                meant=_meant(size),
            )
        if marker.args.count(size) > 1:
            raise _wrong(f"{size} is given twice", f"{_WHERE}({', '.join(map(repr, marker.args))})")
    return tuple(marker.args)


def marker_of(item: Any) -> Any:
    """Return the marker of a test, preferably that of ``pytest.param(..., marks=...)``; None without one."""
    of_parameter = (mark for mark in getattr(item, "callspec", _NoParameters).marks if mark.name == "ranks")
    return next(of_parameter, None) or item.get_closest_marker("ranks")


def check(marker: Any, item: Any) -> None:
    """Refuse a wrong marker, and one on a test that cannot run on ranks.

    Raises
    ------
    BadInputError
    """
    found = sizes(marker)
    what = ""
    if item.cls is not None and issubclass(item.cls, unittest.TestCase):
        what = "a method of unittest.TestCase"
    elif inspect.iscoroutinefunction(item.obj):
        what = "a coroutine"
    if what:
        allowed = ("plain test functions", "methods of plain classes")
        raise _wrong(f"{item.name} is {what}", _WHERE, allowed=allowed)
    callspec = getattr(item, "callspec", _NoParameters)
    if len(found) > 1 and ("world" not in callspec.params or marker in callspec.marks):
        where = f"{_WHERE}({', '.join(map(str, found))})"
        raise _wrong("several numbers in pytest.param(..., marks=...)", where, allowed=("one number",))


class _NoParameters:
    """Replaces the parameters of a test without parameters."""

    params: Mapping[str, Any] = MappingProxyType({})
    marks: Sequence[Any] = ()


def asked(marker: Any, item: Any) -> int:
    """Return the number of ranks of a test: its marker's, or the generated one of several."""
    callspec = getattr(item, "callspec", _NoParameters)
    size: int = marker.args[0] if marker in callspec.marks else callspec.params.get("world", marker.args[0])
    return size


def misspelt(node: Any) -> str | None:
    """Return a marker of a test that is probably a misspelt ``ranks``."""
    return next((mark.name for mark in node.iter_markers() if nearest(mark.name, ["ranks"])), None)


def named(ranks: Iterable[int]) -> str:
    """Name ranks briefly.

    Examples
    --------
    >>> named([3]), named([0, 2, 1, 5]), named([0, 1])
    ('rank 3', 'ranks 0-2, 5', 'ranks 0, 1')
    """
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][-1] + 1:
            spans[-1].append(rank)
        else:
            spans.append([rank])
    texts = [text for span in spans for text in _span(span)]
    return f"rank{'s' if len(texts) > 1 or '-' in texts[0] else ''} {', '.join(texts)}"


def _span(span: Sequence[int]) -> list[str]:
    return [f"{span[0]}-{span[-1]}"] if len(span) > 2 else [str(rank) for rank in span]


def _meant(size: object) -> str | None:
    if isinstance(size, str) and size.isdecimal() and int(size) > 0:
        return f"ranks({int(size)})"
    if isinstance(size, (list, tuple)) and size and all(isinstance(one, int) for one in size):
        return f"ranks({', '.join(map(str, size))})"
    if isinstance(size, float) and size.is_integer() and size >= 1:
        return f"ranks({int(size)})"
    return None


def _wrong(what: str, where: str, *, allowed: Sequence[str] = (), meant: str | None = None) -> BadInputError:
    return BadInputError(what, where=where, allowed=allowed, nearest=meant, code="DS-TST-004")
