"""Calls near those of ``cases.py``: other number types, shapes and settings, in whichever MindSpore they are run.

``fixtures/ops/record_variants.py`` records what real MindSpore 2.10 makes of them.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from ops.cases import CASES, Case, arrays

__all__ = ["agree", "calls", "namespace", "outcome"]

Array = np.ndarray[Any, Any]
Call = tuple[str, list[Array], str]

_KINDS = ("float16", "float64", "int32", "int64", "uint8", "bool")
_NAMES = "abcdef"
_TOLERANCES = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-5}  # relative to the sum of the magnitudes


def namespace(package: str) -> dict[str, Any]:
    """The names in the calls of ``cases.py``, of a package with MindSpore's interface."""
    root = import_module(package)
    modules = {"mint": "mint", "ops": "ops", "P": "ops.operations", "G": "ops.auto_generate"}
    names = {name: import_module(f"{package}.{module}") for name, module in modules.items()}
    gradients = import_module(f"{package}.ops.operations._grad_ops")
    return {"ms": root, "Tensor": root.Tensor, "O": gradients, **names}


def _shapes(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Shapes that differ in one extent or in the number of axes."""
    yield (1, *shape)
    yield (*shape, 1)
    if shape:
        yield shape[1:]
        yield shape[:-1]
    for at, n in enumerate(shape):
        for other in sorted({1, n - 1, n + 1} - {0, n}):
            yield (*shape[:at], other, *shape[at + 1 :])


def _calls(text: str) -> Iterator[str]:
    """The call with one constant changed."""
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, int | float):
            continue
        was = node.value
        if isinstance(was, bool):
            others: set[Any] = {not was}
        else:
            others = {was * 2, -was, 0.0, 1.0} if isinstance(was, float) else {was + 1, was - 1, -was, 0, was + 7}
        for other in sorted(others - {was}):
            node.value = other
            yield ast.unparse(tree)
        node.value = was


def _variants(case: Case, drawn: Sequence[Array], *, whole: bool) -> Iterator[Call]:
    """Calls with a name: each has the case's arrays or text, but for one thing; `whole` adds other number types."""
    assert case.real is not None
    for kind in _KINDS if whole else ():
        with np.errstate(all="ignore"):
            cast = [np.asarray(np.abs(a) if kind == "uint8" else a).astype(kind) for a in drawn]
        if len(drawn) > 1:
            yield f"all {kind}", cast, case.real
        for at, array in enumerate(drawn):
            if array.dtype != kind:
                yield f"{_NAMES[at]} {kind}", [*drawn[:at], cast[at], *drawn[at + 1 :]], case.real
    for at, array in enumerate(drawn):
        for shape in dict.fromkeys(_shapes(array.shape)):
            resized = np.resize(array, shape).astype(array.dtype)
            yield f"{_NAMES[at]} {list(shape)}", [*drawn[:at], resized, *drawn[at + 1 :]], case.real
    for text in dict.fromkeys(_calls(case.real)):
        if text != case.real:
            yield text, list(drawn), text


def calls() -> dict[str, list[Call]]:
    """Variants of all cases of MindSpore's CPU, by the case; the first case of an operator has all number types."""
    seen, found = set(), {}
    for case in CASES:
        if case.real is not None and arrays(case) and "Dropout" not in case.id:
            found[case.id] = list(_variants(case, arrays(case), whole=case.op not in seen))
            seen.add(case.op)
    return found


def _shadow(array: Array) -> list[float]:
    """A weighted sum of the finite elements, which nearly every change of one moves, and how many are not finite."""
    flat = np.asarray(array, np.float64).ravel()
    finite = np.isfinite(flat)
    weighted = flat[finite] * np.cos(np.arange(1.0, flat.size + 1))[finite]
    return [float(weighted.sum()), int((~finite).sum()), float(np.abs(weighted).sum())]


def outcome(text: str, given: Sequence[Array], names: Mapping[str, Any]) -> list[Any] | Exception:
    """What a call gives: number type, shape and shadow of each output; or the error that it raises."""
    tensors = {name: names["Tensor"](array) for name, array in zip(_NAMES, given, strict=False)}
    try:
        result = eval(text, dict(names), tensors)
        results = result if isinstance(result, tuple | list) else (result,)
        outputs = [one.asnumpy() for one in results]
    except Exception as error:
        return error
    return [[str(one.dtype), list(one.shape), *_shadow(one)] for one in outputs]


def message(error: Exception) -> str:
    """The first line of an error: what follows tells where it was raised."""
    return str(error).strip().split("\n")[0].strip()


def agree(ours: list[Any] | Exception, recorded: Any, share: float = 1.0) -> bool:
    """Whether an outcome is the recorded one: ``[class]``, ``[class, message]``, or a list per output."""
    if isinstance(ours, Exception) or not recorded or isinstance(recorded[0], str):
        return (
            isinstance(ours, Exception)
            and recorded[0] in [kind.__name__ for kind in type(ours).__mro__]
            and recorded[1:] in ([], [message(ours)])
        )
    return len(ours) == len(recorded) and all(
        one[:2] == other[:2]
        and one[3] == other[3]
        and abs(one[2] - other[2]) <= share * max(one[4], 1e-6) * _TOLERANCES.get(one[0], 1e-8)
        for one, other in zip(ours, recorded, strict=True)
    )
