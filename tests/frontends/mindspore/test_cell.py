"""Cells: attributes, names, flags, wrappers."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import Parameter, ParameterTuple, Tensor, amp, nn, ops, set_context
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import (
    HeNormal,
    HeUniform,
    Normal,
    TruncatedNormal,
    XavierUniform,
    initializer,
)
from dumpsim.frontends.mindspore.common.seed import set_seed
from dumpsim.frontends.mindspore.context import GRAPH_MODE, PYNATIVE_MODE

FACTS = json.loads((Path(__file__).parents[3] / "fixtures" / "frontends" / "mindspore" / "api_facts.json").read_text())


class Block(nn.Cell):
    """A block of the recorded network."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, has_bias=True)
        self.bn = nn.BatchNorm2d(2)
        self.tail = nn.SequentialCell(nn.Conv2d(2, 2, 1), nn.ReLU())
        self.scale = Parameter(Tensor(1.0), name="odd.name")


class Net(nn.Cell):
    """The recorded network."""

    def __init__(self):
        super().__init__()
        self.first = Block()
        self.rest = nn.CellList([Block(), nn.Dense(3, 2)])
        self.norm = nn.LayerNorm((2,))
        self.emb = nn.Embedding(5, 2)
        self.again = self.first
        self.free = Parameter(Tensor([1.0, 2.0]))


def test_names_of_parameters_and_cells_as_recorded():
    net = Net()
    assert [[p.name, list(p.shape), p.requires_grad] for p in net.get_parameters()] == FACTS["parameters"]
    assert [path for path, _ in net.parameters_and_names()] == FACTS["paths"]
    assert [[path, type(cell).__name__] for path, cell in net.cells_and_names()] == FACTS["cells"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [("Momentum", {"learning_rate": 0.1, "momentum": 0.9}), ("SGD", {}), ("Adam", {}), ("AdamWeightDecay", {})],
)
def test_parameters_of_optimizers_as_recorded(name, settings):
    optimizer = getattr(nn, name)(nn.Dense(2, 1).trainable_params(), **settings)
    assert sorted(p.name for p in optimizer.get_parameters()) == FACTS["optimizers"][name]


def test_attributes_are_sorted_by_their_kind():
    cell = nn.Cell()
    cell.weight = Parameter(Tensor([1.0]))
    cell.relu = ops.ReLU()
    cell.child = nn.ReLU()
    cell.number = 3
    assert cell.weight.name == "weight"
    assert cell.relu.instance_name == "relu"
    assert list(cell.name_cells()) == ["child"]
    del cell.weight
    with pytest.raises(AttributeError, match="no attribute 'weight'"):
        _ = cell.weight


def test_super_init_must_be_called_first():
    class Early(nn.Cell):
        def __init__(self):
            self.relu = nn.ReLU()

    with pytest.raises(AttributeError, match="super"):
        Early()


def test_assigning_a_tensor_to_a_parameter_changes_its_value():
    cell = nn.Cell()
    cell.weight = Parameter(Tensor([1.0, 2.0]), name="w")
    weight = cell.weight
    cell.weight = Tensor([3.0, 4.0])
    assert cell.weight is weight
    assert weight.asnumpy().tolist() == [3, 4]


def test_training_flags_reach_all_cells():
    net = Net()
    net.set_train()
    assert all(cell.training for _, cell in net.cells_and_names())
    net.add_flags_recursive(dump=True)
    assert all(cell.get_flags()["dump"] for _, cell in net.cells_and_names())


@pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("mixed", [False, True], ids=["to_float", "amp"])
def test_float64_inputs_are_cast_too(mode, mixed):
    """As in real MindSpore 2.10, in both modes."""
    set_context(mode=mode)
    net = nn.Dense(3, 2)
    net = amp.auto_mixed_precision(net, "O2") if mixed else net.to_float(mstype.float16)
    out = net(Tensor(np.ones((1, 3))))
    assert out.dtype == (mstype.float32 if mixed else mstype.float16)


def test_to_float_casts_inputs_and_parameters():
    net = nn.Dense(3, 2).to_float(mstype.float16)
    assert net(Tensor(np.ones((1, 3), np.float32))).dtype == mstype.float16
    assert net.weight.dtype == mstype.float32
    with pytest.raises(ValueError, match="to_float"):
        net.to_float(mstype.int32)


def test_hooks_run_around_construct():
    net, seen = nn.ReLU(), []
    before = net.register_forward_pre_hook(lambda cell, inputs: seen.append("before"))
    net.register_forward_hook(lambda cell, inputs, output: output * 2)
    assert net(Tensor([1.0])).item() == 2
    before.remove()
    net(Tensor([1.0]))
    assert seen == ["before"]


