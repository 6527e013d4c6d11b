"""Run tests on mutated code in forks of one warm process: a plugin of pytest, driven by ``tests/mutate.py``.

The warm process imports the package, collects the tests once and then waits for requests, one JSON document per line:
the tests to run, and the text of a module before and after a mutation. For each it forks. The child gives every living
function whose code the mutation changes its new code, runs the tests until one fails, and is gone with all it did.
Session fixtures are set up in the child, below a temporary folder of its own. The mutated module must lie on the disk
as well: programs that a test starts and modules that are imported later read it there.

Not every mutation can be put in place so. The answer ``cold`` asks for a fresh interpreter: when a line changes that
runs at import, when no living function has the code, or when no test fails and the function had already run in the warm
process (its results may be in tables, caches and parameters of tests).
"""

import contextlib
import gc
import itertools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

_SOCKET = "DUMPSIM_FORKRUN"  # the descriptor that requests come from
_FUNCTION_CODE = 1  # CO_OPTIMIZED: the code of a function, not of a module or a class


# -- where code differs ------------------------------------------------------------------------------------------------


def differences(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """Pairs of the code of functions that a mutation changes, outer ones first; None if more than functions changes.

    Examples
    --------
    >>> old, new = (compile(f"def f(a):\\n    return a + {n}\\n", "x.py", "exec") for n in (1, 2))
    >>> [(one.co_qualname, other.co_consts[-1]) for one, other in differences(old, new)]
    [('f', 2)]
    >>> differences(compile("A = 1", "x.py", "exec"), compile("A = 2", "x.py", "exec")) is None
    True
    """
    if old == new:
        return []
    inner = [[one for one in code.co_consts if isinstance(one, CodeType)] for code in (old, new)]
    is_function = bool(old.co_flags & _FUNCTION_CODE)
    if len(inner[0]) != len(inner[1]) or (not is_function and not _alike(old, new)):
        return [(old, new)] if is_function else None
    found: list[tuple[CodeType, CodeType]] = [(old, new)] if is_function else []
    for one, other in zip(*inner, strict=True):
        pairs = differences(one, other)
        if pairs is None and not is_function:
            return None
        found += pairs or []  # of a class inside of a function: the function makes it anew
    return found


def _alike(old: CodeType, new: CodeType) -> bool:
    """Whether two codes do the same, apart from the code inside of them."""
    constants = [
        [(type(one), repr(one)) for one in code.co_consts if not isinstance(one, CodeType)] for code in (old, new)
    ]
    return (old.co_code, old.co_names, constants[0]) == (new.co_code, new.co_names, constants[1])


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def living() -> dict[tuple[str, str, int], list[FunctionType]]:
    """All functions by the place of their code, also those that the conftest has frozen."""
    gc.unfreeze()
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for one in gc.get_objects():
        if type(one) is FunctionType:  # isinstance would ask proxies
            found.setdefault(_place(one.__code__), []).append(one)
    gc.freeze()
    return found


def swap(
    file: str,
    old: str,
    new: str,
    functions: Mapping[tuple[str, str, int], Sequence[FunctionType]],
) -> set[tuple[str, str, int]] | None:
    """Put the code of a mutated module into its living functions; answer which differ, None if that is not possible."""
    module = os.path.relpath(file).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if module not in sys.modules:
        return set()  # its first import reads the mutated file
    pairs = differences(*(compile(text, file, "exec", dont_inherit=True) for text in (old, new)))
    if not pairs:
        return None
    places = {_place(one): other for one, other in pairs}
    found = [functions.get(place, ()) for place in places]
    unlike = any(one.__code__ != many[0].__code__ for many in found for one in many)
    if not functions.get(_place(pairs[0][0])) or unlike:
        return None  # nothing to replace, or two lambdas of one line
    try:
        for place, many in zip(places, found, strict=True):
            for function in many:
                function.__code__ = places[place]
    except ValueError:  # it uses other variables of the function around it
        return None
    return {_place(one) for one, other in pairs if not _alike(one, other)}


# -- the warm process --------------------------------------------------------------------------------------------------


class _Server:
    """Answer requests instead of running the tests that were collected."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._called: set[tuple[str, str, int]] = set()
        self._package = os.path.join(os.getcwd(), "dumpsim") + os.sep
        self._functions: Mapping[tuple[str, str, int], Sequence[FunctionType]] = {}
        self._failed: list[str] = []
        sys.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, argument: object) -> None:
        """Note which functions of the package run before the first test."""
        if frame.f_code.co_filename.startswith(self._package):
            self._called.add(_place(frame.f_code))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        sys.settrace(None)
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        self._functions = living()
        with self._socket.makefile("rw", encoding="utf-8") as stream:
            print(json.dumps(sorted(items)), file=stream, flush=True)
            for line in stream:
                print(json.dumps(self._answer(json.loads(line), items)), file=stream, flush=True)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def _answer(self, request: Mapping[str, Any], items: Mapping[str, pytest.Item]) -> dict[str, str]:
        """Fork, and wait until the child has run the tests or one of them takes longer than its limit."""
        chosen = [(items[name], limit) for name, limit in request["tests"] if name in items]
        reading, writing = os.pipe()
        folder = tempfile.mkdtemp(prefix="forkrun-")
        child = os.fork()
        if not child:
            try:
                os.setsid()
                os.close(reading)
                self._socket.close()
                os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = folder
                self._run(request, [item for item, _ in chosen], writing)
            finally:
                os._exit(1)  # no atexit, no second copy of what the parent has buffered
        os.close(writing)
        try:
            return self._follow(reading, {item.nodeid: limit for item, limit in chosen})
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # also what the tests have left
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, request: Mapping[str, Any], chosen: Sequence[pytest.Item], writing: int) -> None:
        """What the child does: say which test starts, and at the end what became of them."""

        def say(**words: str) -> None:
            os.write(writing, json.dumps(words).encode() + b"\n")

        has_run = False
        if "path" in request:
            file = os.path.join(os.getcwd(), request["path"])
            changed = swap(file, request["old"], request["new"], self._functions)
            if changed is None:
                return say(outcome="cold")
            has_run = not changed.isdisjoint(self._called)
        for item, following in itertools.zip_longest(chosen, chosen[1:]):
            say(start=item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return say(outcome="failed", test=self._failed[0])
        return say(outcome="cold" if has_run else "passed")

    def _follow(self, reading: int, limits: Mapping[str, float]) -> dict[str, str]:
        """Read what the child says, until its end or until a test takes too long."""
        test, limit = "", 60.0
        said = b""
        while select.select([reading], [], [], limit)[0]:
            chunk = os.read(reading, 1 << 16)
            if not chunk:  # the child died: if before the first test, its fault is not known
                return {"outcome": "failed", "test": test} if test else {"outcome": "cold"}
            *lines, said = (said + chunk).split(b"\n")
            for line in lines:
                words: dict[str, str] = json.loads(line)
                if "outcome" in words:
                    return words
                test = words["start"]
                limit = limits[test]
        return {"outcome": "timeout", "test": test}


def pytest_configure(config: pytest.Config) -> None:
    """Wait for requests if the environment names a socket."""
    if _WAITING:
        config.pluginmanager.register(_WAITING[0])


# the plugin is loaded before those of installed packages, so that nothing of the package has run
_WAITING = [_Server(int(os.environ.pop(_SOCKET)))] if _SOCKET in os.environ else []


# -- the side of mutate.py ---------------------------------------------------------------------------------------------


class Warm:
    """A warm process with the tests of some files.

    Parameters
    ----------
    command : sequence of str
        pytest with its options.
    folder : Path
        The copy of the checkout.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        with theirs:
            self._process = subprocess.Popen(
                [*command, "-p", "tests.forkrun"],
                cwd=folder,
                env={**environment, _SOCKET: str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                stdout=self._log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._stream = ours.makefile("rw", encoding="utf-8")
        ours.close()
        self.tests: frozenset[str] = frozenset(self._read())

    def _read(self) -> Any:
        line = self._stream.readline()
        if not line:
            self._process.wait()
            self._log.seek(0)
            said = self._log.read()[-3000:]
            self.close()
            raise RuntimeError(f"the warm process ended:\n{said}")
        return json.loads(line)

    def run(self, tests: Sequence[tuple[str, float]], **mutation: str) -> tuple[str, str]:
        """Run tests, each with its limit in seconds: ``passed``, ``failed`` or ``timeout`` with the test, ``cold``."""
        print(json.dumps({"tests": tests, **mutation}), file=self._stream, flush=True)
        answer = self._read()
        return answer["outcome"], answer.get("test", "")

    def close(self) -> None:
        """End the process."""
        self._stream.close()
        self._process.kill()
        self._process.wait()
        self._log.close()
