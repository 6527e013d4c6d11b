"""Copies of rectangular regions between two strided buffers.

What is C here: the copy itself (`src/layout.c`). What is Cython: buffers, bounds, slabs, the GIL. What is Python: which
regions a layout has (`dumpsim.tensor.layout`), which is also what guarantees that regions do not write over each other.

Nothing is trusted: every region is checked against both buffers before one byte moves, so that a wrong plan is an
IndexError and never a stray write.
"""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

from dumpsim._ext.common cimport ds_cpu_level

cdef extern from "layout.h" nogil:
    enum:
        DS_MAX_DIMS
    ctypedef struct ds_dim:
        int64_t n
        int64_t d
        int64_t s
    ctypedef struct ds_job:
        int64_t units
        int64_t unit_bytes
    int ds_layout_plan(ds_job *job, const ds_dim *dim, int ndim, int esize, int level, int stream) noexcept
    void ds_layout_run(const ds_job *job, char *dst, const char *src, int64_t begin, int64_t end) noexcept

MAX_DIMS = DS_MAX_DIMS

cdef int64_t SLAB = 16 << 20  # bytes between two checks of signals and of the stop flag


cdef int64_t FAR = 1 << 58  # bytes: no buffer is as large, and the sum of all spans of a region does not overflow


cdef int64_t span(int64_t n, int64_t stride) except? -1:
    """Return the distance between the first and the last of n > 0 elements; raise if no buffer can be that large."""
    if not -FAR <= stride <= FAR or (stride != 0 and n - 1 > FAR // (stride if stride > 0 else -stride)):
        raise IndexError(f"{n} elements {stride} bytes apart are farther apart than any buffer is long")
    return (n - 1) * stride


cdef void extent(Py_buffer *view, int64_t *low, int64_t *high) noexcept:
    """Set the byte range that the buffer's elements cover, relative to its pointer."""
    cdef int k
    low[0] = 0
    high[0] = view.itemsize
    for k in range(view.ndim):
        if view.shape[k] == 0:
            high[0] = 0
            low[0] = 0
            return
        if view.strides[k] < 0:
            low[0] += (view.shape[k] - 1) * view.strides[k]
        else:
            high[0] += (view.shape[k] - 1) * view.strides[k]


cdef int check(int64_t start, int64_t low, int64_t high, int64_t first, int64_t last, int esize, str side) except -1:
    """Raise unless a region that spans first..last around start lies inside the buffer."""
    if not -FAR <= start <= FAR:
        raise IndexError(f"region starts at byte {start} of the {side}, which has {low}..{high}")
    if start + first < low or start + last + esize > high:
        raise IndexError(
            f"region covers bytes {start + first}..{start + last + esize} of the {side}, which has {low}..{high}"
        )
    return 0


cdef int run(Py_buffer *dst, Py_buffer *src, int esize, list regions, int part, int parts, int level, int stream,
             const unsigned char *stop) except -1:
    """Copy part `part` of `parts` of every region; strides in `regions` are counted in elements."""
    cdef ds_job job
    cdef ds_dim dim[DS_MAX_DIMS]
    cdef int64_t dst_low, dst_high, src_low, src_high
    cdef int64_t dst_at, src_at, dst_first, dst_last, src_first, src_last, begin, end, slab, up_to, count
    cdef int ndim, k
    cdef bint empty
    cdef char *to
    cdef const char *source
    extent(dst, &dst_low, &dst_high)
    extent(src, &src_low, &src_high)
    for dst_start, src_start, axes in regions:
        ndim = len(axes)
        if ndim > DS_MAX_DIMS:
            raise ValueError(f"region has {ndim} axes, at most {DS_MAX_DIMS} are possible")
        dst_at = dst_start * esize
        src_at = src_start * esize
        dst_first = dst_last = src_first = src_last = 0
        empty = False
        count = 1
        for k in range(ndim):
            n, d, s = axes[k]
            dim[k].n = n
            dim[k].d = d * esize
            dim[k].s = s * esize
            if dim[k].n <= 0:
                empty = True
                break
            if dim[k].n > FAR // count:  # even with strides of 0, so many copies are an error
                raise IndexError(f"region has more than {FAR} elements")
            count *= dim[k].n
            if dim[k].d < 0:
                dst_first += span(dim[k].n, dim[k].d)
            else:
                dst_last += span(dim[k].n, dim[k].d)
            if dim[k].s < 0:
                src_first += span(dim[k].n, dim[k].s)
            else:
                src_last += span(dim[k].n, dim[k].s)
        if empty:
            continue
        check(dst_at, dst_low, dst_high, dst_first, dst_last, esize, "destination")
        check(src_at, src_low, src_high, src_first, src_last, esize, "source")
        if ds_layout_plan(&job, dim, ndim, esize, level, stream) != 0:
            raise ValueError(f"no copy for elements of {esize} bytes")
        to = <char *>dst.buf + dst_at
        source = <const char *>src.buf + src_at
        begin = job.units * part // parts
        end = job.units * (part + 1) // parts
        slab = max(1, SLAB // max(1, job.unit_bytes))
        while begin < end:
            up_to = min(end, begin + slab)
            with nogil:
                ds_layout_run(&job, to, source, begin, up_to)
            begin = up_to
            PyErr_CheckSignals()
            if stop != NULL and stop[0]:
                return 0
    return 0


def copy(dst, src, int itemsize, list regions, *, int part=0, int parts=1, int level=-1, int stream=-1,
         stop=None):
    """Copy regions `(dst_offset, src_offset, ((n, dst_stride, src_stride), ...))`, all counted in elements.

    Parameters
    ----------
    dst, src : buffer
        Writable and readable buffer with elements of `itemsize` bytes; strides may be anything.
    itemsize : int
        1, 2, 4 or 8.
    regions : list of tuple
        What to copy. Regions, and parts of one region, write disjoint elements.
    part, parts : int
        Do only this share of the work, so that threads can divide it.
    level : int
        0 baseline, 1 AVX2, 2 AVX-512 (the same code as 1); -1 the best that this CPU has.
    stream : int
        Whether stores bypass the cache: 0 never, 1 wherever possible, -1 if the region is large.
    stop : bytearray, optional
        Work ends soon after its first byte becomes non-zero.
    """
    cdef Py_buffer to, source, flag
    cdef bint have_flag = stop is not None
    cdef int best = ds_cpu_level()
    if not 0 <= part < parts:
        raise ValueError(f"part {part} of {parts}")
    if level > best:
        raise ValueError(f"level {level} is not on this CPU, which has 0..{best}")
    PyObject_GetBuffer(dst, &to, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE)
    try:
        PyObject_GetBuffer(src, &source, PyBUF_STRIDES | PyBUF_FORMAT)
        try:
            if to.itemsize != itemsize or source.itemsize != itemsize:
                raise ValueError(f"buffers have elements of {to.itemsize} and {source.itemsize} bytes, not {itemsize}")
            if have_flag:
                PyObject_GetBuffer(stop, &flag, PyBUF_STRIDES)
            try:
                run(&to, &source, itemsize, regions, part, parts, best if level < 0 else level, stream,
                    <const unsigned char *>flag.buf if have_flag else NULL)
            except OverflowError:
                raise IndexError("region has an offset, an extent or a stride of more than 64 bits") from None
            finally:
                if have_flag:
                    PyBuffer_Release(&flag)
        finally:
            PyBuffer_Release(&source)
    finally:
        PyBuffer_Release(&to)
