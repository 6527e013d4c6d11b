"""The call of one dumped operator: its files, constants of the graph and attributes; small enough to be pickled."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from dumpsim.analysis.entry import Entry
from dumpsim.analysis.operator import Operator
from dumpsim.analysis.verdict import Side, side_of
from dumpsim.core.abstract import MonadType, TensorType, tensors_of
from dumpsim.core.dtype import DType
from dumpsim.core.errors import DumpsimError, UnsupportedError
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, NodeRef, Operand, ParamRef
from dumpsim.graph.ge.machine import BN_REDUCE, BN_REDUCE_GRAD, BN_UPDATE, BN_UPDATE_GRAD, DROP_DO_MASK, GE_TYPES
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find
from dumpsim.replay.gegraph import GeOp
from dumpsim.replay.irconstant import Unparsable, parse

__all__ = [
    "Absent",
    "Call",
    "Constant",
    "Member",
    "arrange",
    "attrs_of",
    "bound_by_name",
    "call_of",
    "definition_of",
    "operands_of",
    "refusal",
]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant in the graph."""

    value: Any


@dataclass(frozen=True, slots=True)
class Absent:
    """An operand that was not dumped, and the reason why its value is unknown."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One of the operators that were fused into a kernel of a whole graph.

    Attributes
    ----------
    op_type : str
        Type in the operator table.
    settings : mapping or None
        Attributes and host operands by name; None if no graph shows them.
    """

    op_type: str
    settings: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One run of an operator.

    Attributes
    ----------
    op_type : str
        Type in the operator table.
    operands : tuple
        A file (`Side`), a `Constant` or an `Absent` for each input; tuples of tensors are flattened.
    host : tuple of bool
        Which operands are host settings, not tensors; empty if unknown.
    shapes : tuple
        Shapes of the operands in the graph. They differ from those in the files if the preceding operator is a view.
    attrs : mapping
    outputs : tuple of (int, Side)
    before : mapping of int to Side
        Values of operands before the operator overwrote them.
    machine : str
        ``cpu`` or ``device``.
    compute : str
        Number type of the computation; if empty, that of the operands, float32 for narrower ones.
    members : tuple of Member
        For an operator that no IR shows, the fused operators in order; the first operand of each is the result of the
        one before it.
    doubt : str
        Why the file of the output may differ from the kernel's result.
    reason : str
        Why it cannot be recomputed.
    """

    op_type: str
    operands: tuple[Any, ...] = ()
    host: tuple[bool, ...] = ()
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[tuple[int, Side], ...] = ()
    before: Mapping[int, Side] = field(default_factory=dict)
    machine: str = "device"
    compute: str = ""
    members: tuple[Member, ...] = ()
    doubt: str = ""
    reason: str = ""


# operators whose first operand is a tuple of tensors
_TUPLES = frozenset(
    {"AddN", "AccumulateNV2", "Concat", "Stack", "Meshgrid", "Einsum", "AllFinite", "NPUGetFloatStatusV2"}
)
# operands that the compiler knows, by name; in a dump without a graph they are arrays
_HOST = frozenset(
    {
        "axis", "transpose_a", "transpose_b", "keep_dims", "keepdim", "skip_mode", "data_format", "kernel_size",
        "strides", "pad_mode", "shape", "dim", "dims", "begin", "end", "begin_mask", "end_mask", "ellipsis_mask",
        "new_axis_mask", "shrink_axis_mask", "size", "output_num", "reduction", "ignore_index", "exclusive",
        "reverse", "batch_dims", "input_perm", "is_training", "begin_norm_axis", "begin_params_axis", "num_groups",
        "dx_is_require", "dgamma_is_require", "dbeta_is_require", "diagonal", "paddings", "shapex",
        "orig_input_shape", "input_sizes", "filter_sizes", "input_size", "filter_size", "split_size_or_sections",
        "indexing", "n", "shifts", "decimals", "reduce", "repeats", "output_size", "num_segments", "align_corners",
        "half_pixel_centers", "head_num", "input_layout", "inner_precise", "sparse_mode", "mode", "depth",
    }
)  # fmt: skip
# operands that are the shape of the output: operator -> index of the operand
_SHAPES = {"Conv2DBackpropInput": 2, "Conv2DBackpropFilter": 2, "Conv3DBackpropInput": 2, "Conv3DBackpropFilter": 2,
           "Reshape": 1, "BroadcastTo": 1}  # fmt: skip
# attributes that MindSpore's CPU kernels ignore [2.10 observed]
_IGNORED: Mapping[str, Mapping[str, Any]] = {"ApplyMomentum": {"use_nesterov": False}}
_BY_OUTPUT = frozenset({"dtype", "output_type"})


_FROM_GE = {ge: own for own, ge in GE_TYPES.items() if own != "Dense"}
_OF_GE = {one.name: one for one in (BN_REDUCE, BN_UPDATE, BN_UPDATE_GRAD, BN_REDUCE_GRAD, DROP_DO_MASK)}
_LAYOUT = OpDef(
    name="TransData", operands=("src",), infer=lambda abstracts, attrs: abstracts[0], kernel=lambda src, **attrs: src
)
_PART = re.compile(r"([A-Za-z]\w*?)-op\d+", re.ASCII)


def definition_of(op_type: str) -> OpDef | None:
    """Return the definition of an operator type of MindSpore or GE, None for an unknown one.

    Examples
    --------
    >>> definition_of("MatMulV2").name, definition_of("TransData").operands, definition_of("Unheard")
    ('MatMul', ('src',), None)
    """
    if op_type == "TransData":  # files are read in the host's layout, in which it does nothing
        return _LAYOUT
    if op_type in _OF_GE:
        return _OF_GE[op_type]
    try:
        return find(_FROM_GE.get(op_type, op_type))
    except UnsupportedError:
        return None


def refusal(op_type: str) -> str:
    """Return why operators of a type cannot be recomputed, an empty text if they can.

    Examples
    --------
    >>> refusal("Dropout"), refusal("MatMul")
    ('draws random numbers', '')
    """
    definition = definition_of(op_type)
    if definition is None:
        return "unknown operator type"
    if definition.engine == "hccl":
        return "needs the tensors of other ranks"
    if definition.random:
        return "draws random numbers"
    if definition.device or definition.side_effect == "io" or definition.engine == "host":
        return "reads or writes state that is not in the dump"
    return ""


Source = Callable[[Operand, IrDoc | None], Side | None]


def call_of(
    operator: Operator,
    *,
    machine: str = "device",
    compute: str = "",
    find_source: Source | None = None,
    ge: Mapping[str, GeOp] | None = None,
) -> Call:
    """Return the call of a dumped operator, from its files and its node in the graph of the dump.

    Parameters
    ----------
    operator : Operator
    machine, compute : str
        See `Call`.
    find_source : callable
        ``find_source(operand, document)`` returns a file with the value of an operand that was not dumped as an input.
    ge : mapping of str to GeOp
        Operators of GE's text graphs by their name in files.
    """
    op_type = operator.op_type
    outputs = tuple((entry.slot, side_of(entry)) for entry in operator.outputs)
    if reason := refusal(op_type):
        return Call(op_type=op_type, reason=reason)
    if not any(side.path for _, side in outputs):
        reason = "only statistics were dumped" if outputs else "no output was dumped"
        return Call(op_type=op_type, reason=reason)
    definition = definition_of(op_type)
    assert definition is not None
    first = operator.entries[0]
    node = first.graphs.node(first.name.op_name, first.graph_id)
    if node is not None and node.op_type != op_type:
        node = None
    found, exact = _fitting(operator, node)
    if not exact:
        find_source = None  # the attributes are common to all such nodes, the operands are not
    node = found
    files = {entry.slot: side_of(entry) for entry in operator.inputs if entry.path is not None}
    operands: list[Any] = []
    host: list[bool] = []
    shapes: list[tuple[int, ...] | None] = []
    if node is not None:
        doc = _document(operator, node)
        for at, (operand, kind) in enumerate(operands_of(node, doc)):
            file = files.get(at) or (find_source(operand, doc) if find_source is not None else None)
            value = _operand(operand, file, at)
            if isinstance(value, Absent) and _SHAPES.get(definition.name) == at:
                value = Constant(tuple(operator.outputs[0].shape))
            operands.append(value)
            kind = kind if kind is not None else _type(operand, doc)
            shapes.append(kind.shape if isinstance(kind, TensorType) and -1 not in kind.shape else None)
            hidden = isinstance(operand, ConstRef) and not str(operand.value)  # a tensor, in protobuf
            host.append(isinstance(operand, ConstRef) and not hidden and not isinstance(kind, TensorType))
    else:
        count = max(files, default=-1) + 1
        operands = [files.get(at, Absent(f"input.{at} was not dumped")) for at in range(count)]
        members = _members(operator, ge or {})
        reason = next((why for one in members if (why := refusal(one.op_type))), "")
        return Call(
            op_type=op_type,
            operands=tuple(operands),
            outputs=outputs,
            machine=machine,
            compute=compute,
            members=members,
            reason=reason,
        )
    attrs, missing = _attrs(definition, node)
    if machine == "cpu":
        attrs |= _IGNORED.get(op_type, {})
    if missing:
        return Call(op_type=op_type, reason=missing)
    return Call(
        op_type=op_type,
        operands=tuple(operands),
        host=tuple(host),
        shapes=tuple(shapes),
        attrs=attrs,
        outputs=outputs,
        machine=machine,
        compute=compute,
        doubt=_type_differs(node, outputs),
    )


def _fitting(operator: Operator, node: IrNode | None) -> tuple[IrNode | None, bool]:
    """Return the node of a run, and whether it is certain.

    A node that a backend pass recreated has different numbers in the IR and in files, where it may be that of another
    node of its type. [spec observed 0.17] Shapes distinguish them well enough to choose the attributes.
    """
    if operator.entries[0].part is not None:
        return node, True
    stem = operator.name.rpartition("-op")[0]
    nodes = operator.entries[0].graphs.alike(operator.op_type, stem)
    if not nodes or (len(nodes) == 1 and node is not None):
        return node, True
    if node is not None and any(one is node for one in nodes) and _fits(node, operator):
        return node, not stem.startswith("Expand")
    return next((one for one in nodes if _fits(one, operator)), None), False


def _fits(node: IrNode, operator: Operator) -> bool:
    """Whether the tensors of a run have the sizes stated by a node."""
    made = tensors_of(node.output) if node.output is not None else ()
    for entry in operator.outputs:
        if entry.slot < len(made) and -1 not in made[entry.slot].shape and made[entry.slot].size != _size(entry):
            return False
    types = [one for one in node.operand_types if not isinstance(one, MonadType)]
    for entry in operator.inputs:
        kind = types[entry.slot] if entry.slot < len(types) else None
        if isinstance(kind, TensorType) and -1 not in kind.shape and kind.size != _size(entry):
            return False
    return True


def _size(entry: Entry) -> int | None:
    try:
        return prod(entry.shape)
    except (DumpsimError, OSError):
        return None


def _type_differs(node: IrNode, outputs: Sequence[tuple[int, Side]]) -> str:
    """Return a text if the type of the first output's file differs from the one that the kernel wrote."""
    made = node.kernel_out or ()
    for slot, side in outputs[:1]:
        if slot < len(made) and side.dtype and made[slot].dtype.lower() != side.dtype.lower():
            return f"output.{slot} is {made[slot].dtype.lower()} on the device, but {side.dtype.lower()} in its file"
    return ""


