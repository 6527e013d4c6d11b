"""Names of files that are being written, unique over the writers of a process, a machine and several machines."""

import os
import socket
import zlib
from functools import lru_cache
from itertools import count

__all__ = ["CLAIM", "PART", "is_ours", "machine", "part_name", "writer_of"]

PART = ".dumpsim-part-"  # followed by machine, process and number
CLAIM = ".dumpsim-claim-"  # followed by the owner of the directory
_NUMBERS = count()


def part_name() -> str:
    """Return a new name for an unfinished file.

    Examples
    --------
    >>> part_name() != part_name(), is_ours(part_name()), is_ours("statistic.csv")
    (True, True, False)
    """
    return f"{PART}{machine()}-{os.getpid()}-{next(_NUMBERS)}"


def is_ours(name: str) -> bool:
    """Whether the name is that of an unfinished file or a claim, which are not part of a dump."""
    return name.startswith((PART, CLAIM))


def writer_of(name: str) -> int | None:
    """Return the process that writes an unfinished file, None if it runs on another machine.

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
    """Return an identifier of the process namespace: it differs between machines, boots and containers."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            found = file.read() + os.readlink("/proc/self/ns/pid")
    except OSError:
        found = socket.gethostname()
    return f"{zlib.crc32(found.encode()):08x}"
