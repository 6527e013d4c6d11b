"""Settings that a caller leaves out: in real MindSpore 2.10, and in a kernel that is called with fewer."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from ops.cases import CASES, arrays
from ops.evaluator import abstract_of, content_of, operands_of

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.ops import table
from dumpsim.ops.table import find

NAMES = sorted(name for names in table.MODULES.values() for name in names.split())


def stated(definition):
    """Settings with the values that they have where nobody gives another."""
    first = len(definition.operands) - len(definition.defaults)
    return dict(zip(definition.operands[first:], definition.defaults, strict=True)) | dict(definition.attrs)


RECORDED = json.loads((Path(__file__).parents[2] / "fixtures" / "ops" / "defaults.json").read_text("utf-8"))
CALLS = {case.op: case for case in reversed(CASES)}  # the first case of each operator
# names of settings whose values are numbers here, in the order of the numbers [2.10 observed]
WORDS = {
    "pad_mode": ("pad", "same", "valid"),
    "data_format": ("nchw", "nhwc"),
    "format": ("nchw", "nhwc"),
    "reduction": ("sum", "mean", "none"),
    "indexing": ("ij", "xy"),
    "input_layout": ("bsh", "bnsd"),
    "reduce": ("none", "add"),
}
# settings that a caller of the vendor's class must give or that its constructor converts, and those of another name
OWN = {
    "MaxPoolWithArgmaxV2": ("strides", "pads"),
    "MaxPoolGradWithArgmaxV2": ("strides", "pads"),
    "AvgPool3DGrad": ("pad_mode",),  # the rule gives it that of the operator
    "KLDivLossGrad": ("reduction",),  # the rule divides by itself
    "AdamWeightDecay": ("use_locking",),
}


def is_same(name, ours, theirs):
    """Whether a value means the vendor's: words are numbers, lists are tuples, and one number may stand for several."""
    if isinstance(theirs, str):
        return theirs.lower() == (ours.lower() if isinstance(ours, str) else WORDS[name][ours])
    if theirs is None or theirs == []:
        return ours in (None, ())
    if isinstance(ours, tuple):
        return set(ours) == (set(theirs) if isinstance(theirs, list) else {theirs})
    return ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool)


def takes(definition, values):
    """Check that a kernel called with fewer operands and settings computes with those of its operator."""
    try:
        parameters = inspect.signature(definition.kernel).parameters.values()
    except (TypeError, ValueError):  # a function that is written in C
        return
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    for parameter in parameters:
        at = places.index(parameter) if parameter in places else len(definition.operands)
        key = definition.operands[at] if at < len(definition.operands) else parameter.name
        if parameter.default is parameter.empty or values.get(key) is None:
            continue
        value = values[key]
        if isinstance(value, tuple) and not isinstance(parameter.default, tuple):
            (value,) = value  # one axis
        assert (parameter.default, type(parameter.default)) == (value, type(value)), key


def number_types(output):
    if isinstance(output, TupleType):
        return {kind for item in output.items for kind in number_types(item)}
    return {output.dtype.kind} if isinstance(output, TensorType) else {"other"}


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_is_declared_as_in_mindspore(name):
    """Its kind, and the values of what is left out: in the operator, its kernel and its shape rule."""
    definition = find(name)
    recorded = RECORDED.get(name, {"prim_func": False, "defaults": {}})
    assert definition.prim_func is recorded["prim_func"]
    values = stated(definition)
    takes(definition, values)
    theirs = {key: value for key, value in recorded["defaults"].items() if key not in OWN.get(name, ())}
    different = {key for key in theirs if key in values and not is_same(key, values[key], theirs[key])}
    assert not different
    if name in CALLS and name != "WeightQuantBatchMatmul":  # its case is of float32, for differences
        operands = operands_of(CALLS[name], arrays(CALLS[name]))
        operands += definition.defaults[len(definition.defaults) - len(definition.operands) + len(operands) :]
        abstracts, attrs = [abstract_of(operand) for operand in operands], {**definition.attrs, **CALLS[name].attrs}
        output = definition.infer(abstracts, attrs)
        assert isinstance(output, Abstract)
        if definition.grad is None and number_types(output) <= {"bool", "int", "uint"}:
            assert definition.stop  # whole numbers have no derivative: it is zero, and no error


# the vendor's rules give zeros here: where numbers jump, and for the values of a table or a scale [2.10 observed]
ZERO_BY_RULE = {"RemainderScalarTensor", "OneHot", "LinSpace"}


