"""Work on several processes and on a Dask cluster gives what one process gives."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from smalltree import chain, write

import dumpsim
from dumpsim.analysis.spread import _Spawning, spread
from dumpsim.core.errors import BadInputError, DumpsimError, UnsupportedError


@pytest.fixture
def pair(tmp_path):
    v = [np.full((4, 4), float(n), np.float32) for n in range(40)]
    worse = [array + (n > 25) for n, array in enumerate(v)]
    return write(tmp_path / "a", chain(*worse)), write(tmp_path / "b", chain(*v))


def test_processes(pair):
    assert dumpsim.compare(*pair, jobs=2).rows == dumpsim.compare(*pair).rows
    assert dumpsim.first(*pair, jobs=2) == dumpsim.first(*pair)


def test_pieces_come_in_order_and_no_more_than_needed():
    asked = []

    def pieces():
        for n in range(100):
            asked.append(n)
            yield n

    found = spread(abs, pieces())
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    assert asked == [0, 1, 2]
    with pytest.raises(BadInputError, match="1 or more"):
        spread(abs, [], jobs=0)


def test_without_dask_the_extra_is_named(pair, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'dumpsim\[dask\]' \[DS-ANA-010\]"):
        dumpsim.compare(*pair, scheduler="tcp://127.0.0.1:1")


def test_without_a_number_every_cpu_gets_a_process():
    own, asking = os.getpid(), ["__import__('os').getpid()"]
    assert set(spread(eval, asking, jobs=1)) == {own}
    assert (set(spread(eval, asking, jobs=None)) == {own}) == (os.cpu_count() == 1)


@pytest.mark.dask
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_two_workers(pair):
    import distributed

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        address = cluster.scheduler_address
        assert dumpsim.compare(*pair, scheduler=address).rows == dumpsim.compare(*pair).rows
        assert dumpsim.first(*pair, scheduler=address) == dumpsim.first(*pair)


@pytest.mark.dask
@pytest.mark.filterwarnings("ignore")
def test_workers_that_do_not_see_the_dumps_are_named(pair, monkeypatch):
    import distributed

    monkeypatch.setattr("dumpsim.analysis.spread.missing", lambda paths: paths)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, host="127.0.0.1", protocol="tcp"
        ) as cluster,
        pytest.raises(BadInputError, match=f"does not see {pair[0]}"),
    ):
        dumpsim.first(*pair, scheduler=cluster.scheduler_address)


@pytest.mark.dask
def test_what_is_no_address_is_told_at_once(pair):
    with pytest.raises(BadInputError, match="tcp://HOST:PORT"):
        dumpsim.compare(*pair, scheduler="foo bar")


def die(_piece):
    os._exit(3)


def test_a_process_that_dies_is_told():
    with pytest.raises(DumpsimError, match="died"):
        list(spread(die, range(3), jobs=2))


EARLY = """
import multiprocessing.context as context, os, time
from dumpsim.analysis.spread import _Spawning, spread
from dumpsim.core.errors import DumpsimError

def die(_piece):
    os._exit(3)

def main():
    start, started = context.SpawnProcess.start, []

    def late(self):
        if BEFORE and started:
            started[0].join(20), time.sleep(0.5)
        start(self)
        started.append(self)
        if not BEFORE and len(started) == 2:
            started[0].join(20), time.sleep(0.5)

    context.SpawnProcess.start = late
    try:
        list(spread(die, range(3), jobs=2))
    except DumpsimError as error:
        print("told:", "died" in str(error), not any(process.is_alive() for process in started[:1]))

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("before", [True, False], ids=["before it starts", "after it has started"])
def test_a_process_that_dies_while_the_next_one_starts_is_told(tmp_path, before):
    path = tmp_path / "early.py"
    path.write_text(EARLY.replace("BEFORE", str(before)))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "told: True True\n", done.stderr


@pytest.mark.parametrize(("least", "starts"), [((78, 1 << 60), True), ((79, 1 << 60), False), ((79, 1), True)])
def test_without_a_number_processes_start_where_they_pay_off(pair, monkeypatch, least, starts):
    """For 78 tensors, two of each of 39 operators, or for their bytes."""
    started = []

    @contextmanager
    def here(count):
        started.append(count)
        yield (lambda work, piece: SimpleNamespace(result=lambda: work(piece), cancel=lambda: None)), 2

    monkeypatch.setattr("dumpsim.analysis.spread._processes", here)
    monkeypatch.setattr("dumpsim.analysis.spread.WORTH", least)
    found = dumpsim.compare(*pair, jobs=None)
    assert started == ([os.cpu_count()] if starts and os.cpu_count() > 1 else [])
    assert found.rows == dumpsim.compare(*pair, jobs=1).rows


def test_pieces_that_nobody_waits_for_any_longer_are_cancelled(monkeypatch):
    cancelled = []

    @contextmanager
    def here(count):
        yield (lambda work, n: SimpleNamespace(result=lambda: work(n), cancel=lambda: cancelled.append(n))), 4

    monkeypatch.setattr("dumpsim.analysis.spread._processes", here)
    found = spread(abs, iter(range(10)), jobs=2)
    assert [next(found), next(found)] == [0, 1]
    found.close()
    assert cancelled == [2, 3, 4]
    assert list(spread(abs, iter(range(10)), jobs=2)) == list(range(10))
    assert cancelled == [2, 3, 4]


def test_processes_that_a_broken_pool_has_started_are_ended():
    context = _Spawning()
    waiting = [context.Process(target=time.sleep, args=(60,)) for _ in range(3)]
    for one in waiting[:2]:
        one.start()
    waiting[0].kill()
    waiting[0].join()
    context.kill()  # one is gone, one has never started
    waiting[1].join(30)
    assert [one.exitcode for one in waiting] == [-signal.SIGKILL, -signal.SIGKILL, None]
