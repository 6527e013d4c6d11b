"""``mindspore.mint``: functions of ``mindspore.ops`` with PyTorch's names and arguments.

Some have separate operators, as on the vendor's CPU (``mint.add`` is AddExt). The others have the operators of the
functions that they call: ``mint.mse_loss`` is Sub, Square and ReduceMean.
"""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.mint._renamed import checked, find

__all__: list[str] = []

_SUBMODULES = ("distributed", "nn", "optim")
_OWN = ("function", "view")

# signature in mint: the function that it calls, with its names of the same arguments in the same order
_RENAMED = """
all(input, dim=None, keepdim=False): all(input, axis, keep_dims)
any(input, dim=None, keepdim=False): any(x, axis, keep_dims)
amax(input, dim=(), keepdim=False): amax(input, axis, keepdims)
amin(input, dim=(), keepdim=False): amin(input, axis, keepdims)
arccos(input): acos(input)
arccosh(input): acosh(input)
arcsin(input): asin(input)
arcsinh(input): asinh(input)
arctan(input): atan(input)
arctanh(input): atanh(input)
baddbmm(input, batch1, batch2, beta=1, alpha=1): baddbmm(input, batch1, batch2, beta, alpha)
cat(tensors, dim=0): cat(tensors, axis)
concat(tensors, dim=0): cat(tensors, axis)
cumsum(input, dim, dtype=None): cumsum(x, axis, dtype)
gather(input, dim, index): gather_elements(x, dim, index)
index_select(input, dim, index): index_select(input, axis, index)
logsumexp(input, dim, keepdim=False): logsumexp(input, dim, keepdim)
prod(input, dim=None, keepdim=False, dtype=None): prod(input, axis, keep_dims, dtype)
repeat_interleave(input, repeats, dim=None): repeat_interleave(input, repeats, axis)
squeeze(input, dim): squeeze(input, axis)
stack(tensors, dim=0): stack(tensors, axis)
std(input, dim=None, correction=1, keepdim=False): std(input, axis, ddof, keepdims)
sum(input, dim=None, keepdim=False, dtype=None): sum(input, dim, keepdim, dtype)
var(input, dim=None, correction=1, keepdim=False): var(input, axis, ddof, keepdims)
"""


def _own(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    value = None
    if not name.startswith("_"):
        owners = [module for part in _OWN if name in vars(module := import_module(f"{__name__}.{part}"))["__all__"]]
        value = getattr(owners[0], name) if owners else find(name, "", _RENAMED)
    if value is None:
        raise AttributeError(name)
    return checked(name, value)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint", name, _own)
