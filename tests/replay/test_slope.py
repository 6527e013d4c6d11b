"""The rules of functions, against differences of the functions; and the CPU's tanh, which is 1 from 5 on."""

import numpy as np
import pytest

from dumpsim.ops.table import find
from dumpsim.replay.kernel import compute
from dumpsim.replay.measure import measure
from dumpsim.replay.slope import MACHINES, Machine

SINGLE = 2.0**-24

# how far an operand may lie from 0 to be in the function's domain
DOMAINS = {"arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9), "arctanh": (-0.9, 0.9), "arccosh": (1.2, 9.0),
           "log": (0.1, 9.0), "log1p": (-0.8, 9.0), "sqrt": (0.1, 9.0), "tan": (-1.2, 1.2)}  # fmt: skip
ONE = ["exp", "expm1", "log", "log1p", "sqrt", "square", "tanh", "sinh", "cosh", "sin", "cos", "tan", "arcsin",
       "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "negative", "absolute"]  # fmt: skip
TWO = ["add", "subtract", "multiply", "divide", "hypot", "arctan2", "maximum", "minimum", "logaddexp"]


def machine(name):
    return Machine(unit=SINGLE, slopes=MACHINES[name])


@pytest.mark.parametrize("name", ONE)
def test_an_error_of_the_operand_is_passed_on(name):
    function = getattr(np, name)
    x = np.linspace(*DOMAINS.get(name, (-3.0, 3.0)), 61)
    step = 1e-6
    moved = np.maximum(np.abs(function(x + step) - function(x)), np.abs(function(x - step) - function(x)))
    bound = MACHINES["device"][name].passed_on((x,), (np.full_like(x, step),), function(x), 0.0)
    bound = np.broadcast_to(bound, x.shape)
    assert np.all(moved <= bound * (1 + 1e-3) + 1e-11)
    steep = moved > 1e-8  # away from extremes, where only the second derivative is left
    wide = 2.01 if name == "sqrt" else 1.01  # its rule leaves room for operands near 0
    assert np.all(bound[steep] <= moved[steep] * wide)


@pytest.mark.parametrize("name", TWO)
def test_errors_of_two_operands_are_passed_on(name):
    function = getattr(np, name)
    a, b = (axis.reshape(-1) for axis in np.meshgrid(np.linspace(-3, 3, 16), np.linspace(0.3, 3, 16)))
    step = 1e-6
    both = [function(a + p * step, b + q * step) for p in (-1, 1) for q in (-1, 1)]
    moved = np.max([np.abs(one - function(a, b)) for one in both], axis=0)
    bounds = (np.full_like(a, step), np.full_like(a, step))
    bound = np.broadcast_to(MACHINES["device"][name].passed_on((a, b), bounds, function(a, b), 0.0), a.shape)
    assert np.all(moved <= bound * (1 + 1e-3) + 1e-11)
    if name not in ("hypot", "logaddexp"):  # these are bounded by the sum of both errors
        steep = moved > 1e-8
        assert np.all(bound[steep] <= 1.01 * moved[steep])


@pytest.mark.parametrize("name", ["remainder", "fmod"])
def test_a_remainder_passes_the_divisor_s_error_on_as_often_as_it_goes_in(name):
    function = getattr(np, name)
    a, b = np.array([7.3, 29.2, -7.3]), np.array([0.45, 0.45, 0.45])  # far from whole quotients
    step = 1e-7
    both = [function(a + p * step, b + q * step) for p in (-1, 1) for q in (-1, 1)]
    moved = np.max([np.abs(one - function(a, b)) for one in both], axis=0)
    bounds = (np.full_like(a, step), np.full_like(b, step))
    bound = MACHINES["device"][name].passed_on((a, b), bounds, function(a, b), 0.0)
    assert np.all(moved <= bound * (1 + 1e-3))
    assert np.all(bound <= 1.2 * moved)


@pytest.mark.parametrize("exact", [0, 1])
def test_an_exact_operand_of_a_product_passes_nothing_on(exact):
    """An infinite element makes no NaN of the errors that the exact operand does not have."""
    a, b = np.array([[np.inf, 1.0]]), np.array([[2.0], [3.0]])
    values = (a, b) if exact else (b.T, a.T)
    bounds = [np.full_like(value, 1e-6) for value in values]
    bounds[exact] = np.zeros_like(values[exact])
    passed = MACHINES["device"]["matmul"].passed_on(values, tuple(bounds), np.matmul(*values), SINGLE)
    assert passed.tolist() == [[np.inf]]


@pytest.mark.parametrize(("x", "dumped", "explained"), [
    (6.0, 1.0, True), (5.0, 1.0, True), (-5.5, -1.0, True), (9.0, 1.0, True),  # as MindSpore's CPU gives it
    (4.9, np.tanh(4.9) + 8e-5, True), (4.9, np.tanh(4.9) + 3e-4, False),
    (5.5, np.tanh(5.5), True), (5.5, 0.9999, False), (5.5, 1.0003, False),
    (2.0, np.tanh(2.0) + 1e-5, False), (0.3, np.tanh(0.3) + 3e-6, False),
])  # fmt: skip
def test_tanh_of_a_cpu_is_a_quotient_that_ends_at_5(x, dumped, explained):
    (computed,) = compute(find("Tanh"), (np.float32([x]),), {}, machine=machine("cpu"), real=True)
    found = measure(np.float32([dumped]), computed, "float32", SINGLE)
    assert (found.excess <= 1) == explained, found


@pytest.mark.parametrize("x", [5.0, 5.5, 4.9])
def test_tanh_of_a_device_never_ends(x):
    (computed,) = compute(find("Tanh"), (np.float32([x]),), {}, machine=machine("device"), real=True)
    assert measure(np.float32([1.0]), computed, "float32", SINGLE).excess > 1
    assert measure(np.tanh(np.float32([x])), computed, "float32", SINGLE).excess <= 1
