"""Calls of an API dump, recomputed by torch."""

from itertools import product

import numpy as np
import pytest
from smalltree import api

import dumpsim
from dumpsim.analysis.operator import operators
from dumpsim.codecs import npy
from dumpsim.core.dtype import dtype
from dumpsim.core.evidence import Evidence
from dumpsim.replay.plan import API
from dumpsim.replay.recompute import Recomputer
from dumpsim.replay.torchcall import torch_evidence


@pytest.mark.torch
@pytest.mark.parametrize("place", ["", ".0"])
def test_a_call_of_one_argument_is_recomputed_with_or_without_its_place(tmp_path, place):
    x = np.array([1.0, 4.0, 9.0], np.float32)
    good = api(tmp_path / "good", records(place, x, np.sqrt(x)))
    bad = api(tmp_path / "bad", records(place, x * 1.001, np.sqrt(x * 1.001) + 0.5))
    (blame,) = dumpsim.first(bad, good).ranking
    assert (blame.basis, blame.verdict, blame.reason) == ("recomputed", "suspect", "output.0[0]")


def records(place, x, y):
    return [(f"Torch_sqrt_0_forward_input{place}", x), ("Torch_sqrt_0_forward_output", y)]


@pytest.mark.torch
def test_an_element_is_judged_by_what_its_last_bits_move():
    from dumpsim.replay.torchcall import _worst

    unit, tiny = 2.0**-24, float(np.finfo(np.float32).tiny)
    move, made = np.array([0.0, 4e-7]), np.array([1.0, -2.0])
    allowed = 32 * (move + 1e-7 / 2 + unit * np.abs(made)) + tiny
    # of the elements whose number hangs on the last bits nothing is known, and they hide no other
    for lost in (np.nan, np.inf):
        found = _worst(np.array([5.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]), np.array([lost, 0.0, 0.0]), unit, 0)
        assert (found.verdict, found.reason, found.error) == ("suspect", "output.0[2]", 1.0)
        assert found.explained == pytest.approx(32 * unit + tiny)
    assert _worst(np.array([5.0]), np.array([1.0]), np.array([np.nan]), unit, 0).verdict == "ok"
    for factor, verdict in ((0.99, "ok"), (1.01, "suspect")):
        for at in range(2):
            dumped = made.copy()
            dumped[at] += allowed[at] * factor
            found = _worst(dumped, made, move, unit, 3)
            assert (found.verdict, found.reason) == (verdict, f"output.3[{at}]" if verdict == "suspect" else "")
            assert found.error == pytest.approx(allowed[at] * factor)
            assert found.explained == pytest.approx(allowed[at])
    assert _worst(np.array([]), np.array([]), np.array([]), unit, 0) == Evidence(0.0, 0.0, "ok")
    edge = np.array([1.0 + 32 * unit])  # exactly what is explained
    assert _worst(edge, np.array([1.0]), np.zeros(1), unit, 0) == Evidence(32 * unit, 32 * unit, "ok")
    lost = _worst(np.array([3.0]), np.array([np.inf]), np.zeros(1), unit, 0)
    assert lost == Evidence(np.inf, tiny, "suspect", "output.0[0]")  # an infinity has no last bit
    odd = np.array([np.nan, np.inf])
    assert _worst(odd, odd, np.zeros(2), unit, 0).verdict == "ok"
    assert _worst(np.array([np.inf, 1.0]), np.array([2.0, 1.0]), np.zeros(2), unit, 0).reason == "output.0[0]"


