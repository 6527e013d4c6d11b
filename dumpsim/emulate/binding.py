"""Which CPUs the processes of a job run on: ``--bind_core`` and ``--bind_numa`` of msrun."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dumpsim.core.errors import BadInputError

__all__ = ["SCHEDULER", "Binding", "parse_binding"]

SCHEDULER = -1  # its index among the workers of the machine

_NODES = Path("/sys/devices/system/node")
_LIST = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")


class Binding:
    """CPUs of the workers of this machine, by index, and of the scheduler.

    Parameters
    ----------
    places : mapping of int to sequence of int
    """

    def __init__(self, places: Mapping[int, Sequence[int]] | None = None) -> None:
        self._places = dict(places or {})

    def cpus(self, place: int) -> tuple[int, ...]:
        """Return the CPUs of a process; none if it is not bound."""
        return tuple(self._places.get(place, ()))


def parse_binding(text: str, option: str, workers: int) -> tuple[Binding, str]:
    """Parse the value of an option.

    Parameters
    ----------
    text : str
        ``True``, ``False``, or JSON such as ``{"device0": ["0-3"], "scheduler": ["4"]}``, of CPUs or of NUMA nodes.
    option : str
        ``--bind_core`` or ``--bind_numa``.
    workers : int
        Workers of this machine; ``True`` gives each of them an equal share.

    Returns
    -------
    Binding
    str
        Why nothing is bound although binding was requested; else empty.

    Raises
    ------
    BadInputError
        For another value, and for CPUs or nodes that this machine does not have.

    Examples
    --------
    >>> first = min(os.sched_getaffinity(0))
    >>> parse_binding(f'{{"device1": ["{first}"]}}', "--bind_core", 2)[0].cpus(1) == (first,)
    True
    """
    units = _cores() if option == "--bind_core" else _nodes()
    if text.lower() == "false":
        return Binding(), ""
    if text.lower() == "true":
        names, share = sorted(units), len(units) // workers
        if option == "--bind_numa":
            chosen = [[names[place * len(names) // workers]] for place in range(workers)]
        elif share:
            chosen = [names[place * share : (place + 1) * share] for place in range(workers)]
        else:
            return Binding(), f"{option} binds nothing: {len(units)} CPUs for {workers} workers"
        return Binding({place: _all(units, found) for place, found in enumerate(chosen)}), ""
    return Binding(_document(text, option, units)), ""


def _document(text: str, option: str, units: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise _bad(option, f"{text!r} is not a value of it", ("True", "False", '{"device0": ["0-3"]}'))
    found = {}
    for name, lists in document.items():
        match = re.fullmatch(r"device(\d+)|scheduler", name)
        if match is None:
            raise _bad(option, f"{name!r} cannot be bound", ("deviceN", "scheduler"))
        texts = [str(one).replace(" ", "") for one in lists] if isinstance(lists, list) else [""]
        if not all(map(_LIST.fullmatch, texts)):
            raise _bad(option, f"{name}: {lists!r} is not a list of numbers", ('["0-3", "5,7"]',))
        numbers = [number for text in texts for number in _numbers(text)]
        missing = [number for number in numbers if number not in units]
        if missing:
            raise _bad(option, f"{name}: this machine has no {missing[0]} to bind to", map(str, sorted(units)))
        found[SCHEDULER if match[1] is None else int(match[1])] = _all(units, numbers)
    return found


def _all(units: Mapping[int, Sequence[int]], numbers: Sequence[int]) -> list[int]:
    return sorted({cpu for number in numbers for cpu in units[number]})


def _numbers(text: str) -> list[int]:
    """Parse ``0-2,5`` to numbers."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), min(int(last or first), 1 << 16) + 1)
    return found


def _cores() -> dict[int, tuple[int, ...]]:
    return {cpu: (cpu,) for cpu in sorted(os.sched_getaffinity(0))}


def _nodes() -> dict[int, tuple[int, ...]]:
    """Return the CPUs of each NUMA node."""
    mine = os.sched_getaffinity(0)
    found = {}
    for file in sorted(_NODES.glob("node*/cpulist")):
        cpus = tuple(cpu for cpu in _numbers(file.read_text().strip()) if cpu in mine)
        if cpus:
            found[int(file.parent.name.removeprefix("node"))] = cpus
    return found or {0: tuple(sorted(mine))}


def _bad(option: str, what: str, allowed: object) -> BadInputError:
    return BadInputError(what, where=option, allowed=allowed, code="DS-RUN-011")  # type: ignore[arg-type]
