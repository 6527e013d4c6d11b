"""Dump files of the bin container for tests, made with google.protobuf: no codec of dumpsim in them.

Numbers of types and layouts are those of [spec ge 3.3].
"""

import numpy as np
from dumpproto import dump_file, messages

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


def bin_bytes(inputs=(), outputs=(), *, op_name="Add_1", buffers=(), spaces=(), attrs=None, time=1700000000000000):
    """A whole file."""
    head = messages()["DumpData"](version="2.0", dump_time=time, op_name=op_name)
    for name, value in (attrs or {}).items():
        head.attr.add(name=name, value=value)
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
    return dump_file(head, *(t["raw"] for t in (*inputs, *outputs)), *buffers, *spaces)
