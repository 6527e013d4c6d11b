"""The terms of a rank's collectives: HCCL's environment variables, the chip and the settings of the run."""

from collections.abc import Mapping

from dumpsim.core.communicator import Terms
from dumpsim.core.errors import BadInputError
from dumpsim.core.settings import RunSettings
from dumpsim.device.chip import Chip, OverflowMode
from dumpsim.device.overflow import overflow_mode
from dumpsim.world.reduction import check_order

__all__ = ["CONNECT", "EXEC", "terms_of"]

CONNECT = "HCCL_CONNECT_TIMEOUT"
EXEC = "HCCL_EXEC_TIMEOUT"

_SECOND = 10**9
_CONNECT_RANGE, _CONNECT_DEFAULT = (120, 7200), 120  # [spec parallel 3.5]
_LINK_S = 20 + 10  # to find the missing rank, and to send the reason to all ranks [spec parallel 3.5]
_EXEC_DEFAULT = 1836
_EXEC_RANGES = {"910A": (1, 17340)}  # [spec parallel 3.5]
_EXEC_RANGE = (0, 2147483647)
_STEP = 68  # of the 910's timer, in seconds [spec parallel 3.5]


def terms_of(environment: Mapping[str, str], chip: Chip, settings: RunSettings) -> Terms:
    """Return the terms of a rank.

    Parameters
    ----------
    environment : mapping of str to str
        ``HCCL_CONNECT_TIMEOUT``, 120 to 7200 seconds, and ``HCCL_EXEC_TIMEOUT``: 0 (for ever) to 2147483647 seconds; on
        the 910A 1 to 17340, of which whole multiples of 68 count.
    chip : Chip
    settings : RunSettings

    Raises
    ------
    BadInputError
        For a value that is out of range, with HCCL's text.

    Examples
    --------
    >>> from dumpsim.device.chip import chip
    >>> terms_of({EXEC: "600"}, chip("910A"), RunSettings()).exec_ns // 10**9
    544
    >>> terms_of({EXEC: "0"}, chip("910B"), RunSettings()).exec_ns is None
    True
    >>> terms_of({CONNECT: "60"}, chip("910B"), RunSettings())
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.BadInputError: HCCL_CONNECT_TIMEOUT: Value 60 for environment variable HCCL_CONNECT_TIMEOUT \
is invalid. Expected value: range[120, 7200] [EI0001]
    """
    connect = _seconds(environment, CONNECT, _CONNECT_RANGE, _CONNECT_DEFAULT)
    execution: int | None = _seconds(environment, EXEC, _EXEC_RANGES.get(chip.name, _EXEC_RANGE), _EXEC_DEFAULT)
    if chip.name in _EXEC_RANGES:
        assert execution is not None
        execution = max(execution // _STEP, 1) * _STEP
    elif execution == 0:
        execution = None
    return Terms(
        connect_ns=(connect + _LINK_S) * _SECOND,
        exec_ns=None if execution is None else execution * _SECOND,
        check=settings.collective_check,
        order=check_order(settings.reduce_order, "--reduce-order"),
        saturates=overflow_mode(chip, environment) is OverflowMode.SATURATION,
    )


def _seconds(environment: Mapping[str, str], name: str, legal: tuple[int, int], default: int) -> int:
    """Return the value of a variable."""
    text = environment.get(name, "")
    if not text:
        return default
    low, high = legal
    if text.isascii() and text.isdigit() and len(text) <= 10 and low <= int(text) <= high:
        return int(text)
    raise BadInputError(
        f"Value {text[:64]} for environment variable {name} is invalid. Expected value: range[{low}, {high}]",
        where=name,
        code="EI0001",
    )
