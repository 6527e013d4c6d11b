"""msaccucmp compare and file_compare; tables are what the real tool wrote for the same files unless said otherwise."""

import csv
import json

import numpy as np
import pytest
from binfile import bin_bytes, item

from dumpsim.analysis.msaccucmp.command import run
from dumpsim.tensor.layout import to_device

METRICS = (
    "CosineSimilarity,MaxAbsoluteError,AccumulatedRelativeError,RelativeEuclideanDistance,KullbackLeiblerDivergence,"
    "StandardDeviation,MeanAbsoluteError,RootMeanSquareError,MaxRelativeError,MeanRelativeError"
)


def put(folder, name, inputs, outputs=()):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(bin_bytes(inputs, outputs))


def table(folder, kind="result"):
    """The one result, checked for its line ends, as rows."""
    (path,) = folder.glob(f"{kind}_*.csv")
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")
    with path.open(newline="") as file:
        return [
            ",".join(f'"{cell}"' if "," in cell or '"' in cell else cell for cell in row) for row in csv.reader(file)
        ]


@pytest.fixture
def dumps(tmp_path):
    """Own and golden dump: equal, near, bool, and an operator that only one of them has."""
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 3, 4)).astype(np.float32)
    y = np.maximum(x, 0)
    own, golden = tmp_path / "own", tmp_path / "golden"
    put(own, "Relu.relu1.3.5.1700000000000001", [item(x)], [item(y)])
    put(golden, "Relu.relu1.3.5.1700000000000007", [item(x + np.float32(0.01))], [item(y * np.float32(1.01))])
    h = np.array([[1, 65504], [-3, 0]], np.float16)
    put(own, "Add.scope_add2.4.5.1700000000000002", [item(h)], [item(h / np.float16(2))])
    put(golden, "Add.scope_add2.4.5.1700000000000008", [item(h)], [item(h / np.float16(2))])
    put(own, "Mul.only.5.5.1700000000000003", [item(h)])
    put(golden, "Sub.goldonly.5.5.1700000000000003", [item(h)])
    b = np.array([True, False])
    put(own, "Less.less.6.5.1700000000000004", [item(b)], [item(b)])
    put(golden, "Less.less.6.5.1700000000000004", [item(~b)], [item(b)])
    return own, golden


def spread(values):
    return f"{values.mean():.3f};{values.std():.3f}"


def compare(own, golden, out, *flags):
    return run(["compare", "-m", str(own), "-g", str(golden), "-out", str(out), *map(str, flags)])


def test_two_dumps(dumps, tmp_path):
    assert compare(*dumps, tmp_path / "out") == 2  # operators without a partner
    zeros = ",".join(["0.000000"] * 4)
    h = np.array([[1, 65504], [-3, 0]])
    assert table(tmp_path / "out") == [
        "Index,OpType,NPUDump,DataType,Address,GroundTruth,DataType,Address,TensorIndex,Shape,"
        f"{METRICS},CompareFailReason",
        '0,Relu,relu1,float32,4096,relu1,float32,4096,relu1:input:0,"[2,3,4]",0.999933,0.010000,0.848778,0.011695,0.000000,'
        '"(-0.114;0.849),(-0.104;0.849)",0.010000,0.010000,0.194833,0.035366,',
        '0,Relu,relu1,float32,4096,relu1,float32,4096,relu1:output:0,"[2,3,4]",1.000000,0.013665,0.108911,0.009901,0.000000,'
        '"(0.279;0.435),(0.282;0.440)",0.002790,0.005170,0.009901,0.004538,',
        '1,Add,scope_add2,float16,4096,scope_add2,float16,4096,scope_add2:input:0,"[2,2]",1.000000,0.000000,0.000000,0.000000,'
        f'0.000000,"({spread(h)}),({spread(h)})",{zeros},',
        '1,Add,scope_add2,float16,4096,scope_add2,float16,4096,scope_add2:output:0,"[2,2]",1.000000,0.000000,0.000000,0.000000,'
        f'0.000000,"({spread(h / 2)}),({spread(h / 2)})",{zeros},',
        f'2,NaN,only,NaN,NaN,*{",NaN" * 14},"[only] There is no the ground truth dump file for the op "only"."',
        "3,Less,less,bool,4096,less,bool,4096,less:input:0,[2],0.000000,1.000000,1.000000,1.414214,15.942381,"
        '"(0.500;0.500),(0.500;0.500)",1.000000,1.000000,1.000000,0.500000,',
        "3,Less,less,bool,4096,less,bool,4096,less:output:0,[2],1.000000,0.000000,0.000000,0.000000,0.000000,"
        f'"(0.500;0.500),(0.500;0.500)",{zeros},',
        f'4,NaN,*,NaN,NaN,goldonly{",NaN" * 14},"[goldonly] There is no the my output dump file for the op '
        '"goldonly"."',
    ]


