"""IR text: ``ms_output_trace_code_graph_{id}.ir``, written and read. [spec mindspore 8.3, spec observed 1.8]

The writer makes the text of MindSpore 2.10, optionally with lines as in the documents
(``: full_name_with_scope: (...)``, ``# In file x.py(175)/``). The reader accepts both, and returns attributes and
constants as text, without parsing them.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from dumpsim.codecs.irtype import parse_kernel_ios, parse_type, parse_types, split_list
from dumpsim.codecs.irvalue import Text, attr_text, constant_text, type_text
from dumpsim.core.abstract import Abstract, NoneType, TensorType, TupleType
from dumpsim.core.errors import UnreadableError
from dumpsim.core.irdoc import (
    ConstRef,
    IrDoc,
    IrFunction,
    IrNode,
    IrParam,
    KernelIo,
    NameRef,
    NodeRef,
    Operand,
    ParamRef,
    SourceLine,
)

__all__ = ["parse", "parse_source", "render", "source_text"]

_PAD = "      "


# -- writing


def render(doc: IrDoc, form: str = "new") -> str:
    """Format a kernel graph; `form` is the profile's, see `_node`."""
    out = [f"# IR entry: @{doc.name}", f"# Total subgraphs: {1 + len(doc.functions)}", ""]
    if doc.attrs:
        out += ["# Attrs:", *(f"{key}: {value}" for key, value in doc.attrs), ""]
    out += [f"# Total params: {len(doc.params)}"]
    if doc.params:
        out += [
            "# Params:",
            *(_param(index, param, is_stage=doc.is_stage) for index, param in enumerate(doc.params, 1)),
        ]
    out += [
        "",
        "Node counting information:",
        f"Total number of nodes: {doc.total_nodes}",
        f"Total number of cnodes: {doc.total_cnodes}",
        "",
    ]
    for function in doc.functions:
        if not function.is_last:
            out += [*_function(doc, function, form), "", ""]
    out += [
        "subgraph attr:",
        *(f"{key}: {value}" for key, value in doc.attrs),
        f"subgraph instance: {doc.name} : {doc.instance}",
        "",
        f"subgraph @{doc.name}() {{",
    ]
    for node in doc.nodes:
        out += _node(doc, node, old=form == "old")
    out += ["}"]
    for function in doc.functions:
        if function.is_last:
            out += ["", "", *_function(doc, function, form)]
    if doc.order:
        out += ["# Order:", *(f"#   {index}: {line}" for index, line in enumerate(doc.order, 1))]
    return "\n".join(out) + "\n\n\n"


def _function(doc: IrDoc, function: IrFunction, form: str) -> Iterator[str]:
    """Format a function that the graph calls."""
    kinds = ", ".join(type_text(kind) for _, kind in function.formals)
    formals = ", ".join(name for name, _ in function.formals)
    yield "subgraph attr:"
    yield f"subgraph instance: {function.name} : {doc.instance}"
    yield f"# Parameters: {len(function.formals)}, ({kinds})"
    yield f"subgraph @{function.name} parent: [subgraph @{function.parent}]({formals}) {{"
    for node in function.nodes:
        yield from _node(doc, node, old=form == "old")
    yield "}"


def _param(index: int, param: IrParam, *, is_stage: bool) -> str:
    hint = f" : {_shape(param.abstract)}" if param.shape_hint else ""
    devices = ", ".join(f"<{_kernel_io(io)}>" for io in (param.device, *param.more_devices))
    default = "  :  has_default" if param.has_default else ""
    text = f"%para{index}_{param.label}: {type_text(param.abstract)}{hint}{default}"
    return text if is_stage else f"{text}  :  {devices}  :  IsWeight: {str(param.is_weight).lower()}"


def _shape(abstract: Abstract) -> str:
    dims = map(_shape, abstract.items) if isinstance(abstract, TupleType) else map(str, _dims(abstract))
    return f"[{', '.join(dims)}]"


def _dims(abstract: Abstract) -> tuple[int, ...]:
    return abstract.shape if isinstance(abstract, TensorType) else ()


def _kernel_io(io: KernelIo) -> str:
    return f"{io.dtype}x{io.format}[const vector]{{{', '.join(map(str, io.shape))}}}"


def _operand(doc: IrDoc, operand: Operand) -> str:
    match operand:
        case NodeRef(index=index):
            return f"%{index}"
        case ParamRef(index=index):
            return f"%para{index + 1}_{doc.params[index].use_label}"
        case NameRef(name=name):
            return name
        case ConstRef(value=value, abstract=abstract):
            return constant_text(value, abstract)