def test_containers():
    cells = nn.CellList([nn.ReLU()])
    cells.append(nn.Dense(2, 2))
    cells.insert(0, nn.Tanh())
    assert [type(cell).__name__ for cell in cells] == ["Tanh", "ReLU", "Dense"]
    assert cells[-1].weight.name == "1.weight" or cells[-1].weight.name == "2.weight"
    with pytest.raises(IndexError):
        cells[3]
    with pytest.raises(TypeError, match="must be Cell, list or orderedDict"):
        nn.SequentialCell(3)
    pipeline = nn.SequentialCell([nn.Dense(2, 3), nn.ReLU()])
    assert pipeline(Tensor(np.ones((4, 2), np.float32))).shape == (4, 3)


@pytest.mark.parametrize("mode", [0, 1])
def test_copies_are_independent_cells(mode):
    set_context(mode=mode)
    x = Tensor(np.ones((1, 2), np.float32))
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())
    before = net(x).asnumpy()
    twin = copy.deepcopy(net)
    net[0].weight.set_data(Tensor(np.zeros((3, 2), np.float32)))
    np.testing.assert_array_equal(twin(x).asnumpy(), before)
    assert [p.name for p in twin.get_parameters()] == ["0.weight", "0.bias"]


def test_text_of_cells():
    assert repr(nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())) == (
        "SequentialCell(\n  (0): Dense(input_channels=2, output_channels=3, has_bias=True)\n  (1): ReLU()\n)"
    )


