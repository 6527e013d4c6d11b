"""What happens when a script asks for a name that the emulation does not have."""

from collections.abc import Mapping
from functools import cache

from dumpsim.core.errors import UnsupportedError, nearest

__all__ = ["absent", "vendor_names"]


@cache
def vendor_names(module: str) -> frozenset[str]:
    """Return the public names of a module of the real MindSpore 2.10.

    Examples
    --------
    >>> "Dense" in vendor_names("mindspore.nn")
    True
    """
    return _all_vendor_names().get(module, frozenset())


@cache
def _all_vendor_names() -> Mapping[str, frozenset[str]]:
    """Names by module; file and readers are loaded where a name is missing."""
    import json
    from importlib.resources import files

    text = files("dumpsim.frontends.mindspore").joinpath("vendor_names.json").read_text("utf-8")
    return {module: frozenset(names) for module, names in json.loads(text).items()}


def absent(module: str, name: str) -> Exception:
    """The error for a missing name.

    A name that the real module has is an UnsupportedError, so that ``from module import name`` shows it; any other is
    an AttributeError, as it is in the real module.

    Examples
    --------
    >>> absent("mindspore.nn", "InstanceNorm2d")
    UnsupportedError('mindspore.nn: InstanceNorm2d is not emulated [DS-API-001]')
    >>> absent("mindspore.nn", "InstanceNorm2D")
    AttributeError("module 'mindspore.nn' has no attribute 'InstanceNorm2D' (did you mean 'InstanceNorm2d'?)")
    """
    names = vendor_names(module)
    if name in names:
        return UnsupportedError(f"{name} is not emulated", where=module, code="DS-API-001")
    close = None if name.startswith("__") else nearest(name, sorted(names))
    hint = f" (did you mean {close!r}?)" if close else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
