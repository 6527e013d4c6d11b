"""Graphs of ours in the form of the records that were made with the real converter."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

import numpy as np
import pytest
import torch

from dumpsim.frontends.torchair._ge import GE_NUMBERS, GE_TYPES


def _dim(extent):
    return extent if isinstance(extent, int) else -1


def _shape(shape):
    return [extent if isinstance(extent, int) else str(extent) for extent in shape]


def _value(value):
    if isinstance(value, torch.dtype):
        return GE_NUMBERS[value]
    if isinstance(value, float):
        return round(float(np.float32(value)), 9)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return [_value(one) for one in value]
    return value


def _tensor(value):
    found = {"dtype": GE_TYPES[value.dtype], "shape": list(value.shape), "bytes": value.numel() * value.element_size()}
    if value.numel() <= 16:
        found["value"] = value.reshape(-1).tolist()
    return found


def _output(node, output):
    found = {"dtype": output.ge_dtype}
    if node.type in ("Data", "Const"):
        return {**found, "shape": [_dim(extent) for extent in output.shape]}
    if output.shape is not None:
        found["shape"] = _shape(output.shape)
    return found


def node_record(node):
    """A node."""
    found = {"name": node.name, "type": node.type, "inputs": ["" if one is None else str(one) for one in node.inputs]}
    attrs = {key: _value(value) for key, value in sorted(node.attrs.items()) if not key.startswith("_")}
    if node.value is not None:
        attrs["value"] = _tensor(node.value)
    if attrs:
        found["attrs"] = attrs
    if node.type == "NetOutput":
        inputs = [one.output for one in node.inputs]
        found["results"] = [
            {"dtype": one.ge_dtype, "shape": [_dim(extent) for extent in one.shape or ()]} for one in inputs
        ]
    else:
        found["outputs"] = [_output(node, output) for output in node.outputs]
    return found


def facets(node):
    """What is compared of a node."""
    attrs = {key: value for key, value in node.get("attrs", {}).items() if not key.startswith("_")}
    outputs = [(one["dtype"], one.get("shape")) for one in node.get("outputs", node.get("results", []))]
    return node["name"], node["type"], node["inputs"], attrs, outputs


def record(graph):
    """A graph."""
    return {
        "graph": graph.name,
        "nodes": [node_record(node) for node in graph.nodes],
        "fx": [
            {"name": call.name, "target": call.target, "module": call.module, "class": call.kind, "at": call.at}
            for call in graph.calls
        ],
        "removed_by_passes": graph.removed,
    }


@contextmanager
def of_version(recorded: str) -> Iterator[None]:
    """Skip a comparison that fails where another version of transformers is installed: its models may differ."""
    try:
        yield
    except AssertionError:
        if version("transformers") != recorded:
            pytest.skip(f"recorded with transformers {recorded}, whose model is another one than the installed one's")
        raise
