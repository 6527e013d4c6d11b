"""``msaccucmp convert``: dump files to npy, bin or pt. [spec ge 4.1, 4.2]"""

import importlib.util
import io
import os
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.analysis.msaccucmp import reformat as layouts
from dumpsim.analysis.msaccucmp.dumpfile import OPDEBUG, DumpFile, Tensor
from dumpsim.analysis.msaccucmp.journal import Journal
from dumpsim.analysis.msaccucmp.safepath import existing
from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.analysis.wholefile import append_line, npy_parts, write_whole
from dumpsim.archive.longname import MAPPING, stored_name
from dumpsim.codecs import opdebug
from dumpsim.core.errors import DumpsimError, DumpWriteError, UnreadableError
from dumpsim.core.partname import is_ours

__all__ = ["TYPES", "Conversion", "convert", "make_output", "overflow_facts"]

Array = NDArray[Any]

TYPES = ("npy", "bin", "msnpy", "pt")
FAILED_LIST = "convert_failed_file_list.txt"
_MAX_NAME = 254  # longer names go to mapping.csv [spec ge 4.2]
_THREADS = 8

Outcome = tuple[Status, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What is asked for.

    Attributes
    ----------
    out : str
        Directory to write to.
    type : str
        One of `TYPES`.
    format : str or None
        Target layout; None keeps the device's.
    shape : tuple of int
        Host shape for FRACTAL_NZ without one.
    input, output : int or None
        The only tensor to convert.
    custom : mapping
        The user's own converters by (from, to).
    """

    out: str
    type: str = "npy"
    format: str | None = None
    shape: tuple[int, ...] = ()
    input: int | None = None
    output: int | None = None
    custom: dict[tuple[str, str], layouts.Converter] = field(default_factory=dict)


def convert(paths: Sequence[str], what: Conversion, journal: Journal) -> Status:
    """Convert files, or all files of one directory.

    Returns
    -------
    Status
        That of the first failure, in the order of the files.
    """
    if what.type == "pt" and importlib.util.find_spec("torch") is None:
        raise ToolError(Status.INVALID_PARAM, "The type pt needs torch: pip install 'dumpsim[torch]'")
    make_output(what.out)
    if len(paths) == 1 and os.path.isdir(paths[0]):
        return _directory(existing(paths[0]), what, journal)
    first = Status.OK
    missing: list[Status] = []
    files: list[str] = []
    for path in paths:
        try:
            files.append(existing(path, "file"))
        except ToolError as error:
            journal.error(str(error))
            missing.append(error.status)
    if not files:
        return missing[0]
    _announce(what, journal)
    names = _Names(what.out)
    for file in files:
        first = first or _guarded(file, what, names, journal)[0]
    return first


def make_output(path: str) -> None:
    """The directory of the results, made where it is missing.

    Raises
    ------
    ToolError
        Exit code 3 where it is a file or cannot be made.
    """
    try:
        os.makedirs(path, mode=0o750, exist_ok=True)
    except OSError as error:
        raise ToolError(Status.INVALID_PATH, f'The path "{path}" cannot be made. {error.strerror}.') from error


def _announce(what: Conversion, journal: Journal) -> None:
    if what.format is not None:
        journal.info(f'The target format is "{what.format}".')


def _directory(path: str, what: Conversion, journal: Journal) -> Status:
    """All files of a directory, in parallel; lines of each file stay together, in the order of names."""
    found = (entry for entry in os.scandir(path) if entry.name != MAPPING and not is_ours(entry.name))
    files = [entry.path for entry in found if entry.is_file()]
    if not files:
        raise ToolError(Status.INVALID_PARAM, "The dump path is empty.")
    files.sort()
    if what.format is not None:
        journal.warning(
            "The dump path is a directory. If the -o, -i and -s arguments exist, these arguments will be ignored."
        )
        what = Conversion(out=what.out, type=what.type, format=what.format, custom=what.custom)
    _announce(what, journal)
    names = _Names(what.out)

    def one(file: str) -> tuple[Outcome, Journal]:
        part = journal.part()
        return _guarded(file, what, names, part), part

    failed: list[tuple[str, Status]] = []
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        shown = 0
        for done, (file, ((status, tensors), part)) in enumerate(zip(files, pool.map(one, files), strict=True), 1):
            journal.adopt(part)
            if status:
                failed.append((",".join((file, *tensors)), status))
            percent = 100 * done // len(files)
            if percent >= shown + 5 or done == len(files):
                journal.info(f"[ {'>' * (percent // 2):<50} {percent}%]")
                shown = percent
    if not failed:
        return Status.OK
    listing = os.path.join(os.path.realpath(what.out), FAILED_LIST)
    write_whole(listing, ["".join(f"{line}\n" for line, _ in failed).encode()])
    journal.info(f"The list of files that failed to be converted has been written to \"'{listing}'\".")
    return failed[0][1]


def _guarded(path: str, what: Conversion, names: "_Names", journal: Journal) -> Outcome:
    """One file; what goes wrong becomes lines and a status, and the labels of the tensors that failed."""
    try:
        existing(path)
        return _file(path, what, names, journal)
    except ToolError as error:
        journal.error(str(error))
        if error.status is Status.SIZE_MISMATCH and os.path.getsize(path) <= 8:
            return Status.OK, ()  # an empty dump to the tool [spec ge 4.4]
        verb = "parse dump file" if what.format is None else "convert format for"
        journal.error(f'Failed to {verb} "{path}".')
        return error.status, ()
    except DumpWriteError as error:
        journal.error(str(error))
        return Status.WRITE_FILE, ()
    except OSError as error:
        journal.error(f"Failed to open \"'{path}'\". {error.strerror}")
        return Status.OPEN_FILE, ()
    except DumpsimError as error:
        journal.error(str(error))
        return Status.INVALID_DUMP_DATA, ()


def _file(path: str, what: Conversion, names: "_Names", journal: Journal) -> Outcome:
    dump = DumpFile.open(path)
    if OPDEBUG in os.path.basename(path):
        return _overflow(dump, names, journal), ()
    if what.format is None:
        return _parse(dump, what, names, journal), ()
    return _transfer(dump, what, names, journal)


def _parse(dump: DumpFile, what: Conversion, names: "_Names", journal: Journal) -> Status:
    """All tensors, buffers and workspaces as they are."""
    base = os.path.basename(dump.path)
    arrays = [(tensor, tensor.array()) for tensor in dump.tensors]  # a type that is not supported ends the file here
    for side, group in (("input", dump.inputs), ("output", dump.outputs)):
        if not group:
            journal.warning(f"There is no {side} in \"'{dump.path}'\".")
        for tensor, array in arrays:
            if tensor.io != side:
                continue
            journal.info(f"Start to parse the data of {tensor.label} in \"'{dump.path}'\".")
            written = _save(array, tensor, dump, what.type, names, format=tensor.format)
            journal.info(f"The data of {tensor.label} has been parsed into \"'{written}'\".")
    for kind, spaces, what_for in (("l1buffer", dump.buffers, "buffer"), ("space", dump.spaces, "space")):
        if not spaces:
            journal.warning(f"There is no {what_for} data in \"'{dump.path}'\".")
        for index, raw in enumerate(spaces):
            journal.info(f"Start to parse the data of {kind}:{index} in \"'{dump.path}'\".")
            written = names.place(f"{base}.{kind}.{index}.bin")
            write_whole(written, [raw.data if raw.size else b""])
            journal.info(f"The data of {kind}:{index} has been parsed into \"'{written}'\".")
    return Status.OK


def _transfer(dump: DumpFile, what: Conversion, names: "_Names", journal: Journal) -> Outcome:
    """Tensors in another layout; one that fails does not stop the others."""
    assert what.format is not None
    journal.info(f"Start to transfer format for the dump file \"'{dump.path}'\".")
    first = Status.OK
    failed: list[str] = []
    for tensor in _wanted(dump, what):
        try:
            array = layouts.reformat(tensor, what.format, journal, shape=what.shape, custom=what.custom)
        except ToolError as error:
            if error.status is Status.INVALID_DATA_TYPE:
                raise
            if error.status is not Status.INVALID_FORMAT:
                journal.error(str(error))
            journal.error(f"Failed to convert format for {tensor.label} of \"'{dump.path}'\"")
            first = first or error.status
            failed.append(tensor.label)
            if what.type == "msnpy":  # keeps the device's layout [spec ge 4.2]
                _save(tensor.array(), tensor, dump, what.type, names, format=tensor.format)
            continue
        saved = _save(array, tensor, dump, what.type, names, format=what.format, shape=array.shape)
        journal.info(f"The data of {tensor.label} has been saved to \"'{saved}'\".")
    if first:
        journal.error(f'Failed to convert format for "{dump.path}".')
    return first, tuple(failed)


def _wanted(dump: DumpFile, what: Conversion) -> Sequence[Tensor]:
    for kind, index, group in (("input", what.input, dump.inputs), ("output", what.output, dump.outputs)):
        if index is None:
            continue
        if index >= len(group):
            raise ToolError(
                Status.INDEX_OUT_OF_BOUNDS,
                f"The {kind} index ({index}) is out of range [0, {len(group)}). Please check the index.",
            )
        return (group[index],)
    return dump.tensors


def _save(
    array: Array,
    tensor: Tensor,
    dump: DumpFile,
    kind: str,
    names: "_Names",
    *,
    format: str,
    shape: Sequence[int] | None = None,
) -> str:
    """Write a tensor under the name that its kind and layout give it. [spec ge 4.2]"""
    base = os.path.basename(dump.path)
    if kind == "msnpy":
        fields = base.split(".")
        if len(fields) == 5 and dump.op_name:
            fields[1] = dump.op_name.rsplit("/", 1)[-1]
        name = f"{'.'.join(fields)}.{tensor.io}.{tensor.index}.{format}.npy"
    elif kind == "bin":
        dims = str(array.size) if shape is None else "_".join(map(str, shape))
        name = f"{base}.{tensor.io}.{tensor.index}.{dims}.{array.dtype.name}.{format}.bin"
    else:
        dims = "" if shape is None else "." + "x".join(map(str, shape))
        name = f"{base}.{tensor.io}.{tensor.index}{dims}.{kind}"
    path = names.place(name)
    if kind == "bin":
        write_whole(path, npy_parts(array)[1:])
    elif kind == "pt":
        _save_pt(array, path)
    else:
        write_whole(path, npy_parts(array))
    return path


def _save_pt(array: Array, path: str) -> None:
    """A tensor as torch.save writes it."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    buffer = io.BytesIO()
    torch.save(torch.from_numpy(np.array(array)), buffer)
    write_whole(path, [buffer.getvalue()])


class _Names:
    """Paths in the output directory; over-long names are noted in mapping.csv."""

    def __init__(self, out: str) -> None:
        self._out = os.path.realpath(out)
        self._lock = Lock()

    def place(self, name: str) -> str:
        """Where a result goes."""
        stored, line = stored_name(name, _number, limit=_MAX_NAME)
        if line:
            with self._lock:
                append_line(os.path.join(self._out, MAPPING), line)
        return os.path.join(self._out, stored)


def _number(name: str) -> str:
    """What stands for a name in the tool's mapping.csv. [spec ge 4.2]"""
    return uuid.uuid3(uuid.NAMESPACE_DNS, name).hex + os.path.splitext(name)[1]


def overflow_facts(dump: DumpFile, index: int) -> dict[str, Any]:
    """Decode the output of an Opdebug file.

    Raises
    ------
    ToolError
        Exit code 11 for data of another size, 35 for an unknown unit.
    """
    raw = dump.outputs[index].raw.tobytes()
    try:
        return opdebug.decode(raw, dump.path)
    except UnreadableError as error:
        unit = error.code == "DS-OVF-003"
        raise ToolError(Status.INVALID_OVERFLOW_TYPE if unit else Status.INVALID_DUMP_DATA, str(error)) from error


def _overflow(dump: DumpFile, names: _Names, journal: Journal) -> Status:
    """An Opdebug file becomes JSON; the tensors themselves are of no use."""
    base = os.path.basename(dump.path)
    for tensor in dump.outputs:
        facts = overflow_facts(dump, tensor.index)
        accumulated = facts.get("acc_list")
        if accumulated is not None and accumulated["valid"] != 1:
            journal.error(f"The data of {tensor.label} in \"'{dump.path}'\" are marked as not valid.")
        path = names.place(f"{base}.output.{tensor.index}.json")
        write_whole(path, [opdebug.to_json(facts, "msaccucmp").encode()])
        journal.info(f"The data of {tensor.label} has been parsed into \"'{path}'\".")
    return Status.OK
