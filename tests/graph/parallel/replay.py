"""Recorded sharded nets: the stage before the pass as a graph, and the stage after it against ours.

``python tests/graph/parallel/replay.py [FOLDER]`` prints the first difference of each recorded net, and how many are
equal in operators and operands, then in names and scopes, then in attributes, then in numbers of nodes.
"""

import ast
import collections
import functools
import json
import lzma
import re
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

import numpy as np
from graph.parallel.record import pack
from graph.parallel.stages import Stage, read, split

from dumpsim.core.abstract import MonadType, NoneType, TensorType, TupleType
from dumpsim.core.dtype import DType, dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, topological
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.shard import shard
from dumpsim.graph.parallel.virtual import VIRTUAL
from dumpsim.ops.printed import attributes
from dumpsim.ops.rules import type_number
from dumpsim.ops.table import find

__all__ = ["compare", "forward", "graph_of", "load", "settings_of"]

_FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "mindspore_2_10" / "parallel"
MADE = ("Load", "Depend", "UpdateState", "MakeTuple", "TupleGetItem")  # nodes that order values and bundle them
_PADDING = ("pad", "same", "valid")  # by the numbers in the text
_MONAD = Constant(value=None, abstract=MonadType(kind="U"))


def forward(text: str) -> Stage:
    """The function graph of a stage that holds the data set."""
    return next(stage for stage in read(text) if any(line.call == "_VirtualDataset" for line in stage.lines))


def settings_of(script: str, *, trains: bool) -> Settings:
    """The settings that a script states."""
    given = ast.literal_eval(re.search(r"^SETTINGS = (.*)$", script, re.MULTILINE)[1])
    return Settings(
        device_num=given["device_num"],
        rank=given["global_rank"],
        dataset_strategy=given.get("dataset_strategy", "data_parallel"),
        enable_alltoall=given.get("enable_alltoall", False),
        gradients_mean=given.get("gradients_mean", False),
        enable_parallel_optimizer=given.get("enable_parallel_optimizer", False),
        is_training=trains,
    )


# -- reading


def value_of(text: str):
    """A constant of the text."""
    if match := re.fullmatch(r"(?:I64|I32|F32|F64)\((.*)\)", text):
        return ast.literal_eval(match[1])
    if match := re.fullmatch(r"Bool\(([01])\)", text):
        return match[1] == "1"
    if match := re.fullmatch(r"Tensor\(shape=\[\], dtype=(\w+), value=(.*)\)", text):
        return np.array(float(match[2]), dtype(match[1].lower()).numpy)
    if text.startswith("("):
        return tuple(value_of(item) for item in split(text[1:-1]))
    return int(text) if text.lstrip("-").isdigit() else text.strip('"')


def rows_of(text: str):
    """A strategy."""
    return tuple(tuple(int(n) for n in split(row[1:-1])) for row in split(text[1:-1]))


def kind_of(text: str):
    """A type; the parser of IR text knows tensors and tuples of them."""
    if text.startswith("<UMonad"):
        return MonadType(kind="U")
    if match := re.match(r"<Tuple\[(.*)\], TupleShape\((.*)\)", text):
        shapes = split(match[2].split("), elements_use_flags")[0])
        names = []
        for item in split(match[1]):
            name, _, count = item.rpartition("*")
            names += [name] * int(count) if name and count.isdigit() else [item]
        if all(name.startswith("Tensor") for name in names):
            return TupleType(items=tuple(kind_of(f"<{n}, {s}>") for n, s in zip(names, shapes, strict=True)))
        return NoneType()
    if match := re.match(r"<(?:Ref\[)?Tensor\[(\w+)\]\]?, \(([^)]*)\)(?:, ref_key=([^,>]+))?", text):
        shape = tuple(int(n) for n in match[2].split(",") if n.strip())
        return TensorType(dtype=dtype(match[1].lower()), shape=shape, ref_key=match[3])
    return NoneType()


def names_before(script: str) -> dict[str, str]:
    """Full names without scopes, by instance name: all operators that the script calls have numbers, also unused ones.

    Two Reshapes after each other are one before the pass, with the instance name of the first: a new node.
    """
    made = dict(re.findall(r"self\.(op\d+) = P\.(\w+)\(", script))
    calls = re.findall(r"^        ([\w, ]+) = self\.(op\d+)\((.*)\)$", script, re.MULTILINE)
    types = [(made[call], call) for _, call, _ in calls]
    counts: collections.Counter[str] = collections.Counter()
    found = {}
    for kind, call in types:
        found[call] = f"{kind}-op{counts[kind]}"
        counts[kind] += 1
    results = {result: (call, arguments) for result, call, arguments in calls}
    for _, call, arguments in calls:
        source = results.get(arguments.split(",")[0])
        if made[call] == "Reshape" and source is not None and made[source[0]] == "Reshape":
            found[_first_reshape(call, made, results)] = f"Reshape-op{counts['Reshape']}"
            counts["Reshape"] += 1
    return found


