"""Dumps of networks that are split over ranks: slices and collectives, joined and compared with one device."""

import json

import numpy as np
import pytest

import dumpsim
import dumpsim.frontends.mindspore as ms
from dumpsim.analysis.compareglobal import compare_global
from dumpsim.analysis.slicing import layouts_of, manifests_of
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Parameter, Tensor, nn
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.frontends.mindspore.ops import operations as P  # noqa: N812 - as scripts call it
from dumpsim.world import launch
from dumpsim.world.context import current

RANKS = 4


class Net(nn.Cell):
    def __init__(self, up=((2, 1), (1, 2))):
        super().__init__()
        generator = np.random.default_rng(3)
        self.w1 = Parameter(Tensor(generator.integers(-3, 4, (8, 16)).astype(np.float32)), name="w1")
        self.w2 = Parameter(Tensor(generator.integers(-3, 4, (16, 4)).astype(np.float32)), name="w2")
        self.up = P.MatMul().shard(up)
        self.relu = P.ReLU().shard(((2, 2),))
        self.down = P.MatMul().shard(((2, 2), (2, 1)))

    def construct(self, x):
        return self.down(self.relu(self.up(x, self.w1)), self.w2)


X = np.arange(64, dtype=np.float32).reshape(8, 8) % 5 - 2


def step(mode, target, level, corrupt=None, **strategies):
    def main():
        ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": level})
        ms.set_device(target, current().rank)  # names the directory in trees of O2
        if mode:
            init()
            ms.set_auto_parallel_context(parallel_mode=mode, full_batch=True)
        net = Net(**strategies)
        out = net(Tensor(X)).asnumpy()
        if corrupt is not None:
            if get_rank() == corrupt:
                weight = net.w2.asnumpy().copy()
                weight[1, 2] += 64
                net.w2.set_data(Tensor(weight), slice_shape=True)
            out = net(Tensor(X)).asnumpy()
        return out

    return main


