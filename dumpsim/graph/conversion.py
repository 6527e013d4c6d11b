"""Operators that convert between layouts and number types of the device; scripts cannot name them."""

from collections.abc import Mapping, Sequence
from typing import Any

from dumpsim.core.abstract import Abstract
from dumpsim.ops.opdef import OpDef

__all__ = ["BACKEND_CAST", "TRANS_DATA"]


def _first(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    return abstracts[0]


# the kernel sees host layouts only: the device moves the bytes when it stores the result
TRANS_DATA = OpDef(
    name="TransData",
    operands=("src",),
    infer=_first,
    kernel=lambda src, **attrs: src,
    attrs={"src_format": "", "dst_format": "", "groups": 1},
    input_names=("src",),
    output_names=("dst",),
)

# the number is narrowed or widened when the result is stored
BACKEND_CAST = OpDef(
    name="Cast",
    operands=("input", "dtype"),
    infer=_first,
    kernel=lambda x, kind: x,
    fixed={"dst_type": lambda abstracts, out, attrs: out.dtype},
    prim_func=True,
)
