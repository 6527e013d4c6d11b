"""Hooks of cells, and cells with a `bprop`. The numbers are those that MindSpore 2.10 printed for these nets."""

import numpy as np
import pytest

from dumpsim.frontends.mindspore import Parameter, Tensor, jit, nn, ops, set_context

X = np.array([1, 2], np.float32)
Y = np.array([5, 6], np.float32)
GRAPH, PYNATIVE = 0, 1
modes = pytest.mark.parametrize("mode", [GRAPH, PYNATIVE])


class Square(nn.Cell):
    def construct(self, x):
        return x * x


class Outer(nn.Cell):
    def __init__(self, net=None):
        super().__init__()
        self.net = net or Square()

    def construct(self, x):
        return self.net(x * 2) * 3


class TwoOutputs(nn.Cell):
    def construct(self, x, y):
        return x * y, x + y


class OfTwo(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = TwoOutputs()

    def construct(self, x):
        a, b = self.net(x * 2, x)
        return a + b


class Keyword(nn.Cell):
    def construct(self, x, y=None):
        return x * y


class OfKeyword(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = Keyword()

    def construct(self, x):
        return self.net(x, y=x + 1)


class Own(nn.Cell):
    """Its gradient by x is x * 10 + out, by y dout * 3."""

    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return x * 10 + out, dout * 3


class OwnOuter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = Own()
        self.w = Parameter(Tensor(np.array([2, 3], np.float32)), name="w")

    def construct(self, x, y):
        return ops.exp(self.net(x * self.w, y) * 0.1)


class OwnOfTwo(nn.Cell):
    def construct(self, x, y):
        return x * y, x + y

    def bprop(self, x, y, out, dout):
        return out[0] * dout[0] + dout[1], dout[0] - 2 * dout[1]


class Seven(nn.Cell):
    """Its gradient is always 7."""

    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (dout * 7,)


class Weighted(Seven):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([2, 3], np.float32)), name="w")

    def construct(self, x):
        return x * self.w


class Control(Seven):
    def bprop(self, x, out, dout):
        if dout.sum() > 1:
            return (dout * 2,)
        return (dout * 4,)


class NoTuple(Seven):
    def bprop(self, x, out, dout):
        return dout * 7


class TooFew(Own):
    def bprop(self, x, y, out, dout):
        return (dout,)


class Scalar(Own):
    def bprop(self, x, y, out, dout):
        return dout.sum(), dout


class Wide(nn.Cell):
    """A gradient of more elements than the argument has."""

    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return dout * y, dout * x


class OtherArguments(Own):
    def bprop(self, x, out, dout):
        return dout, dout


def ten_times(cell, inputs):
    return inputs[0] * 10


def hundredfold(cell, inputs, output):
    return output * 100


def hundredfold_gradient(cell, grad_input, grad_output):
    return (grad_input[0] * 100,)


def hundredfold_alone(cell, grad_input, grad_output):
    return grad_input[0] * 100


def hundredfold_before(cell, grad_output):
    return (grad_output[0] * 100,)


def two_for_one(cell, grad_input, grad_output):
    return (grad_input[0], grad_input[0])


def nothing(cell, *values):
    return None


def given(*tensors):
    return [np.asarray(t.asnumpy()).tolist() for t in tensors]


def call(net):
    return given(net(Tensor(X)))[0]


def gradient(net):
    return given(ops.grad(net)(Tensor(X)))[0]


@modes
@pytest.mark.parametrize(
    ("hooks", "value", "slope"),
    [
        ([("forward_pre", ten_times)], [1200, 4800], [2400, 4800]),
        ([("forward", hundredfold)], [1200, 4800], [2400, 4800]),
        ([("forward_pre", ten_times), ("forward", hundredfold)], [120000, 480000], [240000, 480000]),
        ([("backward", hundredfold_gradient)], [12, 48], [2400, 4800]),
        ([("backward", hundredfold_alone)], [12, 48], [2400, 4800]),
        ([("backward", hundredfold_gradient)] * 2, [12, 48], [240000, 480000]),
        ([("backward_pre", hundredfold_before)], [12, 48], [2400, 4800]),
        ([("backward_pre", hundredfold_before)] * 2, [12, 48], [240000, 480000]),
        ([("forward_pre", nothing), ("forward", nothing), ("backward", nothing)], [12, 48], [24, 48]),
    ],
)
def test_hooks_change_values_and_gradients(mode, hooks, value, slope):
    set_context(mode=mode)
    net = Outer()
    handles = [getattr(net.net, f"register_{kind}_hook")(hook) for kind, hook in hooks]
    assert (call(net), gradient(net)) == (value, slope)
    for handle in handles:
        handle.remove()
        handle.remove()
    assert gradient(net) == [24, 48]


