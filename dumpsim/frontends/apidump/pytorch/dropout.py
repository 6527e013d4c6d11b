"""Disable dropout from init to close, so that two frameworks can be compared. [spec api_dump 1.7]"""

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

__all__ = ["Neutral", "may_drop"]

_WORDS = ("dropout", "scaled_dot_product_attention")


class Neutral:
    """Functions that drop elements, and their replacements.

    Parameters
    ----------
    exact : bool
        Only the functions that 1.0.17 replaces; otherwise all that drop elements, including attention and recurrent
        layers.

    Attributes
    ----------
    functions : frozenset of callable
    """

    def __init__(self, *, exact: bool) -> None:
        self._identities: frozenset[Callable[..., Any]] = frozenset(
            (F.dropout, F.dropout2d, F.dropout3d)
            if exact
            else (
                *(F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout),
                *(torch.dropout, torch.dropout_, torch.alpha_dropout, torch.alpha_dropout_),
                *(torch.feature_dropout, torch.feature_dropout_),
                *(torch.feature_alpha_dropout, torch.feature_alpha_dropout_),
            )
        )
        # function -> position of its probability; None: the one float among its arguments
        self._probabilities: dict[Callable[..., Any], int | None] = {
            F.multi_head_attention_forward: 10,
            F.scaled_dot_product_attention: 4,
            torch.lstm: None,
            torch.gru: None,
            torch.rnn_tanh: None,
            torch.rnn_relu: None,
        }
        if exact:
            self._probabilities = {F.multi_head_attention_forward: 10}
        self._exact = exact
        self.functions = self._identities | frozenset(self._probabilities)

    def instead(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """Return the replacement of one of `functions`, and its arguments."""
        if function in self._identities:
            return _same, args, kwargs
        return function, *self._without(function, args, kwargs)

    def _without(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with a probability of zero."""
        if self._exact and not kwargs.get("need_weights", True):
            return args, kwargs  # this path does not use F.dropout, and remains random in 1.0.17
        position = self._probabilities[function]
        if "dropout_p" in kwargs:
            return args, {**kwargs, "dropout_p": 0.0}
        if position is None:
            position = next((n for n, value in enumerate(args) if type(value) is float), len(args))
        if position < len(args):
            args = (*args[:position], 0.0, *args[position + 1 :])
        return args, kwargs


def _same(*args: Any, **kwargs: Any) -> Any:
    """Return the input, like a dropout without effect."""
    return args[0] if args else kwargs["input"]


def may_drop(net: nn.Module) -> bool:
    """Whether a network or the files of its classes mention dropout; if not, an idle session intercepts nothing.

    Examines attributes of modules, and the names in the code of the classes and functions in their files.
    """
    files: set[str] = set()
    for module in net.modules():
        for name in ("p", "dropout", "dropout_p", "attention_dropout"):
            value = getattr(module, name, None)
            if isinstance(value, float) and value > 0 and ("dropout" in name or "rop" in type(module).__name__):
                return True
        for cls in type(module).__mro__:
            if not cls.__module__.startswith("torch."):
                files.add(cls.__module__)
    return any(_mentions(code) for name in sorted(files) for code in _codes(name))


def _codes(module: str) -> Iterator[CodeType]:
    import sys

    for value in list(vars(sys.modules.get(module, object())).values()) if module in sys.modules else ():
        if getattr(value, "__module__", None) != module:
            continue
        for part in (value, *vars(value).values()) if isinstance(value, type) else (value,):
            if isinstance(part, FunctionType):
                yield part.__code__


def _mentions(code: CodeType) -> bool:
    return any(word in name for name in code.co_names for word in _WORDS) or any(
        _mentions(inner) for inner in code.co_consts if isinstance(inner, CodeType)
    )
