"""``mindspore.ops.Primitive``: operators as objects with their settings."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache, wraps
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError, nearest
from dumpsim.frontends.mindspore._capture.callee import PrimitiveBase
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.parallel._layout import check_strategies, rows_of

__all__ = [
    "Primitive",
    "PrimitiveWithInfer",
    "TablePrimitive",
    "constexpr",
    "prim_attr_register",
    "primitive_class",
]


class Primitive(PrimitiveBase):
    """Base of the operator objects.

    Attributes
    ----------
    name : str
        Operator type.
    instance_name : str
        Name of the cell's attribute that holds the primitive: ``{instance name: matmul}`` of the IR.
    attrs : dict
        The attributes added by `add_prim_attr`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.instance_name = ""
        self.attrs: dict[str, Any] = {}
        self._given: dict[str, Any] = {}

    @property
    def init_attrs(self) -> dict[str, Any]:
        """The settings given to the constructor."""
        return self._given

    def add_prim_attr(self, name: str, value: Any) -> "Primitive":
        """Add an attribute, which is stored and printed with the operator.

        Examples
        --------
        >>> matmul = Primitive("MatMul").add_prim_attr("dump", "true")
        >>> matmul.attrs, matmul.dump
        ({'dump': 'true'}, 'true')
        """
        self.__dict__[name] = value
        self.attrs[name] = value
        return self

    def del_prim_attr(self, name: str) -> "Primitive":
        """Remove an attribute."""
        if name in self.attrs:
            del self.attrs[name]
            self.__dict__.pop(name, None)
        return self

    def init_prim_io_names(self, inputs: list[str], outputs: list[str]) -> None:
        """Name the operands and results; the names are attributes.

        Examples
        --------
        >>> one = Primitive("Square")
        >>> one.init_prim_io_names(inputs=["x"], outputs=["y"])
        >>> one.attrs
        {'input_names': ['x'], 'output_names': ['y']}
        """
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def set_prim_instance_name(self, name: str) -> "Primitive":
        """Set the name of the cell's attribute that holds the primitive."""
        self.instance_name = name
        return self

    def set_device(self, device_target: str) -> "Primitive":
        """Set the device that runs the operator, as attribute ``primitive_target``.

        A dump refuses networks on several kinds of devices. Without a dump, the emulated device runs every operator.

        Raises
        ------
        ScriptValueError
            For a device other than CPU, GPU and Ascend.
        """
        if device_target not in ("CPU", "GPU", "Ascend"):
            raise ScriptValueError(
                f"unknown device {device_target!r}",
                where=f"{self.name}.set_device",
                allowed=("CPU", "GPU", "Ascend"),
                nearest=nearest(device_target, ("CPU", "GPU", "Ascend")),
            )
        return self.add_prim_attr("primitive_target", device_target)

    def set_stage(self, stage: int) -> "Primitive":
        """Raise UnsupportedError: pipeline stages are not emulated."""
        raise UnsupportedError("pipeline stages are not emulated", where=f"{self.name}.set_stage({stage})")

    def shard(self, in_strategy: Any = None, out_strategy: Any = None) -> "Primitive":
        """Set how a parallel run slices the operands: one row of numbers, or one Layout, for each of them.

        Raises
        ------
        ScriptTypeError, ScriptValueError
            As in MindSpore, with its messages.
        """
        check_strategies(self.name, in_strategy, out_strategy, own=bool(self.attrs.get("self_define_shard")))
        for name, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
            if strategy is not None:
                self.attrs[name] = tuple(rows_of(strategy))
        return self

    def recompute(self, mode: bool = True) -> "Primitive":
        """Raise UnsupportedError: recomputation is not emulated."""
        raise UnsupportedError("recomputation is not emulated", where=f"{self.name}.recompute({mode})")

    def __call__(self, *args: Any) -> Any:
        from dumpsim.frontends.mindspore.ops._scripted import run

        return run(self, args)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self._given.items())
        return f"Prim[{self.name}]<{settings}>" if settings else f"Prim[{self.name}]"

    def _run(self, operands: list[Any], attrs: Mapping[str, Any] | None = None) -> Any:
        """Run the operator with this object's settings."""
        return call(
            self.name,
            operands,
            attrs,
            instance_name=self.instance_name or None,
            printed=self.attrs or None,
        )


