# What is C here: the loops (src/fold.c). What is Python: which types are folded here, orders, 16-bit floats
# (dumpsim.world.reduction).
#
# The dispatcher guarantees: aligned elements in native byte order, contiguous in each row; no term overlaps a total.
"""Left folds of the rows of a matrix into a row of totals."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t


cdef extern from "fold.h" nogil:
    int DF_SUM, DF_PROD, DF_MAX, DF_MIN

    int df_fold_i8(int8_t *total, const int8_t *terms, int64_t rows, int64_t stride, int64_t size, int op)
    int df_fold_i16(int16_t *total, const int16_t *terms, int64_t rows, int64_t stride, int64_t size, int op)
    int df_fold_i32(int32_t *total, const int32_t *terms, int64_t rows, int64_t stride, int64_t size, int op)
    int df_fold_i64(int64_t *total, const int64_t *terms, int64_t rows, int64_t stride, int64_t size, int op)
    int df_fold_f32(float *total, const float *terms, int64_t rows, int64_t stride, int64_t size, int op)


OPS = {"sum": DF_SUM, "prod": DF_PROD, "max": DF_MAX, "min": DF_MIN}

ctypedef fused number:
    int8_t
    int16_t
    int32_t
    int64_t
    float


def left(number[::1] total, const number[:, :] terms, int op):
    """Fold the rows of `terms` into `total`, in order; return True if max or min ignored a NaN."""
    cdef int64_t rows = terms.shape[0], size = terms.shape[1]
    cdef int nan = 0
    cdef int64_t stride = terms.strides[0] // <int64_t> sizeof(number)
    if size != total.shape[0] or (size > 1 and terms.strides[1] != sizeof(number)):
        raise ValueError(f"rows of {size} elements, {terms.strides[1]} bytes apart, for {total.shape[0]} totals")
    if not DF_SUM <= op <= DF_MIN:
        raise ValueError(f"unknown operation {op}")
    if rows == 0 or size == 0:
        return False
    with nogil:
        if number is int8_t:
            nan = df_fold_i8(&total[0], &terms[0, 0], rows, stride, size, op)
        elif number is int16_t:
            nan = df_fold_i16(&total[0], &terms[0, 0], rows, stride, size, op)
        elif number is int32_t:
            nan = df_fold_i32(&total[0], &terms[0, 0], rows, stride, size, op)
        elif number is int64_t:
            nan = df_fold_i64(&total[0], &terms[0, 0], rows, stride, size, op)
        else:
            nan = df_fold_f32(&total[0], &terms[0, 0], rows, stride, size, op)
    return nan != 0
