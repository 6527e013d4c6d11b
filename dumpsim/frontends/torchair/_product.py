"""Products of matrices that are captured as one operator, and their gradients.

Eager torch decomposes `matmul` before it computes: into one product, a batch of products, or a product with a vector,
depending on extents, strides and whether an operand requires a gradient. It swaps the factors of a gradient if an
operand was transposed. Each of these forms is rounded differently. Therefore the nodes of a captured product are marked
with the form that eager torch chooses, and computed in that form. [torch 2.13: LinearAlgebra.cpp, FunctionsManual.cpp]
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import fx
from torch.fx import traceback
from torch.fx.experimental.symbolic_shapes import statically_known_true

__all__ = ["FORMS", "Form", "form_of", "product", "product_with_gradient", "rows_by_matrix", "two"]

Tensor = torch.Tensor
Form = tuple[Any, ...]  # the name of a form and the extents that it needs, which may be symbols

# Keys of annotations. AOTAutograd copies the annotations of a product to the nodes of its gradient, so that these need
# a key of their own.
SUM = "sum of products"  # a form of a sum that needs the operands of the products instead of their values
_PRODUCT, _GRADIENT = "dumpsim_product", "dumpsim_gradient"


def form_of(node: fx.Node) -> Form | None:
    """Return the form in which eager torch computes the product of a node; None for the operator itself."""
    marks = node.meta.get("custom") or {}
    return marks.get(_GRADIENT, marks.get(_PRODUCT)) or None


def _mark_nodes(*form: Any) -> Any:
    """Return a context that marks the captured nodes of a gradient with a form, or with no form."""
    return traceback.annotate({_GRADIENT: form})


def product(left: Tensor, right: Tensor) -> Tensor:
    """Compute `matmul` without a gradient, by torch's decomposition."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    made: Tensor = torch.ops.aten.matmul.default._op_dk(key, left, right)
    return made


def product_with_gradient(left: Tensor, right: Tensor) -> Tensor:
    """Compute `matmul` with a gradient, as one operator; each product of the gradient is one operator, too."""
    made: Tensor = _Product.apply(left, right, _is_folded(left, right))  # type: ignore[no-untyped-call]
    return made


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, fold: bool) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.fold = fold
        with torch._C._AutoDispatchBelowAutograd(), traceback.annotate({_PRODUCT: ("folded",) if fold else ()}):
            made: Tensor = torch.ops.aten.matmul.default(left, right)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        left, right = ctx.saved_tensors
        return *_gradients(grads[0], left, right, ctx.fold, ctx.needs_input_grad), None


def _is_folded(left: Tensor, right: Tensor) -> bool:
    """Return whether torch makes one matrix of a batch because the other operand requires a gradient.

    If it does not require one, torch decides by the strides of the batch at run time.
    """
    first, second = left.dim(), right.dim()
    if first == second == 3 and not statically_known_true(left.shape[0] == right.shape[0]):
        alone = [statically_known_true(one.shape[0] == 1) and one.requires_grad for one in (left, right)]
        return any(alone)
    smaller = right if first >= second else left
    return max(first, second) >= 3 > smaller.dim() and smaller.requires_grad


def _is_repeated(left: Tensor, right: Tensor) -> bool:
    """Return whether torch repeats matrices of a batch, since the batches of two operands differ."""
    same = len(left.shape) == len(right.shape) and all(
        statically_known_true(one == other) for one, other in zip(left.shape[:-2], right.shape[:-2], strict=True)
    )
    return not same


def _is_transposed(matrix: Tensor) -> bool:
    """Return whether a matrix is stored column by column; torch then swaps the factors of its gradient."""
    rows, _ = matrix.shape
    down, along = matrix.stride()
    return statically_known_true(down == 1) and statically_known_true(along == rows)


def _mark_product(swapped: bool, left: str = "", right: str = "") -> Any:
    """Return a context that marks a product of two matrices: whether the factors are swapped, and their orders."""
    return _mark_nodes("two", swapped, left, right) if swapped or left or right else _mark_nodes()


