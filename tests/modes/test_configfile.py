"""The config dialect: what MindSpore 2.10.0 said of odd configs, and the seed's own rules."""

import copy
import json
from pathlib import Path

import pytest

from dumpsim.core.errors import DumpConfigError
from dumpsim.core.match import KernelRules
from dumpsim.core.steps import Steps
from dumpsim.modes.configfile import check_all, config_schema, load, read_file
from dumpsim.modes.environment import read_environment
from dumpsim.modes.gesteps import check_ge_steps
from dumpsim.modes.profile import find, names
from dumpsim.modes.request import Blocked, DumpRequest, ModelRule, RequestedStatistics, Selection

RECORDED = json.loads((Path(__file__).parents[2] / "fixtures/modes/observed_configs.json").read_text())
COMMON, E2E = "common_dump_settings", "e2e_dump_settings"
BASE = RECORDED["base"]


def document(changes=None, drop=()):
    """The base config with some fields changed or dropped."""
    found = copy.deepcopy(BASE)
    for path in drop:
        section, _, name = path.partition(".")
        if name:
            del found[section][name]
        else:
            del found[section]
    for path, value in (changes or {}).items():
        section, _, name = path.partition(".")
        if name:
            found[section][name] = value
        else:
            found[section] = value
    return found


def text_of(changes=None, drop=()):
    return json.dumps(document(changes, drop)).encode()


def case_text(case):
    if "text" in case:
        return case["text"].encode()
    return case.get("prefix", "").encode() + text_of(case.get("set"), case.get("drop", ()))


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: f"{case['row']}-{case['case'][:50]}")
def test_observed_outcome(case):
    profile = find("2.10", "cpu")
    env = case.get("env", {})
    findings = check_all(case_text(case), env, profile)
    if case["raises"] is None:
        request, warnings = load(case_text(case), env, profile)
        assert [w.text for w in warnings] == case["warnings"]
        assert "path" not in case or request.path == case["path"]
        assert not [f for f in findings if f.level == "error"]
        return
    with pytest.raises(DumpConfigError) as caught:
        load(case_text(case), env, profile)
    assert str(caught.value) == case["raises"]
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.code
    assert caught.value.__notes__
    first = next(f for f in findings if f.level == "error")
    assert first.vendor == case["raises"]


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: f"{case['row']}-{case['case'][:50]}")
def test_releases_agree(case):
    """2.7.0 gave the same outcome for every config."""
    outcomes = []
    for release in ("2.7", "2.10"):
        try:
            outcomes.append([w.text for w in load(case_text(case), case.get("env", {}), find(release, "cpu"))[1]])
        except DumpConfigError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_check_shows_every_error_and_a_run_the_first():
    text = text_of({f"{COMMON}.dump_mode": "0", f"{COMMON}.saved_data": "tensors", f"{E2E}.sample_mode": 7})
    found = check_all(text, {}, find("seed", "ascend_o0"))
    errors = [f for f in found if f.level == "error"]
    assert [f.where for f in errors] == [
        f"$.{E2E}.sample_mode",
        f"$.{COMMON}.dump_mode",
        f"$.{COMMON}.saved_data",
    ]
    assert [f.nearest for f in errors] == [None, "0", "tensor"]
    with pytest.raises(DumpConfigError) as caught:
        load(text, {}, find("seed", "ascend_o0"), file="my.json")
    assert f"my.json: $.{E2E}.sample_mode" in caught.value.__notes__[0]


def test_what_was_probably_meant():
    changes = {
        f"{COMMON}.kernels": "MatMul",
        f"{COMMON}.input_output": "2",
        f"{COMMON}.net_name": "my net",
        f"{COMMON}.iteration": "0, 2",
        f"{COMMON}.op_debug_mode": 5,
        f"{E2E}.stat_calc_mode": "devise",
        f"{E2E}.trans_flag": "false",
    }
    found = {f.where.rsplit(".", 1)[-1]: f for f in check_all(text_of(changes), {}, find("seed", "ascend_o0"))}
    assert {name: f.nearest for name, f in found.items()} == {
        "kernels": '["MatMul"]',
        "input_output": "2",
        "net_name": "my_net",
        "iteration": "0|2",
        "op_debug_mode": None,
        "stat_calc_mode": "device",
        "trans_flag": "false",
    }
    assert found["op_debug_mode"].allowed == ("0", "3", "4")


