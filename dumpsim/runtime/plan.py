"""The plan of a kernel graph before it runs: operands and outputs of kernels, layouts and life times of tensors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from dumpsim.core.abstract import Abstract
from dumpsim.graph.graph import Node
from dumpsim.graph.program import KernelGraph
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.slot import Slot

__all__ = ["Argument", "Call", "GraphPlan", "HostValue", "is_dynamic", "slots_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostValue:
    """An operand that is not on the device: a number, a tuple of numbers, a string, a type, None."""

    value: Any
    abstract: Abstract


# an operand: a tensor, a host value, a tuple of these, or an ordering token (None)
Argument: TypeAlias = Union[Slot, HostValue, tuple["Argument", ...], None]  # noqa: UP007 (it names itself)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Call:
    """One kernel of the graph.

    Attributes
    ----------
    node, definition
        The operator.
    arguments : tuple of Argument
        Operands in order, ordering tokens left out.
    outputs : tuple of Slot
    stored : tuple of bool
        Whether the kernel's result has to be written to the output; False if the kernel wrote it in place.
    attrs : mapping
        Keywords of the kernel.
    engine : str
        The hardware engine that runs it, see `OpDef.engine`.
    cost_ns, flops : int
        Duration on the virtual clock, and the operations that it follows from.
    stream : int
        Number of the stream.
    births, deaths : tuple of Slot
        The tensors that are allocated before it, and those that are unused after it.
    freed : frozenset of Slot
        Operands whose memory is already freed, see `dumpsim.runtime.freed`.
    """

    node: Node
    definition: OpDef
    arguments: tuple[Argument, ...]
    outputs: tuple[Slot, ...]
    stored: tuple[bool, ...]
    attrs: Mapping[str, Any]
    engine: str
    cost_ns: int
    flops: int = 0
    stream: int = 0
    births: tuple[Slot, ...] = ()
    deaths: tuple[Slot, ...] = ()
    freed: frozenset[Slot] = frozenset()


@dataclass(frozen=True, eq=False, slots=True, kw_only=True, weakref_slot=True)
class GraphPlan:
    """A kernel graph, ready to run in any rank.

    Attributes
    ----------
    calls : tuple of Call
        In execution order.
    parameters : tuple of Slot
        Of the graph's parameters, in order.
    inputs : tuple of Slot
        Of the parameters that are not weights.
    constants, weights : tuple of Slot
    planned : tuple of Slot
        All tensors in the workspace.
    results : tuple of Slot
        The graph's output tensors.
    workspace : int
        Bytes of the workspace.
    rule : str
        Block rule of the tensors in it.
    """

    kernel_graph: KernelGraph
    calls: tuple[Call, ...]
    parameters: tuple[Slot, ...]
    inputs: tuple[Slot, ...]
    constants: tuple[Slot, ...]
    weights: tuple[Slot, ...]
    planned: tuple[Slot, ...]
    results: tuple[Slot, ...]
    workspace: int
    rule: str


def is_dynamic(kernel_graph: KernelGraph) -> bool:
    """Whether the shape of an argument is known at run time only."""
    return any(-1 in parameter.abstract.shape for parameter in kernel_graph.arguments)


def slots_of(argument: Argument) -> Iterator[Slot]:
    """Yield the tensors of an argument, tuples flattened."""
    if isinstance(argument, Slot):
        yield argument
    elif isinstance(argument, tuple):
        for item in argument:
            yield from slots_of(item)
