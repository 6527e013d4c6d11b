"""Ranks of one process: turns, failures, deadlocks, and the state of each rank."""

import os
import random
import subprocess
import sys
import threading
from contextlib import nullcontext
from contextvars import ContextVar, copy_context

import numpy as np
import pytest

from dumpsim.core.errors import BadInputError, DeviceError, PeerError
from dumpsim.core.settings import RunSettings
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.rendezvous import Rendezvous
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.stream import TaskFailure
from dumpsim.device.task import Task, TaskKind
from dumpsim.world import RankContext, current, launch
from dumpsim.world.ending import RankStopped


class Machine:
    """What a front end would have in its rank context: a device, and the group of all ranks."""

    def __init__(self):
        context = current()
        self.rank = context.rank
        self.device = Device(
            chip("910B"),
            rank=context.rank,
            device_id=context.device_id,
            scheduler=context.world.get(Scheduler),
            environment={},
        )
        self.group = context.world.get(_Groups).world(context.size)
        self.buffer = self.device.memory.allocate(4)

    def run(self, work, *, name="kernel", cost_ns=1000):
        self.device.stream(0).launch(Task(kind=TaskKind.AICORE, name=name, work=work, cost_ns=cost_ns))

    def all_reduce(self, value):
        """Launch a sum over all ranks; the result lies in the buffer."""
        values = self.buffer.array(np.dtype(np.float32), (1,))

        def fill(task):
            values[0] = value

        self.run(fill, name="Fill")
        gate = self.group.join(self.rank, lambda: values)

        def work(task):
            values[:] = gate.exchange(sum)

        self.device.stream(0).launch(Task(kind=TaskKind.HCCL, name="AllReduce", work=work, gate=gate))

    def wait(self):
        self.device.synchronize()
        return float(self.buffer.array(np.dtype(np.float32), (1,))[0])


class _Groups:
    def __init__(self):
        self._world: Rendezvous | None = None

    def world(self, size):
        if self._world is None:
            self._world = current().world.get(Scheduler).rendezvous(range(size), "world")
        return self._world


def machine():
    return current().get(Machine)


def test_each_rank_returns_its_own():
    assert launch(lambda a, b: (current().rank, current().size, a + b), ranks=3, args=(1, 2)) == [
        (0, 3, 3),
        (1, 3, 3),
        (2, 3, 3),
    ]
    assert launch(lambda: None, ranks=1) == [None]


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_sum_over_ranks(ranks):
    def step():
        m = machine()
        sums = []
        for value in range(5):
            m.all_reduce(value + m.rank)
            sums.append(m.wait())
        return sums

    expected = [float(sum(value + rank for rank in range(ranks))) for value in range(5)]
    assert launch(step, ranks=ranks) == [expected] * ranks


def test_a_rank_runs_to_its_end_unless_it_waits_for_another_one():
    order = []

    def alone():
        m = machine()
        for at in range(3):
            order.append((m.rank, at))
            m.run(lambda task: None)
            m.wait()

    launch(alone, ranks=3)
    assert order == [(rank, at) for rank in range(3) for at in range(3)]


def test_ranks_take_turns_from_the_one_that_waits():
    order = []

    def step():
        m = machine()
        for at in range(2):
            order.append((m.rank, at))
            m.all_reduce(1)
            m.wait()
        order.append((m.rank, "end"))

    launch(step, ranks=3)
    # all meet before one of them goes on
    assert order == [
        (0, 0), (1, 0), (2, 0),
        (0, 1), (1, 1), (2, 1),
        (0, "end"), (1, "end"), (2, "end"),
    ]  # fmt: skip


def test_a_rank_that_waits_first_waits():
    """It synchronises before its peer has launched, which once was a deadlock."""

    def step():
        m = machine()
        if m.rank == 1:
            return None
        m.all_reduce(m.rank)
        return m.wait()

    def late():
        m = machine()
        m.all_reduce(10**m.rank)
        return m.wait()

    assert launch(late, ranks=2) == [11, 11]
    with pytest.raises(DeviceError, match="deadlock"):
        launch(step, ranks=2)


