"""The conversion of a captured torch graph to the graph that is passed to GE. [spec aten 9.2-9.9]"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from dumpsim.frontends.torchair._calls import bound, iterate, name_of, provenance, written
from dumpsim.frontends.torchair._ge import FxCall, GeGraph, GeOutput, Ref, SymbolList
from dumpsim.frontends.torchair._maker import Maker, run_rule
from dumpsim.frontends.torchair._product import SUM, form_of
from dumpsim.frontends.torchair._refusals import Refused, refusal
from dumpsim.frontends.torchair._result import references
from dumpsim.frontends.torchair._strides import Strides
from dumpsim.frontends.torchair._table import fallback, plain_type, rule
from dumpsim.frontends.torchair._views import Deferred, Views

__all__ = ["Converter", "ViewOfInput"]

_DEFERRED = frozenset(
    {"aten.permute.default", "aten.view.default", "aten.reshape.default", "aten.transpose.int", "aten.t.default"}
)
# operators with operands that have no effect on the result
_IDLE = frozenset(
    {
        "aten.log_sigmoid_backward.default",
        "aten.max_pool2d_with_indices_backward.default",
        "aten.native_batch_norm_backward.default",
        "aten.native_layer_norm_backward.default",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class CapturedTensor:
    """A constant tensor of the captured graph; it becomes a Const when an operator takes it."""

    value: torch.Tensor
    known: torch.Tensor


@dataclass(frozen=True, slots=True)
class ViewOfInput:
    """A result that is a view of an input: made at run time, not an output of the graph."""

    index: int


class Converter:
    """Converts one graph.

    Parameters
    ----------
    name : str
        Name of the graph: ``graph_1``.
    view_optimize : bool
        Whether nodes of a view are made only when an operator reads it.
    strict : bool
        Whether to refuse the overloads that the real converter refuses.
    extended : callable, optional
        Called with each overload that the real converter refuses and this one converts.
    marks : mapping, optional
        Attributes for the nodes that are made of an FX node.
    """

    def __init__(
        self,
        name: str,
        *,
        view_optimize: bool = True,
        strict: bool = False,
        extended: Callable[[str], object] | None = None,
        marks: Mapping[fx.Node, Mapping[str, str]] | None = None,
    ) -> None:
        self.graph = GeGraph(name)
        self.results: list[Any] = []  # an index of NetOutput's inputs, a `ViewOfInput`, or a Python value
        self.inputs: list[Any] = []
        self.values: list[Any] = []  # the results as torch describes them (fake tensors)
        self._views = Views(self.graph)
        self._defers = view_optimize
        self._strict = strict
        self._extended = extended
        self._marks = marks or {}
        self._known: dict[tuple[str, int], torch.Tensor] = {}
        self._seeds: tuple[Ref, Ref] | None = None
        self._index = 0

    # --------------------------------------------------------------------------------------------------- the graph
    def convert(self, graph: fx.Graph, owner: torch.nn.Module | None = None) -> GeGraph:
        """Convert a whole graph.

        Parameters
        ----------
        graph : torch.fx.Graph
        owner : torch.nn.Module, optional
            The module with the tensors that the graph reads as attributes.

        Raises
        ------
        Exception
            The error of the real converter for an overload that it refuses.
        """
        self.capture(graph, owner)
        self.finish()
        return self.graph

    def capture(self, graph: fx.Graph, owner: torch.nn.Module | None = None) -> None:
        """Make the nodes, without the changes that TorchAir makes after the conversion."""
        environment: dict[fx.Node, Any] = {}
        self.graph.strides = Strides(graph.nodes)
        for node in graph.nodes:
            before = len(self.graph.nodes)
            call = FxCall(name=node.name, target=str(node.target), op=node.op, function=node.target, form=form_of(node))
            provenance(call, node)
            self.graph.calls.append(call)
            if node.op == "placeholder":
                environment[node] = self.input(node.name, node.meta.get("val"))
                call.results = (environment[node],)
            elif node.op == "output":
                self.output(fx.map_arg(node.args[0], environment.__getitem__), node.args[0], graph)
            elif node.op == "get_attr":
                environment[node] = self._attribute(owner, node)
                call.results = (environment[node],)
            else:
                arguments, keywords = fx.map_arg((node.args, node.kwargs), environment.__getitem__)
                environment[node] = self.call(call, arguments, keywords, node.meta.get("val"))
                if call.form and call.form[0] == SUM:
                    products = next(one for one in reversed(self.graph.calls) if one.name == node.args[0].name)
                    call.form = (SUM, *products.arguments, *call.form[1:])
                    call.seen = {**products.seen, **call.seen}
            call.nodes = self.graph.nodes[before:]
            for made in call.nodes:
                made.attrs.update(self._marks.get(node, {}))

    def input(self, name: str, value: Any) -> Any:
        """Add a Data node."""
        node = self.graph.add("Data", [], {"index": self._index}, name=name)
        self._index += 1
        made = Ref(node)
        self.inputs.append(value)
        if isinstance(value, torch.Tensor):
            node.outputs[0].dtype, node.outputs[0].shape = value.dtype, tuple(value.shape)
            self._known[name, 0] = value
        else:
            kind = torch.int64 if isinstance(value, (torch.SymInt, int)) else torch.float64
            node.outputs[0].dtype, node.outputs[0].shape = kind, ()
            node.attrs["_host_tensor"] = True
            if isinstance(value, torch.SymInt):
                self.graph.symbols[name, 0] = value
        return made

    def _attribute(self, owner: torch.nn.Module | None, node: fx.Node) -> Any:
        """Return an attribute that the captured graph reads."""
        value: Any = owner
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            return value
        return CapturedTensor(value, node.meta.get("val", value))

    # --------------------------------------------------------------------------------------------------- operators
    def call(self, call: FxCall, arguments: Sequence[Any], keywords: dict[str, Any], value: Any) -> Any:
        """Convert an operator; return its result, or a list of several."""
        if call.target == "<built-in function getitem>" or getattr(call.function, "__name__", "") == "getitem":
            found = arguments[0][arguments[1]]
            call.results, call.values = (found,), (value,)
            return found
        target = name_of(call.function)
        results = list(value) if isinstance(value, (list, tuple)) else [value]
        call.target, call.values = target, tuple(results)
        arguments = [self._packed(one) for one in arguments]
        keywords = {key: self._packed(one) for key, one in keywords.items()}
        if self._defers and target in _DEFERRED and isinstance(value, torch.Tensor):
            view = self._views.defer(arguments[0], call.function, arguments[1:], keywords, value)
            if view is not None:
                call.arguments, call.results = tuple(arguments), (view,)
                return view
        given = arguments, keywords
        arguments, keywords = self._materialized((list(arguments), keywords))
        empty = _empty(results, strict=self._strict)
        if empty is None:
            arguments, keywords = self._constant((arguments, keywords))
        call.arguments, call.keywords = tuple(arguments), keywords
        call.seen = self._seen((call.arguments, call.keywords), given)
        if empty is not None:
            made = [self._stand_in(one) for one in empty]
        else:
            made = self._run(call, target, arguments, keywords, results)
        call.results = tuple(made)
        for one, known in zip(made, results, strict=False):
            self._learn(one, known)
        return made if isinstance(value, (list, tuple)) else made[0] if made else None

    def _packed(self, what: Any) -> Any:
        """Make nodes of lists of symbols, whether the operator will use them or not. [spec aten 9.9]"""
        if not isinstance(what, (list, tuple)):
            return what
        known = [isinstance(one, Ref) and (one.node.name, one.index) in self.graph.symbols for one in what]
        if any(known) and all(one or isinstance(item, int) for one, item in zip(known, what, strict=True)):
            return SymbolList(what, self.graph.pack(what, dtype=torch.int64))
        return [self._packed(one) for one in what] if isinstance(what, list) else tuple(map(self._packed, what))

    def _constant(self, what: Any) -> Any:
        """Make Consts of the constant tensors of the captured graph."""
        if isinstance(what, CapturedTensor):
            made = self.graph.const(what.value)
            self._known[made.node.name, 0] = what.known
            return made
        if isinstance(what, SymbolList):
            return what
        if isinstance(what, (list, tuple)):
            return type(what)(self._constant(one) for one in what)
        if isinstance(what, dict):
            return {key: self._constant(one) for key, one in what.items()}
        return what

    def _materialized(self, what: Any) -> Any:
        """Make the nodes of deferred views, in the order of the arguments."""
        if isinstance(what, Deferred):
            return self._views.real(what, self._learn)
        if isinstance(what, SymbolList):
            return what
        if isinstance(what, (list, tuple)):
            return type(what)(self._materialized(one) for one in what)
        if isinstance(what, dict):
            return {key: self._materialized(one) for key, one in what.items()}
        return what

    def _seen(self, real: Any, given: Any) -> dict[Ref, torch.Tensor]:
        """Return the tensors as torch's operator gets them: views with their own strides."""
        found = {}
        for one, other in zip(iterate(real), iterate(given), strict=True):
            if isinstance(other, Deferred):
                found[one] = other.value
            elif isinstance(one, Ref) and (one.node.name, one.index) in self._known:
                found[one] = self._known[one.node.name, one.index]
        return found

    def _learn(self, made: Any, known: Any) -> None:
        """Record type and shape of a result; a node keeps the first shape that it got. [spec aten 9.3]"""
        if not isinstance(made, Ref):
            return
        if isinstance(known, torch.Tensor):
            self._known[made.node.name, made.index] = known
            if made.output.shape is None:
                made.output.dtype, made.output.shape = known.dtype, tuple(known.shape)
        elif isinstance(known, torch.SymInt):
            made.output.dtype = torch.int64
            self.graph.symbols[made.node.name, made.index] = known
        elif isinstance(known, torch.SymFloat):
            made.output.dtype = torch.float32
            self.graph.fractions[made.node.name, made.index] = known

    def _run(
        self, call: FxCall, target: str, arguments: Sequence[Any], keywords: dict[str, Any], results: list[Any]
    ) -> list[Any]:
        named = bound(call.function, arguments, keywords)
        given = written(call.function, arguments, keywords)
        maker = Maker(self.graph, target, named, self._value, results, self._generator, given)
        try:
            made = self._made(maker, target, named)
        except Refused as refused:
            if self._strict or (other := fallback(target)) is None:
                raise refused.error from None
            self._report_extended(target)
            made = run_rule(other, maker, named)
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def _made(self, maker: Maker, target: str, named: dict[str, Any]) -> Any:
        kind = plain_type(target)
        if kind is not None:
            tensors = [one for name, one in named.items() if isinstance(one, Ref) and name not in _WRITTEN]
            return maker.parts(maker.op(kind, *_fed(kind, tensors)))
        known = rule(target)
        if known is not None:
            return run_rule(known, maker, named)
        if self._strict:
            raise refusal(target)
        self._report_extended(target)
        other = fallback(target)
        return run_rule(other, maker, named) if other is not None else _nearest(maker, target, named)

    def _report_extended(self, target: str) -> None:
        if self._extended is not None:
            self._extended(target)

    def _value(self, ref: Ref) -> torch.Tensor:
        """Return the fake tensor of a node's output."""
        return self._known[ref.node.name, ref.index]

    def _stand_in(self, value: torch.Tensor) -> Ref:
        """Make the Const that replaces a result without elements."""
        with _disable_current_modes():
            return self.graph.const(torch.empty(tuple(value.shape), dtype=value.dtype))

    def _generator(self) -> tuple[Ref, Ref]:
        """Return seed and offset of random numbers: one seed for the graph, one offset for each random operator."""
        if self._seeds is None:
            seed = self.graph.const(0, torch.int64, name="initial_seed")
            offsets = self.graph.add("Data", [], {"index": -1}, name="offset_list")
            unpack = self.graph.add("Unpack", [Ref(offsets)], {}, name="unpack_generator_offsets", outputs=0)
            self._seeds = seed, Ref(unpack)
        seed, unpacked = self._seeds
        node = unpacked.node
        node.outputs.append(GeOutput())
        node.attrs["num"] = count = len(node.outputs)
        data = node.inputs[0]
        assert data is not None
        data.output.dtype, data.output.shape = torch.int64, (count,)
        return seed, unpacked[count - 1]

    # ------------------------------------------------------------------------------------------------------ output
    def output(self, results: Any, nodes: Any, graph: fx.Graph) -> None:
        """Add NetOutput."""
        flat = list(results) if isinstance(results, (list, tuple)) else [results]
        origins = list(nodes) if isinstance(nodes, (list, tuple)) else [nodes]
        self.values = [one.meta.get("val") if isinstance(one, fx.Node) else one for one in origins]
        shared = _storages(graph)
        taken: list[Ref] = []
        for one, origin in zip(flat, origins, strict=True):
            real = self._constant(self._materialized(one))
            alias = _alias(origin, shared)
            if isinstance(real, Ref) and (real.node.name, real.index) in self.graph.symbols:
                self.results.append(self.graph.symbols[real.node.name, real.index])
            elif alias is not None:
                self.results.append(ViewOfInput(alias))
            elif isinstance(real, Ref):
                if real not in taken:
                    taken.append(real)
                self.results.append(taken.index(real))
            else:
                self.results.append(real)
        self._outputs = taken

    def finish(self) -> None:
        """Make outputs of the writes to inputs, and remove unused Data. [spec aten 9.8]"""
        taken: list[Ref | None] = list(self._outputs)
        for assign in list(self.graph.of_type("Assign")):
            target, source = assign.inputs
            assert target is not None
            if source not in taken:
                taken.append(source)
            self.graph.writes[taken.index(source)] = int(target.node.attrs["index"])
            self.graph.remove(assign)
        net = self.graph.add("NetOutput", taken, name="NetOutput", outputs=0)
        if self.graph.calls:
            self.graph.calls[-1].nodes.append(net)
        self._pack_symbols()
        used = {one.node.name for node in self.graph.nodes for one in node.inputs if one is not None}
        index, read, spare = 0, self._read(), []
        self.ge_inputs: list[int] = []  # indices of the captured graph's inputs that are inputs of GE's graph
        for node in list(self.graph.of_type("Data")):
            if node.name == "offset_list" or node.name in self.graph.packed:
                node.attrs["index"] = index
                index += 1
                continue
            position = node.attrs["index"]
            if node.name in used:
                self.graph.writes = {out: index if at == position else at for out, at in self.graph.writes.items()}
                node.attrs["index"] = index
                self.ge_inputs.append(position)
                index += 1
            else:
                self.graph.remove(node)
                if node.name in read:
                    self.graph.spare.append(node)
                    spare.append(position)
        self.ge_inputs += spare

    def _pack_symbols(self) -> None:
        """Replace each Pack whose numbers are all input symbols by Data. [spec aten 9.9]"""
        found: dict[tuple[Any, ...], Ref] = {}
        for pack in [one for one in self.graph.of_type("Pack") if "_inputs_all_sym" in one.attrs]:
            key = tuple(pack.inputs)
            if key not in found:
                data = self.graph.add("Data", [], {"index": -1, "_host_tensor": True})
                data.outputs[0].dtype, data.outputs[0].shape = torch.int64, (len(key),)
                self.graph.packed[data.name] = [one for one in pack.inputs if one is not None]
                found[key] = Ref(data)
            self.graph.remove(pack)
            for node in self.graph.nodes:
                node.inputs = [found[key] if one is not None and one.node is pack else one for one in node.inputs]

    def _read(self) -> set[str]:
        """Return the Data that torch's operators read, even if GE's nodes do not."""
        return {
            one.node.name
            for call in self.graph.calls
            if name_of(call.function) not in _IDLE and call.nodes
            for one in references((call.arguments, call.keywords))
        }


