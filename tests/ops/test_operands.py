"""What every operator asks of its operands and what it does to them, shown with its first case."""

import inspect
from typing import Any

import numpy as np
import pytest
from ops.cases import CASES, Case, arrays
from ops.evaluator import Builder, Value, abstract_of, content_of, operands_of

from dumpsim.core.abstract import NoneType, StringType, TensorType
from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError
from dumpsim.ops.table import find, names

CALLS = list({case.op: case for case in reversed(CASES)}.values())
# operands that may be None
OPTIONAL = {
    ("BCEWithLogitsLoss", "weight"), ("BCEWithLogitsLoss", "posWeight"), ("BinaryCrossEntropy", "weight"),
    ("BinaryCrossEntropyGrad", "weight"), ("Dense", "bias"),
}  # fmt: skip
# operators that only the compiler, the library or a gradient rule emits, with operands that it has made or checked
EMITTED = {
    *(op for op in (case.op for case in CASES) if op.startswith("Inplace") or op.endswith(("Grad", "GradV2"))),
    "Scatter", "ScatterValue", "MaskedFillScalar", "WeightQuantBatchMatmul", "Addcmul", "Addcdiv",
}  # fmt: skip


def ids(case: Case) -> str:
    return case.op


def completed(case: Case) -> list[Any]:
    """The operands of a case, with those that it leaves out."""
    definition, operands = find(case.op), operands_of(case, arrays(case))
    return operands + list(definition.defaults[len(definition.defaults) - len(definition.operands) + len(operands) :])


@pytest.mark.parametrize("case", [case for case in CALLS if case.op not in EMITTED], ids=ids)
def test_what_is_no_tensor_is_refused(case: Case) -> None:
    definition, operands = find(case.op), completed(case)
    attrs, abstracts = {**definition.attrs, **case.attrs}, [abstract_of(operand) for operand in operands]
    definition.infer(abstracts, attrs)
    for at, operand in enumerate(operands):
        name = definition.operands[min(at, len(definition.operands) - 1)]
        if isinstance(operand, Value) and (case.op, name) not in OPTIONAL:
            for wrong in (NoneType(), StringType(value="text")):
                with pytest.raises(ScriptTypeError):
                    definition.infer([*abstracts[:at], wrong, *abstracts[at + 1 :]], attrs)


@pytest.mark.parametrize("case", CALLS, ids=ids)
def test_kernels_write_the_operands_that_their_operator_names(case: Case) -> None:
    definition, operands = find(case.op), completed(case)
    given = [content_of(operand) for operand in operands]
    before = [np.array(one) if isinstance(one, np.ndarray) else one for one in given]
    if not definition.updates:
        for one in given:
            if isinstance(one, np.ndarray):
                one.flags.writeable = False  # writing raises an error
    result = definition.kernel(*given, **{**definition.attrs, **case.attrs})
    results = result if isinstance(result, tuple) else (result,)
    for at, (one, was) in enumerate(zip(given, before, strict=True)):
        if isinstance(one, np.ndarray):
            assert np.array_equal(one, was, equal_nan=one.dtype.kind == "f") is (at not in definition.updates)
    for slot, at in definition.alias.items():
        assert np.shares_memory(results[slot], given[at])


@pytest.mark.parametrize("name", names())
def test_a_kernel_has_the_defaults_of_its_operator(name: str) -> None:
    definition = find(name)
    kernel = inspect.unwrap(definition.kernel)
    if not inspect.isfunction(kernel) or not kernel.__module__.startswith("dumpsim."):
        return
    optional = len(definition.operands) - len(definition.defaults)
    for at, parameter in enumerate(inspect.signature(kernel).parameters.values()):
        is_operand = parameter.kind is not parameter.KEYWORD_ONLY and optional <= at < len(definition.operands)
        if is_operand or parameter.name in definition.attrs:
            known = definition.defaults[at - optional] if is_operand else definition.attrs[parameter.name]
            if parameter.default is not parameter.empty:
                assert (type(parameter.default), parameter.default) == (type(known), known), parameter.name


AXES = ("axis", "dim", "dim0", "dim1", "begin_norm_axis", "begin_params_axis")


# their axes come from the operators whose gradients they are; and sizes of parts that fit one axis alone
GIVEN = (
    "GatherDGradV2", "GluGrad", "SoftmaxBackward", "Concat", "SplitWithSize", "Scatter",
    "ScatterValue", "TensorScatterElements", "SelectExtView", "LogSoftmaxExt",
)  # fmt: skip


@pytest.mark.parametrize(
    "case", [c for c in CALLS if set(AXES) & set(find(c.op).operands) and c.op not in GIVEN], ids=ids
)
def test_an_axis_lies_in_its_tensor(case: Case) -> None:
    """The shape rule refuses an axis beyond the rank, and takes every other one that the kernel takes."""
    definition, operands = find(case.op), completed(case)
    attrs = {**definition.attrs, **case.attrs}
    rank = max(len(o.abstract.shape) for o in operands if isinstance(o, Value) and isinstance(o.abstract, TensorType))
    for at, operand in enumerate(operands):
        if definition.operands[min(at, len(definition.operands) - 1)] in AXES and type(operand) is int:
            for axis in (-rank - 2, rank + 1):
                with pytest.raises(ScriptValueError):
                    definition.infer([abstract_of(o) for o in [*operands[:at], axis, *operands[at + 1 :]]], attrs)
            for axis in range(-rank - 1, rank + 1):
                given = [*operands[:at], axis, *operands[at + 1 :]]
                try:
                    definition.infer([abstract_of(o) for o in given], attrs)
                except DumpsimError:
                    continue
                Builder().emit(case.op, *given, **case.attrs)  # compares the kernel with the shape rule
