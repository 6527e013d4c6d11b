# What is C here: the hash functions and the lanes (src/digest.c). What is Python: which algorithm, strides, and threads
# (dumpsim.tensor.digest).
#
# The dispatcher guarantees: contiguous buffers of raw bytes, an algorithm of DS_MD5, DS_SHA1 and a level that the CPU
# has (a higher one is lowered, never executed).
"""MD5 and SHA1 of many buffers side by side, or of one stream."""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from "digest.h" nogil:
    int DS_MD5, DS_SHA1

    ctypedef struct ds_stream:
        int algorithm

    ctypedef struct ds_message:
        const uint8_t *data
        uint64_t length
        uint8_t digest[20]

    ctypedef struct ds_batch:
        int64_t count

    void ds_stream_begin(ds_stream *stream, int algorithm, int level)
    void ds_stream_update(ds_stream *stream, const uint8_t *data, uint64_t length)
    void ds_stream_end(ds_stream *stream, uint8_t *digest)
    void ds_batch_begin(ds_batch *batch, ds_message *messages, int64_t count, int algorithm, int level)
    int ds_batch_run(ds_batch *batch, int64_t budget)


cdef enum:
    BUDGET = 1 << 22  # bytes between two checks for signals: a few milliseconds

MD5 = DS_MD5
SHA1 = DS_SHA1


cdef bytes finished(int algorithm, const uint8_t *digest):
    return (<const char *> digest)[:16 if algorithm == DS_MD5 else 20]


def many(list buffers, int algorithm, int level, stop):
    """Return the hex digest of each buffer; raise InterruptedError once `stop` (an Event) is set."""
    cdef Py_ssize_t count = len(buffers), held = 0, i
    cdef Py_buffer *views = NULL
    cdef ds_message *messages = NULL
    cdef ds_batch batch
    cdef int more = 1
    if algorithm != DS_MD5 and algorithm != DS_SHA1:
        raise ValueError(f"unknown algorithm {algorithm}")
    try:
        views = <Py_buffer *> PyMem_Calloc(count + 1, sizeof(Py_buffer))
        messages = <ds_message *> PyMem_Calloc(count + 1, sizeof(ds_message))
        if views == NULL or messages == NULL:
            raise MemoryError()
        for i in range(count):
            PyObject_GetBuffer(buffers[i], &views[i], PyBUF_SIMPLE)
            held = i + 1
            messages[i].data = <const uint8_t *> views[i].buf
            messages[i].length = views[i].len
        ds_batch_begin(&batch, messages, count, algorithm, level)
        while more:
            with nogil:
                more = ds_batch_run(&batch, BUDGET)
            PyErr_CheckSignals()
            if more and stop.is_set():
                raise InterruptedError("digest was stopped")
        return [finished(algorithm, messages[i].digest).hex() for i in range(count)]
    finally:
        for i in range(held):
            PyBuffer_Release(&views[i])
        PyMem_Free(views)
        PyMem_Free(messages)


cdef class Stream:
    """An incremental digest."""

    cdef ds_stream stream
    cdef int algorithm

    def __cinit__(self, int algorithm, int level):
        if algorithm != DS_MD5 and algorithm != DS_SHA1:
            raise ValueError(f"unknown algorithm {algorithm}")
        self.algorithm = algorithm
        ds_stream_begin(&self.stream, algorithm, level)

    def update(self, buffer):
        """Add the bytes of a buffer."""
        cdef Py_buffer view
        cdef int64_t done = 0, step
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            while done < view.len:
                step = min(<int64_t> view.len - done, <int64_t> BUDGET)
                with nogil:
                    ds_stream_update(&self.stream, <const uint8_t *> view.buf + done, step)
                done += step
                PyErr_CheckSignals()
        finally:
            PyBuffer_Release(&view)

    def hexdigest(self):
        """Return the hex digest of all bytes so far; more bytes can be added afterwards."""
        cdef ds_stream copy = self.stream
        cdef uint8_t digest[20]
        ds_stream_end(&copy, digest)
        return finished(self.algorithm, digest).hex()
