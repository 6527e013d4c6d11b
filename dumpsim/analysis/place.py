"""Where in a dump a directory stands: rank, net, graph, iteration; told by directory names alone.

``{path}/rank_{r}/{net}/{graph}/{iteration}`` for O0/O1, CPU and GPU. [spec mindspore 3.1]
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Place", "places"]

_RANK = re.compile(r"rank_(\d+)$")
_AUXILIARY = {"graphs", "execution_order", ".dump_metadata"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory that holds tensors or statistics."""

    path: Path
    rank: int = 0
    net: str = ""
    graph_id: int | None = None
    iteration: int | None = None
    rank_path: Path | None = None


def places(root: Path) -> Iterator[Place]:
    """Directories below `root` that hold npy or csv data, in the order of rank, graph and iteration.

    `root` may be the dump's root or any directory inside it. Links are not followed: a hostile tree leads nowhere else.
    """
    stack = [root]
    while stack:
        directory = stack.pop()
        children: list[Path] = []
        data = False
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _AUXILIARY:
                        children.append(Path(entry.path))
                elif entry.name.endswith(".npy") or entry.name == "statistic.csv":
                    data = True
        stack.extend(sorted(children, key=_order, reverse=True))
        if data:
            yield _place(directory)


def _order(path: Path) -> tuple[bool, int, str]:
    """Numbers by value, then names."""
    digits = path.name.removeprefix("rank_")
    return (not digits.isdigit(), int(digits) if digits.isdigit() else 0, path.name)


def _place(directory: Path) -> Place:
    path = directory.resolve()
    lineage = [path, *path.parents]
    rank_path = next((p for p in lineage if _RANK.fullmatch(p.name)), None)
    found = _RANK.fullmatch(rank_path.name) if rank_path is not None else None
    rank = int(found.group(1)) if found else 0
    if path.name == "constants" and path.parent.name.isdigit():
        graph, iteration, net = int(path.parent.name), None, path.parent.parent.name
    elif path.name.isdigit() and path.parent.name.isdigit():
        graph, iteration, net = int(path.parent.name), int(path.name), path.parent.parent.name
    else:
        graph, iteration, net = None, None, ""
    return Place(path=directory, rank=rank, net=net, graph_id=graph, iteration=iteration, rank_path=rank_path)
