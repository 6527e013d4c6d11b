"""Which API of one framework means what an API of the other does: names as data, no framework imported.

A torch name becomes the MindSpore word for it: the same name by default, the renames below otherwise. Names that then
still differ may share a meaning: an operator and its method, a cell and its function, two words for one operation.
"""

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

__all__ = ["RENAMES", "SYNONYMS", "Framework", "Meaning", "meaning"]

Framework = Literal["mindtorch", "mindspore", "torch"]

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
        ("NN", "CELU"): ("nn", "CELU"),  # listed as CeLU, which torch does not have
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
        ("NN", "SELU"): ("nn", "SeLU"),  # listed as SeLU, which torch does not have
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

# Words of MindSpore (lower case, without underscores) that name one operation.
# [MindSpore 2.10: ops and nn of these names take the same arguments to the same result]
SYNONYMS: MappingProxyType[str, str] = MappingProxyType(
    {
        "transpose": "permute",  # MindSpore's transpose takes the whole order of axes, as torch's permute does
        "concat": "cat",
        "concatenate": "cat",
        "view": "reshape",
        "viewas": "reshape",
        "reshapeas": "reshape",
        "clip": "clamp",
        "clipbyvalue": "clamp",
        "truediv": "div",
        "truedivide": "div",
        "divide": "div",
        "itruediv": "div",
        "iadd": "add",
        "radd": "add",
        "isub": "sub",
        "rsub": "sub",
        "subtract": "sub",
        "imul": "mul",
        "rmul": "mul",
        "multiply": "mul",
        "mm": "matmul",
        "bmm": "matmul",
        "imatmul": "matmul",
        "batchmatmul": "matmul",
        "eq": "equal",
        "ne": "notequal",
        "lt": "less",
        "le": "lessequal",
        "gt": "greater",
        "ge": "greaterequal",
        "linear": "dense",
        "expand": "broadcastto",
        "reducemean": "mean",
        "reducesum": "sum",
        "negative": "neg",
        "getitem": "index",
        "crossentropyloss": "crossentropy",
        "mseloss": "mse",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What an API is called in MindSpore's words.

    Attributes
    ----------
    word : str
        Kind and name, ``nn_Dense``; equal words are the same API.
    sense : str
        The operation, whatever its kind: equal senses do the same.
    rank : int
        How much a match of this kind says: cells first, then functions, methods and the rest. [spec api_dump 2.2]
    """

    word: str
    sense: str
    rank: int


_RANKS = MappingProxyType({"nn": 0, "functional": 1, "tensor": 2})


@lru_cache(maxsize=4096)
def meaning(framework: Framework, kind: str, api: str) -> Meaning:
    """The meaning of an API as the dump of a framework names it.

    Parameters
    ----------
    framework : {'torch', 'mindspore', 'mindtorch'}
        MindTorch has torch's names.
    kind : str
        ``NN``, ``Functional``, ``Tensor``, ``Torch``, ``VF`` or ``LAYER``.
    api : str

    Examples
    --------
    >>> meaning("torch", "NN", "Linear").word, meaning("mindspore", "NN", "Dense").word
    ('nn_Dense', 'nn_Dense')
    >>> meaning("torch", "Tensor", "permute").sense == meaning("mindspore", "Functional", "transpose").sense
    True
    """
    if kind == "LAYER":
        return Meaning(word=f"layer_{api}", sense=f"layer_{api}", rank=3)
    if framework == "mindspore":
        unified, name = kind.lower(), api
    else:
        default = ("functional" if kind == "Torch" else kind.lower(), api)
        unified, name = RENAMES.get((kind, api), default)
    plain = name.replace("_", "").lower()
    return Meaning(word=f"{unified}_{name}", sense=SYNONYMS.get(plain, plain), rank=_RANKS.get(unified, 3))
