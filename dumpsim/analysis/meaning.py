"""What the name of an API in a dump means: a torch name becomes MindSpore's word for it, and both an operation."""

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from dumpsim.analysis.apiname import RENAMES, canonical

__all__ = ["Framework", "Meaning", "meaning"]

Framework = Literal["mindtorch", "mindspore", "torch"]


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
_SPELLINGS = MappingProxyType({"CELU": "CELU", "SELU": "SeLU"})  # listed as CeLU and SeLU, which torch does not have


@lru_cache(maxsize=4096)
def meaning(framework: str, kind: str, api: str) -> Meaning:
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
    elif kind == "NN" and api in _SPELLINGS:
        unified, name = "nn", _SPELLINGS[api]
    else:
        default = ("functional" if kind == "Torch" else kind.lower(), api)
        unified, name = RENAMES.get((kind, api), default)
    return Meaning(word=f"{unified}_{name}", sense=canonical(name), rank=_RANKS.get(unified, 3))