def _members(operator: Operator, ge: Mapping[str, GeOp]) -> tuple[Member, ...]:
    """Return the operators that were fused into one, by their names; the operator itself if it is not fused."""
    found = []
    for name in operator.parts:
        known = ge.get(name)
        kind = known.type if known is not None else operator.op_type
        if known is None and len(operator.parts) > 1:
            matched = _PART.fullmatch(name.rpartition("_")[2])
            kind = matched[1] if matched is not None else name
        definition = definition_of(kind)
        own = definition.name if definition is not None and kind not in _OF_GE else kind
        found.append(Member(op_type=own, settings=dict(known.attrs) if known is not None else None))
    return tuple(found)


def bound_by_name(
    definition: OpDef, values: list[Any], settings: Mapping[str, Any], kind: DType | None
) -> tuple[Any, ...]:
    """Return the arguments of a kernel: settings by name, tensors in order, which are removed from `values`."""
    if definition.name in _TUPLES:
        values[:] = [tuple(values)]
    found: list[Any] = []
    for at, name in enumerate(definition.operands):
        place = at - (len(definition.operands) - len(definition.defaults))
        if name in _HOST and values and _listed(values[0]):
            found.append(_plain(values.pop(0)))  # a constant of the graph that is a tensor on the device
        elif name in settings:
            found.append(settings[name])
        elif name in _BY_OUTPUT:
            found.append(kind)
        elif values and (name not in _HOST or place < 0):
            found.append(values.pop(0))
        elif place >= 0:
            found.append(definition.defaults[place])
        else:
            raise Unparsable(f"has no operand {name}")
    return tuple(found)


