"""Settings that are wrong before anything runs."""

import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.core.settings import RunSettings
from dumpsim.emulate.precheck import TARGETS, check_settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"chip": "910D"}, "--chip: unknown chip '910D'"), ({"chip": "GPU", "device": "cpu"}, "GPU"),
        ({"reduce_order": "odd"}, "--reduce-order: .*'odd'"), ({"schedule": "odd"}, "schedule: .*'odd'"),
        ({"overrides": {"nothing": 1}}, "nothing"), ({"faults": "/none.json"}, "/none.json"),
    ],
)  # fmt: skip
def test_the_first_that_is_wrong_is_named(settings, said):
    with pytest.raises((BadInputError, ValueError, OSError), match=said):
        check_settings(RunSettings(**settings))


@pytest.mark.parametrize(
    "settings",
    [{}, {"chip": "910B"}, {"chip": "910A", "device": "ascend"}, {"reduce_order": "ring"}, {"schedule": "random:3"},
     {"reduce_order": "random:7"}],
)  # fmt: skip
def test_what_can_run_is_let_through(settings):
    assert check_settings(RunSettings(**settings)) is None


def test_a_plan_and_an_override_that_exist_are_let_through(tmp_path):
    (tmp_path / "faults.json").write_text('{"faults": []}')
    check_settings(RunSettings(faults=str(tmp_path / "faults.json")))
    (tmp_path / "faults.json").write_text('{"faults": [{}]}')
    with pytest.raises(ValueError, match=r"\$\.faults\[0\]\.kind"):
        check_settings(RunSettings(faults=str(tmp_path / "faults.json")))


def test_a_chip_is_of_the_device_that_was_asked_for():
    for device, row, allowed in (("ascend", "GPU", "910A, 910B"), ("gpu", "910A", "GPU"), ("cpu", "GPU", "CPU")):
        with pytest.raises(BadInputError, match=f"chip {row} is not a chip of {TARGETS[device]}; allowed: {allowed}"):
            check_settings(RunSettings(device=device, chip=row))
