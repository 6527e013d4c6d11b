"""Evidence for one run of an operator: recompute it from its files and compare its outputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from types import MappingProxyType
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
from dumpsim.core.errors import DtypeError, DumpsimError, UnreadableError
from dumpsim.core.evidence import Evidence
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.rules import numbers_of
from dumpsim.replay.bounded import Bounded, plain
from dumpsim.replay.call import Absent, Call, Constant, arrange, attrs_of, bound_by_name, definition_of
from dumpsim.replay.guess import guesses
from dumpsim.replay.irconstant import Unparsable
from dumpsim.replay.kernel import Computed, Refusal, as_on_cpu, compute
from dumpsim.replay.measure import Measured, measure, whole_numbers
from dumpsim.replay.slope import MACHINES, ROUGH, Machine
from dumpsim.replay.unit import unit

__all__ = ["judge"]

Array = np.ndarray[Any, Any]

# operators whose output are indices: of equal elements any one is right
_CHOICES = frozenset({"Argmax", "Argmin", "ArgMaxWithValue", "ArgMinWithValue", "TopK", "Sort"})
_UNSEEN = "the values before the operator overwrote them are not in the dump"


def judge(call: Call, *, factor: float = 1.0) -> Evidence:
    """Return the evidence; an operator that cannot be recomputed is skipped with a reason, without an exception.

    Parameters
    ----------
    call : Call
    factor : float
        Allowed error, as a multiple of the explained one.
    """
    if call.reason:
        return Evidence.skip(call.reason)
    try:
        return _judge(call, factor)
    except (Refusal, Unparsable) as error:
        return Evidence.skip(str(error))
    except (UnreadableError, OSError) as error:
        return Evidence.skip(f"unreadable: {error}")
    except DumpsimError as error:
        return Evidence.skip(str(error))
    except MemoryError:
        return Evidence.skip("needs more memory than is available")
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        # operands do not fit each other or the attributes: the files or the graph belong to different runs
        return Evidence.skip(f"its kernel fails on these operands: {type(error).__name__}: {error}")


def _judge(call: Call, factor: float) -> Evidence:
    outputs = [(slot, side) for slot, side in call.outputs if side.path is not None]
    values, unseen = _loaded(call)
    results = {slot: side.load() for slot, side in outputs}
    if call.machine == "cpu":
        results |= _written(call, results)
    kinds = {slot: _kind(side, results[slot]) for slot, side in outputs}
    machine = Machine(unit=_unit(call, kinds), slopes=MACHINES[call.machine], rough=ROUGH[call.machine])
    found: _Found | None = None
    for attempt in _attempts(call, values, results, kinds):
        try:
            one = _recomputed(call, attempt, values, results, kinds, machine, factor, unseen=unseen)
        except _DOES_NOT_FIT:
            if attempt.sure:
                raise
            continue
        if found is None or one.rank < found.rank:
            found = one
        if _explained(one.measured):
            break
    if found is None:
        raise Refusal("no graph in the dump shows its attributes, and they do not follow from its shapes")
    slot, worst = found.slot, found.measured
    if _explained(worst):
        return Evidence(worst.error, worst.explained, "ok")
    size = results[slot].size
    if call.doubt:
        raise Refusal(call.doubt)
    if not found.sure and 2 * worst.outside > size:
        raise Refusal("no graph in the dump shows its attributes, and none that fit its shapes give this output")
    index = tuple(int(n) for n in np.unravel_index(worst.index, results[slot].shape)) if worst.index >= 0 else ()
    more = f", {worst.outside} of {size} elements" if worst.outside > 1 else ""
    return Evidence(worst.error, worst.explained, "suspect", f"output.{slot}{list(index)}{more}")


def _explained(found: Measured) -> bool:
    """Whether rounding explains the error of an output; equal outputs have none, NaN included."""
    return found.error <= found.explained or found.error == 0


_DOES_NOT_FIT = (Refusal, Unparsable, DumpsimError, ArithmeticError, AssertionError, AttributeError, LookupError,
                 TypeError, ValueError)  # fmt: skip
_MOST_ATTEMPTS = 64


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Settings to try, by member (None: operands in the order of the files); `sure` if the graph shows them."""

    settings: tuple[Mapping[str, Any] | None, ...]
    sure: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """The worst output of an attempt."""

    slot: int
    measured: Measured
    sure: bool

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key; the best fit has the lowest."""
        return self.measured.outside, self.measured.excess


def _attempts(
    call: Call, values: Sequence[Any], results: Mapping[int, Array], kinds: Mapping[int, str]
) -> Iterator[_Attempt]:
    if not call.members:
        yield _Attempt((None,), True)
        return
    output = results[min(results)].shape
    shapes = [one.shape for one in values if isinstance(one, np.ndarray)]
    choices: list[list[Mapping[str, Any] | None]] = []
    sure = True
    for at, member in enumerate(call.members):
        if member.settings is not None:
            choices.append([member.settings])
            continue
        definition = _defined(member.op_type)
        own = shapes if at == 0 else [output, *shapes[-1:]]
        options: list[Mapping[str, Any] | None] = list(guesses(member.op_type, own, output))
        sure &= not options and not definition.attrs
        if not definition.attrs:
            options.insert(0, None)
        choices.append(options)
    for settings in islice(product(*choices), _MOST_ATTEMPTS):
        yield _Attempt(settings, sure)


def _recomputed(
    call: Call, attempt: _Attempt, values: Sequence[Any], results: Mapping[int, Array], kinds: Mapping[int, str],
    machine: Machine, factor: float, *, unseen: bool,
) -> _Found:  # fmt: skip
    """Recompute with one choice of settings, and compare the outputs."""
    kind = DTYPES.get(kinds[min(kinds)])
    left = list(values)
    computed: list[Computed] = []
    names = [member.op_type for member in call.members] or [call.op_type]
    for at, (name, settings) in enumerate(zip(names, attempt.settings, strict=True)):
        definition = _defined(name)
        if at:
            left.insert(0, _as_operand(computed[0], machine))
        if settings is None:
            operands = arrange(definition, left, call.host, kind)
            attrs, left = dict(call.attrs), left[len(operands) :]
        else:
            operands, attrs = bound_by_name(definition, left, settings, kind), attrs_of(definition, settings)
        if ignored := _ignored(definition, call.machine):
            attrs = {key: value for key, value in attrs.items() if key not in ignored}
        last = at == len(names) - 1
        shortened = _check(definition, operands, attrs, results if last else {})
        real = kind is not None and kind.kind == "float"
        computed = compute(definition, operands, attrs, machine=machine, real=real)
    if call.members and left:
        raise Refusal(f"{len(left)} of its inputs are unknown")
    unwritten = {slot for slots in definition.unwritten.values() for slot in slots}

    def worst_of(computed: Sequence[Computed]) -> _Found | None:
        worst: _Found | None = None
        for slot, dumped in results.items():
            if slot >= len(computed) or slot in unwritten or (unseen and np.isnan(computed[slot].value).any()):
                continue
            found = _measured(dumped, computed[slot], kinds[slot], machine.unit, factor, slot in shortened)
            if found.error and computed[slot].value.dtype.kind in "iu" and definition.name in _CHOICES:
                found = _chosen(found, definition, operands, attrs, dumped, computed[slot].value)
            if worst is None or found.excess > worst.measured.excess:
                worst = _Found(slot, found, attempt.sure)
        return worst

    worst = worst_of(computed)
    if worst is not None and worst.measured.outside and call.machine == "cpu":
        worst = worst_of(as_on_cpu(computed, definition, operands, attrs))
    if worst is None:
        raise Refusal(_UNSEEN if unseen else "none of its outputs is recomputed")
    return worst


def _as_operand(computed: Computed, machine: Machine) -> Array:
    """Return a result as an operand of the next member of a fused operator."""
    if computed.value.dtype.kind != "f":
        return computed.value
    return Bounded.of(computed.value, computed.bound, machine)


def _defined(op_type: str) -> OpDef:
    definition = definition_of(op_type)
    if definition is None:
        raise Refusal("unknown operator type")
    return definition


def _kind(side: Side, array: Array | None) -> str:
    """Return the number type of a tensor on the device."""
    if side.dtype:
        try:
            return dtype(side.dtype).name
        except DtypeError:
            return side.dtype
    return from_numpy(array.dtype).name if array is not None else ""


def _loaded(call: Call) -> tuple[list[Any], bool]:
    """Return the operands as they were before the run, and whether NaN replaces unknown ones."""
    overwritten = _overwritten(call)
    values: list[Any] = []
    missing: list[int] = []
    for at, operand in enumerate(call.operands):
        unseen = at in overwritten and at not in call.before
        if at in overwritten and not unseen:
            operand = call.before[at]
        if isinstance(operand, Absent):
            raise Refusal(operand.reason)
        value = operand.value if isinstance(operand, Constant) else _readable(operand)
        shape = call.shapes[at] if at < len(call.shapes) else None
        if isinstance(value, np.ndarray) and shape is not None and value.size == prod(shape):
            value = value.reshape(shape)
        if unseen:
            missing.append(at)
            if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
                raise Refusal(f"input.{at}: {_UNSEEN}")
        values.append(value)
    restored = _restored(call, values, missing) if missing else []
    for at in missing:
        if at not in restored:
            values[at] = np.full_like(values[at], np.nan)  # results that do not depend on it can be recomputed
    return values, any(at not in restored for at in missing)


def _ignored(definition: OpDef, machine: str) -> frozenset[str]:
    """Return the attributes that the kernels of the machine ignore."""
    targets = ("CPU",) if machine == "cpu" else ("Ascend", "GPU")
    return frozenset(name for target in targets for name in definition.ignored.get(target, ()))


def _readable(side: Side) -> Array:
    array = side.load()
    if array.dtype.names:
        raise Refusal(f"{from_numpy(array.dtype).name} is not recomputed")
    return array


def _written(call: Call, results: Mapping[int, Array]) -> dict[int, Array]:
    """Return outputs that are operands: MindSpore's CPU kernels write these, not the memory of the outputs."""
    definition = _defined(call.op_type)
    found: dict[int, Array] = {}
    for slot, at in definition.alias.items():
        if at in definition.updates and slot in results and at < len(call.operands):
            own = call.operands[at]
            if isinstance(own, Side) and own.path is not None:
                found[slot] = own.load()
    return found


