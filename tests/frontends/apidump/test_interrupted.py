"""API dumps whose process is stopped from outside: what was recorded is on disk, with its index and its stacks."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from dumpsim.codecs.apidump import file_name, read_info, read_stack, tail_of
from dumpsim.core.errors import BadInputError
from dumpsim.frontends.apidump.interrupts import Interrupts
from dumpsim.frontends.apidump.output import Output

SCRIPT = """
    import signal, sys, time
    import torch
    from torch import nn
    from dumpsim import migrator

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background of a shell ignores it
    {before}
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    migrator.api_dump_init(net, sys.argv[1])
    migrator.api_dump_start()
    for step in range({steps}):
        net(torch.ones(2, 8)).sum().backward()
    print("ready", flush=True)
    {after}
    time.sleep(60)
"""


def started(tmp_path, steps=20, before="pass", after="pass"):
    """A process that has recorded and waits."""
    lines = SCRIPT.format(steps=steps, before=before, after=after).splitlines()
    script = tmp_path / "train.py"
    script.write_text("\n".join(line[4:] for line in lines))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, script, tmp_path / "dump"], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def whole(tmp_path, steps):
    """Every record has a line, every line a file and a stack."""
    rank = tmp_path / "dump" / "rank0"
    names = [record.name for record in read_info(rank / "torch_api_dump_info.pkl")]
    assert len([name for name in names if "_forward_output" in name and name.startswith("NN_ReLU")]) == steps
    assert {file_name(name) for name in names} == set(os.listdir(rank / "torch_api_dump"))
    for name in os.listdir(rank / "torch_api_dump"):
        np.load(rank / "torch_api_dump" / name)
    assert len(read_stack(rank / "torch_api_dump_stack.json")) >= 2 * steps
    return rank


@pytest.mark.torch
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_writes_everything_first(tmp_path, number):
    with started(tmp_path) as process:
        process.send_signal(number)
    assert process.returncode == -number
    rank = whole(tmp_path, 20)
    assert not list(rank.glob(".dumpsim*"))


@pytest.mark.torch
def test_a_killed_process_has_its_index_after_half_a_second(tmp_path):
    with started(tmp_path, after="time.sleep(1.5); print('late', flush=True)") as process:
        assert process.stdout.readline() == "late\n"
        process.kill()
    whole(tmp_path, 20)


@pytest.mark.torch
def test_the_users_own_handler_runs_after_it(tmp_path):
    handler = "signal.signal(signal.SIGTERM, lambda *_: (print('mine', flush=True), sys.exit(7)))"
    with started(tmp_path, before=handler) as process:
        process.terminate()
        assert process.stdout.read() == "mine\n"
    assert process.returncode == 7
    whole(tmp_path, 20)


@pytest.fixture
def signals():
    """The handlers as they were before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def test_signals_are_given_back_whatever_the_order(signals):
    heard = []
    signal.signal(signal.SIGTERM, lambda *_: heard.append("user"))
    user = signal.getsignal(signal.SIGTERM)
    first = Interrupts(lambda: heard.append("first"), lambda: None)
    second = Interrupts(lambda: heard.append("second"), lambda: None)
    first.install()
    second.install()
    signal.raise_signal(signal.SIGTERM)
    assert heard == ["second", "first", "user"]
    first.restore()
    signal.raise_signal(signal.SIGTERM)
    assert heard[3:] == ["second", "user"]
    second.restore()
    assert signal.getsignal(signal.SIGTERM) is user
    assert signal.getsignal(signal.SIGINT) is signals[signal.SIGINT]


def test_a_handler_that_the_user_sets_later_stays(signals):
    interrupts = Interrupts(lambda: None, lambda: None)
    interrupts.install()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    interrupts.restore()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_a_signal_amid_a_write_waits_for_its_end(signals):
    heard = []
    signal.signal(signal.SIGTERM, lambda *_: heard.append("user"))
    interrupts = Interrupts(lambda: heard.append("flush"), lambda: None)
    interrupts.install()
    with interrupts:
        with interrupts:
            signal.raise_signal(signal.SIGTERM)
        heard.append("written")
    assert heard == ["written", "flush", "user"]
    with interrupts:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # the second one does not wait
        assert heard[3:] == ["user"]
    interrupts.restore()


def test_a_signal_without_a_handler_ends_the_process_after_everything_is_written(signals, monkeypatch):
    events = []
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    interrupts = Interrupts(lambda: events.append("written"), lambda: events.append("left"))
    interrupts.install()
    monkeypatch.setattr(os, "kill", lambda *given: events.append(given))
    signal.raise_signal(signal.SIGTERM)
    assert events == ["written", "left", (os.getpid(), signal.SIGTERM)]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # the system's end, not ours once more


def test_other_threads_take_no_signals(signals):
    interrupts = Interrupts(lambda: None, lambda: None)
    thread = threading.Thread(target=interrupts.install)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is signals[signal.SIGTERM]


def test_lines_and_stacks_are_written_by_time(tmp_path):
    output = Output(tmp_path, "torch", 0)
    output.begin()
    stacks = {"LAYER: a forward": ["File a.py, line 1, in f, \n f()"]}
    output.set_callbacks(lambda: bool(output.stacks(stacks)) or True, output.flush)
    output.lines.add("LAYER_a_forward_output", tail_of("torch.float32", (1,), (0.0, 0.0, 0.0)))
    info, stack = tmp_path / "rank0" / output.info, tmp_path / "rank0" / output.stack
    deadline = time.monotonic() + 20
    while not (info.exists() and stack.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [record.name for record in read_info(info)] == ["LAYER_a_forward_output"]
    assert list(read_stack(stack)) == list(stacks)
    output.close()


def test_a_second_process_does_not_clear_the_directory(tmp_path):
    output = Output(tmp_path, "torch", 0)
    output.begin()
    output.array("a", (b"mine",))
    output.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            other = Output(tmp_path, "torch", 0)
            try:
                other.begin()
            except BadInputError as error:
                code = 3 if f"(process {os.getppid()})" in str(error) else 2
            other.array("a", (b"other",))
            other.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert (tmp_path / "rank0/torch_api_dump/a.npy").read_bytes() == b"mine"
    output.close()
    assert not list((tmp_path / "rank0").glob(".dumpsim*"))


def test_names_with_a_slash_are_written_and_those_after_them_too(tmp_path):
    output = Output(tmp_path, "torch", 0)
    output.begin()
    for name in ("LAYER_a-b/c_forward_output", "x\0y", "z\ud800", "later"):
        output.array(name, (b"1",))
    with pytest.raises(OSError, match="the name has a lone surrogate"):
        output.flush()
    found = os.listdir(output.array_directory)
    assert sorted(found) == ["LAYER_a-b%2Fc_forward_output.npy", "later.npy", "x%00y.npy"]
    output.close()


@pytest.mark.torch
@pytest.mark.parametrize("compat", [None, "1.0.17"])
def test_a_key_of_a_module_dict_with_a_slash_costs_no_file(tmp_path, compat):
    import torch

    import dumpsim
    from dumpsim import migrator

    net = torch.nn.ModuleDict({"a-b/c": torch.nn.Linear(4, 4), "relu": torch.nn.ReLU(), "last": torch.nn.Linear(4, 4)})
    with migrator.api_dump_init(net, tmp_path, compat=compat):
        migrator.api_dump_start()
        x = torch.ones(2, 4)
        for layer in net.values():
            x = layer(x)
        x.sum().backward()
        migrator.api_dump_stop()
    entries = list(dumpsim.open(tmp_path))
    assert entries
    assert all(entry.path is not None for entry in entries)
