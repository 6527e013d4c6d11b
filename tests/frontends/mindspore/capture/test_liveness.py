"""Which variables are read after a branch or at the head of a loop."""

import ast
import textwrap

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
