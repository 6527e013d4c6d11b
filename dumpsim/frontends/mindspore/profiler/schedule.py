"""``mindspore.profiler.schedule``: the choice of recorded steps."""

from enum import Enum
from typing import Any

from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["ProfilerAction", "Schedule"]


class ProfilerAction(Enum):
    """The action of a profiler in a step."""

    NONE = 0
    WARM_UP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class Schedule:
    """Skip some steps once, then repeat rounds of steps to wait, to warm up and to record.

    Parameters
    ----------
    wait, active, warmup : int
        Number of steps of each part of a round.
    repeat : int
        Number of rounds, 0 for no limit.
    skip_first : int
        Number of steps before the first round.

    Examples
    --------
    >>> plan = Schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARM_UP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """

    def __init__(self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> None:
        self.wait = _checked("wait", wait, 0)
        self.warmup = _checked("warmup", warmup, 0)
        self.active = _checked("active", active, 1)
        self.repeat = _checked("repeat", repeat, 0)
        self.skip_first = _checked("skip_first", skip_first, 0)
        if self.warmup == 0:
            logger.warning("Profiler won't be using warmup, this can skew profiler results")

    def __call__(self, step: int) -> ProfilerAction:
        if step < 0:
            raise ScriptValueError("Invalid parameter step, which must be not less than 0.")
        if step < self.skip_first:
            return ProfilerAction.NONE
        length = self.wait + self.warmup + self.active
        rounds, offset = divmod(step - self.skip_first, length)
        if 0 < self.repeat <= rounds or offset < self.wait:
            return ProfilerAction.NONE
        if offset < self.wait + self.warmup:
            return ProfilerAction.WARM_UP
        return ProfilerAction.RECORD if offset < length - 1 else ProfilerAction.RECORD_AND_SAVE

    def __repr__(self) -> str:
        return (
            f"Schedule(wait={self.wait!r}, active={self.active!r}, warmup={self.warmup!r}, repeat={self.repeat!r}, "
            f"skip_first={self.skip_first!r})"
        )

    def to_dict(self) -> dict[str, int]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in ("wait", "active", "warmup", "repeat", "skip_first")}


def _checked(name: str, value: Any, least: int) -> int:
    """Return the value, or the lower bound with a warning, as in MindSpore."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    logger.warning(f"Parameter '{name}' should be of type int, but got {type(value).__name__}. reset to int {least}.")
    return least


def __getattr__(name: str) -> Any:
    return vendored("mindspore.profiler.schedule", name)
