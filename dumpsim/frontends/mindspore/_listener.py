"""Listeners to the calls that a script makes op by op: of cells, of functions of ``ops``, of methods of tensors.

Nothing is replaced while a script runs: the calls go through here from the start, and ask whether somebody listens. In
a graph nobody is asked, because no values are there yet.
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
    """Observes calls, and lets them happen."""

    def call(
        self, kind: Kind, what: Any, proceed: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """A call of a cell (`what`), of a function or method (its name).

        Returns what the call gives. `args` of a method begin with the tensor, those of a cell do not hold the cell.
        """
        ...

    @property
    def is_neutral(self) -> bool:
        """Whether dropout lets everything through while this one listens, in graphs as well."""
        ...

    def graph(self, name: str) -> None:
        """A cell or function runs as a graph: its calls are not observed."""
        ...

    @property
    def observes_gradients(self) -> bool:
        """Whether `gradient` is of use now: then backward passes run op by op too."""
        ...

    def gradient(self, tensor: Any, gradient: Callable[[], Any]) -> None:
        """The whole gradient by a tensor of the forward pass is known, in the order of the backward pass."""
        ...


@dataclass(slots=True)
class _State:
    """Those who listen, in any thread of the rank."""

    present: tuple[Listener, ...] = ()


def listeners() -> tuple[Listener, ...]:
    """Return the listeners."""
    return current().get(_State).present


def attach(listener: Listener) -> None:
    """Notify `listener` of calls from now on; those attached later are inside of those before."""
    state = current().get(_State)
    if listener not in state.present:
        state.present = (*state.present, listener)


def detach(listener: Listener) -> None:
    """Undo `attach`; does nothing for one that is not attached."""
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
    """Whether dropout lets everything through, for one who listens.

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
    """Return the function, with its calls observed under `name`.

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
    """Return what `observed` was given: for the framework's own use of its functions."""
    return getattr(function, "__wrapped__", function)


def observed_methods(names: Iterable[str] = ()) -> Callable[[type], type]:
    """Decorator of classes: observe the calls of all public methods and operators, or of those named."""

    def decorated(cls: type) -> type:
        for name in tuple(names) or tuple(vars(cls)):
            value = vars(cls)[name]
            if callable(value) and (_is_operator(name) or not name.startswith("_")):
                setattr(cls, name, observed("method", name, value))
        return cls

    return decorated


def _is_operator(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in ("__hash__", "__init__", "__new__")
