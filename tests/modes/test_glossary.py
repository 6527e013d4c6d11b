"""dumpsim explain knows whatever dumpsim can say."""

import json
from pathlib import Path

import pytest

import dumpsim
from dumpsim.core.errors import BadInputError
from dumpsim.modes.glossary import explain

ROOT = Path(dumpsim.__file__).parent
OBSERVED = json.loads((ROOT.parent / "fixtures" / "modes" / "observed_configs.json").read_text())


@pytest.mark.parametrize("text", sorted({case["raises"] for case in OBSERVED["cases"] if case.get("raises")}))
def test_messages_of_the_real_system_are_explained(text):
    topics = explain(f"RuntimeError: {text}\n\n----------")
    assert all(topic.text for topic in topics)


def test_a_message_leads_to_its_field():
    found = explain("Dump config parse failed, dump_mode should be 0, 1 or 2, but got 7")
    assert ("allowed", "0, 1, 2") in found[0].facts


def test_a_field_tells_what_profiles_do():
    (topic,) = explain("inplace")
    assert dict(topic.facts)["after"] == "2.7/cpu, 2.10/cpu"


def test_a_setting_of_scripts():
    (topic,) = explain("exception_dump")
    assert dict(topic.facts)["allowed"] == "0, 1, 2"
    assert explain("DS-DMP-005")


def test_an_unknown_word_names_the_nearest():
    with pytest.raises(BadInputError) as caught:
        explain("savd_data")
    assert caught.value.nearest == "saved_data"
