"""Compiled functions run uncompiled while calls are recorded: what they call is seen, and nothing of ours is compiled.

``torch.compile`` may be met for the first time in the middle of a dump. Its compiler is not imported for that chance;
a finder waits for somebody to import it.
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
    """The stance of ``torch.compile`` from `begin` to `end`."""

    def __init__(self) -> None:
        self._stance: Any = None
        self._finder: _Finder | None = None

    def begin(self) -> None:
        """Compiled functions run uncompiled from here, those compiled later too."""
        self.end()
        if getattr(torch.compiler, "set_stance", None) is None:  # torch before 2.6
            return
        if _COMPILER in sys.modules:
            self._take()
        else:
            self._finder = _Finder(self._imported)
            sys.meta_path.insert(0, self._finder)

    def end(self) -> None:
        """As it was before `begin`."""
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
        if self._finder is not None:  # the dump goes on
            self._finder = None
            self._take()


class _Finder(MetaPathFinder):
    """Waits for the compiler to be imported, once."""

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
    """Loads as another does, says when it is done, and leaves no trace in the module."""

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
