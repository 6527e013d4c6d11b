"""Recompute calls of torch in API dumps with torch, in double precision.

An API dump contains the tensors and numbers passed to a call, but not the settings of modules. A call is recomputed if
its name and tensors determine it, or if guessed settings reproduce the recorded result.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dumpsim.analysis.apitree import ApiEntry
from dumpsim.analysis.callgroup import align_arrays
from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.operator import Operator
from dumpsim.analysis.verdict import side_of
from dumpsim.core.errors import DumpsimError
from dumpsim.core.evidence import Evidence
from dumpsim.replay.unit import largest

__all__ = ["torch_evidence"]

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

_LARGEST = 1 << 24  # elements of all inputs of a call together
_ROUNDINGS = 32.0  # multiple of the effect of changing the last bit of every element
_SAMPLES = 3
_EPSILON = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
# functions with tensor arguments only, or whose other arguments do not change the result: torch 2.13
_DETERMINED = frozenset(
    {
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bmm", "ceil", "cos", "cosh", "erf", "erfc",
        "exp", "exp2", "expm1", "floor", "log", "log10", "log1p", "log2", "logsigmoid", "matmul", "maximum",
        "minimum", "mm", "mv", "neg", "negative", "reciprocal", "relu", "relu6", "rsqrt", "selu", "sigmoid",
        "sign", "silu", "sin", "sinh", "softsign", "sqrt", "square", "tan", "tanh", "tanhshrink", "mish",
        "hardsigmoid", "hardswish", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Tanh", "Softsign",
        "Tanhshrink", "Mish", "LogSigmoid", "Hardsigmoid", "Hardswish", "Identity", "__matmul__", "__neg__",
        "__abs__",
    }
)  # fmt: skip
_RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "uniform", "poisson", "exponential", "cauchy")
# settings of modules to try; all others are the defaults
_SETTINGS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "GELU": {"approximate": ("none", "tanh")},
    "Softmax": {"dim": (-1, 1, 0, -2)},
    "LogSoftmax": {"dim": (-1, 1, 0, -2)},
    "MaxPool2d": {"kernel_size": (2, 3), "stride": (None, 1, 2), "padding": (0, 1)},
    "AvgPool2d": {"kernel_size": (2, 3), "stride": (None, 1, 2), "padding": (0, 1)},
    "AdaptiveAvgPool2d": {"output_size": (1,)},
    "CrossEntropyLoss": {"reduction": ("mean", "sum"), "label_smoothing": (0.0, 0.1)},
    "MSELoss": {"reduction": ("mean", "sum", "none")},
    "L1Loss": {"reduction": ("mean", "sum", "none")},
    "SmoothL1Loss": {"reduction": ("mean", "sum", "none")},
    "BCELoss": {"reduction": ("mean", "sum", "none")},
    "BCEWithLogitsLoss": {"reduction": ("mean", "sum", "none")},
}


class _Unknown(Exception):
    """A call cannot be recomputed; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A recorded call: candidate functions, arguments and results."""

    functions: tuple[Function, ...]
    inputs: tuple[ApiEntry, ...]
    outputs: tuple[ApiEntry, ...]
    determined: bool


def torch_evidence(dumpset: DumpSet, operator: Operator, *, on: Operator | None = None) -> Evidence:
    """Return the evidence for or against a forward call of torch, see `dumpsim.core.evidence.Recompute`.

    `dumpset` is not needed: the entries of a call know their files. Without torch everything is skipped.
    """
    try:
        own = _call(operator)
        arrays = [_value(entry) for entry in own.inputs]
        made = _matching(own, arrays)
        if on is None:
            return _measured(made, own, arrays, own.outputs)
        results = tuple(entry for entry in on.outputs if isinstance(entry, ApiEntry))
        if len(results) != len(own.outputs):
            raise _Unknown(f"has {len(own.outputs)} results, the other call {len(results)}")
        return _measured(made, own, _given(own, arrays, on), results)
    except _Unknown as error:
        return Evidence.skip(str(error))
    except (DumpsimError, OSError) as error:
        return Evidence.skip(f"unreadable: {error}")


def _call(operator: Operator) -> _Call:
    """Return the recorded call; raise _Unknown if it cannot be recomputed."""
    entries = [entry for entry in operator.entries if isinstance(entry, ApiEntry)]
    if not entries or entries[0].place.api != "torch":
        raise _Unknown("not a call of torch")
    if operator.backward:
        raise _Unknown("a backward call, of which only the incoming gradients were dumped")
    parts = entries[0].parts
    word = parts.api.lower()
    if word.endswith("_") and not word.endswith("__"):
        raise _Unknown("works in place: its input was dumped after it ran")
    if any(part in word for part in _RANDOM) and parts.kind != "NN":
        raise _Unknown("draws random numbers")
    if any(entry.path is None for entry in entries):
        raise _Unknown("no values were dumped")
    inputs = tuple(entry for entry in entries if entry.io == "input")
    outputs = tuple(entry for entry in entries if entry.io == "output")
    if not inputs or not outputs:
        raise _Unknown("its inputs or its results were not dumped")
    if sum(int(np.prod(entry.line.shape)) for entry in inputs) > _LARGEST:
        raise _Unknown("too large")
    functions = tuple(_functions(parts.kind, parts.api))
    if not functions:
        raise _Unknown("a module with weights, which an API dump does not have" if parts.kind == "NN" else "unknown")
    return _Call(functions=functions, inputs=inputs, outputs=outputs, determined=parts.api in _DETERMINED)


def _functions(kind: str, api: str) -> Iterator[Function]:
    """Yield the functions that a call of this name may belong to: for a module one per choice of settings."""
    try:
        import torch
    except ImportError:
        raise _Unknown("torch is not installed") from None
    homes = {"Functional": torch.nn.functional, "Torch": torch, "Tensor": torch.Tensor, "VF": torch._VF}
    if kind in homes:
        function = getattr(homes[kind], api, None)
        if callable(function):
            yield function
        return
    module = getattr(torch.nn, api, None)
    if kind != "NN" or module is None:
        return
    choices = _SETTINGS.get(api, {})
    for values in product(*choices.values()):
        try:
            made = module(**dict(zip(choices, values, strict=True)))
        except TypeError:
            return
        if list(made.parameters()) or list(made.buffers()):
            return
        yield made.eval()


def _value(entry: ApiEntry) -> Any:
    """Return an argument: a Python number or an array."""
    array = side_of(entry).load()
    kind = entry.line.dtype
    if kind.startswith("<class '"):
        return {"int": int, "bool": bool}.get(kind[8:-2], float)(array.item())
    return array


def _given(own: _Call, arrays: Sequence[Any], on: Operator) -> list[Any]:
    """Return the arguments of a call with its tensors replaced by those of its counterpart; weights remain."""
    theirs = [e for e in on.inputs if isinstance(e, ApiEntry) and not e.line.dtype.startswith("<class '")]
    mine = [(n, entry) for n, entry in enumerate(own.inputs) if isinstance(arrays[n], np.ndarray)]
    replaced: dict[int, Any] = {}
    for one, other in align_arrays(mine, list(enumerate(theirs)), lambda item: item[1].line.shape):
        if one is None:
            raise _Unknown("the other call has one tensor more")
        if other is not None:
            replaced[one[0]] = _value(other[1])
    if not replaced:
        raise _Unknown("the other call has no tensor in common")
    return [replaced.get(n, array) for n, array in enumerate(arrays)]


def _matching(own: _Call, arrays: Sequence[Any]) -> Function:
    """Return the function that reproduces the recorded results from the recorded arguments."""
    if own.determined:
        return own.functions[0]
    for function in own.functions:
        try:
            if _measured(function, own, arrays, own.outputs).verdict == "ok":
                return function
        except _Unknown:
            continue
    raise _Unknown("its recorded arguments do not give its results")


def _measured(function: Function, own: _Call, arrays: Sequence[Any], results: Sequence[ApiEntry]) -> Evidence:
    """Return the evidence of comparing results with those of a function."""
    made = _run(function, own, arrays)
    dumped = [_value(entry) for entry in results]
    if len(made) != len(dumped):
        raise _Unknown(f"returns {len(made)} results, {len(dumped)} were dumped")
    unit = _unit([*arrays, *dumped])
    random = np.random.default_rng(0)
    moves = [np.zeros(one.shape) for one in made]
    for _ in range(_SAMPLES):
        moved = _run(function, own, [_shaken(array, unit, random) for array in arrays])
        if [one.shape for one in moved] != [one.shape for one in made]:
            raise _Unknown("the last bits of its arguments change the shape of its results")
        for n, (one, other) in enumerate(zip(moved, made, strict=True)):
            moves[n] = np.maximum(moves[n], _distance(one, other))
    worst = Evidence(0.0, 0.0, "ok")
    for n, (own_result, other, move) in enumerate(zip(dumped, made, moves, strict=True)):
        one = np.asarray(own_result)
        if one.shape != other.shape:
            return Evidence(np.inf, 0.0, "suspect", f"output.{n} is {one.shape}, recomputed {other.shape}")
        if one.dtype.kind not in "fV":
            if not np.array_equal(one, other):
                raise _Unknown("its results are integers, which rounding may change at ties")
            continue
        high = largest(one.dtype.name)
        one = np.asarray(one, np.float64)
        beyond = np.isinf(one) & (np.copysign(1.0, one) * other > high * (1 - unit))
        found = _worst(one, np.where(beyond, one, other), move, unit, n)
        worst = max(worst, found, key=lambda evidence: (evidence.verdict == "suspect", evidence.error))
    return worst


def _worst(dumped: Array, made: Array, move: Array, unit: float, slot: int) -> Evidence:
    """Return the evidence of the element with the largest ratio of error to explained error."""
    if not dumped.size:
        return Evidence(0.0, 0.0, "ok")
    error = _distance(dumped, made)
    known = np.isfinite(move)  # elsewhere the last bits decide whether the result is finite
    # an element that no sample changed is rounded like the others
    mean = move[known].mean() / 4 if known.any() else 0.0
    size = np.where(np.isfinite(made), np.abs(made), 0.0)
    explained = np.where(known, _ROUNDINGS * (move + mean + unit * size) + np.finfo(np.float32).tiny, np.inf)
    error = np.where(known & np.isnan(error), np.inf, error)
    ratio = np.where(known, error / explained, 0.0)
    at = int(np.argmax(ratio))
    place = ", ".join(map(str, np.unravel_index(at, ratio.shape)))
    verdict = "suspect" if ratio.flat[at] > 1 else "ok"
    reason = f"output.{slot}[{place}]" if verdict == "suspect" else ""
    return Evidence(float(error.flat[at]), float(explained.flat[at]), "suspect" if reason else "ok", reason)


def _distance(a: Array, b: Array) -> Array:
    """Return the distances of elements, zero for equal ones, including NaN and infinities."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(np.subtract(a, b, dtype=np.result_type(a, b, np.float64)))
        return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, apart)


