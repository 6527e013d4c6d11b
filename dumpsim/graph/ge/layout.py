"""Private device formats and number types, and the TransData and Cast nodes between kernels with different ones.

The formats of a kernel are data: `OpDef.formats` of its operator, and the matrix unit's number type. A conversion is a
node like others: it runs as a task, takes an id and is dumped. A value is converted once to each layout, before its
first user. [spec mindspore 10; spec parallel 4.1; seed 001]
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from dumpsim.core.abstract import Abstract, MonadType, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.options import CompileOptions
from dumpsim.graph.builder import constant
from dumpsim.graph.conversion import BACKEND_CAST, TRANS_DATA
from dumpsim.graph.graph import (
    PLAIN,
    Constant,
    Graph,
    Layout,
    Node,
    Parameter,
    Value,
    definition_of,
    leaves_of,
)
from dumpsim.ops.opdef import OpDef

__all__ = ["lay_out"]

# ranks of tensors that a format supports
_RANKS: Mapping[str, range] = MappingProxyType(
    {"NC1HWC0": range(4, 5), "FRACTAL_Z": range(4, 5), "FRACTAL_NZ": range(2, 8)}
)
_GROUPED = ("FRACTAL_Z",)
# called formatAgnostic in GE's library: computed in the common format of the operands, which have one shape
_AGNOSTIC = frozenset(
    {
        "Abs", "Add", "Div", "Exp", "GeLU", "GeLUGrad", "Log", "Maximum", "Minimum", "Mul", "Neg", "RealDiv", "ReLU",
        "ReLU6", "ReLU6Grad", "ReluGrad", "Rsqrt", "Sigmoid", "SigmoidGrad", "Sqrt", "Square", "Sub", "Tanh",
        "TanhGrad",
    }
)  # fmt: skip
_THROUGH = frozenset({"Load", "Depend", "StopGradient"})
_TUPLES = frozenset({"MakeTuple", "MakeList"})
_ITEMS = frozenset({"TupleGetItem", "ListGetItem"})


def lay_out(
    graph: Graph,
    order: Sequence[Node],
    find: Callable[[str], OpDef],
    options: CompileOptions,
    made: Callable[[Node], None],
    *,
    agnostic: bool = False,
) -> tuple[Node, ...]:
    """Set formats and number types of kernels, and insert conversions between different ones.

    Parameters
    ----------
    graph : Graph
        Operands of its nodes are replaced.
    order : sequence of Node
        Its kernels in execution order.
    find : callable
        The definition of an operator type.
    options : CompileOptions
        Only `cube_ops` and `cube_dtype` are used here.
    made : callable
        Called with every created node, in execution order; it names conversions (``TransData``, ``Cast``).
    agnostic : bool
        Whether elementwise operators keep the format of their operands.

    Returns
    -------
    tuple of Node
        The execution order including conversions.
    """
    work = _LayOut(find, options, made, agnostic)
    for node in order:
        work.kernel(node)
    if graph.output is not None:
        graph.output = work.on_host(graph.output)
    return tuple(work.order)


class _LayOut:
    def __init__(
        self, find: Callable[[str], OpDef], options: CompileOptions, made: Callable[[Node], None], agnostic: bool
    ) -> None:
        self.find = find
        self.options = options
        self.made = made
        self.agnostic = agnostic
        self.order: list[Node] = []
        self.cube_dtype: DType | None = dtype(options.cube_dtype) if options.cube_dtype is not None else None
        self.converted: dict[int, dict[tuple[int, Layout], Node]] = {}  # by their source
        self.alive: list[Value] = []  # keeps the ids of the keys valid

    # ------------------------------------------------------------- kernels
    def kernel(self, node: Node) -> None:
        definition = definition_of(node, self.find)
        if definition.view:
            self._view(node)
        else:
            self._compute(node, definition)
        self.order.append(node)
        for at in definition.updates:
            self._forget(node.operands[at])

    def _view(self, node: Node) -> None:
        """Lay out a view: it has no kernel, and needs the operand in the host's format, with any number type."""
        (have,) = self.layouts(node.operands[0])
        node.operands[0] = self._fitted(node.operands[0], Layout(dtype=have.dtype))
        if have.dtype != _dtype(node.abstract):
            node.layouts = (Layout(dtype=have.dtype),)

    def _compute(self, node: Node, definition: OpDef) -> None:
        head = node.members[0] if node.members else node
        head_definition = definition_of(head, self.find)
        reach = sum(not isinstance(o.abstract, MonadType) for o in head.operands)
        cube = head_definition.name in self.options.cube_ops and self.cube_dtype is not None
        takes, gives = self._formats(node, head_definition)
        # collectives have an attribute `group` too, which is a name
        groups = int(head.attrs.get("group", head.attrs.get("groups", 1)) or 1) if takes or gives else 1
        agnostic = self._agnostic_format(node, definition)
        follows: DType | None = None
        at = -1
        for place, operand in enumerate(node.operands):
            if isinstance(operand.abstract, MonadType):
                continue
            at += 1
            if at in definition.updates or not _holds_tensors(operand.abstract):
                continue
            if not isinstance(operand.abstract, TensorType):
                node.operands[place] = self.on_host(operand)
                continue
            kind, layout_name = operand.abstract.dtype, PLAIN
            if agnostic is not None:
                node.operands[place] = self._fitted(operand, Layout(format=agnostic, dtype=kind))
                continue
            if at < reach:
                layout_name = takes.get(at, PLAIN)
                if cube and kind.name == "float32":
                    assert self.cube_dtype is not None
                    kind = self.cube_dtype
                elif at in takes and not cube:
                    follows = self.layouts(operand)[0].dtype if follows is None else follows
                    kind = follows if kind.name == "float32" else kind
            node.operands[place] = self._fitted(operand, _layout(layout_name, kind, groups))
        self._outputs(node, cube, gives, groups, follows, agnostic)

    def _outputs(
        self,
        node: Node,
        cube: bool,
        gives: Mapping[int, str],
        groups: int,
        follows: DType | None,
        agnostic: str | None,
    ) -> None:
        found: list[Layout] = []
        for slot, leaf in enumerate(leaves_of(node.abstract)):
            kind, layout_name = leaf.dtype, gives.get(slot, PLAIN) if agnostic is None else agnostic
            if kind.name == "float32" and isinstance(leaf, TensorType):
                if cube:
                    assert self.cube_dtype is not None
                    kind = self.cube_dtype
                elif layout_name != PLAIN and agnostic is None and follows is not None:
                    kind = follows
            found.append(_layout(layout_name, kind, groups))
        if found != [Layout(dtype=leaf.dtype) for leaf in leaves_of(node.abstract)]:
            node.layouts = tuple(found)

    def _formats(self, node: Node, head: OpDef) -> tuple[Mapping[int, str], Mapping[int, str]]:
        """Return the formats of a kernel's operands and outputs; none if a format does not support a tensor's rank."""
        takes, gives = head.formats.get("in", {}), head.formats.get("out", {})
        operands = [o for o in node.operands if not isinstance(o.abstract, MonadType)]
        leaves = list(leaves_of(node.abstract))
        pairs = [(operands[at].abstract, name) for at, name in takes.items() if at < len(operands)]
        pairs += [(leaves[slot], name) for slot, name in gives.items() if slot < len(leaves)]
        for abstract, name in pairs:
            if not isinstance(abstract, TensorType) or len(abstract.shape) not in _RANKS[name]:
                return {}, {}
        return takes, gives

    def _agnostic_format(self, node: Node, definition: OpDef) -> str | None:
        """Return the private format in which an elementwise operator works; None for the host's format."""
        members = node.members or (node,)
        if not self.agnostic or any(definition_of(member, self.find).name not in _AGNOSTIC for member in members):
            return None
        if not isinstance(node.abstract, TensorType) or -1 in node.abstract.shape:
            return None
        chosen: str | None = None
        for operand in node.operands:
            if not _holds_tensors(operand.abstract):
                continue
            if not isinstance(operand.abstract, TensorType) or operand.abstract.shape != node.abstract.shape:
                return None
            (have,) = self.layouts(operand)
            if have.format == PLAIN:
                continue
            if have.groups != 1 or chosen not in (None, have.format):
                return None
            chosen = have.format
        return chosen

    # -------------------------------------------------------------- values
    def layouts(self, value: Value) -> tuple[Layout, ...]:
        """Return the layouts of the tensors of a value."""
        if isinstance(value, Node) and value.layouts:
            return value.layouts
        if isinstance(value, Node):
            if value.op_type in _THROUGH:
                return self.layouts(value.operands[0])
            if value.op_type in _TUPLES:
                return tuple(layout for operand in value.operands for layout in self.layouts(operand))
            if value.op_type in _ITEMS:
                of, index = value.operands
                assert isinstance(of.abstract, TupleType)
                assert isinstance(index, Constant)
                before = sum(len(list(leaves_of(item))) for item in of.abstract.items[: index.value])
                return self.layouts(of)[before : before + len(list(leaves_of(value.abstract)))]
        return tuple(Layout(dtype=leaf.dtype) for leaf in leaves_of(value.abstract))

    def _fitted(self, value: Value, wanted: Layout) -> Value:
        """Return the value in a layout: itself, or the last of the necessary conversions."""
        (have,) = self.layouts(value)
        if have == wanted:
            return value
        owner = _origin(value)
        known = self.converted.setdefault(id(owner), {})
        self.alive.append(owner)
        for step in _steps(have, wanted):
            key = (id(value), step)
            node = known.get(key)
            if node is None:
                node = self._conversion(value, self.layouts(value)[0], step)
                known[key] = node
                self.alive.append(value)
                self.order.append(node)
            value = node
        return value

    def _conversion(self, value: Value, have: Layout, to: Layout) -> Node:
        assert isinstance(value.abstract, (TensorType, ScalarType))
        casts = have.dtype != to.dtype
        definition = BACKEND_CAST if casts else TRANS_DATA
        attrs = {} if casts else {"src_format": have.format, "dst_format": to.format, "groups": to.groups}
        node = Node(
            op_type=definition.name,
            operands=[value, constant(to.dtype)] if casts else [value],
            abstract=value.abstract,
            attrs=attrs,
            definition=definition,
            layouts=(to,),
        )
        self.made(node)
        return node

    def on_host(self, value: Value) -> Value:
        """Return the value with all of its tensors in the layout and number type of the host."""
        leaves = list(leaves_of(value.abstract))
        if all(
            have == Layout(dtype=leaf.dtype) for have, leaf in zip(self.layouts(value), leaves, strict=True)
        ) or isinstance(value, (Constant, Parameter)):
            return value
        if isinstance(value.abstract, (TensorType, ScalarType)):
            if value.op_type in _THROUGH:  # the ordering node stays after the conversion
                return replace(value, operands=[self.on_host(value.operands[0]), *value.operands[1:]])
            return self._fitted(value, Layout(dtype=leaves[0].dtype))
        if value.op_type in (*_TUPLES, *_THROUGH):
            count = 1 if value.op_type in _THROUGH else len(value.operands)
            changed = [self.on_host(operand) for operand in value.operands[:count]]
            return replace(value, operands=[*changed, *value.operands[count:]])
        assert isinstance(value.abstract, TupleType)
        items: list[Value] = []
        for at, abstract in enumerate(value.abstract.items):
            item = Node(op_type="TupleGetItem", operands=[value, constant(at)], abstract=abstract)
            self.made(item)
            items.append(self.on_host(item))
        bundle = Node(op_type="MakeTuple", operands=items, abstract=value.abstract)
        self.made(bundle)
        return bundle

    def _forget(self, updated: Value) -> None:
        """Drop the cached conversions of a tensor that a kernel has written."""
        self.converted.pop(id(_origin(updated)), None)


