"""The launch order of kernels in one thread, which the time stamps of their files show. [spec vendor 6]

While a dump is on, each kernel is an actor, which launches when all arrows to it have arrived. The first step of a
model is multi-threaded and has no fixed order. From the second step on, one thread runs a small model without control
flow: a kernel that has run calls its users immediately.
"""

from collections.abc import Sequence

from dumpsim.graph.graph import Node, Parameter, Value
from dumpsim.graph.mindspore.order import is_virtual
from dumpsim.graph.sequence import flat_operands

__all__ = ["MOST_ACTORS", "launch_order"]

MOST_ACTORS = 100  # of a model that runs in one thread


def launch_order(order: Sequence[Node]) -> tuple[Node, ...]:
    """Return kernels in launch order, given their execution order.

    Arguments of the network call their users first, then the kernels without incoming arrows run.
    """
    arrows = _Arrows(order)
    left = dict(arrows.needed)
    found: list[Node] = []
    # stack of calls of kernels; a kernel runs when its last arrow has arrived
    pending = [node for node in reversed(order) if not arrows.needed[id(node)]]
    for node in pending:
        left[id(node)] = 1
    pending += reversed(arrows.host)
    while pending:
        node = pending.pop()
        left[id(node)] -= 1
        if not left[id(node)]:
            found.append(node)
            pending += reversed([*arrows.data[id(node)], *arrows.control[id(node)]])
    return tuple(found)


class _Arrows:
    """The calls between kernels, linked kernel by kernel and operand by operand. [spec vendor 6.1]"""

    def __init__(self, order: Sequence[Node]) -> None:
        self.data: dict[int, list[Node]] = {id(node): [] for node in order}
        self.control: dict[int, list[Node]] = {id(node): [] for node in order}
        self.needed = {id(node): 0 for node in order}
        self.host: list[Node] = []  # users of the network's arguments
        for node in order:
            self._link(node)

    def _link(self, node: Node) -> None:
        before: list[Node] = []
        for operand in flat_operands(node):
            values, kernels = _sources(operand)
            before += kernels
            for value in values:
                if isinstance(value, Node):
                    self.data[id(value)].append(node)
                    self.needed[id(node)] += 1
                elif isinstance(value, Parameter) and not value.is_weight:
                    self.host.append(node)
                    self.needed[id(node)] += 1
        for kernel in {id(kernel): kernel for kernel in before if kernel is not node}.values():
            self.control[id(kernel)].append(node)
            self.needed[id(node)] += 1


def _sources(value: Value) -> tuple[list[Value], list[Node]]:
    """Return the kernels and parameters from which an operand's data comes, and the kernels that must run before."""
    if not isinstance(value, Node) or not is_virtual(value):
        return [value], []
    if value.op_type == "TupleGetItem":
        return _sources(value.operands[0])
    if value.op_type in ("Depend", "Load"):
        values, before = _sources(value.operands[0])
        return values, [*before, *_kernels(value.operands[1])]
    if value.op_type == "MakeTuple":
        parts = [_sources(operand) for operand in value.operands]
        return [v for values, _ in parts for v in values], [kernel for _, before in parts for kernel in before]
    return [], _kernels(value)


def _kernels(value: Value) -> list[Node]:
    """Return the nearest kernels that a token depends on."""
    found: list[Node] = []
    seen: set[int] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, Node) and id(one) not in seen:
            seen.add(id(one))
            if is_virtual(one):
                pending += reversed(one.operands)
            else:
                found.append(one)
    return found
