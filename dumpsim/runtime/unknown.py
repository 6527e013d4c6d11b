"""A tensor on the host whose values were not computed."""

from typing import Any, NoReturn, TypeAlias, Union

import numpy as np

from dumpsim.core.errors import UnknownValueError

__all__ = ["HostArray", "Unknown", "shape_of"]


class Unknown:
    """The type and shape of an array without its values; reading the values raises.

    Parameters
    ----------
    name : str
        Name of the tensor, for the error.
    dtype : numpy.dtype
    shape : tuple of int

    Examples
    --------
    >>> loss = Unknown("Default/Loss-op3", np.dtype("float32"), ())
    >>> loss.copy().shape
    ()
    >>> float(loss)
    Traceback (most recent call last):
    ...
    dumpsim.core.errors.UnknownValueError: Default/Loss-op3: the values of a tensor of shape () (float32) are not \
known: the engine computes none [DS-ENG-001]
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name: str, dtype: "np.dtype[Any]", shape: tuple[int, ...]) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that the elements would take."""
        count = self.dtype.itemsize
        for extent in self.shape:
            count *= extent
        return count

    def copy(self) -> "Unknown":
        """Return the object itself: there is nothing to copy."""
        return self

    def astype(self, dtype: Any, copy: bool = True) -> "Unknown":
        """Return the same tensor with another number type."""
        return Unknown(self.name, np.dtype(dtype), self.shape)

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise the error for a read."""
        raise UnknownValueError(
            f"the values of a tensor of shape {self.shape} ({self.dtype}) are not known: the engine computes none",
            where=self.name,
        )

    __array__ = __bool__ = __float__ = __int__ = __index__ = __getitem__ = __iter__ = __len__ = refuse

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # numpy, copy and pickle look for protocols
            raise AttributeError(attribute)
        self.refuse()


# a tensor on the host
HostArray: TypeAlias = Union["np.ndarray[Any, Any]", Unknown]


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array, a number or an unknown tensor."""
    return value.shape if isinstance(value, Unknown) else tuple(np.shape(value))
