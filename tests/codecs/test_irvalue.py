"""Values and types of IR text: as they are printed, and read back the same."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs.irtype import parse_kernel_ios, parse_type, parse_types, split_list
from dumpsim.codecs.irvalue import Text, attr_text, constant_text, shape_text, tensor_text, type_text
from dumpsim.core.abstract import (
    FunctionType,
    MonadType,
    NoneType,
    ObjectType,
    ScalarType,
    StringType,
    TensorType,
    TupleType,
    TypeType,
)
from dumpsim.core.dtype import DTYPES, dtype
from dumpsim.core.errors import UnreadableError

KINDS = st.sampled_from([DTYPES[name] for name in ("float32", "float16", "int64", "bool", "uint8", "bfloat16")])
SHAPES = st.lists(st.integers(-1, 9), max_size=3).map(tuple)
TENSORS = st.builds(TensorType, dtype=KINDS, shape=SHAPES)
LEAVES = st.one_of(
    TENSORS,
    st.builds(TensorType, dtype=KINDS, shape=SHAPES, ref_key=st.sampled_from(["w", "net.b"]), inplace=st.booleans()),
    st.builds(TensorType, dtype=KINDS, shape=SHAPES, constant=st.just(True)),
    st.builds(ScalarType, dtype=KINDS), st.just(StringType()), st.just(TypeType()), st.just(NoneType()),
    st.sampled_from([MonadType(kind="U"), MonadType(kind="IO"), FunctionType(), ObjectType("EnvType")]),
)  # fmt: skip


@given(LEAVES)
def test_a_type_is_read_as_it_was_printed(abstract):
    assert parse_type(type_text(abstract), "ir") == abstract
    assert parse_types(f"{type_text(abstract)}, {type_text(abstract)}", "ir") == (abstract, abstract)


FLOATS = TensorType(dtype=dtype("float32"), shape=(2, 3))
TYPES = {  # as MindSpore 2.10 prints them [spec mindspore 8.3, spec observed 1.8]
    "<Tensor[Float32], (2, 3)>": FLOATS,
    "<Ref[Tensor[Float32]], (2, 3), ref_key=w, is_parameter>": replace(FLOATS, ref_key="w"),
    "<Ref[Tensor[Float32]], (2, 3), ref_key=w, is_parameter, is_inplace>": replace(FLOATS, ref_key="w", inplace=True),
    "<Tensor[Float32], (2, 3), value=...>": replace(FLOATS, constant=True),
    "<Int64, NoShape>": ScalarType(dtype=dtype("int64")),
    "<UMonad, NoShape>": MonadType(kind="U"),
    "<IOMonad, NoShape>": MonadType(kind="IO"),
    "<String, NoShape>": StringType(),
    "<TypeType, NoShape>": TypeType(),
    "<None, NoShape>": NoneType(),
    "<Func, NoShape>": FunctionType(),
    "<Object:EnvType, NoShape>": ObjectType("EnvType"),
    "<Object:SymbolicKey, NoShape>": ObjectType("SymbolicKey"),
    "<Tuple[], TupleShape()>": TupleType(items=()),
    "<Tuple[Tensor[Float32]*2,Int64], TupleShape((2, 3), (2, 3), NoShape)>": TupleType(
        items=(FLOATS, FLOATS, ScalarType(dtype=dtype("int64")))
    ),
    "<Tuple[Tuple[Tensor[Float32]],Int64], TupleShape(TupleShape((2, 3)), NoShape)>": TupleType(
        items=(TupleType(items=(FLOATS,)), ScalarType(dtype=dtype("int64")))
    ),
    "<Tuple[Int64,Tuple[Tensor[Float32]*2]], TupleShape(NoShape, TupleShape((2, 3), (4)))>": TupleType(
        items=(ScalarType(dtype=dtype("int64")), TupleType(items=(FLOATS, replace(FLOATS, shape=(4,)))))
    ),
    "<Tuple[Int64*2], TupleShape(NoShape, NoShape), elements_use_flags={[const vector]{1, 1}}>": TupleType(
        items=(ScalarType(dtype=dtype("int64")),) * 2, value=()
    ),
    "<Tuple[], TupleShape(), elements_use_flags={[const vector]{}}>": TupleType(items=(), value=(), counted=True),
}


@pytest.mark.parametrize("text", TYPES)
def test_every_kind_of_type_in_both_directions(text):
    assert type_text(TYPES[text]) == text
    assert parse_type(text, "ir") == TYPES[text]


@given(st.lists(TENSORS, max_size=5))
def test_a_tuple_is_read_as_it_was_printed(items):
    for value in (None, (0,) * len(items)):
        text = type_text(TupleType(items=tuple(items), value=value))
        found = parse_type(text, "ir")
        assert found.items == tuple(items)
        assert (found.value is not None) == (bool(items) and value is not None)


def test_runs_of_one_type_are_counted():
    one, other = (TensorType(dtype=DTYPES[name], shape=(2,)) for name in ("float32", "int8"))
    text = type_text(TupleType(items=(one, one, other, one)))
    assert text == "<Tuple[Tensor[Float32]*2,Tensor[Int8],Tensor[Float32]], TupleShape((2), (2), (2), (2))>"
    shapes = ", ".join(["(2)"] * (1 << 16))
    assert len(parse_type(f"<Tuple[Tensor[Int8]*{1 << 16}], TupleShape({shapes})>", "ir").items) == 1 << 16
    for text in (
        f"<Tuple[Tensor[Int8]*{(1 << 16) + 1}], TupleShape({shapes}, (2))>",
        "<Tuple[Int64*x], TupleShape((2))>",
    ):
        with pytest.raises(UnreadableError):
            parse_type(text, "ir")


@pytest.mark.parametrize("text", ["", "<>", "<Tensor[Float32]>", "<Tensor[Float99], (2)>", "<Tensor[Float32], (a)>",
                                  "<Tuple[Int64,Int64], TupleShape((1))>"])  # fmt: skip
def test_what_is_no_type(text):
    with pytest.raises(UnreadableError, match="ir"):
        parse_type(text, "ir")
    assert parse_type("<null>", "ir") == NoneType()


def test_types_on_the_device():
    text = "<Float32xDefaultFormat[const vector]{2, 3}>, <BoolxNC1HWC0[const vector][]>"
    one, two = parse_kernel_ios(text, "ir")
    assert (one.dtype, one.format, one.shape) == ("Float32", "DefaultFormat", (2, 3))
    assert (two.dtype, two.format, two.shape) == ("Bool", "NC1HWC0", ())


def test_parts_stand_in_no_bracket_and_no_string():
    assert split_list("") == []
    assert split_list("a, b") == ["a", "b"]
    assert split_list("a, ") == ["a"]
    assert split_list("f(a, b), [c, d], {e, f}, <g, h>") == ["f(a, b)", "[c, d]", "{e, f}", "<g, h>"]
    assert split_list('"a, (", b') == ['"a, ("', "b"]
    assert split_list("a,b,(c,d)", ",") == ["a", "b", "(c,d)"]


@pytest.mark.parametrize(("value", "text"), [
    (True, "Bool(1)"), (False, "Bool(0)"), (-3, "I64(-3)"), (0.1, "F32(0.1)"), (1e-8, "F32(1e-08)"), ("a b", '"a b"'),
    (None, "None"), ((1, 2.5, True, None), "(1, 2.5, 1, None)"), ([], "[]"), (("x", ("y",)), "(x, (y))"),
    (dtype("float16"), "F16"), (np.float64(0.5), "F64(0.5)"), (np.int32(7), "I32(7)"), (np.bool_(True), "Bool(1)"),
    (Text("as it stands"), "as it stands"), (np.int8([1, -2]), "Tensor(shape=[2], dtype=Int8, value=[ 1 -2])"),
    ((dtype("int32"), [1]), "(I32, [1])"),
])  # fmt: skip
def test_attributes(value, text):
    assert attr_text(value) == text


PAIR = (ScalarType(dtype=dtype("int64")), ScalarType(dtype=dtype("float32")))


@pytest.mark.parametrize(("value", "abstract", "text"), [
    (3, ScalarType(dtype=dtype("int64")), "I64(3)"), (True, ScalarType(dtype=dtype("bool")), "Bool(1)"),
    (2.0, ScalarType(dtype=dtype("float32")), "F32(2)"), (None, NoneType(), "None"), ("s", StringType(), '"s"'),
    (dtype("int8"), TypeType(), "I8"), (None, MonadType(kind="U"), "UMonad[U]"),
    (None, MonadType(kind="IO"), "IOMonad[IO]"),
    ((1, 2.5), TupleType(items=PAIR), "(I64(1), F32(2.5))"),
    (np.float32(2), TensorType(dtype=dtype("float32"), shape=()), "Tensor(shape=[], dtype=Float32, value=2)"),
    (Text("x"), NoneType(), "x"), (SimpleNamespace(name="1_while"), FunctionType(), "@1_while"),
    (None, ObjectType("EnvType"), "EnvType"),
])  # fmt: skip
def test_constants(value, abstract, text):
    assert constant_text(value, abstract) == text


def test_tensors():
    assert tensor_text(np.arange(29, dtype=np.int8)).endswith(" 27 28])")
    assert tensor_text(np.arange(30, dtype=np.int8)) == "Tensor(shape=[30], dtype=Int8, value=[...])"
    assert (
        tensor_text(np.float32([1.5, -2]))
        == "Tensor(shape=[2], dtype=Float32, value=[ 1.50000000e+00 -2.00000000e+00])"
    )
    assert tensor_text(np.float16([[0.5]])) == "Tensor(shape=[1, 1], dtype=Float16, value=\n[[ 5.0000e-01]])"
    assert tensor_text(np.complex64([1 + 2j])) == "Tensor(shape=[1], dtype=Complex64, value=[(1,2)])"
    assert tensor_text(np.int8([[[1], [2]], [[3], [4]]])).endswith("value=\n[[[1]\n  [2]]\n [[3]\n  [4]]])")
    assert tensor_text(np.zeros((0,), np.int8)) == "Tensor(shape=[0], dtype=Int8, value=[])"
    assert [shape_text(shape) for shape in ((), (3,), (2, 3))] == ["()", "(3)", "(2, 3)"]
