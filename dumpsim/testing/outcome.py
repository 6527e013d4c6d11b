"""How each rank of a test ended, and the sections of the test's report about it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dumpsim.testing.ranks import named

__all__ = ["Outcome", "output_sections", "rank_sections"]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How one rank of a test ended.

    Attributes
    ----------
    rank : int
    state : str
        ``not started``, ``passed``, ``skipped``, ``failed``, ``stopped``.
    reason : str
        One line: why it was skipped or stopped, or its error.
    error : BaseException, optional
        Its error, if it was raised in this process.
    traceback : str
        The traceback, as pytest shows it.
    out, err : str
        Its output, as far as the test has not read it.

    Examples
    --------
    >>> Outcome(rank=2, state="stopped", reason="rank 1 has raised ValueError").line()
    'stopped: rank 1 has raised ValueError'
    """

    rank: int
    state: str = "not started"
    reason: str = ""
    error: BaseException | None = None
    traceback: str = ""
    out: str = ""
    err: str = ""

    def line(self) -> str:
        """State and reason."""
        return f"{self.state}: {self.reason}" if self.reason else self.state


def rank_sections(outcomes: Sequence[Outcome], first: int | None) -> list[tuple[str, str]]:
    """Return a section on the end of each rank; ranks that ended alike share one.

    Parameters
    ----------
    outcomes : sequence of Outcome
    first : int, optional
        The rank whose traceback the report already shows.

    Examples
    --------
    >>> ends = [Outcome(rank=rank, state="stopped", reason="rank 1 has raised ValueError") for rank in (0, 2, 3)]
    >>> ends.append(Outcome(rank=1, state="failed", reason="ValueError: 5", traceback="..."))
    >>> for title, text in rank_sections(ends, first=1):
    ...     print(title, "|", text)
    rank 1 | failed: ValueError: 5 (traceback above)
    ranks 0, 2, 3 | stopped: rank 1 has raised ValueError
    """

    above = next((_plain(outcome, outcome.traceback) for outcome in outcomes if outcome.rank == first), "")

    def end(outcome: Outcome) -> str:
        if outcome.traceback and _plain(outcome, outcome.traceback) == above:
            return f"{outcome.line()} (traceback above)"
        text = "" if outcome.traceback.strip() == outcome.reason else outcome.traceback
        return f"{outcome.line()}\n{text}".rstrip()

    ordered = sorted(outcomes, key=lambda outcome: (outcome.rank != first, outcome.rank))
    return _folded(ordered, end)


def output_sections(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """Return the output of the ranks, as pytest's sections of captured output.

    Examples
    --------
    >>> output_sections([Outcome(rank=rank, out="step 0") for rank in range(3)])
    [('Captured stdout call (ranks 0-2)', 'step 0')]
    """
    texts: tuple[tuple[str, Callable[[Outcome], str]], ...] = (
        ("stdout", lambda outcome: outcome.out),
        ("stderr", lambda outcome: outcome.err),
    )
    return [
        (f"Captured {key} call ({title})", text)
        for key, of in texts
        for title, text in _folded([outcome for outcome in outcomes if of(outcome)], of)
    ]


def _folded(outcomes: Sequence[Outcome], text: Callable[[Outcome], str]) -> list[tuple[str, str]]:
    """Return title and text for each group of ranks with equal texts, in the order of the first rank."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(_plain(outcome, text(outcome)), []).append(outcome)
    return [(named(same.rank for same in group), text(group[0])) for group in found.values()]


def _plain(outcome: Outcome, text: str) -> str:
    """Remove numbers of ranks and addresses, which differ between ranks that do the same."""
    return re.sub(rf"\b(rank) {outcome.rank}\b|\b(0x)[0-9a-f]+", r"\1\2", text)