def test_chosen_measures_and_overflow(dumps, tmp_path):
    assert compare(*dumps, tmp_path / "out", "-alg", "MaxAbsoluteError,0,Foo", "-overflow_detection") == 2
    head, *rows = table(tmp_path / "out")
    assert head.endswith("Shape,OverFlow,MaxAbsoluteError,CosineSimilarity,CompareFailReason")
    assert [row.split(",")[-4] for row in rows if ",scope_add2:" in row] == ["YES", "NO"]
    assert {row.count(",") - row.count(",3,") - row.count(",4]") for row in rows if "relu" in row} == {head.count(",")}


def test_what_cannot_be_compared_says_why(tmp_path):
    own, golden = tmp_path / "own", tmp_path / "golden"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    put(own, "Add.shape.3.2.1700000000000101", [item(x)], [item(x)])
    put(golden, "Add.shape.3.2.1700000000000101", [item(x.T)], [item(x.reshape(6))])
    put(own, "Add.fewer.3.2.1700000000000102", [item(x), item(x)], [item(x)])
    put(golden, "Add.fewer.3.2.1700000000000101", [item(x)], [item(x)])
    put(own, "Add.int4.3.2.1700000000000103", [item(b"ab", dtype="int4", shape=(4,))])
    put(golden, "Add.int4.3.2.1700000000000101", [item(b"ab", dtype="int4", shape=(4,))])
    put(own, "Add.many.3.2.1700000000000104", [item(x)])
    put(own, "Add.many.3.2.1700000000000105", [item(x + 1)])  # the newest counts
    put(golden, "Add.many.3.2.1700000000000101", [item(x)])
    put(own, "Add.z.3.2.1700000000000106", [item(x * 0)])
    put(golden, "Add.z.3.2.1700000000000101", [item(x)])
    assert compare(own, golden, tmp_path / "out", "-alg", "0,1,5") == 11
    assert table(tmp_path / "out")[1:] == [
        '0,NaN,shape,NaN,NaN,shape,NaN,NaN,NaN,NaN,NaN,NaN,NaN,"[shape] The shape does not match ((2, 3) vs (3, 2)) '
        'for shape:input:0.,[shape] The shape does not match ((2, 3) vs (6)) for shape:output:0."',
        '1,Add,fewer,float32,4096,fewer,float32,4096,fewer:output:0,"[2,3]",1.000000,0.000000,'
        '"(2.500;1.708),(2.500;1.708)",',
        "2,NaN,int4,NaN,NaN,int4,NaN,NaN,NaN,NaN,NaN,NaN,NaN,The output data type (28) does not support.",
        '3,Add,many,float32,4096,many,float32,4096,many:input:0,"[2,3]",0.989455,1.000000,"(3.500;1.708),(2.500;1.708)",',
        '4,Add,z,float32,4096,z,float32,4096,z:input:0,"[2,3]",NaN,5.000000,"(0.000;0.000),(2.500;1.708)",'
        f"Cannot compare by Cosine Similarity. All the data is zero in {own}/Add.z.3.2.1700000000000106.",
    ]


def test_mapping_csv_in_a_dump_directory(dumps, tmp_path):
    own, golden = dumps
    name = "Relu.relu1.3.5.1700000000000001"
    (own / name).rename(own / "12345")
    (own / "mapping.csv").write_text(f"12345,{name}\n")
    compare(own, golden, tmp_path / "out", "-alg", "0")
    assert sum(row.startswith("0,Relu,relu1,") for row in table(tmp_path / "out")) == 2


