"""Tests that need an extra carry its marker: CI chooses by the markers what it runs where the extras are installed."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from extras import EXTRAS, missing

TESTS = Path(__file__).parent
MODULES = {module: extra for extra, modules in EXTRAS.items() for module in modules}


def test_the_markers_are_extras_of_the_package_and_ci_selects_them():
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text("utf-8"))
    assert EXTRAS.keys() <= project["project"]["optional-dependencies"].keys()
    script = TESTS.parent / ".ci" / "run"
    for extra in EXTRAS:
        assert f"or {extra}" in script.read_text("utf-8")


def test_a_test_with_the_marker_is_skipped_where_the_extra_is_missing(request, monkeypatch):
    setup = request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py")).pytest_runtest_setup
    marked = SimpleNamespace(get_closest_marker=lambda name: name == "dask")
    monkeypatch.setitem(EXTRAS, "dask", ("dumpsim", "no_such_module"))
    monkeypatch.setitem(EXTRAS, "torch", ("no_such_module",))
    with pytest.raises(pytest.skip.Exception, match=r"needs the extra dask \(no_such_module\)"):
        setup(marked)
    monkeypatch.setitem(EXTRAS, "dask", ("dumpsim",))
    assert missing("dask") == []
    setup(marked)


def problems(path: Path) -> Iterator[str]:
    """What a file of tests does with modules of extras without saying so."""
    tree = ast.parse(path.read_text("utf-8"))
    carried = {
        node.attr
        for statement in tree.body
        if isinstance(statement, ast.Assign) and any(ast.unparse(t) == "pytestmark" for t in statement.targets)
        for node in ast.walk(statement.value)
        if isinstance(node, ast.Attribute)
    }
    at_module_level = {id(node) for statement in tree.body for node in _outside_functions(statement)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("importorskip"):
            continue
        module = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        extra = MODULES.get(str(module).partition(".")[0])
        where = f"{path.name}:{node.lineno}"
        if extra is None:
            yield f"{where}: {module} belongs to no extra"
        elif id(node) not in at_module_level:
            yield f"{where}: mark the test with pytest.mark.{extra} and import {module}"
        elif extra not in carried:
            yield f"{where}: pytestmark lacks pytest.mark.{extra}"


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _outside_functions(child)


def test_nothing_skips_for_an_extra_without_its_marker():
    files = [path for path in sorted(TESTS.rglob("*.py")) if "bench" not in path.parts]
    assert [problem for path in files for problem in problems(path)] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("torch = pytest.importorskip('torch')", "test_x.py:1: pytestmark lacks pytest.mark.torch"),
        ("def test():\n    pytest.importorskip('pandas')", "mark the test with pytest.mark.report and import pandas"),
        ("pytest.importorskip('scipy')", "scipy belongs to no extra"),
        ("torch = pytest.importorskip('torch')\npytestmark = [pytest.mark.torch, pytest.mark.slow]", None),
    ],
)
def test_problems_are_found(tmp_path, text, problem):
    path = tmp_path / "test_x.py"
    path.write_text(text)
    found = list(problems(path))
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]
