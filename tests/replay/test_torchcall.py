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