def test_undocumented_debug_modes_are_taken_as_overflow():
    text = text_of({f"{COMMON}.op_debug_mode": 1, f"{COMMON}.dump_mode": 0, f"{COMMON}.input_output": 0})
    for release, warnings in (("seed", 1), ("2.10", 0)):
        request, found = load(text, {}, find(release, "ascend_o0"))
        assert (request.trigger, len(found)) == ("overflow", warnings)


def seed(device, changes=None, drop=(), env=None, **options):
    return load(text_of(changes, drop), env or {}, find("seed", device), **options)


def test_seed_accepts_blanks_in_iteration():
    request, _ = seed("cpu", {f"{COMMON}.iteration": "0 | 5-8 | 100-120"})
    assert [n for n in (0, 1, 6, 120, 121) if n in request.steps] == [0, 6, 120]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("change", [({f"{E2E}.enable": False}, ()), ({}, (f"{E2E}.enable",)), ({}, (E2E,))])
def test_seed_wants_enable_true_off_ascend(device, change):
    with pytest.raises(DumpConfigError, match="this field must be true"):
        seed(device, *change)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("mode", [3, 4])
def test_seed_has_no_debug_modes_off_ascend(device, mode):
    with pytest.raises(DumpConfigError, match="only op_debug_mode 0 is supported"):
        seed(device, {f"{COMMON}.op_debug_mode": mode})


def test_seed_support_device_is_optional_on_ascend_and_gpu_only():
    for device in ("ascend_o0", "gpu"):
        found = {n: seed(device, drop=[f"{COMMON}.support_device"], device_id=n)[0].disabled for n in range(9)}
        assert [n for n, why in found.items() if why is None] == list(range(8))
    with pytest.raises(DumpConfigError, match="support_device not found"):
        seed("cpu", drop=[f"{COMMON}.support_device"])


def test_seed_overflow_takes_tensors_on_the_host():
    changes = {
        f"{COMMON}.op_debug_mode": 3,
        f"{COMMON}.saved_data": "statistic",
        f"{E2E}.stat_calc_mode": "device",
        f"{E2E}.sample_mode": 1,
    }
    request, warnings = seed("ascend_o0", changes)
    assert (request.tensors, request.statistics, request.sample) == (True, None, None)
    assert (request.selection, request.inputs, request.outputs) == (Selection(), True, True)
    assert {name for w in warnings for name, _ in w.forced} == {
        "sample_mode", "dump_mode", "input_output", "saved_data", "stat_calc_mode",
    }  # fmt: skip


def test_observed_overflow_may_save_statistics():
    changes = {f"{COMMON}.op_debug_mode": 3, f"{COMMON}.saved_data": "statistic", f"{COMMON}.dump_mode": 0}
    request, _ = load(text_of(changes), {}, find("2.10", "ascend_o0"))
    assert request.statistics is not None
    assert not request.tensors


def test_exception_mode_forces_everything_that_it_cannot_do():
    changes = {f"{COMMON}.op_debug_mode": 4, f"{COMMON}.saved_data": "full", f"{COMMON}.iteration": "0|2"}
    for release in ("seed", "2.10"):
        request, warnings = load(text_of(changes), {}, find(release, "ascend_o0"))
        assert (request.tensors, request.statistics, request.steps.every) == (True, None, True)
        assert (request.trigger, request.selection) == ("failure", Selection())
        assert len(warnings) == 3


def test_a_device_that_is_not_listed_dumps_nothing():
    for device in ("ascend_o0", "gpu"):
        request, warnings = seed(device, {f"{COMMON}.support_device": [1, 2]}, device_id=0)
        assert request.disabled == "support_device does not list device 0"
        assert warnings[-1].what == "device 0 is not listed; nothing is dumped"
        assert seed(device, {f"{COMMON}.support_device": [1, 2]}, device_id=2)[0].disabled is None
    assert seed("cpu", {f"{COMMON}.support_device": []})[0].disabled is None


def test_no_e2e_section_on_ascend_gives_three_alerts_and_nothing():
    request, warnings = seed("ascend_o0", drop=[E2E])
    assert "e2e_dump_settings" in request.disabled
    assert [w.text[:18] for w in warnings] == ["[Dump Alert 1/3]: ", "[Dump Alert 2/3]: ", "[Dump Alert 3/3]: "]
    with pytest.raises(DumpConfigError, match="op_debug_mode not found"):
        load(text_of(drop=[E2E, f"{COMMON}.op_debug_mode"]), {}, find("2.10", "ascend_o0"))


