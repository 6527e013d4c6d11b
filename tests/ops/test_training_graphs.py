"""Every kernel of the recorded training steps: shape rules and attributes against the IR, kernels against the dump."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import recorded
from ops.evaluator import abstract_of

from dumpsim.codecs.irtext import parse
from dumpsim.core.abstract import Abstract, ScalarType, TensorType, TupleType, tensors_of
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import ConstRef, IrNode
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.printed import attributes
from dumpsim.ops.table import find

TRAINING = ("lenet_train", "alexnet16_train", "mlp_layernorm_train", "resnet_block_train", "attention_block_train")
JOINING = {"AddN", "Concat"}  # their tuple operand is flat in a kernel graph
# one call of these is a sum of thousands of products in another order
TOLERANCE = {"BatchNormGrad": 2e-5, "BatchNorm": 2e-5, "LayerNormGrad": 2e-5}


@dataclass(frozen=True, slots=True)
class Call:
    """A node with its operands as the operator's definition takes them."""

    node: IrNode
    definition: OpDef
    abstracts: list[Abstract]
    values: list[Any]
    attrs: dict[str, Any]


def python_value(text: str) -> Any:
    """A constant or attribute as the IR spells it, as a Python value; a constant tensor as an array."""
    text = str(text)
    if text.startswith("Tensor("):
        found = re.match(r"Tensor\(shape=\[([\d, ]*)\], dtype=(\w+), value=(.*)\)$", text, re.S)
        assert found
        if "..." in found[3]:
            return None
        shape = [int(n) for n in found[1].split(",") if n.strip()]
        numbers = [
            float(n) if n not in ("True", "False") else n == "True" for n in re.findall(r"[^\s\[\],]+", found[3])
        ]
        return np.array(numbers, dtype(found[2]).numpy).reshape(shape)
    text = re.sub(r"Bool\(([01])\)", lambda m: str(m[1] == "1"), text)
    text = re.sub(r"F(?:32|64)\(([^()]*)\)", lambda m: repr(float(m[1])), text)
    text = re.sub(r"[IU]\d+\((-?\d+)\)", r"\1", text)
    text = re.sub(r"^\((-?\d+)\)$", r"(\1,)", text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@cache
def case(name: str) -> recorded.Case:
    return recorded.load(name)


@cache
def calls(name: str) -> tuple[Call, ...]:
    (text,) = case(name).graph_texts.values()
    return tuple(_calls(parse(text).nodes))


def _calls(nodes: tuple[IrNode, ...]) -> Iterator[Call]:
    for node in nodes:
        if node.kernel_out is None or node.op_type in ("Return",):
            continue
        definition = find(node.op_type)
        abstracts: list[Abstract] = []
        values: list[Any] = []
        for operand, kind in zip(node.operands, node.operand_types, strict=True):
            if isinstance(operand, ConstRef):
                value = python_value(operand.value)
                if isinstance(value, np.ndarray) and not node.prim_func and value.ndim == 1:
                    value = tuple(int(n) for n in value)  # sizes, which the compiler made tensors
                values.append(value)
                abstracts.append(
                    kind if value is None or (isinstance(kind, TensorType) and value is None) else abstract_of(value)
                )
                if isinstance(abstracts[-1], ScalarType) and isinstance(kind, ScalarType):
                    abstracts[-1] = ScalarType(dtype=kind.dtype, value=value)
            else:
                values.append(None)
                abstracts.append(kind)
        if node.op_type in JOINING:
            count = sum(isinstance(a, TensorType) for a in abstracts)
            abstracts[:count] = [TupleType(items=tuple(abstracts[:count]))]
        printed = {key: python_value(value) for key, value in node.primitive_attrs}
        attrs = {key: printed.get(key, default) for key, default in definition.attrs.items()}
        if node.op_type == "Cast":
            attrs = {}
        yield Call(node, definition, abstracts[: len(definition.operands)], values, attrs)


@pytest.mark.parametrize("name", TRAINING)
def test_shape_rules_give_the_types_of_the_ir(name: str) -> None:
    for call in calls(name):
        ours = tensors_of(call.definition.infer(call.abstracts, call.attrs))
        assert call.node.output is not None
        theirs = tensors_of(call.node.output)
        assert [(t.dtype, t.shape) for t in ours] == [(t.dtype, t.shape) for t in theirs], call.node.full_name


@pytest.mark.parametrize("name", TRAINING)
def test_printed_attributes_are_those_of_the_ir(name: str) -> None:
    for call in calls(name):
        backward = call.node.full_name.startswith("Gradients/") and not call.node.full_name.rpartition("/")[0].endswith(
            tuple(f"/{part}" for part in ("AddN",))
        )
        printed = {
            key: python_value(value)
            for key, value in call.node.primitive_attrs
            if not key.startswith("IsFeatureMap") and key not in ("side_effect_mem",)
        }
        if call.node.op_type == "Sub":  # named by the script's `-`, nameless by nn cells
            continue
        whole = call.node.output
        assert whole is not None
        assert call.node.output is not None
        given = [key for key in call.definition.attrs if key in printed]
        made = backward and call.node.op_type != "AddN"
        ours = attributes(call.definition, call.abstracts, whole, call.attrs, backward=made, given=given)
        ours.pop("side_effect_mem", None)
        shown = {key: _shown(value) for key, value in ours.items()}
        assert shown == {key: _shown(value) for key, value in printed.items()}, call.node.full_name


def _shown(value: Any) -> Any:
    """Names without regard to how they are bracketed in text, types by their IR name."""
    if hasattr(value, "short"):
        return value.short
    if isinstance(value, str) and value[:1] in "[(":
        return tuple(part.strip() for part in value[1:-1].split(","))
    if isinstance(value, list):
        return tuple(value)
    return value


@pytest.mark.parametrize("name", TRAINING)
def test_kernels_compute_what_was_dumped(name: str) -> None:
    files = _files(name)
    checked = set()
    for call in calls(name):
        if "Assign" in call.node.op_type or (call.definition.updates and call.node.op_type != "BatchNorm"):
            continue  # their operands were dumped after the write; see below
        scope = call.node.full_name.replace("/", "_")
        operands = _operands(call, scope, files, name)
        if operands is None:
            continue
        with np.errstate(all="ignore"):
            results = call.definition.kernel(*operands, **call.attrs)
        for index, ours in enumerate(results if isinstance(results, tuple) else (results,)):
            file = files.get((scope, "output", index))
            if file is None or not file.whole:
                continue
            theirs = case(name).value(file)
            if index in call.definition.unwritten.get("CPU", ()):
                assert not theirs.any()
                continue
            ours = np.asarray(ours).reshape(theirs.shape)  # views are dumped in their operand's shape
            size = float(np.abs(theirs).max(initial=0))
            tolerance = TOLERANCE.get(call.node.op_type, 5e-6)
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * size, err_msg=call.node.full_name)
            checked.add(call.node.op_type)
    assert len(checked) > 5


