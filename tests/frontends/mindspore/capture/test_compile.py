"""When networks are compiled, the names of their operators, and the files of saved graphs."""

import re

import numpy as np
import pytest

from dumpsim.codecs import irtext
from dumpsim.core.errors import CaptureError
from dumpsim.frontends.mindspore import context, nn, ops
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.api import jit
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.fc(x))


def ones(*shape):
    return Tensor(np.ones(shape, np.float32))


def names(compiled):
    return [node.full_name for graph in compiled for node in graph.order]


def test_one_compilation_for_each_signature(graph_mode, graphs):
    net = Net()
    for shape in ((2, 3), (4, 3), (2, 3), (4, 3)):
        assert net(ones(*shape)).shape == (shape[0], 2)
    assert [compiled[0].graph_id for compiled in graphs()] == [0, 1]
    net.set_train(True)
    net(ones(2, 3))
    assert len(graphs()) == 3


def test_operator_numbers_count_over_the_process(graph_mode, graphs):
    net = Net()
    net(ones(2, 3))
    net(ones(4, 3))
    first, second = graphs()
    assert names(first) == ["Default/fc-Dense/MatMul-op0", "Default/fc-Dense/BiasAdd-op0", "Default/relu-ReLU/ReLU-op0"]
    assert names(second) == [name.replace("op0", "op1") for name in names(first)]
    texts = [graph.doc for compiled in graphs() for graph in compiled]
    assert {node.full_name for node in texts[1].kernels()} == set(names(first))  # IR text counts for each network


def test_set_inputs_compiles_once(graph_mode, graphs):
    net = Net()
    net.set_inputs(Tensor(shape=[None, 3], dtype=mstype.float32))
    for rows in (2, 5, 1):
        assert net(ones(rows, 3)).shape == (rows, 2)
    assert len(graphs()) == 1
    assert graphs()[0][0].doc.params[-1].abstract.shape == (-1, 3)


def symbolic(*shape):
    return Tensor(shape=shape, dtype=mstype.float32)


class Scaled(nn.Cell):
    def construct(self, x, y, k=1):
        return x * k + y


STATED = "For set_inputs and tuple(list) in set_inputs, the "


@pytest.mark.parametrize(
    ("stated", "given", "text"),  # [2.10 observed]
    [
        ((symbolic(None, 3), symbolic(None, 3)), ((2, 3), (2, 3)), ""),
        ((symbolic(None, 3), ones(2, 3)), ((2, 3), (1, 3)), "shape of 2th input ... got expected: 2, and input: 1!"),
        (
            (symbolic(None, 3), symbolic(None, 3)),
            ((2, 4), (2, 4)),
            "shape of 1th input ... got expected: 3, and input: 4!",
        ),
        (
            (symbolic(None, 3), symbolic(2, 3)),
            ((2, 3), (2, 5)),
            "shape of 2th input ... got expected: 3, and input: 5!",
        ),
        ((symbolic(None, 3), symbolic(None)), ((2, 3), (2, 3)), "dims of 2th input ... got expected: 1, and input: 2!"),
        ((ones(2, 3), ones(2, 3)), ((4, 3), (4, 3)), "shape of 1th input ... got expected: 2, and input: 4!"),
        ((symbolic(None, 3), 2.0), ((2, 3), 2.0), ""),
        ((symbolic(None, 3), symbolic(None, 3), 2), ((2, 3), (2, 3), 2), ""),
    ],
)
def test_arguments_have_the_stated_shapes(graph_mode, stated, given, text):
    net = Scaled()
    net.set_inputs(*stated)
    args = [ones(*one) if isinstance(one, tuple) else one for one in given]
    if not text:
        assert net(*args).shape == (2, 3)
        return
    wanted = STATED + text.replace(" ...", " must be the same as expected, but")
    with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
        net(*args)


def test_there_are_as_many_arguments_as_stated(graph_mode):
    net = Scaled()
    net.set_inputs(symbolic(None, 3), symbolic(None, 3))
    with pytest.raises(ValueError, match="must be equal to expected one, but got expected: 2 and input: 3!"):
        net(ones(2, 3), ones(2, 3), 3)


def test_scopes_without_class_names(graph_mode, graphs):
    context.set_context(reserve_class_name_in_scope=False)
    Net()(ones(2, 3))
    assert names(graphs()[0])[0] == "Default/fc/MatMul-op0"


def test_results_keep_their_structure(graph_mode):
    class Structured(nn.Cell):
        def construct(self, x):
            return x + 1, [x, (x * 2,)], {"k": x}

    out = Structured()(ones(2))
    assert isinstance(out, tuple)
    assert isinstance(out[1], list)
    np.testing.assert_array_equal(out[1][1][0].asnumpy(), [2, 2])
    np.testing.assert_array_equal(out[2]["k"].asnumpy(), [1, 1])


def test_jit_functions_are_graphs_in_both_modes(graph_mode, graphs):
    @jit
    def scaled(x, factor=2):
        if factor > 1:
            x = x * factor
        return ops.relu(x)

    assert scaled(ones(2)).asnumpy().tolist() == [2, 2]
    context.set_context(mode=context.PYNATIVE_MODE)
    assert scaled(ones(2)).asnumpy().tolist() == [2, 2]
    assert len(graphs()) == 1
    assert scaled(ones(2), factor=1).asnumpy().tolist() == [1, 1]
    assert len(graphs()) == 2
    Net()(ones(2, 3))  # op by op
    assert len(graphs()) == 2


