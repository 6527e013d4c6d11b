"""IR protobuf: ``ms_output_trace_code_graph_{id}.pb``, written and read. [spec mindspore 8.2, spec observed 1.9]"""

from typing import Any

import numpy as np

from dumpsim.codecs.irschema import messages
from dumpsim.codecs.irtext import parse_source, source_text
from dumpsim.codecs.irvalue import Text
from dumpsim.core.abstract import (
    Abstract,
    MonadType,
    NoneType,
    ScalarType,
    StringType,
    TensorType,
    TupleType,
    TypeType,
)
from dumpsim.core.dtype import DTYPES, DType, from_numpy
from dumpsim.core.errors import UnreadableError
from dumpsim.core.irdoc import (
    ConstRef,
    IrDoc,
    IrNode,
    IrParam,
    KernelIo,
    NameRef,
    NodeRef,
    Operand,
    ParamRef,
    SourceLine,
)

__all__ = ["constants", "decode", "encode"]

# numbers of debugger.DataType beside those of `DTYPES` [spec mindspore 8.2]
_STRING, _TENSOR, _TUPLE, _LIST, _NONE, _TYPE = 13, 14, 31, 32, 34, 39
_BASE = {"bool": 35, "int": 36, "uint": 37, "float": 38}
_MONAD = {"U": 43, "IO": 44}
_LONGEST_ID = 18  # digits of a graph id
_BY_NUMBER = {row.proto: row for row in DTYPES.values() if row.proto}

# attributes whose numbers are unsigned [spec observed 1.9: DT_UINT64]
_UNSIGNED = frozenset({"IsFeatureMapInputList"})


# -- writing


def encode(doc: IrDoc, *, first_constant: int = 0) -> bytes:
    """Encode a kernel graph.

    Parameters
    ----------
    doc : IrDoc
    first_constant : int
        Number of constants of the compilation before this graph: the N of ``Default_data-N`` continues from segment to
        segment.

    Notes
    -----
    Complex, eight-bit float and one-bit types have no number in the vendor's list and are written as undefined.
    For releases whose exporter fails on them, such a graph is refused before it is written. [spec mindspore 8.2,
    decisions]
    """
    model = messages()["ModelProto"](ir_version=1)
    graph = model.graph
    graph.name = doc.name
    graph.root_name = str(doc.graph_id)  # [spec observed 1.6]
    for param in doc.params:
        entry = graph.parameters.add(name=param.name)
        _set_type(entry.type, param.abstract)
    constants = _Constants(graph, first_constant)
    for node in doc.nodes:
        if node.index is not None:
            _add_node(graph, doc, node, constants)
    for node in doc.nodes:
        if node.index is None and node.operands:
            output = graph.outputs.add(name=_operand_name(doc, node.operands[0], constants))
            _set_type(output.type, node.operand_types[0])
    data: bytes = model.SerializeToString()
    return data


def constants(doc: IrDoc) -> tuple[ConstRef, ...]:
    """Return the constants of a graph in the order of their names ``cstN``."""
    found = _Constants(messages()["GraphProto"](), 0)
    refs: dict[str, ConstRef] = {}
    for node in doc.nodes:
        for operand in node.operands:
            if isinstance(operand, ConstRef):
                refs.setdefault(found.name(operand), operand)
    return tuple(refs.values())


class _Constants:
    """Names of constants by value, numbered in the order of their first use."""

    def __init__(self, graph: Any, first: int) -> None:
        self.graph = graph
        self.first = first
        self.names: dict[Any, str] = {}

    def name(self, constant: ConstRef) -> str:
        value = constant.value
        if isinstance(value, np.ndarray):
            key: Any = (value.dtype.str, value.shape, value.tobytes(), constant.identity)
        else:
            key = (repr(value), repr(constant.abstract), constant.identity)
        if key not in self.names:
            number = len(self.names) + 1
            self.names[key] = f"cst{number}"
            entry = self.graph.const_vals.add(key=f"cst{number}")
            if not isinstance(constant.abstract, TensorType):  # tensors have no value [spec observed 1.9]
                _set_constant(entry.value, value, constant.abstract)
            entry.full_name = f"Default_data-{self.first + number - 1}"
        return self.names[key]


