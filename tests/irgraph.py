"""Recorded IR text as graphs, for tests that feed a pass with what the vendor's previous stage printed.

``python tests/irgraph.py GOT.ir WANT.ir`` prints the first node in which two kernel graphs differ.
"""

import sys
from pathlib import Path

from dumpsim.codecs import irtext
from dumpsim.core.abstract import MonadType, NoneType
from dumpsim.core.irdoc import ConstRef, IrDoc, NodeRef, ParamRef
from dumpsim.graph.graph import Constant, Graph, Node, Parameter

__all__ = ["difference", "graph_of", "lines_of"]


def graph_of(doc: IrDoc) -> Graph:
    """The kernel graph of a document: its parameters, and its nodes with operands, names and scopes.

    `output` is what Return takes; constants hold the text that stands for them.
    """
    params = [
        Parameter(
            name=param.name,
            abstract=param.abstract,
            is_weight=param.is_weight,
            has_default=param.has_default,
            debug_name=param.use_label,
        )
        for param in doc.params
    ]
    nodes = {}

    def value(operand):
        match operand:
            case NodeRef(index=index):
                return nodes[index]
            case ParamRef(index=index):
                return params[index]
            case ConstRef(value=text, abstract=abstract):
                return Constant(value=text, abstract=abstract)

    graph = Graph(name=doc.name, graph_id=doc.graph_id, parameters=params)
    for node in doc.nodes:
        operands = [value(operand) for operand in node.operands]
        if node.op_type == "Return":
            graph.output = operands[0]
            continue
        nodes[node.index] = Node(
            op_type=node.op_type,
            operands=operands,
            abstract=node.output or NoneType(),
            scope=node.full_name.rpartition("/")[0],
            full_name=node.full_name,
        )
        graph.trail.append(nodes[node.index])
    return graph


def lines_of(doc: IrDoc, *, names: bool = False) -> list[str]:
    """A short line for each node of a document; two documents of one structure give equal lists.

    The number before a node is its position; operands are nodes, names of weights, other parameters by position,
    ``U`` for tokens and ``#`` for constants. With `names` the scopes and numbers of operators count, too.
    """

    def text(operand):
        match operand:
            case NodeRef(index=index):
                return f"%{index}"
            case ParamRef(index=index):
                param = doc.params[index]
                return f"@{param.name}" if param.is_weight else f"@{index}"
            case ConstRef(abstract=abstract):
                return "U" if isinstance(abstract, MonadType) else "#"

    return [
        f"{'-' if node.index is None else node.index} {node.full_name if names else node.op_type}"
        f"({', '.join(map(text, node.operands))})"
        for node in doc.nodes
    ]


def difference(got: IrDoc, want: IrDoc, *, names: bool = False, around: int = 4) -> str:
    """The first node that differs between two documents, with its neighbours and users in both; "" where none does."""
    pair = [lines_of(doc, names=names) for doc in (got, want)]
    if pair[0] == pair[1]:
        return ""
    place = next((n for n, (a, b) in enumerate(zip(*pair, strict=False)) if a != b), min(map(len, pair)))
    out = [f"node {place} of {len(pair[0])} (got) and {len(pair[1])} (want)"]
    for title, lines in zip(("got", "want"), pair, strict=True):
        near = lines[max(0, place - around) : place + around + 1]
        users = [line for line in lines[place + around + 1 :] if f"%{place}," in line or f"%{place})" in line]
        out += [f"{title}:", *(f"  {line}" for line in near), *(f"  user {line}" for line in users[:4])]
    return "\n".join(out)


if __name__ == "__main__":
    print(difference(*(irtext.parse(Path(name).read_text(), name) for name in sys.argv[1:3])) or "equal")
