"""What a further rank of a network costs beside its tensors: Python objects, resident memory, processor time.

    python tests/bench/bench_ranks.py [--kernels N] [--weights N] [--ranks N] [--private]

A chain of kernels on small tensors, some of which are weights, runs in each rank of a world. The figures are those of
the second and later ranks; the device itself, which every rank has whatever it runs, is counted apart. ``--private``
gives each rank a world of its own, as processes have: nothing is shared. Before plans were shared, LeNet with its 45
kernels took 845 kB in each rank.
"""

import argparse
import gc
import os
import tracemalloc
from time import thread_time

import numpy as np

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.settings import RunSettings
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, World

KIND = TensorType(dtype=dtype("float32"), shape=(16,))
X = np.ones(16, np.float32)


class Holder:
    """A weight's value on the host."""

    def __init__(self) -> None:
        self._array = np.zeros(16, np.float32)


def captured(kernels: int, holders: list[Holder]) -> Graph:
    """A network as a front end captures it."""
    weights = len(holders)
    graph = Graph(name="chain")
    value = argument = Parameter(name="x", abstract=KIND)
    graph.parameters.append(argument)
    held = [
        Parameter(name=f"w{at}", abstract=KIND, is_weight=True, has_default=True, storage=holder)
        for at, holder in enumerate(holders)
    ]
    graph.parameters += held
    for at in range(kernels):
        other = held[at * weights // kernels] if weights and at % (kernels // weights) == 0 else argument
        value = Node(op_type="Add", operands=[value, other], abstract=KIND)
        graph.trail.append(value)
    graph.output = value
    return graph


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def opened(context: RankContext) -> Session:
    """The session of a rank with its device."""
    return context.run(_open)


def _open() -> Session:
    session = Session.current()
    session.device.stream(0)
    return session


def add(kernels: int, holders: list[Holder]) -> None:
    """Build the network in the rank that runs, and run it twice."""
    session = Session.current()
    program = session.build(captured(kernels, holders))
    for _ in range(2):
        session.execute(program, [X])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=500)
    parser.add_argument("--weights", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=100)
    parser.add_argument("--private", action="store_true")
    options = parser.parse_args()
    world = World(ranks=options.ranks + 2)
    environment = {"DUMPSIM_RUN": RunSettings().to_text()}
    contexts = [
        RankContext(
            rank=rank, size=options.ranks + 2, environment=environment, world=None if options.private else world
        )
        for rank in range(options.ranks + 2)
    ]
    print(
        f"{options.kernels} kernels, {options.weights} weights; {'private worlds' if options.private else 'one world'}"
    )
    holders = [[Holder() for _ in range(options.weights)] for _ in contexts]  # the script's own
    contexts[0].run(add, options.kernels, holders[0])
    # one further rank
    tracemalloc.start()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    opened(contexts[1])
    gc.collect()
    between = tracemalloc.get_traced_memory()[0]
    contexts[1].run(add, options.kernels, holders[1])
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    print(f"a further rank: device {(between - before) / 1e3:.1f} kB, network {(after - between) / 1e3:.1f} kB")
    # many
    for context in contexts[2:]:
        opened(context)
    gc.collect()
    before = resident()
    begin = thread_time()
    for context, held in zip(contexts[2:], holders[2:], strict=True):
        context.run(add, options.kernels, held)
    seconds = thread_time() - begin
    gc.collect()
    used = resident() - before
    each = f"{used / options.ranks / 1e3:.1f} kB resident and {1e3 * seconds / options.ranks:.1f} ms each"
    print(f"{options.ranks} ranks: {each} (build and two runs)")


if __name__ == "__main__":
    main()