def _first_reshape(call: str, made: dict[str, str], results: dict[str, tuple[str, str]]) -> str:
    """The first of the Reshapes that end with a call."""
    given = next(arguments for one, arguments in results.values() if one == call)
    source = results.get(given.split(",")[0])
    return _first_reshape(source[0], made, results) if source and made[source[0]] == "Reshape" else call


def graph_of(stage: Stage, names: dict[str, str] | None = None) -> Graph:
    """The graph of a stage before the pass; `names` by instance name where the pass cannot know them."""
    graph = Graph(name=stage.name)
    params = {}

    def parameter(key: str, kind) -> Parameter:
        if key not in params:
            weight = isinstance(kind, TensorType) and kind.ref_key is not None
            name = kind.ref_key if weight else key.split("_", 1)[1]
            params[key] = Parameter(name=name, abstract=kind, is_weight=weight)
            params[key].debug_name = key
            graph.parameters.append(params[key])
        return params[key]

    for key, text in stage.params.items():
        parameter(key, kind_of(text))
    nodes = {}

    def operand(text: str, kind: str):
        if text == "UMonad[U]":
            return _MONAD
        if text.startswith(("%para", "$(")):
            return parameter(text.removeprefix("%").removesuffix(")").rsplit(":", 1)[-1], kind_of(kind))
        if text.startswith("%"):
            return nodes[int(text[1:])]
        return constant(value_of(text))

    for line in stage.lines:
        kinds, _, result = line.types.rpartition(") -> (")
        kinds = split(kinds[1:] if result and kinds else line.types[1:-1])
        operands = [operand(text, kind) for text, kind in zip(line.operands, kinds, strict=True)]
        if line.call == "Return":
            graph.output = operands[0]
            continue
        shown = line.attrs.get("primitive_attrs", {})
        attrs = {k: rows_of(v) if k.endswith("strategy") else value_of(v) for k, v in shown.items()}
        op_type = line.call.removeprefix("PrimFunc_")
        if isinstance(attrs.get("pad_mode"), int):
            attrs["pad_mode"] = _PADDING[attrs["pad_mode"]]
        known = find(op_type).attrs if op_type not in VIRTUAL and op_type not in MADE else {}
        node = Node(
            op_type=op_type,
            operands=operands,
            abstract=kind_of(result.removesuffix(")")),
            attrs={name: value for name, value in attrs.items() if name in known},
            scope=line.scope,
            definition=VIRTUAL.get(op_type),
            text=NodeText(variable=line.name, instance_name=line.instance, attrs=attrs),
        )
        if names and line.instance in names:
            node.text.full_name = f"{line.scope}/{names[line.instance]}"
        nodes[line.index] = node
        graph.trail.append(node)
    return graph


# -- comparing


def written(value) -> str:
    """A constant as the text writes it."""
    if isinstance(value, bool):
        return f"Bool({int(value)})"
    if isinstance(value, int):
        return f"I64({value})"
    if isinstance(value, float):
        return f"F32({value:g})"
    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))})"
    if isinstance(value, DType):
        return f"I64({type_number(value)})"
    if isinstance(value, str):
        return value if value.startswith(("Tensor(", "F32(", "[")) else f'"{value}"'
    if hasattr(value, "shape"):
        name = dtype(str(value.dtype)).title
        return f"Tensor(shape={list(value.shape)}, dtype={name}, value={value.item():g})"
    return str(value)


def written_attribute(value) -> str:
    """An attribute as the text writes it."""
    return str(value) if isinstance(value, tuple) else written(value)


def strategy_text(rows) -> str:
    """A strategy as the text writes it."""
    return "(" + ", ".join("(" + ", ".join(map(str, row)) + ")" for row in rows) + ")"