def test_statistics_per_device():
    changes = {f"{COMMON}.saved_data": "statistic", f"{E2E}.stat_calc_mode": "device"}
    assert seed("ascend_o0", changes)[0].statistics.device
    request, warnings = seed("gpu", changes)
    assert not request.statistics.device
    assert len(warnings) == 1
    with pytest.raises(DumpConfigError, match="storing statistic dump is only supported on GPU and Ascend"):
        seed("cpu", changes)


def test_statistic_category():
    base = {f"{COMMON}.saved_data": "full"}
    assert seed("gpu", base)[0].statistics.names == ("max", "min", "l2norm")
    assert seed("gpu", base | {f"{COMMON}.statistic_category": []})[0].statistics.names == ()
    twice = base | {f"{COMMON}.statistic_category": ["md5", "max", "max"]}
    assert seed("gpu", twice)[0].statistics.names == ("md5", "max", "max")
    assert load(text_of(twice), {}, find("2.10", "gpu"))[0].statistics.names == ("md5", "max")
    with pytest.raises(DumpConfigError) as caught:
        seed("gpu", base | {f"{COMMON}.statistic_category": ["max", "mean", "maxx"]})
    assert "['mean', 'maxx']" in str(caught.value)
    with pytest.raises(DumpConfigError, match="invalid"):
        seed("gpu", base | {f"{COMMON}.statistic_category": ["hash:sha1"]})
    digests = base | {f"{COMMON}.statistic_category": ["hash", "hash:md5", "hash:sha1"]}
    assert load(text_of(digests), {}, find("2.10", "gpu"))[0].statistics.names == ("sha1", "md5", "sha1")
    on_device = {f"{COMMON}.saved_data": "statistic", f"{E2E}.stat_calc_mode": "device"}
    request, warnings = seed("ascend_o0", on_device | {f"{COMMON}.statistic_category": ["md5", "max", "l2norm"]})
    assert request.statistics.names == ("max", "l2norm")
    assert warnings[-1].what.endswith("dropped: md5")


def test_set_dump_per_release():
    changes = {f"{COMMON}.dump_mode": 2}
    for device in ("ascend_o0", "gpu", "cpu"):
        assert seed(device, changes)[0].selection == Selection(marked=True)
    with pytest.raises(DumpConfigError, match="Set dump is only supported"):
        load(text_of(changes), {}, find("2.7", "gpu"))
    assert load(text_of(changes), {}, find("2.7", "ascend_o0"))[0].selection == Selection(marked=True)


def test_overflow_number_outside_its_mode():
    changes = {f"{COMMON}.overflow_number": 2}
    assert "op_debug_mode 3 only" in seed("ascend_o0", changes)[1][0].what
    with pytest.raises(DumpConfigError, match="only need to be set"):
        load(text_of(changes), {}, find("2.7", "ascend_o0"))


def test_fields_without_effect_are_listed():
    changes = {
        f"{COMMON}.file_format": "bin",
        f"{COMMON}.statistic_category": ["max"],
        f"{COMMON}.net_nam": "x",
        f"{E2E}.sample_mode": 1,
        f"{E2E}.sample_num": 7,
        f"{E2E}.save_kernel_args": True,
        "async_dump_settings": {},
    }
    found = check_all(text_of(changes), {}, find("2.10", "cpu"))
    listed = {f.where.rsplit(".", 1)[-1]: f for f in found if f.level == "no effect"}
    assert set(listed) == {
        "file_format", "statistic_category", "support_device", "enable", "trans_flag", "sample_mode", "sample_num",
        "save_kernel_args", "net_nam", "async_dump_settings",
    }  # fmt: skip
    assert listed["net_nam"].nearest == "net_name"
    assert not [f for f in check_all(text_of(), {}, find("seed", "ascend_o0")) if f.level == "no effect"]


