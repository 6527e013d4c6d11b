"""Imports pandas or polars, which are optional."""

from importlib import import_module
from typing import Any

from dumpsim.core.errors import UnsupportedError

__all__ = ["frames"]


def frames(library: str) -> Any:
    """Return the module `pandas` or `polars`.

    Raises
    ------
    UnsupportedError
        If it is not installed; the message names the extra.
    """
    try:
        return import_module(library)
    except ImportError:
        raise UnsupportedError(
            f"{library} is not installed: pip install 'dumpsim[report]'", where=f"to_{library}"
        ) from None
