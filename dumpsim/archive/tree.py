"""Where the files of a kernel-by-kernel dump are. [spec mindspore 3.1]

::

    {path}/rank_{r}/.dump_metadata/{config,data_dump}.json
                    {net_name}/{graph_id}/{iteration}/*.npy, statistic.csv, mapping.csv, *.json
                    {net_name}/{graph_id}/constants/*.npy
                    graphs/ms_output_trace_code_graph_{g}.{ir,pb}
                    execution_order/ms_{execution,global_execution}_order_graph_{g}.csv
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dumpsim.archive.longname import MAPPING
from dumpsim.archive.naming import parse_bin, parse_npy
from dumpsim.codecs import mapping
from dumpsim.core.errors import UnreadableError
from dumpsim.core.partname import is_ours
from dumpsim.core.record import Record

__all__ = ["STATISTIC", "Tree", "newest_stamp", "records"]

STATISTIC = "statistic.csv"
CONSTANTS = "constants"


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
        """Whether the rank has dumped here before."""
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
        """Directory of one graph's tensors in one iteration."""
        return f"{self.rank_path}/{self.net_name}/{graph_id}/{iteration}"

    def constants(self, graph_id: int) -> str:
        """Directory of one graph's constants."""
        return f"{self.rank_path}/{self.net_name}/{graph_id}/{CONSTANTS}"

    @staticmethod
    def ir(graph_id: int) -> str:
        """File name of a graph as text."""
        return f"ms_output_trace_code_graph_{graph_id}.ir"

    @staticmethod
    def pb(graph_id: int) -> str:
        """File name of a graph as protobuf."""
        return f"ms_output_trace_code_graph_{graph_id}.pb"

    @staticmethod
    def order(graph_id: int) -> str:
        """File name of a graph's kernels in execution order."""
        return f"ms_execution_order_graph_{graph_id}.csv"

    @staticmethod
    def history(graph_id: int) -> str:
        """File name of the iterations in which a graph ran."""
        return f"ms_global_execution_order_graph_{graph_id}.csv"


def records(rank_path: str, net_name: str) -> Iterator[tuple[str, Record]]:
    """Path and record of every npy file of one net, by graph, iteration, then time stamp; short names resolved.

    Raises
    ------
    UnreadableError
        For an npy file whose name tells no tensor and that no mapping.csv explains.
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
    """The npy files of one directory."""
    found: list[tuple[str, Record]] = []
    names = os.listdir(directory)
    originals: dict[str, str] = {}
    if MAPPING in names:
        with open(f"{directory}/{MAPPING}", encoding="utf-8") as file:
            originals = mapping.parse(file.read(), file.name)
    for name in names:
        if name.endswith(".npy"):
            path = f"{directory}/{name}"
            record = parse_npy(originals.get(name, name), where=path)
            found.append((path, replace(record, rank=rank, graph_id=graph_id, iteration=iteration)))
    return iter(sorted(found, key=lambda pair: (pair[1].timestamp, pair[1].io, pair[1].slot)))


def newest_stamp(top: str) -> int:
    """The greatest time stamp in the names below a directory, 0 where there is none.

    Rows of statistic.csv and lines of mapping.csv count, too, so that a run that goes on writes no stamp twice.
    """
    return max(
        (stamp for where, _, names in os.walk(top) for name in names for stamp in _stamps(where, name)), default=0
    )


def _stamps(directory: str, name: str) -> Iterator[int]:
    """The time stamps that a file's name or its lines tell."""
    if name in (MAPPING, STATISTIC):
        with open(f"{directory}/{name}", encoding="utf-8") as file:
            if name == MAPPING:
                for original in mapping.parse(file.read(), file.name).values():
                    yield from _stamps(directory, original)
            else:
                cells = (line.split(",", 5)[4] for line in file if line.count(",") > 5 and line.endswith("\n"))
                yield from (int(cell) for cell in cells if cell.isdecimal())
        return
    try:
        # the facts of an overflow stand in a JSON file whose name goes on as an npy file's does
        bare = name.partition(".output.")[0] if name.endswith(".json") else name
        yield parse_npy(name).timestamp if name.endswith(".npy") else parse_bin(bare).timestamp
    except UnreadableError:
        return
