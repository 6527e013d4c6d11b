"""Operators that write their operands, against recorded steps of real MindSpore 2.10; and operators without a case."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ops.cases import CASES
from ops.evaluator import Builder, Value, abstract_of

from dumpsim.core.abstract import Abstract, MonadType, TensorType, TupleType
from dumpsim.core.dtype import dtype, from_numpy
from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.ops.table import find, names
from tests.inprocess import fresh

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "ops" / "steps.npz"

# operands that are numbers, by name; attributes
STEPS: dict[str, tuple[dict[str, float], dict[str, Any]]] = {
    "ApplyMomentum": ({"learning_rate": 0.1, "momentum": 0.9}, {}),
    "SGD": ({"learning_rate": 0.1, "momentum": 0.9}, {}),
    "SGD.damped": ({"learning_rate": 0.1, "momentum": 0.9}, {"dampening": 0.3, "weight_decay": 0.1}),
    "SGD.nesterov": ({"learning_rate": 0.1, "momentum": 0.9}, {"nesterov": True}),
    "SGD.plain": ({"learning_rate": 0.1, "momentum": 0.0}, {"weight_decay": 0.1}),
    "Adam": (
        {"beta1_power": 0.9, "beta2_power": 0.99, "lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6},
        {},
    ),
    "Adam.nesterov": (
        {"beta1_power": 0.9, "beta2_power": 0.99, "lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6},
        {"use_nesterov": True},
    ),
    "ApplyRMSProp": ({"learning_rate": 0.1, "rho": 0.9, "momentum": 0.8, "epsilon": 1e-6}, {}),
    "ApplyCenteredRMSProp": ({"learning_rate": 0.1, "rho": 0.9, "momentum": 0.8, "epsilon": 1e-2}, {}),
    "ApplyAdagrad": ({"lr": 0.1}, {}),
    "ApplyAdagradV2": ({"lr": 0.1}, {"epsilon": 1e-3}),
    "ApplyAdadelta": ({"lr": 0.1, "rho": 0.9, "epsilon": 1e-6}, {}),
    "ApplyFtrl": ({"lr": 0.1, "l1": 0.0, "l2": 0.2, "lr_power": -0.5}, {}),
    "ApplyAdaMax": ({"beta1_power": 0.9, "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6}, {}),
    "ApplyGradientDescent": ({"alpha": 0.1}, {}),
    "ApplyProximalGradientDescent": ({"alpha": 0.1, "l1": 0.3, "l2": 0.2}, {}),
    "ApplyProximalAdagrad": ({"lr": 0.1, "l1": 0.3, "l2": 0.2}, {}),
    "ApplyPowerSign": ({"lr": 0.1, "logbase": 1.5, "sign_decay": 0.8, "beta": 0.9}, {}),
    "ApplyAddSign": ({"lr": 0.1, "alpha": 1.5, "sign_decay": 0.8, "beta": 0.9}, {}),
    "ApplyAdamWithAmsgrad": (
        {"beta1_power": 0.9, "beta2_power": 0.99, "lr": 0.1},
        {"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6},
    ),
    "AdamWeightDecay": ({"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6, "decay": 0.1}, {}),
}


@cache
def recorded() -> dict[str, np.ndarray[Any, Any]]:
    with np.load(FIXTURE) as stored:
        return dict(stored)


@pytest.mark.parametrize("name", STEPS)
def test_two_steps_are_those_of_mindspore(name: str) -> None:
    definition = find(name.split(".")[0])
    numbers, attrs = STEPS[name]
    written = [definition.operands[i] for i in definition.updates]
    state = {operand: np.array(recorded()[f"{name}/{operand}/0"]) for operand in written}
    for step in (1, 2):
        gradient = recorded()[f"{name}/gradient/{step}"]
        operands = [state.get(o, np.float32(numbers[o]) if o in numbers else gradient) for o in definition.operands]
        result = definition.kernel(*operands, **attrs)
        for operand in written:
            np.testing.assert_allclose(state[operand], recorded()[f"{name}/{operand}/{step}"], rtol=2e-6, atol=2e-7)
        outputs = result if isinstance(result, tuple) else (result,)
        for output, operand in definition.alias.items():
            assert outputs[output] is operands[operand]


def test_nesterov_looks_ahead_by_one_step() -> None:
    """The formula of the documents; the vendor's CPU kernel takes the attribute and ignores it, as its record shows."""
    name = "ApplyMomentum.nesterov"
    variable, total = (np.array(recorded()[f"{name}/{o}/0"]) for o in ("variable", "accumulation"))
    slope = recorded()[f"{name}/gradient/1"]
    expected = variable - 0.1 * (slope + 0.9 * (total * 0.9 + slope))
    find("ApplyMomentum").kernel(variable, total, np.float32(0.1), slope, np.float32(0.9), use_nesterov=True)
    np.testing.assert_allclose(variable, expected, rtol=1e-5, atol=1e-6)
    assert not np.allclose(variable, recorded()[f"{name}/variable/1"], atol=1e-3)


