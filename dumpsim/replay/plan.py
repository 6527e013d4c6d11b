"""The runs of operators in a dump, each with its call."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.operator import Operator, Series, numbering, series
from dumpsim.analysis.place import places
from dumpsim.analysis.verdict import Side, side_of
from dumpsim.core.abstract import TensorType
from dumpsim.core.errors import BadInputError, UnreadableError, nearest
from dumpsim.core.irdoc import IrDoc, NodeRef, Operand, ParamRef
from dumpsim.replay.call import Call, call_of, definition_of, operands_of
from dumpsim.replay.gegraph import GeOp, ge_graphs, index
from dumpsim.replay.irconstant import Unparsable, parse
from dumpsim.replay.unit import COMPUTE

__all__ = ["API", "Compute", "Planned", "machine_of", "near", "plan", "rule", "whole_graphs"]

_NOT_RUN = frozenset(
    {"Parameter", "Data", "Const", "Constant", "NetOutput", "Opdebug", "RealMakeTuple", "RealTupleGetItem"}
)
# MindSpore's CPU back end writes number types with a capital letter [spec observed 0.1]
_CPU = re.compile(r"\.(Bool|U?Int\d+|B?Float\d+|Complex\d+)\.npy$")
API = "a call of an API dump, which does not contain its weights and settings"
_THROUGH = frozenset({"Load", "Depend"})


@dataclass(frozen=True, slots=True)
class Compute:
    """Operators that compute in an unusual type: ``Conv2D:tf32``."""

    pattern: str
    kind: str


def rule(text: str) -> Compute:
    """Return the rule of ``PATTERN:TYPE``.

    Raises
    ------
    BadInputError

    Examples
    --------
    >>> rule("Conv2D*:tf32")
    Compute(pattern='Conv2D*', kind='tf32')
    """
    pattern, colon, kind = text.rpartition(":")
    if not colon or not pattern or kind not in COMPUTE:
        raise BadInputError(
            f"{text!r} is not PATTERN:TYPE",
            where="compute",
            allowed=COMPUTE,
            nearest=nearest(kind, COMPUTE),
        )
    return Compute(pattern, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One run: the operator and its call."""

    operator: Operator
    call: Call


def machine_of(entries: Iterable[Entry]) -> str:
    """Return the machine of a dump: ``cpu`` for MindSpore's CPU back end, else ``device``."""
    paths = (entry.path for entry in entries if entry.path is not None)
    return "cpu" if any(_CPU.search(path.name) for path in paths) else "device"


def plan(
    dump: DumpSet,
    *,
    machine: str | None = None,
    compute: Iterable[Compute] = (),
    ge: Mapping[str, GeOp] | None = None,
) -> Iterator[Planned]:
    """Yield the runs of a dump in the order of execution.

    Parameters
    ----------
    dump : DumpSet
    machine : str
        See `Call`; by default it is derived from the names of the files.
    compute : iterable of Compute
    ge : mapping of str to GeOp
        Operators of GE's text graphs, as `whole_graphs` returns them, which is called by default.
    """
    rules = tuple(compute)
    known: dict[tuple[int, str], tuple[int | None, Side]] = {}
    ge = whole_graphs(dump) if ge is None else ge
    for group in series(dump):
        sources = _Sources(group)
        own = machine or machine_of(entry for one in group.operators for entry in one.entries)
        for operator in group.operators:
            if operator.op_type in _NOT_RUN:
                continue
            if operator.api:
                yield Planned(operator=operator, call=Call(op_type=operator.op_type, reason=API))
                continue
            kind = next((r.kind for r in reversed(rules) if operator.entries[0].answers(r.pattern)), "")
            call = call_of(operator, machine=own, compute=kind, find_source=sources.of, ge=ge)
            sources.ran(operator)
            yield Planned(operator=operator, call=_with_earlier_values(operator, call, known))
        _end(group, known)


