"""The place of a launcher among several of one job, on one machine."""

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

_LOOK_S = 0.05  # between two looks for the launcher of the scheduler


class NodeClaim:
    """Claims the number of a node, for as long as this object or a process that was forked from its own lives.

    Parameters
    ----------
    job : str
        Name of the job: address and port of its scheduler.
    node : int
        The number to claim; -1 takes the lowest free one.
    nodes : int
        How many there are.

    Attributes
    ----------
    node : int
    token : str
        The same for all launchers of the job.

    Raises
    ------
    BadInputError
        Where the number is taken, or all of them are.
    """

    def __init__(self, job: str, node: int, nodes: int) -> None:
        self._directory = f"{tempfile.gettempdir()}/dumpsim-{os.getuid()}-msrun-{job.replace(':', '_')}"
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        found = os.lstat(self._directory)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise BadInputError("belongs to somebody else", where=self._directory, code="DS-RUN-011")
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
        self._first = f"{self._directory}/scheduler"  # the number of the process that has claimed node 0
        if self.node == 0:
            self._write(self._first, str(os.getpid()), replace=True)

    def report(self, rank: int, ending: str) -> None:
        """Let the launcher of the scheduler know how a worker has ended."""
        os.write(self._descriptor, f"{rank} {ending}\n".encode())

    def wait_for_scheduler(self, limit_s: float) -> bool:
        """Wait until the launcher of the scheduler has come, and report anew; whether it has come.

        It reads what was reported since it came, since older reports may be those of another job.

        Parameters
        ----------
        limit_s : float
            How long to wait at most; a negative number: without a limit.
        """
        since = time.monotonic()
        while not self._first_has_come():
            if 0 <= limit_s < time.monotonic() - since:
                return False
            time.sleep(_LOOK_S)
        os.utime(self._descriptor)
        return True

    def _first_has_come(self) -> bool:
        """Whether the launcher of node 0 is there, or was there after this one had come."""
        try:
            since_ns = os.stat(self._first).st_mtime_ns
            number = read_text(self._first, 64)
        except (FileNotFoundError, UnreadableError):
            return False
        return since_ns >= self._since_ns or (number.isdigit() and os.path.exists(f"/proc/{number}"))

    def reports(self) -> Mapping[int, str]:
        """How workers of the other launchers have ended, since this one has come."""
        found = {}
        for entry in os.scandir(self._directory):
            if entry.name.startswith("node-") and entry.stat().st_mtime_ns > self._since_ns:
                for line in read_text(entry.path, 1 << 20).splitlines(keepends=True):
                    rank, _, ending = line.partition(" ")
                    if ending.endswith("\n"):
                        found[int(rank)] = ending.rstrip("\n")
        return found

    def _shared_token(self) -> str:
        """The token of the directory, made by the first who comes."""
        place = f"{self._directory}/token"
        self._write(place, secrets.token_hex(16), replace=False)
        return read_text(place, 64)

    @staticmethod
    def _write(place: str, text: str, *, replace: bool) -> None:
        """Write a file that appears when it is whole; `replace`: also where there is one."""
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