def test_a_method_that_is_compiled_may_be_called_by_its_class(graph_mode, graphs):
    class Compiled(Net):
        @jit
        def construct(self, x):
            return self.relu(self.fc(x))

    context.set_context(mode=context.PYNATIVE_MODE)
    net = Compiled()
    expected = net.construct(ones(2, 3)).asnumpy()
    np.testing.assert_array_equal(Compiled.construct(net, ones(2, 3)).asnumpy(), expected)
    assert [names(compiled)[0] for compiled in graphs()] == ["Default/fc-Dense/MatMul-op0"]


def test_values_of_a_tensor_are_unknown_while_compiling(graph_mode):
    class ReadsValue(nn.Cell):
        def construct(self, x):
            return x * float(x.asnumpy().sum())

    with pytest.raises(CaptureError, match="asnumpy") as caught:
        ReadsValue()(ones(2))
    assert any("ReadsValue" in note and __file__ in note for note in caught.value.__notes__)


def test_equal_computations_are_done_once(graph_mode, graphs):
    class Twice(nn.Cell):
        def construct(self, x):
            return ops.relu(x) + ops.relu(x), ops.tanh(x) * ops.tanh(x)

    Twice()(ones(2))
    assert sorted(node.op_type for node in graphs()[0][0].order) == ["Add", "Mul", "ReLU", "Tanh"]


def test_dead_code_leaves_no_kernel(graph_mode, graphs):
    class Wasteful(nn.Cell):
        def construct(self, x):
            ops.tanh(x)
            return ops.relu(x)

    Wasteful()(ones(2))
    assert [node.op_type for node in graphs()[0][0].order] == ["ReLU"]


@pytest.mark.parametrize(("level", "suffixes"), [(1, {".ir"}), (2, {".ir"}), (3, {".ir", ".dot"})])
def test_saved_graphs(graph_mode, tmp_path, level, suffixes):
    context.set_context(save_graphs=level, save_graphs_path=str(tmp_path / "ir"))
    Net()(ones(2, 3))
    files = sorted((tmp_path / "ir").iterdir())
    assert {file.suffix for file in files} == suffixes
    stages = {file.stem.rsplit("_", 1)[0] for file in files}
    assert stages == {"00_bootstrap", "21_validate", "trace_code_graph_0"}
    assert all(file.stat().st_mode & 0o777 == 0o400 for file in files)
    text = next(file for file in files if file.name.startswith("trace") and file.suffix == ".ir").read_text()
    assert [node.op_type for node in irtext.parse(text).kernels()] == ["MatMul", "BiasAdd", "ReLU"]


def test_saved_graphs_show_a_gradient_before_the_pass_that_expands_it(graph_mode, tmp_path):
    class Hooked(nn.Cell):
        def construct(self, x):
            return ops.tanh(x)

        def bprop(self, x, out, dout):
            return (ops.exp(dout) * out,)

    class Gradient(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = Hooked()

        def construct(self, x):
            return ops.grad(self.net)(x)

    context.set_context(save_graphs=2, save_graphs_path=str(tmp_path / "ir"))
    Gradient()(ones(2, 3))
    texts = {file.stem.rsplit("_", 1)[0]: file.read_text() for file in (tmp_path / "ir").iterdir()}
    assert " = Gradient(" in texts["00_bootstrap"]
    assert "Tanh(" in texts["00_bootstrap"]
    assert "Exp(" not in texts["00_bootstrap"]
    assert "Exp(" in texts["21_validate"]
    assert " = Gradient(" not in texts["21_validate"]


def test_nothing_is_saved_by_default(graph_mode, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Net()(ones(2, 3))
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_may_decide_the_shape_of_its_result(graph_mode, graphs):
    class Distinct(nn.Cell):
        def construct(self, x):
            values, indices = ops.unique(x)
            return values * 2, indices

    net = Distinct()
    for numbers in ([3, 1, 3, 3], [4, 3, 2, 1], [5, 5, 5, 5]):
        values, indices = net(Tensor(np.array(numbers, np.int32)))
        assert (values.asnumpy()[indices.asnumpy()] == 2 * np.array(numbers)).all()
        assert values.shape == (len(set(numbers)),)
    assert len(graphs()) == 1


def test_what_is_known_at_capture_needs_no_graph(graph_mode, graphs):
    class Rows(nn.Cell):
        def construct(self, x):
            return x.shape[0] * 2

    net = Rows()
    assert [net(ones(3, 2)), net(ones(4, 2)), net(ones(3, 2))] == [6, 8, 6]
    assert graphs() == []


def test_a_network_may_only_write(graph_mode):
    class Adds(nn.Cell):
        def __init__(self):
            super().__init__()
            self.total = Parameter(Tensor(np.zeros(2, np.float32)), name="total")

        def construct(self, x):
            ops.assign_add(self.total, x)

    net = Adds()
    for times in (1, 2):
        assert net(ones(2)) is None
        np.testing.assert_array_equal(net.total.asnumpy(), [times, times])
