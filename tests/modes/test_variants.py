"""Configs that dump less than a given one, and the devices that dump."""

import json

import pytest

from dumpsim.core.errors import DumpConfigError
from dumpsim.modes.profile import find
from dumpsim.modes.request import RequestedStatistics
from dumpsim.modes.variants import dumping_devices, smaller

STATISTIC, OUTPUTS, SAMPLE, OVERFLOWS = (
    'saved_data: "statistic"', "input_output: 2 (outputs only)", "sample_mode: 1, sample_num: 100",
    "op_debug_mode: 3 (overflows only)",
)  # fmt: skip


def config(e2e=None, **common):
    given = {"dump_mode": 0, "path": "/d", "net_name": "Net", "iteration": "0", "input_output": 0, "kernels": [],
             "support_device": [0, 2]}  # fmt: skip
    sections = {"common_dump_settings": {**given, **common}}
    return json.dumps(sections if e2e is None else {**sections, "e2e_dump_settings": e2e}).encode()


@pytest.mark.parametrize(
    ("profile", "given", "labels"),
    [
        ("seed/ascend_o0", config({"enable": True}), [STATISTIC, OUTPUTS, SAMPLE, OVERFLOWS]),
        ("seed/gpu", config({"enable": True}), [STATISTIC, OUTPUTS]),
        ("seed/cpu", config({"enable": True}), [OUTPUTS]),
        ("2.10/cpu", config({"enable": True}), [OUTPUTS, OVERFLOWS]),
        ("seed/ascend_o2", config(file_format="npy"), [STATISTIC, OUTPUTS, OVERFLOWS]),
        ("seed/ascend_o2", config(), [OUTPUTS, OVERFLOWS]),
        ("seed/ascend_o0", config({}, saved_data="statistic", input_output=2), [SAMPLE, OVERFLOWS]),
        ("seed/ascend_o0", config({"sample_mode": 1}), [STATISTIC, OUTPUTS, OVERFLOWS]),
        ("seed/ascend_o0", config({"sample_mode": 1, "sample_num": 99}), [STATISTIC, OUTPUTS, SAMPLE, OVERFLOWS]),
        ("seed/ascend_o0", config({}, op_debug_mode=3), []),
        ("seed/cpu", config(), []),  # `enable` must be true there
        ("seed/cpu", b"{", []),
        ("2.10/cpu", config({"enable": True}) + b" more", []),  # MindSpore takes it, a JSON reader does not
    ],
)  # fmt: skip
def test_one_change_that_the_mode_takes_and_that_dumps_less(profile, given, labels):
    found = smaller(given, {}, find(*profile.split("/")))
    assert [label for label, _ in found] == labels


def test_the_requests_of_the_changes():
    found = dict(smaller(config({"enable": True}), {}, find("seed", "ascend_o0")))
    assert (found[STATISTIC].tensors, found[STATISTIC].statistics) == (
        False, RequestedStatistics(names=("max", "min", "l2norm")),
    )  # fmt: skip
    assert (found[OUTPUTS].inputs, found[OUTPUTS].outputs) == (False, True)
    assert (found[SAMPLE].sample, found[OVERFLOWS].trigger) == (100, "overflow")
    assert {one.path for one in found.values()} == {"/d"}


def test_the_path_of_the_environment_and_the_device_count():
    given = config({"enable": True}, path="")
    environment = {"MS_DIAGNOSTIC_DATA_PATH": "/e"}
    assert smaller(given, {}, find("seed", "ascend_o0")) == ()
    found = smaller(given, environment, find("seed", "ascend_o0"), device_id=1)
    assert {(one.path, one.disabled) for _, one in found} == {
        ("/e/debug_dump", "support_device does not list device 1")
    }
    assert {one.disabled for _, one in smaller(given, environment, find("seed", "ascend_o0"))} == {None}


@pytest.mark.parametrize(
    ("profile", "devices"), [("seed/ascend_o0", (0, 2)), ("seed/gpu", (0, 2)), ("seed/cpu", (0, 1, 2, 3))]
)
def test_devices_that_dump(profile, devices):
    assert dumping_devices(config({"enable": True}), {}, find(*profile.split("/")), 4) == devices
    with pytest.raises(DumpConfigError):
        dumping_devices(b"{", {}, find(*profile.split("/")), 4)
