"""What msaccucmp says and returns where something is wrong, beside the tables and files."""

import io
import os
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from binfile import bin_bytes, item

from dumpsim.analysis.msaccucmp import command
from dumpsim.analysis.msaccucmp import convert as converting
from dumpsim.analysis.msaccucmp.compare import _own_measure
from dumpsim.analysis.msaccucmp.convert import Conversion, _guarded
from dumpsim.analysis.msaccucmp.dumpfile import DumpFile
from dumpsim.analysis.msaccucmp.journal import Journal
from dumpsim.analysis.msaccucmp.overflow import _dump_of, _Task
from dumpsim.analysis.msaccucmp.reformat import _check_nz, _empty, _slice, custom_converters
from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.core.errors import DumpWriteError, FormatError

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Said(Journal):
    """A journal whose lines are level and text."""

    def __init__(self):
        super().__init__(io.StringIO(), lambda: 7.0)
        self.lines = []

    def _line(self, level, text):
        self.lines.append(f"{level} {text}")


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ToolError(Status.INVALID_SHAPE, "wrong"), Status.INVALID_SHAPE, "ERROR wrong"),
        (FormatError("odd"), Status.INVALID_DUMP_DATA, "ERROR odd"),
        (PermissionError(13, "Permission denied", "f"), Status.OPEN_FILE, "ERROR f: Permission denied"),
        (None, Status.OK, "INFO The command was completed and took 0 seconds."),
    ],
)
def test_each_error_of_a_command_has_a_line_and_a_status(monkeypatch, error, status, line):
    def run(options, journal):
        if error is not None:
            raise error
        return Status.OK

    journal = Said()
    monkeypatch.setattr(command, "_COMMANDS", MappingProxyType({"convert": run}))
    assert command.run(["convert", "-d", "x"], journal=journal) == int(status)
    assert line in journal.lines
    assert journal.lines[-1] == "INFO The command was completed and took 0 seconds."