@pytest.mark.parametrize(("name", "expected"), [("Assign", 3.0), ("AssignAdd", 5.0), ("AssignSub", -1.0)])
def test_assignments_write_their_first_operand(name: str, expected: float) -> None:
    variable = np.full((2, 3), 2, np.float32)
    out = find(name).kernel(variable, np.full((2, 3), 3, np.float32))
    assert out is variable
    np.testing.assert_array_equal(variable, np.full((2, 3), expected, np.float32))


def test_assignment_gives_the_reference_itself() -> None:
    reference = TensorType(dtype=dtype("float32"), shape=(2,), ref_key="w", inplace=True)
    assert find("Assign").infer([reference, TensorType(dtype=dtype("float32"), shape=(2,))], {}) is reference
    with pytest.raises(ScriptTypeError, match="must be same"):
        find("Assign").infer([reference, TensorType(dtype=dtype("int32"), shape=(2,))], {})


# what MindSpore 2.10 answers for a variable and a value of these shapes
UNLIKE = [
    ((2, 3), (), "rank: 0, 'variable' rank: 2."),
    ((3,), (), "rank: 0, 'variable' rank: 1."),
    ((2, 3), (3,), "rank: 1, 'variable' rank: 2."),
    ((), (1, 1), "rank: 2, 'variable' rank: 0."),
    ((1,), (1, 1), "rank: 2, 'variable' rank: 1."),
    ((1, 1), (1,), "rank: 1, 'variable' rank: 2."),
    ((3,), (1,), "shape: (1), 'variable' shape: (3)."),
    ((1,), (3,), "shape: (3), 'variable' shape: (1)."),
    ((2, 3), (2, 1), "shape: (2, 1), 'variable' shape: (2, 3)."),
    ((2, 3), (1, 1), "shape: (1, 1), 'variable' shape: (2, 3)."),
]


@pytest.mark.parametrize("name", ["Assign", "AssignAdd", "AssignSub"])
def test_a_value_has_the_shape_of_its_variable(name: str) -> None:
    definition = find(name)

    def infer(*shapes: tuple[int, ...]) -> Abstract:
        return definition.infer([TensorType(dtype=dtype("float32"), shape=shape) for shape in shapes], {})

    for variable, value, text in UNLIKE:
        with pytest.raises(ScriptValueError) as caught:
            infer(variable, value)
        kind = text.partition(":")[0]
        expected = f"For '{name}','value' must have the same {kind} as 'variable'. But got 'value' {text}"
        assert str(caught.value) == expected
    for variable, value in [((), (1,)), ((1,), ()), ((), ()), ((1,), (1,)), ((2, 3), (2, 3))]:
        assert infer(variable, value) == TensorType(dtype=dtype("float32"), shape=variable)
        written = definition.kernel(np.full(variable, 5, np.float32), np.full(value, 2, np.float32))
        expected = {"Assign": 2, "AssignAdd": 7, "AssignSub": 3}[name]
        np.testing.assert_array_equal(written, np.full(variable, expected, np.float32), strict=True)


def test_load_takes_the_reference_away() -> None:
    reference = TensorType(dtype=dtype("float32"), shape=(2,), ref_key="w", inplace=True)
    assert find("Load").infer([reference, MonadType()], {}) == TensorType(dtype=dtype("float32"), shape=(2,))


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((0, 5, 2), np.array([0, 2, 4])),
        ((5, 0, -2), np.array([5, 3, 1])),
        ((0.0, 1.0, 0.25), np.float32([0, 0.25, 0.5, 0.75])),
    ],
)
def test_range(operands: tuple[Any, ...], expected: np.ndarray[Any, Any]) -> None:
    out = Builder().emit("Range", *operands)
    np.testing.assert_array_equal(out.content, expected)
    assert out.content.dtype == expected.dtype


