"""Names of files that are being written: no two writers, of one process or of several machines, share one."""

import os
import socket
import zlib
from functools import lru_cache
from itertools import count

__all__ = ["CLAIM", "PART", "is_ours", "machine", "part_name", "writer_of"]

PART = ".dumpsim-part-"  # and the machine, the process, a number
CLAIM = ".dumpsim-claim-"  # and whose directory it is
_NUMBERS = count()


def part_name() -> str:
    """Return a new name for a file that is not finished.

    Examples
    --------
    >>> part_name() != part_name(), is_ours(part_name()), is_ours("statistic.csv")
    (True, True, False)
    """
    return f"{PART}{machine()}-{os.getpid()}-{next(_NUMBERS)}"


def is_ours(name: str) -> bool:
    """Whether a file of that name is one of ours that is not a part of a dump: unfinished, or a claim."""
    return name.startswith((PART, CLAIM))


def writer_of(name: str) -> int | None:
    """Return the process that writes an unfinished file, None where it cannot be known on this machine.

    Examples
    --------
    >>> writer_of(part_name()) == os.getpid(), writer_of(".dumpsim-part-elsewhere-1-0")
    (True, None)
    """
    found, _, rest = name.removeprefix(PART).partition("-")
    pid = rest.partition("-")[0]
    return int(pid) if name.startswith(PART) and found == machine() and pid.isdecimal() and len(pid) < 12 else None


@lru_cache(maxsize=1)
def machine() -> str:
    """Return an identifier of the machines, boots and containers that number their processes by themselves."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            found = file.read() + os.readlink("/proc/self/ns/pid")
    except OSError:
        found = socket.gethostname()
    return f"{zlib.crc32(found.encode()):08x}"
