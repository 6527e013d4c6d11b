"""``mindspore.JitConfig``."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["JitConfig"]

# allowed values of the arguments [observed 2.10]
_LEVELS = ("O0", "O1", "O2")
_EXEC_MODES = ("auto", "sink", "no_sink")
_SYNTAX = ("STRICT", "COMPATIBLE", "LAX", "")


class JitConfig:
    """Compile settings of one cell.

    Raises
    ------
    ScriptValueError
        For a value that is not allowed.

    Examples
    --------
    >>> JitConfig(jit_level="O1").jit_config_dict["jit_level"]
    'O1'
    """

    def __init__(
        self,
        jit_level: str = "",
        exc_mode: str = "auto",
        jit_syntax_level: str = "",
        debug_level: str = "RELEASE",
        infer_boost: str = "off",
        **kwargs: Any,
    ) -> None:
        if jit_level != "" and jit_level not in _LEVELS:
            raise ScriptValueError("For 'jit_level' must be one of ['O0', 'O1', 'O2'].", allowed=_LEVELS)
        if exc_mode not in _EXEC_MODES:
            raise ScriptValueError("For 'exc_mode' must be one of '['auto', 'sink', 'no_sink']'.", allowed=_EXEC_MODES)
        if jit_syntax_level not in _SYNTAX:
            raise ScriptValueError("For 'jit_syntax_level' must be one of '['STRICT', 'LAX']'.", allowed=_SYNTAX)
        if debug_level not in ("RELEASE", "DEBUG"):
            raise ScriptValueError("For 'debug_level' must be one of '['RELEASE', 'DEBUG']'.")
        if infer_boost not in ("on", "off"):
            raise ScriptValueError("For 'infer_boost' must be one of '['on', 'off']'.")
        self.jit_config_dict: dict[str, Any] = {
            "jit_level": jit_level,
            "exc_mode": exc_mode,
            "jit_syntax_level": jit_syntax_level,
            "debug_level": debug_level,
            "infer_boost": infer_boost,
            **kwargs,
        }

    @staticmethod
    def check(value: Any, where: str) -> "JitConfig":
        """Return `value` if it is a JitConfig, else raise an error that names the argument."""
        if not isinstance(value, JitConfig):
            raise ScriptTypeError(f"The input of {where} should be JitConfig, but got {type(value)}.")
        return value


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.jit_config", name)