@pytest.mark.parametrize(("layout", "shape"), [
    ("NC1HWC0", (2, 3, 4, 5)), ("FRACTAL_Z", (6, 1, 11, 11)), ("FRACTAL_NZ", (5, 7)), ("FRACTAL_NZ", (2, 5, 7)),
])  # fmt: skip
def test_padding_is_not_measured(tmp_path, layout, shape):
    """A private layout counts its own elements only, as the same numbers in the layout of the host do."""
    random = np.random.default_rng(3)
    x = random.standard_normal(shape).astype(np.float32)
    y = x + random.standard_normal(shape).astype(np.float32) / 8
    blocks = [to_device(each, layout) for each in (x, y)]
    assert blocks[0].size > x.size
    sides = tmp_path / "own", tmp_path / "golden"
    for side, plain, block in zip(sides, (x, y), blocks, strict=True):
        put(side, "Conv2D.plain.3.5.1700000000000001", [], [item(plain, format="NCHW" if len(shape) == 4 else "ND")])
        put(side, "Conv2D.private.4.5.1700000000000002", [], [item(block, format=layout, original_shape=shape)])
    assert compare(*sides, tmp_path / "out") == 0
    plain, private = csv.reader(table(tmp_path / "out")[1:])
    numbers = slice(10, -1)
    assert plain[numbers] == private[numbers]
    assert plain[numbers][6] == f"{np.abs(x - y).mean():.6f}"
    assert private[9] == f"[{','.join(map(str, blocks[0].shape))}]"  # of the device


def test_a_layout_that_cannot_be_undone_is_measured_as_it_is(tmp_path):
    block = np.arange(512, dtype=np.float32).reshape(1, 2, 16, 16)
    for side in ("own", "golden"):
        put(tmp_path / side, "MatMul.m.3.5.1700000000000001", [], [
            item(block, format="FRACTAL_NZ", original_shape=(3, 40)),  # does not fit
        ])  # fmt: skip
    assert compare(tmp_path / "own", tmp_path / "golden", tmp_path / "out", "-alg", "1") == 0
    assert table(tmp_path / "out")[1].endswith('m:output:0,"[1,2,16,16]",0.000000,')


def test_a_scalar_has_no_dimension(tmp_path):
    for side in ("own", "golden"):
        put(tmp_path / side, "Add.s.3.5.1700000000000001", [], [item(np.float32(2).reshape(()), original_shape=())])
    assert compare(tmp_path / "own", tmp_path / "golden", tmp_path / "out", "-alg", "1") == 0
    assert table(tmp_path / "out")[1].endswith("s:output:0,[],0.000000,")


@pytest.fixture
def fused(tmp_path):
    """A dump of a compiled model: a TransData put in, a convolution fused with a ReLU; golden npy files; the model."""

    def blocked(x):
        n, c, h, w = x.shape
        padded = np.zeros((n, 16, h, w), x.dtype)
        padded[:, :c] = x
        return np.ascontiguousarray(padded.reshape(n, 1, 16, h, w).transpose(0, 1, 3, 4, 2))

    x = np.random.default_rng(0).standard_normal((1, 3, 4, 4)).astype(np.float32)
    h = x.astype(np.float16)
    device = item(blocked(h), format="NC1HWC0", original_shape=x.shape)
    own, golden = tmp_path / "own", tmp_path / "golden"
    put(own, "TransData.trans_1.2.5.1700000000000000", [item(h, format="NCHW")], [device])
    put(own, "Conv2D.conv1relu1.3.5.1700000000000001", [device], [device])
    put(own, "Softmax.prob.4.5.1700000000000002", [device], [item(h.reshape(3, 16))])
    golden.mkdir()
    np.save(golden / "data.0.1700000000000001.npy", x)
    np.save(golden / "relu1.0.1700000000000001.npy", x * np.float32(1.001))
    np.save(golden / "prob.0.1700000000000001.npy", x.reshape(3, 16))

    def operator(name, kind, inputs, originals, origin):
        attributes = (
            [] if originals is None else [{"key": "_datadump_original_op_names", "value": {"list": {"s": originals}}}]
        )
        told = {"_datadump_origin_name": {"s": origin}, "_datadump_origin_output_index": {"i": 0}}
        told["_datadump_origin_format"] = {"s": "NCHW"}
        output = {"attr": [{"key": key, "value": value} for key, value in told.items()]}
        return {"name": name, "type": kind, "input": inputs, "attr": attributes, "output_desc": [output]}

    operators = [
        operator("data", "Data", [], None, "data"),
        operator("trans_1", "TransData", ["data:0"], [], ""),
        operator("conv1relu1", "Conv2D", ["trans_1:0", "data:-1"], ["conv1", "relu1"], "relu1"),
        operator("prob", "Softmax", ["conv1relu1:0"], ["prob"], "prob"),
    ]
    model = tmp_path / "model.json"
    model.write_text(json.dumps({"graph": [{"name": "g", "op": operators}]}))
    return own, golden, model


