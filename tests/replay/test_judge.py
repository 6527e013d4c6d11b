"""Single calls put to the judge: each with files written here, and the verdict that arithmetic by hand gives."""

import os
from itertools import permutations

import numpy as np
import pytest

from dumpsim.analysis.verdict import Side
from dumpsim.core.evidence import Evidence
from dumpsim.ops.table import find
from dumpsim.replay.call import Absent, Call, Constant, Member, arrange
from dumpsim.replay.judge import _ignored, judge

X = np.array([[3.0, 1.0, 3.0, 2.0], [0.0, 5.0, 5.0, 5.0]], np.float32)
SKIPPED = (None, None, "skipped")


def side(folder, array, dtype=""):
    path = folder / f"{len(os.listdir(folder))}.npy"
    np.save(path, array)
    return Side(path=str(path), binary=False, io="", slot=0, format="", dtype=dtype, shape=array.shape, row={})


def asked(folder, op_type, operands, outputs, **more):
    """The call of an operator of which these are the files; what is no array is a constant of the graph."""
    given = (
        one if isinstance(one, Absent | Side) else side(folder, one) if isinstance(one, np.ndarray) else Constant(one)
        for one in operands
    )
    files = enumerate(one if isinstance(one, Side) else side(folder, np.asarray(one)) for one in outputs)
    return Call(op_type=op_type, operands=tuple(given), outputs=tuple(files), **more)


def index(*rows):
    return np.array(rows, np.int32)


CHOICES = [
    # operator, operands, attributes, outputs, what is wrong
    ("Argmax", (X, 1, None), {}, [index(0, 1)], ""),
    ("Argmax", (X, 1, None), {}, [index(2, 3)], ""),
    ("Argmax", (X, 1, None), {}, [index(0, 2)], ""),
    ("Argmax", (X, -1, None), {}, [index(2, 2)], ""),
    ("Argmax", (X, 1, None), {}, [index(1, 1)], "output.0[0]"),
    ("Argmax", (X, 1, None), {}, [index(0, 4)], "output.0[1]"),  # beyond the axis
    ("Argmax", (X, 1, None), {}, [index(-2, 1)], "output.0[0]"),  # which would count from the end
    ("Argmax", (X[:, 1:3], 0, None), {}, [index(1, 0)], "output.0[1]"),
    ("Argmin", (X[:, :1] * 0, 0, None), {}, [index(1)], ""),
    ("ArgMaxWithValue", (X, 1, False), {}, [index(2, 3), np.float32([3, 5])], ""),
    ("ArgMaxWithValue", (X, 1, True), {}, [index([2], [3]), np.float32([[3], [5]])], ""),
    ("ArgMaxWithValue", (X, 1, True), {}, [index([2], [0]), np.float32([[3], [5]])], "output.0[1, 0]"),
    ("ArgMinWithValue", (X * 0, 0, False), {}, [index(1, 0, 1, 0), np.zeros(4, np.float32)], ""),
    ("TopK", (X, 3), {"sorted": True}, [X[[[0], [1]], [[0, 2, 3], [1, 2, 3]]], index([2, 0, 3], [3, 1, 2])], ""),
    ("TopK", (X, 3), {"sorted": True}, [X[[[0], [1]], [[0, 2, 3], [1, 2, 3]]], index([2, 0, 3], [3, 1, 1])],
     "output.1[0, 0], 5 of 6 elements"),  # one of three equal elements twice
    ("TopK", (X[0], 2), {"sorted": True}, [np.float32([3, 3]), index(2, 0)], ""),
    ("TopK", (X[0], 2), {"sorted": True}, [np.float32([3, 3]), index(2, 3)], "output.1[1]"),
    ("TopK", (X, 2), {"sorted": True}, [np.float32([[3, 3], [5, 5]]), index([0, 1], [1, 2])], "output.1[0, 1]"),
    ("Sort", (X,), {"axis": -1, "descending": False},
     [np.sort(X), index([1, 3, 2, 0], [0, 3, 1, 2])], ""),
    ("Sort", (X * 0,), {"axis": 0, "descending": False}, [X * 0, index([1, 0, 1, 0], [0, 1, 0, 1])], ""),
    ("Sort", (X * 0,), {"axis": 0, "descending": False}, [X * 0, index([1, 0, 1, 0], [0, 1, 1, 1])],
     "output.1[0, 0], 3 of 8 elements"),
    ("Sort", (np.float32([[1, 1], [2, 0]]),), {"axis": 0, "descending": False},
     [np.float32([[1, 0], [2, 1]]), index([1, 1], [0, 0])], "output.1[0, 0], 2 of 4 elements"),
]  # fmt: skip


