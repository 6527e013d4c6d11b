"""``dumpsim run --ranks N``: run an unmodified script on N ranks that share this process.

Run as ``python -m dumpsim.emulate.localjob N SCRIPT [ARGS]...`` in the environment of `dumpsim run`.
"""

import atexit
import importlib.util
import multiprocessing.process
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from dumpsim.core.errors import BadInputError, UnsupportedError, public_name
from dumpsim.core.settings import RunSettings
from dumpsim.dump.job import JobAccounts
from dumpsim.emulate.failure import FULL, text_of
from dumpsim.emulate.rankmodules import RankModules
from dumpsim.world.context import World, current
from dumpsim.world.ending import RankKilled, RankStopped
from dumpsim.world.launch import launch
from dumpsim.world.output import PrefixedOutput

__all__ = ["LocalJob", "main"]

_INSTEAD = "dumpsim msrun gives each rank a process of its own"


class _RankExit(Exception):
    """A rank ended with an exit code other than 0."""

    def __init__(self, code: int) -> None:
        self.code = code


class LocalJob:
    """A script on the ranks of this process.

    Parameters
    ----------
    command : sequence of str
        A script and its arguments, or ``-m``, a module and its arguments.
    ranks : int
    """

    def __init__(self, command: Sequence[str], ranks: int) -> None:
        self.command = list(command)
        self.ranks = ranks
        self.endings = dict.fromkeys(range(ranks), "did not start")
        self.errors: dict[int, BaseException] = {}  # by rank
        self._code: CodeType | None = None  # of the script, shared by all ranks
        self._world: World | None = None

    def run(self) -> int:
        """Run the script and return the exit code of the first rank that fails.

        At the end, report the dumps of the job, and how its ranks ended if not all succeeded.
        """
        code = 0
        try:
            with _Guard():
                launch(self._rank, self.ranks)
        except _RankExit as end:
            code = end.code
        except BaseException as error:
            self._show(error)
            code = 130 if isinstance(error, KeyboardInterrupt) else 1
        self._tell()
        return code

    def _rank(self) -> None:
        """The program of a rank."""
        context = current()
        self._world = context.world
        context.world.get(JobAccounts).reported = True  # it is reported below, with the ends of the ranks
        if self.ranks > 1:
            output = PrefixedOutput(sys.stdout, f"[{context.rank}] ")
            context.at_close(output.finish)
            sys.stdout = output  # print needs nothing else
        self.endings[context.rank] = "stopped"
        try:
            self._script(context.give)
        except SystemExit as end:
            code = _exit_code(end.code)
            self.endings[context.rank] = f"exit code {code}"
            if code:
                raise _RankExit(code) from None
        except RankStopped:
            raise
        except RankKilled:
            self.endings[context.rank] = "killed"
            raise
        except BaseException as error:
            self.endings[context.rank] = f"{public_name(error)}, exit code 1"
            self.errors[context.rank] = error
            raise
        else:
            self.endings[context.rank] = "exit code 0"

    def _script(self, give: Callable[[RankModules], None]) -> None:
        """Run the script as this rank's ``__main__``."""
        main = ModuleType("__main__")
        if self.command[0] == "-m":
            give(RankModules(main, argv=self.command[1:], path=[os.getcwd(), *sys.path[1:]]))
            code = self._module(main)
        else:
            script = self.command[0]
            give(RankModules(main, argv=self.command, path=[os.path.dirname(os.path.realpath(script)), *sys.path[1:]]))
            main.__file__ = os.path.abspath(script)
            main.__loader__ = SourceFileLoader("__main__", main.__file__)
            if self._code is None:
                with open(main.__file__, "rb") as file:
                    self._code = compile(file.read(), main.__file__, "exec", dont_inherit=True)
            code = self._code
        exec(code, vars(main))

    def _module(self, main: ModuleType) -> CodeType:
        """Return the code of the module of ``-m``; `main` gets its names."""
        name = self.command[1]
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
        if spec is None or spec.origin is None:
            raise BadInputError(f"the module {name!r} does not exist", where="-m", code="DS-RUN-001")
        code: CodeType | None = getattr(spec.loader, "get_code", lambda _: None)(spec.name)
        if code is None:
            raise BadInputError(f"the module {name!r} has no code to run", where="-m", code="DS-RUN-001")
        main.__file__, main.__spec__, main.__package__ = spec.origin, spec, spec.parent
        main.__loader__ = spec.loader
        sys.argv[0] = spec.origin
        return code

    def _show(self, error: BaseException) -> None:
        """Print the error of the launch, and a line for each other rank that raised one."""
        _show(error)
        for rank, other in sorted(self.errors.items()):
            if other is not error:
                text = str(other).partition("\n")[0]
                print(f"rank {rank}: {public_name(other)}: {text}", file=sys.stderr, flush=True)

    def _tell(self) -> None:
        if RunSettings.from_environment().quiet or self._world is None:
            return
        good = set(self.endings.values()) == {"exit code 0"}
        text = self._world.get(JobAccounts).text(self.ranks, None if good else self.endings)
        if text:
            print(text, file=sys.stderr, flush=True)