# optimizers whose state before a step follows from the state after it: a function from all operands to earlier values
Restored = Callable[[Sequence[Any]], dict[int, Any]]
_RESTORED: Mapping[str, Restored] = MappingProxyType(
    {
        "ApplyMomentum": lambda v: {1: (v[1] - v[3]) / v[4]},
        "Adam": lambda v: {1: (v[1] - (1 - v[6]) * v[9]) / v[6], 2: (v[2] - (1 - v[7]) * v[9] ** 2) / v[7]},
        "AdamWeightDecay": lambda v: {1: (v[1] - (1 - v[4]) * v[8]) / v[4], 2: (v[2] - (1 - v[5]) * v[8] ** 2) / v[5]},
        "ApplyAdagrad": lambda v: {1: v[1] - v[3] ** 2},
    }
)


def _restored(call: Call, values: list[Any], unseen: Sequence[int]) -> list[int]:
    """Replace unknown operands by their values before the step, if these can be derived; return their indices."""
    rule = _RESTORED.get(call.op_type)
    if rule is None or call.attrs.get("gradient_scale", 1.0) != 1.0:
        return []
    with np.errstate(all="ignore"):
        found = rule([np.asarray(one, np.float64) if isinstance(one, np.ndarray | float) else one for one in values])
    restored = [at for at, value in found.items() if at in unseen and bool(np.isfinite(value).all())]
    for at in restored:
        values[at] = np.asarray(found[at], values[at].dtype)
    return restored


