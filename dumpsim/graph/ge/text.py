"""Text graphs of models for ``DUMP_GE_GRAPH``: protobuf text of GE's graph definition, and its ONNX form.

The names of operators here are those of the dump. [seed 001: operator names come from DUMP_GE_GRAPH; spec ge 1.5]
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.abstract import ScalarType, TensorType, TupleType, tensors_of
from dumpsim.core.dtype import DType
from dumpsim.graph.engine import engine_of
from dumpsim.graph.graph import (
    PLAIN,
    Constant,
    Graph,
    Layout,
    Node,
    Parameter,
    Value,
    definition_of,
    leaves_of,
)
from dumpsim.graph.program import Launch
from dumpsim.ops.opdef import OpDef

__all__ = ["LEVELS", "MODES", "STAGES", "Stage", "onnx", "quoted", "render", "value_lines", "wanted_stages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of compilation: its name in file names, and whether it is written with ``DUMP_GRAPH_LEVEL=2``."""

    name: str
    key: bool = True


STAGES = (
    Stage(name="PreRunBegin"),
    Stage(name="PreRunAfterOptimizeOriginalGraph", key=False),
    Stage(name="PreRunAfterOptimizeGraphBeforeBuild", key=False),
    Stage(name="AfterAssignStream", key=False),
    Stage(name="Build"),
)
# values of DUMP_GE_GRAPH: the whole graph; without the data of constants; operators and their links only
MODES = ("1", "2", "3")
# values of DUMP_GRAPH_LEVEL: every stage, the key stages, the last one, the first one
LEVELS = ("1", "2", "3", "4")
_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "bool": "DT_BOOL", "int8": "DT_INT8", "uint8": "DT_UINT8", "int16": "DT_INT16", "uint16": "DT_UINT16",
        "int32": "DT_INT32", "uint32": "DT_UINT32", "int64": "DT_INT64", "uint64": "DT_UINT64",
        "float16": "DT_FLOAT16", "bfloat16": "DT_BF16", "float32": "DT_FLOAT", "float64": "DT_DOUBLE",
        "complex64": "DT_COMPLEX64", "complex128": "DT_COMPLEX128", "int4": "DT_INT4", "uint1": "DT_UINT1",
        "hifloat8": "DT_HIFLOAT8", "float8_e4m3fn": "DT_FLOAT8_E4M3FN", "float8_e5m2": "DT_FLOAT8_E5M2",
        "string": "DT_STRING",
    }
)  # fmt: skip
_HOST = {4: "NCHW", 5: "NCDHW"}
_OUTPUT = "Node_Output"  # GE's name of the operator that takes the results
_MOST_DATA = 1 << 20  # limit for the bytes of one constant in text
_INDENT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    """The description of an operand or a result."""

    dtype: str
    shape: tuple[int, ...]
    layout: str
    origin: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Op:
    name: str
    type: str
    inputs: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    input_desc: tuple[_Tensor, ...] = ()
    output_desc: tuple[_Tensor, ...] = ()
    stream: int = 0
    data: bytes | None = None


def wanted_stages(mode: str, level: str) -> tuple[Stage, ...]:
    """Return the stages whose graphs are written.

    Examples
    --------
    >>> [stage.name for stage in wanted_stages("2", "2")], [stage.name for stage in wanted_stages("2", "3")]
    (['PreRunBegin', 'Build'], ['Build'])
    >>> wanted_stages("", "1")
    ()
    """
    if mode not in MODES:
        return ()
    key = tuple(stage for stage in STAGES if stage.key)
    return {"1": STAGES, "2": key, "3": STAGES[-1:], "4": STAGES[:1]}[level]


