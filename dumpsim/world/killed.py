"""How a rank ends that is killed."""

__all__ = ["RankKilled"]


class RankKilled(BaseException):
    """Ends a rank as a killed process would: by the fault ``kill``.

    What the rank has queued is dropped, and its groups fail. Its ``finally`` blocks run, unlike those of a killed
    process. The other ranks go on until they wait for one that is gone.
    """
