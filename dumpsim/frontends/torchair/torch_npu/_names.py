"""The device name ``npu`` in torch: functions that take a device use the CPU for it."""

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
    """Attributes of torch before `install`, in this process."""

    def __init__(self) -> None:
        self.before: list[tuple[Any, str, Any]] = []


def _known(device: Any) -> Any:
    """Replace the NPU by the CPU in a device argument."""
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
    """Move to the NPU, which is the CPU: return the tensor or module itself."""
    return self


def install() -> None:
    """Make the names of the device known to torch; a second call changes nothing."""
    installed = root().get(_Installed)
    if installed.before:
        return
    if torch._C._get_privateuse1_backend_name() != "npu":
        rename_privateuse1_backend("npu")  # so that torch.device("npu:0") is valid
        vars(torch)["npu"] = _placeholder()  # the rename is permanent, and torch calls functions of this module

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
    put(torch.accelerator, "is_available", lambda: False)  # torch must not call the device itself
    put(torch._C, "_get_accelerator", lambda *check: torch.device("cpu"))  # for torch.distributed.barrier
    sys.modules["torch.npu"] = npu


def uninstall() -> None:
    """Restore torch."""
    installed = root().get(_Installed)
    while installed.before:
        owner, name, value = installed.before.pop()
        if value is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, value)
    sys.modules.pop("torch.npu", None)


def _placeholder() -> ModuleType:
    """Make the module ``torch.npu`` for the time after `uninstall`."""
    module = ModuleType("torch.npu")
    module.is_available = lambda: False  # type: ignore[attr-defined]
    module.device_count = lambda: 0  # type: ignore[attr-defined]
    module._is_in_bad_fork = lambda: False  # type: ignore[attr-defined]
    module.manual_seed_all = lambda seed: None  # type: ignore[attr-defined]
    return module


_MISSING = ModuleType("missing")
