"""One script and one config, one tree: whatever the hash seed, the SIMD level, the directory and the hour."""

import dumprun
import pytest

# Dropout, random weights and shuffles are what a script leaves to chance
SCRIPT = """
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops
    from mindspore.common.initializer import Normal

    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(16, 8, weight_init=Normal(0.1))
            self.drop = nn.Dropout(p=0.5)
            self.norm = nn.LayerNorm((8,))

        def construct(self, x, y):
            return ops.mse_loss(self.norm(self.drop(ops.relu(self.fc(x)))), y)

    net = Net()
    net.set_train()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = nn.TrainOneStepCell(net, optimizer)
    for _ in range(2):
        loss = step(Tensor(np.random.randn(4, 16).astype(np.float32)), Tensor(np.ones((4, 8), np.float32)))
    print(float(loss.asnumpy()))
"""
EVERYTHING = {"saved_data": "full", "save_kernel_args": True, "iteration": "all"}
ALL = ["max", "min", "avg", "count", "negative zero count", "positive zero count", "zero count", "md5", "l2norm"]


@pytest.mark.parametrize("device", ["ascend", "gpu"])
def test_runs_write_the_same_bytes(tmp_path, device):
    environments = {
        "one": {"PYTHONHASHSEED": "1", "DUMPSIM_SIMD": "baseline"},
        "two": {"PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "MS_DEV_SAVE_GRAPHS": "2"},
        "three": {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
    }
    runs = [
        dumprun.dump(
            tmp_path,
            SCRIPT,
            name=name,
            options=("--device", device),
            env=env,
            statistic_category=ALL,
            **EVERYTHING,
        )
        for name, env in environments.items()
    ]
    assert len({run.digest() for run in runs}) == 1
    assert len({run.out for run in runs}) == 1
    assert {stamp // 10**6 for stamp in map(dumprun.stamp, runs[0].files()) if stamp} == {1_700_000_000}
    stamps = [dumprun.stamp(path) for path in runs[0].files() if path.suffix == ".npy"]
    assert len(set(stamps)) == len(stamps)
    other = dumprun.dump(
        tmp_path,
        SCRIPT,
        name="other",
        options=("--device", device, "--seed", "1"),
        statistic_category=ALL,
        **EVERYTHING,
    )
    assert other.digest() != runs[0].digest()
    assert other.names() == runs[0].names()


def test_a_second_run_is_refused_unless_it_appends(tmp_path):
    first = dumprun.dump(tmp_path, arguments=["1"], saved_data="full")
    digest = first.digest()
    refused = dumprun.dump(tmp_path, arguments=["1"], saved_data="full", code=1)
    assert "already contains a dump of this rank" in refused.err
    assert "--append" in refused.err
    assert refused.out == ""
    assert refused.digest() == digest
    before = {path: path.read_bytes() for path in first.files() if path.suffix == ".npy"}
    rows = first.rows()
    more = dumprun.dump(tmp_path, arguments=["1"], saved_data="full", options=["--append", "--durable"])
    assert "(--durable)" in more.err
    after = [path for path in more.files() if path.suffix == ".npy"]
    assert len(after) == 2 * len(before)
    assert all(path.read_bytes() == data for path, data in before.items())
    assert min(dumprun.stamp(p) for p in after if p not in before) > max(dumprun.stamp(p) for p in before)
    assert more.rows()[: len(rows)] == rows
    assert len(more.rows()) == 2 * len(rows)


def test_the_wall_clock_accumulates(tmp_path):
    for _ in range(2):
        run = dumprun.dump(tmp_path, arguments=["1"], options=["--clock", "wall"])
    stamps = [dumprun.stamp(path) for path in run.rank.rglob("*.npy")]
    assert len(stamps) == len(set(stamps)) == 38
    assert min(stamps) > 1_750_000_000_000_000
