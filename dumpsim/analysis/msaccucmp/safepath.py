"""Paths as the tool lets them pass. [spec ge 4]"""

import os
import re

from dumpsim.analysis.msaccucmp.status import Status, ToolError

__all__ = ["existing", "safe_path_list_string", "safe_path_string"]

_SAFE = re.compile(r"[A-Za-z0-9_\\./:()=-]+")
_SAFE_LIST = re.compile(r"[A-Za-z0-9_\\./:()=,-]+")


def safe_path_string(value: str) -> str:
    """A path of letters, digits and ``_./:()=\\-``; argparse shows this function's name for others."""
    if _SAFE.fullmatch(value) is None:
        raise ValueError(value)
    return value


def safe_path_list_string(value: str) -> str:
    """The same with commas between paths."""
    if _SAFE_LIST.fullmatch(value) is None:
        raise ValueError(value)
    return value


safe_path_list_string.__name__ = "safe_path_string"  # the tool's message has one name for both


def existing(path: str, kind: str = "any") -> str:
    """The absolute path of a file (``file``), a directory (``directory``) or either.

    Raises
    ------
    ToolError
        Exit code 3.
    """
    full = os.path.realpath(path)
    if not os.path.exists(full):
        raise ToolError(Status.INVALID_PATH, f"The path \"'{os.path.abspath(path)}'\" does not exist.")
    if kind == "directory" and not os.path.isdir(full):
        raise ToolError(Status.INVALID_PATH, f"The path \"'{full}'\" is not a directory. Please check the path.")
    if kind == "file" and not os.path.isfile(full):
        raise ToolError(Status.INVALID_PATH, f"The path \"'{full}'\" is not a file. Please check the path.")
    if _SAFE.fullmatch(full) is None:
        raise ToolError(
            Status.INVALID_PARAM, f"The name '{full}' is invalid. It only supports '\"A-Za-z0-9_\\./:()=-\"'."
        )
    return full
