"""statistic.csv against the example of the specification, and read back."""

import pytest

from dumpsim.codecs import statcsv
from dumpsim.core.errors import UnreadableError
from dumpsim.core.record import Record

# [spec mindspore appendix B]
EXAMPLE = """Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,L2Norm Value
Add,Default_Add-op0,0,0,1700000000000001,input,0,24,float32,"(2,3)",6,1,9.53939,
Add,Default_Add-op0,0,0,1700000000000002,input,1,24,float32,"(2,3)",12,7,23.6432,
Add,Default_Add-op0,0,0,1700000000000003,output,0,24,float32,"(2,3)",18,8,32.9242,
"""  # noqa: E501


def _record(io, slot, stamp):
    return Record(
        op_type="Add",
        op_name="Default/Add-op0",
        io=io,
        slot=slot,
        dtype="float32",
        shape=(2, 3),
        timestamp=stamp,
        nbytes=24,
    )


def test_rows_are_the_examples():
    rows = [
        ("input", 0, (6.0, 1.0, 91**0.5)),
        ("input", 1, (12.0, 7.0, 559**0.5)),
        ("output", 0, (18.0, 8.0, 1084**0.5)),
    ]
    text = statcsv.header(["max", "min", "l2norm"])
    for n, (io, slot, values) in enumerate(rows, 1):
        record = _record(io, slot, 1700000000000000 + n)
        text += statcsv.row(
            record, "Default_Add-op0", [statcsv.number(v) for v in values], statcsv.Dialect(trailing_field=True)
        )
    assert text == EXAMPLE


ROW = 'Add,x,0,0,17,output,{slot},{size},float32,"({shape})",{nan}\n'
SOUND = {"slot": "0", "size": "8", "shape": "2", "nan": "1"}


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"shape": "-1,3"}, r"dimension -1 is not possible; allowed: 0 to 2\*\*63 - 1"),
        (
            {"shape": f"2,{1 << 48}"},
            r"shape \(2, 281474976710656\) is not possible; allowed: 32",
        ),
        ({"shape": "9" * 5000}, "dimension 9{40} is not possible"),
        ({"shape": ",".join("1" * 33)}, "shape .* is not possible; allowed: 32 dimensions"),
        ({"slot": "-1"}, "slot -1 is not possible"),
        ({"size": str(1 << 63)}, "size 9223372036854775808 is not possible"),
        ({"nan": "9" * 30}, "NaN Count 9+ is not possible"),
    ],
)
def test_numbers_that_no_tensor_has_are_refused_with_their_line(cells, why):
    text = statcsv.header(["nan"]) + ROW.format(**SOUND)
    assert [record.shape for record, _ in statcsv.parse(text)] == [(2,)]
    with pytest.raises(UnreadableError, match=rf"^s\.csv:3: {why}"):
        list(statcsv.parse(text + ROW.format(**SOUND | cells), "s.csv"))


def test_numbers_up_to_the_limits():
    """63 bits, 40 characters, 32 dimensions below 2**48; ids may be negative."""
    largest = (1 << 63) - 1
    text = statcsv.header(["nan"])
    text += (
        f'Add,x,-1,{-largest},{largest},output,{largest},{largest},float32,"({"1," * 31}{(1 << 48) - 1})",{largest}\n'
    )
    text += 'Add,x,-9223372036854775807,7,17,output,0,8,float32,"(0)",' + "0" * 39 + "7\n"
    (first, counts), (second, more) = statcsv.parse(text)
    assert (first.task_id, first.stream_id, first.timestamp, first.slot, first.nbytes) == (
        -1, -largest, largest, largest, largest
    )  # fmt: skip
    assert (first.shape, counts) == ((1,) * 31 + ((1 << 48) - 1,), {"nan": largest})
    assert (second.task_id, second.stream_id, second.shape, more) == (-largest, 7, (0,), {"nan": 7})
    with pytest.raises(ValueError, match=rf"^slot {'0' * 40} is not possible; allowed: 0 to 2\*\*63 - 1$"):
        statcsv.whole("0" * 40 + "7", "slot")
    assert statcsv.whole(str(-largest), "task id", signed=True) == -largest
    for number, signed in ((-1, False), (1 << 63, False), (1 << 63, True), (-(1 << 63) - 1, True)):
        with pytest.raises(ValueError, match="is not possible"):
            statcsv.whole(str(number), "slot", signed=signed)


