"""Tables of names for the same operation in different frameworks and compilers; no framework is imported."""

import re
from functools import cache
from types import MappingProxyType

__all__ = ["COMPOUNDS", "RENAMES", "canonical"]

# Torch's word to MindSpore's, where they differ; every other name is its own translation. [spec api_dump 3]
RENAMES: MappingProxyType[tuple[str, str], tuple[str, str]] = MappingProxyType(
    {
        ("Torch", "dot"): ("functional", "tensor_dot"),
        ("Torch", "eq"): ("functional", "equal"),
        ("Torch", "gather"): ("functional", "gather_elements"),
        ("Torch", "poisson"): ("functional", "random_poisson"),
        ("Torch", "scatter_add"): ("functional", "tensor_scatter_elements"),
        ("Torch", "sub"): ("functional", "subtract"),
        ("Torch", "transpose"): ("functional", "swapaxes"),
        ("NN", "Bilinear"): ("nn", "BiDense"),
        ("NN", "CeLU"): ("nn", "CELU"),
        ("NN", "ConvTranspose1d"): ("nn", "Conv1dTranspose"),
        ("NN", "ConvTranspose2d"): ("nn", "Conv2dTranspose"),
        ("NN", "ConvTranspose3d"): ("nn", "Conv3dTranspose"),
        ("NN", "Hardshrink"): ("nn", "HShrink"),
        ("NN", "Hardsigmoid"): ("nn", "Hsigmoid"),
        ("NN", "Hardswish"): ("nn", "Hswish"),
        ("NN", "Linear"): ("nn", "Dense"),
        ("NN", "LocalResponseNorm"): ("nn", "LRN"),
        ("NN", "ModuleList"): ("nn", "CellList"),
        ("NN", "Sequential"): ("nn", "SequentialCell"),
        ("NN", "Softshrink"): ("nn", "SoftShrink"),
        ("Functional", "bilinear"): ("functional", "bidense"),
        ("Functional", "linear"): ("functional", "dense"),
        ("Tensor", "cauchy_"): ("tensor", "cauchy"),
        ("Tensor", "dim"): ("tensor", "ndimension"),
        ("Tensor", "eq"): ("tensor", "equal"),
        ("Tensor", "expand"): ("tensor", "broadcast_to"),
        ("Tensor", "fill_diagonal_"): ("tensor", "fill_diagonal"),
        ("Tensor", "gather"): ("tensor", "gather_elements"),
        ("Tensor", "numpy"): ("tensor", "asnumpy"),
        ("Tensor", "repeat"): ("tensor", "tile"),
        ("Tensor", "scatter_"): ("functional", "tensor_scatter_elements"),
        ("Tensor", "size"): ("tensor", "shape"),
        ("Tensor", "sub"): ("tensor", "subtract"),
        ("Tensor", "transpose"): ("tensor", "swapaxes"),
    }
)

# Further words for one operation, lower case and without underscores; the first of a line is the one that is used.
# [torch 2.13, MindSpore 2.10, CANN: they take the same arguments to the same result, or differ by their order]
_SYNONYMS = (
    "abs absolute",
    "acos arccos",
    "acosh arccosh",
    "add iadd radd",
    "amax reducemax",
    "amin reducemin",
    "asin arcsin",
    "asinh arcsinh",
    "atan arctan",
    "atanh arctanh",
    "batchnorm batchnorm1d batchnorm2d batchnorm3d syncbatchnorm",
    "bceloss binarycrossentropy",
    "bcewithlogitsloss binarycrossentropywithlogits",
    "cast astype to",
    "cat concat concatenate",
    "clamp clip clipbyvalue",
    "crossentropy crossentropyloss",
    "data parameter",  # of a graph: GE's and MindSpore's word
    "div divide itruediv realdiv rtruediv truediv truedivide",
    "equal eq",
    "floordivide floordiv ifloordiv rfloordiv",
    "greater gt",
    "greaterequal ge",
    "index getitem",
    "instancenorm instancenorm1d instancenorm2d instancenorm3d",
    "interpolate upsample",
    "kldiv kldivloss",
    "less lt",
    "lessequal le",
    "matmul batchmatmul bmm imatmul mm rmatmul",
    "mean reducemean",
    "moveaxis movedim",
    "mse mseloss",
    "mul imul multiply rmul",
    "neg negative",
    "notequal ne",
    "pow ipow rpow",
    "prod reduceprod",
    "remainder fmod mod",
    "reshape reshapeas unsafeview view viewas",
    "scaleddotproductattention flashattentionscore",
    "silu swish",
    "stack pack",
    "sub isub rsub subtract",
    "sum reducesum",
    "transpose permute swapaxes swapdims t",  # MindSpore's transpose takes the order of all axes, as torch's permute
    "trunc fix",
    "unbind unpack unstack",
    "unsqueeze expanddims",
)

# Calls that several calls of another net replace, in canonical words: hints for calls without a counterpart.
COMPOUNDS: MappingProxyType[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {
        "dense": (("matmul", "add"), ("matmul", "biasadd"), ("transpose", "matmul", "add")),
        "addmm": (("matmul", "add"),),
        "baddbmm": (("matmul", "add"),),
        "addcmul": (("mul", "add"),),
        "addcdiv": (("div", "add"),),
        "crossentropy": (("logsoftmax", "nllloss"),),
        "l1loss": (("sub", "abs", "mean"),),
        "logsoftmax": (("softmax", "log"),),
        "mse": (("sub", "square", "mean"), ("sub", "pow", "mean")),
        "rsqrt": (("sqrt", "reciprocal"),),
        "scaleddotproductattention": (
            ("matmul", "softmax", "matmul"),
            ("matmul", "div", "softmax", "matmul"),
            ("matmul", "mul", "softmax", "matmul"),
            ("transpose", "matmul", "div", "softmax", "matmul"),
            ("transpose", "matmul", "mul", "softmax", "matmul"),
        ),
        "silu": (("sigmoid", "mul"),),
    }
)

# of operators: MatMulV2, TransposeD, SumExt; of functions: sum_ext. Conv2D and add keep their last letter.
_VERSION = re.compile(r"(?<=[A-Za-z0-9])(?:_?[vV]\d|Ext|_ext)$|(?<=[a-z])D$")


@cache
def canonical(name: str) -> str:
    """Return the canonical name: lower case, without underscores and version, one of several synonyms.

    Examples
    --------
    >>> canonical("MatMulV2"), canonical("matmul"), canonical("Linear"), canonical("__add__")
    ('matmul', 'matmul', 'dense', 'add')
    >>> canonical("expand") == canonical("broadcast_to") == canonical("BroadcastToD")
    True
    """
    word = _plain(_VERSION.sub("", name))
    return _words().get(word, word)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


@cache
def _words() -> dict[str, str]:
    """Return a canonical word for each synonym; synonyms of synonyms are one operation."""
    words = {word: line.split()[0] for line in _SYNONYMS for word in line.split()}
    for (_, ours), (_, theirs) in RENAMES.items():
        one, other = (words.get(_plain(name), _plain(name)) for name in (ours, theirs))
        for word, meant in list(words.items()):
            if meant == one:
                words[word] = other
        words[_plain(ours)] = words[one] = other
    return words
