"""Compiling cells and functions to programs, and running them."""

import inspect
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

from dumpsim.core.abstract import ScalarType, TensorType
from dumpsim.core.errors import DumpsimError, ScriptValueError
from dumpsim.frontends.mindspore import _listener as listener
from dumpsim.frontends.mindspore import log
from dumpsim.frontends.mindspore._capture import backward, control, jump, rewrite, sharing, tape, trace, values
from dumpsim.frontends.mindspore._capture.continuation import continued
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.frontends.mindspore._capture.variable import refuse_unbound
from dumpsim.frontends.mindspore._current import tracing
from dumpsim.frontends.mindspore._extent import refuse_open
from dumpsim.frontends.mindspore._session import current_session, graph_saver, with_class_names
from dumpsim.frontends.mindspore.parallel._settings import (
    join_groups,
    parallel_settings,
    slice_weights,
    with_weights,
)
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Graph, Value
from dumpsim.graph.mindspore.gradient_node import GRADIENT
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.program import Program
from dumpsim.runtime.session import Session

__all__ = ["Compiled", "compile_cell", "run_cell", "run_data_graph", "run_function", "signature"]

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compiled:
    """A program and the structure of its result."""

    program: Program | None  # None if the result is known at capture
    result: Any
    backward: Any = None  # `backward.Backward` for the forward pass of a gradient
    constants: bool = False  # whether tensors in tuples, lists and dicts are constants of the program
    alive: Any = None  # objects whose ids are part of keys

    def weights(self, session: Session) -> list[Any]:
        """Return the Parameters of the script that the program reads."""
        return session.storages(self.program) if self.program is not None else []

    def run(self, session: Session, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the program on the tensors among the arguments."""
        return self.run_saving(session, args, kwargs)[0]

    def run_saving(self, session: Session, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """Run the program; return its result, and the arrays saved for its gradient."""
        if self.program is None:
            return self.result, []
        arrays = [tensor._array for tensor in _fed(args, kwargs, self.constants)]
        outputs = session.execute(self.program, arrays)
        tensors = list(values.tensors_in(self.result))
        results = iter(
            values.tensor_of_array(array, tensor._dtype)
            for array, tensor in zip(outputs[: len(tensors)], tensors, strict=True)
        )
        return values.rebuild(self.result, results), outputs[len(tensors) :]


def run_cell(cell: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a cell in GRAPH_MODE: compile it for these argument types if necessary, then run it.

    Raises
    ------
    CaptureError
        The network cannot be turned into a graph.
    """
    listener.ran_graph(type(cell).__name__)
    session = current_session(_level_of(cell))
    return compile_cell(cell, args, kwargs, session).run(session, args, kwargs)


def _level_of(cell: Any) -> Any:
    return cell.__dict__.get("_jit_config_dict", {}).get("jit_level")


def compile_cell(
    cell: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], session: Session | None = None
) -> Compiled:
    """Compile a cell for these argument types if necessary, without running it.

    Raises
    ------
    CaptureError
        The network cannot be turned into a graph.
    """
    session = session or current_session(_level_of(cell))
    stated = cell.get_inputs() if hasattr(cell, "get_inputs") else None
    constants = stated is None  # [observed 2.10]
    key = (signature((args, dict(kwargs)), stated), _modes(cell), _settings(session))
    if constants:
        key = (*key, *(part for t in _fixed_in(args, kwargs) for part in (id(t), id(t._array))))
    programs: dict[Key, Compiled | None] = cell.__dict__.setdefault("_programs", {})
    compiled = programs.get(key)
    if compiled is None and stated is not None:
        _check_stated(stated, args)
    if compiled is None and key in programs:  # one graph for every shape
        stated = None
        key = (signature((args, dict(kwargs)), None), *key[1:])
        compiled = programs.get(key)
    if compiled is None:
        trace.assign_scopes(cell, with_class=with_class_names())
        name = type(cell).__name__

        def capture() -> Compiled:
            construct = _with_hooks(control.rewritten(type(cell).construct, name=f"{name}.construct"))
            return _compile(session, name, construct, (cell,), args, kwargs, stated, cell, constants=constants)

        try:
            compiled = _captured(capture, shares=True)
        except (DumpsimError, ValueError, IndexError) as problem:
            if not _is_open(stated):
                raise
            _warn_of_open(name, problem)
            programs[key] = None
            return compile_cell(cell, args, kwargs, session)
        programs[key] = compiled
        cell._share_parameters()
    return compiled


