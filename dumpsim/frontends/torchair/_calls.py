"""The call of a torch.fx node: the operator's name, the arguments by name, and the line of the script."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

import torch
from torch import fx

from dumpsim.frontends.torchair._ge import FxCall

__all__ = ["bound", "iterate", "name_of", "provenance", "written"]

_MODULE = re.compile(r"^L\['\w+'\]\.?")
_LOCATION = re.compile(r'File "([^"]+)", line (\d+)')


def name_of(function: Any) -> str:
    """Return the name of the function that an FX node calls: ``aten.add.Tensor``, ``operator.add``, ``math.floor``."""
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(function)
    if not callable(function):
        return str(function)
    module = getattr(function, "__module__", "") or ""
    return f"{module.removeprefix('_')}.{function.__name__}"


def bound(function: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by name, with defaults for missing ones."""
    if isinstance(function, torch._ops.OpOverloadPacket):
        function = getattr(function, function.overloads()[0])
    if not isinstance(function, torch._ops.OpOverload):
        return dict(zip("abcd", arguments, strict=False))
    schema = function._schema.arguments
    found = {one.name: one.default_value if one.has_default_value() else None for one in schema}
    found.update({one.name: value for one, value in zip(schema, arguments, strict=False)})
    found.update(keywords)
    for one in map(_any, schema):  # a list of one number may be given as a number
        if isinstance(one.type, torch.ListType) and isinstance(found[one.name], int) and one.N:
            found[one.name] = [found[one.name]] * one.N
    found.setdefault("shape", None)
    found.setdefault("size", None)
    return found


def written(function: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> set[str]:
    """Return the names of the arguments that are written in a call."""
    schema = function._schema.arguments if isinstance(function, torch._ops.OpOverload) else ()
    return {one.name for one, _ in zip(schema, arguments, strict=False)} | keywords.keys()


def _any(what: Any) -> Any:
    return what


def provenance(call: FxCall, node: fx.Node) -> None:
    """Record which module and which line of the script an operator comes from."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if stack:
        path, kind = list(stack.values())[-1]
        call.module = _MODULE.sub("", path)
        call.kind = kind if isinstance(kind, str) else kind.__name__
    found = _LOCATION.findall(node.meta.get("stack_trace") or "")
    if found:
        call.at = f"{PurePath(found[-1][0]).name}:{found[-1][1]}"


def iterate(values: Any) -> Iterator[Any]:
    """Iterate over the leaves of nested lists."""
    for one in values.values() if isinstance(values, dict) else values:
        if isinstance(one, (list, tuple, dict)):
            yield from iterate(one)
        else:
            yield one
