"""Who hears of the calls that a script makes op by op: of cells, of functions of ``ops``, of methods of tensors.

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
    "hear_gradients",
    "heard",
    "heard_methods",
    "listeners",
    "neutral",
    "ran_graph",
    "unheard",
]

Kind = Literal["cell", "function", "method"]


class Listener(Protocol):
    """Hears of calls, and lets them happen."""

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
        """A cell or function runs as a graph: what it calls is not heard."""
        ...

    @property
    def hears_gradients(self) -> bool:
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
    """Those who listen."""
    return current().get(_State).present


def attach(listener: Listener) -> None:
    """Let `listener` hear of calls from now on; those attached later are inside of those before."""
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
    """Call `function` and tell those who listen, unless a graph is being captured."""
    if capturing() is not None:
        return function(*args, **kwargs)
    for listener in reversed(listeners()):
        function = partial(_told, listener, kind, what, function)
    return function(*args, **kwargs)


def _told(listener: Listener, kind: Kind, what: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return listener.call(kind, what, function, args, kwargs)


def neutral() -> bool:
    """Whether dropout lets everything through, for one who listens.

    Examples
    --------
    >>> neutral()
    False
    """
    return any(listener.is_neutral for listener in listeners())


def hear_gradients() -> bool:
    """Whether somebody listens to gradients."""
    return any(listener.hears_gradients for listener in listeners())


def ran_graph(name: str) -> None:
    """Tell those who listen that a graph runs."""
    for listener in listeners():
        listener.graph(name)


def heard(kind: Kind, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls are told under `name`.

    Examples
    --------
    >>> heard("function", "largest", max)(1, 2)
    2
    """

    @wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        if not listeners():
            return function(*args, **kwargs)
        return called(kind, name, function, args, kwargs)

    return told


def unheard(function: Any) -> Any:
    """What `heard` was given: for the framework's own use of its functions."""
    return getattr(function, "__wrapped__", function)


def heard_methods(names: Iterable[str] = ()) -> Callable[[type], type]:
    """Decorator of classes: the calls of all public methods and operators are told, or of those named."""

    def decorated(cls: type) -> type:
        for name in tuple(names) or tuple(vars(cls)):
            value = vars(cls)[name]
            if callable(value) and (_is_operator(name) or not name.startswith("_")):
                setattr(cls, name, heard("method", name, value))
        return cls

    return decorated


def _is_operator(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in ("__hash__", "__init__", "__new__")