@pytest.mark.parametrize(("op_type", "operands", "attrs", "outputs", "wrong"), CHOICES)
def test_whichever_of_equal_elements_is_named_is_right(tmp_path, op_type, operands, attrs, outputs, wrong):
    found = judge(asked(tmp_path, op_type, operands, outputs, attrs=attrs))
    assert (found.verdict, found.reason) == ("suspect" if wrong else "ok", wrong)


HALF = np.float16([1, 2])
ONE = np.float32([1, 2, 3])
REASONS = [
    ("ReLU", (Absent("input.0 was not dumped"),), [ONE], {}, "input.0 was not dumped"),
    ("ReLU", (ONE,), [ONE], {"reason": "only statistics were dumped"}, "only statistics were dumped"),
    ("ReLU", (ONE,), [ONE, ONE], {}, "has 1 outputs, the dump has output.1"),
    ("ReLU", (ONE,), [ONE[:2]], {}, "the shape of output.0 should be (3,), the dump has (2,)"),
    ("Div", (ONE, ONE), [np.int32([1, 1, 1])], {}, "the recomputed type is a float, the dump has int32"),
    ("Add", (ONE, ONE[:2]), [ONE], {}, "For 'Add'"),
    ("Add", (ONE, ONE.astype(np.float16)), [2 * ONE], {}, "For primitive[Add], the input type must be same."),
    ("Neg", (ONE, np.int32([1, 2, 3])), [0 * ONE],
     {"members": (Member(op_type="Neg", settings={}), Member(op_type="Add", settings={}))},
     "For primitive[Add], the input type must be same."),
    ("Reshape", (ONE, "3"), [ONE], {},
     "For 'Reshape', the input 'shape' must be an int or a tuple of int, but got '3'."),
    ("Sort", (ONE,), [ONE], {}, "its kernel fails on these operands: KeyError: 'axis'"),
    ("AssignAdd", (ONE, ONE), [ONE], {"machine": "cpu"},
     "the values before the operator overwrote them are not in the dump"),
    ("AssignAdd", (np.int32([1]), np.int32([1])), [np.int32([1])], {"machine": "cpu"},
     "input.0: the values before the operator overwrote them are not in the dump"),
    ("ReLU", (ONE,), [ONE + 1], {"doubt": "output.0 is float16 on the device, and its file says float32"},
     "output.0 is float16 on the device, and its file says float32"),
    ("Neg", (ONE, ONE), [-ONE], {"members": (Member(op_type="Neg"),)}, "1 of its inputs are unknown"),
    ("Fused", (ONE,), [-ONE], {"members": (Member(op_type="Unheard"),)}, "unknown operator type"),
    ("Conv2D", (X, X), [ONE], {"members": (Member(op_type="Conv2D"),)},
     "no graph in the dump shows its attributes, and they do not follow from its shapes"),
    ("ReduceSum", (ONE.reshape(3, 1),), [ONE * 7], {"members": (Member(op_type="ReduceSum"),)},
     "no graph in the dump shows its attributes, and none that fit its shapes give this output"),
]  # fmt: skip


@pytest.mark.parametrize(("op_type", "operands", "outputs", "more", "reason"), REASONS)
def test_what_keeps_a_call_from_being_recomputed_is_said(tmp_path, op_type, operands, outputs, more, reason):
    found = judge(asked(tmp_path, op_type, operands, outputs, **more))
    assert found.verdict == "skipped"
    assert found.reason.startswith(reason) if reason.endswith((": ", "'")) else found.reason == reason


def test_a_file_that_cannot_be_read_is_a_reason(tmp_path):
    call = asked(tmp_path, "ReLU", (ONE,), [ONE])
    os.unlink(call.operands[0].path)
    assert judge(call).reason.startswith("unreadable: [Errno 2]")
    call = asked(tmp_path, "ReLU", (ONE,), [ONE])
    with open(call.operands[0].path, "r+b") as file:
        file.truncate(20)
    found = judge(call)
    assert (found.verdict, found.reason[:12]) == ("skipped", "unreadable: ")


