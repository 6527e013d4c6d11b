"""One dump of a torch network, from init to close."""

import math
import os
import shutil
import weakref
from types import FrameType
from typing import Any, Literal

import torch
from torch import nn

from dumpsim._ext.recorder import Gradient, TensorRecorder
from dumpsim.codecs.apidump import tail_of
from dumpsim.core.partname import part_name
from dumpsim.frontends.apidump.output import Output, npy_header
from dumpsim.frontends.apidump.places import LONGEST, TOO_DEEP, leaves, tensors, unrecorded, words
from dumpsim.frontends.apidump.pytorch.catalogue import Api, Catalogue
from dumpsim.frontends.apidump.pytorch.dropout import Neutral, may_drop
from dumpsim.frontends.apidump.pytorch.exact import Carried, ExactInterception
from dumpsim.frontends.apidump.pytorch.interception import Interception
from dumpsim.frontends.apidump.pytorch.recomputation import Regions, Repeated
from dumpsim.frontends.apidump.pytorch.recorder import Layer
from dumpsim.frontends.apidump.pytorch.tensors import (
    TENSORS,
    Measured,
    Skip,
    is_data,
    measure,
    outlines,
    reduce_with_gradients,
    scalar,
)
from dumpsim.frontends.apidump.selection import Memory, Request
from dumpsim.frontends.apidump.session import ApiSession, is_durable
from dumpsim.frontends.apidump.stack import Stacks

__all__ = ["Coverage", "Session"]

Coverage = Literal["listed", "full"]
# a LAYER has no values of its own [spec api_dump 1.4]
_LAYER_FILE = (npy_header("<f4", (1,)), bytes(4))
_LAYER_TAILS = tuple(tail_of("torch.float32", (1,), (value,) * 3) for value in (math.nan, 0.0))
_NUMBERS = frozenset({bool, int, float})
_NO_DATA = frozenset({type(None), str, torch.dtype, torch.device, torch.layout, torch.memory_format})
Captured = list[tuple[str, Measured, torch.Tensor | None]]


