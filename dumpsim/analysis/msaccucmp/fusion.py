"""The compiled model as JSON: which operators of the original model each operator stands for. [spec ge 4.6]

Of each operator: ``name``, ``type``, ``input`` (``"producer:output"``), ``attr`` with ``_datadump_original_op_names``,
and of each of its outputs ``_datadump_origin_name``, ``_datadump_origin_output_index`` and
``_datadump_origin_format``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.core.regular import read_bytes

__all__ = ["Operator", "Origin", "Rules", "load", "selection"]

_NAMES = "_datadump_original_op_names"
_NAME = "_datadump_origin_name"
_INDEX = "_datadump_origin_output_index"
_FORMAT = "_datadump_origin_format"
_MAX_FILE = 1 << 30  # bytes
_DEPTH = 64  # operators that the compiler put in one after the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """An output of the original model: its operator, its number, its layout (empty if the model does not tell)."""

    op_name: str
    index: int
    format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator of the compiled model.

    Attributes
    ----------
    name, type : str
    inputs : tuple of (str, int)
        Producers and the numbers of their outputs.
    originals : tuple of str
        Operators of the original model; empty for one that the compiler put in.
    outputs : tuple of Origin or None
        Where each output comes from, None where the model does not tell.
    """

    name: str
    type: str
    inputs: tuple[tuple[str, int], ...]
    originals: tuple[str, ...]
    outputs: tuple[Origin | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The operators in the model's order."""

    operators: tuple[Operator, ...]
    by_name: Mapping[str, Operator]

    def of_output(self, operator: Operator, index: int, depth: int = 0) -> Origin | None:
        """What an output is compared with; that of one put in is what it reads."""
        if not operator.originals:
            return self.of_input(operator, 0, depth + 1)
        if index < len(operator.outputs) and (origin := operator.outputs[index]) is not None:
            return origin
        return Origin(op_name=operator.originals[-1], index=index)

    def of_input(self, operator: Operator, index: int, depth: int = 0) -> Origin | None:
        """What an input is compared with: the output that it reads."""
        if index >= len(operator.inputs) or depth > _DEPTH:
            return None
        name, output = operator.inputs[index]
        producer = self.by_name.get(name)
        return None if producer is None else self.of_output(producer, output, depth)


def load(path: str) -> Rules:
    """Read a model.

    Raises
    ------
    ToolError
        Exit code 13 for what is not such a JSON file.
    """
    try:
        document = json.loads(read_bytes(path, _MAX_FILE, follow=True))
        operators = tuple(_operator(op) for graph in document["graph"] for op in graph.get("op", ()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"There is no compiled model in \"'{path}'\": {type(error).__name__} {error}"
        raise ToolError(Status.PARSE_JSON, what) from error
    return Rules(operators=operators, by_name={op.name: op for op in operators})


def _operator(op: Mapping[str, Any]) -> Operator:
    attributes = dict(_attributes(op))
    name = str(op["name"])
    originals: tuple[str, ...] = (name,)
    if _NAMES in attributes:
        originals = tuple(str(one) for one in attributes[_NAMES].get("list", {}).get("s", ()) if one)
    inputs = []
    for source in op.get("input", ()):
        producer, _, output = str(source).rpartition(":")
        if producer and output.isdigit():  # control edges have the number -1
            inputs.append((producer, int(output)))
    outputs = tuple(_origin(desc, index, originals) for index, desc in enumerate(op.get("output_desc", ())))
    return Operator(name=name, type=str(op.get("type", "")), inputs=tuple(inputs), originals=originals, outputs=outputs)


def _attributes(holder: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for pair in holder.get("attr", ()):
        yield pair["key"], pair.get("value", {})


def _origin(desc: Mapping[str, Any], index: int, originals: tuple[str, ...]) -> Origin | None:
    attributes = dict(_attributes(desc))
    name = str(attributes.get(_NAME, {}).get("s", "")) or (originals[-1] if originals else "")
    if not name:
        return None
    return Origin(
        op_name=name,
        index=int(attributes.get(_INDEX, {}).get("i", index)),
        format=str(attributes.get(_FORMAT, {}).get("s", "")),
    )


def selection(rules: Rules, range_text: str | None, select_text: str | None) -> list[int]:
    """Numbers of the operators that -r or -s choose; all without them. Number 0 can not be chosen.

    Raises
    ------
    ToolError
        Exit code 6 for texts of another form, 12 for a range out of bounds.
    """
    last = len(rules.operators) - 1
    if select_text is not None:
        chosen = [int(word) for word in _digits(select_text, "-s")]
        for number in chosen:
            if not 1 <= number <= last:
                raise ToolError(Status.INVALID_PARAM, f"Index [{number}] out of range [1,{last}].")
        return sorted(set(chosen))
    if range_text is None:
        return list(range(last + 1))
    words = [word.strip() for word in range_text.split(",")]
    if len(words) != 3 or any(word and not word.lstrip("-").isdigit() for word in words):
        raise ToolError(Status.INVALID_PARAM, f'The range "{range_text}" is invalid. It has the form start,end,step.')
    start, end, step = (int(word) if word else default for word, default in zip(words, (1, -1, 1), strict=True))
    end = last if end == -1 else end
    bounds = (("start", start, 1, last), ("end", end, start, last), ("step", step, 1, last))
    for name, value, low, high in bounds:
        if not low <= value <= high:
            what = f"The {name} index ({value}) is out of range [{low}, {high}]. Please check the index."
            raise ToolError(Status.INDEX_OUT_OF_BOUNDS, what)
    return list(range(start, end + 1, step))


def _digits(text: str, flag: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() for word in words):
        raise ToolError(Status.INVALID_PARAM, f'The argument {flag} "{text}" is invalid. It has the form 1,2,5.')
    return words
