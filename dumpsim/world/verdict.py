"""Checks of a collective after all its members have called: whether they agree, and whether one was late.

All transports share these checks, so the same calls at the same times raise the same errors.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpsim.core.communicator import Call, Terms
from dumpsim.core.errors import CollectiveError
from dumpsim.core.gate import Failure
from dumpsim.world.collective import collective
from dumpsim.world.terms import CONNECT, EXEC

__all__ = ["Entry", "gone", "judge", "judge_message", "not_created", "stuck"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A member's call of a collective.

    Attributes
    ----------
    rank : int
        Global rank.
    call : Call
    time_ns : int
        Time at which its stream reached the collective.
    terms : Terms
    """

    rank: int
    call: Call
    time_ns: int
    terms: Terms


# ------------------------------------------------------------------- verdicts
def judge(entries: Sequence[Entry], *, group: str, index: int | None, first: bool) -> dict[int, Failure]:
    """Return why the members' tasks fail, by rank; empty if the collective can be carried out.

    Parameters
    ----------
    entries : sequence of Entry
        All members, in the order of the group.
    group : str
    index : int
        Number of the collective in the group.
    first : bool
        Whether it is the group's first collective of this type, in which the members connect.

    Examples
    --------
    >>> calls = [Call(op="AllReduce", tensors=(("int8", (n,)),), reduce="sum") for n in (2, 2, 3)]
    >>> entries = [Entry(rank=r, call=c, time_ns=0, terms=Terms()) for r, c in enumerate(calls)]
    >>> failures = judge(entries, group="hccl_world_group", index=0, first=True)
    >>> [failure.error.code for failure in failures.values()], failures[0].rank
    (['EI0005', 'EI0005', 'EI0005'], 2)
    """
    entered = max(entry.time_ns for entry in entries)
    late = [entry for entry in entries if _expired(entry, entered, first=first)]
    if late:
        return _time_out(entries, group, index, first=first)
    checks = {entry.terms.check for entry in entries}
    if "all" in checks or ("first" in checks and first):
        return _disagreement(entries, group, index, entered)
    if len({entry.call.op for entry in entries}) > 1:  # the calls are not compared, and the records never come
        return _crossed(entries, group, index, entered)
    return {}


def judge_message(
    receiver: Entry, sender: Entry, wanted: Sequence[Any], sent: Sequence[Any], *, group: str, first: bool
) -> Failure | None:
    """Return why a Receive fails whose message has come; None if the message matches and is in time.

    Parameters
    ----------
    receiver, sender : Entry
    wanted, sent : sequence of (str, tuple of int)
        Number types and shapes; not compared if `wanted` is empty.
    group : str
    first : bool
        Whether it is the first message of this sender to this receiver.
    """
    if _expired(receiver, sender.time_ns, first=first):
        return _time_out([receiver, sender], group, None, first=first)[receiver.rank]
    check = receiver.terms.check
    if wanted and tuple(wanted) != tuple(sent) and (check == "all" or (check == "first" and first)):
        time_ns = max(receiver.time_ns, sender.time_ns)
        differs = "data type and shape", tuple(wanted), tuple(sent)
        return _inconsistent(receiver, sender, sender.rank, differs, _base(receiver, group, None), time_ns)
    return None


def gone(entry: Entry, culprit: int, why: str, *, group: str, index: int | None, first: bool, at_ns: int) -> Failure:
    """Return the failure of a member that waits for a rank which has ended, failed or been killed at `at_ns`.

    The device notices it only when the member's time limit has passed. [spec parallel 3.6]
    """
    limit = _limit(entry, first=first)
    until = at_ns if limit is None else max(entry.time_ns + limit, at_ns)
    code = _code(first=first)
    text = f"{_WAITED[code]} {culprit}: {why}. {_base(entry, group, index)}"
    error = CollectiveError(text, rank=culprit, code=code, where=_where(entry))
    return Failure(rank=culprit, time_ns=until, error=error)


def stuck(entry: Entry, missing: Sequence[int], report: str, *, group: str, index: int | None, first: bool) -> Failure:
    """Return the failure of a member in a deadlock.

    Parameters
    ----------
    entry : Entry
    missing : sequence of int
        Ranks that have not called.
    report : str
        The list of waiting streams, added as a note to the error.
    """
    limit = _limit(entry, first=first)
    code = _code(first=first)
    names = ", ".join(map(str, missing))
    text = f"{_WAITED[code]} {names}, which will never call it. {_base(entry, group, index)}"
    error = CollectiveError(text, rank=missing[0], code=code, where=_where(entry))
    error.add_note(report)
    return Failure(rank=missing[0], time_ns=entry.time_ns + (limit or 0), error=error)


