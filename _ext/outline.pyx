# What is C here: going through the arguments and results of a call, since stack mode does little else. What is Python:
# everything that is not a plain tensor (dumpsim.frontends.apidump.pytorch.session).
#
# The caller guarantees: a thread in which torch asks no override, so that attributes of tensors are what they are.
# This module knows no torch; its types and functions are given.
"""What an API dump says of tensors without looking at their values."""


cdef inline bint is_number_or_none(leaf):
    return leaf is None or type(leaf) is int or type(leaf) is float or type(leaf) is bool


cdef class Outlines:
    """Outlines by type and shape.

    Parameters
    ----------
    plain : frozenset of type
        Types of tensors that are nothing but tensors.
    strided : layout
        The layout of tensors that have bytes of their own.
    wrapped : callable
        Whether a tensor only stands for another.
    spell : callable
        The outline of a type and a shape.
    """

    cdef frozenset plain
    cdef object strided, wrapped, spell
    cdef dict known

    def __init__(self, frozenset plain, strided, wrapped, spell):
        self.plain = plain
        self.strided = strided
        self.wrapped = wrapped
        self.spell = spell
        self.known = {}

    def take(self, str name, value, bint filtered, otherwise):
        """(name, outline, tensor) of `value`, or of each of its members with its position.

        `filtered` drops tensors that are no data and numbers; `otherwise(found, name, leaf)` sees to everything else.
        """
        cdef list found = []
        cdef Py_ssize_t position = 0
        if type(value) is tuple or type(value) is list:
            for leaf in value:
                if type(leaf) in self.plain:
                    self.one(found, f"{name}.{position}", leaf, filtered, otherwise)
                elif not (filtered and is_number_or_none(leaf)):
                    otherwise(found, f"{name}.{position}", leaf)
                position += 1
        elif type(value) in self.plain:
            self.one(found, name, value, filtered, otherwise)
        else:
            otherwise(found, name, value)
        return found

    cdef int one(self, list found, str name, tensor, bint filtered, otherwise) except -1:
        dtype = tensor.dtype
        if filtered and not (dtype.is_floating_point and tensor.dim() and tensor.numel()):
            return 0
        if (
            tensor.layout is not self.strided
            or tensor.is_meta
            or tensor.is_quantized
            or tensor.is_nested
            or self.wrapped(tensor)
        ):
            otherwise(found, name, tensor)
            return 0
        key = (dtype, tensor.shape)
        outline = self.known.get(key)
        if outline is None:
            if len(self.known) > 4096:
                self.known.clear()
            outline = self.known[key] = self.spell(dtype, key[1])
        found.append((name, outline, tensor))
        return 0
