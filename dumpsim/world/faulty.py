"""Faults of a rank at its collectives: it is killed, hangs, is late, or makes a different call."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from dumpsim.core.communicator import Array, Call, Communicator, Group, Meeting
from dumpsim.core.gate import Failure, Waiter
from dumpsim.device.faults import DelayFault, DivergeFault, HangFault, KillFault

__all__ = ["FaultyGroup", "Plan"]

_SECOND = 10**9


class Plan(Protocol):
    """A fault plan that is being followed: `dumpsim.device.injector.Injector`."""

    def collective(
        self, op_type: str, full_name: str, group: str
    ) -> "tuple[KillFault | HangFault | DelayFault | DivergeFault, ...]":
        """Return the faults that strike a collective, which is being called."""
        ...


class FaultyGroup:
    """A group as a member with faults sees it, with any transport.

    Parameters
    ----------
    group : Group
    plan : Plan
    communicator : Communicator
    """

    def __init__(self, group: Group, plan: Plan, communicator: Communicator) -> None:
        self.name = group.name
        self.members = group.members
        self.rank = group.rank
        self.number = group.number
        self._group = group
        self._plan = plan
        self._communicator = communicator

    def join(self, call: Call, offer: Callable[[], Sequence[Array]]) -> Meeting:
        """Return the gate of the member's next collective, changed by the faults of the plan."""
        delay_ns, hangs, own = 0, False, call
        for fault in self._plan.collective(call.op, call.name, self.name):
            match fault:
                case KillFault():
                    self._communicator.die(f"fault plan: kill at {call.name or call.op}")
                case HangFault():
                    hangs = True
                case DelayFault():
                    delay_ns += round(fault.seconds * _SECOND)
                case DivergeFault():
                    call = _other(call, fault.change)
        meeting = self._group.join(call, offer if call is own else _resized(call, offer))
        if not hangs and not delay_ns and call is own:
            return meeting
        return FaultyMeeting(meeting, own, call, delay_ns, hangs=hangs)

    def cost_ns(self, call: Call) -> int:
        """Duration on the virtual clock."""
        return self._group.cost_ns(call)


class FaultyMeeting:
    """A collective whose member is late, never arrives, or makes a different call."""

    def __init__(self, meeting: Meeting, own: Call, called: Call, delay_ns: int, *, hangs: bool) -> None:
        self.tag = meeting.tag
        self._meeting = meeting
        self._own = own
        self._called = called
        self._delay_ns = delay_ns
        self._hangs = hangs

    @property
    def failure(self) -> Failure | None:
        """Why it will never open."""
        return self._meeting.failure

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """Enter late, or not at all."""
        if not self._hangs:
            self._meeting.enter(waiter, time_ns + self._delay_ns)

    def open_ns(self) -> int | None:
        """Time from which the task may run."""
        return None if self._hangs else self._meeting.open_ns()

    def leave(self, time_ns: int) -> None:
        """The task has run."""
        self._meeting.leave(time_ns)

    def abandon(self, failure: Failure) -> None:
        """The task was dropped."""
        self._meeting.abandon(failure)

    def waits_for(self) -> str:
        """Return what is missing."""
        return f"nothing: it hangs by the fault plan ({self.tag})" if self._hangs else self._meeting.waits_for()

    def give_up(self, report: str) -> Failure | None:
        """Return the failure of a deadlock, see `Gate.give_up`."""
        return None if self._hangs else self._meeting.give_up(report)

    def results(self) -> Sequence[Array]:
        """Return what the member gets, in the number types and shapes of its own call."""
        given = self._meeting.results()
        if self._called is self._own or self._called.op != self._own.op:
            return given
        (kind, shape), (_, called) = self._own.tensors[0], self._called.tensors[0]
        found = []
        for array in given:
            length = array.shape[0] * shape[0] // called[0] if shape else 1
            found.append(_as(array, kind, (length, *array.shape[1:]) if shape else ()))
        return found


def _other(call: Call, change: str) -> Call:
    """Return a call that differs from those of the other members.

    Examples
    --------
    >>> call = Call(op="AllReduce", tensors=(("float32", (2, 3)),), reduce="sum")
    >>> [(each.op, each.tensors) for each in (_other(call, change) for change in ("op", "count", "type"))]
    [('Barrier', ()), ('AllReduce', (('float32', (3, 3)),)), ('AllReduce', (('float16', (2, 3)),))]
    """
    if change == "op" or not call.tensors:
        if call.op != "Barrier":
            return Call(op="Barrier", name=call.name, place=call.place)
        return Call(op="AllReduce", tensors=(("float32", (1,)),), reduce="sum", name=call.name, place=call.place)
    (kind, shape), *others = call.tensors
    if change == "count":
        shape = (shape[0] + 1, *shape[1:]) if shape else (2,)
    else:
        kind = "float32" if kind == "float16" else "float16"
    return replace(call, tensors=((kind, shape), *others))


def _resized(call: Call, offer: Callable[[], Sequence[Array]]) -> Callable[[], Sequence[Array]]:
    """Return the member's tensors in the types and shapes of the changed call."""

    def offered() -> list[Array]:
        given = list(offer())
        given += [np.zeros(1, np.float32)] * (len(call.tensors) - len(given))
        return [_as(array, kind, shape) for array, (kind, shape) in zip(given, call.tensors, strict=False)]

    return offered


def _as(array: Array, kind: str, shape: tuple[int, ...]) -> Array:
    """Return the values of an array in another number type and shape, repeated or cut."""
    from dumpsim.core.dtype import dtype

    target = dtype(kind).numpy
    if array.dtype == target and array.shape == shape:
        return array
    return np.resize(array.astype(target), shape)
