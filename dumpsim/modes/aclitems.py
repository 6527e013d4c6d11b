"""The items of an ACL config, and ADUMP's error messages. [spec ge 2.1, 2.2]"""

from dataclasses import dataclass
from types import MappingProxyType

from dumpsim.core.errors import nearest
from dumpsim.modes.dialect import Draft, Finding, shown

__all__ = [
    "DUMP",
    "EXCEPTION_SCENES",
    "FILE",
    "ITEMS",
    "KERNEL_DATA",
    "LISTS",
    "LIST_ITEMS",
    "STATISTICS",
    "WATCHER",
    "Item",
    "conflict",
    "content",
    "unknown_value",
    "value_error",
]

DUMP = "dump"  # the section
FILE = "<file>"  # the draft's value with the name of the file
WATCHER = "watcher"
EXCEPTION_SCENES = ("lite_exception", "aic_err_brief_dump", "aic_err_norm_dump", "aic_err_detail_dump")
_SWITCH = ("off", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A string item of the section.

    Attributes
    ----------
    allowed : tuple of str
        Allowed values; empty if the item has its own rules.
    default : str
    about : str
    """

    name: str
    about: str
    allowed: tuple[str, ...] = ()
    default: str = ""


# in the order in which ADUMP checks their types
ITEMS: tuple[Item, ...] = (
    Item(name="dump_path", about="Directory of the dump; it must exist. Relative: to the working directory."),
    Item(name="dump_mode", about="Which tensors.", allowed=("all", "input", "output"), default="output"),
    Item(name="dump_op_switch", about="Dump operators outside of models.", allowed=_SWITCH, default="off"),
    Item(
        name="dump_level",
        about="op: operators of models; kernel: operators that run at once; all: both.",
        allowed=("all", "kernel", "op"),
        default="all",
    ),
    Item(
        name="dump_scene",
        about="watcher: watch mode; the others: dump operators that the hardware stopped.",
        allowed=(*sorted(EXCEPTION_SCENES), WATCHER),
    ),
    Item(name="dump_data", about="Tensors or their statistics.", allowed=("stats", "tensor"), default="tensor"),
    Item(name="dump_debug", about="Dump operators that overflow.", allowed=_SWITCH, default="off"),
    Item(name="dump_kernel_data", about="What kernels print themselves.", default="all"),
    Item(name="dump_step", about="Iterations: numbers and ranges between bars, 0|3-5."),
)
KERNEL_DATA = ("all", "assert", "printf", "tensor", "timestamp")
# dump_stats -> name in core.statistic
STATISTICS = MappingProxyType(
    {
        "Avg": "avg",
        "L2norm": "l2norm",
        "Max": "max",
        "Min": "min",
        "Nan": "nan",
        "Negative Inf": "negative_inf",
        "Positive Inf": "positive_inf",
    }
)
# the items that are lists, and those of the members of dump_list
LISTS = MappingProxyType(
    {
        "dump_stats": "Which statistics; needs dump_data stats.",
        "dump_list": "Models, with what to dump of them; an empty list means every model.",
        "model_name": "Of a member of dump_list: the model; without it any model.",
        "layer": "Of a member of dump_list: names of operators; in watch mode those after which outputs are read.",
        "watcher_nodes": "Of a member of dump_list, in watch mode: operators whose outputs are read.",
        "optype_blacklist": "Of a member of dump_list: inputs and outputs that are left out, by operator type.",
        "opname_blacklist": "Of a member of dump_list: inputs and outputs that are left out, by operator name.",
        "opname_range": "Of a member of dump_list: first and last operator in execution order; needs dump_level op.",
    }
)
LIST_ITEMS = ("model_name", "layer", "watcher_nodes", "optype_blacklist", "opname_blacklist", "opname_range")


def _where(item: str) -> str:
    return f"$.{DUMP}.{item}" if item != DUMP else f"$.{DUMP}"


def content(draft: Draft, item: str, reason: str, what: str) -> Finding:
    """Make error EP0001: an item is missing, empty or of another type."""
    text = f"The content of configuration item {item} in configuration file {draft.values[FILE]} is invalid."
    vendor = f"EP0001: {text} Reason: {reason}."
    return Finding(level="error", code="DS-ACL-001", where=_where(item), what=what, vendor=vendor)


def unknown_value(draft: Draft, item: str, value: str, allowed: tuple[str, ...]) -> Finding:
    """Make error EP0002: a value is not allowed."""
    text = f"Value {value} for configuration item {item} in configuration file {draft.values[FILE]} is invalid."
    return Finding(
        level="error",
        code="DS-ACL-002",
        where=_where(item),
        what=f"{shown(value)} is not a legal value",
        vendor=f"EP0002: {text} Expected value: {'/'.join(sorted(allowed))}.",
        allowed=tuple(sorted(allowed)),
        nearest=nearest(value, allowed),
    )


def value_error(draft: Draft, item: str, value: str, reason: str, *, meant: str | None = None) -> Finding:
    """Make error EP0003: a value violates a rule of its item."""
    text = f"Value {value} for configuration item {item} in configuration file {draft.values[FILE]} is invalid."
    return Finding(
        level="error",
        code="DS-ACL-003",
        where=_where(item),
        what=f"{shown(value)}: {reason[:1].lower()}{reason[1:]}",
        vendor=f"EP0003: {text} Reason: {reason}.",
        nearest=meant,
    )


def conflict(draft: Draft, item: str, other: str, value: str, *, to: str = "", unless: bool = False) -> Finding:
    """Make error EP0005: items that exclude each other.

    Parameters
    ----------
    draft : Draft
    item : str
        The wrong item.
    other, value : str
        The item on which it depends, and its value.
    to : str
        The value that `item` must not have; "": the item must not exist.
    unless : bool
        Whether the conflict exists if `other` has another value.
    """
    head = f"When configuration item {other} is {'not ' if unless else ''}set to {value}"
    reason = f"{head}, configuration item {item} cannot be " + (f"set to {to}" if to else "configured")
    return Finding(
        level="error",
        code="DS-ACL-005",
        where=_where(item),
        what=f"{item}{f' {to}' if to else ''} {'needs' if unless else 'and'} {other} {value}"
        + ("" if unless else " exclude each other"),
        vendor=f"EP0005: Conflict of configuration items in configuration file {draft.values[FILE]}. Reason: {reason}.",
    )