def _unit(values: Sequence[Any]) -> float:
    """Return the unit roundoff of the narrowest float type."""
    kinds = [value.dtype.name for value in values if isinstance(value, np.ndarray) and value.dtype.kind in "fV"]
    return max((_EPSILON.get(kind, 2.0**-4) for kind in kinds), default=_EPSILON["float32"])


def _shaken(value: Any, unit: float, random: np.random.Generator) -> Any:
    """Return a tensor with every element changed by about its last bit."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fV":
        return value
    wide = value.astype(np.float64)
    return wide * (1 + unit * random.choice((-1.0, 1.0), wide.shape))


def _run(function: Function, own: _Call, arrays: Sequence[Any]) -> list[Array]:
    """Return the results of a function in double precision, in the order in which they are recorded."""
    import torch

    args: dict[int | str, Any] = {}
    for entry, array in zip(own.inputs, arrays, strict=True):
        value = array
        if isinstance(array, np.ndarray):
            value = torch.from_numpy(np.array(array, np.float64 if array.dtype.kind in "fV" else array.dtype))
        _put(args, entry.parts.index or (0,), value)
    words = {str(key): _sequence(value) for key, value in args.items() if isinstance(key, str)}
    places = sorted(key for key in args if isinstance(key, int))
    if places != list(range(len(places))):
        raise _Unknown("some of its arguments were not dumped")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated ways to call are the script's business
        try:
            made = function(*(_sequence(args[place]) for place in places), **words)
        except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError) as error:
            raise _Unknown(f"torch: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from None
    return [one.numpy() for one in _tensors(made)]


def _put(args: dict[int | str, Any], index: Sequence[int | str], value: Any) -> None:
    """Set the argument at an index path; nested arguments are dicts until all are known."""
    *path, last = index
    for part in path:
        args = args.setdefault(part, {})
        if not isinstance(args, dict):
            raise _Unknown("the indices of its arguments contradict each other")
    args[last] = value


def _sequence(value: Any) -> Any:
    """Convert nested arguments back to the list that they were."""
    if not isinstance(value, dict):
        return value
    if sorted(map(str, value)) != sorted(map(str, range(len(value)))):
        raise _Unknown("some of its arguments were not dumped")
    return [_sequence(value[n]) for n in range(len(value))]


def _tensors(made: Any) -> Iterator[Any]:
    """Yield the tensors among the results."""
    if hasattr(made, "numpy"):
        yield made
    elif isinstance(made, list | tuple):
        for one in made:
            yield from _tensors(one)
    else:
        raise _Unknown(f"returns {type(made).__name__}, not a tensor")
