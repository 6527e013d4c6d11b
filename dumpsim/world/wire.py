"""Messages between the ranks of a job and their hub: JSON objects in frames, never pickled objects."""

import builtins
import json
import struct
import traceback
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeGuard

from dumpsim.core import errors
from dumpsim.core.communicator import Call
from dumpsim.core.errors import DumpsimError, public_name
from dumpsim.core.gate import Failure

__all__ = [
    "ADDRESS",
    "FIRST",
    "LONGEST",
    "TOKEN",
    "Frames",
    "WireError",
    "decode_call",
    "decode_failure",
    "encode",
    "encode_call",
    "encode_error",
    "encode_failure",
    "rebuild",
    "take",
]

ADDRESS = "DUMPSIM_HUB"  # environment variable with the address of the job's hub
TOKEN = "DUMPSIM_HUB_TOKEN"  # environment variable with the token of the job
FIRST = 1 << 12  # bytes of a frame before the sender has shown the token
LONGEST = 1 << 26  # bytes of any other frame
_LENGTH = struct.Struct(">I")
_FIELDS = ("what", "where", "allowed", "nearest", "code", "vendor", "rank", "culprit", "kernel")
_TRACEBACK = 20_000  # characters


class WireError(DumpsimError, ValueError):
    """Bytes that are not a valid message of a rank or a hub."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Return the frame of a message: its length in four bytes, then JSON.

    Examples
    --------
    >>> encode({"kind": "wait"})
    b'\\x00\\x00\\x00\\x0f{"kind":"wait"}'
    """
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > LONGEST:
        raise WireError(f"message of {len(text)} bytes is too long", allowed=[f"at most {LONGEST}"])
    return _LENGTH.pack(len(text)) + text


class Frames:
    """Splits the bytes of a socket into messages.

    Attributes
    ----------
    limit : int
        Largest number of bytes of a frame.

    Examples
    --------
    >>> frames = Frames()
    >>> frame = encode({"kind": "wait"})
    >>> frames.feed(frame[:7]), frames.feed(frame[7:] + frame)
    ([], [{'kind': 'wait'}, {'kind': 'wait'}])
    """

    def __init__(self, limit: int = FIRST) -> None:
        self.limit = limit
        self._bytes = bytearray()

    def feed(self, received: bytes) -> list[dict[str, Any]]:
        """Add received bytes, and return the messages that are complete.

        Raises
        ------
        WireError
            For a frame that is too long, or not a JSON object with a `kind`.
        """
        self._bytes += received
        messages = []
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            if length > self.limit:
                raise WireError(f"message of {length} bytes is too long", allowed=[f"at most {self.limit}"])
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                break
            text = bytes(self._bytes[_LENGTH.size : end])
            del self._bytes[:end]
            messages.append(_message(text))
        return messages


