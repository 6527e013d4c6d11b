"""``mindspore.mint.distributed.distributed``: groups, and collectives that write into their arguments."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.mint.distributed._groups import (
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_initialized,
    new_group,
)
from dumpsim.frontends.mindspore.mint.distributed._lists import all_gather, all_to_all, gather, reduce_scatter, scatter
from dumpsim.frontends.mindspore.mint.distributed._object_lists import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from dumpsim.frontends.mindspore.mint.distributed._pairs import P2POp, batch_isend_irecv, irecv, isend, recv, send
from dumpsim.frontends.mindspore.mint.distributed._tensors import (
    all_gather_into_tensor,
    all_gather_into_tensor_uneven,
    all_reduce,
    all_to_all_single,
    barrier,
    broadcast,
    reduce,
    reduce_scatter_tensor,
    reduce_scatter_tensor_uneven,
)

__all__ = [
    "P2POp",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_into_tensor_uneven",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint.distributed.distributed", name)