def test_convolutions_with_channels_last_on_a_gpu():
    set_context(device_target="GPU")
    net = nn.Conv2d(4, 6, (2, 3), group=2, data_format="NHWC")
    assert net.weight.shape == (6, 2, 3, 2)  # its channels come last, too
    with pytest.raises(ValueError, match="the 'format' 'NHWC' is not supported"):
        net(Tensor(np.ones((2, 5, 7, 4), np.float32)))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.Dense(0, 1), "in_channels"),
        (lambda: nn.Dense(1, 2, weight_init=Tensor(np.ones((1, 2), np.float32))), "weight_init"),
        (lambda: nn.Dense(1, 2, activation="reluu"), "relu"),
        (lambda: nn.Conv2d(3, 4, 3, group=2), "group"),
        # several mistakes: which of them 2.10 reports [observed 2.10]
        (lambda: nn.Conv2d(0, 0, 0), "'in_channels' must be int and must > 0"),
        (lambda: nn.Conv2d(1, 0, 0, stride=0), "'out_channels' must be int and must > 0"),
        (lambda: nn.Conv2d(1, 1, 0, stride=0, group=0), "'group' must be int and must > 0"),
        (lambda: nn.Conv2d(1, 1, 1, stride=0, dilation=0, pad_mode="x"), "'stride item' must be int and must > 0"),
        (lambda: nn.Conv2d(1, 1, (1, 2, 3)), r"input tuple dimension must be 2, but got \(1, 2, 3\)"),
        (lambda: nn.MaxPool1d(2, padding=1), "For MaxPool1d, the parameter 'padding', .* got pad_mode:valid"),
        (lambda: nn.Conv2d(3, 4, 3, padding=-1), "padding"),
        (lambda: nn.Conv2d(3, 4, 3, data_format="NHWC"), "NHWC"),
        (lambda: nn.MaxPool2d(0), "kernel_size"),
        (lambda: nn.MaxPool2d(2, pad_mode="middle"), "pad_mode"),
        (lambda: nn.BatchNorm2d(0), "num_features"),
        (lambda: nn.BatchNorm2d(2, momentum=2), "momentum"),
        (lambda: nn.LayerNorm(()), "normalized_shape"),
        (lambda: nn.LayerNorm(3), "normalized_shape"),
        (lambda: nn.Dropout(p=1.0), "'p'"),
        (lambda: nn.MSELoss("average"), "reduction"),
        (lambda: nn.Momentum(nn.Dense(1, 1).trainable_params(), 0.1, -1.0), "momentum"),
        (lambda: nn.SGD([], 0.1), "must not be empty"),
        (lambda: nn.Adam(nn.Dense(1, 1).trainable_params(), beta1=1.5), "beta1"),
        (lambda: nn.Adam(nn.Dense(1, 1).trainable_params(), learning_rate=-1), "learning rate"),
        (lambda: nn.TrainOneStepCell(nn.ReLU(), nn.SGD(nn.Dense(1, 1).trainable_params()), sens=0), "sens"),
        (lambda: ParameterTuple([Parameter(1, name="w"), Parameter(2, name="w")]), "already exists"),
    ],
)
def test_bad_settings_name_the_setting(make, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make()


def test_what_is_not_emulated_says_so():
    for name in ("InstanceNorm2d", "Conv3d", "Transformer"):
        with pytest.raises(UnsupportedError, match=name):
            getattr(nn, name)()
    with pytest.raises(UnsupportedError, match="recomputation"):
        nn.ReLU().recompute()


def test_dropout_only_while_training():
    net = nn.Dropout(p=0.5)
    x = Tensor(np.ones((50, 50), np.float32))
    assert net(x) is x
    kept = net.set_train()(x).asnumpy()
    assert set(np.unique(kept)) == {0.0, 2.0}
    assert 0.4 < (kept == 0).mean() < 0.6


def test_batch_norm_moves_its_statistics_while_training():
    net = nn.BatchNorm2d(2)
    x = np.random.RandomState(0).randn(4, 2, 3, 3).astype(np.float32) + 5
    net(Tensor(x))
    assert net.moving_mean.asnumpy().tolist() == [0, 0]
    out = net.set_train()(Tensor(x)).asnumpy()
    np.testing.assert_allclose(out.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(net.moving_mean.asnumpy(), 0.1 * x.mean((0, 2, 3)), rtol=1e-5)


def test_layer_norm_and_embedding_against_numpy():
    x = np.random.RandomState(0).randn(4, 8).astype(np.float32)
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-7)
    np.testing.assert_allclose(nn.LayerNorm((8,))(Tensor(x)).asnumpy(), expected, rtol=1e-4, atol=1e-6)
    table = nn.Embedding(5, 3, padding_idx=0)
    ids = np.array([[0, 2], [4, 2]], np.int32)
    np.testing.assert_array_equal(table(Tensor(ids)).asnumpy(), table.embedding_table.asnumpy()[ids])
    assert not table.embedding_table.asnumpy()[0].any()


def test_seeds_decide_initial_weights():
    set_seed(3)
    first = nn.Dense(4, 4).weight.asnumpy()
    set_seed(3)
    np.testing.assert_array_equal(nn.Dense(4, 4).weight.asnumpy(), first)
    assert not np.array_equal(nn.Dense(4, 4).weight.asnumpy(), first)


@pytest.mark.parametrize(
    ("init", "deviation"),
    [
        (Normal(0.5), 0.5),
        (TruncatedNormal(1.0), 0.8796),
        (HeNormal(), np.sqrt(2 / 300)),
        (HeUniform(), np.sqrt(2 / 300)),
        (XavierUniform(), np.sqrt(2 / 500)),
    ],
)
def test_initializers_have_their_deviation(init, deviation):
    set_seed(0)
    values = initializer(init, [200, 300]).init_data().asnumpy()
    np.testing.assert_allclose(values.std(), deviation, rtol=0.02)
    if isinstance(init, TruncatedNormal):
        assert np.abs(values).max() <= 2


def test_bad_initializers():
    with pytest.raises(ValueError, match="did you mean 'normal'"):
        initializer("norml", [2])
    with pytest.raises(ValueError, match="positive integer"):
        initializer("ones", [0, 2])
    with pytest.raises(TypeError, match="initializer"):
        initializer(None, [2])


def test_parameters():
    parameter = Parameter(Tensor([1.0, 2.0]), name="w")
    assert repr(parameter) == "Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)"
    parameter.set_data(Tensor([3, 4]))
    assert parameter.dtype == mstype.float32
    before = parameter.asnumpy()
    parameter.set_data(0)
    assert before.tolist() == [3, 4]
    assert parameter.shape == ()  # the shape is that of the data [2.10 observed]
    assert parameter.set_data(Tensor([1.0])).shape == (1,)
    clone = parameter.set_data(Tensor([5.0, 6.0])).clone("ones")
    assert (clone.name, clone.asnumpy().tolist()) == ("w", [1, 1])
    assert (Parameter(1).dtype, Parameter(1.0).dtype) == (mstype.int32, mstype.float32)
    assert not Parameter(1).is_named


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_softmax_cross_entropy(sparse, reduction):
    logits = np.random.RandomState(0).randn(4, 3).astype(np.float32)
    labels = np.array([0, 2, 1, 1], np.int32)
    each = np.log(np.exp(logits).sum(1)) - logits[np.arange(4), labels]
    expected = {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]
    target = labels if sparse else np.eye(3, dtype=np.float32)[labels]
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=sparse, reduction=reduction)(Tensor(logits), Tensor(target))
    np.testing.assert_allclose(loss.asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("draw", [lambda x: ops.dropout(x, 0.5), lambda x: ops.Dropout(0.5)(x)[0]])
def test_each_eager_run_of_a_random_operator_draws_new_numbers(draw):
    """Three runs of one operator in PYNATIVE: the number of earlier runs is part of each seed."""
    set_context(mode=PYNATIVE_MODE)
    x = Tensor(np.ones((20, 20), np.float32))
    drawn = [draw(x).asnumpy() for _ in range(4)]
    assert all(set(np.unique(each)) == {0.0, 2.0} for each in drawn)
    assert len({each.tobytes() for each in drawn}) == len(drawn)


def test_a_prefix_of_names_ends_the_mark_of_initialization():
    """[observed 2.10]"""
    net = nn.Dense(2, 3)
    assert not net.weight.is_init
    net.weight.is_init = True
    assert not net.weight.clone().is_init
    net.update_parameters_name()
    assert (net.weight.is_init, net.weight.name) == (True, "weight")
    net.update_parameters_name("a.")
    assert (net.weight.is_init, net.weight.name) == (False, "a.weight")