def _overwritten(call: Call) -> frozenset[int]:
    """Return the operands whose files contain the values after the operator overwrote them.

    Inputs are dumped after the run, unless their file differs from that of the output in the same memory.
    [spec observed 0.11]
    """
    outputs = dict(call.outputs)
    definition = _defined(call.op_type)
    if call.machine == "cpu":
        return frozenset(definition.updates)
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


def _unit(call: Call, kinds: Mapping[int, str]) -> float:
    if call.compute:
        return unit(call.compute)
    if call.machine == "cpu":  # its kernels for 16-bit floats compute in the same type
        for narrow in ("float16", "bfloat16"):
            if any(isinstance(one, Side) and _kind(one, None) == narrow for one in call.operands):
                return unit(narrow)
    double = {"float64", "complex128"}
    if any(isinstance(one, Side) and one.dtype in double for one in call.operands) or double & {*kinds.values()}:
        return 2 * unit("float64")  # the recomputation is no more precise than the machine
    return unit("float32")


def _check(
    definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any], results: Mapping[int, Array]
) -> set[int]:
    """Check the inferred sizes of the outputs before any work; return those whose size depends on values."""
    shortened: set[int] = set()
    wide = any(isinstance(one, Bounded) for one in operands)
    inferred = tensors_of(definition.output_type([_abstract(one, wide) for one in operands], attrs))
    for slot, dumped in results.items():
        if slot >= len(inferred):
            raise Refusal(f"has {len(inferred)} outputs, the dump has output.{slot}")
        shape = inferred[slot].shape
        if -1 in shape:
            shortened.add(slot)
        if -1 not in shape and inferred[slot].size != dumped.size:
            raise Refusal(f"the shape of output.{slot} should be {shape}, the dump has {dumped.shape}")
    return shortened