def not_created(rank: int, connected: Sequence[int], missing: Sequence[int], after_s: float | None) -> CollectiveError:
    """Return the error of a rank that enters a job in which ranks are missing.

    Parameters
    ----------
    rank : int
        The rank that raises it.
    connected, missing : sequence of int
        Ranks that wait, and those that have ended without entering.
    after_s : float or None
        The time limit within which the missing ranks did not connect; None if they have connected and ended.

    Examples
    --------
    >>> print(not_created(0, [0, 1], [2], 120.0))
    rank 0: The creation of the communicator times out after 120 s (HCCL_CONNECT_TIMEOUT, MS_TOPO_TIMEOUT): \
connected ranks [0, 1], missing ranks [2] [EI0015]
    """
    how = "fails" if after_s is None else f"times out after {after_s:g} s ({CONNECT}, MS_TOPO_TIMEOUT)"
    ranks = f"connected ranks {list(connected)}, missing ranks {list(missing)}"
    text = f"The creation of the communicator {how}: {ranks}"
    return CollectiveError(text, rank=missing[0], code="EI0015", where=f"rank {rank}")


# ------------------------------------------------------------------ time-outs
_WAITED = {
    "EI0002": "The wait execution of the Notify register times out: no Notify record came from remote rank",
    "EI0006": "Getting socket times out: no data came in time from remote rank",
}


def _code(*, first: bool) -> str:
    return "EI0006" if first else "EI0002"


def _limit(entry: Entry, *, first: bool) -> int | None:
    return entry.terms.connect_ns if first else entry.terms.exec_ns


def _expired(entry: Entry, opened_ns: int, *, first: bool) -> bool:
    limit = _limit(entry, first=first)
    return limit is not None and opened_ns - entry.time_ns > limit


def _time_out(entries: Sequence[Entry], group: str, index: int | None, *, first: bool) -> dict[int, Failure]:
    """Return the failures after some members have given up before the last one called."""
    last = max(entries, key=lambda entry: entry.time_ns)
    early = min(entries, key=lambda entry: entry.time_ns)
    code, variable = _code(first=first), CONNECT if first else EXEC
    remedy = f"If writing dumps makes rank {last.rank} slow, raise {variable}"
    failures = {}
    for entry in entries:
        limit = _limit(entry, first=first)
        base = _base(entry, group, index)
        if limit is not None and _expired(entry, last.time_ns, first=first):
            late = _seconds(last.time_ns - entry.time_ns)
            until = entry.time_ns + limit
            text = (
                f"{_WAITED[code]} {last.rank} within {_seconds(limit)} s ({variable}): it came {late} s after rank "
                f"{entry.rank}. {base} {remedy}"
            )
        else:
            late = _seconds(last.time_ns - early.time_ns)
            until = entry.time_ns
            text = f"rank {early.rank} has given up: rank {last.rank} came {late} s after it. {base} {remedy}"
        error = CollectiveError(text, rank=last.rank, code=code, where=_where(entry))
        failures[entry.rank] = Failure(rank=last.rank, time_ns=until, error=error)
    return failures


def _crossed(entries: Sequence[Entry], group: str, index: int | None, opened_ns: int) -> dict[int, Failure]:
    """Return the failures of different collectives that are not compared: each waits for records that never come."""
    _, odd = _sides(entries, lambda call: call.op)
    failures = {}
    for entry in entries:
        other = odd[0] if entry not in odd else next(each for each in entries if each not in odd)
        text = f"{_WAITED['EI0002']} {other.rank}. {_base(entry, group, index)}"
        error = CollectiveError(text, rank=odd[0].rank, code="EI0002", where=_where(entry))
        until = opened_ns if entry.terms.exec_ns is None else entry.time_ns + entry.terms.exec_ns
        failures[entry.rank] = Failure(rank=odd[0].rank, time_ns=max(until, opened_ns), error=error)
    return failures


