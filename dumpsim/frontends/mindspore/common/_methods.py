"""The operators and methods of `Tensor`: each calls the function of `ops` with the same name."""

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._api import methods
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._listener import observed_methods, unobserved
from dumpsim.frontends.mindspore._standin import missing_member
from dumpsim.frontends.mindspore.common._overloads import check

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["TensorMethods"]


def _op(name: str) -> "Callable[..., Tensor]":
    """Return a function of ``ops``."""
    function: Callable[..., Tensor] = unobserved(getattr(import_module("dumpsim.frontends.mindspore.ops"), name))
    return function


# method -> its arguments in the other signature, and those of the function that it calls [observed 2.10]
_OTHER_NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "all": MappingProxyType({"dim": "axis", "keepdim": "keep_dims"}),
        "any": MappingProxyType({"dim": "axis", "keepdim": "keep_dims"}),
        "argmin": MappingProxyType({"dim": "axis", "keepdim": "keepdims"}),
        "argsort": MappingProxyType({"dim": "axis"}),
        "chunk": MappingProxyType({"dim": "axis"}),
        "cumsum": MappingProxyType({"dim": "axis"}),
        "diagonal": MappingProxyType({"axis1": "dim1", "axis2": "dim2"}),
        "index_select": MappingProxyType({"dim": "axis"}),
        "isclose": MappingProxyType({"x2": "other"}),
        "logical_and": MappingProxyType({"y": "other"}),
        "logical_or": MappingProxyType({"y": "other"}),
        "matmul": MappingProxyType({"tensor2": "other"}),
        "mean": MappingProxyType({"dim": "axis", "keepdim": "keep_dims"}),
        "narrow": MappingProxyType({"dim": "axis"}),
        "permute": MappingProxyType({"dims": "axis"}),
        "prod": MappingProxyType({"dim": "axis", "keepdim": "keep_dims"}),
        "remainder": MappingProxyType({"divisor": "other"}),
        "sort": MappingProxyType({"dim": "axis"}),
        "split": MappingProxyType({"split_size": "split_size_or_sections", "dim": "axis"}),
        "squeeze": MappingProxyType({"dim": "axis"}),
        "std": MappingProxyType({"dim": "axis", "correction": "ddof", "keepdim": "keepdims"}),
        "unbind": MappingProxyType({"dim": "axis"}),
        "unsqueeze": MappingProxyType({"axis": "dim"}),
        "var": MappingProxyType({"dim": "axis", "correction": "ddof", "keepdim": "keepdims"}),
    }
)


