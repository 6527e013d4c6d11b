"""The dump that the variables of a process configure."""

import json

import pytest

from dumpsim.core.errors import DumpConfigError, UnsupportedError
from dumpsim.modes.environment import READ_ONCE, read_environment

COMMON = {"dump_mode": 0, "path": "/d", "net_name": "Net", "iteration": "0", "input_output": 0, "kernels": [],
          "support_device": [0], "op_debug_mode": 0}  # fmt: skip
IGNORE = "MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT"
GE = "ENABLE_MS_GE_DUMP"


@pytest.fixture
def asked(tmp_path):
    def read(environment=None, *, e2e=True, **words):
        file = tmp_path / "dump.json"
        sections = {"e2e_dump_settings": {"enable": True}} if e2e else {}
        file.write_text(json.dumps({"common_dump_settings": COMMON, **sections}))
        given = {"release": "seed", "target": "Ascend", **words}
        return read_environment({"MINDSPORE_DUMP_CONFIG": str(file), **(environment or {})}, **given)

    return read


def test_variables_that_are_read_once():
    assert READ_ONCE == ("MINDSPORE_DUMP_CONFIG", "MS_DIAGNOSTIC_DATA_PATH")


@pytest.mark.parametrize(
    ("words", "environment", "profile"),
    [
        ({}, {}, "seed/ascend_o0"), ({"jit_level": "O1"}, {}, "seed/ascend_o0"),
        ({"jit_level": "O2"}, {}, "seed/ascend_o2"), ({"jit_level": "O2"}, {GE: "0"}, "seed/ascend_o2"),
        ({"jit_level": "O2"}, {GE: "1"}, "seed/ascend_ge"), ({"target": "GPU", "jit_level": "O2"}, {}, "seed/gpu"),
        ({"target": "CPU", "release": "2.7"}, {}, "2.7/cpu"),
    ],
)  # fmt: skip
def test_the_profile_of_a_process(asked, words, environment, profile):
    found = asked(environment, e2e="O2" not in words.values() or "target" in words, **words)
    assert (found.profile.name, found.warnings) == (profile, ())


def test_overrides_and_the_device_count(asked):
    found = asked(overrides={"bfloat16": "raw"}, device_id=1)
    assert found.profile.bfloat16 == "raw"
    assert found.request.disabled == "support_device does not list device 1"
    assert found.warnings == (("JudgeDumpEnabled", "device 1 is not listed; nothing is dumped"),)


def test_ge_needs_whole_graphs(asked):
    text = "ENABLE_MS_GE_DUMP has no effect: it belongs to Ascend with jit_level O2"
    for words in ({}, {"target": "CPU"}):
        assert asked({GE: "1"}, **words).warnings == (("", text),)


@pytest.mark.parametrize(("level", "value", "refused"), [
    ("O2", "2", True), ("O2", "1", False), ("O2", "0", False), ("O2", "", False), ("O0", "2", False),
])  # fmt: skip
def test_the_lite_exception_dump_and_whole_graphs_exclude_each_other(asked, level, value, refused):
    """[decisions]"""
    if not refused:
        assert asked(e2e=level == "O0", jit_level=level, exception_dump=value) is not None
        return
    with pytest.raises(DumpConfigError) as caught:
        asked(e2e=False, jit_level=level, exception_dump=value)
    assert str(caught.value) == (
        'set_context(ascend_config={"exception_dump": "2"}): the lite exception dump and the dump of whole graphs '
        "exclude each other; allowed: 0, 1 (did you mean '1'?) [DS-DMP-005]"
    )


def test_a_release_without_whole_graphs_says_so(asked):
    with pytest.raises(UnsupportedError, match=r"gone since MindSpore 2\.6"):
        asked(e2e=False, jit_level="O2", release="2.10")
    found = asked(e2e=False, jit_level="O2", release="2.10", overrides={"o2": "present"}, exception_dump="1")
    assert found.profile.name == "2.10/ascend_o2"


@pytest.mark.parametrize(("value", "kept"), [(None, False), ("1", False), ("0", True), ("", None), ("00", None)])
def test_whether_useless_outputs_are_dumped(asked, value, kept):
    found = asked({} if value is None else {IGNORE: value})
    text = f"{IGNORE} should be 0 or 1, but got {value!r}; the default 1 is used"  # [spec mindspore 1.5]
    assert found.request.useless_outputs is bool(kept)
    assert found.warnings == ((("", text),) if kept is None else ())
