"""``mindspore.Parameter`` and ``ParameterTuple``."""

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.frontends.mindspore._checkparam import check_non_negative_int
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._initializers import initializer_of
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.world.context import RankContext, current

__all__ = ["PARAMETER_NAME_DEFAULT", "Parameter", "ParameterTuple"]

PARAMETER_NAME_DEFAULT = "Parameter"
_PREFIX_LENGTH = 1024


@dataclass(slots=True)
class _Numbers:
    """The numbers of unnamed Parameters."""

    free: Iterator[int] = field(default_factory=lambda: count(1))


class _Values:
    """This rank's values of Parameters created by another rank."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Parameter], Any]] = {}

    def get(self, parameter: "Parameter") -> Any:
        """Return the rank's own value, on first use a copy of the creator's value."""
        entry = self._entries.get(id(parameter))
        if entry is None or entry[0]() is not parameter:
            value = parameter._made
            return self.put(parameter, None if value is None else value.copy())
        return entry[1]

    def put(self, parameter: "Parameter", array: Any) -> Any:
        """Set and return the rank's own value."""
        self._entries[id(parameter)] = weakref.ref(parameter, partial(self._drop, id(parameter))), array
        return array

    def _drop(self, key: int, gone: "weakref.ref[Parameter]") -> None:
        self._entries.pop(key, None)


