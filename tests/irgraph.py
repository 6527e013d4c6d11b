"""Recorded IR text as graphs, for tests that feed a pass with what the vendor's previous stage printed."""

from dumpsim.core.abstract import NoneType
from dumpsim.core.irdoc import ConstRef, IrDoc, NodeRef, ParamRef
from dumpsim.graph.graph import Constant, Graph, Node, Parameter

__all__ = ["graph_of"]


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
