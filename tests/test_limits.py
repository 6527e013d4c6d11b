"""A file that is larger than any real one is refused before it is read: the limits of each reader, in bytes."""

import os
from pathlib import Path

import pytest

from dumpsim.analysis import listing, overflow, statisticrows
from dumpsim.analysis.derivedlayouts import derived
from dumpsim.analysis.graphindex import GraphIndex
from dumpsim.analysis.msaccucmp import fusion
from dumpsim.analysis.namemap import read_names
from dumpsim.analysis.slicing import Layouts
from dumpsim.archive.naming import BinName
from dumpsim.codecs import mapping
from dumpsim.codecs.stackfile import StackFile
from dumpsim.core.errors import DumpsimError
from dumpsim.device.faults import load_plan
from dumpsim.dump.job import JobAccounts
from dumpsim.frontends.acl.dump import set_dump
from dumpsim.modes.configfile import CONFIG_VARIABLE, read_file
from dumpsim.replay import gegraph
from dumpsim.world.ranktable import read_rank_table

MIB, GIB = 1 << 20, 1 << 30
READERS = {
    "stack of an API dump": ("api_stack.json", 2 * GIB, StackFile),
    "mapping.csv": ("mapping.csv", 64 * MIB, lambda path: list(mapping.pairs(path))),
    "statistic.csv": ("statistic.csv", 4 * GIB - 1, lambda path: statisticrows.StatisticRows(path, None, None)),
    "statistics of one operator": ("Add.csv", MIB, lambda path: list(listing._statistics(path, BinName))),
    "overflow record": ("debug.json", MIB, overflow._facts),
    "name map": ("names.json", 16 * MIB, read_names),
    "model for msaccucmp": ("model.json", GIB, lambda path: fusion.load(str(path))),
    "manifest": ("manifest.json", GIB, lambda path: Layouts.read([path])),
    "layouts of a text": (
        "rank_0/graphs/ms_output_trace_code_graph_0.ir", 256 * MIB, lambda path: list(derived(path.parents[2])),
    ),
    "graph's text": (
        "rank_0/graphs/ms_output_trace_code_graph_0.ir", 512 * MIB, lambda path: GraphIndex(path.parent).documents,
    ),
    "graph's protobuf": (
        "rank_0/graphs/ms_output_trace_code_graph_0.pb", 512 * MIB, lambda path: GraphIndex(path.parent).documents,
    ),
    "GE's graph": ("ge_proto_00000_Build.txt", 512 * MIB, lambda path: gegraph.index((path,))),
    "account of a rank": ("0.json", 16 * MIB, lambda path: JobAccounts().read(str(path.parent))),
    "fault plan": ("faults.json", 16 * MIB, load_plan),
    "rank table": ("table.json", 16 * MIB, read_rank_table),
    "config of MindSpore": ("dump.json", 16 * MIB, lambda path: read_file({CONFIG_VARIABLE: str(path)})),
    "config of ACL": ("acl.json", 10 * MIB, set_dump),
}  # fmt: skip


@pytest.mark.parametrize("what", READERS)
def test_a_larger_file_is_refused(tmp_path: Path, what: str) -> None:
    name, limit, read = READERS[what]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, limit + 1)  # sparse: nothing on the disk
    with pytest.raises(DumpsimError, match=f"is larger than {limit} bytes"):
        read(path)
