"""A context in which ``import mindspore`` finds the emulation."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from dumpsim.emulate import ALIASES, AliasFinder, install

__all__ = ["aliased"]


@contextmanager
def aliased() -> Iterator[None]:
    """Make ``import mindspore`` and ``import troubleshooter`` find the emulation until the end of the block.

    Modules of these names that are already loaded, such as those of a real MindSpore, are removed from `sys.modules`
    first and restored afterwards; names bound to them stay bound. The emulation's own modules stay loaded under
    their own names, so that a second block does not load them again. If a finder is installed already, as under
    ``dumpsim run``, nothing changes.

    Examples
    --------
    >>> with aliased():
    ...     from mindspore import dtype
    >>> dtype.__name__, "mindspore" in sys.modules
    ('dumpsim.frontends.mindspore.common.dtype', False)
    """
    if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        yield
        return
    before = _take()
    finder = install()
    try:
        yield
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        _take()
        sys.modules.update(before)
        names = sys.modules.get(ALIASES["torch_npu"])
        if names is not None:
            names.uninstall()


def _take() -> dict[str, ModuleType]:
    """Remove the modules of aliased packages from `sys.modules` and return them."""
    names = [name for name in sys.modules if name.partition(".")[0] in ALIASES]
    return {name: sys.modules.pop(name) for name in names}
