"""One word for the names that frameworks and compilers give to the same operation."""

import re
from functools import cache

__all__ = ["canonical"]

_VERSION = re.compile(r"(?<=[a-z])(v\d|ext|d)$")
# from what the network's author writes on the one side to what is written on the other [spec api_dump 3]
_SAME = {
    "linear": "dense",
    "transpose": "swapaxes",
    "bilinear": "bidense",
    "eq": "equal",
    "sub": "subtract",
    "dot": "tensordot",
    "gather": "gatherelements",
    "poisson": "randompoisson",
    "scatteradd": "tensorscatterelements",
    "scatter": "tensorscatterelements",
    "convtranspose1d": "conv1dtranspose",
    "convtranspose2d": "conv2dtranspose",
    "convtranspose3d": "conv3dtranspose",
    "hardshrink": "hshrink",
    "hardsigmoid": "hsigmoid",
    "hardswish": "hswish",
    "localresponsenorm": "lrn",
    "expand": "broadcastto",
    "repeat": "tile",
    "view": "reshape",
    "concat": "cat",
    "clamp": "clip",
    "clipbyvalue": "clip",
    "parameter": "data",  # of a graph: MindSpore's and GE's word
}


@cache
def canonical(name: str) -> str:
    """The name without case, underscores and version, and one of its synonyms.

    Examples
    --------
    >>> canonical("MatMulV2"), canonical("matmul"), canonical("Linear"), canonical("__add__")
    ('matmul', 'matmul', 'dense', 'add')
    """
    word = name.lower().replace("_", "")
    word = _VERSION.sub("", word) if word != "add" else word
    return _SAME.get(word, word)
