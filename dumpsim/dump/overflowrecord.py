"""The device's record of an overflowing task: the 2048 bytes of an Opdebug file. [spec ge 3.8, spec parallel 4.4]"""

from dumpsim.codecs.opdebug import Block, NewOpDebug, OpDebug, encode
from dumpsim.core.events import TaskEvent
from dumpsim.modes.operators import CUBE

__all__ = ["layout_of", "record_of"]

_FLOAT_OVERFLOW = 0x20  # AI Core status if the device has no other [spec mindspore 5.2]
_OLD_CHIPS = ("910A", "310P")  # [spec mindspore 5.2: the new layout is that of later hardware]


def layout_of(word: str, chip: str) -> str:
    """Return ``old`` or ``new``: the profile's layout, or that of the chip.

    Examples
    --------
    >>> layout_of("chip", "910A"), layout_of("chip", "910B"), layout_of("old", "910B")
    ('old', 'new', 'old')
    """
    if word != "chip":
        return word
    return "old" if chip in _OLD_CHIPS else "new"


def record_of(event: TaskEvent, layout: str) -> bytes:
    """Encode the record of an AI Core overflow, with the operator's own task and stream.

    Examples
    --------
    >>> event = TaskEvent(op_type="Add", full_name="Add", graph_id=0, root_graph_id=0, operands=(), outputs=(),
    ...                   task_id=3, stream_id=2, overflow=True)
    >>> record_of(event, "old")[264:280].hex(" ", 8), len(record_of(event, "new"))
    ('0200000000000000 0300000000000000', 2048)
    """
    status = event.overflow_status or _FLOAT_OVERFLOW
    ids = {"model_id": event.model_id, "stream_id": event.stream_id, "task_id": event.task_id}
    if layout == "old":
        return encode(OpDebug(ai_core=Block(**ids, status=status)))
    unit = "AIC" if event.op_type.startswith(CUBE) else "AIV"
    return encode(NewOpDebug(acc_type=unit, data={**ids, "context_id": 65535, "thread_id": 65535, "status": status}))
