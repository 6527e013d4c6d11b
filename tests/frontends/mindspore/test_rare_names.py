"""Names that scripts rarely use do what numpy or plain Python does."""

import copy

import numpy as np
import pytest
from inprocess import fresh

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import Parameter, Tensor, communication, context, mint, nn, ops
from dumpsim.frontends.mindspore.common.api import _pynative_executor, jit_class
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.ops import functional

X = np.array([[1.5, -2.0, 0.25, 3.0], [0.5, 1.0, -1.0, 2.0]], np.float32)


@pytest.fixture(params=["graph", "pynative"])
def mode(request, monkeypatch):
    """A fresh process on the CPU, in both modes."""
    with fresh("CPU", monkeypatch):
        context.set_context(mode=ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE)
        yield request.param


def ran(function, *args):
    """Results of a function as the body of a network."""

    class Net(nn.Cell):
        def construct(self, *inputs):
            return function(*inputs)

    return Net()(*args)


@pytest.fixture
def ascend(monkeypatch):
    """A fresh process on Ascend in PYNATIVE."""
    with fresh("O0", monkeypatch):
        context.set_context(mode=ms.PYNATIVE_MODE)
        yield


@pytest.mark.parametrize("epsilon", [1e-6, 0.5])
def test_rms_norm_divides_by_the_root_of_the_mean_square(ascend, epsilon):
    gamma = np.array([1.0, 2.0, 0.5, -1.0], np.float32)
    found, inverse = ops.rms_norm(Tensor(X), Tensor(gamma), epsilon)
    root = np.sqrt(np.mean(np.float64(X) ** 2, -1, keepdims=True) + epsilon)
    np.testing.assert_allclose(inverse.asnumpy(), 1 / root, 1e-6)
    np.testing.assert_allclose(found.asnumpy(), X / root * gamma, 1e-6)


@pytest.mark.parametrize("rotation", [0, 1])
def test_a_position_is_rotated_in_halves_or_in_neighbours(ascend, rotation):
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 1, 8)
    angle = np.linspace(0.1, 0.7, 4)
    angles = np.concatenate([angle, angle]) if rotation == 0 else np.repeat(angle, 2)
    cos, sin = (Tensor(part(angles).astype(np.float32).reshape(1, 1, 1, 8)) for part in (np.cos, np.sin))
    found = ops.rotary_position_embedding(Tensor(x), cos, sin, rotation).asnumpy().reshape(-1)
    flat = x.reshape(-1)
    pairs = [(i, i + 4) for i in range(4)] if rotation == 0 else [(2 * i, 2 * i + 1) for i in range(4)]
    for (real, imaginary), turn in zip(pairs, angle, strict=True):
        turned = complex(flat[real], flat[imaginary]) * np.exp(1j * turn)
        np.testing.assert_allclose([found[real], found[imaginary]], [turned.real, turned.imag], 1e-5)
    plain = ops.rotary_position_embedding(Tensor(x), cos, sin).asnumpy()
    assert np.array_equal(plain.reshape(-1), found) == (rotation == 0)


def test_cross_entropy_of_the_sigmoid(mode):
    labels = np.array([[0, 1, 0.5, 1], [1, 0, 0, 0.25]], np.float32)
    found = ran(ops.sigmoid_cross_entropy_with_logits, Tensor(X), Tensor(labels)).asnumpy()
    chance = 1 / (1 + np.exp(-np.float64(X)))
    np.testing.assert_allclose(found, -labels * np.log(chance) - (1 - labels) * np.log(1 - chance), 1e-5)


def test_tuples_and_types_of_functional(mode):
    def body(x, y):
        pair = functional.make_tuple(x, y)
        return x + functional.tuple_len(pair) if functional.typeof(y) == ms.int32 else x

    assert ran(body, Tensor(X), Tensor(1, ms.int32)).asnumpy().tolist() == (X + 2).tolist()
    assert ran(body, Tensor(X), Tensor(1, ms.int64)).asnumpy().tolist() == X.tolist()
    assert functional.typeof((1,)) is tuple


def test_the_leaves_of_nested_tuples_of_a_graph(mode):
    def body(x, y):
        return ops.HyperMap()(lambda a, b: a * 2.0 + b, ((x, y), x), ((y, y), x))

    (first, second), third = ran(body, Tensor(X), Tensor(X[::-1].copy()))
    np.testing.assert_array_equal(first.asnumpy(), X * 2 + X[::-1])
    np.testing.assert_array_equal(second.asnumpy(), X[::-1] * 3)
    np.testing.assert_array_equal(third.asnumpy(), X * 3)