def _files(name: str) -> dict[tuple[str, str, int], recorded.File]:
    """Files by operator name, input or output, and slot."""
    return {(file.name.split(".")[1], *_slot(file.name)): file for file in case(name).files}


def _slot(file: str) -> tuple[str, int]:
    found = re.search(r"\.(input|output)\.(\d+)\.", file)
    assert found
    return found[1], int(found[2])


def _operands(call: Call, scope: str, files: dict[Any, Any], name: str) -> list[Any] | None:
    """What went into the kernel; None where only part of a tensor is recorded."""
    operands: list[Any] = []
    flat = call.node.op_type in JOINING
    for index, value in enumerate(call.values if flat else call.values[: len(call.definition.operands)]):
        file = files.get((scope, "input", index))
        if value is not None and not (file is not None and isinstance(value, np.ndarray)):
            operands.append(value)
            continue
        if file is None or not file.whole:
            return None
        kind = call.node.operand_types[index]
        shape = kind.shape if isinstance(kind, TensorType) else ()
        operands.append(
            np.array(case(name).value(file)).reshape(shape)
        )  # behind a view, files show the shape before it
    if flat:
        count = sum(isinstance(operand, np.ndarray) for operand in operands)
        operands[:count] = [tuple(operands[:count])]
    return operands


@pytest.mark.parametrize("name", TRAINING)
def test_optimizers_take_the_step_that_was_dumped(name: str) -> None:
    """The state before is known: weights, zeros, ones for SGD's stat. BatchNorm's moving statistics are among them."""
    files = _files(name)
    weights = case(name).weights
    steps = 0
    for call in calls(name):
        if not call.definition.updates or call.node.op_type.startswith("Assign"):
            continue
        after = _operands(call, call.node.full_name.replace("/", "_"), files, name)
        if after is None:
            continue
        before = [np.array(a) if isinstance(a, np.ndarray) else a for a in after]
        for index in call.definition.updates:
            reference = call.node.operand_types[index]
            assert isinstance(reference, TensorType)
            assert reference.ref_key is not None
            state = np.full_like(before[index], call.definition.operands[index] == "stat")
            before[index] = np.array(weights.get(reference.ref_key, state))
        call.definition.kernel(*before, **call.attrs)
        for index in call.definition.updates:
            np.testing.assert_allclose(before[index], after[index], rtol=2e-6, atol=2e-7, err_msg=call.node.full_name)
        steps += 1
    assert steps > 2
