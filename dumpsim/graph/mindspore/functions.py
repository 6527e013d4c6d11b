"""Func graphs of a captured network: its branches and loops as functions, as in the vendor's compiler.

In a captured graph, control flow consists of nodes with blocks. The vendor has functions instead: a branch is two
functions from which a Switch chooses, and the code after it stays in the caller; a loop is a header that calls the body
or the code after the loop, and the body calls the header. [spec vendor 2.8] The captured nodes become nodes of the
functions, which may use values of enclosing functions until `lift_closures` turns these into parameters.
"""

from collections.abc import Sequence

from dumpsim.core.abstract import FunctionType
from dumpsim.graph.gradient_control import is_child
from dumpsim.graph.graph import Graph, Node, Step, Value, control_of
from dumpsim.graph.mindspore.branchfunctions import Branches
from dumpsim.graph.mindspore.capturedflow import (
    is_differentiated,
    is_part,
    is_trivial,
    order_outputs,
    whole_call,
)
from dumpsim.graph.mindspore.funcform import FuncForm
from dumpsim.graph.mindspore.funcgraph import LABELS, FuncGraph, as_constant
from dumpsim.graph.mindspore.funcmaker import Closure, End
from dumpsim.graph.mindspore.loopfunctions import Loops
from dumpsim.graph.mindspore.loopgradients import LoopGradients
from dumpsim.graph.mindspore.placement import Placement

__all__ = ["made_functions"]


def made_functions(graph: Graph) -> FuncForm:
    """Return the functions of a captured network, whose nodes are moved into them."""
    assert graph.output is not None
    root = FuncGraph(
        kind="root", label=graph.name, result=Node(op_type="Return", operands=[], abstract=graph.output.abstract)
    )
    root.parameters = list(graph.parameters)
    root.is_tied, root.differentiates_weights = graph.is_tied, graph.differentiates_weights
    form = FuncForm(root=root, is_analysed_again=graph.is_analysed_again)
    _Maker(form, graph).fill(root, graph.trail, graph.output)
    return form


class _Maker:
    def __init__(self, form: FuncForm, graph: Graph) -> None:
        self._form = form
        self._nodes = Placement(form)
        self._branches = Branches(form, self._nodes, self, graph)
        self._gradients = LoopGradients(form, self._nodes, self, self._branches, graph)
        self._loops = Loops(form, self._nodes, self, self._branches, self._gradients)
        form.functions.append(form.root)

    def function(
        self,
        kind: str,
        label: str,
        nodes: Sequence[Node],
        output: Value,
        *,
        end: End | None = None,
        into: FuncGraph | None = None,
        closure: Closure | None = None,
        steps: Sequence[Step] = (),
        of: Node | None = None,
    ) -> FuncGraph:
        """Create the function of captured nodes.

        Parameters
        ----------
        kind, label : str
        nodes : sequence of Node
        output : Value
        end : End, optional
            Given if it calls the header of a loop with its output.
        into : FuncGraph, optional
            The function, if it has been created already.
        closure : Closure, optional
        steps : sequence of Step, optional
            Given if it returns its gradient: the steps of its nodes, and of the function that it calls.
        of : Node, optional
            The control node to which it belongs.
        """
        function = into or self.new_function(kind, label, output, end)
        if of is not None:
            function.loops = control_of(of).loops
        if steps:
            self._gradients.hand_out(function, steps[0].given, steps)
        self.fill(function, nodes, output, end=end, closure=closure, step=steps[0] if steps else None)
        return function

    def new_function(self, kind: str, label: str, output: Value, end: End | None = None) -> FuncGraph:
        abstract = output.abstract if end is None else end.header.result.abstract
        result = Node(op_type="Return", operands=[], abstract=abstract)
        function = FuncGraph(kind=kind, label=label, result=result)
        self._form.functions.append(function)
        return function

    def fill(
        self,
        function: FuncGraph,
        nodes: Sequence[Node],
        output: Value,
        *,
        end: End | None = None,
        closure: Closure | None = None,
        step: Step | None = None,
    ) -> None:
        """Move captured nodes into a function; see `function`."""
        whole = whole_call(output) if end is None else None
        if whole is not None and function.kind == "root" and whole.op_type == "Invoke":
            whole = None
        for at, node in enumerate(nodes):
            rest = nodes[at + 1 :]
            if node.op_type == "If" and control_of(node).jumps:
                assert end is not None
                function.output = self._loops.jump(node, function, end, step)
                return
            if node.op_type == "If" and not is_differentiated(node) and not control_of(node).tails:
                order_outputs(node, rest, output)
            if node.op_type == "While" and (unwind := self._gradients.handed_by(node)) is not None:
                here = next((at for at, later in enumerate(rest) if later is unwind), None)
                if here is None:
                    function.output = self._loops.differentiated(node, unwind, function, rest, output)
                    return
                self._loops.differentiated(node, unwind, function, rest[:here], None)
                self.fill(function, rest[here:], output)  # continue after the differentiated function
                return
            if node.op_type == "While":
                inner = step.inner if step is not None and step.split is node else ()
                function.output = self._loops.loop(node, function, rest, output, end, closure, inner)
                return
            if node.op_type == "If":
                self._branches.branch(node, function, rest)
                if end is not None:  # the code after it calls the header; recursive functions are not inlined
                    parts = {id(part): part for part in rest if is_part(part, node)}
                    rest = [later for later in rest if id(later) not in parts]
                    inner = step.inner if step is not None and step.split is node else ()
                    is_trivial_call = not rest and is_trivial(rest, output)
                    if is_trivial_call or is_child(rest, output, nodes[:at]):
                        for later_step in inner:
                            self._gradients.add_step(function, later_step)
                        step = inner[0] if inner else step
                        continue
                    for part in parts.values():
                        self._nodes.part(part, node, function)
                    after = self.function("after", LABELS["after"] + function.label, rest, output, end=end, steps=inner)
                    after.scope = node.scope
                    function.output = self._nodes.call(as_constant(after), [], after.result.abstract, function)
                    return
            elif node.op_type == "Unwind":
                self._gradients.gradient(node, function)
            elif node.op_type == "Invoke":
                self._branches.shared(node, function)
            else:
                self._nodes.plain(node, function)
        if whole is not None:  # return the function call itself instead of a tuple of its items
            call = self._nodes.new[id(whole)]
            assert isinstance(call, Node)
            items = [output, *(each for each in function.trail if is_part(each, call))]
            function.trail = [each for each in function.trail if all(each is not item for item in items)]
            function.output = call
        elif end is None:
            function.output = self._nodes.value(output, function)
        else:
            function.output = self._loops.back(output, function, end)
        if closure is not None:
            values = [as_constant(closure.gradient), *(self._nodes.value(value, function) for value in closure.taken)]
            partial = self._nodes.made("Partial", values, FunctionType(), function)
            self._form.closed.add(id(partial))
            function.result.operands.append(partial)
