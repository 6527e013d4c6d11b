"""Stand-ins for names that the real MindSpore has and the front end does not define.

Every such name can be imported. Constants and enums have the vendor's values, exceptions can be raised and caught,
classes can be used in ``isinstance`` and as base classes, and modules are modules. Calling a function or creating an
object raises an `UnsupportedError` that names it and the nearest emulated name.
"""

import ast
import enum
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, new_class
from typing import Any, NoReturn

from dumpsim.core.errors import DumpsimError, UnsupportedError, nearest
from dumpsim.frontends.mindspore import _vendor
from dumpsim.frontends.mindspore._alternatives import alternative

__all__ = ["ScriptModule", "StandIn", "StandInModule", "missing_member", "refusal", "vendor_module", "vendored"]

_FRONT = "dumpsim.frontends"
_MISSING = object()
# attributes that Python and its tools look up in every module
_OF_MODULES = frozenset(
    (
        *("__all__", "__annotations__", "__builtins__", "__cached__", "__dict__", "__doc__", "__file__", "__loader__"),
        *("__name__", "__package__", "__path__", "__spec__", "__test__", "__warningregistry__", "__wrapped__"),
    )
)


def vendored(module: str, name: str, own: Callable[[str], Any] | None = None) -> Any:
    """Return the object for a name that a module does not define: the ``__getattr__`` of every module.

    Parameters
    ----------
    module : str
        The module under its public name, such as ``mindspore.nn``.
    name : str
        The missing name.
    own : callable, optional
        The module's own lookup, which raises AttributeError for an unknown name. It is always called ``_own``, so that
        this module can find the names that it creates.

    Raises
    ------
    AttributeError
        For a name that the vendor does not have either, with the most similar one.

    Examples
    --------
    >>> vendored("mindspore.nn", "Conv3d")(1, 2, 3)
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.UnsupportedError: mindspore.nn: Conv3d is not emulated, nearest is nn.Conv2d [DS-API-001]
    >>> vendored("mindspore.nn", "InstanceNorm2D")
    Traceback (most recent call last):
        ...
    AttributeError: module 'mindspore.nn' has no attribute 'InstanceNorm2D' (did you mean 'InstanceNorm2d'?)
    """
    if own is not None:
        try:
            return own(name)
        except AttributeError:
            pass
    if name in _OF_MODULES:
        return _dunder(module, name)
    submodule = _front(f"{module}.{name}") if hasattr(_front(module), "__path__") else None
    if submodule is not None:
        return submodule
    entry = _vendor.entries(module).get(name)
    if entry is None:
        private = name[:1] == "_"  # do not compare private names, which tools look up, with thousands of public ones
        close = nearest(name, sorted(known for known in _vendor.names(module) if (known[:1] == "_") is private))
        hint = f" (did you mean {close!r}?)" if close else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
    return _value(module, name, entry)


def _dunder(module: str, name: str) -> Any:
    """Return ``__all__`` of a module that does not define it."""
    if name == "__all__" and _vendor.is_module(module):
        return _vendor.exported(module)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


# -- emulated objects


