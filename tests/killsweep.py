"""Kill writers of dumps at random moments: nothing half under a final name, everything readable, ``--append`` goes on.

::

    python -m tests.killsweep --kills 500
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from dumpwriters import MODES, forked, judge, write

__all__ = ["Result", "sweep"]


@dataclass
class Result:
    """What a sweep has found."""

    kills: Counter[str] = field(default_factory=Counter)
    files: int = 0
    unfinished: int = 0
    half: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        modes = ", ".join(f"{count} {mode}" for mode, count in self.kills.items())
        return (
            f"{sum(self.kills.values())} kills ({modes}), {self.files} files: {len(self.half)} half, "
            f"{len(self.unreadable)} unreadable, {self.unfinished} unfinished lines reported"
        )


def sweep(kills: int, seed: int = 0, budget: float = 1e9) -> Result:
    """Kill that many writers, the modes in turn, as long as the budget of seconds lasts."""
    rng = random.Random(seed)
    result = Result()
    end = time.monotonic() + budget
    top = Path(tempfile.mkdtemp(prefix="dumpsim-kill-"))
    try:
        for number in range(kills):
            if time.monotonic() > end:
                break
            mode = MODES[number % len(MODES)]
            root = top / str(number)
            _kill(mode, root, rng.choice((0.02, 0.1, 0.3)) * rng.random())
            result.kills[mode] += 1
            where = f"kill {number} of seed {seed}, {mode}: "
            _note(result, root, where)
            if number % 4 == 0 and mode != "apidump" and root.exists():
                _resume(mode, root, where, result)
            shutil.rmtree(root, ignore_errors=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return result


def _kill(mode: str, root: Path, delay: float) -> None:
    """A writer that ends after its first step and a delay."""
    ready, told = os.pipe()

    def run() -> None:
        os.close(ready)
        write(mode, root, 10**6, say=lambda: os.write(told, b"1"))

    pid = forked(run)
    os.close(told)
    if random.Random(str(root)).random() < 0.8:
        os.read(ready, 1)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(ready)
    if ended != -signal.SIGKILL:
        raise RuntimeError(f"the writer of {mode} ended by itself: {ended}")


def _note(result: Result, root: Path, where: str) -> None:
    found = judge(root) if root.exists() else None
    if found is not None:
        result.files += found.files
        result.unfinished += found.unfinished
        result.half += [where + text for text in found.half]
        result.unreadable += [where + text for text in found.unreadable]


def _resume(mode: str, root: Path, where: str, result: Result) -> None:
    """``--append``: afterwards every line is whole."""
    pid = forked(lambda: write(mode, root, 1, append=True))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        result.unreadable.append(f"{where}--append: exit {code}")
        return
    found = judge(root)
    if found.unfinished or found.half or found.unreadable:
        result.unreadable.append(f"{where}after --append: {found}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    done = sweep(options.kills, options.seed)
    print(done)
    print("\n".join([*done.half, *done.unreadable]))
    sys.exit(bool(done.half or done.unreadable))