def test_dump_against_npy_of_the_original_model(fused, tmp_path):
    own, golden, model = fused
    assert compare(own, golden, tmp_path / "out", "-f", model, "-alg", "0,1") == 2
    assert table(tmp_path / "out") == [
        "Index,OpType,NPUDump,DataType,Address,GroundTruth,DataType,TensorIndex,Shape,CosineSimilarity,MaxAbsoluteError,"
        "CompareFailReason",
        '0,Data,data,NaN,NaN,data,NaN,NaN,NaN,NaN,NaN,"[data] There is no dump file for my output operator "data". '
        'The type is Data."',
        '1,TransData,trans_1,float16,4096,*,float32,trans_1:input:0,"[1,3,4,4]",1.000000,0.000812,',
        '1,TransData,trans_1,float16,4096,*,float32,trans_1:output:0,"[1,3,4,4]",1.000000,0.000812,',
        '2,Conv2D,conv1relu1,float16,4096,"conv1,relu1",float32,conv1relu1:input:0,"[1,3,4,4]",1.000000,0.000812,',
        '2,Conv2D,conv1relu1,float16,4096,"conv1,relu1",float32,conv1relu1:output:0,"[1,3,4,4]",1.000000,0.003137,',
        '3,Softmax,prob,float16,4096,prob,float32,prob:input:0,"[1,3,4,4]",1.000000,0.003137,',
        '3,Softmax,prob,float16,4096,prob,float32,prob:output:0,"[3,16]",1.000000,0.000812,',
    ]


def test_a_missing_npy_of_the_original_model_keeps_its_rows_and_says_why(fused, tmp_path):
    own, golden, model = fused
    (golden / "relu1.0.1700000000000001.npy").unlink()
    assert compare(own, golden, tmp_path / "out", "-f", model, "-alg", "0") == 2
    reason = "[{0}] There is no ground truth file relu1.0.timestamp.npy for {0}:{1}:0."
    shown = [row.split(",", 3) for row in table(tmp_path / "out")]
    assert [row[3] for row in shown if "relu1.0" in row[3]] == [
        f'NaN,NaN,"conv1,relu1",NaN,conv1relu1:output:0,NaN,NaN,{reason.format("conv1relu1", "output")}',
        f"NaN,NaN,prob,NaN,prob:input:0,NaN,NaN,{reason.format('prob', 'input')}",
    ]


def test_only_the_mapping(fused, tmp_path):
    own, golden, model = fused
    assert compare(own, golden, tmp_path / "out", "-f", model, "-map") == 0
    rows = table(tmp_path / "out", "mapping")
    assert rows[:2] == [
        "Index,OpType,NPUDump,GroundTruth,TensorIndex,NPUDumpPath,GroundTruthPath",
        "0,Data,data,data,NaN,NaN,NaN",
    ]
    assert rows[5] == (
        f'2,Conv2D,conv1relu1,"conv1,relu1",conv1relu1:output:0,{own}/Conv2D.conv1relu1.3.5.1700000000000001,'
        f"{golden}/relu1.0.1700000000000001.npy"
    )


