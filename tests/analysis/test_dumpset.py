"""Opening trees that real MindSpore wrote (rebuilt from the record), and trees that nobody should trust."""

import os

import numpy as np
import pytest
import recorded
from rebuild import rebuild
from smalltree import write

import dumpsim
from dumpsim.analysis import dumpset
from dumpsim.codecs import statcsv
from dumpsim.core.errors import BadInputError, UnreadableError
from dumpsim.core.statistic import NAMES, REAL

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


@pytest.fixture
def small(tmp_path):
    """Two ranks and iterations 0 and 2 of one operator with two inputs; its result counts the places."""
    for at, (rank, iteration) in enumerate([(1, 2), (0, 0), (1, 0)]):
        arrays = [np.arange(6, dtype=np.float32).reshape(2, 3) - 2, np.array([True, False])]
        write(tmp_path, [("Add", "Default/Add-op0", arrays, [np.float16(at)])], rank=rank, iteration=iteration)
    return tmp_path


def expected(root, known):
    """The rows of `small`; `known` are statistics of the three tensors of a place."""
    facts = [("input", 0, "float32", [2, 3], 24), ("input", 1, "bool", [2], 2), ("output", 0, "float16", [], 2)]
    for rank, iteration in ((0, 0), (1, 0), (1, 2)):
        for at, (io, slot, dtype, shape, nbytes) in enumerate(facts):
            stamp = 1_700_000_000_000_000 + 100_000 * iteration + at + 1
            yield {
                "rank": rank, "net": "Net", "step": None, "graph": 0, "iteration": iteration, "op_type": "Add",
                "op_name": "Default_Add-op0", "io": io, "slot": slot, "dtype": dtype, "shape": shape,
                "format": "DefaultFormat", "nbytes": nbytes, "task_id": 0, "stream_id": 0, "timestamp": stamp,
                "path": str(root / f"rank_{rank}/Net/0/{iteration}/"
                            f"Add.Default_Add-op0.0.0.{stamp}.{io}.{slot}.DefaultFormat.npy"),
                **{name: values[at] for name, values in known.items()},
            }  # fmt: skip


def test_a_row_has_all_that_is_known_of_a_tensor(small):
    rows = list(dumpsim.open(small).rows())
    assert rows == list(expected(small, dict.fromkeys(NAMES, (None,) * 3)))
    assert list(rows[0])[-len(NAMES) :] == list(NAMES)
    computed = list(dumpsim.open(small).filter(rank=0).rows(["min", "count"]))
    known = dict.fromkeys(NAMES, (None,) * 3) | {"min": (-2.0, 0.0, 1.0), "count": (6, 2, 1)}
    assert computed == list(expected(small, known))[:3]


def test_a_file_that_cannot_be_read_has_no_row(small):
    broken = next(small.rglob("*.input.1.*.npy"))
    broken.write_bytes(b"")
    errors = []
    rows = list(dumpsim.open(small).rows(broken=errors.append))
    assert [row["path"] for row in rows] == [
        row["path"] for row in expected(small, {}) if row["path"] != str(broken)
    ]  # fmt: skip
    assert len(errors) == 1
    assert broken.name in str(errors[0])
    with pytest.raises(UnreadableError):
        list(dumpsim.open(small).rows())


@pytest.mark.report
def test_frames_have_types_also_for_columns_without_values(small):
    pandas, polars = (getattr(dumpsim.open(small), name)() for name in ("to_pandas", "to_polars"))
    wanted = list(expected(small, dict.fromkeys(NAMES, (None,) * 3)))
    assert list(pandas.columns) == polars.columns == list(wanted[0])
    assert polars.to_dicts() == wanted
    whole = {"rank", "step", "graph", "iteration", "slot", "nbytes", "task_id", "stream_id", "timestamp"}
    whole |= {name for name in NAMES if name not in REAL}
    kinds = dict.fromkeys(whole, "Int64") | dict.fromkeys(REAL, "float64")
    assert {name: str(kind) for name, kind in pandas.dtypes.items() if name in kinds} == kinds
    schema = dict.fromkeys(wanted[0], "String") | dict.fromkeys(whole, "Int64") | dict.fromkeys(REAL, "Float64")
    assert {name: str(kind) for name, kind in polars.schema.items()} == {**schema, "shape": "List(Int64)"}
    for name in ("op_name", "path", "nbytes", "shape"):
        assert pandas[name].tolist() == [row[name] for row in wanted]
    empty = dumpsim.open(small).filter(rank=7)
    assert (empty.to_pandas().dtypes == pandas.dtypes)[sorted(kinds)].all()
    assert empty.to_polars().schema == polars.schema


@pytest.mark.parametrize(
    ("limit", "filters", "text"),
    [
        (9, {}, "9 tensors of 1 operators, rank 0-1, iteration 0, 2"),
        (8, {}, "more than 8 tensors of 1 operators, rank 0-1, iteration 0, 2"),
        (3, {"rank": 0}, "3 tensors of 1 operators, rank 0, iteration 0 (filtered)"),
        (2, {"rank": 0}, "more than 2 tensors of 1 operators, rank 0, iteration 0 (filtered)"),
        (9, {"rank": 7}, "0 tensors of 0 operators (filtered)"),
    ],
)
def test_the_text_of_a_long_dump_counts_a_part_of_it(small, monkeypatch, limit, filters, text):
    monkeypatch.setattr(dumpset, "_COUNTED", limit)
    assert repr(dumpsim.open(small).filter(**filters)) == f"<DumpSet {small}: {text}>"


def test_the_text_of_loose_files_names_no_iteration(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(2))
    assert repr(dumpsim.open(tmp_path)) == f"<DumpSet {tmp_path}: 1 tensors of 1 operators, rank 0>"
    (tmp_path / "Add.a.1.2.1700000000000000").write_bytes(b"x")
    assert repr(dumpsim.open(tmp_path)) == f"<DumpSet {tmp_path}: damaged>"


def test_filters_without_a_value_change_nothing(small):
    dump = dumpsim.open(small)
    assert dump.filter() is dump
    assert dump.filter(rank=0).filter() == dump.filter(rank=0)
    assert len(dump.filter(rank=1).filter(iteration=0)) == len(dump.filter(rank=1, iteration=0)) == 3
    assert len(dump.filter(slot=0)) == 6
    assert list(dump.absent()) == []
    assert list(dump.filter(rank=1).filter(rank=0, slot=9).absent()) == [
        "no slot 9; there are 0-1",
        "no rank 0; there is 1",
    ]
