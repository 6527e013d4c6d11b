"""Collectives whose members receive different elements, and point-to-point messages. [spec parallel 3.1]"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType, TensorType, TupleType
from dumpsim.core.errors import BadInputError, ScriptRuntimeError, ScriptValueError
from dumpsim.ops.collective import (
    PLACED,
    SHARED,
    SIZED,
    WORLD,
    after,
    as_vector,
    collective,
    counts_of,
    each,
    empty_as_scalar,
    flat_of,
    refilled,
    same,
    sized,
    typed,
)
from dumpsim.ops.gradient import part_or_zeros
from dumpsim.ops.opdef import GradBuilder, Infer, Kernel
from dumpsim.ops.rules import output, tensors_in

__all__ = ["OPS"]

Attrs = Mapping[str, Any]


def _infer_all_to_all(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = typed("AlltoAll", abstracts[0])
    count, size = attrs["split_count"], attrs["rank_size"]
    shape = list(x.shape)
    for name in ("split_dim", "concat_dim"):
        if not 0 <= attrs[name] < len(shape):
            raise ScriptValueError(
                f"Invalid {name.replace('_', ' ')} {attrs[name]} is greater than shape size {len(shape)}"
            )
    if count != size:
        raise ScriptValueError(
            "For 'AlltoAll, the 'split_count' must be equal to 'rank_size', but got 'split_count': "
            f"{count}, 'rank_size': {size}"
        )
    if shape[attrs["split_dim"]] % count:
        raise ScriptValueError(
            "For 'AlltoAll, the 'x_shape[split_dim]' must be divisible by 'split_count', but got 'x_shape[split_dim]' "
            f"{shape[attrs['split_dim']]}, 'split_count' {count}."
        )
    shape[attrs["split_dim"]] //= count
    shape[attrs["concat_dim"]] *= count
    return output(x.dtype, shape)


def _infer_all_to_all_v(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op, block = "AlltoAllV", attrs["block_size"]
    sends = [n * block for n in counts_of(op, abstracts[1], "send_numel_list")]
    receives = counts_of(op, abstracts[2], "recv_numel_list", len(sends))
    x = flat_of(op, abstracts[0], sends, "send_numel_list")
    return output(x.dtype, empty_as_scalar(sum(receives) * block))


def _infer_all_to_all_vc(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op, size, rank = "AlltoAllVC", attrs["rank_size"], attrs["rank_id"]
    matrix = np.reshape(counts_of(op, abstracts[1], "send_count_matrix", size * size), (size, size))
    matrix = (matrix.T if attrs["transpose"] else matrix) * attrs["block_size"]
    x = flat_of(op, abstracts[0], matrix[rank].tolist(), "send_count_matrix")
    return output(x.dtype, empty_as_scalar(int(matrix[:, rank].sum())))


def _infer_send(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = typed("Send", abstracts[0])
    return output(x.dtype, x.shape)


def _infer_receive(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return output(attrs["dtype"], attrs["shape"])


def _infer_neighbors(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op = "NeighborExchange"
    given = () if isinstance(abstracts[0], NoneType) else tensors_in(op, abstracts[0], "input_x")
    wanted = [tuple(shape) for shape in attrs["send_shapes"]]
    if [tensor.shape for tensor in given] != wanted:
        raise ScriptValueError(
            f"For '{op}', the shapes of 'input_x' must be 'send_shapes' {wanted}, but got {[t.shape for t in given]}."
        )
    for ranks, shapes in (("send_rank_ids", "send_shapes"), ("recv_rank_ids", "recv_shapes")):
        if len(attrs[ranks]) != len(attrs[shapes]):
            raise ScriptValueError(
                f"For '{op}', '{ranks}' and '{shapes}' must have the same length, but got {len(attrs[ranks])} and "
                f"{len(attrs[shapes])}."
            )
    return TupleType(items=tuple(output(attrs["recv_type"], shape) for shape in attrs["recv_shapes"]))


def _infer_halo(op: str, sign: int) -> Infer:
    """Return the rule of an image that grows by the received borders (sign 1), and of its gradient, which shrinks."""

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = typed(op, abstracts[0])
        if len(x.shape) != 4 or attrs["data_format"] != "NCHW":
            raise ScriptValueError(
                f"For '{op}', the input must have 4 dimensions in 'NCHW', but got {len(x.shape)} in "
                f"{attrs['data_format']!r}."
            )
        for ranks in (attrs["send_rank_ids"], attrs["recv_rank_ids"]):
            repeated = [rank for rank in ranks if rank >= 0 and ranks.count(rank) > 1]
            if repeated:
                raise ScriptValueError(
                    f"For '{op}', 'send_rank_ids' or 'recv_rank_ids' can not be repeated, but got id :{repeated[0]} "
                    "repeated."
                )
        top, bottom, left, right = attrs["recv_lens"] if sign > 0 else attrs["send_lens"]
        batch, channels, rows, columns = x.shape
        return output(x.dtype, (batch, channels, rows + sign * (top + bottom), columns + sign * (left + right)))

    return infer


def _infer_batch(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op = "BatchISendIRecv"
    items = abstracts[0].items if isinstance(abstracts[0], TupleType) else ()
    sent = [item for item in items if isinstance(item, TensorType)]
    shapes, kinds = iter(attrs["receive_shapes"]), iter(attrs["receive_dtypes"])
    sends = sum(kind == "isend" for kind in attrs["op_types"])
    unknown = [kind for kind in attrs["op_types"] if kind not in ("isend", "irecv")]
    if unknown:
        raise ScriptValueError(f"For '{op}', 'op_types' must be 'isend' or 'irecv', but got {unknown[0]!r}.")
    if sends != len(sent) or len(attrs["op_types"]) - sends != len(attrs["receive_shapes"]):
        raise ScriptRuntimeError(
            f"For '{op}', {sends} 'isend' and {len(attrs['op_types']) - sends} 'irecv' need as many input tensors and "
            f"'receive_shapes', but got {len(sent)} and {len(attrs['receive_shapes'])}."
        )
    return TupleType(
        items=tuple(
            output(sent[0].dtype, ()) if kind == "isend" else output(next(kinds), next(shapes))
            for kind in attrs["op_types"]
        )
    )


def _alone(op: str) -> Kernel:
    """Return the kernel of an operator that needs another rank."""

    def kernel(*operands: Any, **attrs: Any) -> Any:
        raise BadInputError("there is no other rank in a group of one", where=op)

    return kernel


def _grad_all_to_all(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    turned = {**attrs, "split_dim": attrs["concat_dim"], "concat_dim": attrs["split_dim"]}
    return [b.emit("AlltoAll", dout, **turned)]


def _grad_all_to_all_v(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, sends, receives = operands
    return [refilled(b, b.emit("AlltoAllV", as_vector(dout), receives, sends, **attrs), x), None, None]


def _grad_all_to_all_vc(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, matrix = operands
    turned = {**attrs, "transpose": not attrs["transpose"]}
    return [refilled(b, b.emit("AlltoAllVC", as_vector(dout), matrix, **turned), x), None]


def _grad_neighbors(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    parts = tuple(part_or_zeros(b, dout, at, out) for at in range(len(out.abstract.items)))
    turned = {
        **attrs,
        "send_rank_ids": attrs["recv_rank_ids"],
        "recv_rank_ids": attrs["send_rank_ids"],
        "send_shapes": attrs["recv_shapes"],
        "recv_shapes": attrs["send_shapes"],
    }
    back = b.emit("NeighborExchange", parts, **turned)
    return [tuple(b.item(back, at) for at in range(len(attrs["send_shapes"])))]


def _grad_halo(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    turned = {
        **attrs,
        "send_rank_ids": attrs["recv_rank_ids"],
        "recv_rank_ids": attrs["send_rank_ids"],
        "send_lens": attrs["recv_lens"],
        "recv_lens": attrs["send_lens"],
    }
    return [b.emit("NeighborExchangeV2Grad", dout, **turned)]


def _grad_send(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, back = operands[0].abstract, attrs["group_back"]
    come = {"sr_tag": attrs["sr_tag"], "src_rank": attrs["dest_rank"], "shape": x.shape, "dtype": x.dtype}
    return [b.emit("Receive", dout, **come, group=back, group_back=attrs["group"])]


def _grad_receive(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    go = {"sr_tag": attrs["sr_tag"], "dest_rank": attrs["src_rank"]}
    sent = b.emit("Send", dout, **go, group=attrs["group_back"], group_back=attrs["group"])
    x = getattr(operands[0], "abstract", None)
    if not isinstance(x, TensorType):
        return [None]
    return [after(b, np.zeros(x.shape, x.dtype.numpy), sent)]


_PAIRED = {"group": WORLD, "group_back": WORLD}
_NEIGHBORS = {"send_rank_ids": (), "recv_rank_ids": (), "recv_shapes": (), "send_shapes": (), "recv_type": None}
_HALO = {
    "send_rank_ids": (-1,) * 8,
    "send_lens": (0,) * 4,
    "recv_rank_ids": (-1,) * 8,
    "recv_lens": (0,) * 4,
    "data_format": "NCHW",
}
_BATCH = {"op_types": (), "remote_ranks": (), "receive_shapes": (), "receive_dtypes": ()}
_NAMED = {"input_names": ["x"], "output_names": ["output"]}

OPS = (
    collective(
        "AlltoAll",
        _infer_all_to_all,
        same,
        _grad_all_to_all,
        {"split_count": 1, "split_dim": 0, "concat_dim": 0, **SIZED},
    ),
    collective(
        "AlltoAllV",
        _infer_all_to_all_v,
        sized,
        _grad_all_to_all_v,
        {**SHARED, "block_size": 1},
        operands=("input_x", "send_numel_list", "recv_numel_list"),
        fixed={},
    ),
    collective(
        "AlltoAllVC",
        _infer_all_to_all_vc,
        sized,
        _grad_all_to_all_vc,
        {"block_size": 1, "transpose": False, **PLACED},
        operands=("input_x", "send_count_matrix"),
        fixed={},
    ),
    collective("Send", _infer_send, _alone("Send"), _grad_send, {"sr_tag": 0, "dest_rank": 0, **_PAIRED}, alias={0: 0}),
    collective(
        "Receive",
        _infer_receive,
        _alone("Receive"),
        _grad_receive,
        {"sr_tag": 0, "src_rank": 0, "shape": (), "dtype": None, **_PAIRED},
        defaults=(None,),
    ),
    collective("NeighborExchange", _infer_neighbors, each, _grad_neighbors, {**_NEIGHBORS, **SHARED}, **_NAMED),
    *(
        collective(name, _infer_halo(name, sign), same, grad, {**_HALO, **SHARED}, **_NAMED)
        for name, sign, grad in (("NeighborExchangeV2", 1, _grad_halo), ("NeighborExchangeV2Grad", -1, None))
    ),
    collective("BatchISendIRecv", _infer_batch, _alone("BatchISendIRecv"), None, {**_BATCH, **SHARED}),
)
