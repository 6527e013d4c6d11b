"""Low-precision numbers to and from float32 and bytes.

What is C here: the loops (`src/cast.c`). What is Cython: buffers, sizes, slabs, the GIL. What is Python: names, shapes
and the check of values (`dumpsim.tensor.cast`). Buffers must be contiguous; sizes are checked here once more.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int8_t, int64_t, uint8_t

cdef extern from "cast.h" nogil:
    enum:
        DS_F16, DS_BF16, DS_E5M2, DS_E4M3FN, DS_E4M3, DS_E3M4, DS_E4M3FNUZ, DS_E5M2FNUZ, DS_E4M3B11FNUZ, DS_E8M0FNU
        DS_HIF8, DS_FLOATS
    void ds_cast_to_float(int kind, float *out, const void *src, int64_t n, int level) noexcept
    void ds_cast_from_float(int kind, void *out, const float *src, int64_t n, int level) noexcept
    void ds_cast_to_odd(float *out, const double *src, int64_t n, int level) noexcept
    void ds_cast_unpack4(int8_t *out, const uint8_t *src, int64_t n, int level) noexcept
    void ds_cast_pack4(uint8_t *out, const int8_t *src, int64_t n, int level) noexcept
    void ds_cast_unpack1(uint8_t *out, const uint8_t *src, int64_t n, int level) noexcept
    void ds_cast_pack1(uint8_t *out, const uint8_t *src, int64_t n, int level) noexcept

# name -> kind of every float that the loops know
KINDS = {
    "float16": DS_F16,
    "bfloat16": DS_BF16,
    "float8_e5m2": DS_E5M2,
    "float8_e4m3fn": DS_E4M3FN,
    "float8_e4m3": DS_E4M3,
    "float8_e3m4": DS_E3M4,
    "float8_e4m3fnuz": DS_E4M3FNUZ,
    "float8_e5m2fnuz": DS_E5M2FNUZ,
    "float8_e4m3b11fnuz": DS_E4M3B11FNUZ,
    "float8_e8m0fnu": DS_E8M0FNU,
    "hifloat8": DS_HIF8,
}

cdef enum:
    TO_FLOAT, FROM_FLOAT, TO_ODD, UNPACK4, PACK4, UNPACK1, PACK1

cdef int64_t SLAB = 4 << 20  # elements between two checks for signals; a multiple of 8


cdef void step(
    int what, int kind, char *out, const char *src, int64_t at, int64_t n, int size, int level
) noexcept nogil:
    """Convert elements at..at+n; `size` is the bytes of a code."""
    if what == TO_FLOAT:
        ds_cast_to_float(kind, <float *>out + at, src + at * size, n, level)
    elif what == FROM_FLOAT:
        ds_cast_from_float(kind, out + at * size, <const float *>src + at, n, level)
    elif what == TO_ODD:
        ds_cast_to_odd(<float *>out + at, <const double *>src + at, n, level)
    elif what == UNPACK4:
        ds_cast_unpack4(<int8_t *>out + at, <const uint8_t *>src + at // 2, n, level)
    elif what == PACK4:
        ds_cast_pack4(<uint8_t *>out + at // 2, <const int8_t *>src + at, n, level)
    elif what == UNPACK1:
        ds_cast_unpack1(<uint8_t *>out + at, <const uint8_t *>src + at // 8, n, level)
    else:
        ds_cast_pack1(<uint8_t *>out + at // 8, <const uint8_t *>src + at, n, level)


cdef int run(int what, int kind, dst, src, int64_t n, int64_t dst_bits, int64_t src_bits, int level) except -1:
    """Convert n elements of the given numbers of bits, after checking both sizes."""
    cdef Py_buffer to, source
    cdef int64_t at = 0, part
    cdef int size = 2 if kind <= DS_BF16 else 1
    if n < 0 or n > (<int64_t>1 << 56):
        raise ValueError(f"{n} elements")
    PyObject_GetBuffer(dst, &to, PyBUF_WRITABLE)
    try:
        PyObject_GetBuffer(src, &source, PyBUF_SIMPLE)
        try:
            if to.len != (n * dst_bits + 7) // 8 or source.len != (n * src_bits + 7) // 8:
                raise ValueError(f"{n} elements do not go from {source.len} to {to.len} bytes")
            while at < n:
                part = min(SLAB, n - at)
                with nogil:
                    step(what, kind, <char *>to.buf, <const char *>source.buf, at, part, size, level)
                at += part
                PyErr_CheckSignals()
        finally:
            PyBuffer_Release(&source)
    finally:
        PyBuffer_Release(&to)
    return 0


cdef int bits(int kind) except -1:
    if not 0 <= kind < DS_FLOATS:
        raise ValueError(f"no float of kind {kind}")
    return 16 if kind <= DS_BF16 else 8


def to_float(dst, src, int64_t n, int kind, int level):
    """Convert codes to float32."""
    run(TO_FLOAT, kind, dst, src, n, 32, bits(kind), level)


def from_float(dst, src, int64_t n, int kind, int level):
    """Convert float32 to codes."""
    run(FROM_FLOAT, kind, dst, src, n, bits(kind), 32, level)


def to_odd(dst, src, int64_t n, int level):
    """Convert float64 to float32, rounding to odd."""
    run(TO_ODD, 0, dst, src, n, 32, 64, level)


def unpack4(dst, src, int64_t n, int level):
    """Unpack int4, low nibble first, to int8."""
    run(UNPACK4, 0, dst, src, n, 8, 4, level)


def pack4(dst, src, int64_t n, int level):
    """Pack the low nibbles of int8, two in a byte."""
    run(PACK4, 0, dst, src, n, 4, 8, level)


def unpack1(dst, src, int64_t n, int level):
    """Unpack uint1, most significant bit first, to uint8."""
    run(UNPACK1, 0, dst, src, n, 8, 1, level)


def pack1(dst, src, int64_t n, int level):
    """Pack the low bits of uint8, eight in a byte."""
    run(PACK1, 0, dst, src, n, 1, 8, level)
