"""``dumpsim check`` with the dialect that the compile level chooses."""

import json

import pytest
from typer.testing import CliRunner

from dumpsim.cli.app import app
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
