"""The document of a kernel graph, for IR text and protobuf."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from dumpsim.core.abstract import (
    Abstract,
    MonadType,
    NoneType,
    ScalarType,
    TensorType,
    TupleType,
    TypeType,
    tensors_of,
)
from dumpsim.core.hashorder import hash_order
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, IrParam, KernelIo, NodeRef, Operand, ParamRef
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, definition_of, text_of
from dumpsim.graph.mindspore.cut import CALL_RESULT
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.sequence import flat_operands, is_kernel, listed, parameter_order
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.printed import attributes

__all__ = ["document", "outline"]

_FORMAT = "DefaultFormat"
_ATTRS = (("enable_zero_copy_in_graph", "1"),)  # [observed 2.10]
_SILENT = frozenset({"Load", "UpdateState", "Depend"})  # nodes without the line of object types


_EXPANDED = "Expand/"
_FORMAT_OPERANDS = frozenset({"format", "data_format"})
_FORMAT_IDENTITY = -1


def document(
    graph: Graph,
    graph_id: int,
    return_name: str,
    *,
    find: Callable[[str], OpDef],
    number: Callable[[], int],
    root: bool,
) -> IrDoc:
    """Return the document of a kernel graph.

    Parameters
    ----------
    graph : Graph
    graph_id : int
    return_name : str
        Name of its Return node.
    find : callable
        The definition of an operator type.
    number : callable
        Returns the next number, for a node or parameter without a name.
    root : bool
        Whether the graph belongs to the network's own function; the nodes of its front end have ``checkpoint``.
    """
    return _Writer(graph, graph_id, find, number, root).write(return_name)


def outline(graph: Graph, find: Callable[[str], OpDef]) -> list[IrDoc]:
    """Return documents of a graph under compilation and of its control nodes' blocks, without using up numbers."""
    if graph.output is None:
        return []
    abstract = TupleType(items=(graph.output.abstract,))
    end = Node(op_type="MakeTuple", operands=[graph.output], abstract=abstract, text=NodeText(is_backend=True))
    shown = Graph(name=graph.name, parameters=parameter_order(listed(end)), output=end)
    counter = count(1)
    writer = _Writer(shown, 0, find, lambda: next(counter), root=True)
    doc = replace(writer.write("Default/Return"), name=graph.name or "graph")
    blocks = [inner for node in shown.nodes() for block in node.blocks for inner in outline(block, find)]
    return [doc, *blocks]


