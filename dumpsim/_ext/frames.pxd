"""The stacks of calls, for the recorder."""


cdef class Frames:
    cdef readonly dict kinds, keys
    cdef dict distinct
    cdef public bint changed

    cpdef int put(self, str key, bytes stack) except -1
    cpdef bytes places(self, frame, bint filtered)
