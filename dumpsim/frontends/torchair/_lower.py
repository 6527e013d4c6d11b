"""The stage after TorchAir's Python: from the graph that is passed to GE to the kernels that the device runs.

GE's own passes are in its compiled half, which cannot run here, so this stage is ours. Its rules, in this order:

1. Nodes that NetOutput does not need have no task. (ours; TorchAir's Python removes none, GE does)
2. A Cast to the type of its operand, Identity, Reshape, Squeeze, Unsqueeze, ExpandDims, FlattenV2 and Bitcast return
   their operand's bytes: they have no task and no file, and the files of their users show the operand. (ours; as in
   GE's models of MindSpore)
3. Const and Data have no task; Data have files, as inputs of a model have. [spec ge 1.5]
4. Nodes that only compute a shape (Shape, Gather of it, Pack ...) are computed by the compilation: no task. (ours)
5. A node that returns a result of an ATen operator computes that operator with torch, so that results are those of
   eager torch bit for bit; helper nodes compute the operator of their type. (ours)
6. Helper nodes whose type has no kernel here have no task. (ours)
7. An operator whose only user is a quantisation is computed by the quantisation, unless ``quant_dumpable`` is set.
   [spec ge 1.5] (the pattern: ours)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from dumpsim.core.abstract import ScalarType, TensorType, TupleType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.torchair._extents import Sizes, extent, extents, fraction
from dumpsim.frontends.torchair._fold import Joined
from dumpsim.frontends.torchair._ge import GeGraph, GeNode, Ref
from dumpsim.frontends.torchair._helpers import HELPERS, SHAPES, VIEWS, Moved
from dumpsim.frontends.torchair._result import Provided, ResultKernel, provided, references, result_kernel
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.engine import torchbound

__all__ = ["array_of", "array_where", "lower", "tensor_of"]


def _formats(first: str, second: str, output: str) -> Mapping[str, Mapping[int, str]]:
    return MappingProxyType({"in": MappingProxyType({0: first, 1: second}), "out": MappingProxyType({0: output})})


# formats of the matrix unit's operators, on chips whose kernels take private formats [decisions: chip; spec ge 5]
_PRODUCT = _formats("FRACTAL_NZ", "FRACTAL_NZ", "FRACTAL_NZ")
_FORMATS: Mapping[str, Mapping[str, Mapping[int, str]]] = MappingProxyType(
    {
        "BatchMatMul": _PRODUCT,
        "BatchMatMulV2": _PRODUCT,
        "Conv2D": _formats("NC1HWC0", "FRACTAL_Z", "NC1HWC0"),
        "MatMul": _PRODUCT,
        "MatMulV2": _PRODUCT,
    }
)
_SMALL = 256  # largest number of elements of a tensor that the compilation computes


def kind_of(kind: torch.dtype) -> DType:
    """Convert a data type of torch to ours."""
    return dtype(str(kind).removeprefix("torch."))


def array_of(tensor: torch.Tensor) -> "np.ndarray[Any, Any]":
    """Return the elements of a tensor: a view of its memory if it is contiguous."""
    return torchbound.array_of(tensor.detach().resolve_conj().resolve_neg().contiguous())


def array_where(tensor: torch.Tensor) -> "np.ndarray[Any, Any]":
    """Return a view of a tensor's memory, with its strides."""
    if tensor.is_conj() or tensor.is_neg():
        return array_of(tensor)
    return torchbound.array_of(tensor.detach())


def tensor_of(array: "np.ndarray[Any, Any]") -> torch.Tensor:
    """Convert an array that nobody else uses to a tensor."""
    return torchbound.tensor_of(array if array.flags.writeable else array.copy())


def lower(
    graph: GeGraph, sizes: Sizes, folded: Mapping[str, str] = MappingProxyType({}), *, gradient: bool = False
) -> Graph:
    """Return the kernels of a graph, for given sizes of its symbols.

    Parameters
    ----------
    graph : GeGraph
    sizes : mapping of str to int
    folded : mapping of str to str
        Operators that are folded into another one.
    gradient : bool
        Whether the results are gradients: transposed ones are made contiguous, as torch requires for weights.
    """
    return _Lowering(graph, sizes, folded, gradient).lower()


@dataclass(slots=True)
class _Known:
    """An output as the compilation knows it: its type and shape, and its values if they follow from shapes."""

    sample: torch.Tensor  # without values, on the meta device
    value: torch.Tensor | None = None