def test_range_that_leads_nowhere() -> None:
    with pytest.raises(ScriptValueError, match="leads away"):
        Builder().emit("Range", 0, 5, -1)


def test_shape_is_a_tuple_of_numbers() -> None:
    abstract = find("Shape").infer([TensorType(dtype=dtype("float32"), shape=(2, 3))], {})
    assert isinstance(abstract, TupleType)
    assert [item.value for item in abstract.items] == [2, 3]  # type: ignore[union-attr]


def test_fills() -> None:
    assert Builder().emit("FillScalar", (2,), 3, None).content.dtype == np.int64
    assert Builder().emit("FillScalar", (2,), 3, dtype("float32")).content.tolist() == [3.0, 3.0]
    assert Builder().emit("FillScalar", (2,), True, None).content.dtype == np.bool_


def test_rounded_division() -> None:
    x, y = (Value(abstract_of(a), a) for a in (np.float32([7, -7]), np.float32([2, 2])))
    assert Builder().emit("DivMod", x, y, None).content.tolist() == [3.5, -3.5]
    assert Builder().emit("DivMod", x, y, 1).content.tolist() == [3, -3]
    assert Builder().emit("DivMod", x, y, 2).content.tolist() == [3, -4]
    assert Builder(expanding=True).emit("DivMod", x, y, 1).content.tolist() == [3, -3]


def test_scalar_forms() -> None:
    x = Value(abstract_of(np.float32([1, 2])), np.float32([1, 2]))
    for builder in (Builder(), Builder(expanding=True)):
        assert builder.emit("AddScalar", x, 3, 2).content.tolist() == [7, 8]
        assert builder.emit("SubScalar", x, 3, 2).content.tolist() == [-5, -4]
        assert builder.emit("LessScalar", x, 2).content.tolist() == [True, False]


def test_print_posts_its_operands_one_by_one() -> None:
    device = Device(chip("910B"), environment={})
    seen: list[Any] = []
    device.queues["ms_print"].receiver = seen.append
    out = find("Print").kernel("loss:", (np.int32([[1, 2]]), 2), device=device)
    device.synchronize()
    text, tensor, number = seen[0].items
    assert (text, tensor.tolist(), number, out.shape) == ("loss:", [[1, 2]], 2, (1,))


def test_adaptive_steps_where_the_vendors_cpu_kernel_differs_from_its_documents() -> None:
    """It ignores update_slots of ApplyAdagrad, and takes l1 with the wrong sign in ApplyFtrl where `linear` < 0."""
    var, accum, slope = np.float64([1, 2]), np.float64([4, 9]), np.float64([3, -1])
    find("ApplyAdagrad").kernel(var, accum, 0.1, slope, update_slots=False)
    np.testing.assert_allclose(var, [1 - 0.1 * 3 / 2, 2 + 0.1 / 3])
    assert accum.tolist() == [4, 9]
    var, accum, linear = np.float64([0, 0, 0]), np.float64([4, 4, 4]), np.float64([2, -2, 0.1])
    find("ApplyFtrl").kernel(var, accum, linear, np.zeros(3), 0.5, 0.3, 0.25, -0.5)
    steep = 2 / 0.5 + 2 * 0.25
    np.testing.assert_allclose(var, [-(2 - 0.3) / steep, (2 - 0.3) / steep, 0])


ONE_BY_ONE: dict[str, Any] = {
    "Update": lambda held, new: new,
    "Add": lambda held, new: held + new,
    "Sub": lambda held, new: held - new,
    "Mul": lambda held, new: held * new,
    "Div": lambda held, new: held / new,
    "Max": max,
    "Min": min,
}


