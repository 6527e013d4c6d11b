"""Calls of a script that control the dump: private functions of the vendor's C++ side. [spec mindspore 1.6]"""

from dataclasses import dataclass

__all__ = ["DumpControl"]


@dataclass(slots=True)
class DumpControl:
    """The state set by a script's calls; the dump reads it when a run begins.

    Attributes
    ----------
    dynamic : bool
        Whether the ``iteration`` filter is ignored: steps are dumped while `running`.
    running : bool
        Whether the script is between ``_dump_start`` and ``_dump_stop``.
    user_step : int or None
        The script's own count of steps, which then names the directories.
    """

    dynamic: bool = False
    running: bool = False
    user_step: int | None = None