def test_schema_of_every_profile():
    for name in names():
        found = config_schema(find(*name.split("/")))
        assert found["required"] == [COMMON]
        required = set(found["properties"][COMMON]["required"])
        assert {"dump_mode", "net_name", "iteration", "input_output", "kernels"} <= required
        assert ("support_device" in required) == (not name.startswith("seed") or name == "seed/cpu")
        if name.endswith(("o2", "ge")):
            assert E2E not in found["properties"]
            assert found["properties"][COMMON]["properties"]["file_format"]["enum"] == ["bin", "npy"]
        else:
            assert "file_format" not in found["properties"][COMMON]["properties"]
            assert found["properties"][E2E]["properties"]["stat_calc_mode"]["enum"] == ["host", "device"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("|".join("1" * 101), "the number of collection ranges can not exceed 100."),
        ("1-2-3", "need range step such as 0-5."),
        ("a", "the step is not a digit."),
        ("1|", "the step is not a digit."),
        ("٣", "the step is not a digit."),
        ("2147483648", "the step is out of range."),
        ("1" * 5000, "the step is out of range."),
        ("0" * 5000 + "2147483648", "the step is out of range."),
        ("5-3", "in range steps, the first step is >= second step, correct range steps is as 5-10."),
        ("3-3", "in range steps, the first step is >= second step, correct range steps is as 5-10."),
        ("2-", "the step is not a digit."),
        ("", "the step is not a digit."),
    ],
)
def test_steps_that_ge_refuses(text, reason):
    with pytest.raises(DumpConfigError) as caught:
        check_ge_steps(text)
    assert str(caught.value) == f"E10001: Value [{text}] for parameter [dumpStep] is invalid. Reason: {reason}"


@pytest.mark.parametrize(
    "text", ["0", "0|5-8|2147483647", " 1 - 2 ", "|".join("1" * 100), "0" * 5000 + "2147483647", "3-4", "9-10"], ids=len
)
def test_steps_that_ge_takes(text):
    assert check_ge_steps(text) is None


def test_the_file_that_the_environment_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read_file({}) is None
    assert read_file({"MINDSPORE_DUMP_CONFIG": ""}) is None

    def refused(name):
        with pytest.raises(DumpConfigError) as caught:
            read_file({"MINDSPORE_DUMP_CONFIG": str(name)})
        return str(caught.value)

    assert refused(tmp_path / "nope.json") == refused("nope.json") == "Get dump config file failed"
    plain = tmp_path / "plain"
    plain.mkdir()
    assert refused(plain) == f"Invalid json file name:{plain}"
    for name in ("a.txt", "a.JSON"):
        (tmp_path / name).write_text("{}")
        suffix = name.split(".")[1]
        assert refused(name) == f"[DataDump] dump config file suffix only supports json! But got:.{suffix}"
    (tmp_path / "a.json").write_bytes(b"{}")
    (tmp_path / "link").symlink_to("a.json")  # the suffix is that of the file
    for name in ("a.json", "link"):
        assert read_file({"MINDSPORE_DUMP_CONFIG": name}) == (name, b"{}")


def test_every_field_of_a_request_is_what_the_config_says():
    changes = {
        f"{COMMON}.path": "/d",
        f"{COMMON}.net_name": "Net",
        f"{COMMON}.dump_mode": 1,
        f"{COMMON}.kernels": ["MatMul"],
        f"{COMMON}.iteration": "3",
        f"{COMMON}.input_output": 1,
        f"{COMMON}.op_debug_mode": 0,
        f"{COMMON}.saved_data": "full",
        f"{COMMON}.statistic_category": ["nan count", "zero count"],
        f"{COMMON}.initial_iteration": 2,
        f"{E2E}.trans_flag": False,
        f"{E2E}.sample_mode": 1,
        f"{E2E}.sample_num": 7,
        f"{E2E}.save_kernel_args": True,
        f"{E2E}.enable": True,
    }
    text = text_of(changes)
    request, _ = load(text, {}, find("seed", "ascend_o0"), file="a.json")
    assert request == DumpRequest(
        path="/d", net_name="Net", file="a.json", text=text, selection=Selection(rules=request.selection.rules),
        inputs=True, outputs=False, steps=request.steps, first_step=2, tensors=True,
        statistics=RequestedStatistics(names=("nan", "zero")), host_layout=False, sample=7, kernel_arguments=True,
    )  # fmt: skip
    assert [rule.text for rule in request.selection.rules.rules] == ["MatMul"]
    assert [n for n in range(5) if n in request.steps] == [3]
    same, _ = load(text_of(changes | {f"{E2E}.enable": False}), {}, find("seed", "ascend_o0"))
    assert (same.asynchronous, same.kernel_arguments) == (True, False)
    cpu, _ = load(text_of(changes | {f"{COMMON}.saved_data": "tensor"}), {}, find("seed", "cpu"))
    assert (cpu.host_layout, cpu.sample, cpu.kernel_arguments, cpu.asynchronous) == (True, None, False, False)
    overflow = {f"{COMMON}.op_debug_mode": 3, f"{COMMON}.overflow_number": 4}
    request, _ = load(text_of(overflow), {}, find("seed", "ascend_o0"))
    assert (request.trigger, request.overflow_limit) == ("overflow", 4)


