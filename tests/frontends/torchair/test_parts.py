"""Single functions of the front end against PyTorch and the vendor's conventions."""

import itertools
from datetime import datetime

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

import numpy as np  # noqa: E402

from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.torchair import fx_dumper, graph_dumper  # noqa: E402
from dumpsim.frontends.torchair._dispatch import _masked  # noqa: E402
from dumpsim.frontends.torchair._ge import GE_NUMBERS, GE_TYPES, GeGraph, Ref  # noqa: E402
from dumpsim.frontends.torchair._helpers import HELPERS, SHAPES  # noqa: E402
from dumpsim.frontends.torchair._product import _gradients  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from tests.dumprun import cli  # noqa: E402
from tests.frontends.torchair.gevalues import TABLE  # noqa: E402

pytestmark = pytest.mark.torch

FACTORS = [
    ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4,)), ((2, 3, 4), (4, 5)),
    ((4,), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5)), ((6, 2, 3, 4), (4, 5)), ((3, 4), (6, 2, 4, 5)),
]  # fmt: skip


@pytest.fixture
def session():
    made = Session(RunSettings(), environment={})
    Session.use(made)
    return made


@pytest.mark.parametrize(("left", "right"), FACTORS)
def test_gradients_of_a_product_are_those_of_pytorch(left, right):
    torch.manual_seed(1)
    operands = [torch.randn(shape, requires_grad=True) for shape in (left, right)]
    product = torch.matmul(*operands)
    grad = torch.randn(product.shape)
    wanted = torch.autograd.grad(product, operands, grad)
    for asked in itertools.product((True, False), repeat=2):
        found = _gradients(grad, *(operand.detach() for operand in operands), False, asked)
        for value, real, is_asked in zip(found, wanted, asked, strict=True):
            if is_asked:
                assert value.shape == real.shape
                torch.testing.assert_close(value, real)
            else:
                assert value is None


@pytest.mark.parametrize(("count", "size"), [(1, 16), (128, 16), (129, 32), (1280, 160)])
def test_a_mask_of_dropout_is_packed_in_pieces_of_16_bytes(count, size):
    value, mask = _masked(torch.ones(count), 0.5, True)
    assert (value.shape, mask.shape, mask.dtype) == ((count,), (size,), torch.uint8)
    for share, train in ((0.5, False), (0, True), (0, None)):
        value, mask = _masked(torch.ones(count), share, train)
        assert value.tolist() == [1.0] * count
        assert mask.dtype == torch.bool
        assert mask.all()
    assert _masked(torch.ones(4), 0.5, None)[1].dtype == torch.uint8


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("indices", [1, [2], [1, 0, 1], [[0, 1], [1, 1]]])
def test_a_gather_takes_along_an_axis_as_numpy_does(shape, indices):
    x, at = torch.arange(float(np.prod(shape))).reshape(shape), torch.tensor(indices)
    for axis in range(-len(shape), len(shape)):
        if np.max(indices) < shape[axis]:
            wanted = np.take(x.numpy(), indices, axis)
            for one in (torch.tensor(axis), torch.tensor([axis])):
                np.testing.assert_array_equal(HELPERS["GatherV2"](x, at, one, batch_dims=0).numpy(), wanted)
    if np.max(indices) < shape[0]:
        np.testing.assert_array_equal(HELPERS["Gather"](x, at, batch_dims=0).numpy(), np.take(x.numpy(), indices, 0))


