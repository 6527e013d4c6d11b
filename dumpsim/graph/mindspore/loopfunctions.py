"""Loops as functions: a header that calls the body or the code after the loop; the body calls the header."""

from collections.abc import Sequence
from dataclasses import replace

from dumpsim.core.abstract import FunctionType, TupleType
from dumpsim.graph.gradient_control import ends_of
from dumpsim.graph.graph import Graph, Node, Parameter, Step, Value, control_of, copied, text_of
from dumpsim.graph.mindspore.branchfunctions import Branches
from dumpsim.graph.mindspore.capturedflow import by_first_use, is_part, is_trivial, place_of
from dumpsim.graph.mindspore.funcform import FuncForm
from dumpsim.graph.mindspore.funcgraph import LABELS, FuncGraph, as_constant
from dumpsim.graph.mindspore.funcmaker import Closure, End, Leave, Maker
from dumpsim.graph.mindspore.loopgradients import LoopGradients, leaves_of
from dumpsim.graph.mindspore.placement import Placement

__all__ = ["Loops"]


class Loops:
    """Creates the functions of loops."""

    def __init__(
        self, form: FuncForm, nodes: Placement, maker: Maker, branches: Branches, gradients: LoopGradients
    ) -> None:
        self._form = form
        self._nodes = nodes
        self._maker = maker
        self._branches = branches
        self._gradients = gradients

    def jump(self, node: Node, function: FuncGraph, end: End, step: Step | None) -> Node:
        """Create a branch at the end of a loop's body, whose sides may break or continue."""
        control = control_of(node)
        condition = self._nodes.value(node.operands[0], function)
        inner: Sequence[Step | None] = step.inner if step is not None and step.split is node else (None, None)
        sides: list[FuncGraph] = []
        for at, (kind, block, how) in enumerate(zip(("true", "false"), node.blocks, control.jumps, strict=True)):
            assert block.output is not None
            label = LABELS[kind] + function.label
            side = self._maker.new_function(kind, label, block.output, end)
            side.scope, side.loops = node.scope, control.loops
            sides.append(side)
            mine = inner[at]
            if mine is not None:
                self._gradients.hand_out(side, mine.given, (mine,))
            later_steps = mine.inner if mine is not None and not how else ()
            start = control.starts[at]
            own, later = block.trail[:start], block.trail[start:]
            if how == "break":
                assert end.leave is not None
                self._leave(side, own, block.output, end.leave)
            elif how == "continue":
                self._maker.fill(side, block.trail, block.output, end=end, step=mine)
            elif is_trivial(later, block.output):
                for later_step in later_steps:
                    self._gradients.add_step(side, later_step)
                self._maker.fill(side, block.trail, block.output, end=end, step=later_steps[0] if later_steps else None)
            else:  # a recursive function is only inlined if it is trivial
                for each in own:
                    self._plain_or_branch(each, side, later)
                after = self._maker.function(
                    "after", LABELS["after"] + function.label, later, block.output, end=end, steps=later_steps
                )
                after.scope = node.scope
                side.output = self._nodes.call(as_constant(after), [], after.result.abstract, side)
        switch = self._nodes.made("Switch", [condition, *map(as_constant, sides)], FunctionType(), function)
        self._nodes.keep(node)
        return self._nodes.call(switch, [], end.header.result.abstract, function)

    def _plain_or_branch(self, node: Node, function: FuncGraph, rest: Sequence[Node]) -> None:
        if node.op_type == "If":
            self._branches.branch(node, function, rest)
        elif node.op_type == "Invoke":
            self._branches.shared(node, function)
        else:
            self._nodes.plain(node, function)

    def _leave(self, function: FuncGraph, nodes: Sequence[Node], output: Value, leave: Leave) -> None:
        """Fill a function that leaves a loop with the variables in `output`."""
        assert isinstance(output, Node)
        if leave.end is not None:
            for at, node in enumerate(nodes):
                self._plain_or_branch(node, function, nodes[at + 1 :])
            values = [self._nodes.value(output.operands[at], function) for at in leave.places]
            function.output = self._nodes.call(as_constant(leave.end), values, leave.end.result.abstract, function)
            return
        rest, result, parts, step = leave.copies.pop()
        if step is not None:
            self._gradients.add_step(function, step)
        for identity, place in parts.items():
            self._nodes.given[identity] = output.operands[place]
        self._maker.fill(function, [*nodes, *rest], result, end=leave.after)

    def back(self, output: Value, function: FuncGraph, end: End) -> Node:
        """Call the header at the end of a loop's body, with the variables and the values that the gradient needs."""
        assert isinstance(output, Node)
        kept = range(len(end.order), len(output.operands)) if not end.hands_out else ()
        values = [self._nodes.value(output.operands[at], function) for at in (*end.order, *kept)]
        return self._nodes.call(as_constant(end.header), values, end.header.result.abstract, function)

    def loop(
        self,
        node: Node,
        function: FuncGraph,
        rest: Sequence[Node],
        output: Value,
        end: End | None,
        closure: Closure | None,
        steps: Sequence[Step] = (),
    ) -> Node:
        """Create the functions of a loop, including that of the code after it; return the call of the header.

        If they return gradients, `steps` are those of the loop's round, of the code after it and of the header.
        """
        head, turn = node.blocks
        assert head.output is not None
        assert turn.output is not None
        ends = list(ends_of(turn))
        order = by_first_use(head, turn)
        if control_of(node).jumps:
            changed = {
                at
                for how, bundle in ends
                if how != "break"
                for at, value in enumerate(bundle.operands)
                if value is not turn.parameters[at]
            }
            order = [at for at in order if at in changed]
        starts = [self._nodes.value(node.operands[at], function) for at in order]
        label = function.label
        header = self._maker.new_function("header", LABELS["header"] + label, output, end)
        self._form.loops[id(header)] = node
        header.loops = control_of(node).loops
        self._nodes.keep(node)
        for own, other in zip(head.parameters, turn.parameters, strict=True):
            shown = own.debug_name or f"ф{own.name}"
            header.parameters.append(Parameter(name=own.name, abstract=own.abstract, debug_name=shown))
            self._nodes.new[id(own)] = self._nodes.new[id(other)] = header.parameters[-1]
        for at in sorted(set(range(len(node.operands))) - set(order)):  # not changed by any round
            start = self._nodes.value(node.operands[at], function)
            self._nodes.new[id(head.parameters[at])] = self._nodes.new[id(turn.parameters[at])] = start
        if steps:
            self._gradients.hand_out(header, steps[0].targets, steps[2:])
            header.scope = node.scope
        else:
            self._branches.loops += 1
        for at, each in enumerate(head.trail):
            if each.op_type == "If":
                self._branches.branch(each, header, head.trail[at + 1 :])
            else:
                self._nodes.plain(each, header)
        condition = self._nodes.value(head.output, header)
        leave = None
        if any(how == "break" for how, _ in ends):
            bundles = [bundle for how, bundle in ends if how == "break"]
            leave = self._leaving(node, bundles, rest, output, end, label, steps[1:2])
        back = End(header=header, order=order, leave=leave, hands_out=bool(steps))
        again = self._maker.function(
            "body", LABELS["body"] + label, turn.trail, turn.output, end=back, steps=steps[:1], of=node
        )
        again.scope = node.scope if steps else again.scope
        self._branches.loops -= 0 if steps else 1
        if leave is not None and leave.end is not None:
            values = [self._nodes.new[id(turn.parameters[at])] for at in leave.places]
            after = self._maker.new_function("after", LABELS["after"] + label, output, end)
            if steps:
                self._gradients.hand_out(after, steps[0].targets)
            after.output = self._nodes.call(as_constant(leave.end), values, leave.end.result.abstract, after)
        else:
            after = self._maker.function(
                "after", LABELS["after"] + label, rest, output, end=end, closure=closure, steps=steps[1:2], of=node
            )
        after.scope = node.scope if steps else after.scope
        sides: list[Value] = [as_constant(again), as_constant(after)]
        switch = self._nodes.made("Switch", [condition, *sides], FunctionType(), header)
        header.output = self._nodes.call(switch, [], after.result.abstract, header)
        header.parameters = [header.parameters[at] for at in order]
        return self._nodes.call(as_constant(header), starts, after.result.abstract, function)

    def differentiated(
        self, node: Node, unwind: Node, function: FuncGraph, rest: Sequence[Node], output: Value | None
    ) -> Node:
        """Create the functions of a loop in a function that is differentiated, and return their call."""
        leaves = leaves_of(unwind)
        if output is None and len(leaves) == 1:
            output = leaves[0]
        elif output is None:
            items = tuple(leaf.abstract for leaf in leaves)
            output = Node(op_type="MakeTuple", operands=list(leaves), abstract=TupleType(items=items))
        with self._gradients.collected() as functions:
            call = self.loop(node, function, rest, output, None, None, control_of(unwind).steps)
        for one in functions:
            one.function.frame = text_of(node).frame
        self._gradients.put(unwind, call, functions, function, rest)
        return call

    def _leaving(
        self,
        node: Node,
        bundles: Sequence[Node],
        rest: Sequence[Node],
        output: Value,
        end: End | None,
        label: str,
        steps: Sequence[Step],
    ) -> Leave:
        """Return how a loop is left by ``break``, with its variables in the bundles."""
        turn = node.blocks[1]
        parts = {id(part): place_of(part) for part in rest if is_part(part, node)}
        places = [
            at
            for at in dict.fromkeys(parts.values())
            if any(bundle.operands[at] is not turn.parameters[at] for bundle in bundles)
        ]
        recurs = end is not None and not is_trivial(rest, output)  # recursive functions are not inlined
        if not recurs and not any(each.blocks for each in rest):  # inlined at each ``break``
            leave = Leave(places=places, after=end)
            for _ in bundles:
                known: dict[int, Value] = {}
                copy = copied(Graph(trail=list(rest), output=output), known)
                assert copy.output is not None
                taken = {id(known[part]): at for part, at in parts.items()}
                step = replace(steps[0], graph=copied(steps[0].graph, known)) if steps else None
                leave.copies.append((copy.trail, copy.output, taken, step))
            return leave
        function = self._maker.new_function("end", LABELS["end"] + label, output, end)
        if steps:
            self._gradients.hand_out(function, steps[0].given, steps)
        for at in places:
            own = turn.parameters[at]
            formal = Parameter(name=own.name, abstract=own.abstract, debug_name=own.debug_name or f"ф{own.name}")
            function.parameters.append(formal)
            for part, place in parts.items():
                if place == at:
                    self._nodes.given[part] = formal
        for part, place in parts.items():
            if place not in places:
                self._nodes.given[part] = turn.parameters[place]
        self._maker.fill(function, rest, output, end=end, step=steps[0] if steps else None)
        return Leave(places=places, end=function)
