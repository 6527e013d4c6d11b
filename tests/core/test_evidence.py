"""Evidence for or against an operator."""

from math import inf, isnan

import pytest

from dumpsim.core.evidence import Evidence


@pytest.mark.parametrize(
    ("error", "explained", "excess"),
    [(0.5, 0.25, 2.0), (0.0, 0.25, 0.0), (0.5, 0.0, inf), (0.0, 0.0, 0.0), (inf, 0.25, inf), (1e-30, 0.0, inf)],
)
def test_the_excess_is_the_error_in_parts_of_what_is_explained(error, explained, excess):
    assert Evidence(error, explained, "ok").excess == excess


def test_what_was_not_recomputed_has_no_excess():
    found = Evidence.skip("random")
    assert isnan(found.excess)
    assert (found.verdict, found.reason) == ("skipped", "random")
