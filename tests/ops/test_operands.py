"""What every operator asks of its operands and what it does to them, shown with its first case."""

import inspect
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from ops.cases import CASES, Case, arrays
from ops.evaluator import Builder, Value, abstract_of, content_of, operands_of

from dumpsim.core.abstract import NoneType, StringType, TensorType, tensors_of
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


def test_kernels_take_a_counter_or_a_device_if_their_operators_say_so() -> None:
    for name in names():
        definition = find(name)
        own = isinstance(definition.kernel, FunctionType)  # not a function of numpy
        parameters = inspect.signature(definition.kernel).parameters if own else {}
        assert definition.random is ("counter" in parameters), name
        assert definition.device is ("device" in parameters), name


class _Choosing(Builder):
    chosen = False

    def choose(self, condition: Any, one: Any, other: Any) -> Any:
        self.chosen = True
        return super().choose(condition, one, other)


@pytest.mark.parametrize("case", [case for case in CALLS if find(case.op).grad is not None], ids=ids)
def test_a_gradient_rule_branches_if_its_operator_says_so(case: Case) -> None:
    definition, operands = find(case.op), completed(case)
    if not any(isinstance(operand, Value) for operand in operands) or case.grad == "none":
        assert not definition.branches
        return
    builder = _Choosing()
    out = builder.emit(case.op, *operands, **case.attrs)
    dout = Value(out.abstract, tuple(map(np.ones_like, out.content)) if isinstance(out.content, tuple)
                 else np.ones_like(out.content))  # fmt: skip
    builder.gradients(case, operands, out, dout)
    assert builder.chosen is definition.branches


FORMATS = {4: ("NC1HWC0", "FRACTAL_Z"), 5: ("NDC1HWC0", "FRACTAL_Z_3D")}  # of features and of weights


@pytest.mark.parametrize("case", [case for case in CALLS if find(case.op).formats], ids=ids)
def test_private_formats_are_those_of_every_image_and_volume(case: Case) -> None:
    definition, operands = find(case.op), completed(case)
    tensors = {at: o.abstract for at, o in enumerate(operands) if isinstance(o, Value)}
    output = definition.infer([abstract_of(o) for o in operands], {**definition.attrs, **case.attrs})
    results = dict(enumerate(tensors_of(output)))
    if "MatMul" in case.op:
        assert definition.formats == {"in": dict.fromkeys(tensors, "FRACTAL_NZ"), "out": {0: "FRACTAL_NZ"}}
        return
    weights = {at for at in tensors if definition.operands[at] in ("w", "weight", "filter")}
    wanted = {at: FORMATS[len(t.shape)][at in weights] for at, t in tensors.items() if len(t.shape) in FORMATS}
    kernel = case.op.endswith("BackpropFilter")
    found = {at: FORMATS[len(t.shape)][kernel] for at, t in results.items() if len(t.shape) in FORMATS}
    assert definition.formats == {"in": wanted, "out": found}


@pytest.mark.parametrize(
    ("op", "shapes", "numbers", "attrs"),
    [
        ("MatMul", ((2, 3), (3, 4)), (False, False), {}),
        ("MatMul", ((3, 2), (4, 3)), (True, True), {}),
        ("BatchMatMul", ((5, 1, 2, 3), (6, 3, 4)), (False, False), {}),
        ("BatchMatMul", ((5, 3, 2), (5, 3, 4)), (True, False), {}),
        ("Conv2D", ((2, 3, 8, 7), (4, 3, 3, 2)), (), {"out_channel": 4, "kernel_size": (3, 2)}),
        ("Conv2D", ((2, 4, 8, 7), (6, 2, 3, 3)), (), {"out_channel": 6, "kernel_size": 3, "group": 2}),
        ("Conv2DBackpropInput", ((2, 4, 6, 6), (4, 3, 3, 2)), ((2, 3, 8, 7),),
         {"out_channel": 4, "kernel_size": (3, 2)}),
        ("Conv2DBackpropInput", ((2, 6, 6, 5), (6, 2, 3, 3)), ((2, 4, 8, 7),),
         {"out_channel": 6, "kernel_size": 3, "group": 2}),
        ("Conv2DBackpropFilter", ((2, 4, 6, 6), (2, 3, 8, 7)), ((4, 3, 3, 2),),
         {"out_channel": 4, "kernel_size": (3, 2)}),
        ("Conv2DBackpropFilter", ((2, 6, 6, 5), (2, 4, 8, 7)), ((6, 2, 3, 3),),
         {"out_channel": 6, "kernel_size": 3, "group": 2}),
    ],
)  # fmt: skip
def test_the_operations_of_a_product_are_twice_the_sum_of_a_product_of_ones(
    op: str, shapes: Any, numbers: Any, attrs: Any
) -> None:
    definition = find(op)
    tensors = [np.ones(shape, np.float32) for shape in shapes]
    settings = {**definition.attrs, **attrs}
    assert definition.flops is not None
    found = definition.flops([abstract_of(one) for one in (*tensors, *numbers)], settings)
    assert found == 2 * definition.kernel(*tensors, *numbers, **settings).sum()


@pytest.mark.parametrize("name", [name for name in names() if find(name).largest is not None])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2), (5,)])
def test_the_largest_result_is_that_of_elements_that_all_count(name: str, shape: tuple[int, ...]) -> None:
    definition, x = find(name), np.arange(1, 1 + np.prod(shape)).reshape(shape)
    operands = (x, np.ones(shape, np.bool_)) if name == "MaskedSelect" else (x,)
    assert definition.largest is not None
    result = definition.kernel(*operands)
    result = result[0] if isinstance(result, tuple) else result
    assert definition.largest([one.shape for one in operands]) == result.shape


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
