"""Collectives in graphs: ranks share one result array until one of them writes into that memory."""

import numpy as np
import pytest

from dumpsim.core.settings import RunSettings
from dumpsim.device.faults import make_plan
from dumpsim.ops.table import find
from dumpsim.runtime import binding
from dumpsim.world import current, launch

RANKS = 3
WORLD = "hccl_world_group"


@pytest.fixture
def ranks(machine, operators):
    """Run ``build() -> program, arguments`` in each rank, and return what its tap has recorded."""

    def definition(op_type):
        return find(op_type) if op_type in ("AllReduce", "AllGather") else operators(op_type)

    def run(*builds, tap, chip="910B", times=1, reuse=True, keep_views=False, environment=(), faults=()):
        def main():
            made = machine(RunSettings(chip=chip), environment=dict(environment), find=definition)
            made.memory_reuse = reuse
            made.inject(make_plan(faults))
            seen = tap()
            made.add_tap(seen)
            programs = [build() for build in builds]
            results = []
            for _ in range(times):
                for program, arguments in programs:
                    for graph in made.compile(program).graphs:
                        graph.binding._keep_views = keep_views  # as in a process with one rank
                    results.append(made.execute(program, arguments))
            return seen.log, results, made.clock.now_ns

        return launch(main, ranks=RANKS)

    return run


def collective(b, op_type, x, shape=None):
    kept = {"rank_size": RANKS} if op_type == "AllGather" else {"op": "sum"}
    node = b.op(op_type, x, shape=shape, group=WORLD, **kept)
    b.order.append(node)
    return node


class Arrays:
    """A tap that records the arrays that it reads, not copies."""

    def __init__(self):
        self.log = []

    def wants(self, event):
        return hasattr(event, "op_type")

    def before_task(self, event):
        pass

    def after_task(self, event):
        self.log.append((event.full_name, [ref.read() for ref in event.outputs]))


def values(rank, shape=(64, 64)):
    return np.random.default_rng(rank).integers(-9, 9, shape).astype(np.float32)


def together(net):
    """Gather, and add to what was gathered."""
    b = net()
    whole = collective(b, "AllGather", b.input("x", (64, 64)), (RANKS * 64, 64))
    return b.program(b.op("MakeTuple", whole, b.op("Neg", whole))), [values(current().rank)]


def test_a_gathered_result_is_one_array_on_all_devices_and_on_the_host(net, ranks):
    found = ranks(lambda: together(net), tap=Arrays, times=2)
    whole = np.concatenate([values(rank) for rank in range(RANKS)])
    for run in range(2):
        first = found[0][0][2 * run][1][0]
        assert first.tobytes() == whole.tobytes()
        for log, results, _ in found:
            name, (array,) = log[2 * run]
            assert name == "Default/AllGather-op0"
            assert not array.flags.writeable
            assert np.shares_memory(array, first)
            assert np.shares_memory(results[run][0], first)
            np.testing.assert_array_equal(results[run][1], -whole)
            assert results[run][1].flags.writeable


@pytest.mark.parametrize("where", [{"target": "Default/AllGather-op0", "offset": 4 * 65}, {"offset": -4 * 65}])
def test_a_rank_whose_memory_is_stomped_has_a_copy(net, ranks, where):
    fault = {"kind": "stomp", "after": "AllGather", "nbytes": 8, "byte": 0, "rank": 1, **where}
    found = ranks(lambda: together(net), tap=Arrays, faults=[fault])
    whole = np.concatenate([values(rank) for rank in range(RANKS)])
    trampled = whole.copy()
    at = 65 if "target" in where else whole.size - 65
    trampled.reshape(-1)[at : at + 2] = 0
    for rank, (_, (results,), _) in enumerate(found):
        np.testing.assert_array_equal(results[0], trampled if rank == 1 else whole)
        np.testing.assert_array_equal(results[1], -results[0])
        assert np.shares_memory(results[0], found[0][1][0][0]) is (rank != 1)


def test_an_operator_that_works_in_place_writes_a_copy(net, ranks):
    def build():
        b = net()
        whole = collective(b, "AllGather", b.input("x", (64, 64)), (RANKS * 64, 64))
        rest = b.weight("m", np.zeros((RANKS * 64, 64), np.float32))
        step = b.op("ApplyMomentum", whole, rest, float(current().rank), b.op("Neg", whole), 1.0)
        return b.program(b.op("MakeTuple", step, b.op("Neg", step))), [values(current().rank)]

    whole = np.concatenate([values(rank) for rank in range(RANKS)])
    for rank, (log, (results,), _) in enumerate(ranks(build, tap=Arrays)):
        assert log[0][1][0].tobytes() == whole.tobytes()
        np.testing.assert_array_equal(results[0], whole + rank * whole)
        np.testing.assert_array_equal(results[1], -results[0])


def test_a_gathered_result_enters_the_next_graph_without_a_copy(net, machine, operators):
    """As it does from graph to graph of a network with control flow."""

    def main():
        made = machine(
            RunSettings(), environment={}, find=lambda kind: find(kind) if kind == "AllGather" else operators(kind)
        )
        program, arguments = together(net)
        gathered = made.execute(program, arguments)[0]
        (again,) = made.run_op(find("AllGather"), arguments, {"rank_size": RANKS})
        b = net(graph_id=1)
        next_one = b.program(b.op("Neg", b.input("x", (RANKS * 64, 64))))
        seen = Operands()
        made.add_tap(seen)
        mine = gathered.copy()
        frozen = mine[:]
        frozen.flags.writeable = False  # `mine` can be written
        for array in (gathered, again, mine, frozen):
            made.execute(next_one, [array])
        return [[np.shares_memory(got, array) for got in seen.log] for array in (gathered, again, mine, frozen)], again

    for shared, again in (found := launch(main, ranks=RANKS)):
        assert shared == [[True] + [False] * 3, [False, True, False, False], [False] * 4, [False] * 4]
        assert np.shares_memory(again, found[0][1])


