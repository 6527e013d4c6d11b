"""The protobuf schema of a dump's graph files: field numbers of debugger.ModelProto. [spec mindspore 8.2]"""

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["messages"]

# message -> fields as "number name type"; a star marks repeated fields
_FIELDS = {
    "ModelProto": "1 ir_version int64, 2 domain string, 3 model_version int64, 4 graph GraphProto, "
    "5 metadata_operators string",
    "GraphProto": "1 node NodeProto*, 2 name string, 3 parameters ParameterProto*, 4 outputs OutputProto*, "
    "5 const_vals NamedValueProto*, 6 root_name string",
    "NodeProto": "1 input InputProto*, 2 name string, 3 op_type string, 4 scope string, 5 attribute AttributeProto*, "
    "6 output_type TypeProto, 7 output_i uint64, 8 full_name string, 9 source_address string",
    "InputProto": "1 name string, 2 type int32",
    "ParameterProto": "1 name string, 2 type TypeProto, 3 default_val ValueProto",
    "OutputProto": "1 name string, 2 type TypeProto",
    "AttributeProto": "1 name string, 2 value ValueProto",
    "NamedValueProto": "1 key string, 2 value ValueProto, 3 full_name string",
    "TypeProto": "1 data_type int32, 2 tensor_type TensorTypeProto, 3 sequence_type SequenceTypeProto",
    "TensorTypeProto": "1 elem_type int32, 2 shape TensorShapeProto",
    "TensorShapeProto": "1 dim DimensionProto*",
    "DimensionProto": "1 size int64, 2 name string",
    "SequenceTypeProto": "1 elem_types TypeProto*",
    "ValueProto": "1 dtype int32, 2 bool_val bool, 3 int_val int64, 4 uint_val uint64, 5 float_val float, "
    "6 double_val double, 7 str_val string, 18 values ValueProto*, 20 type_val TypeProto",
}


@cache
def messages() -> dict[str, Any]:
    """Return the message classes by name."""
    kind = descriptor_pb2.FieldDescriptorProto
    package = "dumpsim.debugger"
    file = descriptor_pb2.FileDescriptorProto(name="dumpsim/graph.proto", package=package, syntax="proto2")
    for name, text in _FIELDS.items():
        message = file.message_type.add(name=name)
        for entry in text.split(", "):
            number, field_name, type_name = entry.split()
            base = type_name.rstrip("*")
            field = message.field.add(name=field_name, number=int(number))
            field.label = kind.LABEL_REPEATED if type_name.endswith("*") else kind.LABEL_OPTIONAL
            if base in _FIELDS:
                field.type, field.type_name = kind.TYPE_MESSAGE, f".{package}.{base}"
            else:
                field.type = getattr(kind, f"TYPE_{base.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"{package}.{name}") for name in _FIELDS}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in found.items()}