def _abstract(value: Any, wide: bool) -> Abstract:
    """Return the type of an operand; within a fused operator (`wide`) all floats count as one type."""
    if isinstance(value, np.ndarray):
        if wide and value.dtype.kind in "fV":
            return TensorType(dtype=DTYPES["float32"], shape=value.shape)
        return TensorType(dtype=from_numpy(value.dtype), shape=value.shape, value=numbers_of(value))
    if isinstance(value, DType):
        return TypeType(value=value)
    if value is None:
        return NoneType()
    if isinstance(value, str):
        return StringType(value=value)
    if isinstance(value, tuple):
        items = tuple(_abstract(item, wide) for item in value)
        constant = all(not isinstance(item, TensorType) for item in items)
        return TupleType(items=items, value=value if constant else None)
    kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
    return ScalarType(dtype=dtype(kind), value=value)


def _measured(dumped: Array, computed: Computed, kind: str, machine: float, factor: float, shortened: bool) -> Measured:
    # the device allocates memory for the largest possible result
    own = dumped.reshape(-1)[: computed.value.size] if shortened else dumped
    if computed.value.size != own.size:
        raise Refusal(f"the recomputed shape is {computed.value.shape}, the dump has {dumped.shape}")
    if computed.value.dtype.kind == "f" and dumped.dtype.kind in "iub":
        raise Refusal(f"the recomputed type is a float, the dump has {kind}")
    return measure(own, computed, kind, machine, factor=factor)


def _chosen(
    found: Measured, definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any], own: Array, other: Array
) -> Measured:
    """Accept indices of equal elements; those of a sorted output must be distinct."""
    x = plain(operands[0])
    ordered = definition.name in ("TopK", "Sort")
    axis = attrs.get("axis", -1) if ordered else operands[1]
    own = own.reshape(-1)[: other.size].reshape(other.shape)
    if not x.ndim or own.dtype.kind not in "iu" or own.min() < 0 or own.max() >= x.shape[axis]:
        return found
    if ordered and not np.diff(np.sort(own, axis), axis=axis).all():
        return found
    places = [one.astype(np.int64) if one.ndim == x.ndim else np.expand_dims(one, axis) for one in (own, other)]
    a, b = (np.take_along_axis(x, one, axis).reshape(own.shape) for one in places)
    return whole_numbers(np.where(a == b, other, own), other)