def _node(doc: IrDoc, node: IrNode, *, old: bool) -> Iterator[str]:
    """Format a node; `old` writes full name and source lines as in the documents. [seed 001]"""
    head = f"%{node.index}({node.name}) = " if node.index is not None else ""
    call = f"{'PrimFunc_' if node.prim_func else ''}{node.op_type}"
    parts = [f"  {head}{call}({', '.join(_operand(doc, o) for o in node.operands)})"]
    if node.instance_name is not None:
        parts.append(f"{{instance name: {node.instance_name}}}")
    for title, attrs in (
        ("primitive_attrs", node.primitive_attrs),
        ("cnode_attrs", node.node_attrs),
        ("cnode_primal_attrs", node.primal_attrs),
    ):
        if attrs:
            parts.append(f"{title}: {{{', '.join(f'{key}: {attr_text(value)}' for key, value in attrs)}}}")
    if node.strategy:
        parts.append(f"{{in_strategy: {node.strategy}}}")
    yield " ".join(parts)
    types = ", ".join(_type(o, kind) for o, kind in zip(node.operands, node.operand_types, strict=True))
    output = "" if node.output is None else f" -> ({_type(None, node.output)})"
    yield f"{_PAD}: ({types}){output}"
    if node.kernel_in is not None and node.kernel_out is not None:
        ins, outs = (", ".join(f"<{_kernel_io(io)}>" for io in ios) for ios in (node.kernel_in, node.kernel_out))
        yield f"{_PAD}: ({ins}) -> ({outs})"
    if node.object_in is not None and node.object_out is not None:
        yield f"{_PAD}: ({', '.join(node.object_in)}) -> ({node.object_out})"
    title = "# Scope" if doc.is_stage else ": full_name_with_scope" if old else "# Fullname with scope"
    yield f"{_PAD}{title}: ({node.full_name})"
    for kind, sources in ((node.candidate, node.sources), *node.more_sources):
        if kind:
            yield f"{_PAD}# Corresponding {kind} candidate:"
        for source in sources:
            place = f"{source.path}({source.line})/{source.code}/" if old else source_text(source)
            yield f"{_PAD}# In file {place}"


def _type(operand: Operand | None, abstract: Abstract) -> str:
    """Format a type; it is null for a node that was inserted and not yet inferred."""
    is_none = isinstance(operand, ConstRef) and str(operand.value) == "None"
    unknown = isinstance(abstract, NoneType) and not is_none
    return "<null>" if unknown else type_text(abstract)


def source_text(source: SourceLine) -> str:
    """``train.py:16, 38~48/        x = self.conv1(x)/``"""
    lines = str(source.line) if source.end_line == source.line else f"{source.line}~{source.end_line}"
    columns = "" if source.column < 0 else f", {source.column}~{source.end_column}"
    return f"{source.path}:{lines}{columns}/{source.code}/"


# -- reading

_PARAM = re.compile(
    r"%para(\d+)_(.*?): <(?=Tensor|Ref|Tuple|List|\w{1,20}, NoShape)(.*?)>( : \[[][0-9, -]*\])?(  :  has_default)?"
    r"(?:  :  <(.*?)>)?(?:  :  IsWeight: (\w+))?$"
)
_LONGEST_PARAM = 1 << 13
_HEAD = re.compile(r"  (?:%(\d+)\((.*?)\) = )?(?P<label>[A-Za-z_]\w*)\(")
_FULL_NAME = re.compile(r"(?:# Fullname with scope|: full_name_with_scope): \((.*)\)$")
_SOURCE = re.compile(r"# In file (.*?):(\d{1,9})(?:~(\d{1,9}))?(?:, (\d{1,9})~(\d{1,9}))?/(.*)/$")
_CANDIDATE = re.compile(r"# Corresponding (code|forward node) candidate:")
_USE = re.compile(r"%para(\d+)_([^,()]*)")
_OLD_SOURCE = re.compile(r"# In file (.*?)\((\d{1,9})\)/(.*)/$")  # the older form of the documents [seed 001]


def parse(text: str, where: str = "ir") -> IrDoc:
    """Parse a kernel graph.

    Raises
    ------
    UnreadableError
        With the line, for text that is not a graph.
    """
    try:
        return _parse(text, where)
    except UnreadableError:
        raise
    except (ValueError, RecursionError) as error:  # numbers with thousands of digits, deeply nested types
        raise UnreadableError(f"not a graph: {error}", where=where, code="DS-IR-001") from None


