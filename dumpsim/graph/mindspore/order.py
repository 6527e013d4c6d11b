"""The execution order of a kernel graph: MindSpore's own algorithm, step by step. [spec vendor 1]

The graph has the operands of IR text: a kernel takes the items of a tuple one by one, while tuple operands of nodes
that do not run on the device stay separate nodes, which count here.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from dumpsim.graph.graph import Node, Value
from dumpsim.graph.sequence import flat_operands

__all__ = ["COMMUNICATION", "VIRTUAL", "OrderRules", "is_virtual", "kernel_order", "rules_of"]

# nodes that do not run on the device [spec vendor 1.1]
VIRTUAL = frozenset(
    {
        *("MakeTuple", "TupleGetItem", "Return", "Partial", "Depend", "UpdateState", "Load", "StateSetItem"),
        *("make_list", "list_getitem", "is_", "is_not", "isinstance", "DynamicLossScale"),
        *("ImageSummary", "ScalarSummary", "TensorSummary", "HistogramSummary"),
    }
)
COMMUNICATION = frozenset(
    {
        *("AllReduce", "AllGather", "ReduceScatter", "Reduce", "Broadcast", "AlltoAll", "AlltoAllV", "AllToAllv"),
        *("Send", "Receive", "NeighborExchange", "NeighborExchangeV2", "CollectiveScatter", "CollectiveGather"),
        *("Barrier", "BatchISendIRecv"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRules:
    """Variants of the algorithm for targets and settings.

    Attributes
    ----------
    counts_uses : bool
        Whether the backward walk visits a node after all its users; otherwise at its first occurrence.
    ties : bool
        Whether a kernel without operands runs after the kernel that the backward walk reaches next.
    depth_first : bool
        Whether a user runs as soon as it is ready (``exec_order="dfs"``).
    """

    counts_uses: bool = True
    ties: bool = True
    depth_first: bool = False


_RULES = {"GPU": OrderRules(counts_uses=False, ties=False)}  # [spec vendor 1.4]


def rules_of(target: str, exec_order: str = "bfs") -> OrderRules:
    """Return the rules of a target.

    Examples
    --------
    >>> rules_of("GPU").ties, rules_of("CPU", "dfs").depth_first
    (False, True)
    """
    base = _RULES.get(target, OrderRules())
    return OrderRules(counts_uses=base.counts_uses, ties=base.ties, depth_first=exec_order == "dfs")


def is_virtual(node: Node) -> bool:
    """Whether the node does not run on the device."""
    return node.op_type in VIRTUAL


def kernel_order(root: Node, rules: OrderRules | None = None) -> tuple[Node, ...]:
    """Return the kernels that `root` depends on in execution order.

    Examples
    --------
    >>> from dumpsim.core.abstract import TensorType
    >>> from dumpsim.core.dtype import dtype
    >>> kind = TensorType(dtype=dtype("float32"), shape=())
    >>> x = Node(op_type="Exp", operands=[], abstract=kind)
    >>> y = Node(op_type="Add", operands=[x, x], abstract=kind)
    >>> [node.op_type for node in kernel_order(y)]
    ['Exp', 'Add']
    """
    rules = rules or OrderRules()
    end = Node(op_type="Return", operands=[root], abstract=root.abstract)
    links = _Links()
    links.connect(end)
    free = _independent(end, links, rules)
    return tuple(_Release(links, rules).run(free))


@dataclass(slots=True)
class _Links:
    """Operands and users of nodes, without operands that need no kernel. [spec vendor 1.2, 1.3]"""

    operands: dict[int, list[Node]] = field(default_factory=dict)
    users: dict[int, list[Node]] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)  # operands that have not run
    uses: dict[int, int] = field(default_factory=dict)  # users that the backward walk has not visited
    _trivial: dict[int, bool] = field(default_factory=dict)

    def connect(self, end: Node) -> None:
        """Link every node that `end` depends on with its users, breadth-first."""
        self._find_trivial(end)
        queue = deque([end])
        self.users[id(end)] = []
        while queue:
            node = queue.popleft()
            needed = [value for value in flat_operands(node) if not self._is_trivial(value)]
            self.operands[id(node)] = kept = [value for value in needed if isinstance(value, Node)]
            self.waiting[id(node)] = len(kept)
            for operand in kept:
                if id(operand) not in self.users:
                    self.users[id(operand)] = []
                    queue.append(operand)
                self.users[id(operand)].append(node)
                self.uses[id(operand)] = self.uses.get(id(operand), 0) + 1

    def _is_trivial(self, value: Value) -> bool:
        return not isinstance(value, Node) or self._trivial[id(value)]

    def _find_trivial(self, end: Node) -> None:
        """Find trivial nodes: they and all their operands do not run on the device; e.g. the Load of a parameter."""
        stack = [(end, iter(flat_operands(end)))]
        while stack:
            node, operands = stack[-1]
            for operand in operands:
                if isinstance(operand, Node) and id(operand) not in self._trivial:
                    self._trivial[id(operand)] = False
                    stack.append((operand, iter(flat_operands(operand))))
                    break
            else:
                stack.pop()
                self._trivial[id(node)] = is_virtual(node) and all(map(self._is_trivial, flat_operands(node)))


def _independent(end: Node, links: _Links, rules: OrderRules) -> list[Node]:
    """Return the kernels that need no other, as a stack; all but the last are tied to others. [spec vendor 1.4]"""
    stack: list[Node] = []
    real: deque[Node] = deque()
    virtual: deque[Node] = deque([end])
    visited: set[int] = set()
    while virtual or real:
        node = virtual.popleft() if virtual else real.popleft()
        for operand in reversed(links.operands[id(node)]):
            if rules.counts_uses:
                links.uses[id(operand)] -= 1
                if links.uses[id(operand)]:
                    continue
            elif id(operand) in visited:
                continue
            visited.add(id(operand))
            if is_virtual(operand):
                virtual.append(operand)
                continue
            real.append(operand)
            if stack and rules.ties:
                late = stack.pop()
                links.users[id(operand)].append(late)
                links.waiting[id(late)] += 1
        if not links.operands[id(node)]:
            stack.append(node)
    return stack


class _Release:
    """Runs nodes and releases their users. [spec vendor 1.5, 1.6]"""

    def __init__(self, links: _Links, rules: OrderRules) -> None:
        self.links = links
        self.rules = rules
        self.order: list[Node] = []

    def run(self, free: Iterable[Node]) -> list[Node]:
        stack = list(free)
        delayed: deque[Node] = deque()  # collectives that have run, whose users wait until nothing else can run
        low: deque[Node] = deque()
        high: deque[Node] = deque()
        while stack or delayed:
            if delayed:
                self._release(delayed.popleft(), high, collectives_first=False)
            else:
                low.append(stack.pop())
            while low or high:
                queue = high if high else low
                node = queue.popleft()
                if not is_virtual(node):
                    self.order.append(node)
                if node.op_type in COMMUNICATION:
                    delayed.append(node)
                else:
                    self._release(node, queue, collectives_first=True)
        return self.order

    def _release(self, node: Node, queue: deque[Node], *, collectives_first: bool) -> None:
        users = self.links.users[id(node)]
        last: list[Node] = []
        ready: list[Node] = []
        for user in users:
            self.links.waiting[id(user)] -= 1
            if self.links.waiting[id(user)]:
                continue
            if self.rules.depth_first:
                ready.append(user)
            elif is_virtual(user) or len(users) == 1:
                queue.appendleft(user)
            elif (user.op_type in COMMUNICATION) == collectives_first:
                queue.append(user)
            else:
                last.append(user)
        queue.extend(last)
        queue.extendleft(reversed(ready))
