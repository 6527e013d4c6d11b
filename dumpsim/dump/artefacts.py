"""The files beside tensors: graphs, execution orders, copies of the configuration, arguments of kernels."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from dumpsim.archive.sink import Sink
from dumpsim.archive.tree import Tree
from dumpsim.codecs import irproto, irtext
from dumpsim.core.abstract import TensorType, tensors_of
from dumpsim.core.errors import DumpConfigError
from dumpsim.core.events import GraphEvent, TensorRef
from dumpsim.core.irdoc import IrNode
from dumpsim.dump.info import Log
from dumpsim.dump.tensorfiles import TensorFiles
from dumpsim.dump.writelog import WriteLog
from dumpsim.modes.profile import Profile

__all__ = [
    "RankFiles",
    "arguments_file",
    "check_target",
    "check_types",
    "tensor_constants",
    "write_graph",
    "write_metadata",
]

_ORDER_TITLE = "NodeExecutionOrder-FullNameWithScope"  # [spec mindspore 8.1]


Attempt = Callable[[Callable[[], object]], bool]


class RankFiles:
    """Writes the files beside tensors to the tree of a rank, as far as the profile has them."""

    def __init__(self, tree: Tree, *, profile: Profile, sink: Sink, writes: WriteLog, log: Log) -> None:
        self.tree = tree
        self._profile = profile
        self._sink = sink
        self._writes = writes
        self._log = log
        self._logged: int | None = None  # the last iteration in the history, of any graph

    def begin(self, text: bytes) -> None:
        """Write copies of the configuration; `text` is the dump config."""
        profile = self._profile
        if profile.metadata:
            write_metadata(
                self._sink, self.tree, profile.target, profile.ms_version, text, self._log, self._writes.attempt
            )

    def graph(self, event: GraphEvent, tensors: TensorFiles) -> None:
        """Write a compiled graph and its constants."""
        if self._profile.graph_files:
            write_graph(self._sink, self.tree, event, self._writes.attempt, self._profile.ir_text)
        if self._profile.constants:
            directory = self.tree.constants(event.graph_id)
            if not self._sink.has_directory(directory):
                for ref in tensor_constants(event):
                    tensors.constant(directory, ref, event.graph_id)

    def run(self, graph_id: int, number: int) -> None:
        """Write a line of the history if the iteration has changed. [spec mindspore 8.1]"""
        if self._profile.global_order and number != self._logged:
            self._logged = number
            name = self.tree.history(graph_id)
            self._writes.attempt(lambda: self._sink.append(self.tree.execution_order, name, f"{number}\n"))


def write_metadata(sink: Sink, tree: Tree, target: str, version: str, text: bytes, log: Log, attempt: Attempt) -> None:
    """Write ``config.json`` and the copy of the dump config, unless they exist. [spec mindspore 3.8]

    `attempt` writes each file, so that a failure does not affect the other one.
    """
    config = json.dumps({"device_target": target, "ms_version": version}, separators=(",", ":"))
    for name, data in (("config.json", config.encode()), ("data_dump.json", text)):
        if sink.exists(tree.metadata, name):
            function = "CopyDumpJsonToDir" if name == "data_dump.json" else "CopyMSCfgJsonToDir"
            log("WARNING", function, f"The file: {tree.metadata}/{name} is already exist, skip copy it.")
        else:
            attempt(partial(sink.write, tree.metadata, name, [data]))


def write_graph(sink: Sink, tree: Tree, event: GraphEvent, attempt: Attempt, form: str) -> None:
    """Write a kernel graph's IR in both forms, and its execution order; for `attempt` see above. [spec mindspore 8]"""
    number = event.graph_id
    if event.doc is not None:
        attempt(partial(sink.write, tree.graphs, tree.ir(number), [irtext.render(event.doc, form).encode()]))
        graph = irproto.encode(event.doc, first_constant=event.first_constant)
        attempt(partial(sink.write, tree.graphs, tree.pb(number), [graph]))
    order = "".join(f"{line}\n" for line in (_ORDER_TITLE, *event.execution_order))
    attempt(partial(sink.write, tree.execution_order, tree.order(number), [order.encode()]))


def check_types(nodes: Iterable[IrNode]) -> None:
    """Refuse a graph with complex tensors, as the releases' exporter does on a CPU. [spec mindspore 8.2]

    Raises
    ------
    DumpConfigError
        For a node with complex tensors; the error names it.
    """
    for node in nodes:
        abstracts = (*node.operand_types, *((node.output,) if node.output is not None else ()))
        for abstract in abstracts:
            if any(tensor.dtype.kind == "complex" for tensor in tensors_of(abstract)):
                raise DumpConfigError(
                    "dump cannot describe complex tensors in this release",
                    where=node.full_name,
                    vendor="Unexpected type Complex",
                    code="DS-DMP-002",
                )


def check_target(nodes: Iterable[IrNode], target: str) -> None:
    """Refuse a graph whose operators run on several kinds of devices. [seed 001]

    Raises
    ------
    DumpConfigError
        For a node on another device; the error names it.
    """
    for node in nodes:
        for name, value in (*node.primitive_attrs, *node.node_attrs):
            if name == "primitive_target" and value != target:
                raise DumpConfigError(
                    f"dump does not support mixed training: this operator runs on {value}, the others on {target}",
                    where=node.full_name,
                    allowed=(target,),
                    code="DS-DMP-004",
                )


def tensor_constants(event: GraphEvent) -> tuple[TensorRef, ...]:
    """Return the constants of a graph that are tensors; numbers, tuples and strings have no file. [seed 001]"""
    found = enumerate(irproto.constants(event.doc) if event.doc is not None else (), event.first_constant)
    kinds = {f"data-{number}": constant.abstract for number, constant in found}
    return tuple(ref for ref in event.constants if isinstance(kinds.get(ref.name), TensorType))


def arguments_file(full_name: str, arguments: Mapping[str, Any], attrs: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return name and content of ``{op_type}.{op_name}.json``. [spec mindspore 3.11]

    The content is the operator's arguments if they are known, otherwise its attributes.

    Examples
    --------
    >>> name, data = arguments_file("Default/fc-Dense/MatMul-op0", {"transpose_b": True, "transpose_a": False}, {})
    >>> name
    'MatMul.Default_fc-Dense_MatMul-op0.json'
    >>> print(data.decode())
    {
        "transpose_a": "False",
        "transpose_b": "True"
    }
    """
    last = full_name[full_name.rfind("/") + 1 :]
    op_type = last[: last.rfind("-")] if "-" in last else last
    scope = full_name.replace(".", "_").replace("/", "_")
    shown = arguments or attrs
    content = {name: _shown(value) for name, value in sorted(shown.items()) if value is not None}
    return f"{op_type}.{scope}.json", json.dumps(content, indent=4, ensure_ascii=False).encode()


def _shown(value: Any) -> str:
    """Format an argument as text: ``True``, ``-1``, ``[0, 1]``."""
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    return str(value)
