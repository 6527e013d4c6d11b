"""The functions of ``mindspore.mint`` that return views, and their operators. [observed 2.10]"""

from typing import Any

from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common._operandtypes import expect
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import single

__all__ = ["chunk", "narrow", "permute", "select", "split", "swapaxes", "transpose", "unbind", "unsqueeze"]


def permute(input: Tensor, dims: Any) -> Tensor:
    """Reorder the axes.

    Examples
    --------
    >>> permute(Tensor([[1.0, 2.0]]), (1, 0)).shape
    (2, 1)
    """
    return single("TransposeView", [input, tuple(dims)])


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes.

    Examples
    --------
    >>> transpose(Tensor([[1.0, 2.0]]), 0, 1).shape
    (2, 1)
    """
    return single("TransposeExtView", [input, dim0, dim1])


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Alias of `transpose`, with numpy's name.

    Examples
    --------
    >>> swapaxes(Tensor([[1.0, 2.0]]), axis0=0, axis1=1).shape
    (2, 1)
    """
    return transpose(input, axis0, axis1)


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert an axis of extent 1.

    Examples
    --------
    >>> unsqueeze(Tensor([1.0, 2.0]), -1).shape
    (2, 1)
    """
    return single("ExpandDimsView", [input, dim])


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Select a range of one axis.

    Examples
    --------
    >>> narrow(Tensor([1.0, 2.0, 3.0]), 0, 1, 2).asnumpy()
    array([2., 3.], dtype=float32)
    """
    expect("NarrowView", input, dim, start, length)
    rank = input.ndim
    if not -rank <= dim < rank:  # [2.10 observed]
        raise ScriptValueError(f"Dimension out of range (expected to be in range of [-{rank}, {rank}), but got {dim})")
    extent = input.shape[dim]
    if isinstance(start, int):
        if not -extent <= start <= extent:
            raise ScriptValueError(
                f"For primitive [Narrow]: start value error, start: {start}, start should be in [{-extent}, {extent}]."
            )
        first = start + extent if start < 0 else start
        if first + length > extent:
            raise ScriptValueError(
                f"For 'Narrow', start ({start}), + length ({length}) exceeds dimension size ({extent})."
            )
        start = first
    return single("NarrowView", [input, dim, start, length])


def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """Select one slice along an axis, which is removed.

    Examples
    --------
    >>> select(Tensor([[1.0, 2.0], [3.0, 4.0]]), 1, -1).asnumpy()
    array([2., 4.], dtype=float32)
    """
    is_number = isinstance(index, Tensor) and index.size == 1 and isinstance(input, Tensor) and type(dim) is int
    place = index.item() if is_number and capturing() is None else index
    return single("SelectExtView", [input, dim, place])


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split into pieces of one size, or of given sizes.

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
    """Split into pieces of equal size; the last one may be smaller.

    Examples
    --------
    >>> [piece.shape for piece in chunk(Tensor([1, 2, 3]), 2)]
    [(2,), (1,)]
    """
    result: tuple[Tensor, ...] = call("ChunkView", [input, chunks, dim])
    return result


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Split into the slices along an axis, which is removed.

    Examples
    --------
    >>> [row.asnumpy().tolist() for row in unbind(Tensor([[1.0, 2.0], [3.0, 4.0]]))]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    result: tuple[Tensor, ...] = call("UnstackExtView", [input, dim])
    return result
