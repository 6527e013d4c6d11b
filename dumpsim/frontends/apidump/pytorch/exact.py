"""Interception as in 1.0.17: hooks on the modules of the network, everything else by the stack of calls.

The real tool counts and suppresses calls with wrappers around classes and names of torch. Nothing is wrapped here,
since the frames of a call contain the same information.
"""

import inspect
import os
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import nn

from dumpsim.frontends.apidump.pytorch.callsite import CallSite
from dumpsim.frontends.apidump.pytorch.catalogue import Api
from dumpsim.frontends.apidump.pytorch.early import Early
from dumpsim.frontends.apidump.pytorch.interception import Interception, Mode
from dumpsim.frontends.apidump.pytorch.naming import caller
from dumpsim.frontends.apidump.pytorch.recorder import Layer, Recorder
from dumpsim.frontends.apidump.selection import Memory

__all__ = ["Carried", "ExactInterception"]

_CALL = nn.Module._call_impl.__code__


class Carried:
    """The state that 1.0.17 keeps from one init to the next, until `ApiDump.close`.

    Attributes
    ----------
    memory : Memory
        Cached results of selections.
    handles : list
        Hooks on the networks of all inits: those of an earlier one continue to record, and a network that was passed
        twice has two of each. [spec api_dump 1.9, 5]
    """

    def __init__(self) -> None:
        self.memory = Memory()
        self.handles: list[Any] = []
        self.current: weakref.ref[ExactInterception] | None = None

    def begin(self, interception: "ExactInterception") -> None:
        """Start a new init: keep cached results, but reset the progress of a range."""
        self.current = weakref.ref(interception)
        self.memory.begun = self.memory.ended = False

    def end(self) -> None:
        """Remove the hooks."""
        self.current = None
        while self.handles:
            self.handles.pop().remove()


