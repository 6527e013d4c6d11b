"""Extents that `set_inputs` leaves open until the graph runs, as the script sees them during capture."""

from typing import Any, NoReturn

from dumpsim.core.errors import CaptureError

__all__ = ["OpenExtent", "OpenExtentError", "refuse_open", "shown"]


class OpenExtentError(CaptureError):
    """The script needs an extent that is known only when the graph runs."""


class OpenExtent(int):
    """An extent without a value: every operation that needs the value raises."""

    __slots__ = ()

    def __new__(cls) -> "OpenExtent":
        return super().__new__(cls, -1)

    def _fail(self, *_: Any) -> NoReturn:
        raise OpenExtentError("the script needs the value of an extent that set_inputs leaves open")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _fail
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _fail
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __bool__ = _fail
    __index__ = __int__ = __float__ = __hash__ = _fail


def shown(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape as the script sees it."""
    return tuple(OpenExtent() if extent == -1 else extent for extent in shape) if -1 in shape else shape


def refuse_open(value: Any) -> None:
    """Raise for an operand or a result that contains an open extent."""
    if isinstance(value, OpenExtent):
        value._fail()
    for element in value if isinstance(value, (tuple, list)) else ():
        refuse_open(element)