class Operands(Arrays):
    def after_task(self, event):
        self.log.append(event.operands[0].read())


class Bytes:
    """A tap that records addresses and copies of all bytes, before and after each kernel."""

    def __init__(self):
        self.log = []

    def wants(self, event):
        return hasattr(event, "op_type")

    def before_task(self, event):
        self.log.append([event.full_name, event.time_ns, *((r.address, r.read().tobytes()) for r in event.operands)])

    def after_task(self, event):
        refs = (*event.operands, *event.outputs)
        self.log.append([event.full_name, event.time_ns, *((r.address, r.read().tobytes()) for r in refs)])


def random_program(net, seed):
    """Kernels and collectives in a random order, some in place, on tensors of two sizes that share memory."""
    rng = np.random.default_rng(seed)
    b = net()
    live = [b.input("x", (16, 8)), b.input("y", (8, 8))]
    state = {
        node.abstract.shape: b.weight(f"m{at}", np.zeros(node.abstract.shape, np.float32))
        for at, node in enumerate(live)
    }
    for _ in range(14):
        x = live[int(rng.integers(len(live)))]
        match rng.integers(6):
            case 0 | 1:
                live.append(collective(b, "AllReduce", x))
            case 2:
                if x.abstract.shape == (8, 8):
                    x = collective(b, "AllGather", x, (RANKS * 8, 8))
                    live.append(b.op("Split", x, items=[(1, 8), (RANKS * 8 - 1, 8)]))
                    live[-1] = b.op("TupleGetItem", live[-1], 0)
                    continue
                live.append(b.op("Neg", x))
            case 3:
                live.append(b.op("ReLU", x))
            case 4:
                held = state.get(x.abstract.shape)
                if held is not None and x not in b.graph.parameters:
                    live.append(b.op("ApplyMomentum", x, held, 0.5, b.op("Neg", x), 1.0))
            case _:
                live.append(b.op("Add", x, x))
    return b.program(b.op("MakeTuple", *live[-3:])), [
        values(current().rank, p.abstract.shape) for p in b.graph.parameters[:2]
    ]


def test_an_overflow_strikes_a_collective_in_one_rank(net, ranks):
    def build():
        b = net()
        return b.program(collective(b, "AllReduce", b.input("x", (8, 8)))), [values(current().rank, (8, 8))]

    fault = {"kind": "overflow", "op": "AllReduce", "nth": 2, "rank": 1, "index": 4, "value": 9.5}
    found = [results for _, results, _ in ranks(build, tap=Bytes, times=2, faults=[fault])]
    total = sum(values(rank, (8, 8)) for rank in range(RANKS))
    struck = total.copy()
    struck.flat[4] = 9.5
    for rank, results in enumerate(found):
        for nth, (result,) in enumerate(results):
            np.testing.assert_array_equal(result, struck if (rank, nth) == (1, 1) else total)


def test_a_collective_does_not_overflow(net, ranks):
    """It does not run on an AI Core, whose status word is read. [spec parallel 4.4]"""

    class Flags(Bytes):
        def before_task(self, event):
            pass

        def after_task(self, event):
            self.log.append((event.op_type, event.overflow, event.overflow_status))

    def build():
        b = net()
        total = collective(b, "AllReduce", b.input("x", (2, 2)))
        return b.program(b.op("Add", total, total)), [np.full((2, 2), 2e38, np.float32)]

    for log, ((result,),), _ in ranks(build, tap=Flags):
        assert np.isinf(result).all()
        assert log == [("AllReduce", False, 0), ("Add", False, 0)]


@pytest.mark.parametrize("seed", range(10))
def test_sharing_of_results_is_not_observable(net, ranks, monkeypatch, seed):
    stomp = {"kind": "stomp", "after": "AllReduce", "offset": -40, "nbytes": 600, "byte": 7}
    faults = [
        {**stomp, "nth": 1 + seed % 3, "rank": 1},
        {**stomp, "nth": 2, "rank": 0, "offset": 700 - 100 * seed},
        {"kind": "overflow", "op": "AllReduce", "nth": 2, "rank": 2},
    ]
    options = {"times": 2, "reuse": seed % 4 != 3, "faults": faults, "keep_views": seed % 2}
    options["chip"] = "910B" if seed % 3 else "CPU"  # where collectives have no stream, and no memory, of their own
    options["environment"] = {"MS_KERNEL_LAUNCH_SKIP": "ReLU"}.items()  # shows what was in the memory before
    programs = [lambda: random_program(net, seed), lambda: random_program(net, 100 + seed)]
    found = []
    for least in (1, 1 << 40):
        monkeypatch.setattr(binding, "_SHARED", least)
        found.append(ranks(*programs, tap=Bytes, **options))
    shared, copied = found
    for (log, results, now), (log_, results_, now_) in zip(shared, copied, strict=True):
        assert log == log_
        assert now == now_
        for run, run_ in zip(results, results_, strict=True):
            assert [a.tobytes() for a in run] == [a.tobytes() for a in run_]
