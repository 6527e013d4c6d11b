"""Injects the faults of a plan into a run: counts launches and returns the faults that are due."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from dumpsim.core.clock import Clock
from dumpsim.device.disk import FaultyDisk

if TYPE_CHECKING:
    from dumpsim.device.faults import FaultPlan

__all__ = ["Injector", "matches"]


def matches(pattern: str, op_type: str, full_name: str) -> bool:
    """Whether the pattern of a fault matches an operator.

    Examples
    --------
    >>> [matches(p, "MatMul", "Default/fc1-Dense/MatMul-op0") for p in ("MatMul", "*/fc1-*", "Mat*")]
    [True, True, False]
    """
    return pattern == op_type or fnmatchcase(full_name, pattern)


class Injector:
    """The state of a fault plan on one rank.

    Attributes
    ----------
    disk : FaultyDisk or None
        Faults of file writes; None if the plan has none.
    memory_limit : int or None
        Bytes of device memory that the plan leaves.
    """

    def __init__(self, plan: "FaultPlan", clock: Clock, *, rank: int = 0) -> None:
        here = [fault for fault in plan.faults if fault.rank in (None, rank)]
        self._planned = len(here)
        self._launches: list[tuple[str, Any]] = []
        self._collectives: list[Any] = []
        room: int | None = None
        speed: int | None = None
        self.memory_limit: int | None = None
        for fault in here:
            match fault.kind:
                case "overflow" | "aicore_error":
                    self._launches.append((fault.op, fault))
                case "stomp":
                    self._launches.append((fault.after, fault))
                case "out_of_memory" if fault.op is not None:
                    self._launches.append((fault.op, fault))
                case "out_of_memory":
                    assert fault.bytes is not None
                    limit: int | None = self.memory_limit
                    self.memory_limit = fault.bytes if limit is None else min(fault.bytes, limit)
                case "kill" | "hang" | "delay" | "diverge":
                    self._collectives.append(fault)
                case "disk_full":
                    room = fault.after_bytes if room is None else min(room, fault.after_bytes)
                case "slow_disk":
                    rate = max(1, int(fault.mb_per_s * 1e6))
                    speed = rate if speed is None else min(speed, rate)
        self._counts = [0] * len(self._launches)
        self._collective_counts = [0] * len(self._collectives)
        self.disk = FaultyDisk(clock, room=room, bytes_per_s=speed) if room is not None or speed is not None else None

    def __repr__(self) -> str:
        waiting = len(self.unused())
        return f"<Injector: {self._planned} faults" + (f", {waiting} not struck yet>" if waiting else ">")

    def launch(self, op_type: str, full_name: str, script_type: str = "") -> tuple[Any, ...]:
        """Count the launch of an operator and return the faults that are due.

        `script_type` is the operator's type in the script, if the compiler has changed it.
        """
        struck = []
        for at, (pattern, fault) in enumerate(self._launches):
            if matches(pattern, op_type, full_name) or (script_type and pattern == script_type):
                self._counts[at] += 1
                if self._counts[at] == fault.nth:
                    struck.append(fault)
        return tuple(struck)

    @property
    def has_collectives(self) -> bool:
        """Whether there are faults of ranks at collectives."""
        return bool(self._collectives)

    def collective(self, op_type: str, full_name: str, group: str) -> tuple[Any, ...]:
        """Count the call of a collective and return the faults of the rank that are due.

        Examples
        --------
        >>> from dumpsim.core.clock import VirtualClock
        >>> from dumpsim.device.faults import make_plan
        >>> injector = Injector(make_plan([{"kind": "kill", "op": "AllReduce", "nth": 2}]), VirtualClock())
        >>> [len(injector.collective(op, "", "hccl_world_group")) for op in ("AllReduce", "Barrier", "AllReduce")]
        [0, 0, 1]
        """
        struck = []
        for at, fault in enumerate(self._collectives):
            if (fault.op is None or matches(fault.op, op_type, full_name)) and fault.group in (None, group):
                self._collective_counts[at] += 1
                if self._collective_counts[at] == fault.nth:
                    struck.append(fault)
        return tuple(struck)

    def unused(self) -> tuple[Any, ...]:
        """Return the faults of operators and collectives that have not occurred."""
        faults = [*(fault for _, fault in self._launches), *self._collectives]
        counts = [*self._counts, *self._collective_counts]
        return tuple(fault for fault, count in zip(faults, counts, strict=True) if count < fault.nth)

    def unused_text(self) -> tuple[str, ...]:
        """Return a message for every fault that has not occurred: otherwise a mistyped plan would look like success.

        Examples
        --------
        >>> from dumpsim.core.clock import VirtualClock
        >>> from dumpsim.device.faults import make_plan
        >>> injector = Injector(make_plan([{"kind": "overflow", "op": "MatMull", "nth": 2}]), VirtualClock())
        >>> injector.unused_text()
        ("overflow of 'MatMull' never struck: 0 launches matched, it waits for launch 2",)
        """
        pairs = zip(self._launches, self._counts, strict=True)
        launches = [
            f"{fault.kind} of {pattern!r} never struck: {n} launches matched, it waits for launch {fault.nth}"
            for (pattern, fault), n in pairs
            if n < fault.nth
        ]
        collectives = [
            f"{fault.kind} at {fault.op or 'a collective'}{f' of group {fault.group!r}' if fault.group else ''} never "
            f"struck: {n} collectives matched, it waits for collective {fault.nth}"
            for fault, n in zip(self._collectives, self._collective_counts, strict=True)
            if n < fault.nth
        ]
        return (*launches, *collectives)
