"""A data sink: the graph of the data set, graphs that fetch their batches, and the steps that callbacks see."""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import VARIABLE
from dumpsim.frontends.mindspore import context, nn, ops
from dumpsim.frontends.mindspore import dataset as ds
from dumpsim.frontends.mindspore.train import (
    Callback,
    DatasetHelper,
    Model,
    connect_network_with_dataset,
)
from dumpsim.runtime.session import Session

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
INPUTS = np.random.RandomState(0).randn(12, 4).astype(np.float32)
TARGETS = INPUTS @ np.float32([[1], [2], [0], [-1]])


@pytest.fixture(autouse=True)
def session(monkeypatch):
    """A fresh process on Ascend."""
    for name in (VARIABLE, "MINDSPORE_DUMP_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    context.set_context(device_target="Ascend")
    return Session.current()


class Runs:
    """A tap that records the runs of root graphs."""

    def __init__(self):
        self.runs = []

    def wants(self, event):
        return not hasattr(event, "op_type")

    def run_begin(self, event):
        self.runs.append((event.kind, event.root_graph_id))

    def ignore(self, event):
        pass

    graph_compiled = run_end = before_task = after_task = ignore


def batches(size=4, rows=12):
    return ds.NumpySlicesDataset((INPUTS[:rows], TARGETS[:rows]), ["data", "label"], shuffle=False).batch(size)


def model(**kwargs):
    network = nn.Dense(4, 1, weight_init="ones", bias_init="zeros")
    return Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.05), **kwargs)


def kernels(session):
    return [
        [node.full_name for graph in executor.program.kernel_graphs for node in graph.order]
        for executor in session.executors()
    ]


class Steps(Callback):
    def __init__(self):
        self.seen = []

    def on_train_step_end(self, run_context):
        params = run_context.original_args()
        self.seen.append((params.cur_epoch_num, params.cur_step_num, params.batch_num, params.dataset_sink_mode))


@MODES
def test_a_sink_trains_as_without(mode):
    ms.set_context(mode=mode)
    plain, sunk = model(), model()
    plain.train(2, batches())
    sunk.train(2, batches(), dataset_sink_mode=True)
    for a, b in zip(plain._network.get_parameters(), sunk._network.get_parameters(), strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_the_data_set_has_the_first_graph(session):
    ms.set_context(mode=ms.GRAPH_MODE)
    runs = Runs()
    session.add_tap(runs)
    model().train(2, batches(), dataset_sink_mode=True)
    assert runs.runs == [("dataset", 0), *[("train", 1)] * 6]
    first, second = kernels(session)
    assert first == ["Default/InitDataSetQueue-op0"]
    assert second[0] == "Default/GetNext-op0"
    assert "Default/network-TrainOneStepCell/network-WithLossCell/_backbone-Dense/MatMul-op0" in second


def test_callbacks_see_one_step_for_each_return_to_the_host():
    ms.set_context(mode=ms.GRAPH_MODE)
    steps = Steps()
    model().train(2, batches(), callbacks=steps, dataset_sink_mode=True)
    assert steps.seen == [(1, 3, 3, True), (2, 6, 3, True)]
    steps = Steps()
    model().train(3, batches(), callbacks=steps, dataset_sink_mode=True, sink_size=2)  # continues where it stopped
    assert steps.seen == [(1, 2, 2, True), (2, 4, 2, True), (3, 6, 2, True)]


def test_in_pynative_each_step_returns():
    steps = Steps()
    model().train(1, batches(), callbacks=steps, dataset_sink_mode=True)
    assert [entry[1] for entry in steps.seen] == [1, 2, 3]


def test_batches_of_another_size_have_a_graph_of_their_own(session):
    ms.set_context(mode=ms.GRAPH_MODE)
    plain, sunk = model(), model()
    plain.train(2, batches(8))
    before = len(kernels(session))
    sunk.train(2, batches(8), dataset_sink_mode=True)  # 8 rows, then 4
    assert len(kernels(session)) - before == 3
    np.testing.assert_array_equal(plain._network.weight.asnumpy(), sunk._network.weight.asnumpy())


def test_evaluation_sinks_step_by_step(session):
    ms.set_context(mode=ms.GRAPH_MODE)
    runs = Runs()
    session.add_tap(runs)
    one = model(metrics={"loss"})
    found = one.eval(batches(), dataset_sink_mode=True)
    assert [kind for kind, _ in runs.runs] == ["dataset", "train", "train", "train"]
    assert found == one.eval(batches())


@pytest.mark.parametrize("jit_config", [None, ms.JitConfig()], ids=["op by op", "compiled"])
def test_data_sink_takes_the_next_batches(session, jit_config):
    def total(data, label):
        return ops.reduce_sum(data) + ops.reduce_sum(label)

    runs = Runs()
    session.add_tap(runs)
    sunk = ms.data_sink(total, batches(), 2, jit_config=jit_config)
    expected = [float(INPUTS[at : at + 4].sum() + TARGETS[at : at + 4].sum()) for at in (4, 0, 8)]  # 2nd, 4th, 6th
    np.testing.assert_allclose([float(sunk()) for _ in range(3)], expected, rtol=1e-5)
    assert runs.runs == [("dataset", 0)] + [("train", 1)] * (6 if jit_config else 0)


def test_a_data_set_feeds_one_network():
    data = batches()
    helper = DatasetHelper(data, dataset_sink_mode=True, sink_size=1)
    first, second = nn.Dense(4, 1), nn.Dense(4, 1)
    loss = nn.WithLossCell(first, nn.MSELoss())
    connected = connect_network_with_dataset(loss, helper)
    assert [float(connected(*inputs)) > 0 for inputs in helper] == [True]
    assert connect_network_with_dataset(loss, helper) is connected
    with pytest.raises(ValueError, match="connected to other network"):
        connect_network_with_dataset(second, helper)
    with pytest.raises(ValueError, match="has been used with network"):
        ms.data_sink(first, data)
    with pytest.raises(RuntimeError, match="dataset sink mode"):
        connect_network_with_dataset(first, DatasetHelper(batches(), dataset_sink_mode=False))
    with pytest.raises(ValueError, match="sink_size"):
        ms.data_sink(first, batches(), 0)


def test_get_next_of_a_script():
    data = batches()
    helper = DatasetHelper(data, dataset_sink_mode=True)
    types, shapes = helper.types_shapes()
    fetch = ops.GetNext(types, shapes, len(types), data.queue.name)
    for start in (0, 4, 8, 0):
        rows, labels = fetch()
        np.testing.assert_array_equal(rows.asnumpy(), INPUTS[start : start + 4])
        np.testing.assert_array_equal(labels.asnumpy(), TARGETS[start : start + 4])
    with pytest.raises(ValueError, match="unknown data queue 'nobody'"):
        ops.GetNext(types, shapes, len(types), "nobody")()


def test_the_cpu_has_no_sink():
    context.set_context(device_target="CPU", mode=ms.GRAPH_MODE)
    steps = Steps()
    model().train(1, batches(), callbacks=steps, dataset_sink_mode=True)
    assert steps.seen == [(1, number, 3, False) for number in (1, 2, 3)]
    with pytest.raises(RuntimeError, match="not supported when the device target is CPU"):
        DatasetHelper(batches(), dataset_sink_mode=True)
