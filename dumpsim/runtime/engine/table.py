"""The table of engines by name; an engine is loaded on first use."""

from importlib import import_module
from types import MappingProxyType

from dumpsim.core.errors import BadInputError, nearest
from dumpsim.runtime.engine.engine import Engine

__all__ = ["ENGINES", "engine"]

# name -> module of this package and class
ENGINES = MappingProxyType({"numpy": "NumpyEngine", "null": "NullEngine", "torch": "TorchEngine"})


def engine(name: str) -> Engine:
    """Create an engine by its name.

    Raises
    ------
    BadInputError
        For an unknown name.

    Examples
    --------
    >>> engine("null").values
    False
    """
    if name not in ENGINES:
        raise BadInputError(f"unknown engine {name!r}", allowed=ENGINES, nearest=nearest(name, ENGINES))
    made: Engine = getattr(import_module(f"dumpsim.runtime.engine.{name}"), ENGINES[name])()
    return made
