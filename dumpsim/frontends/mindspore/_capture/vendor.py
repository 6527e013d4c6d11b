"""What the vendor's Python layer leaves in graphs: names of its own variables, attributes of its operator objects.

Data of 2.10, read off recorded graphs; none of it changes what is computed.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

__all__ = ["INNER_NAMES", "OPERATOR_ATTRS", "SLICE_ATTRS", "THROUGH_FUNCTION"]

# operators of Python that the vendor resolves to a function: the variable's name stays outside of it
# [observed 2.10: `y = a * b` prints %3(y), `z = x + c` prints CNode, and carries the scope of the first `+`]
THROUGH_FUNCTION = frozenset({"Add", "Gt", "Lt", "Eq", "NotEq"})

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

# variables inside of functions that take an operator's result apart [observed 2.10: multi_output_constants, %21, %22]
INNER_NAMES: Mapping[str, Sequence[str]] = MappingProxyType({"unique": ("y", "idx")})
