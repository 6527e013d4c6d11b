"""``mindspore.nn.Cell``: the building block of networks."""

import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import _listener as listener
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._capture import tape
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._standin import missing_member, vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.jit_config import JitConfig
from dumpsim.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication.management import get_group_size
from dumpsim.frontends.mindspore.context import GRAPH_MODE, _get_mode, get_auto_parallel_context
from dumpsim.frontends.mindspore.nn._hooks import Hook, HookHandle, Hooks, constructed, has_bprop
from dumpsim.frontends.mindspore.nn._tree import CellTree
from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = ["Cell", "GraphCell"]

# state of one cell's compilation, which copies do not take over
_OWN = ("_programs", "_scope", "_create_time", "_compile_cache", "_phase_cache", "_parameter_layout_dict")
_FLOAT_FLAGS = MappingProxyType({"float16": "fp16", "float32": "fp32", "bfloat16": "bf16"})


class Cell(CellTree):
    """A network or a part of one: parameters, cells and a `construct` that uses them.

    Parameters
    ----------
    auto_prefix : bool
        Prefix parameter names with the path of attributes that leads to them.
    flags : dict, optional
        Settings of the compilation.

    Examples
    --------
    >>> class Twice(Cell):
    ...     def construct(self, x):
    ...         return x + x
    >>> Twice().cls_name
    'Twice'
    """

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        self.__dict__.update(
            _params={},
            _cells={},
            _primitives={},
            _flags=dict(flags or {}),
            _auto_prefix=auto_prefix,
            _param_prefix="",
            _hooks=Hooks(),
            _running=0,
            cls_name=type(self).__name__,
            training=False,
            requires_grad=False,
            _user_parameters=[],
            _float_type=None,
            _set_inputs=None,
            _jit_config_dict={},
            _phase="train",
        )

    # -- attributes

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        if name in state.get("_params", ()):
            return self._as_used(state["_params"][name])
        for kind in ("_cells", "_primitives"):
            if name in state.get(kind, ()):
                return state[kind][name]
        raise missing_member(self, "Cell", f"The '{type(self).__name__}' object has no attribute '{name}'.", name)

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if "_cells" not in state:
            if isinstance(value, (Cell, Parameter, Primitive)):
                raise AttributeError(
                    f"For 'Cell', cannot assign {type(value).__name__} before using super().__init__()."
                )
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Parameter):
            if name not in state["_cells"]:
                self._drop(name)
            self.insert_param_to_cell(name, value)
        elif isinstance(value, Cell):
            if name not in state["_params"]:
                self._drop(name)
            if self._auto_prefix:
                value.update_parameters_name(f"{name}.")
            self.insert_child_to_cell(name, value)
        elif isinstance(value, Primitive):
            self._drop(name)
            value.set_prim_instance_name(name)
            state["_primitives"][name] = value
        elif name in state["_params"] and isinstance(value, Tensor):
            self._write(state["_params"][name], value)
        else:
            self._refuse_other_kind(name, value)
            self._drop(name)
            if isinstance(value, (ParameterTuple, list, tuple)) and value and _are_parameters(value):
                self._register_all(value)
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for kind in ("_params", "_cells", "_primitives"):
            if name in self.__dict__[kind]:
                del self.__dict__[kind][name]
                return
        object.__delattr__(self, name)

    def _drop(self, name: str) -> None:
        """Remove an attribute before a value of another kind is assigned to it."""
        for kind in ("_params", "_cells", "_primitives"):
            self.__dict__[kind].pop(name, None)
        self.__dict__.pop(name, None)

    def _refuse_other_kind(self, name: str, value: Any) -> None:
        """Raise for a value other than None that is assigned over a parameter or a cell."""
        if value is not None and self._params.get(name) is not None:
            raise ScriptTypeError(
                f"Parameter '{name}' already exists in network, can not assign this type: '{type(value)}' as a "
                "parameter."
            )
        if value is not None and self._cells.get(name) is not None:
            raise ScriptTypeError(
                f"Sub cell '{name}' already exists in network, can not assign this type: '{type(value)}' as a cell."
            )

    def _register_all(self, parameters: Any) -> None:
        for parameter in parameters:
            if parameter.is_named:
                self.__dict__["_params"].setdefault(parameter.name, parameter)

    @staticmethod
    def _write(parameter: Parameter, value: Tensor) -> None:
        """``self.weight = value``: an operator Assign in a graph."""
        tracer = capturing()
        if tracer is not None:
            tracer.specialised.assignment(parameter, value)
            call("Assign", [parameter, value])
        else:
            parameter.set_data(value)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a copy takes over: everything except the compilation of this cell."""
        return {name: value for name, value in self.__dict__.items() if name not in _OWN}

    # -- calling

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the cell's result; every cell of a script overrides this."""
        raise AttributeError("For 'Cell', the method 'construct' is not defined.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "_cells" not in self.__dict__:
            raise AttributeError(
                f"The '{type(self).__name__}' object has no attribute '_cells': call super().__init__() first"
            )
        self.__dict__["_running"] += 1
        try:
            return self._called(args, kwargs)
        finally:
            self.__dict__["_running"] -= 1

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if capturing() is not None:
            from dumpsim.frontends.mindspore._capture import control  # a PYNATIVE script rewrites nothing

            if "_strategies" in self.__dict__:
                module = import_module("dumpsim.frontends.mindspore.parallel.shard")
                args = module.marked(args, self.__dict__["_strategies"][0])
            return control.call_cell(self, self._inputs(args), kwargs)
        if _get_mode() == GRAPH_MODE and not tape.is_within_cell():
            from dumpsim.frontends.mindspore._capture import compile as compiler  # a PYNATIVE script loads no compiler

            return compiler.run_cell(self, self._inputs(args), kwargs)
        if listener.listeners():
            return listener.called("cell", self, self._run, args, kwargs)
        return self._run(*args, **kwargs)

    def _share_parameters(self) -> None:
        """Take over the weights of rank 0 after compilation, if the parallel context asks for it."""
        if get_auto_parallel_context("parameter_broadcast"):
            # imported here: the module defines cells itself
            import_module("dumpsim.frontends.mindspore.nn.wrap._broadcast").broadcast_parameters(self)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the cell operator by operator."""
        wanted = bool(self.__dict__.get("requires_grad")) and not kwargs
        with tape.within(self), tape.forward(self, args, wanted=wanted) as call:
            output = self._run_construct(self.construct, args, kwargs, self._inputs)
            if call is not None:
                call.value = output
        return output

    def _run_construct(
        self,
        construct: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        inner: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None,
    ) -> Any:
        """Call `construct` with the cell's hooks and `bprop` applied."""
        return constructed(self, construct, args, kwargs, inner)

    def _inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, with floats cast to the type set by `to_float`."""
        kind = self.__dict__["_float_type"]
        return tuple(_as_float(arg, kind) for arg in args) if kind is not None else args

    def _as_used(self, parameter: Parameter) -> Any:
        """Return the parameter, cast to the type set by `to_float` while the cell is running."""
        kind = self.__dict__["_float_type"]
        if kind is None or not self.__dict__["_running"]:
            return parameter
        return _as_float(parameter, kind)

    # -- settings

    def set_train(self, mode: bool = True) -> "Cell":
        """Set the training flag of this cell and all cells below it.

        Examples
        --------
        >>> Cell().set_train().training
        True
        """
        for cell in self._all():
            cell.__dict__["training"] = bool(mode)  # any value is accepted [observed 2.10]
        self.__dict__["_phase"] = "train" if mode else "predict"
        return self

    # -- compiling

    @property
    def phase(self) -> str:
        """The first part of the name under which a call compiles."""
        phase: str = self.__dict__["_phase"]
        return phase

    @phase.setter
    def phase(self, value: str) -> None:
        if not isinstance(value, str):
            raise ScriptTypeError(f"For 'Cell', the property 'phase' must be string type, but got type {type(value)}.")
        self.__dict__["_phase"] = value

    @property
    def create_time(self) -> int:
        """The time of the first access in nanoseconds, which is a part of the cell's phases."""
        made: int = self.__dict__.setdefault("_create_time", time.time_ns())
        return made

    @property
    def compile_cache(self) -> set[str]:
        """The full names of the phases compiled so far."""
        found: set[str] = self.__dict__.setdefault("_compile_cache", set())
        return found

    @property
    def phase_cache(self) -> dict[str, str]:
        """The latest full name of a phase, by its first part."""
        found: dict[str, str] = self.__dict__.setdefault("_phase_cache", {})
        return found

    @property
    def parameter_layout_dict(self) -> dict[str, Any]:
        """Slices of the parameters after a compilation for several devices; empty before that."""
        found: dict[str, Any] = self.__dict__.setdefault("_parameter_layout_dict", {})
        return found

    @parameter_layout_dict.setter
    def parameter_layout_dict(self, value: dict[str, Any]) -> None:
        if not isinstance(value, dict):
            raise ScriptTypeError(
                f"For 'Cell', the property 'parameter_layout_dict' must be dict type, but got type {type(value)}."
            )
        self.__dict__["_parameter_layout_dict"] = value

    def set_grad(self, requires_grad: bool = True) -> "Cell":
        """Set whether gradients of this cell will be taken."""
        self.__dict__["requires_grad"] = requires_grad
        return self

    def to_float(self, dst_type: DType) -> "Cell":
        """Compute in another float type: cells cast their inputs and parameters where they use them.

        Raises
        ------
        ScriptValueError
            For a type other than float16, float32 and bfloat16.
        """
        if not isinstance(dst_type, DType) or dst_type.name not in _FLOAT_FLAGS:
            raise ScriptValueError(
                "For 'to_float', the argument 'dst_type' must be mstype.float32, mstype.float16 or mstype.bfloat16, "
                f"but got type: {type(dst_type)} and value: {dst_type}."
            )
        for cell in self._all():
            cell.__dict__["_float_type"] = mstype.number(dst_type)
            cell._flags.update({flag: name == dst_type.name for name, flag in _FLOAT_FLAGS.items()})
        return self

    def add_flags(self, **flags: Any) -> "Cell":
        """Set flags of the compilation on this cell.

        Examples
        --------
        >>> Cell().add_flags(dump=True).get_flags()
        {'dump': True}
        """
        self._flags.update(flags)
        return self

    def add_flags_recursive(self, **flags: Any) -> "Cell":
        """`add_flags` on the cell and all below it."""
        for cell in self._all():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """The flags of the cell."""
        return dict(self._flags)

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Declare the types of the arguments; each call determines the extents that are None."""
        self.__dict__["_set_inputs"] = (inputs, kwargs)

    def get_inputs(self) -> Any:
        """The types that `set_inputs` declared, or None."""
        stated = self.__dict__["_set_inputs"]
        return None if stated is None else stated[1] or stated[0]

    def set_jit_config(self, jit_config: JitConfig) -> None:
        """Set the compile settings of this cell."""
        self.__dict__["_jit_config_dict"] = JitConfig.check(jit_config, "set_jit_config").jit_config_dict

    @property
    def jit_config_dict(self) -> dict[str, Any]:
        """The compile settings of this cell, by the names of `JitConfig`; empty if the script set none."""
        return dict(self.__dict__["_jit_config_dict"])

    def recompute(self, **kwargs: Any) -> None:
        """Raise UnsupportedError: recomputation is not emulated."""
        raise UnsupportedError("recomputation is not emulated", where=f"{self.cls_name}.recompute")

    def shard(self, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Any:
        """Declare how the arguments and Parameters are sliced in each call, see `mindspore.parallel.shard`.

        With a single rank, this has no effect. [2.10 observed]

        Returns
        -------
        callable
            A function that calls the cell, for scripts written for releases before 2.3.
        """
        module = import_module("dumpsim.frontends.mindspore.parallel.shard")
        if get_group_size() > 1:
            module.check_shard(in_strategy, out_strategy)
            module.plan_parameters(self, parameter_plan)
            before = self.__dict__.get("_strategies")
            if before is not None:
                logger.warning(
                    f"For '{type(self).__name__}', 'Shard' has been configured more than once. The existing "
                    f"in_strategy is {before[0]} and the existing out_strategy is {before[1]}. The new in_strategy "
                    f"{in_strategy} and out_strategy {out_strategy} may not take effect. It is recommended to "
                    "configure 'Shard' only once."
                )
            self.__dict__["_strategies"] = (in_strategy, out_strategy)
        return lambda *args: self(*args)

    # -- hooks

    def register_forward_pre_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook_fn(cell, inputs)`` before `construct`; its result replaces the inputs.

        Parameters
        ----------
        hook_fn : callable
            In a graph, it is compiled together with the cell, at the cell's first compilation.
        prepend : bool
            Call it before the hooks registered so far.
        with_kwargs : bool
            Call ``hook_fn(cell, args, kwargs)`` in PYNATIVE; it returns None or new `args` and `kwargs`.

        Raises
        ------
        ScriptTypeError
            `hook_fn` is not a function.

        Examples
        --------
        >>> from dumpsim.frontends.mindspore.nn import Identity
        >>> cell = Identity()
        >>> handle = cell.register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 2,))
        >>> cell(Tensor([3.0])).asnumpy()
        array([6.], dtype=float32)
        """
        hook = Hook(function=hook_fn, with_kwargs=with_kwargs)
        return HookHandle(self.__dict__["_hooks"].before, hook, prepend=prepend)

    def register_forward_hook(
        self,
        hook_fn: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Call ``hook_fn(cell, inputs, output)`` after `construct`; its result replaces the output.

        A cell with a `bprop` silently ignores the hook. [observed 2.10]

        Parameters
        ----------
        hook_fn : callable
        prepend, with_kwargs : bool
            As in `register_forward_pre_hook`.
        always_call : bool
            In PYNATIVE, call it even if the cell raises.

        Raises
        ------
        ScriptTypeError
            `hook_fn` is not a function.

        Examples
        --------
        >>> from dumpsim.frontends.mindspore.nn import Identity
        >>> cell = Identity()
        >>> handle = cell.register_forward_hook(lambda cell, inputs, output: output * 2)
        >>> cell(Tensor([3.0])).asnumpy()
        array([6.], dtype=float32)
        """
        if has_bprop(self):
            return HookHandle()
        hook = Hook(function=hook_fn, with_kwargs=with_kwargs, always=always_call)
        return HookHandle(self.__dict__["_hooks"].after, hook, prepend=prepend)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call ``hook_fn(cell, grad_output)`` with the gradient of the output; its result replaces that gradient.

        Raises
        ------
        ScriptTypeError
            `hook_fn` is not a function.

        Examples
        --------
        >>> from dumpsim.frontends.mindspore import nn, ops
        >>> cell = nn.ReLU()
        >>> handle = cell.register_backward_pre_hook(lambda cell, grad_output: (grad_output[0] * 10,))
        >>> ops.grad(cell)(Tensor([3.0])).asnumpy()
        array([10.], dtype=float32)
        """
        return HookHandle(self.__dict__["_hooks"].backward_before, Hook(function=hook_fn))

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call ``hook_fn(cell, grad_input, grad_output)`` after the cell's gradient; its result replaces `grad_input`.

        Both are tuples; `grad_output` is the gradient of the output.

        Raises
        ------
        ScriptTypeError
            `hook_fn` is not a function.

        Examples
        --------
        >>> from dumpsim.frontends.mindspore import nn, ops
        >>> cell = nn.ReLU()
        >>> handle = cell.register_backward_hook(lambda cell, grad_input, grad_output: (grad_input[0] * 10,))
        >>> ops.grad(cell)(Tensor([3.0])).asnumpy()
        array([10.], dtype=float32)
        """
        return HookHandle(self.__dict__["_hooks"].backward, Hook(function=hook_fn))

    # -- text

    def extend_repr(self) -> str:
        """Return the settings that the cell's repr shows."""
        return ""

    def __repr__(self) -> str:
        extra = self.extend_repr()
        rows = [f"({name}): {_indented(repr(cell))}" for name, cell in self._cells.items()]
        if not rows:
            return f"{type(self).__name__}({extra})" if extra else f"{type(self).__name__}()"
        head = [extra] if extra else []
        body = "\n  ".join([*head, *rows])
        return f"{type(self).__name__}(\n  {body}\n)"

    def _all(self) -> Iterator["Cell"]:
        """Iterate over this cell and all cells below it, each once."""
        return (cell for _, cell in self.cells_and_names())

    def _get_attr_from_cell(self, network: Any) -> None:
        """Take over the compile settings of another cell."""
        if isinstance(network, Cell):
            self.__dict__["_jit_config_dict"] = network.__dict__["_jit_config_dict"]


class GraphCell(Cell):
    """Raise UnsupportedError: networks come from scripts, not from MindIR files."""

    def __init__(self, graph: Any, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError("networks from MindIR files are not emulated", where="nn.GraphCell")


def _are_parameters(values: Any) -> bool:
    return all(isinstance(value, Parameter) for value in values)


def _as_float(value: Any, kind: DType) -> Any:
    if isinstance(value, Tensor) and value._dtype.kind == "float":
        return value if value._dtype == kind else call("Cast", [value, kind])
    if isinstance(value, tuple):
        return tuple(_as_float(item, kind) for item in value)
    return value


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.cell", name)
