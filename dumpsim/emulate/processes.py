"""Starts the processes that `dumpsim msrun` planned, and waits for them. [spec parallel 5]"""

import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import IO, Any

from dumpsim.core.regular import read_text
from dumpsim.dump.job import VARIABLE, JobAccounts, write_json
from dumpsim.emulate.binding import SCHEDULER
from dumpsim.emulate.launchplan import LaunchPlan
from dumpsim.emulate.scheduler import LAUNCHER

__all__ = ["SUMMARY", "Job"]

SUMMARY = "dumpsim-job.json"  # its name, in the directory of the logs

_GRACE_S = 2.0  # seconds for workers to log their errors after another one has failed
_PATIENCE_S = 10.0  # seconds for the scheduler to end after its workers
_LOOK_S = 0.1  # seconds between two reads of the logs
_ERRORS = ".err"  # suffix of a log: stderr of a worker, if it has a file of its own
_AROUND = 5  # lines to print around an error in the scheduler's log
_ERROR = re.compile("ERROR|CRITICAL|Traceback|Error")
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class _Interrupted(BaseException):
    """A signal stopped the launcher."""

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass(slots=True, eq=False)
class _Tail:
    """Prints the new whole lines of a growing file."""

    file: IO[bytes]
    output: IO[str]
    head: bytes
    unfinished: bytes = b""

    @classmethod
    def of(cls, path: str, output: IO[str], head: bytes) -> "_Tail":
        """Follow a file from its start."""
        return cls(open(path, "rb"), output, head)  # `show` closes it at the end

    def show(self, *, last: bool = False) -> None:
        """Print new lines; at the end an unfinished line, too."""
        if self.file.closed:
            return
        *lines, self.unfinished = (self.unfinished + self.file.read()).split(b"\n")
        if last:
            lines += [self.unfinished] if self.unfinished else []
            self.file.close()
        self.output.flush()
        self.output.buffer.write(b"".join(self.head + line + b"\n" for line in lines))  # type: ignore[attr-defined]
        self.output.flush()


@dataclass(slots=True, eq=False)
class _Child:
    """A process of the job."""

    rank: int
    process: "subprocess.Popen[bytes]"
    log: str
    shown: list[_Tail] = field(default_factory=list)
    killed: str = ""  # why the launcher killed it

    @property
    def code(self) -> int:
        """Its exit code, as a shell reports it."""
        found = self.process.returncode or 0
        return found if found >= 0 else 128 - found

    @property
    def ending(self) -> str:
        """How it ended; empty while it runs."""
        code = self.process.poll()
        if code is None:
            return ""
        if self.killed:
            return f"killed: {self.killed}"
        return f"exit code {code}" if code >= 0 else f"killed by {_signal_name(-code)}"


