"""Ranks as processes of this machine, compared with ranks of one process: results, dumps, errors, clean-up."""

import gc
import hashlib
import os
import signal
import sys
import time

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import BadInputError, CollectiveError, DeviceError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.communication import create_group, get_rank, init
from dumpsim.runtime.session import Session
from dumpsim.world import current, launch

QUIET = RunSettings(quiet=True, manifest=None, seed=3)


def both(main, ranks=3, **options):
    """Return the result or the error of a launch, for both transports."""
    found = []
    for transport in ("local", "process"):
        try:
            found.append(launch(main, ranks, transport=transport, settings=QUIET, **options))
        except Exception as error:
            found.append((type(error), str(error)))
    return found


def all_reduce(times=1, size=3):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    init()
    total = ms.Tensor(np.full(size, get_rank() + 1, np.float16))
    for _ in range(times):
        total = ops.AllReduce()(total)
    return total.asnumpy()


def inject(*faults):
    from dumpsim.device.faults import make_plan

    Session.current().inject(make_plan(faults))


def test_results():
    def main(argument):
        reduced = all_reduce(times=2)
        gathered = ops.AllGather()(ms.Tensor(np.array([get_rank()], np.int32))).asnumpy()
        return {"rank": get_rank(), argument: (reduced, gathered.tolist())}, None, b"x", np.float32(2)

    local, process = both(main, args=["all"])
    for one, other in zip(local, process, strict=True):
        np.testing.assert_array_equal(one[0].pop("all")[0], other[0].pop("all")[0])
        assert one == other
        assert type(other[3]) is np.float32
    assert os.environ.get("RANK_ID") is None


def test_a_large_sum_is_the_same_in_each_order():
    def main():
        ms.set_context(mode=ms.PYNATIVE_MODE)
        init()
        mine = np.random.default_rng(get_rank()).normal(size=70_001).astype(np.float32)
        return hashlib.sha256(ops.AllReduce()(ms.Tensor(mine)).asnumpy().tobytes()).hexdigest()

    found = set()
    for order in ("rank", "ring", "tree", "random:5"):
        settings = RunSettings(quiet=True, manifest=None, reduce_order=order)
        local, process = (launch(main, 3, transport=each, settings=settings) for each in ("local", "process"))
        assert local == process
        assert len(set(local)) == 1
        found.add(local[0])
    assert len(found) > 2


def test_each_rank_has_its_own_environment_directory_and_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def main():
        os.mkdir(f"of_{get_rank_id()}")
        os.chdir(f"of_{get_rank_id()}")
        print("first", get_rank_id())
        sys.stdout.write("unfinished")
        print("to stderr", file=sys.stderr)
        return os.getpid(), os.environ["DEVICE_ID"], os.path.basename(os.getcwd()), current().size

    def get_rank_id():
        return int(os.environ["RANK_ID"])

    found = launch(main, 2, transport="process", settings=QUIET)
    assert [each[1:] for each in found] == [("0", "of_0", 2), ("1", "of_1", 2)]
    assert len({os.getpid(), found[0][0], found[1][0]}) == 3
    printed = capsys.readouterr()
    assert sorted(printed.out.splitlines()) == ["first 0", "first 1", "unfinished", "unfinished"]
    assert printed.err == "to stderr\n" * 2
    assert os.getcwd() == str(tmp_path)


def test_a_value_that_cannot_be_sent():
    with pytest.raises(
        BadInputError, match="result of rank 1: a value of type object cannot be sent to another process; allowed"
    ):
        launch(lambda: object() if current().rank else None, 2, transport="process", settings=QUIET)


