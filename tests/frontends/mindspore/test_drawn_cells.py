"""Calls whose arguments and inputs were drawn at random, against real MindSpore 2.10 on a CPU.

``cells``: layers and losses; ``steps``: optimizers, schedules, metrics, initializers and cells of ``mindspore.mint``.
"""

import importlib.util
from functools import cache
from pathlib import Path

import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.runtime.session import Session

FOLDER = Path(__file__).parents[3] / "fixtures" / "frontends" / "mindspore"
RECORDS = ("cells", "steps")


@cache
def record(name):
    spec = importlib.util.spec_from_file_location(f"drawn_{name}", FOLDER / name / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def recorded(name):
    return record(name).recorded()


def kind(case):
    return case.partition("(")[0]


@pytest.fixture(autouse=True)
def one_by_one():
    session = Session(RunSettings(quiet=True), environment={})
    Session.use(session)
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    session.configure(target="CPU")


KINDS = [(name, one) for name in RECORDS for one in sorted({kind(case) for case in record(name).cases()})]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "called"), KINDS)
def test_texts_states_results_gradients_and_errors_are_those_of_2_10(name, called):
    own = record(name)
    mine = [case for case in recorded(name) if kind(case) == called]
    assert mine
    same = {case: own.alike(own.result(ms, case), recorded(name)[case]) for case in mine}
    different = {case for case, is_same in same.items() if not is_same}
    assert different == set(own.opened()) & set(mine)  # `python cells.py open` or `steps.py open` lists them anew


@pytest.mark.parametrize("name", RECORDS)
def test_most_cases_are_held_to_the_record(name):
    assert set(record(name).opened()) < set(recorded(name))
    assert len(record(name).opened()) < 0.2 * len(recorded(name))