def run_function(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], jit_level: str = ""
) -> Any:
    """Call a function decorated with ``jit``: compile it for these argument types, then run it.

    The first argument of a cell's method is the cell. `jit_level` is that of its JitConfig; for "" the context decides.

    Raises
    ------
    CaptureError
        The function cannot be turned into a graph.
    """
    listener.ran_graph(getattr(function, "__qualname__", type(function).__name__))
    session = current_session(jit_level)
    bound: tuple[Any, ...] = ()
    owner = getattr(function, "__self__", None)
    target = getattr(function, "__func__", function)
    if owner is not None:
        bound = (owner,)
    elif args and hasattr(args[0], "name_cells"):
        bound, args = args[:1], args[1:]
    cell = bound[0] if bound and hasattr(bound[0], "name_cells") else None
    holder: dict[str, Any] = cell.__dict__ if cell is not None else target.__dict__
    programs: dict[Any, Compiled] = holder.setdefault("_programs", {})
    key = (target, signature((args, dict(kwargs)), None), _modes(cell), _settings(session), *map(id, bound))
    recording = tape.is_recording()
    if recording:  # a separate graph, which the forward pass of a gradient then replaces [observed 2.10]
        key = ("gradient", *key)
    compiled = programs.get(key)
    if compiled is None:
        if cell is not None:
            trace.assign_scopes(cell, with_class=True)

        def capture(end: Callable[[Tracer, Any], Any] = _output) -> Compiled:
            construct = control.rewritten(target)
            return _compile(session, target.__qualname__, construct, bound, args, kwargs, None, cell, end)

        compiled = _captured(capture, shares=not recording)
        if recording and compiled.program is not None:
            compiled = _captured(lambda: capture(backward.saving), shares=False)
        programs[key] = compiled
    result, saved = compiled.run_saving(session, args, kwargs)
    if recording:
        backward.remember(session, target, (*bound, *args), kwargs, result, compiled, saved, run_function)
    return result


def run_data_graph(graph: Graph) -> None:
    """Compile and run, once, the graph that initializes the queue of a data sink."""
    session = current_session()
    saver = graph_saver(session)
    program = session.build(graph, saved=saver.save if saver.active else None)
    session.execute(program, [], kind="dataset")


def _with_hooks(construct: rewrite.Rewritten) -> rewrite.Rewritten:
    """Return a cell's `construct` with the hooks of the script."""

    @wraps(construct.function)
    def hooked(cell: Any, *args: Any, **kwargs: Any) -> Any:
        return cell._run_construct(partial(construct.function, cell), args, kwargs)

    return replace(construct, function=hooked)


def _captured(capture: Callable[[], Compiled], *, shares: bool) -> Compiled:
    """Capture; repeat it if a tensor of the graph ends a loop, or if a function with branches is called twice.

    `shares` means that no gradient will be taken of the graph.
    """
    locations: frozenset[tuple[str, int]] = frozenset()
    keys: frozenset[Hashable] = frozenset()
    while True:
        try:
            with jump.flagging(locations), sharing.sharing(keys if shares else None):
                return capture()
        except sharing.RepeatedError as problem:
            keys = problem.keys
        except jump.JumpError as problem:
            if problem.location in locations:
                raise
            path, line = problem.location
            locations |= {problem.location, (path, line if shares else -abs(line))}


def _is_open(stated: Any) -> bool:
    """Whether `set_inputs` leaves extents open until the graph runs."""
    return stated is not None and any(-1 in tensor._shape for tensor in values.tensors_in(tuple(stated)))


def _check_stated(stated: Any, args: tuple[Any, ...]) -> None:
    """Check the arguments against the types declared by `set_inputs`. [observed 2.10]"""
    if len(stated) != len(args):
        raise ScriptValueError(
            "For set_inputs, the length of input must be equal to expected one, but got expected: "
            f"{len(stated)} and input: {len(args)}!"
        )
    for index, (wanted, given) in enumerate(zip(stated, args, strict=True), 1):
        if not values.is_tensor(wanted) or not values.is_tensor(given):
            continue
        sizes = [("dims", len(wanted._shape), len(given._shape))]
        if len(wanted._shape) == len(given._shape):
            sizes = [("shape", one, two) for one, two in zip(wanted._shape, given._shape, strict=True)]
        for what, one, two in sizes:
            if one not in (-1, two):
                raise ScriptValueError(
                    f"For set_inputs and tuple(list) in set_inputs, the {what} of {index}th input must be the same "
                    f"as expected, but got expected: {one}, and input: {two}!"
                )


