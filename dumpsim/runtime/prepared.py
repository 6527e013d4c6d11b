"""Kernel graphs whose kernels are bound to memory once, for runs without listeners.

The task of a kernel looks up its operands, asks listeners and the fault plan, and stores the engine's results. Without
listeners and faults, everything but the computation is the same in every run. So such a run only calls a list of bound
kernels, and the virtual clock advances once for all tasks. Results, the clock and the overflow flag equal those of a
run with tasks.
"""

from collections.abc import Callable, Sequence

from dumpsim.device.device import COMPUTE_STREAM
from dumpsim.graph.program import Launch
from dumpsim.runtime.boundgraph import BoundGraph
from dumpsim.runtime.plan import GraphPlan
from dumpsim.runtime.unknown import HostArray

__all__ = ["Prepared"]

_HOST = -1  # stands for the host in a schedule of streams


def _schedule(plan: GraphPlan, host_ns: int) -> dict[int, int]:
    """Return when streams that are idle at 0 finish a plan.

    The host launches a task every `host_ns`. A task starts when it is launched, the one before it on its stream has
    ended, and the event that it waits for is recorded.
    """
    costs = {id(call.node): call.cost_ns for call in plan.calls}
    launches = plan.kernel_graph.launches or [Launch(stream=COMPUTE_STREAM, node=call.node) for call in plan.calls]
    ends: dict[int, int] = {}
    events: dict[int, int] = {}
    launched = 0
    for launch in launches:
        launched += host_ns
        start = max(launched, ends.get(launch.stream, launched))
        if launch.wait is not None:
            start = max(start, events[launch.wait])
        elif launch.record is not None:
            events[launch.record] = start
        else:
            start += costs[id(launch.node)]
        ends[launch.stream] = start
    ends[_HOST] = launched
    return ends


class Prepared:
    """A kernel graph that is bound to memory.

    Parameters
    ----------
    graph : BoundGraph
    """

    def __init__(self, graph: BoundGraph) -> None:
        device, plan, kernels = graph.device, graph.binding.plan, graph.kernels
        self.graph = graph
        looked = device.overflow is not None
        self._steps: list[tuple[Callable[[], object], tuple[Callable[[], bool], ...], int]] = [
            (run, finite if looked else (), at)
            for at, (run, finite) in enumerate(zip(kernels.runs, kernels.finite, strict=True))
            if run is not None
        ]
        prices = device.chip.prices
        self._upload_ns = sum(prices.copy_duration_ns(slot.nbytes) for slot in plan.inputs)
        self._download_ns = sum(prices.copy_duration_ns(slot.nbytes) for slot in plan.results)
        self._ends = _schedule(plan, prices.host_ns)
        self._launch_ns = self._ends.pop(_HOST)
        self._begin_ns = 0

    def launch(self, arguments: Sequence[HostArray]) -> None:
        """Copy the arguments, and advance the clock by the time that the launches take."""
        for at, target in self.graph.copied:
            target[...] = arguments[at]
        clock = self.graph.device.clock
        clock.advance(self._upload_ns)
        self._begin_ns = clock.now_ns
        clock.advance(self._launch_ns)

    def collect(self) -> list[HostArray]:
        """Run the kernels, and return copies of the results."""
        device, clock = self.graph.device, self.graph.device.clock
        with self.graph.kernels.guard():
            for run, checks, at in self._steps:
                run()
                for is_finite in checks:
                    if not is_finite():
                        if self.graph.status(at):
                            device.status.set()
                        break
        begin = self._begin_ns
        clock.advance(max(0, begin + max(self._ends.values(), default=0) - clock.now_ns))
        for number, end in self._ends.items():
            device.stream(number).tail_ns = min(begin + end, clock.now_ns)  # a wall clock does not jump
        device.synchronize([])
        clock.advance(self._download_ns)
        return self.graph.results()
