"""Runs many net scripts under the emulation, each in a process of its own that is forked after the import."""

import contextlib
import gc
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from corpus import trees  # noqa: E402
from corpus.record import dump_config  # noqa: E402

from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.emulate import environment  # noqa: E402

SECONDS = 60  # of processor time for a net


def _child(folder: Path) -> None:
    """Run ``folder/net.py`` and leave ``tree.json`` and ``log.txt``; never returns."""
    code = 1
    try:
        log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(folder)
        (folder / "dump.json").write_text(dump_config(folder / "tree"))
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(folder / "dump.json")
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # a loop that does not end
        sys.argv = [str(folder / "net.py")]
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _serve() -> None:
    import mindspore  # noqa: F401
    from mindspore import nn, ops  # noqa: F401

    # what most nets need when they are compiled and run, so that it is imported once
    import dumpsim.frontends.mindspore._capture.compile
    import dumpsim.frontends.mindspore._dumping
    import dumpsim.frontends.mindspore._latechanges
    import dumpsim.frontends.mindspore.parallel._settings
    import dumpsim.ops.composite
    import dumpsim.ops.cpu
    import dumpsim.runtime.session  # noqa: F401

    gc.collect()
    gc.freeze()  # a collection in a child would copy every page
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _child(Path(line.strip()))
        _, status = os.waitpid(child, 0)
        print("done", status, flush=True)


class Emulator:
    """A process that has imported the emulation and runs net scripts, for as long as this context manager is entered.

    It is started by the first run.
    """

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._server: subprocess.Popen[str] | None = None
        self._scratch = Path()
        self._count = 0

    def __enter__(self) -> "Emulator":
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            assert self._server.stdin
            self._server.stdin.close()
        self._server = None
        self._stack.close()

    def run(self, scripts: Mapping[str, str], keep: Path | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield for each net its tree (see `trees.read`), or ``{"refused": text}`` with the end of what it printed.

        Parameters
        ----------
        scripts : mapping of str to str
            Text of each net's script by its name.
        keep : Path, optional
            Leave the trees below this folder.
        """
        server = self._server or self._start()
        assert server.stdin
        assert server.stdout
        for name, script in scripts.items():
            self._count += 1
            folder = keep.resolve() / name if keep else self._scratch / str(self._count) / name
            folder.mkdir(parents=True)
            (folder / "net.py").write_text(script)
            server.stdin.write(f"{folder}\n")
            server.stdin.flush()
            answer = ""
            while not answer.startswith("done"):
                answer = server.stdout.readline()
                if not answer:
                    raise RuntimeError(f"the emulation's process ended at {name}")
            if answer.split() == ["done", "0"]:
                yield name, trees.read(folder / "tree")
            else:
                yield name, {"refused": (folder / "log.txt").read_text(errors="replace")[-3000:]}

    def _start(self) -> "subprocess.Popen[str]":
        settings = RunSettings(mindspore="2.10", device="cpu", manifest=None, quiet=True)
        env = environment(settings, {"PATH": os.environ["PATH"]})
        command = [sys.executable, str(Path(__file__).resolve())]
        self._scratch = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="corpus-"))).resolve()
        self._server = self._stack.enter_context(
            subprocess.Popen(
                command, cwd=self._scratch, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        return self._server


def run(scripts: Mapping[str, str], keep: Path | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same with a process of its own; see `Emulator.run`."""
    with Emulator() as emulator:
        yield from emulator.run(scripts, keep)


if __name__ == "__main__":
    _serve()
