"""Run compiled functions uncompiled while calls are recorded, so that their calls are seen.

``torch.compile`` may be used for the first time during a dump. Its compiler is not imported in advance; an import
finder notices when it is imported.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

__all__ = ["Eager"]

_COMPILER = "torch._dynamo"


class Eager:
    """Sets the stance of ``torch.compile`` from `begin` to `end`."""

    def __init__(self) -> None:
        self._stance: Any = None
        self._finder: _Finder | None = None

    def begin(self) -> None:
        """Run compiled functions uncompiled from here, including those compiled later."""
        self.end()
        if getattr(torch.compiler, "set_stance", None) is None:  # torch before 2.6
            return
        if _COMPILER in sys.modules:
            self._take()
        else:
            self._finder = _Finder(self._imported)
            sys.meta_path.insert(0, self._finder)

    def end(self) -> None:
        """Restore the state before `begin`."""
        finder, self._finder = self._finder, None
        if finder is not None and finder in sys.meta_path:
            sys.meta_path.remove(finder)
        stance, self._stance = self._stance, None
        if stance is not None:
            stance.__exit__(None, None, None)

    def _take(self) -> None:
        stance = torch.compiler.set_stance("force_eager")
        stance.__enter__()
        self._stance = stance

    def _imported(self) -> None:
        if self._finder is not None:  # the dump has not ended
            self._finder = None
            self._take()


class _Finder(MetaPathFinder):
    """Calls a function when the compiler is imported for the first time."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _COMPILER:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)
        return spec


class _Loader(Loader):
    """Wraps a loader: calls a function after loading, and leaves no trace in the module."""

    def __init__(self, inner: Loader, then: Callable[[], None]) -> None:
        self._inner = inner
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._inner
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        self._inner.exec_module(module)
        self._then()
