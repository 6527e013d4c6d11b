"""``profiling_options`` of set_context: which data is collected, and where it goes. [seed 004]"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, nearest

__all__ = ["METRICS", "ProfilingOptions", "parse_options"]

METRICS = ("ArithmeticUtilization", "PipeUtilization", "Memory", "MemoryL0", "ResourceConflictRatio")
DEFAULT_METRICS = "PipeUtilization"
_DEFAULT = "training_trace"  # if a script gives no value
_SWITCHES = ("training_trace", "task_trace", "aicpu_trace")
_POINTS = ("fp_point", "bp_point")
_KEYS = ("result_path", *_SWITCHES, *_POINTS, "ai_core_metrics")
_WHERE = "profiling_options"
_ON_OFF = ("on", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilingOptions:
    """The data that a profile collects.

    Attributes
    ----------
    result_path : str
        A directory that exists; a relative path starts at the working directory.
    training_trace : bool
        Iterations: forward pass, backward pass, rest.
    task_trace : bool
        Tasks of each stream, and tables of operators.
    aicpu_trace : bool
        Tasks of the AI CPU.
    fp_point, bp_point : str
        Full names of the operators where the forward pass starts and the backward pass ends; "": found by the profiler.
    ai_core_metrics : str
        One of `METRICS`.
    metrics_given : bool
        The script names the metrics, which asks for the table of operators even without `task_trace`.
    """

    result_path: str = "."
    training_trace: bool = False
    task_trace: bool = False
    aicpu_trace: bool = False
    fp_point: str = ""
    bp_point: str = ""
    ai_core_metrics: str = DEFAULT_METRICS
    metrics_given: bool = False

    @property
    def operators(self) -> bool:
        """Whether the table of operators is requested."""
        return self.task_trace or self.metrics_given


def parse_options(text: str) -> ProfilingOptions:
    """Read ``profiling_options``.

    Raises
    ------
    ScriptValueError, ScriptTypeError
        For text that is not a JSON object, unknown keys, values of a wrong type, unknown values, and a result path that
        does not exist or cannot be written to.

    Examples
    --------
    >>> parse_options('{"result_path": ".", "training_trace": "on"}').training_trace
    True
    >>> parse_options('{"result_path": ".", "ai_core_metrics": "Memory"}').operators
    True
    """
    if text.strip() == _DEFAULT:
        return ProfilingOptions(result_path=os.path.abspath("."), training_trace=True)
    given = _object(text)
    for key in given:
        if key not in _KEYS:
            raise ScriptValueError(f"unknown key {key!r}", where=_WHERE, allowed=_KEYS, nearest=nearest(key, _KEYS))
    for key, value in given.items():
        if not isinstance(value, str):
            raise ScriptTypeError(f"{value!r} is {type(value).__name__}", where=f"{_WHERE}.{key}", allowed=("str",))
    for key in _SWITCHES:
        if given.get(key, "off") not in _ON_OFF:
            raise ScriptValueError(
                f"{given[key]!r} is not a switch", where=f"{_WHERE}.{key}", allowed=_ON_OFF,
                nearest=nearest(given[key].lower(), _ON_OFF),
            )  # fmt: skip
    metrics = given.get("ai_core_metrics", DEFAULT_METRICS)
    if metrics not in METRICS:
        raise ScriptValueError(
            f"{metrics!r} is not a group of metrics", where=f"{_WHERE}.ai_core_metrics", allowed=METRICS,
            nearest=nearest(metrics, METRICS),
        )  # fmt: skip
    traced = given.get("training_trace") == "on"
    for key in _POINTS:
        if given.get(key) and not traced:
            raise ScriptValueError(
                "has no effect while training_trace is off", where=f"{_WHERE}.{key}", allowed=('training_trace "on"',)
            )
    return ProfilingOptions(
        result_path=_directory(given),
        training_trace=traced,
        task_trace=given.get("task_trace") == "on",
        aicpu_trace=given.get("aicpu_trace") == "on",
        fp_point=given.get("fp_point", ""),
        bp_point=given.get("bp_point", ""),
        ai_core_metrics=metrics,
        metrics_given="ai_core_metrics" in given,
    )


def _object(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ScriptValueError(
            f"{text!r} is not JSON: {error}", where=_WHERE, allowed=(f"an object with the keys {', '.join(_KEYS)}",)
        ) from error
    except RecursionError as error:
        raise ScriptValueError("the JSON is nested too deeply", where=_WHERE) from error
    if not isinstance(given, dict):
        raise ScriptTypeError(f"{text!r} is not a JSON object", where=_WHERE, allowed=("object",))
    return given


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise if a key occurs twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ScriptValueError(f"the key {key!r} occurs twice", where=_WHERE)
        found[key] = value
    return found


def _directory(given: Mapping[str, str]) -> str:
    where = f"{_WHERE}.result_path"
    path = given.get("result_path", "")
    if not path:
        raise ScriptValueError("no directory is given for the results", where=where, allowed=("an existing directory",))
    if "\0" in path or not os.path.isdir(path):
        raise ScriptValueError(
            f"{path!r} is not a directory that exists", where=where, allowed=("a directory made before the run",)
        )
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise ScriptValueError(f"{path!r} cannot be read and written", where=where)
    return os.path.abspath(path)
