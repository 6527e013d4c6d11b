"""Transfer of the lists and objects of `mint.distributed`, as flat tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.mint.distributed._objects import decode, encode
from dumpsim.frontends.mindspore.ops.operations import comm_ops

__all__ = [
    "broadcast",
    "check_elements",
    "check_list",
    "check_own",
    "check_same",
    "flat",
    "gathered",
    "gathered_at",
    "receive",
    "scattered",
    "send",
]


def flat(tensors: Sequence[Tensor]) -> Any:
    """Return the elements of tensors, one after the other."""
    return ops.cat([tensor.reshape((-1,)) for tensor in tensors])


def check_list(tensors: Sequence[Tensor], ranks: int) -> None:
    """Check that a list has one tensor for each rank."""
    if len(tensors) != ranks:
        raise ScriptTypeError(f"The argument list tensor len must be equal to group rank size, but got {len(tensors)}.")


def check_own(tensor: Tensor, tensors: Sequence[Tensor], rank: int, function: str) -> None:
    """Check that a tensor has the shape and type of this rank's tensor in the list."""
    if tensor.shape != tensors[rank].shape:
        raise ScriptTypeError(
            f"For {function}, the output shape should be {tensors[rank].shape}, but got {tensor.shape}."
        )
    if tensor.dtype != tensors[0].dtype:
        raise ScriptTypeError(f"For {function}, the output dtype should be {tensors[0].dtype}, but got {tensor.dtype}.")


def check_same(tensors: Sequence[Tensor]) -> None:
    """Check that all tensors have the same type and shape."""
    for tensor in tensors[1:]:
        for name in ("dtype", "shape"):
            first, other = getattr(tensors[0], name), getattr(tensor, name)
            if first != other:
                raise ScriptTypeError(f"tensor_lists {name} must be the same, but got {first} and {other}.")


def check_elements(tensors: Sequence[Tensor], tensor: Tensor, ranks: int) -> None:
    """Check that a list has one tensor for each rank, with the type and shape of the given tensor."""
    check_list(tensors, ranks)
    if tensor.dtype != tensors[0].dtype:
        raise ScriptTypeError(
            f"The argument list tensor type must be equal to tensor type, but got {tensors[0].dtype}."
        )
    if tensor.shape != tensors[0].shape:
        raise ScriptTypeError(
            f"The argument list tensor shape must be equal to tensor shape, but got {tensors[0].shape}."
        )


# ------------------------------------------------------------------ objects
def _bytes(data: bytes, size: int = 0) -> Tensor:
    return Tensor(np.frombuffer(data.ljust(size, b" "), np.int8))


def _data(tensor: Any) -> bytes:
    raw: bytes = tensor.asnumpy().tobytes()
    return raw


def _lengths(sizes: Sequence[int]) -> Tensor:
    return Tensor(np.array(sizes, np.int32))


def _cut(data: bytes, sizes: Sequence[int]) -> list[Any]:
    """Decode the objects of concatenated bytes."""
    ends = np.cumsum(sizes).tolist()
    return [decode(data[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def _sizes(own: int, group: str) -> list[int]:
    sizes: list[int] = comm_ops.AllGather(group)(_lengths([own])).asnumpy().tolist()
    return sizes


def gathered(value: Any, group: str) -> list[Any]:
    """Return the objects of all ranks."""
    data = encode(value)
    sizes = _sizes(len(data), group)
    return _cut(_data(comm_ops.AllGatherV(group)(_bytes(data), sizes)), sizes)


def gathered_at(value: Any, root: int, group: str) -> list[Any]:
    """Return the objects of all ranks on the rank `root` of the group, and an empty list on the others."""
    data = encode(value)
    sizes = _sizes(len(data), group)
    widest = max(sizes)
    gather = comm_ops.CollectiveGather(root, group)
    whole = gather(_bytes(data, widest))
    if gather.rank_id != root:
        return []
    raw = _data(whole)
    return [decode(raw[at * widest : at * widest + size]) for at, size in enumerate(sizes)]


def broadcast(objects: list[Any] | None, count: int, root: int, group: str) -> list[Any]:
    """Return the objects of the rank `root` of the group; the other ranks pass None."""
    encoded = [] if objects is None else [encode(value) for value in objects]
    sizes = [len(data) for data in encoded] if encoded else [0] * count
    cast = comm_ops.Broadcast(root, group)
    sizes = cast((_lengths(sizes),))[0].asnumpy().tolist()
    data = b"".join(encoded) if encoded else bytes(sum(sizes))
    return _cut(_data(cast((_bytes(data),))[0]), sizes)


def scattered(objects: list[Any] | None, root: int, group: str) -> Any:
    """Return this rank's object of the list of the rank `root` of the group; the other ranks pass None."""
    scatter = comm_ops.CollectiveScatter(root, group)
    ranks = scatter.rank_size
    encoded = [] if objects is None else [encode(value) for value in objects]
    sizes = [len(data) for data in encoded] if encoded else [0] * ranks
    sizes = comm_ops.Broadcast(root, group)((_lengths(sizes),))[0].asnumpy().tolist()
    widest = max(sizes)
    whole = b"".join(data.ljust(widest) for data in encoded) if encoded else bytes(widest * ranks)
    return decode(_data(scatter(_bytes(whole)))[: sizes[scatter.rank_id]])


def send(objects: list[Any], peer: int, group: str) -> None:
    """Send objects to another rank of the group."""
    encoded = [encode(value) for value in objects]
    primitive = comm_ops.Send(0, peer, group)
    primitive(_lengths([len(data) for data in encoded]))
    primitive(_bytes(b"".join(encoded)))


def receive(count: int, peer: int, group: str) -> list[Any]:
    """Return objects sent by another rank of the group."""
    sizes = comm_ops.Receive(0, peer, (count,), mstype.int32, group)().asnumpy().tolist()
    return _cut(_data(comm_ops.Receive(0, peer, (sum(sizes),), mstype.int8, group)()), sizes)
