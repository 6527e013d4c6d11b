"""File names: written, read back, cut to what a file system takes."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.archive.longname import MAX_NAME, bin_number, fits, stored_name
from dumpsim.archive.naming import (
    BinName,
    NameRule,
    calendar,
    escape,
    exception_info_name,
    exception_name,
    is_dump_file,
    parse_bin,
    parse_npy,
    parse_tensordump,
)
from dumpsim.codecs.mapping import string_hash
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import UnreadableError
from dumpsim.core.record import Record

REFERENCE = Path(__file__).parents[2] / "fixtures/real/mindspore_cpu"

scopes = st.lists(
    st.text(st.characters(categories=("L", "N"), include_characters="-_:."), min_size=1, max_size=9),
    min_size=1,
    max_size=4,
)
found = st.builds(
    Record,
    op_type=st.text(st.characters(categories=("L", "N"), include_characters="_"), min_size=1, max_size=9),
    op_name=scopes.map("/".join),
    io=st.sampled_from(["input", "output"]),
    slot=st.integers(0, 99),
    dtype=st.sampled_from(sorted(DTYPES)),
    shape=st.just(()),
    timestamp=st.integers(10**15, 10**16 - 1),
    format=st.sampled_from(["DefaultFormat", "NC1HWC0", "FRACTAL_Z", "NC1HWC0_C04"]),
    task_id=st.integers(0, 65535),
    stream_id=st.integers(0, 1023),
)


@given(found, st.sampled_from(["lower", "title", "none"]))
def test_write_then_read_gives_the_record_back(record, style):
    name = NameRule(dtype_in_name=style).npy(record)
    expected = replace(record, op_name=escape(record.op_name), dtype="" if style == "none" else record.dtype)
    assert parse_npy(name) == expected


def test_short_names_are_the_last_part_of_the_scope():
    record = Record(
        op_type="Conv2D", op_name="Default/conv1-Conv2d/Conv2D-op12", io="output", slot=0, dtype="float16", shape=(),
        timestamp=1623124369613540,
    )  # fmt: skip
    name = NameRule(op_name="short").npy(record)
    assert name == "Conv2D.Conv2D-op12.0.0.1623124369613540.output.0.DefaultFormat.float16.npy"
    assert parse_npy(name).op_name == "Conv2D-op12"


@pytest.mark.parametrize(
    "name",
    ["", "x.npy", "statistic.csv", "a.b.0.0.1.input.0.npy", "a.b.0.0.x.input.0.ND.npy", "a.b.0.0.1.inout.0.ND.npy",
     "a.b.0.0.1.input.0.ND.float32.npz", "a.b.0.0.1.input.0.Float32.npy", "1045390066.npy"],
)  # fmt: skip
def test_other_names_are_refused(name):
    with pytest.raises(UnreadableError):
        parse_npy(name)


def test_the_limit_counts_bytes():
    rule = NameRule()
    for short in ("x" * (MAX_NAME - 4) + ".npy", "é" * 125 + "x.npy"):
        assert stored_name(short, rule.number("")) == (short, "")
    long = "é" * 126 + ".npy"
    short = f"{string_hash(long.encode()) % 2**31}.npy"
    assert stored_name(long, rule.number("")) == (short, f"{short},{long}\n")


def test_what_stands_for_a_random_number_is_the_same_in_every_run_and_differs_by_place():
    rule = NameRule(over_long="random")
    long = "x" * 300 + ".npy"
    assert rule.number("a")(long) == rule.number("a")(long) != rule.number("b")(long)
    assert NameRule(over_long="hash").number("a")(long) == NameRule(over_long="hash").number("b")(long)


# -- bin files

SCRIPT_NAMES = st.text(st.characters(categories=("L", "N"), include_characters="-_:/. \\"), min_size=1, max_size=20)
STAMP = 1700000000123456


@given(
    st.builds(
        BinName,
        op_type=SCRIPT_NAMES,
        op_name=SCRIPT_NAMES,
        task_id=st.integers(0, 65535),
        stream_id=st.integers(0, 65535),
        timestamp=st.integers(10**15, 10**16 - 1),
        part=st.sampled_from([(), (3, 65535, 0)]),
    )
)
def test_bin_names_are_read_back(name):
    read = parse_bin(str(name))
    assert str(read) == str(name)
    assert read == replace(name, op_type=escape(name.op_type), op_name=escape(name.op_name))


def test_all_forms_of_bin_names():
    known = {"op_type": "Conv2D", "op_name": "a_b", "task_id": 3, "timestamp": STAMP}
    assert parse_bin(f"Conv2D.a_b.3.5.{STAMP}") == BinName(**known, stream_id=5)
    assert parse_bin(f"Conv2D.a_b.3.{STAMP}") == BinName(**known, stream_id=None)
    assert parse_bin(f"Conv2D.a_b.3.5.{STAMP}.4.7.65535.0") == BinName(**known, stream_id=5, part=(7, 65535, 0))
    documents = "Conv2D.Default_network-WithLossCell__backbone-AlexNet_conv3-Conv2d_Conv2D-op12.2.7.161243956333802"
    assert (parse_bin(documents).stream_id, parse_bin(documents).timestamp) == (7, 161243956333802)
    assert parse_bin(f"Opdebug.Node_OpDebug.1.2.{STAMP}").opdebug
    assert not parse_bin(f"OpDebug.Node_Opdebug.1.2.{STAMP}").opdebug  # a misprint of the documents


def test_exception_names_carry_a_calendar_time():
    from datetime import UTC, datetime

    text = datetime.fromtimestamp(STAMP / 10**6, UTC).strftime("%Y%m%d%H%M%S") + "123"
    assert calendar(STAMP) == text
    read = parse_bin(exception_name("Add", "Default/Add.1", 3, STAMP))
    assert (read.op_type, read.op_name, read.task_id, read.stream_id) == ("Add", "Default_Add_1", 3, None)
    assert (read.timestamp, read.time) == (STAMP // 1000 * 1000, text)
    name = exception_info_name(2, 3, STAMP)
    assert name == f"exception_info.2.3.{text}"
    assert str(parse_bin(name)) == name
    assert (parse_bin(name).stream_id, parse_bin(name).task_id) == (2, 3)
    assert parse_bin("Add.x.3.20239914221320123").timestamp == 20239914221320123  # no such month


@pytest.mark.parametrize("later_us", [0, 5_000_000, 59_999_000, 86_399_001_000])
def test_a_calendar_time_is_read_to_the_millisecond(later_us):
    stamp = STAMP // 1000 * 1000 + later_us
    read = parse_bin(exception_info_name(2, 3, stamp))
    assert read.timestamp == stamp
    assert read.time == calendar(stamp)


def test_over_long_bin_names_are_numbers_without_a_suffix():
    assert stored_name("x" * MAX_NAME, bin_number) == ("x" * MAX_NAME, "")
    long = "Add." + "x" * 250 + ".3.5.1700000000000000"
    short = str(string_hash(long.encode()))
    assert stored_name(long, bin_number) == (short, f"{short},{long}\n")


def test_npy_names_of_o2():
    name = BinName(op_type="Conv2D", op_name="Default/x", task_id=3, stream_id=5, timestamp=STAMP, part=(7, 65535, 0))
    assert str(name) == f"Conv2D.Default_x.3.5.{STAMP}.4.7.65535.0"
    read = parse_npy(f"{name}.output.1.NC1HWC0.BFloat16.npy")
    assert (read.op_type, read.op_name, read.task_id, read.stream_id) == ("Conv2D", "Default_x", 3, 5)
    assert (read.timestamp, read.io, read.slot, read.dtype) == (STAMP, "output", 1, "bfloat16")
    assert parse_npy(f"{name}.input.0.ND.float16.npy").dtype == "float16"


@pytest.mark.parametrize(
    ("name", "op_name", "io", "dtype", "number"),
    [
        ("dense_float32_0.npy", "dense", "output", "float32", 0),
        ("dense_in_float8_e4m3fn_12.npy", "dense_in", "input", "float8_e4m3fn", 12),
        ("7_my_tensor.npy", "my_tensor", "output", "", 7),
        ("7_x_float31_8.npy", "x_float31_8", "output", "", 7),
    ],
)
def test_tensordump_names(name, op_name, io, dtype, number):
    record, found = parse_tensordump(name)
    assert (record.op_type, record.op_name, record.io, record.dtype, found) == (
        "TensorDump",
        op_name,
        io,
        dtype,
        number,
    )
    assert (record.slot, record.shape, record.timestamp) == (0, (), 0)


def test_names_that_are_no_dump_files():
    for name in ("", "x", "Add.x.3", "a.b.c.d.e", "Add..3.5.1700000000000000", "a/b.c.3.5.1700000000000000",
                 "Add.x.3.5." + "9" * 21, "Add.x.3.5.1700000000000000.5.1.1.1"):  # fmt: skip
        with pytest.raises(UnreadableError):
            parse_bin(name)
    with pytest.raises(UnreadableError):
        parse_tensordump("dense.npy")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("Add.a.0.0.1.output.0.ND.npy", True), ("1045390066.npy", True), ("statistic.csv", True),
        ("mapping.csv", True), ("Add.x.3.5.1700000000000000", True), ("Add.x.3.5.1700000000000000.csv", True),
        ("Add.x.3.20231114221320123", True), ("Opdebug.Node_OpDebug.1.2.3.output.0.json", True),
        ("Opdebug.Node_OpDebug.1.2.3.json.csv", True),
        ("Add.x.3.5.1000000000", True), ("Add.x.3.5.999999999", False),  # seconds since 1970 have ten digits
        ("Opdebug.Node_OpDebug.1.2.3", False), ("OpDebug.Node_OpDebug.1.2.3.output.0.json", False),
        ("acl_dump_0.json", False), ("dumpsim-manifest.json", False), ("other.csv", False),
        ("ms_output_trace_code_graph_0.ir", False), ("libfoo.so.1.2", False),
    ],
)  # fmt: skip
def test_what_belongs_to_a_dump_by_its_name(name, is_one):
    assert is_dump_file(name) is is_one


@pytest.mark.parametrize(("stream", "shown"), [(5, 5), (0, 0), (None, 0)])
def test_the_record_of_a_binary_files_tensor(stream, shown):
    name = BinName(op_type="Add", op_name="a_b", task_id=3, stream_id=stream, timestamp=STAMP)
    assert name.record("input", 2) == Record(
        op_type="Add", op_name="a_b", io="input", slot=2, dtype="", shape=(), timestamp=STAMP, task_id=3,
        stream_id=shown,
    )  # fmt: skip


@pytest.mark.parametrize("letter", ["x", "\u00e9"])
def test_a_head_fits_if_its_longest_name_does(letter):
    """Time stamps have at most the digits of 2**64 - 1, and a file of statistics has a suffix; bytes are counted."""
    for count in range(100, 250):
        name = f"{letter * count}.{2**64 - 1}.csv"
        assert fits(f"{letter * count}.") is (len(name.encode()) <= 255) is (stored_name(name, bin_number)[1] == "")
