"""What the ranks of a job report at its end, where their processes share nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

from dumpsim.core.errors import BadInputError

__all__ = ["JobReports"]


@dataclass(slots=True)
class JobReports:
    """The reports of a rank, which one process prints together with those of the other ranks.

    Attributes
    ----------
    wanted : bool
        One process prints the reports of all ranks.
    renderer : str
        What makes the text, as ``module:name``: ``name(reports, ranks)``. The process that prints imports it.
    own : list of mapping
        JSON objects.
    """

    wanted: bool = False
    renderer: str = ""
    own: list[Mapping[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any] | None:
        """What the rank hands over at its end: JSON; None where it has nothing to report."""
        return {"renderer": self.renderer, "reports": self.own} if self.own else None

    @staticmethod
    def text(documents: Iterable[Mapping[str, Any] | None], ranks: int) -> str:
        """The text of what the ranks of a job have handed over; empty where there is nothing to report.

        Raises
        ------
        BadInputError
            For a renderer that is not dumpsim's own.

        Examples
        --------
        >>> JobReports.text([JobReports().document(), None], 2)
        ''
        """
        found: dict[str, list[Mapping[str, Any]]] = {}
        for document in documents:
            if document:
                found.setdefault(document["renderer"], []).extend(document["reports"])
        texts = []
        for renderer, reports in found.items():
            if not renderer.startswith("dumpsim."):
                raise BadInputError(f"{renderer!r} renders no reports", where="report of a rank", allowed=["dumpsim.*"])
            texts.append(str(resolve_name(renderer)(reports, ranks)))
        return "\n".join(texts)
