"""Command-line values that choose a profile."""

from dumpsim.core.errors import BadInputError
from dumpsim.emulate.precheck import TARGETS

__all__ = ["TARGETS", "overrides"]


def overrides(pairs: list[str]) -> dict[str, str]:
    """Parse FIELD=VALUE pairs."""
    result = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise BadInputError(f"{pair!r} is not FIELD=VALUE", where="--set", code="DS-RUN-003")
        result[name] = value
    return result