@pytest.mark.parametrize(
    ("flags", "chosen"),
    [
        (("-r", "2,-1,1"), ["2", "2", "3", "3"]),
        (("-s", "3,1"), ["1", "1", "3", "3"]),
        (("-r", "1,3,2"), ["1", "1", "3", "3"]),
    ],
)
def test_chosen_operators(fused, tmp_path, flags, chosen):
    own, golden, model = fused
    assert compare(own, golden, tmp_path / "out", "-f", model, "-alg", "0", *flags) == 0
    head, *rows = table(tmp_path / "out")
    assert head.startswith("Index,OpSequence,OpType,")
    assert [row.split(",")[1] for row in rows] == chosen


@pytest.mark.parametrize(
    ("flags", "code"),  # recorded from the tool, but for -op, which is not supported here
    [
        (["-alg", "Foo"], 31),
        (["-r", "1,2,1"], 6),
        (["-map"], 6),
        (["-f", "{model}", "-r", "2,99,1"], 12),
        (["-f", "{model}", "-s", "99"], 6),
        (["-f", "{model}", "-s", "1", "-r", "1,2,1"], 6),
        (["-f", "{model}", "-r", "1,2"], 6),
        (["-f", "{golden}/data.0.1700000000000001.npy"], 13),
        (["-f", "/nonexistent"], 3),
        ([], 6),
        (["-op", "prob"], 30),
    ],
)
def test_exit_codes(fused, tmp_path, flags, code):
    own, golden, model = fused
    given = [flag.format(model=model, golden=golden) for flag in flags]
    assert compare(own, golden, tmp_path / "out", *given) == code


def test_an_empty_directory_is_code_eighteen(fused, tmp_path):
    (tmp_path / "empty").mkdir()
    assert compare(tmp_path / "empty", tmp_path / "empty", tmp_path / "out") == 18


def test_own_measures_run_only_when_asked_for(dumps, tmp_path):
    folder = tmp_path / "custom" / "algorithm"
    folder.mkdir(parents=True)
    (folder / "alg_Mine.py").write_text(
        "def compare(my, golden, args):\n    return str(len(my)) + args['unit'], my.dtype.name\n"
    )
    for other in ("alg_notes.txt", "helper.py", "Mine_alg_.py", "alg_"):  # no measures
        (folder / other).write_text("1 / 0\n")
    assert compare(*dumps, tmp_path / "no", "-alg", "0,Mine") == 2
    assert "Mine" not in table(tmp_path / "no")[0]
    assert compare(*dumps, tmp_path / "yes", "-alg", "0,Mine", "-a", "Mine:unit=px", "-c", folder.parent) == 2
    head, first, *_ = table(tmp_path / "yes")
    assert head.endswith("CosineSimilarity,Mine,CompareFailReason")
    assert first.endswith("0.999933,24px,float32")


def test_two_npy_files(tmp_path):
    np.save(tmp_path / "a.npy", np.full(4, 2, np.float32))
    np.save(tmp_path / "b.npy", np.full(4, 3, np.float32))
    np.save(tmp_path / "c.npy", np.full(5, 3, np.float32))
    out = tmp_path / "out"

    def against(name):
        return run(["file_compare", "-m", str(tmp_path / "a.npy"), "-g", str(tmp_path / name), "-out", str(out)])

    assert against("b.npy") == 0
    (result,) = out.glob("file_result_*.txt")
    assert result.read_text() == (
        "CosineSimilarity: 1.000000\nMaxAbsoluteError: 1.000000\nAccumulatedRelativeError: 1.333333\n"
        "RelativeEuclideanDistance: 0.333333\nMeanAbsoluteError: 1.000000\nRootMeanSquareError: 1.000000\n"
        "MaxRelativeError: 0.333333\nMeanRelativeError: 0.333333\n"
    )
    assert against("c.npy") == 23
    assert against("missing.npy") == 3


X = np.arange(6, dtype=np.float32).reshape(2, 3)
TIME = 1700000000000000


def rows(folder, kind="result"):
    """The result as lists of cells, without its head."""
    (path,) = folder.glob(f"{kind}_*.csv")
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