X, Y = np.float32([[1, -2, 3], [4, 0.5, -6]]), np.float32([[2, 2, 1], [1, 8, 3]])
PICTURE = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6) * np.float32([1, -1, 1, 1, -1, 1])
# calls with what was recorded of each: (place, value) of inputs, values of results; then the verdict or the reason
CALLS = [
    ("Torch_mm", [("0", X), ("1", Y.T)], [X @ Y.T], "ok"),
    ("Torch_mm", [("0", X), ("1", Y.T)], [X @ Y.T + np.float32([[0, 0], [0, 1]])], "output.0[1, 1]"),
    ("Torch_mm", [("0", X), ("1", Y.T)], [X], "output.0 is (2, 3), recomputed (2, 2)"),
    ("Torch_mm", [("1", X), ("2", Y.T)], [X @ Y.T], "some of its arguments were not dumped"),
    ("Torch_mm", [("0", X), ("1", Y)], [X], "torch: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    ("Torch_cat", [("0.0", X), ("0.1", Y), ("1", np.int64(1))], [np.hstack([X, Y])], "ok"),
    ("Torch_cat", [("0.0", X), ("0.1", Y), ("dim", np.int64(1))], [np.hstack([X, Y])], "ok"),
    ("Torch_cat", [("0.0", X), ("0.2", Y), ("1", np.int64(1))], [np.hstack([X, Y])],
     "its recorded arguments do not give its results"),
    ("Torch_cat", [("0", X), ("0.1", Y)], [np.vstack([X, Y])],
     "its recorded arguments do not give its results"),
    ("Torch_abs", [("0", X), ("0.1", Y)], [np.abs(X)], "the indices of its arguments contradict each other"),
    ("Torch_abs", [("0.0", X), ("0.2", Y)], [np.abs(X)], "some of its arguments were not dumped"),
    ("Torch_sort", [("0", X)], [np.sort(X), np.argsort(X)], "ok"),
    ("Torch_sort", [("0", X)], [np.sort(X), np.argsort(-X)],
     "its recorded arguments do not give its results"),
    ("Torch_abs", [("0", np.int64([-1, 2]))], [np.int64([1, 2])], "ok"),
    ("Torch_abs", [("0", np.int64([-1, 2]))], [np.int64([1, 3])],
     "its results are integers, which rounding may change at ties"),
    ("Torch_conj_physical", [("0", np.complex64([1 + 2j]))], [np.complex64([1 - 2j])], "ok"),
    ("Torch_abs", [("0", X)], [np.abs(X), X], "returns 1 results, 2 were dumped"),
    ("Torch_abs_", [("0", X)], [np.abs(X)], "works in place: its input was dumped after it ran"),
    ("Tensor___neg__", [("0", X)], [-X], "ok"),
    ("Tensor_sub_", [("0", X)], [-X], "works in place: its input was dumped after it ran"),
    ("Torch_bernoulli", [("0", X)], [X], "draws random numbers"),
    ("Functional_dropout", [("0", X)], [X], "draws random numbers"),
    ("NN_Dropout", [("0", X)], [X], "ok"),  # of a module in evaluation
    ("Torch_unheard", [("0", X)], [X], "unknown"),
    ("NN_Unheard", [("0", X)], [X], "a module with weights, which an API dump does not have"),
    ("NN_Linear", [("0", X)], [X], "a module with weights, which an API dump does not have"),
    ("NN_BatchNorm1d", [("0", X)], [X], "a module with weights, which an API dump does not have"),
    ("NN_ReLU", [("0", X)], [np.maximum(X, 0)], "ok"),
    ("NN_Softmax", [("0", X)], [np.exp(X) / np.exp(X).sum(0)], "ok"),
    ("NN_Softmax", [("0", X)], [np.exp(X) / np.exp(X).sum(1, keepdims=True)], "ok"),
    ("NN_LogSoftmax", [("0", X)], [X - np.log(np.exp(X).sum(0))], "ok"),
    # without an axis, of which torch warns
    ("Functional_softmax", [("0", X)], [np.exp(X) / np.exp(X).sum(1, keepdims=True)], "ok"),
    ("NN_MSELoss", [("0", X), ("1", Y)], [np.square(X - Y).sum()], "ok"),
    ("NN_MSELoss", [("0", X), ("1", Y)], [np.square(X - Y).mean()], "ok"),
    ("NN_MSELoss", [("0", X), ("1", Y)], [np.square(X - Y)], "ok"),
    ("NN_L1Loss", [("0", X), ("1", Y)], [np.abs(X - Y).mean() + 1],
     "its recorded arguments do not give its results"),
    ("NN_MaxPool2d", [("0", PICTURE)], [PICTURE.reshape(1, 1, 3, 2, 3, 2).max((3, 5))], "ok"),
    ("NN_MaxPool2d", [("0", PICTURE)], [PICTURE.reshape(1, 1, 2, 3, 2, 3).max((3, 5))], "ok"),
    ("NN_AvgPool2d", [("0", PICTURE)], [PICTURE.reshape(1, 1, 2, 3, 2, 3).mean((3, 5))], "ok"),
    ("NN_AdaptiveAvgPool2d", [("0", PICTURE)], [PICTURE.mean((2, 3), keepdims=True)], "ok"),
    ("Torch_unique", [("0", np.float32([2, *[1] * 9]))], [np.float32([1, 2])],
     "its recorded arguments do not give its results"),  # ties, which the last bits break
    ("Torch_is_tensor", [("0", X)], [X], "its recorded arguments do not give its results"),
    ("Torch_relu", [], [X], "its inputs or its results were not dumped"),
    ("Torch_relu", [("0", X)], [], "its inputs or its results were not dumped"),
    ("Torch_sqrt", [("0", X)], [np.float32([[1, np.nan, 3**0.5], [2, 0.5**0.5, np.nan]])], "ok"),
    ("Torch_sqrt", [("0", X)], [np.float32([[1, np.nan, 3**0.5], [2, 0.5**0.5, 1]])], "output.0[1, 2]"),
    ("Torch_sqrt", [("0", X)], [np.float32([[1, np.nan, 3], [2, 0.5**0.5, np.nan]])], "output.0[0, 2]"),
    ("Torch_acos", [("0", np.float32([1, 0]))], [np.float32([1e-6, np.pi / 2])], "ok"),  # acos(1.0000001) is none
    ("Torch_log", [("0", np.float32([0, 1]))], [np.float32([-np.inf, 0])], "ok"),
    ("Torch_log", [("0", np.float32([0, 1]))], [np.float32([-1e9, 0])], "output.0[0]"),
    ("Torch_log", [("0", np.float32([0, 1]))], [np.float32([np.inf, 0])], "output.0[0]"),
    ("Torch_exp", [("0", np.float32([90, 1]))], [np.float32([np.inf, np.e])], "ok"),  # beyond float32
    ("Torch_exp", [("0", np.float32([88, 1]))], [np.float32([np.inf, np.e])], "output.0[0]"),
    ("Torch_neg", [("0", np.float32([3e38, 1]))], [np.float32([-np.inf, -1])], "output.0[0]"),
    ("Torch_neg", [("0", np.float32([3.4028235e38, 1]))], [np.float32([-np.inf, -1])], "ok"),  # the largest number
    ("Torch_neg", [("0", np.float32([3.402823e38, 1]))], [np.float32([-np.inf, -1])], "output.0[0]"),
    ("Torch_neg", [("0", np.float32([-3.4028235e38, 1]))], [np.float32([-np.inf, -1])], "output.0[0]"),
]  # fmt: skip


def recorded(api, inputs, outputs):
    results = [""] if len(outputs) == 1 else [f".{n}" for n in range(len(outputs))]
    return [
        *((f"{api}_0_forward_input.{place}", value) for place, value in inputs),
        *((f"{api}_0_forward_output{place}", np.asarray(value)) for place, value in zip(results, outputs, strict=True)),
    ]


def calls(path, *args, **options):
    return operators(dumpsim.open(api(path, recorded(*args), **options)))


@pytest.mark.torch
@pytest.mark.parametrize(("name", "inputs", "outputs", "said"), CALLS)
def test_a_recorded_call_is_judged_or_says_why_not(tmp_path, name, inputs, outputs, said):
    (call,) = calls(tmp_path / "own", name, inputs, outputs)
    found = torch_evidence(None, call)
    if said == "ok" or said.startswith("output."):
        assert (found.verdict, found.reason) == (("ok", "") if said == "ok" else ("suspect", said))
    else:
        assert found == Evidence.skip(said)


def settings(**values):
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


POOLS = settings(kernel_size=(2, 3), stride=(None, 1, 2), padding=(0, 1))
REDUCTIONS = settings(reduction=("mean", "sum", "none"))
TRIED = {
    "GELU": settings(approximate=("none", "tanh")), "Softmax": settings(dim=(-1, 1, 0, -2)),
    "LogSoftmax": settings(dim=(-1, 1, 0, -2)), "MaxPool2d": POOLS, "AvgPool2d": POOLS,
    "AdaptiveAvgPool2d": settings(output_size=(1,)),
    "CrossEntropyLoss": settings(reduction=("mean", "sum"), label_smoothing=(0.0, 0.1)),
    "MSELoss": REDUCTIONS, "L1Loss": REDUCTIONS, "SmoothL1Loss": REDUCTIONS, "BCELoss": REDUCTIONS,
    "BCEWithLogitsLoss": REDUCTIONS,
}  # fmt: skip


# one beside the usual ones
UNUSUAL = [
    ("Softmax", {"dim": 2}), ("LogSoftmax", {"dim": 2}), ("AdaptiveAvgPool2d", {"output_size": 2}),
    *((pool, {"kernel_size": 2, **one}) for pool in ("MaxPool2d", "AvgPool2d") for one in (
        {"kernel_size": 1}, {"kernel_size": 4}, {"stride": 3})),
    ("MaxPool2d", {"kernel_size": 2, "dilation": 2}), ("AvgPool2d", {"kernel_size": 2, "count_include_pad": False,
                                                                    "padding": 1}),
    *(("CrossEntropyLoss", one) for one in ({"reduction": "none"}, {"label_smoothing": 0.2}, {"label_smoothing": 1.0})),
    ("SmoothL1Loss", {"beta": 0.5}),
]  # fmt: skip


def made_of(name, setting):
    """What a module of torch is given, and what it makes of it."""
    import torch

    generator = torch.Generator().manual_seed(5)
    shape = (2, 3, 2, 3, 4) if "Softmax" in name else (2, 3, 7, 7)  # dimensions -1, 1, 0 and -2 are different ones
    x, y = (torch.rand(shape, generator=generator) for _ in range(2))
    given = [x] if "Pool" in name or name in ("GELU", "Softmax", "LogSoftmax") else [x, y]
    if name == "CrossEntropyLoss":
        given = [x[:, :, 0, 0], torch.tensor([2, 0])]
    return [(str(at), one.numpy()) for at, one in enumerate(given)], getattr(torch.nn, name)(**setting)(*given).numpy()


@pytest.mark.torch
@pytest.mark.parametrize(("name", "setting"), [(name, one) for name, found in TRIED.items() for one in found])
def test_a_module_whose_settings_were_not_dumped_is_tried_with_usual_ones(tmp_path, name, setting):
    inputs, made = made_of(name, setting)
    for value, verdict in ((made, "ok"), (made + np.float32(0.7) * np.abs(made).max(), None)):
        (call,) = calls(tmp_path / str(verdict), f"NN_{name}", inputs, [value])
        assert (torch_evidence(None, call).verdict == "ok") == (verdict == "ok")


@pytest.mark.torch
@pytest.mark.parametrize(("name", "setting"), UNUSUAL)
def test_a_module_with_unusual_settings_has_no_evidence(tmp_path, name, setting):
    inputs, made = made_of(name, setting)
    (call,) = calls(tmp_path, f"NN_{name}", inputs, [made])
    assert torch_evidence(None, call) == Evidence.skip("its recorded arguments do not give its results")


def test_calls_without_values_and_calls_of_others_are_not_recomputed(tmp_path):
    args = ("Torch_abs", [("0", X)], [np.abs(X)])
    (call,) = calls(tmp_path / "statistics", *args, npy=False)
    assert torch_evidence(None, call).reason == "no values were dumped"
    (call,) = calls(tmp_path / "mindspore", "Functional_abs", *args[1:], framework="mindspore")
    assert torch_evidence(None, call).reason == "not a call of torch"


def test_the_operator_table_does_not_recompute_calls_of_an_api(tmp_path):
    (call,) = calls(tmp_path, "Torch_abs", [("0", X)], [np.abs(X)])
    assert Recomputer()(dumpsim.open(tmp_path), call) == Evidence.skip(API)


@pytest.mark.torch
def test_a_call_whose_file_is_gone_is_not_recomputed(tmp_path):
    (call,) = calls(tmp_path / "own", "Torch_abs", [("0", X)], [np.abs(X)])
    next((tmp_path / "own").rglob("*_input.0.npy")).write_bytes(b"")
    assert torch_evidence(None, call).reason.startswith("unreadable: ")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        ([("0", Y), ("1", X.T)], [Y @ X.T], "ok"),
        ([("0", Y), ("1", X.T)], [Y @ X.T + np.float32([[2, 0], [0, 1]])], "output.0[0, 0]"),
        ([("0", Y), ("1", X.T)], [Y @ X.T, X], "has 1 results, the other call 2"),
        ([("0", Y), ("1", X.T), ("2", np.zeros((5, 5)))], [Y @ X.T], "the other call has one tensor more"),
        ([("0", Y)], [Y @ Y.T], "ok"),  # the second one is as in the call itself
    ],
)
def test_a_call_is_repeated_on_what_its_counterpart_was_given(tmp_path, inputs, outputs, said):
    (own,) = calls(tmp_path / "own", "Torch_mm", [("0", X), ("1", Y.T)], [X @ Y.T])
    (other,) = calls(tmp_path / "other", "Torch_mm", inputs, outputs)
    found = torch_evidence(None, own, on=other)
    assert (found.reason or found.verdict) == said


