"""One side of a comparison: the calls of an API dump by step, and the directory of their arrays."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from dumpsim.analysis.apicall import Call, calls, order
from dumpsim.analysis.apitree import ApiEntry, api_entries
from dumpsim.analysis.meaning import Framework
from dumpsim.analysis.place import API_INFO, Place
from dumpsim.codecs.apidump import file_name, is_statistics_free
from dumpsim.core.errors import BadInputError, UnreadableError
from dumpsim.core.regular import regular_names

__all__ = ["Dump", "Step", "frameworks", "open_dump", "ranks"]

# Of several dumps in one directory the first of these is compared. [spec api_dump 2]
_FRAMEWORKS: tuple[Framework, ...] = ("mindtorch", "mindspore", "torch")
_RANK = re.compile(r"rank(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The calls from one forward run, with the gradients of the backward run that follows it."""

    calls: tuple[Call, ...]
    has_backward: bool


@dataclass(frozen=True, kw_only=True)
class Dump:
    """The API dump of one rank.

    Attributes
    ----------
    framework : {'torch', 'mindspore', 'mindtorch'}
    rank_dir : Path
    steps : tuple of Step
    """

    framework: Framework
    rank_dir: Path
    steps: tuple[Step, ...] = field(repr=False)

    @property
    def array_dir(self) -> str:
        """Directory of the npy files, if any."""
        return os.fspath(self.rank_dir / f"{self.framework}_api_dump")

    @cached_property
    def has_arrays(self) -> bool:
        """Whether there are npy files."""
        return any(entry.path for entry in self.entries())

    def as_listed(self, call: Call) -> list[ApiEntry]:
        """The arrays of a call by index, and then as their directory lists the files. [1.0.17: seen]"""
        found = [entry for entry in (*call.inputs, *call.outputs) if entry.path is not None]
        return sorted(
            found, key=lambda entry: (_first_two(entry.parts.index), self._places[file_name(entry.line.name)])
        )

    @cached_property
    def _places(self) -> dict[str, int]:
        return {entry.name: at for at, entry in enumerate(os.scandir(self.array_dir))}

    def entries(self) -> Iterator[ApiEntry]:
        """All recorded arrays; modules have none."""
        for step in self.steps:
            for call in step.calls:
                if not call.is_layer:
                    yield from (*call.inputs, *call.outputs, *call.grads)

    @cached_property
    def has_statistics(self) -> bool:
        """Whether any record has a maximum, minimum or mean."""
        return any(not is_statistics_free(entry.line) for entry in self.entries())

    def as_cut_by_1_0_17(self) -> "Dump":
        """Without the last of several steps, unless a backward run follows it; a module called again at once is one."""
        steps = self.steps if len(self.steps) < 2 or self.steps[-1].has_backward else self.steps[:-1]
        return replace(self, steps=tuple(replace(step, calls=_merged(step.calls)) for step in steps))


def open_dump(path: "str | os.PathLike[str]", argument: str = "path") -> Dump:
    """Read the API dump under `path`: an output directory with one rank, or the directory of a rank.

    Raises
    ------
    BadInputError
        If there is no dump; with the vendor's text, which names the argument.
    UnreadableError
        For an info file that is damaged, with the line.
    """
    directory, framework = _find(Path(path), argument)
    steps: dict[int | None, list[ApiEntry]] = {}
    for entry in api_entries(Place(path=directory, api=framework)):
        steps.setdefault(entry.iteration, []).append(entry)
    return Dump(framework=framework, rank_dir=directory, steps=tuple(map(_step, steps.values())))


def _step(entries: Sequence[ApiEntry]) -> Step:
    return Step(calls=tuple(calls(entries)), has_backward=any(entry.parts.direction == "backward" for entry in entries))


def _find(path: Path, argument: str) -> tuple[Path, Framework]:
    """Directory of the rank and framework."""
    if (path / "rank0").is_symlink():
        raise UnreadableError(
            "is a link; links in a dump are not followed", where=str(path / "rank0"), code="DS-FIL-001"
        )
    places = [path / "rank0"] if (path / "rank0").is_dir() else [path, *ranks(path)]
    found = [(directory, framework) for directory in places for framework in frameworks(directory)]
    if not found:
        raise BadInputError(
            f"{os.fspath(path)!r} holds no rank0/<framework>_api_dump_info.pkl",
            where=argument,
            allowed=("the output_path of api_dump_init", "one of its rank directories"),
            code="DS-API-010",
            vendor=f"{argument} is not a valid dump path",
        )
    directories = sorted({str(directory) for directory, _ in found})
    if len(directories) > 1:
        raise BadInputError(
            f"{os.fspath(path)!r} holds several ranks and no rank0",
            where=argument,
            allowed=directories,
            code="DS-API-010",
        )
    return found[0]


def frameworks(directory: Path) -> list[Framework]:
    """Return the frameworks with info files in the directory of a rank, the preferred one first."""
    names = regular_names(directory, below=directory) if directory.is_dir() else ()
    found = {match[1] for name in names if (match := API_INFO.fullmatch(name))}
    return [framework for framework in _FRAMEWORKS if framework in found]


def ranks(path: Path) -> list[Path]:
    """Return the directories of ranks, in order."""
    if not path.is_dir():
        return []
    named = [
        (int(match[1]), entry)
        for entry in path.iterdir()
        if (match := _RANK.fullmatch(entry.name)) and not entry.is_symlink()
    ]
    return [entry for _, entry in sorted(named)]


def _merged(calls: Sequence[Call]) -> tuple[Call, ...]:
    """Without modules that stand beside themselves."""
    again = (call.is_layer and at and calls[at - 1].name == call.name for at, call in enumerate(calls))
    return tuple(call for call, same in zip(calls, again, strict=True) if not same)


def _first_two(index: tuple[int | str, ...]) -> list[tuple[float, str]]:
    """Return an index for sorting; a missing index comes first."""
    return [order(part) for part in (*index[:2], 0, 0)[:2]]