def test_a_deadlock_is_reported_exactly():
    def step():
        m = machine()
        if m.rank == 3:
            return
        if m.rank == 2:
            m.device.stream(1).wait(m.device.event())
        else:
            m.all_reduce(1)
            m.run(lambda task: None)
        m.wait()

    with pytest.raises(DeviceError) as caught:
        launch(step, ranks=4)
    assert str(caught.value).splitlines() == [
        "deadlock: no stream can progress and work is left",
        "  rank 0 device 0 stream 0: task 1 (KERNEL_HCCL, AllReduce) waits for ranks 2, 3 to enter round 0 of group "
        "'world'; 1 tasks queued after it",
        "  rank 1 device 1 stream 0: task 1 (KERNEL_HCCL, AllReduce) waits for ranks 2, 3 to enter round 0 of group "
        "'world'; 1 tasks queued after it",
        "  rank 2 device 2 stream 1: task 0 (STREAM_WAIT_EVENT, wait for event 0) waits for event 0, which no stream "
        "records; 0 tasks queued after it",
        "  rank 3: its program has ended [DS-DEV-002]",
    ]
    assert caught.value.__notes__ == ["raised in rank 0 of 4"]


def test_the_first_error_is_raised_with_its_rank_and_the_others_end():
    ended = []

    def step():
        m = machine()
        try:
            for at in range(3):
                if (m.rank, at) == (2, 1):
                    raise ValueError("bad luck")
                m.all_reduce(1)
                m.wait()
        except RankStopped as stopped:
            ended.append((m.rank, str(stopped)))
            raise
        finally:
            ended.append(m.rank)
            if m.rank != 2:
                m.all_reduce(1)
                with pytest.raises(RankStopped):  # no other rank arrives any longer
                    m.wait()

    with pytest.raises(ValueError, match="bad luck") as caught:
        launch(step, ranks=4)
    assert caught.value.__notes__ == ["raised in rank 2 of 4"]
    text = "rank {} is stopped: rank 2 has raised ValueError"
    assert ended == [2, (0, text.format(0)), 0, (1, text.format(1)), 1, (3, text.format(3)), 3]


@pytest.mark.parametrize("fails", [False, True])
def test_what_the_ranks_share_is_closed_after_all_of_them_however_they_end(fails):
    done = []

    def step():
        current().world.at_close(lambda: done.append("world"))
        current().at_close(lambda: done.append(current().rank))
        if fails and current().rank == 1:
            raise ValueError("bad luck")

    with pytest.raises(ValueError, match="bad luck") if fails else nullcontext():
        launch(step, ranks=2)
    assert done == [0, 1, "world", "world"]


def test_ranks_that_have_not_started_do_not_start():
    started = []

    def step():
        started.append(current().rank)
        raise SystemExit(current().rank)

    with pytest.raises(SystemExit) as caught:
        launch(step, ranks=4)
    assert (caught.value.code, started) == (0, [0])


def test_an_exception_of_user_code_does_not_pass_for_the_stop():
    def step():
        m = machine()
        if m.rank == 1:
            raise ValueError("first")
        try:
            m.all_reduce(1)
            m.wait()
        except Exception:
            return "caught"
        except BaseException:
            raise TypeError("second") from None

    with pytest.raises(ValueError, match="first"):
        launch(step, ranks=2)


def test_the_rank_whose_kernel_failed_is_blamed_not_the_one_that_waited_for_it():
    def step():
        m = machine()
        if m.rank == 2:

            def bad(task):
                raise TaskFailure(DeviceError("aicore error"))

            m.run(bad, name="bad")
        m.all_reduce(1)
        m.wait()

    with pytest.raises(DeviceError, match="aicore error") as caught:
        launch(step, ranks=4)
    assert not isinstance(caught.value, PeerError)
    assert "raised in rank 2 of 4" in caught.value.__notes__


def test_what_a_task_raises_reaches_its_own_rank():
    """Rank 1's wait runs the task of rank 0 that raises."""
    seen = []

    def step():
        m = machine()
        if m.rank == 0:
            m.all_reduce(1)

            def full(task):
                raise OSError("disk full")

            m.run(full)
        else:
            m.all_reduce(1)
            m.run(lambda task: None, cost_ns=10**6)
        try:
            m.wait()
        except OSError as error:
            seen.append((m.rank, str(error)))
        return m.rank

    assert launch(step, ranks=2) == [0, 1]
    assert seen == [(0, "disk full")]


def test_work_runs_in_the_context_of_its_rank():
    seen = []

    def step():
        m = machine()
        m.all_reduce(1)
        m.run(lambda task, rank=m.rank: seen.append((rank, current().rank)))
        m.run(lambda task, rank=m.rank: seen.append((rank, current().rank)), cost_ns=10**6)
        m.wait()

    launch(step, ranks=3)
    assert sorted(seen) == [(rank, rank) for rank in range(3) for _ in range(2)]


def test_a_rank_that_ends_waits_for_its_device():
    done = []
    launch(lambda: machine().run(lambda task: done.append(current().rank)), ranks=2)
    assert done == [0, 1]


