"""What `dumpsim run` hands on through the environment."""

import json
from dataclasses import asdict

import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.core.settings import VARIABLE, RunSettings


def test_equal_texts_are_parsed_once_and_changes_are_seen(monkeypatch):
    quiet = RunSettings(quiet=True, seed=4)
    environment = {VARIABLE: quiet.to_text()}
    first = RunSettings.from_environment(environment)
    assert first == quiet
    assert RunSettings.from_environment(dict(environment)) is first
    environment[VARIABLE] = RunSettings(seed=5).to_text()
    assert RunSettings.from_environment(environment).seed == 5
    monkeypatch.setenv(VARIABLE, quiet.to_text())
    assert RunSettings.from_environment() is first
    monkeypatch.delenv(VARIABLE)
    assert RunSettings.from_environment() == RunSettings()


def test_what_is_not_set():
    assert asdict(RunSettings()) == {
        "device": None, "chip": None, "mindspore": "seed", "overrides": {}, "clock": "virtual", "engine": "numpy",
        "seed": 0, "faults": None, "manifest": "dumpsim-manifest.json", "append": False, "durable": False,
        "quiet": False, "reduce_order": "rank", "collective_check": "all", "transport": "local", "schedule": "rank",
        "check_races": False, "plan": None, "plan_steps": 2,
    }  # fmt: skip
    assert RunSettings.from_text("{}") == RunSettings()


def test_every_field_goes_through_the_environment():
    settings = RunSettings(
        device="gpu", chip="A", mindspore="2.7", overrides={"o2": "present"}, clock="wall", engine="null", seed=7,
        faults="f.json", manifest=None, append=True, durable=True, quiet=True, reduce_order="ring",
        collective_check="off", transport="mpi", schedule="random:3", check_races=True, plan="p", plan_steps=9,
    )  # fmt: skip
    assert json.loads(settings.to_text()) == asdict(settings)
    assert RunSettings.from_text(settings.to_text()) == settings
    assert list(json.loads(settings.to_text())) == sorted(asdict(settings))


@pytest.mark.parametrize(
    ("field", "wrong", "text"),
    [
        ("device", "npu", r"^--device: 'npu' is not a value of device; allowed: ascend, gpu, cpu "
                          r"\(did you mean 'ascend'\?\)$"),
        ("collective_check", None, r"^--collective-check: None is not a value of collective_check; allowed: all"),
        ("mindspore", "2.9", "did you mean '2.10'"),
        ("clock", "Wall", "did you mean 'wall'"),
        ("engine", "torch", "allowed: numpy, null"),
        ("transport", "tcp", "allowed: local, process, mpi"),
    ],
)  # fmt: skip
def test_choices(field, wrong, text):
    with pytest.raises(BadInputError, match=text):
        RunSettings(**{field: wrong})


def test_a_bad_text_is_refused_each_time():
    environment = {VARIABLE: '{"clock": "sundial"}'}
    for _ in range(2):
        with pytest.raises(BadInputError, match="'sundial' is not a value of clock"):
            RunSettings.from_environment(environment)
