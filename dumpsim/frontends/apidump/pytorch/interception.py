"""Intercept every call of torch without replacing its names, with a function mode and global module hooks.

The mode is at the bottom of the thread's stack of modes, so that modes of the user (``with torch.device(...)``) can be
pushed and popped above it in any order.
"""

import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, has_torch_function
from torch.utils.hooks import RemovableHandle

from dumpsim._ext.recorder import Gate
from dumpsim.frontends.apidump.pytorch.catalogue import Api, transparent
from dumpsim.frontends.apidump.pytorch.eager import Eager
from dumpsim.frontends.apidump.pytorch.naming import Naming, caller
from dumpsim.frontends.apidump.pytorch.newthreads import NewThreads
from dumpsim.frontends.apidump.pytorch.recomputation import is_made_again
from dumpsim.frontends.apidump.pytorch.recorder import Recorder

__all__ = ["Interception", "Mode"]

_CALL = torch.nn.Module._call_impl.__code__
_OPTIMIZERS = "/torch/optim/"
_PRINTING = frozenset({torch.Tensor.__repr__, torch.Tensor.__format__})
# the thread's stack of function modes
_push_mode = torch._C._push_on_torch_function_stack
_pop_mode = torch._C._pop_torch_function_stack
_modes = torch._C._len_torch_function_stack
_graph_task = torch._C._current_graph_task_id  # -1 outside backward
_tracing = torch._C._get_tracing_state


class Mode(Gate, TorchFunctionMode):  # type: ignore[misc,unused-ignore]  # torch is an extra
    """Passes every call of one thread to the interception."""


class _Threads(threading.local):
    """The gate of each thread."""

    def __init__(
        self,
        called: Callable[..., Any],
        altered: frozenset[Callable[..., Any]],
        gates: "weakref.WeakSet[Mode]",
    ) -> None:
        self.gate = Mode(called, altered)
        gates.add(self.gate)