class Job:
    """The scheduler and the workers that one launcher starts.

    Parameters
    ----------
    plan : LaunchPlan
    environment : mapping of str to str
        Variables of all processes, see `dumpsim.emulate.environment`.
    quiet : bool
        No summary on stderr.
    plain : bool
        For `dumpsim run`: leave out msrun's own lines and `SUMMARY`, keep stderr of workers apart, and begin lines
        of workers with their ranks.
    """

    def __init__(
        self, plan: LaunchPlan, environment: Mapping[str, str], *, quiet: bool = False, plain: bool = False
    ) -> None:
        self.plan = plan
        self.code = 0  # exit code of the worker that failed first
        self._plain = plain
        self._environment = dict(environment)
        self._quiet = quiet
        self._scheduler: _Child | None = None
        self._workers: list[_Child] = []
        self._reported: set[int] = set()  # ranks whose end was reported to the scheduler
        self._accounts = ""

    def run(self) -> int:
        """Run the job; with ``join`` to its end, otherwise until all processes have started.

        Returns
        -------
        int
            The exit code: 0, or 1 if a process failed.
        """
        for text in self.plan.warnings:
            self._say(text)
        if self.plan.options.log_dir:
            os.makedirs(self.plan.options.log_dir, exist_ok=True)
        if self.plan.options.join:
            return self._run_here()
        return self._run_in_background()

    # ---------------------------------------------------------------- run
    def _run_here(self) -> int:
        """Start the processes, wait for them, and show the logs."""
        before = {
            number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            try:
                self._start()
                self._say("Distributed job is spawned. Waiting all processes to exit...")
                failed = self._wait(stop=True)
            except _Interrupted as stop:
                for number in before:
                    signal.signal(number, signal.SIG_IGN)
                name = _signal_name(stop.number)
                self._say(f"{name}: all processes are killed")
                self._kill(f"the launcher got {name}")
                self._finish()
                as_msrun = stop.number == signal.SIGINT and not self._plain  # it gives 0 [spec parallel 5]
                return 0 if as_msrun else 128 + stop.number
            self._finish()
        finally:
            self._kill("the launcher failed")
            for number, handler in before.items():
                signal.signal(number, handler)
            shutil.rmtree(self._accounts, ignore_errors=True)
        if failed:
            self._show_errors()
            where = self.plan.options.log_dir or os.curdir
            self._say(f"Distributed job exited with exception. Please check logs in directory: {where}.")
        return int(failed)

    def _run_in_background(self) -> int:
        """Start a process that waits for the job in the background and writes how it ended."""
        started, start = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        if os.fork():
            os.close(start)
            with open(started, "rb") as pipe:
                return 0 if pipe.read(1) else 1
        code = 1
        try:
            os.setsid()
            self._start()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nowhere, descriptor)
            os.write(start, b"1")
            code = int(self._wait(stop=False))
            self._finish()
        except BaseException:
            traceback.print_exc()
        finally:
            self._kill("the launcher failed")
            shutil.rmtree(self._accounts, ignore_errors=True)
            os._exit(code)

    # ------------------------------------------------------------------- start
    def _start(self) -> None:
        """Start the scheduler, then the workers in order of rank."""
        self._accounts = tempfile.mkdtemp(prefix="dumpsim-job-")
        if self.plan.scheduler:
            log = self.plan.log(SCHEDULER)
            self._say_first(f"Start scheduler process, log file:{log}.")
            self._scheduler = self._child(SCHEDULER, [sys.executable, "-m", "dumpsim.emulate.scheduler"], log)
        for rank in self.plan.ranks:
            log = self.plan.log(rank)
            shown = " ".join(["python", *self.plan.options.command])
            self._say_first(
                f"Start worker process with rank id:{rank}, log file:{log}. "
                f"Environment variable [RANK_ID={rank}] is exported. Execute command: {shown}"
            )
            child = self._child(rank, self.plan.command, log)
            if self.plan.options.join and rank in self.plan.tailed:
                head = f"[{rank}] ".encode() if self._plain else b""
                child.shown.append(_Tail.of(log, sys.stdout, head))
                if self._plain:
                    child.shown.append(_Tail.of(log + _ERRORS, sys.stderr, head))
            self._workers.append(child)

    def _say_first(self, text: str) -> None:
        if not self._plain:
            print(text, flush=True)

    def _say(self, text: str) -> None:
        if not self._plain:
            print(f"dumpsim msrun: {text}", file=sys.stderr, flush=True)

    def _child(self, rank: int, command: Sequence[str], log: str) -> _Child:
        environment = self._environment | self.plan.environment(rank) | {VARIABLE: self._accounts}
        if rank == SCHEDULER:
            left = [self._accounts, *([self.plan.options.log_dir] if self._plain else [])]
            environment[LAUNCHER] = json.dumps([os.getpid(), [os.path.abspath(each) for each in left]])
        cpus = self.plan.binding.cpus(rank - self.plan.ranks[0] if rank != SCHEDULER else SCHEDULER)
        # the scheduler notices the end of the launcher itself, and cleans up
        prepare = partial(_prepare, os.getpid(), cpus, bound=rank != SCHEDULER)
        apart = self._plain and rank != SCHEDULER
        with open(log, "wb") as output, open(log + _ERRORS if apart else os.devnull, "wb") as errors:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE if rank == SCHEDULER else subprocess.DEVNULL,
                stdout=output,
                stderr=errors if apart else subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=prepare,
            )
        return _Child(rank, process, log)

    # -------------------------------------------------------------------- wait
    def _wait(self, *, stop: bool) -> bool:
        """Wait for all processes; return whether one failed.

        With `stop`, the first failure ends the others, after a grace period in which they may log what they miss.
        """
        failed_at = 0.0
        running = list(self._workers)
        while running:
            self._look(running)
            for child in list(running):
                if child.ending:
                    running.remove(child)
                    self._notify_scheduler(child.rank, child.ending)
                    if child.process.returncode and not child.killed:
                        failed_at = failed_at or time.monotonic()
                        self.code = self.code or child.code
                        self._say(
                            f"Worker process {child.process.pid} exit with exception: "
                            f"rank {child.rank}, {child.ending}."
                        )
            if self._scheduler is not None and self._scheduler.process.poll():
                failed_at = failed_at or time.monotonic()  # not all workers have registered
            if stop and failed_at and running and time.monotonic() - failed_at > _GRACE_S:
                self._say("There's worker exits with exception, kill all other workers.")
                lost = self._scheduler is not None and self._scheduler.process.returncode
                self._kill("the scheduler has given up" if lost else "another worker has failed", running)
        return self._end_scheduler() or bool(failed_at)

    def _look(self, running: Sequence[_Child]) -> None:
        """Print new lines of the logs, and wait a little for the end of a process."""
        for child in self._workers:
            for tail in child.shown:
                tail.show()
        polled = select.poll()
        descriptors = []
        for child in running:
            with suppress(OSError):  # it has just ended
                descriptors.append(os.pidfd_open(child.process.pid))
                polled.register(descriptors[-1], select.POLLIN)
        polled.poll(_LOOK_S * 1000)
        for descriptor in descriptors:
            os.close(descriptor)

    def _notify_scheduler(self, rank: int, ending: str) -> None:
        """Report to the scheduler that a worker ended, and how."""
        if rank in self._reported:
            return
        self._reported.add(rank)
        with suppress(OSError):  # the scheduler has ended
            if self._scheduler is not None and self._scheduler.process.stdin is not None:
                self._scheduler.process.stdin.write(f"{rank} {ending}\n".encode())
                self._scheduler.process.stdin.flush()
            elif self.plan.claim is not None:
                self.plan.claim.report(rank, ending)

    def _end_scheduler(self) -> bool:
        """Wait for the scheduler, which may serve other launchers too; return whether it failed."""
        if self._scheduler is None:
            if self.plan.claim is not None:
                self.plan.claim.wait_for_scheduler(self.plan.options.cluster_time_out)
            return False
        process, claim = self._scheduler.process, self.plan.claim
        patience = time.monotonic() + _PATIENCE_S
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
            if claim is not None:
                for rank, ending in claim.reports().items():
                    self._notify_scheduler(rank, ending)
            elif time.monotonic() > patience:
                self._kill("its workers have ended", [self._scheduler])
                return False
        if process.returncode:
            self._say(f"Scheduler process {process.pid} exit with exception.")
        return process.returncode != 0

    def _kill(self, why: str, children: Sequence[_Child] | None = None) -> None:
        """Kill processes and their children; by default all that run."""
        all_of_them = [*self._workers, *([self._scheduler] if self._scheduler else [])]
        for child in all_of_them if children is None else children:
            if child.process.poll() is None:
                child.killed = why
                with suppress(ProcessLookupError):
                    os.killpg(child.process.pid, signal.SIGKILL)
                child.process.wait()

    # --------------------------------------------------------------------- end
    def _finish(self) -> None:
        """Report how the job ended: on stderr, and for programs in a file beside the logs."""
        for child in self._workers:
            for tail in child.shown:
                tail.show(last=True)
        accounts = JobAccounts()
        accounts.read(self._accounts)
        endings = {child.rank: child.ending for child in self._workers}
        size = self.plan.options.worker_num
        if not self._plain:
            write_json(os.path.join(self.plan.options.log_dir, SUMMARY), self._document(accounts, endings))
        good = set(endings.values()) == {"exit code 0"}
        text = accounts.text(size, None if self._plain and good else endings)
        if not self.plan.options.join:
            if self._scheduler is not None:
                with open(self._scheduler.log, "a", encoding="utf-8") as log:
                    print(text, file=log)
        elif text and not self._quiet:
            print(text, file=sys.stderr, flush=True)

    def _show_errors(self) -> None:
        """Print the errors in the log of the scheduler, with the lines around them, as msrun does."""
        if self._scheduler is None or self._plain:
            return
        lines = read_text(self._scheduler.log, 1 << 24).splitlines()
        found = [at for at, line in enumerate(lines) if _ERROR.search(line)]
        near = sorted({at for place in found for at in range(place - _AROUND, place + _AROUND + 1)})
        for at in near:
            if 0 <= at < len(lines):
                print(lines[at], flush=True)

    def _document(self, accounts: JobAccounts, endings: Mapping[int, str]) -> dict[str, Any]:
        found = accounts.document(self.plan.options.worker_num, endings)
        for entry in found["ranks"]:
            child = next((one for one in self._workers if one.rank == entry["rank"]), None)
            if child is not None:
                entry |= {"exit_code": child.process.returncode, "log": child.log}
        if self._scheduler is not None:
            found["scheduler"] = {"ending": self._scheduler.ending, "exit_code": self._scheduler.process.returncode}
        return found


def _prepare(launcher: int, cpus: Sequence[int], *, bound: bool) -> None:
    """Prepare a new process before it starts its program; if `bound`, it ends with the launcher."""
    if bound:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:  # it has ended before
        os._exit(1)
    if cpus:
        os.sched_setaffinity(0, cpus)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise _Interrupted(number)


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
