"""Collectives of scripts on several ranks: ``ops``, ``communication.comm_func`` and ``mint.distributed``."""

import time
from functools import partial

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, mint, nn, ops
from dumpsim.frontends.mindspore import communication as comm
from dumpsim.frontends.mindspore.communication import comm_func
from dumpsim.frontends.mindspore.mint import distributed as dist
from dumpsim.frontends.mindspore.ops import operations as P  # noqa: N812
from dumpsim.world import launch

SETTINGS = RunSettings(quiet=True, manifest=None)
X = [np.arange(6, dtype=np.float32).reshape(3, 2) + 10 * rank for rank in range(4)]


def on_ranks(function, ranks=2, mode=ms.PYNATIVE_MODE):
    def main():
        ms.set_context(mode=mode)
        comm.init()
        return function(comm.get_rank())

    return launch(main, ranks=ranks, settings=SETTINGS)


def tensor(*values, kind=np.float32):
    return Tensor(np.array(values, kind))


def lists(value):
    return [item.asnumpy().tolist() for item in value]


# ------------------------------------------------------------------- comm_func
@pytest.mark.parametrize("module", [comm_func, dist])
def test_no_rank_leaves_a_barrier_before_all_have_entered(module):
    entered = []

    def main(rank):
        if rank:
            time.sleep(0.05)
        entered.append(rank)
        module.barrier()
        return len(entered)

    assert on_ranks(main) == [2, 2]


def test_results_are_returned():
    def main(rank):
        x = Tensor(X[rank])
        total, none = comm_func.all_reduce(x)
        whole, _ = comm_func.all_gather_into_tensor(x)
        half, _ = comm_func.reduce_scatter_tensor(whole)
        first = comm_func.broadcast(x, 1)
        assert none is None
        comm_func.barrier()
        part = comm_func.scatter_tensor(tensor([1, 2], [3, 4]) + 10 * rank, 1)
        return lists([total, whole, half, first, part])

    expected = [(X[0] + X[1]), np.concatenate(X[:2])]
    for rank, found in enumerate(on_ranks(main)):
        total, whole, half, first, part = found
        np.testing.assert_array_equal(total, expected[0])
        np.testing.assert_array_equal(whole, expected[1])
        np.testing.assert_array_equal(half, 2 * X[rank])
        np.testing.assert_array_equal(first, X[1])
        np.testing.assert_array_equal(part, [[11 + 2 * rank, 12 + 2 * rank]])


@pytest.mark.parametrize(("op", "expected"), [("sum", 10), ("prod", 24), ("min", 1), ("max", 4)])
def test_reductions(op, expected):
    def main(rank):
        mine = tensor(rank + 1)
        reduced = comm_func.reduce(mine, 2, op)
        return comm_func.all_reduce(mine, op)[0].asnumpy().item(), reduced.asnumpy().tolist()

    found = on_ranks(main, 4)
    assert [all_reduced for all_reduced, _ in found] == [expected] * 4
    assert found[2][1] == [expected]


def test_roots_are_ranks_of_the_world():
    def main(rank):
        if rank == 0:
            return None
        comm.create_group("late", [3, 1, 2])
        gathered = comm_func.gather_into_tensor(tensor(rank), 1, "late")
        return comm_func.broadcast(tensor(rank), 3, "late").asnumpy().item(), gathered.asnumpy().tolist()

    _, one, two, three = on_ranks(main, 4)
    assert one == (3, [3, 1, 2])
    assert two[0] == three[0] == 3


def test_messages_between_pairs():
    def main(rank):
        if rank == 0:
            comm_func.send(tensor(1, 2), 1)
            handle = comm_func.isend(tensor(3), 1)
            handle.wait()
            handle.wait()
            return comm_func.recv(tensor(0), 1).asnumpy().tolist()
        first = comm_func.recv(tensor(0, 0), 0)
        second, handle = comm_func.irecv(tensor(0), 0)
        handle.wait()
        comm_func.send(second + 1, 0)
        return lists([first, second])

    assert on_ranks(main) == [[4], [[1, 2], [3]]]


