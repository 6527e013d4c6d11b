"""Options of a communication group."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError

__all__ = ["GroupOptions"]


class GroupOptions:
    """Options of `create_group`: HCCL's buffer sizes and tuning of a group.

    The options are stored without effect, since buffers and tuning do not change results.

    Attributes
    ----------
    hccl_config : dict
        ``hccl_buffer_size`` and others.
    use_async : bool

    Examples
    --------
    >>> options = GroupOptions()
    >>> options.hccl_config = {"hccl_buffer_size": 400}
    >>> options.use_async
    False
    """

    __slots__ = ("_hccl_config", "_use_async")

    def __init__(self) -> None:
        self._hccl_config: dict[str, Any] = {}
        self._use_async = False

    @property
    def hccl_config(self) -> dict[str, Any]:
        """Settings of HCCL by name."""
        return self._hccl_config

    @hccl_config.setter
    def hccl_config(self, value: dict[str, Any]) -> None:
        if not isinstance(value, dict):
            raise ScriptTypeError(f"{type(value).__name__} is not a dict", where="GroupOptions.hccl_config")
        self._hccl_config = dict(value)

    @property
    def use_async(self) -> bool:
        """Whether the group is created in the background."""
        return self._use_async

    @use_async.setter
    def use_async(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise ScriptTypeError(f"{type(value).__name__} is not a bool", where="GroupOptions.use_async")
        self._use_async = value
