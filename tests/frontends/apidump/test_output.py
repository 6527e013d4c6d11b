"""Files of an API dump: what waits for the disk is bounded, and a file is whole or not there."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from dumpsim.archive.sink import Sink
from dumpsim.codecs.apidump import read_info, tail_of
from dumpsim.core.errors import DumpWriteError
from dumpsim.frontends.apidump import output as module
from dumpsim.frontends.apidump.output import Output, npy_header

FILE = 1000


@pytest.fixture
def gate(monkeypatch):
    """A disk that writes one file for each release; `written` are the names so far."""
    turns = threading.Semaphore(0)
    written = []
    write = Sink.write

    def slow(self, directory, name, parts, **more):
        assert turns.acquire(timeout=30)
        written.append(name)
        return write(self, directory, name, parts, **more)

    monkeypatch.setattr(Sink, "write", slow)
    turns.written = written
    return turns


def begun(path, pending):
    output = Output(path, "torch", 0, pending=pending)
    output.begin()
    return output


def give(output, count, given):
    """Give arrays from a thread of its own, as a network that does not wait for the disk would."""

    def run():
        for at in range(count):
            output.array(f"a{at}", (bytes([at]) * FILE,))
            given.append(at)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def until(condition):
    pause = threading.Event()
    for _ in range(3000):
        if condition():
            return
        pause.wait(0.01)
    pytest.fail("did not come")


def test_what_waits_is_bounded_and_the_caller_waits(tmp_path, gate):
    output = begun(tmp_path, 3 * FILE)
    given = []
    thread = give(output, 20, given)
    for done in range(20):
        # the one that is being written counts until it is done
        room = min(20, done + 3)
        until(lambda room=room: len(given) == room)
        thread.join(0.02)
        assert len(given) == room
        gate.release()
        until(lambda expected=done + 1: len(gate.written) == expected)
    thread.join(30)
    output.close()
    assert gate.written == [f"a{at}.npy" for at in range(20)]
    for at in range(20):
        assert (tmp_path / "rank0" / "torch_api_dump" / f"a{at}.npy").read_bytes() == bytes([at]) * FILE


def test_an_array_beyond_the_bound_passes_alone(tmp_path):
    output = begun(tmp_path, 10)
    for at in range(3):
        output.array(f"a{at}", (bytes(FILE),))
    output.close()
    assert sorted(os.listdir(output.array_directory)) == ["a0.npy", "a1.npy", "a2.npy"]


def test_memory_does_not_grow_with_the_number_of_arrays(tmp_path, monkeypatch):
    """The bytes that are alive, as the arrays themselves tell when they die."""
    alive, most = 0, 0
    lock = threading.Lock()

    class Part(np.ndarray):
        def __del__(self):
            nonlocal alive
            with lock:
                alive -= 1

    output = begun(tmp_path, 4 * FILE)
    for at in range(200):
        part = np.zeros(FILE, np.uint8).view(Part)
        with lock:
            alive += 1
            most = max(most, alive)
        output.array(f"a{at}", (memoryview(part),))
        del part
    output.close()
    assert alive == 0
    assert most <= 6  # four that wait, the one that has just been written, the one that is given


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    """Seen between any two writes of the operating system."""
    output = begun(tmp_path, 1 << 20)
    header = npy_header("<f4", (100,))
    seen = []
    writev = os.writev

    def halves(descriptor, parts):
        half = bytes(parts[0])[: len(parts[0]) // 2]
        count = writev(descriptor, (half,))
        seen.extend(os.listdir(output.array_directory))
        return count

    monkeypatch.setattr(os, "writev", halves)
    output.array("a", (header, bytes(400)))
    output.flush()
    assert np.array_equal(np.load(f"{output.array_directory}/a.npy"), np.zeros(100, np.float32))
    assert seen
    assert "a.npy" not in seen
    output.close()


def test_lines_are_written_in_order_and_in_bounded_portions(tmp_path):
    output = begun(tmp_path, FILE)
    most = 0
    for at in range(3 * module._LINES + 7):
        output.lines.add(f"NN_Linear_{at}_forward_output", tail_of("torch.float32", (2,), (1.0, 0.0, 0.5)))
        most = max(most, len(output.lines))
    assert most < module._LINES
    output.close()
    names = [record.name for record in read_info(tmp_path / "rank0" / output.info)]
    assert names == [f"NN_Linear_{at}_forward_output" for at in range(3 * module._LINES + 7)]
    assert output.lines.total == len(names)


def test_a_failure_is_told_once_by_flush(tmp_path, monkeypatch):
    output = begun(tmp_path, FILE)

    def full(*_, **__):
        raise DumpWriteError("the disk is full", where="there", code="DS-ARC-010")

    monkeypatch.setattr(Sink, "write", full)
    for at in range(3):
        output.array(f"a{at}", (bytes(FILE),))
    with pytest.raises(DumpWriteError, match="the disk is full") as caught:
        output.flush()
    assert caught.value.__notes__ == ["2 files after it were not written either"]
    output.flush()
    output.close()


def test_a_file_that_cannot_be_named_takes_no_others_with_it(tmp_path):
    output = begun(tmp_path, 1 << 20)
    for name in ("a", "b" * 300, "c", "d" * 300, "e"):
        output.array(name, (bytes(FILE),))
    with pytest.raises(DumpWriteError, match="the name is too long") as caught:
        output.flush()
    assert caught.value.__notes__ == ["1 files after it were not written either"]
    assert sorted(path.name for path in Path(output.array_directory).iterdir()) == ["a.npy", "c.npy", "e.npy"]
    output.close()


@pytest.mark.parametrize(
    ("line", "end", "wanted"), [(True, True, "lines"), (True, False, "lines"), (False, True, "end")]
)
def test_the_first_of_several_failures_is_told(tmp_path, monkeypatch, line, end, wanted):
    def failing(text):
        def fail(*_, **__):
            raise DumpWriteError(text, where="there", code="DS-ARC-010")

        return fail

    output = begun(tmp_path, FILE)
    if line:
        monkeypatch.setattr(Sink, "append", failing("lines"))
    if end:
        monkeypatch.setattr(Sink, "settle", failing("end"))
    output.lines.add("NN_Linear_0_forward_output", tail_of("torch.float32", (2,), (1.0, 0.0, 0.5)))
    with pytest.raises(DumpWriteError, match=wanted):
        output.flush()
    monkeypatch.undo()
    output.close()


@pytest.mark.parametrize("outcome", [True, False, "error"])
def test_stacks_are_not_written_all_the_time(tmp_path, outcome):
    """Whether they could be written or not; what has not changed is asked for again."""
    output, calls = Output(tmp_path, "torch", 0), []

    def stacks():
        calls.append(outcome)
        threading.Event().wait(0.02)
        if outcome == "error":
            raise DumpWriteError("full", where="there", code="DS-ARC-010")
        return outcome

    output.set_callbacks(stacks, output.flush)
    for _ in range(2):
        output._tick()
    assert len(calls) == (1 if outcome else 2)


def test_what_a_signal_cannot_write_is_said(tmp_path, caplog):
    def fail():
        error = DumpWriteError("full", where="there", code="DS-ARC-010")
        error.add_note("and two more")
        raise error

    output = Output(tmp_path, "torch", 0)
    output.set_callbacks(lambda: False, fail)
    with caplog.at_level("WARNING"):
        output._interrupted()
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith("[*User Warning*] there: full")
    assert said.endswith("; and two more")


def test_the_claim_is_released_once(tmp_path):
    output = begun(tmp_path, FILE)
    other = Output(tmp_path, "torch", 0)
    assert list((tmp_path / "rank0").glob(".dumpsim-claim-torch*"))
    for _ in range(2):
        output._release_claim()  # as a signal that ends the process does
        assert not list((tmp_path / "rank0").glob(".dumpsim-claim-torch*"))
    other.begin()
    output.close()
    assert list((tmp_path / "rank0").glob(".dumpsim-claim-torch*"))
    other.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_flush_does_not_wait_for_a_thread_that_has_died(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_INTERVAL", 0)
    output = Output(tmp_path, "torch", 0)

    def die():
        raise ZeroDivisionError

    output.set_callbacks(die, output.flush)
    output.begin()
    until(lambda: not output._queue._thread.is_alive())
    output._queue._waiting.append(("a.npy", (b"1",), 1))
    flush = threading.Thread(target=output.flush, daemon=True)
    flush.start()
    flush.join(10)
    assert not flush.is_alive()
    output._queue._waiting.clear()
    output.close()
