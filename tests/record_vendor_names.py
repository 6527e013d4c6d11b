"""Record the names of the modules of the real MindSpore: where each is defined, what kind of object it is.

    cd /tmp && /path/to/real/python record_vendor_names.py DIRECTORY

writes ``vendor_names.json.gz``, and ``vendor_members.json`` with the attributes of the classes that users hold most.
Run it with the interpreter of the real package; only the wheel is read. Modules that cannot be imported on this machine
(they need an accelerator or a compiler that is not in the wheel) and those that act when they are imported are parsed
instead. `dumpsim.frontends.mindspore._vendor` says what the record means.
"""

import __future__

import ast
import enum
import gzip
import importlib
import inspect
import json
import os
import sys
import types
from collections import defaultdict

import mindspore

ROOT = os.path.dirname(mindspore.__file__)
# libraries in the wheel that are no Python packages, and the compiler of another project
LEFT_OUT = ("lib", "bin", "include", "__pycache__")
BUNDLED = "mindspore._akg."
# what starts servers or generates code when it is imported
PARSED = ("mindspore._extends.remote.", "mindspore.ops_generate.", "mindspore._akg")
OF_EVERY_MODULE = {*vars(types), "__path__", "__all__", "__annotations__", "__warningregistry__"} - set(types.__all__)
LONGEST = 600  # characters of recorded data
PLAIN = (bool, int, float, str, bytes, type(None))


def paths():
    """Yield (module, file) of every module in the wheel."""
    for directory, folders, files in os.walk(ROOT):
        folders[:] = sorted(folder for folder in folders if folder not in LEFT_OUT)
        package = os.path.relpath(directory, os.path.dirname(ROOT)).replace(os.sep, ".")
        if not f"{package}.".startswith(BUNDLED) or package == BUNDLED[:-1]:
            for file in sorted(files):
                if file.endswith(".py"):
                    name = package if file == "__init__.py" else f"{package}.{file[:-3]}"
                    yield name, os.path.join(directory, file)


def is_plain(value):
    """Whether a value is data that a literal can write."""
    if type(value) in PLAIN:
        return value == value and value not in (float("inf"), -float("inf"))
    if type(value) in (tuple, list, set, frozenset):
        return all(map(is_plain, value))
    return type(value) is dict and all(is_plain(key) and is_plain(item) for key, item in value.items())


def literal(value):
    """Write plain data, None for what is not, is too long or is of this machine."""
    if not is_plain(value) or isinstance(value, frozenset) or value == set():
        return None
    text = "{" + repr(sorted(value))[1:-1] + "}" if isinstance(value, set) else repr(value)
    here = any(place in text for place in (ROOT, os.getcwd(), sys.prefix, sys.base_prefix))
    address = type(value) is int and 1 << 44 < value < 1 << 48
    return None if here or address or len(text) > LONGEST else text


def text_of(value, name):
    found = vars(value).get(name) if isinstance(value, type) else getattr(value, name, None)
    return found if isinstance(found, str) else ""


def arguments(primitive):
    """Return the arguments that a primitive was made with, None where they are not known."""
    names = list(inspect.signature(type(primitive).__init__).parameters)[1:]
    known = primitive.init_attrs | vars(primitive) if hasattr(primitive, "init_attrs") else vars(primitive)
    given = {name: known.get(name, primitive) for name in names}
    return repr(given) if all(map(is_plain, given.values())) and len(repr(given)) < LONGEST else None


def renamed(attribute, own):
    """Write a name that a module has imported: ``np=numpy`` where it has another name there."""
    return attribute if own == attribute else f"{attribute}={own}"


def tidy(row, more):
    """Write lists of names as texts, `more` as well where there is any."""
    row.update({key: lists for key, lists in more.items() if lists})
    for key in ("classes", "functions", "instances", "from", "external"):
        if key in row:
            row[key] = {place: " ".join(names) for place, names in sorted(row[key].items())}


