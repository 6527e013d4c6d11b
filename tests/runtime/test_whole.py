"""Whole graphs (O2): networks of the front end, their values, tasks, names and memory."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from dumpsim.core.events import GraphEvent, TaskEvent
from dumpsim.core.settings import RunSettings
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Tensor, context, nn, ops
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use


class LeNet(nn.Cell):
    """With a bias, and with normalisation and a mask in training."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.bn1 = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(400, 84)
        self.fc2 = nn.Dense(84, 10)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.dropout = nn.Dropout(p=0.2)

    def construct(self, x):
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc2(self.dropout(self.relu(self.fc1(self.flatten(x)))))


class AlexNet(nn.Cell):
    """A sixteenth of the channels."""

    def __init__(self):
        super().__init__()
        sizes = [(3, 6, 11, 4, "same"), (6, 16, 5, 1, "same"), (16, 24, 3, 1, "same"), (24, 24, 3, 1, "same")]
        self.convs = nn.CellList([nn.Conv2d(i, o, k, s, pad_mode=p, has_bias=True) for i, o, k, s, p in sizes])
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(3, 2)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(24 * 2 * 2, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.convs[0](x)))
        x = self.pool(self.relu(self.convs[1](x)))
        x = self.relu(self.convs[3](self.relu(self.convs[2](x))))
        return self.fc(self.flatten(self.pool(x)))


SHAPES = {LeNet: (4, 1, 32, 32), AlexNet: (2, 3, 95, 95)}


class EventRecorder:
    """A tap that records events and the bytes of outputs."""

    def __init__(self):
        self.graphs, self.tasks, self.outputs = [], [], {}

    def wants(self, event):
        return isinstance(event, (GraphEvent, TaskEvent))

    def graph_compiled(self, event):
        self.graphs.append(event)

    def before_task(self, event):
        pass

    def after_task(self, event):
        self.tasks.append(event)
        self.outputs[event.full_name] = [ref.read().tobytes() for ref in event.outputs]


@pytest.fixture
def machine_of():
    """Make a fresh machine the current one."""
    with ExitStack() as ranks:

        def make(level, chip="910B", environment=None):
            ranks.enter_context(use(RankContext()))
            session = Session(RunSettings(chip=chip), environment=environment or {})
            Session.use(session)
            context.set_context(mode=context.GRAPH_MODE, jit_level=level)
            return session

        yield make


def network(kind):
    ms.set_seed(1)
    net = kind()
    rng = np.random.default_rng(3)
    for parameter in net.get_parameters():
        if parameter.name.endswith(("weight", "bias")):
            fan = int(np.prod(parameter.shape[1:])) if parameter.name.endswith("weight") else 100
            parameter.set_data(Tensor((rng.normal(size=parameter.shape) / np.sqrt(fan)).astype(np.float32)))
    return net


def train(kind, steps=1):
    net = network(kind)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    cell.set_train()
    rng = np.random.default_rng(4)
    x = Tensor(rng.normal(size=SHAPES[kind]).astype(np.float32))
    y = Tensor(rng.integers(0, 10, SHAPES[kind][0]).astype(np.int32))
    losses = [float(cell(x, y).asnumpy()) for _ in range(steps)]
    return losses, {p.name: p.asnumpy() for p in net.get_parameters()}


@pytest.mark.parametrize("kind", [LeNet, AlexNet])
@pytest.mark.parametrize("chip", ["910A", "910B"])
def test_training_gives_the_values_of_the_graph_that_is_not_fused(machine_of, kind, chip):
    machine_of("O0", "910B")
    (expected,), weights = train(kind)
    heard = EventRecorder()
    machine_of("O2", chip).add_tap(heard)
    (loss,), moved = train(kind)
    assert abs(loss - expected) < 4e-3 * abs(expected)  # a float16 has eleven bits, and layers add up
    for name, value in weights.items():
        np.testing.assert_allclose(moved[name], value, atol=4e-3, err_msg=name)
    types = {event.op_type for event in heard.tasks}
    assert {"Data", "TransData", "Cast", "Conv2D", "MatMulV2", "ApplyMomentum"} <= types
    assert not {"Reshape", "Flatten", "BiasAdd", "MatMul"} & types
    formats = {ref.device_format for event in heard.tasks for ref in (*event.operands, *event.outputs)}
    assert formats == {"DefaultFormat", "NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ"}
    for event in heard.tasks:  # GE's graph knows no other number type than the device's
        assert all(ref.dtype == ref.device_dtype for ref in (*event.operands, *event.outputs))
    product = next(event for event in heard.tasks if event.op_type == "MatMulV2")
    assert {ref.device_dtype.name for ref in (*product.operands[:2], *product.outputs)} == {"float16"}


def test_two_runs_of_a_training_give_the_same_names_ids_and_bytes(machine_of):
    runs = []
    for _ in range(2):
        heard = EventRecorder()
        machine_of("O2").add_tap(heard)
        losses, _ = train(LeNet, steps=2)
        runs.append((losses, [(e.full_name, e.task_id, e.stream_id, e.time_ns) for e in heard.tasks], heard.outputs))
    assert runs[0] == runs[1]