@pytest.mark.parametrize(
    ("own", "golden", "code"),
    [
        ({"a": X}, {"a": X}, 0),
        ({"a": "int4"}, {"a": X}, 21), ({"a": X}, {"a": "int4"}, 21),
        ({"a": X}, {"a": X.T}, 11), ({"a": "cut"}, {"a": X}, 11), ({"a": "short"}, {"a": X}, 40),
        ({"a": X, "b": X}, {"a": X}, 2), ({"a": X}, {"a": X, "b": X}, 2),
        ({"a": "int4", "b": X}, {"a": X}, 21), ({"a": X, "b": "int4"}, {"b": X}, 2),  # the first failure
        ({"a": X.T, "b": "int4"}, {"a": X, "b": X}, 11), ({"a": "int4", "b": X.T}, {"a": X, "b": X}, 21),
        ({"a": X}, {"b": X}, 2),
    ],
)  # fmt: skip
def test_the_first_failure_of_a_comparison_is_its_exit_code(tmp_path, own, golden, code):
    """21 for a type, 11 for what cannot be compared, 40 for too few data, 2 for no partner. [spec ge 4.4]"""
    for side, dumps in (("own", own), ("golden", golden)):
        for number, (name, array) in enumerate(dumps.items()):
            one = item(X if isinstance(array, str) else array)
            if array == "int4" if isinstance(array, str) else False:
                one = item(b"abc", dtype="int4", shape=(6,))
            elif isinstance(array, str) and array == "short":
                one = item(b"abcd", dtype="float32", shape=(2, 3))
            put(tmp_path / side, f"Add.{name}.1.2.{TIME + number}", [one])
            if isinstance(array, str) and array == "cut":
                path = tmp_path / side / f"Add.{name}.1.2.{TIME + number}"
                path.write_bytes(path.read_bytes()[:-1])
    assert compare(tmp_path / "own", tmp_path / "golden", tmp_path / "out", "-alg", "1") == code
    found = rows(tmp_path / "out")
    both = [name for name in own if name in golden]
    assert [row[2] for row in found] == [*own, *("*" for name in golden if name not in own)]
    assert [row[5] for row in found if row[2] == "*"] == [name for name in golden if name not in own]
    assert [row[0] for row in found] == [str(number) for number in range(len(found))]
    assert [row[5] for row in found if row[2] in both] == both


def test_addresses_and_types_are_those_of_each_side(tmp_path):
    put(tmp_path / "own", f"Add.a.1.2.{TIME}", [item(X, address=7), item(X, address=0)], [item(X[0], address=9)])
    golden = [item(X.astype(np.float64), address=8), item(X.astype(np.int8), address=2**63)]
    put(tmp_path / "golden", f"Sub.a.3.4.{TIME}", golden, [item(X[0].astype(np.float16), address=5)])
    assert compare(tmp_path / "own", tmp_path / "golden", tmp_path / "out", "-alg", "1") == 0
    assert rows(tmp_path / "out") == [
        ["0", "Add", "a", "float32", "7", "a", "float64", "8", "a:input:0", "[2,3]", "0.000000", ""],
        ["0", "Add", "a", "float32", "0", "a", "int8", str(2**63), "a:input:1", "[2,3]", "0.000000", ""],
        ["0", "Add", "a", "float32", "9", "a", "float16", "5", "a:output:0", "[3]", "0.000000", ""],
    ]


@pytest.mark.parametrize(
    ("values", "dtype", "flag"),
    [
        ([1, 65504], np.float16, "YES"), ([1, -65504], np.float16, "YES"), ([1, 65472], np.float16, "NO"),
        ([np.inf, 1], np.float16, "YES"), ([-np.inf, 1], np.float16, "YES"), ([np.nan, 1], np.float16, "NO"),
        ([], np.float16, "NaN"), ([1, 70000], np.float32, "NaN"), ([1, 70000], np.int32, "NaN"),
    ],
)  # fmt: skip
def test_an_overflow_is_a_float16_at_its_limit(tmp_path, values, dtype, flag):
    """65504 is the largest float16, 65472 the one before it; an empty tensor is one of float64. [spec ge 4.2, 4.6]"""
    for side in ("own", "golden"):
        put(tmp_path / side, f"Add.a.1.2.{TIME}", [item(np.array(values, dtype))])
    assert compare(tmp_path / "own", tmp_path / "golden", tmp_path / "out", "-alg", "1", "-overflow_detection") == 0
    (row,) = rows(tmp_path / "out")
    assert row[10] == flag
    assert compare(tmp_path / "own", tmp_path / "golden", tmp_path / "plain", "-alg", "1") == 0
    assert len(rows(tmp_path / "plain")[0]) == len(row) - 1


