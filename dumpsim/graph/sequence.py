"""Orders that follow from a graph: the compiler's list of nodes, the order of parameters, and that of kernels."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from dumpsim.graph.graph import Node, Parameter, Value, topological

__all__ = ["flat_operands", "is_kernel", "listed", "parameter_order", "plain_order"]

Operands = Callable[[Node], Sequence[Value]]
# nodes that do not run on the device
_VIRTUAL = frozenset(
    {
        *("MakeTuple", "TupleGetItem", "Load", "UpdateState", "Depend", "Return"),
        *("If", "While", "Unwind", "Invoke", "Call", "Partial", "Switch"),
    }
)


def is_kernel(node: Node) -> bool:
    """Whether the node runs on the device."""
    return node.op_type not in _VIRTUAL


def flat_operands(node: Node) -> list[Value]:
    """Return operands as in the kernel graph: a kernel takes the items of a tuple of tensors one by one."""
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
    """Return the nodes that `root` depends on, in the order of the compiler's list before it builds a kernel graph.

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
    """Return parameters in the order of their first use."""
    found: dict[int, Parameter] = {}
    for node in nodes:
        for operand in flat_operands(node):
            if isinstance(operand, Parameter):
                found.setdefault(id(operand), operand)
    return list(found.values())


def plain_order(root: Node) -> tuple[Node, ...]:
    """Return kernels in a stable order, operands first, for a compiler whose own order is unknown (GE).

    The compiler walks back from the result, breadth-first, last operand first, and visits a node after all of its
    users; kernels that need no other kernel are pushed onto a stack. They are popped in turn, and each runs with the
    kernels that become ready through it. [fitted: a choice of ours; MindSpore's own order is `mindspore.order`]
    """
    needs: dict[int, list[Node]] = {}  # operands that depend on a kernel
    users: dict[int, int] = {}
    for node in topological([root]):
        operands = [operand for operand in flat_operands(node) if isinstance(operand, Node)]
        needs[id(node)] = [o for o in operands if is_kernel(o) or needs[id(o)]]
    pending = [root]
    while pending:  # a tuple whose items a kernel takes uses nothing itself
        for operand in needs[id(pending.pop())]:
            if id(operand) not in users:
                pending.append(operand)
            users[id(operand)] = users.get(id(operand), 0) + 1
    followers: dict[int, list[Node]] = {}
    waiting = {key: len(operands) for key, operands in needs.items()}
    free: list[Node] = []
    queue = deque([root])
    while queue:
        node = queue.popleft()
        if not needs[id(node)]:
            free.append(node)
        for operand in reversed(needs[id(node)]):
            followers.setdefault(id(operand), []).append(node)
            users[id(operand)] -= 1
            if users[id(operand)] == 0:
                queue.append(operand)
    order: list[Node] = []
    while free:
        queue.append(free.pop())
        while queue:
            node = queue.popleft()
            if is_kernel(node):
                order.append(node)
            for follower in followers.get(id(node), ()):
                waiting[id(follower)] -= 1
                if waiting[id(follower)] == 0:
                    queue.append(follower)
    return tuple(order)
