"""Random nets as plain MindSpore scripts: ``python tests/corpus/generate.py --seed 1 --count 200 --into FOLDER``.

A script is the same for the same seed and number. It runs with real MindSpore and under the emulation alike, and its
first line names its features. What it computes has no meaning; values stay small, and every tensor that a branch
assigns exists before it.
"""

import argparse
from pathlib import Path
from random import Random

HEAD = '''"""{features}"""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, jit, nn, ops

ms.set_context(mode=ms.{mode}_MODE, device_target="CPU")


def data(*shape, seed=0):
    return Tensor((np.random.RandomState(seed).randn(*shape) * 0.5).astype(np.float32))


def fill(net):
    for at, parameter in enumerate(net.get_parameters()):
        value = np.random.RandomState(100 + at).randn(*parameter.shape) * 0.5
        if parameter.name.endswith("variance"):
            value = np.abs(value) + 0.5
        if parameter.dtype == ms.float32:
            parameter.set_data(Tensor(value.astype(np.float32)))
    return net
'''

UNARY = (
    "ops.relu({})",
    "ops.tanh({})",
    "ops.sigmoid({})",
    "ops.gelu({})",
    "ops.abs({})",
    "ops.square({})",
    "ops.neg({})",
    "ops.sin({})",
    "ops.cos({})",
    "-{}",
    "{}.abs()",
    "ops.softmax({}, -1)",
    "ops.silu({})",
    "ops.leaky_relu({}, 0.1)",
    "ops.elu({})",
    "ops.exp(ops.tanh({}))",
    "ops.log(ops.abs({}) + 1.0)",
    "ops.sqrt(ops.abs({}) + 0.5)",
    "ops.clip_by_value({}, -1.0, 1.0)",
    "ops.floor({})",
    "ops.erf({})",
)
NUMBER = (
    "{} * 2.0",
    "{} + 1.0",
    "2.0 - {}",
    "{} - 0.5",
    "{} / 2.0",
    "0.5 * {}",
    "{} ** 2",
    "1.0 / (ops.abs({}) + 1.0)",
    "{} % 2.0",
    "{} // 2.0",
    "1 + {}",
)
BINARY = (
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "ops.maximum({}, {})",
    "ops.minimum({}, {})",
    "ops.add({}, {})",
    "ops.mul({}, {})",
)
BROADCAST = (
    "({0} - {0}.mean())",
    "({0} + {0}.sum())",
    "({0} - ops.mean({0}, 1, True))",
    "({0} * ops.amax({0}, 1, True))",
    "({0} - {0}.min())",
    "({0} / ({0}.abs().max() + 1.0))",
    "({0} + {0}.sum(0))",
    "({0} * {0}.mean(1, True))",
    "({0} - ops.std({0}))",
    "({0} + {0}.max())",
)
SHAPES = (
    "ops.reshape(ops.reshape({0}, (-1,)), ({b}, {w}))",
    "ops.transpose(ops.transpose({0}, (1, 0)), (1, 0))",
    "ops.matmul(ops.matmul({0}, ops.transpose({0}, (1, 0))), {0})",
    "(({0} @ {0}.T) @ {0})",
    "ops.concat(({0}, {0}), 0)[:{b}]",
    "ops.concat(({0}[:, :1], {0}[:, 1:]), 1)",
    "ops.stack(({0}, {0} * 2.0)).sum(0)",
    "ops.squeeze(ops.expand_dims({0}, 0), 0)",
    "ops.tile({0}[:, :1], (1, {w}))",
    "ops.flip({0}, (0,))",
    "ops.cumsum({0}, 1)",
)
CHOICE = (
    "ops.where({0} > 0.1, {0}, {1})",
    "ops.where({0} == {1}, {0}, {1})",
    "ops.where({0} < 0.5, {1}, {0} * 2.0)",
    "ops.where(ops.greater({0}, {1}), {0}, {1})",
    "ops.masked_fill({0}, {1} > 0, 0.5)",
    "({0} * ({1} >= 0.1).astype(ms.float32))",
    "({0} + ops.cast({1} != 0.0, ms.float32))",
    "ops.select({0} <= 0.3, {0}, {1})",
    "({0} + {1}.astype(ms.float16).astype(ms.float32))",
    "({0} - ops.cast({1}, ms.int32).astype(ms.float32))",
)


