"""The sharding pass: a captured network becomes what one rank runs. [spec parallel 1.2, 2.4, 2.5, 2.7]

It takes the graph before gradients are expanded, so that the backward pass follows from the operators that it inserts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, MonadType, NoneType, TensorType, TupleType
from dumpsim.core.tensorlayout import TensorLayout, dims_of
from dumpsim.graph.builder import constant
from dumpsim.graph.compilation import Find, OperatorNumbers
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, copied, text_of, topological
from dumpsim.graph.mindspore.gradient_node import GRADIENT, gradient_of, outputs_of
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.inserted import Inserter
from dumpsim.graph.parallel.localtype import infer_local, local_type
from dumpsim.graph.parallel.lookup import look_up
from dumpsim.graph.parallel.plan import Edge, Plan, edges_of, forward_nodes, is_cut, plan_of, source_of
from dumpsim.graph.parallel.propagation import propagated
from dumpsim.graph.parallel.redistribution import redistribution
from dumpsim.graph.parallel.scheme import Strategy, StrategyError
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.sharding import Sharding
from dumpsim.graph.parallel.stagetext import NodeNames, name_early, stage_document
from dumpsim.graph.parallel.tensordumps import name_by_number, place_tensordumps
from dumpsim.graph.parallel.transfer import Reshape, Transfer
from dumpsim.graph.parallel.virtual import with_virtual

__all__ = ["shard"]

_DATASET = "_VirtualDataset"


@dataclass(frozen=True, slots=True)
class _Source:
    """A value with its layout, as it is before a Reshape of the script whose target is not yet known."""

    value: Value
    layout: TensorLayout
    name: str  # full name of the operator that made it


def shard(
    graph: Graph,
    settings: Settings,
    find: Find,
    *,
    number: Callable[[], int] | None = None,
    is_printed: bool = False,
) -> Sharding:
    """Split a network over devices: the graph is changed into what rank `settings.rank` runs.

    Parameters
    ----------
    graph : Graph
        As captured, with the shapes of whole tensors.
    settings : Settings
    find : callable
        The definition of an operator type.
    number : callable, optional
        The next number of a node that is printed; by default from 1 on.
    is_printed : bool
        Make the texts of the graph before and after, which number its nodes.

    Raises
    ------
    StrategyError
        A strategy does not fit its operator, or one weight is cut in two ways.
    UnsupportedError
        Control flow on tensors.
    """
    find = with_virtual(find)
    names = NodeNames(number=number or count(1).__next__)
    if is_printed:
        name_early(graph, find, names)
    sharder = _Sharder(graph, settings, find)
    sharder.begin()
    before: dict[int, Value] = {}
    begin = copied(graph, before)
    names.copies(before, graph)
    sharder.run()
    placed = place_tensordumps(graph, generation=settings.tensordump, rank=settings.rank)
    texts = [("step_parallel_begin", stage_document(begin, find, names, graph.name))] if is_printed else []
    name_by_number(placed, names.name)
    known: dict[int, Value] = {}
    end = copied(graph, known)
    names.copies(known, graph)
    if is_printed:
        texts.append(("step_parallel_end", stage_document(end, find, names, graph.name)))
    found = Sharding(settings=settings, begin=begin, end=end, texts=tuple(texts))
    sharder.finish()
    for plan in sharder.plans:
        for node in (plan.node, known.get(id(plan.node), plan.node)):
            assert isinstance(node, Node)
            found.layouts[node] = plan.layouts.outputs
            found.inputs[node] = plan.layouts.inputs
            found.strategies[node] = plan.strategy
        if plan.scheme.reduction is not None and len(plan.layouts.group) > 1:
            found.reductions[plan.node] = plan.scheme.reduction.kind
    found.strategies_by_name = sharder.strategies()
    found.arguments = sharder.arguments
    found.parameters = sharder.weights
    found.weights = [p for p in graph.parameters if p.is_weight and p.name in sharder.weights]
    found.groups = sharder.groups
    return found


class _Sharder:
    def __init__(self, graph: Graph, settings: Settings, find: Find) -> None:
        self._graph, self._settings, self._find = graph, settings, find
        self._forward = forward_nodes(graph)
        gradients = [node for node in graph.trail if node.op_type == GRADIENT]
        self._is_training = settings.is_training or bool(gradients)
        own = [graph.output] if settings.is_training and graph.output is not None else []
        self._losses: list[Value] = [outputs_of(node) for node in gradients] or own
        self._clones = dict(settings.clones)
        marked = any(node.op_type == "ShardIdentity" for node in self._forward)
        self._propagates = marked or settings.mode == "auto_parallel"
        self.plans: list[Plan] = []
        self.arguments: dict[Parameter, TensorLayout] = {}
        self.weights: dict[str, TensorLayout] = {}
        self._optimizer_cuts: dict[str, TensorLayout] = {}
        self._dataset: Node | None = None
        self._names: dict[int, str] = {}
        self._numbers = OperatorNumbers()
        self._wanted: dict[tuple[int, int], TensorLayout] = {}  # by node and operand
        self._users: dict[int, list[Edge]] = {}
        self._replaced: dict[int, Value] = {}  # by node what stands in its place
        self._results: dict[int, tuple[TensorLayout, ...]] = {}  # layouts of the outputs of nodes
        self._types: dict[int, list[Abstract]] = {}  # of the operands of operators, before the pass
        self._pending: dict[int, _Source] = {}  # by Reshape: what the next one starts from
        self._outputs: list[tuple[Edge | None, Value, TensorLayout, tuple[int, ...]]] = []
        self._wanted_outputs: dict[tuple[int, int], TensorLayout] = {}
        self._made: list[Node] = []
        self._insert = Inserter(settings, self._made)

    def strategies(self) -> dict[str, Strategy]:
        """The strategies by the names of the operators."""
        found = {self._names[id(plan.node)]: plan.strategy for plan in self.plans}
        if self._dataset is not None:
            rows = text_of(self._dataset).attrs["in_strategy"]
            found[self._names[id(self._dataset)]] = rows
        return found

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The communication groups in use."""
        return self._insert.groups

    # -- before anything is cut

    def begin(self) -> None:
        """Let the arguments pass a virtual data set, as the graph that is printed first shows it."""
        found = next((node for node in self._forward if node.op_type == _DATASET), None)
        if found is not None:
            self._dataset = found
            return
        used = {id(value) for node in self._forward for value in node.operands}
        arguments = [p for p in self._graph.parameters if not p.is_weight and isinstance(p.abstract, TensorType)]
        if not arguments:
            return
        made: list[Node] = []
        anchor = Node(
            op_type=_DATASET,
            operands=[],
            abstract=NoneType(),
            text=NodeText(call_scope="Default", block_scope="Default"),
        )
        insert = Inserter(self._settings, made)
        dataset = insert.node(_DATASET, arguments, anchor, _DATASET, shown={"order_enforce_skip": True})
        dataset.abstract = TupleType(items=tuple(p.abstract for p in arguments))
        taken: dict[int, Value] = {}
        for at, parameter in enumerate(arguments):
            if id(parameter) in used:
                item = insert.node("TupleGetItem", [dataset, at], anchor)
                item.abstract = parameter.abstract
                taken[id(parameter)] = item
        for node in self._forward:
            node.operands = [taken.get(id(value), value) for value in node.operands]
        self._graph.trail[:0] = made
        self._forward[:0] = made
        self._dataset = dataset

    # -- the pass

    def run(self) -> None:
        """Plan all operators, then insert what their layouts ask for."""
        self._name()
        self._plan()
        loss = self._loss_nodes()
        forward = {id(node) for node in self._forward}
        nodes, self._graph.trail = self._graph.trail, self._made
        plans = {id(plan.node): plan for plan in self.plans}
        bundled = {id(edge.node) for plan in self.plans for edge in plan.edges if edge.node is not plan.node}
        for node in nodes:
            if id(node) not in forward:
                if node.op_type == GRADIENT:
                    self._slice_seeds(node)
                node.operands = [self._now(value) for value in node.operands]
                self._made.append(node)
                continue
            plan = plans.get(id(node))
            if node.op_type == "Reshape":
                self._reshape(node)
                continue
            if plan is not None:
                self._types[id(node)] = [value.abstract for value in node.operands]
            if plan is not None or id(node) in bundled:
                self._redistribute(node)
            if plan is not None and id(node) in loss:
                self._divide(node, plan)
            node.operands = [self._now(value) for value in node.operands]
            self._made.append(node)
            if plan is not None:
                self._communicate(node, plan)
        if not self._is_training:
            self._mark_outputs()
        output = self._graph.output
        if isinstance(output, Node) and id(output) not in {id(node) for node in self._made}:
            output.operands = [self._now(value) for value in output.operands]
        elif output is not None:
            self._graph.output = self._now(output)

    def _slice_seeds(self, node: Node) -> None:
        """The gradients of results that are cut are cut alike."""
        count = gradient_of(node).count
        for at in range(count):
            source, seed = self._source(node.operands[at]), node.operands[count + at]
            if source is not None and isinstance(seed, Constant):
                node.operands[count + at] = self._sliced(seed, source.layout)

    def _now(self, value: Value) -> Value:
        while id(value) in self._replaced:
            value = self._replaced[id(value)]
        return value

    def _name(self) -> None:
        """Name the operators: what the pass inserts is named after them."""
        numbers = self._numbers
        roots: Sequence[Value | None] = self._losses or [self._graph.output]
        for node in [*topological(roots), *self._forward]:
            if id(node) not in self._names:
                self._names[id(node)] = numbers.full_name(node.scope, node.op_type)

    def _plan(self) -> None:
        if self._dataset is not None:
            self._plan_dataset(self._dataset)
        for node in self._forward:
            if is_cut(node):
                attrs = node.text.attrs if node.text is not None else {}
                plan = self._planned(node, attrs)
                self.plans.append(plan)
                self._results[id(node)] = plan.layouts.outputs
                for edge, layout in zip(plan.edges, plan.layouts.inputs, strict=True):
                    self._wanted[id(edge.node), edge.at] = layout
                text_of(node).attrs.setdefault("in_strategy" if plan.is_given else "gen_strategy", plan.strategy)
                if any(edge.node is not node for edge in plan.edges):
                    self._share_strategy(plan)
        for node in self._forward:
            for at, value in enumerate(node.operands):
                self._users.setdefault(id(value), []).append(Edge(node, at))
        for plan in self.plans:
            for edge, layout in zip(plan.edges, plan.layouts.inputs, strict=True):
                source, _ = source_of(edge.value)
                if isinstance(source, Parameter) and source.is_weight:
                    self._cut_weight(source, layout)
        if not self._is_training:
            self._plan_outputs()

    def _planned(self, node: Node, attrs: Mapping[str, Any]) -> Plan:
        """The plan of an operator; without a strategy it takes operands as they are, where strategies propagate."""
        if not self._propagates or attrs.get("in_strategy") is not None:
            return plan_of(node, self._settings, attrs)
        sources = [source_of(edge.value) for edge in edges_of(node)]
        layouts = [self._results.get(id(root), ())[index : index + 1] for root, index in sources]
        shapes = [e.value.abstract.shape for e in edges_of(node) if isinstance(e.value.abstract, TensorType)]
        flag = node.operands[3] if node.op_type in ("MatMul", "BatchMatMul") else None
        rows = propagated(
            node.op_type,
            shapes,
            [found[0] if found else None for found in layouts],
            transposed=isinstance(flag, Constant) and bool(flag.value),
        )
        try:
            return plan_of(node, self._settings, attrs, rows)
        except StrategyError:
            return plan_of(node, self._settings, attrs)

    @staticmethod
    def _share_strategy(plan: Plan) -> None:
        for edge in plan.edges:
            if edge.node is not plan.node:
                text_of(edge.node).node_attrs["in_strategy"] = plan.strategy

    def _cut_weight(self, weight: Parameter, layout: TensorLayout) -> None:
        before = self.weights.setdefault(weight.name, layout)
        if before != layout:
            raise StrategyError(
                f"The parameter {weight.name!r} is cut in two ways by its users: {before.cuts} and {layout.cuts} over "
                f"the devices {before.device_matrix} and {layout.device_matrix}; allowed: one layout for all users"
            )

    def _plan_dataset(self, dataset: Node) -> None:
        layouts, rows = [], []
        assert isinstance(dataset.abstract, TupleType)
        for at, kind in enumerate(dataset.abstract.items):
            assert isinstance(kind, TensorType)
            cuts = self._settings.cuts(at, kind.shape)
            layouts.append(self._dataset_layout(kind.shape, cuts))
            rows.append(cuts)
        self._results[id(dataset)] = tuple(layouts)
        text_of(dataset).attrs.setdefault("in_strategy", tuple(rows))
        for value, layout in zip(dataset.operands, layouts, strict=True):
            if isinstance(value, Parameter):
                self.arguments[value] = layout

    def _dataset_layout(self, shape: tuple[int, ...], cuts: tuple[int, ...]) -> TensorLayout:
        """Repeated calculation is on the left here. [spec parallel 2.3]"""
        used = int(np.prod(cuts, dtype=int))
        if self._settings.device_num % used:
            raise StrategyError(f"the data set cannot be cut into {cuts} by {self._settings.device_num} devices")
        matrix = (self._settings.device_num // used, *cuts)
        layout = TensorLayout(matrix, tuple(range(len(shape) - 1, -1, -1)), shape)
        if not layout.fits():
            raise StrategyError(f"the data set cannot be cut into {cuts}: its shape is {shape}")
        return layout.squeezed()

    # -- operands

    def _source(self, value: Value) -> _Source | None:
        """Where a value comes from; None for what has no layout."""
        root, index = source_of(value)
        if isinstance(root, Parameter):
            if root.is_weight and isinstance(root.abstract, TensorType):
                layout = self.weights.get(root.name) or TensorLayout.whole(root.abstract.shape, self._devices)
                return _Source(value, layout, root.name)
            return None
        if isinstance(root, Node) and id(root) in self._pending:
            return self._pending[id(root)]
        if isinstance(root, Node) and id(root) in self._results:
            return _Source(value, self._results[id(root)][index], self._names[id(root)])
        return None

    @property
    def _devices(self) -> int:
        return self._settings.device_num

    def _redistribute(self, node: Node) -> None:
        """Bring the tensor operands of an operator into its layouts."""
        for at, value in enumerate(node.operands):
            wanted = self._wanted.get((id(node), at))
            if wanted is not None:
                node.operands[at] = self._brought(value, wanted, node)

    def _brought(self, value: Value, wanted: TensorLayout, node: Node) -> Value:
        root, _ = source_of(value)
        if isinstance(root, Constant):
            return self._sliced(root, wanted)
        if isinstance(root, Parameter) and root.is_weight:
            return self._mirrored(value, root, wanted, node)
        source = self._source(value)
        if source is None:
            return value
        return self._moved(source, wanted, node, replaced=False)

    def _moved(self, source: _Source, wanted: TensorLayout, node: Node, *, replaced: bool) -> Value:
        steps = self._steps(source, wanted)
        return self._insert.redistribute(
            self._now(source.value), steps, source.layout.slice_shape, node, source.name, replaced=replaced
        )

    def _steps(self, source: _Source, wanted: TensorLayout) -> list[Transfer]:
        return redistribution(source.layout, wanted, self._settings.rank, all_to_all=self._settings.enable_alltoall)

    def _sliced(self, value: Constant, wanted: TensorLayout) -> Value:
        if wanted.is_whole or not isinstance(value.abstract, TensorType):
            return value
        return constant(np.ascontiguousarray(np.asarray(value.value)[wanted.region(self._settings.rank)]))

    def _mirrored(self, value: Value, weight: Parameter, layout: TensorLayout, node: Node) -> Value:
        """A weight: gathered where the parallel optimizer cut it, mirrored where several ranks have the same part."""
        ranks = layout.replicas(self._settings.rank)
        is_trained = weight.name not in self._settings.frozen
        if not self._is_training or len(ranks) == 1 or not is_trained:
            return value
        if self._settings.enable_parallel_optimizer and self._is_divisible(weight, layout, len(ranks)):
            self._optimizer_cuts[weight.name] = _cut_further(layout)
            return self._insert.optimizer_gather(self._now(value), ranks, weight.name, node)
        text_of(node).attrs["mirror_user_id"] = weight.name
        return self._insert.mirror(self._now(value), ranks, weight.name, node, 1)

    def _is_divisible(self, weight: Parameter, layout: TensorLayout, count: int) -> bool:
        if weight.name in self._settings.alone or not layout.shape:
            return False
        return layout.slice_shape[0] % count == 0

    def _divide(self, node: Node, plan: Plan) -> None:
        """Divide the gradient of the loss by the number of its copies. [spec parallel 2.7]"""
        if not self._settings.loss_repeated_mean:
            return
        output = plan.layouts.outputs[0]
        divisor = self._devices if not output.shape else len(output.replicas(self._settings.rank))
        if divisor == 1:
            return
        for at, value in enumerate(node.operands):
            if isinstance(value.abstract, (TensorType, NoneType)) and not isinstance(value, Constant):
                node.operands[at] = self._insert.virtual_div(self._now(value), divisor, node, self._names[id(node)])

    def _loss_nodes(self) -> set[int]:
        found = set()
        for loss in self._losses:
            root, _ = source_of(loss)
            found.add(id(root))
        return found

    # -- results

    def _communicate(self, node: Node, plan: Plan) -> None:
        """What follows an operator whose result is in parts on several ranks."""
        for at, local in plan.scheme.local.items():
            node.operands[at] = constant(local)
        reduction = plan.scheme.reduction
        last = node
        if node.op_type == "Gather" and reduction is not None:
            ids = self._types[id(node)][1]
            assert isinstance(ids, TensorType)
            self._names[id(node)] = self._numbers.full_name(node.scope, node.op_type)  # it is made anew
            last = look_up(node, ids.dtype, plan, self._insert, self._settings.rank)
        if reduction is not None and len(plan.layouts.group) > 1:
            assert isinstance(node.abstract, TensorType)
            last = self._insert.reduced(
                last, reduction.kind, plan.layouts.group, self._names[id(node)], node.abstract.dtype.numpy
            )
        if last is not node:
            self._replaced[id(node)] = last
            self._results[id(last)] = self._results[id(node)]  # for what passes it on: Depend, hooks on gradients
            self._names[id(last)] = self._names[id(node)]

    def _reshape(self, node: Node) -> None:
        """The script's Reshape gives way to a redistribution into what its first user wants."""
        source = self._source(node.operands[0])
        assert isinstance(node.abstract, TensorType)
        if source is None:
            node.operands = [self._now(value) for value in node.operands]
            self._made.append(node)
            self._results[id(node)] = (TensorLayout.whole(node.abstract.shape, self._devices),)
            return
        wanted, leads_on = self._layout_after(node)
        if wanted is None and leads_on:  # the next Reshape starts from where this one does
            self._pending[id(node)] = source
            self._replaced[id(node)] = self._now(source.value)
            return
        if wanted is None:
            wanted = TensorLayout.whole(node.abstract.shape, self._devices)
        self._results[id(node)] = (wanted,)
        steps = self._steps(source, wanted)
        if steps == [Reshape(node.abstract.shape)]:  # nothing is cut: it stays
            node.operands = [self._now(source.value), constant(node.abstract.shape)]
            self._made.append(node)
            return
        source = replace(source, name=self._names[id(node)])
        self._replaced[id(node)] = self._moved(source, wanted, node, replaced=True)

    def _layout_after(self, node: Node) -> tuple[TensorLayout | None, bool]:
        """What the first user of a Reshape wants, behind nodes that pass it on; and whether another Reshape follows."""
        leads_on = False
        pending = [node]
        while pending:
            value = pending.pop(0)
            for edge in self._users.get(id(value), ()):
                wanted = self._wanted.get((id(edge.node), edge.at))
                if wanted is not None:
                    return wanted, False
                if edge.node.op_type == "Reshape":
                    leads_on = True
                elif edge.node.op_type in ("Depend", "Load", "TupleGetItem") and edge.at == 0:
                    pending.append(edge.node)
        return self._wanted_outputs.get((id(node), 0)), leads_on

    def _output_edges(self) -> list[Edge | None]:
        """Where the results are taken: operands of the nodes that bundle or order them, None for the output itself."""
        pending: list[Edge | None] = [None]
        found: list[Edge | None] = []
        while pending:
            edge = pending.pop(0)
            value = edge.value if edge is not None else self._graph.output
            if isinstance(value, Node) and value.op_type == "Depend":
                pending.append(Edge(value, 0))
            elif isinstance(value, Node) and value.op_type == "MakeTuple":
                pending += [Edge(value, at) for at in range(len(value.operands))]
            else:
                found.append(edge)
        return found

    def _plan_outputs(self) -> None:
        """The results of an evaluation lie as the data set does; scalars stay as they are."""
        for edge in self._output_edges():
            value = edge.value if edge is not None else self._graph.output
            assert value is not None
            root, index = source_of(value)
            if not isinstance(root, Node) or not isinstance(value.abstract, TensorType) or not value.abstract.shape:
                continue
            cuts = self._output_cuts(value.abstract.shape)
            layout = self._dataset_layout(value.abstract.shape, cuts)
            self._outputs.append((edge, value, layout, cuts))
            self._wanted_outputs.setdefault((id(root), index), layout)

    def _output_cuts(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if self._settings.dataset_strategy == "full_batch" or shape[0] % self._devices:
            return (1,) * len(shape)
        if isinstance(self._settings.dataset_strategy, tuple):
            count = max((n for row in self._settings.dataset_strategy for n in row), default=1)
            return (count if shape[0] % count == 0 else 1, *(1 for _ in shape[1:]))
        return (self._devices, *(1 for _ in shape[1:]))

    def _mark_outputs(self) -> None:
        """Bring the results of an evaluation into their layouts and mark them."""
        for edge, value, layout, cuts in self._outputs:
            root, _ = source_of(value)
            source = self._source(value)
            if source is None or not isinstance(root, Node):
                continue
            users = self._users_of_output(edge)
            if users is not None:
                tail = self._made[users:]
                del self._made[users:]
            else:
                tail = []
            beside = root
            now = self._moved(replace(source, value=self._now(value)), layout, beside, replaced=False)
            marked = self._insert.virtual_output(now, beside, cuts)
            text_of(marked).node_attrs["in_strategy"] = (cuts,)
            self._made.extend(tail)
            if edge is not None:
                edge.node.operands[edge.at] = marked
            else:
                self._graph.output = marked

    def _users_of_output(self, edge: Edge | None) -> int | None:
        """Where in the program the node stands that takes a result."""
        if edge is None:
            return None
        return next((at for at, node in enumerate(self._made) if node is edge.node), None)

    # -- types

    def finish(self) -> None:
        """Drop what only texts show, and infer the types of all values anew."""
        self._drop_markers()
        for parameter in self._graph.parameters:
            self._retype(parameter)
        for node in self._graph.trail:
            if not isinstance(node.abstract, MonadType):
                node.abstract = infer_local(node, self._find)
        output = self._graph.output
        if isinstance(output, Node) and output.op_type == "MakeTuple":
            output.abstract = infer_local(output, self._find)

    def _retype(self, parameter: Parameter) -> None:
        if not isinstance(parameter.abstract, TensorType):
            return
        layout = self.arguments.get(parameter)
        if parameter.is_weight:
            name = self._clones.get(parameter.name, parameter.name)
            layout = self._optimizer_cuts.get(name) or self.weights.get(name)
            if layout is not None and layout.shape == parameter.abstract.shape:
                self.weights[parameter.name] = layout
            else:
                layout = None
        if layout is not None:
            parameter.abstract = local_type(parameter, layout.slice_shape)

    def _drop_markers(self) -> None:
        replaced: dict[int, Value] = {}
        kept: list[Node] = []
        for node in self._graph.trail:
            node.operands = [replaced.get(id(value), value) for value in node.operands]
            first = node.operands[0] if node.operands else None
            if node.op_type == "TupleGetItem" and isinstance(first, Node) and first.op_type == _DATASET:
                place = node.operands[1]
                assert isinstance(place, Constant)
                replaced[id(node)] = first.operands[place.value]
            elif node.op_type == "_VirtualOutput":
                replaced[id(node)] = node.operands[0]
            elif node.op_type != _DATASET:
                kept.append(node)
        output = self._graph.output
        if isinstance(output, Node) and output.op_type == "MakeTuple":
            output.operands = [replaced.get(id(value), value) for value in output.operands]
        if output is not None:
            self._graph.output = replaced.get(id(output), output)
        self._graph.trail = kept


def _cut_further(layout: TensorLayout) -> TensorLayout:
    """The layout of a weight that the parallel optimizer cuts along axis 0 by all ranks that have the same part."""
    free = sorted(set(range(len(layout.device_matrix))) - layout.used, reverse=True)
    axis = (*dims_of(layout.tensor_map[0]), *free)
    return replace(layout, tensor_map=(axis if len(axis) > 1 else axis[0], *layout.tensor_map[1:]))