@cache
def _has_file(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its package is a plain module
        return False


def _front(path: str) -> ModuleType | None:
    """Return the front end's module for a module of the vendor, or None if there is no file for it."""
    name = f"{_FRONT}.{path}"
    loaded = sys.modules.get(name)
    if loaded is not None:
        return None if isinstance(loaded, StandInModule) else loaded
    return import_module(name) if _has_file(name) else None


@cache
def _emulated_at(home: tuple[str, str]) -> tuple[str, str] | None:
    """Return the name of a vendor's object that the front end defines, or None if there is none."""
    return next((name for name in _vendor.locations(home) if _own_value(*name) is not _MISSING), None)


def _own_value(path: str, name: str) -> Any:
    module = _front(path)
    if module is None:
        return _MISSING
    if name in vars(module):
        return vars(module)[name]
    own = vars(module).get("_own")
    try:
        return _MISSING if own is None else own(name)
    except AttributeError:
        return _MISSING


def _emulated(home: tuple[str, str]) -> Any:
    """Return the front end's object for an object of the vendor, or `_MISSING`."""
    location = _emulated_at(home)
    return _MISSING if location is None else _own_value(*location)


def vendor_module(path: str) -> ModuleType:
    """Return the front end's module for a module of the vendor, or a stand-in.

    Raises
    ------
    ModuleNotFoundError
        For a module that the vendor does not have, with the most similar one.

    Examples
    --------
    >>> vendor_module("mindspore.ops.operations._quant_ops")
    <module 'mindspore.ops.operations._quant_ops' (not emulated)>
    """
    own = _front(path)
    if own is not None:
        return own
    if not _vendor.is_module(path):
        parent, _, name = path.rpartition(".")
        close = nearest(name, sorted(_vendor.names(parent)))
        hint = f" (did you mean {f'{parent}.{close}'!r}?)" if close else ""
        raise ModuleNotFoundError(f"No module named {path!r}{hint}", name=path)
    full = f"{_FRONT}.{path}"
    if full not in sys.modules:
        sys.modules[full] = StandInModule(path)
    return sys.modules[full]


class ScriptModule(ModuleType):
    """A module of the front end imported by a script: ``import *`` binds everything that the vendor exports."""

    @property
    def __all__(self) -> list[str]:
        exported = _vendor.exported(self.__name__.removeprefix(f"{_FRONT}."))
        return list(dict.fromkeys([*vars(self).get("__all__", ()), *exported]))


class StandInModule(ModuleType):
    """A stand-in for a module that the front end does not have."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{_FRONT}.{path}", f"``{path}``: its names can be imported, but none is emulated.")
        is_package = _vendor.is_package(path)
        self.__spec__ = ModuleSpec(self.__name__, None, is_package=is_package)
        if is_package:
            self.__path__ = []

    @property
    def _vendor_path(self) -> str:
        return self.__name__.removeprefix(f"{_FRONT}.")

    def __getattr__(self, name: str) -> Any:
        return vendored(self._vendor_path, name)

    def __dir__(self) -> list[str]:
        return sorted(_vendor.names(self._vendor_path))

    def __repr__(self) -> str:
        return f"<module {self._vendor_path!r} (not emulated)>"


# -- missing objects


def refusal(module: str, name: str) -> UnsupportedError:
    """Return the error for a vendor's object that is not emulated, with the nearest emulated name."""
    return _refusal((module, name))


def _refusal(home: tuple[str, str]) -> UnsupportedError:
    path, name = _vendor.locations(home)[0]
    found = alternative(path, name) or (None if "." in name else _spelled_alike(path, name))
    hint = f", nearest is {found}" if found else ""
    return UnsupportedError(f"{name} is not emulated{hint}", where=path, code="DS-API-001")


def _spelled_alike(path: str, name: str) -> str | None:
    """Return the emulated name of a module with the spelling most similar to a name that is not emulated."""
    from difflib import get_close_matches

    kind = name[:1].isupper()
    known = [other for other in _vendor.names(path) if other[:1].isupper() == kind and other[:1] != "_"]
    close = get_close_matches(name, sorted(set(known) - {name}), n=8, cutoff=0.7)
    found = next((other for other in close if _is_emulated(path, other)), None)
    short = path.removeprefix("mindspore.")
    return found if found is None or short == "mindspore" else f"{short}.{found}"


def _is_emulated(path: str, name: str) -> bool:
    entry = _vendor.entries(path)[name]
    home = entry.detail if entry.kind == "from" else (path, name)
    return _emulated(home) is not _MISSING


def missing_member(owner: object, holder: str, text: str, name: str) -> AttributeError:
    """Return the error for a missing attribute of a Tensor, Parameter or Cell.

    Parameters
    ----------
    owner : object
        The object without the attribute.
    holder : str
        The vendor's class.
    text : str
        The vendor's message for an attribute that does not exist.
    name : str
        The attribute.

    Examples
    --------
    >>> missing_member(3, "Tensor", "'Tensor' object has no attribute 'sinc'", "sinc")
    AttributeError("'Tensor' object has no attribute 'sinc': mindspore.Tensor.sinc is not emulated [DS-API-001]")
    """
    if name[:1] != "_" and name in _vendor.members(holder):
        path = "mindspore.nn" if holder == "Cell" else "mindspore"
        found = alternative(path, f"{holder}.{name}") or alternative(path, f"Tensor.{name}")
        hint = f", nearest is {found}" if found else ""
        text = f"{text.rstrip('.')}: {path}.{holder}.{name} is not emulated{hint} [DS-API-001]"
    return AttributeError(text, name=name, obj=owner)


class StandIn:
    """A stand-in for an object of the vendor's module; every use of it raises UnsupportedError."""

    __slots__ = ("_home",)
    _home: tuple[str, str]

    def __new__(cls, home: tuple[str, str]) -> "StandIn":
        made = object.__new__(cls)
        object.__setattr__(made, "_home", home)
        return made

    def __init__(self, home: tuple[str, str]) -> None:
        """Do nothing, and do not call the initialization of a vendor's base class."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refusal(self._home)

    __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = __contains__ = __enter__ = __exit__ = _refuse

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        raise AttributeError(f"{_refusal(self._home)}: no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{'.'.join(_vendor.locations(self._home)[0])} (not emulated)>"


def _value(module: str, name: str, entry: _vendor.Entry) -> Any:
    """Return the object for an entry of the record."""
    if entry.kind == "module":
        return _module(entry.detail, (module, name))
    if entry.kind == "external":
        return _external(entry.detail[0], entry.detail[1], (module, name))
    home = entry.detail if entry.kind == "from" else (module, name)
    found = _emulated(home)
    return _made(home) if found is _MISSING else found


def _module(path: str, home: tuple[str, str]) -> Any:
    if path.partition(".")[0] == "mindspore":
        return vendor_module(path)
    try:
        return import_module(path)
    except ImportError:
        return StandIn(home)


def _external(path: str, name: str, home: tuple[str, str]) -> Any:
    try:
        return getattr(vendor_module(path) if path.partition(".")[0] == "mindspore" else import_module(path), name)
    except (ImportError, AttributeError):
        return StandIn(home)


def _made(home: tuple[str, str]) -> Any:
    """Create the object that the record describes; classes, enums and functions are created once and cached."""
    entry = _vendor.defined(home[0]).get(home[1])
    if entry is None:  # it belongs to another package
        return _external(*home, home)
    match entry.kind:
        case "module":
            return _module(entry.detail, home)
        case "data":
            return ast.literal_eval(entry.detail)
        case "sequence":
            kind, text = entry.detail
            items = [_referred(reference) for reference in text.split()]
            return tuple(items) if kind == "tuple" else items
        case "member":
            owner, _, member = entry.detail.rpartition(".")
            return getattr(_referred(owner), member, _MISSING)
        case "primitive":
            return _primitive(home, entry.detail)
        case "instance":
            return _instance(home, entry.detail)
    return _defined_once(home)


def _referred(reference: str) -> Any:
    path, name = _vendor.split(reference)
    found = _emulated((path, name)) if path.partition(".")[0] == "mindspore" else _MISSING
    return _made((path, name)) if found is _MISSING else found


def _primitive(home: tuple[str, str], detail: str) -> Any:
    """Return a primitive object of the vendor's module, created with the same arguments."""
    reference, _, arguments = detail.partition(" ")
    kind = _emulated(_vendor.split(reference))
    if kind is _MISSING:
        return _instance(home, reference)
    try:
        return kind(**ast.literal_eval(arguments or "{}"))
    except (DumpsimError, TypeError, ValueError, AttributeError):
        return _instance(home, reference)


def _instance(home: tuple[str, str], reference: str) -> Any:
    kind = _referred(reference)
    if reference == "typing.TypeVar":
        from typing import TypeVar

        return TypeVar(home[1])
    if isinstance(kind, type):
        try:
            return new_class(kind.__name__, (StandIn, kind))(home)
        except (DumpsimError, TypeError, ValueError):
            pass  # the type cannot have subclasses, or requires arguments
    return StandIn(home)


@cache
def _defined_once(home: tuple[str, str]) -> Any:
    entry = _vendor.defined(home[0])[home[1]]
    if entry.kind == "enum":
        return _enum(home, *entry.detail)
    if entry.kind == "function":
        return _function(home)
    return _class(home, [_referred(base) for base in entry.detail.split()])


def _enum(home: tuple[str, str], kind: str, members: dict[str, str]) -> Any:
    values = {name: _literal(text) for name, text in members.items()}
    make: Any = getattr(enum, kind)
    return make(home[1], values, module=home[0])


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a value that is not a literal is represented by its text


def _function(home: tuple[str, str]) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise _refusal(home)

    refuse.__module__, refuse.__name__ = home
    refuse.__qualname__ = home[1]
    refuse.__doc__ = "Raise UnsupportedError: not emulated."
    return refuse


def _class(home: tuple[str, str], bases: list[Any]) -> Any:
    """Return a class for ``isinstance`` and class statements; only exceptions can be instantiated."""
    classes = [base for base in bases if isinstance(base, type) and base is not object]
    for chosen in (tuple(classes), tuple(classes[:1]), ()):
        try:
            return new_class(home[1], chosen, exec_body=lambda space: space.update(_body(home, chosen)))  # noqa: B023
        except TypeError:
            continue  # incompatible bases
    raise AssertionError(f"no class for {home}")


def _body(home: tuple[str, str], bases: tuple[type, ...]) -> Iterator[tuple[str, Any]]:
    yield "__module__", home[0]
    yield "__doc__", "Not emulated: creating an object raises UnsupportedError."
    if not any(issubclass(base, BaseException) for base in bases):

        def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
            raise _refusal(home)

        yield "__new__", refuse
