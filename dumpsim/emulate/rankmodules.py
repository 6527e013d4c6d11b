"""The modules, ``sys.argv`` and ``sys.path`` that each rank of one process has of its own."""

import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

__all__ = ["RankModules"]


class RankModules(MetaPathFinder):
    """The modules that a rank does not share: its ``__main__``, and all in directories of the user.

    The standard library, installed packages, dumpsim, and modules loaded before the ranks started are shared. While
    its rank runs, this object is one of the import finders and records what the rank imports; when another rank
    resumes, it removes these modules from `sys.modules` and saves the rank's ``sys.argv`` and ``sys.path``.

    Parameters
    ----------
    main : module
        The rank's ``__main__``.
    argv, path : sequence of str
        Their values at the start of the rank.
    """

    def __init__(self, main: ModuleType, *, argv: Sequence[str], path: Sequence[str]) -> None:
        self.main = main
        self._own: dict[str, ModuleType | None] = {"__main__": main}
        self._outside: dict[str, ModuleType] = {}
        self._argv, self._path = list(argv), list(path)
        self._outside_lists: tuple[list[str], list[str]] = ([], [])

    def install(self) -> None:
        """Install the rank's modules: it resumes."""
        for name, module in self._own.items():
            if name in sys.modules:
                self._outside[name] = sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module
        self._outside_lists = sys.argv, sys.path
        sys.argv, sys.path = self._argv, self._path
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Remove the rank's modules: another rank resumes."""
        with suppress(ValueError):  # the script has changed the finders
            sys.meta_path.remove(self)
        self._argv, self._path = sys.argv, sys.path
        sys.argv, sys.path = self._outside_lists
        for name in self._own:
            self._own[name] = sys.modules.pop(name, None)
        sys.modules.update(self._outside)
        self._outside = {}

    def has(self, name: object) -> bool:
        """Return whether a module is the rank's own."""
        return name in self._own

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Ask the other finders, and record modules that are the rank's own."""
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if fullname not in self._own and (self.has(fullname.rpartition(".")[0]) or _of_user(spec)):
                    self._own[fullname] = None
                return spec
        return None


def _of_user(spec: ModuleSpec) -> bool:
    """Return whether a module lies in a directory of the user, not among installed packages."""
    if spec.has_location and spec.origin:
        places = [spec.origin]
    else:
        places = list(spec.submodule_search_locations or ())  # a package without __init__.py
    return bool(places) and not any(_installed(Path(os.path.abspath(place))) for place in places)


def _installed(place: Path) -> bool:
    if any(place.is_relative_to(root) for root in _roots()):
        return True
    found = {os.path.abspath(entry) for entry in sys.path}
    holders = [parent for parent in place.parents if str(parent) in found]
    return any(next(holder.glob("*.dist-info"), None) is not None for holder in holders)  # of pip install --target


def _roots() -> list[str]:
    import dumpsim

    library: list[str] = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    packages = [*site.getsitepackages(), site.getusersitepackages(), os.path.dirname(dumpsim.__file__)]
    return [os.path.abspath(root) for root in (*library, *packages)]
