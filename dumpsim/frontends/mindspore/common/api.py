"""``mindspore.jit`` and the executors."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common._executor import CellGraphExecutor
from dumpsim.frontends.mindspore.common.jit_config import JitConfig

__all__ = ["jit", "jit_class", "ms_function"]

_LEVELS = ("O0", "O1", "O2")


def jit(
    function: Callable[..., Any] | None = None,
    *,
    capture_mode: str = "ast",
    jit_level: str = "O0",
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    fn: Callable[..., Any] | None = None,
    mode: str | None = None,
    input_signature: Any = None,
    hash_args: Any = None,
    jit_config: JitConfig | None = None,
    **options: Any,
) -> Any:
    """Compile a function (or a method) to a graph when it is called.

    Parameters
    ----------
    function : callable
        The function to compile; omit it to use `jit` with arguments as a decorator.
    capture_mode, jit_level, dynamic, fullgraph, backend
        As in MindSpore; the emulation captures from source in every capture mode.
    fn, mode, input_signature, hash_args, jit_config
        The argument names of older releases.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For values that MindSpore refuses.

    Examples
    --------
    >>> @jit
    ... def double(x):
    ...     return x + x
    >>> double.__name__
    'double'
    """
    if jit_level not in _LEVELS:
        raise ScriptValueError(
            f"For 'jit', the parameter 'jit_level' must be one of {list(_LEVELS)}, but got {jit_level}."
        )
    if capture_mode not in ("ast", "bytecode", "trace"):
        raise ScriptValueError(
            "For 'jit', the parameter 'capture_mode' must be one of ['ast', 'bytecode', 'trace'], but got "
            f"{capture_mode}."
        )
    level = jit_level if jit_level != "O0" else ""  # with the default, the context decides
    if jit_config is not None:
        level = JitConfig.check(jit_config, "jit_config").jit_config_dict["jit_level"] or level

    def compiled(target: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(target)
        def run(*args: Any, **kwargs: Any) -> Any:
            from dumpsim.frontends.mindspore._capture import compile as compiler
            from dumpsim.frontends.mindspore._current import capturing

            if capturing() is not None:
                return target(*args, **kwargs)
            return compiler.run_function(target, args, kwargs, level)

        run.__jit__ = True  # type: ignore[attr-defined]
        return run

    target = function if function is not None else fn
    if target is None:
        return compiled
    if not callable(target):
        raise ScriptTypeError(f"For 'jit', the parameter 'function' must be callable, but got {type(target)}.")
    return compiled(target)


ms_function = jit


class _PynativeExecutor:
    """The executor of PYNATIVE, which waits for the device."""

    __slots__ = ()

    def sync(self) -> None:
        """Wait until all launched operators are done."""
        from dumpsim.runtime.session import Session

        Session.current().synchronize()


_pynative_executor = _PynativeExecutor()


_cell_graph_executor = CellGraphExecutor()


def jit_class(cls: type) -> type:
    """Mark a class for use in graphs; classes need no mark here.

    Examples
    --------
    >>> jit_class(int) is int
    True
    """
    if not isinstance(cls, type):
        raise ScriptTypeError(f"Decorator jit_class can only be used for class type, but got {cls}.")
    if cls.__module__ != "builtins":
        cls.__ms_class__ = True  # type: ignore[attr-defined]
    return cls


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.api", name)
