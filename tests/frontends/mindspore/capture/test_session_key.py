"""Programs are cached for the session that they were compiled in."""

import gc

from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore._capture.compile import _settings
from dumpsim.runtime.session import Session

SETTINGS = RunSettings(device="cpu")


def test_a_session_at_the_address_of_a_deleted_one_has_no_programs():
    first = Session(SETTINGS, environment={})
    key, address = _settings(first), id(first)
    assert {key: "program"}.get(_settings(first)) == "program"
    assert address not in key
    del first
    gc.collect()
    made = []
    for _ in range(2000):  # the interpreter soon reuses the address
        made.append(Session.__new__(Session))
        if id(made[-1]) == address:
            break
    second = made[-1]
    second.__init__(SETTINGS, environment={})
    assert _settings(second) != key
