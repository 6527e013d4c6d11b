"""The names of the real MindSpore 2.10: the contents of each module, and the defining module of each object.

``fixtures/frontends/mindspore/record_vendor_names.py`` creates the record, which is read when a script first uses a
name that the front end does not define. A row of it is a module; its fields are

* ``classes``, ``functions``, ``instances``: names that the module defines, grouped by base classes, "" and type;
* ``enums``, ``members``, ``data``, ``sequences``, ``primitives``: objects that can be recreated from the record;
* ``from``: names defined by other modules (``*`` means all their public names), ``external``: by other packages;
* ``modules``: names bound to modules other than submodules; ``all``: its ``__all__``; ``package``: whether it has
  submodules.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

__all__ = [
    "Entry",
    "defined",
    "entries",
    "exported",
    "is_module",
    "is_package",
    "locations",
    "members",
    "names",
    "split",
]

_PACKAGE = "dumpsim.frontends.mindspore"


@dataclass(frozen=True, slots=True)
class Entry:
    """The object of a name.

    Attributes
    ----------
    kind : str
        ``class``, ``function``, ``instance``, ``enum``, ``member``, ``data``, ``sequence``, ``primitive``, ``module``,
        ``external``, ``from``.
    detail : str or tuple
        Bases of a class, type of an instance, literal of data, name of a module, or module and name of an imported
        object.
    """

    kind: str
    detail: Any = ""


# field of the record with lists of names -> kind
_LISTED = MappingProxyType({"classes": "class", "functions": "function", "instances": "instance"})
# field of the record with one text per name -> kind
_SINGLE = MappingProxyType(
    {
        "enums": "enum",
        "members": "member",
        "data": "data",
        "sequences": "sequence",
        "primitives": "primitive",
        "modules": "module",
    }
)


@cache
def _record() -> Mapping[str, Mapping[str, Any]]:
    import gzip
    import json
    from importlib.resources import files

    data = files(_PACKAGE).joinpath("vendor_names.json.gz").read_bytes()
    return MappingProxyType(json.loads(gzip.decompress(data)))


@cache
def members(holder: str) -> frozenset[str]:
    """Return the attributes of one of the classes Tensor, Parameter, Cell and Primitive.

    Examples
    --------
    >>> "register_hook" in members("Tensor")
    True
    """
    import json
    from importlib.resources import files

    text = files(_PACKAGE).joinpath("vendor_members.json").read_text("utf-8")
    return frozenset(json.loads(text)[holder].split())


def is_module(path: str) -> bool:
    """Return whether the real package has a module of this name."""
    return path in _record()


def is_package(path: str) -> bool:
    """Return whether a module of the real package has submodules.

    Examples
    --------
    >>> is_package("mindspore.nn"), is_package("mindspore.context")
    (True, False)
    """
    return bool(_record().get(path, {}).get("package"))


def exported(path: str) -> list[str]:
    """Return the names that ``from path import *`` binds: the module's ``__all__``, else its public names.

    Examples
    --------
    >>> exported("mindspore.nn.layer.container")
    ['SequentialCell', 'CellList', 'CellDict']
    """
    text: str | None = _record().get(path, {}).get("all")
    return sorted(name for name in entries(path) if name[:1] != "_") if text is None else text.split()


@cache
def _children() -> Mapping[str, Mapping[str, Entry]]:
    """Return the submodules of every package."""
    found: dict[str, dict[str, Entry]] = {}
    for path in _record():
        parent, _, name = path.rpartition(".")
        found.setdefault(parent, {})[name] = Entry("module", path)
    return MappingProxyType(found)


@cache
def defined(path: str) -> Mapping[str, Entry]:
    """Return the objects that a module defines, by name.

    Examples
    --------
    >>> defined("mindspore.nn.layer.container")["CellDict"]
    Entry(kind='class', detail='mindspore.nn.layer.container._CellDictBase mindspore.nn.cell.Cell')
    """
    row = _record().get(path, {})
    listed = {
        name: Entry(kind, detail)
        for field, kind in _LISTED.items()
        for detail, text in row.get(field, {}).items()
        for name in text.split()
    }
    single = {
        name: Entry(kind, tuple(detail) if isinstance(detail, list) else detail)
        for field, kind in _SINGLE.items()
        for name, detail in row.get(field, {}).items()
    }
    return MappingProxyType(listed | single)


def _imported(path: str, field: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name here, module, name there) for the objects that a module imports."""
    for module, text in _record().get(path, {}).get(field, {}).items():
        for word in text.split():
            if word == "*":
                yield from ((name, module, name) for name in _public(module))
            else:
                name, _, own = word.partition("=")
                yield name, module, own or name


def _public(path: str) -> list[str]:
    return [name for name, entry in defined(path).items() if name[:1] != "_" and entry.kind not in ("data", "module")]


@cache
def entries(path: str) -> Mapping[str, Entry]:
    """Return all objects of a module by name: submodules, definitions and imports.

    Examples
    --------
    >>> entries("mindspore.nn")["Dense"]
    Entry(kind='from', detail=('mindspore.nn.layer.basic', 'Dense'))
    """
    external = {name: Entry("external", (module, own)) for name, module, own in _imported(path, "external")}
    imported = {name: Entry("from", (module, own)) for name, module, own in _imported(path, "from")}
    return MappingProxyType({**_children().get(path, {}), **external, **imported, **defined(path)})


def names(path: str) -> frozenset[str]:
    """Return the names of a module of the real package.

    Examples
    --------
    >>> "Dense" in names("mindspore.nn")
    True
    """
    return frozenset(entries(path))


@cache
def _locations() -> Mapping[tuple[str, str], tuple[tuple[str, str], ...]]:
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path in _record():
        for name, module, own in _imported(path, "from"):
            found.setdefault((module, own), []).append((path, name))
    return MappingProxyType({home: tuple(sorted(others, key=_publicity)) for home, others in found.items()})


def _publicity(location: tuple[str, str]) -> tuple[bool, int, str]:
    """Sort key of locations: public ones first, short ones first."""
    path = ".".join(location)
    return "._" in path or ".auto_generate." in path, path.count("."), path


def locations(home: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return every (module, name) of an object, given the one that defines it; the best known one first.

    Examples
    --------
    >>> locations(("mindspore.nn.layer.basic", "Dense"))[0]
    ('mindspore.nn', 'Dense')
    """
    return tuple(sorted((home, *_locations().get(home, ())), key=_publicity))


def split(reference: str) -> tuple[str, str]:
    """Return module and name of a reference such as ``mindspore.nn.cell.Cell``."""
    path, _, name = reference.rpartition(".")
    return path, name
