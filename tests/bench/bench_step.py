"""Milliseconds of a training step in graph mode, without a dump and with one.

    python tests/bench/bench_step.py [--against CHECKOUT] [--rounds N] [--device Ascend|CPU]
    python tests/bench/bench_step.py --real PYTHON [--rounds N]

LeNet (batch 32), ResNet-18 (CIFAR shapes, batch 8) and a small GPT (batch 4, 64 tokens). With ``--against`` the steps
of this checkout and those of the other one run in turn, in a process each, and the ratio of the medians is printed too:
above 1 means that this one is slower. With ``--real`` the other one is real MindSpore under that interpreter: both run
as 2.10 does on a CPU, and the dump is one of tensors, since a CPU has no other. The times are then those of a clock on
the wall, because threads of real MindSpore that wait for work take processor time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

NETWORKS = ("lenet", "resnet18", "gpt")
HERE = Path(__file__).resolve().parents[2]


def networks(ms):
    """The network, its inputs and labels, made with the front end of a checkout or with real MindSpore."""
    import numpy as np

    nn, ops = ms.nn, ms.ops

    class LeNet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
            self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
            self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)
            self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()

        def construct(self, x):
            x = self.pool(self.relu(self.conv1(x)))
            x = self.pool(self.relu(self.conv2(x)))
            return self.fc3(self.relu(self.fc2(self.relu(self.fc1(self.flatten(x))))))

    class Block(nn.Cell):
        def __init__(self, inner, outer, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inner, outer, 3, stride)
            self.bn1 = nn.BatchNorm2d(outer)
            self.conv2 = nn.Conv2d(outer, outer, 3)
            self.bn2 = nn.BatchNorm2d(outer)
            self.relu = nn.ReLU()
            self.down = None
            if stride != 1 or inner != outer:
                self.down = nn.SequentialCell([nn.Conv2d(inner, outer, 1, stride), nn.BatchNorm2d(outer)])

        def construct(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            if self.down is not None:
                x = self.down(x)
            return self.relu(y + x)

    class ResNet18(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1, self.relu = nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU()
            widths = [64, 64, 128, 256, 512]
            blocks = []
            for inner, outer in pairwise(widths):
                blocks += [Block(inner, outer, 1 if inner == outer else 2), Block(outer, outer, 1)]
            self.blocks = nn.SequentialCell(blocks)
            self.pool, self.flatten, self.fc = nn.AvgPool2d(4), nn.Flatten(), nn.Dense(512, 10)

        def construct(self, x):
            return self.fc(self.flatten(self.pool(self.blocks(self.relu(self.bn1(self.conv1(x)))))))

    class Layer(nn.Cell):
        def __init__(self, width=128, heads=4):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
            self.qkv, self.out = nn.Dense(width, 3 * width), nn.Dense(width, width)
            self.up, self.down, self.act = nn.Dense(width, 4 * width), nn.Dense(4 * width, width), nn.GELU()
            self.heads, self.width = heads, width
            self.mask = ms.Tensor(np.triu(np.full((64, 64), -1e9, np.float32), 1))

        def construct(self, x):
            y = self.qkv(self.ln1(x)).reshape((4, 64, 3, self.heads, self.width // self.heads))
            y = ops.transpose(y, (2, 0, 3, 1, 4))
            scores = ops.matmul(y[0], ops.transpose(y[1], (0, 1, 3, 2))) * 0.17 + self.mask
            mixed = ops.matmul(ops.softmax(scores, -1), y[2])
            x = x + self.out(ops.transpose(mixed, (0, 2, 1, 3)).reshape((4, 64, self.width)))
            return x + self.down(self.act(self.up(self.ln2(x))))

    class Gpt(nn.Cell):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(256, 128)
            self.layers = nn.SequentialCell([Layer() for _ in range(4)])
            self.norm, self.head = nn.LayerNorm((128,)), nn.Dense(128, 256)

        def construct(self, x):
            return self.head(self.norm(self.layers(self.tokens(x)))).reshape((256, 256))

    rng = np.random.default_rng(0)
    if sys.argv[2] == "gpt":
        found = rng.integers(0, 256, (2, 4, 64)).astype(np.int32)
        return Gpt(), ms.Tensor(found[0]), ms.Tensor(found[1].reshape(-1))
    made, shape = {"lenet": (LeNet, (32, 1, 32, 32)), "resnet18": (ResNet18, (8, 3, 32, 32))}[sys.argv[2]]
    images = ms.Tensor(rng.normal(size=shape).astype(np.float32))
    return made(), images, ms.Tensor(rng.integers(0, 10, shape[0]).astype(np.int32))


def serve():
    """Run one step for each line of the standard input and print its milliseconds."""
    if sys.argv[4] == "real":
        import mindspore as ms
    else:
        from dumpsim.frontends import mindspore as ms
    nn = ms.nn
    ms.set_context(mode=ms.GRAPH_MODE, device_target=sys.argv[3])
    ms.set_seed(1)
    net, images, labels = networks(ms)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.001, momentum=0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()
    step(images, labels)
    clock = process_time if sys.argv[4] == "ours" else perf_counter
    for _ in sys.stdin:
        begin = clock()
        float(step(images, labels).asnumpy())
        print(1e3 * (clock() - begin), flush=True)


def started(checkout, network, dump, target, folder, python=None, release=""):
    """A process that serves steps of a network: a checkout's, or real MindSpore's under an interpreter."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    if python is None:
        environment["PYTHONPATH"] = str(checkout)
    if release:
        environment["DUMPSIM_RUN"] = json.dumps({"mindspore": release, "manifest": None, "quiet": True})
    if dump != "none":
        common = {"dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all"}
        common |= {"saved_data": dump, "input_output": 0, "kernels": [], "support_device": [0]}
        common["op_debug_mode"] = 0
        folder.mkdir(parents=True)
        config = folder / "dump.json"
        settings = {"enable": True, "trans_flag": True}
        config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": settings}))
        environment["MINDSPORE_DUMP_CONFIG"] = str(config)
    kind = "real" if python else "emulated" if release else "ours"
    command = [python or sys.executable, str(Path(__file__).resolve()), "--serve", network, target, kind]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def step(process):
    """Milliseconds of one step of a process."""
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--real", help="interpreter that has real MindSpore 2.10")
    parser.add_argument("--network", choices=NETWORKS, action="append")
    parser.add_argument("--device", default="Ascend")
    options = parser.parse_args()
    checkouts = {"this": HERE} | ({"other": options.against} if options.against else {})
    machines = {name: {"checkout": checkout} for name, checkout in checkouts.items()}
    if options.real:
        options.device = "CPU"
        machines = {"this": {"checkout": HERE, "release": "2.10"}, "other": {"checkout": HERE, "python": options.real}}
    with tempfile.TemporaryDirectory() as root:
        for network in options.network or NETWORKS:
            for dump in ("none", "tensor" if options.real else "statistic"):
                folder = Path(root) / network / dump
                running = {
                    name: started(network=network, dump=dump, target=options.device, folder=folder / name, **machine)
                    for name, machine in machines.items()
                }
                times = {name: [] for name in running}
                for _ in range(options.rounds):
                    for name, process in running.items():
                        times[name].append(step(process))
                for process in running.values():
                    process.stdin.close()
                    process.wait()
                shown = {name: median(each) for name, each in times.items()}
                text = ", ".join(f"{name} {ms:8.2f} ms" for name, ms in shown.items())
                if len(shown) > 1:
                    text += f", ratio {shown['this'] / shown['other']:.3f}"
                    text += f" (of the fastest {min(times['this']) / min(times['other']):.3f})"
                print(f"{network:9} dump {dump:10} {text}", flush=True)


if __name__ == "__main__":
    serve() if sys.argv[1:2] == ["--serve"] else main()
