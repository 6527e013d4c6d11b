"""Record calls of cells, functions and methods of the MindSpore front end.

Only operators that run one by one are recorded: a graph has no values while it is captured.
"""

import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Protocol

from dumpsim.frontends.apidump.places import LONGEST, TOO_DEEP, leaves, tensors, unrecorded
from dumpsim.frontends.mindspore import _listener as listener
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import Cell, Optimizer

__all__ = ["CellCalls", "Dump", "listed_class", "listed_names"]

_LABELS: Mapping[str, str] = MappingProxyType({"function": "Functional", "method": "Tensor"})
_OWN = "dumpsim.frontends.mindspore."
_FULL = (f"{_OWN}nn.layer.", f"{_OWN}nn.loss.", f"{_OWN}mint.nn.layer")
_MINT_OPTIM = f"{_OWN}mint.optim."
_CONTAINER = f"{_OWN}nn.layer.container"
# queries of a tensor, which process no data
_SILENT = frozenset(("dim", "is_floating_point", "numel", "print_", "stride"))


@cache
def listed_names() -> Mapping[str, frozenset[str]]:
    """Return the APIs that the real tool hooks, by kind of record: NN, Functional, Tensor. [troubleshooter 1.0.17]

    Examples
    --------
    >>> {kind: len(names) for kind, names in listed_names().items()}
    {'NN': 130, 'Functional': 473, 'Tensor': 251}
    """
    text = files("dumpsim.frontends.apidump.mindspore").joinpath("names.json").read_text("utf-8")
    table = json.loads(text)
    return {kind: frozenset(table[kind]) for kind in ("NN", "Functional", "Tensor")}


def listed_class(kind: type) -> str | None:
    """Return the nearest listed class of ``nn`` that a class is or derives from, None if there is none.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore import nn
    >>> listed_class(type("MyDense", (nn.Dense,), {})), listed_class(nn.SequentialCell)
    ('Dense', None)
    """
    found: str | None = _class(kind, False)
    return found


@cache
def _class(kind: Any, full: bool) -> str | None:
    """As `listed_class`; with `full` any public class of layers and losses except containers."""
    own = {c.__name__: c.__module__ for c in kind.__mro__ if c.__module__.startswith(_OWN)}
    listed = listed_names()["NN"]
    name = next((name for name in own if name in listed), None)
    if name is None and full:
        layers = (name for name, where in own.items() if where.startswith(_FULL) and where != _CONTAINER)
        name = next((name for name in layers if not name.startswith("_")), None)
    return name


@cache
def _is_optimizer(kind: Any) -> bool:
    """Whether a class is an optimizer, whose inner calls are not recorded. [spec api_dump 1.3]"""
    return issubclass(kind, Optimizer) or any(c.__module__.startswith(_MINT_OPTIM) for c in kind.__mro__)


_inside: ContextVar[bool] = ContextVar("inside a hooked call", default=False)


@contextmanager
def _covering() -> Iterator[None]:
    """Do not record functions and methods inside the block: they belong to the outer call. [spec api_dump 1.3]"""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


class Dump(Protocol):
    """The dump, as `CellCalls` uses it."""

    @property
    def is_counting(self) -> bool:
        """Whether calls are numbered: between start and stop, under compat from init."""
        ...

    def count(self, label: str) -> int:
        """Return the number of the next call of an API, ``NN_Dense``."""
        ...

    def take(self, call: str) -> bool:
        """Return whether ``NN_Dense_0`` is recorded, and store its stack if so."""
        ...

    def write(self, name: str, value: Any) -> bool:
        """Record a leaf as ``NN_Dense_0_forward_output``; return whether it was recorded."""
        ...

    def skip(self, reason: str, number: int) -> None:
        """Count values that were not recorded."""
        ...

    def write_gradient(self, name: str, gradient: Callable[[], Tensor]) -> None:
        """Record a gradient as ``NN_Dense_0_backward_input``."""
        ...

    @property
    def retain_backward(self) -> bool:
        """Whether gradients with respect to the outputs are recorded."""
        ...