@modes
def test_the_outermost_cell_has_hooks_too(mode):
    set_context(mode=mode)
    net = Outer()
    net.register_forward_hook(hundredfold)
    net.register_forward_pre_hook(ten_times)
    assert (call(net), gradient(net)) == ([120000, 480000], [240000, 480000])


def test_a_compiled_cell_keeps_the_hooks_it_was_compiled_with():
    set_context(mode=GRAPH)
    net = Outer()
    handle = net.net.register_forward_hook(hundredfold)
    assert call(net) == [1200, 4800]
    net.net.register_forward_hook(hundredfold)
    assert call(net) == [1200, 4800]
    handle.remove()
    assert call(net) == [1200, 4800]


def test_pynative_runs_the_current_hooks():
    set_context(mode=PYNATIVE)
    net = Outer()
    handle = net.net.register_forward_hook(hundredfold)
    net.net.register_forward_hook(hundredfold)
    assert call(net) == [120000, 480000]
    handle.remove()
    assert call(net) == [1200, 4800]


def test_what_hooks_on_gradients_see():
    set_context(mode=PYNATIVE)
    seen = []
    net = Outer()
    net.net.register_forward_pre_hook(ten_times)
    net.net.register_forward_hook(hundredfold)
    net.net.register_backward_hook(lambda cell, gi, go: seen.append((cell.cls_name, given(*gi), given(*go))))
    net.net.register_backward_pre_hook(lambda cell, go: seen.append(given(*go)))
    gradient(net)
    assert seen == [[[3, 3]], ("Square", [[12000, 24000]], [[3, 3]])]
    seen.clear()
    several = OfTwo()
    several.net.register_backward_hook(lambda cell, gi, go: seen.append((given(*gi), given(*go))))
    assert gradient(several) == [7, 11]
    assert seen == [([[2, 3], [3, 5]], [[1, 1], [1, 1]])]