def _parse(text: str, where: str) -> IrDoc:
    lines = text.split("\n")
    name = next((line[13:].lstrip("@") for line in lines if line.startswith("# IR entry:")), None)
    own = f"subgraph @{name}("  # functions that it calls come before it
    start = next((n for n, line in enumerate(lines) if line.startswith(own)), None)
    if name is None or start is None:
        raise UnreadableError("no '# IR entry' and 'subgraph' lines", where=where, code="DS-IR-001")
    params = tuple(_read_param(line, f"{where}:{n}") for n, line in enumerate(lines[:start], 1) if line[:5] == "%para")
    nodes = []
    block: list[str] = []
    for end, line in enumerate((*lines[start + 1 :], "}"), start + 1):
        if (line == "}" or _starts_node(line)) and block:
            nodes.append(_read_node(block, f"{where}:{end - len(block) + 1}"))
            block = []
        if line == "}":
            break
        block.append(line)
    params = _use_labels(params, "\n".join(lines[start:]))
    digits = name[len(name.rstrip("0123456789")) :]
    return IrDoc(
        name=name,
        graph_id=int(digits) if digits else -1,
        params=params,
        nodes=tuple(nodes),
        attrs=_read_attrs(lines),
        total_nodes=_number(lines, "Total number of nodes: ", where),
        total_cnodes=_number(lines, "Total number of cnodes: ", where),
        instance=_after(lines, f"subgraph instance: {name} : ") or "0x0",
        order=tuple(line.split(": ", 1)[1] for line in lines[end:] if re.match(r"#   \d+: ", line)),
    )


def _after(lines: list[str], prefix: str) -> str | None:
    return next((line[len(prefix) :] for line in lines if line.startswith(prefix)), None)


def _number(lines: list[str], prefix: str, where: str) -> int:
    text = _after(lines, prefix) or "0"
    if not text.strip().isdecimal():
        raise UnreadableError(f"{prefix}{text!r} is not a number", where=where, code="DS-IR-001")
    return int(text)


def _read_attrs(lines: list[str]) -> tuple[tuple[str, str], ...]:
    if "# Attrs:" not in lines:
        return ()
    first = lines.index("# Attrs:") + 1
    pairs = []
    for line in lines[first:]:
        if ": " not in line:
            break
        key, value = line.split(": ", 1)
        pairs.append((key, value))
    return tuple(pairs)


def _read_param(line: str, where: str) -> IrParam:
    match = _PARAM.match(line) if len(line) < _LONGEST_PARAM else None
    if match is None:
        raise UnreadableError("not a graph parameter", where=where, code="DS-IR-002")
    _, label, type_name, hint, default, device, weight = match.groups()
    abstract = parse_type(f"<{type_name}>", where)
    if type_name.startswith("Ref[") and not isinstance(abstract, TensorType):
        raise UnreadableError(f"{type_name!r} is not a parameter's type", where=where, code="DS-IR-002")
    ios = parse_kernel_ios(f"<{device}>", where) if device else ()
    return IrParam(
        name=_key(abstract) or label,
        label=label,
        use_label=label,
        abstract=abstract,
        device=ios[0] if ios else KernelIo(dtype="Unknown", format="DefaultFormat", shape=_dims(abstract)),
        is_weight=weight == "true",
        has_default=default is not None,
        shape_hint=hint is not None,
        more_devices=ios[1:],
    )


def _key(abstract: Abstract) -> str:
    return abstract.ref_key or "" if isinstance(abstract, TensorType) else ""


def _use_labels(params: tuple[IrParam, ...], body: str) -> tuple[IrParam, ...]:
    """Set the labels that operands use for parameters, if they differ from their own. [spec observed 1.8]"""
    used: dict[int, str] = {}
    for index, label in _USE.findall(body):
        used.setdefault(int(index) - 1, label)
    return tuple(
        replace(param, use_label=used[n], name=_key(param.abstract) or used[n])
        if n in used and not param.label.startswith(used[n] or "\0")
        else param
        for n, param in enumerate(params)
    )


def _starts_node(line: str) -> bool:
    return _HEAD.match(line) is not None


