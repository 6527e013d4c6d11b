"""Opening trees that real MindSpore wrote (rebuilt from the record), and trees that nobody should trust."""

import os

import numpy as np
import pytest
import recorded
from rebuild import rebuild

import dumpsim
from dumpsim.codecs import statcsv
from dumpsim.core.errors import BadInputError, UnreadableError

LENET = "Default/conv1-Conv2d/Conv2D-op0"


@pytest.fixture
def lenet(tmp_path):
    rebuild("lenet_fwd", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [name for name in recorded.cases() if "reference_cases" in name])
def test_every_recorded_tensor_is_read_back(name, tmp_path):
    case = rebuild(name, tmp_path)
    entries = list(dumpsim.open(tmp_path))
    whole = [file for file in case.files if file.whole]
    assert len(entries) == len(whole)
    by_place = {(entry.path.parent.relative_to(tmp_path).as_posix(), entry.timestamp): entry for entry in entries}
    for number, file in enumerate(case.files):
        if not file.whole:
            continue
        entry = by_place[file.directory, 1_795_210_000_000_000 + number]
        graph, iteration = file.directory.split("/")[-2:]
        assert (entry.graph_id, entry.iteration, entry.rank) == (int(graph), int(iteration), 0)
        assert file.name.startswith(f"{entry.op_type}.")
        assert f".{entry.io}.{entry.slot}." in file.name
        assert entry.shape == file.shape
        array = entry.array()
        bits = array.view(np.uint16) if entry.dtype == "bfloat16" else array
        assert np.array_equal(bits, case.value(file))


def test_names_come_from_the_graph(lenet):
    names = {entry.op_name for entry in dumpsim.open(lenet)}
    assert LENET in names
    assert "conv1.weight" in names
    assert not any("_" in name and name.startswith("Default_") for name in names)


def test_from_a_line_of_the_script_to_its_tensors(lenet):
    """The seed's question: which files belong to `x = self.conv3(x)`."""
    lines = recorded.load("lenet_fwd").script.read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "self.flatten(x)" in text)
    found = {entry.op_name for entry in dumpsim.open(lenet).filter(source=f"script.py:{line}")}
    assert found == {"Default/flatten-Flatten/Flatten-op0"}
    assert not list(dumpsim.open(lenet).filter(source="other.py:3"))


def test_filters_narrow(lenet):
    dump = dumpsim.open(lenet)
    assert {e.slot for e in dump.filter(op=LENET.lower(), io="input")} == {0, 1}
    assert {e.op_type for e in dump.filter(op_type="relu")} == {"ReLU"}
    assert len(dump.filter(dtype="bool")) == sum(e.dtype == "bool" for e in dump)
    assert len(dump.filter(iteration=1)) == 0
    assert len(dump.filter(graph=0, rank=0, slot=0, where=lambda e: e.shape == (10,))) > 0
    with pytest.raises(BadInputError, match="input, output"):
        dump.filter(io="out")


def test_any_directory_of_the_tree_and_single_files_can_be_opened(lenet):
    whole = [e.label for e in dumpsim.open(lenet)]
    assert [e.label for e in dumpsim.open(lenet / "rank_0")] == whole
    place = next((lenet / "rank_0").glob("LeNet*/0/0"))
    assert [(e.label, e.graph_id, e.iteration) for e in dumpsim.open(place)] == [(label, 0, 0) for label in whole]
    path = next(place.glob("BiasAdd.Default_fc3*output*"))
    (entry,) = dumpsim.open(path)
    assert (entry.op_name, entry.iteration) == ("Default/fc3-Dense/BiasAdd-op0", 0)


def test_statistics_rows_are_joined_to_their_files(tmp_path):
    place = tmp_path / "rank_3" / "Net" / "0" / "7"
    place.mkdir(parents=True)
    array = np.array([[1, -2, np.nan]], np.float32)
    np.save(place / "Add.Default_Add-op0.0.0.1700000000000005.output.0.DefaultFormat.float32.npy", array)
    text = statcsv.header(["max", "min", "md5"])
    text += 'Add,Default_Add-op0,0,0,1700000000000005,output,0,12,float32,"(1,3)",nan,nan,abc,\n'
    text += 'Mul,Default/Mul-op0,0,0,1700000000000009,input,1,2,float16,"[]",4,-4,def,\n'
    (place / "statistic.csv").write_text(text)
    add, mul = dumpsim.open(tmp_path)
    assert (add.rank, add.iteration, add.path is not None) == (3, 7, True)
    assert np.isnan(add.statistic("max"))
    assert add.statistic("nan") == 1
    assert add.row["md5"] == "abc"
    assert (mul.path, mul.statistic("max"), mul.shape, mul.dtype, mul.op_name) == (
        None,
        4.0,
        (),
        "float16",
        "Default/Mul-op0",
    )
    with pytest.raises(UnreadableError, match="only its statistics"):
        mul.array()


@pytest.mark.report
def test_tables(lenet):
    import pandas
    import polars

    rows = list(dumpsim.open(lenet).rows(["max"]))
    frame = pandas.DataFrame(rows)
    assert list(dumpsim.open(lenet).to_pandas()["op_name"]) == list(frame["op_name"])
    assert dumpsim.open(lenet).to_polars().select(polars.col("nbytes").sum()).item() == frame["nbytes"].sum()


def test_nothing_to_open_says_what_was_looked_for(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    for path, text in (
        (tmp_path, "no .npy file"),
        (tmp_path / "none", "does not exist"),
        (tmp_path / "a.txt", r"\*\.npy"),
    ):
        with pytest.raises(UnreadableError, match=text):
            dumpsim.open(path)


def test_links_out_of_the_tree_are_not_followed(lenet, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "5"
    outside.mkdir()
    np.save(outside / "Secret.x.0.0.1.output.0.DefaultFormat.npy", np.ones(1))
    os.symlink(outside.parent, lenet / "rank_0" / "linked")
    assert not any(entry.op_type == "Secret" for entry in dumpsim.open(lenet))
