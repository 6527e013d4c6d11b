"""A long search for crashes: mutations of sound inputs, those that reach new lines kept and changed again.

Where ``atheris`` imports, libFuzzer drives; else the lines are counted by a trace function.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from .mutation import KINDS, Change, mutate

if TYPE_CHECKING:  # its imports wait for atheris
    from .targets import Target

__all__ = ["Result", "has_atheris", "search", "search_with_atheris", "serve_atheris"]

_LONGEST = 1 << 14
Line = tuple[CodeType, int]


@dataclass(slots=True)
class Result:
    """What a search found."""

    target: str
    executions: int = 0
    seconds: float = 0.0
    corpus: int = 0
    crashes: dict[str, bytes] = field(default_factory=dict)  # where it was raised -> the input

    def __str__(self) -> str:
        rate = self.executions / self.seconds if self.seconds else 0
        return (
            f"{self.target}: {self.executions} executions in {self.seconds:.0f} s ({rate:.0f}/s), "
            f"corpus {self.corpus}, {len(self.crashes)} crashes"
        )


class _Lines:
    """Lines of dumpsim that ran, while it is entered."""

    def __init__(self) -> None:
        self.seen: set[Line] = set()

    def __enter__(self) -> "_Lines":
        self.seen = set()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if "/dumpsim/" in frame.f_code.co_filename else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.seen.add((frame.f_code, frame.f_lineno))
        return self._line


def search(target: "Target", seconds: float, seed: int) -> Result:
    """Change and run for a time; the same changes in every search with the same seed."""
    draw = random.Random(f"{target.name} {seed}")
    corpus = list(target.seeds)
    known: set[Line] = set()
    result = Result(target=target.name)
    start = time.monotonic()
    while (elapsed := time.monotonic() - start) < seconds:
        data = (
            _changed(draw.choice(corpus), draw) if result.executions >= len(target.seeds) else corpus[result.executions]
        )
        lines = _Lines()
        try:
            with lines:
                target.accepts(data)
        except Exception as error:  # the harness is there to find any
            result.crashes.setdefault(_place(error), data)
        result.executions += 1
        if not lines.seen <= known:
            known |= lines.seen
            corpus.append(data[:_LONGEST])
    result.seconds, result.corpus = elapsed, len(corpus)
    return result


def _changed(data: bytes, draw: random.Random) -> bytes:
    number = draw.choice((1, 1, 2, 3, 5))
    return mutate(
        data,
        [
            Change(draw.choice(KINDS), draw.randrange(1 << 16), draw.randrange(1 << 16), draw.randrange(1 << 16))
            for _ in range(number)
        ],
    )


def _place(error: BaseException) -> str:
    """Kind and place of an exception, so that each is reported once."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else "?"
    return f"{type(error).__name__} at {where}: {str(error)[:200]}"


# -- atheris


def has_atheris() -> bool:
    """Whether libFuzzer can drive."""
    from importlib.util import find_spec

    return find_spec("atheris") is not None


def serve_atheris(name: str, arguments: list[str]) -> None:
    """Run libFuzzer on one target in this process, dumpsim's own modules instrumented; it ends the process."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["dumpsim"]):
        from .targets import targets
    target = targets()[name]
    atheris.Setup([sys.argv[0], *arguments], lambda data: target.accepts(data) and None)
    atheris.Fuzz()


def search_with_atheris(target: "Target", seconds: float, seed: int) -> Result:
    """The same by libFuzzer, in a process of its own, since it ends with the first crash."""
    with tempfile.TemporaryDirectory(prefix="dumpsim-fuzz-") as directory:
        corpus = Path(directory) / "corpus"
        corpus.mkdir()
        for data in target.seeds:
            (corpus / sha1(data).hexdigest()).write_bytes(data)
        result = Result(target=target.name)
        start = time.monotonic()
        while (left := seconds - (time.monotonic() - start)) > 1 and len(result.crashes) < 10:
            command = [
                sys.executable, "-m", "tests.fuzz", "--atheris", target.name, str(corpus),
                f"-max_total_time={int(left)}", f"-seed={seed + len(result.crashes) + 1}", "-timeout=20",
                "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={directory}/",
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=os.environ)
            counts = [
                line.rsplit(None, 1)[1] for line in done.stderr.splitlines() if "number_of_executed_units" in line
            ]
            result.executions += int(counts[0]) if counts else 0
            if done.returncode == 0:
                break
            why = [
                line for line in (done.stdout + done.stderr).splitlines() if re.match(r"\w*(Error|Exception)\b", line)
            ]
            inputs = [path for path in Path(directory).iterdir() if path.is_file()]
            data = inputs[0].read_bytes() if inputs else b""
            result.crashes[why[-1] if why else done.stderr[-600:]] = data
            for path in inputs:
                path.unlink()
        result.seconds, result.corpus = time.monotonic() - start, len(list(corpus.iterdir()))
    return result
