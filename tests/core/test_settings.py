"""What `dumpsim run` hands on through the environment."""

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


def test_a_bad_text_is_refused_each_time():
    environment = {VARIABLE: '{"clock": "sundial"}'}
    for _ in range(2):
        with pytest.raises(BadInputError, match="'sundial' is not a value of clock"):
            RunSettings.from_environment(environment)