@pytest.mark.parametrize("how", ONE_BY_ONE)
@pytest.mark.parametrize("kind", [np.float32, np.int32])
def test_scatters_write_place_after_place(how: str, kind: Any) -> None:
    rng = np.random.RandomState(3)
    start, places, rows = rng.randint(-9, 9, (4, 3)), rng.randint(0, 4, 6), rng.randint(1, 5, (6, 3))
    expected = start.astype(np.float64)
    for place, row in zip(places, rows, strict=True):
        for column in range(3):
            value = ONE_BY_ONE[how](expected[place, column], float(row[column]))
            expected[place, column] = np.trunc(value) if kind is np.int32 else value
    for name, index in ((f"Scatter{how}", places), (f"ScatterNd{how}", places[:, None])):
        variable = start.astype(kind)
        assert find(name).kernel(variable, index.astype(np.int32), rows.astype(kind)) is variable
        np.testing.assert_allclose(variable, expected, rtol=1e-6)
        operands = [_value(array) for array in (start.astype(kind), index, rows.astype(kind))]
        assert Builder().emit(name, *operands).content.shape == (4, 3)


class _Writes(nn.Cell):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.full((3, 4), 1.5, np.float32)), name="w")
        self.write = getattr(ops, name)(**({"axis": 1} if name == "IndexAdd" else {}))
        self.indexed = not name.startswith("Assign")

    def construct(self, index: Any, new: Any, factor: Any) -> Any:
        return ((self.write(self.w, index, new) if self.indexed else self.write(self.w, new)) * factor).sum()


# gradients of what is written, in PYNATIVE of MindSpore 2.10; that of the variable is the factor, as of the result
SLOPES: dict[str, Any] = {
    "ScatterUpdate ScatterMax ScatterMin ScatterNdUpdate": lambda factor: factor[[0, 2]],
    "IndexAdd": lambda factor: factor[:, [0, 2]],
    "Assign": np.zeros_like,
    "AssignAdd": np.copy,
    "AssignSub": np.negative,
    "ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterNdAdd ScatterNdSub ScatterNdMul ScatterNdDiv": None,
    "ScatterNdMax ScatterNdMin": None,
}


