"""Programs are kept for the session that they were compiled in."""

import gc

from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore._capture.compile import _settings
from dumpsim.runtime.session import Session


def fresh():
    return Session(RunSettings(device="cpu"), environment={})


def test_a_session_at_the_address_of_one_that_is_gone_has_no_programs():
    first = fresh()
    key, address = _settings(first), id(first)
    assert {key: "program"}.get(_settings(first)) == "program"
    del first
    gc.collect()
    held = []
    for _ in range(50):  # the interpreter gives the address away again soon
        held.append(fresh())
        assert _settings(held[-1]) != key
        if id(held[-1]) == address:
            break
