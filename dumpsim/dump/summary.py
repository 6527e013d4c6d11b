"""What was asked, captured, skipped and written: counted during the run, told at its end. [design]"""

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Summary", "Tally"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The account of a finished dump.

    Attributes
    ----------
    path : str
        Directory of the rank.
    asked : int
        Tensors of the selected operators in the selected iterations.
    captured : int
        Those whose bytes were read; `asked` is `captured` plus all of `skipped`.
    skipped : tuple of (reason, count)
    tensors, rows : int
        npy files and rows of statistic.csv.
    files, bytes : int
        Everything that was written, graphs and metadata included.
    failed : bool
        The dump is off on this device, or something could not be written.
    notes : tuple of str
        What else a user must know, such as why nothing was dumped.
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

    @property
    def complete(self) -> bool:
        """Something was asked for, and nothing of it is missing."""
        return self.asked > 0 and not self.skipped and not self.failed

    def __str__(self) -> str:
        parts = [f"dumpsim: asked {self.asked}, captured {self.captured}"]
        lost = sum(count for _, count in self.skipped)
        if lost:
            parts.append(f"skipped {lost} ({'; '.join(f'{count} {reason}' for reason, count in self.skipped)})")
        written = f"{self.tensors} tensors"
        if self.rows:
            written += f", {self.rows} statistics rows"
        parts.append(f"written {written}; {self.files} files, {_size(self.bytes)}, in {self.path}")
        lines = [", ".join(parts)]
        lines += [f"dumpsim: {note}" for note in self.notes]
        return "\n".join(lines)


@dataclass(slots=True)
class Tally:
    """Counts of a running dump."""

    asked: int = 0
    captured: int = 0
    tensors: int = 0
    rows: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    iterations: set[int] = field(default_factory=set)
    failed: bool = False
    notes: list[str] = field(default_factory=list)

    def skip(self, reason: str) -> None:
        """A tensor that was asked for is not dumped."""
        self.asked += 1
        self.skipped[reason] += 1

    def note(self, text: str) -> None:
        """Something that a user must know, told once."""
        if text not in self.notes:
            self.notes.append(text)

    def fail(self, text: str) -> None:
        """Something that was asked for is missing as a whole; the first reason is told."""
        if not self.failed:
            self.note(text)
        self.failed = True

    def summary(self, *, path: str, rank: int, files: int, size: int) -> Summary:
        """The account so far."""
        return Summary(
            path=path,
            rank=rank,
            asked=self.asked,
            captured=self.captured,
            skipped=tuple(sorted(self.skipped.items(), key=lambda item: (-item[1], item[0]))),
            tensors=self.tensors,
            rows=self.rows,
            files=files,
            bytes=size,
            iterations=tuple(sorted(self.iterations)),
            failed=self.failed,
            notes=tuple(self.notes),
        )


def _size(count: int) -> str:
    """Bytes as people say them.

    Examples
    --------
    >>> _size(999), _size(1_500_000)
    ('999 B', '1.5 MB')
    """
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
