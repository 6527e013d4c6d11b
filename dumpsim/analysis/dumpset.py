"""`dumpsim.open`: read any dump lazily, with memory-mapped tensors."""

import operator
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from dumpsim.analysis.choice import Choice, absent, ranges
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.frame import frames
from dumpsim.analysis.graphindex import GraphIndex
from dumpsim.analysis.listing import entries
from dumpsim.analysis.notebook import html_table
from dumpsim.analysis.overflow import Overflow, overflows
from dumpsim.analysis.place import API_INFO, Place, place_of, places
from dumpsim.archive.naming import is_dump_file
from dumpsim.codecs.binfile import BinFile
from dumpsim.core.errors import DumpsimError, MissingFileError, UnreadableError
from dumpsim.core.regular import open_regular
from dumpsim.core.statistic import NAMES, REAL

if TYPE_CHECKING:
    import pandas
    import polars

    from dumpsim.analysis.globalarray import GlobalArray

__all__ = ["DumpSet", "open"]


def open(path: "str | Path") -> "DumpSet":
    """Open a dump: a tree, a part of one, or a single file.

    It reads dumps of dumpsim and of real machines; data is loaded when it is used.

    Parameters
    ----------
    path : path
        Root of the dump, any directory inside it, an npy or bin file or a statistic.csv.

        A link is followed here, but not inside the tree.

    Returns
    -------
    DumpSet

    Raises
    ------
    UnreadableError
        If no dump is found; the message lists the kinds of files. A `MissingFileError`, which is also a
        FileNotFoundError, if the path does not exist.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> root = Path(tempfile.mkdtemp())
    >>> place = root / "rank_0" / "Net" / "0" / "2"
    >>> place.mkdir(parents=True)
    >>> name = "ReLU.Default_relu-ReLU_ReLU-op0.0.0.1700000000000001.output.0.DefaultFormat.npy"
    >>> np.save(place / name, np.ones((2, 3)))
    >>> for entry in open(root).filter(op_type="relu"):
    ...     print(entry.iteration, entry.op_type, entry.io, entry.slot, entry.shape, entry.statistic("max"))
    2 ReLU output 0 (2, 3) 1.0
    """
    root = _resolved(Path(path))
    if root.is_dir():
        if next(places(root), None) is None:
            raise UnreadableError(
                "holds no dump: no .npy file, bin file, statistic.csv or info file of an API dump in it or below it",
                where=str(root),
                code="DS-ANA-003",
            )
    elif not is_dump_file(root.name) and not API_INFO.fullmatch(root.name):
        _sniff(root)
    return DumpSet(root=root)


