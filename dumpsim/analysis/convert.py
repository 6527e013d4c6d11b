"""Convert dump files to arrays for numpy and torch: `dumpsim.convert` and the command of that name."""

import glob
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from dumpsim.analysis.bintensor import BinTensor
from dumpsim.analysis.wholefile import append_line, npy_parts, write_whole
from dumpsim.archive.longname import MAPPING, npy_number, stored_name
from dumpsim.archive.naming import is_dump_file
from dumpsim.codecs import mapping, opdebug
from dumpsim.codecs.binfile import BinFile
from dumpsim.core.errors import BadInputError, DumpsimError, UnreadableError, UnsupportedError, nearest
from dumpsim.core.format import FORMATS, HOST_ORDERS

__all__ = ["KINDS", "TARGETS", "Converted", "Failure", "Job", "Summary", "convert", "convert_each", "find"]

Array = np.ndarray[Any, Any]

KINDS = ("npy", "bin", "pt")
TARGETS = ("host", "device", *HOST_ORDERS)
_NOT_BIN = (".npy", ".csv", ".json", ".pb", ".ir", ".txt")
_OPDEBUG = "Opdebug.Node_OpDebug."
_MODE = 0o644
_LARGE = 1 << 20  # bytes from which a thread of its own pays off: small files are mostly interpreter time


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A file to convert: its path, the directory of its results, and its full name."""

    path: str
    directory: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A file or tensor that was not converted, and why; `tensor` is ``input 0``, or empty for the whole file."""

    path: str
    tensor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """The result of one file."""

    path: str
    written: tuple[str, ...] = ()
    nbytes: int = 0
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The result of all files.

    Attributes
    ----------
    files, tensors, nbytes : int
        Files read, results written, and their bytes.
    failures : tuple of Failure
    """

    files: int
    tensors: int
    nbytes: int
    failures: tuple[Failure, ...]


def convert(
    paths: "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]",
    out: "str | os.PathLike[str]",
    *,
    to: str = "npy",
    format: str = "host",
    jobs: int | None = None,
    overwrite: bool = False,
) -> Summary:
    """Convert dump files of a device to files of arrays in the host's layout.

    Parameters
    ----------
    paths : path or iterable of path
        Files, directories (searched recursively), and glob patterns.
    out : path
        Directory to write to; subdirectories are as in the source.
    to : {"npy", "bin", "pt"}
        ``bin`` is the elements alone; ``pt`` needs torch.
    format : str
        ``host``: the original shape in the host's order, if the file has it. ``device``: as on the device. An
        order such as ``NHWC``: tensors that have these axes in another order are transposed, others are as with
        ``host``.
    jobs : int, optional
        Number of files to convert at the same time; by default one per processor.
    overwrite : bool
        Replace existing results, instead of reporting them as failures.

    Returns
    -------
    Summary
        Files and tensors that cannot be converted are failures in it; all others are converted.

    Raises
    ------
    BadInputError
        For an unknown kind or format, and if no path leads to a dump file.

    Notes
    -----
    Results are named as MindSpore names npy files, so that `dumpsim.open` reads the converted tree::

        {op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}.{input|output}.{slot}.{format}.{dtype}.npy

    A name of more than 255 bytes is a number, with a line in mapping.csv. bfloat16 and floats of 8 bits become float32,
    int4 int8, uint1 uint8; the name keeps the original type. Opdebug files become JSON. Results appear when they are
    complete. In memory is at most one tensor a job.

    Examples
    --------
    >>> import tempfile
    >>> from dumpsim.codecs.dumpdata import DumpData, Item, dtype_number, format_number, header
    >>> root = tempfile.mkdtemp()
    >>> item = Item(dtype=dtype_number("bfloat16"), format=format_number("ND"), shape=(2,), size=4)
    >>> data = DumpData(op_name="Add_1", dump_time=1700000000000000, inputs=(), outputs=(item,))
    >>> with open(f"{root}/Add.Add_1.3.5.1700000000000000", "wb") as file:
    ...     _ = file.write(header(data) + bytes.fromhex("803f00c0"))
    >>> convert(root, f"{root}/npy").tensors
    1
    >>> np.load(f"{root}/npy/Add.Add_1.3.5.1700000000000000.output.0.ND.bfloat16.npy")
    array([ 1., -2.], dtype=float32)
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found = find(several, out)
    if not found:
        raise BadInputError(
            "no binary dump file found; npy files need no conversion", where=", ".join(map(str, several))
        )
    files = tensors = nbytes = 0
    failures: list[Failure] = []
    for result in convert_each(found, to=to, format=format, jobs=jobs, overwrite=overwrite):
        files += 1
        tensors += len(result.written)
        nbytes += result.nbytes
        failures += result.failures
    return Summary(files=files, tensors=tensors, nbytes=nbytes, failures=tuple(failures))