def test_memory_that_runs_out_is_a_reason(tmp_path, monkeypatch):
    def lacking(side):
        raise MemoryError

    monkeypatch.setattr(Side, "load", lacking)
    assert judge(asked(tmp_path, "ReLU", (ONE,), [ONE])) == Evidence.skip("needs more memory than is available")


@pytest.mark.parametrize(
    ("operands", "outputs", "options", "explained"),
    [
        # one addition of 1 and much less: half a unit of the type computed in
        ((ONE, ONE), [2 * ONE], {}, 0.0),
        ((np.float32([1]), np.float32([2**-30])), [np.float32([1])], {}, 2.0**-24),
        ((np.float16([1]), np.float16([2**-12])), [np.float16([1])], {"machine": "cpu"}, 2.0**-11),
        ((np.float64([1]), np.float64([2**-60])), [np.float64([1])], {}, 2.0**-53),
    ],
)
def test_a_sum_is_explained_by_the_type_of_its_operands(tmp_path, operands, outputs, options, explained):
    found = judge(asked(tmp_path, "Add", operands, outputs, **options))
    assert found.verdict == "ok"
    assert explained <= found.explained <= 4 * explained or (found.error == 0.0 and not explained)


BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "": 24, "float64": 53}
SMALLEST = {"float16": 24, "bfloat16": 126, "float32": 126, "": 126, "float64": 1022}


@pytest.mark.parametrize(
    ("operand", "output", "machine", "kind", "bits"),
    [
        ("", "", "device", "", 24),
        ("float16", "float16", "device", "", 24),  # a device adds halves in single precision
        ("float16", "float16", "cpu", "", 11),
        ("bfloat16", "bfloat16", "cpu", "", 8),
        ("bfloat16", "bfloat16", "device", "", 24),
        ("float16", "bfloat16", "cpu", "", 11),  # the type of the operands counts
        ("float64", "float64", "cpu", "", 52),  # as imprecise as the recomputation
        ("float64", "float32", "device", "", 52),
        ("", "float64", "device", "", 52),
        ("complex128", "", "device", "", 52),
        ("float16", "float16", "cpu", "float64", 53),
        ("float64", "float64", "device", "bfloat16", 8),
        ("float32", "float32", "device", "tf32", 11),
        ("float32", "float32", "device", "hf32", 12),
    ],
)
def test_an_addition_rounds_in_the_type_that_a_machine_computes_in(tmp_path, operand, output, machine, kind, bits):
    """Once in that type, and once more if the output is narrower."""
    one, small, total = (np.float32([value]) for value in (1, 2.0**-20, 1 + 2.0**-20))
    operands = (side(tmp_path, one), side(tmp_path, small, dtype=operand))
    found = judge(
        asked(tmp_path, "Add", operands, [side(tmp_path, total, dtype=output)], machine=machine, compute=kind)
    )
    last = 2.0 ** -BITS[output] if BITS[output] < bits else 0.0
    assert found == Evidence(0.0, (2.0**-bits + last) * float(total[0]) + 2.0 ** -SMALLEST[output], "ok")


@pytest.mark.parametrize("machine", ["cpu", "device"])
@pytest.mark.parametrize("first", [np.nan, 0.0])
def test_a_cpu_may_treat_nan_as_ieee_or_as_its_kernel_does(tmp_path, machine, first):
    """MindSpore's ReLU on a CPU returns 0 for NaN. [2.10 observed]"""
    call = asked(tmp_path, "ReLU", (np.float32([np.nan, 2]),), [np.float32([first, 2])], machine=machine)
    assert judge(call).verdict == ("suspect" if machine == "device" and first == 0 else "ok")


@pytest.mark.parametrize("more", [0, 1, 3])
def test_outputs_whose_size_depends_on_values_may_have_room_after_them(tmp_path, more):
    """A device allocates memory for the largest possible result; what is after the result is not compared."""
    x, mask = np.float32([1, 2, 3, 4]), np.array([True, False, True, False])
    room = np.full(more, 99, np.float32)
    for values, reason in (([1, 3], ""), ([1, 4], "output.0[1]")):
        dumped = np.concatenate([np.float32(values), room])
        assert judge(asked(tmp_path, "MaskedSelect", (x, mask), [dumped])).reason == reason
    found = judge(asked(tmp_path, "MaskedSelect", (x, mask), [np.float32([1])]))
    assert found == Evidence.skip("the recomputed shape is (2,), the dump has (1,)")


