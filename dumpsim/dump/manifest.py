"""``dumpsim-manifest.json``: facts about a dump that the vendor's tree does not have. It is never inside such a tree.
[design]"""

import contextlib
import json
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any, TextIO

from pydantic import BaseModel, ConfigDict

from dumpsim.core.errors import DumpWriteError
from dumpsim.core.partname import part_name

__all__ = ["BufferEntry", "FileEntry", "FindingEntry", "LayoutEntry", "Manifest", "Spool", "path_for"]

_TOGETHER = 256  # entries of one line of the spool; encoding them one by one would take several times as long


class FileEntry(BaseModel):
    """One npy file, with the device's own ids, which the file's name does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str  # relative to the rank's directory
    full_name: str
    task_id: int
    stream_id: int
    address: int
    buffer_version: int
    device_format: str
    producer: str = ""


class BufferEntry(BaseModel):
    """The lifetime of a tensor of the device, by the kernels that first and last use its memory."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    graph_id: int
    owner: str
    kind: str
    slot: int
    address: int
    nbytes: int
    born: str
    dead: str


class LayoutEntry(BaseModel):
    """The layout of a tensor on the ranks; see `dumpsim.core.tensorlayout.TensorLayout`."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    graph_id: int
    op: str
    io: str
    slot: int
    device_matrix: tuple[int, ...]
    tensor_map: tuple[int | tuple[int, ...], ...]
    shape: tuple[int, ...]
    summed: tuple[int, ...] = ()  # device dimensions along which the ranks have terms of a sum


class FindingEntry(BaseModel):
    """The first NaN, infinity or overflow that the dump found, and the number of them."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    kind: str
    op_type: str
    op_name: str
    tensor: str
    graph_id: int | None
    iteration: int | None
    count: int
    path: str
    line: int


class Manifest(BaseModel):
    """The manifest of one rank's dump."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dumpsim: str
    profile: str
    target: str
    chip: str
    jit_level: str
    rank: int
    device_id: int
    clock: str
    seed: int
    overrides: dict[str, str]
    config: str
    path: str
    asked: int
    captured: int
    skipped: dict[str, int]
    tensors: int
    rows: int
    written_files: int
    written_bytes: int
    iterations: list[int]
    notes: list[str]
    findings: list[FindingEntry] = []
    next: str = ""
    buffers: list[BufferEntry] = []
    layouts: list[LayoutEntry] = []
    files: list[FileEntry] = []


class Spool:
    """The manifest's entries of files, stored on disk until the end, so that a long dump does not need memory."""

    def __init__(self) -> None:
        self._file: TextIO | None = None
        self._recent: list[tuple[Any, ...]] = []

    def add(self, *fields: Any) -> None:
        """Add an entry, with its fields in the order of `FileEntry`."""
        self._recent.append(fields)
        if len(self._recent) == _TOGETHER:
            self._flush()  # early, since memory is limited

    def _flush(self) -> None:
        """Write the latest entries to disk, as one line."""
        if not self._recent:
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - open as long as the spool exists
            # close the file of a dump that is never finished, but not at exit, when the manifest may yet be written
            weakref.finalize(self, self._file.close).atexit = False
        self._file.write(json.dumps(self._recent, ensure_ascii=False) + "\n")
        self._recent.clear()

    def finish(self, manifest: Manifest, path: str) -> None:
        """Write the manifest, with the entries copied from disk.

        Raises
        ------
        DumpWriteError
        """
        left_out = {"files"} if manifest.layouts else {"files", "layouts"}  # only sliced networks have layouts
        head = json.dumps(manifest.model_dump(exclude=left_out), indent=1, ensure_ascii=False)
        names = tuple(FileEntry.model_fields)
        part = os.path.join(os.path.dirname(path), part_name())
        try:
            self._flush()
            with open(part, "w", encoding="utf-8") as out:
                out.write(head.removesuffix("\n}") + ',\n "files": [')
                separator = "\n  "
                if self._file is not None:
                    self._file.seek(0)
                    for fields in (fields for line in self._file for fields in json.loads(line)):
                        entry = dict(zip(names, fields, strict=True))
                        out.write(separator + json.dumps(entry, ensure_ascii=False))
                        separator = ",\n  "
                out.write("\n ]\n}\n")
            os.replace(part, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise DumpWriteError(f"cannot be written: {error.strerror}", where=path, code="DS-ARC-011") from error
        finally:
            if self._file is not None:
                self._file.close()
                self._file = None


def path_for(path: str, rank: int) -> str:
    """Return the path of a rank's manifest; for ranks other than 0 the name has the number.

    Examples
    --------
    >>> path_for("dumpsim-manifest.json", 0), path_for("out/m.json", 3)
    ('dumpsim-manifest.json', 'out/m-rank3.json')
    """
    if rank == 0:
        return path
    found = Path(path)
    return str(found.with_name(f"{found.stem}-rank{rank}{found.suffix}"))
