"""What lies in a dump directory, by operator."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dumpsim.analysis.msaccucmp.dumpfile import OPDEBUG, name_of
from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.codecs import mapping
from dumpsim.core.errors import UnreadableError

__all__ = ["Golden", "Listed", "dump_files", "golden_npy", "in_name"]

_GOLDEN = re.compile(r"(?P<name>.+)\.(?P<index>\d+)\.(?P<time>\d{1,255})\.npy")
_REPLACED = str.maketrans(" ./\\", "____")  # [spec ge 3.4]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A dump file of an operator; `name` is the original one if mapping.csv has it."""

    path: str
    op_type: str
    op_name: str
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """An npy file ``name.index.timestamp.npy``."""

    path: str
    timestamp: int


def in_name(op_name: str) -> str:
    """An operator's name as file names have it.

    Examples
    --------
    >>> in_name("scope/add.2")
    'scope_add_2'
    """
    return op_name.translate(_REPLACED)


def dump_files(directory: str) -> dict[str, Listed]:
    """Dump files by operator, in the order of time; of several of one operator the newest.

    Raises
    ------
    ToolError
        Exit code 18 where there are none.
    """
    real = _real_names(directory)
    found: list[Listed] = []
    for entry in os.scandir(directory):
        title = real.get(entry.name, entry.name)
        name = name_of(title)
        if entry.is_file(follow_symlinks=False) and name is not None and not title.startswith(OPDEBUG):
            found.append(Listed(path=entry.path, op_type=name.op_type, op_name=name.op_name, timestamp=name.timestamp))
    if not found:
        raise ToolError(Status.DUMP_FILE, f"No valid dump files in the path \"'{directory}'\".")
    found.sort(key=lambda file: (file.timestamp, file.path))
    newest = {file.op_name: file for file in found}
    return dict(sorted(newest.items(), key=lambda pair: (pair[1].timestamp, pair[1].path)))


def golden_npy(directory: str) -> dict[tuple[str, int], Golden]:
    """Golden npy files by operator and output; the newest of several."""
    real = _real_names(directory)
    found: dict[tuple[str, int], Golden] = {}
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        match = _GOLDEN.fullmatch(real.get(entry.name, entry.name))
        if match is None or not entry.is_file(follow_symlinks=False):
            continue
        key = (match["name"], int(match["index"]))
        made = Golden(path=entry.path, timestamp=int(match["time"]))
        if key not in found or found[key].timestamp <= made.timestamp:
            found[key] = made
    return found


def _real_names(directory: str) -> Mapping[str, str]:
    path = os.path.join(directory, "mapping.csv")
    try:
        return mapping.read(path, frozenset(os.listdir(directory)))
    except UnreadableError as error:
        raise ToolError(Status.FILE_TOO_LARGE, f"\"'{path}'\" {error.what}.") from error