class Writer:
    """Writes one net; what it needs (members, helper functions, cells) gathers while its body is written.

    Parameters
    ----------
    rng : Random
        Decides everything.
    calls : bool
        Whether bodies may call helper functions and further cells.
    """

    def __init__(self, rng: Random, *, calls: bool = True) -> None:
        self.rng = rng
        self.batch, self.width = rng.choice([2, 3, 4]), rng.choice([3, 4, 5, 6])
        self.calls = calls
        self.features: list[str] = []
        self.top: list[str] = []  # helper functions and cells
        self.members: list[str] = []
        self.names: dict[str, int] = {}

    def tag(self, *features: str) -> None:
        """Add features, each once."""
        self.features += [feature for feature in features if feature not in self.features]

    def fresh(self, stem: str) -> str:
        """A name that was not given before."""
        number = self.names[stem] = self.names.get(stem, -1) + 1
        return f"{stem}{number}"

    # expressions of shape (batch, width)

    def layer(self) -> str:
        """A member that keeps the shape, new or shared."""
        if self.members and self.rng.random() < 0.35:
            found = [line.split(" = ")[0] for line in self.members if " = nn." in line and "List" not in line]
            if found:
                self.tag("shared")
                return self.rng.choice(found)
        made = self.rng.choice(
            [
                "nn.Dense({w}, {w})",
                "nn.Dense({w}, {w})",
                "nn.Dense({w}, {w}, has_bias=False)",
                "nn.Dense({w}, {w}, activation='relu')",
                "nn.LayerNorm(({w},))",
                "nn.ReLU()",
                "nn.GELU()",
                "nn.SequentialCell([nn.Dense({w}, {w}), nn.Tanh()])",
            ]
        )
        name = self.fresh("self.m")
        self.members.append(f"{name} = {made.format(w=self.width)}")
        return name

    def expression(self, known: list[str], depth: int = 2) -> str:
        """A random expression over the known tensors."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.1:
            return rng.choice(known)
        one = self.expression(known, depth - 1)
        kind = rng.choices(
            ["unary", "number", "binary", "broadcast", "shape", "choice", "layer", "call"],
            [18, 14, 24, 8, 6, 7, 15 if self.members is not None else 0, 8 if self.calls else 0],
        )[0]
        if kind == "unary":
            return rng.choice(UNARY).format(one)
        if kind == "number":
            return f"({rng.choice(NUMBER).format(one)})"
        if kind == "binary":
            return rng.choice(BINARY).format(one, self.expression(known, depth - 1))
        if kind == "layer":
            return f"{self.layer()}({one})"
        if kind == "call":
            return self.call(known)
        simple = rng.choice(known)
        if kind == "broadcast":
            return rng.choice(BROADCAST).format(simple)
        if kind == "shape":
            return rng.choice(SHAPES).format(simple, b=self.batch, w=self.width)
        return rng.choice(CHOICE).format(simple, rng.choice(known))

    def call(self, known: list[str]) -> str:
        """A call of a helper function, new or known."""
        self.tag("helper")
        helpers = [text.split("(")[0].removeprefix("def ") for text in self.top if text.startswith("def help")]
        if not helpers or self.rng.random() < 0.5:
            helpers.append(self.helper())
        one, two = self.rng.choice(known), self.rng.choice(known)
        return f"{self.rng.choice(helpers)}({one}, {two})"

    def helper(self) -> str:
        """Write a helper function of two tensors; returns its name."""
        name = self.fresh("help")
        members, self.members = self.members, None  # type: ignore[assignment]
        calls, self.calls = self.calls, False
        lines = [f"    z = {self.expression(['x', 'y'])}"] if self.rng.random() < 0.5 else ["    z = x"]
        lines.append(f"    return {self.expression(['x', 'y', 'z'])}")
        self.members, self.calls = members, calls
        self.top.append("\n".join([f"def {name}(x, y):", *lines]))
        return name

    # statements

    def line(self, known: list[str], old: list[str] | None = None) -> str:
        """An assignment to a new tensor, or to one of `old`."""
        text = self.expression(known)
        if old:
            return f"{self.rng.choice(old)} = {text}"
        name = self.fresh("t")
        known.append(name)
        return f"{name} = {text}"

    def condition(self, known: list[str]) -> str:
        """A condition on tensors."""
        rng = self.rng
        simple = [
            "n > 1",
            "n > 2",
            "n < 2",
            f"{rng.choice(known)}.sum() > 0",
            f"{rng.choice(known)}.mean() < 0.2",
            f"{rng.choice(known)}.max() > 1.0",
            f"ops.reduce_sum({rng.choice(known)}) > 0.5",
        ]
        one, two = rng.choice(simple), rng.choice(simple)
        return rng.choices([one, f"{one} and {two}", f"{one} or {two}", f"not {one}"], [12, 1, 1, 1])[0]

    def body(
        self, known: list[str], size: int, allowed: tuple[str, ...], *, assign: bool = False, loop: bool = False
    ) -> list[str]:
        """Statements; `allowed` names the control flow and updates that may occur, `assign` keeps them to known names.

        In a loop the last statement may leave or continue it.
        """
        rng = self.rng
        lines: list[str] = []
        old = [name for name in known if name != "x0"] if assign else None
        for _ in range(size):
            kind = rng.choice(["line", *allowed]) if allowed and rng.random() < 0.75 else "line"
            inner = tuple(item for item in allowed if item != "return") if loop else allowed
            if kind == "line":
                lines.append(self.line(known, old))
            elif kind == "if":
                self.tag("if")
                lines += self.choose(known, inner)
            elif kind == "while":
                self.tag("while")
                lines += self.repeat(known, inner)
            elif kind == "for":
                self.tag("for")
                lines += self.turns(known, inner)
            elif kind == "parameter":
                self.tag("parameter")
                lines += self.update(known)
            elif kind == "multi":
                self.tag("multi-output")
                lines += self.outputs(known, old)
        if loop and rng.random() < 0.3:
            word = rng.choice(["break", "continue"])
            self.tag(word, "if")
            at = rng.randrange(len(lines) + 1)
            while at < len(lines) and lines[at].startswith((" ", "el")):
                at += 1
            lines[at:at] = [f"if {self.condition(known)}:", *self.indent([self.line(known, old), word])]
        return lines

    @staticmethod
    def indent(lines: list[str]) -> list[str]:
        """The lines one level deeper."""
        return ["    " + line for line in lines]

    def smaller(self, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """What may stand inside: less with each level."""
        return tuple(item for item in allowed if self.rng.random() < 0.45)

    def choose(self, known: list[str], allowed: tuple[str, ...]) -> list[str]:
        """An if statement."""
        rng = self.rng
        inner = self.smaller(allowed)
        if set(inner) & {"if", "while", "for"}:
            self.tag("nested")
        lines = [f"if {self.condition(known)}:"]
        lines += self.indent(self.body(list(known), rng.choice([1, 1, 2]), inner, assign=True))
        if rng.random() < 0.25:
            lines.append(f"elif {self.condition(known)}:")
            lines += self.indent(self.body(list(known), 1, (), assign=True))
        if rng.random() < 0.7:
            lines.append("else:")
            lines += self.indent(self.body(list(known), rng.choice([1, 1, 2]), inner, assign=True))
        return lines

    def repeat(self, known: list[str], allowed: tuple[str, ...]) -> list[str]:
        """A while loop that ends."""
        rng = self.rng
        inner = self.smaller(allowed)
        if set(inner) & {"if", "while", "for"}:
            self.tag("nested")
        if rng.random() < 0.2:
            name = rng.choice([name for name in known if name != "x0"] or known)
            return [f"{name} = ops.tanh({name})", f"while {name}.sum() > 0.7:", f"    {name} = {name} * 0.5 - 0.01"]
        count = self.fresh("i")
        limit = rng.choice(["n", "n", "3", "n + 1"])
        lines = self.body(list(known), rng.choice([1, 2, 2]), inner, assign=True, loop=True)
        head = [f"{count} = Tensor(0, ms.int32)", f"while {count} < {limit}:", f"    {count} = {count} + 1"]
        return head + self.indent(lines)

    def turns(self, known: list[str], allowed: tuple[str, ...]) -> list[str]:
        """A for loop over a range or a CellList."""
        rng = self.rng
        inner = self.smaller(allowed)
        if set(inner) & {"if", "while", "for"}:
            self.tag("nested")
        if self.members is not None and rng.random() < 0.5:
            self.tag("celllist")
            name = self.fresh("self.list")
            size = rng.choice([2, 3])
            made = rng.choice([f"nn.Dense({self.width}, {self.width})", f"nn.LayerNorm(({self.width},))"])
            self.members.append(f"{name} = nn.CellList([{made} for _ in range({size})])")
            cell, target = self.fresh("cell"), rng.choice([name for name in known if name != "x0"] or known)
            lines = [f"{target} = {cell}({target})", *self.body(list(known), 1, inner, assign=True)]
            return [f"for {cell} in {name}:", *self.indent(lines)]
        turn = self.fresh("k")
        lines = self.body(list(known), rng.choice([1, 2]), inner, assign=True)
        if rng.random() < 0.4:
            target = rng.choice([name for name in known if name != "x0"] or known)
            lines.append(f"{target} = {target} * ({turn} + 1.0)")
        return [f"for {turn} in range({rng.choice([2, 3])}):", *self.indent(lines)]

    def parameter(self) -> str:
        """A Parameter of the usual shape, new or known."""
        found = [line.split(" = ")[0] for line in self.members if "Parameter(" in line]
        if found and self.rng.random() < 0.6:
            return self.rng.choice(found)
        name = self.fresh("self.p")
        value = self.rng.choice(["np.ones", "np.zeros"])
        shape = f"({self.batch}, {self.width})"
        self.members.append(f'{name} = Parameter(Tensor({value}({shape}, np.float32)), name="{name[5:]}")')
        return name

    def update(self, known: list[str]) -> list[str]:
        """An update of a Parameter, and perhaps a use."""
        name, text = self.parameter(), self.expression([*known], 1)
        form = self.rng.choice(
            [
                "{p} = {t}",
                "{p} = {p} * 0.5 + {t}",
                "ops.assign({p}, {t})",
                "ops.assign_add({p}, {t})",
                "ops.assign_sub({p}, {t})",
                "{p} += {t}",
                "{p} -= {t}",
                "{p} += 1.0",
                "{p} *= 0.5",
            ]
        )
        lines = [form.format(p=name, t=text)]
        if self.rng.random() < 0.6:
            target = self.rng.choice([item for item in known if item != "x0"] or known)
            lines.append(f"{target} = {target} + {name}")
        return lines

    def outputs(self, known: list[str], old: list[str] | None) -> list[str]:
        """An operator with several outputs."""
        rng = self.rng
        x, one, two = rng.choice(known), self.fresh("a"), self.fresh("b")
        target = rng.choice(old) if old else self.fresh("t")
        width = self.width
        form = rng.choice(
            [
                "{a}, {b} = ops.topk({x}, 2)\n{t} = {x} + {a}.sum() - {b}.sum()",
                "{a}, {b} = ops.max({x}, 1)\n{t} = {x} * ops.reshape({a}, (-1, 1))",
                "{a}, {b} = ops.min({x}, 0)\n{t} = {x} - {a}",
                "{a}, {b} = ops.sort({x})\n{t} = {a} + {b}",
                "{a} = ops.unstack({x}, 1)\n{t} = ops.stack({a}, 1) + ops.reshape({a}[0], (-1, 1))",
                "{a}, {b} = ops.split({x}, ({w} - 1, 1), 1)\n{t} = ops.concat(({b}, {a} * 2.0), 1)",
                "{a} = ops.chunk({x}, 2, 1)\n{t} = {x} + {a}[0].sum()",
                "{a} = {x}.split(1, 0)\n{t} = {x} + {a}[0] * {a}[-1]",
                "{a}, {b} = {x}.std(), {x}.mean()\n{t} = {x} * {a} - {b}",
            ]
        )
        if old is None:
            known.append(target)
        return form.format(a=one, b=two, x=x, t=target, w=width).split("\n")

    # whole cells

    def cell(self, name: str, arguments: list[str], lines: list[str], result: str, extra: tuple[str, ...] = ()) -> str:
        """Text of a Cell with the members that gathered."""
        members = [*self.members, *extra] or ["pass"]
        text = [f"class {name}(nn.Cell):", "    def __init__(self):", "        super().__init__()"]
        text += ["        " + line for line in members if line != "pass"]
        text += ["", f"    def construct(self, {', '.join(arguments)}):"]
        text += ["        " + line for line in lines]
        text += [f"        return {result}"]
        return "\n".join(text)

    def script(self, main: list[str], mode: str = "GRAPH") -> str:
        """The whole script."""
        head = HEAD.replace("{features}", ", ".join(self.features)).replace("{mode}", mode)
        return "\n\n\n".join([head.rstrip("\n"), *self.top, "\n".join(main)]) + "\n"

    def x(self, seed: str | int = "step") -> str:
        """An input of the usual shape."""
        return f"data({self.batch}, {self.width}, seed={seed})"


def results(rng: Random, known: list[str]) -> str:
    """What a net returns."""
    count = rng.choice([1, 1, 2, 3])
    return ", ".join(dict.fromkeys([known[-1], *(rng.choice(known) for _ in range(count - 1))]))


def plain(rng: Random, tags: tuple[str, ...], allowed: tuple[str, ...], *, calls: bool = False) -> str:
    """A net with the allowed statements in its construct."""
    write = Writer(rng, calls=calls)
    known = ["x0", "x1"]
    lines = [write.line(known)] if rng.random() < 0.7 else []
    lines += ["y = x1" if rng.random() < 0.5 else f"y = {write.expression(known)}"]
    known.append("y")
    missing = [item for item in tags if item in ("if", "while", "for", "parameter", "multi-output")]
    while True:
        lines += write.body(known, rng.choice([2, 3, 4] if allowed else [4, 6, 9]), allowed)
        if all(item in write.features for item in missing):
            break
    lines.append(write.line(known))
    write.tag(*tags)
    scalar = "if" in allowed or "while" in allowed
    arguments = ["x0", "x1", "n"] if scalar else ["x0", "x1"]
    write.top.append(write.cell("Net", arguments, lines, results(rng, known)))
    count = rng.choice([2, 3])
    number = ", Tensor(step + 1, ms.int32)" if scalar else ""
    return write.script(
        ["net = fill(Net())", f"for step in range({count}):", f"    net({write.x()}, {write.x(9)}{number})"]
    )


def line(rng: Random) -> str:
    """A straight line with several consumers."""
    return plain(rng, ("line",), ())


def helpers(rng: Random) -> str:
    """Helper functions and methods, called several times."""
    return plain(rng, ("helper",), (), calls=True)


def several(rng: Random) -> str:
    """Operators with several outputs."""
    return plain(rng, ("multi-output",), ("multi",))


def branches(rng: Random) -> str:
    """If statements."""
    return plain(rng, ("if",), ("if",))


def whiles(rng: Random) -> str:
    """While loops."""
    return plain(rng, ("while",), ("while",))


def fors(rng: Random) -> str:
    """For loops, with ifs."""
    return plain(rng, ("for",), ("for", "if") if rng.random() < 0.6 else ("for",))


def mixed(rng: Random) -> str:
    """Nested and mixed control flow."""
    return plain(rng, ("nested",), ("if", "while", "for"), calls=rng.random() < 0.4)


def parameters(rng: Random) -> str:
    """Parameters updated in straight lines and loops."""
    allowed = rng.choice([("parameter",), ("parameter", "while"), ("parameter", "if"), ("parameter", "for")])
    return plain(rng, ("parameter",), allowed)


def returns(rng: Random) -> str:
    """Early returns, in the net, in a method and in a function."""
    write = Writer(rng, calls=False)
    write.tag("early return", "if")
    lines: list[str] = [write.line(known := ["x0", "x1"])]
    for _ in range(rng.choice([1, 2])):
        lines += [f"if {write.condition(known)}:", f"    return {write.expression(known)}"]
        lines.append(write.line(known))
    if rng.random() < 0.4:
        lines += [f"if {write.condition(known)}:", f"    return {write.expression(known)}", "else:"]
        lines.append(f"    {known[-1]} = {write.expression(known)}")
    result = write.expression(known)
    if rng.random() < 0.6:
        condition = rng.choice(["x.sum() > 0", "y.max() > 1.0", "x.mean() < 0.1"])
        members, write.members = write.members, None  # type: ignore[assignment]
        texts = [write.expression(["x", "y"]) for _ in range(3)]
        write.members = members
        write.tag("helper")
        early = f"    if {condition}:\n        return {texts[0]}"
        write.top.append(f"def pick(x, y):\n{early}\n    y = {texts[1]}\n    return {texts[2]}")
        result = f"pick({result}, {known[-1]})"
        if rng.random() < 0.4:
            result = f"pick(x0, {result})"
    write.top.append(write.cell("Net", ["x0", "x1", "n"], lines, result))
    call = f"    net({write.x()}, {write.x(9)}, Tensor(step + 1, ms.int32))"
    return write.script(["net = fill(Net())", "for step in range(3):", call])


def block(write: Writer, name: str) -> None:
    """Write a Cell of one tensor."""
    rng = write.rng
    members, write.members = write.members, []
    known = ["x"]
    lines = [write.line(known) for _ in range(rng.choice([1, 2, 3]))]
    result = write.expression(known)
    if rng.random() < 0.5:
        result = f"x + {result}"
    write.top.append(write.cell(name, ["x"], lines, result))
    write.members = members


def shared(rng: Random) -> str:
    """Cells and blocks used at several places."""
    write = Writer(rng)
    write.tag("shared")
    block(write, "Block")
    if rng.random() < 0.5:
        block(write, "Other")
    names = ["Block", "Other"] if len([1 for text in write.top if text.startswith("class")]) > 1 else ["Block"]
    cells = []
    for _ in range(rng.choice([2, 3])):
        cells.append(write.fresh("self.b"))
        write.members.append(f"{cells[-1]} = {rng.choice(names)}()")
    known = ["x0", "x1"]
    lines = []
    for _ in range(rng.choice([3, 4])):
        name = write.fresh("t")
        lines.append(f"{name} = {rng.choice(cells)}({write.expression(known, 1)})")
        known.append(name)
        if rng.random() < 0.4:
            lines.append(write.line(known))
    write.top.append(write.cell("Net", ["x0", "x1"], lines, results(rng, known)))
    return write.script(["net = fill(Net())", "for step in range(2):", f"    net({write.x()}, {write.x(9)})"])


def lists(rng: Random) -> str:
    """Blocks in CellLists and SequentialCells."""
    write = Writer(rng, calls=rng.random() < 0.5)
    write.tag("celllist", "for")
    block(write, "Block")
    count = rng.choice([2, 3, 4])
    write.members.append(f"self.layers = nn.CellList([Block() for _ in range({count})])")
    lines = ["x = x0", "for layer in self.layers:", "    x = layer(x)"]
    known = ["x0", "x1", "x"]
    if rng.random() < 0.4:
        lines.append("    x1 = x1 + x")
    if rng.random() < 0.5:
        write.members.append(
            f"self.tail = nn.SequentialCell([Block(), nn.Dense({write.width}, {write.width}), nn.ReLU()])"
        )
        lines.append("x = self.tail(x)")
    if rng.random() < 0.3:
        lines += ["for index, layer in enumerate(self.layers):", "    x = layer(x) * (index + 1.0)"]
    lines.append(write.line(known))
    write.top.append(write.cell("Net", ["x0", "x1"], lines, results(rng, known)))
    return write.script(["net = fill(Net())", "for step in range(2):", f"    net({write.x()}, {write.x(9)})"])


def recurrent(rng: Random) -> str:
    """Recurrent cells over a few steps."""
    write = Writer(rng, calls=False)
    write.tag("recurrent", "for")
    width, steps = write.width, rng.choice([2, 3])
    kinds = [rng.choice(["LSTMCell", "GRUCell", "RNNCell", "Own"]) for _ in range(rng.choice([1, 1, 2]))]
    zeros = f"ops.zeros(({write.batch}, {width}), ms.float32)"
    lines, members, turn = [], [], []
    for at, kind in enumerate(kinds):
        source = "x[step]" if at == 0 else f"h{at - 1}"
        lines.append(f"h{at} = {zeros}")
        if kind == "LSTMCell":
            lines.append(f"c{at} = {zeros}")
            turn.append(f"h{at}, c{at} = self.r{at}({source}, (h{at}, c{at}))")
        else:
            turn.append(f"h{at} = self.r{at}({source}, h{at})")
        members.append(f"self.r{at} = {kind}()" if kind == "Own" else f"self.r{at} = nn.{kind}({width}, {width})")
    if "Own" in kinds:
        write.members = []
        text = write.cell("Own", ["x", "h"], [], "ops.tanh(self.a(x) + self.b(h))",
                          (f"self.a = nn.Dense({width}, {width})", f"self.b = nn.Dense({width}, {width})"))  # fmt: skip
        write.top.append(text)
    write.members = members
    known = [f"h{at}" for at in range(len(kinds))]
    lines += [f"for step in range({steps}):", *write.indent(turn)]
    lines.append(write.line(known))
    write.top.append(write.cell("Net", ["x"], lines, results(rng, known)))
    call = f"    net(data({steps}, {write.batch}, {width}, seed=step))"
    return write.script(["net = fill(Net())", "for step in range(2):", call])


def dynamic(rng: Random) -> str:
    """Operators whose output shape depends on values."""
    write = Writer(rng, calls=False)
    write.tag("dynamic")
    known = ["x0", "x1"]
    lines = [write.line(known) for _ in range(rng.choice([1, 2]))]
    given: list[str] = []
    for _ in range(rng.choice([1, 2, 3])):
        a, b, x = write.fresh("a"), write.fresh("b"), rng.choice(known)
        form = rng.choice(
            [
                "{a} = ops.masked_select({x}, {x} > 0)\n{b} = ops.relu({a}) * 2.0",
                "{a} = ops.nonzero(k)\n{b} = {a} + 1",
                "{a}, {b} = ops.unique(k)\n{a} = {a} * 2",
                "{a} = {x}[{x} > 0.1]\n{b} = {a}.sum()",
                "{a} = ops.masked_select({x}, {x} < 0.2)\n{b} = {x} + {a}.sum()",
                "{a} = ops.nonzero(k)\n{b} = ops.gather(ops.reshape({x}, (-1,)), {a}, 0)",
            ]
        )
        lines += form.format(a=a, b=b, x=x).split("\n")
        given += [a, b] if rng.random() < 0.5 else [b]
    write.top.append(write.cell("Net", ["x0", "x1", "k"], lines, ", ".join([*given, known[-1]])))
    call = f"    net({write.x()}, {write.x(9)}, Tensor(np.array([1, 3, 1, 0, 2 - step], np.int32)))"
    return write.script(["net = fill(Net())", "for step in range(2):", call])


def jits(rng: Random) -> str:
    """Several jit functions in PYNATIVE, compiled for several shapes."""
    write = Writer(rng)
    write.tag("jit")
    members, write.members = write.members, None  # type: ignore[assignment]
    names = []
    for _ in range(rng.choice([2, 3])):
        name = write.fresh("step")
        shapes = write.batch, write.width
        write.batch = write.width = 3  # of what is called with several shapes only the rank is known
        known = ["x", "y"]
        lines = []
        for _ in range(rng.choice([1, 2, 3])):
            kind = rng.choice([UNARY, NUMBER])
            new = write.fresh("t")
            text = rng.choice(BINARY).format(rng.choice(kind).format(rng.choice(known)), rng.choice(known))
            lines.append(f"    {new} = {text}")
            known.append(new)
        write.batch, write.width = shapes
        text = "\n".join(["@jit", f"def {name}(x, y):", *lines, f"    return {known[-1]}"])
        write.top.append(text)
        names.append(name)
    write.members = members
    main = ["x, y = data(2, 3), data(2, 3, seed=1)"]
    for _ in range(rng.choice([3, 4, 5])):
        name = rng.choice(names)
        if rng.random() < 0.35:
            write.tag("recompile")
            shape = rng.choice(["3, 2", "4", "2, 2, 2", "1, 3"])
            main.append(f"{name}(data({shape}), data({shape}, seed=2))")
        elif rng.random() < 0.3:
            main += ["for step in range(2):", f"    {name}(x, data(2, 3, seed=step))"]
        else:
            main.append(f"x = {name}(x, y)")
    return write.script(main, mode="PYNATIVE")


def nets(rng: Random) -> str:
    """Several nets in one process, in turn."""
    write = Writer(rng)
    write.tag("several nets")
    count = rng.choice([2, 3])
    for at in range(count):
        write.members = []
        known = ["x0", "x1"]
        lines = [write.line(known) for _ in range(rng.choice([1, 2, 3]))]
        if rng.random() < 0.3:
            write.tag("if")
            lines += [f"if x1.sum() > 0.{at}:", f"    {known[-1]} = {write.expression(known)}"]
        write.top.append(write.cell(f"Net{at}", ["x0", "x1"], lines, known[-1]))
    main = [f"net{at} = fill(Net{at}())" for at in range(count)]
    main.append(f"x = {write.x(3)}")
    for turn in range(rng.choice([4, 5, 6])):
        main.append(f"net{rng.randrange(count)}({write.x(turn)}, x)")
    return write.script(main)


LOSSES = (
    ("nn.MSELoss()", "values"),
    ("nn.L1Loss()", "values"),
    ("nn.SmoothL1Loss()", "values"),
    ("nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction='mean')", "classes"),
    ("nn.SoftmaxCrossEntropyWithLogits(sparse=True)", "classes"),
    ("nn.CrossEntropyLoss()", "classes"),
    ("nn.BCEWithLogitsLoss()", "values"),
    ("nn.MSELoss(reduction='sum')", "values"),
)
OPTIMIZERS = (
    "nn.Momentum({p}, 0.1, 0.9)",
    "nn.Momentum({p}, 0.1, 0.9, weight_decay=0.01)",
    "nn.Momentum({p}, 0.1, 0.9, use_nesterov=True)",
    "nn.SGD({p}, 0.1)",
    "nn.SGD({p}, 0.1, momentum=0.9, weight_decay=0.01)",
    "nn.Adam({p}, 0.01)",
    "nn.Adam({p}, 0.01, weight_decay=0.01)",
    "nn.AdamWeightDecay({p}, 0.01)",
    "nn.RMSProp({p}, 0.01)",
    "nn.Adagrad({p})",
    "nn.Momentum({p}, nn.ExponentialDecayLR(0.1, 0.9, 2), 0.9)",
    "nn.Adam({p}, nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5))",
    "nn.Momentum({p}, nn.piecewise_constant_lr([2, 4], [0.1, 0.05]), 0.9)",
    "nn.FTRL({p})",
)
GROUPS = """[
    {"params": [p for p in net.trainable_params() if p.name.endswith("weight")], "weight_decay": 0.01},
    {"params": [p for p in net.trainable_params() if not p.name.endswith("weight")], "lr": 0.02},
]"""


def backbone(write: Writer) -> tuple[str, str]:
    """Write a net ``Net`` with trainable layers; returns its input and what else the step needs (shape of outputs)."""
    rng = write.rng
    kind = rng.choice(["mlp", "random", "blocks", "conv", "residual", "attention", "recurrent"])
    width, batch = write.width, write.batch
    write.members = []
    flat = write.x(), f"{batch}, {width}"
    if kind == "conv":
        write.tag("conv")
        pool = rng.choice(["nn.MaxPool2d(2, 2)", "nn.AvgPool2d(2, 2)"])
        norm = rng.random() < 0.6
        write.members = [
            "self.conv = nn.Conv2d(2, 3, 3, pad_mode='same')",
            f"self.pool = {pool}",
            "self.flat = nn.Flatten()",
        ]
        write.members += [f"self.fc = nn.Dense(12, {width})"] + (["self.norm = nn.BatchNorm2d(3)"] if norm else [])
        first = "self.norm(self.conv(x))" if norm else "self.conv(x)"
        act = rng.choice(["ops.relu", "ops.sigmoid", "ops.tanh"])
        write.top.append(write.cell("Net", ["x"], [f"x = {act}({first})"], "self.fc(self.flat(self.pool(x)))"))
        return f"data({batch}, 2, 4, 4, seed=step)", f"{batch}, {width}"
    if kind == "attention":
        write.tag("attention")
        write.members = [f"self.{name} = nn.Dense({width}, {width})" for name in "qkvo"]
        write.members.append(f"self.norm = nn.LayerNorm(({width},))")
        lines = [
            "s = ops.matmul(self.q(x), ops.transpose(self.k(x), (0, 2, 1))) / 2.0",
            "y = self.o(ops.matmul(ops.softmax(s, -1), self.v(x)))",
        ]
        write.top.append(write.cell("Net", ["x"], lines, "self.norm(x + y).mean(1)"))
        return f"data({batch}, 3, {width}, seed=step)", f"{batch}, {width}"
    if kind == "recurrent":
        write.tag("recurrent")
        write.members = [f"self.cell = nn.{rng.choice(['RNNCell', 'GRUCell'])}({width}, {width})"]
        lines = [
            f"h = ops.zeros(({batch}, {width}), ms.float32)",
            "for step in range(2):",
            "    h = self.cell(x[step], h)",
        ]
        write.top.append(write.cell("Net", ["x"], lines, "h"))
        return f"data(2, {batch}, {width}, seed=step)", f"{batch}, {width}"
    if kind in ("blocks", "residual"):
        write.tag("celllist" if kind == "blocks" else "shared")
        hidden = width + 2
        write.members = [f"self.up = nn.Dense({width}, {hidden})", f"self.down = nn.Dense({hidden}, {width})"]
        write.members.append(f"self.norm = nn.LayerNorm(({width},))")
        act = rng.choice(["ops.relu", "ops.gelu", "ops.tanh"])
        write.top.append(write.cell("Block", ["x"], [], f"x + self.down({act}(self.up(self.norm(x))))"))
        write.members = [f"self.layers = nn.CellList([Block() for _ in range({rng.choice([2, 3])})])"]
        lines = ["for layer in self.layers:", "    x = layer(x)"]
        if kind == "residual":
            write.members = ["self.a = Block()", "self.b = Block()"]
            lines = ["x = self.a(x)", "y = self.b(x)", "x = x * ops.sigmoid(y) + y"]
        write.members.append(f"self.head = nn.Dense({width}, {width})")
        write.top.append(write.cell("Net", ["x"], lines, "self.head(x)"))
        return flat
    if kind == "mlp":
        hidden = width + rng.choice([1, 3])
        write.members = [f"self.a = nn.Dense({width}, {hidden})", f"self.b = nn.Dense({hidden}, {width})"]
        act = rng.choice(["ops.relu", "ops.gelu", "ops.tanh", "ops.sigmoid", "ops.leaky_relu"])
        norm = rng.random() < 0.4
        if norm:
            write.members.append(f"self.norm = nn.LayerNorm(({hidden},))")
        inner = "self.norm(self.a(x))" if norm else "self.a(x)"
        write.top.append(write.cell("Net", ["x"], [f"y = {act}({inner})"], "self.b(y)"))
        return flat
    known = ["x"]
    write.members.append(f"self.first = nn.Dense({width}, {width})")
    lines = ["t = self.first(x)"]
    known.append("t")
    lines += [write.line(known) for _ in range(rng.choice([1, 2, 3]))]
    write.members.append(f"self.last = nn.Dense({width}, {width})")
    write.top.append(write.cell("Net", ["x"], lines, f"self.last({known[-1]} + t)"))
    return flat


def optimizer(write: Writer) -> str:
    """Text that makes an optimizer."""
    if write.rng.random() < 0.15:
        write.tag("groups")
        return write.rng.choice(OPTIMIZERS[:8]).format(p=GROUPS)
    return write.rng.choice(OPTIMIZERS).format(p="net.trainable_params()")


def target(shape: str, kind: str) -> str:
    """A label."""
    if kind == "classes":
        return f"Tensor(np.arange({shape.split(', ')[0]}) % 3, ms.int32)"
    return f"data({shape}, seed=7)"


def train(rng: Random) -> str:
    """Training steps."""
    write = Writer(rng, calls=rng.random() < 0.3)
    write.tag("train", "optimizer")
    x, shape = backbone(write)
    loss, kind = rng.choice(LOSSES)
    main = ["net = fill(Net())", f"loss = nn.WithLossCell(net, {loss})", f"optimizer = {optimizer(write)}"]
    main += ["train = nn.TrainOneStepCell(loss, optimizer)", "train.set_train()", f"y = {target(shape, kind)}"]
    main += [f"for step in range({rng.choice([2, 3])}):", f"    train({x}, y)"]
    return write.script(main)


def evaluate(rng: Random) -> str:
    """Training, evaluation, training again."""
    write = Writer(rng, calls=False)
    write.tag("train", "eval")
    x, shape = backbone(write)
    loss, kind = rng.choice(LOSSES)
    main = [
        "net = fill(Net())",
        f"loss = nn.WithLossCell(net, {loss})",
        f"optimizer = {rng.choice(OPTIMIZERS[:6]).format(p='net.trainable_params()')}",
    ]
    main += ["train = nn.TrainOneStepCell(loss, optimizer)", "train.set_train()", f"y = {target(shape, kind)}"]
    main += ["for step in range(2):", f"    train({x}, y)", "net.set_train(False)"]
    main += ["for step in range(2):", f"    net({x})"]
    if rng.random() < 0.5:
        main += ["train.set_train()", "for step in range(1):", f"    train({x}, y)"]
    return write.script(main)


def gradient(rng: Random) -> str:
    """Gradients in a graph, by GradOperation or ms.grad, through straight lines and control flow."""
    write = Writer(rng, calls=rng.random() < 0.4)
    write.tag("gradient")
    allowed = rng.choice([(), (), ("if",), ("while",), ("for",), ("if", "for")])
    write.members.append(f"self.first = nn.Dense({write.width}, {write.width})")
    known = ["x0", "x1", "y"]
    lines = ["y = self.first(x0)", *write.body(known, rng.choice([2, 3]), allowed)]
    write.top.append(write.cell("Net", ["x0", "x1", "n"], lines, f"({known[-1]} * y).sum()"))
    form = rng.choice(["list", "all", "grad", "value"])
    if form == "list":
        make, call = "ops.GradOperation(get_all=True, get_by_list=True)", "self.grad(self.net, self.weights)(x0, x1, n)"
    elif form == "all":
        make, call = "ops.GradOperation(get_all=True)", "self.grad(self.net)(x0, x1, n)"
    elif form == "grad":
        make, call = "None", "ms.grad(self.net, (0, 1))(x0, x1, n)"
    else:
        make, call = "None", "ms.value_and_grad(self.net, 0, self.weights)(x0, x1, n)"
    write.top.append(
        "class Grad(nn.Cell):\n    def __init__(self, net):\n        super().__init__()\n        self.net = net\n"
        f"        self.grad = {make}\n        self.weights = ms.ParameterTuple(net.trainable_params())\n\n"
        f"    def construct(self, x0, x1, n):\n        return {call}"
    )
    call = f"    net({write.x()}, {write.x(9)}, Tensor(step + 1, ms.int32))"
    return write.script(["net = Grad(fill(Net()))", "for step in range(2):", call])


def pynative(rng: Random) -> str:
    """PYNATIVE with gradients through jit functions and an optimizer."""
    write = Writer(rng, calls=False)
    write.tag("pynative", "gradient", "jit")
    x, shape = backbone(write)
    at = next(index for index, text in enumerate(write.top) if text.startswith("class Net"))
    write.top[at] = write.top[at].replace("    def construct", "    @jit\n    def construct")
    main = ["net = fill(Net())", f"y = data({shape}, seed=7)"]
    if rng.random() < 0.6:
        write.tag("optimizer")
        main.append(f"optimizer = {rng.choice(OPTIMIZERS[:6]).format(p='net.trainable_params()')}")
        main.append("step_fn = ms.value_and_grad(lambda x: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)")
        main += ["for step in range(2):", f"    loss, grads = step_fn({x})", "    optimizer(grads)"]
    else:
        main.append("step_fn = ms.grad(lambda x: (net(x) * y).sum())")
        main += ["for step in range(2):", f"    step_fn({x})"]
    return write.script(main, mode="PYNATIVE")


def jitstep(rng: Random) -> str:
    """A whole training step in one jit function."""
    write = Writer(rng, calls=False)
    write.tag("jit", "gradient", "optimizer")
    x, shape = backbone(write)
    loss, kind = rng.choice(LOSSES[:6])
    main = ["net = fill(Net())", f"loss = {loss}", f"optimizer = {optimizer(write)}", "", ""]
    main += ["def forward(x, y):", "    return loss(net(x), y)", "", ""]
    main += ["step_fn = ms.value_and_grad(forward, None, optimizer.parameters)", "", ""]
    main += [
        "@jit",
        "def train(x, y):",
        "    value, grads = step_fn(x, y)",
        "    optimizer(grads)",
        "    return value",
        "",
        "",
    ]
    main += [f"y = {target(shape, kind)}", "for step in range(2):", f"    train({x}, y)"]
    return write.script(main, mode=rng.choice(["PYNATIVE", "GRAPH"]))


KINDS = {
    "line": line,
    "helper": helpers,
    "shared": shared,
    "recurrent": recurrent,
    "celllist": lists,
    "if": branches,
    "while": whiles,
    "for": fors,
    "mixed": mixed,
    "return": returns,
    "parameter": parameters,
    "multi": several,
    "dynamic": dynamic,
    "jit": jits,
    "nets": nets,
    "train": train,
    "eval": evaluate,
    "gradient": gradient,
    "pynative": pynative,
    "jitstep": jitstep,
}


def generate(seed: int, number: int) -> tuple[str, str]:
    """Name and script of a net; kinds take turns.

    >>> name, script = generate(1, 0)
    >>> name, script.splitlines()[0]
    ('r1_000_line', '\"\"\"shared, line\"\"\"')
    >>> generate(1, 0)[1] == script
    True
    """
    kind = list(KINDS)[number % len(KINDS)]
    script = KINDS[kind](Random(f"{seed} {number} {kind}"))
    return f"r{seed}_{number:03d}_{kind}", script


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    for number in range(options.count):
        name, script = generate(options.seed, number)
        (options.into / f"{name}.py").write_text(script)


if __name__ == "__main__":
    main()
