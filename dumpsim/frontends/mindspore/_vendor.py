"""The names of the real MindSpore 2.10: what each module holds, and where each object is defined.

The record is made by ``fixtures/frontends/mindspore/record_vendor_names.py`` and read when a script first asks for a
name that the front end does not define. A row of it is a module; its fields are

* ``classes``, ``functions``, ``instances``: what the module defines, by base classes, by nothing, by type;
* ``enums``, ``members``, ``data``, ``sequences``, ``primitives``: what can be made again from the record;
* ``from``: names that other modules define (``*`` are all public ones of them), ``external``: those of other packages;
* ``modules``: names of modules, submodules not included; ``all``: its ``__all__``; ``package``: it has submodules.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

__all__ = ["Entry", "defined", "entries", "exported", "is_module", "is_package", "members", "names", "places", "split"]

_PACKAGE = "dumpsim.frontends.mindspore"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a name stands for.

    Attributes
    ----------
    kind : str
        ``class``, ``function``, ``instance``, ``enum``, ``member``, ``data``, ``sequence``, ``primitive``, ``module``,
        ``external``, ``from``.
    detail : str or tuple
        Bases of a class, type of an instance, literal of data, name of a module, the place of what is from elsewhere.
    """

    kind: str
    detail: Any = ""


# field of the record whose names stand in lists -> kind
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
    """Return the attributes of a class that users hold: Tensor, Parameter, Cell or Primitive.

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
    """Return what ``from path import *`` binds in the real package: its ``__all__``, else its public names.

    Examples
    --------
    >>> exported("mindspore.nn.layer.container")
    ['SequentialCell', 'CellList', 'CellDict']
    """
    text: str | None = _record().get(path, {}).get("all")
    return sorted(name for name in entries(path) if name[:1] != "_") if text is None else text.split()


@cache
def _children() -> Mapping[str, Mapping[str, Entry]]:
    """Submodules by package."""
    found: dict[str, dict[str, Entry]] = {}
    for path in _record():
        parent, _, name = path.rpartition(".")
        found.setdefault(parent, {})[name] = Entry("module", path)
    return MappingProxyType(found)


@cache
def defined(path: str) -> Mapping[str, Entry]:
    """Return what a module defines itself, by name.

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
    """Yield (name here, module, name there) of what a module has from elsewhere."""
    for place, text in _record().get(path, {}).get(field, {}).items():
        for word in text.split():
            if word == "*":
                yield from ((name, place, name) for name in _public(place))
            else:
                name, _, own = word.partition("=")
                yield name, place, own or name


def _public(path: str) -> list[str]:
    return [name for name, entry in defined(path).items() if name[:1] != "_" and entry.kind not in ("data", "module")]


@cache
def entries(path: str) -> Mapping[str, Entry]:
    """Return what a module holds, by name: its submodules, what it defines, what it has imported.

    Examples
    --------
    >>> entries("mindspore.nn")["Dense"]
    Entry(kind='from', detail=('mindspore.nn.layer.basic', 'Dense'))
    """
    external = {name: Entry("external", (place, own)) for name, place, own in _imported(path, "external")}
    imported = {name: Entry("from", (place, own)) for name, place, own in _imported(path, "from")}
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
def _places() -> Mapping[tuple[str, str], tuple[tuple[str, str], ...]]:
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path in _record():
        for name, place, own in _imported(path, "from"):
            found.setdefault((place, own), []).append((path, name))
    return MappingProxyType({home: tuple(sorted(others, key=_publicity)) for home, others in found.items()})


def _publicity(place: tuple[str, str]) -> tuple[bool, int, str]:
    """Order places: public ones first, short ones first."""
    path = ".".join(place)
    return "._" in path or ".auto_generate." in path, path.count("."), path


def places(home: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return every (module, name) of an object by the place that defines it, the best known one first.

    Examples
    --------
    >>> places(("mindspore.nn.layer.basic", "Dense"))[0]
    ('mindspore.nn', 'Dense')
    """
    return tuple(sorted((home, *_places().get(home, ())), key=_publicity))


def split(reference: str) -> tuple[str, str]:
    """Return module and name of a reference such as ``mindspore.nn.cell.Cell``."""
    path, _, name = reference.rpartition(".")
    return path, name
