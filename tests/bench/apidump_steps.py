"""Training steps with and without an API dump in turn: `python apidump_steps.py TOOL NET MODE PAIRS` prints JSON.

Runs under any Python that has torch and the tool, without the rest of the tests: `bench_apidump.py` starts it.
TOOL is dumpsim, troubleshooter or msprobe; NET is cnn or gpt; MODE is idle, stack, statistics or npy.
"""

import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter, thread_time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Cnn(nn.Module):
    """Three convolutions with normalisation, 16 x 3 x 32 x 32."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            *(
                layer
                for wide, narrow in ((16, 3), (32, 16), (64, 32))
                for layer in (nn.Conv2d(narrow, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU(), nn.MaxPool2d(2))
            )
        )
        self.head = nn.Linear(64 * 16, 10)

    def forward(self, images):
        return self.head(torch.flatten(self.features(images), 1))


class Block(nn.Module):
    """Attention written out in tensor methods, as in small GPTs."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.between = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(self.before(x)).split(width, 2))
        scores = torch.matmul(q, k.transpose(2, 3)) / (width // self.heads) ** 0.5
        weights = torch.softmax(scores.masked_fill(mask, float("-inf")), -1)
        x = x + self.out(torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    """Four blocks of width 64, 8 x 64 tokens."""

    def __init__(self, words=256, width=64, blocks=4, length=64):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(blocks))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.register_buffer("mask", torch.ones(length, length).triu(1).bool())

    def forward(self, tokens):
        x = self.words(tokens) + self.places
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.last(x)).flatten(0, 1)


def problem(name):
    """A network and a function that trains it by one step."""
    torch.manual_seed(0)
    if name == "cnn":
        net, data, labels = Cnn(), torch.randn(16, 3, 32, 32), torch.randint(10, (16,))
    else:
        net, data, labels = Gpt(), torch.randint(256, (8, 64)), torch.randint(256, (512,))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(net(data), labels)
        loss.backward()
        optimizer.step()

    return net, step


def cpu(step):
    """Seconds of this thread; backward of a network on the CPU runs in it."""
    start = thread_time()
    step()
    return thread_time() - start


def wall(step):
    start = perf_counter()
    step()
    return perf_counter() - start


def ours(net, step, mode, pairs, directory):
    """Pairs of an undumped and a dumped step, first one and then the other in front."""
    from dumpsim.migrator import api_dump_init

    if mode == "idle":

        def dumped(at):
            dump = api_dump_init(net, directory / str(at), retain_backward=True)
            try:
                return cpu(step)
            finally:
                dump.close()
    else:
        dump = api_dump_init(net, directory / "run", retain_backward=True)

        def dumped(at):
            dump.start(dump_type=mode)
            try:
                return cpu(step)
            finally:
                dump.stop()

    found = []
    for at in range(pairs + 3):
        if at % 2:
            before = cpu(step)
            found.append((before, dumped(at)))
        else:
            after = dumped(at)
            found.append((cpu(step), after))
    return found[3:]


def long(net, step, mode, steps, directory):
    """Seconds of each step of one run without a stop between, and of the stop."""
    from dumpsim.migrator import api_dump_init

    with api_dump_init(net, directory / "long", retain_backward=True) as dump:
        dump.start(dump_type=mode)
        times = [cpu(step) for _ in range(steps)]
        return times, cpu(dump.stop)


def disk(net, step, steps, directory):
    """MB/s of an npy dump from the first step to the end of stop, and of writing the same files plainly; six turns."""
    from dumpsim.migrator import api_dump_init

    found = []
    plain = min(wall(step) for _ in range(5))
    for turn in range(6):
        with api_dump_init(net, directory / f"npy{turn}", retain_backward=True) as dump:

            def run(dump=dump):
                dump.start(dump_type="npy")
                for _ in range(steps):
                    step()
                dump.stop()

            taken = wall(run)
        sizes = [path.stat().st_size for path in (directory / f"npy{turn}" / "rank0" / "torch_api_dump").iterdir()]
        raw = directory / f"raw{turn}"
        raw.mkdir()
        parts = [os.urandom(size) for size in sizes]

        def write(raw=raw, parts=parts):
            for at, part in enumerate(parts):
                with open(raw / str(at), "wb") as file:
                    file.write(part)

        seconds = wall(write)
        total = sum(sizes) / 1e6
        found.append({"MB": total, "files": len(sizes), "dump": taken, "raw": seconds, "steps": steps * plain})
    return found


def troubleshooter(net, step, mode, pairs, directory):
    """The real tool patches torch for good: undumped steps come first."""
    import troubleshooter as ts

    before = [cpu(step) for _ in range(pairs + 3)][3:]
    ts.migrator.api_dump_init(net, str(directory / "ts"), retain_backward=True)
    if mode != "idle":
        ts.migrator.api_dump_start(dump_type=mode)
    after = [cpu(step) for _ in range(pairs + 1)][1:]
    return list(zip(before, after, strict=True))


def msprobe(net, step, mode, pairs, directory):
    """Level L1; `npy` is its task tensor, `stack` has no counterpart but the structure of L0."""
    from msprobe.pytorch import PrecisionDebugger

    before = [cpu(step) for _ in range(pairs + 3)][3:]
    task, level = {"statistics": ("statistics", "L1"), "npy": ("tensor", "L1"), "stack": ("structure", "L0")}.get(
        mode, ("statistics", "L1")
    )
    debugger = PrecisionDebugger(task=task, level=level, dump_path=str(directory / "msprobe"))

    def dumped():
        if mode != "idle":
            debugger.start(model=net)
        step()
        if mode != "idle":
            debugger.stop()
            debugger.step()

    after = [cpu(dumped) for _ in range(pairs + 1)][1:]
    return list(zip(before, after, strict=True))


def main(tool, name, mode, pairs):
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    net, step = problem(name)
    with tempfile.TemporaryDirectory() as directory:
        run = {
            "dumpsim": long if mode.startswith("long-") else ours,
            "troubleshooter": troubleshooter,
            "msprobe": msprobe,
        }[tool]
        if mode == "disk":
            answer = disk(net, step, int(pairs), Path(directory))
        else:
            answer = run(net, step, mode.removeprefix("long-"), int(pairs), Path(directory))
    sys.stdout.write("\n@" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