def test_vmap_without_an_axis_of_results_keeps_the_first(mode):
    def body(x):
        return ops.vmap(lambda row: (row * 2.0, ops.ones_like(row)), 0, (0, None))(x)

    mapped, same = ran(body, Tensor(X))
    np.testing.assert_array_equal(mapped.asnumpy(), X * 2)
    np.testing.assert_array_equal(same.asnumpy(), np.ones(4, np.float32))


def test_a_parameter_decides_a_branch_of_a_graph(mode):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.flag = Parameter(Tensor(True), name="flag", requires_grad=False)

        def construct(self, x):
            if self.flag:
                return x * 2.0
            return x - 1.0

    net = Net()
    assert net(Tensor(X)).asnumpy().tolist() == (X * 2).tolist()
    net.flag.set_data(Tensor(False))
    assert net(Tensor(X)).asnumpy().tolist() == (X - 1).tolist()


def test_texts_and_none_may_live_beside_what_a_branch_changes(mode):
    def body(x, n):
        reduction, bias = "mean", None
        if n > 0:
            x = x * 2.0
        else:
            x = x - 1.0
        if bias is None and reduction == "mean":
            x = x + 1.0
        return x

    assert ran(body, Tensor(X), Tensor(1)).asnumpy().tolist() == (X * 2 + 1).tolist()
    assert ran(body, Tensor(X), Tensor(0)).asnumpy().tolist() == X.tolist()


def test_a_jitted_function_is_part_of_the_graph_that_calls_it(mode):
    @ms.jit
    def inner(x):
        return x * x

    assert ran(lambda x: inner(x) + 1.0, Tensor(X)).asnumpy().tolist() == (X * X + 1).tolist()
    _pynative_executor.sync()


def test_the_text_of_a_tensor_in_a_graph_has_its_shape(monkeypatch):
    with fresh("CPU", monkeypatch):
        seen = []

        def body(x):
            seen.append((str(x), repr(x)))
            return x + 1.0

        ran(body, Tensor(X))
    assert {text for pair in seen for text in pair} == {"Tensor(shape=[2, 4], dtype=Float32, value=<of the graph>)"}


def test_marks_of_classes_and_of_mutable_data():
    class Own:
        pass

    assert jit_class(Own) is Own
    assert Own.__ms_class__ is True
    for given in ((Tensor(1), 2), [1.0, (2,)]):
        marked = ms.mutable(given)
        assert isinstance(marked, type(given))
        assert marked.__ms_mutable__ is True
    assert marked[1].__ms_mutable__ is True
    with pytest.raises(UnsupportedError, match="variable length"):
        ms.mutable((1,), dynamic_len=True)
    assert ops.constexpr(get_instance=False)(len) is len


def test_what_a_cell_in_another_float_type_is_given(mode):
    class Inner(nn.Cell):
        def construct(self, pair, whole):
            return pair[0] + pair[1][0], whole

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner().to_float(ms.float16)

        def construct(self, x, n):
            return self.inner((x, (x, n)), n)

    total, whole = Net()(Tensor(X), Tensor(3, ms.int32))
    assert (total.dtype, whole.dtype) == (ms.float16, ms.int32)
    np.testing.assert_array_equal(total.asnumpy(), (X + X).astype(np.float16))


def test_plain_attributes_may_come_before_a_cell_is_set_up():
    class Net(nn.Cell):
        def __init__(self, width):
            self.width = width
            super().__init__()
            self.twice = 2 * width

    net = Net(3)
    assert (net.width, net.twice) == (3, 6)

    class Early(nn.Cell):
        def __init__(self):
            self.inner = nn.ReLU()

    with pytest.raises(AttributeError, match="cannot assign ReLU before"):
        Early()


def test_learning_rates_of_groups(mode):
    weights = [Parameter(Tensor(X), name=name) for name in "ab"]
    optimizer = mint.optim.AdamW([{"params": weights[:1], "lr": 0.5}, {"params": weights[1:]}], lr=0.25)
    assert [float(rate.asnumpy()) for rate in optimizer.lrs] == [0.5, 0.25]


def test_groups_have_the_back_end_of_their_names():
    from dumpsim.frontends.mindspore.mint import distributed

    assert distributed.get_backend() == "hccl"
    assert distributed.get_backend("hccl_world_group") == "hccl"
    assert distributed.get_global_rank(None, 5) == 5
    assert distributed.get_global_rank("hccl_world_group", 3) == 3
    assert communication.comm_func is ms.communication.comm_func
    assert management.GlobalComm.WORLD_COMM_GROUP == "hccl_world_group"


def test_copies_of_primitives_are_independent():
    one = ops.MatMul(transpose_a=True)
    two = copy.copy(one)
    assert repr(one) == repr(two)
    with pytest.raises(UnsupportedError, match=r"MatMul\.recompute\(True\)"):
        one.recompute()