def find(paths: "Sequence[str | os.PathLike[str]]", out: "str | os.PathLike[str]") -> list[Job]:
    """Return the dump files below some paths, in order, with the directories of their results.

    Below a directory, files without a name of a dump file are skipped; a named file is always taken. With several
    paths, each directory gets a subdirectory of the same name in `out`.

    Raises
    ------
    BadInputError
        For a path that does not exist and a pattern that matches nothing.
    """
    expanded: list[str] = []
    for given in paths:
        path = os.fspath(given)
        matches = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
        if not matches:
            raise BadInputError("does not exist, and matches nothing as a pattern", where=path)
        expanded += matches
    target = os.path.abspath(out)
    found: dict[str, Job] = {}
    for path in expanded:
        if not os.path.isdir(path):
            name = os.path.basename(path)
            real = _real_names(os.path.dirname(path) or ".", (name,)).get(name, name)
            where = os.path.realpath(path) if os.path.islink(path) else path  # the user named this link
            found.setdefault(os.path.abspath(path), Job(path=where, directory=target, name=real))
            continue
        root = target if len(expanded) == 1 else os.path.join(target, os.path.basename(os.path.abspath(path)))
        for job in _below(path, root, skip=target):
            found.setdefault(os.path.abspath(job.path), job)
    return list(found.values())


def _below(path: str, root: str, skip: str) -> Iterator[Job]:
    """Return the dump files of a tree; links and the directory of the results are skipped."""
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if os.path.abspath(os.path.join(folder, name)) != skip)
        real = _real_names(folder, names) if MAPPING in names else {}
        directory = os.path.normpath(os.path.join(root, os.path.relpath(folder, path)))
        for name in sorted(names):
            full = real.get(name, name)
            file = os.path.join(folder, name)
            if full.endswith(_NOT_BIN) or not is_dump_file(full) or os.path.islink(file):
                continue
            yield Job(path=file, directory=directory, name=full)


def _real_names(folder: str, files: Sequence[str]) -> dict[str, str]:
    """Return the full names of files of a directory that has a mapping.csv."""
    found = mapping.read(os.path.join(folder, MAPPING), frozenset(files))
    return {short: name for short, name in found.items() if "/" not in name}


def convert_each(
    found: Sequence[Job],
    *,
    to: str = "npy",
    format: str = "host",
    jobs: int | None = None,
    overwrite: bool = False,
) -> Iterator[Converted]:
    """Convert files, and yield their results in order as they complete; arguments as in `convert`."""
    for value, allowed, where in ((to, KINDS, "to"), (format, TARGETS, "format")):
        if value not in allowed:
            raise BadInputError(
                f"{value!r} is not known", where=where, allowed=allowed, nearest=nearest(value, allowed)
            )
    if to == "pt":
        _torch()
    count = (os.cpu_count() or 1) if jobs is None else jobs
    if count < 1:
        raise BadInputError(f"{count} jobs", where="jobs", allowed=("1 or more",))
    writer = _Writer(to=to, format=format, overwrite=overwrite)
    return _in_order(found, writer, count)


def _in_order(found: Sequence[Job], writer: "_Writer", count: int) -> Iterator[Converted]:
    """Run large files on other threads, and small ones, which are mostly interpreter time, on this one."""
    if count == 1:
        yield from map(writer.file, found)
        return
    waiting: deque[Future[Converted] | Converted] = deque()
    with ThreadPoolExecutor(count, thread_name_prefix="dumpsim-convert") as pool:
        try:
            for job in found:
                waiting.append(pool.submit(writer.file, job) if _is_large(job.path) else writer.file(job))
                while waiting and (isinstance(waiting[0], Converted) or len(waiting) > 4 * count):
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        finally:  # interrupted, or the caller has seen enough
            for future in waiting:
                if isinstance(future, Future):
                    future.cancel()


def _result(made: Future[Converted] | Converted) -> Converted:
    return made if isinstance(made, Converted) else made.result()


def _is_large(path: str) -> bool:
    try:
        return os.stat(path).st_size >= _LARGE
    except OSError:
        return False


