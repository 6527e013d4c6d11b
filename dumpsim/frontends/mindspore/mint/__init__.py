"""``mindspore.mint``: PyTorch's names and arguments over the functions of ``mindspore.ops``.

The operators of a dump are those of the functions behind them: ``mint.mse_loss`` is Sub, Square and ReduceMean, where
the vendor's aclnn kernels have one operator.
"""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.mint._renamed import find

__all__: list[str] = []

_SUBMODULES = ("distributed", "nn", "optim")

# mint's call: the function behind it, with its names for the same arguments in the same order
_RENAMED = """
all(input, dim=None, keepdim=False): all(input, axis, keep_dims)
any(input, dim=None, keepdim=False): any(x, axis, keep_dims)
amax(input, dim=(), keepdim=False): amax(x, axis, keep_dims)
amin(input, dim=(), keepdim=False): amin(x, axis, keep_dims)
arccos(input): acos(input)
arccosh(input): acosh(input)
arcsin(input): asin(input)
arcsinh(input): asinh(input)
arctan(input): atan(input)
arctanh(input): atanh(input)
argmax(input, dim=None, keepdim=False): argmax(input, dim, keepdim)
baddbmm(input, batch1, batch2, beta=1, alpha=1): baddbmm(input, batch1, batch2, beta, alpha)
cat(tensors, dim=0): cat(tensors, axis)
concat(tensors, dim=0): cat(tensors, axis)
chunk(input, chunks, dim=0): chunk(input, chunks, axis)
cumsum(input, dim, dtype=None): cumsum(x, axis, dtype)
eq(input, other): equal(input, other)
flatten(input, start_dim=0, end_dim=-1): flatten(input, start_dim, end_dim)
gather(input, dim, index): gather_elements(x, dim, index)
index_select(input, dim, index): index_select(input, axis, index)
logsumexp(input, dim, keepdim=False): logsumexp(input, axis, keep_dims)
narrow(input, dim, start, length): narrow(input, axis, start, length)
prod(input, dim=None, keepdim=False, dtype=None): prod(input, axis, keep_dims, dtype)
repeat_interleave(input, repeats, dim=None): repeat_interleave(input, repeats, axis)
split(tensor, split_size_or_sections, dim=0): split(tensor, split_size_or_sections, axis)
squeeze(input, dim=None): squeeze(input, axis)
stack(tensors, dim=0): stack(tensors, axis)
std(input, dim=None, correction=1, keepdim=False): std(input, axis, ddof, keepdims)
sum(input, dim=None, keepdim=False, dtype=None): sum(input, dim, keepdim, dtype)
swapaxes(input, axis0, axis1): swapaxes(input, axis0, axis1)
transpose(input, dim0, dim1): swapaxes(input, axis0, axis1)
unbind(input, dim=0): unbind(input_x, axis)
var(input, dim=None, correction=1, keepdim=False): var(input, axis, ddof, keepdims)
"""


def _own(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    value = None
    if not name.startswith("_"):
        function = import_module(f"{__name__}.function")
        value = getattr(function, name) if name in vars(function)["__all__"] else find(name, "", _RENAMED)
    if value is None:
        raise AttributeError(name)
    return value


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint", name, _own)
