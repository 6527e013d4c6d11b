"""Fault plans: faults to inject into a run, as one declarative file or object.

A plan is JSON, ``{"faults": [...]}``; every fault has a `kind`. Operators are selected by a shell pattern on
their full name (``Default/*/MatMul-op0``) or by their type (``MatMul``); `nth` counts the matching
launches of the run from 1. Faults of ranks (kill, hang, delay, diverge) occur at the `nth` matching collective
of the rank.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from dumpsim.core.errors import FaultPlanError, UnreadableError, nearest
from dumpsim.core.regular import read_bytes

__all__ = [
    "AicoreErrorFault",
    "DelayFault",
    "DiskFullFault",
    "DivergeFault",
    "Fault",
    "FaultPlan",
    "HangFault",
    "KillFault",
    "OutOfMemoryFault",
    "OverflowFault",
    "SlowDiskFault",
    "StompFault",
    "check_plan",
    "fault_schema",
    "load_plan",
    "make_plan",
]


_MAX_PLAN = 1 << 24  # bytes


class _Fault(BaseModel):
    """Fields of all faults."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: Annotated[int, Field(ge=0)] | None = Field(default=None, description="only on this rank; null: on every rank")


class OverflowFault(_Fault):
    """A result is too large: `value` replaces an element of the exact result before the device stores it."""

    kind: Literal["overflow"] = "overflow"
    op: str = Field(min_length=1, description="pattern of the operator's full name, or its type")
    nth: int = Field(default=1, ge=1, description="which matching launch, from 1")
    output: int = Field(default=0, ge=0, description="output slot")
    index: int = Field(default=0, ge=0, description="element, counted in C order")
    value: Literal["inf", "-inf", "nan"] | float = Field(default="inf", description="the exact result of the element")


class StompFault(_Fault):
    """After an operator, bytes outside its output are overwritten."""

    kind: Literal["stomp"] = "stomp"
    after: str = Field(min_length=1, description="pattern of the operator after which it happens, or its type")
    nth: int = Field(default=1, ge=1, description="which matching launch, from 1")
    target: str | None = Field(
        default=None, description="pattern of the operator whose output is hit, or a parameter's name"
    )
    slot: int = Field(default=0, ge=0, description="output slot of the target")
    address: int | None = Field(default=None, ge=0, description="device address that is hit, instead of a target")
    offset: int = Field(
        default=0, description="bytes from the target's start, or from the end of the operator's output"
    )
    nbytes: int = Field(default=32, ge=1, description="how many bytes are overwritten")
    byte: int = Field(default=255, ge=0, le=255, description="what they are overwritten with")

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.target is not None and self.address is not None:
            raise ValueError("'target' and 'address' exclude each other")
        return self


class AicoreErrorFault(_Fault):
    """A kernel stops with an AI Core error; the script sees it at the next synchronisation."""

    kind: Literal["aicore_error"] = "aicore_error"
    op: str = Field(min_length=1, description="pattern of the operator's full name, or its type")
    nth: int = Field(default=1, ge=1, description="which matching launch, from 1")
    # [spec parallel 4.5]: 507015 AI Core exception
    code: Literal[
        507014, 507015, 507016, 507017, 507018, 507034, 507035, 507036, 507042, 507043, 507044, 507045, 507053, 507054
    ] = Field(default=507015, description="runtime error code")


class OutOfMemoryFault(_Fault):
    """The device runs out of memory at an operator's launch, or has only `bytes` of memory."""

    kind: Literal["out_of_memory"] = "out_of_memory"
    op: str | None = Field(default=None, min_length=1, description="pattern of the operator's full name, or its type")
    nth: int = Field(default=1, ge=1, description="which matching launch, from 1")
    bytes: Annotated[int, Field(ge=0)] | None = Field(default=None, description="device memory in bytes, instead of op")

    @model_validator(mode="after")
    def _one_cause(self) -> Self:
        if (self.op is None) == (self.bytes is None):
            raise ValueError("give either 'op' or 'bytes'")
        return self


