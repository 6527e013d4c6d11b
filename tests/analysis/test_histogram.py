"""Histograms against numpy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dumpsim.analysis.histogram import histogram


@given(hnp.arrays(np.float32, st.integers(1, 50), elements=st.floats(-1e6, 1e6, width=32)), st.integers(1, 20))
def test_counts_are_numpys(array, bins):
    edges, counts = histogram(array, bins)
    assert counts.sum() == array.size
    assert edges[0] <= array.min()
    assert edges[-1] >= array.max()
    if array.min() < array.max():
        assert np.array_equal(counts, np.histogram(array.astype(np.float64), edges)[0])


def test_chunks_do_not_matter(monkeypatch):
    array = np.random.default_rng(0).normal(size=10_000)
    whole = histogram(array)
    monkeypatch.setattr("dumpsim.analysis.histogram._CHUNK", 777)
    assert all(np.array_equal(a, b) for a, b in zip(histogram(array), whole, strict=True))


def test_nothing_finite():
    assert histogram(np.array([np.nan, np.inf]), 3)[1].tolist() == [0, 0, 0]
    assert histogram(np.zeros(0), 3)[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("values", [[], [np.nan, np.inf, -np.inf]])
def test_without_finite_values_the_edges_are_those_of_numpy(values):
    edges, counts = histogram(np.array(values, np.float32), 4)
    wanted_counts, wanted_edges = np.histogram([], 4)
    assert edges.tolist() == wanted_edges.tolist()
    assert counts.tolist() == wanted_counts.tolist() == [0] * 4
