"""All lines of msaccucmp's log, command by command, and the tables of its exit codes and options."""

import io
import os
import re

import numpy as np
import pytest
from binfile import bin_bytes, item

from dumpsim.analysis.msaccucmp.arguments import parser
from dumpsim.analysis.msaccucmp.command import run
from dumpsim.analysis.msaccucmp.journal import Journal
from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.codecs.opdebug import Block, OpDebug, encode

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ADD, SUB = "Add.a.1.2.1700000000000000", "Sub.b.1.2.1700000000000001"
DONE = "[INFO] The command was completed and took 0 seconds."


def put(folder, name, inputs, outputs=(), **more):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(bin_bytes(inputs, outputs, **more))
    return folder / name


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Run a command; returns its code and its lines without time, process and the path of this test."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    monkeypatch.chdir(tmp_path)

    def ran(*arguments):
        stream = io.StringIO()
        code = run([str(one) for one in arguments], journal=Journal(stream, lambda: 7.0))
        lines = []
        for line in stream.getvalue().splitlines():
            head, dash, text = line.partition(" - ")
            if dash:  # [spec ge 4]: YYYY-MM-DD HH:MM:SS (pid) - [LEVEL] text
                assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d \({os.getpid()}\)", head)
            lines.append((text if dash else line).replace(f"{tmp_path}/", ""))
        return code, lines

    return ran


def parsed(path, out, *labels):
    """Two lines a tensor, buffer or workspace."""
    for label, file in labels:
        yield f"[INFO] Start to parse the data of {label} in \"'{path}'\"."
        yield f"[INFO] The data of {label} has been parsed into \"'{out}/{path.rpartition('/')[2]}.{file}'\"."


def test_parsing_tells_of_each_part(log, tmp_path):
    path = put(tmp_path / "d", ADD, [item(X)], [item(X), item(X)], buffers=[b"abc"], spaces=[b"x", b""])
    parts = [
        ("input:0", "input.0.npy"), ("output:0", "output.0.npy"), ("output:1", "output.1.npy"),
        ("l1buffer:0", "l1buffer.0.bin"), ("space:0", "space.0.bin"), ("space:1", "space.1.bin"),
    ]  # fmt: skip
    assert log("convert", "-d", path, "-out", "o") == (0, [*parsed(f"d/{ADD}", "o", *parts), DONE])
    path = put(tmp_path / "d", SUB, [])
    assert log("convert", "-d", path, "-out", "o") == (0, [
        *(f"[WARNING] There is no {what} in \"'d/{SUB}'\"."
          for what in ("input", "output", "buffer data", "space data")),
        DONE,
    ])  # fmt: skip
    assert log("convert", "-d", path, "-out", "o", "-v", "1")[0] == 0
    assert log("convert", "-d", f"{path},{tmp_path}/none", "-out", "o")[1][0] == (
        "[ERROR] The path \"'none'\" does not exist."
    )


def test_converting_tells_of_each_tensor(log, tmp_path):
    block = np.zeros((1, 1, 2, 3, 16), np.float16)
    path = put(tmp_path / "d", ADD, [item(X)], [item(block, format="NC1HWC0", original_shape=(1, 5, 2, 3))])
    assert log("convert", "-d", path, "-out", "o", "-f", "NCHW") == (22, [
        '[INFO] The target format is "NCHW".',
        f"[INFO] Start to transfer format for the dump file \"'d/{ADD}'\".",
        "[INFO] Before transferring the format, the data of input:0 is ND(2, 3).",
        "[WARNING] Not supported from ND to NCHW.",
        f"[ERROR] Failed to convert format for input:0 of \"'d/{ADD}'\"",
        "[INFO] Before transferring the format, the data of output:0 is NC1HWC0(1, 1, 2, 3, 16).",
        "[INFO] After transferring the format, the data of output:0 is NCHW(1, 5, 2, 3).",
        f"[INFO] The data of output:0 has been saved to \"'o/{ADD}.output.0.1x5x2x3.npy'\".",
        f'[ERROR] Failed to convert format for "d/{ADD}".',
        DONE,
    ])  # fmt: skip
    assert log("convert", "-d", path, "-out", "o", "-f", "NC1HWC0", "-o", "0")[1][-2] == (
        f"[INFO] The data of output:0 has been saved to \"'o/{ADD}.output.0.1x1x2x3x16.npy'\"."
    )


