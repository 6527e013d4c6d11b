"""The evidence of one run of an operator: recompute it from its files and measure its outputs."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from dumpsim.analysis.verdict import Side
from dumpsim.core.abstract import (
    Abstract,
    NoneType,
    ScalarType,
    StringType,
    TensorType,
    TupleType,
    TypeType,
    tensors_of,
)
from dumpsim.core.dtype import DTYPES, DType, dtype, from_numpy
from dumpsim.core.errors import DtypeError, DumpsimError
from dumpsim.core.evidence import Evidence
from dumpsim.ops.opdef import OpDef
from dumpsim.replay.call import Absent, Call, Given, arrange, definition_of
from dumpsim.replay.given import Unspelled
from dumpsim.replay.kernel import Computed, Refusal, compute
from dumpsim.replay.measure import Measured, measure
from dumpsim.replay.slope import MACHINES, Machine
from dumpsim.replay.unit import unit

__all__ = ["judge"]

Array = np.ndarray[Any, Any]

# whichever of equal elements a machine names first is right: outputs of indices -> output or operand with the values
_CHOICES = frozenset({"Argmax", "Argmin", "ArgMaxWithValue", "ArgMinWithValue", "TopK", "Sort"})
_UNSEEN = "the values before the operator overwrote them are not in the dump"


def judge(call: Call, *, factor: float = 1.0) -> Evidence:
    """Return the evidence; what keeps an operator from being recomputed is a reason, not an error.

    Parameters
    ----------
    call : Call
    factor : float
        Times what is explained that an error may be.
    """
    if call.reason:
        return Evidence.skip(call.reason)
    try:
        return _judge(call, factor)
    except (Refusal, Unspelled) as error:
        return Evidence.skip(str(error))
    except DumpsimError as error:
        return Evidence.skip(f"{type(error).__name__}: {error}")
    except OSError as error:
        return Evidence.skip(f"unreadable: {error}")
    except MemoryError:
        return Evidence.skip("needs more memory than there is")
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        # operands that do not fit each other or the attributes: the files or the graph are not those of a run
        return Evidence.skip(f"its kernel does not take these operands: {type(error).__name__}: {error}")


def _judge(call: Call, factor: float) -> Evidence:
    definition = definition_of(call.op_type)
    if definition is None:
        raise Refusal("unknown operator type")
    outputs = [(slot, side) for slot, side in call.outputs if side.path is not None]
    kinds = {slot: _kind(side, None) for slot, side in outputs}
    values = _loaded(call, definition)
    results: dict[int, Array] = {}
    for slot, side in outputs:
        results[slot] = side.load()
        kinds[slot] = _kind(side, results[slot])
    first = kinds[outputs[0][0]]
    operands = arrange(definition, values, call.host, DTYPES.get(first))
    openly = _check(definition, operands, call.attrs, results)
    machine = Machine(unit=_unit(call, values, kinds), slopes=MACHINES[call.machine])
    real = DTYPES[first].kind == "float" if first in DTYPES else False
    computed = compute(definition, operands, call.attrs, machine=machine, real=real)
    unseen = _unseen(values, call)
    worst: tuple[int, Measured] | None = None
    unwritten = {slot for slots in definition.unwritten.values() for slot in slots}
    for slot, dumped in results.items():
        if slot >= len(computed) or slot in unwritten:
            continue
        if unseen and np.isnan(computed[slot].value).any():
            continue
        found = _measured(dumped, computed[slot], kinds[slot], machine.unit, factor, slot in openly)
        if found.error and computed[slot].value.dtype.kind in "iu" and call.op_type in _CHOICES:
            found = _chosen(found, call.op_type, operands, dumped, computed[slot].value)
        if worst is None or found.excess > worst[1].excess:
            worst = slot, found
    if worst is None:
        raise Refusal(_UNSEEN if unseen else "none of its outputs is recomputed")
    slot, found = worst
    if found.error <= found.explained:
        return Evidence(found.error, found.explained, "ok")
    shape = results[slot].shape
    index = tuple(int(n) for n in np.unravel_index(found.index, shape)) if found.index >= 0 else ()
    more = f", {found.outside} of {results[slot].size} elements" if found.outside > 1 else ""
    return Evidence(found.error, found.explained, "suspect", f"output.{slot}{list(index)}{more}")


def _kind(side: Side, array: Array | None) -> str:
    """Number type of a tensor on the device."""
    if side.dtype:
        try:
            return dtype(side.dtype).name
        except DtypeError:
            return side.dtype
    return from_numpy(array.dtype).name if array is not None else ""


def _loaded(call: Call, definition: OpDef) -> list[Any]:
    """Arrays and constants of the operands, as they were before the run."""
    overwritten = _overwritten(call, definition)
    values: list[Any] = []
    for at, operand in enumerate(call.operands):
        unseen = at in overwritten and at not in call.before
        if at in overwritten and not unseen:
            operand = call.before[at]
        if isinstance(operand, Absent):
            raise Refusal(operand.reason)
        value = operand.value if isinstance(operand, Given) else _readable(operand)
        shape = call.shapes[at] if at < len(call.shapes) else None
        if isinstance(value, np.ndarray) and shape is not None and value.size == prod(shape):
            value = value.reshape(shape)
        if unseen:
            if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
                raise Refusal(f"input.{at}: {_UNSEEN}")
            value = np.full_like(value, np.nan)  # what does not depend on it can be recomputed
        values.append(value)
    return values


def _unseen(values: Sequence[Any], call: Call) -> bool:
    """Whether an operand is not known."""
    definition = definition_of(call.op_type)
    assert definition is not None
    return any(
        isinstance(values[at], np.ndarray) and values[at].dtype.kind == "f" and bool(np.isnan(values[at]).all())
        for at in definition.updates
        if at < len(values)
    )


def _readable(side: Side) -> Array:
    array = side.load()
    if array.dtype.kind == "V" and array.dtype.names:
        raise Refusal(f"{from_numpy(array.dtype).name} is not recomputed")
    return array


def _overwritten(call: Call, definition: OpDef) -> frozenset[int]:
    """Operands whose files hold what the operator made of them.

    Inputs are written after the run; files that differ from the output that is the same memory were not.
    [spec observed 0.11]
    """
    outputs = dict(call.outputs)
    for slot, at in definition.alias.items():
        if at not in definition.updates or slot not in outputs or at >= len(call.operands):
            continue
        own, other = call.operands[at], outputs[slot]
        if not isinstance(own, Side) or own.path is None or other.path is None:
            continue
        before, after = own.load(), other.load()
        if before.shape != after.shape or before.tobytes() != after.tobytes():
            return frozenset()
    return frozenset(definition.updates)


def _unit(call: Call, values: Sequence[Any], kinds: Mapping[int, str]) -> float:
    if call.compute:
        return unit(call.compute)
    arrays = [one for one in values if isinstance(one, np.ndarray)]
    if any(one.dtype == np.float64 for one in arrays) or "float64" in kinds.values():
        return 2 * unit("float64")  # the recomputation is no better than the machine
    return unit("float32")


def _check(
    definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any], results: Mapping[int, Array]
) -> set[int]:
    """See that operands make outputs of the dumped sizes, before any work; return those that values make shorter."""
    openly: set[int] = set()
    inferred = tensors_of(definition.infer([_abstract(one) for one in operands], attrs))
    for slot, dumped in results.items():
        if slot >= len(inferred):
            raise Refusal(f"has {len(inferred)} outputs, the dump has output.{slot}")
        shape = inferred[slot].shape
        if -1 in shape:
            openly.add(slot)
        if -1 not in shape and inferred[slot].size != dumped.size:
            raise Refusal(f"its operands make output.{slot} of shape {shape}, the dump has {dumped.shape}")
    return openly


def _abstract(value: Any) -> Abstract:
    if isinstance(value, np.ndarray):
        return TensorType(dtype=from_numpy(value.dtype), shape=value.shape)
    if isinstance(value, DType):
        return TypeType(value=value)
    if value is None:
        return NoneType()
    if isinstance(value, str):
        return StringType(value=value)
    if isinstance(value, tuple):
        items = tuple(_abstract(item) for item in value)
        constant = all(not isinstance(item, TensorType) for item in items)
        return TupleType(items=items, value=value if constant else None)
    kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
    return ScalarType(dtype=dtype(kind), value=value)


def _measured(dumped: Array, computed: Computed, kind: str, machine: float, factor: float, openly: bool) -> Measured:
    if computed.value.size < dumped.size and openly:  # the machine's memory is as large as the result may be
        dumped = dumped.reshape(-1)[: computed.value.size]
    if computed.value.size != dumped.size:
        raise Refusal(f"the recomputed shape is {computed.value.shape}, the dump has {dumped.shape}")
    if computed.value.dtype.kind == "f" and dumped.dtype.kind in "iub":
        raise Refusal(f"the recomputed type is a float, the dump has {kind}")
    if dumped.dtype.kind == "c":
        raise Refusal("complex numbers are not recomputed")
    return measure(dumped, computed, kind, machine, factor=factor)


def _chosen(found: Measured, op_type: str, operands: Sequence[Any], own: Array, other: Array) -> Measured:
    """Indices of equal elements are equally right."""
    x = operands[0]
    axis = -1 if op_type in ("TopK", "Sort") else operands[1]
    if op_type == "Sort":
        axis = x.ndim - 1
    if not isinstance(axis, int) or not x.ndim:
        return found
    try:
        wide = [one.reshape(other.shape) for one in (own, other)]
        if other.ndim < x.ndim:
            wide = [np.expand_dims(one, axis) for one in wide]
        if min(int(wide[0].min()), 0) < 0 or int(wide[0].max()) >= x.shape[axis]:
            return found
        a, b = (np.take_along_axis(x, one.astype(np.int64), axis) for one in wide)
    except (ValueError, IndexError):
        return found
    return Measured(0.0, 0.0) if np.array_equal(a, b) else found