def attributes(module):
    """Return what a module holds, with what it exports and makes when it is asked for."""
    exported = (name for name in getattr(module, "__all__", ()) if isinstance(name, str))
    return {name: getattr(module, name) for name in exported if hasattr(module, name)} | vars(module)


class Record:
    """The record, module by module."""

    def __init__(self, modules):
        self.modules = modules
        self.homes = {}
        places = defaultdict(list)
        for name, module in sorted(modules.items()):
            for attribute, value in attributes(module).items():
                if not self.is_left_out(attribute, value):
                    places[id(value)].append((name, attribute, value))
        for group in places.values():
            self.homes[id(group[0][2])] = self.home(group)

    @staticmethod
    def is_left_out(attribute, value):
        return attribute in OF_EVERY_MODULE

    def home(self, group):
        """Choose the module that defines a value: what it says itself, else the deepest module that is no package."""
        value = group[0][2]
        own = text_of(value, "__module__"), text_of(value, "__name__")
        places = [(name, attribute) for name, attribute, _ in group]
        if own in places:
            return own
        same = [place for place in places if place[0] == own[0]]
        if same:
            return same[0]
        return min(places, key=lambda place: (hasattr(self.modules[place[0]], "__path__"), place))

    def reference(self, value):
        """Write where a class is, so that a reader can find it."""
        if id(value) in self.homes and text_of(value, "__module__").split(".")[0] in ("mindspore", ""):
            return ".".join(self.homes[id(value)])
        return f"{value.__module__}.{value.__qualname__}"

    def module(self, name):
        module = self.modules[name]
        row = defaultdict(dict)
        references, external = defaultdict(list), defaultdict(list)
        for attribute, value in sorted(attributes(module).items()):
            if self.is_left_out(attribute, value):
                continue
            if isinstance(value, types.ModuleType):
                if value.__name__ != f"{name}.{attribute}":
                    row["modules"][attribute] = value.__name__
                continue
            text = literal(value)
            if text is not None:
                row["data"][attribute] = text
                continue
            owner = self.owner(value)
            if owner.split(".")[0] != "mindspore" and self.is_importable(value, owner):
                external[owner].append(renamed(attribute, getattr(value, "__name__", attribute)))
            elif self.homes[id(value)] != (name, attribute):
                home, own = self.homes[id(value)]
                references[home].append(renamed(attribute, own))
            else:
                self.define(row, attribute, value)
        for home, names in references.items():
            everything = set(self.public(home))
            if len(everything) > 3 and everything <= set(names):
                names[:] = ["*", *(each for each in names if each not in everything)]
        tidy(row, {"from": references, "external": external})
        exported = getattr(module, "__all__", None)
        if exported is not None:
            names = dict.fromkeys(each for each in exported if isinstance(each, str) and hasattr(module, each))
            row["all"] = " ".join(names)
        return dict(row)

    def public(self, name):
        """Return what ``*`` stands for: the public names that a module defines."""
        return [
            attribute
            for attribute, value in attributes(self.modules[name]).items()
            if not attribute.startswith("_")
            and self.homes.get(id(value)) == (name, attribute)
            and literal(value) is None
        ]

    @staticmethod
    def owner(value):
        if isinstance(value, __future__._Feature):
            return "__future__"
        return text_of(value, "__module__") or getattr(type(value), "__module__", "")

    @staticmethod
    def is_importable(value, owner):
        if owner == "__future__":
            return True
        name = text_of(value, "__name__") or getattr(value, "__name__", "")
        return bool(name) and getattr(sys.modules.get(owner), name, None) is value

    def define(self, row, attribute, value):
        if isinstance(value, type) and issubclass(value, enum.Enum):
            members = {key: literal(each.value) or str(each) for key, each in value.__members__.items()}
            kind = next(base.__name__ for base in value.__mro__ if base.__module__ == "enum")
            row["enums"][attribute] = [kind, members]
        elif isinstance(value, type) and isinstance(getattr(value, "__members__", None), dict):
            row["enums"][attribute] = ["IntEnum", {key: str(int(each)) for key, each in value.__members__.items()}]
        elif isinstance(value, type):
            bases = [base for base in value.__bases__ if base is not object and "pybind11" not in base.__module__]
            row["classes"].setdefault(" ".join(map(self.reference, bases)), []).append(attribute)
        elif isinstance(value, types.FunctionType | types.BuiltinFunctionType | types.MethodType):
            row["functions"].setdefault("", []).append(attribute)
        elif type(value) in (tuple, list) and value and all(id(each) in self.homes for each in value):
            row["sequences"][attribute] = [type(value).__name__, " ".join(map(self.reference, value))]
        elif "<locals>" in self.reference(type(value)):  # functions that a decorator has made objects
            row["functions"].setdefault("", []).append(attribute)
        elif isinstance(getattr(type(value), "__members__", None), dict | types.MappingProxyType):
            row["members"][attribute] = f"{self.reference(type(value))}.{value.name}"
        elif isinstance(value, mindspore.ops.Primitive) and (given := arguments(value)) is not None:
            kind = self.reference(type(value))
            row["primitives"][attribute] = kind if given == "{}" else f"{kind} {given}"
        else:
            row["instances"].setdefault(self.reference(type(value)), []).append(attribute)