def _operand_name(doc: IrDoc, operand: Operand, constants: _Constants) -> str:
    match operand:
        case NodeRef(index=index):
            return str(index + 1)
        case ParamRef(index=index):
            return doc.params[index].name
        case NameRef(name=name):
            return name
        case ConstRef():
            return constants.name(operand)


def _add_node(graph: Any, doc: IrDoc, node: IrNode, constants: _Constants) -> None:
    assert node.index is not None
    entry = graph.node.add()
    for operand in node.operands:
        entry.input.add(name=_operand_name(doc, operand, constants), type=0)
    entry.name = str(node.index + 1)
    entry.op_type = node.op_type
    entry.scope = node.full_name.rpartition("/")[0]
    for name, value in node.primitive_attrs:
        _set_value(entry.attribute.add(name=name).value, value, unsigned=name in _UNSIGNED)
    if node.output is not None:
        _set_type(entry.output_type, node.output)
    entry.full_name = node.full_name
    entry.source_address = "".join(f"      # In file {source_text(line)}\n" for line in reversed(node.sources))


def _set_type(entry: Any, abstract: Abstract, *, nested: bool = False) -> None:
    match abstract:
        case TensorType():
            entry.data_type = _TENSOR
            entry.tensor_type.elem_type = abstract.dtype.proto
            if not nested:  # members of tuples have no shape [spec observed 1.9]
                for dim in abstract.shape:
                    entry.tensor_type.shape.dim.add(size=dim)
        case TupleType(items=items):
            entry.data_type = _TUPLE
            entry.sequence_type.SetInParent()
            for item in items:
                _set_type(entry.sequence_type.elem_types.add(), item, nested=True)
        case ScalarType():
            entry.data_type = abstract.dtype.proto
        case MonadType(kind=kind):
            entry.data_type = _MONAD[kind]
        case StringType():
            entry.data_type = _STRING
        case NoneType():
            entry.data_type = _NONE
        case TypeType():
            entry.data_type = _TYPE


def _set_constant(entry: Any, value: Any, abstract: Abstract) -> None:
    """Set the value of a constant operand; a monad's is empty."""
    match abstract:
        case MonadType():
            entry.SetInParent()
        case ScalarType(dtype=kind):
            _set_number(entry, value, kind)
        case TupleType(items=items):
            entry.dtype = _TUPLE
            for member, item in zip(value, items, strict=True):
                _set_constant(entry.values.add(), member, item)
        case _:
            _set_value(entry, value)


def _set_number(entry: Any, value: Any, kind: DType) -> None:
    entry.dtype = kind.proto
    match kind.kind:
        case "bool":
            entry.bool_val = bool(value)
        case "int":
            entry.int_val = int(value)
        case "uint":
            entry.uint_val = int(value)
        case "float":
            if kind.name == "float64":
                entry.double_val = float(value)
            else:
                entry.float_val = float(value)


def _set_value(entry: Any, value: Any, *, unsigned: bool = False) -> None:
    """Set the value of an attribute."""
    match value:
        case None:
            entry.dtype = _NONE
        case np.generic():
            _set_number(entry, value.item(), from_numpy(value.dtype))
        case bool():
            _set_number(entry, value, DTYPES["bool"])
        case int():
            _set_number(entry, value, DTYPES["uint64" if unsigned else "int64"])
        case float():
            _set_number(entry, value, DTYPES["float32"])
        case str():
            entry.dtype = _STRING
            entry.str_val = value
        case DType():
            entry.dtype = _TYPE
            entry.type_val.data_type = _BASE.get(value.kind, value.proto)
        case tuple() | list():
            entry.dtype = _TUPLE if isinstance(value, tuple) else _LIST
            for member in value:
                _set_value(entry.values.add(), member, unsigned=unsigned)
        case _:
            entry.dtype = _TENSOR


