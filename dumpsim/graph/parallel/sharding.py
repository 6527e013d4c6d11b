"""What sharding found out about a network: layouts by node, and the graph before and after."""

from dataclasses import dataclass, field

from dumpsim.core.irdoc import IrDoc
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.graph.parallel.scheme import Strategy
from dumpsim.graph.parallel.settings import Settings

__all__ = ["Sharding"]


@dataclass(eq=False, slots=True, kw_only=True)
class Sharding:
    """The table beside a sharded graph.

    Attributes
    ----------
    settings : Settings
    begin, end : Graph
        Snapshots before and after the pass, as ``step_parallel_begin.ir`` and ``step_parallel_end.ir`` print them. In
        `end`, nodes that were there before keep their global types, and those that the pass inserts have none.
    layouts, inputs : dict of Node to tuple of TensorLayout
        Layouts of the outputs and of the tensor operands of the operators that are cut; by the nodes of the compiled
        graph and by those of `end`.
    strategies : dict of Node to tuple
        The strategy of each of these operators, as the script gave it or as it was generated.
    reductions : dict of Node to str
        The kind of the communication after an operator whose results are terms: ``sum``, ``mean``, ``scatter`` ...
    strategies_by_name : dict of str to tuple
        The same by the full names of the operators, the virtual data set among them.
    arguments : dict of Parameter to TensorLayout
        Layouts of the network's arguments.
    parameters : dict of str to TensorLayout
        Layouts of the weights by name.
    weights : list of Parameter
        These weights.
    groups : dict of str to tuple of int
        The ranks of the communication groups that the pass uses, in the order of their first use.
    texts : tuple of (str, IrDoc)
        The stages that are printed, where somebody asked for them.
    """

    settings: Settings
    begin: Graph
    end: Graph
    layouts: dict[Node, tuple[TensorLayout, ...]] = field(default_factory=dict)
    inputs: dict[Node, tuple[TensorLayout, ...]] = field(default_factory=dict)
    strategies: dict[Node, Strategy] = field(default_factory=dict)
    reductions: dict[Node, str] = field(default_factory=dict)
    strategies_by_name: dict[str, Strategy] = field(default_factory=dict)
    arguments: dict[Parameter, TensorLayout] = field(default_factory=dict)
    parameters: dict[str, TensorLayout] = field(default_factory=dict)
    weights: list[Parameter] = field(default_factory=list)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    texts: tuple[tuple[str, IrDoc], ...] = ()
