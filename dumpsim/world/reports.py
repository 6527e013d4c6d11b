"""Reports of the ranks of a job at its end, collected from separate processes."""

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
        Whether one process prints the reports of all ranks.
    renderer : str
        The function that renders the text, as ``module:name``. It is imported by the process that prints, and called as
        ``name(reports, ranks)``.
    own : list of mapping
        The reports, JSON objects.
    """

    wanted: bool = False
    renderer: str = ""
    own: list[Mapping[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any] | None:
        """Return the JSON document that the rank sends at its end; None if it has nothing to report."""
        return {"renderer": self.renderer, "reports": self.own} if self.own else None

    @staticmethod
    def text(documents: Iterable[Mapping[str, Any] | None], ranks: int) -> str:
        """Return the text of the documents of a job's ranks; empty if there is nothing to report.

        Raises
        ------
        BadInputError
            For a renderer that is not part of dumpsim.

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
                raise BadInputError(f"invalid renderer {renderer!r}", where="report of a rank", allowed=["dumpsim.*"])
            texts.append(str(resolve_name(renderer)(reports, ranks)))
        return "\n".join(texts)
