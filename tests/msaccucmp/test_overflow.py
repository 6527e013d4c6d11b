"""msaccucmp overflow and Opdebug files; the summary is what the real tool wrote for the same files."""

import json
import struct

import numpy as np
import pytest
from binfile import bin_bytes, item

from dumpsim.analysis.msaccucmp.command import run

SUMMARY = """\
=================================================[1]==================================================
[Add] Add_1
 [AIV][TaskId:3][StreamId:2][Status:32]
 [timestamp:1700000000000100]
 Add.Add_1.3.2.1700000000000101.input.0.npy
 -[Format: ND] [Shape: (2,)] [Dtype: float16] [Max: 6e+04] [Min: 1.0] [Mean: 3e+04]
 Add.Add_1.3.2.1700000000000101.input.1.npy
 -[Format: ND] [Shape: (2,)] [Dtype: int32] [Max: 60000] [Min: 1] [Mean: 30000.5]
 Add.Add_1.3.2.1700000000000101.output.0.npy
 -[Format: ND] [Shape: (2,)] [Dtype: float16] [Max: inf] [Min: 2.0] [Mean: inf]
=================================================[2]==================================================
[Mul] Add_1
 [DHA Atomic Add][TaskId:4][StreamId:2][Status:2304]
 [AI Core][TaskId:4][StreamId:2][Status:32]
 [timestamp:1700000000000200]
 Mul.Mul_1.4.2.1700000000000101.input.0.npy
 -[Format: ND] [Shape: (2,)] [Dtype: float16] [Max: 6e+04] [Min: 1.0] [Mean: 3e+04]
 Mul.Mul_1.4.2.1700000000000101.output.0.npy
 -[Format: ND] [Shape: (2,)] [Dtype: float16] [Max: inf] [Min: 2.0] [Mean: inf]
 Mul.Mul_1.4.2.1700000000000101.output.1.npy
 -[Format: ND] [Shape: (1,)] [Dtype: float32] [Max: 3.0] [Min: 3.0] [Mean: 3.0]
=================================================[3]==================================================
 [AI Core][TaskId:77][StreamId:7][Status:32]
 [timestamp:1700000000000300]
"""


def old_layout(*, task, stream, dha=0, ai_core=0):
    """The 2048 bytes by hand. [spec ge 3.8]"""
    raw = bytearray(2048)
    for offset in (0, 128, 256):
        struct.pack_into("<6Q", raw, offset, 1, stream, task, 0, 0, 0)
    struct.pack_into("<Q", raw, 512, dha)
    struct.pack_into("<3Q", raw, 1024, 0, 0, ai_core)
    return bytes(raw)


def new_layout(*, task, stream, status, unit=1):
    words = (1, stream, task, 0, 65535, 65535, 0, 0, 0, 0, status)
    head = struct.pack("<6I", 0x5A5A5A5A, 0, 1, unit, 0, 88)
    return (head + struct.pack("<11Q", *words)).ljust(2048, b"\0")


@pytest.fixture
def tree(tmp_path):
    place = tmp_path / "dump" / "model" / "1"
    place.mkdir(parents=True)
    reports = {
        100: new_layout(task=3, stream=2, status=32),
        200: old_layout(task=4, stream=2, dha=0x900, ai_core=32),
        300: old_layout(task=77, stream=7, ai_core=32),
    }
    for time, raw in reports.items():
        (place / f"Opdebug.Node_OpDebug.9.2.1700000000000{time}").write_bytes(
            bin_bytes([], [item(raw, dtype="uint8", shape=(2048,))], op_name="Node_OpDebug")
        )
    x, y = np.array([1, 60000], np.float16), np.array([np.inf, 2], np.float16)
    (place / "Add.Add_1.3.2.1700000000000101").write_bytes(bin_bytes([item(x), item(x.astype(np.int32))], [item(y)]))
    (place / "Mul.Mul_1.4.2.1700000000000101").write_bytes(
        bin_bytes([item(x)], [item(y), item(np.array(3, np.float32))])
    )
    return tmp_path / "dump"