class DiskFullFault(_Fault):
    """The disk is full after a number of bytes of the dump."""

    kind: Literal["disk_full"] = "disk_full"
    after_bytes: int = Field(ge=0, description="bytes that still fit")


class SlowDiskFault(_Fault):
    """The disk is slow; the virtual clock advances, with the wall clock writes really wait."""

    kind: Literal["slow_disk"] = "slow_disk"
    mb_per_s: float = Field(gt=0, description="10**6 bytes per second")


class _CollectiveFault(_Fault):
    """Faults of a rank at one of its collectives."""

    op: str | None = Field(
        default=None, min_length=1, description="pattern of the collective's full name, or its type; null: every one"
    )
    group: str | None = Field(default=None, min_length=1, description="only in this group; null: in every group")
    nth: int = Field(default=1, ge=1, description="which matching collective of the rank, from 1")


class KillFault(_CollectiveFault):
    """The rank ends at the collective like a killed process."""

    kind: Literal["kill"] = "kill"


class HangFault(_CollectiveFault):
    """The rank never arrives at the collective."""

    kind: Literal["hang"] = "hang"


class DelayFault(_CollectiveFault):
    """The rank arrives late at the collective, on the virtual clock."""

    kind: Literal["delay"] = "delay"
    seconds: float = Field(gt=0, le=1e9, description="how much later")


class DivergeFault(_CollectiveFault):
    """The rank's call differs from that of the other ranks."""

    kind: Literal["diverge"] = "diverge"
    change: Literal["op", "count", "type"] = Field(
        default="op", description="another collective, one element more in the first axis, or another number type"
    )


Fault: TypeAlias = Annotated[
    OverflowFault
    | StompFault
    | AicoreErrorFault
    | OutOfMemoryFault
    | DiskFullFault
    | SlowDiskFault
    | KillFault
    | HangFault
    | DelayFault
    | DivergeFault,
    Field(discriminator="kind"),
]

_KINDS: Mapping[str, type[_Fault]] = {
    "overflow": OverflowFault,
    "stomp": StompFault,
    "aicore_error": AicoreErrorFault,
    "out_of_memory": OutOfMemoryFault,
    "disk_full": DiskFullFault,
    "slow_disk": SlowDiskFault,
    "kill": KillFault,
    "hang": HangFault,
    "delay": DelayFault,
    "diverge": DivergeFault,
}


class FaultPlan(BaseModel):
    """All faults of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="dumpsim fault plan")

    faults: tuple[Fault, ...] = ()


def make_plan(faults: Iterable[Fault | Mapping[str, Any]], *, where: str = "faults") -> FaultPlan:
    """Return a plan of faults or their JSON objects.

    Raises
    ------
    FaultPlanError
        For anything that the schema does not allow.

    Examples
    --------
    >>> make_plan([{"kind": "overflow", "op": "MatMul"}]).faults[0].nth
    1
    >>> make_plan([{"kind": "overflw", "op": "MatMul"}])
    Traceback (most recent call last):
    ...
    dumpsim.core.errors.FaultPlanError: faults: $.faults[0].kind: 'overflw' is not a kind of fault; allowed: overflow, \
