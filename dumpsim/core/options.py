"""What a mode wants of compilation and execution; front ends pass it down, so that the emulator knows no mode."""

from dataclasses import dataclass

__all__ = ["BACKWARD_GRAPHS", "CompileOptions"]

BACKWARD_GRAPHS = frozenset({"seed"})  # releases that compile the backward pass of PYNATIVE [seed 001] [observed 2.10]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """Choices of the compiler and the executor.

    Attributes
    ----------
    release : str
        Dialect of the compiler: ``seed`` (2.4/2.5), ``2.7`` or ``2.10``.
    target : str
        ``Ascend``, ``GPU`` or ``CPU``.
    jit_level : str
        ``O0``, ``O1`` or ``O2``.
    exec_order : str
        ``bfs`` or ``dfs``: how MindSpore orders the kernels of a graph.
    pipeline : str
        Name of the passes that compile a network, see `dumpsim.graph.pipeline.PIPELINES`.
    engine : str
        What computes the kernels, as in `dumpsim.runtime.engine.table.ENGINES`; "" takes the session's.
    cube_ops : frozenset of str
        Operators of the matrix unit.
    cube_dtype : str or None
        Its number type for float32 operands in private formats; None keeps float32.
    ge_graph : str
        ``DUMP_GE_GRAPH``: how much of the graph the text of each stage of compilation shows; "" makes no text.
    ge_level : str
        ``DUMP_GRAPH_LEVEL``: of which stages.
    memory_reuse : bool
        Buffers of dead tensors are used again; synchronous dump turns it off. [spec mindspore 12.1]
    fusion : bool
        Kernels of a graph that a front end made for GE are joined.
    backward_graphs : bool
        The gradient of what ran op by op (PYNATIVE) is a compiled graph; where not, it runs op by op, too.
    """

    release: str = "seed"
    target: str = "Ascend"
    jit_level: str = "O0"
    exec_order: str = "bfs"
    pipeline: str = "kernel-by-kernel"
    engine: str = ""
    cube_ops: frozenset[str] = frozenset()
    cube_dtype: str | None = None
    ge_graph: str = ""
    ge_level: str = "2"
    memory_reuse: bool = True
    fusion: bool = False
    backward_graphs: bool = False
