"""Functions whose loops have no jumps give what they gave with them."""

import ast
import contextlib
from random import Random

import pytest

from dumpsim.frontends.mindspore._capture.jump import Ending, without_jumps

VALUES = ("{} + {}", "{} - 1", "{} * 2 - {}", "{}")
TESTS = ("{} > {}", "{} % 2 == 0", "{} < 3", "x == {}", "y > {}")


class Writer:
    """Writes random functions of numbers; the jumps are where `jumps` says, loops may have an ``else`` if `others`."""

    def __init__(self, seed, jumps=("break", "continue", "return a", "return", "return b - a"), others=False):
        self.random, self.jumps, self.others, self.count = Random(seed), jumps, others, 0

    def filled(self, texts):
        text = self.random.choice(texts)
        return text.format(*(self.random.choice("abxy") for _ in range(text.count("{}"))))

    def block(self, depth, looped):
        lines = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(depth, looped)
        return [f"    {line}" for line in lines]

    def statement(self, depth, looped):
        kind = self.random.random()
        if looped and kind < 0.35:
            ends = [f"    {self.random.choice(self.jumps)}"]
            if self.random.random() < 0.5:
                ends.insert(0, "    a = b - a")
            sides = [ends, ["    b = a"]] if self.random.random() < 0.5 else [["    b = a"], ends]
            return [f"if {self.filled(TESTS)}:", *sides[0], *(["else:", *sides[1]] if ends is sides[1] else [])]
        if looped and kind < 0.4:
            return [self.random.choice(self.jumps)]
        if not depth or kind < 0.6:
            return [f"{self.random.choice('ab')} {self.random.choice(('=', '+='))} {self.filled(VALUES)}"]
        if kind < 0.8:
            lines = [f"if {self.filled(TESTS)}:", *self.block(depth - 1, looped)]
            if self.random.random() < 0.5:
                lines += ["else:", *self.block(depth - 1, looped)]
            return lines
        if self.others and kind < 0.9:
            return self.other(depth)
        self.count += 1
        name = f"i{self.count}"
        if self.random.random() < 0.5:
            lines = [f"for {name} in range({self.random.randint(0, 3)}):", *self.block(depth - 1, True)]
        else:
            test = f"{name} < 4 and {self.filled(TESTS)}" if self.random.random() < 0.3 else f"{name} < 3"
            lines = [f"{name} = 0", f"while {test}:", f"    {name} += 1", *self.block(depth - 1, True)]
        if self.others and self.random.random() < 0.2:
            lines += ["else:", *self.block(depth - 1, False)]
        return lines

    def other(self, depth):
        kind = self.random.randrange(3)
        if kind == 0:
            return ["with seen(a):", *self.block(depth - 1, False)]
        if kind == 1:
            return ["try:", *self.block(depth - 1, False), "finally:", "    seen(b)"]
        self.count += 1
        name = f"inner{self.count}"
        body = [line.replace("return\n", "return 0\n") for line in self.block(depth - 1, False)]
        return [f"def {name}(a, b):", *body, "    return a - b", f"seen({name}(b, a))"]

    def function(self):
        return "\n".join(["def f(x, y):", "    a, b = x, y", *self.block(3, False), "    return a, b"])


class WithJumps(ast.NodeTransformer):
    """Writes the jumps of an `Ending` back."""

    def visit_Ending(self, node):
        self.generic_visit(node)
        ends = [[ast.Break()] if end == "break" else [ast.Continue()] if end else node.rest for end in node.ends]
        sides = [[*side, *end] or [ast.Pass()] for side, end in zip((node.body, node.orelse), ends, strict=True)]
        return ast.If(test=node.test, body=sides[0], orelse=sides[1])


def results(tree):
    """What a function gives, and what it shows on its way, for some numbers."""
    shown = []

    def seen(value):
        shown.append(value)
        return contextlib.nullcontext()

    space = {"seen": seen}
    exec(compile(ast.fix_missing_locations(tree), "f", "exec"), space)
    return [space["f"](x, y) for x in (-1, 2, 5) for y in (0, 3)], shown