def test_members_of_any_float_type_work_together(tmp_path):
    """The result of a member has no type of its own, so the others are not compared with it."""
    members = (Member(op_type="ReLU", settings={}), Member(op_type="Add", settings={}))
    half = ONE.astype(np.float16)
    assert judge(asked(tmp_path, "ReLU", (ONE, half), [2 * ONE], members=members)).verdict == "ok"
    assert judge(asked(tmp_path, "ReLU", (ONE, half), [3 * ONE], members=members)).verdict == "suspect"


def test_operands_that_are_left_out_are_none(tmp_path):
    x, target = np.float32([0.25, 0.5]), np.float32([1, 0])
    loss = -np.log([0.25, 0.5]).mean()  # of 0.25 that it is, and of 0.5 that it is not
    right, wrong = (
        judge(asked(tmp_path, "BinaryCrossEntropy", (x, target, None, 1), [np.float32(loss * factor)]))
        for factor in (1, 1.001)
    )
    assert (right.verdict, wrong.verdict) == ("ok", "suspect")


@pytest.mark.parametrize(
    ("values", "host", "wanted"),
    [
        ((ONE, HALF, 1), (False, False, True), ((ONE, HALF), 1)),
        ((ONE, HALF, np.array(1)), (), ((ONE, HALF), 1)),
        ((ONE, HALF), (), ((ONE, HALF), 0)),  # without a setting the default holds
        ((ONE,), (False,), ((ONE,), 0)),
    ],
)
def test_tensors_before_the_settings_are_one_operand(values, host, wanted):
    tensors, axis = arrange(find("Concat"), values, host, None)
    assert len(tensors) == len(wanted[0])
    assert all(one is other for one, other in zip(tensors, wanted[0], strict=True))
    assert (axis, type(axis)) == (wanted[1], int)


def test_the_factor_widens_what_is_explained(tmp_path):
    exact = np.float32([0.1]) * np.float32([0.3])
    wrong = exact * np.float32(1 + 2.0**-20)
    call = asked(tmp_path, "Mul", (np.float32([0.1]), np.float32([0.3])), [wrong])
    assert judge(call).verdict == "suspect"
    wide = judge(call, factor=16.0)
    assert wide.verdict == "ok"
    assert wide.explained == pytest.approx(16 * judge(call).explained)


VAR, ONE_STATE, TWO_STATE, GRAD = np.float32([[1, 2, -3], [0.5, -1, 2], [0.25, 0.5, 0.75], [0.25, 4, -2]])
LR, EPS, DECAY = 0.125, 1e-8, 0.25
B1, B2 = 0.5, 0.75  # exact in every type


def momentum(var, m, g):
    m = m * B1 + g
    return var - LR * m, m


def adagrad(var, m, g):
    m = m + g * g
    return var - LR * g / np.sqrt(m), m


def adam(var, m, v, g):
    m, v = m * B1 + g * (1 - B1), v * B2 + g * g * (1 - B2)
    return var - LR * np.sqrt(1 - B2**2) / (1 - B1**2) * m / (np.sqrt(v) + EPS), m, v


def decaying(var, m, v, g):
    m, v = m * B1 + g * (1 - B1), v * B2 + g * g * (1 - B2)
    return var - LR * (m / (np.sqrt(v) + EPS) + DECAY * var), m, v


MOMENTUM = {"use_nesterov": False, "use_locking": False, "gradient_scale": 1.0}
STEPS = [
    ("ApplyMomentum", momentum, lambda var, m, g: (var, m, LR, g, B1), 1, MOMENTUM),
    ("ApplyAdagrad", adagrad, lambda var, m, g: (var, m, LR, g), 1, {"update_slots": True}),
    ("Adam", adam, lambda var, m, v, g: (var, m, v, B1**2, B2**2, LR, B1, B2, EPS, g), 2,
     {"use_locking": False, "use_nesterov": False}),
    ("AdamWeightDecay", decaying, lambda var, m, v, g: (var, m, v, LR, B1, B2, EPS, DECAY, g, False), 2, {}),
]  # fmt: skip


