"""The account of a job: what the dumps of its ranks requested, captured and wrote, and how the ranks ended."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dumpsim.archive.part import create
from dumpsim.core.regular import read_bytes
from dumpsim.dump.summary import Summary, human_size

__all__ = ["VARIABLE", "Account", "JobAccounts", "rank_text", "write_json"]

VARIABLE = "DUMPSIM_JOB"  # directory for the accounts of ranks with their own process

_LONGEST = 1 << 24  # largest size of an account in bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The account of one dump of a rank, with the fields of `Summary`.

    Attributes
    ----------
    rank : int
        Rank in the job, which may differ from that of the directory.
    notes : tuple of str
        Notes and findings, as text.
    """

    rank: int
    path: str
    asked: int
    captured: int
    skipped: tuple[tuple[str, int], ...]
    tensors: int
    rows: int
    files: int
    bytes: int
    failed: bool = False
    notes: tuple[str, ...] = ()
    following: str = ""

    @classmethod
    def of(cls, rank: int, summary: Summary) -> "Account":
        """Make the account of a rank's finished dump."""
        return cls(
            rank=rank,
            path=summary.path,
            asked=summary.asked,
            captured=summary.captured,
            skipped=summary.skipped,
            tensors=summary.tensors,
            rows=summary.rows,
            files=summary.files,
            bytes=summary.bytes,
            failed=summary.failed,
            notes=(*summary.notes, *map(str, summary.facts)),
            following=summary.following,
        )


class JobAccounts:
    """The accounts of a job, and the one report of them.

    Attributes
    ----------
    reported : bool
        Whether a report is registered for the end.

    Examples
    --------
    >>> counts = {"skipped": (), "rows": 0, "files": 5, "bytes": 1000, "path": ""}
    >>> accounts = JobAccounts()
    >>> for rank in range(4):
    ...     accounts.add(Account(rank=rank, asked=3, captured=3, tensors=3, **counts | {"path": f"/d/rank_{rank}"}))
    >>> print(accounts.text(4))
    dumpsim: /d
      ranks 0-3: asked 3, captured 3, written 3 tensors; 5 files
    dumpsim: 4 ranks: asked 12, captured 12, written 12 tensors; 20 files, 4.0 kB
    """

    def __init__(self) -> None:
        self.reported = False
        self._of: list[Account] = []

    def add(self, account: Account) -> None:
        """Add a dump that has ended."""
        self._of.append(account)

    def read(self, directory: str) -> None:
        """Add the accounts that the ranks of a job have written to a directory by `leave`."""
        for name in sorted(os.listdir(directory)):
            if name.endswith(".json"):
                self.take(json.loads(read_bytes(os.path.join(directory, name), _LONGEST)))

    def take(self, document: Mapping[str, Any]) -> None:
        """Add an account from its JSON document."""
        skipped = tuple((str(reason), int(count)) for reason, count in document["skipped"])
        self.add(Account(**{**document, "skipped": skipped, "notes": tuple(document["notes"])}))

    @classmethod
    def render(cls, documents: Iterable[Mapping[str, Any]], ranks: int) -> str:
        """Format the report of accounts from their JSON documents."""
        accounts = cls()
        for document in documents:
            accounts.take(document)
        return accounts.text(ranks)

    @staticmethod
    def leave(account: Account, directory: str) -> None:
        """Write an account to a directory for `read`; the file appears when it is complete."""
        number = sum(name.endswith(".json") for name in os.listdir(directory))
        write_json(os.path.join(directory, f"rank_{account.rank}-{os.getpid()}-{number}.json"), asdict(account))

    def document(self, ranks: int, endings: Mapping[int, str]) -> dict[str, Any]:
        """Return the account as a JSON document: how each rank ended, and its dumps."""
        dumps: dict[int, list[dict[str, Any]]] = {}
        for account in self._ordered():
            entry = asdict(account) | {"skipped": dict(account.skipped), "notes": list(account.notes)}
            dumps.setdefault(account.rank, []).append(entry)
        return {
            "ranks": [
                {"rank": rank, "ending": endings.get(rank, ""), "dumps": dumps.get(rank, [])} for rank in range(ranks)
            ]
        }

    def text(self, ranks: int, endings: Mapping[int, str] | None = None) -> str:
        """Format the report; ranks with the same text share a line.

        Parameters
        ----------
        ranks : int
            Number of ranks of the job.
        endings : mapping of int to str, optional
            How each rank ended.
        """
        lines = []
        if self._of:
            by_rank: dict[int, list[Account]] = {}
            for account in self._ordered():
                by_rank.setdefault(account.rank, []).append(account)
            lines += [f"dumpsim: {_common(account.path for account in self._of)}"]
            texts = {rank: "; then ".join(map(_one, found)) for rank, found in by_rank.items()}
            texts |= {rank: "no dump" for rank in range(ranks) if rank not in texts}
            lines += [f"  {who}: {what}" for who, what in _shared(texts)]
            lines += [f"dumpsim: {ranks} rank{'s' * (ranks != 1)}: {_total(self._of)}"]
            lines += self._notes(ranks)
            found = [account.following for account in self._ordered() if account.following]
            if found:
                lines.append(f"dumpsim: next: {min(found, key=_urgency)}")
        if endings:
            ended = ", ".join(f"{who}: {how}" for who, how in _shared(endings))
            lines += [f"dumpsim: {ended}"]
        return "\n".join(lines)

    def _ordered(self) -> list[Account]:
        return sorted(self._of, key=lambda account: account.rank)

    def _notes(self, ranks: int) -> list[str]:
        """Format each note once, with its ranks unless all ranks have it."""
        notes: dict[str, list[int]] = {}
        for account in self._ordered():
            for text in account.notes:
                notes.setdefault(text, []).append(account.rank)
        return [
            f"dumpsim: {'' if len(set(who)) == ranks else rank_text(who) + ': '}{text}" for text, who in notes.items()
        ]


