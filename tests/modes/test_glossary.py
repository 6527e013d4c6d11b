"""dumpsim explain knows whatever dumpsim can say."""

import json
from pathlib import Path

import pytest

import dumpsim
from dumpsim.core.codes import MEANINGS
from dumpsim.core.errors import BadInputError
from dumpsim.modes.configfile import fields_of
from dumpsim.modes.glossary import Topic, explain

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


DEBUG_MODE = Topic(
    name="op_debug_mode", kind="config field", source="seed 001, spec mindspore 1",
    text="0: dump; 3: only operators that overflow; 4: only the inputs of the operator that fails.",
    facts=(
        ("place", "$.common_dump_settings.op_debug_mode"), ("type", "unsigned"), ("allowed", "0, 3, 4"),
        ("accepted, but not documented", "1, 2"), ("default", "0"),
        ("error", "on such a device only op_debug_mode 0 is supported [DS-CFG-031]"),
        (
            "warning",
            "op_debug_mode the value is not documented and is taken as 3 (op_debug_mode becomes 3) [DS-CFG-030]",
        ),
        ("warning", "op_debug_mode 4 saves no operator on such a device [DS-CFG-032]"),
        ("error", "GE dump (ENABLE_MS_GE_DUMP=1) has no exception dump [DS-CFG-052]"),
    ),
)  # fmt: skip
KERNELS = Topic(
    name="kernels", kind="config field", source="seed 001, spec mindspore 1",
    text="Full names, operator types or name-regex(...); looked at in dump_mode 1.",
    facts=(
        ("place", "$.common_dump_settings.kernels"), ("type", "array"), ("default", "[]"),
        ("warning", "a kernel is named more than once [DS-CFG-025]"),
        (
            "warning",
            "whole graphs know no operator types; only an operator of that very name is dumped: the value [DS-CFG-051]",
        ),
        ("no effect", "dump_mode is not 1"),
    ),
)  # fmt: skip
NO_SAMPLE = Topic(
    name="DS-CFG-009", kind="config error", source="spec mindspore 1", text="0 elements are no sample.",
    facts=(
        ("place", "$.e2e_dump_settings.sample_num"),
        ("MindSpore says", "Dump Json Parse Failed. sample_num should be greater than 0"), ("allowed", "1 and more"),
    ),
)  # fmt: skip
FORCED = Topic(
    name="DS-CFG-036", kind="config warning", source="spec mindspore 1",
    text="op_debug_mode is 3; input_output is set to 0.",
    facts=(
        ("place", "$.common_dump_settings.input_output"),
        ("MindSpore says", "When the `op_debug` mode is set to 3, `input_output` should be set to 0."),
        ("forced", "input_output = 0"),
    ),
)  # fmt: skip
SECTION = Topic(
    name="DS-CFG-010", kind="config error", text="The section common_dump_settings is missing.",
    facts=(("MindSpore says", "Check dump json failed, common_dump_settings not found"),),
)  # fmt: skip
MODE_OF_ACL = Topic(
    name="dump_mode", kind="item of an ACL config", source="spec ge 2.1", text="Which tensors.",
    facts=(("allowed", "all, input, output"), ("default", "output")),
)  # fmt: skip
STEPS_OF_ACL = Topic(
    name="dump_step", kind="item of an ACL config", source="spec ge 2.1",
    text="Iterations: numbers and ranges between bars, 0|3-5.",
)  # fmt: skip
SET_DUMP = Topic(
    name="set_dump", kind="field of a profile (--set)", source="decisions", text="Whether dump_mode 2 is allowed.",
    facts=(
        (
            "true",
            "seed/ascend_o0, seed/ascend_o2, seed/ascend_ge, seed/gpu, seed/cpu, 2.7/ascend_o0, 2.10/ascend_o0",
        ),
        ("false", "2.7/gpu, 2.7/cpu, 2.10/gpu, 2.10/cpu"),
    ),
)  # fmt: skip
GRAPHS_PATH = Topic(
    name="MS_DEV_SAVE_GRAPHS_PATH", kind="environment variable", source="spec mindspore 1.5",
    text="Directory for the graphs.",
)  # fmt: skip
TASKS = tuple(
    Topic(name=code, kind="runtime code", source="spec parallel 4.5", text=f"An {unit} task failed.")
    for code, unit in (("507015", "AI Core"), ("507018", "AI CPU"))
)


