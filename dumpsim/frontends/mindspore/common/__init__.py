"""``mindspore.common``: tensors, parameters, number types, initializers, seeds, compilation."""

from importlib import import_module
from types import MappingProxyType
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common.mutable import mutable  # imported here because its module has the same name

# module -> its public names; loaded on first use, since most of these modules are in lower layers than `api`
_MODULES = MappingProxyType(
    {
        "api": "jit jit_class ms_function",
        "dtype": (
            "bfloat16 bool_ complex64 complex128 dtype_to_nptype dtype_to_pytype float16 float32 float64 int8 int16 "
            "int32 int64 pytype_to_dtype uint8 uint16 uint32 uint64"
        ),
        "initializer": "Initializer",
        "jit_config": "JitConfig",
        "parameter": "Parameter ParameterTuple",
        "seed": "get_seed set_seed",
        "tensor": "Tensor is_tensor",
    }
)

__all__ = ["dtype", "mutable", *(name for listed in _MODULES.values() for name in listed.split())]


def _own(name: str) -> Any:
    for module, listed in _MODULES.items():
        if name in listed.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(name)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common", name, _own)