def test_a_ring_of_batched_messages():
    def main(rank):
        send = comm_func.P2POp("isend", tensor(rank + 1), (rank + 1) % 4)
        receive = comm_func.P2POp(comm_func.irecv, tensor(0), (rank - 1) % 4)
        by_shape = comm_func.P2POp("irecv", (1,), (rank - 1) % 4, recv_dtype=ms.float32)
        _, one = comm_func.batch_isend_irecv([send, receive])
        again, _ = comm_func.batch_isend_irecv([by_shape, send])
        alone = receive if rank == 1 else send  # a batch of one message
        last = comm_func.batch_isend_irecv([alone])[0].asnumpy().item() if rank < 2 else 0
        return one.asnumpy().item(), again.asnumpy().item(), last if rank == 1 else 0

    assert on_ranks(main, 4) == [(4, 4, 0), (1, 1, 1), (2, 2, 0), (3, 3, 0)]


def test_batched_messages_within_a_group():
    """The ranks of a group's messages are those of the world, and its first message names the group."""

    def main(rank):
        if rank == 0:
            return None
        comm.create_group("trio", [3, 1, 2])
        peers = {3: (1, 2), 1: (2, 3), 2: (3, 1)}[rank]  # a ring in the order of the group
        send = comm_func.P2POp(comm_func.isend, tensor(rank, -rank), peers[0], "trio")
        receive = comm_func.P2POp("irecv", tensor(0, 0), peers[1], "trio")
        return comm_func.batch_isend_irecv([send, receive])[1].asnumpy().tolist()

    assert on_ranks(main, 4) == [None, [3, -3], [1, -1], [2, -2]]


