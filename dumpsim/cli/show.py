"""``dumpsim show``: show a tensor in full: names, script line, statistics, histogram, values."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dumpsim.cli.output import echo, human_bytes, plain, print_json
from dumpsim.cli.selection import Json, Unreadable, nothing, reads
from dumpsim.core.errors import UnreadableError
from dumpsim.core.statistic import NAMES

if TYPE_CHECKING:
    import numpy as np

    from dumpsim.analysis.dumpset import DumpSet
    from dumpsim.analysis.entry import Entry

__all__ = ["show"]


@reads
def show(
    dump: "DumpSet",
    bins: Annotated[int, typer.Option(min=1, max=200, help="Number of bars of the histogram.")] = 16,
    values: Annotated[int, typer.Option(min=0, help="Number of values to print.")] = 12,
    limit: Annotated[int, typer.Option(min=1, help="Number of tensors to show.")] = 8,
    as_json: Json = False,
) -> None:
    """Show tensors: place, type, script line, statistics, a histogram and the first values."""
    shown = 0
    more = 0
    unreadable = Unreadable()
    for entry in dump.lenient(unreadable):
        if shown == limit:
            more += 1
            continue
        shown += 1
        try:
            if as_json:
                print_json(_facts(entry, bins, values))
            else:
                echo("\n".join(_lines(entry, bins, values)) + "\n")
        except UnreadableError as error:
            unreadable(error)
    if more:
        echo(f"{more} more; narrow the selection or raise --limit", err=True)
    unreadable.exit()
    if not shown:
        nothing(dump)


def _facts(entry: "Entry", bins: int, values: int) -> dict[str, Any]:
    from dumpsim.analysis.histogram import histogram
    from dumpsim.codecs.irtext import source_text

    facts: dict[str, Any] = {
        "rank": entry.rank,
        "graph": entry.graph_id,
        "iteration": entry.iteration,
        "op_type": entry.op_type,
        "op_name": entry.op_name,
        "io": entry.io,
        "slot": entry.slot,
        "dtype": entry.dtype,
        "shape": entry.shape,
        "format": entry.format,
        "nbytes": entry.nbytes,
        "path": str(entry.path) if entry.path is not None else None,
        "source": [source_text(line) for line in entry.source],
    }
    facts |= {name: entry.statistic(name) for name in NAMES}
    if entry.part is not None:
        facts["device_shape"] = entry.device_shape
    if entry.opdebug is not None:
        facts["overflow"] = entry.opdebug
    elif entry.path is not None and (entry.part is None or entry.part.decodable):
        array = entry.array()
        if array.dtype.kind != "c":
            edges, counts = histogram(array, bins)
            facts["histogram"] = {"edges": edges.tolist(), "counts": counts.tolist()}
        facts["values"] = _head(array, values).tolist()
    return facts


def _head(array: "np.ndarray[Any, Any]", count: int) -> "np.ndarray[Any, Any]":
    from dumpsim.tensor.cast import widen

    head = array.reshape(-1)[:count]
    return widen(head, head.dtype.name)


def _lines(entry: "Entry", bins: int, values: int) -> list[str]:
    """Format the facts of a tensor for people."""
    from dumpsim.codecs.opdebug import overflows

    facts = _facts(entry, bins, values)
    place = {"graph": entry.graph_id, "iteration": entry.iteration, "time": entry.timestamp}
    lines = [
        plain(f"{entry.op_type}  {entry.label}"),
        f"  rank {entry.rank}" + "".join(f", {name} {value}" for name, value in place.items() if value is not None),
        f"  {entry.dtype} {entry.shape}, {entry.format}, {human_bytes(entry.nbytes)}",
    ]
    if entry.device_shape != entry.shape:
        lines[-1] += f"; {entry.device_shape} on the device"
    if entry.path is not None:
        lines.append(plain(f"  {entry.path}"))
    if "overflow" in facts:
        return lines + [
            f"  {unit}: {', '.join(f'{key} {value}' for key, value in fields.items())}: {', '.join(said)}"
            for unit, fields, said in overflows(facts["overflow"])
        ]
    line = entry.script_line
    if line is not None:
        lines.append(plain(f"  made by {line.path}:{line.line}  {line.code.strip()}"))
    if numbers := [f"{name} {facts[name]:.6g}" for name in NAMES if facts[name] is not None]:
        lines.append("  " + ", ".join(numbers))
    if "histogram" in facts:
        lines += _bars(facts["histogram"]["edges"], facts["histogram"]["counts"])
    if facts.get("values"):
        lines.append("  values " + " ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in facts["values"]))
    return lines


def _bars(edges: list[float], counts: list[int]) -> list[str]:
    """Draw a histogram with block characters, eight levels per cell."""
    if not any(counts):
        return []
    largest = max(counts)
    lines = []
    for left, right, count in zip(edges, edges[1:], counts, strict=False):
        eighths = -(-count * 40 * 8 // largest)
        bar = "█" * (eighths // 8) + ("" if eighths % 8 == 0 else " ▏▎▍▌▋▊▉"[eighths % 8])
        lines.append(f"  {left:>12.5g} .. {right:<12.5g} {bar} {count}")
    return lines