class _Lowering:
    def __init__(self, graph: GeGraph, sizes: Sizes, folded: Mapping[str, str], gradient: bool) -> None:
        self.ge = graph
        self.gradient = gradient
        self.sizes = sizes
        self.graph = Graph(name=graph.name)
        self.known: dict[tuple[str, int], _Known] = {}
        self.values: dict[str, Value] = {}  # by name of the node
        self.folded = folded
        self.pending: dict[str, tuple[Node, Any]] = {}  # folded operators with kernels, by the node that computes them
        self.needed = self._needed()
        self.providers = self._providers()

    def lower(self) -> Graph:
        for node in self.ge.of_type("Data"):
            self._data(node)
        for node in self.ge.spare:
            self._data(node)
        for node in self.ge.nodes:
            if node.type == "Const":
                self._const(node)
            elif node.type == "NetOutput":
                self._output(node)
            elif node.type != "Data" and node.name in self.needed:
                self._node(node)
        return self.graph

    def _needed(self) -> set[str]:
        """Return the nodes that NetOutput needs, and those that only an operator of torch reads. (rule 1)"""
        found: set[str] = set()
        pending = [self.ge.output] if self.ge.output is not None else []
        calls = {id(node): call for call in self.ge.calls for node in call.nodes}
        while pending:
            node = pending.pop()
            assert node is not None
            if node.name in found:
                continue
            found.add(node.name)
            pending += [one.node for one in node.inputs if one is not None]
            call = calls.get(id(node))
            if call is not None and call.function is not None and node.type not in ("NetOutput", "Const", "Data"):
                pending += [one.node for one in references((call.arguments, call.keywords))]
        return found

    def _providers(self) -> dict[str, Provided]:
        """Return the nodes that compute an operator's results: the last ones, or those before a Cast or Squeeze."""
        found: dict[str, Provided] = {}
        for call in self.ge.calls:
            if isinstance(call.function, torch._ops.OpOverload):
                for name, slots in provided(call).items():
                    found[name] = Provided(call, slots)
        return found

    # ------------------------------------------------------------------------------------------------------- inputs
    def _data(self, node: GeNode) -> None:
        if node.name == "offset_list":
            return  # torch draws the random numbers
        if node.name in self.ge.packed:
            symbols = [self.ge.symbols[one.node.name, one.index] for one in self.ge.packed[node.name]]
            self._numbers_of(node, torch.tensor(extents(symbols, self.sizes)))
            return
        output = node.outputs[0]
        kind = output.dtype or torch.float64
        shape = extents(output.shape or (), self.sizes)
        parameter = Parameter(name=node.name, abstract=TensorType(dtype=kind_of(kind), shape=shape))
        self.graph.parameters.append(parameter)
        self.values[node.name] = parameter
        symbol = self.ge.symbols.get((node.name, 0))
        value = None if symbol is None else torch.tensor(extent(symbol, self.sizes))
        self.known[node.name, 0] = _Known(torch.empty(shape, dtype=kind, device="meta"), value)

    def _const(self, node: GeNode) -> None:
        assert node.value is not None
        self._numbers_of(node, node.value)

    def _numbers_of(self, node: GeNode, value: torch.Tensor) -> None:
        """Replace a node by its known values."""
        abstract = TensorType(dtype=kind_of(value.dtype), shape=tuple(value.shape))
        self.values[node.name] = Constant(value=array_of(value), abstract=abstract)
        self.known[node.name, 0] = _Known(value.to("meta"), value)

    # -------------------------------------------------------------------------------------------------------- nodes
    def _node(self, node: GeNode) -> None:
        own = self.providers.get(node.name)
        helped = None
        if own is not None:
            strides = self.ge.strides
            helped = result_kernel(node, own, self._sample, self.values, self._number, self.sizes, strides)
        samples = self._outputs(node, helped)
        if samples is None:
            return  # rule 6
        for at, sample in enumerate(samples):
            self.known[node.name, at] = sample
        if all(one.value is not None for one in samples) and helped is None:
            self._fold(node, samples)  # rule 4
            return
        abstracts = [TensorType(dtype=kind_of(one.sample.dtype), shape=tuple(one.sample.shape)) for one in samples]
        operands = [self._operand(one) for one in node.inputs if one is not None and one.node.name in self.values]
        hidden = [] if helped is None else [self._operand(one) for one in helped.hidden]
        abstract = abstracts[0] if len(abstracts) == 1 else TupleType(items=tuple(abstracts))
        view = self._is_view(node, samples[0])
        kernel: Any = helped if helped is not None else HELPERS[node.type]
        if self.gradient and isinstance(kernel, Moved):
            kernel = replace(kernel, keeps=False)
        if node.name in self.pending:
            before, first = self.pending.pop(node.name)
            kernel = Joined(first, len(before.operands), dict(before.attrs), kernel)
            operands = [*before.operands, *operands[1:]]
            self.graph.trail.remove(before)
        made = Node(
            op_type=node.type,
            operands=operands[:1] if view else [*operands, *hidden],
            abstract=abstract,
            attrs=dict(node.attrs),
            full_name=node.name,
            dump_mark="true" if node.attrs.get("torchair_enable_data_dump") else None,
            definition=OpDef(
                name=node.type,
                operands=tuple(f"x{at}" for at in range(len(operands))),
                infer=lambda operands, attrs: abstract,
                kernel=kernel,
                view=view,
                unseen=0 if view else len(hidden),
                formats={} if view else _FORMATS.get(node.type, {}),
            ),
        )
        self.values[node.name] = made
        self.graph.trail.append(made)
        if node.name in self.folded and not (view or hidden) and len(abstracts) == 1:
            self.pending[self.folded[node.name]] = made, kernel

    def _is_view(self, node: GeNode, result: _Known) -> bool:
        """Return whether a node returns its operand's bytes. (rule 2)"""
        if node.type not in VIEWS and node.type != "Cast":
            return False
        first = node.inputs[0]
        assert first is not None
        known = self.known.get((first.node.name, first.index))
        if known is None:
            return False  # the operand is not computed
        operand = known.sample
        return operand.dtype == result.sample.dtype and operand.numel() == result.sample.numel()

    def _fold(self, node: GeNode, samples: Sequence[_Known]) -> None:
        """Replace a node by its known values."""
        value = samples[0].value
        assert value is not None
        abstract = TensorType(dtype=kind_of(value.dtype), shape=tuple(value.shape))
        self.values[node.name] = Constant(value=array_of(value), abstract=abstract)

    def _outputs(self, node: GeNode, helped: ResultKernel | None) -> list[_Known] | None:
        """Return what is known of a node's outputs; None if it has no kernel."""
        if helped is not None:
            return [_Known(one) for one in helped.samples]
        kernel = HELPERS.get(node.type)
        inputs = [one for one in node.inputs if one is not None]
        if kernel is None or any((one.node.name, one.index) not in self.known for one in inputs):
            number = self._symbolic((node.name, 0))  # arithmetic of extents, whose result torch knows
            return None if number is None else [_Known(torch.tensor(number, device="meta"), torch.tensor(number))]
        found = [self.known[one.node.name, one.index] for one in inputs]
        needed = {at % len(found) for at in SHAPES.get(node.type, ())}
        if any(found[at].value is None for at in needed):
            return None
        operands = [one.value if at in needed else one.sample for at, one in enumerate(found)]
        attrs = node.attrs
        if all(one.value is not None for one in found) or node.type == "Shape":
            given = [one.sample if one.value is None else one.value for one in found]
            if node.type != "Fill" or found[0].value is None or _product(found[0].value) <= _SMALL:
                made = _flat(kernel(*given, **attrs))
                if all(one.device.type == "cpu" and one.numel() <= _SMALL for one in made):
                    return [_Known(one.to("meta"), one) for one in made]
        made = _flat(kernel(*operands, **attrs))
        return [_Known(one.to("meta")) for one in made]

    def _symbolic(self, key: tuple[str, int]) -> int | float | None:
        """Return the value of an expression of extents; None for a tensor."""
        if key in self.ge.fractions:
            return fraction(self.ge.fractions[key], self.sizes)
        return extent(self.ge.symbols[key], self.sizes) if key in self.ge.symbols else None

    def _number(self, ref: Ref) -> int | float | None:
        """Return the value of a symbol in this program; None for a tensor."""
        key = ref.node.name, ref.index
        if key not in self.ge.symbols:
            return self._symbolic(key)
        value = self.known[key].value
        assert value is not None, key
        return int(value)

    def _sample(self, ref: Ref) -> torch.Tensor:
        return self.known[ref.node.name, ref.index].sample

    def _operand(self, ref: Ref) -> Value:
        value = self.values.get(ref.node.name)
        if value is None:
            raise UnsupportedError(f"no kernel for operator type {ref.node.type}", where=ref.node.name)
        if isinstance(value, Node) and isinstance(value.abstract, TupleType):
            index = Constant(value=ref.index, abstract=ScalarType(dtype=dtype("int64"), value=ref.index))
            return Node(op_type="TupleGetItem", operands=[value, index], abstract=value.abstract.items[ref.index])
        return value

    def _output(self, node: GeNode) -> None:
        operands = [self._operand(one) for one in node.inputs if one is not None]
        abstract = TupleType(items=tuple(one.abstract for one in operands))
        self.graph.output = Node(op_type="MakeTuple", operands=operands, abstract=abstract)


def _product(numbers: torch.Tensor) -> int:
    return int(torch.prod(numbers.to(torch.int64)))


def _flat(made: Any) -> list[torch.Tensor]:
    return list(made) if isinstance(made, (list, tuple)) else [made]