def config(place, ranks):
    settings = {
        "common_dump_settings": {
            "op_debug_mode": 0, "dump_mode": 0, "path": str(place / "dump"), "net_name": "Net", "iteration": "all",
            "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": list(range(ranks)),
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }  # fmt: skip
    place.mkdir()
    (place / "dump.json").write_text(json.dumps(settings))
    return {"MINDSPORE_DUMP_CONFIG": str(place / "dump.json")}


def run(place, main, ranks, release="2.10", **environment):
    settings = RunSettings(quiet=True, manifest=str(place / "dumpsim-manifest.json"), mindspore=release)
    return launch(main, ranks, settings=settings, environment={**config(place, ranks), **environment})


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    place = tmp_path_factory.mktemp("one") / "run"
    (out,) = run(place, step("", "CPU", "O0"), 1)
    return place, out


@pytest.mark.parametrize(
    ("target", "level", "release", "environment"),
    [
        ("CPU", "O0", "2.10", {}),
        ("Ascend", "O0", "2.10", {}),
        ("Ascend", "O2", "seed", {}),
        ("Ascend", "O2", "seed", {"ENABLE_MS_GE_DUMP": "1"}),
    ],
    ids=["CPU", "O0", "O2", "GE"],
)
def test_slices_put_together_are_the_tensors_of_one_device(tmp_path, one, target, level, release, environment):
    place = tmp_path / "run"
    golden, expected = one
    for out in run(place, step("semi_auto_parallel", target, level), RANKS, release, **environment):
        np.testing.assert_array_equal(out, expected)
    dump = dumpsim.open(place / "dump")
    kinds = {entry.op_type for entry in dump}
    product, reduce = ("MatMulV2", "HcomAllReduce") if level == "O2" else ("MatMul", "AllReduce")
    assert {product, reduce} <= kinds
    assert {entry.rank for entry in dump.filter(op_type=product)} == set(range(RANKS))
    found = compare_global(dump, golden / "dump", match="order")
    assert found.ok, [row.as_dict() for row in found.findings]
    compared = {(row.op_name.rpartition("/")[2].replace("Default_", ""), row.io, row.slot) for row in found}
    assert {("MatMul-op1", "input", 1), ("MatMul-op1", "output", 0)} <= compared
    # the product that is cut along the contracted axis: its results are terms, and their sum is that of one device
    (path, *_), summed = manifests_of(dump.root), set()
    for entry in json.loads(path.read_text())["layouts"]:
        if entry["summed"]:
            summed.add((entry["op"].rpartition("/")[2], entry["io"]))
    assert ("MatMul-op1", "output") in summed


def test_operands_of_a_product_that_gathers_them_are_joined(tmp_path, one):
    place = tmp_path / "run"
    golden, expected = one
    for out in run(place, step("semi_auto_parallel", "CPU", "O0", up=((2, 2), (2, 2))), RANKS):
        np.testing.assert_array_equal(out, expected)
    found = compare_global(dumpsim.open(place / "dump").filter(op_type="MatMul"), golden / "dump", match="order")
    assert found.ok, [row.as_dict() for row in found.findings]
    compared = {(row.op_name.rpartition("/")[2].replace("Default_", ""), row.io, row.slot) for row in found}
    assert {("MatMul-op0", "input", 0), ("MatMul-op0", "input", 1), ("MatMul-op0", "output", 0)} <= compared


def test_the_rank_of_a_corrupted_weight_is_named(tmp_path, one):
    golden, _ = one
    place = tmp_path / "run"
    run(place, step("semi_auto_parallel", "CPU", "O0", corrupt=2), RANKS)
    dump = dumpsim.open(place / "dump")
    assert compare_global(dump.filter(iteration=0), golden / "dump").ok
    found = compare_global(dump.filter(iteration=1), dumpsim.open(golden / "dump"), match="order")
    first = found.first
    assert first is not None
    assert first.ranks == (2,)
    assert first.op_type == "MatMul"
    assert (first.io, first.slot) == ("input", 1)
    assert first.op_name.endswith("MatMul-op1")


class Loss(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.mean = P.ReduceMean().shard(((4, 1),))

    def construct(self, x):
        return self.mean(self.net(x))


def training(mode):
    def main():
        ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O0"})
        ms.set_device("CPU", current().rank)
        if mode:
            init()
            ms.set_auto_parallel_context(parallel_mode=mode, full_batch=True)
        net = Loss(Net())
        step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.5, 0.5))
        for _ in range(2):
            loss = step(Tensor(X))
        return loss.asnumpy()

    return main


def test_gradients_and_optimizer_states_are_put_together(tmp_path):
    (expected,) = run(tmp_path / "one", training(""), 1)
    for loss in run(tmp_path / "many", training("semi_auto_parallel"), RANKS):
        np.testing.assert_array_equal(loss, expected)
    many, one = dumpsim.open(tmp_path / "many" / "dump"), dumpsim.open(tmp_path / "one" / "dump")
    found = compare_global(many, one, match="order")
    assert found.ok, [row.as_dict() for row in found.findings]
    compared = {(row.op_type, row.io, row.slot) for row in found}
    # weight, moment, gradient
    assert {("ApplyMomentum", "input", 0), ("ApplyMomentum", "input", 1), ("ApplyMomentum", "input", 3)} <= compared
    gradients = {row.op_name for row in found if "Gradients" in row.op_name and row.io == "output"}
    assert {name.partition("Grad_")[2] for name in gradients} >= {"ReLU/ReluGrad-op0", "MatMul/MatMul-op0"}
    assert len(gradients) >= 3, gradients


def test_layouts_are_derived_from_the_graphs(tmp_path):
    """Without a manifest the IR text of the dump says how its tensors lie."""
    place = tmp_path / "many"
    run(place, training("semi_auto_parallel"), RANKS)
    run(tmp_path / "one", training(""), 1)
    known = {(*key[1:], kept.layout, kept.summed) for key, kept in layouts_of(place / "dump").items()}
    for path in manifests_of(place / "dump"):
        path.unlink()
    layouts = layouts_of(place / "dump")
    derived = {(*key[1:], kept.layout, kept.summed) for key, kept in layouts.items()}
    assert derived <= known, derived - known
    assert {name for name, *_ in derived} >= {"net_w1", "net_w2"}
    dump = dumpsim.open(place / "dump")
    product = dump.filter(op_type="MatMul", io="output", iteration=0, op="Default/network-Loss/net-Net/MatMul-op1")
    assert product.global_array().shape == (8, 4)
    found = compare_global(dump, tmp_path / "one" / "dump", match="order")
    assert found.ok
    assert {("MatMul", "input", 1), ("ReLU", "output", 0)} <= {(row.op_type, row.io, row.slot) for row in found}