@pytest.mark.parametrize(
    ("value", "kept", "warned"), [(None, False, 0), ("1", False, 0), ("0", True, 0), ("2", False, 1)]
)
def test_the_environment_keeps_useless_outputs(tmp_path, value, kept, warned):
    file = tmp_path / "dump.json"
    file.write_bytes(text_of())
    environment = {"MINDSPORE_DUMP_CONFIG": str(file)}
    if value is not None:
        environment["MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT"] = value
    asked = read_environment(environment, release="seed", target="GPU")
    assert (asked.request.useless_outputs, len(asked.warnings)) == (kept, warned)
    assert asked.request.file == str(file)
    assert read_environment({}, release="seed", target="GPU") is None


@pytest.mark.parametrize("depth", [600, 3_000])
@pytest.mark.parametrize("profile", [find("seed", "cpu"), find("2.10", "ascend_o0")], ids=str)
@pytest.mark.parametrize(
    "text",
    [
        '{{"common_dump_settings": {0}}}',
        '{{"common_dump_settings": {{"dump_mode": {0}, "path": {0}, "kernels": [{0}], "support_device": [{0}]}}}}',
        '{{"common_dump_settings": {{"statistic_category": [{0}], "iteration": {0}}}, "e2e_dump_settings": {0}}}',
        '{{"common_dump_settings": {{"dump_mode": 0}}, "e2e_dump_settings": {{"enable": {0}}}}}',
    ],
)
def test_a_config_nested_deep_is_wrong_and_no_crash(depth, profile, text):
    assert_wrong(text, depth, profile)


def test_a_config_nested_deeper_than_any_stack_is_wrong_and_no_crash():
    assert_wrong('{{"common_dump_settings": {{"dump_mode": 0, "kernels": {0}}}}}', 100_000, find("2.10", "ascend_o0"))


def assert_wrong(text, depth, profile):
    for start, end in ("[]", ('{"a":', "}")):
        value = start * depth + ("1" if end == "}" else "") + end * depth
        data = text.format(value).encode()
        assert any(finding.level == "error" for finding in check_all(data, {}, profile))
        with pytest.raises(DumpConfigError):
            load(data, {}, profile)


@pytest.mark.parametrize(("text", "idle"), [("8-5|2", "'8-5'"), ("1-|-3|4", "'1-', '-3'"), ("0-1-2", "'0-1-2'")])
@pytest.mark.parametrize("profile", ["ascend_o0", "ascend_o2", "cpu"])
def test_ranges_that_match_nothing_are_told(profile, text, idle):
    config = json.dumps(document({f"{COMMON}.iteration": text, f"{COMMON}.path": "/tmp/dump"}))
    findings = check_all(config.encode(), {}, find("seed", profile), file="dump.json")
    (found,) = (one for one in findings if one.where.endswith(".iteration"))
    assert found.level == "no effect"
    assert found.what == f"no effect: {idle} matches no iteration; a range goes up, as 5-8"


@pytest.mark.parametrize(
    ("profile", "mode", "told"),
    [("ascend_o2", 2, True), ("ascend_o2", 0, False), ("ascend_o0", 2, False), ("ascend_o0", 0, False)],
)
def test_what_set_dump_cannot_reach_is_told_where_operators_are_fused(profile, mode, told):
    """Fusion takes the mark away in whole graphs alone. [spec mindspore 2.3]"""
    found = check_all(text_of({f"{COMMON}.dump_mode": mode}), {}, find("seed", profile))
    marks = [(one.level, one.where) for one in found if one.code == "DS-CFG-057"]
    assert marks == ([("warning", f"$.{COMMON}.dump_mode")] if told else [])


SAMPLED = {  # numbers that a run reads in one mode alone
    "sample_num": {f"{E2E}.sample_mode": 1},
    "overflow_number": {f"{COMMON}.op_debug_mode": 3},
}


