"""The file of the operator Print, against google.protobuf with a schema of its own."""

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dumpsim.codecs import printfile
from dumpsim.codecs.wire import bytes_field, int_field
from dumpsim.core.errors import UnreadableError

FIELD = descriptor_pb2.FieldDescriptorProto
TENSORS = arrays.arrays(st.sampled_from(["<f4", "<i8", "?", "<u2"]), arrays.array_shapes(min_dims=0, max_side=4))


@pytest.fixture(scope="module")
def message():
    """The class of a message. [spec observed 3]"""
    file = descriptor_pb2.FileDescriptorProto(name="prnt.proto", package="prnt", syntax="proto2")
    tensor = file.message_type.add(name="Tensor")
    tensor.field.add(name="dims", number=1, type=FIELD.TYPE_INT64, label=FIELD.LABEL_REPEATED)
    tensor.field.add(name="type", number=2, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
    tensor.field.add(name="content", number=3, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_OPTIONAL)
    value = file.message_type.add(name="Value")
    value.field.add(name="text", number=1, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_OPTIONAL)
    value.field.add(
        name="tensor", number=2, type=FIELD.TYPE_MESSAGE, type_name=".prnt.Tensor", label=FIELD.LABEL_OPTIONAL
    )
    whole = file.message_type.add(name="Print")
    whole.field.add(
        name="value", number=1, type=FIELD.TYPE_MESSAGE, type_name=".prnt.Value", label=FIELD.LABEL_REPEATED
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("prnt.Print"))


def test_the_bytes_are_those_of_protobuf(message):
    array = np.array([[1, 2, 3]], np.int32)
    expected = message()
    expected.value.add(text="größe".encode())
    expected.value.add().tensor.CopyFrom(
        type(expected.value.add().tensor)(dims=[1, 3], type="Int32", content=array.tobytes())
    )
    del expected.value[2:]
    assert message.FromString(printfile.encode(["größe", array])) == message.FromString(expected.SerializeToString())


@given(st.lists(st.text() | TENSORS, max_size=4), st.lists(st.text() | TENSORS, max_size=2))
def test_messages_one_behind_the_other_are_read_back(first, second):
    found = printfile.decode(printfile.encode(first) + printfile.encode(second))
    assert len(found) == len(first) + len(second)
    for one, other in zip(found, [*first, *second], strict=True):
        if isinstance(other, str):
            assert one == other
        else:
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert one.tobytes() == other.tobytes()


def tensor(*fields):
    return bytes_field(1, bytes_field(2, b"".join(fields)))


FLOAT, FOUR = bytes_field(2, b"Float32"), bytes_field(3, bytes(4))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (int_field(1, 7), "field 1 is not a value of Print"),
        (bytes_field(3, b""), "field 3 is not a value of Print"),
        (bytes_field(1, bytes_field(4, b"x")), "field 4 is neither a text nor a tensor"),
        (tensor(int_field(9, 1)), "field 9 is not a field of a tensor of Print"),
        (tensor(bytes_field(9, b"x")), "field 9 is not a field of a tensor of Print"),
        (tensor(bytes_field(1, b"\x02"), FLOAT, FOUR), "field 1 is not a field of a tensor of Print"),
        (tensor(int_field(2, 1), FOUR), "field 2 is not a field of a tensor of Print"),
        (tensor(FLOAT, int_field(3, 1)), "field 3 is not a field of a tensor of Print"),
        (tensor(bytes_field(2, b"Float99"), FOUR), "'Float99' is not a number type"),
        (tensor(int_field(1, 2), FLOAT, FOUR), r"a tensor of shape \(2,\) has 4 bytes, not 8"),
        (tensor(int_field(1, 2**40), int_field(1, 2**40), FLOAT, FOUR), "has 4 bytes, not"),
        (tensor(FLOAT, FOUR)[:-1], "bytes, .* are left"),
    ],
)
def test_other_bytes_are_a_clear_error(data, said):
    with pytest.raises(UnreadableError, match=rf"out\.prt: byte \d+: .*{said}"):
        printfile.decode(data, "out.prt")
