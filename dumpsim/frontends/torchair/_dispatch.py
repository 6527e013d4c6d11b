"""The capture of composite operators: those with a kernel on the NPU are not decomposed. [spec aten 9.1, 9.6]"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import library
from torch._decomp import decomposition_table
from torch._decomp.decompositions import upsample_compute_output_size
from torch._subclasses.fake_tensor import FakeTensorMode, torch_decomp_decompositions
from torch.nn.attention import SDPBackend, sdpa_kernel

from dumpsim.frontends.torchair._product import product, product_with_gradient

__all__ = ["attention_of", "vendor_shapes", "whole_operators"]


@contextmanager
def whole_operators(dispatch: str) -> Iterator[None]:
    """Do not decompose composite operators that have a kernel on the device.

    The only one is `matmul`, in training, too. The device also has a kernel for its gradient, `matmul_backward`, but
    TorchAir decomposes it: into products of matrices, or into `matmul` again for two batches of matrices.

    Parameters
    ----------
    dispatch : str
        ``npu``, or ``cpu``: everything is decomposed.
    """
    if dispatch != "npu":
        yield
        return
    kernels = library.Library("aten", "IMPL")
    operator = torch.ops.aten.matmul.default
    try:
        kernels.impl("matmul", product, "CPU")
        kernels.impl("matmul", product_with_gradient, "AutogradCPU")
        operator._dispatch_cache.clear()  # torch caches the kernel that it has looked up
        yield
    finally:
        kernels._destroy()
        operator._dispatch_cache.clear()


@contextmanager
def vendor_shapes() -> Iterator[None]:
    """Capture operators as the vendor does where torch does it otherwise. [spec aten 9.7]

    Dropout's mask is packed, eight elements per byte; upsampling by nearest neighbours is not decomposed.
    """
    dropout, backward = torch.ops.aten.native_dropout.default, torch.ops.aten.native_dropout_backward.default
    nearest, by_factors = torch.ops.aten.upsample_nearest2d.default, torch.ops.aten.upsample_nearest2d.vec
    keys = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)
    tables: list[tuple[Any, dict[Any, Any], dict[Any, Any]]] = [
        (None, decomposition_table, {dropout: _masked, backward: _unmasked}),
        (nearest, nearest.py_kernels, dict.fromkeys(keys)),
        (by_factors, by_factors.py_kernels, dict.fromkeys(keys, _upsampled)),
    ]
    for operator in (dropout, backward):
        torch_decomp_decompositions(operator)  # fills torch's cache of its own decompositions
    before = [(operator, table, {key: table.get(key) for key in changes}) for operator, table, changes in tables]
    try:
        _put(tables)
        yield
    finally:
        _put(before)


def _put(tables: list[tuple[Any, dict[Any, Any], dict[Any, Any]]]) -> None:
    """Change tables of torch, and clear torch's caches of them."""
    for operator, table, changes in tables:
        for key, function in changes.items():
            if function is None:
                table.pop(key, None)
            else:
                table[key] = function
        if operator is not None:
            operator._dispatch_cache.clear()
    FakeTensorMode.cache_clear()


def _upsampled(value: torch.Tensor, size: Any, factors: Any) -> torch.Tensor:
    """Upsample to a size or by factors, as one operator."""
    found = upsample_compute_output_size(value.size(), size, factors)
    scales = [None, None] if factors is None else list(factors)
    made: torch.Tensor = torch.ops.aten.upsample_nearest2d.default(value, found, *scales)
    return made


def _masked(value: torch.Tensor, share: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the results of dropout, without values."""
    if train is False or share == 0:
        return value, torch.ones_like(value, dtype=torch.bool)
    size = (value.numel() + 127) // 128 * 16
    return torch.empty_like(value), torch.empty(size, dtype=torch.uint8, device=value.device)


def _unmasked(grad: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """Return the result of dropout's gradient, without values."""
    return torch.empty_like(grad)


@contextmanager
def attention_of(form: str) -> Iterator[None]:
    """Choose how attention is captured.

    Parameters
    ----------
    form : str
        ``math``, or ``fused``: the kernel that torch would choose.
    """
    if form != "math":
        yield
        return
    with sdpa_kernel(SDPBackend.MATH):
        yield
