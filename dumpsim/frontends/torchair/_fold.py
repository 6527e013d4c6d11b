"""Operators that GE folds into a quantisation unless ``quant_dumpable`` keeps them for the dump. [spec ge 1.5]

The vendor documents that a compilation folds the tensor that a quantisation takes, so that it has no file, and that
``quant_dumpable`` keeps it. The patterns that GE folds are in its compiled half, which cannot be read; here there is
one: an operator whose only user is a quantisation, the result of which is dequantised again (`npu_quantize`,
`npu_anti_quant`). The quantisation then also computes the operator, and its file shows the operator's inputs. (ours)
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
_NOT_FOLDED = frozenset({"Const", "Data", "AscendAntiQuantV2"})  # not computed, or the end of another pair


def folds(graph: GeGraph) -> Mapping[str, str]:
    """Return the operators that are folded into a quantisation: its name by the operator's name."""
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
        if first is None or not restored or first.node.type in _NOT_FOLDED:
            continue
        if len(users[id(first.node)]) == 1 and calls[id(first.node)] <= 1:
            found[first.node.name] = node.name
    return MappingProxyType(found)


@dataclass(frozen=True, slots=True)
class Joined:
    """Computes an operator, and a second one from its result.

    Parameters
    ----------
    first, second : callable
    count : int
        Number of operands of the first.
    attrs : mapping
        Attributes of the first.
    """

    first: Callable[..., Any]
    count: int
    attrs: Mapping[str, Any]
    second: Callable[..., Any]

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        """Return the result of the second operator."""
        made = self.first(*operands[: self.count], **self.attrs)
        value = made[0] if isinstance(made, (list, tuple)) else made
        return self.second(value, *operands[self.count :], **attrs)