def render(
    graph: Graph,
    order: Sequence[Node],
    launches: Sequence[Launch],
    find: Callable[[str], OpDef],
    *,
    detail: str,
) -> str:
    """Return a graph as protobuf text of GE's graph definition.

    Parameters
    ----------
    graph : Graph
    order : sequence of Node
        Its kernels in execution order.
    launches : sequence of Launch
        The tasks, if there is more than one stream.
    find : callable
        The definition of an operator type.
    detail : str
        The value of ``DUMP_GE_GRAPH``: one of `MODES`.
    """
    lines = [f"name: {quoted(graph.name)}", "graph {", f"{_INDENT}name: {quoted(graph.name)}"]
    ops = list(_Writer(graph, order, launches, find).ops())
    lines += [f"{_INDENT}input: {quoted(op.name + ':0')}" for op in ops if op.type == "Data"]
    lines += [f"{_INDENT}output: {quoted(name)}" for op in ops if op.type == "NetOutput" for name in op.inputs]
    for number, op in enumerate(ops):
        lines += [_INDENT + line for line in _op_lines(op, number, detail)]
    lines.append("}")
    return "\n".join(lines) + "\n"


def onnx(text: str) -> str:
    """Return the ONNX form of a rendered graph: nodes with names, types and links.

    Examples
    --------
    >>> print(onnx('graph {\\n  name: "g"\\n  op {\\n    name: "a"\\n    type: "Relu"\\n    input: "x:0"\\n  }\\n}\\n'))
    producer_name: "dumpsim"
    graph {
      name: "g"
      node {
        name: "a"
        op_type: "ge:Relu"
        input: "x:0"
      }
    }
    <BLANKLINE>
    """
    lines = ['producer_name: "dumpsim"', "graph {"]
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip())) // len(_INDENT)
        key, _, value = line.strip().partition(": ")
        if depth == 1 and key == "name":
            lines.append(line)
        elif line == f"{_INDENT}op {{":
            lines.append(f"{_INDENT}node {{")
        elif line == f"{_INDENT}}}" or (depth == 2 and key in ("name", "input")):
            lines.append(line)
        elif depth == 2 and key == "type":
            lines.append(f'{_INDENT * 2}op_type: "ge:{value[1:]}')
    return "\n".join([*lines, "}"]) + "\n"