# --------------------------------------------------------------- disagreement
def _aspects(call: Call) -> list[tuple[str, Any]]:
    """Return the arguments that members must agree on, in the order of the comparison."""
    found = collective(call.op)
    aspects: list[tuple[str, Any]] = [("op", call.op)]
    if found.same_tensors == "root":  # of the root's tensor or the expected part, the properties that they share
        kinds = [(kind, shape[1:]) for kind, shape in call.tensors or call.expected]
        return [*aspects, ("root", call.root), ("data type and shape of a part", tuple(kinds))]
    aspects.append(("data type", tuple(kind for kind, _ in call.tensors)))
    if found.same_tensors == "all":
        aspects.append(("shape", tuple(shape for _, shape in call.tensors)))
    return aspects + [(name, getattr(call, name)) for name in found.agree]


def _sides(entries: Sequence[Entry], key: Callable[[Call], Any]) -> tuple[list[Entry], list[Entry]]:
    """Split the entries into the majority, by `key`, and the others; the first member's side wins a tie."""
    counts = Counter(key(entry.call) for entry in entries)
    common = max(counts, key=lambda value: counts[value])
    most = [entry for entry in entries if key(entry.call) == common]
    return most, [entry for entry in entries if key(entry.call) != common]


def _disagreement(entries: Sequence[Entry], group: str, index: int | None, opened_ns: int) -> dict[int, Failure]:
    if all(entry.call == entries[0].call for entry in entries):  # only counts can contradict each other
        return _unmatched(entries, group, index, opened_ns)
    most, odd = _sides(entries, lambda call: tuple(_aspects(call)))
    if not odd:
        return _unmatched(entries, group, index, opened_ns)
    failures = {}
    for entry in entries:
        other = odd[0] if entry not in odd else most[0]
        differs = next(
            (name, mine, theirs)
            for (name, mine), (_, theirs) in zip(_aspects(entry.call), _aspects(other.call), strict=False)
            if mine != theirs
        )
        base = _base(entry, group, index)
        failures[entry.rank] = _inconsistent(entry, other, odd[0].rank, differs, base, opened_ns)
    return failures


def _unmatched(entries: Sequence[Entry], group: str, index: int | None, opened_ns: int) -> dict[int, Failure]:
    """Return the failures if a member sends another count than the receiver expects."""
    wrong = _wrong_counts(entries)
    if wrong is None:
        return {}
    sender, receiver, sent, expected = wrong
    name = f"count from rank {sender.rank} to rank {receiver.rank}"
    failures = {}
    for entry in entries:
        other, mine, theirs = (receiver, sent, expected) if entry is sender else (sender, expected, sent)
        base = _base(entry, group, index)
        failures[entry.rank] = _inconsistent(entry, other, sender.rank, (name, mine, theirs), base, opened_ns)
    return failures


def _wrong_counts(entries: Sequence[Entry]) -> tuple[Entry, Entry, Any, Any] | None:
    if not all(entry.call.sends and entry.call.receives for entry in entries):  # one side states all counts
        return None
    sent = np.array([entry.call.sends for entry in entries])
    expected = np.array([entry.call.receives for entry in entries]).T
    wrong = np.argwhere(sent != expected)
    if not len(wrong):
        return None
    source, target = wrong[0]
    return entries[source], entries[target], int(sent[source, target]), int(expected[source, target])


def _inconsistent(
    entry: Entry, other: Entry, culprit: int, differs: tuple[str, Any, Any], base: str, time_ns: int
) -> Failure:
    name, mine, theirs = differs
    text = (
        "The arguments for collective communication are inconsistent between ranks: "
        f"parameter {name}, local value {_shown(mine)}, remote value {_shown(theirs)} (rank {other.rank}"
        f"{_at(other.call)}). {base}"
    )
    error = CollectiveError(text, rank=culprit, code="EI0005", where=_where(entry))
    return Failure(rank=culprit, time_ns=time_ns, error=error)


# ---------------------------------------------------------------------- texts
def _shown(value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 1:
        return str(value[0])
    return "nothing" if value is None else str(value)


def _at(call: Call) -> str:
    return f", {call.place}" if call.place else ""


def _where(entry: Entry) -> str:
    return f"rank {entry.rank}{_at(entry.call)}"


def _base(entry: Entry, group: str, index: int | None) -> str:
    what = "Message" if index is None else f"Collective {index}"
    return f"{what} of group {group!r}: {entry.call.name or entry.call.op}."


def _seconds(time_ns: int) -> str:
    return f"{time_ns / 10**9:.15g}"
