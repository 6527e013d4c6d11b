"""Trees of the kernel-by-kernel modes, written and read, and real ones read."""

from dataclasses import replace
from pathlib import Path

import pytest

from dumpsim.archive.longname import store
from dumpsim.archive.naming import NameRule, escape
from dumpsim.archive.sink import Sink
from dumpsim.archive.tree import Tree, newest_stamp, records
from dumpsim.codecs import mapping, statcsv
from dumpsim.core.errors import UnreadableError
from dumpsim.core.record import Record


def record(name, stamp, **fields):
    return Record(
        op_type="Add", op_name=name, io="output", slot=0, dtype="float32", shape=(), timestamp=stamp, **fields
    )


def test_write_then_read(tmp_path):
    tree = Tree(path=str(tmp_path), rank=3, net_name="Net")
    sink, rule = Sink(), NameRule()
    written = [
        record("Default/Add-op0", 1700000000000001, rank=3, graph_id=0, iteration=0),
        record("Default/Add-op1", 1700000000000002, rank=3, graph_id=0, iteration=0),
        record("Default/" + "deep/" * 80 + "Add-op2", 1700000000000003, rank=3, graph_id=0, iteration=2),
        record("Default/Add-op0", 1700000000000004, rank=3, graph_id=0, iteration=10),
        record("Default/Add-op0", 1700000000000009, rank=3, graph_id=2, iteration=1),
        record("data-0", 1700000000000010, rank=3, graph_id=2),
    ]
    for item in written:
        directory = tree.constants(2) if item.iteration is None else tree.data(item.graph_id, item.iteration)
        name = rule.npy(item)
        store(sink, directory, name, [b""], rule.number(directory))
    sink.settle()
    found = [item for _, item in records(tree.rank_path, "Net")]
    assert found == [replace(item, op_name=escape(item.op_name)) for item in written]
    assert newest_stamp(tree.rank_path) == 1700000000000010


def test_newest_stamp_looks_into_rows_and_mappings(tmp_path):
    assert newest_stamp(str(tmp_path)) == 0
    row = statcsv.row(record("Default/Add-op0", 7), "Default_Add-op0", [], statcsv.Dialect())
    (tmp_path / "statistic.csv").write_text(statcsv.header([]) + row)
    assert newest_stamp(str(tmp_path)) == 7
    long = NameRule().npy(record("x" * 300, 9))
    (tmp_path / "mapping.csv").write_text(mapping.line("1.npy", long))
    (tmp_path / "1.npy").write_text("")
    assert newest_stamp(str(tmp_path)) == 9


def test_ranks_are_made_at_the_same_time(tmp_path):
    first, second = Sink(), Sink()
    first.make(f"{tmp_path}/dump/rank_0")
    second.make(f"{tmp_path}/dump/rank_1")
    assert sorted(p.name for p in Path(f"{tmp_path}/dump").iterdir()) == ["rank_0", "rank_1"]


@pytest.mark.parametrize(
    ("name", "data", "newest"),
    [
        ("statistic.csv", b'h\xff,\xfe\nAdd,"a,""\n\xff",0,0,7,output,0\n', 7),
        ("mapping.csv", b"mapping.csv,mapping.csv\nstatistic.csv,statistic.csv\n\xff,\xff.npy\n", 0),
    ],
)
def test_a_foreign_tree_is_continued(tmp_path, name, data, newest):
    (tmp_path / name).write_bytes(data)
    assert newest_stamp(str(tmp_path)) == newest


@pytest.mark.parametrize("digits", [19, 20, 5000])
def test_a_stamp_after_which_none_can_follow_is_an_error(tmp_path, digits):
    (tmp_path / "statistic.csv").write_text(f"Add,a,0,0,{'9' * digits},output,0\n")
    with pytest.raises(UnreadableError, match=rf"statistic\.csv.*a time stamp of {digits} digits"):
        newest_stamp(str(tmp_path))
