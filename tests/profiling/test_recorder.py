"""The recorder, told by hand what a session does: each record follows from the events below."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from dumpsim.core.events import NO_GRAPH, GraphEvent, RunEvent, TaskEvent
from dumpsim.profiling.record import Iteration, Operand, Step
from dumpsim.profiling.recorder import Recorder


class Session:
    """What a recorder needs of a session."""

    def __init__(self):
        prices = SimpleNamespace(launch_ns=3, bandwidth=5, flops=7)
        self.chip = SimpleNamespace(name="910B", prices=prices, cube_ops=["MatMul"])
        self.target, self.rank, self.device_id = "Ascend", 12, 4
        self.clock = SimpleNamespace(now_ns=100)
        self.taps, self.traces = [], []
        self.add_tap, self.remove_tap, self.trace_tasks = self.taps.append, self.taps.remove, self.traces.append

    def task(self, name="Default/Add-op1", kind="KERNEL_AIVEC", start=0, end=1, stream=1, number=1):
        kind = SimpleNamespace(value=kind)
        self.traces[-1](
            SimpleNamespace(name=name, kind=kind, stream_id=stream, task_id=number, serial=9, launched_ns=0,
                            start_ns=start, end_ns=end)
        )  # fmt: skip


def run(kind="train", root=3, model=8, name=""):
    return SimpleNamespace(kind=kind, root_graph_id=root, model_id=model, model_name=name)


def recording(*points):
    session, recorder = Session(), Recorder(*points)
    recorder.start(session)
    return session, recorder


def test_a_profile_has_what_the_session_is_and_when_it_was_recorded():
    session, recorder = recording()
    assert recorder.is_on
    assert (session.taps, session.traces[-1].__self__) == ([recorder], recorder)
    session.clock.now_ns = 250
    session.task("Default/Copy", "MEMCPY_ASYNC")
    found = recorder.stop()
    assert (recorder.is_on, session.taps, session.traces[-1]) == (False, [], None)
    assert (found.chip, found.target, found.rank, found.device_id) == ("910B", "Ascend", 12, 4)
    assert (found.start_ns, found.end_ns, found.launch_ns, found.bandwidth, found.matrix_flops) == (100, 250, 3, 5, 7)
    assert found.cube_ops == {"MatMul"}
    assert [(task.name, task.op_type, task.iteration, task.model_id) for task in found.tasks] == [
        ("Default/Copy", "", -1, -1)
    ]
    recorder.start(session)
    assert recorder.stop().tasks == ()  # what was recorded is dropped


@pytest.mark.parametrize(
    ("name", "points", "expected"),
    [
        ("", (), (None, None)),
        ("Gradients/Default/Mul-op2", (), (5, 40)),
        ("Gradients/Default/Mul-op2", ("Default/Add-op1",), (20, 40)),
        ("Gradients/Default/Mul-op2", ("", "Default/Add-op1"), (5, 30)),
        ("Default/Mul-op2", ("", "Default/Add-op1"), (5, 30)),
        ("Default/Mul-op2", ("", "Default/None"), (5, None)),
        ("Default/Mul-op2", ("Default/Add-op1",), (20, None)),
        ("Default/Mul-op2", ("Default/None",), (None, None)),
    ],
)
def test_the_passes_of_an_iteration_lie_between_its_points(name, points, expected):
    session, recorder = recording(*points)
    session.task(start=0, end=2)  # before
    recorder.run_begin(run())
    session.task("Default/Cast-op0", "MEMCPY_ASYNC", 4, 90)  # no kernel
    session.task("Default/First-op0", start=5, end=8)
    session.task("Default/Add-op1", start=20, end=25)
    session.task("Default/Add-op1", start=28, end=30)
    if name:
        session.task(name, start=30, end=40)
    recorder.run_end(run())
    session.task(start=95, end=99)
    (found,) = recorder.stop().iterations
    assert (found.fp_start_ns, found.bp_end_ns) == expected
    assert (found.model_id, found.number, found.first_ns, found.end_ns, found.previous_end_ns) == (3, 1, 4, 90, None)


def test_iterations_of_a_model_are_counted_and_follow_each_other():
    session, recorder = recording()
    for at, event in enumerate([run(), run(name="net"), run(), run("data"), run(root=4), run()]):
        recorder.run_begin(event)
        if event.kind == "train" and event.root_graph_id == 3:
            session.task(start=10 * at, end=10 * at + 5)
        recorder.run_end(event)
    session.task()
    found = recorder.stop()
    assert [(one.model_id, one.number, one.previous_end_ns, one.end_ns) for one in found.iterations] == [
        (3, 1, None, 5), (8, 1, None, 15), (3, 2, 5, 25), (4, 1, None, None), (3, 3, 25, 55)
    ]  # fmt: skip
    assert [task.iteration for task in found.tasks] == [0, 1, 2, 4, -1]
    recorder.start(session)
    recorder.run_begin(run())
    recorder.run_end(run())
    (last,) = recorder.stop().iterations
    assert last == Iteration(model_id=3, number=4, previous_end_ns=55)


def test_the_end_of_a_run_that_has_not_begun_or_of_another_kind_ends_nothing():
    session, recorder = recording()
    recorder.run_end(run())  # it began before the recorder was on
    recorder.run_begin(run())
    session.task(start=1, end=2)
    recorder.run_begin(run("data"))
    recorder.run_end(run("data"))
    session.task(start=3, end=4)
    recorder.run_end(run())
    found = recorder.stop()
    assert [task.iteration for task in found.tasks] == [0, 0]
    assert [one.end_ns for one in found.iterations] == [4]


def test_a_run_that_outlasts_its_profile_is_no_part_of_the_next_one():
    session, recorder = recording()
    recorder.run_begin(run())
    session.task()
    assert [task.iteration for task in recorder.stop().tasks] == [0]
    recorder.start(session)
    session.task()
    recorder.run_end(run())
    found = recorder.stop()
    assert ([task.iteration for task in found.tasks], found.iterations) == ([-1], ())


def test_steps_of_the_script_have_times_of_the_host():
    session, recorder = recording()
    recorder.end_step(0)  # has not begun
    assert recorder.stop().steps == ()
    session, recorder = Session(), Recorder()
    recorder.begin_step()  # before there is a session
    recorder.end_step(0)
    session.clock.now_ns = 7
    recorder.start(session)
    session.clock.now_ns = 10
    recorder.end_step(1)
    recorder.end_step(2)  # has not begun
    session.clock.now_ns = 12
    recorder.begin_step()
    session.clock.now_ns = 20
    recorder.end_step(3)
    recorder.begin_step()
    assert recorder.stop().steps == (Step(1, 7, 10), Step(3, 12, 20))
    recorder.start(session)
    recorder.end_step(4)  # it ended with the profile
    assert recorder.stop().steps == ()
    recorder.begin_step()
    recorder.start(session)
    recorder.stop()
    recorder.start(session)
    recorder.end_step(5)
    assert recorder.stop().steps == ()


def test_a_kernel_has_the_operands_that_were_announced():
    def ref(address, shape):
        kind = SimpleNamespace(name="float16")
        return SimpleNamespace(address=address, device_shape=shape, device_dtype=kind, device_format="NZ", nbytes=6)

    session, recorder = recording()
    event = SimpleNamespace(
        op_type="MatMul", model_id=8, model_name="", root_graph_id=3, stream_id=2, task_id=5, flops=77,
        operands=[ref(64, (1, 3)), ref(0, ()), ref(96, (3,))], outputs=[ref(0, (2,))],
    )  # fmt: skip
    recorder.before_task(event)
    event.model_name, event.task_id, event.op_type = "net", 6, "Mul"
    recorder.before_task(event)
    session.task(stream=2, number=4)
    session.task("Default/X", "EVENT_WAIT", stream=2, number=5)  # takes nothing of the kernel
    session.task(stream=2, number=5)
    session.task(stream=2, number=6, kind="KERNEL_HCCL")
    session.task(stream=2, number=6)  # told once
    recorder.before_task(event)  # it does not run before the profile ends
    found = recorder.stop().tasks
    assert [(task.op_type, task.model_id, task.flops) for task in found] == [
        ("Add-op1", -1, None), ("", -1, None), ("MatMul", 3, 77), ("Mul", 8, 77), ("Add-op1", -1, None)
    ]  # fmt: skip
    assert found[2].inputs == (Operand((1, 3), "float16", "NZ", 6), Operand((3,), "float16", "NZ", 6))
    assert found[2].outputs == (Operand((2,), "float16", "NZ", 6),)
    assert (found[0].inputs, found[0].outputs) == (None, None)
    recorder.start(session)
    session.task(stream=2, number=6)
    assert [task.op_type for task in recorder.stop().tasks] == ["Add-op1"]


@pytest.mark.parametrize(
    ("kind", "graph", "error", "wanted"),
    [(TaskEvent, NO_GRAPH, None, False), (TaskEvent, NO_GRAPH, "failed", True), (TaskEvent, 0, None, True),
     (GraphEvent, 0, None, False), (RunEvent, NO_GRAPH, None, True)],
)  # fmt: skip
def test_graphs_and_operators_that_tell_themselves_are_not_listened_to(kind, graph, error, wanted):
    assert Recorder().wants(Mock(spec=kind, graph_id=graph, error=error)) is wanted
