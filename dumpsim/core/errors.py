"""Errors that say what is wrong, where, what is allowed and the nearest legal value.

Every error is a `DumpsimError` and also the built-in that the vendor raises in its place, so that both
styles of `except` work.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from dumpsim.core.meant import meant

__all__ = [
    "BadInputError",
    "CaptureError",
    "DeviceError",
    "DtypeError",
    "DumpConfigError",
    "DumpWriteError",
    "DumpsimError",
    "FaultPlanError",
    "FormatError",
    "MissingFileError",
    "OutOfMemoryError",
    "PeerError",
    "ScriptFileError",
    "ScriptRuntimeError",
    "ScriptTypeError",
    "ScriptValueError",
    "StreamHazard",
    "UnfinishedWarning",
    "UnknownValueError",
    "UnreadableError",
    "UnsupportedError",
    "nearest",
    "public_name",
]


def nearest(value: object, allowed: Iterable[object]) -> str | None:
    """Return the allowed value that `value` is a synonym of, else the one with the most similar spelling.

    Returns
    -------
    str or None
        None if no allowed value is close.

    Examples
    --------
    >>> nearest("tensors", ["tensor", "statistic", "full"]), nearest("npu", ["ascend", "gpu", "cpu"])
    ('tensor', 'ascend')
    """
    legal = [str(one) for one in allowed]
    known = meant(str(value), legal)
    if known is not None:
        return known or None
    found = get_close_matches(str(value).lower(), [one.lower() for one in legal], cutoff=0.5)
    if not found:
        return None
    return next(one for one in legal if one.lower() == found[0])


def public_name(error: BaseException | None) -> str:
    """Return the name of an error's type as scripts know it: an error of MindSpore has the name of Python's own.

    Examples
    --------
    >>> public_name(ScriptValueError("the axis is 3")), public_name(BadInputError("x"))
    ('ValueError', 'BadInputError')
    """
    kind = type(error)
    if not kind.__name__.startswith("Script"):
        return kind.__name__
    return next(base.__name__ for base in kind.__mro__ if base.__module__ == "builtins")


class DumpsimError(Exception):
    """Base of all errors of dumpsim.

    Parameters
    ----------
    what : str
        What is wrong, with the offending value.
    where : str, optional
        File and JSON path, API argument, byte offset or operator.
    allowed : iterable, optional
        The legal values.
    nearest : str, optional
        The legal value that was probably meant.
    code : str, optional
        A stable code such as ``DS-CFG-012``, which ``dumpsim explain`` describes.
    vendor : str, optional
        The vendor's text, if known. It becomes the message, and our own text a note.

    Examples
    --------
    >>> str(DumpsimError("'tensors' is not known", where="saved_data", allowed=("tensor", "full"), nearest="tensor"))
    "saved_data: 'tensors' is not known; allowed: tensor, full (did you mean 'tensor'?)"
    """

    default_code: str | None = None

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        allowed: Iterable[object] = (),
        nearest: str | None = None,
        code: str | None = None,
        vendor: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.allowed = tuple(str(a) for a in allowed)
        self.nearest = nearest
        self.code = code or self.default_code
        self.vendor = vendor
        super().__init__(vendor if vendor is not None else self.explain())
        if vendor is not None:
            self.add_note(self.explain())

    def explain(self) -> str:
        """Return our own text: where, what, allowed, nearest, code."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.allowed:
            text += f"; allowed: {', '.join(self.allowed)}"
        if self.nearest:
            text += f" (did you mean {self.nearest!r}?)"
        if self.code:
            text += f" [{self.code}]"
        return text


class DumpConfigError(DumpsimError, RuntimeError):
    """A dump config that the vendor rejects; a RuntimeError, as in MindSpore. [spec mindspore 1.1]"""


class DumpWriteError(DumpsimError, OSError):
    """A file of the dump could not be written: disk full, read-only, vanished directory."""


class UnreadableError(DumpsimError, ValueError):
    """A file or tree that cannot be read as a dump; the message contains the file and the offset."""


class UnfinishedWarning(UserWarning):
    """The last line of a file is incomplete; it is ignored, the lines before it are used."""


class MissingFileError(UnreadableError, FileNotFoundError):
    """A file or tree that does not exist; a FileNotFoundError too."""


class FormatError(DumpsimError, ValueError):
    """An unknown device format, or one that does not fit the shape or the number of bytes."""


class DtypeError(DumpsimError, TypeError):
    """A number type that is unknown, or that the operation does not support."""


class BadInputError(DumpsimError, ValueError):
    """An argument of a dumpsim function is invalid."""


class UnknownValueError(DumpsimError, RuntimeError):
    """A value that was not computed, since the engine knows types and shapes only; the message names it."""

    default_code = "DS-ENG-001"


class UnsupportedError(DumpsimError, NotImplementedError):
    """A feature of the real system that is not emulated; the message names it."""


class CaptureError(DumpsimError, RuntimeError):
    """A script cannot be turned into a graph; the message names the function and the line."""


class ScriptTypeError(DumpsimError, TypeError):
    """The TypeError that the vendor raises for a script's mistake."""


class ScriptValueError(DumpsimError, ValueError):
    """The ValueError that the vendor raises for a script's mistake."""


class ScriptFileError(DumpsimError, FileNotFoundError):
    """The FileNotFoundError that the vendor raises for a script's mistake."""


class ScriptRuntimeError(DumpsimError, RuntimeError):
    """The RuntimeError that the vendor raises for a script's mistake."""


class DeviceError(DumpsimError, RuntimeError):
    """The emulated device stopped: AI Core error, deadlock, time-out."""


class OutOfMemoryError(DeviceError):
    """The emulated device is out of memory; the message shows the memory plan."""


class PeerError(DeviceError):
    """A rank waited for a rank that has failed; the cause is that rank's own error.

    Attributes
    ----------
    rank : int
        The rank that failed.
    """

    default_code = "DS-DEV-006"

    def __init__(self, what: str, *, rank: int, where: str | None = None) -> None:
        super().__init__(what, where=where)
        self.rank = rank


class StreamHazard(DeviceError):
    """Two tasks of different streams use the same memory, or the same links, and no event orders them."""

    default_code = "DS-DEV-007"


class CollectiveError(PeerError):
    """A collective failed: the members' calls differ, or a member was late or has ended.

    Parameters
    ----------
    what : str
        HCCL's message.
    rank : int
        The rank that caused it.
    code : str
        HCCL's code, ``EI0002``.
    where : str, optional
        The collective, and the rank that raises it.

    Examples
    --------
    >>> error = CollectiveError("rank 1 did not come", rank=1, code="EI0002")
    >>> error.rank, error.code, str(error)
    (1, 'EI0002', 'rank 1 did not come [EI0002]')
    """

    def __init__(self, what: str, *, rank: int, code: str, where: str | None = None) -> None:
        super().__init__(what, rank=rank, where=where)
        self.code = code
        self.args = (self.explain(),)


class FaultPlanError(DumpsimError, ValueError):
    """A fault plan is invalid."""
