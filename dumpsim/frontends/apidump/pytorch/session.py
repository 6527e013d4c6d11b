"""One dump of a torch network, from init to close."""

import atexit
import logging
import math
import os
import re
import threading
import weakref
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from dumpsim.codecs.apidump import tail_of
from dumpsim.core.errors import DumpsimError, ScriptRuntimeError
from dumpsim.frontends.apidump.output import Output, npy_header
from dumpsim.frontends.apidump.pytorch.catalogue import Api, Catalogue
from dumpsim.frontends.apidump.pytorch.dropout import Neutral, may_drop
from dumpsim.frontends.apidump.pytorch.exact import Carried, ExactInterception
from dumpsim.frontends.apidump.pytorch.interception import Interception
from dumpsim.frontends.apidump.pytorch.tensors import TENSORS, Measured, Skip, is_data, measure, outlines, scalar
from dumpsim.frontends.apidump.selection import Request, Selection
from dumpsim.frontends.apidump.stack import Stacks, layer_key

__all__ = ["Coverage", "Session"]

Coverage = Literal["listed", "full"]
LOG = logging.getLogger("troubleshooter.log")
# a LAYER has no values of its own [spec api_dump 1.4]
_LAYER_FILE = (npy_header("<f4", (1,)), bytes(4))
_LAYER_TAILS = tuple(tail_of("torch.float32", (1,), (value,) * 3) for value in (math.nan, 0.0))
_SWEEP = 4096  # hooks of gradients that are kept before those of finished graphs are let go
_NUMBERS = frozenset({bool, int, float})
_NO_DATA = frozenset({type(None), str, torch.dtype, torch.device, torch.layout, torch.memory_format})
Captured = list[tuple[str, Measured, torch.Tensor | None]]


class Layer:
    """A module of the network: its name, and how its records and its stack are called."""

    __slots__ = ("key", "name", "record")

    def __init__(self, name: str) -> None:
        self.name = f"LAYER_{name}"
        self.record = f"LAYER_{name}_forward_input"
        self.key = layer_key(name)


