"""Find the name by which a function of torch was called, and its arguments."""

import math
from collections.abc import Callable
from types import FrameType, MappingProxyType
from typing import Any

import torch
from torch.overrides import handle_torch_function

from dumpsim.frontends.apidump.pytorch.callsite import CallSite, Load, Sites, base_module, evaluate
from dumpsim.frontends.apidump.pytorch.catalogue import OPERATORS, Api, Catalogue

__all__ = ["Naming", "caller"]

_HANDLE = handle_torch_function.__code__
_CHOOSERS = "/torch/_jit_internal.py"  # functions that select one of two by a flag, like max_pool2d
_OWN_CALLERS = ("/torch/_tensor.py", "/torch/nn/functional.py", "/torch/functional.py")
_HIDDEN_BASES = frozenset({"_VariableFunctions", "TensorBase", "_VF"})
_WITH_INDICES = "_with_indices"
_NUMBERS = frozenset({"size", "shape", "dim", "ndim", "numel", "nelement", "item", "stride"})
_VARARGS = 0x04
_KINDS = MappingProxyType({"torch": "Torch", "torch.nn.functional": "Functional", "torch._VF": "VF"})


class Naming:
    """Finds the API of a call from the function that torch passes and the caller's current instruction.

    Parameters
    ----------
    catalogue : Catalogue

    Attributes
    ----------
    sites : Sites
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.sites = Sites()
        self._operators = _operators()

    def __contains__(self, function: object) -> bool:
        """Whether calls of a function may be recorded."""
        return function in self._catalogue or function in self._operators

    def identify(
        self, function: Callable[..., Any], args: tuple[Any, ...], frame: FrameType | None
    ) -> tuple[Api | None, FrameType | None]:
        """Return the called API, None for one that is not recorded, and the caller's frame."""
        silent = self._catalogue.silent.get(id(frame.f_code)) if frame is not None else None
        if silent is not None and frame is not None:
            return silent, frame.f_back
        return self.named(function, args, frame), frame

    def named(self, function: Callable[..., Any], args: tuple[Any, ...], frame: FrameType | None) -> Api | None:
        """Return the API by the name that the caller used, None for one that is not recorded."""
        catalogue = self._catalogue
        operators = self._operators.get(function)
        candidates = catalogue.candidates(function)
        if operators is not None and frame is not None:
            site = self.sites.find(frame)
            name = self._operator(function, operators, site, args, frame)
            if name is not None:
                return catalogue.operator(name)
        if len(candidates) < 2:
            if not candidates:
                return None
            if frame is not None and frame.f_code.co_filename.endswith(_OWN_CALLERS):
                callee = self.sites.find(frame).callee
                if callee is not None and not _HIDDEN_BASES.isdisjoint((callee.root, *callee.attributes)):
                    return None  # torch's own functions call it by a name that is not listed
            name = candidates[0].name
            if name.endswith(_WITH_INDICES) and frame is not None and self.sites.find(frame).name != name:
                # one function for both variants, selected by a flag: it is called by the common name
                return Api("Functional", name.removesuffix(_WITH_INDICES))
            return candidates[0]
        site = self.sites.find(frame) if frame is not None else CallSite(False)
        called = site.name
        module = base_module(site.callee, frame) if frame is not None else None
        for api in candidates:
            if api.name == called and (module is None or _KINDS.get(module, api.kind) == api.kind):
                return api
        plain = getattr(function, "__name__", "")
        return min(candidates, key=lambda api: api.name != plain)

    def given(
        self, api: Api, args: tuple[Any, ...], kwargs: dict[str, Any], inner: FrameType, frame: FrameType
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments as the caller passed them; torch's Python functions rearrange them before dispatch."""
        asked = inner
        while asked.f_back is not None and asked.f_back is not frame:
            asked = asked.f_back
        code = asked.f_code
        if code.co_name == "__torch_function__":
            return args, kwargs
        if code.co_flags & _VARARGS:
            name = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
            value = asked.f_locals.get(name, args)
            if code.co_filename.endswith(_CHOOSERS) and isinstance(value, tuple):
                return value, asked.f_locals.get("kwargs", {})
            return args, kwargs
        site = self.sites.find(frame)
        if site.operator or site.positional is None:
            return args, kwargs
        number = site.positional
        if api.kind == "Tensor":
            known, owner = evaluate(_owner(site.callee), frame)
            number += not (known and isinstance(owner, type))
        if number > code.co_argcount:
            return args, kwargs
        values = asked.f_locals
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return tuple(values.get(name) for name in names[:number]), {name: values.get(name) for name in names[number:]}

    def _operator(
        self,
        function: Callable[..., Any],
        names: tuple[str, ...],
        site: CallSite,
        args: tuple[Any, ...],
        frame: FrameType,
    ) -> str | None:
        """Return the dunder method that was called, None if it was the method of the plain name."""
        plain = getattr(function, "__name__", "")
        other_is_number = len(args) > 1 and not isinstance(args[1], torch.Tensor)
        reflected = next((name for name in names if name.startswith("__r")), None)
        if not site.operator:
            if evaluate(site.callee, frame)[1] is abs:
                return names[0]
            if site.name is None or site.name == plain:
                if site.callee is None or not site.callee.attributes or not site.callee.root:
                    return None
                module = base_module(site.callee, frame)
                return names[0] if module in ("operator", "_operator") else None
            if site.name.startswith("__"):
                return site.name if site.name in names else None
            known, callee = evaluate(site.callee, frame)
            if known and getattr(callee, "__name__", None) == plain:
                return None  # a bound method under another name
            if not known:
                return None
            # sum() and prod() start from a number; similar functions (functools.reduce) from their arguments
            starts = callee is sum or callee is math.prod
            return reflected if reflected and other_is_number and starts else names[0]
        if reflected is None or not other_is_number:
            return names[0]
        right_known, right = evaluate(site.right, frame)
        if right_known:
            return reflected if right is args[0] else names[0]
        left_known, left = evaluate(site.left, frame)
        if left_known:
            return names[0] if left is args[0] else reflected
        is_right = any(_is_tensor(load, frame) for load in site.right_loads)
        return reflected if is_right and not any(_is_tensor(load, frame) for load in site.left_loads) else names[0]


def caller(frame: FrameType | None) -> FrameType | None:
    """Return the frame that called a function of torch, skipping torch's own dispatch."""
    while frame is not None and (outer := frame.f_back) is not None:
        if frame.f_code.co_name == "__torch_function__":  # a mode of the user above ours
            frame = outer
            continue
        if frame.f_code is not _HANDLE:
            break
        frame = outer.f_back
        if frame is not None and frame.f_code.co_filename.endswith(_CHOOSERS):
            frame = frame.f_back
    return frame


def _operators() -> dict[Any, tuple[str, ...]]:
    """Return the operators of each function of Tensor that has some."""
    space = torch._C.TensorBase
    return {getattr(space, plain): names for plain, names in OPERATORS.items() if hasattr(space, plain)}


def _is_tensor(load: Load, frame: FrameType) -> bool:
    """Whether a variable in an operand makes the operand a tensor."""
    value = evaluate(Load(load.op, load.root), frame)[1]
    if isinstance(value, torch.Tensor):
        return not load.attributes or load.attributes[0] not in _NUMBERS
    return isinstance(evaluate(load, frame)[1], torch.Tensor)


def _owner(callee: Load | None) -> Load | None:
    """Return the object that the called attribute was looked up on."""
    return Load(callee.op, callee.root, callee.attributes[:-1]) if callee is not None and callee.attributes else None
