"""Pipelines: the table, its stages one by one, and the output of each kind of pipeline."""

import numpy as np
import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.core.options import CompileOptions
from dumpsim.device.chip import chip
from dumpsim.graph.compilation import Compilation
from dumpsim.graph.graph import Graph
from dumpsim.graph.pipeline import PASSES, PIPELINES, WHOLE_GRAPH, compile_graph, passes_of
from dumpsim.ops.table import find
from dumpsim.runtime.ids import Ids

MINDSPORE = ("kernel-by-kernel", "ascend", "ascend-private", WHOLE_GRAPH)


def options(pipeline):
    return CompileOptions(
        pipeline=pipeline,
        release="2.10",
        cube_ops=chip("910B").cube_ops,
        cube_dtype="float16",
        ge_graph="2" if pipeline not in MINDSPORE[:3] else "",
    )


def build(net):
    """A network as a front end records it: a convolution, a sum that has to be expanded, a value made twice."""
    x, w = net.input("x", (2, 3, 8, 8)), net.weight("conv.weight", np.ones((4, 3, 3, 3), np.float32))
    y = net.op("ReLU", net.op("Conv2D", x, w, out_channel=4, kernel_size=(3, 3), pad_mode="same"))
    net.give(net.op("Add", net.op("Exp", y), net.op("Exp", y)), net.op("SumExt", y, None, False))
    for node in net.graph.trail:
        node.full_name = f"Default/{node.op_type}" if node.op_type not in ("MakeTuple",) else ""
    return net.graph


def compilation(graph, pipeline):
    return Compilation(captured=graph, numbers=Ids(), find=find, options=options(pipeline))


def names(order):
    return [node.full_name for node in order]


def test_a_pass_has_one_name_and_every_pipeline_ends_with_a_program_of_known_passes():
    assert all(name == one.name for name, one in PASSES.items())
    assert {name for passes in PIPELINES.values() for name in passes} == set(PASSES)
    for pipeline, passes in PIPELINES.items():
        assert len(passes) == len(set(passes)), pipeline
        assert [one.name for one in passes_of(pipeline)] == list(passes)


def test_an_unknown_pipeline_is_refused_with_the_known_ones():
    with pytest.raises(BadInputError, match="unknown pipeline 'hole-graph'") as error:
        compile_graph(Graph(), Ids(), find, CompileOptions(pipeline="hole-graph"))
    assert WHOLE_GRAPH in str(error.value)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_stages_one_by_one_give_the_program_of_the_whole_pipeline(make_net, pipeline):
    whole = compile_graph(build(make_net()), Ids(), find, options(pipeline))
    state = compilation(build(make_net()), pipeline)
    for one in passes_of(pipeline):
        one.run(state)
    staged = state.program()
    assert (staged.steps, staged.slots, staged.name) == (whole.steps, whole.slots, whole.name)
    for mine, its in zip(staged.kernel_graphs, whole.kernel_graphs, strict=True):
        assert names(mine.order) == names(its.order)
        assert mine.doc == its.doc
        assert mine.stages == its.stages
        assert (mine.model_name, mine.model_id) == (its.model_name, its.model_id)


def test_a_stage_can_be_inspected_alone(make_net):
    state = compilation(build(make_net()), "ascend")
    seen = {}
    for one in passes_of("ascend"):
        one.run(state)
        trail = state.captured.trail if state.form is None else state.form.root.trail
        drafted = [node for draft in state.drafts for node in draft.graph.nodes()]
        seen[one.name] = [node.op_type for node in drafted or trail]
    assert seen["simplify"].count("Exp") == 2
    assert seen["merge-equal"].count("Exp") == 1
    assert "Load" not in seen["merge-equal"]
    assert {"Load", "UpdateState", "Depend"} <= set(seen["add-monads"])
    assert "SumExt" in seen["add-monads"]
    assert "SumExt" not in seen["expand-composites"]


@pytest.mark.parametrize("pipeline", MINDSPORE)
def test_the_pipelines_of_mindspore_write_ir_text(make_net, pipeline):
    (graph,) = compile_graph(build(make_net()), Ids(), find, options(pipeline)).kernel_graphs
    assert graph.doc is not None
    assert graph.doc.name == "kernel_graph0"
    types = [node.op_type for node in graph.doc.nodes]
    assert ("TransData" in types) is (pipeline == "ascend-private")
    assert (graph.model_name, graph.model_id) == (("kernel_graph0", 1) if pipeline == WHOLE_GRAPH else ("", 0))


def test_inserted_casts_are_marked_as_those_of_the_back_end(make_net):
    graph = build(make_net())
    (made,) = compile_graph(graph, Ids(), find, options("ascend-private")).kernel_graphs
    casts = [node for node in made.order if node.op_type == "Cast"]
    assert casts
    assert all(node.text.attrs["is_backend_cast"] is True for node in casts)
    assert all("is_backend_cast" not in node.text.attrs for node in made.order if node.op_type != "Cast")


@pytest.mark.parametrize("pipeline", ["ge", "ge-private"])
def test_the_pipelines_of_ge_need_neither_text_nor_side_effects(make_net, pipeline):
    net = make_net()
    x = net.input("x", (4, 8))
    y = net.op("ReLU", net.op("Dense", x, net.weight("w", np.ones((8, 8), np.float32)), None))
    net.give(y)
    ids = Ids()
    program = compile_graph(net.graph, ids, find, options(pipeline))
    (graph,) = program.kernel_graphs
    assert graph.doc is None
    assert all(node.text is None for node in graph.order)
    assert ids.next_cnode == Ids().next_cnode
    assert (graph.model_name, graph.model_id) == ("kernel_graph0", 1)
    assert [node.op_type for node in graph.order if node.op_type not in ("TransData", "Cast")] == ["MatMulV2", "Relu"]
    assert any(node.op_type in ("TransData", "Cast") for node in graph.order) is (pipeline == "ge-private")
    assert [name for name, _ in graph.stages] == ["PreRunBegin", "Build"]
    assert (program.inputs, program.outputs, program.slots) == ((x,), (1,), 2)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_first_kernel_graph_is_the_root_of_all(make_net, pipeline):
    graphs = compile_graph(build(make_net()), Ids(), find, options(pipeline)).kernel_graphs
    assert [one.is_root for one in graphs] == [at == 0 for at in range(len(graphs))]
    assert {one.root_graph_id for one in graphs} == {graphs[0].graph_id}
    assert compilation(Graph(), pipeline).program().kernel_graphs == ()