def test_only_layouts_of_two_to_four_dimensions_lose_their_padding(tmp_path):
    """The number of dimensions on the host decides; NC1HWC0 of four dimensions is no NC1HWC0. [msaccucmp 26.2]"""
    block = np.zeros((1, 1, 1, 2, 16), np.float32)
    block[..., 0], block[..., 15] = 2, 4  # a channel, and its padding
    six = block.reshape(1, 1, 1, 1, 2, 16)
    own = [
        item(block, format="NC1HWC0", original_shape=(1, 1, 1, 2)),
        item(block, format="NC1HWC0", original_shape=(2,)),
        item(block, format="NC1HWC0", original_shape=()),
        item(six, format="NDC1HWC0", original_shape=(1, 1, 1, 1, 2)),
        item(block.reshape(1, 1, 2, 16), format="NC1HWC0", original_shape=(1, 1, 1, 2)),
    ]
    for side, dumps in (("own", own), ("golden", [item(np.zeros_like(block), **options_of(one)) for one in own])):
        put(tmp_path / side, f"Add.a.1.2.{TIME}", dumps)
    assert compare(tmp_path / "own", tmp_path / "golden", tmp_path / "out", "-alg", "MeanAbsoluteError") == 0
    means = [row[-2] for row in rows(tmp_path / "out")]
    whole = f"{np.abs(block).mean():.6f}"
    assert means == ["2.000000", whole, whole, whole, whole]


def options_of(one):
    """The layout and the shapes of a tensor, for another one of zeros."""
    layouts = {3: "NC1HWC0", 32: "NDC1HWC0"}
    return {"format": layouts[one["format"]], "shape": one["shape"], "original_shape": one["original_shape"]}


def model_of(path, *operators):
    """A compiled model: name, inputs, names of the original operators, name and layout of the only output."""
    made = []
    for name, inputs, originals, origin, layout in operators:
        told = {"_datadump_origin_name": {"s": origin}} if origin else {}
        told |= {"_datadump_origin_format": {"s": layout}} if layout else {}
        output = {"attr": [{"key": key, "value": value} for key, value in told.items()]}
        names = [] if originals is None else [
            {"key": "_datadump_original_op_names", "value": {"list": {"s": originals}}}
        ]  # fmt: skip
        made.append({"name": name, "type": "T", "input": inputs, "attr": names, "output_desc": [output]})
    path.write_text(json.dumps({"graph": [{"op": made}]}))
    return path


def against_model(tmp_path, dumps, golden, operators, *flags):
    for number, (name, (inputs, outputs)) in enumerate(dumps.items()):
        put(tmp_path / "own", f"T.{name}.1.2.{TIME + number}", inputs, outputs)
    (tmp_path / "golden").mkdir()
    for name, array in golden.items():
        np.save(tmp_path / "golden" / f"{name}.{TIME}.npy", array)
    model = model_of(tmp_path / "model.json", *operators)
    code = compare(tmp_path / "own", tmp_path / "golden", tmp_path / "out", "-f", model, "-alg", "1", *flags)
    return code, rows(tmp_path / "out", "mapping" if "-map" in flags else "result")


def test_names_of_the_original_model_are_looked_for_as_in_files_and_as_they_are(tmp_path):
    operators = [
        ("scope/a", [], None, "scope/a", "ND"), ("b.c", [], None, "b.c", "ND"), ("d", ["e:0"], None, "d", "ND"),
    ]  # fmt: skip
    dumps = {"scope_a": ([], [item(X)]), "b_c": ([], [item(X)]), "d": ([item(X)], [])}
    code, found = against_model(tmp_path, dumps, {"scope_a.0": X + 1, "b.c.0": X + 2}, operators)
    assert [row[:5] + row[6:] for row in found] == [
        ["0", "T", "scope/a", "float32", "4096", "float32", "scope/a:output:0", "[2,3]", "1.000000", ""],
        ["1", "T", "b.c", "float32", "4096", "float32", "b.c:output:0", "[2,3]", "2.000000", ""],
        ["2", "T", "d", "NaN", "NaN", "NaN", "d:input:0", "NaN", "NaN",
         "[d] The model does not tell what d:input:0 stands for."],
    ]  # fmt: skip
    assert code == 2


