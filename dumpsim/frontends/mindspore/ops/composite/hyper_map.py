"""``HyperMap``, ``Map`` and ``MultitypeFuncGraph``: functions mapped over tensors and chosen by type."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["HyperMap", "Map", "MultitypeFuncGraph"]

_KINDS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("Tensor", lambda v: isinstance(v, Tensor)),
    ("Bool", lambda v: isinstance(v, bool)),
    ("Int", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    ("Int64", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    ("Float", lambda v: isinstance(v, float)),
    ("Float32", lambda v: isinstance(v, float)),
    ("Number", lambda v: isinstance(v, (int, float))),
    ("String", lambda v: isinstance(v, str)),
    ("Tuple", lambda v: isinstance(v, tuple)),
    ("List", lambda v: isinstance(v, list)),
    ("Dictionary", lambda v: isinstance(v, dict)),
    ("None", lambda v: v is None),
    ("Function", callable),
    *((name, lambda v: False) for name in ("RowTensor", "CSRTensor", "COOTensor", "MapTensor")),  # not emulated
)
_FITS = MappingProxyType(dict(_KINDS))


class MultitypeFuncGraph:
    """Overloads of a function for arguments of different types.

    Examples
    --------
    >>> double = MultitypeFuncGraph("double")
    >>> @double.register("Number")
    ... def _(x):
    ...     return 2 * x
    >>> double(3)
    6
    """

    def __init__(self, name: str, read_value: bool = False, doc_url: str = "") -> None:
        self.name = name
        self._entries: list[tuple[tuple[str, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function for arguments of these types.

        Raises
        ------
        ScriptValueError
            For an unknown type.
        """
        names = tuple(str(name) for name in type_names)
        unknown = [name for name in names if name not in _FITS]
        if unknown:
            raise ScriptValueError(f"unknown type {unknown[0]!r}", where="MultitypeFuncGraph.register", allowed=_FITS)

        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            self._entries.append((names, fn))
            return fn

        return add

    def __call__(self, *args: Any) -> Any:
        for names, fn in self._entries:
            if len(names) == len(args) and all(_FITS[name](arg) for name, arg in zip(names, args, strict=True)):
                return _called(fn, args)
        kinds = ", ".join(type(arg).__name__ for arg in args)
        raise ScriptTypeError(
            f"no function of {self.name!r} takes ({kinds})", where="MultitypeFuncGraph",
            allowed=[f"({', '.join(names)})" for names, _ in self._entries],
        )  # fmt: skip


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a registered function; a function of the script is captured like its other functions."""
    from dumpsim.frontends.mindspore._current import capturing

    if capturing() is None or function.__module__.startswith("dumpsim."):
        return function(*args)
    from dumpsim.frontends.mindspore._capture.control import called

    return called(function, *args)


class HyperMap:
    """Call a function on the leaves of nested tuples.

    Parameters
    ----------
    ops : callable, optional
        The function; without it, the first argument of the call.
    reverse : bool
        Call it on the last element first; the results keep the order of the elements.

    Examples
    --------
    >>> HyperMap()(lambda x, y: x + y, (1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """

    _nested = True

    def __init__(self, ops: Callable[..., Any] | None = None, reverse: bool = False) -> None:
        self.ops = ops
        self.reverse = reverse

    def __call__(self, *args: Any) -> Any:
        function, sequences = (args[0], args[1:]) if self.ops is None else (self.ops, args)
        if not callable(function):
            raise ScriptTypeError("the first argument is not a function", where=type(self).__name__)
        from dumpsim.frontends.mindspore._current import capturing

        tracer = capturing()
        if tracer is None:
            return self._mapped(function, sequences)
        with tracer.ordering_weights((*getattr(function, "args", ()), *sequences)):
            return self._mapped(function, sequences)

    def _mapped(self, function: Callable[..., Any], sequences: tuple[Any, ...]) -> Any:
        first = sequences[0]
        if not isinstance(first, (tuple, list)):
            return function(*sequences)
        lengths = {len(sequence) for sequence in sequences if isinstance(sequence, (tuple, list))}
        if len(lengths) != 1:
            raise ScriptValueError(f"sequences of different lengths {sorted(lengths)}", where=type(self).__name__)
        indices = range(len(first))
        results: dict[int, Any] = {}
        for i in reversed(indices) if self.reverse else indices:
            leaves = tuple(sequence[i] for sequence in sequences)
            results[i] = self._mapped(function, leaves) if self._nested else function(*leaves)
        ordered = [results[i] for i in indices]
        return ordered if isinstance(first, list) else tuple(ordered)


class Map(HyperMap):
    """Call a function on the elements of tuples; nested tuples are passed unchanged."""

    _nested = False
