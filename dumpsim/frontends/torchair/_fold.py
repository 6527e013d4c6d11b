"""What GE folds into a quantisation, unless ``quant_dumpable`` keeps it for the dump. [spec ge 1.5]

The vendor documents that a compilation folds numbers away that a quantisation takes, so that they have no files, and
that ``quant_dumpable`` keeps them. Which patterns GE folds is in its compiled half; here it is one: an operator whose
result goes to a quantisation alone, the numbers of which are made values again (`npu_quantize`, `npu_anti_quant`). The
quantisation then computes the operator as well, and its file shows the operator's inputs. (ours)
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dumpsim.frontends.torchair._ge import GeGraph, GeNode
from dumpsim.frontends.torchair._result import references

__all__ = ["Joined", "folds"]

_QUANTISATIONS = frozenset({"AscendQuantV2", "Quantize"})
_GIVEN = frozenset({"Const", "Data", "AscendAntiQuantV2"})  # what is there without being computed, or is a pair's end


def folds(graph: GeGraph) -> Mapping[str, str]:
    """The operators that go into a quantisation: names of both."""
    users: dict[int, list[GeNode]] = {}
    calls = Counter(
        at for call in graph.calls for at in {id(one.node) for one in references((call.arguments, call.keywords))}
    )
    for node in graph.nodes:
        for one in node.inputs:
            if one is not None:
                users.setdefault(id(one.node), []).append(node)
    found = {}
    for node in graph.nodes:
        first = node.inputs[0] if node.type in _QUANTISATIONS and node.inputs else None
        restored = any(one.type == "AscendAntiQuantV2" for one in users.get(id(node), ()))
        if first is None or not restored or first.node.type in _GIVEN:
            continue
        if len(users[id(first.node)]) == 1 and calls[id(first.node)] <= 1:
            found[first.node.name] = node.name
    return MappingProxyType(found)


@dataclass(frozen=True, slots=True)
class Joined:
    """Computes an operator, and another one of its result.

    Parameters
    ----------
    first, second : callable
    count : int
        Operands of the first.
    attrs : mapping
        Of the first.
    """

    first: Callable[..., Any]
    count: int
    attrs: Mapping[str, Any]
    second: Callable[..., Any]

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        """What the second gives."""
        made = self.first(*operands[: self.count], **self.attrs)
        value = made[0] if isinstance(made, (list, tuple)) else made
        return self.second(value, *operands[self.count :], **attrs)