def test_the_operator_is_of_the_same_step(tree, tmp_path):
    again = tree / "model" / "2"
    again.mkdir()
    x = np.array([7, 60000], np.float16)
    (again / "Add.Add_1.3.2.1700000000000401").write_bytes(bin_bytes([item(x)], [item(x)]))
    (again / "Opdebug.Node_OpDebug.9.2.1700000000000400").write_bytes(
        bin_bytes([], [item(new_layout(task=3, stream=2, status=32), dtype="uint8", shape=(2048,))])
    )
    out = tmp_path / "out"
    assert run(["overflow", "-d", str(tree), "-out", str(out), "-n", "4"]) == 0
    (summary,) = out.glob("overflow_summary_*.txt")
    assert "[timestamp:1700000000000400]\n Add.Add_1.3.2.1700000000000401.input.0.npy\n" in summary.read_text()


def test_the_summary(tree, tmp_path):
    out = tmp_path / "out"
    assert run(["overflow", "-d", str(tree), "-out", str(out), "-n", "3"]) == 0
    (summary,) = out.glob("overflow_summary_*.txt")
    assert len(summary.stem) == len("overflow_summary_YYYYMMDDHHMMSS")
    assert summary.read_text() == SUMMARY
    assert len(list(out.glob("*.npy"))) == 6
    assert len(list(out.glob("Opdebug*.json"))) == 3


def test_the_first_one_is_shown_by_default(tree, tmp_path):
    out = tmp_path / "out"
    assert run(["overflow", "-d", str(tree), "-out", str(out)]) == 0
    (summary,) = out.glob("overflow_summary_*.txt")
    assert summary.read_text() == "".join(SUMMARY.splitlines(keepends=True)[:10])


def test_an_empty_tensor_does_not_end_the_command(tree, tmp_path):
    """The real tool leaves no summary then."""
    file = next(tree.rglob("Add.Add_1*"))
    file.write_bytes(bin_bytes([item(np.empty((0, 2), np.float32))]))
    out = tmp_path / "out"
    assert run(["overflow", "-d", str(tree), "-out", str(out)]) == 0
    (summary,) = out.glob("overflow_summary_*.txt")
    assert "[Shape: (0, 2)] [Dtype: float64] [Max: nan] [Min: nan] [Mean: nan]" in summary.read_text()


def test_convert_makes_json_of_opdebug_files(tree, tmp_path):
    out = tmp_path / "out"
    assert run(["convert", "-d", str(tree / "model" / "1"), "-out", str(out)]) == 0
    text = (out / "Opdebug.Node_OpDebug.9.2.1700000000000100.output.0.json").read_text()
    assert text.startswith('{\n    "magic": "0x5a5a5a5a",\n    "version": 0,\n    "acc_list": {\n        "valid": 1,')
    assert text.endswith("}")
    assert json.loads(text)["acc_list"]["data"]["task_id"] == 3
    old = json.loads((out / "Opdebug.Node_OpDebug.9.2.1700000000000200.output.0.json").read_text())
    assert list(old) == ["DHA Atomic Add", "L2 Atomic Add", "AI Core"]
    assert list(old["AI Core"])[-3:] == ["kernel_code", "block_idx", "status"]
    assert old["DHA Atomic Add"]["status"] == 0x900
    assert not list(out.glob("Opdebug*.npy"))


def test_a_single_opdebug_file_is_converted(tree, tmp_path):
    path = tree / "model" / "1" / "Opdebug.Node_OpDebug.9.2.1700000000000100"
    assert run(["convert", "-d", str(path), "-out", str(tmp_path / "out")]) == 0
    assert [file.name for file in (tmp_path / "out").iterdir()] == [f"{path.name}.output.0.json"]


def test_reports_are_in_the_order_of_time_wherever_they_lie(tree, tmp_path):
    for place, time in (("z", 90), ("a/b", 400), ("model/1", 150), ("a", 95)):
        (folder := tree / place).mkdir(parents=True, exist_ok=True)
        (folder / f"Opdebug.Node_OpDebug.9.2.1700000000000{time:03}").write_bytes(
            bin_bytes([], [item(old_layout(task=99, stream=9, ai_core=32), dtype="uint8", shape=(2048,))])
        )
    (tree / "Opdebug.Node_OpDebug.txt").write_bytes(b"no report")
    (tree / "opdebug.Node_OpDebug.9.2.1700000000000001").write_bytes(b"case matters")  # [spec ge 3.8]
    out = tmp_path / "out"
    assert run(["overflow", "-d", str(tree), "-out", str(out), "-n", "5"]) == 0
    (summary,) = out.glob("overflow_summary_*.txt")
    stamps = [line for line in summary.read_text().splitlines() if "timestamp" in line]
    assert stamps == [f" [timestamp:1700000000000{time}]" for time in ("090", "095", "100", "150", "200")]