def test_the_error_of_a_program():
    def main():
        all_reduce()
        if get_rank() == 1:
            raise KeyError("mine")
        all_reduce()

    assert both(main) == [(KeyError, "'mine'")] * 2
    with pytest.raises(KeyError) as caught:
        launch(main, 3, transport="process", settings=QUIET)
    notes = "\n".join(caught.value.__notes__)
    assert "raised in rank 1 of 3" in notes
    assert 'raise KeyError("mine")' in notes


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"kind": "hang", "rank": 1, "nth": 2}, "EI0002"),
        ({"kind": "diverge", "rank": 1, "nth": 2}, "EI0005"),
        ({"kind": "diverge", "rank": 1, "nth": 2, "change": "count"}, "EI0005"),
        ({"kind": "diverge", "rank": 1, "nth": 2, "change": "type", "op": "AllReduce"}, "EI0005"),
        ({"kind": "delay", "rank": 1, "nth": 2, "seconds": 2000}, "EI0002"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["kind"] + value.get("change", ""),
)
def test_faults_of_ranks(fault, code):
    def main():
        inject(fault)
        try:
            all_reduce(times=3)
        except CollectiveError as error:
            return error.code, error.rank, str(error).partition(" (")[0]
        except DeviceError as error:
            return type(error).__name__
        return "done"

    local, process = both(main)
    assert [each[:2] for each in local if isinstance(each, tuple)] or local
    told = [each for each in process if isinstance(each, (list, tuple))]
    assert told
    assert {(each[0], each[1]) for each in told} == {(code, 1)}
    assert {tuple(each) for each in told} <= {tuple(each) for each in local}


def test_a_short_delay_is_seen_on_the_clock_alone():
    def main():
        inject({"kind": "delay", "rank": 2, "nth": 2, "seconds": 5})
        all_reduce(times=2)
        return Session.current().device.clock.now_ns

    local, process = both(main)
    assert local == process
    plain = launch(lambda: (all_reduce(times=2), Session.current().device.clock.now_ns)[1], 3, settings=QUIET)
    assert [late - each for late, each in zip(local, plain, strict=True)] == [5 * 10**9] * 3


@pytest.mark.parametrize("transport", ["local", "process"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_rank_killed_at_each_collective(transport, nth, tmp_path):
    def main():
        inject({"kind": "kill", "rank": 1, "nth": nth})
        try:
            all_reduce(times=3)
        except CollectiveError as error:
            (tmp_path / f"told_{get_rank()}").write_text(f"{error.code} {error.rank} {error}")
            raise

    start = time.monotonic()
    with pytest.raises(DeviceError, match="rank 1: its process was killed by SIGKILL") as caught:
        launch(main, 3, transport=transport, settings=QUIET)
    assert time.monotonic() - start < 60
    assert "raised in rank 1 of 3" in caught.value.__notes__
    told = [(tmp_path / f"told_{rank}").read_text() for rank in (0, 2)]
    assert all(text.startswith(("EI0002 1 ", "EI0006 1 ")) for text in told)
    assert all("rank 1: its process was killed by SIGKILL" in text for text in told)


def test_ranks_of_other_groups_go_on_after_a_kill(tmp_path):
    def main():
        ms.set_context(mode=ms.PYNATIVE_MODE)
        init()
        rank = get_rank()
        pair = [0, 1] if rank < 2 else [2, 3]
        create_group(f"pair{pair[0]}", pair)
        inject({"kind": "kill", "rank": 0, "nth": 3})
        reduce = ops.AllReduce(group=f"pair{pair[0]}")
        total = ms.Tensor(np.ones(2, np.float32))
        for at in range(6):
            total = reduce(total)
            total.asnumpy()
            (tmp_path / f"{current().environment['HOW']}-{rank}-{at}").touch()

    for transport in ("local", "process"):
        with pytest.raises(DeviceError, match="rank 0: its process was killed"):
            launch(main, 4, transport=transport, settings=QUIET, environment={"HOW": transport})
        done = [len(list(tmp_path.glob(f"{transport}-{rank}-*"))) for rank in range(4)]
        assert done == [2, 2, 6, 6]


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "rank 1: its process was killed by SIGKILL"),
        (lambda: os._exit(3), "rank 1: its process has ended with exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "rank 1: its process was killed by SIGTERM"),
    ],
    ids=["SIGKILL", "exit", "SIGTERM"],
)
def test_a_process_that_ends(ending, text):
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))

    def main():
        all_reduce(size=40_000)
        if get_rank() == 1:
            ending()
        all_reduce(size=40_000)

    with pytest.raises(DeviceError) as caught:
        launch(main, 3, transport="process", settings=QUIET)
    assert text in str(caught.value)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1
    assert not [name for name in os.listdir("/dev/shm") if "dumpsim" in name]
