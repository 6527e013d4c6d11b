"""What is known of a phase that was compiled for a world that is not there. Expected: MindSpore 2.10."""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Parameter, Tensor, context, nn, ops
from dumpsim.frontends.mindspore.common.api import _cell_graph_executor
from dumpsim.frontends.mindspore.ops import PrimitiveWithInfer, prim_attr_register
from dumpsim.frontends.mindspore.ops import operations as P  # noqa: N812 - as scripts call it
from dumpsim.runtime.session import Session


class VirtualLoss(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self):
        pass

    def __call__(self, *args):
        raise AssertionError("a graph does not ask it")

    def get_bprop(self):
        def bprop(x, out, dout):
            return (x,)

        return bprop

    def infer_shape(self, x):
        return []

    def infer_dtype(self, x):
        return x


class Net(nn.Cell):
    def __init__(self, first, second):
        super().__init__()
        self.m1 = P.MatMul().shard(first).add_prim_attr("user_mark", 7)
        self.m2 = P.MatMul().shard(second)
        self.w = Parameter(Tensor(np.ones((64, 64), np.float32)), name="w")

    def construct(self, x, y):
        out1 = self.m1(x, y)
        return self.m2(out1, self.w)


class WithLoss(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.loss = VirtualLoss()
        self.network = network

    def construct(self, x, y):
        return self.loss(self.network(x, y))


class Gradient(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.grad = ops.GradOperation(get_all=True)

    def construct(self, x, y):
        return self.grad(self.network)(x, y)


@pytest.fixture(autouse=True)
def parallel():
    Session.use(Session(RunSettings(quiet=True, mindspore="2.10")))
    context.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    context.reset_auto_parallel_context()
    context.set_auto_parallel_context(device_num=4, global_rank=1, parallel_mode="semi_auto_parallel", full_batch=True)
    yield
    context.reset_auto_parallel_context()


X = Tensor(np.ones((64, 64), np.float32))
STRATEGIES = (((2, 2), (2, 1)), ((2, 1), (1, 2)))
GATHERED = {"keep_value_node_input": True}
# the forward pass of the network with a loss; `comm_reuse`, `rank_list` and `group_rank_ids`, which the wheel shows of
# some AllReduces, belong to later passes
FORWARD = {
    "MakeTuple-0": (["x", "y"], {}),
    "TupleGetItem-0": (["MakeTuple-0", 0], {}),
    "StridedSlice-0": (["TupleGetItem-0", "(0, 0)", "(32, 64)", "(1, 1)", 0, 0, 0, 0, 0], GATHERED),
    "StridedSlice-1": (["StridedSlice-0", "(0, 32)", "(32, 64)", "(1, 1)", 0, 0, 0, 0, 0], GATHERED),
    "TupleGetItem-1": (["MakeTuple-0", 1], {}),
    "StridedSlice-2": (["TupleGetItem-1", "(32, 0)", "(64, 64)", "(1, 1)", 0, 0, 0, 0, 0], GATHERED),
    "MatMul-0": (
        ["StridedSlice-1", "StridedSlice-2", False, False],
        {"user_mark": 7, "in_strategy": "((2, 2), (2, 1))"},
    ),
    "AllReduce-0": (
        ["MatMul-0"],
        {
            "group": "2-5004544844489628105", "fusion": 0, "op": "sum", "group_ranks": "0-1", "index": 0,
            "no_eliminate": True,
        },
    ),
    "Load-0": (["network.network.w", "U"], {}),
    "_MirrorOperator-0": (
        ["Load-0"],
        {
            "group": "2-4190060298023907007", "fusion": 1, "order_enforce_skip": True, "group_ranks": "1-3",
            "mirror_user_id": "network.network.w", "keep_value_node_input": True, "dev_num": 2, "mean_flag": False,
        },
    ),
    "MatMul-1": (
        ["AllReduce-0", "_MirrorOperator-0", False, False],
        {"in_strategy": "((2, 1), (1, 2))", "mirror_user_id": "network.network.w"},
    ),
    "VirtualLoss-0": (["MatMul-1"], {}),
    "UpdateState-0": (["U", "Load-0"], {}),
    "Depend-0": (["VirtualLoss-0", "UpdateState-0"], {"side_effect_propagate": 1}),
    "Return-0": (["Depend-0"], {}),
}  # fmt: skip


def test_the_nodes_of_a_training_step():
    net = Gradient(WithLoss(Net(*STRATEGIES)))
    net.set_train()
    phase, is_new = _cell_graph_executor.compile(net, X, X, phase="train")
    assert is_new
    found = _cell_graph_executor._graph_executor.get_parallel_graph_info(phase)
    assert list(found) == ["@graph_1", "@graph_0"]
    assert {name: (node["inputs"], node["attrs"]) for name, node in found["@graph_0"].items()} == FORWARD
    assert list(found["@graph_0"]) == list(FORWARD)
    assert found["@graph_1"]["J-0"] == {"inputs": ["@graph_0"], "attrs": {"side_effect_propagate": 1}}


class Shifted(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu = P.ReLU().shard(((2, 2),))
        self.add = P.Add().shard(((2, 2), ()))
        self.half = Tensor(0.5, ms.float32)

    def construct(self, x, c):
        return self.add(self.relu(x), self.half), c


def test_the_nodes_of_an_evaluation_are_those_of_its_text():  # [2.10 observed: step_parallel_end]
    phase, _ = _cell_graph_executor.compile(Shifted(), Tensor(np.ones((8, 4), np.float32)), Tensor(2, ms.int32))
    found = _cell_graph_executor._graph_executor.get_parallel_graph_info(phase)
    assert list(found) == ["@graph_0"]
    assert {name: node["inputs"] for name, node in found["@graph_0"].items()} == {
        "MakeTuple-0": ["x", "c"],
        "TupleGetItem-0": ["MakeTuple-0", 0],
        "StridedSlice-0": ["TupleGetItem-0", "(0, 0)", "(4, 4)", "(1, 1)", 0, 0, 0, 0, 0],
        "StridedSlice-1": ["StridedSlice-0", "(0, 2)", "(4, 4)", "(1, 1)", 0, 0, 0, 0, 0],
        "ReLU-0": ["StridedSlice-1"],
        "Add-0": ["ReLU-0", "Tensor(shape=[], dtype=Float32, value=0.5)"],
        "AllGather-0": ["Add-0"],
        "Split-0": ["AllGather-0", 0, 2],
        "TupleGetItem-1": ["Split-0", 0],
        "TupleGetItem-2": ["Split-0", 1],
        "MakeTuple-1": ["TupleGetItem-1", "TupleGetItem-2"],
        "Concat-0": ["MakeTuple-1", 1],
        "AllGather-1": ["Concat-0"],
        "_VirtualOutput-0": ["AllGather-1"],
        "TupleGetItem-3": ["MakeTuple-0", 1],
        "MakeTuple-2": ["_VirtualOutput-0", "TupleGetItem-3"],
        "Return-0": ["MakeTuple-2"],
    }
    attrs = {name: node["attrs"] for name, node in found["@graph_0"].items()}
    assert attrs["Add-0"] == {"in_strategy": "((2, 2), ())"}
    assert attrs["AllGather-0"] == {
        "group": "2-5004544844489628105", "fusion": 0, "group_ranks": "0-1", "rank_size": 2,
        "keep_value_node_input": True, "no_eliminate": True, "mean_flag": False,
    }  # fmt: skip
    assert attrs["MakeTuple-1"] == attrs["TupleGetItem-1"] == attrs["Return-0"] == {}


def test_strategies_and_layouts():
    net = Gradient(WithLoss(Net(*STRATEGIES)))
    net.set_train()
    _cell_graph_executor.compile(net, X, X, phase="train")
    scope = "Default/network-WithLoss/network-Net"
    assert _cell_graph_executor._get_shard_strategy(net) == {
        "Default/_VirtualDataset-op0": [[1, 1], [1, 1]],
        f"{scope}/MatMul-op0": [[2, 2], [2, 1]],
        f"{scope}/MatMul-op1": [[2, 1], [1, 2]],
    }
    whole = ([4], [-1, -1], [64, 64], 0, True, "", [64, 64], [64, 64], False, False, 0, 0)
    part = ([2, 2], [-1, 0], [64, 32], 0, True, "", [64, 64], [64, 32], False, False, 0, 0)
    assert net.parameter_layout_dict == {"x": whole, "y": whole, "network.network.w": part}
    assert net.parallel_parameter_name_list == ["x", "y", "network.network.w"]
    assert _cell_graph_executor._get_num_parallel_ops(net) == 0


def test_the_network_is_compiled_and_not_run():
    net = Net(*STRATEGIES)
    phase, _ = _cell_graph_executor.compile(net, X, X)
    program = _cell_graph_executor._graph_executor  # nothing but the phase is kept of it
    assert program.has_compiled(phase)
    assert net.w.shape == (64, 32)  # the slice of rank 1


def test_a_phase_that_is_not_split():
    context.reset_auto_parallel_context()
    net = Net(((1, 1), (1, 1)), ((1, 1), (1, 1)))
    phase, _ = _cell_graph_executor.compile(net, X, X)
    executor = _cell_graph_executor._graph_executor
    assert executor.get_strategy(phase) == executor.get_parameter_layout("unknown") == {}
    with pytest.raises(
        RuntimeError, match=r"Can not access FuncGraph according to phase: predict\.\d+\.\d+\.\d+step_par"
    ):
        executor.get_parallel_graph_info(phase)
    assert net.parameter_layout_dict == {}
