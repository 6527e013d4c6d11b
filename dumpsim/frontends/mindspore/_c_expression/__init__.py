"""``mindspore._c_expression``: the names of MindSpore's C++ side that dump scripts import. [spec mindspore 1.6]"""

from collections.abc import Sequence
from typing import Any, Final

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._standin import refusal, vendored
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication._options import GroupOptions

__all__ = [
    "GroupOptions",
    "MSContext",
    "Tensor",
    "TensorPy",
    "_dump_set_dynamic",
    "_dump_start",
    "_dump_step",
    "_dump_stop",
    "_set_init_iter",
    "_tensordump_set_step",
]


TensorPy: Final = Tensor


class MSContext:
    """The C++ side's interface to the settings of the rank.

    Examples
    --------
    >>> MSContext.get_instance().get_ascend_soc_version()
    'ascend910b'
    """

    __slots__ = ()

    @staticmethod
    def get_instance() -> "MSContext":
        """Return the settings of the rank."""
        return MSContext()

    def get_ascend_soc_version(self) -> str:
        """Return the name of the chip in lower case, "" for a target other than Ascend."""
        from dumpsim.core.settings import RunSettings
        from dumpsim.device.chip import chip_for
        from dumpsim.frontends.mindspore.context import get_context

        return chip_for(get_context("device_target"), RunSettings.from_environment().chip).soc.lower()

    def get_param(self, key: Any) -> Any:
        """Return a setting by its number in `ms_ctx_param`."""
        from dumpsim.frontends.mindspore.context import get_context

        return get_context(key.name)

    def set_param(self, key: Any, value: Any) -> None:
        """Change a setting by its number in `ms_ctx_param`."""
        from dumpsim.frontends.mindspore.context import set_context

        set_context(**{key.name: value})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(str(refusal("mindspore._c_expression", f"MSContext.{name}")))


def _control(name: str, *args: Any) -> None:
    """Forward a call to the dump of this process."""
    from dumpsim.frontends.mindspore import _dumping

    getattr(_dumping, name)(*args)


def _dump_set_dynamic() -> None:
    """Dump only between `_dump_start` and `_dump_stop`, regardless of `iteration`."""
    _control("set_dynamic")


def _dump_start() -> None:
    """Start dumping every step."""
    _control("start")


def _dump_stop() -> None:
    """Stop dumping steps."""
    _control("stop")


def _set_init_iter(initial: int) -> None:
    """Let the user count the steps, starting at `initial`; the numbers name the directories."""
    if isinstance(initial, bool) or not isinstance(initial, int):
        raise ScriptTypeError(f"the step is of type {type(initial).__name__}", where="_set_init_iter", allowed=("int",))
    _control("set_initial_iteration", initial)


def _dump_step(step: int = 1) -> None:
    """Advance the user's step counter by `step`."""
    if isinstance(step, bool) or not isinstance(step, int):
        raise ScriptTypeError(f"the step is of type {type(step).__name__}", where="_dump_step", allowed=("int",))
    _control("advance", step)


def _tensordump_set_step(steps: Sequence[int]) -> None:
    """Restrict TensorDump to these steps; an empty list means all steps.

    Raises
    ------
    UnsupportedError
        For a generation of TensorDump without steps.
    """
    from dumpsim.frontends.mindspore.ops._channels import dump_writer
    from dumpsim.runtime.session import Session

    if any(isinstance(step, bool) or not isinstance(step, int) or step < 0 for step in steps):
        raise ScriptTypeError(f"steps {list(steps)}", where="_tensordump_set_step", allowed=("a list of int from 0",))
    dump_writer(Session.current()).set_steps(steps)


def __getattr__(name: str) -> Any:
    return vendored("mindspore._c_expression", name)
