"""The overflows in a dump: Opdebug files, binary or JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dumpsim.analysis.listing import files, small_text
from dumpsim.analysis.place import Place
from dumpsim.archive.naming import OPDEBUG, BinName, parse_bin, parse_npy
from dumpsim.codecs import opdebug
from dumpsim.codecs.binfile import BinFile
from dumpsim.core.errors import UnreadableError

__all__ = ["Overflow", "overflows"]

_JSON_LIMIT = 1 << 20
_ANY = 65535  # an unknown context or thread [spec ge 3.4]


@dataclass(frozen=True, kw_only=True)
class Overflow:
    """One Opdebug file.

    Attributes
    ----------
    path : Path
    place : Place
    name : BinName
        Time, and the ids of the task that detected the overflow, not of the one that overflowed. [spec ge 3.8]
    facts : dict
        All fields, as `dumpsim.codecs.opdebug.decode` returns them.
    operators : tuple of (op_type, op_name)
        Operators in the same directory whose files carry the ids of a unit that overflowed, or else of `name`, as in
        MindSpore's overflow dump. [spec mindspore 3.7]
    """

    path: Path
    place: Place
    name: BinName
    facts: dict[str, Any]
    operators: tuple[tuple[str, str], ...] = ()

    @property
    def units(self) -> tuple[tuple[str, Mapping[str, Any], tuple[str, ...]], ...]:
        """Units that overflowed: name, fields, and the meaning of their status."""
        return opdebug.overflows(self.facts)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return one mapping of plain values per unit."""
        for unit, fields, said in self.units:
            yield {
                "rank": self.place.rank,
                "step": self.place.step,
                "iteration": self.place.iteration,
                "timestamp": self.name.timestamp,
                "unit": unit,
                "task_id": fields["task_id"],
                "stream_id": fields["stream_id"],
                "status": fields["status"],
                "meaning": ", ".join(said),
                "operators": [f"{op_type} {op_name}" for op_type, op_name in self.operators],
                "path": str(self.path),
            }


def overflows(place: Place) -> Iterator[Overflow]:
    """Return the overflows of a directory by time; the bin file is preferred if there is a JSON file as well.

    Raises
    ------
    UnreadableError
        For an invalid Opdebug file.
    """
    found: dict[str, tuple[BinName, Path]] = {}
    names: list[tuple[tuple[int, int | None], tuple[int, ...], str, str]] = []
    for path, name in files(place):
        if name.startswith(".".join(OPDEBUG)):
            stem = name.split(".output.")[0]
            if name.endswith(".json") and stem in found:
                continue
            found[stem] = (parse_bin(stem, where=str(path)), path)
        elif (known := _ids(name)) is not None:
            names.append(known)
    for own, path in sorted(found.values(), key=lambda item: item[0].timestamp):
        facts = _facts(path)
        yield Overflow(path=path, place=place, name=own, facts=facts, operators=_operators(own, facts, names))


def _facts(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return opdebug.parse_json(small_text(path, _JSON_LIMIT), str(path))
    file = BinFile.open(path)
    if len(file.data.outputs) != 1:
        raise UnreadableError(
            f"has {len(file.data.outputs)} outputs, an overflow's file has one", where=str(path), code="DS-ANA-008"
        )
    return opdebug.decode(file.output(0).data, str(path))


def _ids(name: str) -> tuple[tuple[int, int | None], tuple[int, ...], str, str] | None:
    """Task and stream, context and thread, operator type and name of a file."""
    try:
        if name.endswith(".npy"):
            record = parse_npy(name)
            return (record.task_id, record.stream_id), (), record.op_type, record.op_name
        bin_name = parse_bin(name)
    except UnreadableError:
        return None
    return (bin_name.task_id, bin_name.stream_id), bin_name.part[:2], bin_name.op_type, bin_name.op_name


def _operators(
    name: BinName, facts: Mapping[str, Any], names: list[tuple[tuple[int, int | None], tuple[int, ...], str, str]]
) -> tuple[tuple[str, str], ...]:
    """Return the operators with the ids of the units, or else of the file."""
    for ids, part in [*_unit_ids(facts), ((name.task_id, name.stream_id), ())]:
        same = {
            (op_type, op_name): None
            for found, sub, op_type, op_name in names
            if found == ids and all(a == b or _ANY in (a, b) for a, b in zip(part, sub, strict=False))
        }
        if same:
            return tuple(same)
    return ()


def _unit_ids(facts: Mapping[str, Any]) -> Iterator[tuple[tuple[int, int | None], tuple[int, ...]]]:
    for _, fields, _ in opdebug.overflows(facts):
        part = tuple(fields[key] for key in ("context_id", "thread_id") if key in fields)
        yield (fields["task_id"], fields["stream_id"]), part
