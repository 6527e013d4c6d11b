"""Conditions of rows: functions that test a draft."""

from collections.abc import Callable
from typing import Any

from dumpsim.modes.dialect import Draft

__all__ = [
    "COMMON",
    "E2E",
    "Condition",
    "always",
    "both",
    "has",
    "has_section",
    "isnt",
    "lacks_section",
    "misses_device",
    "off_ascend",
    "profile_is",
    "some_iterations",
    "value_is",
    "wants_statistics",
]

Condition = Callable[[Draft], bool]

COMMON = "common_dump_settings"
E2E = "e2e_dump_settings"


def always(draft: Draft) -> bool:
    """Return True for every config."""
    return True


def value_is(name: str, *values: Any) -> Condition:
    """Test whether the field has one of these values."""
    return lambda draft: draft.values.get(name) in values


def isnt(name: str, *values: Any) -> Condition:
    """Test whether the field has none of these values."""
    return lambda draft: draft.values.get(name) not in values


def both(*tests: Condition) -> Condition:
    """Test whether all conditions are true."""
    return lambda draft: all(test(draft) for test in tests)


def profile_is(name: str, *values: Any) -> Condition:
    """Test whether the profile's field has one of these values."""
    return lambda draft: getattr(draft.profile, name) in values


def has(section: str, name: str) -> Condition:
    """Test whether the document has the field."""

    def test(draft: Draft) -> bool:
        found = draft.section(section)
        return isinstance(found, dict) and name in found

    return test


def has_section(name: str) -> Condition:
    """Test whether the document has the section."""
    return lambda draft: draft.has_section(name)


def lacks_section(name: str) -> Condition:
    """Test whether the document does not have the section."""
    return lambda draft: not draft.has_section(name)


def misses_device(draft: Draft) -> bool:
    """Return whether ``support_device`` does not list the device."""
    listed = draft.values.get("support_device")
    return draft.profile.device_filter and listed is not None and draft.device_id not in listed


def some_iterations(draft: Draft) -> bool:
    """Return whether ``iteration`` leaves out some iterations."""
    return not draft.values["iteration"].every


wants_statistics = value_is("saved_data", "statistic", "full")
off_ascend = profile_is("target", "GPU", "CPU")
