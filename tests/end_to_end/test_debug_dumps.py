"""Debug modes, mixed nets, Print and data sinks under a dump, run in the test's process."""

import numpy as np
import pytest

from dumpsim.core.errors import DeviceError, DumpConfigError
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Tensor, nn, ops
from tests.dumpproto import messages
from tests.inprocess import dump, fresh

X = np.arange(6, dtype=np.float32).reshape(2, 3)
FAULT = [{"kind": "aicore_error", "op": "*Exp*", "nth": 2}]


class Net(nn.Cell):
    """relu(exp(x))."""

    def __init__(self):
        super().__init__()
        self.exp = ops.Exp()
        self.relu = ops.ReLU()

    def construct(self, x):
        return self.relu(self.exp(x))


def thrice(done=None):
    def steps():
        net = Net()
        for step in range(3):
            net(Tensor(X + step)).asnumpy()
            if done is not None:
                done.append(step)

    return steps


def header(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return messages()["DumpData"].FromString(raw[8 : 8 + size]), raw[8 + size :]


def left_over(folder):
    return [path for path in folder.rglob("*") if path.is_file() and "extra-info" in path.parts]


# -- exceptions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["O0", "O1"])
@pytest.mark.parametrize("enable", [True, False])
def test_the_inputs_of_a_failing_operator(tmp_path, monkeypatch, mode, enable):
    done = []
    left = dump(tmp_path, monkeypatch, mode, thrice(done), faults=FAULT, op_debug_mode=4, enable=enable)
    assert isinstance(left.error, RuntimeError)  # what scripts catch
    assert "fault kernel_name=Default/Exp-op0" in str(left.error)
    assert done == [0]
    (path,) = left.tensors()
    assert path.relative_to(left.root).parts[:4] == ("rank_0", "Net", "0", "1")
    assert path.name.startswith("Exp.Default_Exp-op0.0.0.")
    assert np.array_equal(np.load(path), X + 1)


def test_an_exception_without_any_config(tmp_path, monkeypatch):
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    done = []
    with fresh("O0", monkeypatch, faults=FAULT), pytest.raises(DeviceError, match="507015"):
        thrice(done)()
    assert done == [0]
    (path,) = left_over(tmp_path)
    assert path.parent == tmp_path / "extra-info/data-dump/0"
    head, payload = header(path)
    assert path.name.split(".")[:2] == ["exception_info", "0"]
    assert (head.op_name, head.input[0].data_type) == ("", 0)
    assert payload.startswith((X + 1).tobytes())


@pytest.mark.parametrize("scene", ["lite", "full"])
def test_an_operator_of_dynamic_graph_mode(tmp_path, monkeypatch, scene):
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    with fresh("O0", monkeypatch, faults=[{"kind": "aicore_error", "op": "Concat", "nth": 2}]):
        ms.set_context(mode=ms.PYNATIVE_MODE, ascend_config={"exception_dump": "1"} if scene == "full" else {})
        ops.concat((Tensor(X), Tensor(X)))
        with pytest.raises(DeviceError, match="fault kernel_name=Default/Concat"):
            ops.concat((Tensor(X + 1), Tensor(X[:1])))
    (path,) = left_over(tmp_path)
    head, payload = header(path)
    unwritten = bytes([0xCD]) * 36
    assert payload.startswith((X + 1).tobytes() + X[:1].tobytes())
    assert payload.endswith(unwritten)
    assert [entry.size for entry in (*head.input, *head.output)] == [24, 12, 8, 36]  # the axis is a number
    if scene == "full":
        assert path.name.startswith("Concat.Default_Concat.")
        assert head.op_name == "Default/Concat"
        assert list(head.output[0].shape.dim) == [3, 3]
    else:
        assert path.name.startswith("exception_info.0.")


def test_operators_of_dynamic_graph_mode_are_not_dumped_themselves(tmp_path, monkeypatch):
    def steps():
        ms.set_context(mode=ms.PYNATIVE_MODE)
        ops.grad(ops.exp)(Tensor(X))  # a graph, after which a dump listens
        ops.relu(Tensor(X))

    faults = [{"kind": "aicore_error", "op": "ReLU", "nth": 1}]
    left = dump(tmp_path, monkeypatch, "O0", steps, faults=faults)
    assert isinstance(left.error, DeviceError)
    assert left.types() == {"Mul"}
    assert len(left_over(tmp_path)) == 1


def test_a_run_without_a_fault_plan_has_nobody_listening(tmp_path, monkeypatch):
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    with fresh("O0", monkeypatch) as session:
        thrice()()
        assert session.observers.taps == []


def test_the_full_exception_dump(tmp_path, monkeypatch):
    monkeypatch.setenv("NPU_COLLECT_PATH", str(tmp_path / "collect"))
    left = dump(
        tmp_path, monkeypatch, "O0", thrice(), faults=FAULT, ascend_config={"exception_dump": "1"}, iteration="7"
    )
    assert isinstance(left.error, DeviceError)
    (path,) = left_over(tmp_path)
    assert path.is_relative_to(tmp_path / "collect/extra-info/data-dump/0")
    head, payload = header(path)
    assert path.name.startswith("Exp.Default_Exp-op0.")
    assert head.op_name == "Default/Exp-op0"
    assert [(entry.data_type, list(entry.shape.dim)) for entry in (*head.input, *head.output)] == [(1, [2, 3])] * 2
    assert payload[:24] == (X + 1).tobytes()


def test_exception_dump_of_whole_graphs(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "O2", thrice(), faults=FAULT, op_debug_mode=4)
    assert isinstance(left.error, DeviceError)
    names = [str(path.relative_to(left.root)) for path in left.files()]
    assert names[0] == "acl_dump_0.json"
    assert '"dump_scene":"lite_exception"' in left.files("acl_dump_0.json")[0].read_text()
    assert len(names) == 2
    assert names[1].startswith("extra-info/data-dump/0/exception_info.")
    assert left.summary.notes == ("Default/Exp-op0Default/ReLU-op0 failed: CANN saves its tensors below extra-info",)


def test_exception_dump_can_be_switched_off(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "O0", thrice(), faults=FAULT, ascend_config={"exception_dump": "0"})
    assert isinstance(left.error, DeviceError)
    assert left_over(tmp_path) == []


def test_whole_graphs_and_the_lite_exception_dump(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "O2", thrice(), ascend_config={"exception_dump": "2"})
    assert isinstance(left.error, DumpConfigError)
    assert "exception_dump" in str(left.error)
    (tmp_path / "full").mkdir()
    assert dump(tmp_path / "full", monkeypatch, "O2", thrice(), ascend_config={"exception_dump": "1"}).error is None


# -- overflow ----------------------------------------------------------------------------------------------------------


class Square(nn.Cell):
    def construct(self, x):
        return ops.mul(x, x)


def large():
    Square()(Tensor(np.array([1, 300], np.float16)))


def test_overflow_on_a_chip_that_saturates(tmp_path, monkeypatch, capfd):
    settings = {"chip": "910A"}
    left = dump(tmp_path, monkeypatch, "O0", large, op_debug_mode=3, settings=settings)
    assert left.tensors() == []  # 65504 is finite [spec mindspore 5.1]
    assert "the chip saturates" in capfd.readouterr().err
    assert any("saturates" in note for note in left.summary.notes)
    (tmp_path / "o2").mkdir()
    whole = dump(tmp_path / "o2", monkeypatch, "O2", large, op_debug_mode=3, file_format="npy", settings=settings)
    assert {name.split("_")[0] for name in whole.types()} == {"Mul"}  # the flag was raised all the same
    (record,) = whole.files("Opdebug*.json")
    assert '"AI Core"' in record.read_text()  # the old layout
    (output,) = [path for path in whole.tensors() if ".output." in path.name]
    assert np.load(output).tolist() == [1, 65504]


# -- mixed nets, Print, sinks ------------------------------------------------------------------------------------------


class Mixed(nn.Cell):
    def __init__(self, target):
        super().__init__()
        self.exp = ops.Exp()
        self.exp.set_device(target)

    def construct(self, x):
        return self.exp(x)


@pytest.mark.parametrize(("mode", "target"), [("O0", "CPU"), ("O1", "CPU"), ("O2", "CPU"), ("GPU", "CPU")])
def test_mixed_nets_are_refused_by_the_name_of_the_node(tmp_path, monkeypatch, mode, target):
    left = dump(tmp_path, monkeypatch, mode, lambda: Mixed(target)(Tensor(X)))
    assert isinstance(left.error, DumpConfigError)
    assert "Default/Exp-op0: dump does not support mixed training" in str(left.error)


class Printing(nn.Cell):
    def __init__(self):
        super().__init__()
        self.print = ops.Print()

    def construct(self, x):
        y = ops.exp(x)
        self.print("value", y)
        return y


@pytest.mark.parametrize("mode", ["O0", "O2", "GPU", "CPU"])
def test_the_string_of_print_is_an_error_in_the_log_only(tmp_path, monkeypatch, mode, capfd):
    left = dump(tmp_path, monkeypatch, mode, lambda: Printing()(Tensor(X)))
    assert left.error is None
    said = capfd.readouterr().err
    assert "[ERROR]" in said
    assert "Default/Print-op0: an input is a string, which dump does not support" in said
    assert {"Exp", "Print"} <= left.types()


def train(sink, size):
    def steps():
        data = ms.dataset.NumpySlicesDataset((np.tile(X, (4, 1)), np.ones((8, 1), np.float32)), ["x", "y"])
        net = nn.Dense(3, 1)
        model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
        model.train(2, data.batch(2), dataset_sink_mode=sink, sink_size=size)

    return steps


def test_data_sinks_of_whole_graphs(tmp_path, monkeypatch):
    for name, size in (("one", 1), ("two", 2), ("all", -1)):
        (tmp_path / name).mkdir()
        left = dump(tmp_path / name, monkeypatch, "O2", train(True, size), iteration="all", file_format="bin")
        if size == 1:
            assert left.error is None
            assert left.summary.iterations == (0, 1)
        else:
            assert isinstance(left.error, ValueError)
            assert str(left.error) == "when using acl dump in data sink mode, sink size must be 1"


def test_functions_on_a_data_set(tmp_path, monkeypatch):
    def steps(size):
        data = ms.dataset.NumpySlicesDataset((np.tile(X, (4, 1)), np.ones((8, 1), np.float32)), ["x", "y"])
        net = nn.Dense(3, 1)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params()))
        call = ms.data_sink(step, data.batch(2), sink_size=size)
        call()
        call()

    (tmp_path / "two").mkdir()
    one = dump(tmp_path, monkeypatch, "O2", lambda: steps(1), iteration="all")
    assert (one.error, one.summary.iterations) == (None, (0, 1))
    two = dump(tmp_path / "two", monkeypatch, "O2", lambda: steps(2), iteration="all")
    assert str(two.error) == "when using acl dump in data sink mode, sink size must be 1"