def _read_node(block: list[str], where: str) -> IrNode:
    """Parse a node; its first part may have several lines (tensor constants)."""
    first = next((n for n, line in enumerate(block) if line.startswith(_PAD) and line.lstrip()[:1] in ":#"), len(block))
    statement, rest = "\n".join(block[:first]), [line.strip() for line in block[first:]]
    match = _HEAD.match(statement)
    if match is None:
        raise UnreadableError("not a node", where=where, code="DS-IR-003")
    index, name, label = match.groups()
    close = _closing(statement, match.end("label"), where)
    tail = statement[close:]
    operand_types: tuple[Abstract, ...] = ()
    output: Abstract | None = None
    kernel: tuple[tuple[KernelIo, ...], tuple[KernelIo, ...]] | None = None
    objects: tuple[tuple[str, ...], str] | None = None
    full_name = ""
    groups: list[tuple[str, list[SourceLine]]] = [("", [])]
    for line in rest:
        if titled := _CANDIDATE.match(line):
            groups.append((titled.group(1), []))
        elif named := _FULL_NAME.search(line):
            full_name = named.group(1)
        elif line.startswith("# In file"):
            groups[-1][1].append(parse_source(line, where))
        elif line.startswith(": ("):
            left, _, right = line[2:].partition(") -> (")
            left, right = left[1:].removesuffix(")") if not right else left[1:], right[:-1]
            if "[const vector]" in line and re.search(r"x[A-Za-z0-9_]{1,60}\[const vector\]", line):
                kernel = (parse_kernel_ios(left, where), parse_kernel_ios(right, where))
            elif "<" in line:
                operand_types = parse_types(left, where)
                output = (parse_types(right, where) or (None,))[0] if right else None
            else:
                objects = (tuple(part for part in left.split(", ") if part), right)
    if not groups[0][1] and len(groups) > 1:
        del groups[0]
    operands = split_list(statement[match.end() : close])
    return IrNode(
        index=int(index) if index is not None else None,
        name=name or "",
        op_type=label.removeprefix("PrimFunc_"),
        prim_func=label.startswith("PrimFunc_"),
        operands=tuple(_read_operand(o, operand_types, n) for n, o in enumerate(operands)),
        operand_types=operand_types,
        output=output,
        full_name=full_name,
        instance_name=_braces(tail, "{instance name: ", where) or None,
        primitive_attrs=_read_pairs(_braces(tail, "primitive_attrs: {", where)),
        node_attrs=_read_pairs(_braces(tail, "cnode_attrs: {", where)),
        primal_attrs=_read_pairs(_braces(tail, "cnode_primal_attrs: {", where)),
        kernel_in=kernel[0] if kernel else None,
        kernel_out=kernel[1] if kernel else None,
        object_in=objects[0] if objects else None,
        object_out=objects[1] if objects else None,
        sources=tuple(groups[0][1]),
        candidate=groups[0][0],
        more_sources=tuple((kind, tuple(lines)) for kind, lines in groups[1:]),
        strategy=_strategy(tail, where),
    )


def _strategy(tail: str, where: str) -> str:
    """Return the strategy after the attributes of a node."""
    found = re.search(r"(?<!attrs:) \{in_strategy: ", tail)
    return _braces(tail[found.start() :], "{in_strategy: ", where) if found else ""


def _read_operand(text: str, types: tuple[Abstract, ...], position: int) -> Operand:
    if found := re.match(r"%para(\d+)_", text):
        return ParamRef(index=int(found.group(1)) - 1)
    if found := re.fullmatch(r"%(\d+)", text):
        return NodeRef(index=int(found.group(1)))
    abstract: Abstract = types[position] if position < len(types) else NoneType()
    return ConstRef(value=Text(text), abstract=abstract)


def parse_source(line: str, where: str) -> SourceLine:
    """Parse a source line, in the current form or the older form of the documents.

    Raises
    ------
    UnreadableError
        For any other line.

    Examples
    --------
    >>> parse_source("# In file net.py:12~13, 8~30/        x = self.fc(x)/", "ir").end_line
    13
    """
    if match := _SOURCE.match(line):
        path, first, last, left, right, code = match.groups()
        return SourceLine(
            path=path,
            line=int(first),
            end_line=int(last or first),
            column=int(left) if left else -1,
            end_column=int(right) if right else -1,
            code=code,
        )
    if match := _OLD_SOURCE.match(line):
        path, first, code = match.groups()
        return SourceLine(path=path, line=int(first), end_line=int(first), column=-1, end_column=-1, code=code)
    raise UnreadableError(f"not a source line: {line!r}", where=where, code="DS-IR-004")


def _closing(text: str, opening: int, where: str) -> int:
    """Return the position of the bracket that closes the one at `opening`; brackets in strings do not count."""
    depth = 0
    quoted = False
    for position in range(opening, len(text)):
        char = text[position]
        if char == '"':
            quoted = not quoted
        elif not quoted and char in "([{":
            depth += 1
        elif not quoted and char in ")]}":
            depth -= 1
            if depth == 0:
                return position
    raise UnreadableError("a bracket is never closed", where=where, code="DS-IR-005")


def _braces(text: str, opening: str, where: str) -> str:
    """Return the text in the braces that begin with `opening`."""
    if opening not in text:
        return ""
    start = text.index(opening)
    brace = start + opening.index("{")
    return text[start + len(opening) : _closing(text, brace, where)]


def _read_pairs(text: str) -> tuple[tuple[str, Text], ...]:
    pairs = (part.split(": ", 1) for part in split_list(text))
    return tuple((pair[0], Text(pair[1])) for pair in pairs if len(pair) == 2)