@pytest.mark.parametrize("target", [None, "ND"])
def test_a_directory_tells_of_its_files_in_order_and_how_far_it_is(log, tmp_path, target):
    put(tmp_path / "d", SUB, [], [item(b"ab", dtype="int4", shape=(4,))])
    put(tmp_path / "d", ADD, [item(X)], [item(X)], buffers=[b"a"], spaces=[b"b"])
    flags, verb = ((), "parse dump file") if target is None else (("-f", target), "convert format for")
    code, lines = log("convert", "-d", "d", "-out", "o", *flags)
    bar = [f"[INFO] [ {'>' * 25:<50} 50%]", f"[INFO] [ {'>' * 50:<50} 100%]"]
    assert code == 21
    if target is None:
        labels = [("input:0", "input.0.npy"), ("output:0", "output.0.npy"), ("l1buffer:0", "l1buffer.0.bin"),
                  ("space:0", "space.0.bin")]  # fmt: skip
        begin, middle = [*parsed(f"d/{ADD}", "o", *labels)], []
    else:
        begin = [
            "[WARNING] The dump path is a directory. If the -o, -i and -s arguments exist, these arguments will be "
            "ignored.",
            '[INFO] The target format is "ND".',
            f"[INFO] Start to transfer format for the dump file \"'d/{ADD}'\".",
        ]
        for label in ("input", "output"):
            begin += [f"[INFO] Before transferring the format, the data of {label}:0 is ND(2, 3).",
                      f"[INFO] The data of {label}:0 has been saved to \"'o/{ADD}.{label}.0.2x3.npy'\"."]  # fmt: skip
        middle = [f"[INFO] Start to transfer format for the dump file \"'d/{SUB}'\"."]
    assert lines == [
        *begin, bar[0], *middle, "[ERROR] The output data type (28) does not support.",
        f'[ERROR] Failed to {verb} "d/{SUB}".', bar[1],
        "[INFO] The list of files that failed to be converted has been written to "
        "\"'o/convert_failed_file_list.txt'\".",
        DONE,
    ]  # fmt: skip


@pytest.mark.parametrize(("count", "shown"), [(1, [100]), (4, [25, 50, 75, 100]), (40, [*range(5, 101, 5)])])
def test_a_bar_moves_by_five_parts_in_a_hundred(log, tmp_path, count, shown):
    for number in range(count):
        put(tmp_path / "d", f"Add.a{number}.1.2.1700000000000000", [])
    code, lines = log("convert", "-d", "d", "-out", "o")
    assert code == 0
    assert [line for line in lines if line.startswith("[INFO] [ ")] == [
        f"[INFO] [ {'>' * (percent // 2):<50} {percent}%]" for percent in shown
    ]