def _listed(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim <= 1 and value.dtype.kind in "ib"


def _plain(value: "np.ndarray[Any, Any]") -> Any:
    return value.tolist() if value.ndim == 0 else tuple(value.tolist())


def attrs_of(definition: OpDef, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a kernel, also those with GE's names."""
    found = {name: settings.get(name, default) for name, default in definition.attrs.items()}
    return {name: _like(value, definition.attrs[name]) for name, value in found.items()}


def _document(operator: Operator, node: IrNode) -> IrDoc | None:
    return operator.entries[0].graphs.document(node)


def operands_of(node: IrNode, doc: IrDoc | None) -> list[tuple[Any, Any]]:
    """Return the operands of a kernel, each with its type if the graph has it; tuples are flattened."""
    found: list[tuple[Any, Any]] = []
    for at, operand in enumerate(node.operands):
        kind = node.operand_types[at] if at < len(node.operand_types) else None
        if isinstance(kind, MonadType):
            continue
        if isinstance(operand, ConstRef) and str(operand.value) in ("UMonad[U]", "IOMonad[IO]"):
            continue
        source = _node(doc, operand)
        if source is not None and isinstance(source.output, MonadType):
            continue
        if source is not None and source.op_type == "MakeTuple":
            found += operands_of(source, doc)
        else:
            found.append((operand, kind))
    return found


def _type(operand: Any, doc: IrDoc | None) -> Any:
    """Return the type of an operand that has none in the node's own list of types."""
    if doc is not None and isinstance(operand, ParamRef) and 0 <= operand.index < len(doc.params):
        return doc.params[operand.index].abstract
    source = _node(doc, operand)
    return source.output if source is not None else None


def _node(doc: IrDoc | None, operand: Any) -> IrNode | None:
    if doc is None or not isinstance(operand, NodeRef) or not 0 <= operand.index < len(doc.nodes):
        return None
    node = doc.nodes[operand.index]
    return node if node.index == operand.index else None


def _operand(operand: Any, file: Side | None, at: int) -> Any:
    """Return the file of an operand, or the constant in the graph."""
    if isinstance(operand, ConstRef):
        if not str(operand.value):
            return file if file is not None else Absent(f"input.{at} is a constant that the graph does not show")
        try:
            value = parse(str(operand.value))
        except Unparsable as error:
            return file if file is not None else Absent(f"input.{at} is {error}")
        # a file has all digits of a float, the text only six
        exact = not isinstance(value, float | np.ndarray)
        return Constant(value) if file is None or exact else file
    return file if file is not None else Absent(f"input.{at} was not dumped")


def _attrs(definition: OpDef, node: IrNode) -> tuple[dict[str, Any], str]:
    """Return the attributes by name, and a text if one is missing."""
    attrs = dict(definition.attrs)
    shown = dict(node.primitive_attrs)
    for name, default in definition.attrs.items():
        if name not in shown:
            continue
        try:
            value = parse(str(shown[name]))
        except Unparsable as error:
            return {}, f"its attribute {name} is {error}"
        attrs[name] = _like(value, default)
    return attrs, ""


def _like(value: Any, default: Any) -> Any:
    """Convert a value to the type of the default, since protobuf text does not contain the type."""
    if isinstance(default, bool) and isinstance(value, int):
        return bool(value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, str) and not isinstance(value, str):
        return str(value)
    return value


def arrange(definition: OpDef, values: Sequence[Any], host: Sequence[bool], kind: DType | None) -> tuple[Any, ...]:
    """Return the arguments of a kernel from loaded operands.

    Parameters
    ----------
    definition : OpDef
    values : sequence
        Arrays and constants in the order of the files.
    host : sequence of bool
        See `Call.host`.
    kind : DType or None
        Number type of the first output, for operands that are a type.
    """
    values = list(values)
    names = definition.operands
    if definition.name in _TUPLES:
        rest = len(names) - 1
        tail = 0
        while tail < min(rest, len(values)):
            at = len(values) - 1 - tail
            if not _setting(values[at], host, at):
                break
            tail += 1
        cut = len(values) - tail
        values = [tuple(values[:cut]), *values[cut:]]
        host = ()  # the names of what follows tell
    found: list[Any] = []
    for at, name in enumerate(names):
        if name in _BY_OUTPUT:
            found.append(kind)
            continue
        if at >= len(values):
            place = at - (len(names) - len(definition.defaults))
            if place < 0:
                raise Unparsable(f"has no operand {name}")
            found.append(definition.defaults[place])
            continue
        value = values[at]
        if isinstance(value, np.ndarray) and (name in _HOST or (at < len(host) and host[at])):
            value = _plain(value)
        found.append(value)
    return tuple(found)


def _setting(value: Any, host: Sequence[bool], at: int) -> bool:
    if host:
        return host[at]
    return not isinstance(value, np.ndarray) or (value.dtype.kind in "ib" and value.size == 1)