class _Writer:
    def __init__(
        self, graph: Graph, graph_id: int, find: Callable[[str], OpDef], number: Callable[[], int], root: bool
    ) -> None:
        self.graph = graph
        self.graph_id = graph_id
        self.find = find
        self.number = number
        self.root = root
        self.nodes = _shown(graph)
        self.index = {id(node): i for i, node in enumerate(self.nodes)}
        self.params = {id(parameter): i for i, parameter in enumerate(graph.parameters)}
        self.own_constants = 0

    def write(self, return_name: str) -> IrDoc:
        written = _written(self.nodes, self.find)
        self._name_tuples()
        params = tuple(self._param(parameter, parameter.name in written) for parameter in self.graph.parameters)
        self.types = {id(p): param.abstract for p, param in zip(self.graph.parameters, params, strict=True)}
        nodes = [self._node(node) for node in self.nodes]
        output = self.graph.output
        assert isinstance(output, Node)
        name = nodes[self.index[id(output)]].name
        end = IrNode(
            index=None,
            name=f"CNode_{self.number()}",
            op_type="Return",
            prim_func=False,
            operands=(NodeRef(index=self.index[id(output)]),),
            operand_types=(output.abstract,),
            output=None,
            full_name=return_name,
            primitive_attrs=_ordered(_dynamic_marks(output.abstract, (output.abstract,))),
        )
        constants = _constants(self.nodes)
        title = f"kernel_graph{self.graph_id}"
        return IrDoc(
            name=title,
            graph_id=self.graph_id,
            params=params,
            nodes=(*nodes, end),
            attrs=_ATTRS,
            total_nodes=2 * (len(nodes) + 1) + len(params) + constants,
            total_cnodes=len(nodes) + 1,
            instance=f"0x{0x5500_0000_0000 + self.graph_id * 0x1000:x}",
            order=(f"@{title}:{end.name}{{[0]: ValueNode<Primitive> Return, [1]: {name}}}",),
        )

    def _name_tuples(self) -> None:
        """Number the unnamed parameters in order, a tuple at its first item, and the items after all others.

        A parameter that is a tuple becomes a MakeTuple of parameters. [observed 2.10: backward graphs of PYNATIVE]
        """
        bundles = {id(part): node for node in self.nodes if node.op_type == "MakeTuple" for part in node.operands}
        self.numbers: dict[int, int] = {}  # by id of a parameter or of a node
        parts: list[Parameter] = []
        for parameter in self.graph.parameters:
            if parameter.name not in ("", CALL_RESULT):
                continue
            bundle = bundles.get(id(parameter)) if parameter.is_element else None
            if bundle is None:
                self.numbers[id(parameter)] = self.number()
                continue
            parts.append(parameter)
            if id(bundle) not in self.numbers:
                self.numbers[id(bundle)] = self.number()
        self.numbers |= {id(part): self.number() for part in parts}

    def _param(self, parameter: Parameter, written: bool) -> IrParam:
        abstract = replace(parameter.abstract, inplace=written) if parameter.is_weight else parameter.abstract
        label, use = parameter.name, parameter.debug_name or parameter.name
        if parameter.name in ("", CALL_RESULT):
            own = self.numbers[id(parameter)]
            use, label = f"Parameter_{own}", f"_{own}" if parameter.name else ""
        elif parameter.debug_name.startswith("ф"):
            label = ""
        is_data = isinstance(abstract, TensorType) and not parameter.is_weight  # not a function or a tuple
        device = abstract.dtype.title if is_data else "Unknown"
        return IrParam(
            name=parameter.name if parameter.is_weight else use,
            label=label,
            use_label=use,
            abstract=abstract,
            device=KernelIo(dtype=device, format=_FORMAT, shape=getattr(abstract, "shape", ())),
            is_weight=parameter.is_weight,
            has_default=parameter.has_default,
            shape_hint=not parameter.is_weight and label == parameter.name != CALL_RESULT and bool(label),
        )

    def _operand(self, value: Value, identity: int) -> Operand:
        if isinstance(value, Node):
            return NodeRef(index=self.index[id(value)])
        if isinstance(value, Parameter):
            return ParamRef(index=self.params[id(value)])
        return ConstRef(value=value.value, abstract=value.abstract, identity=identity)

    def _identity(self, node: Node, name: str) -> int:
        """Return the identity of constants: expanded nodes have their own, formats are separate. [observed 2.10]"""
        if node.scope.startswith(_EXPANDED):
            self.own_constants += 1
            return self.own_constants
        return _FORMAT_IDENTITY if name in _FORMAT_OPERANDS else 0

    def _type(self, value: Value) -> Abstract:
        if isinstance(value, Parameter):
            return self.types[id(value)]
        return value.abstract

    def _node(self, node: Node) -> IrNode:
        kernel = is_kernel(node)
        text = text_of(node)
        shown = [v for v in flat_operands(node) if not (kernel and isinstance(v.abstract, TypeType))]
        types = tuple(self._type(v) for v in shown)
        inputs = [t for t in types if not isinstance(t, MonadType)]
        outputs = tensors_of(node.abstract)
        definition = definition_of(node, self.find) if kernel else None
        names = [*(definition.operands if definition is not None else ()), *("" for _ in shown)][: len(shown)]
        silent = not kernel and node.op_type in _SILENT
        return IrNode(
            index=self.index[id(node)],
            name=text.variable or f"CNode_{self.numbers.get(id(node)) or self.number()}",
            op_type=node.op_type,
            prim_func=definition is not None and definition.prim_func,
            operands=tuple(self._operand(v, self._identity(node, n)) for v, n in zip(shown, names, strict=True)),
            operand_types=types,
            output=node.abstract,
            full_name=node.ir_name or f"{node.scope}/{node.op_type}",
            instance_name=text.instance_name,
            primitive_attrs=_ordered(self._attributes(node, shown, definition)),
            node_attrs=_ordered(self._node_attributes(text)),
            kernel_in=tuple(_kernel_io(t) for t in inputs) if kernel else None,
            kernel_out=tuple(_kernel_io(t) for t in outputs) if kernel else None,
            object_in=None if silent else tuple(map(_object, inputs if kernel else types)),
            object_out=None if silent else _object(node.abstract),
            sources=text.sources if kernel or node.op_type == "Depend" else (),
            candidate=text.candidate,
        )

    def _attributes(self, node: Node, shown: Sequence[Value], definition: OpDef | None) -> dict[str, Any]:
        text = text_of(node)
        marks = _dynamic_marks(node.abstract, [self._type(v) for v in shown])
        if definition is None:
            return {**text.attrs, **marks}
        made = attributes(
            definition,
            [v.abstract for v in node.operands if not isinstance(v.abstract, MonadType)],
            node.abstract,
            {**definition.attrs, **node.attrs},
            backward=node.scope.startswith("Gradients/"),
            given=text.given,
        )
        kind = next((v.abstract.value for v in node.operands if isinstance(v.abstract, TypeType)), None)
        if kind is not None and node.op_type == "Cast":
            made["dst_type"] = kind
            if text.is_backend:
                made.pop("input_names", None)
                made.pop("output_names", None)
        if definition.side_effect is not None:
            made[f"side_effect_{definition.side_effect}"] = True
        if (sizes := _tuple_sizes(node)) is not None:
            made["dyn_input_sizes"] = sizes
        made["IsFeatureMapInputList"] = tuple(
            i for i, value in enumerate(shown) if _is_feature_map(value) and not isinstance(value.abstract, MonadType)
        )
        made["IsFeatureMapOutput"] = True
        return {**made, **text.attrs, **marks}

    def _node_attributes(self, text: NodeText) -> dict[str, Any]:
        marks: dict[str, Any] = dict(text.node_attrs)
        if self.root and not text.is_backend:
            marks["checkpoint"] = True
        marks["is_dynamic_len"] = False
        return marks


