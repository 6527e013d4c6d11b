"""The steps of GE's option ``ge.exec.dumpStep``: stricter than MindSpore's own ``iteration``. [spec ge 2.5, 8.6]"""

from decimal import Decimal

from dumpsim.core.errors import DumpConfigError

__all__ = ["check_ge_steps"]

_PIECES = 100
_INT32 = 2**31 - 1


def check_ge_steps(text: str) -> None:
    """Check steps as GE does: at most 100 parts, none empty, ranges that increase, numbers within 32 bits.

    Raises
    ------
    DumpConfigError
        For wrong steps, with GE's error code E10001.

    Examples
    --------
    >>> check_ge_steps("0|5-8")
    >>> try:
    ...     check_ge_steps("3-3")
    ... except DumpConfigError as error:
    ...     print(str(error)[:60])
    E10001: Value [3-3] for parameter [dumpStep] is invalid. Rea
    """
    pieces = text.split("|")
    if len(pieces) > _PIECES:
        raise _refused(text, f"the number of collection ranges can not exceed {_PIECES}.")
    for piece in pieces:
        sides = [side.strip() for side in piece.split("-")]
        if len(sides) > 2:
            raise _refused(text, "need range step such as 0-5.")
        if not all(side.isascii() and side.isdigit() for side in sides):
            raise _refused(text, "the step is not a digit.")
        numbers = [Decimal(side) for side in sides]  # an int has a limit of digits
        if max(numbers) > _INT32:
            raise _refused(text, "the step is out of range.")
        if len(numbers) == 2 and numbers[0] >= numbers[1]:
            reason = "in range steps, the first step is >= second step, correct range steps is as 5-10."
            raise _refused(text, reason)


def _refused(text: str, reason: str) -> DumpConfigError:
    """Make GE's error about its option."""
    return DumpConfigError(
        f"GE does not take {text!r} as steps: {reason.rstrip('.')}",
        where="$.common_dump_settings.iteration",
        allowed=("all", "numbers and rising ranges between bars, such as 0|5-8"),
        vendor=f"E10001: Value [{text}] for parameter [dumpStep] is invalid. Reason: {reason}",
        code="DS-CFG-021",
    )
