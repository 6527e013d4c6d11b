"""``mindspore.experimental``: not emulated; every name raises an error that says so."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return vendored("mindspore.experimental", name)
