"""The MindSpore front end. ``dumpsim run`` makes this package the ``mindspore`` that a script imports.

Modules are loaded when a script first uses them; anything that is not emulated raises an error that names it.
"""

from importlib import import_module
from types import MappingProxyType
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["__version__"]

_SUBMODULES = (
    "_c_expression",
    "amp",
    "common",
    "communication",
    "context",
    "dataset",
    "device_context",
    "experimental",
    "hal",
    "log",
    "mint",
    "nn",
    "ops",
    "parallel",
    "profiler",
    "runtime",
    "tools",
    "train",
)

# module -> its public names
_MODULES = MappingProxyType(
    {
        "common": (
            "Initializer JitConfig Parameter ParameterTuple Tensor bfloat16 bool_ complex64 complex128 dtype "
            "dtype_to_nptype dtype_to_pytype float16 float32 float64 get_seed int8 int16 int32 int64 is_tensor "
            "jit jit_class ms_function mutable pytype_to_dtype set_seed uint8 uint16 uint32 uint64"
        ),
        "common.dtype": "byte double half int4 intc intp long qint4x2 short single ubyte uintc ushort uintp",
        "common.functions": "from_numpy tensor",
        "context": (
            "GRAPH_MODE PYNATIVE_MODE ParallelMode get_auto_parallel_context get_context reset_auto_parallel_context "
            "set_deterministic set_auto_parallel_context set_context set_device STRICT COMPATIBLE LAX"
        ),
        "ops.composite": "grad value_and_grad vjp",
        "profiler": "Profiler",
        "tools": "set_dump",
        "train": (
            "Callback CheckpointConfig DatasetHelper DynamicLossScaleManager FixedLossScaleManager LossMonitor "
            "build_train_network "
            "LossScaleManager Model ModelCheckpoint RunContext TimeMonitor "
            "connect_network_with_dataset data_sink load_checkpoint load_param_into_net parse_print save_checkpoint"
        ),
    }
)
_ALIASES = MappingProxyType({"int_": "int64", "float_": "float64", "uint": "uint64"})


def _version() -> str:
    from dumpsim.core.settings import RunSettings

    # [decisions]: the documented age reads 2.5.0
    return {"seed": "2.5.0", "2.7": "2.7.0", "2.10": "2.10.0"}[RunSettings.from_environment().mindspore]


def _own(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    wanted = _ALIASES.get(name, name)
    for module, listed in _MODULES.items():
        if wanted in listed.split():
            return getattr(import_module(f"{__name__}.{module}"), wanted)
    raise AttributeError(name)


def __getattr__(name: str) -> Any:
    return vendored("mindspore", name, _own)