def test_initial_iteration_at_o2(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "O2", thrice(), initial_iteration=5, iteration="6|7")
    steps = sorted({path.relative_to(left.root).parts[0] for path in left.tensors()})
    assert steps == ["6", "7"]


def test_useless_outputs(tmp_path, monkeypatch):
    class Norm(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(3)

        def construct(self, x):
            return self.norm(x)

    def steps():
        net = Norm()
        net.set_train()
        net(Tensor(np.ones((1, 3, 2, 2), np.float32)))

    kept = {}
    for value in ("1", "0"):
        (tmp_path / value).mkdir()
        monkeypatch.setenv("MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT", value)
        left = dump(tmp_path / value, monkeypatch, "O0", steps)
        kept[value] = {path.name.split(".output.")[1][0] for path in left.tensors() if ".output." in path.name}
    assert kept["0"] - kept["1"] == {"1", "2"}


def test_jit_in_dynamic_graph_mode(tmp_path, monkeypatch):
    def steps():
        ms.set_context(mode=ms.PYNATIVE_MODE)

        @ms.jit
        def inner(x):
            return ops.exp(x)

        def outer(x):
            return ops.log(inner(x)).sum()

        outer(Tensor(X))
        return ms.grad(outer)(Tensor(X)).asnumpy()

    left = dump(tmp_path, monkeypatch, "O0", steps, iteration="all")
    assert left.error is None
    assert np.allclose(left.result, np.ones_like(X))
    assert "Exp" in left.types()
    assert "Log" not in left.types()  # it ran by itself
    assert any("Grad" in path.name for path in left.tensors())  # the backward graph of the jit function


def test_a_script_can_leave_the_lite_dump_out(tmp_path, monkeypatch):
    def steps():
        ms.device_context.ascend.op_debug.aclinit_config({"dump": {"dump_scene": "lite_exception:disable"}})
        thrice()()

    left = dump(tmp_path, monkeypatch, "O0", steps, faults=FAULT)
    assert isinstance(left.error, DeviceError)
    assert left_over(tmp_path) == []
    for wrong, error in (({"dump": {"dump_scene": "lite"}}, ValueError), ({"dump": 3}, TypeError)):
        with pytest.raises(error):
            ms.device_context.ascend.op_debug.aclinit_config(wrong)
    with pytest.raises(NotImplementedError, match="max_opqueue_num"):
        ms.device_context.ascend.op_debug.aclinit_config({"max_opqueue_num": "1"})


class Deep(nn.Cell):
    """Tensors that die early, so that their memory is used again."""

    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell([nn.Dense(16, 16, activation="relu") for _ in range(6)])

    def construct(self, x):
        return self.layers(x).sum()


@pytest.mark.parametrize("chip", ["910A", "910B"])
def test_callbacks_see_what_a_synchronous_dump_sees(tmp_path, monkeypatch, chip):
    def steps():
        ms.set_seed(3)
        net = Deep()
        step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
        for _ in range(2):
            step(Tensor(np.linspace(0, 1, 64, dtype=np.float32).reshape(4, 16)))

    found = []
    for name, enable in (("sync", True), ("async", False)):
        (tmp_path / name).mkdir()
        settings = {"chip": chip}
        left = dump(tmp_path / name, monkeypatch, "O0", steps, enable=enable, iteration="all", settings=settings)
        assert left.error is None
        found.append(
            [(path.name.split(".")[:4] + path.name.split(".")[5:], path.read_bytes()) for path in left.tensors()]
        )
    assert len(found[0]) > 100
    assert found[0] == found[1]  # in the same order, on one stream