def _torch() -> Any:
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UnsupportedError("pt files need torch: pip install 'dumpsim[torch]'", where="to") from None
    return torch


class _Writer:
    """Converts single files; safe to share between threads."""

    def __init__(self, *, to: str, format: str, overwrite: bool) -> None:
        self._to = to
        self._format = format
        self._overwrite = overwrite
        self._lock = Lock()
        self._made: set[str] = set()

    def file(self, job: Job) -> Converted:
        """Convert all tensors of a file."""
        written: list[str] = []
        failures: list[Failure] = []
        total = 0
        try:
            file = BinFile.open(job.path, read_below=_LARGE)
            data = file.data
            if job.name.startswith(_OPDEBUG):
                return self._overflow(job, file)
        except (DumpsimError, OSError) as error:
            return Converted(path=job.path, failures=(Failure(path=job.path, tensor="", reason=_reason(error, job)),))
        for io, count in (("input", len(data.inputs)), ("output", len(data.outputs))):
            for slot in range(count):
                try:
                    target, nbytes = self._tensor(job, BinTensor(file=file, io=io, slot=slot))
                except (DumpsimError, OSError, MemoryError) as error:
                    failures.append(Failure(path=job.path, tensor=f"{io} {slot}", reason=_reason(error, job)))
                else:
                    written.append(target)
                    total += nbytes
        return Converted(path=job.path, written=tuple(written), nbytes=total, failures=tuple(failures))

    def _overflow(self, job: Job, file: BinFile) -> Converted:
        written = []
        total = 0
        for slot in range(len(file.data.outputs)):
            facts = opdebug.decode(file.output(slot).tobytes(), job.path)
            path = self._place(job.directory, f"{job.name}.output.{slot}.json")
            total += write_whole(path, [opdebug.to_json(facts, "msaccucmp").encode()], mode=_MODE)
            written.append(path)
        return Converted(path=job.path, written=tuple(written), nbytes=total)

    def _tensor(self, job: Job, part: BinTensor) -> tuple[str, int]:
        """Write one tensor; return its path and size."""
        if self._format == "device":
            array, layout = part.device(), part.format
        else:
            array, layout = part.array(), _host_layout(part)
            if layout in HOST_ORDERS and sorted(layout) == sorted(self._format):
                array = array.transpose([layout.index(axis) for axis in self._format])
                layout = self._format
        name = f"{job.name}.{part.io}.{part.slot}.{layout}.{part.dtype}"
        if self._to == "npy":
            parts: Sequence[bytes | memoryview] = npy_parts(array)
        elif self._to == "bin":
            name += "." + "x".join(map(str, array.shape))
            parts = npy_parts(array)[1:]
        else:
            parts = (_pt(array),)
        path = self._place(job.directory, f"{name}.{self._to}")
        return path, write_whole(path, parts, mode=_MODE)

    def _place(self, directory: str, name: str) -> str:
        """Return the path of a result; create its directory and note an over-long name."""
        if directory not in self._made:
            os.makedirs(directory, exist_ok=True)
            self._made.add(directory)
        stored, line = stored_name(name, npy_number)
        path = os.path.join(directory, stored)
        if not self._overwrite and os.path.lexists(path):
            raise BadInputError("exists already; overwrite replaces it", where=path)
        if line:
            with self._lock:
                if _real_names(directory, (stored,)).get(stored) != name:
                    append_line(os.path.join(directory, MAPPING), line, mode=_MODE)
        return path


def _host_layout(part: BinTensor) -> str:
    """Return the order of axes on the host."""
    if not part.converted:
        return part.format
    return part.host_order or {4: "NCHW", 5: "NCDHW"}.get(FORMATS[part.format].rank, "ND")


def _pt(array: Array) -> bytes:
    """Return the bytes that torch.save writes."""
    import io

    torch = _torch()
    buffer = io.BytesIO()
    torch.save(torch.from_numpy(np.array(array, order="C")), buffer)
    return buffer.getvalue()


def _reason(error: BaseException, job: Job) -> str:
    """Return the error as one line without the file's path, which is shown beside it."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, UnreadableError):
        _, _, at = (error.where or "").rpartition(": ")
        return f"{at}: {error.what}" if at.startswith("byte ") else error.what
    if isinstance(error, OSError) and not isinstance(error, DumpsimError):
        return error.strerror or str(error)
    return str(error).removeprefix(f"{job.path}: ")