def _warn_of_open(name: str, problem: Exception) -> None:
    """Warn that a network needs a graph per shape instead of a single one, which changes its graph ids."""
    log.warning(f"{name}: one graph for the open shapes of set_inputs is not possible ({problem}); one per shape.")


def _settings(session: Session) -> tuple[Any, ...]:
    """Return the settings that determine the graph besides its arguments.

    A weak reference identifies the session, since the id of a session can be reused.
    """
    options = session.options()
    return (
        parallel_settings(session.target),
        session.target,
        weakref.ref(session),
        options.jit_level,
        options.exec_order,
        listener.neutral(),
    )


def _modes(cell: Any) -> tuple[Any, ...]:
    """Return the state of the cells that determines the graph: training flags and compile flags."""
    if cell is None:
        return ()
    return tuple(
        (each.training, tuple(sorted((k, str(v)) for k, v in each.get_flags().items())))
        for _, each in cell.cells_and_names()
    )


def signature(value: Any, stated: Any) -> Any:
    """Return the key of an argument: type and shape of tensors, the value of anything else."""
    if values.is_tensor(value):
        shape = tuple(value._shape)
        if values.is_tensor(stated):
            shape = _dynamic(stated, shape)
        return ("tensor", value._dtype.name, shape, id(value) if values.is_parameter(value) else None)
    if isinstance(value, (tuple, list)):
        hints = stated if isinstance(stated, (tuple, list)) and len(stated) == len(value) else [None] * len(value)
        if stated is not None and len(value) == 2 and isinstance(value[1], dict):  # (args, kwargs)
            hints = [stated, None]
        return (type(value).__name__, *(signature(v, h) for v, h in zip(value, hints, strict=True)))
    if isinstance(value, Mapping):
        return tuple((k, signature(v, None)) for k, v in sorted(value.items()))
    try:
        hash(value)
    except TypeError:
        return (type(value).__name__, id(value))
    return (type(value).__name__, value)