def _steps(have: Layout, wanted: Layout) -> Iterator[Layout]:
    """Yield the conversions between two layouts: types are narrowed first or widened last, formats go via PLAIN."""
    now = have
    narrows = wanted.dtype.bits < have.dtype.bits
    if narrows:
        now = Layout(format=now.format, dtype=wanted.dtype, groups=now.groups)
        yield now
    if (now.format, now.groups) != (wanted.format, wanted.groups):
        if PLAIN not in (now.format, wanted.format):
            yield Layout(dtype=now.dtype)
        now = Layout(format=wanted.format, dtype=now.dtype, groups=wanted.groups)
        yield now
    if now.dtype != wanted.dtype:
        yield wanted


def _layout(layout_name: str, kind: DType, groups: int) -> Layout:
    return Layout(format=layout_name, dtype=kind, groups=groups if layout_name in _GROUPED else 1)


def _dtype(abstract: Abstract) -> DType:
    assert isinstance(abstract, (TensorType, ScalarType))
    return abstract.dtype


def _holds_tensors(abstract: Abstract) -> bool:
    if isinstance(abstract, TupleType):
        return any(_holds_tensors(item) for item in abstract.items)
    return isinstance(abstract, TensorType)


def _origin(value: Value) -> Value:
    """Return the value whose tensor an ordering node passes on."""
    while isinstance(value, Node) and value.op_type in _THROUGH:
        value = value.operands[0]
    return value