def test_models_names_ids_and_originals(machine_of):
    heard = EventRecorder()
    session = machine_of("O2")
    session.add_tap(heard)
    train(LeNet, steps=2)
    (graph,) = heard.graphs
    assert (graph.model_name, graph.model_id) == ("kernel_graph0", 1)
    assert {(e.model_name, e.model_id) for e in heard.tasks} == {("kernel_graph0", 1)}
    data = [e for e in heard.tasks if e.op_type == "Data"]
    assert {(e.task_id, e.stream_id) for e in data} == {(65535, 65535)}
    assert {"conv1.weight", "bn1.gamma", "inputs0", "moments.fc2.bias"} <= {e.full_name for e in data}
    kernels = [e for e in heard.tasks if e.op_type != "Data"]
    half = kernels[: len(kernels) // 2]
    assert [(e.full_name, e.task_id) for e in kernels[len(half) :]] == [(e.full_name, e.task_id) for e in half]
    assert sorted(graph.execution_order) == sorted(e.full_name for e in half)
    ids = {e.full_name: e.task_id for e in half}
    assert len(set(ids.values())) == len(half) < max(ids.values()) + 1  # events take numbers too
    assert [ids[name] for name in graph.execution_order] == sorted(ids.values())
    # the AI CPU draws the mask, apart from the computing stream
    assert {e.stream_id for e in half} == {0, 2}
    assert {e.op_type for e in half if e.stream_id == 2} == {"DropOutGenMask"}
    conversions = [name for name in graph.execution_order if name.startswith("trans_")]
    assert [int(name.rsplit("_", 1)[1]) for name in conversions] == list(range(len(conversions)))
    fused = next(e for e in half if "ReLU" in e.full_name and e.op_type == "MatMulV2")
    assert "".join(fused.original_names) == fused.full_name
    assert [name.rsplit("/")[-1] for name in fused.original_names] == ["MatMul-op0", "BiasAdd-op0", "ReLU-op2"]
    part = next(e for e in half if e.op_type == "BNTrainingReduce")
    assert part.full_name == part.original_names[0] + "_Reduce"


def test_bytes_of_conversions_are_the_layouts(machine_of):
    from dumpsim.tensor.layout import to_device

    heard = EventRecorder()
    machine_of("O2").add_tap(heard)
    net = network(LeNet)
    net(Tensor(np.ones(SHAPES[LeNet], np.float32)))
    weight = net.conv2.weight.asnumpy().astype(np.float16)
    wanted = to_device(weight, "FRACTAL_Z").tobytes()
    (event,) = [e for e in heard.tasks if e.op_type == "TransData" and heard.outputs[e.full_name] == [wanted]]
    (source,) = event.operands
    assert (source.device_format, source.shape) == ("DefaultFormat", weight.shape)
    assert event.outputs[0].device_shape == to_device(weight, "FRACTAL_Z").shape


def test_memory_is_reused_whatever_a_dump_asks_and_blocks_are_those_of_static_graphs(machine_of):
    session = machine_of("O2")
    session.memory_reuse = False
    train(LeNet)
    (executor,) = session.executors()
    plan = executor.graphs[0].plan
    assert plan.rule == "static"
    assert plan.workspace < sum(place.nbytes for place in plan.planned) / 2


def test_the_overflow_status_names_the_unit(machine_of):
    class Product(nn.Cell):
        def construct(self, x, y):
            return ops.exp(ops.matmul(x, y))

    for chip, largest in (("910A", 65504.0), ("910B", np.inf)):
        heard = EventRecorder()
        session = machine_of("O2", chip)
        session.add_tap(heard)
        x = np.full((16, 16), 200, np.float32)
        Product()(Tensor(x), Tensor(x))
        status = {e.op_type: e.overflow_status for e in heard.tasks if e.overflow}
        product = next(e for e in heard.tasks if e.op_type == "MatMulV2")
        assert np.frombuffer(heard.outputs[product.full_name][0], np.float16).max() == largest
        # conversion to float16; then the exponential of what is left, where that is finite
        assert status == ({"MatMulV2": 0x100, "Exp": 0x20} if chip == "910A" else {"MatMulV2": 0x100})
        assert session.device.status.raised


def test_control_flow_makes_a_model_of_every_kernel_graph(machine_of):
    class Choice(nn.Cell):
        def construct(self, x):
            y = ops.matmul(x, x)
            while ops.reduce_sum(y) < 1000.0:
                y = ops.relu(y + y)
            return y

    heard = EventRecorder()
    machine_of("O2").add_tap(heard)
    out = Choice()(Tensor(np.eye(4, dtype=np.float32)))
    np.testing.assert_array_equal(out.asnumpy(), np.eye(4) * 256)
    assert [(g.model_name, g.model_id) for g in heard.graphs] == [
        (f"kernel_graph{g.graph_id}", number) for number, g in enumerate(heard.graphs, 1)
    ]
    assert len(heard.graphs) > 2


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_open_shapes_on_private_formats(machine_of, level):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 5, 3, pad_mode="same")
            self.relu = nn.ReLU()

        def construct(self, x):
            return self.relu(self.conv(x))

    net = network(Net)
    results = []
    for chip in ("CPU", "910A"):
        machine_of(level if chip != "CPU" else "O0", chip)
        net = network(Net)
        net.set_inputs(Tensor(shape=(None, 3, 8, 8), dtype=ms.float32))
        rng = np.random.default_rng(0)
        results.append([net(Tensor(rng.normal(size=(n, 3, 8, 8)).astype(np.float32))).asnumpy() for n in (1, 3)])
    for cpu, npu in zip(*results, strict=True):
        np.testing.assert_allclose(npu, cpu, atol=4e-3)


