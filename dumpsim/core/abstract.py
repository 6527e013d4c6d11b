"""Types of the values of a graph, known before it runs: number type, shape, structure.

These are the types that MindSpore's IR prints after every node. [spec mindspore 8.3]
"""

from dataclasses import dataclass, field
from typing import Any

from dumpsim.core.dtype import DType

__all__ = [
    "Abstract",
    "FunctionType",
    "MonadType",
    "NoneType",
    "ObjectType",
    "ScalarType",
    "StringType",
    "TensorType",
    "TupleType",
    "TypeType",
    "tensors_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorType:
    """A tensor; ``ref_key`` names the Parameter that it refers to.

    Attributes
    ----------
    dtype : DType
    shape : tuple of int
        Host shape; -1 for a dimension that is known only at run time.
    ref_key : str or None
        Name of the Parameter for ``Ref[Tensor[...]]``.
    inplace : bool
        The Parameter is written by an operator of its graph (printed as ``is_inplace``).
    constant : bool
        The value is known at compile time (printed as ``value=...``).
    value : tuple or int, optional
        The integers of a small constant, for operators whose output shape depends on them; not part of the type.
    """

    dtype: DType
    shape: tuple[int, ...]
    ref_key: str | None = None
    inplace: bool = False
    constant: bool = False
    value: Any = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        """Number of elements."""
        total = 1
        for dim in self.shape:
            total *= dim
        return total

    @property
    def nbytes(self) -> int:
        """Bytes of the elements in memory."""
        return self.dtype.nbytes(self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarType:
    """A host number (``<Int64, NoShape>``); `value` is None if it is known only at run time."""

    dtype: DType
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StringType:
    """A host string."""

    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeType:
    """A number type as a value (the dst_type of Cast)."""

    value: DType | None = None


@dataclass(frozen=True, slots=True)
class NoneType:
    """The value None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonadType:
    """The token that orders side effects: kind ``U`` (memory) or ``IO``."""

    kind: str = "U"


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function of the graph."""


@dataclass(frozen=True, slots=True)
class ObjectType:
    """An object of the compiler: ``EnvType`` (gradients by weight) or ``SymbolicKey`` (the key of one weight)."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleType:
    """A tuple (or list) of values; `value` is the Python tuple if all items are constant.

    `counted` is true if the IR text marks each item as used, as it does for constants.
    """

    items: tuple["Abstract", ...]
    value: Any = None
    counted: bool = False


Abstract = (
    TensorType | ScalarType | StringType | TypeType | NoneType | MonadType | FunctionType | ObjectType | TupleType
)


def tensors_of(abstract: Abstract) -> tuple[TensorType, ...]:
    """Return the tensors of a value; tuples are flattened in order.

    Examples
    --------
    >>> from dumpsim.core.dtype import dtype
    >>> t = TensorType(dtype=dtype("float32"), shape=(2, 3))
    >>> [a.shape for a in tensors_of(TupleType(items=(t, TupleType(items=(t,)))))]
    [(2, 3), (2, 3)]
    """
    if isinstance(abstract, TensorType):
        return (abstract,)
    if isinstance(abstract, TupleType):
        return tuple(t for item in abstract.items for t in tensors_of(item))
    return ()
