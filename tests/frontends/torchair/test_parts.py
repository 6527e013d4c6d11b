"""Single functions of the front end against PyTorch and the vendor's conventions."""

import itertools
from datetime import datetime

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

import numpy as np  # noqa: E402

from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.torchair import fx_dumper, graph_dumper  # noqa: E402
from dumpsim.frontends.torchair._dispatch import _masked  # noqa: E402
from dumpsim.frontends.torchair._ge import GeGraph, Ref  # noqa: E402
from dumpsim.frontends.torchair._product import _gradients  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from tests.dumprun import cli  # noqa: E402

pytestmark = pytest.mark.torch

SHAPES = [
    ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4,)), ((2, 3, 4), (4, 5)),
    ((4,), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5)), ((6, 2, 3, 4), (4, 5)), ((3, 4), (6, 2, 4, 5)),
]  # fmt: skip


@pytest.fixture
def session():
    made = Session(RunSettings(), environment={})
    Session.use(made)
    return made


@pytest.mark.parametrize(("left", "right"), SHAPES)
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
