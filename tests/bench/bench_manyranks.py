"""Many ranks against one: local ranks with a dump, local ranks of user code, and ranks in lockstep.

    python tests/bench/bench_manyranks.py [dump] [reduce] [gather] [lockstep] [transformer] [--ranks N]

Processor time of this thread, as a ratio to one rank times the number of ranks (1: a rank costs what it costs alone),
and resident memory. Every part runs in a process of its own.

dump
    64 local ranks dump a step of LeNet in data parallel.
reduce
    1,000 local ranks of user code with 20 AllReduce each, in PYNATIVE.
gather
    64 local ranks gather 8 MB in a graph, and sum them.
lockstep
    10,000 ranks of a graph with four collectives of 64 x 64 numbers.
transformer
    1,000 ranks train a transformer of four layers in data parallel.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.runtime.lockstep import Lockstep
from dumpsim.runtime.stack import Stack
from dumpsim.world import current, launch

SETTINGS = RunSettings(quiet=True, manifest=None)
RANKS = {"dump": 64, "reduce": 1_000, "gather": 64, "lockstep": 10_000, "transformer": 1_000}


class FourCollectives(nn.Cell):
    """Four collectives with work between them."""

    def __init__(self) -> None:
        super().__init__()
        self.sum = ops.AllReduce()
        self.largest = ops.AllReduce(ops.ReduceOp.MAX)
        self.spread = ops.Broadcast(0)
        self.last = ops.AllReduce()

    def construct(self, x: Any) -> Any:
        """Fold, scale, spread and fold again."""
        y = self.largest(x * self.sum(x))
        (z,) = self.spread((x + y,))
        return x + self.last(x * z)


class Layer(nn.Cell):
    """Attention of one head and two layers behind it, each with a norm and a way around it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.query, self.key, self.value = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(width, width)
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.scale = float(width) ** -0.5

    def construct(self, x: Any) -> Any:
        """Attend, then transform each place."""
        y = self.norm1(x)
        seen = ops.softmax(ops.matmul(self.query(y), ops.transpose(self.key(y), (0, 2, 1))) * self.scale, -1)
        x = x + ops.matmul(seen, self.value(y))
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


