"""Recompute dumped operators with the operator table: the only package that imports both analysis and ops.

The package has the name of its main function and can be called like it: ``dumpsim.replay("DUMP")``.
"""

import sys
from types import ModuleType

from dumpsim.replay.replay import replay

__all__ = ["replay"]


class _CallablePackage(ModuleType):
    __call__ = staticmethod(replay)


sys.modules[__name__].__class__ = _CallablePackage
