"""A compiled network: its kernel graphs and the control flow between them.

Control flow on tensors cuts a network into kernel graphs, each a straight line of kernels. They are connected by a
small register machine: numbered slots contain tensors, steps read and write slots. A straight-line network is one
kernel graph and one `Run`. Gradients of loops run through the rounds in reverse; the values that they need are saved on
stacks.
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
        Parameters in the order of the IR; weights have their storage, the values of others come from `Run.arguments`.
    graph_id : int
        Number of the graph in the process.
    order : tuple of Node
        Kernels in execution order; nodes such as Load, Depend and MakeTuple are in the graph, but not here.
    doc : IrDoc or None
        The document that IR text and protobuf show; None if the pipeline prints no graphs.
    is_root : bool
        Whether it is the first graph of its network, which counts the runs and has the `Parameter` files.
        [spec observed 1.6]
    root_graph_id : int
        Number of the network's first graph.
    is_own : bool
        Whether it is a segment of the network's own function; branches and loops are separate functions, which get
        weights as arguments.
    repeats : tuple of Node
        The execution order from the second run on; empty if that is `order`.
    launches : tuple of Launch
        The tasks in the order of their launch; empty if all kernels run in order on one stream.
    stages : tuple of (str, str)
        Stages of a whole graph's compilation with the text of the graph, if requested.
    model_name : str
    model_id : int
        Name and number in the process of a graph that is loaded as a model; "" and 0 for other graphs.
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
        """Types of the output tensors, tuples flattened, without monads."""
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
    """Set slot `target` to the value of a slot or to a constant."""

    target: int
    source: "int | Constant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Run `then` if the tensor in slot `condition` is true, else `otherwise`."""

    condition: int
    then: "tuple[Step, ...]"
    otherwise: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Run `head`; while the tensor in slot `condition` is then true, run `body` and `head` again.

    After the loop the number of rounds is pushed onto each stack of `counted`.
    """

    head: "tuple[Step, ...]"
    condition: int
    body: "tuple[Step, ...]"
    counted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Push the values of `sources` onto a stack, for the gradient of a loop's round.

    Values of the side of a branch that did not run may be missing.
    """

    stack: int
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Pop the values that were pushed last, and store them in `targets`."""

    stack: int
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Pop a number of rounds from stack `counter`, see `Loop.counted`, and run `body` that often."""

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
        The steps of one call of the network.
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
        Layouts, if the network is split over devices.
    """

    kernel_graphs: tuple[KernelGraph, ...]
    steps: tuple[Step, ...]
    inputs: tuple[Parameter, ...]
    outputs: "tuple[int | Constant, ...]"
    slots: int
    stacks: int = 0
    name: str = ""
    sharding: "Sharding | None" = None
