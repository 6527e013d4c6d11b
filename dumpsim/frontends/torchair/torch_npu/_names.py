"""Lets torch know a device ``npu`` by name: where a function takes a device, it is the CPU."""

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.utils.backend_registration import rename_privateuse1_backend

from dumpsim.frontends.torchair.torch_npu import npu
from dumpsim.frontends.torchair.torch_npu._backends import with_backends
from dumpsim.world.context import root

__all__ = ["install", "uninstall"]

# functions of torch that take a device by keyword
_FACTORIES = (
    "arange", "as_tensor", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "linspace", "logspace",
    "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "scalar_tensor", "tensor", "zeros", "zeros_like",
)  # fmt: skip


class _Installed:
    """What torch had before, in this process."""

    def __init__(self) -> None:
        self.before: list[tuple[Any, str, Any]] = []


def _known(device: Any) -> Any:
    """A device as torch has it: the CPU stands for the NPU."""
    if isinstance(device, str) and device.partition(":")[0] == "npu":
        return "cpu"
    if isinstance(device, torch.device) and device.type in ("npu", "privateuseone"):
        return torch.device("cpu")
    return device


def _with_device(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def known(*arguments: Any, **keywords: Any) -> Any:
        if "device" in keywords:
            keywords["device"] = _known(keywords["device"])
        return function(*arguments, **keywords)

    return known


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def known(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if "device" in keywords:
            keywords["device"] = _known(keywords["device"])
        return function(self, *map(_known, arguments), **keywords)

    return known


def _to_npu(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """Move to the NPU: the CPU stands for it."""
    return self


def install() -> None:
    """Let torch know the names of the device; a second call changes nothing."""
    installed = root().get(_Installed)
    if installed.before:
        return
    if torch._C._get_privateuse1_backend_name() != "npu":
        rename_privateuse1_backend("npu")  # so that torch.device("npu:0") can be made
        vars(torch)["npu"] = _gone()  # torch keeps the name for good, and asks the module of its device

    def put(owner: Any, name: str, value: Any) -> None:
        installed.before.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    for name in _FACTORIES:
        put(torch, name, _with_device(getattr(torch, name)))
    for owner in (torch.Tensor, torch.nn.Module):
        put(owner, "to", _moved(owner.to))
        put(owner, "npu", _to_npu)
    put(torch.Tensor, "is_npu", property(lambda self: True))
    put(torch, "npu", npu)
    put(torch, "compile", with_backends(torch.compile))
    put(torch.accelerator, "is_available", lambda: False)  # torch has nothing to ask the device itself
    put(torch._C, "_get_accelerator", lambda *check: torch.device("cpu"))  # torch.distributed.barrier asks
    sys.modules["torch.npu"] = npu


def uninstall() -> None:
    """Give torch back as it was."""
    installed = root().get(_Installed)
    while installed.before:
        owner, name, value = installed.before.pop()
        if value is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, value)
    sys.modules.pop("torch.npu", None)


def _gone() -> ModuleType:
    """What torch finds under the device's name after the last importer of torch_npu has gone."""
    module = ModuleType("torch.npu")
    module.is_available = lambda: False  # type: ignore[attr-defined]
    module.device_count = lambda: 0  # type: ignore[attr-defined]
    module._is_in_bad_fork = lambda: False  # type: ignore[attr-defined]
    module.manual_seed_all = lambda seed: None  # type: ignore[attr-defined]
    return module


_MISSING = ModuleType("missing")
