"""Merges Loads of a weight that have no write between them. [source auto_monad_eliminate.cc]"""

from dataclasses import dataclass, field
from itertools import pairwise

from dumpsim.core.abstract import MonadType, TupleType
from dumpsim.graph.graph import Constant, Node, Parameter, topological
from dumpsim.graph.mindspore.funcgraph import function_of
from dumpsim.graph.mindspore.users import Body, Users, settle

__all__ = ["merge_loads"]

_FIRST = Constant(value="U", abstract=MonadType(kind="U"))
_LONELY = 2  # users of a token that only one Load and the next token take


def merge_loads(graph: Body) -> None:
    """Merge the Loads of each weight, and give the first token to those that need not wait."""
    users = Users(graph)
    found = _groups(graph)
    for key, group in found.loads.items():
        for same in _split(group, [*found.writes.get(key, ()), *found.calls]):
            for _, load in same[1:]:
                _forget(users, load)
                users.replace(load, same[0][1])
    for load in found.early:
        token = load.operands[1]
        if isinstance(token, Node) and len(users.of(token)) != _LONELY:
            users.move(load, 1, _FIRST)
    settle(graph)
    _untie(graph)


def _untie(graph: Body) -> None:
    """Drop the wait of a result for a token that other nodes take, too. [source EliminateAutoMonadNode]"""
    tie = graph.output
    if not isinstance(tie, Node) or tie.op_type != "Depend":
        return
    token = tie.operands[1]
    if not isinstance(token, Node) or token.op_type != "UpdateState":
        return
    if any(operand is token for node in graph.trail if node is not tie for operand in node.operands):
        graph.output = tie.operands[0]
        graph.trail = [node for node in graph.trail if node is not tie]


@dataclass(slots=True)
class _Found:
    """Loads and writes by weight, with their positions, the positions of calls, and the Loads before all of these."""

    loads: dict[int, list[tuple[int, Node]]] = field(default_factory=dict)
    writes: dict[int, list[int]] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)
    early: list[Node] = field(default_factory=list)


def _groups(graph: Body) -> _Found:
    found = _Found()
    own = {id(node) for node in graph.trail}
    for place, node in enumerate(topological([graph.output, *graph.trail])):
        if id(node) not in own:  # of an enclosing function
            continue
        if node.op_type == "Switch" or (node.op_type == "Call" and function_of(node.operands[0]) is not None):
            found.calls.append(place)
        elif node.op_type == "Load":
            weight = node.operands[0]
            group = found.loads.setdefault(id(weight), [])
            if not group and id(weight) not in found.writes and not found.calls:
                found.early.append(node)
            group.append((place, node))
        elif _orders(node):
            for operand in node.operands:
                if isinstance(operand, Parameter):
                    found.writes.setdefault(id(operand), []).append(place)
    return found


def _orders(node: Node) -> bool:
    if node.op_type == "Depend":
        return True
    return len(node.operands) > 1 and isinstance(node.operands[-1].abstract, MonadType)


def _split(group: list[tuple[int, Node]], places: list[int]) -> list[list[tuple[int, Node]]]:
    """Group the Loads of a weight, separated by nodes that may write it."""
    parts = [group[:1]]
    for before, after in pairwise(group):
        if any(before[0] < place < after[0] for place in places):
            parts.append([])
        parts[-1].append(after)
    return parts


def _forget(users: Users, load: Node) -> None:
    """Remove a Load from the tokens that depend on it."""
    for user in users.of(load):
        if user.op_type == "UpdateState":
            users.replace(user, user.operands[0])
        elif user.op_type == "MakeTuple" and all(one.op_type == "UpdateState" for one in users.of(user)):
            rest = [one for one in user.operands if one is not load]
            if len(rest) == 1:
                users.replace(user, rest[0])
            elif rest:
                users.drop(user, [load])
                user.abstract = TupleType(items=tuple(one.abstract for one in user.operands))
