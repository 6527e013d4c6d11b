"""The neutral form of a graph, from which both IR text and IR protobuf are written.

The runtime creates an `IrDoc` for every kernel graph; `codecs.irtext` and `codecs.irproto` write and read it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dumpsim.core.abstract import Abstract

__all__ = [
    "ConstRef",
    "IrDoc",
    "IrNode",
    "IrParam",
    "KernelIo",
    "NodeRef",
    "Operand",
    "ParamRef",
    "SourceLine",
    "script_line",
]

_FRAMEWORK = ("site-packages/mindspore/", "dumpsim/frontends/")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """One frame of the call that created a node; lines count from 1, columns from 0 (-1 if the text shows none)."""

    path: str
    line: int
    end_line: int
    column: int
    end_column: int
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRef:
    """Operand that is the output of node number `index` of the same graph."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamRef:
    """Operand that is parameter number `index` (from 0) of the same graph."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstRef:
    """Operand that is a constant: a number, tuple, string, DType, None, MonadType or a numpy array.

    Constants of equal value and type are one constant in the protobuf form, unless `identity` differs: nodes created by
    late passes (expanders) have constants of their own.
    """

    value: Any
    abstract: Abstract
    identity: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRef:
    """An operand given by its name in the text: a parameter of another function graph, or a formal parameter."""

    name: str


Operand = NodeRef | ParamRef | ConstRef | NameRef


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelIo:
    """Build info of a kernel for one operand or output: device type, format and shape."""

    dtype: str  # TypeId name, "Unknown" for weights
    format: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IrParam:
    """A graph input.

    `label` is what follows ``%paraN_`` in the list of parameters and `use_label` what operands print (they differ
    for the inputs of control-flow segments). [spec observed 1.8]
    """

    name: str
    label: str
    use_label: str
    abstract: Abstract
    device: KernelIo
    is_weight: bool
    has_default: bool = False
    shape_hint: bool = False  # network inputs print " : [2, 3]" after their type
    more_devices: tuple[KernelIo, ...] = ()  # for a tuple: `device` of the items after the first


@dataclass(frozen=True, slots=True, kw_only=True)
class IrNode:
    """A node in topological order; `index` is its ``%N``, None for Return."""

    index: int | None
    name: str  # "CNode_8", or the variable that it was assigned to
    op_type: str
    prim_func: bool  # printed as PrimFunc_<op_type>
    operands: tuple[Operand, ...]
    operand_types: tuple[Abstract, ...]
    output: Abstract | None
    full_name: str
    instance_name: str | None = None
    primitive_attrs: tuple[tuple[str, Any], ...] = ()
    node_attrs: tuple[tuple[str, Any], ...] = ()
    primal_attrs: tuple[tuple[str, Any], ...] = ()
    kernel_in: tuple[KernelIo, ...] | None = None
    kernel_out: tuple[KernelIo, ...] | None = None
    object_in: tuple[str, ...] | None = None
    object_out: str | None = None
    sources: tuple[SourceLine, ...] = ()  # outermost first, as the text prints them
    candidate: str = ""  # "code" or "forward node": the text says that `sources` are only candidates of that kind
    more_sources: tuple[tuple[str, tuple[SourceLine, ...]], ...] = ()  # further groups with their kinds
    strategy: str = ""  # of a node that is split over devices, as the text writes it after its attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class IrFunction:
    """A function graph that the graph of a document calls.

    Attributes
    ----------
    name, parent : str
        Its own name, and that of the graph whose parameters it reads.
    formals : tuple of (str, Abstract)
        Its parameters as operands print them, ``%para7_x``, with their types.
    nodes : tuple of IrNode
    is_last : bool
        The text shows it after the calling graph, because its first node reads a parameter of that graph.
    """

    name: str
    parent: str
    formals: tuple[tuple[str, Abstract], ...]
    nodes: tuple[IrNode, ...]
    is_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IrDoc:
    """A kernel graph as text and protobuf show it."""

    name: str  # kernel_graph0
    graph_id: int
    params: tuple[IrParam, ...]
    nodes: tuple[IrNode, ...]
    attrs: tuple[tuple[str, str], ...] = ()
    total_nodes: int = 0
    total_cnodes: int = 0
    instance: str = "0x0"
    order: tuple[str, ...] = ()
    is_stage: bool = False  # a graph of the front end, without kernels; nodes and parameters are printed differently
    functions: tuple[IrFunction, ...] = ()  # the functions that it calls

    def kernels(self) -> Iterator[IrNode]:
        """Nodes that a device runs."""
        return (node for node in self.nodes if node.kernel_out is not None)


def script_line(lines: Sequence[SourceLine]) -> SourceLine | None:
    """Return the innermost line that belongs to the script, not to the framework; `lines` are outermost first.

    Examples
    --------
    >>> frame = dict(line=7, end_line=7, column=0, end_column=4, code="x")
    >>> paths = ("train.py", "net.py", "dumpsim/frontends/mindspore/nn/cell.py")
    >>> script_line([SourceLine(path=path, **frame) for path in paths]).path
    'net.py'
    """
    return next((line for line in reversed(lines) if not any(mark in line.path for mark in _FRAMEWORK)), None)