class Session(ApiSession, TensorRecorder):
    """Records the APIs that a torch network calls.

    Parameters
    ----------
    net : nn.Module
        Its submodules are recorded as LAYER, modules of listed classes as NN. [spec api_dump 1.3]
    output_path : path
    retain_backward : bool
        Record gradients with respect to recorded outputs too.
    compare_statedict : bool
        Write ``pt_net.pth`` now.
    coverage : {"listed", "full"}
        The APIs of 1.0.17, or more of torch, with keyword arguments and leaves of dicts.
    exact : bool
        Behave as 1.0.17 in everything that affects names, order and numbers.
    previous : Session, optional
        An exact session that this one replaces.
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
        output = Output(output_path, "torch", 0 if exact else _rank(), durable=is_durable())
        super().__init__(output, Stacks(), exact=exact, retain_backward=retain_backward)
        self.outlines = outlines()
        self.grad_enabled = torch.is_grad_enabled
        self.regions = Regions()
        self._refused: list[Exception] = []
        self.full = coverage == "full"
        self.net = net
        self.layers = {module: Layer(_word(name, exact)) for name, module in net.named_modules() if name}
        self.catalogue = Catalogue(full=self.full)
        self.neutral = Neutral(exact=exact)
        self._layer_files: set[str] = set()
        self._guards = may_drop(net)
        if compare_statedict:
            _save(net, self.output.rank_directory, "pt_net.pth")
        self._carried = carried
        self._interception = ExactInterception(self, net, carried) if exact else Interception(self)
        self._finalizer = weakref.finalize(self, self._interception.remove)
        self.listen()

    def start(self, request: Request, memory: Memory | None = None) -> None:
        """Record from here; counters continue, and under compat cached results of earlier starts are used."""
        super().start(request, self._carried.memory if self.exact else memory)

    def begin(self) -> None:
        """Delete old files before the first record, for the current rank of torch.distributed."""
        with self._writing:
            if not self.exact:
                self.output.set_rank(_rank())
            super().begin()

    def listen(self) -> None:
        """Install or remove the interception: a stopped session needs none, unless there is dropout to disable."""
        if self.output.is_foreign:
            self._interception.remove()
        elif self.recording or self.exact:
            self._interception.install(modules=True)
        elif self._guards:
            self._interception.install(modules=False)
        else:
            self._interception.remove()

    def leave(self) -> None:
        """Remove all hooks."""
        self._finalizer()
        while self.hooked:
            self._unhook(self.hooked.pop()())

    def hand_over(self) -> Carried:
        """Close, and return the state that 1.0.17 keeps for the next session."""
        self._carried.current = None
        self.close()
        return self._carried

    # for the interception

    def touch(self) -> None:
        """Note that a call was seen, whether it is selected or not. [spec api_dump 1.2]"""
        if self.recording and not self.begun:
            self.begin()

    def raise_refusal(self) -> None:
        """Raise the error of a saved-tensor hook in the real tool's reductions, as the tool does. [observed 1.0.17]"""
        if self._refused:
            refused = self._refused[0]
            self._refused.clear()
            raise refused

    # for the recorder

    def layer_lines(self, layer: Layer) -> Captured:
        """Return the line of a module, and its file at its first call."""
        file = None
        if self.npy:
            if layer.record in self._layer_files:
                return []
            self._layer_files.add(layer.record)
            file = _LAYER_FILE
        return [(layer.record, Measured(_LAYER_TAILS[self.request.statistics], file), None)]

    def measured(self, name: str, value: Any, single: bool) -> Captured:
        """As `captured`, with values, not only outlines."""
        found: Captured = []
        if single and not isinstance(value, list | tuple | dict):
            self._capture(found, name, value)
        elif isinstance(value, list | tuple):
            for position, leaf in enumerate(value):
                if isinstance(leaf, torch.Tensor):
                    self._capture(found, f"{name}.{position}", leaf)
                elif type(leaf) not in _NO_DATA and (type(leaf) not in _NUMBERS or not self.request.filter_data):
                    self.look_inside(found, f"{name}.{position}", leaf)
        else:
            self.look_inside(found, name, value)
        return found

    def look_inside(self, found: Captured, name: str, value: Any) -> None:
        """Capture the leaves of an argument that is not a tensor."""
        for place, leaf in leaves(value, into_dicts=self.full):
            if len(place) > LONGEST:
                self.skip(TOO_DEEP, tensors(leaf, torch.Tensor))
            else:
                self._capture(found, name + place, leaf)

    def keywords(self, name: str, values: dict[str, Any]) -> Captured:
        """Record keyword arguments with coverage "full", otherwise count them; 1.0.17 does neither."""
        found: Captured = []
        if self.full and not self.exact:
            for word, value in zip(words(values), values.values(), strict=True):
                found += self.captured(f"{name}.{word}", value, True)
        elif not self.exact:
            for value in values.values():
                self.skip("keyword argument", tensors(value, torch.Tensor))
        return found

    def note(self, frame: FrameType | None, base: str, name: str | None) -> None:
        """Note a call without gradients; a reentrant checkpoint repeats it in backward."""
        self.regions.note(frame, base, Repeated(name, self.request))

    def made_again(self, api: Api, frame: FrameType | None, result: Any) -> None:
        """Handle a call repeated by backward: its gradients belong to the call that it repeats."""
        found = self.regions.find(frame, api.base)
        if found is None:
            return
        if not torch.is_grad_enabled():  # a checkpoint in a checkpoint, which will repeat it once more
            self.regions.note(frame, api.base, found)
        elif found.name is not None:
            with torch._C.DisableTorchFunctionSubclass():
                self.repeat(found, result)

    def hook_subclass(self, tensor: torch.Tensor, name: str, measured: Measured) -> None:
        """As `hook`, for a subclass of Tensor, which must not see the call."""
        with torch._C.DisableTorchFunctionSubclass():
            self.hook(tensor, name, measured)

    def arrived(self, hook: Gradient, gradient: Any) -> None:
        """Handle a gradient that must be inspected, or comes late, or again."""
        if self.closed or not isinstance(gradient, torch.Tensor):
            return
        try:
            if not (self.exact or self.recording):
                self.skip("backward after stop")
                return
            self._gradient(hook.name if self.exact else hook.record(), gradient, hook.request)
        except Exception as error:  # never out of the user's backward
            self.skip(f"gradient: {type(error).__name__}")

    # private

    def _capture(self, found: Captured, name: str, leaf: Any) -> None:
        """Capture one leaf, unless `filter_data` drops it or it cannot be recorded."""
        request = self.request
        if self._refused:
            return
        try:
            if type(leaf) in TENSORS:
                if request.filter_data and not is_data(leaf):
                    return
                found.append((name, self._measure(leaf, request), leaf))
            elif isinstance(leaf, torch.Tensor):
                with torch._C.DisableTorchFunctionSubclass():  # a subclass must not see our calls
                    if not request.filter_data or is_data(leaf):
                        found.append((name, self._measure(leaf, request), leaf))
            elif isinstance(leaf, bool | int | float):
                if not request.filter_data:
                    found.append((name, scalar(leaf, npy=request.npy, statistics=request.statistics), None))
            else:
                self.skip(*unrecorded(leaf, torch.Tensor))
        except Skip as skip:
            self.skipped[skip.reason] += 1
        except Exception as error:  # never out of the user's forward
            if error in self._refused:
                return
            self.skipped[f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"] += 1

    def _measure(self, tensor: torch.Tensor, request: Request) -> Measured:
        if self.exact and request.statistics and tensor.requires_grad:
            try:
                reduce_with_gradients(tensor)
            except Exception as error:
                self._refused.append(error)
                raise
        return measure(tensor, statistics=request.statistics, npy=request.npy, exact=self.exact)

    def _unhook(self, hooks: "dict[int, Any] | None") -> None:
        """Remove our hooks from a tensor that is still alive."""
        if hooks is None:
            return
        for key, hook in list(hooks.items()):
            if isinstance(hook, Gradient) and hook.recorder is self:
                del hooks[key]

    def _gradient(self, name: str, gradient: torch.Tensor, request: Request) -> None:
        with torch._C.DisableTorchFunction():
            if request.filter_data and not is_data(gradient):
                return
            try:
                self.write([(name, self._measure(gradient, request), None)])
            except Skip as skip:
                self.skipped[skip.reason] += 1


def _word(name: str, exact: bool) -> str:
    """Return a module's name as part of a file name; keys of a ModuleDict may contain invalid characters."""
    name = name.replace(".", "_")
    return name if exact else "".join(c if c.isprintable() and c != "/" else "_" for c in name)


def _rank() -> int:
    """Return the rank of this process in torch.distributed."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    rank = os.environ.get("RANK", "0")
    return int(rank) if rank.isdigit() and os.environ.get("WORLD_SIZE", "1") != "1" else 0


def _save(net: nn.Module, directory: str, name: str) -> None:
    """Save the parameters for MindTorch's comparison; readable with ``weights_only``. [spec api_dump 1.2]"""
    part = f"{directory}/{part_name()}"
    os.mkdir(part, 0o700)
    try:
        torch.save(net.state_dict(), f"{part}/{name}")  # under its final name, since the file contains it
        os.chmod(f"{part}/{name}", 0o400)
        os.replace(f"{part}/{name}", f"{directory}/{name}")
    finally:
        shutil.rmtree(part, ignore_errors=True)