class _Guard:
    """While ranks share the process, refuse calls that would break that, or make their effect the rank's own."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> None:
        self._replace(signal, "signal", self._signal)
        self._replace(atexit, "register", self._at_exit)
        start = threading.Thread.start
        self._replace(threading.Thread, "start", lambda thread: _start_thread(start, thread))
        self._replace(multiprocessing.process.BaseProcess, "start", _refuse_process)
        for name in ("fork", "forkpty"):
            self._replace(os, name, partial(_refuse_fork, f"os.{name}"))

    def __exit__(self, *error: object) -> None:
        for owner, name, before in self._before:
            setattr(owner, name, before)

    def _replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        self._before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, function)

    def _signal(self, number: int, handler: Any) -> Any:
        if callable(handler) and _of_script(sys._getframe(1)) and handler is not signal.default_int_handler:
            name = signal.Signals(number).name
            raise UnsupportedError(
                f"ranks that share a process cannot each handle {name}; {_INSTEAD}", where="signal.signal"
            )
        return self._before[0][2](number, handler)

    def _at_exit(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if _of_script(sys._getframe(1)):
            current().at_close(partial(function, *args, **kwargs))
            return function
        return self._before[1][2](function, *args, **kwargs)


def _of_script(frame: Any) -> bool:
    """Return whether a rank's own module is running."""
    finder = next((one for one in sys.meta_path if isinstance(one, RankModules)), None)
    return finder is not None and finder.has(frame.f_globals.get("__name__"))


def _start_thread(start: Callable[[threading.Thread], None], thread: threading.Thread) -> None:
    """Start a thread in the rank of its starter."""
    variables, run = copy_context(), thread.run
    thread.run = lambda: variables.run(run)  # type: ignore[method-assign]
    start(thread)


def _refuse_fork(where: str) -> None:
    raise UnsupportedError(f"a script whose ranks share a process cannot fork; {_INSTEAD}", where=where)


def _refuse_process(process: multiprocessing.process.BaseProcess) -> None:
    raise UnsupportedError(
        f"ranks that share a process cannot start {process.name!r}; {_INSTEAD}", where="multiprocessing"
    )


def _exit_code(code: object) -> int:
    """Return the exit code of a SystemExit, and print its text as Python does."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Print a traceback that starts at the script."""
    own = str(Path(__file__).parents[1] / "world"), __file__
    found: TracebackType | None = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename.startswith(own):
        found = found.tb_next
    error = error.with_traceback(found or error.__traceback__)
    if os.environ.get(FULL) == "full":
        traceback.print_exception(error)
    else:
        print(text_of(error), end="", file=sys.stderr)


def main() -> None:
    """Run the command line."""
    ranks, *command = sys.argv[1:]
    raise SystemExit(LocalJob(command, int(ranks)).run())


if __name__ == "__main__":
    main()