class PrimitiveWithInfer(Primitive):
    """Base of a script's primitives, which have shape rules in Python and no kernel.

    A graph with such a primitive can be compiled but not run. `get_bprop` of a subclass returns the function that
    computes its gradient.

    Examples
    --------
    >>> class Loss(PrimitiveWithInfer):
    ...     @prim_attr_register
    ...     def __init__(self, axis=0):
    ...         pass
    ...     def infer_shape(self, x):
    ...         return []
    ...     def infer_dtype(self, x):
    ...         return x
    >>> Loss(1), Loss(1).axis
    (Prim[Loss]<axis=1>, 1)
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__call__")
        if own is not None:  # a graph contains the primitive and ignores its Python ``__call__`` [observed 2.10]
            cls.__call__ = _recorded(own)  # type: ignore[method-assign]

    def infer_shape(self, *args: Any) -> Any:
        """Return the shape of the result, a tuple of shapes for several results, None for no result."""
        return None

    def infer_dtype(self, *args: Any) -> Any:
        """Return the number type of the result, a tuple for several results."""
        return None

    def infer_value(self, *args: Any) -> Any:
        """Return the value of a constant result."""
        return None

    def __infer__(self, *args: Any) -> dict[str, Any]:
        """Return shape, number type and value of the result, given the same three of each operand."""
        rules = {"dtype": self.infer_dtype, "shape": self.infer_shape, "value": self.infer_value}
        return {name: rule(*(arg[name] for arg in args)) for name, rule in rules.items()}

    def __call__(self, *args: Any) -> Any:
        from dumpsim.frontends.mindspore.ops._scripted import run

        return run(self, args)


def _recorded(own: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a primitive's Python ``__call__``, which a capture ignores."""

    @wraps(own)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if capturing() is not None:
            return PrimitiveWithInfer.__call__(self, *args)
        return own(self, *args, **kwargs)

    return called


class TablePrimitive(Primitive):
    """A primitive of the table of operators.

    Settings that are attributes in the table become attributes. The others become operands after those of the call, as
    for operators that MindSpore defines in yaml.
    """

    op_type = ""
    init_signature = inspect.Signature()
    call_signature: inspect.Signature | None = None
    encode: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(self.op_type)
        self._given = _bind(self.init_signature, args, kwargs, self.op_type)
        for name, value in self._given.items():
            setattr(self, name, value)
        self.settings = {
            name: self.encode[name](value) if name in self.encode else value for name, value in self._given.items()
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        operands = list(args)
        if self.call_signature is not None:
            operands = list(_bind(self.call_signature, args, kwargs, self.op_type).values())
        elif kwargs:
            raise ScriptTypeError(f"{self.op_type} takes no keyword arguments, but got {sorted(kwargs)}")
        return self._apply(operands)

    def _apply(self, operands: list[Any]) -> Any:
        attributes = _attributes(self.op_type)
        attrs = {name: value for name, value in self.settings.items() if name in attributes}
        operands += [value for name, value in self.settings.items() if name not in attributes]
        return self._run(operands, attrs)


@cache
def _attributes(op_type: str) -> frozenset[str]:
    """Return the settings that are attributes of the operator, not operands."""
    from dumpsim.ops.table import find

    return frozenset(find(op_type).attrs)


def _bind(signature: inspect.Signature, args: Any, kwargs: Any, where: str) -> dict[str, Any]:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ScriptTypeError(f"{error}", where=where, allowed=(str(signature),)) from None
    bound.apply_defaults()
    return dict(bound.arguments)


@cache
def primitive_class(op_type: str) -> type[TablePrimitive]:
    """Return the class of a primitive of the table.

    Raises
    ------
    UnsupportedError
        For an operator that is not in the table.

    Examples
    --------
    >>> matmul = primitive_class("MatMul")(transpose_b=True)
    >>> matmul
    Prim[MatMul]<transpose_a=False, transpose_b=True>
    """
    from dumpsim.frontends.mindspore.ops._signatures import signature_of

    signature = signature_of(op_type)
    return type(
        op_type,
        (TablePrimitive,),
        {
            "op_type": op_type,
            "init_signature": signature.init,
            "call_signature": signature.call,
            "encode": signature.encode,
            "__module__": "mindspore.ops.operations",
            "__doc__": f"The operator {op_type}: its settings are {signature.init}, its operands {signature.call}.",
        },
    )


def prim_attr_register(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a primitive's constructor to store its arguments as attributes.

    Examples
    --------
    >>> class Mine(Primitive):
    ...     @prim_attr_register
    ...     def __init__(self, axis=0):
    ...         pass
    >>> Mine(1).init_attrs
    {'axis': 1}
    """
    signature = inspect.signature(fn)

    def construct(self: Primitive, *args: Any, **kwargs: Any) -> None:
        Primitive.__init__(self, type(self).__name__)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        self._given = dict(list(bound.arguments.items())[1:])
        for name, value in self._given.items():
            self.add_prim_attr(name, value)
        fn(self, *args, **kwargs)

    construct.__doc__ = fn.__doc__
    return construct


def constexpr(fn: Any = None, get_instance: bool = True, name: str | None = None, **options: Any) -> Any:
    """Mark a function that runs at compile time; here, all plain Python code does.

    Examples
    --------
    >>> constexpr(lambda: 3)()
    3
    """
    if fn is None:
        return lambda function: function
    if not callable(fn):
        raise ScriptValueError("the argument is not a function", where="constexpr")
    return fn


_primexpr = constexpr


def _run_op(primitive: Primitive, op_name: str, args: Any) -> Any:
    """Run a primitive on its operands, like the vendor's functions."""
    return primitive(*args)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.primitive", name)
