"""``mindspore.common``: tensors, parameters, number types, initializers, seeds, compilation."""

from dumpsim.frontends.mindspore.common import dtype
from dumpsim.frontends.mindspore.common.api import jit, jit_class, ms_function
from dumpsim.frontends.mindspore.common.dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype_to_nptype,
    dtype_to_pytype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    pytype_to_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from dumpsim.frontends.mindspore.common.initializer import Initializer
from dumpsim.frontends.mindspore.common.jit_config import JitConfig
from dumpsim.frontends.mindspore.common.mutable import mutable
from dumpsim.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from dumpsim.frontends.mindspore.common.seed import get_seed, set_seed
from dumpsim.frontends.mindspore.common.tensor import Tensor, is_tensor

__all__ = [
    "Initializer",
    "JitConfig",
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "dtype",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "float16",
    "float32",
    "float64",
    "get_seed",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_tensor",
    "jit",
    "jit_class",
    "ms_function",
    "mutable",
    "pytype_to_dtype",
    "set_seed",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
