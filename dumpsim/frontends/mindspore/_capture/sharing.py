"""Functions and cells with control flow on tensors that a network calls more than once.

The vendor's compiler makes one function for all calls with the same argument types, and does not inline a function that
contains a branch and is called more than once. [source inline.h GraphHasBranch] These functions are known at the end of
a capture; the capture then restarts and records each of them once, with calls of it.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.frontends.mindspore._capture import values
from dumpsim.frontends.mindspore._capture.jump import JumpError
from dumpsim.frontends.mindspore._capture.variable import bundle
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Graph, Node
from dumpsim.graph.mindspore.gradient_node import GRADIENT

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore._capture.trace import Tracer

__all__ = ["RepeatedError", "Shared", "check", "continues", "sharing", "through"]

_IN_LINE = "in line"  # key that turns off shared functions for the code after branches
_shared: ContextVar[frozenset[Hashable] | None] = ContextVar("shared", default=None)  # None: nothing is shared


class RepeatedError(Exception):
    """Functions with control flow are called more than once; the capture restarts and shares them."""

    def __init__(self, keys: frozenset[Hashable]) -> None:
        super().__init__("functions with control flow are called more than once")
        self.keys = keys


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Function:
    """A recorded function and its result."""

    graph: Graph
    result: Any


@dataclass(slots=True, kw_only=True, eq=False)
class Shared:
    """State of a capture about the functions that it calls.

    Attributes
    ----------
    counts : Counter
        Calls of functions with control flow.
    functions : dict
        The functions that are recorded once.
    alive : list
        The objects whose ids are in the keys.
    jumps : list of (str, int)
        Path and line of the branches that leave a loop, see `loop.ending`.
    continues : bool
        Whether the code after a branch is a function that its sides call.
    """

    counts: Counter[Hashable] = field(default_factory=Counter)
    functions: dict[Hashable, _Function] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)
    jumps: list[tuple[str, int]] = field(default_factory=list)
    continues: bool = False


@contextmanager
def sharing(keys: frozenset[Hashable] | None) -> Iterator[None]:
    """Record the functions of these keys once; with None, nothing is shared."""
    token = _shared.set(keys)
    try:
        yield
    finally:
        _shared.reset(token)


def check(tracer: "Tracer") -> None:
    """Raise `RepeatedError` if a finished capture has called functions with control flow more than once.

    In a network with gradients, calls are not shared: the gradient of a shared function is not emulated.
    """
    known = _shared.get()
    nodes = list(everything(tracer.graph.trail))
    gradients = sum(node.op_type == GRADIENT for node in nodes)
    differentiates = gradients > 0
    loops = [node for node in nodes if node.op_type == "While"]
    inside = any(one.op_type == GRADIENT for loop in loops for block in loop.blocks for one in everything(block.trail))
    if tracer.shared.jumps and (gradients > 1 or inside):  # the gradient needs the iterations of such a loop
        raise JumpError(*tracer.shared.jumps[0], flags=True)
    if known is not None and differentiates and tracer.shared.continues:
        raise RepeatedError(known | {_IN_LINE})
    if known is None or differentiates:
        return
    found = frozenset(key for key, count in tracer.shared.counts.items() if count > 1)
    if not found <= known:
        raise RepeatedError(known | found)


def continues() -> bool:
    """Return whether the code after a branch may be a function that both sides call; record that it is one."""
    known, tracer = _shared.get(), capturing()
    if known is None or _IN_LINE in known or tracer is None:
        return False
    tracer.shared.continues = True
    return True


def through(
    tracer: "Tracer",
    function: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    run: Callable[..., Any],
) -> Any:
    """Call a function of the script; `run` records it."""
    known = _shared.get()
    key = _key(function, args, kwargs) if known is not None else None
    if known is None or key is None:
        return run(*args, **kwargs)
    tracer.shared.alive.append((function, args, kwargs))
    if key in known:
        return _called(tracer, key, args, kwargs, run)
    graph, start = tracer.mark()
    result = run(*args, **kwargs)
    if any(node.blocks for node in graph.trail[start:]):
        tracer.shared.counts[key] += 1
    return result


def _called(
    tracer: "Tracer", key: Hashable, args: tuple[Any, ...], kwargs: Mapping[str, Any], run: Callable[..., Any]
) -> Any:
    given = _symbolic((args, kwargs))
    found = tracer.shared.functions.get(key)
    if found is None:
        with tracer.block("function") as graph:
            formals = [
                tracer.argument("", TensorType(dtype=tensor._dtype, shape=tuple(tensor._shape))) for tensor in given
            ]
            inner_args, inner_kwargs = _replaced((args, kwargs), formals)
            result = run(*inner_args, **inner_kwargs)
            graph.output = bundle([tracer.value_of(tensor) for tensor in _symbolic(result)])
        found = tracer.shared.functions[key] = _Function(graph=graph, result=result)
    types = tuple(TensorType(dtype=t._dtype, shape=tuple(t._shape)) for t in _symbolic(found.result))
    node = Node(
        op_type="Invoke",
        operands=[tracer.value_of(tensor) for tensor in given],
        abstract=TupleType(items=types),
        blocks=(found.graph,),
    )
    tracer.append(node)
    return _replaced(found.result, list(tracer.unpack(node, node.abstract)))


def _symbolic(value: Any) -> list[Any]:
    return [tensor for tensor in values.tensors_in(value) if tensor._symbol is not None]


def _replaced(value: Any, fresh: list[Any]) -> Any:
    """Replace the symbolic tensors of a value, in order."""
    pending = iter(fresh)
    return values.rebuild(
        value,
        iter([next(pending) if tensor._symbol is not None else tensor for tensor in values.tensors_in(value)]),
    )


def _key(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable | None:
    """Return the key by which the vendor's compiler considers calls equal; None if a value is not hashable."""
    owner = getattr(function, "__self__", None)
    target = getattr(function, "__func__", function)
    try:
        key = (id(target), id(owner), _type(args), _type(tuple(sorted(kwargs.items()))))
        hash(key)
    except TypeError:
        return None
    return key


def _type(value: Any) -> Hashable:
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(_type, value)))
    if values.is_tensor(value) and value._symbol is not None:
        return ("tensor", value._dtype.name, tuple(value._shape))
    if value is None or isinstance(value, (bool, int, float, str)):
        return (type(value), value)
    return ("object", id(value))
