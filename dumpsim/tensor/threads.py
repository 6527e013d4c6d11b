"""The check of numbers of threads."""

from dumpsim.core.errors import BadInputError

__all__ = ["thread_count"]


def thread_count(threads: int) -> int:
    """Check a number of threads, and return it.

    Parameters
    ----------
    threads : int

    Returns
    -------
    int

    Raises
    ------
    BadInputError
        For anything but an integer from 1 to 256.

    Examples
    --------
    >>> thread_count(2)
    2
    >>> thread_count("2")
    Traceback (most recent call last):
    dumpsim.core.errors.BadInputError: threads: '2' is not a number of threads; allowed: 1..256 (did you mean '1'?) \
[DS-THR-001]
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 256:
        raise BadInputError(
            f"{threads!r} is not a number of threads",
            where="threads",
            allowed=("1..256",),
            nearest="1",
            code="DS-THR-001",
        )
    return threads
