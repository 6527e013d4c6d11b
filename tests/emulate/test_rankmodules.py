"""Which modules each rank of one process has of its own."""

import os
import sys
import sysconfig
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

import dumpsim
from dumpsim.emulate.rankmodules import RankModules


class Finder:
    """Finds modules at places that a test says; None for a module without a file."""

    def __init__(self, places):
        self.places, self.asked = places, []

    def find_spec(self, fullname, path=None, target=None):
        self.asked.append((fullname, path, target))
        if fullname not in self.places:
            return None
        place = self.places[fullname]
        if isinstance(place, list):  # a package without __init__.py
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations[:] = place
            return spec
        spec = ModuleSpec(fullname, None, origin=place)
        spec.has_location = place is not None and place != "built-in"
        return spec


LIBRARY, PACKAGES = os.path.dirname(os.__file__), sysconfig.get_path("purelib")
OWN = os.path.dirname(dumpsim.__file__)


def places(root):
    """Modules, and whether they are a rank's own."""
    return {
        "script": (f"{root}/script.py", True), "pack": (f"{root}/pack/__init__.py", True),
        "pack.part": (f"{LIBRARY}/part.py", True),  # of a package that is the rank's own
        "library": (f"{LIBRARY}/library.py", False), "library.part": (f"{LIBRARY}/library/part.py", False),
        "installed": (f"{PACKAGES}/installed/__init__.py", False), "emulation": (f"{OWN}/x.py", False),
        "sys2": ("built-in", False), "nothing": (None, False), "space": ([f"{root}/space"], True), "empty": ([], False),
        "both": ([f"{root}/space", f"{PACKAGES}/space"], False),
        "target": (f"{root}/target/thing.py", False), "target2": (f"{root}/target/deep/er/thing.py", False),
        "unused": (f"{root}/unused/thing.py", True),  # its directory is not on the path of this process
        "beside": (f"{OWN}x/y.py", True),
    }  # fmt: skip


@pytest.mark.parametrize("name", places(""))
def test_modules_in_directories_of_the_user_are_the_ranks_own(tmp_path, monkeypatch, name):
    for holder in ("target", "unused"):
        (tmp_path / holder / "thing-1.dist-info").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["target", *sys.path])
    found = places(tmp_path)
    finder = Finder({name: place for name, (place, _) in found.items()})
    modules = RankModules(ModuleType("__main__"), argv=[], path=[])
    monkeypatch.setattr(sys, "meta_path", [Finder({}), modules, finder, Finder({})])
    assert modules.has("__main__")
    if name == "pack.part":
        modules.find_spec("pack")
    spec = modules.find_spec(name, ["a path"], modules.main)
    assert (spec.name, modules.has(name)) == (name, found[name][1])
    assert finder.asked[-1] == sys.meta_path[0].asked[-1] == (name, ["a path"], modules.main)
    assert sys.meta_path[3].asked == []  # the first that knows it is enough
    assert modules.find_spec("absent") is None
    assert sys.meta_path[3].asked == [("absent", None, None)]
    assert not modules.has("absent")


def test_a_rank_that_resumes_has_its_modules_lists_and_finder(monkeypatch):
    """And what was there before comes back when another one resumes."""
    main, helper, outside = ModuleType("__main__"), ModuleType("helper"), ModuleType("helper")
    before, argv, path = sys.modules["__main__"], sys.argv, sys.path
    monkeypatch.setitem(sys.modules, "helper", outside)
    modules = RankModules(main, argv=["net.py"], path=["/here"])
    modules._own["helper"] = modules._own["later"] = None
    finders = list(sys.meta_path)
    for _ in range(2):
        modules.install()
        assert sys.meta_path == [modules, *finders]
        assert (sys.argv, sys.path) == (["net.py"], ["/here"])
        assert sys.modules["__main__"] is main
        assert sys.modules.get("helper") is modules._own["helper"]
        assert "later" not in sys.modules
        sys.modules["helper"] = helper
        modules.remove()
        assert sys.meta_path == finders
        assert sys.argv is argv
        assert sys.path is path
        assert (sys.modules["__main__"], sys.modules["helper"]) == (before, outside)
        assert modules._own == {"__main__": main, "helper": helper, "later": None}
    modules.install()
    sys.meta_path.remove(modules)  # a script that changes the finders
    modules.remove()
    assert sys.meta_path == finders
