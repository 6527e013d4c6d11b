"""The directories of a kernel-by-kernel dump. [spec mindspore 3.1]

::

    {path}/rank_{r}/.dump_metadata/{config,data_dump}.json
                    {net_name}/{graph_id}/{iteration}/*.npy, statistic.csv, mapping.csv, *.json
                    {net_name}/{graph_id}/constants/*.npy
                    graphs/ms_output_trace_code_graph_{g}.{ir,pb}
                    execution_order/ms_{execution,global_execution}_order_graph_{g}.csv
"""

import csv
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dumpsim.archive.longname import MAPPING
from dumpsim.archive.naming import parse_bin, parse_npy
from dumpsim.codecs import mapping
from dumpsim.codecs.lines import whole_lines
from dumpsim.core.errors import UnfinishedWarning, UnreadableError
from dumpsim.core.partname import is_ours
from dumpsim.core.record import Record
from dumpsim.core.regular import open_regular

__all__ = ["STATISTIC", "Tree", "newest_stamp", "records"]

STATISTIC = "statistic.csv"
CONSTANTS = "constants"
_LAST_STAMP = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The paths of one rank's dump.

    Examples
    --------
    >>> tree = Tree(path="/data/dump/", rank=0, net_name="LeNet")
    >>> tree.data(0, 3), tree.graphs
    ('/data/dump/rank_0/LeNet/0/3', '/data/dump/rank_0/graphs')
    """

    path: str
    rank: int
    net_name: str

    @property
    def rank_path(self) -> str:
        """Directory of the rank."""
        return f"{self.path.rstrip('/')}/rank_{self.rank}"

    def exists(self) -> bool:
        """Return whether a dump of the rank exists."""
        return os.path.isdir(self.rank_path) and not all(map(is_ours, os.listdir(self.rank_path)))

    @property
    def metadata(self) -> str:
        """Directory of the copies of the configuration."""
        return f"{self.rank_path}/.dump_metadata"

    @property
    def graphs(self) -> str:
        """Directory of the graphs' IR."""
        return f"{self.rank_path}/graphs"

    @property
    def execution_order(self) -> str:
        """Directory of the execution orders."""
        return f"{self.rank_path}/execution_order"

    def data(self, graph_id: int, iteration: int) -> str:
        """Return the directory of one graph's tensors in one iteration."""
        return f"{self.rank_path}/{self.net_name}/{graph_id}/{iteration}"

    def constants(self, graph_id: int) -> str:
        """Return the directory of one graph's constants."""
        return f"{self.rank_path}/{self.net_name}/{graph_id}/{CONSTANTS}"

    @staticmethod
    def ir(graph_id: int) -> str:
        """Return the file name of a graph as text."""
        return f"ms_output_trace_code_graph_{graph_id}.ir"

    @staticmethod
    def pb(graph_id: int) -> str:
        """Return the file name of a graph as protobuf."""
        return f"ms_output_trace_code_graph_{graph_id}.pb"

    @staticmethod
    def order(graph_id: int) -> str:
        """Return the file name of a graph's kernels in execution order."""
        return f"ms_execution_order_graph_{graph_id}.csv"

    @staticmethod
    def history(graph_id: int) -> str:
        """Return the file name of the iterations in which a graph ran."""
        return f"ms_global_execution_order_graph_{graph_id}.csv"


def records(rank_path: str, net_name: str) -> Iterator[tuple[str, Record]]:
    """Iterate over path and record of every npy file of one net, by graph, iteration and time stamp.

    Raises
    ------
    UnreadableError
        For an npy file whose name, or original name in mapping.csv, is not that of a tensor.
    """
    rank = int(os.path.basename(rank_path).removeprefix("rank_"))
    net = f"{rank_path}/{net_name}"
    for graph in sorted((d for d in os.listdir(net) if d.isdigit()), key=int):
        levels = os.listdir(f"{net}/{graph}")
        for level in sorted((d for d in levels if d.isdigit() or d == CONSTANTS), key=lambda d: (len(d), d)):
            directory = f"{net}/{graph}/{level}"
            iteration = int(level) if level.isdigit() else None
            yield from _directory(directory, rank, int(graph), iteration)


def _directory(directory: str, rank: int, graph_id: int, iteration: int | None) -> Iterator[tuple[str, Record]]:
    """Iterate over the npy files of one directory."""
    found: list[tuple[str, Record]] = []
    names = os.listdir(directory)
    originals: dict[str, str] = {}
    if MAPPING in names:
        originals = mapping.read(f"{directory}/{MAPPING}", frozenset(names))
    for name in names:
        if name.endswith(".npy"):
            path = f"{directory}/{name}"
            record = parse_npy(originals.get(name, name), where=path)
            found.append((path, replace(record, rank=rank, graph_id=graph_id, iteration=iteration)))
    return iter(sorted(found, key=lambda pair: (pair[1].timestamp, pair[1].io, pair[1].slot)))


def newest_stamp(top: str) -> int:
    """Return the largest time stamp in the names below a directory; 0 if there is none.

    Rows of statistic.csv and lines of mapping.csv are included, so that a continued dump does not repeat a stamp.

    Raises
    ------
    UnreadableError
        For a statistic.csv or mapping.csv that is not a regular file, or a stamp of more than 63 bits.
    """
    newest = 0
    for where, _, names in os.walk(top):
        for name in names:
            path = f"{where}/{name}"
            with warnings.catch_warnings():  # removing an unfinished line is reported later
                warnings.simplefilter("ignore", UnfinishedWarning)
                for stamp in _stamps(path, name):
                    if stamp > _LAST_STAMP:
                        raise _too_late(path, len(str(stamp)))
                    newest = max(newest, stamp)
    return newest


def _stamps(path: str, name: str) -> Iterator[int]:
    """Iterate over the time stamps in a file's name or lines."""
    if name == MAPPING:
        for _, original in mapping.pairs(path):
            yield from _stamp_in(original)
    elif name == STATISTIC:
        with open_regular(path) as file:
            lines = (line.decode("utf-8", "replace") for line in file.lines())
            rows = csv.reader(whole_lines(lines, path))
            try:
                for cells in rows:
                    if len(cells) > 5 and cells[4].isascii() and cells[4].isdecimal():
                        if len(cells[4]) > len(str(_LAST_STAMP)):
                            raise _too_late(f"{path}:{rows.line_num}", len(cells[4]))
                        yield int(cells[4])
            except csv.Error as error:
                raise UnreadableError(str(error), where=f"{path}:{rows.line_num}", code="DS-CSV-003") from None
    else:
        yield from _stamp_in(name)


def _stamp_in(name: str) -> Iterator[int]:
    """Return the time stamp in a file's name, if it has one."""
    # the JSON file of an overflow has a name that ends similarly to that of an npy file
    bare = name.partition(".output.")[0] if name.endswith(".json") else name
    try:
        yield parse_npy(name).timestamp if name.endswith(".npy") else parse_bin(bare).timestamp
    except UnreadableError:
        return


def _too_late(where: str, digits: int) -> UnreadableError:
    return UnreadableError(
        f"a time stamp of {digits} digits, after which none can follow", where=where,
        allowed=(f"at most {_LAST_STAMP}",), code="DS-ARC-003",
    )  # fmt: skip
