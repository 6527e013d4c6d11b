"""The stacks of calls, for the recorder."""

from libc.stdint cimport int64_t


cdef enum:
    MET = 512  # size of the cache of kinds, indexed by the id of a code modulo it


ctypedef struct met_code:
    int64_t number
    int kind


cdef class Frames:
    cdef readonly dict kinds, keys
    cdef dict distinct
    cdef public bint changed
    cdef met_code met[MET]

    cpdef int put(self, str key, bytes stack) except -1
    cpdef bytes places(self, frame, bint filtered)
    cdef int kind(self, int64_t number, code) except -1
