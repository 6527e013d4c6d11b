"""`dumpsim check`: everything that is wrong at once, and fields without effect, which then have none indeed."""

import json
from pathlib import Path

import dumprun
import pytest

BAD = {
    "common_dump_settings": {
        "dump_mode": 3,
        "path": "relative/x",
        "net_name": "a b",
        "iteration": "0,1",
        "input_output": "0",
        "kernels": "x",
        "support_device": ["0"],
        "op_debug_mode": 5,
        "saved_data": "tensors",
        "statistic_category": ["maxx"],
        "initial_iteration": -1,
        "netname": 1,
    },
    "e2e_dump_settings": {
        "enable": 1,
        "trans_flag": "yes",
        "stat_calc_mode": "devices",
        "device_stat_precision_mode": "hgh",
        "sample_mode": 2,
        "sample_num": 0,
        "save_kernel_args": "no",
    },
    "e2e_dump_setings": {},
}
# field -> what was probably meant, None where nothing is near
ERRORS = {
    "enable": "true",
    "trans_flag": None,
    "save_kernel_args": None,
    "stat_calc_mode": "device",
    "device_stat_precision_mode": "high",
    "sample_mode": None,
    "sample_num": None,
    "dump_mode": None,
    "path": str(Path("relative/x").absolute()),
    "net_name": "a_b",
    "iteration": "0|1",
    "input_output": "0",
    "kernels": '["x"]',
    "support_device[0]": "0",
    "op_debug_mode": None,
    "saved_data": "tensor",
    "statistic_category": "max",
    "initial_iteration": None,
}


@pytest.mark.parametrize("device", ["ascend", "gpu", "cpu"])
def test_every_error_at_once_with_what_was_meant(tmp_path, device):
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(BAD))
    found = dumprun.cli(tmp_path, "check", str(file), "--device", device, "--json", code=1)
    findings = [json.loads(line) for line in found.out.splitlines()]
    errors = {f["where"].rsplit(".", 1)[-1]: f["nearest"] for f in findings if f["level"] == "error"}
    assert errors == ERRORS
    silent = {f["where"]: f["nearest"] for f in findings if f["level"] == "no effect"}
    assert silent == {
        "$.e2e_dump_setings": "e2e_dump_settings",
        "$.common_dump_settings.netname": "net_name",
    }
    refused = dumprun.dump(tmp_path, document=BAD, options=("--device", device), code=1)
    assert "Dump Json Parse Failed. 'enable' should be boolean type" in refused.err  # the first in the vendor's order
    assert "$.e2e_dump_settings.enable" in refused.err


# device -> field -> two values that make no difference
WITHOUT_EFFECT = {
    "ascend": {
        "file_format": ("npy", "bin"),
        "kernels": (["Conv"], ["ReLU"]),
        "statistic_category": (["max"], ["md5", "nonsense"]),
        "stat_calc_mode": ("host", "host"),
        "device_stat_precision_mode": ("high", "low"),
        "sample_num": (5, 9),
    },
    "gpu": {
        "file_format": ("npy", "bin"),
        "kernels": (["Conv"], ["ReLU"]),
        "statistic_category": (["max"], ["md5", "nonsense"]),
        "trans_flag": (True, False),
        "stat_calc_mode": ("host", "host"),
        "device_stat_precision_mode": ("high", "low"),
        "sample_mode": (1, 1),
        "sample_num": (5, 9),
    },
    "cpu": {
        "file_format": ("npy", "bin"),
        "kernels": (["Conv"], ["ReLU"]),
        "statistic_category": (["max"], ["md5", "nonsense"]),
        "support_device": ([3], []),
        "trans_flag": (True, False),
        "save_kernel_args": (True, False),
        "stat_calc_mode": ("host", "host"),
        "device_stat_precision_mode": ("high", "low"),
        "sample_mode": (1, 1),
        "sample_num": (5, 9),
    },
}


@pytest.mark.parametrize("device", WITHOUT_EFFECT)
def test_fields_without_effect_are_told_and_have_none(tmp_path, device):
    fields = WITHOUT_EFFECT[device]
    digests = set()
    for index in range(2):
        changes = {name: values[index] for name, values in fields.items()}
        run = dumprun.dump(tmp_path, name=f"run_{index}", arguments=["1"], options=("--device", device), **changes)
        digests.add(run.digest())
        found = dumprun.cli(tmp_path, "check", str(tmp_path / f"run_{index}.json"), "--device", device, "--json")
        findings = [json.loads(line) for line in found.out.splitlines()]
        assert {f["level"] for f in findings} == {"no effect"}
        assert {f["where"].rsplit(".", 1)[-1] for f in findings} == set(fields)
    plain = dumprun.dump(tmp_path, name="plain", arguments=["1"], options=("--device", device))
    assert {*digests, plain.digest()} == {plain.digest()}


def test_the_schemas_are_json(tmp_path):
    config = json.loads(dumprun.cli(tmp_path, "check", "--schema", "config").out)
    assert config["properties"]["common_dump_settings"]["properties"]["input_output"]["enum"] == [0, 1, 2]
    faults = json.loads(dumprun.cli(tmp_path, "check", "--schema", "faults").out)
    assert "disk_full" in json.dumps(faults)
    wrong = dumprun.cli(tmp_path, "check", "--schema", "fault", code=2)
    assert "did you mean 'faults'?" in wrong.err


def test_mistakes_on_the_command_line_are_told_before_the_script_starts(tmp_path):
    (tmp_path / "script.py").write_text("print('started')")
    plan = tmp_path / "plan.json"
    plan.write_text('{"faults": [{"kind": "overflw", "op": "ReLU"}]}')
    for options, text in (
        (("--faults", str(plan)), "did you mean 'overflow'?"),
        (("--chip", "910C"), "910B"),
        (("--device", "gpu", "--chip", "910A"), "910A is not a chip of GPU"),
        (("--config", "missing.json"), "the file 'missing.json' does not exist"),
        (("--set", "op_names=short"), "did you mean 'op_name'?"),
        (("--set", "op_name=shrt"), "did you mean 'short'?"),
        (("--mindspore", "2.9"), "2.10"),
        (("--device", "npu"), "ascend"),
        (("--clock", "wal"), "wall"),
    ):
        found = dumprun.cli(tmp_path, "run", *options, "script.py", code=2)
        assert text in found.err, options
        assert found.out == ""
        assert "Traceback" not in found.err