class Embedded(nn.Cell):
    """A table whose rows are cut: each rank looks up its own."""

    def __init__(self):
        super().__init__()
        table = np.random.default_rng(5).integers(-3, 4, (16, 8)).astype(np.float32)
        self.table = Parameter(Tensor(table), name="table")
        self.gather = P.Gather().shard(((4, 1), (1,)))
        self.relu = P.ReLU().shard(((2, 2),))

    def construct(self, ids):
        return self.relu(self.gather(self.table, ids, 0))


def lookup(mode):
    def main():
        ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O0"})
        ms.set_device("CPU", current().rank)
        if mode:
            init()
            ms.set_auto_parallel_context(parallel_mode=mode, full_batch=True)
        return Embedded()(Tensor(np.arange(8, dtype=np.int32) * 2)).asnumpy()

    return main


def test_a_lookup_in_a_cut_table(tmp_path):
    (expected,) = run(tmp_path / "one", lookup(""), 1)
    for out in run(tmp_path / "many", lookup("semi_auto_parallel"), RANKS):
        np.testing.assert_array_equal(out, expected)
    found = compare_global(tmp_path / "many" / "dump", tmp_path / "one" / "dump", match="order")
    assert found.ok, [row.as_dict() for row in found.findings]
    assert {("Gather", "input", 0), ("ReLU", "output", 0)} <= {(row.op_type, row.io, row.slot) for row in found}


class Looked(nn.Cell):
    """Rows that ranks hold parts of, an operator of three results, sums, means and maxima over ranks."""

    def __init__(self):
        super().__init__()
        generator = np.random.default_rng(3)
        for name, shape in {"rows": (8, 4), "gamma": (4,), "beta": (4,), "w": (4, 4)}.items():
            value = generator.integers(-3, 4, shape).astype(np.float32)
            setattr(self, name, Parameter(Tensor(value), name=name))
        self.look = P.Gather().shard(((4, 1), (1,)))
        self.norm = P.LayerNorm(-1, -1).shard(((2, 1), (1,), (1,)))
        self.mul = P.MatMul().shard(((1, 2), (2, 2)))
        self.scale = P.Mul().shard(((4, 1), (4, 1)))
        self.reduce = [
            P.ReduceSum().shard(((2, 2),)), P.ReduceMean().shard(((2, 2),)), P.ReduceMax().shard(((2, 2),))
        ]  # fmt: skip
        self.add = P.Add().shard(((2,), (2,)))

    def construct(self, ids):
        normal, mean, _ = self.norm(self.look(self.rows, ids, 0), self.gamma, self.beta)
        product = self.scale(self.mul(normal, self.w), mean)
        total, average, largest = self.reduce[0](product, 0), self.reduce[1](product, 0), self.reduce[2](product, 0)
        return self.add(self.add(total, average), largest)


def looked(mode):
    def main():
        ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O0"})
        ms.set_device("CPU", current().rank)
        if mode:
            init()
            ms.set_auto_parallel_context(parallel_mode=mode, full_batch=True)
        return Looked()(Tensor(np.arange(8, dtype=np.int32) * 3 % 8)).asnumpy()

    return main


def listed(root):
    """The layouts in the manifest of each rank, which are the same: tensor, device matrix, map of each axis, shape."""
    tables = [json.loads(path.read_text())["layouts"] for path in manifests_of(root)]
    assert len(tables) == RANKS
    assert all(table == tables[0] for table in tables)
    assert {row["graph_id"] for row in tables[0]} == {tables[0][0]["graph_id"]}
    found = []
    for row in tables[0]:
        shown = [",".join(map(str, row[name])) or "-" for name in ("device_matrix", "tensor_map", "shape")]
        terms = "".join(f" terms {dim}" for dim in row["summed"])
        name = row["op"].rpartition("/")[2]
        name = f"Grad/{name}" if row["op"].startswith("Gradients") else name
        found.append(f"{name} {row['io']} {row['slot']}: {' '.join(shown)}{terms}")
    return found


