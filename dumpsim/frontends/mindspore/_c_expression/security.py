"""``mindspore._c_expression.security``: whether the package was built for machines that must not dump."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["enable_security"]


def enable_security() -> bool:
    """Return whether dumps are switched off in the build: they are not.

    Examples
    --------
    >>> enable_security()
    False
    """
    return False


def __getattr__(name: str) -> Any:
    return vendored("mindspore._c_expression.security", name)
