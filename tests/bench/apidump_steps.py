"""Training steps with and without an API dump in turn: `python apidump_steps.py TOOL NET MODE PAIRS` prints JSON.

Runs under any Python that has torch and the tool, without the rest of the tests: `bench_apidump.py` starts it.
TOOL is dumpsim, troubleshooter or msprobe; NET is cnn or gpt; MODE is idle, stack, statistics or npy, or long-MODE or
disk for dumpsim.

A sample is the median of a few steps; a pair is a sample without and one with the dump, in the order ABBA. dumpsim
leaves nothing behind, so that both sides are one network in one process. The other tools patch torch for good: their
dumped steps run in a second process, forked before the tool was loaded, which takes its turn when it is told to.
"""

import json
import logging
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

STEPS = 5  # of a sample
IDLE_STEPS = 25  # where a difference of 5 % must show


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


def both(step):
    start, begun = perf_counter(), thread_time()
    step()
    return thread_time() - begun, perf_counter() - start


def sample(step, count):
    """Median seconds of a step, by the clock of this thread and by the wall."""
    times = [both(step) for _ in range(count)]
    return [statistics.median(part) for part in zip(*times, strict=True)]


def in_turn(plain, dumped, pairs):
    """Pairs of samples in the order ABBA; the first three warm up."""
    found = []
    for at in range(pairs + 3):
        if at % 2:
            before = plain(at)
            found.append((before, dumped(at)))
        else:
            after = dumped(at)
            found.append((plain(at), after))
    return found[3:]


def ours(net, step, mode, pairs, directory):
    """Stop and what it writes is not a part of the step; `long` tells it."""
    from dumpsim.migrator import api_dump_init

    if mode == "idle":
        # both sides come from an init; on the one it is closed, on the other open: never started, or stopped again
        def idle(at, *, closed):
            dump = api_dump_init(net, directory / str(at), retain_backward=True)
            try:
                if at % 4 < 2:
                    dump.start(dump_type="stack")
                    dump.stop()
                if closed:
                    dump.close()
                step()
                return sample(step, IDLE_STEPS)
            finally:
                dump.close()

        return in_turn(lambda at: idle(at, closed=True), lambda at: idle(at, closed=False), pairs)

    dump = api_dump_init(net, directory / "run", retain_backward=True)

    def plain(at):
        step()
        return sample(step, STEPS)

    def dumped(at):
        dump.start(dump_type=mode)
        try:
            step()
            return sample(step, STEPS)
        finally:
            dump.stop()

    return in_turn(plain, dumped, pairs)


def long(net, step, mode, steps, directory):
    """Seconds of each step of one run without a stop between, of plain steps before and after, and of the stop."""
    from dumpsim.migrator import api_dump_init

    plain = [cpu(step) for _ in range(20)]
    with api_dump_init(net, directory / "long", retain_backward=True) as dump:
        dump.start(dump_type=mode)
        times = [cpu(step) for _ in range(steps)]
        stop = wall(dump.stop)
    return times, plain, [cpu(step) for _ in range(20)], stop


def disk(net, step, steps, directory):
    """Seconds of an npy dump with its steps, of the same steps without, and of writing its files.

    `writer` is our thread given all files at once, `raw` a loop of open, write and close over the same sizes in the
    same file system. Neither asks the disk to sync. Six turns.
    """
    from dumpsim.frontends.apidump.output import Output
    from dumpsim.migrator import api_dump_init

    found = []
    for _ in range(3):
        step()

    def run(dump=None):
        if dump is not None:
            dump.start(dump_type="npy")
        for _ in range(steps):
            step()
        if dump is not None:
            dump.stop()

    def raw(place, parts):
        place.mkdir()
        for name, part in parts:
            with open(place / name, "wb") as file:
                file.write(part)

    def writer(place, parts):
        output = Output(place, "torch", 0)
        output.begin()
        for name, part in parts:
            output.array(name, (part,))
        output.close()

    for turn in range(6):
        place = directory / f"turn{turn}"
        seconds = {"plain": wall(run)}
        with api_dump_init(net, place / "run", retain_backward=True) as dump:
            seconds["dump"] = wall(partial(run, dump))
        paths = sorted((place / "run" / "rank0" / "torch_api_dump").iterdir())
        parts = [(path.stem, path.read_bytes()) for path in paths]
        for function in (raw, writer) if turn % 2 else (writer, raw):
            name = function.__name__
            seconds[name] = wall(partial(function, place / name, parts))
        found.append(seconds | {"MB": sum(len(part) for _, part in parts) / 1e6, "files": len(parts)})
        shutil.rmtree(place)
    return found


def beside(prepare, step, pairs):
    """Pairs of this process and of one that has the tool; `prepare` loads it and gives the dumped step."""
    here, there = multiprocessing.get_context("fork").Pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            dumped = prepare()
            while there.recv():
                there.send(sample(dumped, 1))
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    there.close()

    def turn(_):
        here.send(True)
        return here.recv()

    try:
        return in_turn(lambda _: sample(step, 1), turn, pairs)
    finally:
        here.send(False)
        os.waitpid(child, 0)


def troubleshooter(net, step, mode, pairs, directory):
    def prepare():
        import troubleshooter as ts

        ts.migrator.api_dump_init(net, str(directory / "ts"), retain_backward=True)
        if mode != "idle":
            ts.migrator.api_dump_start(dump_type=mode)
        return step

    return beside(prepare, step, pairs)


def msprobe(net, step, mode, pairs, directory):
    """Level L1; `npy` is its task tensor, `stack` has no counterpart but the structure of L0. It writes at stop."""

    def prepare():
        from msprobe.pytorch import PrecisionDebugger

        task, level = {"npy": ("tensor", "L1"), "stack": ("structure", "L0")}.get(mode, ("statistics", "L1"))
        debugger = PrecisionDebugger(task=task, level=level, dump_path=str(directory / "msprobe"))

        def dumped():
            debugger.start(model=net)
            step()
            debugger.stop()
            debugger.step()

        return step if mode == "idle" else dumped

    return beside(prepare, step, pairs)


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