def test_the_newest_npy_file_of_an_output_is_golden(tmp_path):
    (tmp_path / "golden").mkdir()
    for time, shift in ((TIME, 1), (TIME + 2, 3), (TIME + 1, 2)):
        np.save(tmp_path / "golden" / f"a.0.{time}.npy", X + shift)
    put(tmp_path / "own", f"T.a.1.2.{TIME}", [], [item(X)])
    model = model_of(tmp_path / "model.json", ("a", [], None, "a", "ND"))
    assert compare(tmp_path / "own", tmp_path / "golden", tmp_path / "out", "-f", model, "-alg", "1") == 0
    assert rows(tmp_path / "out")[0][-2] == "3.000000"


CHANNELS = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
BLOCKED = item(
    np.pad(CHANNELS, ((0, 0), (0, 14), (0, 0), (0, 0))).transpose(0, 2, 3, 1).reshape(1, 1, 2, 3, 16),
    format="NC1HWC0", original_shape=CHANNELS.shape,
)  # fmt: skip


@pytest.mark.parametrize(
    ("device", "golden", "layout", "code", "shape", "largest"),
    [
        (item(X), X + 1, "ND", 0, "[2,3]", 1),
        (item(X), X.reshape(6) + 1, "ND", 0, "[6]", 1),  # as many elements: the golden shape
        (item(X.reshape(1, 1, 2, 3), format="NCHW"), X.reshape(1, 1, 2, 3) + 1, "", 0, "[1,1,2,3]", 1),
        (item(X.reshape(1, 2, 3, 1), format="NHWC"), X.reshape(1, 1, 2, 3) + 1, "NCHW", 0, "[1,1,2,3]", 1),
        (BLOCKED, CHANNELS + 1, "", 0, "[1,2,2,3]", 1),  # NCHW unless the model says otherwise
        (BLOCKED, CHANNELS.transpose(0, 2, 3, 1) + 1, "NHWC", 0, "[1,2,3,2]", 1),
        (item(X), np.zeros((2, 2), np.float32), "ND", 23, "NaN", None),
        (item(X), np.zeros((7,), np.float32), "NCHW", 23, "NaN", None),
    ],
)  # fmt: skip
def test_a_device_tensor_takes_the_layout_and_the_shape_of_the_golden_one(
    tmp_path, device, golden, layout, code, shape, largest
):
    found = against_model(tmp_path, {"a": ([], [device])}, {"a.0": golden}, [("a", [], None, "a", layout)])
    assert found[0] == code
    (row,) = found[1]
    assert row[8] == shape
    if largest is None:
        dims = "2, 3", ", ".join(map(str, golden.shape))
        assert row[-2:] == ["NaN", f"[a] The shape does not match (({dims[0]}) vs ({dims[1]})) for a:output:0."]
    else:
        assert row[-2:] == [f"{largest:.6f}", ""]


def test_a_dump_that_cannot_be_read_keeps_a_row_beside_the_others(tmp_path):
    operators = [("a", [], None, "a", "ND"), ("b", [], None, "b", "ND"), ("c", [], None, "c", "ND")]
    dumps = {"a": ([], [item(b"ab", dtype="int4", shape=(4,))]), "b": ([], [item(X)]), "c": ([], [item(X)])}
    golden = {"a.0": X, "b.0": X}
    code, found = against_model(tmp_path, dumps, golden, operators)
    assert code == 21  # the first failure
    assert [row[2] for row in found] == ["a", "b", "c"]
    assert found[0][3:] == [
        "NaN", "NaN", "a", "NaN", "NaN", "NaN", "NaN", "The output data type (28) does not support.",
    ]  # fmt: skip
    assert found[1][-2:] == ["0.000000", ""]
    assert found[2][-1] == "[c] There is no ground truth file c.0.timestamp.npy for c:output:0."