@pytest.mark.parametrize("name", [name for listed in SLOPES for name in listed.split()])
def test_a_write_has_the_gradient_of_mindspore(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some have no rule there: "Illegal primitive ScatterAdd's bprop not defined"."""
    (rule,) = (rule for listed, rule in SLOPES.items() if name in listed.split())
    factor = np.arange(12, dtype=np.float32).reshape(3, 4)
    new = factor if rule is None else rule(factor)
    index = np.int32([[0], [2]] if "Nd" in name else [0, 2])
    with fresh("CPU", monkeypatch):
        ms.set_context(mode=ms.PYNATIVE_MODE)
        net = _Writes(name)
        slope = ms.grad(net, (1,), net.trainable_params())
        given = [ms.Tensor(one) for one in (index, new[[0, 2]] if rule is None else np.full_like(new, 2), factor)]
        if rule is None:
            with pytest.raises(UnsupportedError, match=f"'{name}' has no gradient"):
                slope(*given)
            return
        of_new, (of_variable,) = slope(*given)
    assert of_variable.asnumpy().tolist() == factor.tolist()
    assert of_new.asnumpy().tolist() == new.tolist()


def _value(array: np.ndarray[Any, Any]) -> Value:
    return Value(TensorType(dtype=from_numpy(array.dtype), shape=array.shape), array)


def test_index_add_adds_along_an_axis() -> None:
    x, y = np.zeros((2, 4), np.float32), np.float32([[1, 2, 3], [4, 5, 6]])
    find("IndexAdd").kernel(x, np.int32([3, 0, 3]), y, axis=1)
    assert x.tolist() == [[2, 0, 0, 4], [5, 0, 0, 10]]


@pytest.mark.parametrize(("places", "shape"), [((2,), (4, 2)), ((2,), (4, 3)), ((1, 2), (4, 1, 2)), ((2,), (2, 3))])
def test_index_add_refuses_places_and_values_that_do_not_fit(places: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x, index, y = (
        _value(np.zeros((4, 3), np.float32)),
        _value(np.zeros(places, np.int32)),
        _value(np.zeros(shape, np.float32)),
    )
    if (places, shape) == ((2,), (4, 2)):
        Builder().emit("IndexAdd", x, index, y, axis=1)
        return
    with pytest.raises(ScriptValueError, match="must have the shape of 'x'"):
        Builder().emit("IndexAdd", x, index, y, axis=1)


def test_scatters_refuse_updates_that_do_not_fit() -> None:
    x, index = _value(np.zeros((4, 3), np.float32)), _value(np.zeros((2,), np.int32))
    with pytest.raises(ScriptValueError, match="updates_shape = indices_shape"):
        Builder().emit("ScatterAdd", x, index, _value(np.zeros((2, 4), np.float32)))
    with pytest.raises(ScriptTypeError, match="Int32"):
        Builder().emit("ScatterAdd", x, _value(np.zeros((2,), np.float32)), _value(np.zeros((2, 3), np.float32)))


def test_every_operator_is_tested() -> None:
    """A case, a step, or the gradient of a case; the rest is named here and has tests above, or in another module."""
    cased = {case.op for case in CASES} | {name.split(".")[0] for name in STEPS}
    slopes = {name for name in names() if name.removesuffix("V2").endswith(("Grad", "Backward", "WithArgmax"))}
    slopes |= {"Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3DBackpropInput", "Conv3DBackpropFilter"}
    others = """
        FillScalar Range Shape Print TensorDump ScalarSummary TensorSummary NPUAllocFloatStatus NPUGetFloatStatus
        NPUClearFloatStatus NPUGetFloatStatusV2 NPUClearFloatStatusV2 ScatterUpdate ScatterAdd ScatterSub ScatterMul
        ScatterDiv ScatterMax ScatterMin ScatterNdUpdate ScatterNdAdd ScatterNdSub ScatterNdMul ScatterNdDiv
        ScatterNdMax ScatterNdMin IndexAdd LeakyReLUGradExt DropoutExt DropoutGradExt DropoutGenMaskExt
        DropoutDoMaskExt ImageSummary HistogramSummary InitDataSetQueue GetNext Assign AssignAdd AssignSub
        StandardNormal UniformReal UniformInt Dropout Load MakeTuple TupleGetItem Depend Return StopGradient
        UpdateState InplaceScatterSrc InplaceMaskedFillTensor SoftplusGradExt SparseGatherV2 Reduce AlltoAll
        AlltoAllV AlltoAllVC AllGatherV ReduceScatterV CollectiveScatter CollectiveGather Send Receive Barrier
        NeighborExchange NeighborExchangeV2 BatchISendIRecv MirrorPad NewZeros NewOnes OneHotExt
    """
    assert set(names()) - cased - slopes == set(others.split())


WRITTEN = {  # operands that are written, by the descriptions of MindSpore's classes; outputs that are these operands
    "Assign AssignAdd AssignSub IndexAdd ApplyGradientDescent ApplyProximalGradientDescent": ((0,), 1),
    "ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterSub ScatterUpdate": ((0,), 1),
    "ScatterNdAdd ScatterNdDiv ScatterNdMax ScatterNdMin ScatterNdMul ScatterNdSub ScatterNdUpdate": ((0,), 1),
    "ApplyMomentum": ((0, 1), 1),
    "ApplyAdagrad ApplyAdagradV2 ApplyAddSign ApplyPowerSign ApplyProximalAdagrad": ((0, 1), 2),
    "Adam AdamWeightDecay ApplyAdaMax ApplyAdadelta": ((0, 1, 2), 3),
    "ApplyFtrl ApplyRMSProp": ((0, 1, 2), 1),
    "ApplyAdamWithAmsgrad": ((0, 1, 2, 3), 4),
    "ApplyCenteredRMSProp": ((0, 1, 2, 3), 1),
    "SGD": ((0, 3, 5), 1),
    "BatchNorm": ((3, 4), 0),
    "NPUClearFloatStatus NPUGetFloatStatus": ((0,), 0),
}


BUFFERS = {name: value for listed, value in WRITTEN.items() for name in listed.split()}


@pytest.mark.parametrize("name", names())
def test_outputs_are_the_buffers_of_written_operands_or_of_views(name: str) -> None:
    definition = find(name)
    written, outputs = BUFFERS.get(name, ((), int(definition.view or name == "Send")))
    assert (definition.updates, dict(definition.alias)) == (written, {at: at for at in range(outputs)})
    if written and "FloatStatus" not in name:  # the register is ordered by Depend
        assert definition.side_effect == "mem"


def test_views_have_no_kernel() -> None:
    views = {name for name in names() if find(name).view}
    assert views == {"Depend", "Load", "StopGradient", "ExpandDims", "Flatten", "Reshape", "Squeeze"}
