"""The libraries of tables, which come with an extra."""

from importlib import import_module
from typing import Any

from dumpsim.core.errors import UnsupportedError

__all__ = ["frames"]


def frames(library: str) -> Any:
    """The module `pandas` or `polars`.

    Raises
    ------
    UnsupportedError
        Where it is not installed; names the extra.
    """
    try:
        return import_module(library)
    except ImportError:
        raise UnsupportedError(
            f"{library} is not installed: pip install 'dumpsim[report]'", where=f"to_{library}"
        ) from None
