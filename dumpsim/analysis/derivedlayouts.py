"""Layouts of a network that is split over ranks, derived from the IR text that its dump has.

The text names the strategy of each operator and the shapes of its slices; with the number of ranks, the rules of the
operators (`dumpsim.core.cuttingrules`) give the layouts. Redistributions and backward passes have no strategies.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

from dumpsim.codecs.irtext import parse
from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.core.cutting import Labels, Operator, Scheme, StrategyError, layouts_of, names_of
from dumpsim.core.cuttingrules import scheme_of
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, NodeRef, Operand, ParamRef
from dumpsim.core.regular import read_text
from dumpsim.core.tensorlayout import TensorLayout

__all__ = ["derived"]

_LARGEST = 1 << 28  # bytes of a text
_GRAPHS = "rank_*/graphs/ms_output_trace_code_graph_*.ir"
_PASSING = frozenset({"Load", "Depend", "TupleGetItem"})
_STRATEGIES = ("in_strategy", "gen_strategy")


def derived(root: Path) -> Iterator[dict[str, Any]]:
    """The layouts that the graphs of a dump tell, as manifests have them.

    Parameters
    ----------
    root : Path
        The dump's root, with a directory for each rank.
    """
    ranks: dict[int, list[Path]] = {}
    for path in sorted(root.glob(_GRAPHS)):
        rank = path.parent.parent.name.removeprefix("rank_")
        if rank.isdigit():
            ranks.setdefault(int(rank), []).append(path)
    devices = max(ranks, default=-1) + 1
    for path in ranks[min(ranks)] if ranks else ():
        yield from _Derivation(parse(read_text(path, _LARGEST), str(path)), devices).entries()


class _Derivation:
    def __init__(self, doc: IrDoc, devices: int) -> None:
        self._doc, self._devices = doc, devices
        self._nodes = {node.index: node for node in doc.nodes if node.index is not None}

    def entries(self) -> Iterator[dict[str, Any]]:
        """The layouts of all operators with a strategy, and of the weights and arguments that they take."""
        parameters: dict[str, TensorLayout] = {}
        summed: dict[int, tuple[TensorLayout, tuple[int, ...]]] = {}  # terms by the node that gives them
        for node in self._doc.nodes:
            if node.index is not None and node.op_type == "AllReduce" and isinstance(node.operands[0], NodeRef):
                terms = summed.get(node.operands[0].index)
                if terms is not None:
                    layout, dims = terms
                    yield self._entry(node, "input", 0, layout, dims)
                    yield self._entry(node, "output", 0, layout)
            strategy = _strategy_of(node)
            if strategy is None:
                continue
            found = self._layouts(node, strategy)
            if found is None:
                continue
            inputs, outputs, terms_of, is_sum = found
            for slot, ((operand, _), layout) in enumerate(zip(self._tensors(node), inputs, strict=True)):
                yield self._entry(node, "input", slot, layout)
                source = self._source(operand)
                if isinstance(source, ParamRef):
                    parameter = self._doc.params[source.index]
                    kind = parameter.abstract
                    if isinstance(kind, TensorType) and kind.shape == layout.slice_shape:
                        parameters.setdefault(parameter.name, layout)
            for slot, layout in enumerate(outputs):
                if not terms_of:
                    yield self._entry(node, "output", slot, layout)
                elif is_sum:
                    yield self._entry(node, "output", slot, layout, terms_of)
                    assert node.index is not None
                    summed[node.index] = (layout, terms_of)
        for name, layout in parameters.items():
            yield self._row(name, "output", 0, layout)

    def _source(self, operand: Operand) -> Operand:
        """What a value comes from."""
        while isinstance(operand, NodeRef) and self._nodes[operand.index].op_type in _PASSING:
            operand = self._nodes[operand.index].operands[0]
        return operand

    def _tensors(self, node: IrNode) -> list[tuple[Operand, TensorType]]:
        """The tensor operands, tuples flattened."""
        found: list[tuple[Operand, TensorType]] = []
        for operand, kind in zip(node.operands, node.operand_types, strict=True):
            if isinstance(kind, TensorType):
                found.append((operand, kind))
            elif isinstance(operand, NodeRef) and self._nodes[operand.index].op_type == "MakeTuple":
                found += self._tensors(self._nodes[operand.index])
        return found

    def _layouts(
        self, node: IrNode, strategy: tuple[tuple[int, ...], ...]
    ) -> tuple[tuple[TensorLayout, ...], tuple[TensorLayout, ...], tuple[int, ...], bool] | None:
        """The layouts of operands and results, the dimensions of terms, and whether these are summed."""
        parts = [kind.shape for _, kind in self._tensors(node)]
        results = [kind.shape for kind in _items(node.output)]
        if len(parts) != len(strategy) or any(len(s) != len(row) for s, row in zip(parts, strategy, strict=True)):
            return None
        constants = {at: _value(one) for at, one in enumerate(node.operands) if isinstance(one, ConstRef)}
        shapes = tuple(
            tuple(extent * cut for extent, cut in zip(part, row, strict=True))
            for part, row in zip(parts, strategy, strict=True)
        )
        operator = Operator(
            op_type=node.op_type,
            shapes=shapes,
            outputs=tuple(results),
            constants=constants,
            attrs={name: _literal(str(value)) for name, value in node.primitive_attrs},
            strategy=strategy,
            devices=self._devices,
        )
        try:
            scheme = scheme_of(operator)
            whole = _with_outputs(operator, scheme)
            layouts = layouts_of(whole, scheme, 0)
        except (StrategyError, KeyError, IndexError, TypeError, ValueError):
            return None  # an operator whose text does not say what its rule asks
        if scheme.reduction is None:
            return layouts.inputs, layouts.outputs, (), False
        (first, *_), matrix = layouts.outputs, layouts.outputs[0].device_matrix
        used = {dim for one in layouts.inputs if one.device_matrix == matrix for dim in one.used}
        return layouts.inputs, layouts.outputs, tuple(sorted(used - first.used)), scheme.reduction.kind == "sum"

    def _entry(
        self, node: IrNode, io: str, slot: int, layout: TensorLayout, summed: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        return self._row(node.full_name, io, slot, layout, summed)

    def _row(self, name: str, io: str, slot: int, layout: TensorLayout, summed: tuple[int, ...] = ()) -> dict[str, Any]:
        return {
            "graph_id": self._doc.graph_id, "op": name, "io": io, "slot": slot, "device_matrix": layout.device_matrix,
            "tensor_map": layout.tensor_map, "shape": layout.shape, "summed": summed,
        }  # fmt: skip


def _with_outputs(operator: Operator, scheme: Scheme) -> Operator:
    """The operator with the shapes of its whole results: the text has those of slices."""
    counts = dict(scheme.matrix)

    def whole(part: Sequence[int], labels: Labels) -> tuple[int, ...]:
        parts = [prod(counts[name] for name in names_of(label)) for label in labels]
        return tuple(extent * count for extent, count in zip(part, parts, strict=True))

    outputs = tuple(whole(*pair) for pair in zip(operator.outputs, scheme.outputs, strict=True))
    return Operator(
        op_type=operator.op_type, shapes=operator.shapes, outputs=outputs, constants=operator.constants,
        attrs=operator.attrs, strategy=operator.strategy, devices=operator.devices,
    )  # fmt: skip


def _strategy_of(node: IrNode) -> tuple[tuple[int, ...], ...] | None:
    marks = {name: str(value) for name, value in node.primitive_attrs}
    text = node.strategy or next((marks[name] for name in _STRATEGIES if name in marks), "")
    if not re.fullmatch(r"[\d(), ]+", text):
        return None
    rows = re.findall(r"\(([\d, ]*)\)", text[1:-1])
    return tuple(tuple(int(n) for n in row.split(",") if n.strip()) for row in rows)


def _items(kind: Abstract | None) -> list[TensorType]:
    items = kind.items if isinstance(kind, TupleType) else (kind,)
    return [item for item in items if isinstance(item, TensorType)]


def _value(operand: Operand) -> Any:
    return _literal(str(getattr(operand, "value", "")))


def _literal(text: str) -> Any:
    """A constant of the text: ``(I64(1), I64(0))`` as ``(1, 0)``."""
    plain = re.sub(r"\b[IFU]\d+\(([^()]*)\)", r"\1", text)
    plain = re.sub(r"\bBool\(([01])\)", lambda match: str(match[1] == "1"), plain)
    if plain.startswith("(") and plain.endswith(")") and "," not in plain and plain != "()":
        plain = f"{plain[:-1]},)"
    try:
        return ast.literal_eval(plain)
    except (ValueError, SyntaxError):
        return text