def _gradients(
    grad: Tensor, left: Tensor, right: Tensor, fold: bool, wanted: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Compute the gradients of a product with respect to its operands."""
    first, second = left.dim(), right.dim()
    by_left, by_right = wanted[:2]
    if first == second == 1:
        return right.mul(grad) if by_left else None, left.mul(grad) if by_right else None
    if second < 3 <= first:
        return _of_rows(grad, left, right, fold, wanted)
    if first < 3 <= second:
        return _of_columns(grad, left, right, fold, wanted)
    if fold:
        return _of_batches(grad, left, right, wanted)
    made: list[Tensor | None] = [None, None]
    if (first, second) == (2, 1):
        if by_left:
            made[0] = grad.unsqueeze(1).mm(right.unsqueeze(0))
        if by_right:
            with _mark_nodes("vector", ""):
                made[1] = left.transpose(0, 1).mm(grad.unsqueeze(1)).squeeze(1)
    elif (first, second) == (1, 2):
        if by_left:
            with _mark_product(_is_transposed(left.unsqueeze(0))):
                made[0] = grad.unsqueeze(0).mm(right.transpose(0, 1)).squeeze(0)
        if by_right:
            with _mark_product(_is_transposed(right)):
                made[1] = left.unsqueeze(1).mm(grad.unsqueeze(0))
    else:
        both, repeated = first == second == 2, _is_repeated(left, right)
        if by_left:
            with _mark_nodes("repeated", "right") if repeated else _mark_product(both and _is_transposed(left)):
                made[0] = torch.matmul(grad, right.transpose(-1, -2))
        if by_right:
            with _mark_nodes("repeated", "left") if repeated else _mark_product(both and _is_transposed(right)):
                made[1] = torch.matmul(left.transpose(-1, -2), grad)
    return made[0], made[1]


def _of_rows(
    grad: Tensor, left: Tensor, right: Tensor, fold: bool, wanted: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Compute the gradients of a batch times a matrix or a vector, with the batch as one matrix of all rows."""
    vector = right.dim() == 1
    rows = (grad.unsqueeze(-1) if vector else grad).contiguous().view(-1, 1 if vector else grad.size()[-1])
    inner = _rows(left)
    order = "column by column" if not vector and _is_transposed(_rows(grad)) else ""
    by_left = by_right = None
    if wanted[0]:
        transposed = right.unsqueeze(0) if vector else right.transpose(-1, -2)
        if fold or _is_one_matrix(left):
            form = _mark_product(not vector and _is_transposed(inner), order, "")
        else:
            form = _mark_nodes("batched rows", left.size()[-2])
        with form:
            by_left = rows.mm(transposed).view(left.size())
    if wanted[1]:
        form = (
            _mark_nodes("vector", "row by row" * _is_transposed(inner))
            if vector
            else _mark_product(_is_transposed(right), "row by row" * _is_transposed(inner), order)
        )
        with form:
            by_right = left.contiguous().view(-1, left.size()[-1]).transpose(-1, -2).mm(rows).view(right.size())
    return by_left, by_right


def _of_columns(
    grad: Tensor, left: Tensor, right: Tensor, fold: bool, wanted: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Compute the gradients of a matrix or a vector times a batch, with the batch as one matrix of all columns."""
    vector, size = left.dim() == 1, right.size()
    if vector:
        columns, order = grad.view(-1, 1), ""
    else:
        columns = grad.transpose(-1, -2).contiguous().view(-1, grad.size()[-2])
        order = "column by column" * _is_transposed(_rows(grad.transpose(-1, -2)))
    inner = _rows(right.transpose(-1, -2))
    by_left = by_right = None
    if wanted[0]:
        whole = right.transpose(-1, -2).contiguous().view(-1, size[-2]).transpose(-1, -2)
        if vector:
            form = _mark_nodes("vector", "row by row" * _is_transposed(inner))
        else:
            form = _mark_product(_is_transposed(left.transpose(0, 1)), "row by row" * _is_transposed(inner), order)
        with form:
            by_left = whole.mm(columns).transpose(-1, -2).view(left.size())
    if wanted[1]:
        shape = [*size[:-2], size[-1], size[-2]]
        if fold or (vector and _is_one_matrix(right.transpose(-1, -2))):
            form = _mark_product(not vector and _is_transposed(inner), order, "")
        else:
            form = _mark_nodes("batched columns", size[-1])
        with form:
            by_right = columns.mm(left.unsqueeze(0) if vector else left).view(shape).transpose(-1, -2)
    return by_left, by_right


def _of_batches(
    grad: Tensor, left: Tensor, right: Tensor, wanted: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Compute the gradients of two batches of which one holds a single matrix that requires a gradient.

    TorchAir multiplies in batches and adds up the products for the single matrix. Eager torch makes one matrix of the
    other batch. Therefore a sum is computed from the operands of the products it adds up, in one product.
    """
    if left.shape[0] == 1:
        alone, inner, side = left.squeeze(0).t(), _rows(right.mT), "columns"
        order = "column by column" * _is_transposed(_rows(grad.mT))
    else:
        alone, inner, side = right.squeeze(0), _rows(left), "rows"
        order = "column by column" * _is_transposed(_rows(grad))
    total = _mark_nodes(SUM, side, _is_transposed(alone), "row by row" * _is_transposed(inner), order)
    whole = _mark_nodes("one matrix", side, _is_transposed(inner), order, "")
    made: list[Tensor | None] = [None, None]
    if wanted[0]:
        with _mark_nodes() if side == "columns" else whole:
            made[0] = torch.matmul(grad, right.mT)
    if wanted[1]:
        with _mark_nodes() if side == "rows" else whole:
            made[1] = torch.matmul(left.mT, grad)
    at = 0 if side == "columns" else 1
    products = made[at]
    if products is not None:
        with total:  # after both products, as autograd does
            made[at] = products.sum(0, keepdim=True)
    return made[0], made[1]


def _rows(batch: Tensor) -> Tensor:
    """Return the matrix that eager torch makes of a batch: a view if the strides allow it."""
    return batch.reshape(-1, batch.size()[-1])


def _is_one_matrix(batch: Tensor) -> bool:
    """Return whether the dimensions before the last one can be merged without a copy."""
    shape, strides = batch.shape, batch.stride()
    pairs = range(batch.dim() - 2)
    return all(statically_known_true(strides[at] == strides[at + 1] * shape[at + 1]) for at in pairs)


def rows_by_matrix(left: Tensor, right: Tensor) -> Tensor:
    """Multiply a batch by a matrix or a vector, or the other way round, as one product of all rows."""
    if left.dim() == right.dim():  # one batch has a single matrix
        one = left.shape[0] == 1
        left, right = (left.squeeze(0), right) if one else (left, right.squeeze(0))
    if left.dim() > right.dim():
        return _rows_by_matrix(left, right)
    made = _rows_by_matrix(right.mT, left.t() if left.dim() == 2 else left)
    return made.mT.contiguous() if left.dim() == 2 else made


def _rows_by_matrix(batch: Tensor, matrix: Tensor) -> Tensor:
    rows = batch.reshape(-1, batch.shape[-1])
    if matrix.dim() == 1:
        return rows.mv(matrix).view(batch.shape[:-1])
    return rows.mm(matrix).view(*batch.shape[:-1], matrix.shape[1])


def two(
    left: Tensor, right: Tensor, swapped: bool, left_order: str, right_order: str, *, out: Tensor | None = None
) -> Tensor:
    """Multiply two matrices that are stored in the given orders; with swapped factors, column by column."""
    left, right = _in_order(left, left_order), _in_order(right, right_order)
    if swapped:
        return torch.mm(right.t(), left.t(), out=None if out is None else out.t()).t()
    return torch.mm(left, right, out=out)


def _in_order(matrix: Tensor, order: str) -> Tensor:
    """Return a matrix stored in an order: row by row, column by column, or unchanged."""
    if order == "column by column":
        return matrix.t().contiguous().t()
    return matrix.contiguous() if order else matrix


def _by_vector(left: Tensor, right: Tensor, order: str) -> Tensor:
    return _in_order(left, order).mv(right.squeeze(1)).unsqueeze(1)


def _one_matrix(left: Tensor, right: Tensor, side: str, swapped: bool, left_order: str, right_order: str) -> Tensor:
    """Multiply a batch by the single matrix of another, as one product of all rows or of all columns."""
    batch, alone = (left, right[0]) if side == "rows" else (right.mT, left[0].t())
    rows = batch.contiguous().view(-1, batch.shape[2])
    made = two(rows, alone, swapped, left_order, right_order).view(*batch.shape[:2], alone.shape[1])
    return made if side == "rows" else made.mT


def _sum_of_products(
    left: Tensor, right: Tensor, side: str, swapped: bool, left_order: str, right_order: str
) -> Tensor:
    """Add up a batch of products, as one product of all rows or of all columns."""
    if side == "rows":
        rows, columns = left.mT, right
        made = two(_whole(rows).t(), _whole(columns), swapped, left_order, right_order)
    else:
        made = two(_whole(right).t(), _whole(left.mT), swapped, left_order, right_order).t()
    return made.unsqueeze(0)


def _whole(batch: Tensor) -> Tensor:
    return batch.contiguous().view(-1, batch.shape[2])


def _repeated(left: Tensor, right: Tensor, side: str) -> Tensor:
    """Multiply two batches of which the matrices on one side are transposed after torch has repeated them."""
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    first, second = (
        one.mT.expand(*batch, *one.mT.shape[-2:]).reshape(-1, *one.mT.shape[-2:]).mT
        if side == name
        else one.expand(*batch, *one.shape[-2:]).reshape(-1, *one.shape[-2:])
        for name, one in (("left", left), ("right", right))
    )
    return first.bmm(second).view(*batch, left.shape[-2], right.shape[-1])


def _batched_rows(rows: Tensor, matrix: Tensor, extent: int) -> Tensor:
    """Multiply all rows by a matrix, `extent` rows at a time."""
    batch = rows.view(-1, extent, rows.shape[1])
    return batch.bmm(matrix.expand(batch.shape[0], *matrix.shape)).view(rows.shape[0], matrix.shape[1])


def _batched_columns(columns: Tensor, matrix: Tensor, extent: int) -> Tensor:
    """Multiply a matrix by all columns, which are rows here, `extent` columns at a time."""
    batch = columns.view(-1, extent, columns.shape[1]).mT.contiguous()
    made = matrix.t().expand(batch.shape[0], *reversed(matrix.shape)).bmm(batch)
    return made.mT.reshape(columns.shape[0], matrix.shape[1])


FORMS: Mapping[str, Callable[..., Tensor]] = MappingProxyType(
    {
        "batched columns": _batched_columns,
        "batched rows": _batched_rows,
        "folded": rows_by_matrix,
        "one matrix": _one_matrix,
        SUM: _sum_of_products,
        "repeated": _repeated,
        "two": two,
        "vector": _by_vector,
    }
)
