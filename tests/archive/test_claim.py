"""Claims: one process at a time writes a dump, whatever way the one before it ended."""

import os
import signal
import stat

import pytest

from dumpsim.archive.claim import DirectoryClaim, _owner, claim
from dumpsim.archive.sink import Sink
from dumpsim.core.errors import BadInputError, DumpWriteError
from dumpsim.core.partname import CLAIM, machine


def other(action):
    """Run `action` in another process until it is killed; its pid, once it has run."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os.write(told, b"1")
            signal.pause()
        finally:
            os._exit(1)
    os.close(told)
    assert os.read(ready, 1) == b"1"
    os.close(ready)
    return pid


def killed(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_another_process_is_named_and_its_death_frees_the_directory(tmp_path):
    pid = other(lambda: claim(str(tmp_path), "rank_0"))
    try:
        with pytest.raises(BadInputError, match=rf"another process is writing this dump \(process {pid}\)"):
            claim(str(tmp_path), "rank_0")
        own = claim(str(tmp_path), "rank_1")
        own.release()
    finally:
        killed(pid)
    assert os.listdir(tmp_path) == [".dumpsim-claim-rank_0"]
    mine = claim(str(tmp_path), "rank_0")
    assert mine is not None
    mine.release()
    mine.release()
    assert os.listdir(tmp_path) == []


def test_of_many_processes_one_gets_it(tmp_path):
    wait, go = os.pipe()
    pids = []
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(go)
                code = 0 if claim(str(tmp_path), "rank_0") else 2
                os.read(wait, 1)  # until all the others have tried
            except BadInputError:
                code = 3
            finally:
                os._exit(code)
        pids.append(pid)
    losers = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(19)]
    os.close(go)
    assert losers == [3] * 19
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    os.close(wait)


def test_forked_children_of_a_dead_run_are_in_nobodys_way(tmp_path):
    children = []

    def run():
        claim(str(tmp_path), "rank_0")
        child = os.fork()
        if child == 0:
            signal.pause()
        (tmp_path / "child").write_text(str(child))

    pid = other(run)
    killed(pid)
    children.append(int((tmp_path / "child").read_text()))
    try:
        claim(str(tmp_path), "rank_0").release()
    finally:
        os.kill(children[0], signal.SIGKILL)


def test_the_same_process_may_go_on(tmp_path):
    first = claim(str(tmp_path), "rank_0")
    assert stat.S_IMODE((tmp_path / f"{CLAIM}rank_0").stat().st_mode) == 0o600
    assert claim(str(tmp_path), "rank_0") is None
    first.release()


def test_a_forked_child_cannot_release_the_claim_of_its_parent(tmp_path):
    mine = claim(str(tmp_path), "rank_0")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            mine.release()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert os.listdir(tmp_path) == [f"{CLAIM}rank_0"]
    mine.release()
    assert os.listdir(tmp_path) == []


def test_where_no_file_can_be_made_nothing_is_claimed(tmp_path):
    """The first file that is written says what is wrong; a link in the claim's place is not followed."""
    assert claim(f"{tmp_path}/missing", "rank_0") is None
    (tmp_path / f"{CLAIM}rank_0").symlink_to(tmp_path / "target")
    assert claim(str(tmp_path), "rank_0") is None
    assert not (tmp_path / "target").exists()


def test_of_the_directories_that_were_made_only_empty_ones_go(tmp_path):
    taken = DirectoryClaim.take(f"{tmp_path}/a/b/c", "rank_0", Sink(), "log")
    (tmp_path / "a/x").touch()
    taken.release()
    assert sorted(os.listdir(tmp_path / "a")) == ["x"]
    (tmp_path / "a/x").unlink()
    taken.release()  # again: nothing is removed any more
    assert os.listdir(tmp_path) == ["a"]


def test_directories_that_stayed_empty_go_with_the_claim(tmp_path):
    for unwritable, left in (("error", ["a"]), ("log", [])):
        root = tmp_path / unwritable
        root.mkdir()
        taken = DirectoryClaim.take(f"{root}/a/b", "rank_0", Sink(), unwritable)
        assert os.listdir(root / "a/b") == [".dumpsim-claim-rank_0"]
        taken.release()
        assert os.listdir(root) == left
    taken = DirectoryClaim.take(f"{tmp_path}/kept", "rank_0", Sink(), "log")
    Sink().write(f"{tmp_path}/kept", "x", [b"1"])
    taken.release()
    assert os.listdir(tmp_path / "kept") == ["x"]


def test_a_claim_says_nothing_but_its_own_process(tmp_path):
    """Also where the file of a dead one had more to say, and what a claim opened is closed again."""
    before = set(os.listdir("/proc/self/fd"))
    file = tmp_path / f"{CLAIM}rank_0"
    file.write_text("a-machine-with-a-long-name 123456789\nand more\n")
    for _ in range(2):
        mine = claim(str(tmp_path), "rank_0")
        assert file.read_text() == f"{machine()} {os.getpid()}\n"
        assert claim(str(tmp_path), "rank_0") is None  # it has it already
        mine.release()
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("text", "pid"),
    [
        ("{here} 123\n", 123),
        ("{here} 123", 123),
        ("elsewhere 123\n", None),
        ("{here} \n", None),
        ("{here}", None),
        ("", None),
        ("{here} 12x\n", None),
        ("{here} \u0661\n", None),
        ("{here} 99999999999\n", 99999999999),
        ("{here} 999999999999\n", None),
    ],
)
def test_the_owner_of_a_claim_is_a_process_of_this_machine(tmp_path, text, pid):
    (tmp_path / "claim").write_text(text.format(here=machine()))
    descriptor = os.open(tmp_path / "claim", os.O_RDONLY)
    try:
        assert _owner(descriptor) == pid
    finally:
        os.close(descriptor)


def test_a_claim_that_is_refused_leaves_nothing_open(tmp_path):
    before = set(os.listdir("/proc/self/fd"))
    pid = other(lambda: claim(str(tmp_path), "rank_0"))
    try:
        for _ in range(2):
            with pytest.raises(BadInputError):
                claim(str(tmp_path), "rank_0")
    finally:
        killed(pid)
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_directory_that_cannot_be_made_is_the_business_of_the_first_file(tmp_path):
    (tmp_path / "file").write_text("")
    directory = f"{tmp_path}/file/a"
    with pytest.raises(DumpWriteError):
        DirectoryClaim.take(directory, "rank_0", Sink(), "error")
    taken = DirectoryClaim.take(directory, "rank_0", Sink(), "log")
    taken.release()
    assert os.listdir(tmp_path) == ["file"]
