"""The executor of graphs that scripts reach through ``mindspore.common.api``: phases, and what is known of them.

[observed 2.10]
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dumpsim.core.errors import DumpsimError, ScriptRuntimeError
from dumpsim.frontends.mindspore._standin import refusal
from dumpsim.world.context import current

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore._capture.compile import Compiled

__all__ = ["CellGraphExecutor", "GraphExecutor"]


class _UnknownPhaseError(DumpsimError, KeyError):
    """The KeyError of a graph that was not compiled."""


@dataclass(slots=True)
class _Phases:
    """The compiled graphs of the rank by phase, and the numbers of their arguments' types."""

    compiled: "dict[str, Compiled]" = field(default_factory=dict)
    numbers: dict[Any, int] = field(default_factory=dict)


def _phases() -> _Phases:
    return current().get(_Phases)


class GraphExecutor:
    """What the C++ side knows of a phase."""

    __slots__ = ()

    @staticmethod
    def get_instance() -> "GraphExecutor":
        """Return the executor of the rank."""
        return GraphExecutor()

    def has_compiled(self, phase: str) -> bool:
        """Whether a graph was compiled for a phase."""
        return phase in _phases().compiled

    def del_net_res(self, obj: Any, net_id: Any) -> None:
        """Drop the graphs of some phases."""
        for phase in net_id:
            _phases().compiled.pop(phase, None)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(str(refusal("mindspore._c_expression", f"GraphExecutorPy.{name}")))


class CellGraphExecutor:
    """What scripts ask of the executor of graphs: to compile a cell, and to run it."""

    __slots__ = ()
    _graph_executor = GraphExecutor()

    def compile(self, obj: Any, *args: Any, phase: str = "predict", **kwargs: Any) -> tuple[str, bool]:
        """Compile a cell for these arguments; return its full phase and whether there was anything to do.

        Parameters
        ----------
        obj : Cell
        phase : str
            First part of the full phase.
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
        return full, True

    def has_compiled(self, phase: str = "predict") -> bool:
        """Whether a graph was compiled for a full phase."""
        return self._graph_executor.has_compiled(phase)

    def run(self, obj: Any, *args: Any, phase: str = "predict") -> Any:
        """Run a cell as a graph that was compiled for a phase.

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


def _real_phase(phase: str, obj: Any) -> str:
    if not isinstance(getattr(obj, "arguments_key", None), str):
        raise ScriptRuntimeError(f"{type(obj).__name__} was not compiled", where="_cell_graph_executor")
    return f"{phase}.{obj.create_time}.{id(obj)}.{obj.arguments_key}"
