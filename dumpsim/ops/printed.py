"""The primitive attributes that IR text shows after an operator. [spec observed 1.8]

Their order, that of the vendor's hash table, is determined elsewhere. ``IsFeatureMapOutput`` and
``IsFeatureMapInputList`` depend on the graph.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dumpsim.core.abstract import Abstract
from dumpsim.ops.opdef import OpDef

__all__ = ["attributes"]

# quirk: operators that a gradient rule creates without names, with only the attributes that it sets [2.10 observed]
_BARE = frozenset({"SparseSoftmaxCrossEntropyWithLogits", "Stack"})


def attributes(
    definition: OpDef,
    operands: Sequence[Abstract],
    output: Abstract,
    attrs: Mapping[str, Any],
    *,
    backward: bool = False,
    given: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the primitive attributes of a node by name.

    Parameters
    ----------
    definition : OpDef
    operands : sequence of Abstract
    output : Abstract
    attrs : mapping
        Keyword arguments of the kernel, defaults filled in.
    backward : bool
        Whether a gradient rule created the node: its names are tuples, ``(x, w)``; a script's are lists, ``[x, w]``.
    given : sequence of str
        Attributes that the gradient rule has set.

    Examples
    --------
    >>> from dumpsim.core.abstract import TensorType
    >>> from dumpsim.core.dtype import dtype
    >>> from dumpsim.ops.table import find
    >>> x = TensorType(dtype=dtype("float32"), shape=(1, 1, 4, 4))
    >>> attrs = {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "pad_mode": "VALID", "format": "NCHW"}
    >>> sorted(attributes(find("MaxPool"), [x], x, attrs))
    ['format', 'input_names', 'kernel_size', 'output_names', 'pad_mode', 'strides']
    """
    if backward and definition.name in _BARE:
        return {name: attrs[name] for name in definition.attrs if name in given}
    shown: dict[str, Any] = {
        name: attrs.get(name, default) for name, default in definition.attrs.items() if not name.startswith("_")
    }
    for name, value in definition.fixed.items():
        shown[name] = value(operands, output, shown) if callable(value) else value
    for name, names in (("input_names", definition.input_names), ("output_names", definition.output_names)):
        if names:
            shown[name] = tuple(names) if backward else names
    return shown
