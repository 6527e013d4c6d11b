"""Calls of an API dump, recomputed by torch."""

import numpy as np
import pytest
from smalltree import api

import dumpsim


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
    for factor, verdict in ((0.99, "ok"), (1.01, "suspect")):
        for at in range(2):
            dumped = made.copy()
            dumped[at] += allowed[at] * factor
            found = _worst(dumped, made, move, unit, 3)
            assert (found.verdict, found.reason) == (verdict, f"output.3[{at}]" if verdict == "suspect" else "")
            assert found.error == pytest.approx(allowed[at] * factor)
            assert found.explained == pytest.approx(allowed[at])
    assert _worst(np.array([]), np.array([]), np.array([]), unit, 0).verdict == "ok"
    odd = np.array([np.nan, np.inf])
    assert _worst(odd, odd, np.zeros(2), unit, 0).verdict == "ok"
    assert _worst(np.array([np.inf, 1.0]), np.array([2.0, 1.0]), np.zeros(2), unit, 0).reason == "output.0[0]"
