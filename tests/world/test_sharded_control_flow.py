"""Branches and loops in networks that are split over devices: results and weights equal those of one device, exactly.

Inputs and weights are small integers, so that every sum is exact in float32 and its order does not matter.
"""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn, ops
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.frontends.mindspore.ops import operations as P  # noqa: N812 - as scripts call it
from dumpsim.world import launch

SETTINGS = RunSettings(quiet=True, manifest=None)
X = (np.arange(16 * 16).reshape(16, 16) % 7 - 3).astype(np.float32)
ROWS, COLUMNS, WHOLE = (2, 1), (1, 2), (1, 1)
PRODUCTS = {
    "rows": ((2, 1), (1, 1)),
    "columns": ((1, 1), (1, 2)),
    "terms": ((1, 2), (2, 1)),
    "both": ((2, 1), (1, 2)),
    "whole": ((1, 1), (1, 1)),
}


class Parts(nn.Cell):
    """What the networks are made of."""

    def __init__(self, first, second, third, relu, neg):
        super().__init__()
        self.m1, self.m2, self.m3 = (P.MatMul().shard(PRODUCTS[name]) for name in (first, second, third))
        self.relu = P.ReLU().shard((relu,))
        self.neg = P.Neg().shard((neg,))
        self.sum = P.ReduceSum().shard((relu,))
        self.reshape = P.Reshape()
        weights = (np.arange(3 * 16 * 16).reshape(3, 16, 16) % 5 - 2).astype(np.float32)
        self.w1, self.w2, self.w3 = (ms.Parameter(Tensor(w), name=f"w{at}") for at, w in enumerate(weights, 1))


class Branch(Parts):
    def construct(self, x, c):
        x = self.m1(x, self.w1)
        if c > 1:
            y = self.relu(self.m3(x, self.w3))
        else:
            y = self.neg(x)
        return self.m2(y, self.w2)


class OneSide(Parts):
    def construct(self, x, c):
        x = self.m1(x, self.w1)
        if self.sum(x) * (c - 1) > 0:
            x = self.relu(x)
        return self.neg(x)


class Returned(Parts):
    """The results of the branch are those of the network; the condition is of a value that is cut."""

    def construct(self, x, c):
        x = self.m1(x, self.w1)
        if self.sum(x) * (c - 1) > 0:
            return self.relu(x)
        return self.m2(self.neg(x), self.w2)


class Weight(Parts):
    """A weight, an argument and a constant come out of branches."""

    def construct(self, x, c):
        if c > 1:
            w, y = self.w1, x
        else:
            w, y = self.w2, self.neg(x)
        return self.m3(self.m1(y, w), self.w3)


class While(Parts):
    def construct(self, x, c):
        x = self.m1(x, self.w1)
        while c > 0:
            x = self.relu(self.m2(x, self.w2))
            c = c - 1
        return self.neg(x)


class Argument(Parts):
    """The loop starts from an argument and from a constant, and its result is the network's."""

    def construct(self, x, c):
        total = ops.zeros((16, 16), ms.float32)
        while c > 0:
            x = self.relu(self.m2(x, self.w2))
            total = total + self.neg(x)
            c = c - 1
        return total


class Nested(Parts):
    """Branches in a loop, a loop in a branch, and a Reshape in between."""

    def construct(self, x, c):
        x = self.m1(x, self.w1)
        while c > 0:
            if self.sum(x) > 0:
                x = self.neg(self.reshape(self.m2(x, self.w2), (16, 16)))
            else:
                x = self.relu(x) + x
            c = c - 1
        if c > -1:
            n = c + 2
            while n > 0:
                x = self.m3(x, self.w3)
                n = n - 1
        return self.neg(x)


class Unrolled(Parts):
    def construct(self, x, c):
        x = self.m1(x, self.w1)
        for i in range(3):
            if c > i:
                x = self.relu(self.m2(x, self.w2))
            else:
                x = self.neg(x)
        return self.m3(x, self.w3)


class Left(Parts):
    """A loop that is left before its end."""

    def construct(self, x, c):
        x = self.m1(x, self.w1)
        n = c * 0
        while n < 5:
            if n > c:
                break
            x = self.relu(self.m2(x, self.w2))
            n = n + 1
        return self.neg(x)