@pytest.mark.parametrize(("skip", "skipped"), [("all", True), ("ReLU", True), ("MatMul,ReLU", True), ("Exp", False)])
def test_skipped_kernels_leave_the_fill_pattern(machine_of, skip, skipped):
    session = machine_of("O0", environment={"MS_KERNEL_LAUNCH_SKIP": skip})
    heard = EventRecorder()
    session.add_tap(heard)

    class Net(nn.Cell):
        def construct(self, x):
            return ops.relu(x)

    out = Net()(Tensor(np.ones((2, 3), np.float32)))
    assert (out.asnumpy().tobytes() == b"\xcd" * 24) is skipped
    assert [e.op_type for e in heard.tasks] == ["ReLU"]


def test_options_of_each_level(machine_of):
    session = machine_of("O2")
    assert session.options(jit_level="O2").pipeline == "whole-graph"
    assert session.options(jit_level="O1") == replace(session.options(jit_level="O0"), jit_level="O1")
    assert session.options(jit_level="O1").pipeline == "ascend"
    assert machine_of("O2", "CPU").options(jit_level="O2").pipeline == "kernel-by-kernel"


def test_text_graphs_of_every_model_are_files(machine_of, tmp_path, capsys):
    environment = {"DUMP_GE_GRAPH": "2", "DUMP_GRAPH_LEVEL": "3", "DUMP_GRAPH_PATH": str(tmp_path / "ge" / "graphs")}
    heard = EventRecorder()
    machine_of("O2", environment=environment).add_tap(heard)
    net = network(LeNet)
    for training in (True, False):
        net.set_train(training)
        net(Tensor(np.ones(SHAPES[LeNet], np.float32)))
    assert sorted(path.name for path in (tmp_path / "ge" / "graphs").iterdir()) == [
        "ge_onnx_00000000_graph_0_Build.pbtxt",
        "ge_onnx_00000001_graph_1_Build.pbtxt",
        "ge_proto_00000000_graph_0_Build.txt",
        "ge_proto_00000001_graph_1_Build.txt",
    ]
    for graph in heard.graphs:
        text = (tmp_path / f"ge/graphs/ge_proto_{graph.graph_id:08d}_graph_{graph.graph_id}_Build.txt").read_text()
        for event in heard.tasks:
            if event.graph_id == graph.graph_id:
                assert f'\n    name: "{event.full_name}"\n    type: "{event.op_type}"\n' in text
    assert capsys.readouterr().err == ""
    machine_of("O2", environment={"DUMP_GE_GRAPH": "4", "DUMP_GRAPH_LEVEL": "0", "DUMP_GRAPH_PATH": str(tmp_path)})
    network(LeNet)(Tensor(np.ones(SHAPES[LeNet], np.float32)))
    assert capsys.readouterr().err.splitlines() == [
        "dumpsim: DUMP_GE_GRAPH: invalid value '4' (allowed: 1, 2, 3); nothing is written",
        "dumpsim: DUMP_GRAPH_LEVEL: invalid value '0' (allowed: 1, 2, 3, 4); 2 is used",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["ge"]


def test_no_text_graph_where_kernels_are_launched_one_by_one(machine_of, tmp_path):
    machine_of("O0", environment={"DUMP_GE_GRAPH": "1", "DUMP_GRAPH_PATH": str(tmp_path)})
    network(LeNet)(Tensor(np.ones(SHAPES[LeNet], np.float32)))
    assert list(tmp_path.iterdir()) == []


def test_a_jit_config_chooses_the_level_of_its_own_network(machine_of):
    class Net(nn.Cell):
        def construct(self, x):
            return ops.relu(ops.matmul(x, x))

    @ms.jit(jit_config=ms.JitConfig(jit_level="O2"))
    def function(x):
        return ops.relu(ops.matmul(x, x))

    session = machine_of("O0")
    x = Tensor(np.eye(16, dtype=np.float32))
    whole = Net()
    whole.set_jit_config(ms.JitConfig(jit_level="O2"))
    for call in (Net(), whole, function):
        call(x)
    assert [executor.options.jit_level for executor in session.executors()] == ["O0", "O2", "O2"]