@pytest.mark.torch
@pytest.mark.parametrize(
    ("low", "high", "reason", "error"),
    [
        (0, 0, "", 0.0),
        (2, 0, "output.0[]", 2.0),
        (0, 3, "output.1[]", 3.0),
        (2, 3, "output.1[]", 3.0),
        (3, 2, "output.0[]", 3.0),
        (2, 2, "output.0[]", 2.0),
    ],
)
def test_of_several_results_the_one_with_the_largest_error_is_named(tmp_path, low, high, reason, error):
    (own,) = calls(tmp_path / "own", "Torch_aminmax", [("0", X)], [X.min(), X.max()])
    (other,) = calls(tmp_path / "other", "Torch_aminmax", [("0", Y)], [Y.min() + low, Y.max() - high])
    assert torch_evidence(None, own).verdict == "ok"
    found = torch_evidence(None, own, on=other)
    assert (found.reason, found.error) == (reason, error)


@pytest.mark.torch
def test_a_suspect_result_is_named_before_one_that_is_explained(tmp_path):
    """Sums of large numbers have large errors, which their rounding explains."""
    large = np.float32([1e8, 1e8])
    (own,) = calls(tmp_path / "own", "Torch_aminmax", [("0", large)], [large[0], large[1]])
    (other,) = calls(
        tmp_path / "other", "Torch_aminmax", [("0", np.float32([0, 1e8]))], [np.float32(0.25), large[1] + 8]
    )
    found = torch_evidence(None, own, on=other)
    assert (found.verdict, found.reason, found.error) == ("suspect", "output.0[]", 0.25)


UNITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


@pytest.mark.torch
@pytest.mark.parametrize("kinds", list(product(UNITS, repeat=2)))
def test_a_result_is_explained_by_the_last_bits_of_the_narrowest_type(tmp_path, kinds):
    """Every sample moves each element of a negation by its last bit; a quarter of the mean is added to each."""
    x = np.array([1.0, -2.0, 8.0, 0.5])
    (call,) = calls(tmp_path, "Torch_neg", [("0", x.astype(np.float32))], [-x.astype(np.float32)])
    dumped = -x + np.array([0, 0, 0.25, 0])
    for pattern, value, kind in (("*input.0.npy", x, kinds[0]), ("*output.npy", dumped, kinds[1])):
        (path,) = tmp_path.rglob(pattern)
        path.write_bytes(b"".join(npy.encode(value.astype(dtype(kind).numpy))))
    unit = 2.0 ** -min(UNITS[kind] for kind in kinds)
    found = torch_evidence(None, call)
    explained = 32 * unit * (8 + np.abs(x).mean() / 4 + 8) + float(np.finfo(np.float32).tiny)
    assert (found.error, found.explained) == (0.25, pytest.approx(explained, rel=1e-9))
    assert (found.verdict, found.reason) == (("suspect", "output.0[2]") if explained < 0.25 else ("ok", ""))


