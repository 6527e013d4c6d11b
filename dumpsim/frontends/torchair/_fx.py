"""The preparation of a captured graph for the conversion. [spec aten 9.7]"""

from typing import Any

import torch
from torch import fx

__all__ = ["prepared"]

aten = torch.ops.aten


def prepared(module: fx.GraphModule, *, noop: bool) -> fx.Graph:
    """Prepare the graph of a module for the conversion; the module is changed.

    Parameters
    ----------
    module : torch.fx.GraphModule
    noop : bool
        Whether to remove operators that return their operand.
    """
    graph = module.graph
    if noop:
        from torch._inductor.fx_passes.post_grad import remove_noop_ops

        remove_noop_ops(graph)
    _take_symbols_from_shapes(graph)
    for node in graph.nodes:
        if node.target is aten.view.default:
            node.target = aten.reshape.default
    graph.lint()
    return graph


def _take_symbols_from_shapes(graph: fx.Graph) -> None:
    """Let users of a symbol read it from the shape of an input that has it. [spec aten 9.9]"""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    for node in inputs:
        value = node.meta.get("val")
        if not isinstance(value, torch.SymInt) or not node.users:
            continue
        found = _with_extent(inputs, value)
        if found is None:
            continue
        tensor, dim = found
        with graph.inserting_after(tensor):
            made = graph.call_function(aten.sym_size.int, (tensor, dim))
        made.meta["val"] = value
        node.replace_all_uses_with(made)


def _with_extent(inputs: list[fx.Node], symbol: torch.SymInt) -> tuple[fx.Node, int] | None:
    for node in inputs:
        value: Any = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            for dim, extent in enumerate(value.shape):
                if isinstance(extent, torch.SymInt) and str(extent) == str(symbol):
                    return node, dim
    return None
