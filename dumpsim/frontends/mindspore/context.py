"""``mindspore.context``: the settings of the rank."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._fields import DEFAULTS, FIELDS, checked
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.parallel._context import (
    ParallelMode,
    get_auto_parallel_context,
    reset_auto_parallel_context,
    set_auto_parallel_context,
)
from dumpsim.world.context import current

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "ParallelMode",
    "get_auto_parallel_context",
    "get_context",
    "get_jit_config",
    "reset_auto_parallel_context",
    "set_auto_parallel_context",
    "set_context",
    "set_deterministic",
    "set_device",
]

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT, COMPATIBLE, LAX = 0, 1, 2
DEBUG, RELEASE = 1, 0

# keywords that 2.10 accepts with any value and ignores [observed 2.10]
_OBSOLETE = ("enable_sparse", "auto_tune_mode")
_SITE = "For detailed usage of '{}', please refer to the Mindspore official website."


class _DeviceError(ScriptValueError, RuntimeError):
    """The RuntimeError for a device setting that MindSpore refuses."""


class _FileError(DumpsimError, OSError):
    """The OSError for an invalid path."""


@dataclass(slots=True)
class _State:
    """The settings of the rank."""

    values: dict[str, Any] = field(default_factory=lambda: {**DEFAULTS, "device_id": current().device_id})
    given_device_id: int = field(default_factory=lambda: current().device_id)  # by the launcher
    device_id_in_effect: bool = False
    deterministic_set: bool = False
    device_set: tuple[str, int] | None = None


def _state() -> _State:
    return current().get(_State)


def _device_target() -> str:
    """Return the target of ``dumpsim run --device``, else that of the script, else Ascend. [decisions]"""
    names = {"ascend": "Ascend", "gpu": "GPU", "cpu": "CPU"}
    forced = RunSettings.from_environment().device
    return names[forced] if forced else _state().values["device_target"] or "Ascend"


def get_context(attr_key: str) -> Any:
    """Return a setting.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For a key that is not a string or is unknown, with MindSpore's message.

    Examples
    --------
    >>> get_context("max_call_depth")
    1000
    """
    if not isinstance(attr_key, str):
        raise ScriptTypeError(f"attribute name must be string, not '{type(attr_key).__name__}'")
    if attr_key not in DEFAULTS:
        raise ScriptValueError(
            f"For 'context.get_context', the argument {attr_key} is not recognized! {_SITE.format('get_context')}"
        )
    if attr_key == "device_target":
        return _device_target()
    if attr_key == "device_id":
        _state().device_id_in_effect = True
    value = _state().values[attr_key]
    return dict(value) if isinstance(value, Mapping) else value


def set_context(*args: Any, **kwargs: Any) -> None:
    """Change settings; the device target is applied first, then the others in their order.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For a positional argument, an unknown key or a value that MindSpore refuses, with its message; the settings
        before the first invalid one take effect. Also for ``enable_profiling`` with unsupported ``profiling_options``.

    Examples
    --------
    >>> set_context(max_call_depth=500)
    >>> get_context("max_call_depth")
    500
    >>> set_context(max_call_depth=1000)
    """
    if args:
        raise ScriptTypeError("too many positional arguments")
    before = {key: _state().values[key] for key in ("enable_profiling", "profiling_options")}
    for key in sorted(kwargs, key=lambda name: name != "device_target"):
        if key not in FIELDS and key not in _OBSOLETE:
            raise ScriptValueError(
                f"For 'context.set_context', the keyword argument {key} is not recognized! "
                f"{_SITE.format('set_context')}"
            )
        _set(key, kwargs[key])
    if "enable_profiling" in kwargs or "profiling_options" in kwargs:
        _profile(before)


def _profile(before: Mapping[str, Any]) -> None:
    """Apply the settings of profiling, or restore the old ones if they are not supported."""
    values = _state().values
    if not values["enable_profiling"] and not before["enable_profiling"]:
        return  # without profiling, no module of the profiler is loaded
    from dumpsim.frontends.mindspore._profiling import switch_profiling

    try:
        switch_profiling(values["enable_profiling"], values["profiling_options"])
    except DumpsimError:
        values.update(before)
        raise


def _set(key: str, value: Any) -> None:
    if key == "ascend_config" and isinstance(value, dict) and _device_target() != "Ascend":
        logger.warning(
            "For 'context.set_context', when set the argument 'ascend_config', the argument 'device_target' only "
            f"supports devices in '['Ascend']', but got '{_device_target()}', ignore it."
        )
        return
    if key in _OBSOLETE:
        logger.warning(
            f"For 'context.set_context', '{key}' parameter is deprecated, and will be removed in the next version."
        )
        return
    if key == "disable_format_transform" and _device_target() != "GPU":
        logger.warning(
            "For 'context.set_context', when set the argument 'disable_format_transform', the argument 'device_target' "
            f"only supports devices in '['GPU']', but got '{_device_target()}', ignore it."
        )
        checked(key, value)
        return
    if key == "print_file_path":
        _set_print_file_path(value)
        return
    accepted = checked(key, value)
    if key == "device_id":
        _check_device_id(accepted)
    if FIELDS[key].deprecated:
        logger.warning(
            f"For 'context.set_context', the parameter '{key}' will be deprecated and removed in a future version. "
            f"Please use the api {FIELDS[key].deprecated} instead."
        )
    if FIELDS[key].idle:
        logger.warning(f"For 'context.set_context', the emulation does nothing for '{key}': {FIELDS[key].idle}.")
    _state().values[key] = accepted
    if key == "jit_config" and "jit_level" in accepted:
        _state().values["jit_level"] = accepted["jit_level"]
    if key in ("device_id", "device_target"):
        _choose_device()


def _check_device_id(value: int) -> None:
    """Refuse another device after one is in use: its id was read, a graph was compiled or, on Ascend, the id was set.

    Operators of PYNATIVE do not count on CPU and GPU. [observed 2.10]
    """
    state = _state()
    present = state.values["device_id"]
    ascend = _device_target() == "Ascend"
    if present != value and (state.device_id_in_effect or (ascend and _is_open())):
        raise ScriptTypeError(
            f"For 'set_context', the parameter device_id can not be set repeatedly, origin value [{present}] has been "
            "in effect. Maybe 'mindspore.communication.init()' has been called before 'set_context()'."
        )
    state.device_id_in_effect = state.device_id_in_effect or ascend


def use_device_id() -> None:
    """Fix the device id, because a graph is compiled."""
    _state().device_id_in_effect = True


def _is_open() -> bool:
    from dumpsim.runtime.session import Session  # a script that sets its context loads no runtime

    return current().has(Session) and Session.current().is_open


def _choose_device() -> None:
    """Make the rank use the device chosen by the script, if the target has numbered devices."""
    state = _state()
    current().device_id = state.values["device_id"] if _device_target() == "Ascend" else state.given_device_id


def _set_print_file_path(value: Any) -> None:
    checked("print_file_path", value)
    if _device_target() == "Ascend":
        _state().values["print_file_path"] = _print_file(value)
        return
    logger.warning(
        "'print_file_path' parameter is deprecated due to changes in the behavior of the print operator. "
        "Recommend not using this parameter and directly viewing the screen output."
    )


def _print_file(path: str) -> str:
    """Return the path for the file of Print; if the file exists, append the time to the new name.

    Raises
    ------
    OSError
        For a directory, with MindSpore's message. [spec observed 3]
    """
    from dumpsim.runtime.session import Session  # a script that sets its context loads no runtime

    full = os.path.realpath(path)
    if os.path.isdir(full):
        raise _FileError(
            f"For 'context.set_context', the argument 'print_file_path' should be file path, but got directory {full}."
        )
    if os.path.exists(full):
        full = f"{full}.{Session.current().clock.now_ns // 1_000_000_000}"
    return full


def get_jit_config() -> dict[str, Any]:
    """Return the value of ``jit_config``.

    Examples
    --------
    >>> get_jit_config()
    {}
    """
    return dict(_state().values["jit_config"])


def set_deterministic(deterministic: bool) -> None:
    """Set, once, whether results must be reproducible; those of the emulation always are.

    Raises
    ------
    ScriptTypeError, ScriptRuntimeError
        For another type, and for a second call.

    Examples
    --------
    >>> set_deterministic(1)
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptTypeError: The parameter 'deterministic' must be <class 'bool'>, but got <class 'int'>
    """
    if not isinstance(deterministic, bool):
        raise ScriptTypeError(f"The parameter 'deterministic' must be <class 'bool'>, but got {type(deterministic)}")
    if _state().deterministic_set:
        raise ScriptRuntimeError("The 'mindspore.set_deterministic' can not be set repeatedly.")
    _state().deterministic_set = True
    _state().values["deterministic"] = "ON" if deterministic else "OFF"


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Choose the device, once.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For a target or an id that MindSpore refuses; for a second, different choice, the error is also a RuntimeError.

    Examples
    --------
    >>> set_device("Ascend", -1)
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptValueError: The device id must bigger than or equal to 0.
    """
    targets = ["CPU", "GPU", "Ascend"]
    if not isinstance(device_target, str):
        raise ScriptTypeError(f"The parameter 'device_target' must be <class 'str'>, but got {type(device_target)}")
    if device_target not in targets:
        raise ScriptValueError(f"The argument 'device_target' must be one of {targets}, but got {device_target}.")
    number = 0 if device_id is None else device_id
    if not isinstance(number, int) or isinstance(number, bool):
        raise ScriptTypeError(f"The parameter 'device_id' must be <class 'int'>, but got {type(number)}")
    if number < 0:
        raise ScriptValueError("The device id must bigger than or equal to 0.")
    choice = (device_target, number)
    state = _state()
    if state.device_set not in (None, choice):
        raise _DeviceError("The 'mindspore.set_device' can not be modified.")
    state.device_set = choice
    state.values["device_target"] = device_target
    state.values["device_id"] = number
    _choose_device()


def _get_mode() -> int:
    """Return 0 in GRAPH_MODE, 1 in PYNATIVE_MODE."""
    mode: int = _state().values["mode"]
    return mode


def __getattr__(name: str) -> Any:
    return vendored("mindspore.context", name)
