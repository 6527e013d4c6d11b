"""Exceptions that end a rank before the end of its program."""

__all__ = ["RankKilled", "RankStopped"]


class RankKilled(BaseException):
    """Ends a rank as a killed process would, for the fault ``kill``.

    The rank's queued tasks are dropped, and its groups fail. Its ``finally`` blocks run, unlike those of a killed
    process. The other ranks go on until they wait for a rank that is gone.
    """


class RankStopped(BaseException):
    """Ends a rank while it waits, because another rank has failed.

    It is not an `Exception`, since ``except Exception`` around a training step must not catch it. The rank's
    ``finally`` blocks run.
    """