class CellCalls:
    """Listens to the calls of a script from init to close, and passes listed ones to a dump.

    Parameters
    ----------
    net : Cell
        Its cells are recorded as ``NN``; listed cells outside it only hide the calls that they make.
        [troubleshooter 1.0.17]
    dump : Dump
        Receives the records.
    full : bool
        Record also what 1.0.17 does not list: every function, method, layer and loss, keyword arguments and values of
        dicts.
    exact : bool
        Record Parameters that a call overwrites as they are after the call, as 1.0.17 does; otherwise as they were
        before.
    """

    def __init__(self, net: Cell, dump: "Dump", *, full: bool, exact: bool) -> None:
        self._net = net  # keeps the ids
        self._full = full
        self._exact = exact
        self._lock = threading.RLock()  # networks may run in several threads; keeps the records of a call together
        self._cells = {id(cell) for _, cell in net.cells_and_names()}
        self._dump = dump
        self._pid = os.getpid()
        self._waiting: dict[int, tuple[weakref.ref[Tensor], list[str]]] = {}  # names by the id of the output

    def attach(self) -> None:
        """Subscribe to the calls."""
        listener.attach(self)

    def detach(self) -> None:
        """Unsubscribe."""
        listener.detach(self)
        self._waiting.clear()

    def call(
        self,
        kind: listener.Kind,
        what: Any,
        proceed: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """See `Listener.call`."""
        if kind == "cell":
            return self._cell(what, proceed, args, kwargs)
        if what not in listed_names()[_LABELS[kind]] and (not self._full or what in _SILENT):
            return proceed(*args, **kwargs)
        if _inside.get() or not self._is_recording:
            return proceed(*args, **kwargs)
        label = f"{_LABELS[kind]}_{what}"
        given = args if self._exact else tuple(_as_it_is(arg, what) for arg in args)
        try:
            with _covering():
                result = proceed(*args, **kwargs)
        except BaseException:
            with self._lock:  # a call that failed has its number
                self._dump.count(label)
            raise
        if result is not NotImplemented:  # else Python asks the other operand: not a call that a script sees
            self._record(label, given, kwargs, result)
        return result

    @property
    def is_neutral(self) -> bool:
        """See `Listener.is_neutral`: from init to close. [spec api_dump 1.7]"""
        return True

    def _cell(self, cell: Cell, proceed: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        kind: Any = type(cell)
        name: str | None = _class(kind, self._full)
        if name is None and not _is_optimizer(kind):
            return proceed(*args, **kwargs)
        with _covering():
            result = proceed(*args, **kwargs)
        if name is None or not self._is_recording:
            return result
        if id(cell) in self._cells:
            self._record(f"NN_{name}", args, kwargs, result)
        elif not _inside.get():
            self._dump.skip("cell outside the network", 1)
        return result

    @property
    def _is_recording(self) -> bool:
        """Whether calls are recorded; not in a forked child, since the parent may have held our locks."""
        return self._dump.is_counting and os.getpid() == self._pid

    def graph(self, name: str) -> None:
        """See `Listener.graph`."""
        if self._is_recording and not _inside.get():
            self._dump.skip(f"calls inside the graph {name}", 1)

    @property
    def observes_gradients(self) -> bool:
        """See `Listener.observes_gradients`."""
        return self._dump.retain_backward and bool(self._waiting) and os.getpid() == self._pid

    def gradient(self, tensor: Any, gradient: Callable[[], Any]) -> None:
        """See `Listener.gradient`: written under the names of the outputs, the outermost call's first."""
        tensor_of, names = self._waiting.get(id(tensor), (None, ()))
        if tensor_of is None or tensor_of() is not tensor:
            return
        del self._waiting[id(tensor)]
        with self._lock:
            for name in reversed(names):
                try:
                    self._dump.write_gradient(name, gradient)
                except Exception as error:
                    self._dump.skip(f"record: {type(error).__name__}", 1)

    # -- records

    def _record(self, label: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """Number and record a call that has returned; errors never reach the user's forward."""
        with self._lock:
            call = f"{label}_{self._dump.count(label)}"
            try:
                if self._dump.take(call):
                    self._write(call, args, kwargs, result)
            except Exception as error:
                self._dump.skip(f"record: {type(error).__name__}", 1)

    def _write(self, call: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        self._leaves(f"{call}_forward_input", args)
        if kwargs and self._full:
            self._leaves(f"{call}_forward_input", kwargs)
        else:
            self._dump.skip("keyword argument", tensors(kwargs, Tensor))
        for place, value in self._leaves(f"{call}_forward_output", result):
            if self._dump.retain_backward:
                self._wait(value, f"{call}_backward_input{place}")

    def _leaves(self, start: str, value: Any) -> list[tuple[str, Tensor]]:
        """Record the leaves of a value, named by their positions; return positions and tensors that were recorded."""
        found = []
        for place, leaf in leaves(value, into_dicts=self._full):
            if len(place) > LONGEST:
                self._dump.skip(TOO_DEEP, tensors(leaf, Tensor))
            elif not self._dump.write(f"{start}{place}", leaf):
                self._dump.skip(*unrecorded(leaf, Tensor))
            elif isinstance(leaf, Tensor):
                found.append((place, leaf))
        return found

    def _wait(self, tensor: Tensor, name: str) -> None:
        """Write the gradient of a tensor as `name` once it is known, unless the tensor is freed before."""
        key = id(tensor)
        known = self._waiting.get(key)
        if known is not None and known[0]() is tensor:
            known[1].append(name)
            return
        waiting = self._waiting

        def forget(gone: "weakref.ref[Tensor]") -> None:
            if key in waiting and waiting[key][0] is gone:
                del waiting[key]

        waiting[key] = (weakref.ref(tensor, forget), [name])


def _as_it_is(value: Any, what: str) -> Any:
    """Copy an argument that the call may overwrite: a Parameter, or the tensor of an item assignment."""
    if isinstance(value, Parameter if what != "__setitem__" else Tensor) and value._array is not None:
        return Tensor._around(value._array.copy())
    return value