def with_ids(context, thread):
    """A report of the new layout whose operator ran in a context and a thread."""
    words = (1, 2, 3, 0, context, thread, 0, 0, 0, 0, 32)
    head = struct.pack("<6I", 0x5A5A5A5A, 0, 1, 1, 0, 88)
    return (head + struct.pack("<11Q", *words)).ljust(2048, b"\0")


def test_the_file_of_a_task_is_that_of_its_context_and_thread(tmp_path):
    place = tmp_path / "dump" / "a"
    place.mkdir(parents=True)
    x = np.array([1, 2], np.float16)
    for name in ("Add.first.3.2.1700000000000001.1.5.6", "Add.second.3.2.1700000000000002.1.5.7",
                 "Add.third.3.2.1700000000000003.1.4.7", "Add.fourth.3.2.1700000000000004"):  # fmt: skip
        (place / name).write_bytes(bin_bytes([item(x)], op_name=name.split(".")[1]))
    (tmp_path / "dump" / "0").mkdir()
    report = tmp_path / "dump" / "0" / "Opdebug.Node_OpDebug.9.2.1700000000000100"
    for number, (context, thread, found) in enumerate(
        ((5, 6, "first"), (5, 7, "second"), (4, 7, "third"), (5, 65535, "first"), (65535, 7, "second"),
         (65535, 65535, "first"), (4, 65535, "third"), (9, 65535, None), (65535, 9, None))
    ):  # fmt: skip
        report.write_bytes(bin_bytes([], [item(with_ids(context, thread), dtype="uint8", shape=(2048,))]))
        out = tmp_path / str(number)
        assert run(["overflow", "-d", str(tmp_path / "dump"), "-out", str(out)]) == 0
        (summary,) = out.glob("overflow_summary_*.txt")
        head = summary.read_text().splitlines()[1]
        assert head == (f"[Add] {found}" if found else " [AIV][TaskId:3][StreamId:2][Status:32]"), (context, thread)


def test_an_unknown_unit_is_code_thirty_five(tmp_path):
    path = tmp_path / "Opdebug.Node_OpDebug.9.2.1700000000000100"
    path.write_bytes(
        bin_bytes([], [item(new_layout(task=1, stream=1, status=1, unit=9), dtype="uint8", shape=(2048,))])
    )
    assert run(["convert", "-d", str(path), "-out", str(tmp_path / "out")]) == 35


def test_nothing_found_is_no_failure(tmp_path, capsys):
    (tmp_path / "dump").mkdir()
    assert run(["overflow", "-d", str(tmp_path / "dump"), "-out", str(tmp_path / "out")]) == 0
    assert "[Overflow] Find [0] overflow node!" in capsys.readouterr().err


def report(path, raw):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bin_bytes([], [item(raw, dtype="uint8", shape=(2048,))]))
    return path


def test_a_report_without_a_status_has_its_time_alone(tmp_path):
    report(tmp_path / "dump" / "Opdebug.Node_OpDebug.9.2.1700000000000100", old_layout(task=3, stream=2))
    assert run(["overflow", "-d", str(tmp_path / "dump"), "-out", str(tmp_path / "out")]) == 0
    (summary,) = (tmp_path / "out").glob("overflow_summary_*.txt")
    assert summary.read_text().splitlines()[1:] == [" [timestamp:1700000000000100]"]


@pytest.mark.parametrize("valid", [0, 1, 2])
def test_a_record_that_is_not_marked_as_valid_is_told_and_converted(tmp_path, capsys, valid):
    raw = bytearray(new_layout(task=3, stream=2, status=32))
    struct.pack_into("<I", raw, 8, valid)
    path = report(tmp_path / "Opdebug.Node_OpDebug.9.2.1700000000000100", bytes(raw))
    assert run(["convert", "-d", str(path), "-out", str(tmp_path / "out")]) == 0
    said = f"The data of output:0 in \"'{path}'\" are marked as not valid."
    assert (said in capsys.readouterr().err) is (valid != 1)
    facts = json.loads((tmp_path / "out" / f"{path.name}.output.0.json").read_text())
    assert facts["acc_list"]["valid"] == valid