def _dynamic(stated: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with -1 for the extents that `set_inputs` leaves open."""
    wanted = tuple(-1 if dim is None or dim == -1 else dim for dim in stated._shape)
    return wanted if len(wanted) == len(shape) else shape


def _compile(
    session: Session,
    name: str,
    construct: rewrite.Rewritten,
    bound: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    stated: Any,
    cell: Any,
    end: Callable[[Tracer, Any], Any] | None = None,
    constants: bool = False,
) -> Compiled:
    """Capture, lower and plan; `end` sets the output of the graph and may create a backward pass."""
    parallel = parallel_settings(session.target)
    tracer = Tracer(name)
    tracer.frame.definition = construct.definition
    tracer.frame.cell = cell
    scope = trace.scope_of(cell) if cell is not None else None
    if scope is not None:  # another network that contained the cell has set its scope [observed 2.10]
        tracer.frame.scope = tracer.frame.call_scope = scope
    control.begin(tracer, construct)
    labels = _labels(construct.function, len(bound), args, kwargs, constants)
    hints = list(stated) if isinstance(stated, (tuple, list)) else []
    symbols = iter(
        [
            tracer.argument(
                label,
                _whole(_argument_type(tensor, hints[i] if i < len(hints) else None), i, parallel),
                is_element=element,
            )
            for i, (label, tensor, element) in enumerate(labels)
        ]
    )
    symbolic_args = tuple(_with_symbols(value, symbols, constants) for value in args)
    symbolic_kwargs = {name: _with_symbols(value, symbols, constants) for name, value in kwargs.items()}
    with tracing(tracer):
        try:
            result = continued(*tracer.mark(), construct.function(*bound, *symbolic_args, **symbolic_kwargs))
            refuse_unbound(result)
            refuse_open(result)
        except DumpsimError as error:
            position = tracer.frame.position
            if position is not None:
                error.add_note(f"while {name} was compiled, in {position.path}:{position.line}")
            raise
        sharing.check(tracer)
        tensors = list(values.tensors_in(result))
        if not tensors and not tracer.has_effects():
            return Compiled(program=None, result=result)
        back = (end or _output)(tracer, result)
    saver = graph_saver(session)
    saved = saver.save if saver.active else None
    session.ids.take((tracer.resolved if back is None else back).taken(session.ids.resolved))
    differentiates = back is not None or any(node.op_type == GRADIENT for node in everything(tracer.graph.trail))
    session.ids.awaited = None if differentiates else tracer.specialised.count
    if parallel is not None:
        parallel = with_weights(parallel, tracer.graph)
    program = session.build(tracer.graph, saved=saved, parallel=parallel)
    if program.sharding is not None:
        slice_weights(program.sharding)
        join_groups(program.sharding)
        for note in program.sharding.notes:
            log.warning(note)
    session.compile(program)
    alive = [(t, t._array) for t in _fixed_in(args, kwargs)] if constants else None
    return Compiled(program=program, result=_without_symbols(result), backward=back, constants=constants, alive=alive)


def _fixed(value: Any) -> Iterator[Any]:
    """Yield the tensors of an argument that are constants of a graph: those in tuples, lists and dicts."""
    if not values.is_tensor(value) and not hasattr(value, "__ms_mutable__"):
        yield from values.tensors_in(value, parameters=False)


def _fixed_in(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    return [tensor for value in (*args, *kwargs.values()) for tensor in _fixed(value)]


def _fed(args: tuple[Any, ...], kwargs: Mapping[str, Any], constants: bool) -> list[Any]:
    """Return the tensors of a call that are inputs of its graph."""
    given = [v for v in (*args, *kwargs.values()) if not constants or not any(True for _ in _fixed(v))]
    return list(values.tensors_in(given, parameters=False))


def _with_symbols(value: Any, symbols: Iterator[Any], constants: bool) -> Any:
    """Replace the tensors of an argument by symbolic ones."""
    if constants and any(True for _ in _fixed(value)):
        return value
    return values.rebuild(value, symbols, parameters=False)


def _output(tracer: Tracer, result: Any) -> None:
    """Set the output of a graph to the result of the script."""
    tensors = list(values.tensors_in(result))
    if len(tensors) < 2:
        tracer.graph.output = tracer.value_of(tensors[0] if tensors else None)
    else:
        tracer.graph.output = _bundle(tracer, result)


def _bundle(tracer: Tracer, result: Any) -> Value:
    """Bundle the tensors of a result; nested tuples affect the order of execution. [observed 2.10]"""
    if values.is_tensor(result):
        return tracer.value_of(result)
    parts = result if isinstance(result, (tuple, list)) else list(values.tensors_in(result))
    return tracer.make_tuple([_bundle(tracer, part) for part in parts if any(True for _ in values.tensors_in(part))])


def _argument_type(tensor: Any, stated: Any) -> TensorType:
    shape = tuple(tensor._shape)
    if values.is_tensor(stated):
        shape = _dynamic(stated, shape)
    return TensorType(dtype=tensor._dtype, shape=shape)


def _whole(kind: TensorType, number: int, parallel: Settings | None) -> TensorType:
    """Return the type of a whole argument, of which each rank receives a part."""
    if parallel is None:
        return kind
    cuts = parallel.cuts(number, kind.shape)
    return replace(kind, shape=tuple(extent * count for extent, count in zip(kind.shape, cuts, strict=True)))


def _labels(
    function: Callable[..., Any], skipped: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], constants: bool
) -> Iterator[tuple[str, Any, bool]]:
    """Yield the tensors among the arguments with the names of their parameters, and whether they are elements of one.

    ``*inputs`` is numbered: inputs0, inputs1.
    """
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    star = next((i for i, p in enumerate(parameters) if p.kind is inspect.Parameter.VAR_POSITIONAL), len(parameters))
    for i, value in enumerate(args):
        name = parameters[min(i, star)].name
        if i >= star:
            name = f"{name}{i - star}"
        yield from _named(name, value, constants)
    for name, value in kwargs.items():
        yield from _named(name, value, constants)


def _named(name: str, value: Any, constants: bool) -> Iterator[tuple[str, Any, bool]]:
    if values.is_tensor(value):
        if not values.is_parameter(value):
            yield name, value, False
        return
    if constants and any(True for _ in _fixed(value)):
        return
    for index, tensor in enumerate(values.tensors_in(value, parameters=False)):
        yield f"{name}{index}", tensor, True


def _without_symbols(result: Any) -> Any:
    """Return the structure of the result with Tensors that have only a type; other values are unchanged."""
    return values.rebuild(result, map(_type_of, list(values.tensors_in(result))))


def _type_of(tensor: Any) -> Any:
    kind = tensor._symbol.abstract if tensor._symbol is not None else None
    if isinstance(kind, ScalarType):  # ``depend(True, step)``
        return kind.value
    return values.tensor_of_symbol(None, TensorType(dtype=tensor._dtype, shape=tuple(tensor._shape)))
