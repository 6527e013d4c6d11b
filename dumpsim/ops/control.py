"""Nodes that order and bundle values and have no kernel: tuples, monads, dependencies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dumpsim.core.abstract import Abstract, MonadType, TensorType, TupleType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import constant, value_of

__all__ = ["OPS"]

Attrs = Mapping[str, Any]


def _infer_first(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return abstracts[0]


def _infer_load(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    source = abstracts[0]
    return replace(source, ref_key=None, inplace=False) if isinstance(source, TensorType) else source


def _infer_state(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return abstracts[0] if isinstance(abstracts[0], MonadType) else MonadType()


def _infer_make(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return TupleType(items=tuple(abstracts))


def _infer_item(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    whole = abstracts[0]
    if not isinstance(whole, TupleType):
        raise ScriptTypeError("For 'TupleGetItem', the first operand must be a tuple.")
    index = value_of("TupleGetItem", abstracts[1], "index")
    if not -len(whole.items) <= index < len(whole.items):
        raise ScriptValueError(
            f"For 'TupleGetItem', the index must be in [{-len(whole.items)}, {len(whole.items)}), but got {index}."
        )
    item: Abstract = whole.items[index]
    return item


def _first(value: Any, *others: Any) -> Any:
    return value


def _grad_first(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return dout, *(None for _ in operands[1:])


def _grad_make(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return tuple(dout)


def _grad_item(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    whole, index = operands
    count = len(whole) if isinstance(whole, tuple | list) else len(whole.abstract.items)
    chosen = constant(index) % count
    return tuple(dout if i == chosen else None for i in range(count)), None


OPS = (
    OpDef(
        name="Depend",
        operands=("value", "expression"),
        infer=_infer_first,
        kernel=_first,
        grad=_grad_first,
        attrs={},
        fixed={"side_effect_propagate": 1},
        alias={0: 0},
        view=True,
        engine="host",
    ),
    OpDef(
        name="Load",
        operands=("variable", "monad"),
        infer=_infer_load,
        kernel=_first,
        grad=_grad_first,
        alias={0: 0},
        view=True,
        engine="host",
    ),
    OpDef(
        name="UpdateState",
        operands=("monad", "expression"),
        infer=_infer_state,
        kernel=_first,
        stop=True,
        engine="host",
    ),
    OpDef(
        name="MakeTuple",
        operands=("*items",),
        infer=_infer_make,
        kernel=lambda *items: items,
        grad=_grad_make,
        engine="host",
    ),
    OpDef(
        name="TupleGetItem",
        operands=("input", "index"),
        infer=_infer_item,
        kernel=lambda whole, index: whole[index],
        grad=_grad_item,
        engine="host",
    ),
    OpDef(name="Return", operands=("value",), infer=_infer_first, kernel=_first, grad=_grad_first, engine="host"),
    OpDef(
        name="StopGradient",
        operands=("value",),
        infer=_infer_first,
        kernel=_first,
        stop=True,
        alias={0: 0},
        view=True,
        engine="host",
    ),
)