def test_close_actions_of_a_rank_run_in_it_also_after_an_error():
    closed = []

    def step():
        current().at_close(lambda: closed.append(current().rank))
        m = machine()
        if m.rank == 1:
            raise ValueError("x")
        m.all_reduce(1)
        m.wait()

    with pytest.raises(ValueError, match="x"):
        launch(step, ranks=2)
    assert sorted(closed) == [0, 1]


def test_an_error_of_a_close_action_is_a_note_of_the_rank_s_error():
    def end():
        raise OSError("no space")

    def program():
        current().at_close(end)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong") as caught:
        launch(program, ranks=1)
    assert "then, at the end of the rank: OSError: no space" in caught.value.__notes__


def test_each_rank_has_its_own_environment_directory_and_random_states(tmp_path):
    before = dict(os.environ), os.getcwd(), random.getstate()
    folders = [tmp_path / str(rank) for rank in range(2)]
    for folder in folders:
        folder.mkdir()

    def step():
        m = machine()
        os.environ["OWN"] = f"value {m.rank}"
        os.chdir(folders[m.rank])
        random.seed(m.rank)
        drawn = []
        for _ in range(3):
            m.all_reduce(1)
            m.wait()
            drawn.append(random.random())
        return os.environ["OWN"], os.getcwd(), drawn, os.environ["RANK_ID"], os.environ["RANK_SIZE"], os.environ["WORD"]

    results = launch(step, ranks=2, environment={"WORD": "all"})
    for rank, result in enumerate(results):
        expected = random.Random(rank)
        drawn = [expected.random() for _ in range(3)]
        assert result == (f"value {rank}", str(folders[rank]), drawn, str(rank), "2", "all")
    assert (dict(os.environ), os.getcwd(), random.getstate()) == before


def test_each_rank_has_its_own_context_variables():
    variable = ContextVar("variable", default="outside")

    def step():
        m = machine()
        variable.set(f"rank {m.rank}")
        m.all_reduce(1)
        m.wait()
        return variable.get()

    assert launch(step, ranks=3) == ["rank 0", "rank 1", "rank 2"]
    assert variable.get() == "outside"


def test_settings_reach_every_rank():
    def step():
        return RunSettings.from_environment().seed

    assert launch(step, ranks=2, settings=RunSettings(seed=7)) == [7, 7]


def test_a_thread_of_a_rank_cannot_wait_for_other_ranks():
    def step():
        m = machine()
        errors = []

        def wait():
            try:
                m.wait()
            except DeviceError as error:
                errors.append(str(error))

        m.all_reduce(1)
        if m.rank == 0:
            thread = threading.Thread(target=wait)
            thread.start()
            thread.join()
        m.wait()
        return errors

    assert launch(step, ranks=2) == [
        [
            "rank 0: a thread of the script cannot wait for other ranks of its process; "
            "dumpsim msrun gives each rank a process of its own"
        ],
        [],
    ]


def test_a_thread_that_runs_in_a_copied_context_belongs_to_its_rank():
    def step():
        seen = []
        for run in (lambda target: target(), copy_context().run):
            thread = threading.Thread(target=run, args=[lambda: seen.append(current().size)])
            thread.start()
            thread.join()
        return seen

    assert launch(step, ranks=2) == [[1, 2]] * 2


def test_a_launch_inside_a_rank():
    def inner():
        m = machine()
        m.all_reduce(1)
        return m.wait()

    def outer():
        m = machine()
        m.all_reduce(2)
        results = launch(inner, ranks=3)
        return m.wait(), results, current().rank

    assert launch(outer, ranks=2) == [(4, [3] * 3, 0), (4, [3] * 3, 1)]


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"transport": "mpi"}, "transport: unknown transport 'mpi'; allowed: local"),
        ({"ranks": 0}, "ranks: 0 is not a number of ranks"),
    ],
)
def test_bad_arguments_are_named(keywords, text):
    with pytest.raises(BadInputError, match=text):
        launch(lambda: None, **keywords)


def test_a_hundred_ranks():
    def step():
        m = machine()
        for _ in range(3):
            m.all_reduce(1)
            m.wait()
        return m.wait()

    assert launch(step, ranks=100) == [100.0] * 100


def test_the_launching_process_keeps_its_own_context():
    outside = current()
    assert launch(lambda: current() is outside, ranks=2) == [False, False]
    assert current() is outside
    assert isinstance(outside, RankContext)


def test_importing_dumpsim_loads_no_third_party_package():
    code = "import sys; before = set(sys.modules); import dumpsim; print(*set(sys.modules) - before)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    names = {name.partition(".")[0] for name in output.split()}
    assert names - set(sys.stdlib_module_names) == {"dumpsim"}
