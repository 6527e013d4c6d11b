"""Gradients of operators that ran one by one: they run as graphs, give the same values and are compiled once."""

import numpy as np
import pytest

from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from dumpsim.frontends.mindspore import _listener as listener
from dumpsim.frontends.mindspore._capture.tapesegment import BackwardCache
from tests.inprocess import fresh


def rand(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


class Scale(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(rand(3, seed=1)), name="w")

    @ms.jit
    def construct(self, x):
        return ops.tanh(x * self.w) * x


class Dense(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 4, weight_init=Tensor(rand(4, 3, seed=2)), bias_init=Tensor(rand(4, seed=3)))
        self.act = nn.GELU()

    def construct(self, x):
        return self.act(self.fc(x))


def of_weights():
    net = Dense()
    return ms.value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params())(Tensor(rand(2, 3)))


def of_a_value_used_often():
    return ops.grad(lambda x: ops.exp(x) * x + ops.sin(ops.exp(x)) * ops.exp(x))(Tensor(rand(2, 3)))


def of_several_results():
    def parts(x):
        first, second = ops.split(x, 2, axis=1)
        return ops.tanh(first) * second, x * 2

    gradient = ops.GradOperation(get_all=True, sens_param=True)(parts)
    return gradient(Tensor(rand(2, 4)), (Tensor(rand(2, 2, seed=5)), Tensor(rand(2, 4, seed=6))))


def of_the_first_result():
    def both(x, y):
        return ops.exp(x) * y, x + y

    return ops.value_and_grad(both, (0, 1), has_aux=True)(Tensor(rand(2, 3)), Tensor(rand(2, 3, seed=1)))


def around_a_graph():
    net = Scale()
    return ops.grad(lambda x: ops.exp(net(ops.sin(x) * x)) + x, 0, net.trainable_params())(Tensor(rand(2, 3)))


def of_a_gradient():
    return ops.grad(lambda x: ops.grad(lambda y: ops.sin(y) * y)(x) * x)(Tensor(rand(2, 3)))


def without_operators():
    return ops.grad(lambda x, y: (x, y * 1.0)[0], (0, 1))(Tensor(rand(2, 3)), Tensor(rand(2, 3, seed=1)))


def of_what_does_not_matter():
    return ops.grad(lambda x, y: ops.relu(x), (0, 1))(Tensor(rand(2, 3)), Tensor(rand(4)))


def of_a_tuple_operand():
    return ops.grad(lambda x, y: ops.concat((ops.exp(x), y, x)) * 2, (0, 1))(Tensor(rand(2, 3)), Tensor(rand(1, 3)))


CASES = [
    of_weights,
    of_a_value_used_often,
    of_several_results,
    of_the_first_result,
    around_a_graph,
    of_a_gradient,
    without_operators,
    of_what_does_not_matter,
    of_a_tuple_operand,
]


def flat(result):
    if isinstance(result, Tensor):
        return [result.asnumpy()]
    return [array for item in result for array in flat(item)]


def run(monkeypatch, release, work, mode="O0"):
    with fresh(mode, monkeypatch, mindspore=release) as session:
        ms.set_context(mode=ms.PYNATIVE_MODE)
        return work(session)


def graphs(session):
    """Operators of each compiled graph."""
    return [
        [node.full_name for node in kernel_graph.order]
        for executor in session.executors()
        for kernel_graph in executor.program.kernel_graphs
    ]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", ["O0", "O2", "CPU"])
def test_gradients_are_those_of_op_by_op(case, mode, monkeypatch):
    one = run(monkeypatch, "seed", lambda _: flat(case()), mode)
    other = run(monkeypatch, "2.10", lambda _: flat(case()), mode)
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)


def test_gradients_are_the_derivatives(monkeypatch):
    x = rand(2, 3)
    (found,) = run(monkeypatch, "seed", lambda _: flat(of_a_value_used_often()))
    wide = x.astype(np.float64)

    def loss(v):
        return np.exp(v) * v + np.sin(np.exp(v)) * np.exp(v)

    expected = (loss(wide + 1e-6) - loss(wide - 1e-6)) / 2e-6  # the function works element by element
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_only_the_backward_pass_is_a_graph(monkeypatch):
    def names(session):
        of_weights()
        return graphs(session)

    (order,) = run(monkeypatch, "seed", names)
    assert {name.split("/")[0] for name in order} == {"Gradients"}
    assert {name.rsplit("/", 1)[1] for name in order if "Grad_MatMul" in name} == {"MatMul-op0", "MatMul-op1"}
    assert run(monkeypatch, "2.10", names) == []


