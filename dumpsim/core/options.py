"""Compile and run options that a dump mode requires; front ends pass them, so that the emulator knows no modes."""

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
        The kernel engine, a name of `dumpsim.runtime.engine.table.ENGINES`; "" uses that of the session.
    cube_ops : frozenset of str
        Operators of the matrix unit.
    cube_dtype : str or None
        Number type of the matrix unit for float32 operands in private formats; None keeps float32.
    ge_graph : str
        ``DUMP_GE_GRAPH``: how much of the graph the text of each compilation stage shows; "" writes no text.
    ge_level : str
        ``DUMP_GRAPH_LEVEL``: the stages whose text is written.
    memory_reuse : bool
        Reuse the buffers of dead tensors; synchronous dump turns it off. [spec mindspore 12.1]
    fusion : bool
        Fuse the kernels of a graph that a front end built for GE.
    backward_graphs : bool
        Compile the gradient of operators that ran one by one (PYNATIVE) as a graph; if false, it runs op by op, too.
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