class Interception:
    """The hooks of one session.

    Parameters
    ----------
    session : Recorder
        The session that selects and records calls.
    """

    def __init__(self, session: Recorder) -> None:
        self._session = weakref.ref(session)
        self._naming = Naming(session.catalogue)
        self._gates: weakref.WeakSet[Mode] = weakref.WeakSet()
        self._altered = session.neutral.functions
        self._threads = _Threads(self.called, self._altered, self._gates)
        self._handles: list[Any] = []
        self._eager = Eager()
        self._new_threads = NewThreads(self._arrive)
        self._pid = os.getpid()
        self._active = False
        self._hook = _Last(weakref.ref(self))
        self._last: weakref.WeakKeyDictionary[torch.nn.Module, int] = weakref.WeakKeyDictionary()

    def install(self, *, modules: bool) -> None:
        """Intercept functions, and with `modules` the calls of modules too."""
        self._pid = os.getpid()
        for gate in list(self._gates):
            gate.reset()
        self._active = True
        self._push()
        self._release()
        if modules:
            hooks = torch.nn.modules.module
            from torch.optim.optimizer import (
                register_optimizer_step_post_hook,
                register_optimizer_step_pre_hook,
            )

            self._handles = [
                hooks.register_module_forward_pre_hook(self._enter),
                hooks.register_module_forward_hook(self._leave, with_kwargs=True, always_call=True),
                register_optimizer_step_pre_hook(self._step_begins),
                register_optimizer_step_post_hook(self._step_ends),
            ]
            self._eager.begin()
            self._new_threads.begin()

    def remove(self) -> None:
        """Remove the mode and all hooks."""
        self._active = False
        self._release()
        self._drop()

    # functions

    def called(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], gate: Mode) -> Any:
        """Make a call of torch, and record it if it is listed and the outermost."""
        session = self._session()
        if session is None or not self._active:
            return function(*args, **kwargs)
        made = function
        if function in self._altered:
            made, args, kwargs = session.neutral.instead(function, args, kwargs)
        if gate.depth or gate.hidden or not (session.recording or session.exact) or os.getpid() != self._pid:
            return made(*args, **kwargs)
        api = None
        frame = None
        hidden = False
        given, named = args, kwargs
        try:
            inner = sys._getframe(1)
            frame = caller(inner)
            api, frame = self._naming.identify(function, args, frame)
            if api is not None:
                if frame is not inner and frame is not None:
                    given, named = self._naming.given(api, args, kwargs, inner, frame)
                hidden = self._is_hidden(session, frame, gate)
        except Exception as error:  # what we cannot make out is not recorded, and the user's call goes on
            session.skip(f"call site: {type(error).__name__}")
        if api is not None and not hidden:
            return session.call(gate, api, made, args, kwargs, frame, given, named)
        if api is not None and session.retain_backward and _graph_task() != -1:
            return self._repeat(session, api, made, args, kwargs, frame)
        if made is not function:
            return made(*args, **kwargs)
        return self._pass(session, function, args, kwargs, gate, frame, hidden=hidden)

    def _pass(
        self,
        session: Recorder,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        gate: Mode,
        frame: FrameType | None,
        *,
        hidden: bool,
    ) -> Any:
        """Call a function that is not recorded; calls made by a Python function of torch are intercepted again."""
        if hidden or (not session.exact and function in _PRINTING):
            return function(*args, **kwargs)
        if session.exact and function in _PRINTING and frame is not None:
            site = self._naming.sites.find(frame)
            if site.name == "print":
                return function(*args, **kwargs)
        body = transparent(function)
        if body is None:
            if function not in self._naming and function not in self._altered:
                gate.plain.add(function)
            return function(*args, **kwargs)
        if has_torch_function((*args, *kwargs.values())):  # a subclass of Tensor must get the call itself
            return function(*args, **kwargs)
        with gate:
            return body(*args, **kwargs)

    def _repeat(
        self,
        session: Recorder,
        api: Api,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType | None,
    ) -> Any:
        """Make a hidden call in backward, which may repeat a call of a checkpoint."""
        result = function(*args, **kwargs)
        try:
            session.made_again(api, frame, result)
        except Exception as error:  # never out of the user's forward
            session.skip(f"record: {type(error).__name__}")
        return result

    def _is_hidden(self, session: Recorder, frame: FrameType | None, gate: Mode) -> bool:
        """Whether a call is not recorded: by an optimizer, a hook of a listed module, or repeated in backward."""
        if frame is not None and _OPTIMIZERS in frame.f_code.co_filename:
            return True
        if gate.behind is not None:
            if _is_called_by(gate.behind, frame):
                return True
            gate.behind = None
        return self._is_aside(session, frame)

    def _is_aside(self, session: Recorder, frame: FrameType | None) -> bool:
        """Whether a call is not part of the run itself: repeated in backward, or traced by torch.jit."""
        if not session.exact and _graph_task() != -1 and is_made_again(frame):
            session.skip("recomputed in backward")
            return True
        if _tracing() is not None:
            session.skip("traced by torch.jit")
            return True
        return False

    # modules

    def _enter(self, module: torch.nn.Module, args: tuple[Any, ...]) -> None:
        session = self._session()
        if session is None or not self._active or os.getpid() != self._pid:
            return
        gate = self._threads.gate
        if not gate.pushed and not gate.open:
            if gate.hidden and not _inside(_OPTIMIZERS):  # a step has failed, without calling the post hook
                gate.hidden = 0
            gate.away = False  # a closure of an optimizer: not recorded, but its dropout is disabled
            self._visit(session)
        inputs = None
        left = False
        if session.catalogue.module(type(module)) is not None:
            gate.depth += 1
            if gate.depth == 1 and gate.pushed and self._is_closed(session, module):
                self._drop()
                left = True
            if session.recording and self._may_overwrite(session, module):
                named = sys._getframe(1).f_locals.get("kwargs") if session.full else None
                try:
                    with torch._C.DisableTorchFunction():
                        inputs = session.captured("_forward_input", args, False)
                        if named:
                            inputs += session.keywords("_forward_input", named)
                except Exception as error:  # a container that cannot be iterated must not stop the user's program
                    inputs = []
                    session.skip(f"arguments: {type(error).__name__}")
        gate.open.append((module, inputs, sys.exc_info()[1], left))
        if module._forward_hooks:
            self._be_last(module)

    def _is_closed(self, session: Recorder, module: torch.nn.Module) -> bool:
        """Whether the inside of a module needs no interception: torch's own code, no submodules, no dropout."""
        own = module.__dict__
        drops = "p" in own or "dropout" in own
        return type(module) in session.catalogue.classes and not own["_modules"] and not drops

    def _may_overwrite(self, session: Recorder, module: torch.nn.Module) -> bool:
        """Whether inputs must be captured before a module's call: it works in place, or its forward is the user's."""
        return bool(module.__dict__.get("inplace")) or type(module) not in session.catalogue.classes

    def _visit(self, session: Recorder) -> None:
        """Push the mode for the duration of a module's call on a thread that does not have it."""
        gate = self._threads.gate
        gate.stays = self._push()
        if gate.stays or gate.told or threading.get_ident() == self._home:
            return
        gate.told = True
        session.skip("calls outside modules in a thread that was started before the dump")

    def _be_last(self, module: torch.nn.Module) -> None:
        """Move our forward hook to the end, to see the result after the user's hooks have changed it."""
        hooks = module._forward_hooks
        key = self._last.get(module)
        if key is None:
            key = self._last[module] = RemovableHandle(hooks).id
        if next(reversed(hooks)) != key:
            hooks.pop(key, None)
            hooks[key] = self._hook
            module._forward_hooks_with_kwargs[key] = True
            module._forward_hooks_always_called[key] = True

    def _leave(self, module: torch.nn.Module, args: tuple[Any, ...], *given: Any) -> None:
        """Handle a module that has computed its result."""
        if self._last.get(module) not in module._forward_hooks:
            self.finish(module, args, *given)

    def finish(self, module: torch.nn.Module, args: tuple[Any, ...], *given: Any) -> None:
        """Handle a module that returns."""
        # torch omits the keywords after an exception
        kwargs, result = given if len(given) == 2 else ({}, given[0])
        gate = self._threads.gate
        if not gate.open or os.getpid() != self._pid:
            return
        while True:  # also modules that ended by an exception, without calling the hook
            entered, inputs, before, left = gate.open.pop()
            if left and self._active:
                self._push()
            session = self._session()
            api = session.catalogue.module(type(entered)) if session is not None else None
            if api is not None and gate.depth:  # a start in the meantime may have reset it
                gate.depth -= 1
                if not gate.depth and _has_backward_hooks(entered):
                    gate.behind = entered
            if entered is module or not gate.open:
                break
        try:
            if session is not None and (session.recording or session.exact) and self._active:
                failed = sys.exc_info()[1]
                if failed is None or failed is before:
                    self._finished(session, module, api, inputs, args, kwargs, result)
        except Exception as error:
            if session is not None:
                session.skip(f"record: {type(error).__name__}")
        if not (gate.open or gate.stays) and gate.pushed and threading.get_ident() != self._home:
            self._drop()

    def _finished(
        self,
        session: Recorder,
        module: torch.nn.Module,
        api: Api | None,
        inputs: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        """Record a module that has returned: its LAYER record, then its NN record."""
        layer = session.layers.get(module)
        if layer is None and (api is None or not (session.full or module is session.net)):
            if api is not None and not self._threads.gate.depth:
                session.skip("module outside the network")  # 1.0.17 only hooks those of the network
            return
        if self._is_aside(session, sys._getframe()):
            if api is not None and session.retain_backward and _graph_task() != -1:
                session.made_again(api, sys._getframe(), result)
            return
        with torch._C.DisableTorchFunction():
            if session.full and inputs is not None:
                kwargs = {}  # they are among the inputs
            session.returned(layer, api, caller(sys._getframe(2)), inputs, args, kwargs, result)

    def _step_begins(self, *_: Any) -> None:
        """Pop the mode until the step ends, since calls of optimizers are not recorded."""
        gate = self._threads.gate
        gate.hidden += 1
        if gate.hidden == 1 and gate.pushed and self._active:
            self._drop()
            gate.away = True

    def _step_ends(self, *_: Any) -> None:
        gate = self._threads.gate
        gate.hidden = max(0, gate.hidden - 1)
        if gate.away and not gate.hidden:
            gate.away = False
            if self._active:
                self._push()

    # on and off

    def _arrive(self) -> None:
        """Push the mode in a thread that has just started."""
        if self._active and os.getpid() == self._pid:
            self._push()
            self._threads.gate.stays = True

    def _push(self) -> bool:
        """Put the mode at the bottom of this thread's stack; return whether it was on the stack already."""
        gate = self._threads.gate
        if gate.pushed:
            return True
        above = [_pop_mode() for _ in range(_modes())]
        known = gate in above
        if not known:
            _push_mode(gate)
        for mode in reversed(above):
            _push_mode(mode)
        gate.pushed = True
        return known

    def _drop(self) -> None:
        """Remove the mode from this thread's stack, wherever it is."""
        gate = self._threads.gate
        above = [_pop_mode() for _ in range(_modes())]
        for mode in reversed(above):
            if mode is not gate:
                _push_mode(mode)
        gate.pushed = False

    def _release(self) -> None:
        """Remove the hooks."""
        self._home = threading.get_ident()
        # torch's own removal leaves this entry
        keywords = getattr(torch.nn.modules.module, "_global_forward_hooks_with_kwargs", {})
        while self._handles:
            handle = self._handles.pop()
            handle.remove()
            keywords.pop(handle.id, None)
        for module, key in list(self._last.items()):
            for hooks in (
                module._forward_hooks,
                module._forward_hooks_with_kwargs,
                module._forward_hooks_always_called,
            ):
                hooks.pop(key, None)
        self._last.clear()
        self._eager.end()
        self._new_threads.end()


class _Last:
    """The last forward hook of a module with hooks of the user, which may change its result."""

    __slots__ = ("_interception",)

    def __init__(self, interception: "weakref.ref[Interception] | None" = None) -> None:
        self._interception = interception

    def __call__(self, module: torch.nn.Module, args: tuple[Any, ...], *given: Any) -> None:
        interception = self._interception() if self._interception is not None else None
        if interception is not None:
            interception.finish(module, args, *given)

    def __deepcopy__(self, memo: Any) -> "_Last":
        return self  # it only reacts to calls whose start was seen

    def __reduce__(self) -> Any:
        return _Last, ()  # a pickled one does nothing


def _has_backward_hooks(module: torch.nn.Module) -> bool:
    """Whether torch calls functions after the last forward hook of a module, within its call."""
    return bool(module._backward_hooks or module._backward_pre_hooks)


def _is_called_by(module: torch.nn.Module, frame: FrameType | None) -> bool:
    """Whether a frame is inside a call of a module: after its forward, in one of its hooks."""
    while frame is not None:
        if frame.f_code is _CALL and frame.f_locals.get("self") is module:
            return True
        frame = frame.f_back
    return False


def _inside(directory: str) -> bool:
    """Whether a function of a directory is on the stack."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if directory in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False