def _shown(graph: Graph) -> list[Node]:
    """Return the nodes of the text, without a MakeTuple that only kernels use, since they take its items one by one."""
    nodes = graph.nodes()
    taken = {id(o) for node in nodes if is_kernel(node) for o in node.operands}
    kept = {id(o) for node in nodes if not is_kernel(node) for o in node.operands} | {id(graph.output)}
    return [n for n in nodes if n.op_type != "MakeTuple" or id(n) in kept or id(n) not in taken]


def _written(nodes: Iterable[Node], find: Callable[[str], OpDef]) -> set[str]:
    """Return the names of the weights that operators with a side effect take directly."""
    return {
        operand.name
        for node in nodes
        if is_kernel(node) and definition_of(node, find).side_effect is not None
        for operand in node.operands
        if isinstance(operand, Parameter) and operand.is_weight
    }


def _ordered(marks: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, marks[name]) for name in hash_order(tuple(sorted(marks))))


def _dynamic_marks(output: Abstract, inputs: Iterable[Abstract]) -> dict[str, Any]:
    marks: dict[str, Any] = {}
    if any(-1 in tensor.shape for tensor in tensors_of(output)):
        marks["output_is_dynamic_shape"] = True
    if any(-1 in tensor.shape for value in inputs for tensor in tensors_of(value)):
        marks["input_is_dynamic_shape"] = True
    return marks


def _is_feature_map(value: Value) -> bool:
    """Whether an operand is data of the network rather than a weight."""
    if isinstance(value, Parameter):
        return not value.is_weight
    if isinstance(value, Node):
        return value.op_type != "Load"
    return not (isinstance(value.abstract, TupleType) and not value.abstract.items)


def _tuple_sizes(node: Node) -> tuple[int, ...] | None:
    """Return the lengths of the tuples whose items a kernel takes, -1 for other operands."""
    sizes = [
        len(operand.operands) if isinstance(operand, Node) and operand.op_type == "MakeTuple" else -1
        for operand in node.operands
        if not isinstance(operand.abstract, MonadType)
    ]
    return tuple(sizes) if any(size >= 0 for size in sizes) else None


def _kernel_io(abstract: Abstract) -> KernelIo:
    match abstract:
        case TensorType(dtype=kind, shape=shape):
            return KernelIo(dtype=kind.title, format=_FORMAT, shape=shape)
        case ScalarType(dtype=kind):
            return KernelIo(dtype=kind.title, format=_FORMAT, shape=())
        case TupleType(items=items) if items and isinstance(items[0], ScalarType):
            return KernelIo(dtype=items[0].dtype.title, format=_FORMAT, shape=())
        case TupleType():
            return KernelIo(dtype="Int64", format=_FORMAT, shape=())
        case NoneType():
            return KernelIo(dtype="None", format=_FORMAT, shape=())
        case _:
            return KernelIo(dtype="String", format=_FORMAT, shape=())


def _object(abstract: Abstract) -> str:
    match abstract:
        case TensorType():
            return "Tensor"
        case TupleType(items=items, value=value) if value is not None or not items:
            return "Tuple"
        case TupleType():
            return "TupleUnfold"
        case MonadType():
            return "Unknown"
        case _:
            return "Scalar"


def _constants(nodes: Iterable[Node]) -> int:
    """Return the number of constant nodes: equal constants are one, except those of expansions."""
    shared: set[tuple[str, str, str]] = set()
    single = 0
    for node in nodes:
        for operand in flat_operands(node):
            if not isinstance(operand, Constant) or (is_kernel(node) and isinstance(operand.abstract, TypeType)):
                continue
            if text_of(node).is_backend or (is_kernel(node) and isinstance(operand.abstract, MonadType)):
                single += 1
            else:
                shared.add((type(operand.abstract).__name__, str(operand.abstract), repr(operand.value)))
    return single + len(shared)