@pytest.mark.torch
def test_whole_numbers_are_as_precise_as_single_ones(tmp_path):
    (call,) = calls(tmp_path, "Torch_sqrt", [("0", np.int64([1, 4, 9]))], [np.float32([1, 2, 4])])
    found = torch_evidence(None, call)
    tiny = float(np.finfo(np.float32).tiny)
    assert (found.error, found.explained) == (1.0, pytest.approx(32 * 2.0**-24 * 3 + tiny, rel=1e-9))


@pytest.mark.torch
@pytest.mark.parametrize(("more", "said"), [(0, "ok"), (1, "too large")])
def test_a_call_of_too_many_elements_is_not_recomputed(tmp_path, more, said):
    """The list of records tells the sizes, so no file is read before."""
    api(tmp_path, recorded("Torch_mm", [("0", X), ("1", Y.T)], [X @ Y.T]))
    (info,) = tmp_path.rglob("*_info.pkl")
    text = info.read_text()
    half = 1 << 23
    for old, new in (("[2, 3]", f"[{half}]"), ("[3, 2]", f"[{half + more}]")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    info.write_text(text)
    (call,) = operators(dumpsim.open(tmp_path))
    found = torch_evidence(None, call)
    assert (found.reason or found.verdict) == said


@pytest.mark.torch
def test_a_call_with_nothing_in_common_is_not_repeated(tmp_path):
    (own,) = calls(tmp_path / "own", "Torch_neg", [("0", X)], [-X])
    (other,) = calls(tmp_path / "other", "Torch_neg", [("0", np.int64(3))], [-X])
    (info,) = (tmp_path / "other").rglob("*_info.pkl")
    info.write_text(info.read_text().replace("torch.int64", "<class 'int'>"))
    (other,) = operators(dumpsim.open(tmp_path / "other"))
    assert torch_evidence(None, own, on=other).reason == "the other call has no tensor in common"


@pytest.mark.torch
def test_a_result_of_another_shape_has_no_explanation(tmp_path):
    (call,) = calls(tmp_path, "Torch_mm", [("0", X), ("1", Y.T)], [X])
    assert torch_evidence(None, call) == Evidence(np.inf, 0.0, "suspect", "output.0 is (2, 3), recomputed (2, 2)")


@pytest.mark.torch
def test_equal_integers_need_no_explanation(tmp_path):
    (call,) = calls(tmp_path, "Torch_abs", [("0", np.int64([-1, 2]))], [np.int64([1, 2])])
    assert torch_evidence(None, call) == Evidence(0.0, 0.0, "ok")
