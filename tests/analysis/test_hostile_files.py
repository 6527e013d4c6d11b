"""Links, pipes and devices in the place of each file of a dump, a config or a plan: none is read, nothing waits."""

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from apifiles import dump, linears
from binfile import bin_bytes, item

import dumpsim
from dumpsim.analysis.apicompare import api_dump_compare
from dumpsim.analysis.convert import convert
from dumpsim.archive.tree import newest_stamp
from dumpsim.codecs import irproto, irtext
from dumpsim.core.errors import DumpConfigError, FaultPlanError, UnreadableError
from dumpsim.device.faults import load_plan
from dumpsim.modes.configfile import read_file

OP = "Add.Default_Add-op1.3.2.1700000000000000"
FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(autouse=True)
def _deadline():
    """A pipe that holds a reader fails its test."""

    def late(*_):
        raise AssertionError("the reader waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _pipe(path, away):
    path.unlink()
    os.mkfifo(path)


def _zero(path, away):
    path.unlink()
    path.symlink_to("/dev/zero")


def _linked(path, away):
    shutil.move(path, away / path.name)
    path.symlink_to(away / path.name)


KINDS = pytest.mark.parametrize("spoil", [_pipe, _zero, _linked])


@pytest.fixture
def away(tmp_path_factory):
    return tmp_path_factory.mktemp("away")


def graph_tree(root):
    """A tree with a graph as text and one as protobuf, which name the script's lines."""
    place = root / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    np.save(place / f"{OP}.output.0.DefaultFormat.npy", np.float32([1]))
    graphs = root / "rank_0" / "graphs"
    graphs.mkdir()
    text = min(FIXTURES.rglob("ms_output_trace_code_graph_*.ir"), key=lambda path: path.stat().st_size).read_text()
    (graphs / "ms_output_trace_code_graph_0.ir").write_text(text)
    (graphs / "ms_output_trace_code_graph_1.pb").write_bytes(irproto.encode(irtext.parse(text)))
    return root


def bin_file(path):
    """A bin file of one output."""
    path.write_bytes(bin_bytes([item(np.float32([1, 2]))]))


@KINDS
@pytest.mark.parametrize("name", ["ms_output_trace_code_graph_0.ir", "ms_output_trace_code_graph_1.pb"])
def test_graphs(tmp_path, away, spoil, name):
    root = graph_tree(tmp_path)
    (entry,) = dumpsim.open(root)
    assert set(entry.graphs.documents) == {0, 1}
    spoil(root / "rank_0" / "graphs" / name, away)
    (entry,) = dumpsim.open(root)
    assert set(entry.graphs.documents) == {0, 1} - {int(name[-4])}


def test_a_directory_of_graphs_that_is_a_link(tmp_path, away):
    root = graph_tree(tmp_path)
    _linked(root / "rank_0" / "graphs", away)
    (entry,) = dumpsim.open(root)
    with pytest.raises(UnreadableError, match=r"graphs: is a link; links in a dump are not followed"):
        _ = entry.source
    told = []
    (entry,) = dumpsim.open(root).lenient(told.append)
    assert (entry.source, len(told)) == ((), 1)


def api_tree(root):
    return dump(root, "torch", linears(0), npy=True, stacks={"torch.nn.Linear(0) forward": ["f"]}) / "rank0"


@KINDS
def test_the_stack_file(tmp_path, away, spoil):
    rank = api_tree(tmp_path)
    spoil(rank / "torch_api_dump_stack.json", away)
    entry = next(iter(dumpsim.open(rank)))
    with pytest.raises(UnreadableError, match=r"stack\.json: is a (link|pipe)"):
        _ = entry.stack


@KINDS
def test_the_info_file(tmp_path, away, spoil):
    rank = api_tree(tmp_path)
    spoil(rank / "torch_api_dump_info.pkl", away)
    shutil.rmtree(rank / "torch_api_dump")
    with pytest.raises(UnreadableError, match="holds no dump"):
        dumpsim.open(rank)
    if spoil is not _linked:
        with pytest.raises(UnreadableError, match=r"is a (pipe|device), not a regular file"):
            dumpsim.open(rank / "torch_api_dump_info.pkl")
    with pytest.raises(ValueError, match="not a valid dump path"):
        api_dump_compare(rank, rank)


def test_a_directory_of_arrays_that_is_a_link(tmp_path, away):
    rank = api_tree(tmp_path)
    _linked(rank / "torch_api_dump", away)
    with pytest.raises(UnreadableError, match=r"torch_api_dump: is a link"):
        list(dumpsim.open(rank))
    told = []
    found = [entry for entry in dumpsim.open(rank).lenient(told.append)]  # noqa: C416 (list() would count first)
    assert found
    assert not any(entry.path for entry in found)
    assert len(told) == 1


@KINDS
def test_an_array_of_an_api_dump(tmp_path, away, spoil):
    rank = api_tree(tmp_path)
    first = sorted((rank / "torch_api_dump").iterdir())[0]
    spoil(first, away)
    assert {entry.path is None for entry in dumpsim.open(rank)} == {True, False}


@KINDS
def test_tensors_that_are_replaced_after_they_were_listed(tmp_path, away, spoil):
    root = graph_tree(tmp_path)
    bin_path = root / "rank_0" / "Net" / "0" / "0" / f"Mul.{OP[4:]}"
    bin_file(bin_path)
    entries = {entry.op_type: entry for entry in dumpsim.open(root)}
    assert entries["Mul"].array().tolist() == [1, 2]
    for entry in entries.values():
        spoil(entry.path, away)
        with pytest.raises(UnreadableError, match=r"is a (link|pipe)"):
            entry.array()


@KINDS
def test_mapping_in_convert(tmp_path, away, spoil):
    source = tmp_path / "bins"
    source.mkdir()
    bin_file(source / OP)
    (source / "mapping.csv").write_text(f"{OP},Mul.x.3.2.1700000000000000\n")
    assert "Mul.x" in str(convert(source, tmp_path / "a").files and sorted((tmp_path / "a").iterdir()))
    spoil(source / "mapping.csv", away)
    with pytest.raises(UnreadableError, match=r"mapping\.csv: is a (link|pipe)"):
        convert(source, tmp_path / "b")


def test_a_link_to_a_file_that_the_user_named_is_converted(tmp_path, away):
    bin_file(away / "blob")
    (tmp_path / OP).symlink_to(away / "blob")
    assert convert(tmp_path / OP, tmp_path / "out").tensors == 1
    assert convert(tmp_path / OP, tmp_path / "again").failures == ()


@KINDS
@pytest.mark.parametrize("name", ["statistic.csv", "mapping.csv"])
def test_a_tree_that_a_run_continues(tmp_path, away, spoil, name):
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    (place / name).write_text("\n")
    assert newest_stamp(str(tmp_path)) == 0
    spoil(place / name, away)
    with pytest.raises(UnreadableError, match=rf"{name}: is a (link|pipe)"):
        newest_stamp(str(tmp_path))


def test_configs_and_plans(tmp_path, away):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"faults": []}))
    _pipe(path, away)
    with pytest.raises(DumpConfigError) as caught:
        read_file({"MINDSPORE_DUMP_CONFIG": str(path)})
    assert "is a pipe, not a regular file" in "".join(caught.value.__notes__)
    with pytest.raises(FaultPlanError, match="is a pipe, not a regular file"):
        load_plan(path)
    _zero(path, away)
    with pytest.raises(DumpConfigError, match="Invalid json file name:/dev/zero"):  # as the vendor resolves links
        read_file({"MINDSPORE_DUMP_CONFIG": str(path)})
    with pytest.raises(FaultPlanError, match="is a device, not a regular file"):
        load_plan(path)
    path.unlink()
    (away / "real.json").write_text('{"faults": []}')
    path.symlink_to(away / "real.json")  # as Kubernetes mounts its config maps
    assert load_plan(path).faults == ()
    assert read_file({"MINDSPORE_DUMP_CONFIG": str(path)}) == (str(path), b'{"faults": []}')


@pytest.mark.parametrize("name", ["x.npy", "x", "statistic.csv"])
def test_a_root_that_is_no_file(tmp_path, name):
    for make, what in ((os.mkfifo, "is a pipe"), (lambda p: p.symlink_to("/dev/zero"), "is a device")):
        path = tmp_path / name
        make(path)
        with pytest.raises(UnreadableError, match=f"{what}, not a regular file"):
            dumpsim.open(path)
        path.unlink()


def test_a_root_may_be_a_link(tmp_path, away):
    root = graph_tree(away)
    (tmp_path / "tree").symlink_to(root)
    (entry,) = dumpsim.open(tmp_path / "tree")
    assert entry.path.is_relative_to(tmp_path / "tree")
    (tmp_path / "one.npy").symlink_to(entry.path)
    (alone,) = dumpsim.open(tmp_path / "one.npy")
    assert (alone.op_type, alone.array().tolist()) == ("Add", [1])
    with pytest.raises(FileNotFoundError):
        dumpsim.open(tmp_path / "none")
    (tmp_path / "gone").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="gone: does not exist"):
        dumpsim.open(tmp_path / "gone")
