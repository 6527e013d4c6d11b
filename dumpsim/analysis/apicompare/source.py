"""One side of a comparison: the calls of an API dump, cut into steps, and where their arrays are."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dumpsim.analysis.apitree import measured
from dumpsim.analysis.callgroup import Call, Group
from dumpsim.analysis.meaning import Framework, meaning
from dumpsim.codecs import apidump, npy
from dumpsim.codecs.apidump import ApiName, ApiRecord
from dumpsim.core.errors import BadInputError, UnreadableError

__all__ = ["ApiCall", "ApiGroup", "Dump", "Item", "Step", "info_files", "open_dump", "ranks"]

# Of several dumps in one directory the first of these is compared. [spec api_dump 2]
_FRAMEWORKS: tuple[Framework, ...] = ("mindtorch", "mindspore", "torch")
_SUFFIXES = (".pkl", ".csv")  # 1.0.17, 1.0.18 [spec api_dump 1.2]
_RANK = re.compile(r"rank(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One array of a call: its record and the parts of its name."""

    record: ApiRecord
    name: ApiName

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in the info file."""
        return self.record.shape


ApiCall = Call[Item]
ApiGroup = Group[Item]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The calls from one forward run, with the gradients of the backward run that follows it."""

    calls: tuple[ApiCall, ...]
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
        """Where the npy files are, if any."""
        return os.fspath(self.rank_dir / f"{self.framework}_api_dump")

    @cached_property
    def arrays(self) -> dict[str, str]:
        """The npy files, by record; what is no file, or a link to none, is not there."""
        if not os.path.isdir(self.array_dir):
            return {}
        return {
            entry.name[:-4]: entry.path
            for entry in os.scandir(self.array_dir)
            if entry.name.endswith(".npy") and entry.is_file()
        }

    @property
    def has_arrays(self) -> bool:
        """Whether there are npy files."""
        return bool(self.arrays)

    def as_listed(self, call: ApiCall) -> list[Item]:
        """The arrays of a call by index, and then as their directory lists the files. [1.0.17: seen]"""
        found = [item for item in (*call.inputs, *call.outputs) if item.record.name in self._places]
        return sorted(found, key=lambda item: (_first_two(item.name.index), self._places[item.record.name]))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.arrays)}

    def items(self) -> "Iterator[Item]":
        """Every array that was recorded; modules have none."""
        for step in self.steps:
            for call in step.calls:
                if not call.is_layer:
                    yield from (*call.inputs, *call.outputs, *call.grads)

    @cached_property
    def measured(self) -> frozenset[str]:
        """Which statistics the dump was asked for."""
        return measured(item.record for item in self.items())

    @cached_property
    def has_statistics(self) -> bool:
        """Whether any record has a maximum, minimum or mean."""
        return any(not apidump.is_statistics_free(item.record) for item in self.items())

    @cached_property
    def stacks(self) -> dict[str, tuple[str, ...]]:
        """Frames by key of the stack file; empty when there is none."""
        path = self.rank_dir / f"{self.framework}_api_dump_stack.json"
        return apidump.read_stack(path) if path.is_file() else {}

    def array(self, name: str) -> "np.ndarray[Any, Any]":
        """The array of a record."""
        return npy.read(self.arrays[name], mmap=False)

    def statistics(self, record: ApiRecord) -> tuple[float, float, float]:
        """Maximum, minimum and mean of a record; of its array when the info file has none."""
        if apidump.is_statistics_free(record) and record.name in self.arrays:
            array = self.array(record.name)
            if array.size and array.dtype.kind != "c":
                values = array.astype(np.float64)
                return float(values.max()), float(values.min()), float(values.mean())
        return record.max, record.min, record.mean

    def as_cut_by_1_0_17(self) -> "Dump":
        """Without the last of several steps, unless a backward run follows it; a module called again at once is one."""
        steps = self.steps if len(self.steps) < 2 or self.steps[-1].has_backward else self.steps[:-1]
        return replace(self, steps=tuple(replace(step, calls=_merged(step.calls)) for step in steps))

    def stack(self, call: str) -> tuple[str, ...]:
        """The frames from which a call was made, innermost first; empty when they were not kept."""
        keys = apidump.stack_keys(apidump.parse_name(f"{call}_forward_input"))
        return next((self.stacks[key] for key in keys if key in self.stacks), ())