stomp, aicore_error, out_of_memory, disk_full, slow_disk, kill, hang, delay, diverge (did you mean \
'overflow'?) [DS-FLT-001]
    """
    raw = [fault.model_dump() if isinstance(fault, _Fault) else fault for fault in faults]
    return _validate({"faults": raw}, where)


def load_plan(path: str | Path) -> FaultPlan:
    """Return the plan in a file.

    Raises
    ------
    FaultPlanError
        If the file cannot be read, is not JSON, or does not follow the schema.
    """
    return _validate(_read(path), str(path))


def check_plan(path: str | Path) -> list[FaultPlanError]:
    """Return all errors of the plan in a file, in the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write('{"faults": [{"kind": "disk_full"}, {"kind": "overflow", "op": "Add", "nth": 0}]}')
    ...     file.flush()
    ...     [error.where.partition(": ")[2] for error in check_plan(file.name)]
    ['$.faults[0].after_bytes', '$.faults[1].nth']
    """
    try:
        FaultPlan.model_validate(_read(path))
    except FaultPlanError as error:
        return [error]
    except ValidationError as error:
        return [_explain(found, str(path)) for found in error.errors()]
    return []


def _read(path: str | Path) -> dict[str, Any]:
    try:
        text = read_bytes(path, _MAX_PLAN, follow=True).decode("utf-8")
    except (UnreadableError, UnicodeDecodeError) as error:
        reason = error.what if isinstance(error, UnreadableError) else f"cannot be read: {error}"
        raise FaultPlanError(f"the fault plan {reason}", where=str(path), code="DS-FLT-002") from error
    try:
        content = json.loads(text, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise FaultPlanError(
            f"not JSON: {error.msg}", where=f"{path}:{error.lineno}:{error.colno}", code="DS-FLT-003"
        ) from error
    except (ValueError, RecursionError) as error:
        what = "lists or objects are nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise FaultPlanError(what, where=str(path), code="DS-FLT-003") from None
    if not isinstance(content, dict):
        raise FaultPlanError(
            "a fault plan is a JSON object", where=f"{path}: $", allowed=("faults",), code="DS-FLT-001"
        )
    return content


def _integer(text: str) -> int:
    """Return an integer of at most 64 bits, which is more than any field of a plan takes."""
    if len(text) > 20:
        raise ValueError(f"an integer of {len(text)} digits; allowed: 64 bits, at most 20 digits")
    return int(text)


def fault_schema() -> dict[str, Any]:
    """Return the JSON Schema of fault plans.

    Examples
    --------
    >>> fault_schema()["title"]
    'dumpsim fault plan'
    """
    return TypeAdapter(FaultPlan).json_schema()


def _validate(content: Any, where: str) -> FaultPlan:
    try:
        return FaultPlan.model_validate(content)
    except ValidationError as error:
        raise _explain(error.errors()[0], where) from error


def _explain(first: Mapping[str, Any], where: str) -> FaultPlanError:
    """Return an error of the schema in the form of our other errors."""
    # pydantic puts the tag of a union, and of an unnamed union its type, between the index and the field
    location = [part for at, part in enumerate(first["loc"]) if at < 2 or part in _fields(first["loc"])]
    path = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    kind = first["type"]
    allowed: tuple[object, ...] = ()
    near: str | None = None
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        path += ".kind"
        allowed = tuple(_KINDS)
        given = first["ctx"].get("tag", "") if "ctx" in first else ""
        what = f"{given!r} is not a kind of fault" if given else "the kind of the fault is missing"
        near = nearest(given, allowed) if given else None
    elif kind == "extra_forbidden":
        name = str(first["loc"][-1])
        path = path if path.endswith(f".{name}") else f"{path}.{name}"
        allowed = _fields(first["loc"]) or tuple(FaultPlan.model_fields)
        what, near = f"unknown field {name!r}", nearest(name, allowed)
    elif kind == "missing":
        what = "the field is missing"
    else:
        message = re.sub(r"^Value error, ", "", first["msg"])
        what = f"{first['input']!r}: {message}" if not isinstance(first["input"], dict) else message
        if kind == "literal_error":
            allowed = _literals(first["loc"])
            what = f"{first['input']!r} is not a valid value"
            near = nearest(first["input"], allowed)
    return FaultPlanError(what, where=f"{where}: {path}", allowed=allowed, nearest=near, code="DS-FLT-001")


def _fields(location: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the fields of the fault that an error is located in."""
    return next((tuple(_KINDS[str(tag)].model_fields) for tag in location[2:] if tag in _KINDS), ())


def _literals(location: tuple[int | str, ...]) -> tuple[object, ...]:
    """Return the valid values of the field that an error is located in."""
    from typing import get_args

    annotation = _KINDS[str(location[2])].model_fields[str(location[3])].annotation
    values: list[object] = []
    for argument in get_args(annotation):
        values += get_args(argument) or (["a number"] if argument is float else [argument])
    return tuple(values)
