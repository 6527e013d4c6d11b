"""The step of TensorDump: counted for graphs and for the host apart, chosen by set_steps."""

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.errors import DumpWriteError, UnsupportedError
from dumpsim.device.queue import Message
from dumpsim.dump.tensordump import UPDATE_STEP, TensorDumpWriter
from dumpsim.modes.profile import find


def writer(**overrides):
    return TensorDumpWriter(find("seed", "Ascend", {"tensordump": "B", **overrides}), rank=3)


def message(file, source="graph"):
    return Message(items=(file, np.float32([1])), source=source, attrs={})


@pytest.mark.parametrize("source", ["graph", "host"])
def test_the_first_step_is_0_and_each_source_counts_its_own(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    own = writer()
    other = {"graph": "host", "host": "graph"}[source]
    own(message("x_{step}_{rank}", source))
    own(message(UPDATE_STEP, source))
    own(message("x_{step}", source))
    own(message("x_{step}", other))
    names = [path.rpartition("/")[2] for path in own.written]
    assert names == ["x_step0_rank3_float32_0.npy", "x_step1_float32_1.npy", "x_step0_float32_2.npy"]


def test_only_wanted_steps_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = writer()
    own.set_steps([0, 2])
    for _ in range(4):
        own(message("x_{step}"))
        own(message(UPDATE_STEP))
    assert [path.rpartition("/")[2] for path in own.written] == ["x_step0_float32_0.npy", "x_step2_float32_1.npy"]
    with pytest.raises(UnsupportedError, match="steps of TensorDump"):
        writer(tensordump="A").set_steps([1])


def write(file, array, *, release="seed", **overrides):
    """The writer of a tensor, with what it has logged."""
    said = []
    profile = find(release, "Ascend", {"tensordump": "B", **overrides})
    own = TensorDumpWriter(profile, rank=3, log=lambda *words: said.append(words))
    own(Message(items=(file, array), source="graph", attrs={}))
    return own, said


@pytest.mark.parametrize(
    ("generation", "file", "place"),
    [
        ("A", "x", "0_x.npy"), ("A", "a/x.npy", "a/0_x.npy"), ("A", "{step}", "0_{step}.npy"),
        ("B", "x", "x_float32_0.npy"), ("B", "a/x.npy", "a/x_float32_0.npy"),
        ("C", "{rank}/{step}{step}", "rank3/step0step0_float32_0.npy"),
    ],
)  # fmt: skip
def test_names_of_each_generation(tmp_path, monkeypatch, generation, file, place):
    """[spec parallel 1.1]"""
    monkeypatch.chdir(tmp_path)
    own, said = write(file, np.float32([[1, 2]]), tensordump=generation)
    path = tmp_path / place
    assert (own.written, said) == ([str(path)], [])
    assert np.load(path).tolist() == [[1, 2]]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (
        0o400, 0o700 if "/" in place else tmp_path.stat().st_mode & 0o777,
    )  # fmt: skip


def test_modes_of_each_generation():
    assert {word: TensorDumpWriter(find("seed", "CPU", {"tensordump": word}), rank=0).rule.modes for word in "ABC"} == {
        "A": ("out", "in", "all"), "B": ("out", "in"), "C": ("out", "in"),
    }  # fmt: skip


def test_number_types_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own, _ = write("b", np.array([1.5, -2], ml_dtypes.bfloat16))
    assert [path.rpartition("/")[2] for path in own.written] == ["b_bfloat16_0.npy"]  # [spec mindspore 9]
    assert (np.load("b_bfloat16_0.npy").dtype, np.load("b_bfloat16_0.npy").tolist()) == (np.float32, [1.5, -2])
    own, _ = write("scalar", np.float64(3))
    assert np.load("scalar_float64_0.npy").shape == ()
    own, _ = write("turned", np.arange(6, dtype=np.int32).reshape(2, 3).T)
    assert np.load("turned_int32_0.npy").tolist() == [[0, 3], [1, 4], [2, 5]]
    own, said = write("f", np.array([1], ml_dtypes.float8_e5m2))
    text = "For 'TensorDump' ops, the type of float8_e5m2 has no npy form."
    assert (own.written, said) == ([], [("ERROR", "SaveTensor2NPY", text)])
    own(message("next"))
    assert [path.rpartition("/")[2] for path in own.written] == ["next_float32_0.npy"]  # it took no number


@pytest.mark.parametrize("unwritable", ["error", "log"])
def test_a_file_that_cannot_be_written(tmp_path, monkeypatch, unwritable):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    if unwritable == "error":
        with pytest.raises(DumpWriteError, match="a parent is a file"):
            write("file/x", np.float32([1]), unwritable=unwritable)
        return
    own, ((level, function, text),) = write("file/x", np.float32([1]), unwritable=unwritable)
    assert (own.written, level, function) == ([], "ERROR", "SaveTensor2NPY")
    assert text.startswith(f"For 'TensorDump' ops, open {tmp_path}/file/x_float32_0.npy failed: ")
    own(message("y"))
    assert [path.rpartition("/")[2] for path in own.written] == ["y_float32_1.npy"]


def test_a_file_is_an_error_unless_both_of_its_steps_are_selected(tmp_path, monkeypatch):
    """quirk: 2.10 counts the steps of the caller, and names files by those of graphs. [2.10 observed]"""
    monkeypatch.chdir(tmp_path)
    said = []
    own = TensorDumpWriter(find("2.10", "Ascend"), rank=0, log=lambda *words: said.append(words))
    own.set_steps([1])
    own(message("x_{step}", "host"))
    own(message(UPDATE_STEP, "host"))
    assert (own.written, said) == ([], [])
    own(message("<sdc-feature-value>x", "host"))
    own(message("x_{step}", "host"))  # step 1 of the host, 0 of graphs
    text = "For 'TensorDump' ops, open  file failed, the args of 'file' is invalid."
    assert (own.written, said) == ([], [("ERROR", "SaveTensor2NPY", text)])
    own(message(UPDATE_STEP))
    own(message("x_{step}", "host"))
    own(message(UPDATE_STEP, "host"))
    own(message("x_{step}", "host"))  # step 2 of the host
    assert [path.rpartition("/")[2] for path in own.written] == ["x_step1_float32_0.npy"]
    own.set_steps([])
    own(message("y_{step}", "host"))
    assert [path.rpartition("/")[2] for path in own.written[1:]] == ["y_step1_float32_1.npy"]
    assert len(said) == 1
