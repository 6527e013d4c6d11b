"""Finds the IR node, and so the script line, of an operator name in a file."""

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from dumpsim.archive.naming import escape
from dumpsim.codecs import irproto, irtext
from dumpsim.core.errors import UnreadableError
from dumpsim.core.irdoc import IrDoc, IrNode, SourceLine
from dumpsim.core.regular import read_bytes, read_text, regular_names

__all__ = ["GraphIndex"]

_FILE = re.compile(r"ms_output_trace_code_graph_(\d{1,18})\.(ir|pb)", re.ASCII)
_MAX_GRAPH = 1 << 29  # bytes


class GraphIndex:
    """The graphs of one rank, read when first asked for.

    Parameters
    ----------
    directory : Path
        ``rank_{r}/graphs``; may be absent.
    broken : callable
        Called with the error of an unreadable graph, which is then skipped; None: raise it.
    """

    def __init__(self, directory: Path, broken: Callable[[UnreadableError], None] | None = None) -> None:
        self.directory = directory
        self.broken = broken

    @cached_property
    def documents(self) -> dict[int, IrDoc]:
        """Graphs by id: from the text, which has more information, or else from the protobuf file."""
        found: dict[int, dict[str, Path]] = {}
        read: dict[int, IrDoc] = {}
        try:
            names = regular_names(self.directory, below=self.directory.parent)
        except UnreadableError as error:
            if self.broken is None:
                raise
            self.broken(error)
            return read
        for name in names:
            if match := _FILE.fullmatch(name):
                found.setdefault(int(match.group(1)), {})[match.group(2)] = self.directory / name
        for graph, files in sorted(found.items()):
            try:
                read[graph] = self._read(files)
            except UnreadableError as error:
                if self.broken is None:
                    raise
                self.broken(error)
        return read

    def _read(self, files: dict[str, Path]) -> IrDoc:
        above = self.directory.parent
        if "ir" in files:
            return irtext.parse(read_text(files["ir"], _MAX_GRAPH, below=above), str(files["ir"]))
        return irproto.decode(read_bytes(files["pb"], _MAX_GRAPH, below=above), str(files["pb"]))

    @cached_property
    def _nodes(self) -> dict[str, list[tuple[int, IrNode]]]:
        nodes: dict[str, list[tuple[int, IrNode]]] = {}
        for graph, doc in self.documents.items():
            for node in doc.nodes:
                for name in (escape(node.full_name), _without_id(escape(node.full_name))):
                    nodes.setdefault(name, []).append((graph, node))
        return nodes

    def node(self, op_name: str, graph_id: int | None) -> IrNode | None:
        """Return the node of an operator name, escaped or not.

        A node that a backend pass made anew has another number in the IR than in the files; it is found where its scope
        and type name one node only. [spec observed 0.17] So is a name without its scope, as the documents' samples have
        it. [seed 001]
        """
        if not self.documents:
            return None
        name = escape(op_name)
        found = self._nodes.get(name, [])
        here = [node for graph, node in found if graph == graph_id] or [node for _, node in found]
        if here:
            return here[0]
        for similar in (self._nodes.get(_without_id(name), []), self._short.get(name, [])):
            nodes = [node for graph, node in similar if graph_id in (None, graph)]
            if len(nodes) == 1:
                return nodes[0]
        return None

    def document(self, node: IrNode) -> IrDoc | None:
        """Return the graph that contains a node."""
        return self._documents_of.get(id(node))

    @cached_property
    def _documents_of(self) -> dict[int, IrDoc]:
        return {id(node): doc for doc in self.documents.values() for node in doc.nodes}

    def alike(self, op_type: str, stem: str) -> list[IrNode]:
        """The nodes of a type whose names, as files have them, are `stem` with ``-op`` and a number."""
        return self._alike.get((op_type, stem), [])

    @cached_property
    def _alike(self) -> dict[tuple[str, str], list[IrNode]]:
        nodes: dict[tuple[str, str], list[IrNode]] = {}
        for doc in self.documents.values():
            for node in doc.nodes:
                nodes.setdefault((node.op_type, escape(node.full_name).rpartition("-op")[0]), []).append(node)
        return nodes

    @cached_property
    def _short(self) -> dict[str, list[tuple[int, IrNode]]]:
        nodes: dict[str, list[tuple[int, IrNode]]] = {}
        for graph, doc in self.documents.items():
            for node in doc.nodes:
                nodes.setdefault(escape(node.full_name.rpartition("/")[2]), []).append((graph, node))
        return nodes

    @cached_property
    def _params(self) -> dict[str, str]:
        return {escape(param.name): param.name for doc in self.documents.values() for param in doc.params}

    def parameter(self, name: str) -> str:
        """Return the name of a graph parameter (``fc1.weight``) for that in a file name (``fc1_weight``)."""
        return self._params.get(name, name)

    def lines(self, op_name: str, graph_id: int | None) -> tuple[SourceLine, ...]:
        """Return the script lines of an operator, outermost first."""
        node = self.node(op_name, graph_id)
        if node is None:
            return ()
        return (*node.sources, *(line for _, lines in node.more_sources for line in lines))


def _without_id(name: str) -> str:
    return re.sub(r"-op\d+$", "-op", name)
