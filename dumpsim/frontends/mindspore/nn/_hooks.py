"""Hooks on a cell's values and gradients, and gradients that a cell computes with its own `bprop`.

The order is the vendor's: pre-hooks, `construct`, hooks; then, on the way back, the hooks of
`register_backward_pre_hook` followed by those of `register_backward_hook`. In a graph, `bprop` gives the gradient of
all of that, and hooks are compiled functions. [observed 2.10: both modes, `tests/frontends/mindspore/test_hooks.py`]
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, UnsupportedError
from dumpsim.frontends.mindspore._capture import custom_gradient
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._capture.values import rebuild, tensors_in
from dumpsim.frontends.mindspore._current import capturing

__all__ = ["Hook", "HookHandle", "Hooks", "constructed", "has_bprop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A registered function; `with_kwargs` passes it the keyword arguments, `always` calls it even after an error."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always: bool = False


@dataclass(slots=True, kw_only=True)
class Hooks:
    """The hooks of a cell, each kind in call order."""

    before: list[Hook] = field(default_factory=list)
    after: list[Hook] = field(default_factory=list)
    backward_before: list[Hook] = field(default_factory=list)
    backward: list[Hook] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.backward_before or self.backward)


class HookHandle:
    """The handle of a registered hook, which can remove it.

    Parameters
    ----------
    hooks : list of Hook, optional
        The list to add the hook to; None if the hook was not accepted.
    hook : Hook, optional
    prepend : bool
        Call it before the hooks registered so far.

    Raises
    ------
    ScriptTypeError
        The hook is not a function.

    Examples
    --------
    >>> hooks = Hooks()
    >>> handle = HookHandle(hooks.before, Hook(function=print))
    >>> handle.remove(), bool(hooks)
    (None, False)
    """

    def __init__(self, hooks: list[Hook] | None = None, hook: Hook | None = None, *, prepend: bool = False) -> None:
        self._hooks, self._hook = hooks, hook
        if hooks is None:
            return
        assert hook is not None
        if not callable(hook.function):
            raise ScriptTypeError(f"Expected a callable hook function, but got {type(hook.function).__name__}.")
        hooks.insert(0 if prepend else len(hooks), hook)

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        if self._hooks is not None:
            self._hooks[:] = [other for other in self._hooks if other is not self._hook]
            self._hooks = None


def has_bprop(cell: Any) -> bool:
    """Whether a cell defines its own gradient."""
    return hasattr(type(cell), "bprop")


def constructed(
    cell: Any,
    construct: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    inner: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None,
) -> Any:
    """Call `construct` with the cell's hooks and `bprop` applied.

    Parameters
    ----------
    cell : Cell
    construct : callable
        Bound to the cell; called with the arguments.
    args, kwargs
        The arguments of the call.
    inner : callable, optional
        Maps the positional arguments to those that `construct` receives.

    Raises
    ------
    ScriptTypeError, ScriptRuntimeError
        A hook or the `bprop` returns an unsuitable value, or has another signature.
    """
    hooks: Hooks = cell.__dict__["_hooks"]
    is_graph = capturing() is not None
    own = has_bprop(cell)
    if not hooks and not own:
        return construct(*(inner(args) if inner is not None else args), **kwargs)
    if kwargs and (own or is_graph):
        args, kwargs = _positional(cell, args, kwargs)
    run = _Run(cell=cell, hooks=hooks, construct=construct, inner=inner, is_graph=is_graph)
    if own and is_graph:  # the `bprop` is the gradient of everything, including the hooks on values
        args, kwargs = _positional(cell, args, kwargs)
        return run.with_bprop(args, kwargs, run.forward)
    return run.hooked(args, kwargs)


def _positional(
    cell: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Bind all arguments by position, defaults included, as a graph and a `bprop` expect them."""
    bound = inspect.signature(type(cell).construct).bind(cell, *args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise UnsupportedError(
            f"keyword-only arguments {sorted(bound.kwargs)} of a cell with hooks or a bprop are not emulated",
            where=f"{type(cell).__name__}.construct",
        )
    return bound.args[1:], {}


@dataclass(slots=True, kw_only=True)
class _Run:
    """One call of a cell with hooks or a `bprop`."""

    cell: Any
    hooks: Hooks
    construct: Callable[..., Any]
    inner: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None
    is_graph: bool
    grad_output: tuple[Any, ...] = ()  # the gradients of the output

    def hooked(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the forward pass, with custom-gradient nodes for the hooks on gradients."""
        if not self.hooks.backward and not self.hooks.backward_before:
            return self.forward(args, kwargs)
        output = self.forward(args, kwargs, self._watched if self.hooks.backward else None)
        if self.hooks.backward:
            output = custom_gradient.with_gradient(output, list(tensors_in(output)), self._arrived)
        if self.hooks.backward_before:
            output = custom_gradient.with_gradient(output, list(tensors_in(output)), self._before_gradient)
        return output

    def forward(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        watch: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None,
    ) -> Any:
        """Run the pre-hooks, `construct` and the hooks."""
        called: list[Hook] = []
        output = None
        try:
            args, kwargs = self._before(args, kwargs)
            args = watch(args) if watch is not None else args
            if has_bprop(self.cell) and not self.is_graph:
                output = self.with_bprop(*_positional(self.cell, args, kwargs), self._construct)
            else:
                output = self._construct(args, kwargs)
            for hook in self.hooks.after:
                called.append(hook)
                output = self._changed(output, self._after(hook, args, kwargs, output))
        except Exception:
            for hook in self.hooks.after:
                if hook.always and hook not in called:
                    output = self._changed(output, self._after(hook, args, kwargs, output))
            raise
        return output

    def _construct(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return self.construct(*(self.inner(args) if self.inner is not None else args), **kwargs)

    def _call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function of the script; it is captured if the cell is."""
        if not self.is_graph:
            return function(*args, **kwargs)
        from dumpsim.frontends.mindspore._capture import control  # a PYNATIVE script rewrites nothing

        return control.called(function, *args, **kwargs)

    # -- hooks on values

    def _before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        count = len(args)
        for hook in self.hooks.before:
            if hook.with_kwargs:
                self._refuse_in_graph(2)
                both = self._call(hook.function, self.cell, args, kwargs)
                if both is not None and not (isinstance(both, tuple) and len(both) == 2):
                    raise ScriptRuntimeError(
                        "forward pre hook with kwargs must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{both}"
                    )
                args, kwargs = (args, kwargs) if both is None else both
                continue
            changed = self._call(hook.function, self.cell, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        if self.is_graph and len(args) != count:
            raise ScriptTypeError(
                f"The forward pre hook return value size is {len(args)} not equal to input size {count}"
            )
        return args, kwargs

    def _after(self, hook: Hook, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any) -> Any:
        if hook.with_kwargs:
            self._refuse_in_graph(3)
            return self._call(hook.function, self.cell, args, kwargs, output)
        return self._call(hook.function, self.cell, args, output)

    def _refuse_in_graph(self, given: int) -> None:
        """Raise in a graph, which does not pass the keyword arguments to hooks. [observed 2.10]"""
        if self.is_graph:
            raise ScriptTypeError(
                f"The parameters number of the function is {given + 1}, but the number of provided arguments is "
                f"{given}.",
                where="with_kwargs",
            )

    @staticmethod
    def _changed(output: Any, changed: Any) -> Any:
        return output if changed is None else changed

    # -- hooks on gradients

    def _watched(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, with their gradients passed to the hooks."""
        tensors = list(tensors_in(args, parameters=False))
        seen = iter(custom_gradient.with_gradient(tuple(tensors), tensors, self._gradient))
        watched: tuple[Any, ...] = rebuild(args, seen, parameters=False)
        return watched

    def _arrived(self, gradients: tuple[Any, ...]) -> Sequence[Any]:
        self.grad_output = gradients
        return gradients

    def _before_gradient(self, gradients: tuple[Any, ...]) -> Sequence[Any]:
        expected = "input" if self.is_graph else "expect output"
        return self._through(self.hooks.backward_before, gradients, (), "pre hook", expected)

    def _gradient(self, gradients: tuple[Any, ...]) -> Sequence[Any]:
        expected = "input" if self.is_graph else "expect grad input"
        return self._through(self.hooks.backward, gradients, (self.grad_output,), "hook", expected)

    def _through(
        self, hooks: Sequence[Hook], gradients: tuple[Any, ...], more: tuple[Any, ...], kind: str, expected: str
    ) -> Sequence[Any]:
        """Pass the gradients through the hooks, one after the other."""
        new = gradients
        for hook in hooks:
            changed = self._call(hook.function, self.cell, new, *more)
            if changed is not None:
                new = changed if isinstance(changed, tuple) else (changed,)
            elif self.is_graph and len(hooks) > 1:  # the vendor's compiler loses the argument [observed 2.10]
                raise ScriptTypeError(
                    "The parameters number of the function is 2, but the number of provided arguments is 1."
                )
        if len(new) != len(gradients):
            raise ScriptTypeError(
                f"The backward {kind} return value size is {len(new)} not equal to {expected} size {len(gradients)}"
            )
        return new

    # -- the cell's own gradient

    def with_bprop(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        forward: Callable[[tuple[Any, ...], Mapping[str, Any]], Any],
    ) -> Any:
        """Call `forward`, and use the `bprop` for its gradient."""
        with custom_gradient.without_gradient():
            output = forward(args, kwargs)
        inputs = list(tensors_in(args))

        def rule(gradients: tuple[Any, ...]) -> Sequence[Any]:
            dout = rebuild(output, iter(gradients))
            found = self._bprop(args, result, dout)
            return [self._fitting(g, t) for arg, g in zip(args, found, strict=False) for g, t in _paired(g, arg)]

        result = custom_gradient.with_gradient(output, inputs, rule)
        return result

    def _bprop(self, args: tuple[Any, ...], out: Any, dout: Any) -> tuple[Any, ...]:
        bprop = self.cell.bprop
        name = self.cell.cls_name
        if self.is_graph:
            try:
                inspect.signature(bprop).bind(*args, out, dout)
            except TypeError:
                raise ScriptTypeError(
                    "The params of function 'bprop' of Primitive or Cell requires the forward inputs as well as the "
                    "'out' and 'dout'.",
                    where=f"{name}.bprop",
                ) from None
        found: Any = self._call(bprop, *args, out, dout)
        if not isinstance(found, tuple):
            if self.is_graph:
                raise ScriptTypeError(
                    f"For bprop function, output should be a tuple, but got {type(found).__name__}",
                    where=f"{name}.bprop",
                )
            found = (found,)
        gradients: tuple[Any, ...] = found
        if self.is_graph and len(found) != len(args):
            raise ScriptRuntimeError(
                "The output size of the 'bprop' must match the number of parameters in its corresponding primal "
                f"function '{name}()' : {len(found)} vs. {len(args)}."
            )
        if len(found) < len(args):
            raise ScriptRuntimeError(
                f"Grad size should lager than forward inputs, but got {len(found)} vs {len(args)}",
                where=f"{name}.bprop",
            )
        return gradients

    def _fitting(self, gradient: Any, tensor: Any) -> Any:
        """Return a gradient in the shape and type of the argument, as PYNATIVE does; a graph uses it unchanged."""
        if gradient is None or self.is_graph or tensor._dtype.kind != "float":
            return gradient
        shape, wanted = tuple(gradient._shape), tuple(tensor._shape)
        if shape != wanted:
            padded = (1,) * (len(shape) - len(wanted)) + wanted
            if len(shape) < len(wanted) or any(w not in (1, s) for s, w in zip(shape, padded, strict=True)):
                raise ScriptRuntimeError(
                    "For grad interface or custom function, grad tensor should be broadcast to expected shape, but got "
                    f"[const vector]{_braced(shape)} vs [const vector]{_braced(wanted)}",
                    where=f"{self.cell.cls_name}.bprop",
                )
            axes = tuple(
                i for i, (s, w) in enumerate(zip(shape, padded, strict=True)) if s != w or i < len(shape) - len(wanted)
            )
            gradient = call("Reshape", [call("ReduceSum", [gradient, axes, True]), wanted])
        return gradient if gradient._dtype == tensor._dtype else call("Cast", [gradient, tensor._dtype])


def _paired(gradient: Any, arg: Any) -> list[tuple[Any, Any]]:
    """Pair the gradients of an argument with its tensors; numbers and strings have no gradient."""
    tensors = list(tensors_in(arg))
    found = list(tensors_in(gradient))
    if len(found) != len(tensors):
        return [(None, tensor) for tensor in tensors]
    return list(zip(found, tensors, strict=True))


def _braced(shape: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, shape)) + "}"
