"""What a dump must know of the session that it listens to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dumpsim.archive.sink import DiskFaults
from dumpsim.core.clock import Clock
from dumpsim.core.settings import RunSettings
from dumpsim.dump.control import DumpControl

__all__ = ["Log", "SessionInfo"]

Log = Callable[[str, str, str], None]  # level, the vendor's function, text


def _silent(level: str, function: str, text: str) -> None:
    """No log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """The session of a dump.

    Attributes
    ----------
    target, chip, jit_level : str
        ``Ascend``, ``GPU`` or ``CPU``; name of the chip; ``O0``, ``O1`` or ``O2``.
    saturation : bool
        The chip stores the largest number for a result that is too large, not an infinity.
    rank, device_id : int
        The rank of the tree: 0 before the script has asked for its own.
    member : int
        The rank in the job; names the manifest.
    clock : Clock
        Where time stamps come from.
    settings : RunSettings
        Overrides of the profile, manifest, append.
    disk : DiskFaults or None
        Asked before every write.
    control : DumpControl
        Starts, stops and steps of the script itself.
    late_changes : callable
        Warnings of what the script changed after the dump had started; asked when a run begins.
    lifetimes : callable
        Life times of the device's tensors, for the manifest; objects with the attributes of `manifest.BufferEntry`.
    layouts : callable
        How tensors lie on the ranks, for the manifest; objects with the attributes of `manifest.LayoutEntry`.
    log : callable
        Gets level (``WARNING``, ``ERROR``), the vendor's function and the text.
    """

    target: str
    clock: Clock
    chip: str = ""
    jit_level: str = "O0"
    saturation: bool = False
    rank: int = 0
    device_id: int = 0
    member: int = 0
    settings: RunSettings = field(default_factory=RunSettings)
    disk: DiskFaults | None = None
    control: DumpControl = field(default_factory=DumpControl)
    late_changes: Callable[[], Iterable[str]] = tuple
    lifetimes: Callable[[], Iterable[object]] = tuple
    layouts: Callable[[], Iterable[object]] = tuple
    log: Log = _silent
