"""Trees of the kernel-by-kernel modes, written and read, and real ones read."""

import os
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


def test_the_paths_of_a_rank():
    tree = Tree(path="/data/dump//", rank=3, net_name="LeNet")
    found = [
        tree.rank_path, tree.metadata, tree.graphs, tree.execution_order, tree.data(7, 12), tree.constants(7),
        tree.ir(7), tree.pb(7), tree.order(7), tree.history(7),
    ]  # fmt: skip
    assert found == [  # [spec mindspore 3.1]
        "/data/dump/rank_3",
        "/data/dump/rank_3/.dump_metadata",
        "/data/dump/rank_3/graphs",
        "/data/dump/rank_3/execution_order",
        "/data/dump/rank_3/LeNet/7/12",
        "/data/dump/rank_3/LeNet/7/constants",
        "ms_output_trace_code_graph_7.ir",
        "ms_output_trace_code_graph_7.pb",
        "ms_execution_order_graph_7.csv",
        "ms_global_execution_order_graph_7.csv",
    ]


def test_a_rank_has_a_dump_when_its_directory_has_more_than_files_of_ours(tmp_path):
    tree = Tree(path=str(tmp_path), rank=3, net_name="Net")
    assert tree.exists() is False
    (tmp_path / "rank_3").mkdir()
    assert tree.exists() is False
    (tmp_path / "rank_3/.dumpsim-claim-rank_3").touch()
    (tmp_path / "rank_3/.dumpsim-part-00000000-1-0").touch()
    assert tree.exists() is False
    (tmp_path / "rank_3/graphs").mkdir()
    assert tree.exists() is True
    (tmp_path / "rank_4").touch()
    assert Tree(path=str(tmp_path), rank=4, net_name="Net").exists() is False


def test_records_are_in_the_order_of_graphs_iterations_and_stamps(tmp_path):
    names = [  # graph, iteration and file, in the order in which they are read
        ("2/1", "Add.a.0.0.9.output.0.ND.npy"),
        ("10/9", "Add.a.0.0.9.output.0.ND.npy"),
        ("10/10", "Add.a.0.0.5.input.0.ND.npy"),
        ("10/10", "Add.a.0.0.5.input.1.ND.npy"),
        ("10/10", "Add.a.0.0.5.output.0.ND.npy"),
        ("10/10", "Add.a.0.0.10.input.0.ND.npy"),
        ("10/constants", "Parameter.data-1.0.0.1.output.0.ND.npy"),
    ]
    net = tmp_path / "rank_12/Net"
    for place, name in names[::-1]:
        (net / place).mkdir(parents=True, exist_ok=True)
        (net / place / name).touch()
    for other in ("graphs/1", "10/other", "x"):
        (net / other).mkdir(parents=True)
        (net / other / "no tensor.npy").touch()
    (net / "10/10/statistic.csv").touch()
    found = list(records(str(tmp_path / "rank_12"), "Net"))
    assert [path for path, _ in found] == [f"{net}/{place}/{name}" for place, name in names]
    assert [(one.rank, one.graph_id, one.iteration) for _, one in found] == [
        (12, 2, 1), (12, 10, 9), *[(12, 10, 10)] * 4, (12, 10, None),
    ]  # fmt: skip
    (net / "10/10/odd.npy").touch()
    with pytest.raises(UnreadableError, match=r"10/10/odd\.npy: is not the name of a dumped tensor"):
        list(records(str(tmp_path / "rank_12"), "Net"))


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


@pytest.mark.parametrize("name", ["short.npy", "x" * 300 + ".npy"], ids=["short", "long"])
def test_a_file_is_stored_under_the_name_that_is_returned(tmp_path, name):
    sink, number, folder = Sink(), NameRule().number(""), str(tmp_path / "all")
    stored = store(sink, folder, name, [b"data"], number)
    sink.settle()
    assert (tmp_path / "all" / stored).read_bytes() == b"data"
    lines = [] if stored == name else [(stored, name)]
    assert list(mapping.pairs(f"{folder}/mapping.csv") if lines else ()) == lines
    assert sorted(os.listdir(folder)) == sorted([stored, *(["mapping.csv"] if lines else [])])

    def attempt(write):  # only lines can be written
        write()
        return not os.path.exists(tmp_path / "part" / stored)

    assert store(sink, str(tmp_path / "part"), name, [b"data"], number, attempt) is None
    sink.settle()
    assert sorted(os.listdir(tmp_path / "part")) == sorted(os.listdir(folder))


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


LAST = 2**63 - 1  # the clock counts in 63 bits


@pytest.mark.parametrize(
    ("row", "newest"),
    [
        ("Add,a,0,0,7", 0),  # cut off: too few cells
        ("Add,a,0,0,7,output", 7),
        ("Add,a,0,0,7x,output", 0),
        ("Add,a,0,0,\u0667,output", 0),  # a digit, but not of ASCII
        ("Add,a,0,0,,output", 0),
        ("Add,a,0,9,7,output", 7),
        (f"Add,a,0,0,{LAST},output", LAST),
    ],
)
def test_stamps_of_rows_are_their_fifth_cell(tmp_path, row, newest):
    (tmp_path / "statistic.csv").write_text(f"{row}\n")
    assert newest_stamp(str(tmp_path)) == newest


@pytest.mark.parametrize(
    ("name", "newest"),
    [
        ("Add.a.0.0.7.output.0.ND.npy", 7),
        ("Add.a.0.7", 7),
        ("Opdebug.Node_OpDebug.1.2.7.output.0.json", 7),
        ("Opdebug.Node_OpDebug.1.2.7.output.0.txt", 0),
        ("Add.a.0.0.7.input.0.json", 0),
        ("7.npy", 0),
        ("acl_dump_0.json", 0),
    ],
)
def test_stamps_in_names(tmp_path, name, newest):
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / name).touch()
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "readme").touch()
    assert newest_stamp(str(tmp_path)) == newest


@pytest.mark.parametrize(
    ("stamp", "where"),
    [
        (str(LAST + 1), "statistic.csv"),
        ("9" * 19, "statistic.csv"),
        ("9" * 20, "statistic.csv:2"),
        ("9" * 5000, "statistic.csv:2"),
    ],
    ids=len,
)
def test_a_stamp_after_which_none_can_follow_is_an_error(tmp_path, stamp, where):
    (tmp_path / "statistic.csv").write_text(f"title\nAdd,a,0,0,{stamp},output,0\n")
    with pytest.raises(UnreadableError) as caught:
        newest_stamp(str(tmp_path))
    error = caught.value
    assert (error.what, error.where) == (
        f"a time stamp of {len(stamp)} digits, after which none can follow", f"{tmp_path}/{where}",
    )  # fmt: skip
    assert (error.allowed, error.code) == ((f"at most {LAST}",), "DS-ARC-003")


def test_a_table_that_no_csv_reader_takes_is_named_with_its_line(tmp_path):
    (tmp_path / "statistic.csv").write_text("title\nAdd," + "x" * 131_073 + "\n")  # the csv module's limit and one
    with pytest.raises(UnreadableError, match=r"statistic\.csv:2: field larger than field limit") as caught:
        newest_stamp(str(tmp_path))
    assert caught.value.code == "DS-CSV-003"


@pytest.mark.parametrize("name", ["statistic.csv", "mapping.csv"])
def test_a_pipe_in_the_place_of_a_table_does_not_wait(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(UnreadableError, match="is a pipe"):
        newest_stamp(str(tmp_path))