def open_dump(path: "str | os.PathLike[str]", argument: str = "path") -> Dump:
    """Read the API dump under `path`: an output directory with one rank, or the directory of a rank.

    Raises
    ------
    BadInputError
        When there is no dump; the vendor's text, which names the argument.
    UnreadableError
        For an info file that is damaged, with the line.
    """
    directory, framework, info = _find(Path(path), argument)
    try:
        steps = tuple(_steps(framework, apidump.read_info(info)))
    except UnreadableError as error:
        if error.where is not None:
            raise
        raise UnreadableError(error.what, where=os.fspath(info), code=error.code) from None
    return Dump(framework=framework, rank_dir=directory, steps=steps)


def _find(path: Path, argument: str) -> tuple[Path, Framework, Path]:
    """Directory of the rank, framework and info file."""
    places = [path / "rank0"] if (path / "rank0").is_dir() else [path, *ranks(path)]
    found = [(directory, framework, info) for directory in places for framework, info in info_files(directory)]
    if not found:
        raise BadInputError(
            f"{os.fspath(path)!r} holds no rank0/<framework>_api_dump_info.pkl",
            where=argument,
            allowed=("the output_path of api_dump_init", "one of its rank directories"),
            code="DS-API-010",
            vendor=f"{argument} is not a valid dump path",
        )
    directories = sorted({str(directory) for directory, _, _ in found})
    if len(directories) > 1:
        raise BadInputError(
            f"{os.fspath(path)!r} holds several ranks and no rank0",
            where=argument,
            allowed=directories,
            code="DS-API-010",
        )
    return found[0]


def info_files(directory: Path) -> Iterator[tuple[Framework, Path]]:
    """The info files in the directory of a rank, the one that is read first."""
    for framework in _FRAMEWORKS:
        for suffix in _SUFFIXES:
            if (info := directory / f"{framework}_api_dump_info{suffix}").is_file():
                yield framework, info


def ranks(path: Path) -> list[Path]:
    """Directories of ranks, in their order."""
    if not path.is_dir():
        return []
    named = [(int(match[1]), entry) for entry in path.iterdir() if (match := _RANK.fullmatch(entry.name))]
    return [entry for _, entry in sorted(named)]


def _steps(framework: Framework, records: Iterable[ApiRecord]) -> Iterator[Step]:
    """Cut the records where a forward line follows a backward line; the last step is there with or without one."""
    forward: list[Item] = []
    backward: list[Item] = []
    for record in records:
        item = Item(record=record, name=apidump.parse_name(record.name))
        if item.name.direction == "backward":
            backward.append(item)
            continue
        if backward:
            yield _step(framework, forward, backward)
            forward, backward = [], []
        forward.append(item)
    if forward or backward:
        yield _step(framework, forward, backward)


def _step(framework: Framework, forward: list[Item], backward: list[Item]) -> Step:
    """The calls of one step in the order of their first lines."""
    grads: dict[str, dict[str, Item]] = {}
    for item in backward:  # of a second backward run the last gradient is the one in the file
        grads.setdefault(item.name.call, {})[item.record.name] = item
    groups: list[tuple[str, list[Item]]] = []
    for item in forward:
        if not groups or groups[-1][0] != item.name.call or item.name.kind == apidump.LAYER:
            groups.append((item.name.call, []))
        groups[-1][1].append(item)
    calls = [_call(framework, name, items, grads.pop(name, {})) for name, items in groups]
    calls += [_call(framework, name, [], items) for name, items in reversed(grads.items())]
    return Step(calls=tuple(calls), has_backward=bool(backward))


def _merged(calls: Sequence[ApiCall]) -> tuple[ApiCall, ...]:
    """Without modules that stand beside themselves."""
    again = (call.is_layer and at and calls[at - 1].name == call.name for at, call in enumerate(calls))
    return tuple(call for call, same in zip(calls, again, strict=True) if not same)


def _call(framework: Framework, name: str, items: list[Item], grads: dict[str, Item]) -> ApiCall:
    """One call from its lines."""
    first = (items or list(grads.values()))[0].name
    return Call(
        name=name,
        kind=first.kind,
        api=first.api,
        meaning=meaning(framework, first.kind, first.api),
        inputs=tuple(item for item in items if item.name.io == "input"),
        outputs=tuple(item for item in items if item.name.io == "output"),
        grads=tuple(sorted(grads.values(), key=lambda item: tuple(map(_order, item.name.index)))),
    )


def _first_two(index: tuple[int | str, ...]) -> list[tuple[int, int, str]]:
    """An index for sorting; no index is the first."""
    return [_order(part) for part in (*index[:2], 0, 0)[:2]]


def _order(part: int | str) -> tuple[int, int, str]:
    """Positions before words."""
    return (0, part, "") if isinstance(part, int) else (1, 0, part)
