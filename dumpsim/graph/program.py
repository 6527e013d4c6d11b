"""A compiled network: its kernel graphs and the control that runs them.

Control flow on tensors cuts a network into kernel graphs, each a straight line of kernels. What connects them is a
small register machine: numbered slots hold tensors, steps read and write slots. A straight-line network is one kernel
graph and one `Run`. Gradients of loops go back through the rounds: the loop keeps on stacks what they need.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dumpsim.core.abstract import TensorType, tensors_of
from dumpsim.core.irdoc import IrDoc
from dumpsim.graph.graph import Constant, Graph, Node, Parameter

if TYPE_CHECKING:
    from dumpsim.graph.parallel.sharding import Sharding

__all__ = [
    "Branch",
    "Keep",
    "KernelGraph",
    "Launch",
    "Loop",
    "Move",
    "Program",
    "Repeat",
    "Restore",
    "Run",
    "Step",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Launch:
    """One task of a schedule: a kernel, or the record of an event after it, or a wait for an event before it."""

    stream: int
    node: Node
    record: int | None = None
    wait: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelGraph:
    """One straight line of kernels.

    Attributes
    ----------
    graph : Graph
        Parameters in the order of the IR; weights hold their storage, the others are fed by `Run.arguments`.
    graph_id : int
        Number of the graph in the process.
    order : tuple of Node
        Kernels in execution order; Load, Depend, MakeTuple and their like are in the graph but not here.
    doc : IrDoc or None
        What IR text and protobuf show; None if the pipeline makes no text.
    is_root : bool
        The first graph of its network: runs count on it, `Parameter` files come from it. [spec observed 1.6]
    root_graph_id : int
        Number of the network's first graph.
    is_own : bool
        A segment of the network's own function; branches and loops are functions of their own, to which weights come
        as arguments.
    repeats : tuple of Node
        The kernels in the order in which they run from the second time on; empty if that is `order`.
    launches : tuple of Launch
        The tasks in the order of their launch where more than one stream works; else all kernels in order.
    stages : tuple of (str, str)
        Stages of a whole graph's compilation, and the graph at each as text, where somebody asked for it.
    model_name : str
    model_id : int
        Name and number in the process of the model that a device holds whole; "" and 0 if it does not.
    """

    graph: Graph
    graph_id: int
    order: tuple[Node, ...]
    doc: IrDoc | None
    is_root: bool
    root_graph_id: int
    is_own: bool = True
    repeats: tuple[Node, ...] = ()
    launches: tuple[Launch, ...] = ()
    stages: tuple[tuple[str, str], ...] = ()
    model_name: str = ""
    model_id: int = 0

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters that are not weights, in order."""
        return tuple(p for p in self.graph.parameters if not p.is_weight)

    @property
    def results(self) -> tuple[TensorType, ...]:
        """Types of the output tensors, tuples flattened, monads left out."""
        return tensors_of(self.graph.output.abstract) if self.graph.output is not None else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run kernel graph number `graph` of the program (an index, not a graph id).

    `arguments` are the slots of `KernelGraph.arguments`, `results` the slots that take `KernelGraph.results`.
    """

    graph: int
    arguments: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Give slot `target` the value of a slot or of a constant."""

    target: int
    source: "int | Constant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Take `then` where the tensor in slot `condition` is true, else `otherwise`."""

    condition: int
    then: "tuple[Step, ...]"
    otherwise: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Run `head`; while the tensor in slot `condition` is then true, run `body` and `head` again.

    After the loop the number of rounds is put onto each stack of `counted`.
    """

    head: "tuple[Step, ...]"
    condition: int
    body: "tuple[Step, ...]"
    counted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Put the values of `sources` onto a stack: what the gradient of a round of a loop needs.

    Those of the side of a branch that did not run may be missing.
    """

    stack: int
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Give `targets` the values that were kept last."""

    stack: int
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Run `body` as often as a loop's `counted` says that was put onto stack `counter` last."""

    counter: int
    body: "tuple[Step, ...]"


Step = Run | Move | Branch | Loop | Keep | Restore | Repeat


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """A compiled network.

    Attributes
    ----------
    kernel_graphs : tuple of KernelGraph
        In the order of their ids; the first is the root.
    steps : tuple of Step
        What one call of the network does.
    inputs : tuple of Parameter
        Arguments of a call; argument ``i`` is put into slot ``i``.
    outputs : tuple of int or Constant
        Slots (or compile-time constants) that a call returns, tuples flattened.
    slots : int
        Number of slots.
    stacks : int
        Number of stacks, which are empty when a call begins.
    name : str
        Name of the network for messages.
    sharding : Sharding or None
        Layouts, where the network is split over devices.
    """

    kernel_graphs: tuple[KernelGraph, ...]
    steps: tuple[Step, ...]
    inputs: tuple[Parameter, ...]
    outputs: "tuple[int | Constant, ...]"
    slots: int
    stacks: int = 0
    name: str = ""
    sharding: "Sharding | None" = None
