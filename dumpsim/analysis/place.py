"""The position of a directory in a dump (rank, net, graph, iteration), from directory names alone.

==============  =======================================================================================================
O0/O1, CPU, GPU  ``{path}/rank_{r}/{net}/{graph}/{iteration}`` [spec mindspore 3.1]
O2               ``{path}/{step}/{time}/{device}/{model_name}/{model_id}/{iteration}``
GE               the same without the step; under TorchAir below ``worldsize{n}_global_rank{r}`` [spec ge 1.4]
single operator  ``{path}/{time}/{device}`` [spec ge 3.4]
exception        ``{path}/extra-info/data-dump/{device}`` [spec ge 2.9]
tensordump       any directories; ``rank{r}`` and ``step{n}`` are recognised [spec mindspore 9]
API dump         ``{path}/rank{r}`` with ``{framework}_api_dump_info.pkl`` or ``.csv`` [spec api_dump 1.2]
==============  =======================================================================================================
"""

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dumpsim.archive.naming import is_dump_file

__all__ = ["API_INFO", "Place", "place_of", "places"]

_RANK = re.compile(r"rank_(\d{1,9})", re.ASCII)
_LOOSE_RANK = re.compile(r"rank(\d{1,9})|worldsize\d+_global_rank(\d{1,9})", re.ASCII)
_LOOSE_STEP = re.compile(r"step(\d{1,18})", re.ASCII)
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_TIME = re.compile(r"20\d{11,12}", re.ASCII)  # the documents' sample lacks a zero [spec ge 1.4]
API_INFO = re.compile(r"(torch|mindspore|mindtorch)_api_dump_info\.(?:pkl|csv)")
_API_DATA = re.compile(r"(torch|mindspore|mindtorch)_api_dump")
_AUXILIARY = {"graphs", "execution_order", ".dump_metadata"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory that holds tensors or statistics.

    Attributes
    ----------
    path : Path
    rank : int
        Rank, or the device if a tree has no ranks.
    net : str
        Net, or the name of the model in O2 and GE trees.
    graph_id, iteration : int or None
        Graph or model, and the iteration as the device counts it.
    rank_path : Path or None
        Directory of the rank, which also holds the graphs.
    step : int or None
        The training step, in O2 trees.
    time : str
        Load time of the model, in trees that have it: ``20231114221320``.
    api : str
        Framework of an API dump with its info file in the directory; empty for other dumps.
    """

    path: Path
    rank: int = 0
    net: str = ""
    graph_id: int | None = None
    iteration: int | None = None
    rank_path: Path | None = None
    step: int | None = None
    time: str = ""
    api: str = ""


def places(root: Path) -> Iterator[Place]:
    """Yield the directories below `root` with tensors or statistics, by rank, graph and iteration.

    `root` may be the dump's root or any directory inside it. Links are not followed, so that an untrusted tree cannot
    lead elsewhere.
    """
    stack = [root]
    if found := _API_DATA.fullmatch(root.name):
        stack = []
        if any(API_INFO.fullmatch(path.name) for path in root.parent.glob(f"{root.name}_info.*")):
            yield replace(place_of(root.parent), api=found[1])
        else:
            stack = [root]
    while stack:
        directory = stack.pop()
        children: list[Path] = []
        data = False
        frameworks: set[str] = set()
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _AUXILIARY:
                        children.append(Path(entry.path))
                elif (found := API_INFO.fullmatch(entry.name)) and entry.is_file(follow_symlinks=False):
                    frameworks.add(found[1])
                elif not data and is_dump_file(entry.name) and entry.is_file(follow_symlinks=False):
                    data = True
        children = [child for child in children if child.name.removesuffix("_api_dump") not in frameworks]
        stack.extend(sorted(children, key=_order, reverse=True))
        for framework in sorted(frameworks):
            yield replace(place_of(directory), api=framework)
        if data:
            yield place_of(directory)


def _order(path: Path) -> tuple[float, str]:
    """Sort numbers by value, then names."""
    digits = re.sub(r"^(rank_?|step|worldsize\d+_global_rank)(?=\d+$)", "", path.name)
    return int(digits) if _NUMBER.fullmatch(digits) else math.inf, path.name


def place_of(directory: Path) -> Place:
    """Return the position that the names of a directory and its parents give."""
    path = directory.resolve()
    lineage = [path, *path.parents]
    names = [p.name for p in lineage]
    time = next((level for level, name in enumerate(names) if _TIME.fullmatch(name) and 1 <= level <= 4), None)
    if time is not None and _NUMBER.fullmatch(names[time - 1]):
        return _model(directory, names, time)
    if names[1:3] == ["data-dump", "extra-info"] and _NUMBER.fullmatch(names[0]):
        return Place(path=directory, rank=int(names[0]))
    level = next((n for n, name in enumerate(names) if _RANK.fullmatch(name)), None)
    if level is None:
        return Place(path=directory, rank=_loose(_LOOSE_RANK, names) or 0, step=_loose(_LOOSE_STEP, names))
    graph, iteration, net = None, None, ""
    if names[0] == "constants" and _NUMBER.fullmatch(names[1]):
        graph, net = int(names[1]), names[2]
    elif _NUMBER.fullmatch(names[0]) and _NUMBER.fullmatch(names[1]):
        graph, iteration, net = int(names[1]), int(names[0]), names[2]
    rank = int(names[level].removeprefix("rank_"))
    return Place(path=directory, rank=rank, net=net, graph_id=graph, iteration=iteration, rank_path=lineage[level])


def _model(directory: Path, names: list[str], time: int) -> Place:
    """Return the position of a directory of O2, GE or single operators, `time` levels below that of the time."""
    below = names[:time][::-1]  # device, model name, model id, iteration
    numbers = [int(name) if _NUMBER.fullmatch(name) else None for name in below]
    above = names[time + 1] if len(names) > time + 1 else ""
    world = _loose(_LOOSE_RANK, names[time:])
    return Place(
        path=directory,
        rank=world if world is not None else numbers[0] or 0,
        net=below[1] if len(below) > 1 else "",
        graph_id=numbers[2] if len(below) > 2 else None,
        iteration=numbers[3] if len(below) > 3 else None,
        step=int(above) if _NUMBER.fullmatch(above) else None,
        time=names[time],
    )


def _loose(pattern: re.Pattern[str], names: list[str]) -> int | None:
    """Return the number in the innermost matching name."""
    found = next((match for name in names if (match := pattern.fullmatch(name))), None)
    return int(next(group for group in found.groups() if group)) if found else None
