"""Single conversions, as ``converters.json`` writes them: calls read, and our graphs described in the same words."""

import gzip
import json
import math
import operator
import re
from functools import cache
from pathlib import Path

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from dumpsim.frontends.torchair import _quantise  # noqa: F401 - registers operators
from dumpsim.frontends.torchair._convert import Converter
from dumpsim.frontends.torchair._ge import GE_NUMBERS, Ref
from dumpsim.frontends.torchair._views import Deferred

RECORDS = Path(__file__).parents[3] / "fixtures" / "torchair"


@cache
def recorded(name):
    """A record of the real converter."""
    return json.loads(gzip.decompress((RECORDS / f"{name}.json.gz").read_bytes()))


def agrees(row, case):
    """What differs between a case's conversion and its record: None, or ours."""
    try:
        text, order = described(*converted(row["op"], case["call"]))
    except Exception as error:  # the record has it, too
        line = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0].strip()}"
        known = case.get("error", "")[:120]
        # of an error with several arguments, FX changes the first one
        return None if (line[: len(known)] if "cut" in case else line[:120]) == known else line
    if "graph_noview" not in case:
        return None if (text, order) == (case.get("graph"), case.get("order")) else text
    plain, order = described(*converted(row["op"], case["call"], view=False))
    same = (text, plain, order) == (case["graph"], case["graph_noview"], case["order"])
    return None if same else plain


TYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f64": torch.float64,
    "i32": torch.int32,
    "i64": torch.int64,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
    "c64": torch.complex64,
    "c128": torch.complex128,
}
SHORT = {kind: name for name, kind in TYPES.items()}
NUMBERS = {number: SHORT.get(kind, number) for kind, number in GE_NUMBERS.items()}
DTYPES = ("dst_type", "dtype", "output_dtype", "y_dtype")
_TENSOR = re.compile(r"(bf16|[a-z]+\d*)\[([\d,]*)\]")


def pieces(text):
    """A list of arguments, cut at its commas."""
    found, depth, piece = [], 0, ""
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            found.append(piece.strip())
            piece = ""
        else:
            piece += letter
    return [*found, piece.strip()] if piece.strip() else found


def parsed(text):
    """An argument: a tensor, a number, a type, a list."""
    whole = _TENSOR.fullmatch(text)
    if whole:
        kind = TYPES[whole[1]]
        dims = [int(dim) for dim in whole[2].split(",") if dim]
        return torch.empty(dims, dtype=kind)  # a conversion depends on no elements
    if text.startswith("T("):
        value, _, kind = text[2:-1].rpartition(":")
        return torch.tensor(eval(value), dtype=TYPES[kind])
    if text == "contiguous_format":
        return torch.contiguous_format
    if "[[" in text and not text.startswith("["):
        return torch.randint(0, 2, ([],))
    if text.startswith("["):
        return [parsed(one) for one in pieces(text[1:-1])]
    if text in TYPES:
        return TYPES[text]
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def call_of(text):
    """Positional and keyword arguments of a case."""
    arguments, keywords = [], {}
    for piece in pieces(text):
        name = re.match(r"([a-zA-Z_0-9]+)=(.*)", piece)
        if name and not piece.startswith(("[", "T(")):
            value = "cpu" if name[2].startswith("npu") else parsed(name[2])
            keywords[name[1]] = value
        else:
            arguments.append(parsed(piece))
    return arguments, keywords


def resolved(name):
    """What a row's name calls."""
    if name.startswith(("aten", "prims", "higher_order", "npu")):
        found = torch.ops
        for part in name.split("."):
            found = getattr(found, part)
        return found
    return eval(name, {"torch": torch, "operator": operator, "math": math, "sym_sqrt": torch._sym_sqrt})


# results of operators that have no kernel without values
KNOWN = {
    "aten.batch_norm_backward_elemt.default": lambda grad, *others: grad,
    "aten.batch_norm_backward_reduce.default": lambda grad, x, mean, *others: (mean, mean, mean, mean),
    "aten.batch_norm_elemt.default": lambda x, *others: x,
    "aten.matmul_backward.default": lambda grad, left, right, mask: (left, right),
    "aten.native_dropout_backward.default": lambda grad, mask, scale: grad,
}