@pytest.mark.parametrize(("op_type", "rule", "arrange", "states", "attrs"), STEPS, ids=[one[0] for one in STEPS])
def test_state_that_was_overwritten_follows_from_what_it_became(tmp_path, op_type, rule, arrange, states, attrs):
    """The files of a step are written after it: the weight before is known, its moments are only known from after."""
    before = (VAR, ONE_STATE, TWO_STATE)[: states + 1]
    after = [one.astype(np.float32) for one in rule(*(one.astype(np.float64) for one in before), GRAD)]
    known = {0: side(tmp_path, VAR)}
    right = asked(tmp_path, op_type, arrange(*after, GRAD), after[:1], attrs=attrs, before=known, machine="cpu")
    assert judge(right).verdict == "ok", judge(right)
    wrong = [after[0] * np.float32([1, 1.001, 1]), *after[1:]]
    found = judge(asked(tmp_path, op_type, arrange(*wrong, GRAD), wrong[:1], attrs=attrs, before=known, machine="cpu"))
    assert (found.verdict, found.reason) == ("suspect", "output.0[1]")
    scaled = {**attrs, "gradient_scale": 2.0}
    if op_type == "ApplyMomentum":  # then its moments do not follow
        call = asked(tmp_path, op_type, arrange(*after, GRAD), after[:1], attrs=scaled, before=known, machine="cpu")
        found = judge(call)
        assert found.reason == "the values before the operator overwrote them are not in the dump"


def test_state_in_halves_follows_too_where_the_square_of_a_gradient_is_beyond_them(tmp_path):
    half = np.float16
    var, m, v, g = half([1, -2]), half([0.5, 3]), half([400, 800]), half([300, -16])
    with np.errstate(over="raise"):
        after = [one.astype(half) for one in adam(*(one.astype(np.float64) for one in (var, m, v, g)))]
    operands = (*after, half(B1**2), half(B2**2), half(LR), half(B1), half(B2), half(1e-4), g)
    attrs = {"use_locking": False, "use_nesterov": False}
    call = asked(tmp_path, "Adam", operands, after[:1], attrs=attrs, before={0: side(tmp_path, var)}, machine="cpu")
    assert judge(call).verdict == "ok", judge(call)


@pytest.mark.parametrize("same", [True, False])
def test_inputs_that_differ_from_the_output_in_their_memory_were_written_before(tmp_path, same):
    old, added = np.float32([1, 2]), np.float32([10, 20])
    call = asked(tmp_path, "AssignAdd", (old + added if same else old, added), [old + added])
    found = judge(call)
    if same:
        assert found.reason == "the values before the operator overwrote them are not in the dump"
        call = asked(tmp_path, "AssignAdd", (old + added, added), [old + added], before={0: side(tmp_path, old)})
        assert judge(call).verdict == "ok"
    else:
        assert found.verdict == "ok"


def test_a_variable_whose_file_is_missing_after_the_step_is_judged_by_the_output(tmp_path):
    old, added = np.float32([1, 2]), np.float32([10, 20])
    for factor, verdict in ((1, "ok"), (np.float32([1, 1.001]), "suspect")):
        operands, before = (Absent("is not in the dump"), added), {0: side(tmp_path, old)}
        call = asked(tmp_path, "AssignAdd", operands, [(old + added) * factor], before=before, machine="cpu")
        assert judge(call).verdict == verdict


SQUARE, OTHER = np.float32([[1, 2], [3, 5]]), np.float32([[7, 1], [0.5, -2]])
WAYS = {"a b": SQUARE @ OTHER, "a b'": SQUARE @ OTHER.T, "a' b": SQUARE.T @ OTHER, "a' b'": SQUARE.T @ OTHER.T}


@pytest.mark.parametrize("way", WAYS)
def test_of_settings_that_no_graph_shows_the_best_fit_is_taken(tmp_path, way):
    """Four ways to multiply fit the shapes; one wrong element does not make another way fit."""
    members = {"members": (Member(op_type="MatMul"),)}
    assert judge(asked(tmp_path, "MatMul", (SQUARE, OTHER), [WAYS[way]], **members)).verdict == "ok"
    for at in np.ndindex(2, 2):
        wrong = WAYS[way].copy()
        wrong[at] += 1
        found = judge(asked(tmp_path, "MatMul", (SQUARE, OTHER), [wrong], **members))
        assert (found.verdict, found.reason, found.error) == ("suspect", f"output.0{list(at)}", 1.0)


