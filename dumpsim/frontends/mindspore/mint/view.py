"""The functions of ``mindspore.mint`` that take parts of a tensor or turn its axes: views, with operators of their own.

[observed 2.10]
"""

from typing import Any

from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import single

__all__ = ["chunk", "narrow", "permute", "select", "split", "swapaxes", "transpose", "unbind", "unsqueeze"]


def permute(input: Tensor, dims: Any) -> Tensor:
    """The axes in another order.

    Examples
    --------
    >>> permute(Tensor([[1.0, 2.0]]), (1, 0)).shape
    (2, 1)
    """
    return single("TransposeView", [input, tuple(dims)])


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged.

    Examples
    --------
    >>> transpose(Tensor([[1.0, 2.0]]), 0, 1).shape
    (2, 1)
    """
    return single("TransposeExtView", [input, dim0, dim1])


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """As `transpose`, under numpy's name.

    Examples
    --------
    >>> swapaxes(Tensor([[1.0, 2.0]]), axis0=0, axis1=1).shape
    (2, 1)
    """
    return transpose(input, axis0, axis1)


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A new axis of extent 1.

    Examples
    --------
    >>> unsqueeze(Tensor([1.0, 2.0]), -1).shape
    (2, 1)
    """
    return single("ExpandDimsView", [input, dim])


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A range of one axis.

    Examples
    --------
    >>> narrow(Tensor([1.0, 2.0, 3.0]), 0, 1, 2).asnumpy()
    array([2., 3.], dtype=float32)
    """
    return single("NarrowView", [input, dim, start, length])


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One slice along an axis, without that axis.

    Examples
    --------
    >>> select(Tensor([[1.0, 2.0], [3.0, 4.0]]), 1, -1).asnumpy()
    array([2., 4.], dtype=float32)
    """
    return single("SelectExtView", [input, dim, index])


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of a size, or of given sizes.

    Examples
    --------
    >>> [piece.shape for piece in split(Tensor([1, 2, 3]), 2)]
    [(2,), (1,)]
    """
    size = split_size_or_sections
    own = isinstance(size, int) and size > 0
    result: tuple[Tensor, ...] = call("SplitTensorView", [tensor, size, dim]) if own else ops.split(tensor, size, dim)
    return result


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """A number of pieces of equal size, the last one smaller if it must be.

    Examples
    --------
    >>> [piece.shape for piece in chunk(Tensor([1, 2, 3]), 2)]
    [(2,), (1,)]
    """
    result: tuple[Tensor, ...] = call("ChunkView", [input, chunks, dim])
    return result


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along an axis, without that axis.

    Examples
    --------
    >>> [row.asnumpy().tolist() for row in unbind(Tensor([[1.0, 2.0], [3.0, 4.0]]))]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    result: tuple[Tensor, ...] = call("UnstackExtView", [input, dim])
    return result
