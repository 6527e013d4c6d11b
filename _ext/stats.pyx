# What is C here: the loop over chunks and the merge tree (src/stats.c). What is Python: types, byte order, strides,
# threads and the meaning of an empty array (dumpsim.tensor.stats).
#
# The dispatcher guarantees: one contiguous buffer of whole, aligned elements in native byte order; a code below
# DS_DTYPES; a level that the CPU has (a higher one is lowered, never executed).
"""One-pass statistics, and the read loop that benchmarks compare them with."""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t

from dumpsim._ext.common cimport (
    DS_CHUNK, DS_DTYPES, ds_itemsize, ds_measure, ds_read_words, ds_stats, ds_tree, ds_tree_root,
)

CHUNK = DS_CHUNK

cdef enum:
    CHUNKS_PER_SLAB = 32  # a few milliseconds between two checks for signals


def measure(buffer, int dtype, int level):
    """Return (sum, sumsq, max, min, count, negative, zero, nan, positive_inf, negative_inf) of a buffer's elements."""
    cdef Py_buffer view
    cdef ds_tree tree
    cdef ds_stats root
    cdef int64_t n, done = 0, step, itemsize
    cdef const char *data
    if not 0 <= dtype < DS_DTYPES:
        raise ValueError(f"unknown type code {dtype}")
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        itemsize = ds_itemsize(dtype)
        n = view.len // itemsize
        if n * itemsize != view.len:
            raise ValueError(f"{view.len} bytes are not whole elements of {itemsize} bytes")
        data = <const char *> view.buf
        if <size_t> data % itemsize and n:
            raise ValueError("unaligned elements")
        tree.leaves = 0
        while done < n:
            step = min(n - done, <int64_t> DS_CHUNK * CHUNKS_PER_SLAB)
            with nogil:
                ds_measure(&tree, data + done * itemsize, step, dtype, level)
            done += step
            PyErr_CheckSignals()
        root = ds_tree_root(&tree)
    finally:
        PyBuffer_Release(&view)
    return (root.sum, root.sumsq, root.max, root.min, root.count, root.negative, root.zero, root.nan, root.positive_inf,
            root.negative_inf)


def read_words(buffer, int level):
    """Return the OR of all whole 8-byte words of a buffer."""
    cdef Py_buffer view
    cdef uint64_t word
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if <size_t> view.buf % 8:
            raise ValueError("unaligned words")
        with nogil:
            word = ds_read_words(view.buf, view.len // 8, level)
    finally:
        PyBuffer_Release(&view)
    return word
