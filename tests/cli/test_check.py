"""``dumpsim check`` with the dialect that the compile level chooses."""

import json

import pytest
from typer.testing import CliRunner

from dumpsim.cli.app import app
from dumpsim.core.errors import BadInputError
from dumpsim.modes.dialect import Finding
from tests.dump.machine import E2E, config


@pytest.fixture
def check(tmp_path, monkeypatch):
    monkeypatch.delenv("ENABLE_MS_GE_DUMP", raising=False)

    def check(*options, env=None, **changes):
        document = config(tmp_path, **changes)
        del document[E2E]
        file = tmp_path / "dump.json"
        file.write_text(json.dumps(document))
        return CliRunner().invoke(app, ["check", str(file), *options], env=env)

    return check


def test_whole_graphs_have_fields_of_their_own(check):
    found = check("--jit-level", "O2", file_format="npy", saved_data="full")
    assert found.exit_code == 0, found.output
    assert "seed/ascend_o2: 0 errors, 0 warnings" in found.output
    found = check("--jit-level", "O2", saved_data="full")
    assert found.exit_code == 1
    assert "MindSpore says: Dump Json parse failed, storing statistic dump is only supported" in found.output
    kernels = check(file_format="npy")
    assert "no effect: kernel-by-kernel dump always writes npy" in kernels.output


def test_ge_takes_its_variable(check):
    env = {"ENABLE_MS_GE_DUMP": "1"}
    found = check("--jit-level", "O2", env=env, iteration="5-5", op_debug_mode=0)
    assert found.exit_code == 1
    assert "E10001" in found.output
    assert "seed/ascend_ge: 1 errors" in found.output
    assert check("--jit-level", "O1", env=env, iteration="5-5").output.count("E10001") == 0


def test_schema_and_wrong_levels(check):
    found = CliRunner().invoke(app, ["check", "--jit-level", "O2", "--schema", "config"])
    assert "file_format" in json.loads(found.output)["properties"]["common_dump_settings"]["properties"]
    wrong = check("--jit-level", "o2")
    assert wrong.exit_code != 0
    gone = check("--jit-level", "O2", "--mindspore", "2.10")
    assert gone.exit_code != 0


def test_errors_come_first_and_an_alert_once(check):
    """The vendor logs its alert three times."""
    lines = check(iteration="8-5", saved_data="tensors").output.splitlines()
    assert lines[0].startswith("error: $.common_dump_settings.saved_data: ")
    assert [line.partition(":")[0] for line in lines if "DS-CFG-" in line].count("warning") == 1
    assert sum("[Dump Alert" in line for line in lines) == 1
    assert "1 errors, 1 warnings, 1 fields without effect" in lines[-1]


@pytest.mark.parametrize("path", ["./dumps", "dumps", "../here/dumps"])
def test_a_relative_path_is_taken_from_the_working_directory(check, path):
    text = check(path=path, env={"PWD": "/home/me/here"}).output
    assert "(did you mean '/home/me/here/dumps'?)" in text
    assert "did you mean" not in check(path=path, env={"PWD": "/home/m e/here"}).output


def finding(level, code, **more):
    return Finding(level=level, code=code, where=f"$.{code}", what=f"what of {code}", **more)


FOUND = [
    finding("no effect", "N", nearest="near"),
    finding("warning", "W", vendor="the vendor's words", forced=(("input_output", 0), ("kernels", []))),
    finding("error", "E", allowed=("a", "b"), nearest="a", vendor="no"),
    finding("warning", "W", vendor="the vendor's words", forced=(("input_output", 0), ("kernels", []))),
    finding("error", "F", allowed=("c",)),
]
SORTED = [
    "error: $.E: what of E; allowed: a, b (did you mean 'a'?) [E]", "    {} says: no",
    "error: $.F: what of F; allowed: c [F]",
    "warning: $.W: what of W [W]", "    {} says: the vendor's words", "    forced: input_output = 0",
    "    forced: kernels = []", "no effect: $.N: what of N (did you mean 'near'?) [N]",
]  # fmt: skip


@pytest.mark.parametrize("dialect", ["mindspore", "acl"])
def test_findings_are_sorted_and_those_that_repeat_are_shown_once(check, tmp_path, monkeypatch, dialect):
    acl = dialect == "acl"
    monkeypatch.setattr("dumpsim.modes.aclfile.check_acl" if acl else "dumpsim.modes.configfile.check_all",
                        lambda *args, **more: FOUND)  # fmt: skip
    found = check("--dialect", dialect)
    name = "ACL" if acl else "seed/ascend_o0"
    assert found.output.splitlines() == [
        *(line.format("CANN" if acl else "MindSpore") for line in SORTED),
        f"{tmp_path / 'dump.json'}: {name}: 2 errors, 1 warnings, 1 fields without effect",
    ]
    assert found.exit_code == 1
    found = check("--dialect", dialect, "--json")
    assert [json.loads(line) for line in found.output.splitlines()] == [
        {"level": one.level, "code": one.code, "where": one.where, "what": one.what, "vendor": one.vendor,
         "allowed": list(one.allowed), "nearest": one.nearest,
         "forced": {"input_output": "0", "kernels": "[]"} if one.forced else {}}
        for one in FOUND
    ]  # fmt: skip
    assert found.exit_code == 1


