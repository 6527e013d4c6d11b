"""Func graphs out of what MindSpore itself prints of a compile stage (MS_DEV_SAVE_GRAPHS)."""

import re
from collections.abc import Iterator

from dumpsim.core.abstract import MonadType, NoneType
from dumpsim.graph.graph import Constant, Node, Parameter, Value, text_of
from dumpsim.graph.mindspore.funcgraph import FuncGraph, as_constant, function_of, nodes_of
from dumpsim.graph.mindspore.partition import function_order
from dumpsim.graph.sequence import is_kernel

_KINDS = {"✓": "true", "✗": "false", "↵": "header", "↻": "body", "↓": "after"}
_HEAD = re.compile(r"subgraph @(\S+?)(?: parent: \[.*?\])?\((.*)\) \{")
_NAME = re.compile(r"      # Fullname with scope: \((.*)\)$")
_NODE = re.compile(r"  (?:%(\d+)\((.*?)\) = )?(.*)")


def read_stage(text: str) -> tuple[FuncGraph, dict[str, FuncGraph]]:
    """The root of a stage and all func graphs of it by name; what is not a graph value is a constant of its text.

    The text names a value of a function around by its variable, so that the stage of a function with two values of one
    variable cannot be read with certainty.
    """
    functions: dict[str, FuncGraph] = {}
    bodies = dict(_bodies(text))
    parameters: dict[str, Parameter] = {}
    for name, (heads, _) in bodies.items():
        label = re.match(r"(\d+)_(.*)", name)
        assert label is not None
        functions[name] = FuncGraph(
            kind=next((_KINDS[sign] for sign in label[2] if sign in _KINDS), "root"),
            number=int(label[1]),
            label=label[2],
            result=Node(op_type="Return", operands=[], abstract=NoneType()),
        )
        for head in heads:
            parameters[head] = _parameter(head)
            functions[name].parameters.append(parameters[head])
    nodes: dict[tuple[str, str], Node] = {}  # by func graph and number or printed name
    lines: list[tuple[str, str | None, str, Node, list[str]]] = []
    for name, (_, body) in bodies.items():
        for number, shown, op_type, callee, arguments, full_name in body:
            if op_type == "Return":
                node = functions[name].result
            else:
                node = Node(op_type=op_type, operands=[], abstract=NoneType())
                nodes[name, number] = node
                nodes[name, f":{shown}"] = node
            node.full_name, node.scope = full_name, full_name.rpartition("/")[0]
            lines.append((name, callee, op_type, node, arguments))

    def value(name: str, shown: str) -> Value:
        outer = re.fullmatch(r"\$\(@(.+?):(.+)\)", shown)
        if outer is not None:
            if outer[2].startswith("para"):
                return parameters.setdefault(outer[2], _parameter(outer[2]))
            return nodes[outer[1], f":{outer[2]}"]
        if shown.startswith("Parameter_"):  # a callee is printed without its number
            return next(p for p in functions[name].parameters if p.name == shown)
        if re.fullmatch(r"%\d+", shown):
            return nodes[name, shown[1:]]
        if shown.startswith("%para"):
            return parameters.setdefault(shown[1:], _parameter(shown[1:]))
        if shown.startswith("@") and shown[1:] in functions:
            return as_constant(functions[shown[1:]])
        return Constant(value=shown, abstract=MonadType() if shown.startswith("UMonad") else NoneType())

    for name, callee, _, node, arguments in lines:
        shown = ([callee] if callee is not None else []) + arguments
        node.operands = [value(name, each) for each in shown]
    entry = re.search(r"^# IR entry: @(\S+)", text, re.M)
    assert entry is not None
    return functions[entry[1]], functions


def outline(root: FuncGraph) -> list[list[str]]:
    """Lines for each function, in the order in which they become kernel graphs: nodes in post-order with operands.

    Kernels have their names, other nodes their types; a function stands by its kind. Parameters and constants among
    the arguments of a Call or Partial are left out.
    """
    return [_lines(function) for function in function_order(root)]


def _lines(function: FuncGraph) -> list[str]:
    nodes = nodes_of(function)
    place = {id(node): at for at, node in enumerate(nodes)}

    def shown(operand: Value) -> str:
        inner = function_of(operand)
        if inner is not None:
            return inner.kind
        if isinstance(operand, Node):
            return f"%{place[id(operand)]}"
        if isinstance(operand, Parameter):
            return "U" if re.fullmatch(r"u(_\d+)?", operand.name) else "@"
        return "U" if isinstance(operand.abstract, MonadType) else "#"

    lines = [function.kind]
    for node in nodes:
        passing = node.op_type in ("Call", "Partial")
        operands = [o for o in node.operands if not passing or isinstance(o, Node) or function_of(o) is not None]
        name = (text_of(node).full_name or node.full_name) if is_kernel(node) else node.op_type
        lines.append(f"{name}({', '.join(map(shown, operands))})")
    return lines


def _parameter(head: str) -> Parameter:
    return Parameter(name=head.split("_", 1)[1], abstract=NoneType())  # type: ignore[arg-type]


def _bodies(
    text: str,
) -> Iterator[tuple[str, tuple[list[str], list[tuple[str, str, str, str | None, list[str], str]]]]]:
    """Name, parameters and nodes (number, printed name, operator, callee, operands, full name) of each func graph."""
    lines = iter(text.splitlines())
    for line in lines:
        head = _HEAD.match(line)
        if head is None:
            continue
        nodes = []
        for line in lines:
            if line.startswith("}"):
                break
            if (named := _NAME.match(line)) and nodes:
                nodes[-1] = (*nodes[-1][:5], named[1])
            if not line.startswith("  ") or line.startswith("   "):
                continue
            while line.rstrip().endswith(("value=", "]", ",")) or (line.count("[") > line.count("]")):
                more = next(lines)
                if more.startswith(("      :", "}")):
                    break
                line = f"{line} {more.strip()}"
            found = _NODE.match(line)
            if found is None or "(" not in found[3]:
                continue
            number, shown, rest = found.groups()
            called = re.match(r"call (@\S+?)\(", rest) or re.match(
                r"(%\d+|%para\w+?|Parameter_\d+|\$\(@.+?:\w+\))(?:\[@FuncUnion\(.*?\)\]|\[@@.*?\])?\(", rest
            )
            op_type, callee, start = "Call", None, 0
            if called is not None:
                callee, start = called[1], called.end()
            else:
                plain = re.match(r"([^\s(]+)\(", rest)
                if plain is None:
                    continue
                op_type, start = plain[1].removeprefix("PrimFunc_"), plain.end()
            nodes.append((number or "", shown or "", op_type, callee, _arguments(rest[start:]), ""))
        yield head[1], ([p.strip().lstrip("%") for p in head[2].split(",") if p.strip()], nodes)


def _arguments(text: str) -> list[str]:
    """Arguments between brackets, in order; `text` starts after the opening one."""
    arguments, depth, current, quoted = [], 0, "", False
    for place, letter in enumerate(text):
        if letter == '"' and text[place - 1 : place] != "\\":
            quoted = not quoted
        if not quoted:
            if letter in "([{<":
                depth += 1
            elif letter in ")]}>":
                if letter == ")" and depth == 0:
                    break
                depth -= 1
            elif letter == "," and depth == 0:
                arguments.append(current.strip())
                current = ""
                continue
        current += letter
    return [*arguments, current.strip()] if current.strip() else arguments
