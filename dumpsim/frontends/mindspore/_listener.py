"""Listeners to a script's calls in PYNATIVE: of cells, of functions of ``ops``, of methods of tensors.

Nothing is replaced while a script runs: all calls pass through this module, which notifies the attached listeners.
Calls within a graph are not reported, because they have no values yet.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Literal, Protocol

from dumpsim.frontends.mindspore._current import capturing
from dumpsim.world.context import current

__all__ = [
    "Kind",
    "Listener",
    "attach",
    "called",
    "detach",
    "listeners",
    "neutral",
    "observed",
    "observed_methods",
    "observes_gradients",
    "ran_graph",
    "unobserved",
]

Kind = Literal["cell", "function", "method"]


class Listener(Protocol):
    """An observer of calls, which it lets proceed."""

    def call(
        self, kind: Kind, what: Any, proceed: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Observe a call of a cell (`what`), or of a function or method (`what` is its name).

        Return the result of the call. The `args` of a method begin with the tensor; those of a cell exclude the cell.
        """
        ...

    @property
    def is_neutral(self) -> bool:
        """Whether dropout is disabled while this listener is attached, in graphs as well."""
        ...

    def graph(self, name: str) -> None:
        """Observe that a cell or function runs as a graph, whose calls are not reported."""
        ...

    @property
    def observes_gradients(self) -> bool:
        """Whether to report gradients to `gradient`; if so, backward passes run operator by operator too."""
        ...

    def gradient(self, tensor: Any, gradient: Callable[[], Any]) -> None:
        """Observe the complete gradient of a tensor of the forward pass, in the order of the backward pass."""
        ...


@dataclass(slots=True)
class _State:
    """The listeners of the rank, in all its threads."""

    present: tuple[Listener, ...] = ()


def listeners() -> tuple[Listener, ...]:
    """Return the listeners."""
    return current().get(_State).present


def attach(listener: Listener) -> None:
    """Notify `listener` of calls from now on; listeners attached later are nested within earlier ones."""
    state = current().get(_State)
    if listener not in state.present:
        state.present = (*state.present, listener)


def detach(listener: Listener) -> None:
    """Undo `attach`; do nothing for a listener that is not attached."""
    state = current().get(_State)
    state.present = tuple(other for other in state.present if other is not listener)


def called(
    kind: Kind, what: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Call `function` and notify the listeners, unless a graph is being captured."""
    if capturing() is not None:
        return function(*args, **kwargs)
    for listener in reversed(listeners()):
        function = partial(_notified, listener, kind, what, function)
    return function(*args, **kwargs)


def _notified(
    listener: Listener, kind: Kind, what: Any, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    return listener.call(kind, what, function, args, kwargs)


def neutral() -> bool:
    """Whether a listener disables dropout.

    Examples
    --------
    >>> neutral()
    False
    """
    return any(listener.is_neutral for listener in listeners())


def observes_gradients() -> bool:
    """Return whether a listener observes gradients."""
    return any(listener.observes_gradients for listener in listeners())


def ran_graph(name: str) -> None:
    """Notify the listeners that a graph runs."""
    for listener in listeners():
        listener.graph(name)


def observed(kind: Kind, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its calls are observed under `name`.

    Examples
    --------
    >>> observed("function", "largest", max)(1, 2)
    2
    """

    @wraps(function)
    def notifying(*args: Any, **kwargs: Any) -> Any:
        if not listeners():
            return function(*args, **kwargs)
        return called(kind, name, function, args, kwargs)

    return notifying


def unobserved(function: Any) -> Any:
    """Return the function that `observed` wrapped, for calls by the framework itself."""
    return getattr(function, "__wrapped__", function)


def observed_methods(names: Iterable[str] = ()) -> Callable[[type], type]:
    """Decorate a class to observe the calls of the named methods, or of all public methods and operators."""

    def decorated(cls: type) -> type:
        for name in tuple(names) or tuple(vars(cls)):
            value = vars(cls)[name]
            if callable(value) and (_is_operator(name) or not name.startswith("_")):
                setattr(cls, name, observed("method", name, value))
        return cls

    return decorated


def _is_operator(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in ("__hash__", "__init__", "__new__")
