"""Primitives that a script defines: shape rules and gradients in Python, no kernel. Expected: MindSpore 2.10."""

import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, context, nn, ops
from dumpsim.frontends.mindspore.common.api import _cell_graph_executor
from dumpsim.frontends.mindspore.ops import Primitive, PrimitiveWithInfer, prim_attr_register
from dumpsim.runtime.session import Session


class Loss(PrimitiveWithInfer):
    """A loss that only the compiler sees."""

    @prim_attr_register
    def __init__(self, axis=1):
        self.init_prim_io_names(inputs=["x"], outputs=["loss"])

    def __call__(self, *args):
        return "called"

    def get_bprop(self):
        def bprop(x, out, dout):
            return (x,)

        return bprop

    def infer_shape(self, x):
        return []

    def infer_dtype(self, x):
        return x


class Halves(PrimitiveWithInfer):
    """Two results, with one rule for shapes, dtypes and values."""

    @prim_attr_register
    def __init__(self):
        pass

    def __infer__(self, x):
        rows = x["shape"][0] // 2
        return {"shape": ([rows, *x["shape"][1:]],) * 2, "dtype": (x["dtype"],) * 2, "value": None}


class Bare(Primitive):
    @prim_attr_register
    def __init__(self):
        pass


class Net(nn.Cell):
    def __init__(self, primitive):
        super().__init__()
        self.primitive = primitive

    def construct(self, x):
        return self.primitive(ops.matmul(x, x))


class Gradient(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad = ops.GradOperation()

    def construct(self, x):
        return self.grad(self.net)(x)


@pytest.fixture(autouse=True)
def machine():
    session = Session(RunSettings(quiet=True, mindspore="2.10"))
    Session.use(session)
    context.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    return session


def program_of(net, x):
    """The program of a network that is compiled but not run."""
    _cell_graph_executor.compile(net, x)
    (compiled,) = net.__dict__["_programs"].values()
    return compiled.program


X = Tensor([[1.0, 2.0], [3.0, 4.0]], ms.float32)


def test_its_attributes_are_those_of_its_constructor():
    loss = Loss(2).add_prim_attr("mark", 7)
    assert (loss.name, loss.axis, loss.mark, str(loss)) == ("Loss", 2, 7, "Prim[Loss]<axis=2>")
    assert loss.attrs == {"axis": 2, "input_names": ["x"], "output_names": ["loss"], "mark": 7}
    assert loss.init_attrs == {"axis": 2}


def test_a_graph_that_holds_one_is_compiled_with_its_shapes_and_attributes():
    program = program_of(Net(Loss(2).add_prim_attr("mark", 7)), X)
    (kernel_graph,) = program.kernel_graphs
    (node,) = [n for n in kernel_graph.order if n.op_type == "Loss"]
    assert node.abstract.shape == ()
    assert {"axis": 2, "mark": 7}.items() <= node.text.attrs.items()
    assert node.text.instance_name == "primitive"


def test_several_results():
    program = program_of(Net(Halves()), X)
    assert [tensor.shape for tensor in program.kernel_graphs[0].results] == [(1, 2), (1, 2)]


def test_its_gradient_is_that_of_its_bprop():
    program = program_of(Gradient(Net(Loss())), X)
    kinds = [node.op_type for graph in program.kernel_graphs for node in graph.order]
    assert kinds.count("MatMul") == 3  # the product that `bprop` returns is computed, and used by both gradients
    assert "Loss" not in kinds  # its value is not needed


def test_a_scripted_primitive_has_no_kernel(capsys):
    with pytest.raises(RuntimeError, match=r"Unsupported op \[Loss\] on Ascend"):
        Net(Loss())(X)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert Loss()(X) == "called"
    with pytest.raises(RuntimeError, match=r"Unsupported op \[Halves\] on Ascend"):
        Halves()(X)


def test_one_without_shape_rules_is_refused():
    with pytest.raises(RuntimeError, match="Operator 'Bare' is invalid, or no matching evaluator could be found"):
        _cell_graph_executor.compile(Net(Bare()), X)


def test_a_gradient_without_bprop_is_refused():
    with pytest.raises(RuntimeError, match="Halves"):
        _cell_graph_executor.compile(Gradient(nn.SequentialCell(Net(Halves()), First())), X)


class First(nn.Cell):
    def construct(self, pair):
        return pair[0]