@pytest.mark.parametrize("name", ["seed/ascend_o0", "seed/ascend_ge", "2.10/cpu"])
def test_the_schema_refuses_the_negative_numbers_that_a_run_refuses(name):
    profile = find(*name.split("/"))
    found = config_schema(profile)["properties"]
    numbers = [
        (section, field, entry)
        for section, fields in found.items()
        for field, entry in fields["properties"].items()
        if entry["type"] == "integer"
    ]
    assert len(numbers) > 2
    for section, field, entry in numbers:
        by_schema = "enum" in entry or entry.get("minimum") == 0
        findings = check_all(text_of(SAMPLED.get(field, {}) | {f"{section}.{field}": -1}), {}, profile)
        by_run = any(one.level == "error" and one.where == f"$.{section}.{field}" for one in findings)
        assert by_schema == by_run, field


@pytest.mark.parametrize(("name", "kind"), [("ascend_o0", "type"), ("ascend_o2", "name")])
def test_a_plain_word_is_a_type_or_in_whole_graphs_a_name(name, kind):
    text = text_of({f"{COMMON}.dump_mode": 1, f"{COMMON}.kernels": ["MatMul"]})
    request, _ = load(text, {}, find("seed", name))
    assert [rule.kind for rule in request.selection.rules.rules] == [kind]


@pytest.mark.parametrize(("given", "wanted"), [({}, False), ({f"{E2E}.save_kernel_args": True}, True)])
def test_arguments_of_kernels_are_saved_where_that_is_asked_for(given, wanted):
    text = text_of({f"{E2E}.enable": True} | given)
    assert load(text, {}, find("seed", "ascend_o0"))[0].kernel_arguments is wanted


@pytest.mark.parametrize(("mode", "warned"), [(0, False), (4, True)])
@pytest.mark.parametrize("name", ["seed/ascend_o0", "2.10/ascend_o0"])
def test_tensors_of_an_exception_are_not_sampled(name, mode, warned):
    changes = {f"{COMMON}.op_debug_mode": mode, f"{E2E}.sample_mode": 1, f"{E2E}.sample_num": 7}
    found = check_all(text_of(changes), {}, find(*name.split("/")))
    assert ("DS-CFG-034" in [one.code for one in found if one.level == "warning"]) is warned
    request, _ = load(text_of(changes), {}, find(*name.split("/")))
    assert request.sample == (None if warned else 7)


@pytest.mark.parametrize(
    ("changes", "vendor", "nearest"),
    [
        ({f"{COMMON}.path": ""}, "Dump path is empty. Please set it in dump json file or environment variable "
         "`MS_DIAGNOSTIC_DATA_PATH`.", None),
        ({f"{COMMON}.path": "/a.b"}, "Dump path only support alphabets, digit or {'-', '_', '/'}, but got:/a.b", None),
        ({f"{COMMON}.path": "a/b"}, "Dump path only support absolute path and should start with '/'", "/home/me/a/b"),
        ({f"{COMMON}.path": "./a"}, "Dump path only support alphabets, digit or {'-', '_', '/'}, but got:./a",
         "/home/me/a"),
        ({f"{COMMON}.path": "../a.b"}, "Dump path only support alphabets, digit or {'-', '_', '/'}, but got:../a.b",
         None),
        ({f"{COMMON}.path": "~/a"}, "Dump path only support alphabets, digit or {'-', '_', '/'}, but got:~/a", None),
        ({f"{COMMON}.net_name": ""}, "net_name only supports alphabetic, digit, or {'-', '_'}, but got: ", None),
        ({f"{COMMON}.net_name": ". "}, "net_name only supports alphabetic, digit, or {'-', '_'}, but got: . ", None),
        ({f"{COMMON}.net_name": "a/b"}, "net_name only supports alphabetic, digit, or {'-', '_'}, but got: a/b", "a_b"),
        ({f"{COMMON}.support_device": [0, "1"]}, "[json.exception.type_error.302] type must be number, but is string",
         "1"),
        ({f"{COMMON}.support_device": ["a"]}, "[json.exception.type_error.302] type must be number, but is string",
         None),
        ({f"{COMMON}.support_device": [None]}, "[json.exception.type_error.302] type must be number, but is null",
         None),
        ({f"{COMMON}.support_device": [[]]}, "[json.exception.type_error.302] type must be number, but is array", None),
        ({f"{COMMON}.support_device": [{}]}, "[json.exception.type_error.302] type must be number, but is object",
         None),
        ({f"{COMMON}.saved_data": "full", f"{COMMON}.statistic_category": ["max", True]},
         "[json.exception.type_error.302] type must be string, but is boolean", None),
        ({f"{COMMON}.saved_data": "full", f"{COMMON}.statistic_category": [1.5]},
         "[json.exception.type_error.302] type must be string, but is number", None),
    ],
)  # fmt: skip
def test_what_fields_refuse_in_the_vendors_words(changes, vendor, nearest):
    """[spec observed 2]"""
    text, profile = text_of(changes), find("seed", "gpu")
    (found,) = (one for one in check_all(text, {"PWD": "/home/me"}, profile) if one.level == "error")
    assert (found.vendor, found.nearest) == (vendor, nearest)
    (bare,) = (one for one in check_all(text, {}, profile) if one.level == "error")
    assert bare.nearest == (None if "/home/me" in (nearest or "") else nearest)


