"""Default values of functions, classes and methods against those of real MindSpore 2.10."""

import ast
import inspect
import json
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

import pytest

RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "frontends" / "mindspore" / "defaults.json"
#: Values that differ from the vendor's and have the same meaning.
SAME = {"group": (None, "hccl_world_group"), "axis": ((), None), "indexing": ("ij", None)}


@cache
def recorded():
    return json.loads(RECORDED.read_text("utf-8"))


def found(path):
    """The front end's object for a name of the vendor's; None for a stand-in."""
    module, names = path, []
    while module:
        try:
            owner = import_module(f"dumpsim.frontends.{module}")
            break
        except ImportError:
            module, _, name = module.rpartition(".")
            names.insert(0, name)
    try:
        value = reduce(getattr, names, owner)
    except AttributeError:
        return None
    if isinstance(value, type):
        return value.__init__ if value.__module__.startswith("dumpsim.") else None
    return value if getattr(value, "__module__", "").startswith("dumpsim.") else None


def compared(path):
    """Parameter, our default and the vendor's, where both have the parameter."""
    value = found(path)
    try:
        parameters = inspect.signature(value).parameters if value is not None else {}
    except (TypeError, ValueError):
        return
    for name, text in recorded()[path].items():
        if name in parameters:
            yield name, parameters[name].default, ast.literal_eval(text)


@pytest.mark.parametrize("module", sorted({path.rpartition(".")[0] for path in recorded()}))
def test_defaults_are_those_of_mindspore(module):
    differences = {}
    for path in recorded():
        if path.rpartition(".")[0] == module:
            for name, ours, theirs in compared(path):
                if (type(ours), ours) != (type(theirs), theirs) and (ours, theirs) != SAME.get(name):
                    differences[f"{path}: {name}"] = (ours, theirs)
    assert differences == {}


def test_most_of_the_record_is_compared():
    assert sum(len(list(compared(path))) for path in recorded()) > 1000
