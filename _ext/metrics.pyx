# What is C here: both passes over one block (src/metrics.c). What is Python: types, strides, blocks, threads, the merge
# of blocks and the texts (dumpsim.tensor.metrics).
#
# The dispatcher guarantees: two contiguous buffers of as many aligned float32 elements in native byte order, at least
# one; a level that the CPU has (a higher one is lowered, never executed).
"""Two passes over a pair of float32 blocks, for the metrics that compare two tensors."""

from libc.stdint cimport int64_t


cdef extern from "metrics.h" nogil:
    ctypedef struct dm_side:
        double mean, deviations, squares, low, high

    ctypedef struct dm_moments:
        dm_side own, golden
        double products, absolute, absolute_max, squares, relative, relative_max

    void dm_measure(dm_moments *out, const float *own, const float *golden, int64_t n, int level)
    void dm_diverge(double *out, const float *own, const float *golden, int64_t n, const double *range, int level)


cdef int64_t _count(const float[::1] own, const float[::1] golden) except -1:
    if own.shape[0] != golden.shape[0] or own.shape[0] == 0:
        raise ValueError(f"{own.shape[0]} and {golden.shape[0]} elements")
    return own.shape[0]


def measure(const float[::1] own, const float[::1] golden, int level):
    """Return both sides (mean, deviations, squares, low, high), products, absolute and relative error, their maxima.

    In this order: products, absolute, its maximum, squares, relative, its maximum.
    """
    cdef dm_moments out
    cdef int64_t n = _count(own, golden)
    with nogil:
        dm_measure(&out, &own[0], &golden[0], n, level)
    return ((out.own.mean, out.own.deviations, out.own.squares, out.own.low, out.own.high),
            (out.golden.mean, out.golden.deviations, out.golden.squares, out.golden.low, out.golden.high),
            out.products, out.absolute, out.absolute_max, out.squares, out.relative, out.relative_max)


def diverge(const float[::1] own, const float[::1] golden, double own_low, double own_high, double golden_low,
            double golden_high, int level):
    """Return the sums of x, of y and of x ln(x / y), with the elements scaled to their side's range."""
    cdef double[3] out
    cdef double[4] extent = [own_low, own_high, golden_low, golden_high]
    cdef int64_t n = _count(own, golden)
    with nogil:
        dm_diverge(out, &own[0], &golden[0], n, extent, level)
    return out[0], out[1], out[2]
