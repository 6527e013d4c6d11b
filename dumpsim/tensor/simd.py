"""The SIMD level of the compiled loops. The results are the same at all levels; only the speed differs."""

import os

from dumpsim._ext import simd as _simd
from dumpsim.core.errors import BadInputError, nearest

__all__ = ["active_level", "level_number", "simd_levels"]

LEVELS = ("baseline", "avx2", "avx512")
VARIABLE = "DUMPSIM_SIMD"


def simd_levels() -> tuple[str, ...]:
    """Return the SIMD levels of this CPU, lowest first.

    Returns
    -------
    tuple of str
        One to three of ``("baseline", "avx2", "avx512")``.

    Examples
    --------
    >>> simd_levels()[0]
    'baseline'
    """
    return LEVELS[: _simd.detected() + 1]


def active_level() -> str:
    """Return the level in use: the highest of the CPU, or the one in ``DUMPSIM_SIMD``.

    Returns
    -------
    str
        One of `simd_levels`.

    Raises
    ------
    BadInputError
        If ``DUMPSIM_SIMD`` is not a level, or one that this CPU does not have; the message names those of this CPU.

    Examples
    --------
    >>> active_level() in simd_levels()
    True
    """
    return LEVELS[level_number()]


def level_number(level: str | None = None) -> int:
    """Return the number of a level for the compiled modules.

    Parameters
    ----------
    level : str, optional
        By default the level in use.

    Returns
    -------
    int

    Raises
    ------
    BadInputError
        For a name that is not a level, or one that this CPU does not have.

    Examples
    --------
    >>> level_number("baseline")
    0
    """
    where = "level"
    if level is None:
        level = os.environ.get(VARIABLE)
        where = VARIABLE
    available = simd_levels()
    if not level:
        return len(available) - 1
    if level not in available:
        what = f"this CPU has no {level!r}" if level in LEVELS else f"{level!r} is not a SIMD level"
        raise BadInputError(
            what,
            where=where,
            allowed=available,
            nearest=None if level in LEVELS else nearest(level, available),
            code="DS-SIMD-001",
        )
    return LEVELS.index(level)
