"""``mindspore.Tensor``."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import CaptureError, ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._extent import shown
from dumpsim.frontends.mindspore._listener import observed_methods
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._format import tensor_text
from dumpsim.frontends.mindspore.common._initializers import Initializer, initializer_of
from dumpsim.frontends.mindspore.common._methods import TensorMethods
from dumpsim.runtime.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["Tensor", "is_tensor"]

_DATA = "['TensorPy', 'Tensor', 'ndarray', 'str_', 'list', 'tuple', 'float', 'int', 'bool', 'complex', 'bytes']"
_TYPES = ", ".join(repr(t) for t in (*mstype.number_type, mstype.bool_))


@observed_methods(("__bool__", "item"))
class Tensor(TensorMethods):
    """An array with a MindSpore number type; during capture, a value of the graph.

    Parameters
    ----------
    input_data : Tensor, numpy.ndarray, list, tuple, number, optional
        The elements. Python floats become Float32, Python ints Int64; numpy arrays keep their type.
    dtype : number type, optional
        Type of the elements.
    shape : tuple, list or int, optional
        Shape of a tensor created by `init`.
    init : Initializer or str, optional
        Fills the tensor when `init_data` is called.
    const_arg : bool
        Treat the tensor as a constant if it is an argument of a network.
    device : str, optional
        Ignored for tensors on the host, as in MindSpore.

    Raises
    ------
    ScriptTypeError
        For data or a type that MindSpore refuses, with its message.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore.common import dtype as mstype
    >>> Tensor([[1.0, 2.0]])
    Tensor(shape=[1, 2], dtype=Float32, value=
    [[ 1.00000000e+00,  2.00000000e+00]])
    >>> Tensor([1, 2], mstype.float16).asnumpy()
    array([1., 2.], dtype=float16)
    """

    __array_priority__ = 1000  # numpy leaves `array + tensor` to the tensor

    _array: "np.ndarray[Any, Any] | None" = None  # may be an `Unknown` on an engine without values
    _symbol: Any = None
    _dtype: DType
    _shape: tuple[int, ...]

    init: Initializer | None = None
    const_arg = False

    def __init__(
        self,
        input_data: Any = None,
        dtype: DType | None = None,
        shape: Sequence[int] | int | None = None,
        init: Any = None,
        const_arg: bool = False,
        device: str | None = None,
    ) -> None:
        self._symbol = None
        self.const_arg = const_arg
        if isinstance(input_data, Tensor) and input_data._symbol is not None:
            self._array, self._symbol = None, input_data._symbol
            self._dtype, self._shape = input_data._dtype, input_data._shape
            return
        if dtype is not None:
            _check_dtype(dtype)
        if init is not None and (shape is None or dtype is None):
            raise ScriptValueError("init, dtype and shape must have values at the same time.")
        shape = (shape,) if isinstance(shape, int) else shape
        if input_data is not None and shape is not None:
            raise ScriptValueError(
                f"When initializing a tensor with 'input_data', 'shape' should be set to None.But got shape: {shape}."
            )
        if init is not None and _is_open(shape):
            raise ScriptValueError("If setting dynamic shape, dtype must not be None, init must be None")
        if input_data is None and dtype is not None and init is None and _is_open(shape):
            # only the type of a network's argument, for `set_inputs`
            self._array, self._dtype = None, mstype.type_of(dtype)
            self._shape = tuple(-1 if extent is None else extent for extent in shape)  # type: ignore[union-attr]
            return
        if input_data is None:
            array = self._empty(dtype, shape, init)
        else:
            array = _array_of(input_data, dtype)
        self._take(array)

    def _empty(self, dtype: Any, shape: Any, init: Any) -> "np.ndarray[Any, Any]":
        if shape is None or dtype is None:
            raise ScriptTypeError(
                f"For 'Tensor', the type of 'input_data' should be one of '{_DATA}', but got type 'NoneType'."
            )
        if init is not None:
            self.init = initializer_of(init)
        return np.zeros(tuple(shape), mstype.type_of(dtype).numpy)

    def _take(self, array: "np.ndarray[Any, Any]") -> None:
        """Use `array` without a copy."""
        self._array = array
        self._dtype = mstype.type_of(array.dtype)
        self._shape = tuple(array.shape)

    @classmethod
    def _around(cls, array: "np.ndarray[Any, Any]") -> "Tensor":
        """Create a Tensor from an array, without a copy."""
        tensor = Tensor.__new__(Tensor)
        tensor._take(array)
        return tensor

    def _values(self, use: str) -> "np.ndarray[Any, Any]":
        """Return the array; during capture, raise an error that names the method `use`."""
        if self._array is None:
            raise CaptureError(
                f"the values of a Tensor of shape {self._shape} are unknown while a graph is compiled",
                where=f"Tensor.{use}",
            )
        if isinstance(self._array, Unknown):
            self._array.refuse()
        return self._array

    @property
    def dtype(self) -> mstype.Number:
        """Number type of the elements."""
        return mstype.number(self._dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents; during capture, those that `set_inputs` leaves open have no value."""
        return shown(self._shape) if self._symbol is not None else self._shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        total = 1
        for extent in self._shape:
            total *= extent
        return total

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        steps, step = [], self.itemsize
        for extent in reversed(self._shape):
            steps.append(step)
            step *= extent
        return tuple(reversed(steps))

    @property
    def has_init(self) -> bool:
        """Whether the tensor still has to be filled by its initializer."""
        return self.init is not None

    def init_data(self, slice_index: int | None = None, shape: Any = None, opt_shard_group: Any = None) -> "Tensor":
        """Fill the tensor by its initializer, and return it.

        Examples
        --------
        >>> from dumpsim.frontends.mindspore.common import dtype as mstype
        >>> Tensor(shape=(2,), dtype=mstype.float32, init="ones").init_data().asnumpy()
        array([1., 1.], dtype=float32)
        """
        if self.init is None:
            raise ScriptTypeError("init_data must be set Tensor.init, init can't be None")
        array = self.init.array(self._shape, self._dtype)
        self.init = None
        self._take(array)
        return self

    def asnumpy(self) -> "np.ndarray[Any, Any]":
        """Return the elements as a numpy array that shares the tensor's memory, as in MindSpore.

        Examples
        --------
        >>> Tensor([1, 2]).asnumpy()
        array([1, 2])
        """
        values = self._values("asnumpy")
        if not values.flags.writeable:  # several ranks share the result of a collective
            values = self._array = values.copy()
        return values.view("int8") if values.dtype.names else values  # pairs of int4 [observed 2.10]

    numpy = asnumpy

    @staticmethod
    def from_numpy(array: "np.ndarray[Any, Any]") -> "Tensor":
        """Create a Tensor that shares the array's memory.

        Examples
        --------
        >>> Tensor.from_numpy(np.ones(2, np.float32)).dtype
        mindspore.float32
        """
        if not isinstance(array, np.ndarray):
            raise ScriptTypeError("Expected a NumPy array.")
        return Tensor._around(np.ascontiguousarray(array) if array.ndim else array)

    def assign_value(self, value: "Tensor") -> "Tensor":
        """Copy another tensor's elements."""
        self._take(np.array(value._values("assign_value"), order="C"))
        return self

    def set_dtype(self, dtype: DType) -> mstype.Number:
        """Change the number type in place."""
        self._take(_array_of(self._values("set_dtype"), dtype))
        return self.dtype

    def item(self, *index: int) -> Any:
        """Return one element as a Python number.

        Raises
        ------
        ScriptValueError
            If there is more than one element, and no index.

        Examples
        --------
        >>> Tensor([[1.5]]).item()
        1.5
        """
        array = self._values("item")
        if not index and array.size != 1:
            raise ScriptValueError(
                f"The tensor should have only one element, but got {self.size}, more than one element is ambiguous."
            )
        return array.item(*index)

    def tolist(self) -> Any:
        """Return the elements as nested lists."""
        return self._values("tolist").tolist()

    def is_contiguous(self) -> bool:
        """Return True: tensors of the emulation are always contiguous."""
        return True

    def contiguous(self) -> "Tensor":
        """Return the tensor itself, which is contiguous."""
        return self

    def __array__(self, dtype: "DTypeLike | None" = None, copy: bool | None = None) -> "np.ndarray[Any, Any]":
        array = self.asnumpy()
        return np.array(array, dtype=dtype) if copy or dtype is not None else array

    def __bool__(self) -> bool:
        return bool(self._one("__bool__"))

    def __int__(self) -> int:
        return int(self._one("__int__"))

    def __index__(self) -> int:
        value = self._one("__index__")
        if value.dtype.kind not in "iub":
            raise ScriptValueError("Only integer tensors of a single element can be converted to an index.")
        return int(value)

    def __float__(self) -> float:
        return float(self._one("__float__"))

    def __complex__(self) -> complex:
        return complex(self._one("__complex__"))

    def _one(self, use: str) -> Any:
        array = self._values(use)
        if array.size != 1:
            raise ScriptValueError(
                f"The tensor should have only one element, but got {array.size}, more than one element is ambiguous."
            )
        return array.reshape(-1)[0]

    def __len__(self) -> int:
        if not self._shape:
            raise ScriptTypeError("Not support len of a 0-D tensor")
        return self._shape[0]

    def __iter__(self) -> Iterator["Tensor"]:
        if not self._shape:
            raise ScriptTypeError("Cannot iterate over a scalar tensor.")
        return (self[index] for index in range(self._shape[0]))

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        if self._array is None:
            return f"Tensor(shape={list(self._shape)}, dtype={self._dtype.title}, value=<of the graph>)"
        return tensor_text(self.asnumpy(), self._dtype.title)

    def __str__(self) -> str:
        if self._array is None:
            return repr(self)
        return str(self.asnumpy())

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tensor":
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(self.__dict__)
        if self._array is not None:
            twin._array = self._array.copy()
        return twin


