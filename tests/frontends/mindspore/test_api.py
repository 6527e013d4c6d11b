"""The table of public names is complete: its names exist, and every existing name is in it."""

import inspect
import pkgutil
from collections import Counter
from importlib import import_module

import pytest

from dumpsim.frontends.mindspore import mint, nn, ops
from dumpsim.frontends.mindspore._api import PRIMITIVES, function, methods, mint_function, rows
from dumpsim.frontends.mindspore._vendor import names as vendor_names
from dumpsim.frontends.mindspore.common._methods import TensorMethods
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.operations import primitive
from dumpsim.ops.table import names

FRONT_END = "dumpsim.frontends.mindspore"
# methods whose results follow from the types of the operands: no operator runs
HOST_METHODS = {"dim", "is_floating_point", "stride"}
#: Modules of nn whose cells contain other cells: they need no operator.
OTHER_CELLS = {"container"}


def listed(column):
    """All names of one column of the table."""
    return [name for row in rows() for name in getattr(row, column)]


def check_listed(found, known, where):
    missing = sorted(set(found) - set(known))
    assert not missing, f"not in the table of public names (_api.py): {where} {missing}"


def function_modules():
    package = import_module(f"{FRONT_END}.ops.function")
    found = [import_module(f"{FRONT_END}.ops.function.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    return [
        module
        for module in found
        if vars(module).get("__all__") and not module.__name__.rpartition(".")[2].startswith("_")
    ]


def public_functions(module):
    """Functions that a module exports; others are public where the vendor has the name, else helpers."""
    vendors = vendor_names("mindspore.ops")
    own = {n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__}
    return {name for name in own if name in module.__all__ or name in vendors}


@pytest.mark.parametrize("module", function_modules(), ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_function_is_listed(module):
    module_name = module.__name__.rpartition(".")[2]
    check_listed(
        public_functions(module), [n for row in rows() if row.module == module_name for n in row.functions], module_name
    )


def test_every_function_is_where_the_table_says():
    for row in rows():
        for name in row.functions:
            assert callable(getattr(ops, name)), name
            if row.module:
                assert name in vars(import_module(f"{FRONT_END}.ops.function.{row.module}")), name


@pytest.mark.parametrize("column", ["functions", "methods", "mint", "cells"])
def test_a_name_has_one_row(column):
    assert [name for name, count in Counter(listed(column)).items() if count > 1] == []


def test_every_method_is_listed():
    public = {name for name in vars(TensorMethods) if not name.startswith("_")}
    check_listed(public - HOST_METHODS, listed("methods"), "methods of Tensor")
    assert not [name for name in listed("methods") if not hasattr(Tensor, name)]


def test_methods_call_the_function_of_their_row():
    assert methods()["multiply"] == "mul"
    assert Tensor([2.0]).multiply(Tensor([3.0])).asnumpy().tolist() == [6.0]


@pytest.mark.parametrize("space", ["", "nn.", "nn.functional."])
def test_every_name_of_mint_is_listed(space):
    module = import_module(f"{FRONT_END}.mint.{space}".rstrip("."))
    own = {"": "mint.function", "nn.": "mint.nn.layer", "nn.functional.": "mint.nn.functional"}[space]
    text = "".join(vars(module).get(name, "") for name in ("_RENAMED", "_APPLIED"))
    found = [
        *import_module(f"{FRONT_END}.{own}").__all__,
        *(line.partition("(")[0] for line in text.splitlines() if line),
    ]
    check_listed([space + name for name in found], listed("mint"), "mint")


def test_every_name_of_mint_resolves():
    for name in listed("mint"):
        found = mint
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found), name


def test_a_name_of_mint_with_other_arguments_is_not_an_alias():
    assert mint_function("abs") == "abs"
    assert mint_function("nn.ReLU") is None
    assert mint_function("concat") is None


def test_every_cell_is_listed():
    found = set()
    for package in ("nn.layer", "nn.loss", "nn.optim"):
        for info in pkgutil.iter_modules(import_module(f"{FRONT_END}.{package}").__path__):
            if info.name not in OTHER_CELLS:
                module = import_module(f"{FRONT_END}.{package}.{info.name}")
                found |= {name for name in module.__all__ if inspect.isclass(getattr(module, name))}
    check_listed(found, listed("cells"), "cells of nn")
    assert not [name for name in listed("cells") if not inspect.isclass(getattr(nn, name, None))]


def test_every_operator_is_public():
    """Each has a primitive of the same name, and every primitive in the table exists."""
    operators = set(names())
    assert [op for op in sorted(operators) if primitive(op).__name__ != op] == []
    assert {row.operator for row in rows()} - operators - {""} == set()


def test_every_primitive_with_a_class_is_listed():
    package = import_module(f"{FRONT_END}.ops.operations")
    for info in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{info.name}")
        check_listed(
            vars(module).get("__all__", ()), PRIMITIVES.get(f"ops.operations.{info.name}", "").split(), info.name
        )
    for module, listed_names in PRIMITIVES.items():
        for name in listed_names.split():
            assert inspect.isclass(getattr(import_module(f"{FRONT_END}.{module}"), name)), name


def test_helpers_are_not_public():
    assert function("promote") is None
    with pytest.raises(AttributeError, match="promote"):
        ops.promote  # noqa: B018


def test_a_missing_row_is_reported():
    with pytest.raises(AssertionError, match=r"cells of nn \['ReLU7'\]"):
        check_listed(["ReLU7"], listed("cells"), "cells of nn")