def test_a_warning_alone_is_no_failure(tmp_path):
    """[spec mindspore 1.2] support_device [0] names device 0, which is the default."""
    file = tmp_path / "whole.json"
    file.write_text(json.dumps(config(tmp_path)))

    def check(*options):
        return CliRunner().invoke(app, ["check", str(file), *options])

    found = check("--device-id", "1")
    assert found.output.splitlines() == [
        "warning: $.common_dump_settings.support_device: device 1 is not listed; nothing is dumped [DS-CFG-047]",
        f"{file}: seed/ascend_o0: 0 errors, 1 warnings, 0 fields without effect",
    ]
    assert found.exit_code == 0
    assert check().output == f"{file}: seed/ascend_o0: 0 errors, 0 warnings, 0 fields without effect\n"
    assert "seed/cpu: " in check("--device", "CPU").output


def test_one_field_of_the_profile_can_be_set_and_a_config_may_be_a_link(check, tmp_path):
    assert check("--set", "op_name=short").exit_code == 0
    assert "'op_name' is not FIELD=VALUE" in str(check("--set", "op_name").exception)
    assert "'=x' is not FIELD=VALUE" in str(check("--set", "=x").exception)
    assert "did you mean 'op_name'?" in str(check("--set", "op_names=short").exception)
    link = tmp_path / "link.json"
    (tmp_path / "whole.json").write_text(json.dumps(config(tmp_path)))
    link.symlink_to(tmp_path / "whole.json")
    found = CliRunner().invoke(app, ["check", str(link)])
    assert (found.exit_code, found.output) == (
        0, f"{link}: seed/ascend_o0: 0 errors, 0 warnings, 0 fields without effect\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dialect", "ackl"], "unknown dialect 'ackl'"), (["--device", "tpu"], "unknown device 'tpu'"),
        (["--jit-level", "O3"], "unknown compilation level 'O3'"), (["--schema", "fault"], "unknown schema 'fault'"),
        ([], "give a CONFIG or --schema"),
    ],
)  # fmt: skip
def test_words_that_check_does_not_know_are_refused(words, said):
    found = CliRunner().invoke(app, ["check", *words])
    assert isinstance(found.exception, BadInputError)
    assert said in str(found.exception)


def test_each_schema_is_that_of_its_files():
    def schema(*words):
        found = CliRunner().invoke(app, ["check", "--schema", *words])
        assert found.exit_code == 0
        return json.loads(found.output)["properties"].keys()

    assert {"common_dump_settings", "e2e_dump_settings"} <= schema("config")
    assert "dump" in schema("config", "--dialect", "acl")
    assert "faults" in schema("faults")


def test_faults_of_a_plan_are_listed_and_counted(tmp_path):
    plan = tmp_path / "f.json"
    plan.write_text(json.dumps({"faults": [{"kind": "disk_full"}, {"kind": "hnag"}]}))

    def run(*words):
        found = CliRunner().invoke(app, ["check", "--schema", "faults", str(plan), *words])
        return found.exit_code, found.output.splitlines()

    code, (first, second, last) = run()
    assert (code, first, last) == (
        1, f"error: {plan}: $.faults[0].after_bytes: the field is missing [DS-FLT-001]", f"{plan}: 2 errors"
    )  # fmt: skip
    assert second.startswith(f"error: {plan}: $.faults[1].kind: 'hnag' is not a kind of fault; allowed: overflow, ")
    assert second.endswith(" (did you mean 'hang'?) [DS-FLT-001]")
    code, (first, second) = run("--json")
    assert (code, json.loads(first)) == (1, {
        "level": "error", "code": "DS-FLT-001", "where": f"{plan}: $.faults[0].after_bytes",
        "what": "the field is missing", "allowed": [], "nearest": None,
    })  # fmt: skip
    assert json.loads(second)["nearest"] == "hang"
    plan.write_text('{"faults": [{"kind": "overflow", "op": "Add"}]}')
    assert run() == (0, [f"{plan}: 0 errors"])
    assert run("--json") == (0, [])
    plan.unlink()
    code, (only,) = run()
    assert (code, "DS-FLT-002" in only) == (3, True)
