"""Dumps of networks that are split over ranks: slices and collectives, joined and compared with one device."""

import json

import numpy as np
import pytest

import dumpsim
import dumpsim.frontends.mindspore as ms
from dumpsim.analysis.compareglobal import compare_global
from dumpsim.analysis.slicing import manifests_of
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Parameter, Tensor, nn
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.frontends.mindspore.ops import operations as P  # noqa: N812 - as scripts call it
from dumpsim.world import launch
from dumpsim.world.context import current

RANKS = 4


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        generator = np.random.default_rng(3)
        self.w1 = Parameter(Tensor(generator.integers(-3, 4, (8, 16)).astype(np.float32)), name="w1")
        self.w2 = Parameter(Tensor(generator.integers(-3, 4, (16, 4)).astype(np.float32)), name="w2")
        self.up = P.MatMul().shard(((2, 1), (1, 2)))
        self.relu = P.ReLU().shard(((2, 2),))
        self.down = P.MatMul().shard(((2, 2), (2, 1)))

    def construct(self, x):
        return self.down(self.relu(self.up(x, self.w1)), self.w2)


X = np.arange(64, dtype=np.float32).reshape(8, 8) % 5 - 2


def step(mode, target, level, corrupt=None):
    def main():
        ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": level})
        ms.set_device(target, current().rank)  # names the directory in trees of O2
        if mode:
            init()
            ms.set_auto_parallel_context(parallel_mode=mode, full_batch=True)
        net = Net()
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