def test_a_comparison_tells_of_each_operator_and_repeats_its_table(log, tmp_path):
    own, golden = tmp_path / "own", tmp_path / "golden"
    put(own, ADD, [item(X)], [item(X)])
    put(golden, ADD, [item(X)], [item(X + 1)])
    put(own, "Mul.only.1.2.1700000000000002", [item(X)])
    put(golden, "Sub.gone.1.2.1700000000000002", [item(X)])
    put(own, "Mul.few.1.2.1700000000000003", [item(X)], [item(X)])
    put(golden, "Mul.few.1.2.1700000000000003", [item(X), item(X)], [item(X.T)])
    few = ("[few] The number of input does not match (1 vs 2).",
           "[few] The shape does not match ((2, 3) vs (3, 2)) for few:output:0.")  # fmt: skip
    only = '[only] There is no the ground truth dump file for the op "only".'
    gone = '[gone] There is no the my output dump file for the op "gone".'
    code, lines = log("compare", "-m", "own", "-g", "golden", "-out", "o", "-alg", "1,Foo")
    assert code == 2
    (result,) = (tmp_path / "o").iterdir()
    assert lines == [
        "[WARNING] The 'Foo' does not supported in builtin or custom. Please check the algorithm name or algorithm "
        "index.",
        f"[INFO] [a] [Left] own/{ADD}", f"[INFO] [a] [Right] golden/{ADD}",
        "[INFO] [a] compare ND (2, 3) for a:input:0.", "[INFO] [a] compare ND (2, 3) for a:output:0.",
        f"[WARNING] {only}",
        "[INFO] [few] [Left] own/Mul.few.1.2.1700000000000003",
        "[INFO] [few] [Right] golden/Mul.few.1.2.1700000000000003",
        f"[WARNING] {few[0]}", f"[ERROR] {few[1]}", f"[WARNING] {gone}",
        "[INFO] [a] Result: 0 Add a float32 4096 a float32 4096 a:input:0 [2,3] 0.000000 ",
        "[INFO] [a] Result: 0 Add a float32 4096 a float32 4096 a:output:0 [2,3] 1.000000 ",
        f"[INFO] [only] Result: 1 NaN only NaN NaN * NaN NaN NaN NaN NaN {only}",
        f"[INFO] [few] Result: 2 NaN few NaN NaN few NaN NaN NaN NaN NaN {','.join(few)}",
        f"[INFO] [gone] Result: 3 NaN * NaN NaN gone NaN NaN NaN NaN NaN {gone}",
        f"[INFO] The comparison result have been written to \"'o/{result.name}'\".",
        DONE,
    ]  # fmt: skip


def test_an_overflow_is_told_of(log, tmp_path):
    h = np.array([65504, -65504, 1], np.float16)
    put(tmp_path / "own", ADD, [item(h)], [item(h / np.float16(2))])
    put(tmp_path / "golden", ADD, [item(h)], [item(h)])
    code, lines = log("compare", "-m", "own", "-g", "golden", "-out", "o", "-alg", "1", "-overflow_detection")
    assert (code, [line for line in lines if "overflow" in line]) == (0, ["[WARNING] a operator input:0 is overflow."])
    assert [line.split()[13] for line in lines if "Result:" in line] == ["YES", "NO"]


def test_two_files_are_told_with_their_measures(log, tmp_path):
    for name, array in (("x", X), ("y", X * 0), ("e", X[:0])):
        np.save(tmp_path / f"{name}.npy", array)
    names = ("CosineSimilarity", "MaxAbsoluteError", "AccumulatedRelativeError", "RelativeEuclideanDistance",
             "MeanAbsoluteError", "RootMeanSquareError", "MaxRelativeError", "MeanRelativeError")  # fmt: skip
    root = f"{np.sqrt((X**2).mean()):.6f}"
    values = ("NaN", "5.000000", "0.000000", "0.000000", "2.500000", root, "0.000000", "0.000000")
    code, lines = log("file_compare", "-m", "x.npy", "-g", "y.npy", "-out", "o")
    (result,) = (tmp_path / "o").iterdir()
    assert (code, lines) == (0, [
        "[INFO] The my output dump file is 'x.npy'.", "[INFO] The ground truth file is 'y.npy'.",
        "[INFO] " + "".join(f"{name} " for name in names),
        "[INFO] " + "".join(f"{value:<{len(name)}} " for name, value in zip(names, values, strict=True)),
        "[INFO] ['Cannot compare by Cosine Similarity. All the data is zero in y.npy.']",
        f"[INFO] The file compare result have been written to \"'o/{result.name}'\".", DONE,
    ])  # fmt: skip
    assert result.read_text() == "".join(f"{name}: {value}\n" for name, value in zip(names, values, strict=True))
    code, lines = log("file_compare", "-m", "e.npy", "-g", "e.npy", "-out", "p")
    assert (code, lines[2:4]) == (0, ["[WARNING] The dump data size is 0 in 'e.npy'."] * 2)


