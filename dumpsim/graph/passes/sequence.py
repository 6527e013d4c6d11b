"""Orders that follow from a graph: of its nodes as the compiler lists them, of its parameters, of its kernels."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from dumpsim.graph.graph import Node, Parameter, Value, topological

__all__ = ["flat_operands", "kernel_order", "listed", "parameter_order"]

Operands = Callable[[Node], Sequence[Value]]
# nodes that no device runs
_VIRTUAL = frozenset({"MakeTuple", "TupleGetItem", "Load", "UpdateState", "Depend", "Return", "If", "While"})


def is_kernel(node: Node) -> bool:
    """Whether a device runs the node."""
    return node.op_type not in _VIRTUAL


def flat_operands(node: Node) -> list[Value]:
    """Operands as the kernel graph shows them: a kernel takes the members of a tuple of tensors one by one."""
    if not is_kernel(node):
        return node.operands
    flat: list[Value] = []
    for operand in node.operands:
        if isinstance(operand, Node) and operand.op_type == "MakeTuple":
            flat.extend(operand.operands)
        else:
            flat.append(operand)
    return flat


def listed(root: Node, operands: Operands = flat_operands) -> list[Node]:
    """Nodes below `root` as the compiler lists them before it builds a kernel graph.

    A depth-first walk from the result that visits a node when all of its users were visited, reversed.
    [observed 2.10: fits the parameters of every recorded graph]
    """
    users: dict[int, int] = {}
    pending = [root]
    while pending:
        for operand in operands(pending.pop()):
            if isinstance(operand, Node):
                if id(operand) not in users:
                    pending.append(operand)
                users[id(operand)] = users.get(id(operand), 0) + 1
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        order.append(node)
        for operand in reversed(operands(node)):
            if isinstance(operand, Node):
                users[id(operand)] -= 1
                if users[id(operand)] == 0:
                    stack.append(operand)
    order.reverse()
    return order


def parameter_order(nodes: Iterable[Node]) -> list[Parameter]:
    """Parameters in the order of their first use."""
    found: dict[int, Parameter] = {}
    for node in nodes:
        for operand in flat_operands(node):
            if isinstance(operand, Parameter):
                found.setdefault(id(operand), operand)
    return list(found.values())


def kernel_order(root: Node) -> tuple[Node, ...]:
    """Kernels in execution order: breadth-first from those that need no other kernel, the last found first.

    Exact for graphs whose kernels all hang on one chain; where several kernels need no other one, the vendor's order
    differs in places.
    """
    edges_in: dict[int, list[Node]] = {}
    edges_out: dict[int, list[Node]] = {}
    waiting: dict[int, int] = {}
    trivial: dict[int, bool] = {}
    for node in topological([root]):
        inputs = [o for o in flat_operands(node) if isinstance(o, Node)]
        trivial[id(node)] = not is_kernel(node) and all(trivial[id(i)] for i in inputs)
    seen: set[int] = set()
    queue = deque([root])
    while queue:
        node = queue.popleft()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for operand in flat_operands(node):
            if isinstance(operand, Node) and not trivial[id(operand)]:
                waiting[id(node)] = waiting.get(id(node), 0) + 1
                edges_in.setdefault(id(node), []).append(operand)
                edges_out.setdefault(id(operand), []).append(node)
                queue.append(operand)
    free = _free_kernels(root, edges_in)
    order: list[Node] = []
    while free:
        queue.append(free.pop())
        while queue:
            node = queue.popleft()
            if is_kernel(node):
                order.append(node)
            for user in edges_out.get(id(node), ()):
                waiting[id(user)] -= 1
                if waiting[id(user)] == 0:
                    queue.append(user)
    return tuple(order)


def _free_kernels(root: Node, edges_in: dict[int, list[Node]]) -> list[Node]:
    """Kernels that need no other kernel, in the order of a walk from the result that follows virtual nodes first."""
    found: list[Node] = []
    virtual, real, seen = deque([root]), deque[Node](), {id(root)}
    while virtual or real:
        node = virtual.popleft() if virtual else real.popleft()
        if id(node) not in edges_in:
            found.append(node)
        for operand in edges_in.get(id(node), ()):
            if id(operand) not in seen:
                seen.add(id(operand))
                (real if is_kernel(operand) else virtual).append(operand)
    return found
