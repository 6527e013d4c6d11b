"""Files about graphs, written by the compilation: ``config.debug.graph_dump`` and ``config.debug.fx_summary``."""

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from torch import fx

from dumpsim.core.errors import DumpWriteError
from dumpsim.graph.ge.text import quoted, value_lines
from dumpsim.runtime.session import Session

__all__ = ["dump_graph", "dump_summary"]

_INDENT = "  "
# texts of the real file, which are Chinese
_TITLES = ("目标函数", "函数类型", "支持状态", "调用次数", "输入统计", "输出统计")
_SUPPORTED, _UNKNOWN = "已支持", "未注册"


class _Output(Protocol):
    @property
    def ge_dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[Any, ...] | None: ...


class _Node(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def inputs(self) -> Sequence[Any]: ...
    @property
    def attrs(self) -> Mapping[str, Any]: ...
    @property
    def outputs(self) -> Sequence[_Output]: ...


def dump_graph(config: Any, stage: str, name: str, nodes: Iterable[_Node]) -> Path | None:
    """Write a graph of GE, as configured by ``config.debug.graph_dump``.

    Parameters
    ----------
    config : CompilerConfig
    stage : str
        ``original`` or ``optimized``.
    name : str
        Name of the graph.
    nodes : iterable of GeNode
        Nodes in their order; an input is None, or an object whose `str` is ``node:index``.

    Returns
    -------
    Path or None
        ``{path}/dynamo_{stage}_{name}_{time}.{type}``; None if no file is requested.
    """
    options = config.debug.graph_dump
    if options.type.value is None:
        return None
    lines = {"txt": _proto, "pbtxt": _onnx, "py": _python}[options.type.value](name, nodes)
    path = Path(options.path.value) / f"dynamo_{stage}_{name}_{_stamp()}.{options.type.value}"
    return _written(path, ("\n".join(lines) + "\n").encode())


def dump_summary(config: Any, module: fx.GraphModule, supported: Callable[[Any], bool]) -> Path | None:
    """Write the operators of a captured graph with numbers of calls and arguments, for ``config.debug.fx_summary``.

    Parameters
    ----------
    config : CompilerConfig
    module : GraphModule
        Its nodes have their values in ``meta["val"]``.
    supported : callable
        Returns whether an overload is converted.

    Returns
    -------
    Path or None
        ``{path}/summary_{time}.csv``; None if no file is requested.
    """
    options = config.debug.fx_summary
    if options.type.value is None:
        return None
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_TITLES)
    writer.writerows(_rows(module.graph, supported))
    path = Path(options.path.value) / f"summary_{_stamp()}.{options.type.value}"
    return _written(path, text.getvalue().encode("utf-8-sig"))


def _rows(graph: fx.Graph, supported: Callable[[Any], bool]) -> Iterator[Sequence[Any]]:
    """Iterate over the rows: one for each target, in the order of the first calls."""
    calls: dict[Any, list[fx.Node]] = {}
    for node in graph.nodes:
        if node.op == "call_function":
            calls.setdefault(node.target, []).append(node)
    for target, nodes in calls.items():
        builtin = getattr(target, "__module__", "") in ("_operator", "builtins")
        kind = "builtin" if builtin else "prims" if "prim" in str(target) else "aten"
        status = _SUPPORTED if builtin or supported(target) else _UNKNOWN
        inputs = Counter(_called(node) for node in nodes)
        outputs = Counter(_shown(node.meta.get("val")) for node in nodes)
        yield (str(target), kind, status, len(nodes), _counted(inputs), _counted(outputs))


def _counted(found: "Counter[str]") -> str:
    return "\n".join(f"{count}次：{text}" for text, count in found.most_common())


def _called(node: fx.Node) -> str:
    args = fx.map_arg(node.args, lambda one: _Shown(_shown(one.meta.get("val"))))
    keywords = fx.map_arg(node.kwargs, lambda one: _Shown(_shown(one.meta.get("val"))))
    return f"{args}, {keywords}" if keywords else f"{args}"


class _Shown(str):
    """A string whose `repr` has no quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _shown(value: Any) -> str:
    """Format a value: a tensor as data type and shape."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_shown(one) for one in value)
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{str(value.dtype).rpartition('.')[2]}{tuple(value.shape)}"
    return str(value)


def _proto(name: str, nodes: Iterable[_Node]) -> Iterator[str]:
    """Format GE's graph definition as protobuf text."""
    yield f"name: {quoted(name)}"
    for node in nodes:
        yield "op {"
        yield f"{_INDENT}name: {quoted(node.name)}"
        yield f"{_INDENT}type: {quoted(node.type)}"
        yield from (f"{_INDENT}input: {quoted('' if ref is None else str(ref))}" for ref in node.inputs)
        for key in sorted(node.attrs):
            yield f"{_INDENT}attr {{"
            yield f"{_INDENT * 2}key: {quoted(key)}"
            yield f"{_INDENT * 2}value {{"
            yield from (_INDENT * 3 + line for line in value_lines(node.attrs[key]))
            yield f"{_INDENT * 2}}}"
            yield f"{_INDENT}}}"
        for output in node.outputs:
            yield f"{_INDENT}output_desc {{"
            yield f"{_INDENT * 2}dtype: {output.ge_dtype}"
            yield f"{_INDENT * 2}shape {{"
            yield from (f"{_INDENT * 3}dim: {_dim(dim)}" for dim in output.shape or ())
            yield f"{_INDENT * 2}}}"
            yield f"{_INDENT}}}"
        yield "}"


def _onnx(name: str, nodes: Iterable[_Node]) -> Iterator[str]:
    """Format names, types and inputs of the nodes, for graph viewers."""
    yield "graph {"
    yield f"{_INDENT}name: {quoted(name)}"
    for node in nodes:
        yield f"{_INDENT}node {{"
        yield f"{_INDENT * 2}name: {quoted(node.name)}"
        yield f"{_INDENT * 2}op_type: {quoted(node.type)}"
        yield from (f"{_INDENT * 2}input: {quoted(str(ref))}" for ref in node.inputs if ref is not None)
        yield f"{_INDENT}}}"
    yield "}"


def _python(name: str, nodes: Iterable[_Node]) -> Iterator[str]:
    """Format one line of Python for each node."""
    yield f"# {name}"
    for node in nodes:
        inputs = ["None" if ref is None else _name(str(ref)) for ref in node.inputs]
        keywords = [f"{key.lstrip('_')}={value!r}" for key, value in node.attrs.items()]
        yield f"{_name(node.name)} = ge.{node.type}({', '.join([*inputs, *keywords])})"


def _name(text: str) -> str:
    node, _, index = text.partition(":")
    bare = "".join(char if char.isalnum() else "_" for char in node)
    return bare if index in ("", "0") else f"{bare}[{index}]"


def _dim(dim: Any) -> int:
    """Return a dimension; -1 for a dynamic one."""
    return dim if isinstance(dim, int) else -1


def _stamp() -> str:
    when = datetime.fromtimestamp(Session.current().clock.stamp_us() / 1e6, UTC)
    return f"{when:%Y%m%d%H%M%S%f}"


def _written(path: Path, data: bytes) -> Path:
    """Write a file, and create its directory if it is missing.

    Raises
    ------
    DumpWriteError
        If it cannot be written; the error names the file.
    """
    try:
        os.makedirs(path.parent, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise DumpWriteError(f"cannot be written: {error.strerror}", where=str(path), code="DS-ARC-010") from error
    return path
