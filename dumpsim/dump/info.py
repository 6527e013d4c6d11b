"""The data of a session that its dump needs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dumpsim.archive.sink import DiskFaults
from dumpsim.core.clock import Clock
from dumpsim.core.settings import RunSettings
from dumpsim.dump.control import DumpControl

__all__ = ["Log", "SessionInfo"]

Log = Callable[[str, str, str], None]  # level, the vendor's function, text


def _silent(level: str, function: str, text: str) -> None:
    """Log nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """The session of a dump.

    Attributes
    ----------
    target, chip, jit_level : str
        ``Ascend``, ``GPU`` or ``CPU``; name of the chip; ``O0``, ``O1`` or ``O2``.
    saturation : bool
        Whether the chip stores the largest number, not an infinity, for a result that is too large.
    rank, device_id : int
        Rank in the tree (0 until the script initialises its communication), and device.
    member : int
        Rank in the job, for the name of the manifest.
    clock : Clock
        Source of time stamps.
    settings : RunSettings
        Overrides of the profile, manifest, append.
    disk : DiskFaults or None
        Faults of the disk, which are checked before every write.
    control : DumpControl
        The script's own starts, stops and steps.
    late_changes : callable
        Returns warnings about changes by the script after the dump had started; called when a run begins.
    lifetimes : callable
        Returns lifetimes of the device's tensors, as objects with the attributes of `manifest.BufferEntry`.
    layouts : callable
        Returns layouts of tensors on the ranks, as objects with the attributes of `manifest.LayoutEntry`.
    log : callable
        Function of level (``WARNING``, ``ERROR``), the vendor's function and the text.
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
