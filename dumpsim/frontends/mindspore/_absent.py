"""What happens when a script asks for a name that the emulation does not have."""

from functools import cache

from dumpsim.core.errors import UnsupportedError, nearest

__all__ = ["absent", "vendor_names"]


@cache
def vendor_names(module: str) -> frozenset[str]:
    """The public names of a module of the real MindSpore 2.10.

    Examples
    --------
    >>> "Dense" in vendor_names("mindspore.nn")
    True
    """
    from dumpsim.frontends.mindspore._vendor_names import VENDOR_NAMES

    return frozenset(VENDOR_NAMES.get(module, "").split())


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