def _is_open(shape: Any) -> bool:
    """Whether a shape has extents that are known only when the graph runs."""
    return isinstance(shape, (tuple, list)) and any(extent is None or extent == -1 for extent in shape)


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor.

    Examples
    --------
    >>> is_tensor(Tensor(1)), is_tensor(1)
    (True, False)
    """
    return isinstance(obj, Tensor)


def _check_dtype(dtype: Any) -> None:
    if not isinstance(dtype, DType):
        raise ScriptTypeError(
            f"For 'Tensor', the 'dtype' should be one of [{_TYPES}], but got {dtype} with type {type(dtype)}."
        )


def _array_of(data: Any, dtype: DType | None) -> "np.ndarray[Any, Any]":
    """Make a new C-ordered array from a script's data."""
    wanted = dtype.numpy if dtype is not None else None
    if isinstance(data, Tensor):
        if isinstance(data._array, Unknown):
            return data._array.astype(data._array.dtype if wanted is None else wanted)
        return np.array(data._values("__init__"), dtype=wanted, order="C")
    if isinstance(data, (np.ndarray, np.generic)):
        if data.dtype.kind in "OSU":
            raise ScriptTypeError(f"For Tensor, the input_data is a numpy array with dtype {data.dtype}.")
        return np.array(data, dtype=wanted, order="C")
    if isinstance(data, (bool, int, float, complex)):
        return np.array(data, dtype=wanted if wanted is not None else mstype.type_of(type(data)).numpy)
    if isinstance(data, (list, tuple)):
        return _array_of_list(data, wanted)
    raise ScriptTypeError(
        f"For 'Tensor', the type of 'input_data' should be one of '{_DATA}', but got type '{type(data).__name__}'."
    )


def _array_of_list(data: Any, wanted: Any) -> "np.ndarray[Any, Any]":
    try:
        array = np.array(_plain(data))
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "biufc":
        raise ScriptTypeError(f"For Tensor, the input_data is {data} that contain unsupported element.")
    if wanted is None and array.dtype == np.float64:  # also of numpy's doubles [observed 2.10]
        wanted = np.float32
    return array.astype(wanted, order="C") if wanted is not None else np.ascontiguousarray(array).reshape(array.shape)


def _plain(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_plain(item) for item in data]
    return data._values("__init__") if isinstance(data, Tensor) else data


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.tensor", name)
