"""Races between launched tasks: graphs with collectives have none, asynchronous operators those of the script."""

from dataclasses import replace

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import StreamHazard
from dumpsim.core.settings import RunSettings
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session
from dumpsim.world import current, launch

CHECKED = RunSettings(check_races=True, quiet=True, manifest=None)
KIND = TensorType(dtype=dtype("float32"), shape=(4, 2))
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def captured():
    """A sum of the rank's own and of all ranks' tensors, with work beside the collective."""
    graph = Graph(name="sums")
    x = Parameter(name="x", abstract=KIND)
    graph.parameters.append(x)

    def node(kind, *operands, **attrs):
        made = Node(op_type=kind, operands=list(operands), abstract=KIND, attrs=attrs)
        graph.trail.append(made)
        return made

    mine = node("Mul", x, x)
    total = node("AllReduce", mine, op="sum", group="hccl_world_group")
    aside = node("Sub", mine, x)
    graph.output = node("Add", total, node("Add", aside, mine))
    return graph


def test_a_graph_with_a_collective_is_ordered():
    def main():
        session = Session.current()
        program = session.build(captured())
        graph = program.kernel_graphs[0]
        waits = sum(launch.wait is not None for launch in graph.launches)
        found = [session.execute(program, [X + current().rank])[0] for _ in range(2)]
        return waits, found[1]

    for rank, (waits, found) in enumerate(launch(main, ranks=2, settings=CHECKED)):
        mine = (X + rank) ** 2
        assert waits == 2
        np.testing.assert_array_equal(found, X**2 + (X + 1) ** 2 + mine - (X + rank) + mine)


@pytest.mark.parametrize("dropped", [0, 1])
def test_a_graph_without_one_of_its_events_is_not(dropped):
    def main():
        session = Session.current()
        program = session.build(captured())
        graph = program.kernel_graphs[0]
        waits = [launch for launch in graph.launches if launch.wait is not None]
        left = tuple(launch for launch in graph.launches if launch is not waits[dropped])
        session.execute(replace(program, kernel_graphs=(replace(graph, launches=left),)), [X])

    with pytest.raises(StreamHazard, match="AllReduce-op"):
        launch(main, ranks=2, settings=CHECKED)


def sent_and_written(wait):
    """Add to a tensor that is being sent."""
    session, rank = Session.current(), current().rank
    tensor = X.copy()
    if rank == 1:
        wanted = {"src_rank": 0, "shape": (4, 2), "dtype": dtype("float32"), "sr_tag": 0}
        return session.run_op(find("Receive"), [None], wanted)[0]
    pending = session.start_op(find("Send"), [tensor], {"dest_rank": 1, "sr_tag": 0})
    if wait:
        pending.wait()
    session.run_op(find("AssignAdd"), [tensor, np.ones_like(tensor)])
    return pending.wait()


def test_a_tensor_that_is_written_while_it_is_sent():
    with pytest.raises(StreamHazard, match=r"Send.*AssignAdd|AssignAdd.*Send"):
        launch(sent_and_written, ranks=2, args=[False], settings=CHECKED)
    _, received = launch(sent_and_written, ranks=2, args=[True], settings=CHECKED)
    np.testing.assert_array_equal(received, X)


def test_races_are_only_detected_on_request():
    launch(sent_and_written, ranks=2, args=[False])
