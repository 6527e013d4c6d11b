"""Gradients as graph nodes: scopes, sums and constant folding."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.graph.builder import NodeMaker, constant
from dumpsim.graph.graph import Constant, Graph, Node, Value, copied, text_of
from dumpsim.graph.mindspore.folding import folds, result_of
from dumpsim.graph.mindspore.rulefunctions import RuleFunctions
from dumpsim.graph.mindspore.simplify import is_filled, product_with_ones
from dumpsim.ops.opdef import OpDef

__all__ = ["NodeBuilder"]

_NUMBERS = frozenset({"float", "int", "uint"})  # kinds of numbers whose zeros are dropped from sums


class NodeBuilder(NodeMaker):
    """The builder of `gradient.reverse` that creates graph nodes.

    Parameters
    ----------
    find : callable
        The definition of an operator type.
    place : callable
        ``place(node)`` adds a node to the program; its scope is set already.
    scopes : mapping
        Scopes of the gradients of forward nodes, by the nodes' ids, see `gradient_scope.shared_scopes`; for parameters
        the scopes of their loads.
    block : callable, optional
        ``block(name)`` is a context manager that yields a graph, to which nodes are added inside; for control flow.
    graphs : sequence of Graph, optional
        The graphs with the nodes of the forward pass, for control flow.
    sums : str, optional
        Scope of the sums of gradients, if it is not that of the value.
    has_control : bool, optional
        Whether the forward pass has branches or loops.
    is_analysed_again : bool, optional
        Whether the compiler analyses its functions again after gradients, which folds operators on `late_zeros`.
    analyses : int, optional
        How often the compiler analyses functions with gradients.
    parameters : mapping, optional
        Scopes of formal parameters, by the ids of the arguments of the differentiated function.
    tuples : container of int, optional
        Ids of the branches whose gradients are tuples: more than one of their outputs is used.
    shares : bool, optional
        Whether rules with branches become functions that several gradients call.
    """

    def __init__(
        self,
        find: Callable[[str], OpDef],
        place: Callable[[Node], None],
        scopes: Mapping[int, str],
        *,
        block: Callable[[str], AbstractContextManager[Graph]] | None = None,
        graphs: Sequence[Graph] = (),
        sums: str = "",
        parameters: Mapping[int, str] = MappingProxyType({}),
        has_control: bool = True,
        is_analysed_again: bool = False,
        analyses: int = 3,
        tuples: Container[int] = (),
        shares: bool = False,
    ) -> None:
        super().__init__(find, self._placed)
        self._into = place
        self._block = block
        self._graphs = graphs
        self._rules = RuleFunctions() if shares else None
        self._sums = sums
        self._parameters = parameters
        self._tuples = tuples
        self._zeros: dict[tuple[str, bool], Constant] = {}
        self._late: list[Constant] = []
        self._folded_late: list[Constant] = []
        self._has_control = has_control
        self._is_analysed_again = is_analysed_again
        self._analyses = analyses
        self._calls = 0  # number of calls from the differentiated function's gradient to the open block
        self._inlined: dict[int, Value] = {}  # copies of values in the graphs of rules, by id of the original
        self._scopes = scopes
        self._scope = "Gradients/Default"
        self._forward: Node | None = None
        self._formal: frozenset[int] = frozenset()  # ids of values that are parameters of the differentiated function

    def _placed(self, node: Node) -> None:
        node.scope = self._scope
        forward = self._forward
        if forward is not None:
            text = text_of(node)
            text.sources, text.candidate = text_of(forward).sources, "forward node"
            text.primal = text_of(forward).primal
            text.forward = forward
        self._into(node)
        # set_dump on a cell applies to its gradients, too; on a primitive it does not [spec mindspore 2.3]
        if forward is not None and forward.dump_mark is not None and "dump" not in text_of(forward).attrs:
            node.dump_mark = forward.dump_mark

    @contextmanager
    def backward_of(self, node: Node) -> Iterator[None]:
        """Emit operators inside as the gradient of `node`, named after its front-end primitive. [spec vendor 3.3]"""
        primitive = (node.text.primitive if node.text is not None else "") or node.op_type
        scope = f"Gradients/{self._scopes.get(id(node), node.scope)}/Grad_{primitive}"
        with self._at(scope, node):
            yield

    @contextmanager
    def _at(self, scope: str, forward: Node | None) -> Iterator[None]:
        before = self._scope, self._forward
        self._scope, self._forward = scope, forward
        try:
            yield
        finally:
            self._scope, self._forward = before

    def total(self, gradients: Sequence[Any], value: Value) -> Any:
        """Return the sum of several gradients of `value`: one AddN in the scope of the value. [spec vendor 3.6]"""
        late = {id(known) for known in self._folded_late}  # folded only after the sum was created
        summands = [gradient for gradient in gradients if id(gradient) in late or not is_filled(gradient, 0, _NUMBERS)]
        if not summands:
            return gradients[0]
        if len(summands) == 1:
            return summands[0]
        with self._at(self._sums or self._scope_of_sum(value), value if isinstance(value, Node) else None):
            return super().emit("AddN", tuple(summands))

    def _scope_of_sum(self, value: Value) -> str:
        """Return the scope of a sum of gradients.

        A formal parameter of a branch or loop has no scope. If several outputs of a branch are used, tuples are summed,
        by a function without a scope. [observed 2.10: nine small networks]
        """
        if id(value) in self._formal:
            return "Gradients/Default"
        if isinstance(value, Node) and value.op_type == "TupleGetItem":
            source = value.operands[0]
            if isinstance(source, Node) and source.op_type == "If" and _own_results(source) > 1:
                return "Default" if id(source) in self._tuples else "Gradients/Default"
        scope = value.scope if isinstance(value, Node) else self._scopes.get(id(value), "Default")
        return f"Gradients/{self._parameters.get(id(value), scope)}"

    @contextmanager
    def formal(self, values: Sequence[Value]) -> Iterator[None]:
        """Sum gradients of these values inside: they are parameters of the function that is differentiated."""
        before = self._formal
        self._formal = frozenset(map(id, values))
        try:
            yield
        finally:
            self._formal = before

    def inline(self, graph: Graph, arguments: Sequence[Any]) -> list[Value]:
        """Copy the nodes of a graph with their scopes, and return its outputs.

        Rules of one walk may use values of each other: hooks on a cell's output pass values to those on its input.
        """
        known = self._inlined
        known.update((id(p), self.value(a)) for p, a in zip(graph.parameters, arguments, strict=True))
        inner = copied(graph, known)
        for node in inner.trail:
            self._into(node)
        assert isinstance(inner.output, Node)
        return inner.output.operands

    # -- control flow

    @contextmanager
    def block(self, name: str, *, calls: int = 1) -> Iterator[Graph]:
        """Collect nodes that are emitted inside in a new graph; it is a function that `calls` calls lead to."""
        assert self._block is not None
        self._calls += calls
        try:
            with self._block(name) as graph:
                yield graph
        finally:
            self._calls -= calls

    def drops_unused(self) -> bool:
        """Whether unused results of a function that is called from here are dropped.

        Each analysis replaces unused items of tuples by zeros, after it found which items are used; the code that used
        items of an inner call only for such an item is gone in the next analysis. So each analysis goes one call
        deeper; the first one drops unused gradients of the differentiated function itself.
        [source program_specialize.cc; observed 2.10: r626_077, r629_017]
        """
        return self._calls + 1 < self._analyses

    def called(self, node: Node, dout: Any) -> list[Any]:
        """Return the gradients of the operands of a node whose rule has a branch, by a call of the rule."""
        definition = self.definition(node.op_type)
        assert definition.grad is not None
        if self._rules is None:
            return list(definition.grad(self, node.operands, node, dout, node.attrs))
        return self._rules.call(node, self.value(dout), definition.grad, self)

    def add(self, node: Node) -> Node:
        """Place a node that was created elsewhere."""
        self._placed(node)
        return node

    def insert(self, node: Node, *, after: Node) -> None:
        """Place a node after another one, in the graph of that one."""
        pending = list(self._graphs)
        while pending:
            graph = pending.pop()
            for place, other in enumerate(graph.trail):
                if other is after:
                    graph.trail.insert(place + 1, node)
                    return
                pending.extend(other.blocks)
        raise AssertionError(f"no graph holds {after.op_type}")

    def late_zeros(self, abstract: Abstract, *, summed: bool = False) -> Any:
        """Return zeros that the compiler recognises too late to fold operators on them; see `ControlBuilder`.

        Without branches and loops it folds them. [observed 2.10: d(x.argmax()) has no operator]
        """
        if not self._has_control:
            return self.zeros(abstract)
        key = (str(abstract), summed)
        if key not in self._zeros:  # the vendor merges equal constants
            self._zeros[key] = self.zeros(abstract)
            (self._folded_late if summed else self._late).append(self._zeros[key])
        return self._zeros[key]

    @property
    def in_graph(self) -> bool:
        """Whether the script runs in graph mode; in PYNATIVE mode sums have their own scope."""
        return not self._sums

    def choose(self, condition: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """Create a branch for a rule."""
        blocks = []
        for name, emitted in (("then", one), ("else", other)):
            with self.block(name) as graph:
                made = self.value(emitted())
            graph.output = Node(op_type="MakeTuple", operands=[made], abstract=TupleType(items=(made.abstract,)))
            blocks.append(graph)
        assert isinstance(blocks[0].output, Node)
        branch = Node(
            op_type="If", operands=[self.value(condition)], abstract=blocks[0].output.abstract, blocks=tuple(blocks)
        )
        return self.item(self.add(branch), 0)

    def zeros(self, abstract: Abstract) -> Any:
        """Return a constant tensor of zeros."""
        assert isinstance(abstract, TensorType)
        return constant(np.zeros(abstract.shape, abstract.dtype.numpy))

    def emit(self, op_type: str, *operands: Any, **attrs: Any) -> Any:
        """Create a node, or return the value by which the compiler replaces it."""
        inputs = [self.value(operand) for operand in operands]
        if op_type == "Mul" and (factor := product_with_ones(inputs[0], inputs[1])) is not None:
            return factor
        late = any(value is known for value in inputs for known in (*self._late, *self._folded_late))
        if inputs and (not late or self._is_analysed_again) and folds(op_type, inputs):
            found = self._folded(op_type, inputs, attrs)
            self._folded_late += [found] if late else []
            return found
        return super().emit(op_type, *inputs, **attrs)

    def _folded(self, op_type: str, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Constant:
        definition = self.definition(op_type)
        settings = {**definition.attrs, **attrs}
        missing = len(definition.operands) - len(inputs)
        rest = [constant(value) for value in definition.defaults[len(definition.defaults) - missing :]]
        arguments = [*inputs, *rest]
        kind = definition.output_type([value.abstract for value in arguments], settings)
        return result_of(arguments, definition, settings, kind)


def _own_results(branch: Node) -> int:
    """Return the number of a branch's outputs without those for its gradient."""
    assert isinstance(branch.abstract, TupleType)
    return branch.blocks[0].results or len(branch.abstract.items)