@pytest.mark.parametrize(
    ("word", "topics"),
    [
        ("op_debug_mode", (DEBUG_MODE,)),
        (" $.common_dump_settings.Op_Debug_Mode ", (DEBUG_MODE,)),
        ("kernels", (KERNELS,)),
        ("RuntimeError: Parenthesis is not closed.", (KERNELS,)),
        ("Dump Json Parse Failed. sample_num should be greater than 0", (NO_SAMPLE,)),
        ("ds-cfg-036", (FORCED,)),
        ("[DS-CFG-010]", (SECTION,)),
        ("Check dump json failed, common_dump_settings not found", (SECTION,)),
        ("dump_step", (STEPS_OF_ACL,)),
        ("set_dump", (SET_DUMP,)),
        ("ms_dev_save_graphs_path", (GRAPHS_PATH,)),
        ("error code is 507015, then 507018", TASKS),
        ("507015", TASKS[:1]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_the_whole_answer(word, topics):
    assert explain(word) == topics


def test_a_word_of_several_configs_has_several_answers():
    found = explain("dump_mode")
    assert [topic.kind for topic in found] == ["config field", "item of an ACL config"]
    assert found[1] == MODE_OF_ACL
    assert [topic.kind for topic in explain("dump_scene")] == ["item of an ACL config", "setting of a script"]
    code = explain("DS-CFG-009")
    assert [topic.text for topic in code] == [
        "$.e2e_dump_settings.sample_num is missing or has an illegal value. Elements that a sample keeps.",
        "0 elements are no sample.",
    ]
    assert code[1] == NO_SAMPLE
    assert ("no effect", "sample_mode is 0") in code[0].facts


@pytest.mark.parametrize("field", fields_of("common_dump_settings") + fields_of("e2e_dump_settings"))
def test_each_fact_of_a_field_is_told_once_and_for_people(field):
    for topic in explain(field):
        assert len(set(topic.facts)) == len(topic.facts)
        assert not [text for _, text in topic.facts if "{" in text or "(rules=" in text or "<" in text]


@pytest.mark.parametrize(
    ("word", "subject"),
    [("NaN", "nan"), ("nans", "nan"), ("loss is NaN", "nan"), ("inf", "overflow"), ("-Inf", "overflow"),
     ("overflow", "overflow"), ("saturation", "overflow")],
)  # fmt: skip
def test_subjects_have_other_words(word, subject):
    (topic,) = explain(word)
    assert (topic.name, topic.kind) == (subject, "subject")


@pytest.mark.parametrize(
    ("word", "code"),
    [("EP0002: Value x for configuration item y", "DS-ACL-002"), ("ep0005", "DS-ACL-005"), ("EI0002 timeout", "EI0002"),
     ("DS-DMP-005", "DS-DMP-005")],
)  # fmt: skip
def test_codes_in_texts(word, code):
    (topic,) = explain(word)
    assert (topic.name, topic.kind) == (code, "code")


def test_a_field_that_a_message_names_is_explained():
    (topic,) = explain("what is net_name for")
    assert topic == explain("net_name")[0]


@pytest.mark.parametrize("word", ["savd_data", "EP9999", "507999", "1507015", "of no use", ""])
def test_an_unknown_word_is_refused(word):
    with pytest.raises(BadInputError, match="dumpsim explain: unknown word") as caught:
        explain(word)
    assert caught.value.code == "DS-RUN-009"


def test_an_unknown_word_names_the_nearest():
    for word, nearest in (
        ("savd_data", "saved_data"), ("dump_scnee", "dump_scene"), ("watcher_node", "watcher_nodes"),
        ("iteration_rul", "iteration_rule"), ("exception_dmp", "exception_dump"), ("DS-CFG-0099", "DS-CFG-009"),
    ):  # fmt: skip
        with pytest.raises(BadInputError) as caught:
            explain(word)
        assert caught.value.nearest == nearest


def test_what_helps_against_an_error_is_shown_with_its_code():
    shown = {code: dict(explain(code)[0].facts).get("what helps", "") for code in MEANINGS}
    assert shown == {code: meaning.help for code, meaning in MEANINGS.items()}
    assert any(shown.values())