def parsed(path):
    """Read the names of a module from its text: those that statements of the module bind, also under conditions."""
    row = defaultdict(dict)
    external = defaultdict(list)
    with open(path, encoding="utf-8") as file:
        pending = list(ast.parse(file.read()).body)
    for node in pending:  # grows while it is read
        if isinstance(node, ast.ClassDef):
            row["classes"].setdefault("", []).append(node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            row["functions"].setdefault("", []).append(node.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                row["modules"][alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                if alias.name != "*":
                    external[node.module].append(renamed(alias.asname or alias.name, alias.name))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id != "__all__":
                    try:
                        text = literal(ast.literal_eval(node.value))
                    except (ValueError, TypeError):
                        text = None
                    if text is None:
                        row["instances"].setdefault("builtins.object", []).append(target.id)
                    else:
                        row["data"][target.id] = text
        elif isinstance(node, ast.If | ast.Try | ast.With):
            pending += node.body + getattr(node, "orelse", [])
    tidy(row, {"external": external})
    return dict(row)


def write(name, rows):
    """Write one row per line: a later record shows what changed."""
    lines = [f"{json.dumps(key)}: {json.dumps(rows[key], separators=(',', ':'))}" for key in sorted(rows)]
    data = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def main():
    found = dict(paths())
    unread = {}
    for name, path in found.items():
        try:
            if name.startswith(PARSED) or name.endswith("__main__"):
                raise ImportError(f"{name} acts when it is imported")
            importlib.import_module(name)
        except (Exception, SystemExit):
            unread[name] = path
            sys.modules.pop(name, None)
    modules = {
        name: module
        for name, module in list(sys.modules.items())
        if name.split(".")[0] == "mindspore" and isinstance(module, types.ModuleType) and name not in unread
    }
    for module in list(modules.values()):  # of the C++ side
        for value in vars(module).values():
            if isinstance(value, types.ModuleType) and value.__name__.startswith("mindspore._c_"):
                modules.setdefault(value.__name__, value)
    record = Record(modules)
    rows = {name: record.module(name) for name in modules} | {name: parsed(path) for name, path in unread.items()}
    for name in rows:
        folder = name in found and os.path.basename(found[name]) == "__init__.py"
        if folder or any(other.startswith(f"{name}.") for other in rows):
            rows[name]["package"] = True
    write("vendor_names.json.gz", rows)
    holders = mindspore.Tensor, mindspore.Parameter, mindspore.nn.Cell, mindspore.ops.Primitive
    members = {holder.__name__: sorted(name for name in dir(holder) if name[:2] != "__") for holder in holders}
    write("vendor_members.json", {name: " ".join(names) for name, names in members.items()})


if __name__ == "__main__":
    main()
