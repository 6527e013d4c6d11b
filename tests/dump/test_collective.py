"""Dumps of several ranks: what collectives got and gave, under which names, and when."""

import json
from dataclasses import replace

import numpy as np
import pytest
from dumprun import config

import dumpsim
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import CollectiveError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Tensor, nn
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.profiling.recorder import Recorder
from dumpsim.runtime.session import Session
from dumpsim.world import current, launch

SIZE = 2
QUIET = RunSettings(manifest=None, quiet=True)


def part(rank):
    return np.random.default_rng(rank).integers(-3, 4, (4, 8)).astype(np.float32)


class Net(nn.Cell):
    """Three collectives between operators that compute."""

    def construct(self, x):
        x = call("AllReduce", [x * 2], {})
        y = call("AllGather", [x + 1], {"rank_size": SIZE})
        return call("ReduceScatter", [y * y], {"rank_size": SIZE}) - x


def dump(folder, level, net=Net, size=SIZE, steps=1, **changes):
    """Run a net on several ranks under a dump; returns the dump, and what each rank made."""
    root = folder / "dump"
    document = config(root, **{"support_device": list(range(8)), **changes})
    if level == "O2":
        del document["e2e_dump_settings"]
    file = folder / "dump.json"
    file.write_text(json.dumps(document))

    def main():
        ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU" if level == "CPU" else "Ascend")
        if level != "CPU":
            ms.set_context(jit_config={"jit_level": level})
        made = net()
        for _ in range(steps):
            out = made(Tensor(part(current().rank)))
        return out.asnumpy(), Session.current().clock.now_ns

    environment = {"MINDSPORE_DUMP_CONFIG": str(file), "MS_DIAGNOSTIC_DATA_PATH": str(folder)}
    made = launch(main, ranks=size, environment=environment, settings=QUIET)
    return dumpsim.open(root) if root.exists() else None, made


TYPES = {
    "O0": ("AllReduce", "AllGather", "ReduceScatter"),
    "CPU": ("AllReduce", "AllGather", "ReduceScatter"),
    "O2": ("HcomAllReduce", "HcomAllGather", "HcomReduceScatter"),
}


@pytest.mark.parametrize("level", TYPES)
def test_each_rank_has_what_it_brought_and_got(tmp_path, level):
    found, made = dump(tmp_path, level)
    parts = [2 * part(rank) for rank in range(SIZE)]
    total = sum(parts)
    whole = np.concatenate([total + 1] * SIZE)
    squares = np.split(SIZE * whole * whole, SIZE)
    gathered = [(total + 1, whole)] * SIZE
    wanted = [[(mine, total) for mine in parts], gathered, [(whole * whole, square) for square in squares]]
    for op_type, sides in zip(TYPES[level], wanted, strict=True):
        for rank, (brought, got) in enumerate(sides):
            entries = [entry for entry in found if entry.op_type == op_type and entry.rank == rank]
            arrays = {entry.io: entry.array().astype(np.float32) for entry in entries}
            np.testing.assert_array_equal(arrays["input"], brought)
            np.testing.assert_array_equal(arrays["output"], got)
    for rank, (out, _) in enumerate(made):
        np.testing.assert_array_equal(out, squares[rank] - total)


def test_collectives_have_a_stream_of_their_own(tmp_path):
    found, _ = dump(tmp_path, "O0")
    streams = {(entry.op_type, entry.name.stream_id) for entry in found}
    assert {stream for op, stream in streams if op in TYPES["O0"]} == {1}
    assert {stream for op, stream in streams if op not in TYPES["O0"]} == {0}


def test_who_looks_does_not_change_the_numbers_of_tasks(tmp_path):
    def ids(folder, **changes):
        folder.mkdir()
        return {
            (e.rank, e.op_name, e.name.task_id)
            for e in dump(folder, "O2", **changes)[0]
            if e.op_type == "HcomAllReduce"
        }

    alone = ids(tmp_path / "one", kernels=["Default/AllReduce-op0"], dump_mode=1)
    assert alone
    assert alone <= ids(tmp_path / "all")


class Messages(nn.Cell):
    def construct(self, x):
        if current().rank == 0:
            return call("Depend", [x, call("Send", [x * 5], {"dest_rank": 1})])
        return call("Receive", [None], {"src_rank": 0, "shape": (4, 8), "dtype": dtype("float32")}) + x


