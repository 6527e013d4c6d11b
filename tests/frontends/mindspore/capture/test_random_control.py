"""Random control flow on tensors has the results of Python on numpy arrays."""

import importlib.util
from random import Random

import numpy as np
import pytest

from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor

NAMES = ("x", "y", "z")
VALUES = ("{} + 1.0", "{} * 0.5", "{} - {}", "{} + {} * 0.25", "-{}", "{} * {} * 0.125")
TESTS = ("{}.max() > 0.5", "{}.min() < -0.5", "n > 1", "n < 3", "{}.max() > n", "n == 2")


class Maker:
    """Writes a random function for a seed, and a helper; every variable has a value before a branch changes it."""

    def __init__(self, seed):
        self.rng = Random(seed)
        self.calls = False
        self.count = 0

    def name(self):
        return self.rng.choice(NAMES)

    def value(self):
        text = self.rng.choice(VALUES)
        filled = text.format(*(self.name() for _ in range(text.count("{}"))))
        if self.calls and self.rng.random() < 0.2:
            return f"helper({self.name()}, {self.name()}, {self.name()}, n)"
        if self.rng.random() < 0.15:
            return f"{filled} if {self.test()} else {self.name()}"
        return filled

    def test(self, depth=2):
        one = self.rng.choice(TESTS).format(self.name())
        kind = self.rng.random()
        if depth and kind < 0.15:
            return f"{self.test(depth - 1)} and {self.test(depth - 1)}"
        if depth and kind < 0.3:
            return f"({self.test(depth - 1)} or {one})"
        if depth and kind < 0.4:
            return f"not ({self.test(depth - 1)})"
        return one

    def body(self, depth, loop=False, length=None):
        lines = []
        for _ in range(length or self.rng.randint(1, 3)):
            kind = self.rng.random() if depth else 1.0
            if kind < 0.3:
                lines += self.branch(depth, loop)
            elif kind < 0.5:
                lines += self.loop(depth)
            else:
                lines.append(f"{self.name()} = {self.value()}")
        return lines

    def branch(self, depth, loop):
        inside = self.body(depth - 1, loop)
        if loop and self.rng.random() < 0.5:
            inside.append(self.rng.choice(("break", "continue")))
        elif not loop and self.rng.random() < 0.25:
            inside.append(f"return {self.name()}")
        lines = [f"if {self.test()}:", *indented(inside)]
        if self.rng.random() < 0.5:
            lines += ["else:", *indented(self.body(depth - 1, loop))]
        return lines

    def loop(self, depth):
        self.count += 1
        turn = f"i{self.count}"
        return [
            f"{turn} = n - n",
            f"while {turn} < {self.rng.choice(('n', 2))}:",
            *indented([f"{turn} = {turn} + 1", *self.body(depth - 1, True)]),
        ]

    def function(self):
        helper = [*self.body(2, length=2), "return y"]
        self.calls = True
        lines = [*self.body(3, length=4), "return x + z"]
        heads = "def helper(x, y, z, n):", "def construct(self, x, y, z, n):"
        return "\n".join([heads[0], *indented(helper), "", heads[1], *indented(lines)])


def indented(lines):
    return ["    " + line for line in lines]


def module_of(path, function):
    """A module with the function alone and as a cell."""
    lines = ["from dumpsim.frontends.mindspore import nn", "", "class Net(nn.Cell):", "    construct = construct"]
    path.write_text("\n".join([function, "", *lines, ""]))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arrays(seed):
    random = np.random.default_rng(seed)
    return [random.normal(size=2).astype(np.float32) for _ in range(3)]


def check(path, seed):
    function = Maker(seed).function()
    module = module_of(path / f"net_{seed}.py", function)
    net = module.Net()
    for n in (0, 1, 2, 3):
        values = arrays(seed + n)
        with np.errstate(all="ignore"):
            expected = module.construct(None, *(value.copy() for value in values), np.int32(n))
        found = net(*map(Tensor, values), Tensor(n, mstype.int32))
        np.testing.assert_array_equal(found.asnumpy(), expected, err_msg=f"n = {n}\n{function}")


@pytest.mark.parametrize("seed", range(12))
def test_results_are_those_of_python(graph_mode, tmp_path, seed):
    check(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_more_results_are_those_of_python(graph_mode, tmp_path, seed):
    check(tmp_path, seed)
