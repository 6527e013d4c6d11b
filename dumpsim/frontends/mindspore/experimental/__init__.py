"""``mindspore.experimental``: not emulated; every use of a name raises an error."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return vendored("mindspore.experimental", name)
