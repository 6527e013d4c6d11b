"""Inserts nodes into a network that is split: redistribution, communication, mirrors and marks of results.

[spec parallel 1.2, 2.4, 2.5, 2.7]
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.core.cutting import Strategy
from dumpsim.core.errors import ScriptRuntimeError, UnsupportedError
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.builder import constant
from dumpsim.graph.compilation import Find, OperatorNumbers
from dumpsim.graph.effects import live_nodes
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, text_of
from dumpsim.graph.mindspore.gradient_node import GRADIENT, gradient_of, outputs_of
from dumpsim.graph.parallel.classes import cut_classes
from dumpsim.graph.parallel.dataset import dataset_layout, dataset_plan, drop_markers, insert_dataset, insert_plans
from dumpsim.graph.parallel.inserted import Inserter, beside_control, rename_replaced
from dumpsim.graph.parallel.localtype import infer_slices
from dumpsim.graph.parallel.lookup import look_up
from dumpsim.graph.parallel.losses import divide, divided, makers_of
from dumpsim.graph.parallel.microbatch import accumulators, ends_of, mark_parts, parts_of
from dumpsim.graph.parallel.neighbours import next_layout, users_of
from dumpsim.graph.parallel.nodeorder import naming_order
from dumpsim.graph.parallel.plan import Edge, Plan, forward_nodes, is_cut, plan_of, source_of
from dumpsim.graph.parallel.product import gather_operands
from dumpsim.graph.parallel.propagation import plan_propagated
from dumpsim.graph.parallel.redistribution import redistribution
from dumpsim.graph.parallel.results import block_outputs, output_cuts, output_edges
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.sharding import mismatch, places_in_parts
from dumpsim.graph.parallel.sources import Source, Sources
from dumpsim.graph.parallel.transfer import Reshape, Transfer
from dumpsim.graph.parallel.weights import Weights

__all__ = ["Sharder"]

_PLACES = frozenset({"ArgMaxWithValue", "ArgMinWithValue", "Argmax", "Argmin"})  # operators that return indexes


class Sharder:
    """Splits one network; `run` after `begin`, then `finish`."""

    def __init__(self, graph: Graph, settings: Settings, find: Find) -> None:
        self._graph, self._settings, self._find = graph, settings, find
        self._forward = forward_nodes(graph)
        gradients = [node for node in graph.trail if node.op_type == GRADIENT]
        self._is_training = settings.is_training or bool(gradients)
        own = [graph.output] if settings.is_training and graph.output is not None else []
        self._losses: list[Value] = [outputs_of(node) for node in gradients] or own
        marked = any(node.op_type == "ShardIdentity" for node in self._forward)
        self._propagates = marked or bool(settings.planned) or settings.mode == "auto_parallel"
        self.plans: list[Plan] = []
        self.reduced: dict[Node, Node] = {}
        self.arguments: dict[Parameter, TensorLayout] = {}
        self.weights: dict[str, TensorLayout] = {}  # the final layouts
        self._dataset: Node | None = None
        self._wanted: dict[tuple[int, int], TensorLayout] = {}  # by node and operand
        self._users: dict[int, list[Edge]] = {}
        self._replaced: dict[int, Value] = {}  # the replacement of a node, by its id
        self._plans: dict[int, Plan] = {}
        self._bundled: set[int] = set()  # tuples that operators take
        self._ends: set[int] = set()
        self._loss: set[int] = set()
        self._marks: dict[tuple[int, int], tuple[int, ...]] = {}  # results of the network that a branch returns
        self.notes: list[str] = []
        self._reduced_items: dict[int, Plan] = {}  # the operator of a tuple's item, by the item's id
        self._types: dict[int, list[Abstract]] = {}  # of the operands of operators, before the pass
        self._outputs: list[tuple[Edge | None, Value, TensorLayout, tuple[int, ...]]] = []
        self._wanted_outputs: dict[tuple[int, int], TensorLayout] = {}
        self._made: list[Node] = []
        self._insert = Inserter(settings, self._made)
        self._parts = parts_of(self._forward)
        into = accumulators(graph) if self._parts else {}
        self._weights = Weights(settings, self._insert, into, is_trained=self._is_training)
        self._sources = Sources(self._weights, settings.device_num)
        if self._parts and not self._is_training:
            raise ScriptRuntimeError("Current not support predict with grad_accu", where="GradAccumulationCell")

    def strategies(self) -> dict[str, Strategy]:
        """Return the strategies by the names of the operators."""
        return {self._sources.names[id(node)]: strategy for node, strategy in self.strategies_by_node()}

    def strategies_by_node(self) -> Iterator[tuple[Node, Strategy]]:
        """Yield the strategies of the operators, the data set's last."""
        for plan in self.plans:
            yield plan.node, plan.strategy
        if self._dataset is not None:
            yield self._dataset, text_of(self._dataset).attrs["in_strategy"]

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The communication groups in use."""
        return self._insert.groups

    def begin(self) -> None:
        """Insert a virtual data set after the arguments, and markers after the weights that have a plan."""
        insert_plans(self._graph, self._forward, self._settings, self._find)
        self._dataset = insert_dataset(self._graph, self._forward, self._settings)

    # -- the pass

    def run(self) -> None:
        """Plan all operators, then insert the nodes that their layouts require."""
        self._name()
        self._drop_dead()
        self._plan()
        mark_parts(self._forward, self._parts)
        self._ends = ends_of(self._forward) if self._parts else set()
        self._loss = makers_of(self._losses)
        forward = {id(node) for node in self._forward}
        nodes, self._graph.trail = self._graph.trail, self._made
        self._plans = {id(plan.node): plan for plan in self.plans}
        self._bundled = {id(edge.node) for plan in self.plans for edge in plan.edges if edge.node is not plan.node}
        for node in nodes:
            if id(node) in forward:
                self._put(node)
                continue
            if node.op_type == GRADIENT:
                self._slice_seeds(node)
            self._take(node)
            self._made.append(node)
        if not self._is_training:
            self._mark_outputs()
        output = self._graph.output
        if isinstance(output, Node) and id(output) not in {id(node) for node in self._made}:
            output.operands = [self._now(value) for value in output.operands]
        elif output is not None:
            self._graph.output = self._now(output)

    def _put(self, node: Node) -> None:
        """Append a node of the forward pass to the program, with the nodes that its layouts require."""
        if node.blocks:
            self._control(node)
            return
        if node.op_type == "Reshape":
            self._reshape(node)
            return
        plan = self._plans.get(id(node))
        if plan is not None:
            self._types[id(node)] = [value.abstract for value in node.operands]
        if plan is not None or id(node) in self._bundled:
            self._redistribute(node)
        if plan is not None and plan.scheme.gathers:
            gather_operands(node, plan, self._insert, self._settings.rank)
        if id(node) in self._ends:
            self._end_parts(node, self._ends)
        if plan is not None and id(node) in self._loss:
            node.operands = [self._now(value) for value in node.operands]
            divide(node, plan.layouts.outputs[0], self._sources.names[id(node)], self._insert, self._settings)
        node.operands = [self._now(value) for value in node.operands]
        self._made.append(node)
        if plan is not None:
            self._communicate(node, plan)
        if id(node) in self._reduced_items:
            self._reduce_item(node, self._reduced_items[id(node)])

    def _take(self, node: Node) -> None:
        """Replace the operands of a node after the forward pass."""
        node.operands = [self._now(value) for value in node.operands]
        for block in node.blocks:
            for inner in block.trail:
                self._take(inner)
            if isinstance(block.output, Node):
                self._take(block.output)

    # -- control flow

    def _control(self, node: Node) -> None:
        """Append a branch or a loop to the program.

        The result of a branch has the layout of its first side, a variable of a loop that of its initial value.
        [observed 2.10] MindSpore does not redistribute other values to these layouts; here it is done, with an entry in
        `notes`.
        """
        if self._parts:
            raise UnsupportedError("control flow on tensors under gradient accumulation is not emulated")
        if node.op_type == "If":
            node.operands = [self._now(value) for value in node.operands]
            for block in node.blocks:
                self._put_block(node, block)
            first, second = (block_outputs(block) for block in node.blocks)
            found = [self._joined(node, at, pair) for at, pair in enumerate(zip(first, second, strict=True))]
            for side, block in enumerate(node.blocks):
                self._fit(node, block, found, side)
        else:
            found = [self._begun(node, at) for at in range(len(node.operands))]
            for block in node.blocks:
                for source, formal in zip(found, block.parameters, strict=False):
                    self._sources.formals[id(formal)] = source
                self._put_block(node, block)
            head, body = node.blocks
            self._fit(node, head, [], 0)
            self._fit(node, body, found, 1)
        self._made.append(node)
        self._sources.give(node, found)

    def _joined(self, node: Node, at: int, sides: tuple[Value, Value]) -> Source | None:
        """Return the source of a branch's result, with its layout."""
        found = next((source for value in sides if (source := self._sources.of(value)) is not None), None)
        wanted = self._wanted_outputs.get((id(node), at))  # it is a result of the network
        if found is None or wanted is None:
            return found
        return replace(found, layout=wanted)

    def _begun(self, node: Node, at: int) -> Source | None:
        """Return the source of a loop's variable, with its layout."""
        value = node.operands[at]
        if not isinstance(value.abstract, TensorType):
            return None
        found = self._sources.of(value)
        if found is None:
            found = Source(value, TensorLayout.whole(value.abstract.shape, self._devices), "")
        node.operands[at] = self._brought(value, found.layout, beside_control(node))
        return found

    @contextmanager
    def _inside(self, block: Graph) -> Iterator[None]:
        """Append nodes to a block; nodes inserted there are not used outside."""
        outer = list(self._made)
        self._made[:] = block.trail
        with self._weights.inside():
            yield
        block.trail = list(self._made)
        self._made[:] = outer

    def _put_block(self, node: Node, block: Graph) -> None:
        nodes, block.trail = block.trail, []
        control = control_of(node)
        places: list[int] = []  # of the nodes, among those that are inserted before them, and of the end
        with self._inside(block):
            for inner in nodes:
                places.append(len(self._made))
                self._put(inner)
            places.append(len(self._made))
        if control.starts:
            control.starts = tuple(
                places[start] if one is block else start for one, start in zip(node.blocks, control.starts, strict=True)
            )

    def _fit(self, node: Node, block: Graph, wanted: Sequence[Source | None], side: int) -> None:
        """Redistribute the outputs of a block to the layouts of the control node's results."""
        output = block.output
        with self._inside(block):
            values = block_outputs(block)
            for at, value in enumerate(values):
                source = wanted[at] if at < len(wanted) else None
                now = self._now(value)
                if source is not None:
                    beside = beside_control(node)
                    before = len(self._made)
                    now = self._now(self._brought(value, source.layout, beside))
                    cuts = self._marks.get((id(node), at))
                    if cuts is not None and side:  # like MindSpore, which marks the last side
                        now = self._marked(now, beside, cuts, value.abstract)
                    elif len(self._made) > before and not isinstance(source_of(value)[0], Parameter):
                        self.notes.append(mismatch(node, side, source.layout.cuts))
                if output is value:
                    block.output = now
                elif isinstance(output, Node):
                    output.operands[at] = now

    # -- gradients

    def _slice_seeds(self, node: Node) -> None:
        """Cut the initial gradients of results in the same way as the results."""
        count = gradient_of(node).count
        for at in range(count):
            root, _ = source_of(node.operands[at])
            source, seed = self._sources.of(node.operands[at]), node.operands[count + at]
            if source is not None and isinstance(root, Node) and root.blocks:  # a loss that control flow returns
                now = replace(source, value=self._now(source.value))
                node.operands[at] = divided(now, self._insert, self._settings, node)
            if source is not None and isinstance(seed, Constant):
                node.operands[count + at] = self._sliced(seed, source.layout)

    def _now(self, value: Value) -> Value:
        while id(value) in self._replaced:
            value = self._replaced[id(value)]
        return value

    def _name(self) -> None:
        """Name the operators, on which the names of inserted nodes depend."""
        numbers = OperatorNumbers()
        for node in naming_order(self._graph, self._forward):
            known = node.text.full_name if node.text is not None else ""
            self._sources.names[id(node)] = known or numbers.full_name(node.scope, node.op_type)

    def _drop_dead(self) -> None:
        """Drop unused nodes, whose strategies do not matter: in MindSpore earlier passes have dropped them."""
        alive = {id(node) for node in live_nodes(self._graph, self._find)}
        self._graph.trail = [node for node in self._graph.trail if id(node) in alive]
        self._forward = [node for node in self._forward if id(node) in alive]

    def _plan(self) -> None:
        if self._dataset is not None:
            self._plan_dataset(self._dataset)
        for node in everything(self._forward):
            if is_cut(node):
                attrs = node.text.attrs if node.text is not None else {}
                plan = self._planned(node, attrs)
                self.plans.append(plan)
                self._sources.layouts[id(node)] = plan.layouts.outputs
                for edge, layout in zip(plan.edges, plan.layouts.inputs, strict=True):
                    self._wanted[id(edge.node), edge.at] = layout
                text_of(node).attrs.setdefault("in_strategy" if plan.is_given else "gen_strategy", plan.strategy)
                if any(edge.node is not node for edge in plan.edges):
                    self._share_strategy(plan)
        self._users = users_of(self._losses or [self._graph.output], self._forward)
        for plan in self.plans:
            for edge, layout in zip(plan.edges, plan.layouts.inputs, strict=True):
                source, _ = source_of(edge.value)
                if isinstance(source, Parameter) and source.is_weight:
                    self._weights.cut(source, layout)
        if not self._is_training:
            self._plan_outputs()

    def _planned(self, node: Node, attrs: Mapping[str, Any]) -> Plan:
        """Return the plan of an operator; if strategies propagate, one without a strategy follows its operands."""
        if not self._propagates or attrs.get("in_strategy") is not None:
            return plan_of(node, self._settings, attrs)
        return plan_propagated(node, self._settings, attrs, self._sources.layouts)

    @staticmethod
    def _share_strategy(plan: Plan) -> None:
        for edge in plan.edges:
            if edge.node is not plan.node:
                text_of(edge.node).node_attrs["in_strategy"] = plan.strategy

    def _plan_dataset(self, dataset: Node) -> None:
        layouts, rows = dataset_plan(dataset, self._settings)
        self._sources.layouts[id(dataset)] = layouts
        text_of(dataset).attrs.setdefault("in_strategy", rows)
        for value, layout in zip(dataset.operands, layouts, strict=True):
            if isinstance(value, Parameter):
                self.arguments[value] = layout

    # -- operands

    @property
    def _devices(self) -> int:
        return self._settings.device_num

    def _redistribute(self, node: Node) -> None:
        """Redistribute the tensor operands of an operator to its layouts."""
        for at, value in enumerate(node.operands):
            wanted = self._wanted.get((id(node), at))
            if wanted is not None:
                node.operands[at] = self._brought(value, wanted, node)

    def _brought(self, value: Value, wanted: TensorLayout, node: Node) -> Value:
        root, _ = source_of(value)
        if isinstance(root, Constant):
            return self._sliced(root, wanted)
        if isinstance(root, Parameter) and root.is_weight:
            return self._weights.brought(self._now(value), root, wanted, node)
        source = self._sources.of(value)
        if source is None:
            return value
        return self._moved(source, wanted, node, replaced=False)

    def _moved(self, source: Source, wanted: TensorLayout, node: Node, *, replaced: bool) -> Value:
        steps = self._steps(source, wanted)
        return self._insert.redistribute(
            self._now(source.value), steps, source.layout.slice_shape, node, source.name, replaced=replaced
        )

    def _steps(self, source: Source, wanted: TensorLayout) -> list[Transfer]:
        return redistribution(source.layout, wanted, self._settings.rank, all_to_all=self._settings.enable_alltoall)

    def _sliced(self, value: Constant, wanted: TensorLayout) -> Value:
        if wanted.is_whole or not isinstance(value.abstract, TensorType):
            return value
        return constant(np.ascontiguousarray(np.asarray(value.value)[wanted.region(self._settings.rank)]))

    def _end_parts(self, node: Node, ends: set[int]) -> None:
        """Mark the losses of the parts, which this node sums."""
        for at, value in enumerate(node.operands):
            if isinstance(value, Node) and id(value) not in ends:
                node.operands[at] = self._insert.part_end(self._now(value), node)

    # -- results

    def _communicate(self, node: Node, plan: Plan) -> None:
        """Insert the communication after an operator whose result is distributed over several ranks."""
        for at, local in plan.scheme.local.items():
            node.operands[at] = constant(local)
        node.attrs.update(plan.scheme.attrs)
        for name in plan.scheme.attrs.keys() & text_of(node).attrs.keys():
            text_of(node).attrs[name] = plan.scheme.attrs[name]
        reduction = plan.scheme.reduction
        last, instance = node, None
        if node.op_type == "Gather" and reduction is not None:
            ids = self._types[id(node)][1]
            assert isinstance(ids, TensorType)
            last, instance = look_up(node, ids.dtype, plan, self._insert, self._settings.rank)
        if node.op_type == "OneHot":
            cut_classes(node, plan, self._insert, self._settings.rank)
        if node.op_type == "Squeeze":
            rename_replaced(node, self._sources.names[id(node)], plan.strategy)
        if reduction is not None and len(plan.layouts.group) > 1 and node.op_type in _PLACES:
            self.notes.append(places_in_parts(node, self._sources.names[id(node)], len(plan.layouts.group)))
        if reduction is not None and len(plan.layouts.group) > 1 and isinstance(node.abstract, TupleType):
            self._choose_item(node, plan)
        elif reduction is not None and len(plan.layouts.group) > 1:
            assert isinstance(node.abstract, TensorType)
            last = self._insert.reduced(
                last,
                reduction.kind,
                plan.layouts.group,
                self._sources.names[id(node)],
                node.abstract.dtype.numpy,
                instance,
            )
        if last is not node:
            self._replaced[id(node)] = last
            if reduction is not None:
                self.reduced[last] = node
            # for nodes that pass it on: Depend, hooks on gradients
            self._sources.layouts[id(last)] = self._sources.layouts[id(node)]
            self._sources.names[id(last)] = self._sources.names[id(node)]

    def _choose_item(self, node: Node, plan: Plan) -> None:
        """Choose the item to reduce of an operator with several results: only the first one found.

        [observed 2.10: by the order of users, see `neighbours`]
        """
        items = [edge.node for edge in self._users.get(id(node), ()) if edge.node.op_type == "TupleGetItem"]
        if items:
            self._reduced_items[id(items[0])] = plan

    def _reduce_item(self, item: Node, plan: Plan) -> None:
        """Reduce an item of a tuple, of which several ranks have terms."""
        assert plan.scheme.reduction is not None
        assert isinstance(item.abstract, TensorType)
        name, kind, ranks = self._sources.names[id(plan.node)], plan.scheme.reduction.kind, plan.layouts.group
        last = self._insert.reduced(item, kind, ranks, name, item.abstract.dtype.numpy, beside=plan.node)
        self._replaced[id(item)] = last
        self.reduced[last] = plan.node
        _, index = source_of(item)
        self._sources.layouts[id(last)], self._sources.names[id(last)] = (plan.layouts.outputs[index],), name

    def _reshape(self, node: Node) -> None:
        """Replace the script's Reshape by a redistribution to the layout that its first user wants."""
        source = self._sources.of(node.operands[0])
        assert isinstance(node.abstract, TensorType)
        if source is None:
            node.operands = [self._now(value) for value in node.operands]
            self._made.append(node)
            self._sources.layouts[id(node)] = (TensorLayout.whole(node.abstract.shape, self._devices),)
            return
        wanted, leads_on = next_layout(node, self._users, self._wanted_at, source.layout)
        wanted = wanted or self._wanted_outputs.get((id(node), 0))
        if wanted is None and leads_on:  # the next Reshape starts from this one's source
            self._sources.pending[id(node)] = source
            self._replaced[id(node)] = self._now(source.value)
            return
        if wanted is None:
            wanted = TensorLayout.whole(node.abstract.shape, self._devices)
        self._sources.layouts[id(node)] = (wanted,)
        steps = self._steps(source, wanted)
        if steps == [Reshape(node.abstract.shape)]:  # nothing is cut: keep the Reshape
            node.operands = [self._now(source.value), constant(node.abstract.shape)]
            self._made.append(node)
            return
        source = replace(source, name=self._sources.names[id(node)])
        self._replaced[id(node)] = self._moved(source, wanted, node, replaced=True)

    def _wanted_at(self, edge: Edge) -> TensorLayout | None:
        return self._wanted.get((id(edge.node), edge.at))

    def _plan_outputs(self) -> None:
        """Give the results of an evaluation the data set's layout; scalars stay unchanged."""
        for edge in output_edges(self._graph):
            value = edge.value if edge is not None else self._graph.output
            assert value is not None
            root, index = source_of(value)
            if not isinstance(root, Node) or not isinstance(value.abstract, TensorType) or not value.abstract.shape:
                continue
            cuts = output_cuts(self._settings, value.abstract.shape)
            if cuts is None:
                continue
            layout = dataset_layout(self._settings, value.abstract.shape, cuts)
            self._wanted_outputs.setdefault((id(root), index), layout)
            if root.op_type == "If":
                self._marks[id(root), index] = cuts
            else:
                self._outputs.append((edge, value, layout, cuts))

    def _mark_outputs(self) -> None:
        """Redistribute the results of an evaluation to their layouts, and mark them."""
        for edge, value, layout, cuts in self._outputs:
            root, _ = source_of(value)
            source = self._sources.of(value)
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
            is_item = edge is not None and edge.node.op_type == "MakeTuple"
            marked = self._marked(now, beside, cuts, value.abstract, is_item=is_item)
            self._made.extend(tail)
            if edge is not None:
                edge.node.operands[edge.at] = marked
            else:
                self._graph.output = marked

    def _marked(
        self, value: Value, beside: Node, cuts: tuple[int, ...], abstract: Abstract, *, is_item: bool = False
    ) -> Node:
        """Insert the mark of a result of the network; `is_item`: whether it is one of several."""
        marked = self._insert.virtual_output(value, beside, cuts, is_item=is_item)
        text_of(marked).node_attrs["in_strategy"] = (cuts,)
        marked.abstract = abstract
        return marked

    def _users_of_output(self, edge: Edge | None) -> int | None:
        """Return the position in the program of the node that takes a result."""
        if edge is None:
            return None
        return next((at for at, node in enumerate(self._made) if node is edge.node), None)

    # -- types

    def finish(self) -> None:
        """Drop the nodes that only texts show, and infer the types of all values again."""
        drop_markers(self._graph)
        self.weights = infer_slices(self._graph, self._forward, self.arguments, self._weights, self._find)

    def slices(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parts of parameters, by name."""
        found = {parameter.name: layout.slice_shape for parameter, layout in self.arguments.items()}
        for parameter in self._graph.parameters:
            layout = self._weights.layout_of(parameter.name) if parameter.is_weight else None
            kind = parameter.abstract
            if layout is not None and isinstance(kind, TensorType) and layout.shape == kind.shape:
                found[parameter.name] = layout.slice_shape
        return found