Test = Callable[[Entry], bool]
Broken = Callable[[UnreadableError], None]
_COUNTED = 10_000  # tensors to count in repr()


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpSet:
    """The tensors of a dump; iteration yields `Entry` objects by rank, graph, iteration and time.

    Created by `open`. `filter` and `lenient` return a new one.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> place = Path(tempfile.mkdtemp()) / "rank_0" / "Net" / "0" / "0"
    >>> place.mkdir(parents=True)
    >>> for stamp, io in ((1, "input"), (2, "output")):
    ...     name = f"ReLU.Default_relu-ReLU_ReLU-op0.0.0.170000000000000{stamp}.{io}.0.DefaultFormat.npy"
    ...     np.save(place / name, np.array([-1.0, 2.0]) if io == "input" else np.array([0.0, 2.0]))
    >>> dump = open(place)
    >>> len(dump), [entry.io for entry in dump]
    (2, ['input', 'output'])
    >>> result, = dump.filter(io="output")
    >>> result.array().tolist()
    [0.0, 2.0]
    >>> [(row["op_type"], row["io"], row["min"]) for row in dump.rows(["min"])]
    [('ReLU', 'input', -1.0), ('ReLU', 'output', 0.0)]
    """

    root: Path
    choices: tuple[Choice, ...] = ()
    near: tuple[Callable[[Place], bool], ...] = field(default=())
    broken: Broken | None = None

    def __iter__(self) -> Iterator[Entry]:
        for entry in self._all():
            if all(choice(entry) for choice in self.choices):
                yield entry

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _near(self, place: Place) -> bool:
        """Return whether a directory can hold tensors of this set."""
        return all(choice.near(place) for choice in self.choices) and all(test(place) for test in self.near)

    def _all(self) -> Iterator[Entry]:
        index = cache(partial(GraphIndex, broken=self.broken))
        if self.root.is_file():
            place = place_of(self.root.parent)
            if found := API_INFO.fullmatch(self.root.name):
                yield from self._steps(replace(place, api=found[1]))
                return
            yield from entries(place, index(_graphs_of(place)), only=self.root, broken=self.broken)
            return
        for place in places(self.root):
            if place.api:
                yield from self._steps(place)
            elif self._near(place):
                yield from entries(place, index(_graphs_of(place)), broken=self.broken)

    def _steps(self, place: Place) -> Iterator[Entry]:
        """An API dump, whose steps follow from its records."""
        for entry in entries(place, GraphIndex(place.path), broken=self.broken):
            if self._near(entry.place):
                yield entry

    def filter(
        self,
        *,
        op: str | None = None,
        op_type: str | None = None,
        io: str | None = None,
        slot: int | None = None,
        dtype: str | None = None,
        rank: int | None = None,
        graph: int | None = None,
        iteration: int | None = None,
        step: int | None = None,
        source: str | None = None,
        where: Test | None = None,
    ) -> "DumpSet":
        """Return a part of the dump; all given arguments must match.

        Parameters
        ----------
        op : str
            Part of the full operator name (``conv3``), or a glob on the whole name (``*/conv3-*``), ignoring case.
        op_type, io, dtype : str
            ``Conv2D``, ``output``, ``float16``, ignoring case.
        slot, rank, graph, iteration, step : int
            `step` is the training step, which O2 trees count in addition to the iteration on the device.
        source : str
            ``train.py:175`` or ``train.py``: operators that this line or file created.
        where : callable
            ``where(entry) -> bool``

        Returns
        -------
        DumpSet
        """
        choice = Choice(
            op=op,
            op_type=op_type,
            io=io,
            slot=slot,
            dtype=dtype,
            rank=rank,
            graph=graph,
            iteration=iteration,
            step=step,
            source=source,
            where=where,
        )
        return replace(self, choices=(*self.choices, choice)) if choice.asked else self

    def absent(self) -> Iterator[str]:
        """Describe, if nothing matches the last `filter`, the values that the dump has, one line per field.

        Examples
        --------
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> place = Path(tempfile.mkdtemp()) / "rank_0" / "Net" / "0" / "3"
        >>> place.mkdir(parents=True)
        >>> name = "ReLU.Default_relu-ReLU_ReLU-op0.0.0.1700000000000001.output.0.DefaultFormat.npy"
        >>> np.save(place / name, np.ones(2, np.float32))
        >>> for line in open(place.parents[2]).filter(iteration=7, dtype="fp32", op="relu").absent():
        ...     print(line)
        no dtype 'fp32'; there is float32
        no iteration 7; there is 3
        """
        if self.choices:
            before = replace(self, choices=self.choices[:-1])
            yield from absent(self.choices[-1], before)

    def lenient(self, broken: Broken) -> "DumpSet":
        """Return the same dump, but with damaged files reported and skipped instead of raised.

        Parameters
        ----------
        broken : callable
            Called with the error of each unreadable file that lists tensors (a bin file, statistic.csv, an info file, a
            graph). Tensors before the damage are listed.
        """
        return replace(self, broken=broken)

    def global_array(self, manifests: "Iterable[str | Path] | None" = None) -> "GlobalArray":
        """Assemble one whole tensor from the slices of the ranks, by its layout.

        Parameters
        ----------
        manifests : iterable of path, optional
            The manifests of the ranks, which have the layouts; by default those beside the dump. Without any, layouts
            are derived from the graphs in the dump (``rank_0/graphs/*.ir``): not those of gradients.

        Returns
        -------
        GlobalArray
            The whole tensor, and the ranks whose copies of a slice disagree.

        Raises
        ------
        BadInputError
            If the set has more than one tensor of one iteration; use `filter` first.
        UnreadableError
            If no manifest has the tensor's layout, or a slice does not fit it.

        Examples
        --------
        >>> import json, tempfile, numpy as np
        >>> from pathlib import Path
        >>> top = Path(tempfile.mkdtemp())
        >>> for rank in range(2):
        ...     place = top / "dump" / f"rank_{rank}" / "Net" / "0" / "0"
        ...     place.mkdir(parents=True)
        ...     name = "ReLU.Default_ReLU-op0.0.0.1700000000000001.output.0.DefaultFormat.npy"
        ...     np.save(place / name, np.full((1, 3), rank))
        >>> layout = {"graph_id": 0, "op": "Default/ReLU-op0", "io": "output", "slot": 0, "device_matrix": [2],
        ...           "tensor_map": [0, -1], "shape": [2, 3]}
        >>> _ = (top / "dumpsim-manifest.json").write_text(json.dumps({"path": "dump", "layouts": [layout]}))
        >>> open(top / "dump").filter(op_type="ReLU", io="output").global_array().array.tolist()
        [[0, 0, 0], [1, 1, 1]]
        """
        from dumpsim.analysis.globalarray import only
        from dumpsim.analysis.slicing import layouts_of

        found = layouts_of(self.root, None if manifests is None else [Path(path) for path in manifests])
        return only(self, found, str(self.root))

    def overflows(self) -> Iterator[Overflow]:
        """The overflows in the dump, by directory and time; `filter` narrows by rank, graph and iteration.

        Raises
        ------
        UnreadableError
            For an invalid Opdebug file.
        """
        alone = self.root.is_file()
        for place in [place_of(self.root.parent)] if alone else places(self.root):
            if self._near(place):
                yield from (found for found in overflows(place) if not alone or found.path == self.root)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas table with one row per tensor (extra ``report``)."""
        frame: pandas.DataFrame = frames("pandas").DataFrame(list(self.rows()), columns=COLUMNS)
        return frame.astype(dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(REAL, "float64"))

    def to_polars(self) -> "polars.DataFrame":
        """Return a polars table with one row per tensor (extra ``report``)."""
        library = frames("polars")
        rows = list(self.rows())
        kinds: dict[str, Any] = dict.fromkeys(_WHOLE, library.Int64) | dict.fromkeys(REAL, library.Float64)
        kinds |= dict.fromkeys(_TEXT, library.String) | {"shape": library.List(library.Int64)}
        table: polars.DataFrame = library.DataFrame(
            {name: [row[name] for row in rows] for name in COLUMNS},
            {name: kinds[name] for name in COLUMNS},
            strict=False,
        )
        return table

    def rows(
        self, statistics: Sequence[str] = (), *, broken: Callable[[UnreadableError], None] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Return one mapping of plain values per tensor; statistics that were not dumped are computed only if named.

        Parameters
        ----------
        statistics : sequence of str
            Statistics to compute if they were not dumped.
        broken : callable
            Called with the error of each unreadable file, which then has no row; None: raise the first error.
        """
        for entry in self:
            try:
                row = _row(entry, statistics)
            except UnreadableError as error:
                if broken is None:
                    raise
                broken(error)
            else:
                yield row

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    @overload
    def __getitem__(self, index: str) -> "DumpSet": ...

    def __getitem__(self, index: "int | slice | str") -> "Entry | list[Entry] | DumpSet":
        """Return tensors by index, in the order of iteration, or by name, as ``filter(op=...)`` does.

        Raises
        ------
        IndexError
            If there are fewer tensors.
        KeyError
            If no operator has the name.

        Examples
        --------
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> place = Path(tempfile.mkdtemp())
        >>> for stamp, io in ((1, "input"), (2, "output")):
        ...     np.save(place / f"ReLU.Default_ReLU-op0.0.0.170000000000000{stamp}.{io}.0.DefaultFormat.npy", 1)
        >>> dump = open(place)
        >>> dump[0].io, dump[-1].io, len(dump[:]), len(dump["relu"])
        ('input', 'output', 2, 2)
        """
        if isinstance(index, str):
            found = self.filter(op=index)
            if next(iter(found), None) is None:
                raise KeyError("; ".join(found.absent()) or index)
            return found
        if isinstance(index, slice):
            if min(index.start or 0, index.stop or 0) < 0 or (index.step or 1) < 0:
                return list(self)[index]
            return list(islice(self, index.start, index.stop, index.step))
        at = operator.index(index)
        rest = deque(self, maxlen=-at) if at < 0 else deque(islice(self, at, at + 1), maxlen=1)
        if len(rest) < (-at if at < 0 else 1):
            raise IndexError(f"tensor {at} of a dump of {len(self)}")
        return rest[0]

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def __repr__(self) -> str:
        """Return path and contents; at most 10,000 tensors are counted, and no file is read."""
        names: set[str] = set()
        iterations: set[int] = set()
        ranks: set[int] = set()
        count = 0
        try:
            for count, entry in enumerate(islice(self, _COUNTED + 1), 1):  # noqa: B007
                names.add(entry.op_name)
                iterations.update([entry.iteration] if entry.iteration is not None else ())
                ranks.update([entry.rank] if entry.rank is not None else ())
        except (DumpsimError, OSError):
            return f"<DumpSet {self.root}: damaged>"
        more = count > _COUNTED
        said = [f"{'more than ' if more else ''}{min(count, _COUNTED)} tensors of {len(names)} operators"]
        said += [f"{word} {ranges(found)}" for word, found in (("rank", ranks), ("iteration", iterations)) if found]
        return f"<DumpSet {self.root}: {', '.join(said)}{' (filtered)' if self.choices or self.near else ''}>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the first tensors with statistics, and a sparkline over the steps of each."""
        return html_table(repr(self)[1:-1], self.lenient(lambda error: None))


