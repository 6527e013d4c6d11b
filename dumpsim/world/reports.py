"""What the ranks of a job report at its end, where their processes share nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["JobReports"]


@dataclass(slots=True)
class JobReports:
    """The reports of a rank.

    Attributes
    ----------
    wanted : bool
        One rank prints the reports of all.
    own : list of mapping
        JSON objects.
    render : callable or None
        Makes the text of the reports of all ranks.
    """

    wanted: bool = False
    own: list[Mapping[str, Any]] = field(default_factory=list)
    render: Callable[[list[Mapping[str, Any]]], str] | None = None

    def text(self, reports: Mapping[int, Any]) -> str:
        """The text of what ranks have handed over, by rank; empty where there is nothing to say.

        Examples
        --------
        >>> JobReports(render=lambda found: f"{len(found)} dumps").text({0: [{}], 1: None, 2: [{}, {}]})
        '3 dumps'
        """
        found = [report for rank in sorted(reports) for report in reports[rank] or ()]
        return self.render(found) if found and self.render is not None else ""
