"""Discontinuous operators: a small difference of their inputs can become a large one of their results."""

from fnmatch import fnmatchcase

from dumpsim.analysis.apiname import canonical

__all__ = ["jump"]

_CHOICE = "tied or nearly tied {} can choose another element"
_STEP = "values near a step can fall on its other side"
_COMPARED = "values that are nearly equal can compare the other way"

# piecewise functions with discontinuous derivatives: torch 2.13, MindSpore 2.10
_BENT = (
    *("abs", "absolute", "clamp", "clip", "clipbyvalue", "l1loss", "selu", "softshrink", "threshold"),
    *("hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hshrink", "hsigmoid", "hswish"),
)

# Patterns of canonical names, and the remark on them. That these functions are not continuous follows from their
# definitions: ONNX operator set 21 (ArgMax, TopK, Round, Floor, Ceil, Sign, Greater, Equal), and for the
# gradient of a maximum the choice of its element, MindSpore 2.10 MaxPoolGrad.
_JUMPS = (
    ("maxpool*grad*", _CHOICE.format("maxima")),
    ("adaptivemaxpool*grad*", _CHOICE.format("maxima")),
    ("maxpool*withargmax*", _CHOICE.format("maxima")),
    ("argmax*", _CHOICE.format("maxima")),
    ("argmin*", _CHOICE.format("minima")),
    ("topk*", _CHOICE.format("values")),
    ("sort*", _CHOICE.format("values")),
    ("argsort*", _CHOICE.format("values")),
    ("*relu*grad*", _STEP),  # the sign of an operand decides whether a gradient passes: MindSpore 2.10 ReluGrad
    *((f"{name}grad", _STEP) for name in _BENT),
    *((f"{name}grad", _CHOICE.format("maxima")) for name in ("max", "amax", "maximum", "reducemax")),
    *((f"{name}grad", _CHOICE.format("minima")) for name in ("min", "amin", "minimum", "reducemin")),
    *((name, _STEP) for name in ("round", "rint", "floor", "ceil", "trunc", "sign", "heaviside", "floordivide")),
    *((name, _COMPARED) for name in ("equal", "notequal", "greater", "greaterequal", "less", "lessequal")),
)
_WHOLE = ("int*", "uint*", "bool*")


def jump(op_type: str, dtype: str) -> str:
    """Return a remark on a difference in a result of this operator and type; empty for continuous operators.

    Examples
    --------
    >>> jump("MaxPoolGrad", "float16")
    'tied or nearly tied maxima can choose another element'
    >>> jump("ReluGrad", "float16")
    'values near a step can fall on its other side'
    >>> jump("Cast", "int32"), jump("Cast", "float16"), jump("Add", "float32")
    ('values near a step can fall on its other side', '', '')
    """
    word = canonical(op_type)
    if word == "cast" and any(fnmatchcase(dtype, kind) for kind in _WHOLE):
        return _STEP
    return next((said for pattern, said in _JUMPS if fnmatchcase(word, pattern)), "")
