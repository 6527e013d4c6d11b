"""The operators of a data sink: one initialises the queue of a data set, one takes the next row from it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType
from dumpsim.core.errors import ScriptRuntimeError, ScriptValueError
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.rules import output, tuple_of

__all__ = ["OPS", "Channel"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


class Channel(Protocol):
    """The source of a data set's rows; the front end implements it."""

    def rows(self) -> Iterator[Sequence[Array]]: ...


def _infer_init(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return NoneType()


def _init(**settings: Any) -> None:
    """Do nothing: the front end owns the queue."""


def _infer_next(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    types, shapes, number = attrs["types"], attrs["shapes"], attrs["output_num"]
    if not len(types) == len(shapes) == number:
        raise ScriptValueError(
            f"For 'GetNext', the length of 'types' {len(types)}, that of 'shapes' {len(shapes)} and 'output_num' "
            f"{number} must be equal."
        )
    return tuple_of(*(output(kind, shape) for kind, shape in zip(types, shapes, strict=True)))


def _next(
    *,
    types: Sequence[Any],
    shapes: Sequence[Sequence[int]],
    output_num: int,
    shared_name: str,
    channel: Channel,
    counter: int = 0,
) -> tuple[Array, ...]:
    row = next(channel.rows(), None)
    if row is None:
        raise ScriptRuntimeError(f"the data queue {shared_name!r} is empty", where="GetNext")
    for value, kind, shape in zip(row, types, shapes, strict=True):
        if tuple(value.shape) != tuple(shape) or value.dtype != kind.numpy:
            raise ScriptRuntimeError(
                f"the data queue {shared_name!r} contains {value.dtype} of shape {tuple(value.shape)}",
                where="GetNext",
                allowed=(f"{kind} of shape {tuple(shape)}",),
            )
    return tuple(row)


OPS = (
    OpDef(
        name="InitDataSetQueue",
        operands=(),
        infer=_infer_init,
        kernel=_init,
        # names of the attributes: spec and source of 2.10; the vendor creates the node itself, not the script
        attrs={"queue_name": "", "size": 0, "batch_size": 1, "types": (), "shapes": (), "input_indexes": ()},
        stop=True,
        engine="host",
    ),
    OpDef(
        name="GetNext",
        operands=(),
        infer=_infer_next,
        kernel=_next,
        attrs={"types": (), "shapes": (), "output_num": 0, "shared_name": ""},
        random=True,  # each run takes another row, so that equal nodes must not be merged
        stop=True,
        engine="host",
    ),
)
