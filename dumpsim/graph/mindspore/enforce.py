"""Makes readers of a weight run before the effect that writes it. [source order_enforce.cc]"""

from collections.abc import Iterable

from dumpsim.graph.graph import Node, Parameter, topological
from dumpsim.graph.mindspore.users import Body, Users, settle
from dumpsim.ops.opdef import OpDef

__all__ = ["TENSOR_MOVE", "enforce_order"]

_PASSES_ON = frozenset({"ExpandDims", "BatchNormGrad", "Reshape"})  # whose users count as the readers

TENSOR_MOVE = OpDef(name="TensorMove", operands=("x",), infer=lambda abstracts, attrs: abstracts[0], kernel=lambda x: x)


def enforce_order(graph: Body) -> None:
    """Make the tokens that effects take wait for the readers, and copy a weight that is read several times."""
    _Enforcer(graph).run()
    settle(graph)


class _Enforcer:
    def __init__(self, graph: Body) -> None:
        self.graph = graph
        self.users = Users(graph)
        self.nodes = topological([graph.output, *graph.trail])
        self.place = {id(node): at for at, node in enumerate(self.nodes)}
        self.done: set[int] = set()

    def run(self) -> None:
        for node in self.nodes:
            if node.op_type == "UpdateState":
                self._before(node)
            elif node.op_type == "MakeTuple":
                self._bundle(node)
        self._copy()

    def _before(self, state: Node) -> None:
        """Add the readers of weights that the effects between two tokens write to the first token."""
        token = state.operands[0]
        if not isinstance(token, Node) or token.op_type != "UpdateState":
            return
        for effect in self.users.of(token):
            if effect is state or effect.op_type == "Load":
                continue
            for weight in effect.operands:
                if isinstance(weight, Parameter) and weight.is_weight:
                    for load in self.users.of(weight):
                        if load.op_type == "Load":
                            self._wait(token, self._readers(load))

    def _readers(self, load: Node) -> list[Node]:
        readers: list[Node] = []
        for user in self.users.of(load):
            if id(user) not in self.done:
                readers += self.users.of(user) if user.op_type in _PASSES_ON else [user]
        return readers

    def _bundle(self, bundle: Node) -> None:
        """Add the users of a tuple with Loads to the last token that depends on one of these."""
        loads = [o for o in bundle.operands if isinstance(o, Node) and o.op_type == "Load"]
        states = [state for load in loads for state in self._states(load)]
        if states:
            self._wait(max(states, key=lambda state: self.place[id(state)]), self.users.of(bundle))

    def _states(self, value: Node) -> list[Node]:
        found: list[Node] = []
        for user in self.users.of(value):
            if user.op_type == "UpdateState":
                found.append(user)
            elif user.op_type == "MakeTuple":
                found += self._states(user)
        return found

    def _wait(self, state: Node, readers: Iterable[Node]) -> None:
        once = {id(reader): reader for reader in readers if id(reader) in self.place}
        for reader in sorted(once.values(), key=lambda node: self.place[id(node)]):
            if reader.op_type in ("MakeTuple", "UpdateState") or self._depends(reader, state):
                continue
            self.done.add(id(reader))
            if not _holds(state, reader):
                self.users.add(state, reader)

    def _depends(self, reader: Node, state: Node) -> bool:
        """Whether a reader can only run after a token."""
        limit = self.place[id(state)]
        pending, seen = [reader], {id(reader)}
        while pending:
            node = pending.pop()
            if node is state:
                return True
            for operand in node.operands:
                if isinstance(operand, Node) and id(operand) not in seen and self.place.get(id(operand), -1) >= limit:
                    seen.add(id(operand))
                    pending.append(operand)
        return False

    def _copy(self) -> None:
        """Copy a weight after each of several Loads, and one that is itself a result."""
        loads: dict[int, list[Node]] = {}
        for node in topological([self.graph.output, *self.graph.trail]):
            if node.op_type == "Load" and not self._is_inplace(node):
                loads.setdefault(id(node.operands[0]), []).append(node)
        copied = {id(load): load for group in loads.values() if len(group) > 1 for load in group}
        copied |= {id(value): value for value in self._results()}
        for load in copied.values():
            move = Node(op_type="TensorMove", operands=[], abstract=load.abstract, definition=TENSOR_MOVE)
            self.users.replace(load, move)
            self.users.add(move, load)
            self.graph.trail.append(move)

    def _is_inplace(self, load: Node) -> bool:
        """Whether a weight is only read by the operator that writes it in place, which takes the weight itself."""
        readers = [user for user in self.users.of(load) if user.op_type not in ("UpdateState", "MakeTuple")]
        return bool(readers) and all(user.op_type.startswith("Inplace") for user in readers)

    def _results(self) -> list[Node]:
        value = self.graph.output
        while isinstance(value, Node) and value.op_type == "Depend":
            value = value.operands[0]
        given = value.operands if isinstance(value, Node) and value.op_type == "MakeTuple" else [value]
        held = [v for one in given if isinstance(one, Node) and one.op_type == "Partial" for v in one.operands]
        return [one for one in (*given, *held) if isinstance(one, Node) and one.op_type == "Load"]


def _holds(state: Node, reader: Node) -> bool:
    """Whether a token depends on a reader, directly or in a tuple."""
    bundles = [o for o in state.operands[1:] if isinstance(o, Node) and o.op_type == "MakeTuple"]
    return any(one is reader for one in (*state.operands[1:], *(one for o in bundles for one in o.operands)))