def moved(operand, factor):
    """An operand with real numbers that are a little larger."""
    if isinstance(operand, tuple):
        return tuple(moved(one, factor) for one in operand)
    is_real = isinstance(operand, np.ndarray) and operand.dtype.kind == "f"
    return np.asarray(operand * factor, operand.dtype) if is_real else operand


@pytest.mark.parametrize("name", [name for name in CALLS if find(name).grad is None and not find(name).updates])
def test_gradients_stop_where_a_small_change_changes_nothing(name):
    definition, case = find(name), CALLS[name]
    operands = [content_of(operand) for operand in operands_of(case, arrays(case))]
    operands += definition.defaults[len(definition.defaults) - len(definition.operands) + len(operands) :]
    with np.errstate(all="ignore"):
        results = [
            definition.kernel(*[moved(operand, factor) for operand in operands], **{**definition.attrs, **case.attrs})
            for factor in (1, 1.0001)
        ]
    one, other = (result if isinstance(result, tuple) else (result,) for result in results)
    same = all(np.array_equal(*pair, equal_nan=pair[0].dtype.kind == "f") for pair in zip(one, other, strict=True))
    assert definition.stop is (same or name in ZERO_BY_RULE)


def test_a_step_of_an_optimizer_has_no_gradient():
    """MindSpore refuses it: the primitive's bprop is not defined. [2.10 observed]"""
    steps = [name for name in NAMES if name.startswith("Apply") or name in ("Adam", "AdamWeightDecay", "SGD")]
    assert len(steps) > 10
    for name in steps:
        assert not find(name).stop
        assert find(name).grad is None


# settings that a caller of MindSpore's class must give, or that only the compiler gives: a group of one, the first
# rank, nobody, nothing to add, a kernel of one element, every element, no seed
NEUTRAL = {
    0: "rank_id root_rank dest_rank _rank src_rank sr_tag split_dim concat_dim seed0 seed1 seq_dim size output_num"
    " use_locking",
    1: "rank_size split_count batch_size groups head_num sens",
}
NEUTRAL_TUPLES = {0: "send_lens recv_lens pad_list", 1: "kernel_size strides dilations output_size",
                  -1: "send_rank_ids recv_rank_ids"}  # fmt: skip
NAMED = {
    "ApplyAdagradV2": {"epsilon": 1e-6}, "LayerNormGrad": {"epsilon": 1e-7}, "GluGrad": {"axis": -1},
    "IndexAdd": {"axis": 0}, "LpNorm": {"axis": 0}, "DepthToSpace": {"block_size": 2},
    "SpaceToDepth": {"block_size": 2}, "Range": {"max_length": 1_000_000},
    "MaxPoolWithArgmaxV2": {"argmax_type": 4, "pads": (1, 1, 0, 0)},
    "MaxPoolGradWithArgmaxV2": {"argmax_type": 4, "pads": (1, 1, 0, 0)},
}  # fmt: skip


def test_settings_without_a_default_in_mindspore_change_nothing():
    scalars = {name: value for value, names in NEUTRAL.items() for name in names.split()}
    tuples = {name: value for value, names in NEUTRAL_TUPLES.items() for name in names.split()}
    for name in NAMES:
        recorded = RECORDED.get(name, {"defaults": {}})["defaults"]
        for key, value in stated(find(name)).items():
            if (key in recorded and key not in OWN.get(name, ())) or value in (None, ()) or isinstance(value, str):
                continue
            neutral = (tuples.get(key),) * len(value) if isinstance(value, tuple) else scalars.get(key)
            assert value == NAMED.get(name, {}).get(key, neutral), (name, key)


def test_operands_of_one_number_type_are_tensors_side_by_side():
    """All tensors of the operator; a condition before them has its own type."""
    for name in NAMES:
        definition = find(name)
        first = 1 if name == "Select" else 0
        tensors = range(first, len(definition.operands) - len(definition.defaults))
        for chosen in (definition.promotes, definition.mixed):
            assert chosen in ((), tuple(tensors)[: len(chosen)]), name
            assert len(chosen) != 1, name


def test_side_effects_that_a_primitive_shows_are_there():
    for name in NAMES:
        shown = {key: value for key, value in find(name).fixed.items() if key.startswith("side_effect_")}
        assert all(value == 1 for value in shown.values()), name