def test_of_many_settings_that_fit_64_are_tried(tmp_path):
    """Five axes of one size may be turned in 120 ways, tried in order, after the operands as they are in the files."""
    cube = np.arange(3.0**5, dtype=np.float32).reshape((3,) * 5)
    for at, verdict in ((0, "ok"), (62, "ok"), (63, "skipped")):
        order = list(permutations(range(5)))[at]
        members = {"members": (Member(op_type="Transpose"),)}
        found = judge(asked(tmp_path, "Transpose", (cube,), [cube.transpose(order)], **members))
        assert found.verdict == verdict, at
    assert found.reason == "no graph in the dump shows its attributes, and none that fit its shapes give this output"


def test_members_of_a_fused_operator_work_one_after_the_other(tmp_path):
    """The result of a product goes to an addition and on to a function; each but the last brings rounding errors."""
    members = {"members": (Member(op_type="MatMul", settings={"transpose_b": True}), Member(op_type="Add"),
                           Member(op_type="ReLU"))}  # fmt: skip
    bias = np.float32([1, 5])
    right = np.maximum(SQUARE @ OTHER.T + bias, 0)
    assert judge(asked(tmp_path, "MatMul", (SQUARE, OTHER, bias), [right], **members)).verdict == "ok"
    found = judge(asked(tmp_path, "MatMul", (SQUARE, OTHER, bias), [np.maximum(SQUARE @ OTHER + bias, 0)], **members))
    assert found.verdict == "suspect"
    left = judge(asked(tmp_path, "MatMul", (SQUARE, OTHER, bias, bias), [right], **members))
    assert left.reason == "1 of its inputs are unknown"


def test_a_sum_of_several_tensors_is_bounded_as_additions_are(tmp_path):
    """Each of two additions rounds once."""
    values = [np.float32([1.0, 1e8]), np.float32([2.0**-25, 1.0]), np.float32([2.0**-25, -1e8])]
    dumped = values[0] + values[1] + values[2]
    found = judge(asked(tmp_path, "AddN", values, [dumped]))
    assert found.verdict == "ok"
    assert judge(asked(tmp_path, "AddN", values, [dumped + np.float32([1e-6, 0])])).verdict == "suspect"
    assert judge(asked(tmp_path, "AddN", [np.int32([1]), np.int32([2])], [np.int32([3])])) == Evidence(0.0, 0.0, "ok")


@pytest.mark.parametrize(("kind", "verdict"), [("", "suspect"), ("tf32", "ok"), ("float64", "suspect")])
def test_an_operator_may_compute_in_another_type(tmp_path, kind, verdict):
    exact = np.float32([0.1]) * np.float32([0.3])
    call = asked(
        tmp_path, "Mul", (np.float32([0.1]), np.float32([0.3])), [exact * np.float32(1 + 2.0**-15)], compute=kind
    )
    assert judge(call).verdict == verdict


def test_a_type_that_nobody_knows_is_that_of_its_file(tmp_path):
    odd = side(tmp_path, ONE, dtype="qint99")
    call = asked(tmp_path, "ReLU", (ONE,), [odd])
    assert judge(call).verdict == "skipped"
    assert "qint99" in judge(call).reason


@pytest.mark.parametrize(
    ("op", "operands", "outputs", "verdict"),
    [
        # whole numbers and truth go through a fused operator as they are
        ("Greater", (ONE, ONE[::-1].copy()), [np.array([False, False, True])], "ok"),
        ("Greater", (ONE, ONE[::-1].copy()), [np.array([True, False, True])], "suspect"),
    ],
)
def test_members_without_rounding(tmp_path, op, operands, outputs, verdict):
    members = {"members": (Member(op_type=op, settings={}), Member(op_type="LogicalNot", settings={}))}
    found = judge(asked(tmp_path, op, operands, [~one for one in outputs], **members))
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("wrong", "verdict"), [((), "ok"), ((1,), "suspect"), ((1, 2), "suspect"), ((0, 1, 2), "skipped")]
)
def test_settings_that_make_half_of_an_output_are_the_right_ones(tmp_path, wrong, verdict):
    """No graph shows over which axis four rows were added up; the shapes allow one."""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    total = x.sum(1)
    total[list(wrong)] += 1
    found = judge(asked(tmp_path, "ReduceSum", (x,), [total], members=(Member(op_type="ReduceSum"),)))
    assert found.verdict == verdict


def test_attributes_that_a_kernel_ignores_are_those_of_its_machine():
    """[observed 2.10; source apply_momentum_cpu_kernel.cc]"""
    assert _ignored(find("ApplyMomentum"), "cpu") == {"use_nesterov"}
    assert _ignored(find("ApplyMomentum"), "device") == frozenset()