def _row(entry: Entry, statistics: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "rank": entry.rank,
        "net": entry.place.net,
        "step": entry.place.step,
        "graph": entry.graph_id,
        "iteration": entry.iteration,
        "op_type": entry.op_type,
        "op_name": entry.op_name,
        "io": entry.io,
        "slot": entry.slot,
        "dtype": entry.dtype,
        "shape": list(entry.shape),
        "format": entry.format,
        "nbytes": entry.nbytes,
        "task_id": entry.name.task_id,
        "stream_id": entry.name.stream_id,
        "timestamp": entry.timestamp,
        "path": str(entry.path) if entry.path is not None else None,
    }
    for name in NAMES:
        row[name] = entry.statistic(name) if name in statistics else entry.row.get(name)
    return row


COLUMNS = (
    *("rank", "net", "step", "graph", "iteration", "op_type", "op_name", "io", "slot", "dtype", "shape"),
    *("format", "nbytes", "task_id", "stream_id", "timestamp", "path"),
    *NAMES,
)
# types of columns, also for columns without any value
_WHOLE = (
    *("rank", "step", "graph", "iteration", "slot", "nbytes", "task_id", "stream_id", "timestamp"),
    *(name for name in NAMES if name not in REAL),
)
_TEXT = ("net", "op_type", "op_name", "io", "dtype", "format", "path")


def _resolved(path: Path) -> Path:
    """Return the path of a directory as it is, and of a file without links."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise MissingFileError("does not exist", where=str(path), code="DS-ANA-002") from None
    except (OSError, ValueError) as error:  # a loop of links, a zero byte
        raise UnreadableError(f"cannot be read: {error}", where=str(path), code="DS-ANA-002") from None
    if stat.S_ISDIR(mode):
        return path
    if not stat.S_ISREG(mode):
        open_regular(path, follow=True)  # raises an error that says what it is
    return path.resolve() if path.is_symlink() else path


def _sniff(path: Path) -> None:
    """Check that a file with any other name is a bin file."""
    try:
        BinFile.open(path)
    except UnreadableError:
        raise UnreadableError(
            "is not a file of a dump",
            where=str(path),
            allowed=("*.npy", "statistic.csv", "bin files", "*_api_dump_info.pkl"),
            code="DS-ANA-004",
        ) from None


def _graphs_of(place: Place) -> Path:
    return (place.rank_path or place.path) / "graphs"