class _NetHook:
    """A forward hook of one module of a network: its LAYER record, or its NN record."""

    __slots__ = ("_carried", "_what")

    def __init__(self, carried: Carried | None, what: Layer | Api | None) -> None:
        self._carried = carried
        self._what = what

    def __call__(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        current = self._carried.current() if self._carried is not None and self._carried.current is not None else None
        if current is not None:
            current.finished(self._what, args, result, sys._getframe(1))

    def __deepcopy__(self, memo: Any) -> "_NetHook":
        return self  # a copied network is recorded too

    def __reduce__(self) -> Any:
        return _NetHook, (None, None)  # a pickled one is not


class ExactInterception(Interception):
    """The hooks of an exact session.

    Parameters
    ----------
    session : Recorder
    net : nn.Module
    carried : Carried
    """

    def __init__(self, session: Recorder, net: nn.Module, carried: Carried) -> None:
        super().__init__(session)
        self._carried = carried
        carried.begin(self)
        frame: FrameType | None = sys._getframe(1)
        self._early = Early(session.catalogue.functions(), net, frame)
        self._steps = _steps()
        self._early_steps = _early_steps()
        for name, module in net.named_modules():
            api = session.catalogue.module(type(module))
            if name:
                carried.handles.append(module.register_forward_hook(_NetHook(carried, session.layers[module])))
            if api is not None:
                carried.handles.append(module.register_forward_hook(_NetHook(carried, api)))

    def install(self, *, modules: bool) -> None:
        """Intercept functions from now on; modules were hooked at init."""
        self._active = True
        self._pid = os.getpid()
        self._push()
        self._release()
        self._handles = [torch.nn.modules.module.register_module_forward_pre_hook(self._enter)]
        self._eager.begin()
        self._new_threads.begin()

    def remove(self) -> None:
        """Remove all hooks, except those that a later init has taken over."""
        super().remove()
        if self._carried.current is not None and self._carried.current() in (self, None):
            self._carried.end()

    def called(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], gate: Mode) -> Any:
        """Make a call of torch, and record it if the real tool would have replaced it and it is the outermost."""
        session = self._session()
        if session is None or not self._active:
            return function(*args, **kwargs)
        made = function
        if function in self._altered:
            made, args, kwargs = session.neutral.instead(function, args, kwargs)
        if gate.depth or os.getpid() != self._pid:
            return made(*args, **kwargs)
        inner = sys._getframe(1)
        frame = caller(inner)
        given, named = args, kwargs
        api: Api | None = None
        hidden = False
        try:
            hidden = frame is not None and self._is_covered(session, frame)
            if not hidden:
                api, place = self._naming.identify(function, args, frame)
                if self._is_early(session, api, function, place):
                    # not replaced: the calls that it makes are seen
                    api = None if place is frame else self._naming.named(function, args, frame)
                    made = function
                else:
                    frame = place
            if api is not None and frame is not inner and frame is not None:
                given, named = self._naming.given(api, args, kwargs, inner, frame)
        except Exception as error:  # calls that cannot be identified are not recorded, and the user's call continues
            session.skip(f"call site: {type(error).__name__}")
        if api is None:
            if made is not function:
                return made(*args, **kwargs)
            return self._pass(session, function, args, kwargs, gate, frame, hidden=hidden)
        session.touch()
        result = session.call(gate, api, made, args, kwargs, frame, given, named)
        session.raise_refusal()
        return result

    def finished(self, what: Layer | Api | None, args: tuple[Any, ...], result: Any, frame: FrameType | None) -> None:
        """Record a module with a hook of ours that has returned."""
        session = self._session()
        if session is None or what is None or not self._active or os.getpid() != self._pid:
            return
        try:
            self._finish(session, what, args, result, frame)
        except Exception as error:  # never out of the user's forward
            session.skip(f"record: {type(error).__name__}")
        session.raise_refusal()

    def _finish(
        self, session: Recorder, what: Layer | Api, args: tuple[Any, ...], result: Any, frame: FrameType | None
    ) -> None:
        with torch._C.DisableTorchFunction():
            session.touch()
            layer, api = (None, what) if isinstance(what, Api) else (what, None)
            session.returned(layer, api, frame, None, args, {}, result)

    def _enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Push the mode in a new thread, whose functions are recorded from its first module on."""
        if self._active and not self._threads.gate.pushed and os.getpid() == self._pid:
            self._push()

    def _is_covered(self, session: Recorder, frame: FrameType) -> bool:
        """Whether a listed module or an optimizer encloses the call, which is then not recorded itself."""
        outer: FrameType | None = frame
        while outer is not None:
            code = outer.f_code
            if code is _CALL:
                if session.catalogue.module(type(outer.f_locals["self"])) is not None:
                    return True
            elif id(code) in self._steps and self._is_wrapped_step(outer):
                return True
            outer = outer.f_back
        return False

    def _is_wrapped_step(self, frame: FrameType) -> bool:
        """Whether an optimizer's step was called by name; a scheduler from before init refers to the method itself."""
        optimizer = frame.f_locals.get("self")
        if frame.f_code.co_name != "step":
            return any(vars(torch.optim).get(cls.__name__) is cls for cls in type(optimizer).__mro__[:-2])
        if optimizer is None or id(optimizer) not in self._early_steps:
            return True
        return inspect.unwrap(type(optimizer).step).__code__ is not frame.f_code

    def _is_early(
        self, session: Recorder, api: Api | None, function: Callable[..., Any], frame: FrameType | None
    ) -> bool:
        if frame is None or api is None:
            return False
        site: CallSite = self._naming.sites.find(frame)
        return any(self._early.holds(alias, site, frame) for alias in session.catalogue.aliases(function, api))


def _steps() -> frozenset[int]:
    """Return the ids of the code of optimizer methods whose calls are not recorded."""
    optimizers = [cls for cls in vars(torch.optim).values() if isinstance(cls, type)]
    return frozenset(
        id(inspect.unwrap(cls.__dict__[name]).__code__)
        for cls in optimizers
        if issubclass(cls, torch.optim.Optimizer)
        for name in ("step", "zero_grad")
        if name in cls.__dict__ and (cls is not torch.optim.Optimizer or name == "zero_grad")
    )


def _early_steps() -> frozenset[int]:
    """Return the ids of optimizers whose step a scheduler has already bound to the instance."""
    import gc

    objects = gc.get_objects()  # there may be millions
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, torch.optim.Optimizer)}
    found = (one for one, kind in zip(objects, map(type, objects), strict=True) if kind in kinds) if kinds else ()
    return frozenset(id(one) for one in found if "step" in vars(one))
