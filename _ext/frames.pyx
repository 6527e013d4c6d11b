# What is C here: the walk from a frame outwards, since it is done at every recorded call, and the storage of stacks.
# What is Python: which frames are recorded and how they are written (dumpsim.frontends.apidump.stack).
#
# The caller guarantees: a frame or None. `kinds` maps the id of a code to 0 if its frames are recorded, 1 if they are
# recorded unless filtered, 2 if they are not, and 3 for torch's own dispatch to an override, which is skipped together
# with its caller; `classify` is called once for each new code, stores its kind there, and keeps the code alive.
"""The stack of a call as bytes: id of the code and offset of the instruction, innermost first."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.ref cimport PyObject, Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset


cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        pass
    PyCodeObject *PyFrame_GetCode(PyFrameObject *frame)
    PyFrameObject *PyFrame_GetBack(PyFrameObject *frame)
    int PyFrame_GetLasti(PyFrameObject *frame)


cdef enum:
    FEW = 128  # frames that fit on the C stack


cdef class Frames:
    """The stacks of calls by key; equal stacks are stored once.

    Attributes
    ----------
    kinds : dict of int to int
        The kinds of all codes so far, by id.
    keys : dict of str to bytes
        The stacks.
    changed : bool
        Whether a stack was added since this was set to False.
    """

    def __cinit__(self):
        self.kinds = {}
        self.keys = {}
        self.distinct = {}
        memset(self.met, 0, sizeof(self.met))

    def classify(self, code):
        """Return the kind of a code."""
        raise NotImplementedError

    cpdef int put(self, str key, bytes stack) except -1:
        """Store a stack under a key."""
        self.changed = True
        self.keys[key] = self.distinct.setdefault(stack, stack)
        return 0

    cdef inline int kind(self, int64_t number, code) except -1:
        cdef met_code *met = &self.met[(number >> 4) % MET]
        if met.number != number:
            known = self.kinds.get(number)
            if known is None:
                known = self.classify(code)
            met.kind = known
            met.number = number
        return met.kind

    cpdef bytes places(self, frame, bint filtered):
        """Return the bytes of (id, offset) pairs of int64 from `frame` outwards."""
        cdef int64_t few[2 * FEW]
        cdef int64_t *found = few
        cdef int64_t *more = NULL
        cdef int64_t *larger
        cdef Py_ssize_t count = 0, room = FEW
        cdef PyFrameObject *current = NULL
        cdef PyFrameObject *back
        cdef PyCodeObject *code
        cdef int64_t number
        cdef int kind
        if frame is None:
            return b""
        Py_INCREF(frame)
        current = <PyFrameObject *> frame
        try:
            while current != NULL:
                code = PyFrame_GetCode(current)
                number = <int64_t> <size_t> code
                try:
                    kind = self.kind(number, <object> <PyObject *> code)
                finally:
                    Py_XDECREF(<PyObject *> code)
                if kind == 0 or (kind == 1 and not filtered):
                    if count == room:
                        larger = <int64_t *> realloc(more, 4 * room * sizeof(int64_t))
                        if larger == NULL:
                            raise MemoryError()
                        more = larger
                        if found == few:
                            memcpy(more, few, sizeof(few))
                        found = more
                        room *= 2
                    found[2 * count] = number
                    found[2 * count + 1] = PyFrame_GetLasti(current)
                    count += 1
                back = PyFrame_GetBack(current)
                Py_XDECREF(<PyObject *> current)
                current = back
                if kind == 3 and current != NULL:
                    back = PyFrame_GetBack(current)
                    Py_XDECREF(<PyObject *> current)
                    current = back
            return PyBytes_FromStringAndSize(<char *> found, count * 2 * sizeof(int64_t))
        finally:
            Py_XDECREF(<PyObject *> current)
            free(more)