# Tensors in the order of execution, then weights and arguments: device matrix, map of the axes and shape of the whole
# tensor follow from the strategies, terms from axes that are contracted (device dimensions count from the right).
# What one device has as well is compared with it.
TRAINED = """
Grad/StridedSliceGrad-op0 output 0: 2,2 1,-1 8,4 terms 0
Grad/AllReduce-op0 input 0: 2,2 1,-1 8,4 terms 0
Grad/AllReduce-op0 output 0: 2,2 1,-1 8,4
StridedSlice-op0 input 0: 4 -1,-1 8,8
MatMul-op0 input 0: 2,2 1,-1 8,8
MatMul-op0 input 1: 2,2 -1,0 8,16
MatMul-op0 output 0: 2,2 1,0 8,16
ReLU-op0 input 0: 2,2 1,0 8,16
ReLU-op0 output 0: 2,2 1,0 8,16
MatMul-op1 input 0: 2,2 1,0 8,16
MatMul-op1 input 1: 2,2 0,-1 16,4
AllReduce-op0 output 0: 2,2 1,-1 8,4
MatMul-op1 output 0: 2,2 1,-1 8,4 terms 0
AllReduce-op0 input 0: 2,2 1,-1 8,4 terms 0
Grad/MatMul-op0 input 0: 2,2 1,-1 8,4
Grad/MatMul-op0 input 1: 2,2 0,-1 16,4
Grad/MatMul-op0 output 0: 2,2 1,0 8,16
Grad/MatMul-op2 input 0: 2,2 1,0 8,16
Grad/MatMul-op2 input 1: 2,2 1,-1 8,4
Grad/MatMul-op2 output 0: 2,2 0,-1 16,4 terms 1
Grad/AllReduce-op1 input 0: 2,2 0,-1 16,4 terms 1
Grad/AllReduce-op1 output 0: 2,2 0,-1 16,4
Grad/ReluGrad-op0 input 0: 2,2 1,0 8,16
Grad/ReluGrad-op0 input 1: 2,2 1,0 8,16
Grad/ReluGrad-op0 output 0: 2,2 1,0 8,16
Grad/MatMul-op1 input 1: 2,2 1,0 8,16
Grad/MatMul-op1 output 0: 2,2 -1,0 8,16 terms 1
Grad/AllReduce-op0 input 0: 2,2 -1,0 8,16 terms 1
Grad/AllReduce-op0 output 0: 2,2 -1,0 8,16
StridedSlice-op0 input 0: 2,2 1,-1 8,4
ReduceMean-op0 input 0: 4 0,-1 8,4
RealDiv-op0 output 0: 4 - -
ApplyMomentum-op0 input 0: 2,2 0,-1 16,4
ApplyMomentum-op0 input 1: 2,2 0,-1 16,4
ApplyMomentum-op0 input 3: 2,2 0,-1 16,4
ApplyMomentum-op0 output 0: 2,2 0,-1 16,4
ApplyMomentum-op1 input 0: 2,2 -1,0 8,16
ApplyMomentum-op1 input 1: 2,2 -1,0 8,16
ApplyMomentum-op1 input 3: 2,2 -1,0 8,16
ApplyMomentum-op1 output 0: 2,2 -1,0 8,16
net.w2 output 0: 2,2 0,-1 16,4
net.w1 output 0: 2,2 -1,0 8,16
inputs0 output 0: 4 -1,-1 8,8
moments.net.w2 output 0: 2,2 0,-1 16,4
moments.net.w1 output 0: 2,2 -1,0 8,16
"""
LOOKED_UP = """
Sub-op0 input 0: 4 -1 8
Gather-op0 input 0: 4 0,-1 8,4
ReduceScatter-op0 output 0: 4 0,-1 8,4
AllGather-op0 input 0: 4 0,-1 8,4
LayerNorm-op0 input 0: 2,2 1,-1 8,4
LayerNorm-op0 input 1: 2,2 -1 4
LayerNorm-op0 input 2: 2,2 -1 4
LayerNorm-op0 output 0: 2,2 1,-1 8,4
LayerNorm-op0 output 1: 2,2 1,-1 8,1
LayerNorm-op0 output 2: 2,2 1,-1 8,1
AllGather-op1 input 0: 2,2 1,-1 8,4
StridedSlice-op2 input 0: 2,2 1,-1 8,1
MatMul-op0 input 0: 2,2 -1,1 8,4
MatMul-op0 input 1: 2,2 1,0 4,4
AllReduce-op0 output 0: 2,2 -1,0 8,4
MatMul-op0 output 0: 2,2 -1,0 8,4 terms 1
AllReduce-op0 input 0: 2,2 -1,0 8,4 terms 1
Reshape-op0 input 0: 2,2 -1,0 8,4
Mul-op1 input 0: 4 0,-1 8,4
Mul-op1 input 1: 4 0,-1 8,1
Mul-op1 output 0: 4 0,-1 8,4
AllGather-op7 input 0: 4 0,-1 8,4
AllGather-op3 input 0: 4 0,-1 8,4
AllGather-op5 input 0: 4 0,-1 8,4
ReduceMax-op0 input 0: 2,2 1,0 8,4
AllReduce-op3 output 0: 2,2 0 4
ReduceSum-op0 input 0: 2,2 1,0 8,4
AllReduce-op1 output 0: 2,2 0 4
ReduceSum-op0 output 0: 2,2 0 4 terms 1
AllReduce-op1 input 0: 2,2 0 4 terms 1
ReduceMean-op0 input 0: 2,2 1,0 8,4
RealDiv-op0 output 0: 2,2 0 4
AllGather-op8 input 0: 2,2 0 4
AllGather-op4 input 0: 2,2 0 4
AllGather-op6 input 0: 2,2 0 4
Add-op0 input 0: 2,2 1 4
Add-op0 input 1: 2,2 1 4
Add-op0 output 0: 2,2 1 4
Add-op1 input 0: 2,2 1 4
Add-op1 input 1: 2,2 1 4
Add-op1 output 0: 2,2 1 4
AllGather-op9 input 0: 2,2 1 4
w output 0: 2,2 1,0 4,4
rows output 0: 4 0,-1 8,4
beta output 0: 2,2 -1 4
gamma output 0: 2,2 -1 4
ids output 0: 4 -1 8
"""
WHOLE_GRAPH = """
StridedSlice-op0 input 0: 4 -1,-1 8,8
trans_Cast_2 input 0: 2,2 -1,0 8,16
trans_Cast_4 input 0: 2,2 0,-1 16,4
MatMul-op1 input 0: 2,2 1,0 8,16
MatMul-op1 input 1: 2,2 0,-1 16,4
AllReduce-op0 output 0: 2,2 1,-1 8,4
MatMul-op1 output 0: 2,2 1,-1 8,4 terms 0
AllReduce-op0 input 0: 2,2 1,-1 8,4 terms 0
trans_TransData_6 input 0: 2,2 1,-1 8,4 terms 0
AllGather-op0 input 0: 2,2 1,-1 8,4
w2 output 0: 2,2 0,-1 16,4
w1 output 0: 2,2 -1,0 8,16
x output 0: 4 -1,-1 8,8
"""


@pytest.mark.parametrize(
    ("main", "release", "table", "compared"),
    [
        (training, "2.10", TRAINED, 66),
        (looked, "2.10", LOOKED_UP, 28),
        (lambda mode: step(mode, "Ascend", "O2"), "seed", WHOLE_GRAPH, 9),
    ],
    ids=["training", "looked up", "whole graph"],
)
def test_the_manifests_list_the_tensors_whose_layouts_are_known(tmp_path, main, release, table, compared):
    (expected,) = run(tmp_path / "one", main(""), 1, release)
    for out in run(tmp_path / "many", main("semi_auto_parallel"), RANKS, release):
        np.testing.assert_allclose(out, expected, rtol=1e-5)
    found = compare_global(tmp_path / "many" / "dump", tmp_path / "one" / "dump", match="order")
    assert found.ok, [row.as_dict() for row in found.findings]
    assert len(list(found)) == compared
    assert listed(tmp_path / "many" / "dump") == table.split("\n")[1:-1]
