"""The meaning of API names in dumps: torch names become MindSpore's names, and both become operations."""

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from dumpsim.analysis.apiname import RENAMES, canonical

__all__ = ["Framework", "Meaning", "meaning"]

Framework = Literal["mindtorch", "mindspore", "torch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The meaning of an API, in MindSpore's names.

    Attributes
    ----------
    word : str
        Kind and name, ``nn_Dense``; equal words are the same API.
    sense : str
        The operation, whatever its kind: equal senses do the same.
    rank : int
        Priority of a match of this kind: cells first, then functions, methods and the rest. [spec api_dump 2.2]
    """

    word: str
    sense: str
    rank: int


_RANKS = MappingProxyType({"nn": 0, "functional": 1, "tensor": 2})
_SPELLINGS = MappingProxyType(
    {"CELU": "CELU", "SELU": "SeLU"}
)  # the table lists CeLU and SeLU, names that torch does not have


@lru_cache(maxsize=4096)
def meaning(framework: str, kind: str, api: str) -> Meaning:
    """Return the meaning of an API by its name in a framework's dump.

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
    elif kind == "NN" and api in _SPELLINGS:
        unified, name = "nn", _SPELLINGS[api]
    else:
        default = ("functional" if kind == "Torch" else kind.lower(), api)
        unified, name = RENAMES.get((kind, api), default)
    return Meaning(word=f"{unified}_{name}", sense=canonical(name), rank=_RANKS.get(unified, 3))