def plain(what):
    """The lists of FX as Python's."""
    if isinstance(what, (list, tuple)):
        return type(what)(plain(one) for one in what) if type(what) is tuple else [plain(one) for one in what]
    return {key: plain(one) for key, one in what.items()} if isinstance(what, dict) else what


def converted(name, text, *, view=True, strict=True):
    """Convert a case; returns the graph and what the operator's results are."""
    function = resolved(name)
    arguments, keywords = call_of(text)
    schema = getattr(function, "_schema", None)
    names = [one.name for one in schema.arguments] if schema else ["self", "other", "c", "d"]
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    graph, examples, used = fx.Graph(), [], []

    def placed(value, label):
        if isinstance(value, torch.Tensor):
            with mode:
                fake = mode.from_tensor(value, static_shapes=True)
            node = graph.placeholder(label if label not in used else f"{label}_{len(used)}")
            node.name = label  # words of Python too
            used.append(label)
            node.meta["val"] = fake
            examples.append(fake)
            return node
        if isinstance(value, list):
            return [placed(one, f"{label}{at}") for at, one in enumerate(value)]
        return value

    args = [placed(one, names[at] if at < len(names) else f"a{at}") for at, one in enumerate(arguments)]
    kwargs = {key: placed(one, key) for key, one in keywords.items()}
    node = graph.call_function(function, tuple(args), kwargs)
    with mode:
        fakes, named = plain(fx.map_arg((node.args, node.kwargs), lambda one: one.meta["val"]))
        node.meta["val"] = KNOWN[name](*fakes) if name in KNOWN else function(*fakes, **named)
        graph.output((node,))
        converter = Converter("graph_1", view_optimize=view, strict=strict)
        converter.capture(graph)
        made = converter.graph
    results = next(call for call in made.calls if call.op == "call_function").results
    return made, results


def _number(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _const(node):
    kind = SHORT.get(node.value.dtype, str(node.value.dtype))
    values = node.value.tolist()
    if node.value.dim() == 0:
        return f"{_number(values)}:{kind}"
    if node.value.numel() > 16:
        return f"<{kind}{list(node.value.shape)}>"
    return "[" + ",".join(_number(one) for one in node.value.reshape(-1).tolist()) + "]:" + kind


def _attribute(key, value):
    if isinstance(value, torch.dtype):
        value = GE_NUMBERS[value]
        value = NUMBERS.get(value, value) if key in DTYPES else value
    if isinstance(value, float):
        value = f"{torch.tensor(value, dtype=torch.float32).item():.6g}"
    return f"{key}={value}".replace(" ", "")


def described(made, results):
    """The graph in the words of the record."""
    consts = {node.name: _const(node) for node in made.nodes if node.type == "Const"}
    data = {node.name for node in made.nodes if node.type == "Data"}
    found, last = [], None
    for node in made.nodes:
        if node.type in ("Data", "Const", "NetOutput"):
            continue
        inputs = []
        for one in node.inputs:
            if one is None:
                inputs.append("-")
            else:
                inputs.append(consts.get(one.node.name) or (one.node.name if one.index == 0 else str(one)))
        while inputs and inputs[-1] == "-":
            inputs.pop()
        attrs = []
        for key, value in sorted(node.attrs.items()):
            if key.startswith("_"):
                continue
            if key in ("input_layout_info", "output_layout_info"):
                attrs.append(f"{key.split('_')[0]}_layout=" + ",".join(f"{a}:{b}" for a, b in value.items()))
            else:
                attrs.append(_attribute(key, value))
        last = node.name
        found.append(f"{node.name}({', '.join(inputs)})" + ("{" + ", ".join(attrs) + "}" if attrs else ""))

    def shown(one):
        if isinstance(one, Deferred):
            return f"{_shown(one.source)} (deferred view)"
        return _shown(one)

    def _shown(one):
        if not isinstance(one, Ref):
            return f"py {one}" if one is not None else "None"
        name = one.node.name
        text = name if name in data else consts.get(name, name)
        return text + (f":{one.index}" if one.index else "")

    named = [shown(one) for one in results]
    if not (len(named) == 1 and named[0] == last):
        found.append("=> " + ", ".join(named))
    order = [node.name for node in made.nodes if node.type not in ("Data", "NetOutput")]
    return "; ".join(found), order