def test_no_overflow_is_a_warning(log, tmp_path):
    put(tmp_path / "d", ADD, [item(X)])
    assert log("overflow", "-d", "d", "-out", "o") == (0, ["[WARNING] [Overflow] Find [0] overflow node!", DONE])


def test_the_administrator_is_warned(log, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    assert log("convert", "-d", "none")[1] == [
        "[WARNING] Running as root; an ordinary user is enough and safer.",
        "[ERROR] The path \"'none'\" does not exist.",
        DONE,
    ]


def test_time_is_counted_from_the_start():
    moments = iter([100.0, *[107.9] * 9])
    stream = io.StringIO()
    run(["convert", "-d", "/nonexistent"], journal=Journal(stream, lambda: next(moments)))
    assert stream.getvalue().endswith("[INFO] The command was completed and took 7 seconds.\n")


# [spec ge 4.4]
CODES = (
    "OK UNKNOWN NO_DUMP_FILE INVALID_PATH PARSE_DUMP_FILE MALLOC INVALID_PARAM OPEN_FILE CLOSE_FILE OPEN_DIR "
    "CLOSE_DIR INVALID_DUMP_DATA INDEX_OUT_OF_BOUNDS PARSE_JSON MEMSET LEFT_ZERO RIGHT_ZERO MATCH_MORE_FILES "
    "DUMP_FILE WRITE_FILE INVALID_DUMP_TYPE INVALID_DATA_TYPE INVALID_FORMAT INVALID_SHAPE INVALID_TYPE "
    "INVALID_TARGET INVALID_CONVERT_FUNCTION SHAPE_CONVERT INVALID_GOLDEN_ENVIRONMENT INVALID_JSON_FILE "
    "UNSUPPORTED_COMPARE INVALID_ALGORITHM DELETE_FILE INVALID_FILE INVALID_FRACTAL_NZ INVALID_OVERFLOW_TYPE "
    "INVALID_OVERFLOW_STATUS INVALID_TASK_TYPE MISSING_FILE SIZE_MISMATCH SHAPE_MISMATCH SLICE_DATA INPUT_MAPPING "
    "FILE_TOO_LARGE SYMLINK FILE_EXISTS DANGEROUS_FILE PARSE_NANO INVALID_NAME"
)


def test_exit_codes_are_numbered_from_0_to_48():
    errors = [ToolError(one, one.name.lower()) for one in Status]
    assert {str(error).upper(): int(error.status) for error in errors} == {
        name: code for code, name in enumerate(CODES.split())
    }


NEEDED = [
    ("convert", ["-d", "x"]),
    ("overflow", ["-d", "x", "-out", "o"]),
    ("file_compare", ["-m", "x", "-g", "y", "-out", "o"]),
    ("compare", ["-m", "x", "-g", "y"]),
]


@pytest.mark.parametrize(("command", "words"), NEEDED)
def test_what_a_command_needs(command, words, capsys):
    parser().parse_args([command, *words])
    for at in range(0, len(words), 2):
        with pytest.raises(SystemExit) as ended:
            parser().parse_args([command, *words[:at], *words[at + 2 :]])
        assert ended.value.code == 2
        assert words[at] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "words", "allowed"),
    [
        ("convert", ["-t", "npy", "-t", "bin", "-t", "msnpy", "-t", "pt", "-v", "1", "-v", "2"], True),
        *(("overflow", ["-n", str(top)], 1 <= top <= 5) for top in range(7)),
        *(("convert", ["-v", str(kind)], kind in (1, 2)) for kind in range(4)),
        *(("compare", ["-v", str(kind)], kind in (1, 2)) for kind in range(4)),
        *(("compare", ["-p", str(kind)], kind in (0, 1)) for kind in range(3)),
        ("compare", ["-o", "1", "-i", "1"], False), ("convert", ["-o", "1", "-i", "1"], False),
    ],
)  # fmt: skip
def test_which_values_a_command_takes(command, words, allowed, capsys):
    given = [command, *dict(NEEDED)[command], *words]
    if allowed:
        parser().parse_args(given)
    else:
        with pytest.raises(SystemExit):
            parser().parse_args(given)