def near(dump: DumpSet, operator: Operator) -> DumpSet:
    """Return the part of a dump that may contain an operator's inputs: its iteration and the one before."""
    if dump.root.is_file():
        return dump
    own = operator.entries[0].place
    numbers = numbering((place.step, place.iteration) for place in places(dump.root) if place.rank == own.rank)
    if (own.step, own.iteration) not in numbers:
        return dump  # the operator belongs to another tree
    order = list(dict.fromkeys(numbers.values()))
    mine = order.index(numbers[own.step, own.iteration])
    wanted = order[max(mine - 1, 0) : mine + 1]
    test = (lambda place: place.rank == own.rank and numbers[place.step, place.iteration] in wanted,)
    return replace(dump, near=(*dump.near, *test))


def whole_graphs(dump: DumpSet) -> dict[str, GeOp]:
    """Return the operators of GE's text graphs next to a dump or above it, by their name in files."""
    try:
        return index(ge_graphs(dump.root))
    except UnreadableError as error:
        if dump.broken is None:
            raise
        dump.broken(error)
        return {}


class _Sources:
    """Finds operands that were not dumped as inputs: outputs of earlier operators, and Parameter files."""

    def __init__(self, group: Series) -> None:
        self.outputs: dict[str, dict[int, Side]] = {}
        self.parameters = {
            operator.op_name: side_of(operator.outputs[0])
            for operator in group.operators
            if operator.op_type in ("Parameter", "Data") and operator.outputs and operator.outputs[0].path is not None
        }

    def ran(self, operator: Operator) -> None:
        """Record the outputs of a run."""
        files = {entry.slot: side_of(entry) for entry in operator.outputs if entry.path is not None}
        self.outputs[operator.op_name] = files

    def of(self, operand: Operand, doc: IrDoc | None) -> Side | None:
        """Return the file with the value of an operand."""
        slot = 0
        while doc is not None and isinstance(operand, NodeRef) and 0 <= operand.index < len(doc.nodes):
            node = doc.nodes[operand.index]
            if node.op_type == "TupleGetItem" and len(node.operands) > 1:
                try:
                    slot = int(parse(str(getattr(node.operands[1], "value", ""))))
                except (Unparsable, TypeError, ValueError):
                    return None
            elif node.op_type not in _THROUGH or not node.operands:
                return self.outputs.get(node.full_name, {}).get(slot)
            operand = node.operands[0]
        if doc is not None and isinstance(operand, ParamRef) and 0 <= operand.index < len(doc.params):
            param = doc.params[operand.index]
            # Parameter files are written at the end of the step [spec observed 0.11]
            written = isinstance(param.abstract, TensorType) and param.abstract.inplace
            return None if written else self.parameters.get(param.name)
        return None


def _with_earlier_values(operator: Operator, call: Call, known: dict[tuple[int, str], tuple[int | None, Side]]) -> Call:
    """Return the call with its Parameters' values before it overwrote them, and record the new ones in `known`."""
    names = dict(_parameters(operator))
    definition = definition_of(operator.op_type)
    updates = definition.updates if definition is not None else ()
    before = {
        at: known[operator.rank, name][1]
        for at, name in names.items()
        if at in updates and (operator.rank, name) in known
    }
    files = {entry.slot: side_of(entry) for entry in operator.inputs if entry.path is not None}
    for at, name in names.items():
        if at in files:
            known[operator.rank, name] = operator.iteration, files[at]
    return replace(call, before=before) if before else call


def _end(group: Series, known: dict[tuple[int, str], tuple[int | None, Side]]) -> None:
    """Drop the values of earlier iterations, since undumped operators may have changed them."""
    for key, (iteration, _) in list(known.items()):
        if iteration != group.iteration:
            del known[key]


def _parameters(operator: Operator) -> Iterator[tuple[int, str]]:
    """Yield the inputs that are Parameters, directly or through a node that loads them."""
    first = operator.entries[0]
    node = first.graphs.node(first.name.op_name, first.graph_id)
    if node is None:
        return
    doc = first.graphs.document(node)
    if doc is None:
        return
    for at, (operand, _) in enumerate(operands_of(node, doc)):
        while isinstance(operand, NodeRef) and 0 <= operand.index < len(doc.nodes):
            source = doc.nodes[operand.index]
            if source.op_type not in _THROUGH or not source.operands:
                break
            operand = source.operands[0]
        if isinstance(operand, ParamRef) and 0 <= operand.index < len(doc.params):
            yield at, doc.params[operand.index].name
