"""Dump files of the bin container, made with google.protobuf from a schema of this module: no codec of dumpsim in it.

Field numbers and enum numbers are those of [spec ge 3.2, 3.3].
"""

import struct
from functools import cache

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

U32, U64, I32, TEXT, BYTES = 13, 4, 5, 9, 12  # FieldDescriptorProto.Type
_SCHEMA = {
    "Shape": {"dim": (1, "repeated", U64)},
    "DimRange": {"dim_start": (1, "", U64), "dim_end": (2, "", U64)},
    "OriginalOp": {
        "name": (1, "", TEXT),
        "output_index": (2, "", U32),
        "data_type": (3, "", I32),
        "format": (4, "", I32),
    },
    "OpAttr": {"name": (1, "", TEXT), "value": (2, "", TEXT)},
    "OpBuffer": {"buffer_type": (1, "", I32), "data": (2, "", BYTES), "size": (3, "", U64)},
    "Workspace": {"type": (1, "", I32), "data": (2, "", BYTES), "size": (3, "", U64)},
    "OpOutput": {
        "data_type": (1, "", I32),
        "format": (2, "", I32),
        "shape": (3, "", "Shape"),
        "original_op": (4, "", "OriginalOp"),
        "data": (5, "", BYTES),
        "size": (6, "", U64),
        "original_shape": (7, "", "Shape"),
        "sub_format": (8, "", I32),
        "address": (9, "", U64),
        "dim_range": (10, "repeated", "DimRange"),
        "offset": (11, "", U64),
    },
    "OpInput": {
        "data_type": (1, "", I32),
        "format": (2, "", I32),
        "shape": (3, "", "Shape"),
        "data": (4, "", BYTES),
        "size": (5, "", U64),
        "original_shape": (6, "", "Shape"),
        "sub_format": (7, "", I32),
        "address": (8, "", U64),
        "offset": (9, "", U64),
    },
    "DumpData": {
        "version": (1, "", TEXT),
        "dump_time": (2, "", U64),
        "output": (3, "repeated", "OpOutput"),
        "input": (4, "repeated", "OpInput"),
        "buffer": (5, "repeated", "OpBuffer"),
        "op_name": (6, "", TEXT),
        "attr": (7, "repeated", "OpAttr"),
        "space": (8, "repeated", "Workspace"),
    },
}
TYPES = {
    "undefined": 0,
    "float32": 1,
    "float16": 2,
    "int8": 3,
    "uint8": 4,
    "int16": 5,
    "uint16": 6,
    "int32": 7,
    "int64": 8,
    "uint32": 9,
    "uint64": 10,
    "bool": 11,
    "float64": 12,
    "string": 13,
    "complex64": 16,
    "complex128": 17,
    "bfloat16": 27,
    "int4": 28,
    "uint1": 29,
    "hifloat8": 33,
    "float8_e5m2": 34,
    "float8_e4m3fn": 35,
    "float8_e8m0": 36,
    "float4_e2m1": 39,
}
FORMATS = {
    "NCHW": 0,
    "NHWC": 1,
    "ND": 2,
    "NC1HWC0": 3,
    "FRACTAL_Z": 4,
    "HWCN": 16,
    "FRACTAL_NZ": 29,
    "NCDHW": 30,
    "NDC1HWC0": 32,
    "FRACTAL_Z_3D": 33,
}


@cache
def messages():
    """Message classes by name."""
    file = descriptor_pb2.FileDescriptorProto(name="binfile.proto", package="binfile", syntax="proto3")
    for message, fields in _SCHEMA.items():
        made = file.message_type.add(name=message)
        for name, (number, label, kind) in fields.items():
            field = made.field.add(name=name, number=number, label=3 if label else 1)
            if isinstance(kind, str):
                field.type, field.type_name = 11, f".binfile.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"binfile.{name}")) for name in _SCHEMA}


def item(array, *, dtype=None, format="ND", shape=None, original_shape=None, groups=0, address=0x1000, origin=None):
    """One tensor: its description and its bytes. `array` is an array or the bytes themselves."""
    raw = array if isinstance(array, bytes) else np.ascontiguousarray(array).tobytes()
    if shape is None:
        shape = array.shape
    return {
        "data_type": TYPES[dtype or array.dtype.name],
        "format": FORMATS[format],
        "shape": tuple(shape),
        "original_shape": tuple(shape if original_shape is None else original_shape),
        "sub_format": groups,
        "address": address,
        "origin": origin,
        "raw": raw,
    }


def bin_bytes(inputs=(), outputs=(), *, op_name="Add_1", buffers=(), spaces=(), time=1700000000000000):
    """A whole file."""
    head = messages()["DumpData"](version="2.0", dump_time=time, op_name=op_name)
    for made, group in ((head.input, inputs), (head.output, outputs)):
        for tensor in group:
            entry = made.add(
                data_type=tensor["data_type"],
                format=tensor["format"],
                size=len(tensor["raw"]),
                sub_format=tensor["sub_format"],
                address=tensor["address"],
            )
            entry.shape.dim.extend(tensor["shape"])
            entry.original_shape.dim.extend(tensor["original_shape"])
            if tensor["origin"] is not None:
                name, index, kind, layout = tensor["origin"]
                entry.original_op.name = name
                entry.original_op.output_index = index
                entry.original_op.data_type = kind
                entry.original_op.format = layout
    for made, group in ((head.buffer, buffers), (head.space, spaces)):
        for raw in group:
            made.add(size=len(raw))
    text = head.SerializeToString()
    payload = [*(t["raw"] for t in inputs), *(t["raw"] for t in outputs), *buffers, *spaces]
    return struct.pack("<Q", len(text)) + text + b"".join(payload)
