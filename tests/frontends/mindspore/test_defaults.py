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
SAME = {"group": (None, "hccl_world_group"), "axis": ((), None), "indexing": ("ij", None), "alpha": (None, 1)}
REQUIRED = "..."
VAGUE = {"self", "args", "kwargs"}


@cache
def recorded():
    return json.loads(RECORDED.read_text("utf-8"))


@cache
def imported(module):
    """The front end's module for one of the vendor's, and the names below it that are no modules."""
    try:
        return import_module(f"dumpsim.frontends.{module}"), ()
    except ImportError:
        module, _, name = module.rpartition(".")
        owner, names = imported(module)
        return owner, (*names, name)


def found(path):
    """The front end's object for a name of the vendor's; None for a stand-in."""
    module, _, name = path.rpartition(".")
    owner, names = imported(module)
    try:
        value = reduce(getattr, (*names, name), owner)
    except AttributeError:
        return None
    if isinstance(value, type):
        if not value.__module__.startswith("dumpsim."):
            return None
        makers = [base.__init__ for base in value.__mro__ if base.__module__.startswith("dumpsim.")]
        return next((maker for maker in makers if inspect.signature(maker).parameters.keys() - VAGUE), None)
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
            default = inspect.Parameter.empty if text == REQUIRED else ast.literal_eval(text)
            yield name, parameters[name].default, default


def module_of(path):
    """The vendor's module of a function, a class or a method."""
    parts = path.split(".")[:-1]
    return ".".join(part for part in parts if not part[0].isupper())


@pytest.mark.parametrize("module", sorted({module_of(path) for path in recorded()}))
def test_defaults_are_those_of_mindspore(module):
    differences = {}
    for path in recorded():
        if module_of(path) == module:
            for name, ours, theirs in compared(path):
                if (type(ours), ours) != (type(theirs), theirs) and (ours, theirs) != SAME.get(name):
                    differences[f"{path}: {name}"] = (ours, theirs)
    assert differences == {}


def test_most_of_the_record_is_compared():
    assert sum(len(list(compared(path))) for path in recorded()) > 3000
