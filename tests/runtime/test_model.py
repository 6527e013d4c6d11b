"""A graph of GE's pipeline through the session: a model without IR text."""

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError
from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.graph.builder import NodeMaker
from dumpsim.graph.graph import Graph, Parameter
from dumpsim.graph.pipeline import compile_graph
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session

X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)


def captured():
    graph = Graph(name="net")

    def place(node):
        node.full_name = f"{node.op_type}_{len(graph.trail)}"
        graph.trail.append(node)

    x = Parameter(name="x", abstract=TensorType(dtype=dtype("float32"), shape=(3, 4)))
    graph.parameters.append(x)
    graph.output = NodeMaker(find, place).emit("Neg", NodeMaker(find, place).emit("ReLU", x))
    return graph


def test_events_of_a_graph_without_text_name_the_model_and_its_operators(recorder):
    session = Session(RunSettings(chip="910B"), environment={})
    heard = recorder()
    session.add_tap(heard)
    options = CompileOptions(pipeline="ge")
    for number in range(2):
        program = compile_graph(captured(), session.ids, find, options)
        session.compile(program, options)
        (result,) = session.execute(program, [X])
        np.testing.assert_array_equal(result, -np.maximum(X, 0))
        event, _ = heard.of("graph")[number]
        assert event.doc is None
        assert event.constants == ()
        assert (event.model_name, event.model_id) == (f"kernel_graph{number}", number + 1)
        assert event.execution_order == ("ReLU_0Neg_1",)
    tasks = [event for event, _ in heard.of("after") if event.op_type != "Data"]
    assert [task.model_id for task in tasks] == [1, 2]
    assert tasks[0].original_names == ("ReLU_0", "Neg_1")


def test_a_chip_for_runs_on_its_own_gives_way_to_the_target_of_the_script():
    session = Session(RunSettings(chip="910B"), environment={})
    assert (session.target, session.chip.name) == ("Ascend", "910B")
    session.configure(target="CPU")
    assert (session.target, session.chip.target) == ("CPU", "CPU")
    both = Session(RunSettings(chip="910B", device="cpu"), environment={})
    with pytest.raises(BadInputError):
        _ = both.chip