# -- reading


def decode(data: bytes, where: str = "pb") -> IrDoc:
    """Decode a kernel graph; fields that the format does not have (kernel build info, instance names) stay empty.

    Raises
    ------
    UnreadableError
    """
    from google.protobuf.message import DecodeError

    model = messages()["ModelProto"]()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise UnreadableError(f"not a graph file: {error}", where=where, code="DS-IR-011") from None
    graph = model.graph
    if not graph.name:
        raise UnreadableError("contains no graph", where=where, code="DS-IR-011")
    params = tuple(_read_param(entry) for entry in graph.parameters)
    numbers = {entry.name: n for n, entry in enumerate(graph.parameters)}
    nodes = {entry.name: n for n, entry in enumerate(graph.node)}
    constants = {entry.key: _read_value(entry.value) for entry in graph.const_vals}
    root = _text(graph.root_name)

    def operand(name: str) -> Operand:
        if name in numbers:
            return ParamRef(index=numbers[name])
        if name in nodes:
            return NodeRef(index=nodes[name])
        return ConstRef(value=Text(constants.get(name, _text(name))), abstract=NoneType())

    return IrDoc(
        name=_text(graph.name),
        graph_id=int(root) if root.isdecimal() and len(root) < _LONGEST_ID else -1,
        params=params,
        nodes=tuple(
            IrNode(
                index=n,
                name="",
                op_type=_text(entry.op_type),
                prim_func=False,
                operands=tuple(operand(i.name) for i in entry.input),
                operand_types=(),
                output=_read_type(entry.output_type),
                full_name=_text(entry.full_name),
                primitive_attrs=tuple((_text(a.name), Text(_read_value(a.value))) for a in entry.attribute),
                sources=_read_sources(_text(entry.source_address), where),
            )
            for n, entry in enumerate(graph.node)
        ),
    )


def _text(value: str | bytes) -> str:
    """Return a string field; google.protobuf returns bytes for text that is not UTF-8, such as a source path in GBK."""
    return value if isinstance(value, str) else value.decode("utf-8", errors="backslashreplace")


def _read_sources(text: str, where: str) -> tuple[SourceLine, ...]:
    return tuple(parse_source(line.strip(), where) for line in reversed(text.splitlines()) if line.strip())


def _read_param(entry: Any) -> IrParam:
    abstract = _read_type(entry.type)
    if not isinstance(abstract, TensorType):
        abstract = TensorType(dtype=DTYPES["float32"], shape=())
    device = KernelIo(dtype=abstract.dtype.title, format="DefaultFormat", shape=abstract.shape)
    name = _text(entry.name)
    return IrParam(name=name, label=name, use_label=name, abstract=abstract, device=device, is_weight=False)


def _read_type(entry: Any) -> Abstract:
    if entry.data_type == _TENSOR:
        kind = _BY_NUMBER.get(entry.tensor_type.elem_type, DTYPES["float32"])
        return TensorType(dtype=kind, shape=tuple(dim.size for dim in entry.tensor_type.shape.dim))
    if entry.data_type in (_TUPLE, _LIST):
        return TupleType(items=tuple(_read_type(item) for item in entry.sequence_type.elem_types))
    if entry.data_type in _BY_NUMBER:
        return ScalarType(dtype=_BY_NUMBER[entry.data_type])
    if entry.data_type in _MONAD.values():
        return MonadType(kind="U" if entry.data_type == _MONAD["U"] else "IO")
    return StringType() if entry.data_type == _STRING else NoneType()


def _read_value(entry: Any) -> str:
    """Format a value for people."""
    for field in ("bool_val", "int_val", "uint_val", "float_val", "double_val", "str_val"):
        if entry.HasField(field):
            value = getattr(entry, field)
            return _text(value) if field == "str_val" else str(value)
    if entry.dtype in (_TUPLE, _LIST):
        return f"({', '.join(_read_value(v) for v in entry.values)})"
    return ""