SENT, RECEIVED = (0, "Send", "input"), (1, "Receive", "output")


@pytest.mark.parametrize(
    ("level", "wanted"),
    [("O0", [SENT, RECEIVED]), ("O2", [(1, "HcomReceive", "output")])],  # GE writes no operator without output
)
def test_a_message_has_an_input_at_one_end_and_an_output_at_the_other(tmp_path, level, wanted):
    found, made = dump(tmp_path, level, Messages)
    entries = [entry for entry in found if entry.op_type.endswith(("Send", "Receive"))]
    assert [(entry.rank, entry.op_type, entry.io) for entry in entries] == wanted
    for entry in entries:
        np.testing.assert_array_equal(entry.array(), 5 * part(0))
    np.testing.assert_array_equal(made[0][0], part(0))


class Meeting(nn.Cell):
    def construct(self, x):
        call("Barrier", [], {})
        return x * 2


def test_a_barrier_leaves_no_file(tmp_path):
    found, _ = dump(tmp_path, "O0", Meeting)
    assert {entry.op_type for entry in found} == {"Mul"}
    orders = list(tmp_path.rglob("ms_execution_order_graph_0.csv"))
    assert len(orders) == SIZE
    assert all("Barrier-op0" in path.read_text() for path in orders)


class Uneven(nn.Cell):
    """Rank 0 has more to do before the ranks meet, and to dump."""

    def construct(self, x):
        if current().rank == 0:
            for _ in range(5):
                x = x * 2
        return call("AllReduce", [x], {})


def test_a_rank_that_dumps_longer_lets_the_other_one_wait(tmp_path):
    for name in ("one", "all"):
        (tmp_path / name).mkdir()
    _, fast = dump(tmp_path / "one", "O0", Uneven, dump_mode=1, kernels=["AllReduce"])
    _, slow = dump(tmp_path / "all", "O0", Uneven)
    lost = [dumped - plain for (_, dumped), (_, plain) in zip(slow, fast, strict=True)]
    assert min(lost) > 3 * 10**5  # ten files of rank 0, for which rank 1 waits
    assert abs(slow[0][1] - slow[1][1]) < 10**6


def test_a_profile_knows_the_collectives_that_other_ranks_delay():
    def main():
        ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
        recorder = Recorder()
        recorder.start(Session.current())
        Net()(Tensor(part(current().rank)))
        return recorder.stop()

    for profile in launch(main, ranks=SIZE, settings=QUIET):
        found = [task for task in profile.tasks if task.kind == "KERNEL_HCCL"]
        assert [task.op_type for task in found] == list(TYPES["O0"])
        assert [task.inputs[0].shape for task in found] == [(4, 8), (4, 8), (8, 8)]
        assert {task.stream_id for task in found} == {1}
        ids = [task.task_id for task in profile.tasks if task.stream_id == 1 and task.kind != "HOST_CALLBACK"]
        assert ids == list(range(len(ids)))


def test_a_dump_that_is_too_slow_for_the_others(tmp_path):
    folder = tmp_path / "slow"
    folder.mkdir()
    plan = folder / "faults.json"
    plan.write_text('{"faults": [{"kind": "slow_disk", "mb_per_s": 1e-5, "rank": 1}]}')
    errors = {}

    def run(seconds):
        file = folder / "dump.json"
        file.write_text(json.dumps(config(folder / str(seconds), support_device=[0, 1])))
        environment = {"MINDSPORE_DUMP_CONFIG": str(file), "MS_DIAGNOSTIC_DATA_PATH": str(folder)}
        environment |= {"HCCL_EXEC_TIMEOUT": str(seconds), "HCCL_CONNECT_TIMEOUT": "7200"}

        def main():
            ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
            made = Net()
            try:
                for _ in range(2):
                    made(Tensor(part(current().rank)))
            except CollectiveError as error:
                errors[current().rank] = error
                raise

        launch(main, ranks=2, environment=environment, settings=replace(QUIET, faults=str(plan)))

    with pytest.raises(CollectiveError):
        run(5)
    assert {error.code for error in errors.values()} == {"EI0002"}
    assert "no Notify record came from remote rank 1 within 5 s (HCCL_EXEC_TIMEOUT)" in str(errors[0])
    assert all("If writing dumps makes rank 1 slow, raise HCCL_EXEC_TIMEOUT" in str(e) for e in errors.values())
    run(1836)
    run(0)