def test_options_that_are_not_given_have_the_tools_defaults():
    found = {command: vars(parser().parse_args([command, *words])) for command, words in NEEDED}
    assert {name: value for name, value in found["compare"].items() if value not in (None, "", False, 0)} == {
        "cmd": "compare", "my_dump_path": "x", "golden_dump_path": "y", "algorithm": "all",
    }  # fmt: skip
    assert {name: value for name, value in found["convert"].items() if value is not None} == {
        "cmd": "convert", "dump_path": "x", "type": "npy",
    }  # fmt: skip
    assert found["overflow"] == {"cmd": "overflow", "dump_path": "x", "output_path": "o", "top_n": 1}
    assert found["file_compare"] == {
        "cmd": "file_compare", "my_dump_path": "x", "golden_dump_path": "y", "output_path": "o"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["-q", "x"], "-q"), (["-cf", "x"], "-cf"), (["-p", "1"], "-p 1"), (["-max", "5"], "-max"),
        (["-advisor"], "-advisor"), (["-op", "x"], "-op"), (["-o", "1"], "-o"), (["-i", "1"], "-i"),
        (["--ignore_single_op_result"], "--ignore_single_op_result"), (["-n", "3"], "-n"), (["-ml", "3"], "-ml"),
        (["-ffts"], "-ffts"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_refused_by_its_name(log, words, flag):
    assert log("compare", "-m", "x", "-g", "y", "-out", "o", *words) == (30, [
        f"[ERROR] dumpsim does not support {flag} of compare.", DONE
    ])  # fmt: skip


def test_a_layout_of_other_dimensions_is_told_before_it_is_taken_as_nd(log, tmp_path):
    path = put(tmp_path / "d", ADD, [item(X, format="NCHW")])
    assert log("convert", "-d", path, "-out", "o", "-f", "ND") == (0, [
        '[INFO] The target format is "ND".',
        f"[INFO] Start to transfer format for the dump file \"'d/{ADD}'\".",
        "[WARNING] The format(NCHW) of the dump data is 4 dimensions, but the shape (2, 3) does not have them: input:0 "
        "is taken as ND.",
        "[INFO] Before transferring the format, the data of input:0 is ND(2, 3).",
        f"[INFO] The data of input:0 has been saved to \"'o/{ADD}.input.0.2x3.npy'\".",
        DONE,
    ])  # fmt: skip


def test_overflows_are_counted_and_the_directory_of_results_is_made(log, tmp_path):
    report = OpDebug(ai_core=Block(task_id=7, stream_id=2, status=0))
    for number in range(3):
        raw = item(encode(report), dtype="uint8", shape=(2048,))
        put(tmp_path / "d", f"Opdebug.Node_OpDebug.9.2.170000000000000{number}", [], [raw])
    code, lines = log("overflow", "-d", "d", "-out", "deep/o", "-n", "2")
    assert (code, lines[0]) == (0, "[INFO] [Overflow] Find [3] overflow ops. Will show the top 2.")
    assert "[INFO] [Overflow] The overflow analyse result:" in lines
    (tmp_path / "empty").mkdir()
    assert log("overflow", "-d", "empty", "-out", "other/o")[0] == 0
    assert (tmp_path / "other" / "o").is_dir()
    (tmp_path / "file").touch()
    assert log("overflow", "-d", "empty", "-out", "file")[0] == 3