def test_a_shape_that_is_refused_is_shown_by_its_first_200_characters():
    dims = [10**14 + n for n in range(33)]
    with pytest.raises(ValueError, match="is not possible") as caught:
        statcsv.dimensions(map(str, dims))
    shown = str(tuple(dims))[:200]
    assert str(caught.value) == f"shape {shown} is not possible; allowed: 32 dimensions, each below 2**48"


def test_cells_of_a_row_by_their_columns():
    text = statcsv.header(["max"]) + 'Add,x,1,2,17,output,3,8,float32,"(2)",4,\n'
    (cells,) = statcsv.split_lines(text.splitlines(keepends=True), "s.csv")
    assert cells.key == ("Add", "output", 3, 17)
    assert (cells.extra, cells.where, cells.line) == (["Max Value"], "s.csv", 2)
    assert cells.parsed()[1] == {"max": 4.0}
    for damage in (",17,", ",3,"):
        (cells,) = statcsv.split_lines(text.replace(damage, ",x,").splitlines(keepends=True), "s.csv")
        with pytest.raises(UnreadableError, match=r"^s\.csv:2: invalid literal .* 'x' \[DS-CSV-003\]$"):
            _ = cells.key


@pytest.mark.parametrize("trailing", [True, False])
@pytest.mark.parametrize("brackets", ["()", "[]"])
def test_both_dialects_are_read(trailing, brackets):
    dialect = statcsv.Dialect(brackets=brackets, trailing_field=trailing)
    cells = ["nan", "-inf", "3", "d41d8cd98f00b204e9800998ecf8427e"]
    text = statcsv.header(["max", "min", "zero", "md5"])
    text += statcsv.row(_record("output", 1, 5), "Default/Add-op0", cells, dialect)
    ((record, values),) = statcsv.parse(text)
    assert (record.shape, record.io, record.slot, record.timestamp, record.nbytes) == ((2, 3), "output", 1, 5, 24)
    assert values["max"] != values["max"]
    assert values["min"] == float("-inf")
    assert (values["zero"], values["md5"]) == (3, "d41d8cd98f00b204e9800998ecf8427e")


def test_extrema_of_truths_are_truths():
    text = statcsv.header(["max", "min"]) + 'Add,a,0,0,1,input,0,1,bool,"()",True,False\n'
    ((_, values),) = statcsv.parse(text)
    assert values == {"max": True, "min": False}


def test_scalars_and_missing_cells():
    text = statcsv.header(["avg"]) + 'Add,a,0,0,1,input,0,1,bool,"()",null\n'
    ((record, values),) = statcsv.parse(text)
    assert record.shape == ()
    assert values == {"avg": None}


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n",
        statcsv.header([]) + "Add,a\n",
        statcsv.header([]) + 'Add,a,x,0,1,input,0,1,bool,"()"\n',
        statcsv.header([]) + "Add," + "a" * 200_000 + "\n",
    ],
)
def test_broken_rows_name_their_line(text):
    with pytest.raises(UnreadableError, match=r"s\.csv:\d"):
        list(statcsv.parse(text, "s.csv"))


@pytest.mark.parametrize("name", ['Default/a,"b",c-op0', "Default/line\nbreak\r-op0", '"', ","])
def test_a_row_is_one_line_whatever_a_cell_is_called(name):
    text = statcsv.header(["max"])
    text += "".join(statcsv.row(_record("output", at, 5), name, ["1.5"], statcsv.Dialect()) for at in range(2))
    assert text.count("\n") == 3
    assert len(text.splitlines()) == 3
    found = list(statcsv.parse(text))
    assert [record.slot for record, _ in found] == [0, 1]
    assert {record.op_name for record, _ in found} == {name.replace("\n", "\\n").replace("\r", "\\r")}
    assert [values["max"] for _, values in found] == [1.5, 1.5]
