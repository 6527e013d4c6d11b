"""Tensors: construction, text, conversion."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import Tensor
from dumpsim.frontends.mindspore.common import dtype as mstype

FACTS = json.loads((Path(__file__).parents[3] / "fixtures" / "frontends" / "mindspore" / "api_facts.json").read_text())


@pytest.mark.parametrize("name", sorted(FACTS["printing"]))
def test_prints_as_mindspore(name):
    fact = FACTS["printing"][name]
    tensor = Tensor(eval(fact["array"]))
    assert repr(tensor) == fact["repr"]
    assert str(tensor) == fact["str"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([1, 2], "int64"),
        ([1.0, 2], "float32"),
        (True, "bool"),
        (3, "int64"),
        (3.0, "float32"),
        (1j, "complex128"),
        (np.float32(1), "float32"),
        (np.ones(2), "float64"),
        ([True, 1], "int64"),
        ((1, 2.0), "float32"),
    ],
)
def test_number_type_of_data(data, kind):
    assert Tensor(data).dtype.name == kind


def test_dtype_argument_casts():
    assert Tensor(3.7, mstype.int32).item() == 3
    bfloat16 = Tensor([1.5, 2.0], mstype.bfloat16)
    assert bfloat16.dtype == mstype.bfloat16
    assert bfloat16.itemsize == 2


def test_a_tensor_copies_its_array_and_shares_it_with_asnumpy():
    array = np.zeros(3, np.float32)
    tensor = Tensor(array)
    array[0] = 1
    assert tensor.asnumpy()[0] == 0
    tensor.asnumpy()[1] = 5
    assert tensor.asnumpy()[1] == 5


@pytest.mark.parametrize("data", [[[1, 2], [3]], "a", None, object()])
def test_bad_data(data):
    with pytest.raises(ScriptTypeError, match=r"For '?Tensor"):
        Tensor(data)


def test_bad_dtype():
    with pytest.raises(TypeError, match="For 'Tensor', the 'dtype' should be one of"):
        Tensor([1], "float16")
    with pytest.raises(TypeError):
        Tensor([1], np.float32)


def test_python_numbers_of_one_element():
    assert int(Tensor(3.7)) == 3
    assert float(Tensor([1.5])) == 1.5
    assert not Tensor([0])
    assert [10, 20][Tensor(1)] == 20
    with pytest.raises(ScriptValueError, match="only one element, but got 2"):
        bool(Tensor([1, 2]))
    with pytest.raises(TypeError, match="0-D"):
        len(Tensor(1))


def test_number_types_compare_and_print_as_the_vendors():
    assert str(mstype.float32) == "Float32"
    assert repr(mstype.bool_) == "mindspore.bool"
    assert Tensor([1.0]).dtype == mstype.float32
    assert mstype.float32 in {Tensor([1.0]).dtype}
    assert copy.deepcopy(mstype.int8) is mstype.int8


def test_comparison_with_none_and_hash():
    tensor = Tensor([1, 2])
    assert (tensor == None) is False  # noqa: E711 - the operator itself
    assert (tensor != None) is True  # noqa: E711
    assert tensor in [tensor]
    assert len({tensor, Tensor([1, 2])}) == 2


def test_initializer_waits_for_init_data():
    tensor = Tensor(shape=(2,), dtype=mstype.float32, init="ones")
    assert tensor.has_init
    assert tensor.init_data().asnumpy().tolist() == [1, 1]
    assert not tensor.has_init


@given(
    hnp.arrays(
        st.sampled_from([np.int8, np.int32, np.int64, np.uint8, np.float32, np.float64]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9),
    )
)
def test_text_and_values_of_every_array(array):
    tensor = Tensor(array)
    assert repr(tensor).startswith(f"Tensor(shape={list(array.shape)}, dtype={tensor.dtype}, value=")
    np.testing.assert_array_equal(tensor.asnumpy(), array)
    assert tensor.asnumpy().dtype == array.dtype
    assert tensor.strides == np.ascontiguousarray(array).reshape(array.shape).strides or not array.size


def test_numpy_meets_tensor():
    result = np.ones(2, np.float32) + Tensor([1.0, 2.0])
    assert isinstance(result, Tensor)
    assert result.asnumpy().tolist() == [2, 3]
    np.testing.assert_allclose(np.asarray(Tensor([1.0, 2.0])), [1, 2])