def jumps_in_loops(tree):
    """Lines of the jumps in loops, but those that leave an unrolled loop whose flag is known."""
    left = [node for node in ast.walk(tree) if getattr(node, "plain", False)]
    known = {id(node) for branch in left for node in ast.walk(branch)}
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    return [
        ast.unparse(node)
        for loop in loops
        for node in ast.walk(loop)
        if isinstance(node, ast.Break | ast.Continue | ast.Return) and id(node) not in known
    ]


@pytest.mark.parametrize("how", ["flags", "ends"])
@pytest.mark.parametrize("part", range(4))
def test_results_stay_and_no_jump_is_left(how, part):
    for seed in range(part * 40, part * 40 + 40):
        text = Writer(seed).function()
        tree = ast.parse(text)
        without_jumps(tree.body[0], how)
        assert jumps_in_loops(tree) == [], text
        assert results(WithJumps().visit(tree)) == results(ast.parse(text)), text


@pytest.mark.parametrize("how", ["flags", "ends"])
@pytest.mark.parametrize("part", range(3))
def test_results_stay_around_other_statements(how, part):
    """Loops with ``else`` keep their own jumps; those within them, and in other statements, have none."""
    for seed in range(part * 40, part * 40 + 40):
        text = Writer(seed, others=True).function()
        tree = ast.parse(text)
        without_jumps(tree.body[0], how)
        assert results(WithJumps().visit(tree)) == results(ast.parse(text)), text


@pytest.mark.parametrize("jumps", [("break",), ("continue",), ("break", "continue")])
def test_sides_that_end_in_jumps_need_no_flags(jumps):
    found = 0
    for seed in range(120):
        text = Writer(seed, jumps).function()
        tree = ast.parse(text)
        without_jumps(tree.body[0], "ends")
        found += any(isinstance(node, Ending) for node in ast.walk(tree))
        assert results(WithJumps().visit(tree)) == results(ast.parse(text)), text
    assert found > 5


@pytest.mark.parametrize(
    ("body", "sides"),
    [
        ("if x: break\ny", [("break", "", ["y"])]),
        ("if x: y\nelse: break", [("", "break", [])]),
        ("y\nif x: continue\nelse: y\nx", [("continue", "", ["x"])]),
        ("if x: break\nif y: continue\nx", [("break", "", ["Ending"]), ("continue", "", ["x"])]),
        ("if x: break\nelse: continue\ny", None),  # both sides jump
        ("if x:\n    break\n    y", None),  # not at the end of a side
        ("if x:\n    if y: break\n    break", None),
        ("if x: break\nbreak", None),
        ("if x: break\nif y: return x", None),
        ("if x:\n    if y: x\n    break\nfor z in y: break", [("break", "", ["Assign", "For"])]),
    ],
)
def test_which_loops_end_in_sides(body, sides):
    """The sides' ends, and what follows the branch, by the order of the branches."""
    text = "def f(x, y):\n while x:\n" + "\n".join(f"  {line}" for line in body.split("\n"))
    tree = ast.parse(text)
    without_jumps(tree.body[0], "ends")
    found = [
        (*node.ends, [ast.unparse(n) if isinstance(n, ast.Expr) else type(n).__name__ for n in node.rest])
        for node in ast.walk(tree)
        if isinstance(node, Ending)
    ]
    assert found == (sides or [])


def test_only_the_code_behind_a_branch_with_continue_moves_into_its_sides():
    text = """
def f(x, a):
    while x < 3:
        x += 1
        if a:
            a = x
        if x > 1:
            continue
        x += a
    return x"""
    tree = ast.parse(text)
    without_jumps(tree.body[0], "flags")
    assert ast.unparse(tree) == text.strip().replace(
        "            continue\n        x += a", "            pass\n        else:\n            x += a"
    )
