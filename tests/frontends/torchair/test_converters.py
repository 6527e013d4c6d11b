"""The table of converters against 1,087 conversions of the real ones."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch import fx  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from dumpsim.frontends.torchair._convert import Converter  # noqa: E402
from dumpsim.frontends.torchair._table import overloads  # noqa: E402
from tests.frontends.torchair.convertcases import agrees, converted, described, recorded  # noqa: E402

# the first recorder could not trace these; they were recorded later
_NO_KERNEL = "with arguments from the 'CPU' backend"

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def _no_logs():
    import logging

    logging.disable(logging.CRITICAL)  # torch logs what its fake tensors refuse
    yield
    logging.disable(logging.NOTSET)


def test_every_overload_of_the_record_has_a_rule_or_is_refused_there():
    rows = {row["op"] for row in recorded("converters")["rows"] if any("graph" in case for case in row["cases"])}
    assert rows - set(overloads()) == set()


@pytest.mark.parametrize("row", recorded("converters")["rows"], ids=lambda row: row["op"])
def test_conversions_are_those_of_the_real_converters(row):
    later = {row["op"] for row in recorded("further")["conversions"]}
    cases = [case for case in row["cases"] if not (row["op"] in later and _NO_KERNEL in case.get("error", ""))]
    wrong = {case["call"]: agrees(row, case) for case in cases}
    assert {call: ours for call, ours in wrong.items() if ours is not None} == {}


def test_the_record_has_1087_conversions():
    assert sum(len(row["cases"]) for row in recorded("converters")["rows"]) == 1087


@pytest.mark.parametrize("row", recorded("further")["conversions"], ids=lambda row: row["op"])
def test_conversions_that_were_recorded_later(row):
    """Operators without a kernel for processors, and products in all their forms."""
    assert row["cases"]
    for case in row["cases"]:
        ours = agrees(row, case)
        assert ours is None or case["error"].startswith(ours[: len(case["error"])]), case["call"]


def differing(row):
    wrong = {case["call"]: agrees(row, case) for case in row["cases"]}
    return {call: ours for call, ours in wrong.items() if ours is not None}


@pytest.mark.parametrize("row", recorded("random")["first"], ids=lambda row: row["op"])
def test_conversions_of_calls_drawn_at_random(row):
    """The first call of each form that the real converters make."""
    assert differing(row) == {}


@pytest.mark.slow
@pytest.mark.parametrize("row", recorded("random")["more"], ids=lambda row: row["op"])
def test_conversions_of_more_calls_drawn_at_random(row):
    assert differing(row) == {}


@pytest.mark.parametrize(
    ("bias", "is_part"), [("f16[4]", True), ("f16[1,4]", True), ("f16[1,1]", False), ("f16[2,4]", False)]
)
def test_a_row_is_the_bias_of_a_product_as_a_vector_is(bias, is_part):
    graph, results = converted("aten.addmm.default", f"{bias}, f16[2,3], f16[3,4]")
    text = described(graph, results)[0].partition("{")[0]
    assert text.startswith("MatMulV2(mat1, mat2, self)" if is_part else "MatMulV2(mat1, mat2)"), text


def test_the_number_of_elements_of_an_open_shape():
    gm = make_fx(lambda x: x.exp(), tracing_mode="symbolic")(torch.rand(3, 5))
    known = next(iter(gm.graph.nodes)).meta["val"]
    for overload in (torch.ops.aten.sym_numel.default, torch.ops.aten.sym_numel):
        graph = fx.Graph()
        given = graph.placeholder("self")
        node = graph.call_function(overload, (given,))
        given.meta["val"], node.meta["val"] = known, known.numel()
        graph.output((given,))
        converter = Converter("graph_1", strict=True)
        converter.capture(graph)
        found = described(converter.graph, ())[0].partition("; =>")[0]
        wanted = (
            "Shape(self){dtype=i32}; ReduceProdD(Shape){axes=[0], keep_dims=False}; Cast(ReduceProdD){dst_type=i64}"
        )
        assert found == wanted


def test_a_number_is_a_list_of_equal_numbers():
    name, text = "aten.avg_pool2d.default", "f32[1,2,4,4], {}, {}"
    assert described(*converted(name, text.format(2, 1))) == described(*converted(name, text.format([2, 2], [1, 1])))


def test_tensors_in_lists_are_inputs_of_what_the_real_converter_refuses():
    text, _ = described(*converted("aten.block_diag.default", "[f32[2,2], f32[1,3]]", strict=False))
    assert text == "BlockDiag(tensors0, tensors1)"


def test_the_gradient_of_a_transposed_convolution_is_a_convolution():
    shapes = "f32[1,3,5,5], f32[1,2,3,3], f32[2,3,3,3]"
    call = f"{shapes}, [3], [1, 1], [0, 0], [1, 1], True, [0, 0], 1, [True, False, False]"
    _, (first, *others) = converted("aten.convolution_backward.default", call)
    assert others == [None, None]
    node = first.node
    assert (node.type, [str(one) for one in node.inputs[:2]]) == ("Conv2D", ["grad_output:0", "weight:0"])
    assert not any(node.inputs[2:])
    assert node.attrs["offset_x"] == 0
    assert node.attrs["input_layout_info"] == {0: "NCHW", 1: "NCHW"}
    assert node.attrs["output_layout_info"] == {0: "NCHW"}


@pytest.mark.parametrize(("number", "kind"), [(0.5, torch.float64), (3, torch.int64)])
def test_numbers_of_the_captured_graph(number, kind):
    """A number is an input on the host, and an attribute of the module a Const."""
    graph = fx.Graph()
    given, scale = graph.placeholder("given"), graph.placeholder("scale")
    given.meta["val"], scale.meta["val"] = torch.ones(2, device="meta"), number
    fixed = graph.get_attr("inner.fixed")
    nodes = [graph.call_function(torch.ops.aten.mul.Tensor, (given, one)) for one in (scale, fixed)]
    for node in nodes:
        node.meta["val"] = torch.ones(2, device="meta")
    graph.output(tuple(nodes))
    owner = torch.nn.Module()
    owner.inner = torch.nn.Module()
    owner.inner.fixed = 7.0
    made = Converter("graph_1").convert(graph, owner)
    data = next(node for node in made.of_type("Data") if node.name == "scale")
    assert (data.outputs[0].dtype, data.outputs[0].shape, data.attrs["_host_tensor"]) == (kind, (), True)
    assert [node.value.item() for node in made.of_type("Const")] == [7.0]
