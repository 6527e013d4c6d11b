"""Projects the files and bytes of a whole run from a few counted steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OTHER", "Projection", "chosen_steps", "dumping_ranks", "project"]

OTHER = "graphs, orders, config"  # files that belong to no operator
_COUNTER = 2**63  # stands for an unlimited number of steps


@dataclass(frozen=True, slots=True)
class Projection:
    """Files and bytes of one rank.

    Attributes
    ----------
    files, bytes : int
        Of the whole run.
    once : tuple of (int, int)
        Files and bytes that do not depend on the number of steps.
    step : tuple of (int, int)
        Files and bytes of each further step.
    steps : int
        Dumped steps.
    estimated : bool
        Whether steps that were not counted are assumed to be like the last one that was.
    types : dict of str to (int, int)
        Files and bytes by operator type.
    """

    files: int
    bytes: int
    once: tuple[int, int]
    step: tuple[int, int]
    steps: int
    estimated: bool
    types: dict[str, tuple[int, int]] = field(default_factory=dict)


def chosen_steps(iteration: Mapping[str, Any], steps: int) -> list[tuple[int, int]]:
    """Return the dumped steps among the first `steps`, as ascending ranges of first and last.

    Parameters
    ----------
    iteration : mapping
        ``every``, or ``ranges`` of the config's ``iteration``.
    steps : int

    Examples
    --------
    >>> chosen_steps({"every": False, "ranges": [[5, 9], [0, 1], [6, 20]]}, 12)
    [(0, 1), (5, 11)]
    """
    if iteration["every"] or iteration.get("script"):
        return [(0, steps - 1)] if steps > 0 else []
    found: list[tuple[int, int]] = []
    for low, high in sorted(tuple(pair) for pair in iteration["ranges"]):
        last = min(high, steps - 1)
        if low > last:
            continue
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((low, last))
    return found


def project(account: Mapping[str, Any], name: str = "", steps: int | None = None) -> Projection:
    """Return the files and bytes that a rank writes in a run.

    Parameters
    ----------
    account : mapping
        The counts of a planned dump.
    name : str
        Name of a count; "" for the config itself.
    steps : int, optional
        Steps of the run; by default those in the config, and for ``all`` those that were counted.

    Examples
    --------
    >>> step = {"Add": {"files": 2, "bytes": 300}}
    >>> account = {"iteration": {"every": True, "ranges": []}, "measured": [0, 1],
    ...            "counts": {"": {"steps": [[None, {OTHER: {"files": 3, "bytes": 90}}], [0, step], [1, step]]}}}
    >>> found = project(account, steps=1000)
    >>> found.files, found.bytes, found.types["Add"]
    (2003, 300090, (2000, 300000))
    """
    counted = dict(account["counts"][name]["steps"])
    measured = sorted(account["measured"])
    if steps is None:
        steps = _named(account["iteration"], measured)
    once, known = counted.get(None, {}), [number for number in measured if number in counted]
    ranges = chosen_steps(account["iteration"], steps)
    types: dict[str, list[int]] = {}
    _add(types, once, 1)
    chosen = sum(high - low + 1 for low, high in ranges)
    ran = [number for number in measured if any(low <= number <= high for low, high in ranges)]  # some without files
    missing = chosen - len(ran)
    for number in ran:
        _add(types, counted.get(number, {}), 1)
    last = counted[known[-1]] if known else {}
    if missing > 0 and known:
        _add(types, {kind: of for kind, of in last.items() if kind != OTHER}, missing)
        digits = _digits(ranges) - sum(len(str(number)) for number in ran)
        if OTHER in last:  # a line for each step: its number and a newline, for each graph
            lines = last[OTHER]["bytes"] // (len(str(known[-1])) + 1)
            types.setdefault(OTHER, [0, 0])[1] += lines * (digits + missing)
    return Projection(
        files=sum(amount[0] for amount in types.values()),
        bytes=sum(amount[1] for amount in types.values()),
        once=_sum(once),
        step=_sum(last),
        steps=chosen,
        estimated=missing > 0,
        types={kind: (files, size) for kind, (files, size) in types.items()},
    )


def dumping_ranks(devices: Sequence[int], ranks: int, per_server: int) -> int:
    """Return the number of ranks that dump: those on the devices that the config lists, on each server.

    Examples
    --------
    >>> dumping_ranks([0, 1], 16, 8), dumping_ranks([], 16, 8)
    (4, 16)
    """
    return sum(rank % per_server in devices for rank in range(ranks)) if devices else ranks


def _named(iteration: Mapping[str, Any], measured: Iterable[int]) -> int:
    """Return the number of steps in a config."""
    if iteration["every"] or iteration.get("script"):
        return max((number + 1 for number in measured), default=0)
    return max((high + 1 for low, high in iteration["ranges"] if low <= high < _COUNTER), default=0)


def _add(types: dict[str, list[int]], amounts: Mapping[str, Mapping[str, int]], times: int) -> None:
    for kind, amount in amounts.items():
        found = types.setdefault(kind, [0, 0])
        found[0] += times * amount["files"]
        found[1] += times * amount["bytes"]


def _sum(amounts: Mapping[str, Mapping[str, int]]) -> tuple[int, int]:
    return sum(of["files"] for of in amounts.values()), sum(of["bytes"] for of in amounts.values())


def _digits(ranges: Iterable[tuple[int, int]]) -> int:
    """Return the number of digits of all numbers in some ranges.

    Examples
    --------
    >>> _digits([(8, 11), (100, 100)])
    9
    """
    total = 0
    for low, high in ranges:
        start = low
        while start <= high:
            end = min(high, 10 ** len(str(start)) - 1)
            total += (end - start + 1) * len(str(start))
            start = end + 1
    return total
