"""Traces of the vendor's Python layer in graphs: names of its variables, attributes of its operator objects.

Data of 2.10 from recorded graphs; none of it affects results.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

__all__ = ["INNER_NAMES", "OPERATOR_ATTRS", "OVERLOADED", "SLICE_ATTRS", "UNARY"]

# operators of Python that are a function of `ops` [source ops/composite/multitype_ops of the wheel]
UNARY: Mapping[str, str] = MappingProxyType({"USub": "neg", "Invert": "logical_not"})

# functions of `ops` that choose among overloads: their operators are in a graph that is generated in the default scope,
# and keep that scope [source ops/functional_overload.py of the wheel; observed 2.10: ops.less within a cell]
OVERLOADED = frozenset({"less"})

# operators of Python that use an operator object with names [observed 2.10: control_flow, graph 5]
OPERATOR_ATTRS: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "Sub": ("Sub", MappingProxyType({"input_names": ("x", "y"), "output_names": ("output",)})),
    }
)

# `x[a:b, c:d]` [observed 2.10: multi_output_constants, %8; `x[0]` has no names: %13]
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
SLICE_ATTRS: Mapping[str, Any] = MappingProxyType(
    {
        "input_names": ("x", "begin", "end", "strides", *_MASKS),
        "output_names": ("output",),
    }
)

# variables in functions that unpack an operator's result [observed 2.10: multi_output_constants, %21, %22]
INNER_NAMES: Mapping[str, Sequence[str]] = MappingProxyType({"unique": ("y", "idx")})
