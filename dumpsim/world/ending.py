"""How a rank ends before its program does."""

__all__ = ["RankKilled", "RankStopped"]


class RankKilled(BaseException):
    """Ends a rank as a killed process would: by the fault ``kill``.

    What the rank has queued is dropped, and its groups fail. Its ``finally`` blocks run, unlike those of a killed
    process. The other ranks go on until they wait for one that is gone.
    """


class RankStopped(BaseException):
    """Ends a rank at its wait because another rank has failed.

    No `Exception`: ``except Exception`` around a training step must not catch it. Its ``finally`` blocks run.
    """