X, Y = torch.tensor([[1.0, -2.0, 4.0], [3.0, 0.5, -1.5]]), torch.tensor([[2.0, 3.0, -1.0], [4.0, 0.25, 8.0]])
I = torch.tensor
_PRODUCTS = [((X, Y.T), {}), ((X[:1], Y.T), {})]
_REDUCTIONS = [((X, I(at)), {"keep_dims": keep}) for at in ([0], [1], [0, 1], [-1]) for keep in (True, False)]
_UNARY = [((X,), {})]
_BINARY = [((X, Y), {}), ((X, Y[0]), {}), ((X[1], Y), {})]
# operands and attributes for the helpers; those of the other types are two numbers
SAMPLES = {
    **dict.fromkeys(("Abs", "Identity", "Neg", "Reciprocal", "ReduceProdD", "TensorMove", "ZerosLike"), _UNARY),
    **dict.fromkeys(("MatMul", "MatMulV2"), _PRODUCTS),
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceSum"), _REDUCTIONS),
    "BatchMatMul": [((X.expand(4, 2, 3), Y.T.expand(4, 3, 2)), {}), ((X[None], Y.T[None]), {})],
    "Bitcast": [((X,), {"type": torch.int32}), ((X.half(),), {"type": torch.int16})],
    "BroadcastTo": [((X[0], I([2, 3])), {}), ((X[:, :1], I([4, 2, 3])), {})],
    "Cast": [((X,), {"dst_type": one}) for one in (torch.int32, torch.bool, torch.float16)],
    "ConcatV2": [((X, Y, I(at)), {"N": 2}) for at in (0, 1, -1)]
    + [((X, Y, X, I(1)), {"N": 3}), ((I(0), I([4, 5]), I(0), I(0)), {"N": 3})],
    "Empty": [((I(shape),), {"dtype": kind}) for shape in ([2, 3], [4]) for kind in (torch.int8, torch.float32)],
    "Equal": [((X, Y), {}), ((X, X), {}), ((X[1], X), {})],
    "Expand": [((X[0], I([2, 3])), {}), ((X.mean(1), I([2, 3])), {}), ((X.mean(1, True), I([2, 3])), {})],
    "ExpandDims": [((X, I(at)), {}) for at in (0, 1, 2, -1)],
    "Fill": [((I([2, 3]), I(2.5)), {}), ((I([], dtype=torch.int64), I(True)), {}), ((I([0, 2]), I(1)), {})],
    "FlattenV2": [((X[None],), {"axis": first, "end_axis": last}) for first, last in ((0, -1), (1, 2), (0, 1))],
    "Gather": [((I([5, 7, 9]), I(at)), {}) for at in range(3)],
    "GatherV2": [((X, I(at), I(axis)), {}) for at in (1, [1, 0, 1], [[0, 1], [1, 1]]) for axis in (0, 1, -1)],
    "MaskedFill": [((X, X > Y, I(7.0)), {}), ((X, X[0] > 0, I(-1.0)), {})],
    "Muls": [((X,), {"value": 2.5})],
    "Pack": [((X, Y), {"N": 2, "axis": at}) for at in (0, 1, 2, -1)]
    + [((I(3, dtype=torch.int32), I(4)), {"N": 2, "axis": 0})],
    "Range": [((I(0), I(5), I(1)), {}), ((I(2), I(9), I(3)), {}), ((I(1.0), I(2.0), I(0.25)), {})],
    "RealDiv": [*_BINARY, ((X, I(2)), {}), ((I([8, 6]), I(2)), {})],
    "Reshape": [((X, I(to)), {}) for to in ([3, 2], [6], [-1], [1, 2, 3, 1])],
    "Rsqrt": [((X.abs(),), {})],
    "Shape": [((one,), {"dtype": to}) for one in (X, X[0], X[0, 0]) for to in (torch.int32, torch.int64)],
    "Sort": [((X,), {"axis": at, "descending": down, "stable": False}) for at in (0, 1) for down in (True, False)],
    "Squeeze": [((X[None, :, None],), {"axis": at}) for at in ([0], [2], [0, 2], [-2], [])],
    "StridedSliceV2": [
        ((X, I([low]), I([high]), I([at]), I([step])), {})
        for low, high, at, step in ((0, 1, 0, 1), (1, 3, 1, 1), (0, 3, 1, 2), (-2, -1, -1, 1))
    ],
    "Transpose": [((X, I([1, 0])), {}), ((X[None], I([2, 0, 1])), {})],
    "Unsqueeze": [((X,), {"axes": at}) for at in ([0], [2], [-1], [0, 1], [3, 0], [-1, 0])],
}
# the types that no converted graph of the neighbouring tests has, by numpy
NUMPY = {
    "Abs": np.abs,
    "BatchMatMul": np.matmul,
    "Bitcast": lambda x, *, type: x.view(str(type).removeprefix("torch.")),
    "Equal": np.equal,
    "ExpandDims": lambda x, axis: np.expand_dims(x, int(axis)),
    "FlattenV2": lambda x, *, axis, end_axis: x.reshape(
        (*x.shape[:axis], -1, *x.shape[axis:][end_axis % 3 - axis + 1 :])
    ),
    "GatherV2": lambda x, at, axis: np.take(x, at, int(axis)),
    "MaskedFill": lambda x, mask, value: np.where(mask, value, x),
    "MatMul": np.matmul,
    "Neg": np.negative,
    "Reciprocal": lambda x: 1 / x,
    "ReduceMax": lambda x, axes, *, keep_dims: np.max(x, tuple(axes), keepdims=keep_dims),
    "ReduceProdD": np.prod,
    "Rsqrt": lambda x: np.power(x, np.float32(-0.5)),
}


