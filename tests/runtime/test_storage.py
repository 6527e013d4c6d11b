"""Weights in ranks: a value for each rank, and bytes that ranks share until one of them writes."""

import numpy as np
import pytest

from dumpsim.core.errors import OutOfMemoryError
from dumpsim.core.settings import RunSettings
from dumpsim.runtime.session import Session

ONE = np.ones(3, np.float32)


@pytest.fixture
def counter(net):
    """A program that adds its argument to a weight, and the weight."""
    b = net()
    w, m = b.weight("w", np.zeros(3, np.float32)), b.weight("m", np.zeros(3, np.float32))
    return b.program(b.op("ApplyMomentum", w, m, -1.0, b.input("g", (3,)), 0.0)), w.storage


def test_each_session_has_its_own_value_of_a_weight(counter, operators):
    program, _ = counter
    sessions = [Session(RunSettings(), rank=rank, environment={}, find=operators) for rank in range(3)]
    for run in (1, 2):
        for session in sessions:
            assert session.execute(program, [ONE])[0].tolist() == [run] * 3


def test_a_value_that_the_host_sets_reaches_every_session(counter, operators):
    program, weight = counter
    sessions = [Session(RunSettings(), rank=rank, environment={}, find=operators) for rank in range(2)]
    for session in sessions:
        session.execute(program, [ONE])
    weight._array = np.full(3, 5, np.float32)
    assert [s.execute(program, [ONE])[0].tolist() for s in sessions] == [[6] * 3] * 2
    assert [s.execute(program, [ONE])[0].tolist() for s in sessions] == [[7] * 3] * 2


def test_what_is_written_of_a_weight_is_the_array_itself_or_its_part(counter, operators):
    program, weight = counter
    session = Session(RunSettings(), environment={}, find=operators)
    session.execute(program, [ONE])
    shown = weight._array
    part = shown[1:]
    assert session.writable(shown) is shown
    assert session.writable(part) is part


def test_a_script_that_changes_its_target_takes_its_weights_along(counter, operators):
    program, weight = counter
    session = Session(RunSettings(), environment={}, find=operators)
    session.execute(program, [ONE])
    before = session.compile(program)
    session.configure(target="CPU")
    assert session.compile(program) is not before  # which is planned for the other device
    session.configure(target="Ascend")
    session.configure(target="CPU")
    assert weight._array.tolist() == [1] * 3
    assert session.execute(program, [ONE])[0].tolist() == [2] * 3


def test_a_rank_in_a_shared_process_caches_no_buffers_between_runs(counter, operators):
    from dumpsim.world.context import RankContext, World, use

    program, _ = counter
    kept = []
    for ranks in (1, 2):
        with use(RankContext(environment={}, world=World(ranks=ranks))):
            session = Session(RunSettings(), environment={}, find=operators)
            for run in (1, 2):
                assert session.execute(program, [ONE])[0].tolist() == [run] * 3
            binding = session.compile(program).graphs[0].binding
            kept.append((len(binding._views), len(binding._buffers), len(binding._alive)))
    assert kept == [(4, 1, 0), (0, 0, 0)]


def test_a_weight_that_gets_another_shape_has_new_memory(net, session, holder):
    """The memory of the old one is freed; programs of both shapes go on with the values that the host sets."""
    one = holder(np.arange(3, dtype=np.float32))
    programs = []
    for shape in ((3,), (2, 600)):
        one._array = np.ones(shape, np.float32)
        b = net()
        programs.append(b.program(b.op("Neg", b.weight("w", one._array, one))))
    s = session()

    def weights():
        return [block.size for block in s.device.memory.blocks() if block.kind == "weight"]

    for at, shape in ((0, (3,)), (1, (2, 600)), (0, (3,)), (0, (3,)), (1, (2, 600))):
        one._array = np.full(shape, 5 + at, np.float32)
        assert s.execute(programs[at], [])[0].tolist() == (-one._array).tolist()
        assert weights() == [4 * one._array.size]


def test_a_weight_whose_new_shape_does_not_fit_can_go_back_to_the_old_one(net, session, holder):
    one = holder(np.arange(3, dtype=np.float32))
    b = net()
    small = b.program(b.op("Neg", b.weight("w", one._array, one)))
    s = session()
    assert s.execute(small, [])[0].tolist() == [0, -1, -2]
    s.device.memory.limit = 1 << 16
    one._array = np.ones(1 << 16, np.float32)
    b = net()
    with pytest.raises(OutOfMemoryError):
        s.execute(b.program(b.op("Neg", b.weight("w", one._array, one))), [])
    one._array = np.full(3, 7, np.float32)
    assert s.execute(small, [])[0].tolist() == [-7] * 3