class _Writer:
    def __init__(
        self, graph: Graph, order: Sequence[Node], launches: Sequence[Launch], find: Callable[[str], OpDef]
    ) -> None:
        self.graph = graph
        self.order = order
        self.launches = launches or [Launch(stream=0, node=node) for node in order]
        self.find = find
        self.kernels = {id(node) for node in order}
        self.constants: dict[int, str] = {}

    def ops(self) -> Iterator[_Op]:
        for parameter in self.graph.parameters:
            desc = (_plain(parameter.abstract.dtype, parameter.abstract.shape),)
            yield _Op(name=parameter.name, type="Data", attrs={"index": self.graph.parameters.index(parameter)},
                      input_desc=desc, output_desc=desc)  # fmt: skip
        for node in self.order:
            for operand in node.operands:
                yield from self._constant(operand)
        if self.graph.output is not None:
            yield from self._constant(self.graph.output)
        for launch in self.launches:
            yield self._launch(launch)
        if self.graph.output is not None:
            links = tuple(self._links(self.graph.output))
            descs = tuple(_descs(self.graph.output, self))
            yield _Op(name=_OUTPUT, type="NetOutput", inputs=links, input_desc=descs)

    def _constant(self, value: Value) -> Iterator[_Op]:
        if isinstance(value, Node) and value.op_type in ("MakeTuple", "Depend"):
            for operand in value.operands:
                yield from self._constant(operand)
        if not isinstance(value, Constant) or not isinstance(value.abstract, TensorType) or id(value) in self.constants:
            return
        name = self.constants[id(value)] = f"Const_{len(self.constants)}"
        kind = value.abstract.dtype
        desc = (_plain(kind, value.abstract.shape),)
        yield _Op(name=name, type="Const", output_desc=desc, data=np.asarray(value.value, kind.numpy).tobytes())

    def _launch(self, launch: Launch) -> _Op:
        node = launch.node
        if launch.record is not None:
            name = f"{node.full_name}_Send_{launch.record}"
            return _Op(name=name, type="Send", inputs=(f"{node.full_name}:-1",), attrs={"event_id": launch.record},
                       stream=launch.stream)  # fmt: skip
        if launch.wait is not None:
            name = f"{node.full_name}_Recv_{launch.wait}"
            return _Op(name=name, type="Recv", attrs={"event_id": launch.wait}, stream=launch.stream)
        definition = definition_of(node, self.find)
        links: list[str] = []
        descs: list[_Tensor] = []
        settings: dict[str, Any] = {**definition.attrs, **node.attrs}
        names = [*definition.operands, *(f"x{at}" for at in range(len(definition.operands), len(node.operands)))]
        for name, operand in zip(names, node.operands, strict=False):
            if isinstance(operand, Constant) and not isinstance(operand.abstract, TensorType):
                settings.setdefault(name, operand.value)
                continue
            links += self._links(operand)
            descs += _descs(operand, self)
        waits = [f"{l.node.full_name}_Recv_{l.wait}:-1" for l in self.launches if l.node is node and l.wait is not None]
        originals = [member.full_name for member in node.members]
        if originals:
            settings["_datadump_original_op_names"] = tuple(originals)
        settings["_engine"] = engine_of(node, self.find)
        outputs = tuple(
            _laid_out(layout, leaf) for layout, leaf in zip(_layouts_of(node), leaves_of(node.abstract), strict=True)
        )
        return _Op(name=node.full_name, type=node.op_type, inputs=(*links, *waits), attrs=settings,
                   input_desc=tuple(descs), output_desc=outputs, stream=launch.stream)  # fmt: skip

    def source(self, value: Value, slot: int = 0) -> tuple[Value, int]:
        """Return the parameter, constant or kernel that a tensor comes from, and the index of its output."""
        while isinstance(value, Node) and id(value) not in self.kernels:
            if value.op_type in ("TupleGetItem", "ListGetItem"):
                of, index = value.operands
                assert isinstance(index, Constant)
                if isinstance(of, Node) and of.op_type in ("MakeTuple", "MakeList"):
                    value = of.operands[index.value]
                    continue
                assert isinstance(of.abstract, TupleType)
                slot += sum(len(list(leaves_of(item))) for item in of.abstract.items[: index.value])
                value = of
            elif not value.operands:
                break
            else:
                value = value.operands[0]
        return value, slot

    def tensors(self, value: Value) -> Iterator[tuple[Value, int]]:
        """Yield the source of each tensor of a value, see `source`."""
        if isinstance(value, Node) and value.op_type in ("MakeTuple", "MakeList"):
            for operand in value.operands:
                yield from self.tensors(operand)
        elif isinstance(value, Node) and value.op_type == "Depend":
            yield from self.tensors(value.operands[0])
        else:
            for slot, _ in enumerate(tensors_of(value.abstract)):
                yield self.source(value, slot)

    def _links(self, value: Value) -> Iterator[str]:
        for source, slot in self.tensors(value):
            if isinstance(source, Node):
                yield f"{source.full_name}:{slot}"
            elif isinstance(source, Parameter):
                yield f"{source.name}:{slot}"
            else:
                yield f"{self.constants.get(id(source), 'Const')}:{slot}"


def _layouts_of(node: Node) -> tuple[Layout, ...]:
    """Return the layouts of a kernel's outputs."""
    return node.layouts or tuple(Layout(dtype=leaf.dtype) for leaf in leaves_of(node.abstract))


def _descs(value: Value, writer: _Writer) -> Iterator[_Tensor]:
    for source, slot in writer.tensors(value):
        leaves = list(leaves_of(source.abstract))
        if isinstance(source, Node) and slot < len(leaves):
            yield _laid_out(_layouts_of(source)[slot], leaves[slot])
        elif leaves:
            yield _laid_out(Layout(dtype=leaves[0].dtype), leaves[0])


