"""The converters' table, compiled: the rule that makes the nodes of an overload, by the overload's name."""

import ast
from functools import cache
from importlib.resources import files
from types import CodeType, MappingProxyType

__all__ = ["fallback", "overloads", "plain_type", "rule"]


def rule(target: str) -> CodeType | None:
    """Return the rule of an overload that the real converter supports; None for others.

    Examples
    --------
    >>> rule("aten.prod.default") is None, rule("aten.add.Tensor") is None
    (True, False)
    """
    return _compiled("converters.txt").get(target)


def fallback(target: str) -> CodeType | None:
    """Return the rule of an overload that the real converter refuses; None for others."""
    return _compiled("fallbacks.txt").get(target)


def plain_type(target: str) -> str | None:
    """Return the node type of an overload whose tensors are the inputs of one node; None for others.

    Examples
    --------
    >>> plain_type("aten.relu.default"), plain_type("aten.add.Tensor")
    ('Relu', None)
    """
    return _plain().get(target)


def overloads() -> list[str]:
    """Return all overloads that have a rule."""
    return [*_plain(), *_compiled("converters.txt")]


@cache
def _plain() -> MappingProxyType[str, str]:
    lines = (line.split() for line in _text("plain.txt").splitlines() if line and line[0] != "#")
    return MappingProxyType(dict(lines))


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def _compiled(name: str) -> MappingProxyType[str, CodeType]:
    """Compile the rules of a table; continuation lines of a row are indented."""
    rows: list[list[str]] = []
    for line in _text(name).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] == " ":
            rows[-1].append(line.strip())
        else:
            head, _, first = line.partition(": ") if ": " in line else (line[:-1], "", "")
            rows.append([head, *([first.strip()] if first.strip() else [])])
    found = {}
    for head, *lines in rows:
        code = _code("\n".join(lines), head)
        for name in head.split():
            found[name] = code
    return MappingProxyType(found)


def _code(text: str, name: str) -> CodeType:
    """Compile a rule to code that binds the value of its last expression to ``_``."""
    tree = ast.parse(text, f"<rule of {name.split()[0]}>")
    last = tree.body[-1]
    assert isinstance(last, ast.Expr), name
    tree.body[-1] = ast.copy_location(
        ast.Assign(targets=[ast.Name("_", ast.Store(), lineno=1, col_offset=0)], value=last.value), last
    )
    ast.fix_missing_locations(tree)
    return compile(tree, f"<rule of {name.split()[0]}>", "exec")