@pytest.mark.parametrize("kind", sorted(HELPERS.keys() & TABLE.keys()))
def test_helpers_compute_what_their_nodes_mean(kind):
    """Wherever a converted graph of the neighbouring tests has the type; both tables are written down apart."""
    for operands, attrs in SAMPLES.get(kind, _BINARY):
        found, wanted = HELPERS[kind](*operands, **attrs), TABLE[kind](*operands, **attrs)
        for ours, real in zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]:
            assert ours.shape == real.shape
            assert ours.to(real.dtype).tolist() == real.tolist()


@pytest.mark.parametrize("kind", sorted(NUMPY))
def test_helpers_compute_what_numpy_does(kind):
    for operands, attrs in SAMPLES[kind]:
        wanted = NUMPY[kind](*(one.numpy() for one in operands), **attrs)
        np.testing.assert_allclose(HELPERS[kind](*operands, **attrs).numpy(), wanted, rtol=1e-6, strict=True)


def test_every_helper_is_checked():
    for (shape,), attrs in SAMPLES["Empty"]:  # its elements may be anything
        made = HELPERS["Empty"](shape, **attrs, init=False)
        assert (list(made.shape), made.dtype) == (shape.tolist(), attrs["dtype"])
    assert HELPERS.keys() == (HELPERS.keys() & TABLE.keys()) | NUMPY.keys() | {"Empty"}


@pytest.mark.parametrize("kind", sorted(HELPERS))
def test_the_shape_of_a_helper_follows_from_shapes_and_from_the_operands_that_the_table_names(kind):
    for operands, attrs in SAMPLES.get(kind, _BINARY):
        known = {at % len(operands) for at in SHAPES.get(kind, ())}
        given = [one if at in known else one.to("meta") for at, one in enumerate(operands)]
        found, wanted = (HELPERS[kind](*one, **attrs) for one in (given, operands))
        for ours, real in zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]:
            assert (ours.shape, ours.dtype) == (real.shape, real.dtype)


# GE's numbers of data types, as its header types.h and acl's have them
NUMBERS = {
    "DT_FLOAT": 0, "DT_FLOAT16": 1, "DT_INT8": 2, "DT_INT32": 3, "DT_UINT8": 4, "DT_INT16": 6, "DT_UINT16": 7,
    "DT_UINT32": 8, "DT_INT64": 9, "DT_UINT64": 10, "DT_DOUBLE": 11, "DT_BOOL": 12, "DT_STRING": 13,
    "DT_COMPLEX64": 16, "DT_COMPLEX128": 17, "DT_BF16": 27,
}  # fmt: skip
SPECIAL = {"DT_FLOAT": "float32", "DT_DOUBLE": "float64", "DT_BF16": "bfloat16"}