NETS = (Branch, OneSide, Returned, Weight, While, Argument, Nested, Unrolled, Left)
CUTS = [
    ("rows", "terms", "columns", ROWS, COLUMNS),
    ("both", "columns", "rows", COLUMNS, ROWS),
    ("terms", "rows", "both", WHOLE, ROWS),
    ("columns", "both", "terms", ROWS, WHOLE),
    ("whole", "terms", "rows", COLUMNS, COLUMNS),
]


class Loss(nn.Cell):
    def __init__(self, net, rows):
        super().__init__()
        self.net = net
        self.sum = P.ReduceSum().shard((rows,))

    def construct(self, x, c):
        return self.sum(self.net(x, c))


def run(kind, cuts, count, is_split, trains=False):
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    if is_split:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = kind(*cuts)
    if not trains:
        return net(Tensor(X), Tensor(count, ms.int32)).asnumpy(), {}
    net = Loss(net, cuts[-1])
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.25, 0.5)).set_train()
    step(Tensor(X), Tensor(count, ms.int32))
    return None, {p.name: (p.asnumpy(), p._layout) for p in net.get_parameters()}


def check(kind, cuts, count, ranks, trains=False):
    whole = ("whole",) * 3 + (WHOLE,) * 2
    ((expected, weights),) = launch(run, 1, args=[kind, whole, count, False, trains], settings=SETTINGS)
    for rank, (result, own) in enumerate(launch(run, ranks, args=[kind, cuts, count, True, trains], settings=SETTINGS)):
        np.testing.assert_array_equal(result, expected)
        for name, (value, layout) in own.items():
            place = layout.region(rank) if layout is not None else ...
            np.testing.assert_array_equal(value, weights[name][0][place], err_msg=f"{name} of rank {rank}")


def ranks_of(cuts):
    return 4 if "both" in cuts else 2


@pytest.mark.parametrize(("number", "kind"), list(enumerate(NETS)))
def test_results(number, kind):
    for count in (0, 2):
        check(kind, CUTS[number % len(CUTS)], count, ranks_of(CUTS[number % len(CUTS)]))


@pytest.mark.parametrize(("number", "kind"), [(0, Branch), (1, While), (2, Nested)])
def test_training(number, kind):
    check(kind, CUTS[number], 2, ranks_of(CUTS[number]), trains=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", NETS)
def test_all(kind):
    for cuts in CUTS:
        for count in (0, 2):
            for trains in (False, True):
                check(kind, cuts, count, ranks_of(cuts), trains)


def test_parts_that_do_not_fit_together_are_logged(capfd):
    launch(run, 2, args=[Branch, CUTS[0], 2, True], settings=SETTINGS)
    text = capfd.readouterr().err
    assert "the second side of a branch" in text
    assert "cut in another way than (2, 1)" in text


class Saved(nn.Cell):
    """A tensor is saved in a branch, whose product takes it in other parts."""

    def __init__(self, rank):
        super().__init__()
        self.m1, self.m2 = (P.MatMul().shard(PRODUCTS[name]) for name in ("terms", "terms"))
        self.weight = ms.Parameter(Tensor(X), name="w")
        self.file = f"rank_{rank}/t.npy"

    def construct(self, x, c):
        x = self.m1(x, x)
        if c > 1:
            ops.tensordump(self.file, x, "all")
            x = self.m2(x, self.weight)
        return x


def test_tensordump_in_a_branch(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    def main():
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.set_device("Ascend")
        init()
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
        Saved(get_rank())(Tensor(X), Tensor(2, ms.int32))

    launch(main, 2, settings=SETTINGS)
    slices = []
    for rank in range(2):
        whole, part = sorted((tmp_path / f"rank_{rank}").iterdir())
        np.testing.assert_array_equal(np.load(whole), X @ X)
        assert part.name.endswith(f"_all_rank_{rank}.npy")
        slices.append(np.load(part))
    np.testing.assert_array_equal(np.hstack(slices), X @ X)
    assert "is saved inside control flow" in capfd.readouterr().err
