"""Collective primitives; `mindspore.communication` defines their groups."""

from collections.abc import Callable, Sequence
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import _checkparam as validator
from dumpsim.frontends.mindspore._capture.dispatch import start
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication.management import (
    HCCL_WORLD_COMM_GROUP,
    _get_group,
    find_group,
    get_group_size,
    get_rank,
)
from dumpsim.frontends.mindspore.ops.operations import _own
from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = [
    "AllGather",
    "AllGatherV",
    "AllReduce",
    "AlltoAll",
    "AlltoAllV",
    "AlltoAllVC",
    "Barrier",
    "BatchISendIRecv",
    "Broadcast",
    "CollectiveGather",
    "CollectiveScatter",
    "NeighborExchange",
    "NeighborExchangeV2",
    "Receive",
    "Reduce",
    "ReduceOp",
    "ReduceScatter",
    "ReduceScatterV",
    "Send",
]


class ReduceOp:
    """Reductions over ranks."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AVG = "avg"


_RECEIVED = (
    mstype.float16, mstype.float32, mstype.float64, mstype.bfloat16, mstype.int8, mstype.int16, mstype.int32,
    mstype.int64, mstype.uint8, mstype.uint16, mstype.uint32, mstype.uint64,
)  # fmt: skip


class _Collective(Primitive):
    """A collective over a group; its settings are attributes of its operator."""

    def __init__(self, group: Any, **settings: Any) -> None:
        super().__init__(type(self).__name__)
        self.group = self._checked_group(group)
        self._settings = {**settings, "group": self.group}
        self._given = dict(self._settings)
        for name, value in settings.items():
            setattr(self, name, value)

    def _checked_group(self, group: Any) -> str:
        validator.check_value_type("group", group, (str,), self.name)
        return _get_group(group)

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Add an attribute; one of the constructor's settings changes the behaviour of the operator."""
        if name in self._settings:
            self._settings[name] = value
        return super().add_prim_attr(name, value)

    def _apply(self, *operands: Any) -> Any:
        find_group(self.group)
        return self._run(list(operands), self._settings)

    def _start(self, *operands: Any) -> tuple[Any, Callable[[], None]]:
        """Launch the operator; return its results and a function that waits for them."""
        find_group(self.group)
        return start(self.name, operands, self._settings)


def _reduction(owner: str, op: Any) -> str:
    name: str = validator.check_value_type("op", op, (str,), owner)
    return name


class _Unary(_Collective):
    """A collective with one operand."""

    def __call__(self, input_x: Any) -> Any:
        return self._apply(input_x)


class AllReduce(_Unary):
    """Reduce the ranks' tensors; every rank receives the result.

    Parameters
    ----------
    op : str
        One of `ReduceOp`.
    group : str
    """

    def __init__(self, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        if not isinstance(op, str):
            raise ScriptTypeError(f"For 'AllReduce', the 'op' must be str, but got {type(op).__name__}.")
        super().__init__(group, op=op)

    def _checked_group(self, group: Any) -> str:
        if not isinstance(group, str):
            raise ScriptTypeError(f"For '{self.name}', the 'group' must be str, but got {type(group).__name__}.")
        return _get_group(group)


class Reduce(_Unary):
    """Reduce the ranks' tensors; one rank receives the result, the others an undefined tensor.

    Parameters
    ----------
    dest_rank : int
        The rank in the group that receives it.
    op : str
    group : str
    """

    def __init__(self, dest_rank: int, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group, op=op, dest_rank=dest_rank)
        _reduction(self.name, op)
        self._settings["_rank"] = get_rank(self.group)  # the result depends on the rank


class _Sized(_Collective):
    """A collective that knows the size of its group."""

    def __init__(self, group: Any, **settings: Any) -> None:
        super().__init__(group, **settings)
        self.rank_size = self._settings["rank_size"] = get_group_size(self.group)
        self._given["rank_size"] = self.rank_size


class _Ranked(_Sized):
    """A collective that also knows its rank in the group."""

    def __init__(self, group: Any, **settings: Any) -> None:
        super().__init__(group, **settings)
        self.rank = self.rank_id = self._settings["rank_id"] = get_rank(self.group)
        validator.check("rank", self.rank, "rank_size", self.rank_size, validator.LT, self.name)


class AllGather(_Unary, _Ranked):
    """Join the ranks' tensors along the first axis."""

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group)
        del self._settings["rank_id"]  # not an attribute of this operator


class AllGatherV(_Ranked):
    """Join the ranks' tensors, which may differ in length, along the first axis."""

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group)

    def __call__(self, input_x: Any, output_split_sizes: Any) -> Any:
        return self._apply(input_x, _counts(output_split_sizes))