@pytest.mark.parametrize(
    ("error", "status", "lines"),
    [
        (DumpWriteError("f: no space"), Status.WRITE_FILE, ["ERROR f: no space"]),
        (PermissionError(13, "Permission denied"), Status.OPEN_FILE,
         ["ERROR Failed to open \"'PATH'\". Permission denied"]),
        (FormatError("odd"), Status.INVALID_DUMP_DATA, ["ERROR odd"]),
        (ToolError(Status.INVALID_SHAPE, "wrong"), Status.INVALID_SHAPE,
         ["ERROR wrong", 'ERROR Failed to FORMAT "PATH".']),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("format", "verb"), [(None, "parse dump file"), ("ND", "convert format for")])
def test_each_error_of_a_file_has_lines_and_a_status(tmp_path, monkeypatch, error, status, lines, format, verb):
    def fail(*arguments):
        raise error

    path = tmp_path / "Add.a.1.2.1700000000000000"
    path.write_bytes(b"0" * 20)
    monkeypatch.setattr(converting, "_file", fail)
    journal = Said()
    found = _guarded(str(path), Conversion(out=str(tmp_path), format=format), None, journal)
    assert found == (status, ())
    assert journal.lines == [line.replace("PATH", str(path)).replace("FORMAT", verb) for line in lines]


@pytest.mark.parametrize(("size", "status"), [(0, Status.OK), (8, Status.OK), (9, Status.SIZE_MISMATCH)])
def test_a_file_of_a_length_alone_is_an_empty_dump(tmp_path, monkeypatch, size, status):
    def fail(*arguments):
        raise ToolError(Status.SIZE_MISMATCH, "short")

    path = tmp_path / "Add.a.1.2.1700000000000000"
    path.write_bytes(bytes(size))
    monkeypatch.setattr(converting, "_file", fail)
    assert _guarded(str(path), Conversion(out=str(tmp_path)), None, Said())[0] is status


@pytest.mark.parametrize(
    ("wanted", "shape", "line"),
    [
        ((), (3, 4), None), ((3, 4), (3, 4), "INFO The data of input:0 has been sliced from (3, 4) to (3, 4)."),
        ((2, 3), (2, 3), "INFO The data of input:0 has been sliced from (3, 4) to (2, 3)."),
        ((4, 3), (3, 4),
         "WARNING The data of input:0 stays (3, 4): its original shape (4, 3) has another order or rank."),
        ((3,), (3, 4), "WARNING The data of input:0 stays (3, 4): its original shape (3) has another order or rank."),
    ],
)  # fmt: skip
def test_padding_is_cut_off_where_the_original_shape_fits(wanted, shape, line):
    journal = Said()
    found = _slice(X, wanted, SimpleNamespace(label="input:0"), journal)
    assert found.tolist() == X[tuple(slice(n) for n in shape)].tolist()
    assert journal.lines == ([] if line is None else [line])


def test_a_tensor_without_elements_has_the_original_shape_if_that_has_none():
    found = _empty(SimpleNamespace(label="output:1", original_shape=(2, 0, 3)), np.zeros((0, 16), np.float16))
    assert (found.shape, found.dtype) == ((2, 0, 3), np.float16)
    said = r"output:1 has no elements on the device, and \(2, 3\) of them on the host\."
    with pytest.raises(ToolError, match=said) as caught:
        _empty(SimpleNamespace(label="output:1", original_shape=(2, 3)), np.zeros((0, 16), np.float16))
    assert caught.value.status is Status.SHAPE_CONVERT


@pytest.mark.parametrize(
    ("shape", "wanted", "status"),
    [
        ((2, 3, 16, 16), (48, 32), None), ((2, 3, 16, 16), (33, 17), None), ((2, 1, 16, 16), (17,), None),
        ((5, 2, 3, 16, 16), (5, 40, 20), None), ((2, 3, 16, 16), (), "INVALID_PARAM"),
        ((3, 16, 16), (16, 16), "INVALID_FRACTAL_NZ"), ((2, 3, 16, 16), (49, 32), "INVALID_PARAM"),
        ((2, 3, 16, 16), (32, 32), "INVALID_PARAM"), ((2, 3, 16, 16), (48, 33), "INVALID_PARAM"),
        ((2, 3, 16, 16), (48, 16), "INVALID_PARAM"), ((5, 2, 3, 16, 16), (4, 40, 20), "INVALID_PARAM"),
        ((2, 3, 16, 16), (1, 48, 32), "INVALID_PARAM"),
    ],
)  # fmt: skip
def test_a_shape_of_fractal_nz_must_fill_its_blocks(shape, wanted, status):
    """Last axes of the device: n1, m1, m0, n0 of a matrix of m1 * m0 rows and n1 * n0 columns."""
    tensor = SimpleNamespace(label="input:0", shape=shape)
    if status is None:
        _check_nz(tensor, wanted)
        return
    with pytest.raises(ToolError) as caught:
        _check_nz(tensor, wanted)
    assert caught.value.status is Status[status]
    if wanted and len(shape) > 3:
        rows, columns = shape[-3] * shape[-2], shape[-4] * shape[-1]
        padded = ", ".join(map(str, (*shape[:-4], rows, columns)))
        assert str(caught.value).endswith(f"The recommended shape is ({padded}).")


def test_a_tensor_that_cannot_be_converted_is_named_and_the_others_are_written(tmp_path):
    path = tmp_path / "Add.a.1.2.1700000000000000"
    path.write_bytes(bin_bytes([item(np.zeros((1, 1, 16, 16), np.float16), format="FRACTAL_Z", original_shape=(3,))],
                               [item(X, format="ND")]))  # fmt: skip
    journal = Said()
    code = command.run(["convert", "-d", str(path), "-out", str(tmp_path / "out"), "-f", "NCHW"], journal=journal)
    assert code == int(Status.INVALID_CONVERT_FUNCTION)
    lines = [line for line in journal.lines if line.startswith("ERROR")]
    assert f"ERROR Failed to convert format for input:0 of \"'{path}'\"" in lines


def test_a_measure_of_the_user_that_fails_is_a_note():
    def wrong(x, y, options):
        raise KeyError("alpha")

    def right(x, y, options):
        return float(x.sum() + y.sum()), options

    work = SimpleNamespace(
        own_measures={"mine": wrong, "good": right}, what=SimpleNamespace(algorithm_options="good:a=1,b=2;other:c=3")
    )
    assert _own_measure(work, "mine", X, X) == ("NaN", "Failed to execute 'compare' in 'mine'. 'alpha'")
    assert _own_measure(work, "good", X, X) == ("132.0", "{'a': '1', 'b': '2'}")


def test_converters_of_the_user_have_names_of_their_own(tmp_path):
    folder = tmp_path / "format_convert"
    folder.mkdir()
    source = "def convert(shape_from, shape_to, array):\n    return array\n"
    for name in (
        "convert_A_to_B.py",
        "convert_to_B.py",
        "convert_A.py",
        "A_to_B.py",
        "convert_C_to_D.txt",
        "convert_A_to_.py",
    ):
        (folder / name).write_text(source)
    journal = Said()
    assert set(custom_converters(str(tmp_path), journal)) == {("A", "B")}
    assert journal.lines == [f"INFO The converter from A to B is that of {folder / 'convert_A_to_B.py'}."]
    assert custom_converters(str(folder), journal) == {}


def test_the_file_of_a_task_is_the_first_with_its_numbers(tmp_path):
    names = ["b/Add.x.4.5.1700000000000000", "a/Mul.y.4.6.1700000000000000", "a/Sub.z.4.5.1700000000000000",
             "a/Opdebug.Node_OpDebug.4.5.1700000000000000", "a/readme.4.5"]  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert _dump_of(_Task(task_id=4, stream_id=5), str(tmp_path)) == str(tmp_path / names[2])
    assert _dump_of(_Task(task_id=4, stream_id=6), str(tmp_path)) == str(tmp_path / names[1])
    assert _dump_of(_Task(task_id=5, stream_id=5), str(tmp_path)) is None


def test_arrays_of_all_types_are_as_the_file_has_them(tmp_path):
    path = tmp_path / "Add.a.1.2.1700000000000000"
    raw = bytes(range(8))
    for kind, dtype in (("undefined", np.int8), ("int16", np.int16), ("bool", np.bool_), ("uint8", np.uint8)):
        width = np.dtype(dtype).itemsize
        data = bytes(n % 2 for n in range(8)) if kind == "bool" else raw
        path.write_bytes(bin_bytes([], [item(data, dtype=kind, shape=(8 // width,))]))
        found = DumpFile.open(str(path)).outputs[0].array()
        assert found.dtype == dtype
        assert found.tobytes() == data
    assert os.path.getsize(path) > 8


@pytest.fixture
def pair(tmp_path):
    """Two directories with one operator: zeros, and what they should be."""
    for folder, values in (("own", X * 0), ("golden", X)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "Add.z.3.2.1700000000000101").write_bytes(bin_bytes([item(values)]))
    return ["-m", str(tmp_path / "own"), "-g", str(tmp_path / "golden"), "-out", str(tmp_path / "out")]


@pytest.mark.parametrize(
    ("given", "flag"), [(["-r", "1,1,1"], '"-r" or "--range"'), (["-s", "1"], '"-s" or "--select"')]
)
def test_operators_are_chosen_only_with_a_model(pair, given, flag):
    journal = Said()
    assert command.run(["compare", *pair, *given], journal=journal) == int(Status.INVALID_PARAM)
    assert f'ERROR The argument {flag} takes effect only when the "-f" exists.' in journal.lines


def test_what_a_measure_could_not_compute_is_a_warning(pair):
    journal = Said()
    assert command.run(["compare", *pair, "-alg", "0"], journal=journal) == 0
    zeros = f"{pair[1]}/Add.z.3.2.1700000000000101"
    assert f"WARNING Cannot compare by Cosine Similarity. All the data is zero in {zeros}." in journal.lines


@pytest.mark.parametrize("odd", [0, 1])
def test_two_files_are_compared_only_as_npy(tmp_path, odd):
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    paths[odd] = tmp_path / "c.bin"
    for path in paths:
        with path.open("wb") as file:
            np.save(file, X)
    journal = Said()
    flags = zip(("-m", "-g"), map(str, paths), strict=True)
    code = command.run(
        ["file_compare", *(word for flag in flags for word in flag), "-out", str(tmp_path / "out")], journal=journal
    )
    assert code == int(Status.INVALID_DUMP_DATA)
    assert f"ERROR '{paths[odd]}' is not an npy file." in journal.lines
