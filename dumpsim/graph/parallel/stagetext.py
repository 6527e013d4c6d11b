"""The graphs around the sharding of a network as texts: ``step_parallel_begin.ir`` and ``step_parallel_end.ir``.

A node without a variable is named by a number when it is printed first, and keeps it. [spec parallel 1.5, 1.6]
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dumpsim.core.abstract import Abstract, MonadType, NoneType, TupleType
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, IrParam, KernelIo, NodeRef, Operand, ParamRef
from dumpsim.graph.compilation import Find
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, copied, definition_of, text_of, topological
from dumpsim.graph.mindspore.attrorder import printing_order
from dumpsim.graph.mindspore.functions import made_functions
from dumpsim.graph.mindspore.monads import add_monads
from dumpsim.ops.printed import attributes

__all__ = ["NodeNames", "name_early", "primitive_attributes", "stage_document", "with_monads"]

_STRUCTURAL = frozenset({"MakeTuple", "TupleGetItem", "Load", "UpdateState", "Depend", "Return", "Gradient"})


@dataclass(slots=True, kw_only=True)
class NodeNames:
    """Names of nodes that are printed several times, in graphs that are copies of each other.

    Attributes
    ----------
    number : callable
        The next number of a node.
    """

    number: Callable[[], int]
    _names: dict[object, str] = field(default_factory=dict)
    _originals: dict[int, Value] = field(default_factory=dict)
    _alive: list[Value] = field(default_factory=list)  # keeps the ids of the mapping valid

    def copies(self, known: Mapping[int, Value], graph: Graph) -> None:
        """Give copies the names of their originals.

        Parameters
        ----------
        known : mapping
            The copy by the id of the original.
        graph : Graph
            That was copied.
        """
        for node in graph.trail:
            copy = known.get(id(node))
            if copy is not None and copy is not node:
                self._originals[id(copy)] = self._originals.get(id(node), node)
                self._alive += [copy, node]

    def is_original(self, node: Node) -> bool:
        """Whether the graphs have the node in common."""
        return id(node) in self._originals

    def name(self, node: Node, key: object = None) -> str:
        """The printed name of a node; `key` stands for a node that each graph makes anew."""
        variable = text_of(node).variable
        if variable:
            return variable
        found = id(self._originals.get(id(node), node)) if key is None else key
        if found not in self._names:
            self._names[found] = f"CNode_{self.number()}"
            self._alive.append(node)
        return self._names[found]


def name_early(graph: Graph, find: Find, names: NodeNames) -> None:
    """Name the nodes of a graph as the stages in front of the sharding do, which print it, too."""
    stage_document(graph, find, names, graph.name)


def stage_document(graph: Graph, find: Find, names: NodeNames, title: str) -> IrDoc:
    """The text of a graph at a stage; monads are added to a copy of it.

    Parameters
    ----------
    graph : Graph
    find : callable
        The definition of an operator type.
    names : NodeNames
    title : str
        Name of the graph.
    """
    known: dict[int, Value] = {}
    shown = copied(graph, known)
    names.copies(known, graph)
    return _Writer(with_monads(shown, find), find, names).write(title)


def with_monads(graph: Graph, find: Find) -> Graph:
    """The graph with explicit reads of weights and side effects; its nodes are changed."""
    form = made_functions(graph)
    add_monads(form, find)
    return replace(graph, output=form.root.output, trail=form.root.trail)


class _Writer:
    def __init__(self, graph: Graph, find: Find, names: NodeNames) -> None:
        self._find, self._names = find, names
        self._output = graph.output
        self._nodes = topological([graph.output])
        self._index = {id(node): at for at, node in enumerate(self._nodes)}
        read = {id(value) for node in self._nodes for value in node.operands} | {id(graph.output)}
        self._parameters = [p for p in graph.parameters if not p.is_weight or id(p) in read]
        self._place = {id(p): at for at, p in enumerate(self._parameters)}

    def write(self, title: str) -> IrDoc:
        made: Counter[str] = Counter()
        nodes = [self._node(node, made) for node in self._nodes]
        output = self._output
        end = IrNode(
            index=None,
            name="",
            op_type="Return",
            prim_func=False,
            operands=(self._operand(output),) if output is not None else (),
            operand_types=(output.abstract,) if output is not None else (),
            output=None,
            full_name="Default",
        )
        constants = {repr(v.value) for node in self._nodes for v in node.operands if isinstance(v, Constant)}
        return IrDoc(
            name=title,
            graph_id=-1,
            params=tuple(map(_parameter, self._parameters)),
            nodes=(*nodes, end),
            total_nodes=2 * len(nodes) + 2 + len(self._parameters) + len(constants),
            total_cnodes=len(nodes) + 1,
            is_stage=True,
        )

    def _operand(self, value: Value) -> Operand:
        if isinstance(value, Node):
            return NodeRef(index=self._index[id(value)])
        if isinstance(value, Parameter):
            return ParamRef(index=self._place[id(value)])
        return ConstRef(value=value.value, abstract=value.abstract, identity=0)

    def _node(self, node: Node, made: Counter[str]) -> IrNode:
        text = text_of(node)
        is_operator = node.op_type not in _STRUCTURAL
        definition = definition_of(node, self._find) if is_operator else None
        key = None
        if not self._names.is_original(node):  # monads are added to each copy of a graph: their order tells them apart
            key = (node.op_type, made[node.op_type])
            made[node.op_type] += 1
        return IrNode(
            index=self._index[id(node)],
            name=self._names.name(node, key),
            op_type=node.op_type,
            prim_func=definition is not None and definition.prim_func,
            operands=tuple(map(self._operand, node.operands)),
            operand_types=tuple(map(_plain, node.operands)),
            output=node.abstract,
            full_name=node.scope,
            instance_name=text.instance_name,
            primitive_attrs=_ordered(primitive_attributes(node, self._find)),
            node_attrs=(),
            sources=text.sources,
        )


def primitive_attributes(node: Node, find: Find) -> dict[str, Any]:
    """The primitive attributes of a node, by name."""
    text = text_of(node)
    if node.op_type in _STRUCTURAL:
        return dict(text.attrs)
    definition = definition_of(node, find)
    operands = [v.abstract for v in node.operands if not isinstance(v.abstract, MonadType)]
    found: dict[str, Any] = {**node.attrs}
    if not definition.prim_func and not any(isinstance(kind, NoneType) for kind in (node.abstract, *operands)):
        found = attributes(definition, operands, node.abstract, {**definition.attrs, **node.attrs}, given=text.given)
    elif not definition.prim_func:  # the type is inferred later, and with it what depends on it
        fixed = {name: value for name, value in definition.fixed.items() if not callable(value)}
        found = {**fixed, **definition.attrs, **node.attrs}
    if definition.side_effect is not None:
        found[f"side_effect_{definition.side_effect}"] = True
    return {name: value for name, value in {**found, **text.attrs}.items() if not name.startswith("_")}


def _plain(value: Value) -> Abstract:
    """The type of an operand; a tuple's says nothing of its use yet."""
    kind = value.abstract
    return replace(kind, value=None) if isinstance(kind, TupleType) else kind


def _parameter(parameter: Parameter) -> IrParam:
    label = parameter.debug_name or parameter.name
    kind = parameter.abstract
    device = KernelIo(dtype=kind.dtype.title, format="DefaultFormat", shape=kind.shape)
    return IrParam(
        name=parameter.name,
        label=label,
        use_label=label,
        abstract=kind,
        device=device,
        is_weight=parameter.is_weight,
        has_default=parameter.has_default,
        shape_hint=not parameter.is_weight,
    )


def _ordered(marks: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, marks[name]) for name in printing_order(tuple(sorted(marks))))