class ReduceScatter(_Unary, _Sized):
    """Reduce the ranks' tensors; every rank receives an equal part of the first axis."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        _reduction("ReduceScatter", op)
        super().__init__(group, op=op)


class ReduceScatterV(_Ranked):
    """Reduce the ranks' tensors; every rank receives a part of the first axis, whose size may differ."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        _reduction("ReduceScatterV", op)
        super().__init__(group, op=op)

    def __call__(self, input_x: Any, input_split_sizes: Any) -> Any:
        return self._apply(input_x, _counts(input_split_sizes))


class Broadcast(_Unary):
    """Copy the tensors of one rank to every rank.

    Parameters
    ----------
    root_rank : int
        The rank in the group that sends them.
    group : str
    """

    def __init__(self, root_rank: int, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        validator.check_value_type("root_rank", root_rank, (int,), "Broadcast")
        super().__init__(group, root_rank=root_rank)


class AlltoAll(_Unary, _Sized):
    """Exchange pieces of an axis between all ranks, and join them along another axis.

    Parameters
    ----------
    split_count : int
        Number of pieces: the size of the group.
    split_dim, concat_dim : int
    group : str
    """

    def __init__(self, split_count: int, split_dim: int, concat_dim: int, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        validator.check_value_type("group", group, (str,), "AlltoAll")
        for value in (split_count, split_dim, concat_dim):
            # the vendor passes the type in place of the name [observed 2.10]
            validator.check_is_int(value, "<class 'int'>")
        super().__init__(group, split_count=split_count, split_dim=split_dim, concat_dim=concat_dim)


class AlltoAllV(_Sized):
    """Exchange blocks of different sizes between all ranks.

    Parameters
    ----------
    group : str
    block_size : int
        The unit of the given numbers of elements.
    """

    def __init__(self, group: str | None = HCCL_WORLD_COMM_GROUP, block_size: int = 1) -> None:
        super().__init__(HCCL_WORLD_COMM_GROUP if group is None else group, block_size=block_size)
        validator.check_value_type("block_size", block_size, [int], self.name)

    def __call__(self, input_x: Any, send_numel_list: Any, recv_numel_list: Any) -> Any:
        return self._apply(input_x, _counts(send_numel_list), _counts(recv_numel_list))


class AlltoAllVC(_Ranked):
    """Exchange blocks between all ranks, with sizes from a matrix that is the same on all ranks.

    Parameters
    ----------
    group : str
    block_size : int
    transpose : bool
        Use the transposed matrix.
    """

    def __init__(self, group: str | None = HCCL_WORLD_COMM_GROUP, block_size: int = 1, transpose: bool = False) -> None:
        group = HCCL_WORLD_COMM_GROUP if group is None else group
        super().__init__(group, block_size=block_size, transpose=transpose)
        validator.check_value_type("block_size", block_size, [int], self.name)

    def __call__(self, input_x: Any, send_count_matrix: Any) -> Any:
        return self._apply(input_x, _counts(send_count_matrix))


class CollectiveScatter(_Unary, _Ranked):
    """Distribute equal parts of one rank's tensor, one to each rank.

    Parameters
    ----------
    src_rank : int
        The rank in the group that sends them.
    group : str
    """

    def __init__(self, src_rank: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group, src_rank=src_rank)


class CollectiveGather(_Unary, _Ranked):
    """Join the ranks' tensors along the first axis; one rank receives the result.

    Parameters
    ----------
    dest_rank : int
        The rank in the group that receives it.
    group : str
    """

    def __init__(self, dest_rank: int, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group, dest_rank=dest_rank)


class Barrier(_Collective):
    """Wait for all ranks of the group."""

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group)

    def __call__(self) -> Any:
        return self._apply()


class Send(_Unary):
    """Send a tensor to another rank.

    Parameters
    ----------
    sr_tag : int
        A number that must equal the one of `Receive`.
    dest_rank : int
        The rank in the group that receives it.
    group, group_back : str
        The groups of the operator and of its gradient.
    """

    def __init__(
        self,
        sr_tag: int,
        dest_rank: int,
        group: str = HCCL_WORLD_COMM_GROUP,
        group_back: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(group, sr_tag=sr_tag, dest_rank=dest_rank, group_back=_get_group(group_back))
        self.rank = dest_rank


class Receive(_Collective):
    """Receive a tensor from another rank.

    Parameters
    ----------
    sr_tag : int
    src_rank : int
        The rank in the group that sends it.
    shape : list or tuple of int
    dtype : number type
    group, group_back : str
    """

    def __init__(
        self,
        sr_tag: int,
        src_rank: int,
        shape: Any,
        dtype: Any,
        group: str = HCCL_WORLD_COMM_GROUP,
        group_back: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        if dtype not in _RECEIVED:
            raise ScriptTypeError(
                f"For 'Receive', the type of 'dtype' must be in [{', '.join(map(str, _RECEIVED))}], "
                f"but got {getattr(dtype, 'title', dtype)}."
            )
        extents = tuple(shape)
        kind, back = mstype.type_of(dtype), _get_group(group_back)
        super().__init__(group, sr_tag=sr_tag, src_rank=src_rank, shape=extents, dtype=kind, group_back=back)
        self.rank, self.tag, self.shape, self.dtype = src_rank, sr_tag, shape, dtype

    def __call__(self, input_x: Any = None) -> Any:
        return self._apply(input_x)


class BatchISendIRecv(_Collective):
    """Send and receive between pairs of ranks, all at the same time.

    Parameters
    ----------
    op_types : list of {"isend", "irecv"}
    remote_ranks : list of int
        For each operation, the other rank in the group.
    receive_shapes, receive_dtypes : list, optional
        For each ``irecv``.
    group : str, optional
    """

    def __init__(
        self,
        op_types: Sequence[str],
        remote_ranks: Sequence[int],
        receive_shapes: Any = None,
        receive_dtypes: Any = None,
        group: str | None = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        owner = "BatchISendIRecv"
        lists = {"receive_shapes": receive_shapes, "receive_dtypes": receive_dtypes}
        for name, value in lists.items():
            if value is not None:
                validator.check_value_type(name, value, [tuple, list], owner)
        validator.check_value_type("op_types", op_types, [tuple, list], owner)
        validator.check_value_type("remote_ranks", remote_ranks, [tuple, list], owner)
        shapes, kinds = receive_shapes or (), receive_dtypes or ()
        if len(shapes) != len(kinds):
            raise ScriptValueError(
                "length of receive_shapes and receive_shapes must be the same, but got receive_shapes: "
                f"{len(shapes)}  and receive_shapes: {kinds}"
            )
        if len(op_types) != len(remote_ranks):
            raise ScriptValueError("length of op_types and remote_ranks must be the same.")
        strange = [kind for kind in op_types if kind not in ("isend", "irecv")]
        if strange:
            raise ScriptValueError(f"unknown op_types {strange}", where=owner, allowed=("isend", "irecv"))
        if list(op_types).count("irecv") != len(shapes):
            raise ScriptValueError(
                f"{len(shapes)} receive_shapes for {list(op_types).count('irecv')} irecv operations", where=owner
            )
        super().__init__(
            HCCL_WORLD_COMM_GROUP if group is None else group,
            op_types=tuple(op_types),
            remote_ranks=tuple(remote_ranks),
            receive_shapes=tuple(tuple(shape) for shape in shapes),
            receive_dtypes=tuple(mstype.type_of(kind) for kind in kinds),
        )

    def __call__(self, inputs: Any) -> Any:
        return self._apply(tuple(inputs))


class NeighborExchange(_Collective):
    """Exchange tensors with some of the ranks.

    Parameters
    ----------
    send_rank_ids, recv_rank_ids : list of int
        Ranks in the group.
    recv_shapes, send_shapes : tuple of shapes
    recv_type : number type
    group : str
    """

    def __init__(
        self,
        send_rank_ids: Any,
        recv_rank_ids: Any,
        recv_shapes: Any,
        send_shapes: Any,
        recv_type: Any,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(
            group,
            send_rank_ids=tuple(send_rank_ids),
            recv_rank_ids=tuple(recv_rank_ids),
            recv_shapes=tuple(tuple(shape) for shape in recv_shapes),
            send_shapes=tuple(tuple(shape) for shape in send_shapes),
            recv_type=mstype.type_of(recv_type),
        )

    def __call__(self, input_x: Any) -> Any:
        return self._apply(tuple(input_x))


class NeighborExchangeV2(_Unary, _Sized):
    """Exchange the borders of an image with the ranks of the neighbouring tiles.

    Parameters
    ----------
    send_rank_ids, recv_rank_ids : list of int
        The ranks in the eight directions, -1 for no rank.
    send_lens, recv_lens : list of int
        Top, bottom, left, right.
    data_format : str
    group : str
    """

    def __init__(
        self,
        send_rank_ids: Any,
        send_lens: Any,
        recv_rank_ids: Any,
        recv_lens: Any,
        data_format: str,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(
            group,
            send_rank_ids=tuple(send_rank_ids),
            send_lens=tuple(send_lens),
            recv_rank_ids=tuple(recv_rank_ids),
            recv_lens=tuple(recv_lens),
            data_format=data_format,
        )
        self.format = data_format
        for name, ranks in (("send_rank_ids", send_rank_ids), ("recv_rank_ids", recv_rank_ids)):
            for rank in ranks:
                if rank != -1:
                    validator.check_number_range(rank, 0, self.rank_size, validator.INC_LEFT, int, f"rank_id in {name}")


def _counts(sizes: Any) -> tuple[int, ...]:
    """Return numbers of elements as a tuple of ints."""
    listed = sizes.asnumpy().reshape(-1).tolist() if isinstance(sizes, Tensor) else sizes
    return tuple(int(size) for size in listed)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.operations.comm_ops", name, _own)
