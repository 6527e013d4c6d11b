"""Which variables are read after a branch or at the head of a loop."""

import ast
import textwrap
from itertools import pairwise
from random import Random

import pytest

from dumpsim.frontends.mindspore._capture.liveness import note_live


def live_variables(body):
    function = ast.parse("def f(x, y, z, n):\n" + textwrap.indent(textwrap.dedent(body), "    ")).body[0]
    note_live(function)
    return [sorted(node.live) for node in ast.walk(function) if isinstance(node, ast.If | ast.While | ast.For)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if n: x = 1\nreturn y", [["y"]]),
        ("if n: x = 1\nx = 2\nreturn x", [[]]),
        ("if n: x = 1\nx += 2\nreturn y", [["x", "y"]]),
        ("if n: x = 1\nx[0] = y\nreturn z", [["x", "y", "z"]]),
        ("if n:\n    x = 1\nelse:\n    return z\nreturn x", [["x"]]),
        ("if n:\n    if x: y = 1\n    z = 2\nreturn y + z", [["y", "z"], ["y"]]),
        ("while n:\n    if x: y = 1\n    z = y\nreturn z", [["y", "z"], ["n", "x", "y"]]),
        ("while n:\n    if x: break\n    y = 1\nreturn z", [[], ["n", "x", "z"]]),
        ("for y in z:\n    if x: y = 1\nreturn z", [[], ["x", "z"]]),
        ("for y in z:\n    x = x + y\nreturn n", [["x"]]),
        ("if n: x = 1\nt = x\nreturn y", [["x", "y"]]),  # dead code counts
        ("def g(): return x\nif n: x = 1\nreturn g()", [["g", "x"]]),
        ("with n:\n    if x: y = 1\n    z = 2\nreturn y", [["y"]]),
        ("if n: x = 1\nwith z:\n    return x\nreturn y", [["x", "y", "z"]]),
        ("if n: x = 1\ntry:\n    y = 2\nfinally:\n    x + z\nreturn y", [["x", "y", "z"]]),
        ("g = lambda: z\nif n: z = 1\nreturn g()", [["g", "z"]]),
    ],
)
def test_live(body, expected):
    assert live_variables(body) == expected


class Writer:
    """Writes random functions with branches, loops and jumps."""

    def __init__(self, seed):
        self.random = Random(seed)

    def names(self, count=1):
        return ", ".join(self.random.choices("xyz", k=count))

    def body(self, depth, looped):
        lines = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if not depth or kind < 0.4:
                lines.append(self.random.choice((f"{self.names()} = {self.names()}", f"{self.names()} += 1", "n")))
            elif kind < 0.5:
                lines.append(self.random.choice(("break", "continue") if looped else (f"return {self.names()}",)))
            elif kind < 0.75:
                lines += [f"if {self.names()}:", *self.body(depth - 1, looped)]
                lines += ["else:", *self.body(depth - 1, looped)] if self.random.random() < 0.5 else []
            else:
                head = (
                    f"while {self.names()}:" if self.random.random() < 0.5 else f"for {self.names()} in {self.names()}:"
                )
                lines += [head, *self.body(depth - 1, True)]
                lines += ["else:", *self.body(depth - 1, looped)] if self.random.random() < 0.3 else []
        return [f" {line}" for line in lines]


def edges(body, follows, loop, found):
    """Note for each statement what it reads and sets and what may come next; return where the body starts.

    `loop` are the statements that come after ``continue`` and ``break``, `found` has a row for each place.
    """
    for node in reversed(body):
        place = ("at", id(node))
        reads = lambda part: {n.id for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}  # noqa: E731
        sets = lambda part: {n.id for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # noqa: E731
        if isinstance(node, ast.If):
            sides = [edges(side, follows, loop, found) for side in (node.body, node.orelse)]
            found[place] = (reads(node.test), set(), sides)
        elif isinstance(node, ast.While | ast.For):
            inside = edges(node.body, place, (place, follows), found)
            other = edges(node.orelse, follows, loop, found)
            target = sets(node.target) if isinstance(node, ast.For) else set()
            entry = ("turn", id(node))
            found[entry] = (set(), target, [inside])
            found[place] = (reads(node.iter if isinstance(node, ast.For) else node.test), set(), [entry, other])
        elif isinstance(node, ast.Return):
            found[place] = (reads(node), set(), [])
        elif isinstance(node, ast.Break | ast.Continue):
            found[place] = (set(), set(), [loop[isinstance(node, ast.Break)]])
        else:
            more = sets(node) if isinstance(node, ast.AugAssign) else set()
            found[place] = (reads(node) | more, sets(node), [follows])
        follows = place
    return follows


def is_read(name, place, found):
    """Whether a path from a place reads a variable before it is set: a search for one."""
    seen, open_ones = set(), [place]
    while open_ones:
        at = open_ones.pop()
        if at in seen or at == "end":
            continue
        seen.add(at)
        reads, sets, following = found[at]
        if name in reads:
            return True
        if name not in sets:
            open_ones += following
    return False


@pytest.mark.parametrize("part", range(3))
def test_live_variables_are_those_that_some_path_reads(part):
    for seed in range(part * 40, part * 40 + 40):
        text = "\n".join(["def f(x, y, z, n):", *Writer(seed).body(3, False), " return n"])
        function = ast.parse(text).body[0]
        note_live(function)
        found = {}
        edges(function.body, "end", None, found)
        for node in ast.walk(function):
            if isinstance(node, ast.While | ast.For):
                inside = {
                    n.id
                    for s in node.body
                    for n in ast.walk(s)
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                }
                assert node.live == {v for v in inside if is_read(v, ("at", id(node)), found)}, text
        for body in bodies(function):
            for node, after in pairwise([*body, None]):
                if isinstance(node, ast.If) and after is not None:
                    assert node.live == {v for v in "xyzn" if is_read(v, ("at", id(after)), found)}, text


def bodies(function):
    """The lists of statements in a function."""
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            if getattr(node, name, None):
                yield getattr(node, name)
