"""Primitives that a script defines: shape rules and gradient in Python, no kernel. [observed 2.10]"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dumpsim.core.abstract import Abstract, NoneType, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError
from dumpsim.frontends.mindspore._capture import custom_gradient, values
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find, is_known

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = ["definition_of", "run"]


def run(primitive: "Primitive", args: Sequence[Any]) -> Any:
    """Record a primitive of the script in the graph that is being captured.

    Raises
    ------
    ScriptRuntimeError
        In PYNATIVE, which has no kernel for it, and for a primitive without shape rules in a graph.
    """
    tracer = capturing()
    if tracer is None:
        raise _unsupported(primitive.name)
    if not hasattr(primitive, "__infer__"):
        raise ScriptRuntimeError(f"Operator '{primitive.name}' is invalid, or no matching evaluator could be found.")
    from dumpsim.runtime.session import Session

    definition = find(primitive.name) if is_known(primitive.name) else definition_of(primitive)
    Session.current().define(definition)
    text = NodeText(attrs=dict(primitive.attrs), instance_name=primitive.instance_name or None)
    result = tracer.emit(definition, list(args), {**definition.attrs}, text)
    get_bprop = getattr(primitive, "get_bprop", None)
    if get_bprop is None:
        return result
    inputs = [arg for arg in args if values.is_tensor(arg)]

    def rule(gradients: tuple[Any, ...]) -> Sequence[Any]:
        dout = values.rebuild(result, iter(gradients))
        found = get_bprop()(*args, result, dout)
        if not isinstance(found, tuple) or len(found) != len(args):
            raise ScriptTypeError(
                f"the bprop returns {found!r} for {len(args)} operands", where=primitive.name, allowed=("a tuple",)
            )
        return [gradient for gradient, arg in zip(found, args, strict=True) if values.is_tensor(arg)]

    return custom_gradient.with_gradient(result, inputs, rule)


def definition_of(primitive: "Primitive") -> OpDef:
    """Define the operator of a primitive of the script; its shape rule calls the primitive's ``__infer__``.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore.ops.primitive import PrimitiveWithInfer
    >>> class First(PrimitiveWithInfer):
    ...     def __init__(self):
    ...         super().__init__("First")
    ...     def infer_shape(self, x):
    ...         return x[:1]
    ...     def infer_dtype(self, x):
    ...         return x
    >>> definition_of(First()).infer([TensorType(dtype=dtype("float32"), shape=(4, 3))], {}).shape
    (4,)
    """

    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        found = primitive.__infer__(*(_described(abstract) for abstract in abstracts))  # type: ignore[attr-defined]
        return _abstract(found.get("shape"), found.get("dtype"))

    def kernel(*operands: Any, **attrs: Any) -> Any:
        raise _unsupported(primitive.name)

    return OpDef(name=primitive.name, operands=("*inputs",), infer=infer, kernel=kernel)


def _described(abstract: Abstract) -> dict[str, Any]:
    """Describe an operand for ``__infer__``: shapes are lists, constants have a value."""
    from dumpsim.frontends.mindspore.common.dtype import number

    match abstract:
        case TensorType(dtype=kind, shape=shape):
            return {"shape": list(shape), "dtype": number(kind.name), "value": None}
        case ScalarType(dtype=kind, value=value):
            return {"shape": (), "dtype": number(kind.name), "value": value}
        case TupleType(items=items):
            parts = [_described(item) for item in items]
            return {name: tuple(part[name] for part in parts) for name in ("shape", "dtype", "value")}
    return {"shape": (), "dtype": None, "value": getattr(abstract, "value", None)}


def _abstract(shape: Any, kind: Any) -> Abstract:
    """Return the type of a result from the shape and number type of ``__infer__``; tuples mean several results."""
    if shape is None or kind is None:
        return NoneType()
    if isinstance(kind, (tuple, list)):
        return TupleType(items=tuple(_abstract(one, each) for one, each in zip(shape, kind, strict=True)))
    name = kind.name if isinstance(kind, DType) else str(kind)
    return TensorType(dtype=dtype(name), shape=tuple(int(extent) for extent in shape))


def _unsupported(name: str) -> ScriptRuntimeError:
    rule = "-" * 52
    return ScriptRuntimeError(
        f"\n{rule}\n- Kernel select failed:\n{rule}\nUnsupported op [{name}] on {get_context('device_target')}, Please "
        "confirm whether the device target setting is correct, or refer to 'mindspore.ops' at "
        "https://www.mindspore.cn to query the operator support list.\n"
    )
