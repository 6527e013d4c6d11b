"""The messages of a bin file's header as google.protobuf has them, from field numbers alone; none of dumpsim's codecs.

[spec ge 3.2]
"""

from functools import cache

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_SCHEMA = """
DumpData     1 version string, 2 dump_time uint64, 3 output OpOutput*, 4 input OpInput*, 5 buffer OpBuffer*,
             6 op_name string, 7 attr OpAttr*, 8 space Workspace*, 9 dfx_message string
OpOutput     1 data_type int32, 2 format int32, 3 shape Shape, 4 original_op OriginalOp, 5 data bytes, 6 size uint64,
             7 original_shape Shape, 8 sub_format int32, 9 address uint64, 10 dim_range DimRange*, 11 offset uint64,
             12 arg_index uint32
OpInput      1 data_type int32, 2 format int32, 3 shape Shape, 4 data bytes, 5 size uint64, 6 original_shape Shape,
             7 sub_format int32, 8 address uint64, 9 offset uint64, 10 arg_index uint32, 11 input_type uint32
Shape        1 dim uint64*
DimRange     1 dim_start uint64, 2 dim_end uint64
OriginalOp   1 name string, 2 output_index uint32, 3 data_type int32, 4 format int32
OpBuffer     1 buffer_type int32, 2 data bytes, 3 size uint64
OpAttr       1 name string, 2 value string
Workspace    1 type int32, 2 data bytes, 3 size uint64, 4 arg_index uint32
"""


@cache
def messages():
    """Message classes by name."""
    rows = {}
    for line in _SCHEMA.strip().splitlines():
        name, text = ("", line) if line.startswith(" ") else line.split(maxsplit=1)
        rows[name or list(rows)[-1]] = rows.get(name or (list(rows) or [""])[-1], "") + " " + text
    file = descriptor_pb2.FileDescriptorProto(name="truth.proto", package="truth", syntax="proto3")
    for name, text in rows.items():
        message = file.message_type.add(name=name)
        for entry in text.strip().split(", "):
            number, field_name, type_name = entry.strip(" ,").split()
            base = type_name.rstrip("*")
            field = message.field.add(name=field_name, number=int(number), label=3 if type_name.endswith("*") else 1)
            if base in rows:
                field.type, field.type_name = field.TYPE_MESSAGE, f".truth.{base}"
            else:
                field.type = getattr(field, f"TYPE_{base.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"truth.{name}")) for name in rows}


def dump_file(message, *payload):
    """A whole file: length, message, data."""
    head = message.SerializeToString()
    return len(head).to_bytes(8, "little") + head + b"".join(payload)
