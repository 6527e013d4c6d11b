"""The settings of one run, which `dumpsim run` passes to the process of the script in an environment variable."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache

from dumpsim.core.errors import BadInputError, nearest

__all__ = ["VARIABLE", "RunSettings"]

VARIABLE = "DUMPSIM_RUN"

_CHOICES: dict[str, tuple[str | None, ...]] = {
    "device": (None, "ascend", "gpu", "cpu"),
    "mindspore": ("seed", "2.7", "2.10"),
    "clock": ("virtual", "wall"),
    "engine": ("numpy", "null"),
    "collective_check": ("all", "first", "off"),
    "transport": ("local", "process", "mpi"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of `dumpsim run`.

    Attributes
    ----------
    device : str or None
        ``ascend``, ``gpu`` or ``cpu``: overrides the script's device_target; None uses that of the script, by default
        Ascend. [decisions]
    chip : str or None
        A name of `dumpsim.device.chip.CHIPS`; None uses the device's default (910B for Ascend). [decisions]
    mindspore : str
        The version profile: ``seed``, ``2.7`` or ``2.10``.
    overrides : mapping of str to str
        Single fields of the profile (``--set FIELD=VALUE``).
    clock : str
        ``virtual`` (the same time stamps in every run) or ``wall``.
    engine : str
        The kernel engine: ``numpy``, or ``null`` for shapes, addresses and times without values.
    seed : int
        Seed of all random numbers that the script does not seed itself.
    faults : str or None
        Path of a fault plan.
    manifest : str or None
        Path of the manifest; None writes none.
    append : bool
        Continue in a dump root that already contains files of this rank.
    durable : bool
        Flush the dump's files and directories to disk (fsync).
    quiet : bool
        Print no summary on stderr.
    reduce_order : str
        Order in which collectives reduce: ``rank``, ``ring``, ``tree``, ``fp32acc`` or ``random:SEED``.
    collective_check : str
        Which collectives are compared between ranks: ``all``, the ``first`` of each type in a group (as in HCCL), or
        ``off`` for none.
    transport : str
        How ranks communicate: ``local`` in one process, ``process`` through shared memory, ``mpi``.
    schedule : str
        Order in which the ranks of one process take turns: ``rank``, ``reverse`` or ``random:SEED``.
    check_races : bool
        Stop if streams use the same memory and no event orders them.
    plan : str or None
        Directory for the report of a planned dump; the dump itself is not written.
    plan_steps : int
        Number of steps after which the script of a planned dump ends.

    Examples
    --------
    >>> RunSettings.from_text(RunSettings(device="cpu").to_text()).device
    'cpu'
    """

    device: str | None = None
    chip: str | None = None
    mindspore: str = "seed"
    overrides: Mapping[str, str] = field(default_factory=dict)
    clock: str = "virtual"
    engine: str = "numpy"
    seed: int = 0
    faults: str | None = None
    manifest: str | None = "dumpsim-manifest.json"
    append: bool = False
    durable: bool = False
    quiet: bool = False
    reduce_order: str = "rank"
    collective_check: str = "all"
    transport: str = "local"
    schedule: str = "rank"
    check_races: bool = False
    plan: str | None = None
    plan_steps: int = 2

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                legal = [a for a in allowed if a is not None]
                raise BadInputError(
                    f"{value!r} is not a value of {name}",
                    where=f"--{name.replace('_', '-')}",
                    allowed=legal,
                    nearest=nearest(value, legal),
                )

    def to_text(self) -> str:
        """Return JSON for the environment variable."""
        return json.dumps(asdict(self) | {"overrides": dict(self.overrides)}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> "RunSettings":
        """Return the settings that `to_text` wrote."""
        return cls(**json.loads(text))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "RunSettings":
        """Return the settings of this process; the defaults if `dumpsim run` did not start it.

        Equal texts return the same, cached object, since PYNATIVE operators call this each time.
        """
        return _settings((os.environ if environment is None else environment).get(VARIABLE) or "{}")


@lru_cache(maxsize=32)
def _settings(text: str) -> RunSettings:
    return RunSettings.from_text(text)
