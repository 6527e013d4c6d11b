"""How composite operators are captured: those that an NPU has kernels for stay whole. [spec aten 9.1, 9.6]"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import library
from torch._decomp import decomposition_table
from torch._decomp.decompositions import upsample_compute_output_size
from torch._subclasses.fake_tensor import FakeTensorMode, torch_decomp_decompositions
from torch.nn.attention import SDPBackend, sdpa_kernel

__all__ = ["attention_of", "vendor_shapes", "whole_operators"]


@contextmanager
def whole_operators(dispatch: str) -> Iterator[None]:
    """Keep composite operators whole where the device has a kernel for them.

    That is `matmul`, in training too. The device has a kernel for its gradient as well, `matmul_backward`, which
    TorchAir takes apart: into products of matrices, and into further whole products for two batches of matrices.

    Parameters
    ----------
    dispatch : str
        ``npu``, or ``cpu``: nothing is kept.
    """
    if dispatch != "npu":
        yield
        return
    kernels = library.Library("aten", "IMPL")
    product = torch.ops.aten.matmul.default
    try:
        kernels.impl("matmul", _product, "CPU")
        kernels.impl("matmul", _product_with_gradient, "AutogradCPU")
        product._dispatch_cache.clear()  # torch has looked the kernel up before
        yield
    finally:
        kernels._destroy()
        product._dispatch_cache.clear()


def _product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    made: torch.Tensor = torch.ops.aten.matmul.default._op_dk(key, left, right)
    return made


def _product_with_gradient(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = _Product.apply(left, right)  # type: ignore[no-untyped-call]
    return made


class _Product(torch.autograd.Function):
    """A product that is one operator, and so is its gradient."""

    @staticmethod
    def forward(ctx: Any, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(left, right)
        with torch._C._AutoDispatchBelowAutograd():
            made: torch.Tensor = torch.ops.aten.matmul.default(left, right)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        left, right = ctx.saved_tensors
        return _gradients(grads[0], left, right, ctx.needs_input_grad)


def _gradients(
    grad: torch.Tensor, left: torch.Tensor, right: torch.Tensor, wanted: Sequence[bool]
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """The gradients of a product by its operands."""
    first, second = left.dim(), right.dim()
    by_left, by_right = wanted
    if first == second == 1:
        return right.mul(grad) if by_left else None, left.mul(grad) if by_right else None
    if (first, second) == (2, 1):
        return (
            grad.unsqueeze(1).mm(right.unsqueeze(0)) if by_left else None,
            left.transpose(-1, -2).mm(grad.unsqueeze(1)).squeeze(1) if by_right else None,
        )
    if (first, second) == (1, 2):
        return (
            grad.unsqueeze(0).mm(right.transpose(-1, -2)).squeeze(0) if by_left else None,
            left.unsqueeze(1).mm(grad.unsqueeze(0)) if by_right else None,
        )
    if second < 3 <= first:
        return _of_rows(grad, left, right, wanted)
    if first < 3 <= second:
        return _of_columns(grad, left, right, wanted)
    return (
        torch.matmul(grad, right.transpose(-1, -2)) if by_left else None,
        torch.matmul(left.transpose(-1, -2), grad) if by_right else None,
    )


def _of_rows(
    grad: torch.Tensor, left: torch.Tensor, right: torch.Tensor, wanted: Sequence[bool]
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """The gradients of a batch times a matrix or a vector: the batch is one matrix of all rows."""
    vector = right.dim() == 1
    rows = (grad.unsqueeze(-1) if vector else grad).contiguous().view(-1, 1 if vector else grad.size()[-1])
    by_left = by_right = None
    if wanted[0]:
        turned = right.unsqueeze(0) if vector else right.transpose(-1, -2)
        by_left = rows.mm(turned).view(left.size())
    if wanted[1]:
        whole = left.contiguous().view(-1, left.size()[-1])
        by_right = whole.transpose(-1, -2).mm(rows).view(right.size())
    return by_left, by_right


def _of_columns(
    grad: torch.Tensor, left: torch.Tensor, right: torch.Tensor, wanted: Sequence[bool]
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """The gradients of a matrix or a vector times a batch: the batch is one matrix of all columns."""
    vector, size = left.dim() == 1, right.size()
    if vector:
        columns = grad.view(-1, 1)
    else:
        columns = grad.transpose(-1, -2).contiguous().view(-1, grad.size()[-2])
    by_left = by_right = None
    if wanted[0]:
        whole = right.transpose(-1, -2).contiguous().view(-1, size[-2]).transpose(-1, -2)
        by_left = whole.mm(columns).transpose(-1, -2).view(left.size())
    if wanted[1]:
        shape = [*size[:-2], size[-1], size[-2]]
        by_right = columns.mm(left.unsqueeze(0) if vector else left).view(shape).transpose(-1, -2)
    return by_left, by_right


@contextmanager
def vendor_shapes() -> Iterator[None]:
    """Capture as the vendor does it where torch would say something else. [spec aten 9.7]

    Dropout's mask is packed, eight elements a byte; upsampling by nearest neighbours is not taken apart.
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
        torch_decomp_decompositions(operator)  # torch remembers that these are its own
    before = [(operator, table, {key: table.get(key) for key in changes}) for operator, table, changes in tables]
    try:
        _put(tables)
        yield
    finally:
        _put(before)


def _put(tables: list[tuple[Any, dict[Any, Any], dict[Any, Any]]]) -> None:
    """Change tables of torch, and drop what torch has looked up in them."""
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
    """Upsampling to a size or by factors, as one operator."""
    found = upsample_compute_output_size(value.size(), size, factors)
    scales = [None, None] if factors is None else list(factors)
    made: torch.Tensor = torch.ops.aten.upsample_nearest2d.default(value, found, *scales)
    return made


def _masked(value: torch.Tensor, share: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """What dropout gives, without values."""
    if train is False or share == 0:
        return value, torch.ones_like(value, dtype=torch.bool)
    size = (value.numel() + 127) // 128 * 16
    return torch.empty_like(value), torch.empty(size, dtype=torch.uint8, device=value.device)


def _unmasked(grad: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """What dropout's gradient gives, without values."""
    return torch.empty_like(grad)


@contextmanager
def attention_of(form: str) -> Iterator[None]:
    """Choose how attention is captured.

    Parameters
    ----------
    form : str
        ``math``, or ``fused``: as the kernel that torch would choose.
    """
    if form != "math":
        yield
        return
    with sdpa_kernel(SDPBackend.MATH):
        yield
