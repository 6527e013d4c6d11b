"""Reports that the ranks of a job send at their ends, and the one text that is made of them."""

import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.world import reports as module
from dumpsim.world.reports import JobReports


def render(reports, ranks):
    return f"{[report['n'] for report in reports]} of {ranks}"


def other(reports, ranks):
    return f"{len(reports)} others"


@pytest.fixture(autouse=True)
def renderers(monkeypatch):
    """Functions of dumpsim that a document may name."""
    monkeypatch.setattr(module, "render", render, raising=False)
    monkeypatch.setattr(module, "other", other, raising=False)


def test_a_rank_has_nothing_to_report_at_first():
    one, two = JobReports(), JobReports()
    assert (one.wanted, one.renderer, one.own, one.document()) == (False, "", [], None)
    one.own.append({"n": 1})
    assert two.own == []
    one.renderer = "dumpsim.world.reports:render"
    assert one.document() == {"renderer": "dumpsim.world.reports:render", "reports": [{"n": 1}]}


def test_reports_of_all_ranks_have_one_text_for_each_renderer():
    def document(name, *numbers):
        return JobReports(renderer=f"dumpsim.world.reports:{name}", own=[{"n": n} for n in numbers]).document()

    documents = [document("render", 3, 4), None, document("other", 7), document("render", 5), {}]
    assert JobReports.text(documents, 9) == "[3, 4, 5] of 9\n1 others"
    assert JobReports.text([None, document("render")], 2) == ""
    assert JobReports.text([], 2) == ""


@pytest.mark.parametrize("name", ["os:system", "dumpsimx.module:function", "dumpsim:main", ""])
def test_functions_of_others_are_not_called(name):
    with pytest.raises(BadInputError) as caught:
        JobReports.text([{"renderer": name, "reports": [{}]}], 2)
    assert str(caught.value) == f"report of a rank: invalid renderer {name!r}; allowed: dumpsim.*"