def test_hooks_with_keyword_arguments():
    set_context(mode=PYNATIVE)
    net = OfKeyword()
    net.net.register_forward_pre_hook(lambda c, a, k: ((a[0] * 2,), {"y": k["y"] * 3}), with_kwargs=True)
    assert call(net) == [12, 36]
    net = OfKeyword()
    net.net.register_forward_hook(lambda c, a, k, out: out + k["y"], with_kwargs=True)
    assert call(net) == [4, 9]
    net = OfKeyword()
    net.net.register_backward_hook(hundredfold_gradient)
    assert gradient(net) == [201, 302]  # the hook does not see the gradient by y
    net.net.register_forward_pre_hook(lambda c, a, k: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        call(net)


def test_a_graph_has_keyword_arguments_by_position():
    set_context(mode=GRAPH)
    net = OfKeyword()
    net.net.register_forward_pre_hook(ten_times)
    with pytest.raises(TypeError, match="pre hook return value size is 1 not equal to input size 2"):
        call(net)
    net = OfKeyword()
    net.net.register_forward_hook(nothing, with_kwargs=True)
    with pytest.raises(TypeError, match="is 4, but the number of provided arguments is 3"):
        call(net)


def test_hooks_that_are_always_called_and_their_order():
    set_context(mode=PYNATIVE)
    seen = []
    net = Square()
    net.register_forward_hook(lambda *_: seen.append("second"), always_call=True)
    net.register_forward_hook(lambda *_: seen.append("first"), prepend=True)
    net(Tensor(X))
    assert seen == ["first", "second"]
    with pytest.raises(TypeError):
        net("not a tensor")
    assert seen == ["first", "second", "second"]


@pytest.mark.parametrize(("register", "given"), [("register_forward_pre_hook", 2), ("register_forward_hook", 3)])
def test_a_graph_refuses_hooks_with_keyword_arguments(register, given):
    set_context(mode=GRAPH)
    net = Square()
    getattr(net, register)(lambda *arguments: None, with_kwargs=True)
    with pytest.raises(TypeError, match=rf"function is {given + 1}, but the number of provided arguments is {given}\."):
        net(Tensor(X))


@modes
def test_invalid_hooks_are_refused(mode):
    set_context(mode=mode)
    net = Outer()
    with pytest.raises(TypeError, match=r"Expected a callable hook function, but got int\."):
        net.register_forward_hook(3)
    net.net.register_backward_hook(two_for_one)
    with pytest.raises(TypeError, match=r"The backward hook return value size is 2 not equal to .*input size 1"):
        gradient(net)


def test_two_hooks_on_gradients_in_a_graph_must_return_something():
    net = Outer()
    net.net.register_backward_hook(nothing)
    net.net.register_backward_hook(nothing)
    set_context(mode=PYNATIVE)
    assert gradient(net) == [24, 48]
    set_context(mode=GRAPH)
    with pytest.raises(TypeError, match="is 2, but the number of provided arguments is 1"):
        gradient(net)


# -- bprop


@modes
def test_a_bprop_is_the_gradient(mode):
    set_context(mode=mode)
    x, y = Tensor(X), Tensor(Y)
    assert given(Own()(x, y)) == [[5, 12]]
    assert given(*ops.grad(Own(), (0, 1))(x, y)) == [[15, 32], [3, 3]]
    assert given(*ops.grad(OwnOfTwo(), (0, 1))(x, y)) == [[6, 13], [-1, -1]]
    assert gradient(Outer(Seven())) == [42, 42]
    assert gradient(Control()) == [2, 2]
    net = OwnOuter()
    of_inputs, of_weights = ops.grad(net, (0, 1), net.trainable_params())(x, y)
    assert given(of_inputs[0], *of_weights) == [[60, 288], [30, 192]]
    np.testing.assert_allclose(of_inputs[1].asnumpy(), 0.3 * np.exp(0.1 * X * [2, 3] * Y), rtol=1e-5)


@modes
def test_gradients_of_gradients_and_of_weights(mode):
    set_context(mode=mode)
    assert given(ops.grad(ops.grad(Own()))(Tensor(X), Tensor(Y))) == [[25, 42]]
    net = Weighted()
    of_input, (of_weight,) = ops.grad(net, 0, net.trainable_params())(Tensor(X))
    assert given(of_input, of_weight) == [[7, 7], [0, 0]]


@modes
def test_a_bprop_with_hooks(mode):
    """In a graph the gradient is that of the bprop alone: hooks of a cell with a bprop are not differentiated."""
    set_context(mode=mode)
    net = Outer(Seven())
    net.net.register_forward_hook(hundredfold)
    net.net.register_forward_pre_hook(ten_times)
    assert call(net) == [1200, 4800]
    assert gradient(net) == ([42, 42] if mode == GRAPH else [420, 420])


def test_invalid_bprops_are_refused_in_a_graph():
    set_context(mode=GRAPH)
    x, y = Tensor(X), Tensor(Y)
    with pytest.raises(TypeError, match="For bprop function, output should be a tuple"):
        ops.grad(NoTuple())(x)
    with pytest.raises(RuntimeError, match=r"primal function 'TooFew\(\)' : 1 vs. 2"):
        ops.grad(TooFew(), (0, 1))(x, y)
    with pytest.raises(TypeError, match="requires the forward inputs as well as the 'out' and 'dout'"):
        ops.grad(OtherArguments())(x, y)
    assert given(*ops.grad(Scalar(), (0, 1))(x, y)) == [2, [1, 1]]


def test_invalid_bprops_are_refused_in_pynative():
    set_context(mode=PYNATIVE)
    x, y = Tensor(X), Tensor(Y)
    assert given(ops.grad(NoTuple())(x)) == [[7, 7]]
    with pytest.raises(RuntimeError, match="Grad size should lager than forward inputs, but got 1 vs 2"):
        ops.grad(TooFew(), (0, 1))(x, y)
    with pytest.raises(RuntimeError, match=r"\[const vector\]\{\} vs \[const vector\]\{2\}"):
        ops.grad(Scalar(), (0, 1))(x, y)
    with pytest.raises(TypeError, match="positional arguments"):
        ops.grad(OtherArguments())(x, y)


def test_pynative_sums_a_gradient_to_the_shape_of_the_argument():
    set_context(mode=PYNATIVE)
    row, column = Tensor(np.ones((1, 3), np.float32)), Tensor(np.array([[2], [5]], np.float32))
    assert given(*ops.grad(Wide(), (0, 1))(row, column)) == [[[7, 7, 7]], [[3], [3]]]


@pytest.mark.parametrize("net", [Seven, Weighted, Control])
def test_a_graph_of_jit_has_the_bprop_in_its_backward_pass(net):
    set_context(mode=PYNATIVE)
    cell = Outer(net())
    compiled = jit(function_of(cell))
    plain = gradient(cell)
    assert given(ops.grad(compiled)(Tensor(X)))[0] == plain


def function_of(cell):
    def run(x):
        return cell(x) + x * 0

    return run


@modes
def test_training_through_hooks_and_bprop(mode):
    """One step of SGD with a gradient that a hook multiplies by 100."""
    set_context(mode=mode)

    class Loss(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array([2, 3], np.float32)), name="w")
            self.net = Outer()

        def construct(self, x):
            return self.net(x * self.w).sum()

    net = Loss()
    net.net.net.register_backward_hook(hundredfold_gradient)
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), learning_rate=1e-4))
    step(Tensor(X))
    expected = np.array([2, 3]) - 1e-4 * 100 * 24 * X * X * [2, 3]  # of sum(3 (2 x w)^2)
    np.testing.assert_allclose(net.w.asnumpy(), expected, rtol=1e-5)
