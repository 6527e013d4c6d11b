"""The words of the command line that choose a profile."""

from dumpsim.core.errors import BadInputError

__all__ = ["TARGETS", "overrides"]

# --device -> MindSpore's device_target
TARGETS = {"ascend": "Ascend", "gpu": "GPU", "cpu": "CPU"}


def overrides(pairs: list[str]) -> dict[str, str]:
    """FIELD=VALUE pairs."""
    result = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise BadInputError(f"{pair!r} is not FIELD=VALUE", where="--set", code="DS-RUN-003")
        result[name] = value
    return result
