"""The compiler's graphs as files, for ``save_graphs`` and ``MS_DEV_SAVE_GRAPHS``. [seed 004, spec mindspore 8.4]

Levels 1 and 2 write IR text, level 3 also ``.dot``; in the documented releases level 2 (``True``) writes both.
"""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dumpsim.codecs.irtext import render
from dumpsim.core.irdoc import IrDoc, IrNode, NodeRef, ParamRef
from dumpsim.runtime.graphfile import write_text

__all__ = ["GraphSaver", "dot"]

_FILE_MODE = 0o400
# level from which .dot is written [seed 004: True gives .ir and .dot; observed 2.10: level 3]
_DOT_LEVEL = MappingProxyType({"seed": 2, "2.7": 3, "2.10": 3})


@dataclass(slots=True, kw_only=True)
class GraphSaver:
    """Writes graphs into a directory, numbered throughout the process.

    Attributes
    ----------
    directory : Path
    level : int
        0 writes nothing.
    release : str
    """

    directory: Path
    level: int
    release: str = "seed"
    _count: int = 0

    @property
    def active(self) -> bool:
        """Whether anything is written."""
        return self.level > 0

    def save(self, stage: str, docs: Sequence[IrDoc]) -> list[Path]:
        """Write the graphs of one stage of a compilation, and return the files.

        Raises
        ------
        DumpWriteError
            If the directory cannot be written.
        """
        if not self.active or not docs:
            return []
        form = "old" if self.release == "seed" else "new"
        texts = {".ir": "".join(render(doc, form) for doc in docs)}
        if self.level >= _DOT_LEVEL[self.release]:
            texts[".dot"] = "".join(dot(doc) for doc in docs)
        written = []
        for suffix, text in texts.items():
            path = self.directory / f"{stage}_{self._count:04d}{suffix}"
            self._count += 1
            write_text(path, text, _FILE_MODE)
            written.append(path)
        return written


def dot(doc: IrDoc) -> str:
    """Return a graph in the DOT language of Graphviz: a table of operand ports for each node.

    Examples
    --------
    >>> print(dot(IrDoc(name="kernel_graph0", graph_id=0, params=(), nodes=())))
    digraph mindspore {
    compound=true
    subgraph cluster_kernel_graph0{
    label="kernel_graph0"
    fontname="Courier New"
    }
    }
    <BLANKLINE>
    """
    lines = ["digraph mindspore {", "compound=true", f"subgraph cluster_{doc.name}{{", f'label="{doc.name}"']
    lines.append('fontname="Courier New"')
    for index, param in enumerate(doc.params):
        lines.append(f'param{index}[fontname="Courier New",shape=octagon,label="{_quoted(param.use_label)}"]')
    lines += [_box(node) for node in doc.nodes]
    lines.append("}")
    lines += _edges(doc.nodes)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _key(node: IrNode) -> str:
    return f"node{node.index}" if node.index is not None else "return"


def _box(node: IrNode) -> str:
    ports = "".join(f"<td port='{port}'>{port}</td>" for port in range(len(node.operands)))
    span = max(1, len(node.operands))
    title = html.escape(f"{node.op_type}({node.name})")
    rows = (f"<tr>{ports}</tr>" if ports else "") + f"<tr><td colspan='{span}' bgcolor='cornsilk'>{title}</td></tr>"
    return f"{_key(node)}[fontname=\"Courier New\",shape=plaintext,label=<<table port='core'>{rows}</table>>]"


def _edges(nodes: Iterable[IrNode]) -> Iterable[str]:
    for node in nodes:
        for port, operand in enumerate(node.operands):
            match operand:
                case NodeRef(index=index):
                    source = f"node{index}"
                case ParamRef(index=index):
                    source = f"param{index}"
                case _:
                    continue
            yield f"{source}->{_key(node)}:{port}[arrowhead=vee]"