class Session:
    """Records the APIs that a network calls.

    Parameters
    ----------
    net : nn.Module
        Its modules are recorded: each but itself as a LAYER, those of listed classes as NN. [spec api_dump 1.3]
    output_path : path
    retain_backward : bool
        Also gradients with respect to recorded outputs.
    compare_statedict : bool
        Write ``pt_net.pth`` now.
    coverage : {"listed", "full"}
        The APIs of 1.0.17, or more of torch, with keyword arguments and leaves of dicts.
    exact : bool
        As 1.0.17 in everything that shows in names, order and numbers.
    previous : Session, optional
        An exact one that this takes the place of.

    Attributes
    ----------
    skipped : Counter
        Values that were not recorded, by reason.
    """

    def __init__(
        self,
        net: nn.Module,
        output_path: "str | os.PathLike[str]",
        *,
        retain_backward: bool = False,
        compare_statedict: bool = False,
        coverage: Coverage = "listed",
        exact: bool = False,
        previous: "Session | None" = None,
    ) -> None:
        carried = Carried() if previous is None else previous.hand_over()
        self.exact = exact
        self.full = coverage == "full"
        self.retain_backward = retain_backward
        self.skipped: Counter[str] = Counter()
        self.output = Output(output_path, "torch", 0 if exact else _rank())
        self.net = net
        self.layers = {module: Layer(name.replace(".", "_")) for name, module in net.named_modules() if name}
        self.catalogue = Catalogue(full=self.full)
        self.neutral = Neutral(exact=exact)
        self.recording = False
        self.request = Request()
        self.selection = Selection(self.request)
        self.generation = 0
        self._stacks = Stacks()
        self._outlines = outlines()
        self._counts: Counter[str] = Counter()
        self._layer_files: set[str] = set()
        self._hooked: deque[Any] = deque()  # references to the hooks of tensors, which go with their graph
        self._sweep_at = _SWEEP
        self._lock = threading.RLock()
        self._lines_at_start = 0
        self._begun = False
        self._guards = may_drop(net)
        self.closed = False
        if compare_statedict:
            _save(net, f"{self.output.rank_directory}/pt_net.pth")
        self._carried = carried
        self._interception = ExactInterception(self, net, carried) if exact else Interception(self)
        self._finalizer = weakref.finalize(self, self._interception.remove)
        self._intercept()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, request: Request) -> None:
        """Record from here; counters go on where they were."""
        self._check_open()
        self.request = request
        self.selection = Selection(request, exact=self.exact, memory=self._carried.memory if self.exact else None)
        self.recording = True
        self.generation += 1
        self._lines_at_start = self.output.lines
        self._intercept()

    def stop(self) -> None:
        """Record no more, and write everything.

        Raises
        ------
        DumpWriteError
            If something could not be written.
        """
        self._check_open()
        self.recording = False
        if self.output.is_foreign:
            self._interception.remove()
            return
        self._intercept()
        self.flush()

    @property
    def recorded(self) -> bool:
        """Whether anything was recorded since the last start."""
        return self.output.lines > self._lines_at_start

    def flush(self) -> None:
        """Write what has been recorded so far; also done at stop and at the end of the process."""
        if self.output.is_foreign:
            return
        with self._lock:
            try:
                if self._stacks.changed:
                    self.output.stacks(self._stacks.texts())
            finally:
                self.output.flush()

    def close(self) -> None:
        """Stop, take every hook off, and end the thread that writes; nothing stays behind."""
        if self.closed:
            return
        self.recording = False
        self.closed = True
        self._finalizer()
        while self._hooked:
            self._unhook(self._hooked.popleft()())
        try:
            self.flush()
        finally:
            self.output.close()
            atexit.unregister(self._at_exit)

    def hand_over(self) -> Carried:
        """Close, and leave to the next session what 1.0.17 never takes back."""
        self._carried.current = None
        self.close()
        return self._carried

    # what interception reports

    def touch(self) -> None:
        """A call is seen, whether it is selected or not. [spec api_dump 1.2]"""
        if self.recording and not self._begun:
            with self._lock:
                self._begin()

    def count(self, api: Api) -> int:
        """The number of this call of an API."""
        number = self._counts[api.base]
        self._counts[api.base] = number + 1
        return number

    def captured(self, name: str, value: Any, *, single: bool) -> Captured:
        """What will be recorded of arguments or results, as they are now; `name` is the record's without positions."""
        if self.request.dump_type == "stack":
            return self._outlines.take(name, value, self.request.filter_data, self._capture_inside)
        found: Captured = []
        if single and not isinstance(value, list | tuple | dict):
            self._capture(found, name, value)
        elif isinstance(value, list | tuple):
            for position, leaf in enumerate(value):
                if isinstance(leaf, torch.Tensor):
                    self._capture(found, f"{name}.{position}", leaf)
                elif type(leaf) not in _NO_DATA and (type(leaf) not in _NUMBERS or not self.request.filter_data):
                    self._capture_inside(found, f"{name}.{position}", leaf)
        else:
            self._capture_inside(found, name, value)
        return found

    def record(self, key: str, stack: bytes, inputs: Captured, outputs: Captured) -> None:
        """One finished call."""
        with self._lock:
            if not self._begun:
                self._begin()
            self._stacks.put(key, stack)
            self._write(inputs + outputs)
            if self.retain_backward:
                for name, measured, tensor in outputs:
                    if tensor is None:
                        continue
                    if type(tensor) in TENSORS:
                        self._hook(tensor, name, measured)
                    else:
                        with torch._C.DisableTorchFunctionSubclass():
                            self._hook(tensor, name, measured)

    def record_layer(self, layer: Layer, stack: bytes) -> None:
        """A module of the network has been called."""
        with self._lock:
            if not self._begun:
                self._begin()
            self._stacks.put(layer.key, stack)
            if self.request.npy:
                if layer.record in self._layer_files:
                    return
                self._layer_files.add(layer.record)
            file = _LAYER_FILE if self.request.npy else None
            self._write([(layer.record, Measured(_LAYER_TAILS[self.request.statistics], file), None)])

    def stack(self, frame: FrameType | None) -> bytes:
        """Where a call came from."""
        with self._lock:
            return self._stacks.places(frame, filtered=self.request.filter_stack)

    def skip(self, reason: str, number: int = 1) -> None:
        """Count what was not recorded."""
        self.skipped[reason] += number

    # inside

    def _capture_inside(self, found: Captured, name: str, value: Any) -> None:
        """The leaves of an argument that is no tensor."""
        for index, leaf in _leaves(value, "", into_dicts=self.full):
            self._capture(found, name + index, leaf)

    def _capture(self, found: Captured, name: str, leaf: Any) -> None:
        """One leaf, unless `filter_data` drops it or it cannot be recorded."""
        request = self.request
        try:
            if type(leaf) in TENSORS:
                if request.filter_data and not is_data(leaf):
                    return
                found.append((name, self._measure(leaf, request), leaf))
            elif isinstance(leaf, torch.Tensor):
                with torch._C.DisableTorchFunctionSubclass():  # a subclass of the user's must not see us look at it
                    if not request.filter_data or is_data(leaf):
                        found.append((name, self._measure(leaf, request), leaf))
            elif isinstance(leaf, bool | int | float):
                if not request.filter_data:
                    found.append((name, scalar(leaf, npy=request.npy, statistics=request.statistics), None))
            elif (reason := _unread(leaf)) is not None:
                self.skipped[reason] += 1
        except Skip as skip:
            self.skipped[skip.reason] += 1
        except Exception as error:  # never out of the user's forward
            self.skipped[f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"] += 1

    def _measure(self, tensor: torch.Tensor, request: Request) -> Measured:
        return measure(tensor, statistics=request.statistics, npy=request.npy, exact=self.exact)

    def _begin(self) -> None:
        self._begun = True
        self.output.begin()
        atexit.register(self._at_exit)

    def _at_exit(self) -> None:
        """A process that ends without stop, by an error too, leaves whole files."""
        try:
            self.flush()
        except DumpsimError as error:
            LOG.warning("[*User Warning*] %s", error)

    def _write(self, records: Captured) -> None:
        self.output.write([name for name, _, _ in records], [measured.tail for _, measured, _ in records])
        for name, measured, _ in records:
            if measured.npy is not None:
                self.output.array(name, measured.npy)

    def _hook(self, tensor: torch.Tensor, name: str, measured: Measured) -> None:
        """Record the gradient of an output when it comes."""
        if not tensor.requires_grad:
            return
        name = name.replace("_forward_output", "_backward_input")
        hook = _Outline(self, name, measured.tail) if self.request.dump_type == "stack" else _Gradient(self, name)
        self._hooked.append(tensor.register_hook(hook).hooks_dict_ref)
        if len(self._hooked) > self._sweep_at:
            self._hooked = deque(reference for reference in self._hooked if reference() is not None)
            self._sweep_at = max(_SWEEP, 2 * len(self._hooked))

    def _unhook(self, hooks: "dict[int, Any] | None") -> None:
        """Take ours off a tensor that is still there."""
        if hooks is None:
            return
        for key, hook in list(hooks.items()):
            if isinstance(hook, _Gradient) and hook.session is self:
                del hooks[key]

    def gradient(self, name: str, gradient: torch.Tensor, request: Request) -> None:
        """The gradient of an output has come."""
        with torch._C.DisableTorchFunction():
            if request.dump_type == "stack":
                found = self._outlines.take(name, gradient, request.filter_data, self._capture_inside)
            elif request.filter_data and not is_data(gradient):
                return
            else:
                try:
                    found = [(name, self._measure(gradient, request), None)]
                except Skip as skip:
                    self.skipped[skip.reason] += 1
                    return
        if found:
            self._write(found)  # the lines of one record come together without our lock

    def _intercept(self) -> None:
        """Only while something is to be seen: a stopped session costs nothing, unless there is dropout to hold."""
        if self.recording or self.exact:
            self._interception.install(modules=True)
        elif self._guards:
            self._interception.install(modules=False)
        else:
            self._interception.remove()

    def _check_open(self) -> None:
        if self.closed:
            raise ScriptRuntimeError("this API dump has been closed", where="api_dump", code="DS-ADP-013")


class _Gradient:
    """The hook of one recorded output."""

    __slots__ = ("_done", "_name", "_request", "session")
    __torch_unserializable__ = True  # pickling the tensor needs no warning

    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self._name = name
        self._request = session.request
        self._done = False

    def __call__(self, gradient: torch.Tensor) -> None:
        session = self.session
        if session.closed or not isinstance(gradient, torch.Tensor):
            return
        try:
            if not session.exact:
                if not session.recording:
                    session.skip("backward after stop")
                    return
                if self._done:
                    session.skip("second backward through one graph")
                    return
                self._done = True
            session.gradient(self._name, gradient, self._request)
        except Exception as error:  # never out of the user's backward
            session.skip(f"gradient: {type(error).__name__}")


class _Outline(_Gradient):
    """As a hook of a stack dump: a gradient has the type and the shape of its output, nothing of it is looked at."""

    __slots__ = ("_tail",)

    def __init__(self, session: Session, name: str, tail: str) -> None:
        super().__init__(session, name)
        self._tail = tail

    def __call__(self, gradient: torch.Tensor) -> None:
        session = self.session
        if session.exact or self._done or not session.recording or gradient is None:
            super().__call__(gradient)
            return
        self._done = True
        session.output.write((self._name,), (self._tail,))


def _unread(leaf: Any) -> str | None:
    """Why an argument or result that holds data is not recorded, None if it holds none that we know of."""
    if isinstance(leaf, dict):
        holder, inside = "dict", list(leaf.values())
    elif isinstance(leaf, set | frozenset):
        holder, inside = "set", list(leaf)
    elif is_dataclass(leaf):
        holder, inside = "dataclass", [getattr(leaf, field.name, None) for field in fields(leaf)]
    elif isinstance(leaf, np.ndarray | np.generic | complex):
        return "numpy array" if isinstance(leaf, np.ndarray) else f"number of type {type(leaf).__name__}"
    else:
        return None
    return f"tensor in a {holder}" if any(isinstance(value, torch.Tensor) for value in inside) else None


def _leaves(value: Any, index: str, *, into_dicts: bool) -> Iterator[tuple[str, Any]]:
    """Leaves of nested sequences with their positions; of dicts with their keys."""
    if isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from _leaves(item, f"{index}.{position}", into_dicts=into_dicts)
    elif into_dicts and isinstance(value, dict):
        for key, item in value.items():
            word = re.sub(r"[^0-9A-Za-z_]", "_", str(key))  # a file name, and no position of its own
            yield from _leaves(item, f"{index}.{word}", into_dicts=into_dicts)
    else:
        yield index, value


def _rank() -> int:
    """This process among the ranks of torch.distributed."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    rank = os.environ.get("RANK", "0")
    return int(rank) if rank.isdigit() and os.environ.get("WORLD_SIZE", "1") != "1" else 0


def _save(net: nn.Module, path: str) -> None:
    """The parameters, for MindTorch's comparison; readable with ``weights_only``. [spec api_dump 1.2]"""
    if os.path.lexists(path):
        os.unlink(path)
    torch.save(net.state_dict(), path)
    os.chmod(path, 0o400)