def write_json(path: str, document: Mapping[str, Any]) -> None:
    """Write a JSON file, which appears under its name when it is complete."""
    descriptor, part = create(os.path.dirname(path), 0o644)
    try:
        left = memoryview(json.dumps(document, indent=1, ensure_ascii=False).encode())
        while left:
            left = left[os.write(descriptor, left) :]
        os.replace(part, path)
    except OSError:
        os.unlink(part)
        raise
    finally:
        os.close(descriptor)


def rank_text(ranks: Iterable[int]) -> str:
    """Format ranks for people.

    Examples
    --------
    >>> rank_text([0, 1, 2, 5]), rank_text([3])
    ('ranks 0-2, 5', 'rank 3')
    """
    numbers = sorted(set(ranks))
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    spans = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"rank{'s' * (len(numbers) != 1)} {', '.join(spans)}"


def _urgency(command: str) -> int:
    """Return the priority of a next command: one about a finding of a rank comes before others."""
    order = ("first", "stat", "ls", "check")
    return next((index for index, word in enumerate(order) if command.startswith(f"dumpsim {word} ")), len(order))


def _shared(texts: Mapping[int, str]) -> list[tuple[str, str]]:
    """Group ranks by their text, in the order of the first rank of each group."""
    by_text: dict[str, list[int]] = {}
    for rank in sorted(texts):
        by_text.setdefault(texts[rank], []).append(rank)
    return [(rank_text(who), what) for what, who in by_text.items()]


def _one(account: Account) -> str:
    return f"{_counts([account])}; {account.files} file{'s' * (account.files != 1)}"


def _total(accounts: Sequence[Account]) -> str:
    files, size = sum(account.files for account in accounts), sum(account.bytes for account in accounts)
    return f"{_counts(accounts)}; {files} file{'s' * (files != 1)}, {human_size(size)}"


def _counts(accounts: Sequence[Account]) -> str:
    """Format counts: ``asked 3, captured 2, skipped 1 (1 reason), written 2 tensors``."""
    asked, captured = sum(one.asked for one in accounts), sum(one.captured for one in accounts)
    tensors, rows = sum(one.tensors for one in accounts), sum(one.rows for one in accounts)
    skipped: Counter[str] = Counter()
    for one in accounts:
        skipped.update(dict(one.skipped))
    parts = [f"asked {asked}, captured {captured}"]
    if skipped:
        reasons = "; ".join(f"{count} {reason}" for reason, count in skipped.most_common())
        parts.append(f"skipped {skipped.total()} ({reasons})")
    parts.append(f"written {tensors} tensors" + (f", {rows} statistics rows" if rows else ""))
    return ", ".join(parts)


def _common(paths: Iterable[str]) -> str:
    """Return the common directory of the trees of all ranks."""
    found = {os.path.dirname(path) if os.path.basename(path).startswith("rank_") else path for path in paths}
    return os.path.commonpath(found)
