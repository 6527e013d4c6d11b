"""File names: written, read back, cut to what a file system takes."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.archive.naming import MAX_NAME, NameRule, escape, parse_npy
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
    for fits in ("x" * (MAX_NAME - 4) + ".npy", "é" * 125 + "x.npy"):
        assert rule.short_name(fits) is None
    long = "é" * 126 + ".npy"
    assert rule.short_name(long) == f"{string_hash(long.encode()) % 2**31}.npy"


def test_what_stands_for_a_random_number_is_the_same_in_every_run_and_differs_by_place():
    rule = NameRule(over_long="random")
    long = "x" * 300 + ".npy"
    assert rule.short_name(long, salt="a") == rule.short_name(long, salt="a") != rule.short_name(long, salt="b")
