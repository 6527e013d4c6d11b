"""Steps are dropped on overflow, on chips with and without saturation."""

import copy

import numpy as np
import pytest
from inprocess import fresh

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.frontends.mindspore import Tensor, amp, context, nn
from dumpsim.runtime.session import Session


@pytest.fixture(params=["910A", "910B"])
def session(request, monkeypatch):
    """A fresh process on Ascend."""
    monkeypatch.setenv(VARIABLE, RunSettings(chip=request.param, manifest=None).to_text())
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    return Session.current()


def kernels(session):
    return {n.op_type for e in session.executors() for g in e.program.kernel_graphs for n in g.order}


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_a_step_with_overflow_is_dropped_and_the_scale_halved(session, mode):
    context.set_context(mode=mode)
    network = nn.Dense(4, 1, weight_init="ones", bias_init="zeros")
    optimizer = nn.SGD(network.trainable_params(), 0.1)
    # the loss is 64, its gradients 16 and 16 * 2 = 2 ** 5: scaled by 2 ** 122, they still fit in float32; scaled by
    # 2 ** 10, in float16, in which the 910A multiplies matrices
    fits = 10 if session.chip.name == "910A" else 122
    manager = amp.DynamicLossScaleManager(2.0 ** (fits + 4), 2, 1000)
    step = amp.build_train_network(network, optimizer, nn.MSELoss(), loss_scale_manager=manager)
    data, label = Tensor(np.full((1, 4), 2.0, np.float32)), Tensor([[0.0]])
    scales, weights = [], []
    for _ in range(8):
        loss, overflow, scale = step(data, label)
        scales.append((bool(overflow), float(scale)))
        weights.append(float(network.weight[0, 0]))
        if not bool(overflow):
            break
    assert scales == [(True, 2.0 ** (fits + n)) for n in (3, 2, 1, 0)] + [(False, 2.0**fits)]
    assert weights == [1.0] * 4 + [pytest.approx(1 - 0.1 * 32)]
    assert float(loss) == 64.0
    assert optimizer.global_step.item() == 1
    if mode == ms.GRAPH_MODE:
        operator = "NPUGetFloatStatusV2" if session.chip.name == "910A" else "AllFinite"
        assert operator in kernels(session)


def test_the_scale_is_a_tensor_or_a_cell(session):
    network = nn.WithLossCell(nn.Dense(4, 1), nn.MSELoss())
    optimizer = nn.SGD(network.trainable_params())
    step = nn.TrainOneStepWithLossScaleCell(network, optimizer, Tensor(8.0))
    step.set_sense_scale(Tensor(16.0))
    assert step.scale_sense.item() == 16.0
    with pytest.raises(TypeError, match="must be Cell or Tensor"):
        nn.TrainOneStepWithLossScaleCell(network, optimizer, 8.0)
    with pytest.raises(ValueError, match=r"must be \(1,\) or \(\)"):
        nn.TrainOneStepWithLossScaleCell(network, optimizer, Tensor([8.0, 8.0]))


@pytest.mark.parametrize("level", ["auto"])
def test_levels_that_rewrite_the_network_are_refused(level):
    with pytest.raises(UnsupportedError, match=level):
        amp.auto_mixed_precision(nn.Dense(2, 2), level)


def test_scales_are_adjusted_by_tensors_alone_and_in_graphs_too(session):
    """[2.10 observed]"""
    scaler = amp.DynamicLossScaler(8, 2, 1)
    for finite in (False, True, np.bool_(False), 0):
        with pytest.raises(TypeError, match=r'Failed calling Select with "Select\(\)\(condition='):
            scaler.adjust(finite)

    @ms.jit
    def step(x):
        return scaler.adjust(amp.all_finite([x]))

    assert step(Tensor([1.0, np.inf], ms.float32)) is True
    assert scaler.scale_value.asnumpy() == 4.0
    step(Tensor([1.0, 2.0], ms.float32))
    assert scaler.scale_value.asnumpy() == 8.0


class TwoNormed(nn.Cell):
    """A cell with two outputs, one of them of integers."""

    def construct(self, x):
        return x * 2.0, ms.ops.cast(x, ms.int32)


@pytest.mark.parametrize("kind", ["cell", "primitive", "network"])
def test_all_float_results_of_a_listed_layer_are_float32_again(session, kind):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = TwoNormed()
            self.top = ms.ops.TopK(sorted=True)

        def construct(self, x):
            return self.top(x, 2) if kind == "primitive" else self.inner(x)

    listed = {"cell": [TwoNormed], "primitive": [ms.ops.TopK], "network": []}[kind]
    network = amp.custom_mixed_precision(Net(), white_list=listed) if listed else amp.auto_mixed_precision(Net(), "O3")
    value = np.array([1.0, 3.0, 2.0**-20 + 2.0], np.float32)
    first, second = network(Tensor(value))
    assert (first.dtype, second.dtype) == (ms.float32, ms.int32)
    halved = value.astype(np.float16).astype(np.float32)  # what 16 bits leave of the input
    wanted = np.sort(halved)[:0:-1] if kind == "primitive" else halved * 2
    np.testing.assert_array_equal(first.asnumpy(), wanted)


def test_a_listed_primitive_keeps_its_attributes_and_can_be_copied(session):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.product = ms.ops.MatMul(transpose_b=True)

        def construct(self, x, y):
            return self.product(x, y)

    network = amp.custom_mixed_precision(Net(), white_list=[ms.ops.MatMul])
    twin = copy.deepcopy(network)
    assert twin.product.name == network.product.name == "MatMul"
    assert (network.product.transpose_a, network.product.transpose_b) == (False, True)
    x = Tensor(np.eye(2, dtype=np.float32))
    np.testing.assert_array_equal(twin(x, x).asnumpy(), network(x, x).asnumpy())
    assert not hasattr(network.product, "transpose_c")


def scaled_step(scale):
    """A step whose loss is 64 and whose gradients are 16 and 32."""
    network = nn.Dense(4, 1, weight_init="ones", bias_init="zeros")
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(network, nn.MSELoss()),
        nn.SGD(network.trainable_params(), 0.1),
        nn.DynamicLossScaleUpdateCell(scale, scale_factor=2, scale_window=1),
    )
    out = step(Tensor(np.full((2, 4), 2.0, np.float32)), Tensor(np.zeros((2, 1), np.float32)))
    return [one.asnumpy().item() for one in out], network.weight.asnumpy()


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("target", ["GPU", "CPU"])
def test_a_gpu_looks_for_infinities_and_a_cpu_cannot(monkeypatch, mode, target):
    with fresh(target, monkeypatch):
        context.set_context(mode=mode)
        if target == "CPU":
            with pytest.raises(RuntimeError, match=r"Unsupported op \[NPU\w+FloatStatusV2\] on CPU"):
                scaled_step(2.0**20)
            return
        (loss, overflow, scale), weight = scaled_step(2.0**20)
        assert (loss, overflow, scale) == (64.0, False, 2.0**21)
        np.testing.assert_allclose(weight, np.full((1, 4), 1 - 0.1 * 32), 1e-6)
        (_, overflow, scale), weight = scaled_step(2.0**125)
        assert (overflow, scale) == (True, 2.0**124)
        np.testing.assert_array_equal(weight, np.ones((1, 4)))