def test_the_place_of_a_wrong_device_is_named():
    found = check_all(text_of({f"{COMMON}.support_device": [0, 1.5, True, "x"]}), {}, find("seed", "gpu"))
    assert [one.where for one in found if one.level == "error"] == [f"$.{COMMON}.support_device[3]"]


@pytest.mark.parametrize(("given", "listed"), [([1.9], {1}), ([True], {1}), ([-1], set()), ([2**32 + 2], {2})])
def test_devices_are_numbers_as_the_library_converts_them(given, listed):
    """To 32 bits, from any number or truth value. [spec observed 2]"""
    text = text_of({f"{COMMON}.support_device": given})
    dumping = {n for n in range(4) if load(text, {}, find("seed", "gpu"), device_id=n)[0].disabled is None}
    assert dumping == listed


def test_the_path_of_the_environment_goes_through_the_same_rules():
    text = text_of({f"{COMMON}.path": ""})
    environment = {"MS_DIAGNOSTIC_DATA_PATH": "/data"}
    assert load(text, environment, find("seed", "gpu"))[0].path == "/data/debug_dump"
    found = check_all(text, {"MS_DIAGNOSTIC_DATA_PATH": "data"}, find("seed", "gpu"))
    errors = [(one.where, one.code) for one in found if one.level == "error"]
    assert errors == [("MS_DIAGNOSTIC_DATA_PATH", "DS-CFG-014")]


def test_a_repeated_device_or_kernel_is_named():
    changes = {f"{COMMON}.support_device": [3, 0, 0, 3], f"{COMMON}.kernels": ["b", "a", "b", "a"]}
    _, warnings = load(text_of(changes), {}, find("2.10", "cpu"))
    assert [(one.function, one.text) for one in warnings] == [
        ("ParseKernels", "Duplicate dump kernel name:b"), ("ParseSupportDevice", "Duplicate support device:0"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["2.10/cpu", "seed/ascend_o0", "seed/ascend_o2"])
def test_kernels_are_compiled_in_their_mode_alone(name):
    changes = {f"{COMMON}.kernels": ["name-regex(()"], f"{COMMON}.dump_mode": 0}
    request, _ = load(text_of(changes), {}, find(*name.split("/")))
    assert request.selection == Selection()
    with pytest.raises(DumpConfigError):
        load(text_of(changes | {f"{COMMON}.dump_mode": 1}), {}, find(*name.split("/")))


def test_a_request_says_only_what_is_asked_for():
    assert DumpRequest(path="/d") == DumpRequest(
        path="/d", net_name="", file="", text=b"", dialect="mindspore", selection=Selection(), inputs=True,
        outputs=True, steps=Steps(text="all", every=True), first_step=0, trigger="every", overflow_limit=0,
        tensors=True, statistics=None, file_format="npy", host_layout=True, sample=None, kernel_arguments=False,
        useless_outputs=False, asynchronous=False, singles=False, watches=(), disabled=None,
    )  # fmt: skip
    assert RequestedStatistics(names=("max",)) == RequestedStatistics(names=("max",), device=False, precision="high")
    assert Blocked(name="a", by_type=True) == Blocked(name="a", by_type=True, inputs=frozenset(), outputs=frozenset())


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        (Selection(), ["a", "b", "c"]),
        (Selection(marked=True), ["b"]),
        (Selection(rules=KernelRules.parse(["N/a-op0"])), ["a"]),
        (Selection(rules=KernelRules.parse(["N/c-op0"]), marked=True), ["b", "c"]),
        (Selection(models=()), []),
    ],
)
def test_operators_by_rule_or_mark(selection, selected):
    marks = {"a": {}, "b": {"dump": "True"}, "c": {"dump": "false"}}
    assert [name for name, attrs in marks.items() if selection.selects(f"N/{name}-op0", attrs)] == selected
    assert selection.everything is (len(selected) == 3)
    assert [selection.mark(attrs) for attrs in marks.values()] == (
        ["", "True", "false"] if selection.marked else ["", "", ""]
    )