def _renamed(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a method by the names of the function that it calls."""
    other: Mapping[str, str] = _OTHER_NAMES.get(name, {})
    return {other.get(key, key): value for key, value in options.items()}


def _method(name: str) -> Callable[..., Any]:
    """Make a method that passes all its arguments to ``ops.<name>``."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _op(name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"``ops.{name}`` of the tensor."
    return method


def _late(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module of ``ops``, which is imported on first use because it imports Tensor itself."""
    function: Callable[..., Any] = getattr(import_module(f"dumpsim.frontends.mindspore.ops.{module}"), name)
    return function


def is_operand(value: Any) -> bool:
    """Whether an operator of Tensor accepts `value`."""
    return isinstance(value, (TensorMethods, int, float, complex, np.ndarray, np.generic))


def _binary(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """Make an operator; for unknown operands it returns NotImplemented, so that Python tries the other operand."""

    def operator(self: Any, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        function = _late("function.arithmetic", name)
        return function(other, self) if swapped else function(self, other)

    operator.__name__ = name
    operator.__doc__ = f"``ops.{name}``{' with the operands swapped' if swapped else ''}."
    return operator


def _inplace(name: str, operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make ``x += y``: a graph writes the value into `x`, PYNATIVE makes a new tensor."""

    def inplace(self: Any, other: Any) -> Any:
        is_value = self._symbol is not None or type(self).__name__ == "Parameter"
        if capturing() is None or not is_value or not is_operand(other):
            return operator(self, other)
        return _late("_inplace", "written")(name, self, other)

    inplace.__name__ = f"__i{operator.__name__.strip('_')}__"
    inplace.__doc__ = f"``{operator.__name__.strip('_')}``, in a graph in place."
    return inplace


def _divided(self: Any, other: Any) -> Any:
    """``x /= y`` in PYNATIVE: an API dump lists the division that it calls instead."""
    return self / other


_divided.__name__ = "__truediv__"


def _extents(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the extents of ``f(2, 3)``, ``f((2, 3))`` or ``f([2, 3])``."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        return tuple(shape[0])
    return shape


def _with_methods(cls: type) -> type:
    """Decorate a class to add the methods of the table of public names that it does not define."""
    for name, function in methods().items():
        if name not in vars(cls):
            setattr(cls, name, _method(function))
    return cls


def _checked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that first checks its arguments if the vendor's method has several signatures."""
    path = f"Tensor.{name}"

    @wraps(function)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        check(path, args, options)
        return function(self, *args, **(_renamed(name, options) if options else options))

    return method


def _with_checks(cls: type) -> type:
    """Decorate a class whose methods check their arguments."""
    for name, function in tuple(vars(cls).items()):
        if isinstance(function, FunctionType) and not name.startswith("_"):
            setattr(cls, name, _checked(name, function))
    return cls


@observed_methods()
@_with_checks
@_with_methods
class TensorMethods:
    """Mixin of Tensor."""

    __add__, __radd__ = _binary("add"), _binary("add", swapped=True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", swapped=True)
    __mul__, __rmul__ = _binary("muls"), _binary("muls", swapped=True)
    __truediv__, __rtruediv__ = _binary("divs"), _binary("divs", swapped=True)
    __floordiv__, __rfloordiv__ = _binary("floor_div"), _binary("floor_div", swapped=True)
    __mod__, __rmod__ = _binary("modulo"), _binary("modulo", swapped=True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", swapped=True)
    __matmul__, __rmatmul__ = _binary("matmul"), _binary("matmul", swapped=True)
    __and__, __rand__ = _binary("bitwise_and"), _binary("bitwise_and", swapped=True)
    __or__, __ror__ = _binary("bitwise_or"), _binary("bitwise_or", swapped=True)
    __xor__, __rxor__ = _binary("bitwise_xor"), _binary("bitwise_xor", swapped=True)
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    # in PYNATIVE x += y makes a new tensor [observed 2.10 on a CPU], but listeners are notified of the in-place name
    __iadd__, __isub__ = _inplace("Add", __add__), _inplace("Sub", __sub__)
    __imul__, __itruediv__ = _inplace("Mul", __mul__), _inplace("Div", _divided)
    __ifloordiv__, __imod__ = _inplace("FloorDivide", __floordiv__), _inplace("Remainder", __mod__)

    def __eq__(self, other: object) -> Any:
        return _late("function.arithmetic", "equals")(self, other) if is_operand(other) else False

    def __ne__(self, other: object) -> Any:
        return _late("function.arithmetic", "not_equal")(self, other) if is_operand(other) else True

    __hash__ = object.__hash__

    def __neg__(self) -> Any:
        return _op("neg")(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _op("abs")(self)

    def __invert__(self) -> Any:
        return _late("function.elementwise", "logical_not")(self)

    def __getitem__(self, index: Any) -> Any:
        return _late("_indexing", "get_item")(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _late("_indexing", "set_item")(self, index, value)

    def _with_item(self, index: Any, value: Any) -> Any:
        """Return the tensor with a part replaced: ``tensor[index] = value`` in a graph."""
        return _late("_setitem", "with_item")(self, index, value)

    def __getattr__(self, name: str) -> Any:
        """Raise for a method that is not emulated; the table of public names adds the others."""
        holder = "Parameter" if type(self).__name__ == "Parameter" else "Tensor"
        raise missing_member(self, holder, f"'{type(self).__name__}' object has no attribute '{name}'", name)

    def argmax(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Any:
        """Index of the largest element along `axis`, or of all elements; `dim` selects another overload."""
        if options:
            return _late("function.reduce", "argmax_of")(self, *_dim("argmax", options, axis, keepdims))
        return _op("argmax")(self, axis, keepdims)

    def std(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Standard deviation along axes, with `ddof` subtracted from the count."""
        return _late("function.reduce", "std_by_sums")(self, axis, ddof, keepdims)

    def var(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Variance along axes, with `ddof` subtracted from the count."""
        return _late("function.reduce", "var_by_sums")(self, axis, ddof, keepdims)

    def masked_fill(self, mask: "Tensor", value: Any) -> Any:
        """``ops.masked_fill``; for a number, the composite operator MaskedFillScalar. [observed 2.10]"""
        if isinstance(value, TensorMethods):
            return _op("masked_fill")(self, mask, value)
        return _late("function._single", "single")("MaskedFillScalar", [self, mask, value])

    def eq(self, other: Any) -> Any:
        """``==``."""
        return _late("function.arithmetic", "equals")(self, other)

    def mul(self, other: Any) -> Any:
        """``*``."""
        return _late("function.arithmetic", "muls")(self, other)

    multiply = mul

    def div(self, other: Any, *, rounding_mode: str | None = None) -> Any:
        """``/``; `rounding_mode` rounds the quotient."""
        if rounding_mode not in ("floor", "trunc"):  # other names have no effect [2.10 observed]
            return _late("function.arithmetic", "divs")(self, other)
        return _op("div")(self, other, rounding_mode=rounding_mode)

    divide = div

    def cumsum(self, axis: Any = None, dtype: Any = None) -> Any:
        """Return running sums along `axis` (of all elements if it is None), converted to `dtype` at the end."""
        whole = _op("reshape")(self, (-1,)) if axis is None else self
        total = _op("cumsum")(whole, axis or 0)
        return total if dtype is None else _op("cast")(total, dtype)

    def argmin(self, axis: Any = None, keepdims: bool = False) -> "Tensor":
        """Index of the smallest element along `axis`, or of all elements without one."""
        return _op("argmin")(self, axis, keepdims)

    def where(self, condition: "Tensor", y: Any) -> "Tensor":
        """The tensor's elements where the condition holds, else those of `y`."""
        return _op("where")(condition, self, y)

    def take(self, indices: "Tensor", axis: Any = None, mode: str = "clip") -> "Tensor":
        """Slices of an axis at the given indices; without an axis, elements of the flattened tensor."""
        if mode not in ("raise", "wrap", "clip"):
            raise ScriptValueError(
                f"For 'Tensor.take', the argument 'mode' should be one of in ['raise', 'wrap', 'clip'], but got {mode}."
            )
        if mode == "raise":
            raise UnsupportedError('"raise" mode is not implemented')
        whole = _op("reshape")(self, (-1,)) if axis is None else self
        axis = axis or 0
        if capturing() is None:
            indices = _within(indices, whole.shape[axis], mode)
        return _op("gather")(whole, indices, axis)

    def gather(self, *args: Any, **options: Any) -> "Tensor":
        """``gather(dim, index)``: one index for every element; ``gather(input_indices, axis, batch_dims)``: slices."""
        if "dim" in options or "index" in options or (args and not isinstance(args[0], TensorMethods)):
            return _op("gather_elements")(self, *args, **options)
        return _op("gather")(self, *args, **options)

    def sub(self, other: Any, *, alpha: Any = None) -> Any:
        """``-``, or ``self - alpha * other`` by the operators SubExt and SubScalar."""
        return _op("sub")(self, other) if alpha is None else _minus(self, other, alpha)

    subtract = sub

    def sum(self, *args: Any, **options: Any) -> Any:
        """``sum(dim, keepdim, dtype)`` or ``sum(axis, dtype, keepdims, initial)``."""
        by_axis = bool(options.keys() & {"axis", "keepdims", "initial"}) or not isinstance((*args, None, True)[1], bool)
        if not by_axis:
            return _op("sum")(self, *args, **options)
        given = dict(zip(("axis", "dtype", "keepdims", "initial"), args, strict=False)) | options
        initial = given.pop("initial", None)
        total = _op("sum")(self, given.pop("axis", None), given.pop("keepdims", False), **given)
        return total if initial is None else total + initial

    def topk(self, k: Any, *args: Any, **options: Any) -> Any:
        """``ops.topk``; the count may be a tensor of one integer."""
        return _op("topk")(self, _number(k), *args, **options)

    def argsort(self, axis: Any = -1, descending: Any = False, stable: Any = False) -> Any:
        """``ops.argsort``, which is stable."""
        return _op("argsort")(self, axis, descending)

    def softmax(self, axis: Any, dtype: Any = None) -> Any:
        """``ops.softmax``."""
        return _op("softmax")(self, axis, dtype=dtype)

    def isclose(self, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> "Tensor":
        """Whether elements are equal within ``atol + rtol * abs(other)``."""
        return _op("isclose")(self, other, rtol, atol, equal_nan)

    def allclose(self, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
        """Whether all elements are equal within ``atol + rtol * abs(other)``."""
        every = self.isclose(other, rtol, atol, equal_nan).all()
        return every if every._symbol is not None else bool(every.asnumpy())

    def is_floating_point(self) -> Any:
        """Whether the elements are floating point numbers."""
        return self._dtype.kind == "float"

    def stride(self, dim: Any = None) -> Any:
        """Steps along each axis, in elements."""
        steps = [step // self.itemsize for step in self.strides]
        return steps if dim is None else steps[dim]

    def max(self, *args: Any, **options: Any) -> Any:
        """Largest elements: ``max(dim, keepdim)`` with indices, ``max(axis, keepdims, return_indices)`` without."""
        return _extreme("max", self, args, options)

    def min(self, *args: Any, **options: Any) -> Any:
        """Smallest elements: ``min(dim, keepdim)`` with indices, ``min(axis, keepdims, return_indices)`` without."""
        return _extreme("min", self, args, options)

    def reshape(self, *shape: Any) -> "Tensor":
        """``ops.reshape``; the extents may be separate arguments."""
        return _op("reshape")(self, _extents(shape))

    def view(self, *shape: Any) -> "Tensor":
        """Like `reshape`: the emulation has no strided views. A number type gives the bytes as that type."""
        if len(shape) == 1 and isinstance(shape[0], DType):
            converted: Tensor = _as_bytes(self, shape[0])
            return converted
        return _op("reshape")(self, _extents(shape))

    def view_as(self, other: "Tensor") -> Any:
        """Reshape to the shape of `other`, by the composite ViewAs. [observed 2.10]"""
        return _late("function._single", "single")("ViewAs", [self, other])

    def triu(self, diagonal: int = 0) -> Any:
        """The upper triangle of every matrix; the function calls another primitive. [observed 2.10]"""
        return _late("function._single", "single")("Triu", [self, diagonal])

    def reshape_as(self, other: "Tensor") -> "Tensor":
        """Reshape to the shape of `other`."""
        return _op("reshape")(self, other.shape)

    def transpose(self, *axes: Any, **options: Any) -> "Tensor":
        """Exchange two axes, or reorder all of them; without arguments, reverse them."""
        if options:
            axes = (options["dim0"], options["dim1"]) if "dim0" in options else (options["axes"],)
        if len(axes) == 2 and all(type(axis) is int for axis in axes) and capturing() is None:
            return _op("swapaxes")(self, *axes)
        return self.permute(*axes)

    def permute(self, *axes: Any) -> "Tensor":
        """``ops.transpose``; without arguments, reverse the axes."""
        order = () if axes == (None,) else _extents(axes)
        return _op("transpose")(self, order or tuple(reversed(range(len(self.shape)))))

    @property
    def T(self) -> "Tensor":  # noqa: N802 - numpy's name
        """The tensor with reversed axes."""
        return self.transpose()

    def flatten(self, order: Any = "C", *args: Any, start_dim: int = 0, end_dim: int = -1) -> "Tensor":
        """``ops.flatten``, starting at the first axis; the axes may come first."""
        if type(order) is int:
            return _op("flatten")(self, start_dim=order, end_dim=(*args, end_dim)[0])
        axes = [*args, start_dim, end_dim] if not args else [*args, end_dim]
        return _op("flatten")(self, order, start_dim=axes[0], end_dim=axes[1])

    def ravel(self) -> "Tensor":
        """All elements in one axis."""
        return _op("reshape")(self, (-1,))

    def tile(self, *dims: Any) -> "Tensor":
        """``ops.tile``."""
        return _op("tile")(self, _extents(dims))

    def repeat(self, *repeats: Any) -> "Tensor":
        """``ops.tile``: repeats of the whole tensor, one per axis."""
        return _op("tile")(self, _extents(repeats))

    def broadcast_to(self, *shape: Any) -> "Tensor":
        """``ops.broadcast_to``."""
        return _op("broadcast_to")(self, _extents(shape))

    def expand(self, *shape: Any) -> "Tensor":
        """``ops.broadcast_to``."""
        return _op("broadcast_to")(self, _extents(shape))

    def expand_as(self, other: "Tensor") -> "Tensor":
        """Broadcast to the shape of `other`."""
        return _op("broadcast_to")(self, other.shape)

    def astype(self, dtype: Any, copy: bool = True) -> "Tensor":
        """``ops.cast``."""
        from dumpsim.frontends.mindspore.common import dtype as mstype

        return _op("cast")(self, mstype.cast_target(dtype))

    def to(self, *args: Any, **options: Any) -> "Tensor":
        """Convert to a number type, or to that of another tensor; without one, return the tensor itself."""
        target = args[0] if args else options.get("dtype", options.get("other"))
        if isinstance(target, str) or "device" in options:
            raise UnsupportedError("a device is not emulated", where="Tensor.to(device)", allowed=("dtype", "other"))
        if target is None:
            return self  # type: ignore[return-value]
        return _op("cast")(self, target.dtype if isinstance(target, TensorMethods) else target)

    def type(self, dtype: DType | None = None) -> Any:
        """Return the name of the number type, or convert to another type."""
        return self.astype(dtype) if dtype is not None else str(self.dtype)

    def type_as(self, other: "Tensor") -> "Tensor":
        """Convert to the number type of `other`."""
        return _op("cast")(self, other.dtype)

    def float(self) -> "Tensor":
        """Convert to Float32."""
        return _op("cast")(self, _dtype("float32"))

    def half(self) -> "Tensor":
        """Convert to Float16."""
        return _op("cast")(self, _dtype("float16"))

    def double(self) -> "Tensor":
        """Convert to Float64."""
        return _op("cast")(self, _dtype("float64"))

    def bfloat16(self) -> "Tensor":
        """Convert to BFloat16."""
        return _op("cast")(self, _dtype("bfloat16"))

    def int(self) -> "Tensor":
        """Convert to Int32."""
        return _op("cast")(self, _dtype("int32"))

    def long(self) -> "Tensor":
        """Convert to Int64."""
        return _op("cast")(self, _dtype("int64"))

    def bool(self) -> "Tensor":
        """Convert to Bool."""
        return _op("cast")(self, _dtype("bool"))

    def copy(self) -> "Tensor":
        """Copy the tensor."""
        return _op("deepcopy")(self)

    clone = copy

    def dim(self) -> Any:
        """Number of axes."""
        return self.ndim

    def numel(self) -> Any:
        """Number of elements."""
        return self.size

    def new_zeros(self, size: Any, dtype: DType | None = None) -> Any:
        """Zeros of a shape, by default in the tensor's number type."""
        return _late("function._single", "single")("NewZeros", [self, size, dtype])

    def new_ones(self, size: Any, dtype: DType | None = None) -> Any:
        """Ones of a shape, by default in the tensor's number type."""
        return _late("function._single", "single")("NewOnes", [self, size, dtype])


def _number(value: Any) -> Any:
    """Return the number of a tensor of one integer, and anything else unchanged."""
    if isinstance(value, TensorMethods) and capturing() is None and value.size == 1:
        return value.item()
    return value


def _within(indices: Any, size: Any, mode: str) -> Any:
    """Return the indices of ``take``: negative ones count from the end, those beyond it are wrapped or clipped."""
    if mode == "wrap":
        return _op("floor_mod")(indices, size)
    low, high = _op("full_like")(indices, 0), _op("full_like")(indices, size - 1)
    indices = _op("select")(_op("less")(indices, -size), low, indices)
    return _op("select")(_op("greater")(indices, size - 1), high, indices)


def _minus(tensor: Any, other: Any, alpha: Any) -> Any:
    arithmetic = import_module("dumpsim.frontends.mindspore.ops.function.arithmetic")
    single = _late("function._single", "single")
    if arithmetic.is_number(other):
        return single("SubScalar", [tensor, other, alpha])
    return single("SubExt", [*arithmetic.promote("SubExt", tensor, other), alpha])


def _as_bytes(tensor: Any, kind: DType) -> Any:
    if tensor._symbol is not None:
        raise UnsupportedError("a view of another type is not emulated in a graph", where="Tensor.view(dtype)")
    return type(tensor)._around(np.ascontiguousarray(tensor._array).view(_dtype(kind.name).numpy))


def _dtype(name: str) -> DType:
    from dumpsim.frontends.mindspore.common import dtype as mstype

    return mstype.number(name)


def _dim(name: str, options: dict[str, Any], axis: Any, keepdims: Any) -> tuple[Any, Any]:
    """Return the arguments ``dim`` and ``keepdim`` of an overload."""
    dim, keepdim = options.pop("dim", axis), options.pop("keepdim", keepdims)
    if options:
        raise ScriptTypeError(f"unexpected keyword arguments {sorted(options)}", where=f"Tensor.{name}")
    return dim, keepdim


def _extreme(name: str, tensor: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Choose one of two overloads: ``dim``, or a single int outside graphs, selects the first. [2.10 observed]"""
    first = ("dim", "keepdim")
    alone = isinstance((*args, None)[0], int) and capturing() is None
    by_dim = not options.keys() - set(first) and (bool(options) or alone)
    names = first if by_dim else ("axis", "keepdims")
    given = dict(zip(names, args, strict=False)) | options
    axis, keep = (given.pop(each, default) for each, default in zip(names, (None, False), strict=True))
    with_indices = given.pop("return_indices", by_dim)
    bounds = {each: given.pop(each) for each in ("initial", "where") if each in given}
    if bounds.get("where") is True:
        del bounds["where"]
    if given or len(args) > len(names):
        raise ScriptTypeError(f'Failed calling {name} with "{name}({", ".join(map(str, (*args, *options)))})".')
    if isinstance(axis, (tuple, list)):
        return _op(f"a{name}")(tensor, tuple(axis), keep, **bounds)
    values, indices = _op(name)(tensor, axis, keep, **bounds)
    return (values, indices) if with_indices else values