def _plain(kind: DType, shape: tuple[int, ...]) -> _Tensor:
    return _Tensor(dtype=_TYPES.get(kind.name, "DT_UNDEFINED"), shape=shape, layout=_HOST.get(len(shape), "ND"),
                   origin=shape)  # fmt: skip


def _laid_out(layout: Layout, leaf: TensorType | ScalarType) -> _Tensor:
    shape = leaf.shape if isinstance(leaf, TensorType) else ()
    plain = _plain(layout.dtype, shape)
    if layout.format == PLAIN or -1 in shape:
        return plain
    from dumpsim.tensor.layout import device_shape

    there = device_shape(shape, layout.dtype.numpy, layout.format, groups=layout.groups)
    return _Tensor(dtype=plain.dtype, shape=there, layout=layout.format, origin=shape)


def _op_lines(op: _Op, number: int, detail: str) -> Iterator[str]:
    yield "op {"
    yield f"{_INDENT}name: {quoted(op.name)}"
    yield f"{_INDENT}type: {quoted(op.type)}"
    yield from (f"{_INDENT}input: {quoted(name)}" for name in op.inputs)
    if detail != "3":
        for key in sorted(op.attrs):
            value = list(value_lines(op.attrs[key]))
            if value:
                yield f"{_INDENT}attr {{"
                yield f"{_INDENT * 2}key: {quoted(key)}"
                yield f"{_INDENT * 2}value {{"
                yield from (_INDENT * 3 + line for line in value)
                yield f"{_INDENT * 2}}}"
                yield f"{_INDENT}}}"
        if op.data is not None and detail == "1":
            yield f"{_INDENT}attr {{"
            yield f'{_INDENT * 2}key: "value"'
            yield f"{_INDENT * 2}value {{"
            yield f'{_INDENT * 3}bt: "{_octets(op.data)}"'
            yield f"{_INDENT * 2}}}"
            yield f"{_INDENT}}}"
    yield f"{_INDENT}id: {number}"
    yield f"{_INDENT}stream_id: {op.stream}"
    if detail != "3":
        for kind, descs in (("input_desc", op.input_desc), ("output_desc", op.output_desc)):
            for desc in descs:
                yield from (_INDENT + line for line in _desc_lines(kind, desc))
    yield "}"


def _desc_lines(kind: str, desc: _Tensor) -> Iterator[str]:
    yield f"{kind} {{"
    yield f"{_INDENT}dtype: {desc.dtype}"
    yield from _shape_lines("shape", desc.shape)
    yield f"{_INDENT}layout: {quoted(desc.layout)}"
    yield from _shape_lines("origin_shape", desc.origin)
    yield "}"


def _shape_lines(name: str, shape: tuple[int, ...]) -> Iterator[str]:
    yield f"{_INDENT}{name} {{"
    yield from (f"{_INDENT * 2}dim: {dim}" for dim in shape)
    yield f"{_INDENT}}}"


def value_lines(value: Any) -> Iterator[str]:
    """Yield an attribute as fields of GE's attribute message; values without a field are skipped."""
    match value:
        case bool():
            yield f"b: {str(value).lower()}"
        case int():
            yield f"i: {value}"
        case float():
            yield f"f: {value:g}"
        case str():
            yield f"s: {quoted(value)}"
        case DType():
            yield f"dt: {_TYPES.get(value.name, 'DT_UNDEFINED')}"
        case tuple() | list():
            inner = [line for item in value for line in value_lines(item)]
            yield "list {"
            yield from (_INDENT + line for line in inner)
            yield "}"


def quoted(text: str) -> str:
    """Return text in quotes, as in protobuf's text format."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _octets(data: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in data[:_MOST_DATA])
