"""A cache of plans that ranks share, by graph, chip, options and shapes of the arguments."""

from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from dumpsim.core.options import CompileOptions
from dumpsim.device.chip import Chip
from dumpsim.graph.program import KernelGraph
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.plan import GraphPlan
from dumpsim.runtime.planner import plan_graph

__all__ = ["Plans"]


class Plans:
    """The plans of a world, cached while any rank uses them."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[object, ...], GraphPlan] = WeakValueDictionary()

    def plan(
        self,
        kernel_graph: KernelGraph,
        chip: Chip,
        options: CompileOptions,
        find: Callable[[str], OpDef],
        shapes: Sequence[tuple[int, ...]] | None = None,
    ) -> GraphPlan:
        """Return the plan of a kernel graph, created on first use; for the parameters see `plan_graph`."""
        # a plan keeps its graph alive, so no other graph can have this id while the entry exists
        key = (id(kernel_graph), chip, options, find, None if shapes is None else tuple(shapes))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = plan_graph(kernel_graph, chip, options, find, shapes)
        return found
