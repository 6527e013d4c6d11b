"""Writers that are killed, and writers whose n-th system call fails, in six modes."""

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import killsweep
import pytest
from dumpwriters import MODES, forked, judge, write

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
CALLS = ("open", "write", "close", "rename")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EINTR, errno.EDQUOT)
REASONS = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota", errno.EIO: "Input/output error"}


def test_killed_writers_leave_nothing_half_and_nothing_unreadable():
    """``DUMPSIM_KILLS`` asks for more; python -m tests.killsweep gives the figures."""
    kills = int(os.environ.get("DUMPSIM_KILLS", "60"))
    found = killsweep.sweep(kills, budget=60 if kills == 60 else 1e9)
    assert (found.half, found.unreadable) == ([], []), str(found)
    assert len(found.kills) == len(MODES)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """The shared library that fails system calls."""
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc or clang) builds the library that fails system calls")
    library = tmp_path_factory.mktemp("shim") / "sweepshim.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "sweepshim.c", "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize("mode", MODES)
def test_each_failing_system_call_is_reported_and_costs_one_file(tmp_path, shim, mode):
    """Runs itself with the library preloaded; the budget of seconds is the second argument."""
    budget = os.environ.get("DUMPSIM_SYSCALL_SECONDS", "12")
    done = subprocess.run(
        [sys.executable, __file__, tmp_path, mode, budget],
        env={**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    result = json.loads(done.stdout.splitlines()[-1])
    print(mode, result["cases"], "of", result["all"])
    assert result["cases"] >= 16
    assert result["wrong"] == []


def cases(counts):
    """Every n-th call of each kind; the errors in turn, so that a small budget has all of them."""
    longest = max(counts.values())
    for turn in range(len(ERRORS)):
        for number in range(1, longest + 1):
            for at, call in enumerate(CALLS):
                if number <= counts[call]:
                    yield call, number, ERRORS[(turn + number + at) % len(ERRORS)]


def one(library, mode, root, call, number, error):
    """What is wrong after one call has failed, empty where nothing is; `told` is what a user reads."""
    told = root.with_suffix(".txt")

    def run():
        library.sweep_arm(os.fsencode(root), CALLS.index(call), number, error)
        try:
            text = write(mode, root, 2)
        finally:
            library.sweep_arm(b"/nowhere", -1, 0, 0)
        told.write_text(text)

    code = os.waitstatus_to_exitcode(os.waitpid(forked(run), 0)[1])
    if code:
        return f"the writer ended with {code}"
    text = told.read_text()
    found = judge(root, commands=False)
    if found.half or found.unreadable or found.left or found.unfinished:
        return str(found)
    return contents(root), text


def contents(root):
    """Bytes by name; the directory's own name, which configs hold, is the same in each."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes().replace(os.fsencode(root), b"ROOT") for path in files}


def swept(library, top, mode, seconds):
    """All cases as far as the time goes."""
    clean = top / "clean"
    counted = top / "counts.json"

    def run():
        library.sweep_arm(os.fsencode(clean), -1, 0, 0)
        write(mode, clean, 2)
        counted.write_text(json.dumps({call: library.sweep_count(at) for at, call in enumerate(CALLS)}))

    assert os.waitstatus_to_exitcode(os.waitpid(forked(run), 0)[1]) == 0
    counts = json.loads(counted.read_text())
    files = contents(clean)
    wrong, done, end = [], 0, time.monotonic() + seconds
    every = list(cases(counts))
    for call, number, error in every:
        if time.monotonic() > end:
            break
        done += 1
        root = top / "run" / str(done)
        root.parent.mkdir(exist_ok=True)
        where = f"{mode}: {call} {number} fails with {errno.errorcode[error]}: "
        result = one(library, mode, root, call, number, error)
        if isinstance(result, str):
            wrong.append(where + result)
        else:
            made, text = result
            lost = files.keys() - made.keys()
            other = [name for name, data in made.items() if data != files.get(name)]
            told = "cannot be written" in text and REASONS.get(error, "") in text
            allowed = len(lost) <= 1 or "files after it were not written either" in text  # of an API dump
            if not allowed or made.keys() - files.keys() or ((lost or other) and not told):
                wrong.append(f"{where}lost {sorted(lost)}, other {sorted(other)}, told {text[-300:]!r}")
        shutil.rmtree(root, ignore_errors=True)
    return {"cases": done, "all": len(every), "wrong": wrong}


if __name__ == "__main__":
    preloaded = ctypes.CDLL(None)
    preloaded.sweep_count.restype = ctypes.c_long
    print(json.dumps(swept(preloaded, Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))))
