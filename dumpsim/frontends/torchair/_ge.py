"""The graph that is passed to GE: nodes in the order of their creation, named as the real ones. [spec aten 9.2]"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from dumpsim.frontends.torchair._strides import Strides

__all__ = ["GE_NUMBERS", "GE_TYPES", "FxCall", "GeGraph", "GeNode", "GeOutput", "Ref", "SymbolList"]

# number types of torch: GE's name and number [spec aten 9.4]
GE_TYPES = MappingProxyType(
    {
        torch.float32: "DT_FLOAT",
        torch.float16: "DT_FLOAT16",
        torch.int8: "DT_INT8",
        torch.int32: "DT_INT32",
        torch.uint8: "DT_UINT8",
        torch.int16: "DT_INT16",
        torch.int64: "DT_INT64",
        torch.float64: "DT_DOUBLE",
        torch.bool: "DT_BOOL",
        torch.complex64: "DT_COMPLEX64",
        torch.complex128: "DT_COMPLEX128",
        torch.bfloat16: "DT_BF16",
        torch.uint64: "DT_UINT64",
    }
)
GE_NUMBERS = MappingProxyType(
    {
        torch.float32: 0,
        torch.float16: 1,
        torch.int8: 2,
        torch.int32: 3,
        torch.uint8: 4,
        torch.int16: 6,
        torch.int64: 9,
        torch.uint64: 10,
        torch.float64: 11,
        torch.bool: 12,
        torch.complex64: 16,
        torch.complex128: 17,
        torch.bfloat16: 27,
    }
)


@dataclass(slots=True)
class GeOutput:
    """Type and shape of an output; those of a helper are not known, and its type is written as DT_FLOAT.

    Attributes
    ----------
    dtype : torch.dtype or None
        None for a helper.
    shape : tuple or None
        Dynamic dimensions are symbols of torch.
    """

    dtype: torch.dtype | None = None
    shape: tuple[Any, ...] | None = None

    @property
    def ge_dtype(self) -> str:
        """GE's name of the data type."""
        return "DT_FLOAT" if self.dtype is None else GE_TYPES.get(self.dtype, "DT_UNDEFINED")


@dataclass(slots=True, eq=False)
class GeNode:
    """A node.

    Attributes
    ----------
    name, type : str
    inputs : list of Ref or None
        None for an optional input that is missing.
    attrs : dict
        Data types are those of torch; they are written as GE's numbers.
    outputs : list of GeOutput
    value : torch.Tensor or None
        The value of a Const.
    readable : str
        The value as Python's `repr` writes it.
    """

    name: str
    type: str
    inputs: "list[Ref | None]"
    attrs: dict[str, Any]
    outputs: list[GeOutput]
    value: torch.Tensor | None = None
    readable: str = ""


@dataclass(frozen=True, slots=True)
class Ref:
    """An output of a node."""

    node: GeNode
    index: int = 0

    def __getitem__(self, index: int) -> "Ref":
        """Return another output of the same node."""
        if not 0 <= index < len(self.node.outputs):
            raise IndexError(index)
        return Ref(self.node, index)

    @property
    def output(self) -> GeOutput:
        """Type and shape of the output."""
        return self.node.outputs[self.index]

    def __str__(self) -> str:
        return f"{self.node.name}:{self.index}"


class SymbolList(list[Any]):
    """A list of numbers that includes a symbol.

    Attributes
    ----------
    pack : Ref
        The node that gives the numbers.
    """

    def __init__(self, values: Iterable[Any], pack: Ref) -> None:
        super().__init__(values)
        self.pack = pack


@dataclass(slots=True, eq=False)
class FxCall:
    """An operator of the captured graph, and the nodes that were made for it.

    Attributes
    ----------
    name, target : str
    function : callable or None
        The overload.
    arguments, keywords
        As called, with a `Ref` for each tensor.
    results : tuple
        A `Ref`, a Python value or None for each result.
    seen : dict of Ref to torch.Tensor
        The operator's tensors with the strides that the operator gets.
    values : tuple
        Fake tensors of the results.
    form : tuple or None
        The form in which eager torch computes a product: its name, and extents.
    module, kind, at : str
        Path and class of the module, and ``file:line`` of the script.
    nodes : list of GeNode
    """

    name: str
    target: str
    op: str
    function: Any = None
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)
    results: tuple[Any, ...] = ()
    seen: "dict[Ref, torch.Tensor]" = field(default_factory=dict)
    values: tuple[Any, ...] = ()
    form: tuple[Any, ...] | None = None
    module: str = ""
    kind: str = ""
    at: str = ""
    nodes: list[GeNode] = field(default_factory=list)


