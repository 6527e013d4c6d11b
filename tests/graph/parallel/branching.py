"""Random sharded nets with branches or loops: ``python tests/graph/parallel/branching.py FOLDER COUNT [SEED [train]]``

Both sides of a branch, and the value before a loop and its body, end with the same strategy: MindSpore does not
redistribute what they give. `record.py` compiles these nets with real MindSpore.
"""

import random
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["branching_script", "training_script"]

HEAD = '''"""Branches and loops"""
import numpy as np
import mindspore as ms
from mindspore import nn, Tensor, context
from mindspore.ops import operations as P

SETTINGS = {settings}


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
{fields}

    def construct(self, x, c):
{lines}


def inputs():
    return [Tensor(np.ones((16, 32), np.float32)), Tensor(2, ms.int32)]


def network():
    return Net()
'''
UNARY = ("ReLU", "Neg", "Tanh", "Sigmoid", "GeLU")


@dataclass
class Draft:
    """A net in the making."""

    chosen: random.Random
    devices: int
    fields: list[str] = field(default_factory=list)
    weights: int = 0
    loops: int = 0

    def cut(self, count: int) -> tuple[int, ...]:
        """How often each of some axes is cut."""
        found = [1] * count
        left = self.devices
        for axis in self.chosen.sample(range(count), count):
            found[axis] = self.chosen.choice([n for n in (1, 2, 4) if n <= left])
            left //= found[axis]
        return tuple(found)

    def unary(self, name: str, cut: tuple[int, ...]) -> str:
        """A call of an operator with one operand."""
        number = len(self.fields)
        self.fields.append(f"self.op{number} = P.{self.chosen.choice(UNARY)}().shard(({cut},))")
        return f"self.op{number}({name})"

    def product(self, name: str) -> str:
        """A product with a new weight, which keeps the shape."""
        a, b, c = self.cut(3)
        number = len(self.fields)
        self.weights += 1
        weight = f"w{self.weights}"
        made = f'ms.Parameter(Tensor(np.ones((32, 32), np.float32)), name="{weight}")'
        self.fields += [f"self.op{number} = P.MatMul().shard((({a}, {b}), ({b}, {c})))", f"self.{weight} = {made}"]
        return f"self.op{number}({name}, self.{weight})"

    def steps(self, name: str, last: tuple[int, ...] | None = None) -> list[str]:
        """Statements that change a variable; the last one with this strategy."""
        found = []
        for _ in range(self.chosen.randint(0 if last else 1, 2)):
            call = self.product(name) if self.chosen.random() < 0.5 else self.unary(name, self.cut(2))
            found.append(f"{name} = {call}")
        if last is not None:
            found.append(f"{name} = {self.unary(name, last)}")
        return found

    def branch(self, name: str) -> list[str]:
        """An ``if`` statement."""
        last = self.cut(2)
        number = self.chosen.randrange(5)
        return [
            f"if c > {number}:", *_indented(self.steps(name, last)), "else:", *_indented(self.steps(name, last))
        ]  # fmt: skip

    def loop(self, name: str) -> list[str]:
        """A ``while`` statement, and what lies before it."""
        last = self.cut(2)
        body = self.branch(name) if self.chosen.random() < 0.3 else []
        self.loops += 1
        return [
            f"{name} = {self.unary(name, last)}",
            "while c > 0:", *_indented([*body, *self.steps(name, last), "c = c - 1"]),
        ]  # fmt: skip


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def branching_script(seed: int) -> str:
    """The script of a random net."""
    chosen = random.Random(seed)
    net = Draft(chosen, chosen.choice([2, 4]))
    settings = {
        "device_num": net.devices,
        "global_rank": chosen.randrange(net.devices),
        "enable_alltoall": chosen.random() < 0.25,
        "dataset_strategy": "full_batch",
    }
    lines = net.steps("x")
    for _ in range(chosen.randint(1, 2)):
        lines += net.branch("x") if chosen.random() < 0.5 or net.loops else net.loop("x")
        lines += net.steps("x")
    return HEAD.format(
        settings=settings,
        fields="\n".join(f"        {line}" for line in net.fields),
        lines="\n".join(f"        {line}" for line in [*lines, "return x"]),
    )


TRAINING = """def network():
    net = Net()
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.5, 0.5))
    step.set_train()
    return step
"""
_OPTIMIZER = "'enable_parallel_optimizer': True, 'parallel_optimizer_config': {'parallel_optimizer_threshold': 0}"
OPTIONS = (
    "'gradients_mean': True",
    "'loss_repeated_mean': False",
    _OPTIMIZER,
    f"'gradients_mean': True, {_OPTIMIZER}",
)


def training_script(seed: int) -> str:
    """The script of a random net that is trained, with one of several settings."""
    script = branching_script(seed).replace("def network():\n    return Net()\n", TRAINING)
    return re.sub(r"(SETTINGS = \{.*)\}", lambda found: f"{found[1]}, {OPTIONS[seed % len(OPTIONS)]}}}", script)


if __name__ == "__main__":
    into, count = Path(sys.argv[1]), int(sys.argv[2])
    into.mkdir(parents=True, exist_ok=True)
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    for seed in range(first, first + count):
        if sys.argv[4:] == ["train"]:
            (into / f"train_{seed}.py").write_text(training_script(seed))
        else:
            (into / f"net_{seed:04}.py").write_text(branching_script(seed))
