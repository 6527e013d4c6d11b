"""Several ranks in one process: sessions that share a scheduler."""

import numpy as np
import pytest

from dumpsim.core.errors import DeviceError
from dumpsim.core.settings import RunSettings
from dumpsim.device.faults import make_plan
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.task import Task, TaskKind
from dumpsim.runtime.session import Session
from dumpsim.world import current, launch


class Barrier:
    """A gate that opens when every rank has reached it, as a collective does."""

    def __init__(self, ranks):
        self.missing = set(ranks)
        self.time_ns = 0
        self.waiters = []

    def gate(self, rank):
        barrier = self

        class Gate:
            failure = None

            def enter(self, waiter, time_ns):
                barrier.waiters.append(waiter)

            def leave(self, time_ns):
                pass

            def abandon(self, failure):
                pass

            def open_ns(self):
                return None if barrier.missing else barrier.time_ns

            def give_up(self, report):
                return None

            def waits_for(self):
                return f"ranks {sorted(barrier.missing)}"

        return Gate()

    def arrive(self, rank):
        def work(task):
            self.missing.discard(rank)
            self.time_ns = max(self.time_ns, task.end_ns)
            if not self.missing:
                for waiter in self.waiters:
                    waiter.wake()

        return work


@pytest.fixture
def ranks(operators):
    scheduler = Scheduler()
    return [
        Session(RunSettings(), rank=rank, device_id=rank, environment={}, scheduler=scheduler, find=operators)
        for rank in range(3)
    ]


def meet(session, barrier, log, cost_ns):
    stream = session.device.stream(1)
    arrive = Task(kind=TaskKind.HCCL, name="arrive", work=barrier.arrive(session.rank), cost_ns=cost_ns)
    stream.launch(arrive)
    leave = Task(kind=TaskKind.HCCL, name="AllReduce", work=lambda task: log.append(session.rank))
    leave.gate = barrier.gate(session.rank)
    return stream.launch(leave)


def test_a_collective_waits_for_the_slowest_rank(ranks):
    barrier, log = Barrier(range(3)), []
    tasks = [meet(session, barrier, log, cost) for session, cost in zip(ranks, (10, 10**9, 1000), strict=True)]
    ranks[0].synchronize()
    assert log == [0]  # its own work is done
    for session in ranks[1:]:
        session.synchronize()
    assert log == [0, 1, 2]
    assert len({task.start_ns for task in tasks}) == 1
    assert ranks[0].clock.now_ns == ranks[1].clock.now_ns


def test_a_missing_rank_is_named(ranks):
    barrier, log = Barrier(range(3)), []
    for session in ranks[:2]:
        meet(session, barrier, log, 10)
    with pytest.raises(DeviceError) as caught:
        ranks[1].synchronize()
    lines = str(caught.value).splitlines()
    waiting = "rank 0 device 0 stream 1: task 1 (KERNEL_HCCL, AllReduce) waits for ranks [2]"
    assert lines[1] == f"  {waiting}; 0 tasks queued after it"
    assert lines[2].startswith("  rank 1 device 1 stream 1: task 1 (KERNEL_HCCL, AllReduce) waits for ranks [2]")


def test_ranks_keep_their_own_clock_ids_memory_and_faults(net, ranks):
    plan = make_plan([{"kind": "overflow", "op": "Neg", "value": 9, "rank": 1}])
    x = np.ones(2, np.float32)
    results = []
    for session in ranks[:2]:
        session.inject(plan)
        b = net(graph_id=session.ids.graph())
        results.append(session.execute(b.program(b.op("Neg", b.input("x", (2,)))), [x])[0].tolist())
    assert results == [[-1, -1], [9, -1]]
    assert [session.ids.graph() for session in ranks] == [1, 1, 0]
    assert ranks[0].clock.now_ns == ranks[1].clock.now_ns > ranks[2].clock.now_ns
    assert ranks[0].clock is not ranks[1].clock


def test_gradients_of_a_compiled_loop_by_the_weights_of_each_rank():
    """Ranks share its program, and each has Parameters of its own; w is read twice, and v is not read."""
    import dumpsim.frontends.mindspore as ms
    from dumpsim.frontends.mindspore import nn, ops

    class Power(nn.Cell):
        def __init__(self, values):
            super().__init__()
            self.w = ms.Parameter(ms.Tensor(values), name="w")
            self.v = ms.Parameter(ms.Tensor(values), name="v")

        @ms.jit
        def construct(self, x, n):
            y = x * self.w
            while n > 0:
                y = y * self.w
                n = n - 1
            return y

    def main():
        ms.set_context(mode=ms.PYNATIVE_MODE)
        values = np.array([2, 3], np.float32) + current().rank
        net = Power(values)
        by_weights = ops.GradOperation(get_by_list=True)(net, ms.ParameterTuple(net.trainable_params()))
        x = ms.Tensor(np.array([1, 2], np.float32))
        for n in (0, 1, 3):
            w, v = (slope.asnumpy() for slope in by_weights(x, ms.Tensor(np.int32(n))))
            assert not v.any()
            assert w.tolist() == ((n + 1) * x.asnumpy() * values**n).tolist()
        return current().rank

    for ranks in (1, 2):
        assert launch(main, ranks=ranks) == list(range(ranks))
