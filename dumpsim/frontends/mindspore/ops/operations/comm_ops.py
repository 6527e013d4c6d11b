"""Collective primitives; their groups are those of `mindspore.communication`."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, UnsupportedError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.ops.operations import _own
from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = ["AllGather", "AllReduce", "Broadcast", "ReduceOp", "ReduceScatter"]


class ReduceOp:
    """How ranks are reduced."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


class _Collective(Primitive):
    """A collective over a group that exists."""

    def __init__(self, name: str, group: str | None, **settings: Any) -> None:
        super().__init__(name)
        if "op" in settings and not isinstance(settings["op"], str):
            raise ScriptTypeError(f"For '{name}', the 'op' must be str, but got {type(settings['op']).__name__}.")
        if group is not None and not isinstance(group, str):
            raise ScriptTypeError(f"For '{name}', the 'group' must be str, but got {type(group).__name__}.")
        self.group = group or management.GlobalComm.WORLD_COMM_GROUP
        size = management.get_group_size(self.group)  # raises before `init`, and for a group that nobody made
        if size > 1:
            raise UnsupportedError(f"a collective of {size} ranks", where=f"mindspore.ops.{name}")
        self._given = {**settings, "group": self.group}
        for key, value in settings.items():
            setattr(self, key, value)

    def __call__(self, input_x: Any) -> Any:
        return self._run([input_x], self._given)


class AllReduce(_Collective):
    """The ranks' tensors reduced to one, for every rank."""

    def __init__(self, op: str = ReduceOp.SUM, group: str | None = None) -> None:
        super().__init__("AllReduce", group, op=op)


class AllGather(_Collective):
    """The ranks' tensors joined along the first axis."""

    def __init__(self, group: str | None = None) -> None:
        super().__init__("AllGather", group)
        self.rank_size = 1


class ReduceScatter(_Collective):
    """The ranks' tensors reduced, and a part of the first axis for every rank."""

    def __init__(self, op: str = ReduceOp.SUM, group: str | None = None) -> None:
        super().__init__("ReduceScatter", group, op=op)
        self.rank_size = 1


class Broadcast(_Collective):
    """The tensors of one rank, for every rank."""

    def __init__(self, root_rank: int, group: str | None = None) -> None:
        if isinstance(root_rank, bool) or not isinstance(root_rank, int):
            raise ScriptTypeError(
                f"For 'Broadcast', the type of 'root_rank' should be 'int', but got type '{type(root_rank).__name__}'."
            )
        super().__init__("Broadcast", group, root_rank=root_rank)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.operations.comm_ops", name, _own)