def rows(graph: Graph, first: int) -> list[dict]:
    """Return the compared properties of each node of our graph, in the order of the text."""
    order = topological([graph.output])
    index = {id(node): at for at, node in enumerate(order)}
    found = []

    def operand(value) -> str:
        if isinstance(value, Node):
            return f"%{index[id(value)]}"
        if isinstance(value, Parameter):
            return value.debug_name
        return "UMonad[U]" if isinstance(value.abstract, MonadType) else written(value.value)

    for node in order:
        text = node.text
        shown = dict(text.attrs)
        if node.definition is None and node.op_type not in MADE:
            definition = find(node.op_type)
            if not definition.prim_func and not text.variable:
                shown = {**attributes(definition, [], NoneType(), {**definition.attrs, **node.attrs}), **shown}
        elif node.definition is not None:
            shown = {**{k: v for k, v in node.attrs.items() if not k.startswith("_")}, **shown}
        if shown.get("pad_mode") in _PADDING:
            shown["pad_mode"] = _PADDING.index(shown["pad_mode"])
        if "rank_size" in shown:
            shown["rank_size"] = 1  # what the text says, whatever the group
        name = text.variable
        if not name:
            name = f"CNode_{first}"
            first += 1
        found.append(
            {
                "op": node.op_type,
                "operands": [operand(value) for value in node.operands],
                "instance": text.instance_name,
                "attrs": {
                    k: strategy_text(v) if k.endswith("strategy") else written_attribute(v) for k, v in shown.items()
                },
                "name": name,
                "scope": node.scope,
            }
        )
    return found


def _operand(text: str) -> str:
    if text.startswith("$("):
        return text.removesuffix(")").rsplit(":", 1)[-1]
    return text.removeprefix("%") if text.startswith("%para") else text


def wanted(stage: Stage) -> list[dict]:
    """The same of the recorded stage."""
    found = []
    for line in stage.lines:
        if line.call == "Return":
            continue
        operands = [_operand(text) for text in line.operands]
        found.append(
            {
                "op": line.call.removeprefix("PrimFunc_"),
                "operands": operands,
                "instance": line.instance,
                "attrs": dict(line.attrs.get("primitive_attrs", {})),
                "name": line.name,
                "scope": line.scope,
            }
        )
    return found


def normal(row: dict, parts: tuple[str, ...]) -> tuple:
    """What of a node is compared; the tuple primitive is one for all nodes, so its attributes say nothing."""
    attrs = {} if row["op"] in ("MakeTuple", "TupleGetItem") else row["attrs"]
    found = {
        **row,
        "attrs": sorted(attrs.items()),
        "operands": [re.sub(r"F32\(([^)]*)\)", lambda m: f"F32({float(m[1]):g})", o) for o in row["operands"]],
    }
    return tuple(str(found[part]) for part in parts)


PARTS = ("op", "operands", "instance", "scope", "attrs", "name")


def compare(net: dict[str, str], parts: tuple[str, ...] = PARTS) -> str:
    """The first node in which our graph differs from the recorded one; "" where none does."""
    begin, end = forward(net["begin"]), forward(net["end"])
    graph = graph_of(begin, names_before(net["script"]))
    names = [line.name for stage in read(net["begin"]) for line in stage.lines]
    first = max(int(n.removeprefix("CNode_")) for n in names if re.fullmatch(r"CNode_\d+", n)) + 1
    found = shard(graph, settings_of(net["script"], trains="TrainOneStepCell" in net["script"]), find)
    got, want = rows(found.end, first), wanted(end)
    for at, (one, two) in enumerate(zip(got, want, strict=False)):
        if normal(one, parts) != normal(two, parts):
            return f"node {at}:\n  got  {normal(one, parts)}\n  want {normal(two, parts)}"
    return "" if len(got) == len(want) else f"{len(got)} nodes, not {len(want)}"


def load(*files: str) -> dict[str, dict[str, str]]:
    """The recorded nets by name, of ``nets`` or of these files; those that move, cut and repeat are in ``moving``."""
    found: dict[str, dict[str, str]] = {}
    for name in files or ("nets",):
        found |= _unpacked(name)
    return found


@functools.cache
def _unpacked(name: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(lzma.decompress((_FOLDER / f"{name}.json.xz").read_bytes()))
    return found


def main() -> None:
    """Command line."""
    nets = load("nets", "moving") if len(sys.argv) == 1 else pack(Path(sys.argv[1]))
    counts: collections.Counter[str] = collections.Counter()
    for name, net in nets.items():
        counts["nets"] += 1
        for parts in (PARTS[:2], PARTS[:4], PARTS[:5], PARTS):
            try:
                problem = compare(net, parts)
            except Exception as error:  # a net that is not split is a difference, too
                problem = repr(error)
            if problem:
                print(name, parts[-1], problem[:700])
                break
            counts[parts[-1]] += 1
    print(dict(counts))


if __name__ == "__main__":
    main()