def test_scopes_are_those_of_the_outermost_cell(monkeypatch):
    def names(session):
        net = Dense()
        loss = nn.WithLossCell(net, nn.MSELoss())
        step = nn.TrainOneStepCell(loss, nn.SGD(net.trainable_params(), 0.1))
        step(Tensor(rand(2, 3)), Tensor(rand(2, 4)))
        return graphs(session)[0]

    order = run(monkeypatch, "seed", names)
    scopes = {name.rsplit("/", 2)[0] for name in order if not name.startswith("Expand/")}
    prefix = "Gradients/Default/network-WithLossCell"
    cells = ("_loss_fn-MSELoss", "_backbone-Dense/act-GELU", "_backbone-Dense/fc-Dense")
    assert scopes == {f"{prefix}/{cell}" for cell in cells}


def test_one_graph_per_structure(monkeypatch):
    def counts(session):
        found = []
        w = Parameter(Tensor(rand(3)), name="w")
        other = Parameter(Tensor(rand(3)), name="other")

        def after(fn, *shape, weight=w):
            ops.grad(lambda x: fn(x) * weight, 0, weight)(Tensor(rand(*shape)))
            found.append(len(graphs(session)))

        after(ops.exp, 2, 3)
        after(ops.exp, 2, 3)  # another function, the same operators
        after(ops.exp, 4, 3)
        after(ops.sin, 2, 3)
        after(ops.exp, 2, 3, weight=other)  # its values are read by the graph
        after(lambda x: ops.exp(x) * 2.0, 2, 3)
        after(lambda x: ops.exp(x) * 3.0, 2, 3)
        after(ops.exp, 2, 3)
        return found

    assert run(monkeypatch, "seed", counts) == [1, 1, 2, 3, 4, 5, 6, 6]


def test_a_cached_graph_takes_new_values(monkeypatch):
    def gradients(_):
        w = Parameter(Tensor(rand(3)), name="w")
        found = []
        for step in range(3):
            x = rand(2, 3, seed=step)
            of_x, of_w = ops.grad(lambda v: ops.square(v) * w, 0, w)(Tensor(x))
            found.append((x, w.asnumpy().copy(), of_x.asnumpy(), of_w.asnumpy()))
            w.set_data(Tensor(w.asnumpy() + 1))
        return found

    for x, w, of_x, of_w in run(monkeypatch, "seed", gradients):
        np.testing.assert_allclose(of_x, 2 * x * w, rtol=1e-6)
        np.testing.assert_allclose(of_w, (x * x).sum(0), rtol=1e-6)


def test_old_graphs_are_evicted(monkeypatch):
    def alive(session):
        session.backward_passes = BackwardCache(size=2)
        found = []
        for length in (1, 2, 1, 3, 1, 2):
            ops.grad(lambda x: ops.exp(x))(Tensor(rand(length)))
            found.append((len(graphs(session)), session.ids.graph()))
        return found

    # the third graph evicts the second, which is compiled again at the end; the id of a graph increases with each
    # compilation and with each call of ids.graph()
    assert run(monkeypatch, "seed", alive) == [(1, 1), (2, 3), (2, 4), (2, 6), (2, 7), (2, 9)]


def test_listeners_observe_every_gradient(monkeypatch):
    class Observer:
        observes_gradients = True
        is_neutral = False

        def __init__(self):
            self.gradients = []

        def call(self, kind, what, proceed, args, kwargs):
            return proceed(*args, **kwargs)

        def gradient(self, tensor, gradient):
            self.gradients.append((tensor.shape, gradient().asnumpy()))

    def listen(_):
        observer = Observer()
        listener.attach(observer)
        try:
            ops.grad(lambda x: ops.exp(ops.sin(x)).sum())(Tensor(rand(2, 3)))
        finally:
            listener.detach(observer)
        return observer.gradients

    x = rand(2, 3).astype(np.float64)
    observed = run(monkeypatch, "seed", listen)
    assert [shape for shape, _ in observed] == [(), (2, 3), (2, 3), (2, 3)]
    np.testing.assert_allclose(observed[2][1], np.exp(np.sin(x)), rtol=1e-5)  # by sin(x)
    np.testing.assert_allclose(observed[3][1], np.exp(np.sin(x)) * np.cos(x), rtol=1e-5)