def _message(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a message is not JSON: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
        raise WireError("a message is not an object with a kind")
    return content


def take(message: Mapping[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """Return a field of a message.

    Raises
    ------
    WireError
        If it is missing, or has another type.
    """
    value = message.get(name, default)
    if type(value) is not kind:  # a bool is not an int here
        raise WireError(f"{message['kind']}.{name} is {value!r:.80}", allowed=[kind.__name__])
    return value


# ------------------------------------------------------------------- errors
def encode_failure(failure: Failure) -> dict[str, Any]:
    """Return the fields of a failure."""
    return {
        "rank": failure.rank,
        "time": failure.time_ns,
        "lasting": failure.lasting,
        "error": encode_error(failure.error),
    }


def decode_failure(message: Mapping[str, Any]) -> Failure:
    """Return the failure that was passed to `encode_failure`; its error has the same type and text."""
    rank, time_ns, lasting = message["rank"], message["time"], message["lasting"]
    if not (type(rank) is type(time_ns) is int and type(lasting) is bool):
        raise WireError("a failure without rank or time")
    return Failure(rank=rank, time_ns=time_ns, error=rebuild(message["error"]), lasting=lasting)


def encode_error(error: BaseException, *, trace: bool = False) -> dict[str, Any]:
    """Return the fields of an error, from which `rebuild` creates one of the same type and text."""
    known = next((kind for kind in type(error).__mro__ if _known(kind)), RuntimeError)
    text = str(error)
    if known is not type(error):
        text = f"{public_name(error)}: {text}"
    given = error.args
    if isinstance(error, OSError) and error.filename is not None:
        given = (*given, error.filename)
    arguments = [one for one in given if isinstance(one, str | int | float | bool)]
    found: dict[str, Any] = {"type": known.__name__, "text": text, "notes": list(getattr(error, "__notes__", ()))}
    if known is type(error) and len(arguments) == len(given):
        found["args"] = arguments
    for name in _FIELDS:
        value = getattr(error, name, None)
        if isinstance(value, str | int | list | tuple):
            found[name] = value
    if trace:
        found["traceback"] = "".join(traceback.format_exception(error))[-_TRACEBACK:]
    return found


def _known(kind: type) -> bool:
    """Whether `rebuild` can find a type by its name: an error of dumpsim or of Python."""
    found = getattr(errors, kind.__name__, None) or getattr(builtins, kind.__name__, None)
    return found is kind and _is_rebuilt(kind)


def _is_rebuilt(kind: object) -> TypeGuard[type[Exception]]:
    """Whether a type's errors can be made of a text alone; a group needs its members, which are not sent."""
    return isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, ExceptionGroup)


def rebuild(message: Mapping[str, Any]) -> BaseException:
    """Return the error that was passed to `encode_error`.

    An error of dumpsim or of Python keeps its type; one that the script defines becomes its nearest base class among
    those.

    Examples
    --------
    >>> class Mine(KeyError): ...
    >>> [rebuild(encode_error(error)) for error in (ValueError("too many"), Mine("key"))]
    [ValueError('too many'), KeyError("Mine: 'key'")]
    """
    name, text = message["type"], message["text"]
    kind = getattr(errors, name, None) or getattr(builtins, name, None)
    if not _is_rebuilt(kind):
        kind = RuntimeError
    error: Exception = kind.__new__(kind, *message.get("args", (text,)))
    if isinstance(error, DumpsimError):
        error.allowed = tuple(message.get("allowed", ()))
        error.where = error.nearest = error.code = error.vendor = None
        error.what = text
        for name in _FIELDS:
            if name in message and name != "allowed":
                setattr(error, name, message[name])
    for note in message["notes"]:
        error.add_note(note)
    return error


# -------------------------------------------------------------------- calls
_DEFAULT = Call(op="")


def encode_call(call: Call) -> dict[str, Any]:
    """Return the fields of a call that differ from their defaults.

    Examples
    --------
    >>> encode_call(Call(op="Broadcast", tensors=(("int8", (2,)),), root=1))
    {'op': 'Broadcast', 'tensors': (('int8', (2,)),), 'root': 1}
    """
    values = ((each.name, getattr(call, each.name)) for each in fields(call))
    return {name: value for name, value in values if value != getattr(_DEFAULT, name)}


def decode_call(message: Mapping[str, Any]) -> Call:
    """Return the call that was passed to `encode_call`, after a round trip through JSON.

    Raises
    ------
    WireError
        For fields of other types.
    """
    found: dict[str, Any] = {}
    for name, value in message.items():
        default = getattr(_DEFAULT, name, None)
        if name in ("tensors", "expected"):
            found[name] = tuple((str(kind), _numbers(shape)) for kind, shape in value)
        elif isinstance(default, tuple):
            found[name] = _numbers(value)
        elif type(value) is type(default):
            found[name] = value
        else:
            raise WireError(f"call.{name} is {value!r:.80}")
    return Call(**found)


def _numbers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise WireError(f"{values!r:.80} is not a list of numbers")
    return tuple(values)
