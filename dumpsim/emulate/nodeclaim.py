"""The node number of a launcher, if several launchers on one machine start one job."""

import fcntl
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Mapping
from weakref import finalize

from dumpsim.core.errors import BadInputError, UnreadableError
from dumpsim.core.regular import read_text

__all__ = ["NodeClaim"]

_LOOK_S = 0.05  # seconds between two checks for the launcher of the scheduler


class NodeClaim:
    """Claims a node number for the lifetime of this object and of processes forked from its own.

    Parameters
    ----------
    job : str
        Name of the job: address and port of its scheduler.
    node : int
        The number to claim; -1: the lowest free one.
    nodes : int
        Number of nodes.

    Attributes
    ----------
    node : int
    token : str
        Secret that all launchers of the job share.

    Raises
    ------
    BadInputError
        If the number is taken, or all of them are.
    """

    def __init__(self, job: str, node: int, nodes: int) -> None:
        self._directory = f"{tempfile.gettempdir()}/dumpsim-{os.getuid()}-msrun-{job.replace(':', '_')}"
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        found = os.lstat(self._directory)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise BadInputError("belongs to another user", where=self._directory, code="DS-RUN-011")
        taken = False
        for number in range(nodes) if node == -1 else (node,):
            descriptor = os.open(f"{self._directory}/node-{number}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                continue
            finalize(self, os.close, descriptor)
            os.ftruncate(descriptor, 0)
            self.node, taken, self._descriptor = number, True, descriptor
            self._since_ns = os.fstat(descriptor).st_mtime_ns
            break
        if not taken:
            what = f"all {nodes} nodes of the job are taken" if node == -1 else f"node {node} of the job is taken"
            raise BadInputError(what, where="--node_rank", code="DS-RUN-011")
        self.token = self._shared_token()
        self._first = f"{self._directory}/scheduler"  # has the id of the process that claimed node 0
        if self.node == 0:
            self._write(self._first, str(os.getpid()), replace=True)

    def report(self, rank: int, ending: str) -> None:
        """Report to the launcher of the scheduler how a worker ended."""
        os.write(self._descriptor, f"{rank} {ending}\n".encode())

    def wait_for_scheduler(self, limit_s: float) -> bool:
        """Wait for the launcher of the scheduler, and report again; return whether it came.

        It ignores reports from before its start, which may belong to another job.

        Parameters
        ----------
        limit_s : float
            Longest time to wait; negative: no limit.
        """
        since = time.monotonic()
        while not self._first_has_come():
            if 0 <= limit_s < time.monotonic() - since:
                return False
            time.sleep(_LOOK_S)
        os.utime(self._descriptor)
        return True

    def _first_has_come(self) -> bool:
        """Return whether the launcher of node 0 has started, even if it has ended since."""
        try:
            since_ns = os.stat(self._first).st_mtime_ns
            number = read_text(self._first, 64)
        except (FileNotFoundError, UnreadableError):
            return False
        return since_ns >= self._since_ns or (number.isdigit() and os.path.exists(f"/proc/{number}"))

    def reports(self) -> Mapping[int, str]:
        """Return how workers of the other launchers ended since this one started.

        Files have the time of the kernel's last tick, so a report may have the same time as the start.
        """
        found = {}
        for entry in os.scandir(self._directory):
            if entry.name.startswith("node-") and entry.stat().st_mtime_ns >= self._since_ns:
                for line in read_text(entry.path, 1 << 20).splitlines(keepends=True):
                    rank, _, ending = line.partition(" ")
                    if ending.endswith("\n"):
                        found[int(rank)] = ending.rstrip("\n")
        return found

    def _shared_token(self) -> str:
        """Return the token in the directory; the first launcher creates it."""
        place = f"{self._directory}/token"
        self._write(place, secrets.token_hex(16), replace=False)
        return read_text(place, 64)

    @staticmethod
    def _write(place: str, text: str, *, replace: bool) -> None:
        """Write a file atomically; `replace` allows an existing one."""
        part = f"{place}-{os.getpid()}"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
        if replace:
            os.replace(part, place)
            return
        try:
            os.link(part, place)
        except FileExistsError:
            pass
        finally:
            os.unlink(part)