def test_data_types_have_the_names_and_numbers_of_ge():
    assert GE_TYPES.keys() == GE_NUMBERS.keys()
    for kind, name in GE_TYPES.items():
        assert kind == getattr(torch, SPECIAL.get(name, name.removeprefix("DT_").lower()))
        assert GE_NUMBERS[kind] == NUMBERS[name]
    named = {getattr(torch, SPECIAL.get(name, name.removeprefix("DT_").lower()), None) for name in NUMBERS}
    assert GE_TYPES.keys() == named - {None, torch.uint16, torch.uint32}


def test_outputs_and_names_of_nodes():
    graph = GeGraph("g")
    first = graph.const(1, torch.int64)
    assert first[0] == Ref(first.node, 0)
    for index in (-1, 1):
        with pytest.raises(IndexError):
            first[index]
    names = [graph.add("Add", [first, first], {}).name for _ in range(3)]
    assert names == ["Add", "Add_1", "Add_2"]
    graph.remove(graph.nodes[-1])
    assert graph.add("Add", [first, first], {}).name == "Add_3"
    graph.add("Data", [], name="Add_4")  # a name that an input has is left out
    assert [graph.add("Add", [first, first], {}).name for _ in range(2)] == ["Add_5", "Add_6"]


def test_a_list_of_symbols_only_says_so():
    graph = GeGraph("g")
    symbol = Ref(graph.add("Data", [], {"_host_tensor": True}))
    base = {"N": 2, "axis": 0, "_force_unknown_shape": True}
    assert graph.pack([symbol, symbol]).node.attrs == base | {"_inputs_all_sym": True}
    mixed = graph.pack([symbol, 3], dtype=torch.int64)
    assert (mixed.node.attrs, mixed.output.dtype) == (base, torch.int64)
    assert mixed.node.inputs[1].node.value.item() == 3


def test_values_that_are_saved_as_numpy_has_them():
    assert fx_dumper._array(torch.tensor([1.5], dtype=torch.bfloat16)).dtype == np.float32
    assert fx_dumper._array(torch.tensor([1.5], dtype=torch.float16)).dtype == np.float16
    assert fx_dumper._array(3).tolist() == 3
    assert fx_dumper._array([[1], [2, 3]]).tolist() == "[[1], [2, 3]]"


def test_values_that_a_summary_shows():
    value = torch.zeros(2, 3)
    assert graph_dumper._shown((value, [value, 2])) == "(float32(2, 3), [float32(2, 3), 2])"
    assert graph_dumper._shown(None) == "None"
    assert [graph_dumper._dim(one) for one in (4, 0, None)] == [4, 0, -1]


@pytest.mark.parametrize("stamp", [fx_dumper._stamp, graph_dumper._stamp])
def test_stamps_are_the_time_of_the_device(stamp, session):
    text = stamp()
    assert len(text) == 20
    seen = datetime.strptime(text + "+0000", "%Y%m%d%H%M%S%f%z").timestamp()
    assert 0 <= session.clock.now_ns / 1e9 - seen < 1


def test_what_a_config_has_and_what_was_changed():
    config = CompilerConfig()
    assert {"debug", "dump_config", "mode", "changed"} <= set(dir(config))
    assert config.changed() == []
    config.mode = "reduce-overhead"
    config.dump_config.enable_dump = True
    assert sorted(config.changed()) == ["dump_config.enable_dump", "mode"]


DEVICE = """
import torch_npu
from dumpsim.frontends.torchair._state import state

npu = torch_npu.npu
assert npu.get_device_name().startswith("Ascend910")
before = npu.memory_allocated()
buffer = state().session.device.memory.allocate(1 << 20)
assert npu.memory_allocated() - before >= 1 << 20
assert npu.memory_reserved() == npu.memory_allocated()
assert npu.max_memory_allocated() >= npu.memory_allocated()
event = npu.Event(enable_timing=True)
event.record()
event.synchronize()
assert event.query() is True
assert event.elapsed_time(event) == 0
"""


def test_the_device_of_a_rank(tmp_path):
    """In a program of its own: importing torch_npu gives functions of torch the names of the device."""
    script = tmp_path / "script.py"
    script.write_text(DEVICE)
    cli(tmp_path, "run", str(script))
