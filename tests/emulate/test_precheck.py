"""Settings that are wrong before anything runs."""

import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.core.settings import RunSettings
from dumpsim.emulate.precheck import check_settings


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
