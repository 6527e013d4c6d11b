"""Files that a user names or a compiler saves are whole or not there: an old one survives a write that fails."""

import os
import resource
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import dumpsim
import dumpsim.frontends.mindspore as ms
from dumpsim.analysis.wholefile import write_named
from dumpsim.archive.part import sweep
from dumpsim.core.errors import DumpWriteError
from dumpsim.core.partname import PART, machine
from dumpsim.frontends.mindspore import Tensor
from dumpsim.runtime.graphfile import write_text

LIMIT = 64


@contextmanager
def largest_file(size):
    """No file of this process grows beyond `size`: what is longer fails in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def table(place):
    for side in ("a", "b"):
        step = place / side / "rank_0/Net/0/0"
        if step.is_dir():
            continue
        step.mkdir(parents=True)
        np.save(step / "Add.Default_Add-op0.0.0.1.output.0.DefaultFormat.npy", np.ones(2, np.float32))
    dumpsim.compare(place / "a", place / "b").to_csv(place / "out/rows.csv")


def graph(place):
    write_text(place / "out/rows.csv", "x" * (2 * LIMIT), 0o400)


def checkpoint(place):
    ms.save_checkpoint([{"name": "w", "data": Tensor(np.ones(LIMIT, np.float32))}], str(place / "out/rows.ckpt"))
    (place / "out/rows.ckpt").rename(place / "out/rows.csv")


@pytest.mark.parametrize("write", [table, graph])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, write):
    target = tmp_path / "out/rows.csv"
    target.parent.mkdir()
    write(tmp_path)
    whole = target.read_bytes()
    assert len(whole) > LIMIT
    target.chmod(0o600)
    target.write_bytes(b"old")
    with largest_file(LIMIT), pytest.raises(DumpWriteError, match="File too large"):
        write(tmp_path)
    assert target.read_bytes() == b"old"
    assert os.listdir(target.parent) == [target.name]
    write(tmp_path)
    assert target.read_bytes() == whole


def test_a_checkpoint_that_fails_leaves_nothing(tmp_path):
    (tmp_path / "out").mkdir()
    with largest_file(LIMIT), pytest.raises(OSError, match="File too large"):
        checkpoint(tmp_path)
    assert os.listdir(tmp_path / "out") == []
    checkpoint(tmp_path)
    assert (tmp_path / "out/rows.csv").stat().st_mode & 0o777 == 0o400


@pytest.mark.torch
def test_parameters_that_fail_leave_the_old_file(tmp_path):
    import torch

    from dumpsim.frontends.apidump.pytorch.session import _save

    old = torch.nn.Linear(2, 2)
    _save(old, str(tmp_path), "pt_net.pth")
    with largest_file(4096), pytest.raises((OSError, RuntimeError)):
        _save(torch.nn.Linear(100, 100), str(tmp_path), "pt_net.pth")
    assert os.listdir(tmp_path) == ["pt_net.pth"]
    assert torch.equal(torch.load(tmp_path / "pt_net.pth", weights_only=True)["weight"], old.weight)


def test_a_named_file_keeps_links_and_permissions_and_may_be_a_pipe(tmp_path):
    real, link, pipe = tmp_path / "real.csv", tmp_path / "link.csv", tmp_path / "pipe"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_named(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640
    write_named(tmp_path / "fresh.csv", b"new")
    Path(tmp_path / "opened.csv").touch()
    assert (tmp_path / "fresh.csv").stat().st_mode == (tmp_path / "opened.csv").stat().st_mode
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_named(pipe, b"rows")
    reader.join(10)
    assert got == [b"rows"]
    assert pipe.is_fifo()


def test_directories_of_dead_writers_are_swept(tmp_path):
    dead = tmp_path / f"{PART}{machine()}-4194305-0"
    dead.mkdir()
    (dead / "pt_net.pth").touch()
    sweep(str(tmp_path))
    assert not dead.exists()