class Parameter(Tensor):
    """A named Tensor that is changed by training.

    Parameters
    ----------
    default_input : Tensor, numpy.ndarray, number, list
        The initial value; a Tensor with an initializer is filled immediately.
    name : str, optional
        Name; inside a cell, the path of attributes determines it.
    requires_grad : bool
        Whether `Cell.trainable_params` lists it.
    layerwise_parallel, parallel_optimizer : bool
        Stored as attributes, and used by parallel training only.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        As in MindSpore, with its messages.

    Examples
    --------
    >>> Parameter(Tensor([1.0, 2.0]), name="w")
    Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)
    """

    _made: Any = None  # the value in the rank that made the Parameter
    _maker: "weakref.ref[RankContext] | None" = None
    _cloned_from: str = ""  # name of the original if this is a clone
    _layout: TensorLayout | None = None  # over the devices, after a split network has used it
    _plan: tuple[int, ...] | TensorLayout | None = None  # slicing requested by the script

    def __init__(
        self,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device: str | None = None,
    ) -> None:
        if isinstance(default_input, Tensor) and default_input.has_init:
            default_input.init_data()
        self._hold(default_input)
        self._name = PARAMETER_NAME_DEFAULT
        self._number = next(current().get(_Numbers).free)
        self._set_name(name)
        self._requires_grad = _checked_bool("requires_grad", requires_grad)
        self.layerwise_parallel = layerwise_parallel
        self._comm_fusion = 1
        self.parallel_optimizer = parallel_optimizer
        self.storage_format = storage_format
        self.unique = False  # the vendor shadows Tensor.unique too
        self.sliced = False
        self.cache_enable = False
        self.is_init = False  # only a script sets it [observed 2.10]
        self._cast_type: Any = None

    @property
    def _array(self) -> Any:
        """The value in the current rank: each rank has its own, initially that of the rank that created it."""
        rank = current()
        return self._made if self._maker is None or rank is self._maker() else rank.get(_Values).get(self)

    @_array.setter
    def _array(self, array: Any) -> None:
        rank = current()
        if self._maker is None:
            self._maker = weakref.ref(rank)
        if rank is self._maker():
            self._made = array
        else:
            rank.get(_Values).put(self, array)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; for a Parameter split over devices, the shape of this rank's part."""
        array = self._array if self._layout is not None and capturing() is None else None
        return self._shape if array is None else tuple(array.shape)

    def _slice(self, layout: TensorLayout, rank: int) -> None:
        """Reduce the value to this rank's part."""
        if self._layout not in (None, layout):
            raise UnsupportedError(
                f"Parameter {self.name!r} is sliced into {layout.cuts} by this network, but into "
                f"{self._layout.cuts} by another one",
                where="the layout of a Parameter",
            )
        self._layout = layout
        array = self._array
        if array is not None and tuple(array.shape) == layout.shape != layout.slice_shape:
            self._array = np.ascontiguousarray(array[layout.region(rank)])
            self.sliced = True

    def __deepcopy__(self, memo: dict[int, Any]) -> "Parameter":
        twin = super().__deepcopy__(memo)
        assert isinstance(twin, Parameter)
        value, twin._maker = twin._array, None
        twin._array = value  # the copy belongs to this rank
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_maker": None, "_made": self._array}

    def _hold(self, data: Any) -> None:
        if isinstance(data, bool):
            raise ScriptValueError("Parameter data can not be `bool`")
        if isinstance(data, int):
            super().__init__(data, mstype.int32)
        elif isinstance(data, float):
            super().__init__(data, mstype.float32)
        elif isinstance(data, (Tensor, np.ndarray, list, tuple)):
            super().__init__(data)
        else:
            raise ScriptTypeError(
                "For Parameter, the argument `default_input` must be "
                f"['Tensor', 'int', 'float', 'numpy.ndarray', 'list']. But got type {type(data)}."
            )

    def _set_name(self, name: Any) -> None:
        if name is None:
            return
        if not isinstance(name, str):
            raise ScriptValueError(
                f"The type of the Parameter's name should be 'string' or 'None', but got {type(name)}."
            )
        name = name.strip()
        if not name or len(name) > _PREFIX_LENGTH:
            raise ScriptValueError(
                f"The length of the '{name}' name should be less than {_PREFIX_LENGTH} and greater than 0."
            )
        self._name = name

    @property
    def name(self) -> str:
        """The name; ``Parameter#N`` for an unnamed Parameter.

        Examples
        --------
        >>> Parameter(1, name=" w ").name
        'w'
        """
        if self._name == PARAMETER_NAME_DEFAULT:
            return f"{PARAMETER_NAME_DEFAULT}#{self._number}"
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        self._set_name(value)

    @property
    def is_named(self) -> bool:
        """Whether the script or a cell has set a name."""
        return self._name != PARAMETER_NAME_DEFAULT

    @property
    def requires_grad(self) -> bool:
        """Whether the parameter is trained."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._requires_grad = _checked_bool("requires_grad", value)

    @property
    def comm_fusion(self) -> int:
        """The fusion number of the AllReduce of the gradient; equal numbers are fused, except for 0."""
        return self._comm_fusion

    @comm_fusion.setter
    def comm_fusion(self, value: int) -> None:
        self._comm_fusion = check_non_negative_int(value)

    @property
    def data(self) -> "Parameter":
        """The parameter itself."""
        return self

    def value(self) -> Tensor:
        """Return the current value as a separate Tensor."""
        return Tensor(self)

    def asnumpy(self) -> "np.ndarray[Any, Any]":
        """Return a copy of the elements, since training changes the parameter in place."""
        return self._values("asnumpy").copy()

    numpy = asnumpy

    def set_data(self, data: Any, slice_shape: bool = False) -> "Parameter":
        """Set the value to `data`, cast to the parameter's type.

        Parameters
        ----------
        data : Tensor, int or float
            Another shape replaces that of the Parameter.
        slice_shape : bool
            Makes no difference, as in MindSpore 2.10.

        Raises
        ------
        ScriptTypeError
            For data of another kind.

        Examples
        --------
        >>> Parameter(Tensor([1.0, 2.0]), name="w").set_data(Tensor([3.0, 4.0])).asnumpy()
        array([3., 4.], dtype=float32)
        """
        if not isinstance(data, (Tensor, int, float)) or isinstance(data, bool):
            raise ScriptTypeError(
                f"Parameter data must be [`Tensor`, `int`, `float`] or a kind of `Tensor` "
                f"(like `Tensor`). But with type {type(data)}."
            )
        if isinstance(data, float) and self._dtype.kind in ("int", "uint"):
            raise ScriptTypeError(
                "Incoming Parameter dtype can not be converted to current dtype implicitly. Current dtype is "
                f"{self._dtype.title}, and incoming is Float. Use .set_dtype(xxx) to change the dtype."
            )
        if isinstance(data, Tensor) and data.has_init:
            data.init_data()
        array = data._values("set_data") if isinstance(data, Tensor) else data
        self._take(np.array(array, dtype=self._dtype.numpy, order="C"))
        return self

    def assign_value(self, value: Tensor) -> "Parameter":
        """Alias of `set_data`."""
        return self.set_data(value)

    def init_data(self, layout: Any = None, set_sliced: bool = False) -> "Parameter":  # type: ignore[override]
        """Return the parameter itself, which is filled when it is created."""
        return self

    def clone(self, init: Any = "same") -> "Parameter":
        """Create a parameter with the same name, shape and type.

        Parameters
        ----------
        init : str, number, Initializer or Tensor
            ``"same"`` copies the value, anything else initializes it.

        Examples
        --------
        >>> Parameter(Tensor([1.0, 2.0]), name="w").clone("zeros").asnumpy()
        array([0., 0.], dtype=float32)
        """
        if isinstance(init, str) and init == "same":
            data = Tensor(self)
        else:
            if isinstance(init, Tensor):
                data = Tensor(init)
            else:
                data = Tensor._around(initializer_of(init).array(self._shape, self._dtype))
        twin = Parameter(data, requires_grad=self.requires_grad, layerwise_parallel=self.layerwise_parallel)
        twin._name = self._name
        twin.parallel_optimizer = self.parallel_optimizer
        twin._comm_fusion = self._comm_fusion
        twin._cloned_from = self.name
        return twin

    def copy(self) -> "Parameter":
        """Clone the parameter with the same value."""
        return self.clone()

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={self._shape}, dtype={self._dtype.title}, "
            f"requires_grad={self.requires_grad})"
        )

    __str__ = __repr__


def _checked_bool(what: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ScriptTypeError(f"The argument `{what}` must be bool type, but got {type(value)}.")
    return value


class ParameterTuple(tuple[Parameter, ...]):
    """A tuple of Parameters with different names.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For members that are not Parameters, and for repeated names.

    Examples
    --------
    >>> [p.name for p in ParameterTuple([Parameter(1, name="w")]).clone("moments", "zeros")]
    ['moments.w']
    """

    __slots__ = ()

    def __new__(cls, iterable: Iterable[Parameter]) -> "ParameterTuple":
        members = tuple(iterable)
        names: set[str] = set()
        for member in members:
            if not isinstance(member, Parameter):
                raise ScriptTypeError(
                    "For ParameterTuple initialization, ParameterTuple input should be 'Parameter' collection, "
                    f"but got a {type(iterable)}."
                )
            if member.is_named and member.name in names:
                raise ScriptValueError(
                    f"The value {member} , its name '{member.name}' already exists. "
                    "Please set a unique name for the parameter."
                )
            names.add(member.name)
        return tuple.__new__(cls, members)

    def clone(self, prefix: str, init: Any = "same") -> "ParameterTuple":
        """Clone the members, with names ``prefix.name``."""
        twins = []
        for member in self:
            twin = member.clone(init)
            twin.name = f"{prefix}.{member.name}"
            twins.append(twin)
        return ParameterTuple(twins)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.parameter", name)
