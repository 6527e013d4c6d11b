"""The table of converters against 1,087 conversions of the real ones."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.frontends.torchair._table import overloads  # noqa: E402
from tests.frontends.torchair.convertcases import agrees, recorded  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def _no_logs():
    import logging

    logging.disable(logging.CRITICAL)  # torch logs what its fake tensors refuse
    yield
    logging.disable(logging.NOTSET)


def test_every_overload_of_the_record_has_a_rule_or_is_refused_there():
    rows = {row["op"] for row in recorded("converters")["rows"] if any("graph" in case for case in row["cases"])}
    assert rows - set(overloads()) == set()


def test_conversions_are_those_of_the_real_converters():
    rows = recorded("converters")["rows"][::4]  # the others are slow
    small = {}
    for row in rows:  # one case of each form
        for case in row["cases"]:
            key = row["op"], tuple(case.get("order", ())), case.get("error")
            small.setdefault(key, (row, case))
    wrong = {(row["op"], case["call"]): agrees(row, case) for row, case in small.values()}
    assert {key: ours for key, ours in wrong.items() if ours is not None} == {}


@pytest.mark.slow
def test_all_1087_conversions_are_those_of_the_real_converters():
    cases = [(row, case) for row in recorded("converters")["rows"] for case in row["cases"]]
    assert len(cases) == 1087
    wrong = {(row["op"], case["call"]): agrees(row, case) for row, case in cases}
    assert {key for key, ours in wrong.items() if ours is not None} == set()
