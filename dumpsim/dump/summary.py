"""Counts of requested, captured, skipped and written tensors, and the report at the end of a run. [design]"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dumpsim.dump.findings import Fact, Findings, describe

__all__ = ["Directory", "Summary", "Tally", "human_size"]

_LINES = 12  # largest number of lines for the tree in a summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """Number and size of the files in one directory."""

    path: str  # relative to the rank's directory
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The account of a finished dump.

    Attributes
    ----------
    path : str
        Directory of the rank.
    asked : int
        Number of tensors of the selected operators in the selected iterations.
    captured : int
        Number of tensors whose bytes were read; `asked` is `captured` plus all of `skipped`.
    skipped : tuple of (reason, count)
    tensors, rows : int
        Numbers of npy files and of rows of statistic.csv.
    files, bytes : int
        Number and size of all files, with graphs and metadata.
    failed : bool
        Whether the dump is disabled on this device, or something could not be written.
    notes : tuple of str
        Other information for the user, such as why nothing was dumped.
    directories : tuple of Directory
        Directories with files: data by graph and iteration, then the others.
    facts : tuple of Fact
        NaN, infinities and overflows that were found.
    following : str
        The next command to type.
    """

    path: str
    rank: int
    asked: int
    captured: int
    skipped: tuple[tuple[str, int], ...]
    tensors: int
    rows: int
    files: int
    bytes: int
    iterations: tuple[int, ...]
    failed: bool = False
    notes: tuple[str, ...] = ()
    directories: tuple[Directory, ...] = ()
    facts: tuple[Fact, ...] = ()
    following: str = ""

    @property
    def complete(self) -> bool:
        """Whether there were tensors to dump, and all of them are dumped."""
        return self.asked > 0 and not self.skipped and not self.failed

    def __str__(self) -> str:
        parts = [f"dumpsim: asked {self.asked}, captured {self.captured}"]
        lost = sum(count for _, count in self.skipped)
        if lost:
            parts.append(f"skipped {lost} ({'; '.join(f'{count} {reason}' for reason, count in self.skipped)})")
        written = f"{self.tensors} tensors"
        if self.rows:
            written += f", {self.rows} statistics rows"
        where = "" if self.directories else f", in {self.path}"
        parts.append(f"written {written}; {self.files} files, {human_size(self.bytes)}{where}")
        lines = [f"dumpsim: {self.path}", *_tree(self.directories)] if self.directories else []
        lines.append(", ".join(parts))
        lines += [f"dumpsim: {note}" for note in (*self.notes, *describe(self.facts))]
        if self.following:
            lines.append(f"dumpsim: next: {self.following}")
        return "\n".join(lines)


@dataclass(slots=True)
class Tally:
    """Counts of a running dump; `elsewhere`: whether another writer saves the requested tensors."""

    asked: int = 0
    captured: int = 0
    tensors: int = 0
    rows: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    iterations: set[int] = field(default_factory=set)
    failed: bool = False
    failures: int = 0
    elsewhere: bool = False
    notes: list[str] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)

    def skip(self, reason: str) -> None:
        """Count a requested tensor that is not dumped."""
        self.asked += 1
        self.skipped[reason] += 1

    def note(self, text: str) -> None:
        """Add a note for the user, once."""
        if text not in self.notes:
            self.notes.append(text)

    def fail(self, text: str) -> None:
        """Count a failure; the first one becomes a note."""
        if not self.failed:
            self.note(text)
        self.failed = True
        self.failures += 1

    def summary(
        self,
        *,
        path: str,
        rank: int,
        written: Mapping[str, tuple[int, int]],
        facts: tuple[Fact, ...] = (),
        following: str = "",
    ) -> Summary:
        """Return the summary so far.

        Parameters
        ----------
        path : str
            Directory of the rank.
        rank : int
        written : mapping of str to (int, int)
            Number and size of files by directory.
        facts : tuple of Fact
            NaN, infinities and overflows that were found.
        following : str
            The next command to type.
        """
        below = [
            Directory(path=name[len(path) + 1 :] or ".", files=files, bytes=size)
            for name, (files, size) in written.items()
        ]
        return Summary(
            path=path,
            rank=rank,
            directories=tuple(sorted(below, key=_order)),
            facts=facts,
            following=following,
            asked=self.asked,
            captured=self.captured,
            skipped=tuple(sorted(self.skipped.items(), key=lambda item: (-item[1], item[0]))),
            tensors=self.tensors,
            rows=self.rows,
            files=sum(found.files for found in below),
            bytes=sum(found.bytes for found in below),
            iterations=tuple(sorted(self.iterations)),
            failed=self.failed,
            notes=(*self.notes, *([f"{self.failures} failures in all"] if self.failures > 1 else ())),
        )


def _order(directory: Directory) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Sort key: data by graph and iteration, with constants after iterations; then graphs and others."""
    parts = directory.path.split("/")
    return (len(parts) == 1, [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts])


def _tree(directories: tuple[Directory, ...]) -> list[str]:
    """Format a line for each directory; of many directories, only the first and last ones.

    Examples
    --------
    >>> many = tuple(Directory(path=f"Net/0/{n}", files=2, bytes=600) for n in range(100))
    >>> print("\\n".join(_tree(many)[-3:]))
      and 89 more            178 files    53.4 kB
      Net/0/98                 2 files      600 B
      Net/0/99                 2 files      600 B
    """
    shown = list(directories)
    if len(shown) > _LINES:
        others = sum("/" not in found.path for found in shown)
        tail = min(max(others + 1, 2), _LINES - 2)  # at least the last iteration, and all directories without data
        hidden = shown[_LINES - 1 - tail : -tail]
        files, size = sum(found.files for found in hidden), sum(found.bytes for found in hidden)
        shown[_LINES - 1 - tail : -tail] = [Directory(path=f"and {len(hidden)} more", files=files, bytes=size)]
    width = max([20, *(len(found.path) for found in shown)])
    return [
        f"  {found.path:{width}}  {found.files:4} file{'s' if found.files != 1 else ' '} {human_size(found.bytes):>10}"
        for found in shown
    ]


def human_size(count: int) -> str:
    """Format a number of bytes for people.

    Examples
    --------
    >>> human_size(999), human_size(1_500_000)
    ('999 B', '1.5 MB')
    """
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
