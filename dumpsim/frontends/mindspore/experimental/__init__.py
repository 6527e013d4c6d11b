"""``mindspore.experimental``: not emulated; every name raises an error that says so."""

from typing import Any

from dumpsim.frontends.mindspore._absent import absent

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    raise absent("mindspore.experimental", name)