def test_all_to_all():
    def main(rank):
        parts = [tensor(*[10 * rank + to] * (to + 1)) for to in range(2)]
        shapes = [(rank + 1,), tensor(*[0] * (rank + 1))]
        results, _ = comm_func.all_to_all_with_output_shape(shapes, parts)
        whole = Tensor(np.arange(8, dtype=np.float32).reshape(4, 2) // 2 + 10 * rank)  # rows of two equal numbers
        equal, none = comm_func.all_to_all_single_with_output_shape((4, 2), whole)
        sizes = [[1, 3], [2, 2]]
        gotten = [row[rank] for row in sizes]
        output = Tensor(np.zeros((sum(gotten), 2), np.float32))
        uneven, _ = comm_func.all_to_all_single_with_output_shape(output, whole, gotten, sizes[rank])
        late, handle = comm_func.all_to_all_single_with_output_shape(output, whole, gotten, sizes[rank], None, True)
        handle.wait()
        assert none is None
        assert comm_func.all_to_all_v_c(output, whole, [1, 3, 2, 2]) is None
        later = Tensor(np.zeros((sum(gotten), 2), np.float32))
        comm_func.all_to_all_v_c(later, whole, [1, 3, 2, 2], async_op=True).wait()
        for rows in (equal, uneven, late, output, later):
            np.testing.assert_array_equal(rows.asnumpy()[:, 0], rows.asnumpy()[:, 1])
        return lists(results), *(t.asnumpy()[:, 0].tolist() for t in (equal, uneven, late, output, later))

    first, second = on_ranks(main)
    assert first == ([[0], [10]], [0, 1, 10, 11], *[[0, 10, 11]] * 4)
    assert second == ([[1, 1], [11, 11]], [2, 3, 12, 13], *[[1, 2, 3, 12, 13]] * 4)


def test_results_of_asynchronous_calls_are_available_after_wait():
    def main(rank):
        total, handle = comm_func.all_reduce(tensor(rank + 1), async_op=True)
        whole, other = comm_func.all_gather_into_tensor(tensor(rank), async_op=True)
        pieces, third = comm_func.all_to_all_with_output_shape([(1,), (1,)], [tensor(rank), tensor(-rank)], None, True)
        assert "Work" in repr(handle)
        for each in (third, other, handle):
            each.wait()
        late, _ = comm_func.all_reduce(tensor(5), async_op=True)
        ms.hal.synchronize()  # waits for all of them
        return lists([total, whole, *pieces, late])

    first, second = on_ranks(main)
    assert first == [[3], [0, 1], [0], [1], [10]]
    assert second == [[3], [0, 1], [0], [-1], [10]]


class Net(nn.Cell):
    """Collectives within a graph."""

    def construct(self, x):
        total, _ = comm_func.all_reduce(x * 2)
        whole, handle = comm_func.all_gather_into_tensor(total, async_op=True)
        handle.wait()
        return comm_func.reduce_scatter_tensor(whole)[0]


def test_in_a_graph():
    found = on_ranks(lambda rank: Net()(Tensor(X[rank])).asnumpy(), mode=ms.GRAPH_MODE)
    for each in found:
        np.testing.assert_array_equal(each, 4 * (X[0] + X[1]))


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_gradients(mode):
    def main(rank):
        def loss(x):
            return (ops.AllReduce()(x) * (rank + 1)).sum() + (ops.AllGather()(x) * (rank + 2)).sum()

        return ops.grad(loss)(Tensor(X[rank])).asnumpy()

    for gradient in on_ranks(main, mode=mode):
        np.testing.assert_array_equal(gradient, np.full((3, 2), (1 + 2) + (2 + 3)))


# ------------------------------------------------------------ mint.distributed
def test_arguments_are_written():
    def main(rank):
        total, mean, part = Tensor(X[rank]), Tensor(X[rank]), Tensor(np.zeros((3, 2), np.float32))
        whole = Tensor(np.zeros((6, 2), np.float32))
        seen = total.asnumpy()  # shares the memory of the tensor
        assert dist.all_reduce(total) is None
        dist.all_reduce(mean, "avg")
        dist.all_gather_into_tensor(whole, Tensor(X[rank]))
        dist.reduce_scatter_tensor(part, whole)
        copy, reduced = Tensor(X[rank]), Tensor(X[rank])
        dist.broadcast(copy, 1)
        dist.reduce(reduced, 0)
        np.testing.assert_array_equal(seen, total.asnumpy())
        dist.barrier()
        return [t.asnumpy() for t in (total, mean, whole, part, copy, reduced)]

    for rank, (total, mean, whole, part, copy, reduced) in enumerate(on_ranks(main)):
        np.testing.assert_array_equal(total, X[0] + X[1])
        np.testing.assert_array_equal(mean, (X[0] + X[1]) / 2)
        np.testing.assert_array_equal(whole, np.concatenate(X[:2]))
        np.testing.assert_array_equal(part, 2 * X[rank])
        np.testing.assert_array_equal(copy, X[1])
        np.testing.assert_array_equal(reduced, X[0] + X[1] if rank == 0 else X[1])


def test_lists_of_tensors():
    def main(rank):
        parts = [tensor(0), tensor(0, 0)]
        dist.all_gather(parts, tensor(*[rank] * (rank + 1)))
        output = tensor(*[0] * (rank + 1))
        dist.reduce_scatter(output, [tensor(1 + rank), tensor(2, 3)])
        taken = tensor(0)
        dist.scatter(taken, [tensor(7 + rank), tensor(8 + rank)], 1)
        gathered = [tensor(-1), tensor(-1)]
        dist.gather(tensor(rank), gathered, 1)
        others = [tensor(0), tensor(0)]
        dist.all_to_all(others, [tensor(10 * rank), tensor(10 * rank + 1)])
        single = tensor(0, 0, 0) if rank == 0 else tensor(0)
        dist.all_to_all_single(single, tensor(10 * rank, 10 * rank + 1), [2, 1] if rank == 0 else [0, 1], [2, 0] if rank == 0 else [1, 1])  # fmt: skip # noqa: E501
        sizes = [1, 2]
        joined = tensor(0, 0, 0)
        dist.all_gather_into_tensor_uneven(joined, tensor(*[rank + 1] * sizes[rank]), sizes)
        piece = tensor(*[0] * sizes[rank])
        dist.reduce_scatter_tensor_uneven(piece, tensor(1, 2, 3), sizes)
        return lists([*parts, output, taken, *gathered, *others, single, joined, piece])

    first, second = on_ranks(main)
    assert first == [[0], [1, 1], [3], [8], [-1], [-1], [0], [10], [0, 1, 10], [1, 2, 2], [2]]
    assert second == [[0], [1, 1], [4, 6], [9], [0], [1], [1], [11], [11], [1, 2, 2], [4, 6]]


@pytest.mark.parametrize(
    ("rows", "sizes", "text"),
    [
        (1, [1, 1], r"parts of \[1, 1\] rows on 2 ranks do not add up to 3 rows"),
        (1, [1, 1, 1], r"parts of \[1, 1, 1\] rows on 2 ranks do not add up to 3 rows"),
        (3, [1, 2], r"the part has the shape \(3,\) and not \((1|2),\)"),
    ],
)
def test_uneven_parts_make_up_the_whole(rows, sizes, text):
    def main(rank):
        whole, part = tensor(0, 0, 0), tensor(*[1] * rows)
        with pytest.raises(ValueError, match=f"all_gather_into_tensor_uneven.*{text}"):
            dist.all_gather_into_tensor_uneven(whole, part, sizes)
        with pytest.raises(ValueError, match=f"reduce_scatter_tensor_uneven.*{text}"):
            dist.reduce_scatter_tensor_uneven(part, whole, sizes)

    on_ranks(main)


def test_messages_in_place():
    def main(rank):
        peer, mine = 1 - rank, tensor(0, 0)
        if rank == 0:
            dist.send(tensor(1, 2), 1)
            assert dist.recv(mine, 1) == 0
        else:
            handle = dist.irecv(mine, 0)
            handle.wait()
            dist.isend(mine * 2, 0).wait()
        ring = tensor(0)
        (handle,) = dist.batch_isend_irecv(
            [dist.P2POp("irecv", ring, peer), dist.P2POp(dist.isend, tensor(rank + 5), peer)]
        )
        handle.wait()
        one = tensor(0)
        message = dist.P2POp("irecv", one, 0) if rank else dist.P2POp("isend", tensor(9), 1)
        (handle,) = dist.batch_isend_irecv([message])  # one alone
        handle.wait()
        return lists([mine, ring, one])

    assert on_ranks(main) == [[[2, 4], [6], [0]], [[1, 2], [5], [9]]]


def test_asynchronous_calls_write_at_their_wait():
    def main(rank):
        x = tensor(rank + 1)
        handle = dist.all_reduce(x, async_op=True)
        handle.wait()
        return x.asnumpy().item()

    assert on_ranks(main) == [3, 3]


def test_a_parameter_is_reduced_in_place():
    def main(rank):
        weight = ms.Parameter(tensor(rank + 1), name="w")
        dist.all_reduce(weight)
        return weight.asnumpy().tolist()

    assert on_ranks(main) == [[3], [3]]


OBJECTS = [
    None, True, 3, -(2**80), 0.1, float("inf"), 1 + 2j, "text é", b"\x00\xff", [1, [2]], (1, ()), {"a": {1: 2}},
    {1, 2}, frozenset([3]), range(1, 9, 2), slice(None, 3),
]  # fmt: skip


def test_objects_are_communicated():
    def main(rank):
        everyone = [None, None]
        dist.all_gather_object(everyone, {"rank": rank, "all": OBJECTS})
        from_one = ["mine", rank]
        dist.broadcast_object_list(from_one, 1)
        taken = [None, "kept"]
        dist.scatter_object_list(taken, [f"for {to} of {rank}" for to in range(2)], 1)
        collected = [None, None]
        dist.gather_object((rank, "x" * 10 * rank), collected if rank == 0 else None, 0)
        passed = [0, 0]
        if rank == 0:
            dist.send_object_list([1, "two"], 1)
        else:
            assert dist.recv_object_list(passed, 0) == 0
        return everyone, from_one, taken, collected, passed

    first, second = on_ranks(main)
    for rank, found in enumerate((first, second)):
        assert found[0] == [{"rank": each, "all": OBJECTS} for each in range(2)]
        assert [type(value) for value in found[0][0]["all"]] == [type(value) for value in OBJECTS]
        assert found[1:3] == (["mine", 1], [f"for {rank} of 1", "kept"])
    assert first[3] == [(0, ""), (1, "x" * 10)]
    assert second[3:] == ([None, None], [1, "two"])


def test_arrays_and_tensors_are_communicated_as_objects():
    def main(rank):
        everyone = [None, None]
        mine = [np.arange(3, dtype=np.int16), np.float32(0.5), Tensor(X[rank]), Tensor([1.5], ms.bfloat16), ms.float16]
        dist.all_gather_object(everyone, mine)
        return everyone

    for array, scalar, whole, short, kind in on_ranks(main)[0]:
        assert (array.dtype, array.tolist()) == (np.int16, [0, 1, 2])
        assert isinstance(scalar, np.float32)
        assert (whole.dtype, whole.shape, short.dtype, kind) == (ms.float32, (3, 2), ms.bfloat16, ms.float16)
        assert scalar == 0.5


@pytest.mark.parametrize("value", [print, object(), nn.ReLU(), np.array([object()]), [{1: (lambda: 0)}]], ids=range(5))
def test_other_objects_are_refused_by_their_type(value):
    def main(rank):
        with pytest.raises(NotImplementedError, match=r"an object of type .* cannot be sent; allowed: None, bool"):
            dist.all_gather_object([None], value)

    on_ranks(main, 1)


def test_an_object_that_contains_itself_is_refused():
    value = []
    value.append(value)

    def main(rank):
        with pytest.raises(NotImplementedError, match="nested more than 100 deep, or in themselves"):
            dist.all_gather_object([None], value)

    on_ranks(main, 1)


def test_groups_of_mint():
    def main(rank):
        state = dist.is_available(), dist.is_initialized(), dist.get_rank(), dist.get_world_size(), dist.get_backend()
        pair = dist.new_group([1, 0])
        alone = dist.new_group([1], backend="mccl")
        ranks = dist.get_rank(pair), dist.get_world_size(pair), dist.get_process_group_ranks(pair)
        assert dist.new_group() == "hccl_world_group"
        assert (dist.get_global_rank(pair, 1), dist.get_group_rank(pair, 1)) == (1, 1)
        assert (dist.get_rank("nobody"), dist.get_world_size("nobody")) == (-1, -1)
        dist.destroy_process_group(pair)
        dist.destroy_process_group()
        return state, pair, alone, ranks, dist.is_initialized()

    first, second = on_ranks(main)
    pair = "hccl_2_30879612a0f2eb969a8b57e5bc857347e88fdf07"  # as MindSpore 2.10 names it
    assert first == ((True, True, 0, 2, "hccl"), pair, "", (0, 2, [0, 1]), False)
    assert second[1:] == (pair, "mccl_1_356a192b7913b04c54574d18c28d46e6395428ab", (1, 2, [0, 1]), False)


def test_a_process_group_warns_of_what_it_ignores(capsys):
    on_ranks(lambda rank: dist.init_process_group(pg_options=3), 1)
    warned = capsys.readouterr().err
    assert ("pg_options is ignored" in warned, "device_id is ignored" in warned) == (True, False)
    on_ranks(lambda rank: dist.init_process_group(device_id=0), 1)
    warned = capsys.readouterr().err
    assert ("pg_options is ignored" in warned, "device_id is ignored" in warned) == (False, True)


def test_init_process_group():
    def main(rank):
        for arguments, kind, text in (
            ({"backend": "mccl"}, ValueError, "Only support hccl now"),
            ({"init_method": "x", "timeout": 3}, TypeError, "'timeout' must be <class 'datetime.timedelta'>"),
            ({"init_method": "x"}, ValueError, "Specified world_size must be a positive integer"),
            ({"init_method": "x", "world_size": 2}, ValueError, "Specified rank must be a non-negative integer"),
            ({"init_method": "x", "world_size": 2, "rank": 0}, RuntimeError, "Failed to parse TCP URL"),
            ({"init_method": "tcp://127.0.0.1:1", "world_size": 9, "rank": 0}, ValueError, "has started rank . of 2"),
            ({"store": 3}, NotImplementedError, "a TCPStore"),
            ({"world_size": 3}, ValueError, "world_size is wrong"),
        ):
            with pytest.raises(kind, match=text):
                dist.init_process_group(**arguments)
        dist.init_process_group(init_method="tcp://127.0.0.1:10666", world_size=2, rank=rank)
        return dist.is_initialized()

    assert launch(lambda: main(comm.get_rank()), ranks=2, settings=SETTINGS) == [True, True]


# ---------------------------------------------------------------------- errors
TAKE_TENSORS = (
    "all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "broadcast", "scatter_tensor",
    "gather_into_tensor", "send", "recv", "isend", "irecv",
)  # fmt: skip
ROOTS = (("broadcast", "src"), ("scatter_tensor", "src"), ("gather_into_tensor", "dst"), ("recv", "src"))


def wrong(x):
    return [
        (lambda: comm_func.all_reduce(3), "For all_reduce, the input tensor must be tensor"),
        *(
            (partial(getattr(comm_func, name), 3), f"^For {name}, the input tensor must be tensor")
            for name in TAKE_TENSORS
        ),
        (lambda: comm_func.reduce(3, 0), "^For reduce, the input tensor must be tensor"),
        *((partial(getattr(comm_func, name), x, "a"), f"^For {name}, the {root} must be int") for name, root in ROOTS),
        (lambda: comm_func.all_to_all_with_output_shape([x], 3), "^Expected list or tuple, but got <class 'int'>"),
        (lambda: comm_func.all_to_all_with_output_shape(3, [x]), "^Expected list or tuple, but got <class 'int'>"),
        (lambda: comm_func.all_to_all_with_output_shape([x], [3]), "^Expected tensor, but got <class 'int'>$"),
        (
            lambda: comm_func.all_to_all_with_output_shape([3], [x]),
            r"^Expected tensor or tuple, but got <class 'int'>\.",
        ),
        (
            lambda: comm_func.all_to_all_with_output_shape([x, x], [x, tensor(1, kind=np.int32)]),
            "input dtype must be the same, but got Float32 and Int32",
        ),
        (lambda: comm_func.all_to_all_single_with_output_shape((1,), 3), "^Expected tensor, but got <class 'int'>"),
        (
            lambda: comm_func.all_to_all_single_with_output_shape(3, x),
            "^Expected tensor or tuple, but got <class 'int'>",
        ),
        (lambda: comm_func.all_to_all_v_c(3, x, [1]), "^Expected tensor, but got <class 'int'>"),
        (lambda: comm_func.all_to_all_v_c(x, 3, [1]), "^Expected tensor, but got <class 'int'>"),
        (lambda: comm_func.all_to_all_v_c(x, x, [1.0]), "send_count_matrix elements must be of type int"),
        (lambda: comm_func.all_to_all_v_c(x, x, [1], 3), "The argument 'group' must be type of string"),
        (lambda: comm_func.all_to_all_v_c(x, x, [1], None, 1), "The argument 'async_op' must be a bool"),
        (lambda: comm_func.batch_isend_irecv(3), "p2p_op_list must be type of list, but got type of 3"),
        (lambda: comm_func.P2POp("irecv", (1,), 0, recv_dtype="a"), "recv_dtype must be type of mindspore dtype"),
        (lambda: comm_func.send(x, "a"), "the argument 'world_rank_id' must be type of int"),
        (lambda: comm_func.all_reduce(x, 1), "For all_reduce, the input op type must be str"),
        (lambda: comm_func.all_reduce(x, "avg"), "must be one of sum, prod, min, max"),
        (lambda: comm_func.broadcast(x, "a"), "For broadcast, the src must be int"),
        (lambda: comm_func.barrier(1), "group must be type of string, but got <class 'int'>"),
        (lambda: comm_func.P2POp(1, x, 0), "op must be type of string or function"),
        (lambda: comm_func.P2POp("isend", x, "a"), "peer must be type of int"),
        (lambda: comm_func.P2POp("isend", 3, 0), "Expected ``tensor`` to be type of tuple or Tensor"),
        (lambda: comm_func.batch_isend_irecv([]), "p2p_op_list can not be empty list"),
        (lambda: comm_func.batch_isend_irecv([3]), "must be type of P2POp"),
        (lambda: comm_func.all_to_all_v_c(x, x, (1,)), "send_count_matrix must be list"),
        (lambda: comm_func.all_to_all_v_c(x, x, [1, 2]), "send_count_matrix must be square matrix, but got 2"),
        (lambda: dist.all_reduce(x, "foo"), "must be one of sum, prod, min, max, avg"),
        (lambda: dist.all_reduce(x, "sum", 1), "The argument 'group' must be type of string, .*<class 'int'>"),
        (lambda: dist.all_reduce(x, "sum", None, 1), "The argument 'async_op' must be a bool, but got <class 'int'>"),
        (lambda: dist.all_gather_into_tensor(3, x), "the output tensor must be tensor"),
        (lambda: dist.all_gather([x, x], x), "len must be equal to group rank size, but got 2"),
        (lambda: dist.all_gather([x], tensor(1, 2)), r"the output shape should be \(1,\), but got \(2,\)"),
        (lambda: dist.gather(x, [tensor(1, 2)]), "list tensor shape must be equal to tensor shape"),
        (lambda: dist.scatter(x, [x, tensor(1, 2)]), "tensor_lists shape must be the same"),
        (lambda: dist.P2POp("foo", x, 0), "Expected op to be of type isend or irecv, but got foo"),
        (lambda: dist.batch_isend_irecv([]), "p2p_op_list can not be empty list"),
        (lambda: dist.batch_isend_irecv([dist.P2POp("isend", x, 0), 3]), "elements in p2p_op_list must be .* P2POp"),
        (lambda: dist.all_gather_object([1, 2], 1), "must be equal to group rank size, but got 2"),
        (lambda: dist.broadcast_object_list([]), "The object_list can not be empty"),
        (lambda: dist.gather_object(1, []), "must be equal to group rank size, but got 0"),
        (lambda: dist.all_reduce(tensor(3, kind=np.int32), "avg"), "the average of"),
        (lambda: dist.new_group((0,)), "ranks must be list, but got <class 'tuple'>"),
        (lambda: dist.new_group([0], backend="gloo"), "the input backend must be hccl or mccl, but got gloo"),
        (lambda: P.AllReduce(group=1), "For 'AllReduce', the 'group' must be str, but got int"),
        (lambda: P.AllGather(group=3), "For 'AllGather', the type of 'group' should be 'str', but got type 'int'"),
        (lambda: P.ReduceScatter(1), "For 'ReduceScatter', the type of 'op' should be 'str', but got type 'int'"),
        (lambda: P.Broadcast("a"), "For 'Broadcast', the type of 'root_rank' should be 'int', but got type 'str'"),
        (lambda: P.AlltoAll(1.0, 0, 0), "The type of '<class 'int'>' must be 'int', but got 'float'"),
        (lambda: P.AlltoAllV(block_size=1.0), "For 'AlltoAllV', the type of 'block_size' should be 'int'"),
        (lambda: P.Receive(0, 0, [1], ms.bool_), "For 'Receive', the type of 'dtype' must be in .* but got Bool"),
        (lambda: P.BatchISendIRecv("a", [0]), "the type of 'op_types' should be one of .*but got type 'str'"),
    ]


def test_wrong_arguments_are_refused_with_the_texts_of_mindspore():
    def main(rank):
        for call, text in wrong(tensor(1)):
            with pytest.raises(TypeError, match=text):
                call()

    on_ranks(main, 1)


def test_other_refusals():
    def main(rank):
        x = tensor(1, 2, 3)
        for call, kind, text in (
            (lambda: dist.send(x, rank), ValueError, "destination rank should not be the same as the rank"),
            (lambda: dist.send(x, 9), KeyError, "'world_rank_id' is not found in GROUP_RANKS"),
            (
                lambda: dist.get_group_rank("nobody", 0),
                KeyError,
                "'group' is not found in GROUP_RANKS, 'group' : nobody",
            ),
            (lambda: dist.broadcast(x, 5), RuntimeError, "doesn't contain the global rank 5"),
            (lambda: dist.reduce_scatter_tensor(x, x), ValueError, r"got input_shape\[0\]: 3, rank_size: 2"),
            (lambda: dist.all_gather_into_tensor(x, x), ValueError, r"must be equal to \[const vector\]\{6\}, but got"),
            (lambda: comm_func.P2POp("foo", x, 0), ValueError, "Expected ``op`` to be of type ``isend`` or `irecv``"),
            (
                lambda: comm_func.all_to_all_v_c(tensor([1, 2]), x, [1] * 4),
                ValueError,
                "must be of equal size, but got 1 and 2",
            ),
            (
                lambda: comm_func.all_to_all_single_with_output_shape((2,), x),
                ValueError,
                "^input shape at dim 0 must be divided by world_size, but got 3 and 2",
            ),
            (
                lambda: comm_func.all_to_all_single_with_output_shape((3,), tensor(1, 2)),
                ValueError,
                "^output shape at dim 0 must be divided by world_size, but got 3 and 2",
            ),
            (
                lambda: comm_func.batch_isend_irecv([comm_func.P2POp("irecv", (1,), 0)]),
                ValueError,
                "'recv_dtype' of 0th P2POp in p2p_op_list is None",
            ),
            (
                lambda: comm_func.send(x, 9),
                KeyError,
                "'world_rank_id' is not found in GROUP_RANKS.*'world_rank_id' : 9",
            ),
            (lambda: comm_func.send(x, 1, "nobody"), KeyError, "'group' is not found in GROUP_RANKS, 'group' : nobody"),
            (lambda: comm_func.P2POp("isend", x, 0, None, 1), NotImplementedError, "``tag`` not support yet"),
            (lambda: dist.P2POp("isend", x, 0, None, 1), NotImplementedError, "tag is not support yet"),
            (lambda: P.BatchISendIRecv(["isend"], [0, 1]), ValueError, "op_types and remote_ranks must be the same"),
            (lambda: P.NeighborExchangeV2([9], [0] * 4, [0], [0] * 4, "NCHW"), ValueError, r"in range of \[0, 2\)"),
            (lambda: P.AllReduce(group="nobody")(x), RuntimeError, "The group nobody does not exist"),
        ):
            with pytest.raises(kind, match=text):
                call()

    on_ranks(main)


def test_mint_is_refused_in_a_graph():
    class InPlace(nn.Cell):
        def construct(self, x):
            mint.distributed.all_reduce(x)
            return x

    def main(rank):
        with pytest.raises(NotImplementedError, match="writes into its arguments exists in PYNATIVE mode only"):
            InPlace()(tensor(1))

    on_ranks(main, 1, ms.GRAPH_MODE)
