"""Statistics of one operator: the documents' header and number texts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs import opcsv
from dumpsim.codecs.protonumber import dtype_number, format_number
from dumpsim.core.errors import BadInputError, UnreadableError

HEADER = (
    "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count,"
    "Negative Inf Count,Positive Inf Count\n"
)


def row(**change):
    known = {"io": "output", "slot": 1, "nbytes": 24, "dtype": "float32", "format": "NC1HWC0", "shape": (2, 3)}
    return opcsv.Row(**known | change)


def test_the_lines_of_the_documents():
    assert opcsv.header() == HEADER
    values = {"max": 1234567.0, "min": -math.inf, "avg": math.nan, "count": 6, "nan": 1, "negative_inf": 2}
    values["positive_inf"] = 0
    line = opcsv.line(row(values=tuple(values.items())), dtype=1, format=3)
    assert line == "Output,1,24,DT_FLOAT,NC1HWC0,2x3,1.23457e+06,-inf,nan,6,1,2,0\n"
    assert opcsv.line(row(shape=(), io="input"), dtype=27, format=200) == "Input,1,24,-,-,-,,,,,,,\n"


def test_texts_of_types_end_at_the_last_that_the_writer_knows():
    texts = [opcsv.dtype_text(number) for number in (-1, 0, 1, 25, 26, 27, 42, 99)]
    assert texts == ["-", "DT_UNDEFINED", "DT_FLOAT", "DT_DUAL", "-", "-", "-", "-"]
    assert [opcsv.format_text(number) for number in (0, 29, 49, 50, 255)] == [
        "NCHW",
        "FRACTAL_NZ",
        "C1HWC0",
        "-",
        "MAX",
    ]


def test_what_has_no_text_is_read_as_empty():
    head = HEADER + "Input,0,8,{},{},{},,NA,1,2,,,\n"
    for kind, layout, shape in (("-", "-", "-"), ("DT_FLOAT", "UNKNOW", "2x3"), ("DT_DUAL", "ND", "0")):
        (found,) = opcsv.parse(head.format(kind, layout, shape))
        assert found.dtype == {"-": "", "DT_FLOAT": "float32", "DT_DUAL": "dual"}[kind]
        assert found.format == ("ND" if layout == "ND" else "")
        assert found.shape == {"-": (), "2x3": (2, 3), "0": (0,)}[shape]
        assert dict(found.values) == {"max": None, "min": None, "avg": 1.0, "count": 2, "nan": None,
                                      "negative_inf": None, "positive_inf": None}  # fmt: skip


def test_chosen_items_come_in_their_own_order():
    assert opcsv.header(["l2norm", "nan", "max"]) == HEADER.split("Max")[0] + "Count,Max Value,Nan Count,l2norm\n"
    line = opcsv.line(row(values=(("count", 6),)), dtype=2, format=2, chosen=["max"], failed="NA")
    assert line == "Output,1,24,DT_FLOAT16,ND,2x3,6,NA\n"
    with pytest.raises(BadInputError, match="l2norm"):
        opcsv.header(["median"])


cells = st.none() | st.integers(0, 2**40)
rows = st.builds(
    opcsv.Row, io=st.sampled_from(["input", "output"]), slot=st.integers(0, 99), nbytes=st.integers(0, 2**40),
    dtype=st.sampled_from(["float32", "float16", "float64", "int8", "uint64", "bool"]),
    format=st.sampled_from(["ND", "FRACTAL_NZ", "NC1HWC0"]), shape=st.lists(st.integers(0, 99), max_size=4).map(tuple),
    values=st.tuples(*(cells if name in ("count", "nan", "negative_inf", "positive_inf")
                       else st.none() | st.floats(width=16, allow_nan=False) for name in opcsv.ALL)
                     ).map(lambda found: tuple(zip(opcsv.ALL, found, strict=True))),
)  # fmt: skip


@given(st.lists(rows, max_size=4))
def test_rows_are_read_back(written):
    """Numbers to the six digits that are printed; half floats have fewer."""
    text = opcsv.header()
    for entry in written:
        text += opcsv.line(entry, dtype=dtype_number(entry.dtype), format=format_number(entry.format))
    read = list(opcsv.parse(text))
    assert len(read) == len(written)
    for ours, back in zip(written, read, strict=True):
        assert (back.io, back.slot, back.nbytes, back.dtype) == (ours.io, ours.slot, ours.nbytes, ours.dtype)
        assert (back.format, back.shape) == (ours.format, ours.shape)
        for (name, value), (known, found) in zip(ours.values, back.values, strict=True):
            assert name == known
            assert (value is None) == (found is None)
            assert value is None or found == pytest.approx(value, rel=1e-5)


GOOD = "Input,0,8,DT_FLOAT,ND,2,1,1,1,1,1,1,1\n"
BAD = {
    "nothing": ("", 1),
    "another header": ("a,b\n", 1),
    "few fields": (HEADER + "Input,0\n", 2),
    "neither input nor output": (HEADER + GOOD.replace("Input", "Both"), 2),
    "slot": (HEADER + GOOD + GOOD.replace("Input,0", "Input,x"), 3),
    "shape": (HEADER + GOOD.replace(",2,", ",2x,"), 2),
    "count": (HEADER + GOOD.replace("1,1,1\n", "1.5,1,1\n"), 2),
    "field without end": (HEADER + '"' + "x" * 200_000 + '"\n', 2),
}


@pytest.mark.parametrize("name", BAD)
def test_rows_that_are_none(name):
    text, line = BAD[name]
    assert len(list(opcsv.parse(HEADER + GOOD))) == 1
    with pytest.raises(UnreadableError, match=f"f:{line}: "):
        list(opcsv.parse(text, "f"))