class GeGraph:
    """A graph of GE.

    Attributes
    ----------
    name : str
        ``graph_1``.
    nodes : list of GeNode
    calls : list of FxCall
    removed : list of str
        Names of nodes that were removed.
    writes : dict of int to int
        Input of NetOutput -> index of the graph's input that it overwrites.
    symbols : dict
        Outputs that are integers of symbols, with torch's expressions.
    fractions : dict
        Outputs that are floating-point numbers of symbols, with torch's expressions.
    spare : list of GeNode
        Data that GE removes but that torch's operators need.
    strides : Strides
        Strides of the captured graph's tensors in eager torch.
    packed : dict
        The Data of the symbols for each Data that is a list of symbols, by name.

    Examples
    --------
    >>> graph = GeGraph("graph_1")
    >>> [graph.add("Add", []).name for _ in range(3)]
    ['Add', 'Add_1', 'Add_2']
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[GeNode] = []
        self.calls: list[FxCall] = []
        self.removed: list[str] = []
        self.writes: dict[int, int] = {}
        self.symbols: dict[tuple[str, int], Any] = {}
        self.fractions: dict[tuple[str, int], Any] = {}
        self.spare: list[GeNode] = []
        self.strides = Strides(())
        self.packed: dict[str, list[Ref]] = {}
        self._numbers: dict[str, int] = {}
        self._names: set[str] = set()

    def add(
        self,
        kind: str,
        inputs: "list[Ref | None]",
        attrs: dict[str, Any] | None = None,
        *,
        outputs: int = 1,
        name: str | None = None,
    ) -> GeNode:
        """Add a node; without a name it is named after its type, with a free number.

        Raises
        ------
        AssertionError
            For a name that is in use, with the vendor's text.
        """
        if name is None:
            name = self._free_name(kind)
        elif name in self._names:
            raise AssertionError(f"duplicated node name {name} is not allowed")
        self._names.add(name)
        node = GeNode(name, kind, inputs, attrs or {}, [GeOutput() for _ in range(outputs)])
        self.nodes.append(node)
        return node

    def const(self, value: Any, dtype: torch.dtype | None = None, *, name: str | None = None) -> "Ref":
        """Add a Const of a number, a list or a tensor."""
        with _disable_current_modes():  # during a capture, new tensors would have no values
            found = value.detach() if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=dtype)
        node = self.add("Const", [], name=name)
        node.value, node.readable = found, repr(value)
        node.outputs[0].dtype, node.outputs[0].shape = found.dtype, tuple(found.shape)
        return Ref(node)

    def pack(self, values: "Sequence[Any]", *, dtype: torch.dtype | None = None) -> "Ref":
        """Add the Pack of a list of numbers and symbols."""
        items: list[Ref | None] = [one if isinstance(one, Ref) else self.const(one, torch.int64) for one in values]
        node = self.add("Pack", items, {"N": len(items), "axis": 0, "_force_unknown_shape": True})
        node.outputs[0].dtype = dtype
        if all(one is not None and "_host_tensor" in one.node.attrs for one in items):
            node.attrs["_inputs_all_sym"] = True
        return Ref(node)

    def _free_name(self, kind: str) -> str:
        number = self._numbers.get(kind, 0)
        while (name := f"{kind}_{number}" if number else kind) in self._names:
            number += 1
        self._numbers[kind] = number + 1
        return name

    def remove(self, node: GeNode) -> None:
        """Remove a node; its name is not used again."""
        self.nodes.remove(node)
        self.removed.append(node.name)

    def of_type(self, kind: str) -> Iterator[GeNode]:
        """Iterate over the nodes of a type."""
        return (node for node in self.nodes if node.type == kind)

    @property
    def output(self) -> GeNode | None:
        """The NetOutput."""
        return next(self.of_type("NetOutput"), None)
