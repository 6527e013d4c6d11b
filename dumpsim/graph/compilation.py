"""A network under compilation: the state that compiler passes change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dumpsim.core.irdoc import IrDoc
from dumpsim.core.options import CompileOptions
from dumpsim.graph.graph import Constant, Graph, Node
from dumpsim.graph.program import KernelGraph, Launch, Program, Step
from dumpsim.ops.opdef import OpDef

if TYPE_CHECKING:
    from dumpsim.graph.mindspore.funcform import FuncForm
    from dumpsim.graph.parallel.settings import Settings
    from dumpsim.graph.parallel.sharding import Sharding

__all__ = ["Compilation", "Draft", "Find", "Functions", "Numbers", "OperatorNumbers", "Pass", "Saver"]

Find = Callable[[str], OpDef]
Saver = Callable[[str, Sequence[IrDoc]], object]


class Numbers(Protocol):
    """Counters of a process; `dumpsim.runtime.ids.Ids` is one.

    Attributes
    ----------
    texts : dict
        Numbers of operators in IR text that the latest compilation has used, by scope and type.
    """

    texts: dict[tuple[str, str], int]

    def graph(self) -> int: ...
    def model(self) -> int: ...
    def full_name(self, scope: str, op_type: str) -> str: ...
    def cnode(self) -> int: ...
    def take(self, count: int) -> None: ...
    def functions(self, count: int) -> int | None: ...


@dataclass(slots=True)
class OperatorNumbers:
    """Numbers of operators within one compilation.

    Examples
    --------
    >>> numbers = OperatorNumbers()
    >>> [numbers.full_name("Default", op_type) for op_type in ("Add", "Mul", "Add")]
    ['Default/Add-op0', 'Default/Mul-op0', 'Default/Add-op1']
    """

    _next: dict[tuple[str, str], int] = field(default_factory=dict)

    def full_name(self, scope: str, op_type: str) -> str:
        """Return ``scope/op_type-opN`` with the next number."""
        number = self._next.get((scope, op_type), 0)
        self._next[scope, op_type] = number + 1
        return f"{scope}/{op_type}-op{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    """The number of a front end's function graphs of a network, and the numbers of nodes that they use up.

    Attributes
    ----------
    count : int
    before : int
        Numbers used before the first kernel graph.
    after : int
        Numbers used after the kernel graphs of the network's own function.
    """

    count: int = 1
    before: int = 0
    after: int = 0


@dataclass(eq=False, slots=True, kw_only=True)
class Draft:
    """A kernel graph under compilation; for the other attributes see `KernelGraph`.

    Attributes
    ----------
    return_name : str
        Name of the Return node in IR text.
    """

    graph: Graph
    is_own: bool = True
    order: tuple[Node, ...] = ()
    repeats: tuple[Node, ...] = ()
    return_name: str = ""
    doc: IrDoc | None = None
    launches: tuple[Launch, ...] = ()
    stages: list[tuple[str, str]] = field(default_factory=list)
    model_name: str = ""
    model_id: int = 0


@dataclass(eq=False, slots=True, kw_only=True)
class Compilation:
    """The state that passes change.

    Attributes
    ----------
    captured : Graph
        Parameters, `output` and `trail` as captured; it is modified.
    numbers : Numbers
    find : callable
        The definition of an operator type.
    options : CompileOptions
    saved : callable, optional
        ``saved(stage, documents)`` is called with the IR text at each stage.
    drafts : list of Draft
        The kernel graphs, after the network was cut.
    steps, outputs, slots, stacks
        See `Program`.
    functions : Functions
    form : FuncForm or None
        The functions of the network, after they were created.
    text_numbers : OperatorNumbers
        Numbers of operators in IR text.
    parallel : Settings, optional
        How to split the network over devices.
    sharding : Sharding, optional
        The layouts, after the network was split.
    """

    captured: Graph
    numbers: Numbers
    find: Find
    options: CompileOptions
    saved: Saver | None = None
    drafts: list[Draft] = field(default_factory=list)
    steps: tuple[Step, ...] = ()
    outputs: tuple[int | Constant, ...] = ()
    slots: int = 0
    stacks: int = 0
    functions: Functions = Functions()
    form: "FuncForm | None" = None
    text_numbers: OperatorNumbers = field(default_factory=OperatorNumbers)
    parallel: "Settings | None" = None
    sharding: "Sharding | None" = None

    def program(self) -> Program:
        """Return the program that the passes have created; the first kernel graph is its root."""
        root = self.drafts[0].graph.graph_id if self.drafts else -1
        return Program(
            kernel_graphs=tuple(
                KernelGraph(
                    graph=draft.graph,
                    graph_id=draft.graph.graph_id,
                    order=draft.order,
                    repeats=draft.repeats,
                    doc=draft.doc,
                    is_root=draft.graph.graph_id == root,
                    root_graph_id=root,
                    is_own=draft.is_own,
                    launches=draft.launches,
                    stages=tuple(draft.stages),
                    model_name=draft.model_name,
                    model_id=draft.model_id,
                )
                for draft in self.drafts
            ),
            steps=self.steps,
            inputs=tuple(p for p in self.captured.parameters if not p.is_weight),
            outputs=self.outputs,
            slots=self.slots,
            stacks=self.stacks,
            name=self.captured.name,
            sharding=self.sharding,
        )


@dataclass(frozen=True, slots=True)
class Pass:
    """One stage of compilation, with its name in pipelines."""

    name: str
    run: Callable[[Compilation], object]