_WRITTEN = frozenset({"out", "grad_input"})  # arguments that a call writes to


def _fed(kind: str, tensors: list[Ref]) -> list[Ref]:
    """Return the inputs of a plain operator; GE does not take the buffer of log-sigmoid's gradient."""
    return tensors[:2] if kind == "LogSigmoidGrad" else tensors


def _nearest(maker: Maker, target: str, named: dict[str, Any]) -> list[Ref]:
    """Make a node whose type is the overload's name, for an overload that the real converter refuses. (ours)"""
    word = target.split(".")[1].strip("_")
    kind = "".join(part.capitalize() for part in word.split("_"))
    inputs: list[Any] = []
    attrs: dict[str, Any] = {}
    for name, value in named.items():
        if isinstance(value, Ref):
            inputs.append(value)
        elif isinstance(value, (list, tuple)) and any(isinstance(one, Ref) for one in value):
            inputs += [one for one in value if isinstance(one, Ref)]
        elif isinstance(value, (bool, int, float, str, list)) and name not in ("shape", "size"):
            attrs[name] = value
    return maker.outputs(kind, max(1, len(maker.outs)), *inputs, **attrs)


def _empty(results: Sequence[Any], *, strict: bool) -> list[torch.Tensor] | None:
    """Return the results if all of them are tensors without elements and without symbols; otherwise None."""
    found = [one for one in results if isinstance(one, torch.Tensor)]
    if not found or len(found) != len(results):
        return None
    fixed = all(isinstance(dim, int) for one in found for dim in one.shape)
    if strict and any(one.numel() == 0 for one in found) and not fixed:  # raises for a size that depends on data
        return None
    return found if fixed and not any(one.numel() for one in found) else None


def _storages(graph: fx.Graph) -> dict[int, int]:
    """Return the index of the input that has each storage, by the storage's identity."""
    found: dict[int, int] = {}
    at = 0
    for node in graph.nodes:
        if node.op == "placeholder":
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                found.setdefault(value.untyped_storage()._cdata, at)
            at += 1
    return found


def _alias(origin: Any, storages: dict[int, int]) -> int | None:
    value = origin.meta.get("val") if isinstance(origin, fx.Node) else None
    if not isinstance(value, torch.Tensor):
        return None
    return storages.get(value.untyped_storage()._cdata)