class Transformer(nn.Cell):
    """Four layers between an embedding and a classifier of the next token."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, width)
        self.layers = nn.SequentialCell([Layer(width) for _ in range(4)])
        self.head = nn.Dense(width, tokens)
        self.tokens = tokens

    def construct(self, x: Any) -> Any:
        """Logits of all places."""
        return ops.reshape(self.head(self.layers(self.table(x))), (-1, self.tokens))


def trained(net: nn.Cell, loss: nn.Cell) -> nn.Cell:
    """A step of training in data parallel."""
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.01, 0.9))


def begin(mode: int = ms.GRAPH_MODE) -> None:
    """What each script begins with."""
    ms.set_context(mode=mode)
    ms.set_seed(1)
    init()


def lenet() -> Callable[[], object]:
    """A rank's step of LeNet on four pictures."""
    from dumpsim.emulate import install

    finder = install()
    try:
        from dumpsim.examples.lenet import Digits, LeNet5
    finally:
        sys.meta_path.remove(finder)

    def step() -> float:
        begin()
        pictures = Digits(get_rank() % 90, get_rank() % 90 + 4)
        train = trained(LeNet5(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
        return float(train(ms.Tensor(pictures.images[:4]), ms.Tensor(pictures.labels[:4])).asnumpy())

    return step


def dump(ranks: int) -> float:
    """Seconds of local ranks that dump a step."""
    step = lenet()
    with tempfile.TemporaryDirectory() as root:
        config = Path(root, "dump.json")
        common = {"dump_mode": 0, "path": f"{root}/dump", "net_name": "LeNet5", "iteration": "0", "input_output": 0}
        common |= {"kernels": [], "support_device": list(range(ranks))}
        config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
        start = thread_time()
        launch(step, ranks=ranks, settings=SETTINGS, environment={"MINDSPORE_DUMP_CONFIG": str(config)})
        seconds = thread_time() - start
        files = [path for path in Path(root, "dump").rglob("*") if path.is_file()]
        print(f"  {len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB")
    return seconds


def reduce(ranks: int) -> float:
    """Seconds of local ranks that sum a vector 20 times."""

    def main() -> float:
        begin(ms.PYNATIVE_MODE)
        total, x = ops.AllReduce(), ms.Tensor(np.full(16, current().rank, np.float32))
        for _ in range(20):
            y = total(x)
        return float(y.asnumpy()[0])

    start = thread_time()
    found = launch(main, ranks=ranks, settings=SETTINGS)
    seconds = thread_time() - start
    assert set(found) == {sum(range(ranks))}
    return seconds


def gather(ranks: int) -> float:
    """Seconds of three steps in which local ranks gather as much whatever their number is."""

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.gather = ops.AllGather()

        def construct(self, x: Any) -> Any:
            whole = self.gather(x)
            return whole, whole.sum()

    def main() -> float:
        begin()
        net, x = Net(), ms.Tensor(np.full((64, 32_768 // ranks), current().rank, np.float32))
        for _ in range(3):
            whole, total = net(x)
        assert whole.shape == (64 * ranks, 32_768 // ranks)
        return float(total.asnumpy())

    start = thread_time()
    launch(main, ranks=ranks, settings=SETTINGS)
    return thread_time() - start


def steps(job: Lockstep, *inputs: Any) -> float:
    """Seconds of one step, the best of three behind a first one."""
    job.step(*inputs)
    best = float("inf")
    for _ in range(3):
        start = thread_time()
        job.step(*inputs)
        best = min(best, thread_time() - start)
    return best


def lockstep(ranks: int) -> float:
    """Seconds of a step of the graph with four collectives."""

    def build() -> Callable[..., object]:
        begin()
        net = FourCollectives()
        return lambda x: net(ms.Tensor(x))

    x = np.random.default_rng(1).random((ranks, 64, 64), np.float32)
    return steps(Lockstep(build, ranks, settings=SETTINGS), Stack([x]))


def transformer(ranks: int) -> float:
    """Seconds of a step of training."""
    tokens, width, length = 128, 64, 32

    def build() -> Callable[..., object]:
        begin()
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        train = trained(Transformer(tokens, width), loss)
        return lambda x, y: train(ms.Tensor(x), ms.Tensor(y))

    draws = np.random.default_rng(1).integers(0, tokens, (ranks, 2, length + 1)).astype(np.int32)
    job = Lockstep(build, ranks, settings=SETTINGS)
    seconds = steps(job, lambda rank: draws[rank, :, :-1], lambda rank: draws[rank, :, 1:].reshape(-1))
    print(f"  {job.nbytes / 1e6:.1f} MB of weights and outputs")
    return seconds


def main() -> None:
    """Measure each part in a process of its own, with one rank and with many."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(RANKS))
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--only", action="store_true", help="in this process, without the ratio")
    options = parser.parse_args()
    for part in options.parts:
        many = options.ranks or RANKS[part]
        if options.only:
            seconds = globals()[part](many)
            import resource

            print(f"{seconds} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}")
            continue
        found = {}
        for ranks in (1, many):
            command = [sys.executable, __file__, part, "--only", "--ranks", str(ranks)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            *notes, last = done.stdout.splitlines()
            found[ranks] = [float(text) for text in last.split()]
        (one, base), (all_, peak) = found[1], found[many]
        each, memory = all_ / many, (peak - base) / many
        print(
            f"{part}: {many} ranks {all_:.2f} s, {1e6 * each:.1f} us each, {each / one:.3f} of one rank's time; ",
            end="",
        )
        print(f"  {peak / 1e6:.2f} GB, {memory:.1f} kB each; load {os.getloadavg()[0]:.1f}", *notes, sep="\n")


if __name__ == "__main__":
    main()
