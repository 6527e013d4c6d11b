"""A cache of programs that ranks share: ranks that capture equal networks compile one program."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dumpsim.core.irdoc import IrDoc
from dumpsim.core.options import CompileOptions
from dumpsim.graph.compilation import Saver
from dumpsim.graph.fingerprint import fingerprint
from dumpsim.graph.graph import Graph
from dumpsim.graph.pipeline import compile_graph
from dumpsim.graph.program import Program
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.ids import Ids

__all__ = ["Programs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    """A cached program, and the side effects of its compilation, which are repeated for other ranks."""

    program: Program
    ids: tuple[Any, ...]  # the counters afterwards
    documents: tuple[tuple[str, Sequence[IrDoc]], ...]  # of each stage that was saved
    anchors: tuple[Any, ...]


class Programs:
    """The programs of a world.

    Two captured graphs share a program if the graphs, the options and the counters of their ranks are equal; names
    depend on the counters. Weights of the program have indexes instead of storages.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Compiled] = {}

    def build(
        self,
        captured: Graph,
        ids: Ids,
        find: Callable[[str], OpDef],
        options: CompileOptions,
        saved: Saver | None = None,
    ) -> tuple[Program, tuple[Any, ...]]:
        """Compile a captured graph, or return its cached program; for the parameters see `compile_graph`.

        The rank's counters and saved documents are the same in both cases.

        Returns
        -------
        Program
        tuple of object
            The rank's storages, by the indexes of the program's weights.
        """
        identity = fingerprint(captured)
        storages = tuple(weight.storage for weight in identity.weights)
        key = (identity.digest, options, ids.state(), find, saved is not None)
        found = self._known.get(key)
        if found is None:
            for index, weight in enumerate(identity.weights):
                weight.storage = index
            documents: list[tuple[str, Sequence[IrDoc]]] = []

            def save(stage: str, docs: Sequence[IrDoc]) -> None:
                documents.append((stage, tuple(docs)))

            program = compile_graph(captured, ids, find, options, None if saved is None else save)
            found = self._known[key] = _Compiled(
                program=program, ids=ids.state(), documents=tuple(documents), anchors=identity.anchors
            )
        ids.assume(found.ids)
        if saved is not None:
            for stage, docs in found.documents:
                saved(stage, docs)
        return found.program, storages
