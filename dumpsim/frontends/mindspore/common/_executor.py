"""The executor of graphs in ``mindspore.common.api``: phases and information about them. [observed 2.10]"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dumpsim.core.errors import DumpsimError, ScriptRuntimeError
from dumpsim.frontends.mindspore._standin import refusal
from dumpsim.world.context import current

if TYPE_CHECKING:
    from dumpsim.core.tensorlayout import TensorLayout
    from dumpsim.frontends.mindspore._capture.compile import Compiled
    from dumpsim.graph.parallel.sharding import Sharding

__all__ = ["CellGraphExecutor", "GraphExecutor"]


class _UnknownPhaseError(DumpsimError, KeyError):
    """The KeyError for a graph that was not compiled."""


@dataclass(slots=True)
class _Phases:
    """The compiled graphs of the rank by phase, and the numbers of their arguments' types."""

    compiled: "dict[str, Compiled]" = field(default_factory=dict)
    numbers: dict[Any, int] = field(default_factory=dict)


def _phases() -> _Phases:
    return current().get(_Phases)


class GraphExecutor:
    """The C++ side's information about phases."""

    __slots__ = ()

    @staticmethod
    def get_instance() -> "GraphExecutor":
        """Return the executor of the rank."""
        return GraphExecutor()

    def has_compiled(self, phase: str) -> bool:
        """Return whether a graph was compiled for a phase."""
        return phase in _phases().compiled

    def get_strategy(self, phase: str) -> dict[str, list[list[int]]]:
        """Return the strategies of a phase by operator, empty for a network that is not split."""
        sharding = _sharding(phase)
        if sharding is None:
            return {}
        return {name: [list(row) for row in rows] for name, rows in sharding.strategies_by_name.items()}

    def get_parameter_layout(self, phase: str) -> dict[str, tuple[Any, ...]]:
        """Return the layouts of a phase's arguments and weights, empty for a network that is not split."""
        sharding = _sharding(phase)
        if sharding is None:
            return {}
        layouts = {parameter.name: layout for parameter, layout in sharding.arguments.items()} | sharding.parameters
        return {name: _layout(layout) for name, layout in layouts.items()}

    def get_parallel_parameter_name_list(self, phase: str) -> list[str]:
        """Return the names of the arguments and weights of a split network's phase."""
        return list(self.get_parameter_layout(phase))

    def get_parallel_graph_info(self, phase: str) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the nodes of a split network's phase, by graph.

        Raises
        ------
        RuntimeError
            For a phase without a split network.
        """
        from dumpsim.graph.parallel.nodeinfo import node_dictionary
        from dumpsim.graph.parallel.virtual import with_virtual
        from dumpsim.runtime.session import Session

        sharding = _sharding(phase)
        if sharding is None:
            raise ScriptRuntimeError(f"Can not access FuncGraph according to phase: {phase}step_parallel")
        return node_dictionary(sharding.end, with_virtual(Session.current().find))

    def get_num_parallel_ops(self, phase: str) -> int:
        """Return 0, like MindSpore 2.10 for every phase. [observed 2.10]"""
        return 0

    def del_net_res(self, obj: Any, net_id: Any) -> None:
        """Drop the graphs of some phases."""
        for phase in net_id:
            _phases().compiled.pop(phase, None)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(str(refusal("mindspore._c_expression", f"GraphExecutorPy.{name}")))


class CellGraphExecutor:
    """The executor of graphs, which compiles and runs cells."""

    __slots__ = ()
    _graph_executor = GraphExecutor()

    def compile(self, obj: Any, *args: Any, phase: str = "predict", **kwargs: Any) -> tuple[str, bool]:
        """Compile a cell for these arguments; return its full phase and whether it was not compiled before.

        Parameters
        ----------
        obj : Cell
        phase : str
            First part of the full name of the phase.
        """
        from dumpsim.frontends.mindspore._capture.compile import compile_cell, signature

        for setting in ("do_convert", "jit_config_dict"):
            kwargs.pop(setting, None)
        phases = _phases()
        key = signature((args, kwargs), None)
        obj.arguments_key = str(phases.numbers.setdefault((type(obj), key), len(phases.numbers)))
        full = _real_phase(phase, obj)
        obj.phase_cache[phase] = obj.current_phase = obj.compile_phase = full
        if full in obj.compile_cache and self.has_compiled(full):
            return full, False
        phases.compiled[full] = compile_cell(obj, args, kwargs)
        obj.compile_cache.add(full)
        if _sharding(full) is not None:
            obj.parameter_layout_dict = self._graph_executor.get_parameter_layout(full)
            obj.parallel_parameter_name_list = self._graph_executor.get_parallel_parameter_name_list(full)
        return full, True

    def has_compiled(self, phase: str = "predict") -> bool:
        """Return whether a graph was compiled for a full name of a phase."""
        return self._graph_executor.has_compiled(phase)

    def _get_shard_strategy(self, obj: Any) -> dict[str, list[list[int]]]:
        """Return the strategies of a cell's phase."""
        return self._graph_executor.get_strategy(_real_phase(obj.phase, obj))

    def _get_num_parallel_ops(self, obj: Any) -> int:
        return self._graph_executor.get_num_parallel_ops(_real_phase(obj.phase, obj))

    def run(self, obj: Any, *args: Any, phase: str = "predict") -> Any:
        """Run a cell as the graph that was compiled for a phase.

        Raises
        ------
        KeyError
            For a phase without a graph.
        """
        from dumpsim.frontends.mindspore._capture.compile import run_cell

        full = _real_phase(phase, obj)
        if not self.has_compiled(full):
            raise _UnknownPhaseError(f"{full} graph is not exist.")
        return run_cell(obj, args, {})

    __call__ = run

    def del_net_res(self, obj: Any, net_id: Any) -> None:
        """Drop the graphs of some phases."""
        self._graph_executor.del_net_res(obj, net_id)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(str(refusal("mindspore.common.api", f"_cell_graph_executor.{name}")))


def _sharding(phase: str) -> "Sharding | None":
    """Return the sharding of the network of a phase, or None if it is not split."""
    compiled = _phases().compiled.get(phase)
    return None if compiled is None or compiled.program is None else compiled.program.sharding


def _layout(layout: "TensorLayout") -> tuple[Any, ...]:
    """Return a layout in MindSpore's form: device matrix, tensor map, shapes of slice and whole, flags."""
    part, whole = list(layout.slice_shape), list(layout.shape)
    arrangement = list(layout.device_matrix), list(layout.tensor_map), part
    return (*arrangement, 0, True, "", whole, part, False, False, 0, 0)


def _real_phase(phase: str, obj: Any) -> str:
    if not isinstance(getattr(obj, "arguments_key", None), str):
        raise ScriptRuntimeError(f"{type(obj).__name__} was not compiled", where="_cell_graph_executor")
    return f"{phase}.{obj.create_time}.{id(obj)}.{obj.arguments_key}"
