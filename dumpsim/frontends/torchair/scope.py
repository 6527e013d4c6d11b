"""``torchair.scope``: blocks of a model whose operators are treated specially. [spec ge 1.6]

``with torchair.scope.data_dump():`` marks the operators of its block for the dump; ``config.dump_config.enable_dump``
must be on. The dump then uses the operator types of the block as names, as the real one does: a block with ``Sub_1``
dumps the operator with the name ``Sub``. [spec aten 9.10]
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

import torch
from torch import fx, library
from torch.fx.node import has_side_effect

from dumpsim.core.errors import ScriptRuntimeError, UnsupportedError, nearest
from dumpsim.frontends.torchair._dumping import MARK

__all__ = ["DataDump", "attributes_of", "data_dump"]

_OTHERS = (
    "limit_core_num",
    "npu_stream_switch",
    "npu_tagged_event_record",
    "npu_tagged_event_wait",
    "npu_wait_tensor",
    "op_never_timeout",
    "super_kernel",
)


def _nothing(*args: Any) -> None:
    """Do nothing: the implementation of a scope's operators."""


def _define(name: str, schema: str) -> None:
    """Define an operator that is not removed from captured graphs although it has no result."""
    if not hasattr(torch.ops.air, name):
        library.define(f"air::{name}", schema)
        library.impl(f"air::{name}", "default", _nothing)
        library.register_fake(f"air::{name}", _nothing)
    has_side_effect(getattr(torch.ops.air, name).default)


_define("scope_enter", "(str[] keys, str[] values) -> ()")
_define("scope_exit", "() -> ()")


class DataDump:
    """Mark the operators of a block for the dump; the whole block must be in one graph.

    Examples
    --------
    >>> with data_dump():
    ...     result = torch.ones(2) - torch.ones(2)
    """

    def __enter__(self) -> None:
        torch.ops.air.scope_enter([MARK], ["True"])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch.ops.air.scope_exit()


data_dump = DataDump


def attributes_of(graph: fx.Graph) -> dict[fx.Node, Mapping[str, str]]:
    """Remove the operators of scopes from a captured graph.

    Returns
    -------
    dict of Node to mapping
        Attributes of each node in a scope; inner scopes add to outer ones.

    Raises
    ------
    ScriptRuntimeError
        For a scope that begins and ends in different graphs, as after a graph break.
    """
    found: dict[fx.Node, Mapping[str, str]] = {}
    scopes: list[dict[str, str]] = []
    enter, leave = torch.ops.air.scope_enter.default, torch.ops.air.scope_exit.default
    for node in list(graph.nodes):
        if node.target is enter:
            scopes.append(dict(zip(*node.args[:2], strict=True)))
        elif node.target is leave:
            if not scopes:
                raise _unpaired("scope_exit", "scope_enter")
            scopes.pop()
        else:
            if scopes and node.op == "call_function":
                found[node] = {key: value for scope in scopes for key, value in scope.items()}
            continue
        graph.erase_node(node)
    if scopes:
        raise _unpaired("scope_enter", "scope_exit")
    return found


def _unpaired(called: str, missing: str) -> ScriptRuntimeError:
    return ScriptRuntimeError(
        "a scope must begin and end in the same graph",
        where="torchair.scope",
        vendor=f"After you call the torch.ops.air.{called} operator, there is no paired call to the torch.ops.air."
        f"{missing} operator. Please check whether there is a graph break in the scope.",
        code="DS-TAR-005",
    )


def __getattr__(name: str) -> Any:
    if name in _OTHERS:
        raise UnsupportedError(
            f"torchair.scope.{name}", where="torchair.scope", allowed=("data_dump",), nearest="data_dump"
        )
    meant = nearest(name, ("data_dump", *_OTHERS))
    raise AttributeError(
        f"module 'torchair.scope' has no attribute {name!r}" + (f" (did you mean {meant!r}?)" if meant else "")
    )