@pytest.mark.parametrize(
    ("fields", "whole"),
    [({}, True), ({"model": "m"}, True), ({"names": ()}, False), ({"names": ("a",)}, False),
     ({"ranges": (("a", "b"),)}, False), ({"names": ("a",), "ranges": (("a", "b"),)}, False)],
)  # fmt: skip
def test_a_rule_without_names_and_ranges_is_for_the_whole_model(fields, whole):
    assert ModelRule(**fields).whole is whole


@pytest.mark.parametrize(
    ("profile", "changes", "drop", "levels"),
    [
        ("2.10/cpu", {}, [E2E], ["warning"] * 3), ("2.10/gpu", {}, [E2E], ["warning"] * 3),
        ("seed/ascend_o2", {}, [], ["warning"]), ("seed/ascend_ge", {f"{COMMON}.op_debug_mode": 4}, [E2E], ["error"]),
        ("seed/ascend_o2", {f"{COMMON}.op_debug_mode": 4, f"{COMMON}.dump_mode": 0}, [E2E], []),
    ],
)  # fmt: skip
def test_sections_that_a_mode_has(profile, changes, drop, levels):
    found = check_all(text_of({f"{COMMON}.iteration": "all"} | changes, drop), {}, find(*profile.split("/")))
    ours = [one for one in found if one.where.startswith((f"$.{E2E}", f"$.{COMMON}.op_debug_mode"))]
    assert [one.level for one in ours if one.level != "no effect"] == levels


@pytest.mark.parametrize("profile", ["2.10/cpu", "2.10/gpu"])
def test_without_a_second_section_a_dump_of_other_devices_goes_on(profile):
    """Three alerts, and everything is saved in the host's layout. [spec mindspore 1.3]"""
    request, warnings = load(text_of(drop=[E2E]), {}, find(*profile.split("/")))
    assert (request.disabled, request.host_layout, request.sample, len(warnings)) == (None, True, None, 3)
    assert (request.asynchronous, request.kernel_arguments) == (False, False)


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({f"{COMMON}.overflow_number": 2, f"{COMMON}.op_debug_mode": 3}, ["DS-CFG-054"]),
        ({f"{COMMON}.overflow_number": 0, f"{COMMON}.op_debug_mode": 3}, []),
        ({f"{COMMON}.overflow_number": 2, f"{COMMON}.op_debug_mode": 3, f"{COMMON}.file_format": "npy"}, []),
        ({f"{COMMON}.saved_data": "statistic"}, ["DS-CFG-055"]),
        ({f"{COMMON}.saved_data": "statistic", f"{COMMON}.file_format": "npy"}, []),
        ({f"{COMMON}.kernels": ["Add"], f"{COMMON}.dump_mode": 1}, ["DS-CFG-051"]),
        ({f"{COMMON}.kernels": ["Add"], f"{COMMON}.dump_mode": 0}, ["DS-CFG-090"]),
        ({f"{COMMON}.kernels": ["Default/Add"], f"{COMMON}.dump_mode": 1}, []),
        ({f"{COMMON}.op_debug_mode": 3, f"{COMMON}.iteration": "0|2"}, ["DS-CFG-033"]),
        ({f"{COMMON}.op_debug_mode": 3, f"{COMMON}.input_output": 1}, ["DS-CFG-036"]),
        ({f"{COMMON}.op_debug_mode": 4, f"{COMMON}.input_output": 1}, ["DS-CFG-090"]),
        ({f"{COMMON}.file_format": "bim"}, ["DS-CFG-053"]),
    ],
    ids=str,
)
def test_rules_of_whole_graphs(changes, codes):
    base = {
        f"{COMMON}.iteration": "all",
        f"{COMMON}.dump_mode": 0,
        f"{COMMON}.input_output": 0,
        f"{COMMON}.kernels": [],
    }
    found = check_all(text_of(base | changes, [E2E]), {}, find("seed", "ascend_o2"))
    assert [one.code for one in found if not one.where.endswith("net_name")] == codes
