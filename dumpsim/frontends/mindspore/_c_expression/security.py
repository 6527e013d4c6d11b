"""``mindspore._c_expression.security``: whether the package was built without support for dumps."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["enable_security"]


def enable_security() -> bool:
    """Return False: dumps are not disabled in the build.

    Examples
    --------
    >>> enable_security()
    False
    """
    return False


def __getattr__(name: str) -> Any:
    return vendored("mindspore._c_expression.security", name)
