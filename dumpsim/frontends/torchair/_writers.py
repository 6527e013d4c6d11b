"""ATen operators that write their result directly to the device's memory, instead of to a tensor that is copied."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from dumpsim.frontends.torchair._product import rows_by_matrix, two

__all__ = ["writer"]

Tensor = torch.Tensor

# operators with the same kernel with and without `out`, so that the results are the same (torch's structured kernels)
_STRUCTURED = frozenset(
    f"aten::{name}"
    for name in [
        "_log_softmax",
        "_log_softmax_backward_data",
        "_softmax",
        "_softmax_backward_data",
        "add.Tensor",
        "addmm",
        "bmm",
        "cat",
        "cos",
        "div.Tensor",
        "exp",
        "maximum",
        "mean.dim",
        "minimum",
        "mm",
        "mul.Tensor",
        "neg",
        "pow.Tensor_Scalar",
        "rsqrt",
        "sigmoid",
        "silu",
        "silu_backward",
        "sin",
        "sqrt",
        "sub.Tensor",
        "sum.dim_IntList",
        "tanh",
        "where.self",
    ]
)


def writer(
    function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], out: Tensor
) -> Callable[[], object] | None:
    """Return a function that computes an operator and writes its result to `out`.

    Parameters
    ----------
    function : torch._ops.OpOverload
    arguments, keywords
        Arguments, with their tensors.
    out : torch.Tensor
        Where to write.

    Returns
    -------
    callable or None
        None if the operator cannot write there: `out` overlaps an argument, or the operator's result has other strides,
        which may change the rounding.
    """
    tensors = _tensors((*arguments, *keywords.values()))
    if not out.numel() or any(_overlap(out, one) for one in tensors):
        return None
    if function is torch.ops.aten.matmul.default or function is rows_by_matrix:
        left, right = arguments
        return _product(left, right, out)
    if function is two:
        swapped = arguments[2]
        return partial(two, *arguments, out=out) if (out.t() if swapped else out).is_contiguous() else None
    name = getattr(function, "name", str)()
    if name not in _STRUCTURED:
        return None
    if not _has_layout(function, arguments, keywords, out):
        return None
    found, keyword = _out_of(function)
    return partial(found, *arguments, **keywords, **{keyword: out})


def _product(left: Tensor, right: Tensor, out: Tensor) -> Callable[[], object] | None:
    """Multiply matrices as ``matmul`` does: all rows by one matrix, or batch by batch."""
    if not left.is_contiguous() or left.dim() < 3 or not out.is_contiguous():
        return None
    rows, inner = left.shape[-2:]
    if right.dim() == 2:  # the batches are one matrix
        folded = left.view(-1, inner)
        target = out.view(folded.shape[0], right.shape[1])
        return partial(torch.ops.aten.mm.out._op, folded, right, out=target)
    if right.dim() == left.dim() and right.shape[:-2] == left.shape[:-2]:
        turned = right.reshape(-1, *right.shape[-2:])
        if turned.data_ptr() != right.data_ptr():  # it had to be copied
            return None
        target = out.view(-1, rows, right.shape[-1])
        return partial(torch.ops.aten.bmm.out._op, left.view(-1, rows, inner), turned, out=target)
    return None


def _out_of(function: Any) -> tuple[Any, str]:
    """Return the ``out`` overload of an operator, and the name of its argument for the result."""
    given = [(one.name, str(one.type)) for one in function._schema.arguments]
    for name in function._overloadpacket.overloads():
        found = getattr(function._overloadpacket, name)
        *others, last = found._schema.arguments
        if last.is_out and [(one.name, str(one.type)) for one in others] == given:
            return found._op, last.name
    raise AssertionError(f"{function} has no out overload")  # all of _STRUCTURED have one


def _has_layout(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], out: Tensor) -> bool:
    """Return whether the operator's result has type, shape and strides of `out`."""
    with torch.no_grad():
        made = function(*(_meta(one) for one in arguments), **{key: _meta(one) for key, one in keywords.items()})
    same: bool = made.dtype == out.dtype and made.shape == out.shape and made.stride() == out.stride()
    return same


def _meta(what: Any) -> Any:
    if isinstance(what, Tensor):
        return torch.empty_strided(what.shape, what.stride(), dtype=what.dtype, device="meta")
    return type(what)(_meta(one) for one in what) if type(what) in (list, tuple) else what


def _tensors(what: Any) -> list[Tensor]:
    if isinstance(what, Tensor):
        return [what]
    return [found for one in what for found in _tensors(one)] if isinstance(what, (list, tuple)) else []


def _overlap(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors may share memory."""
    low, high = _span(one)
    begin, end = _span(other)
    return low < end and begin < high


def _span(tensor: Tensor) -> tuple[int, int]:
    if not tensor.numel():
        return 0, 0
    last = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()
