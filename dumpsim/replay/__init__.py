"""Dumped operators, recomputed with the operator table: the one room that joins analysis and ops.

The room has the name of its function, so it is called like it: ``dumpsim.replay("DUMP")``.
"""

import sys
from types import ModuleType

from dumpsim.replay.replay import replay

__all__ = ["replay"]


class _Room(ModuleType):
    __call__ = staticmethod(replay)


sys.modules[__name__].__class__ = _Room
