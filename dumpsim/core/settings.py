"""The settings of one run: what `dumpsim run` hands to the process of the script, through the environment."""

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
        ``ascend``, ``gpu`` or ``cpu``: overrides the script's device_target; None leaves it to the script, then Ascend.
        [decisions]
    chip : str or None
        A name of `dumpsim.device.chip.CHIPS`; None takes the device's default (910B for Ascend). [decisions]
    mindspore : str
        The version profile: ``seed``, ``2.7`` or ``2.10``.
    overrides : mapping of str to str
        Single fields of the profile (``--set FIELD=VALUE``).
    clock : str
        ``virtual`` (the same time stamps in every run) or ``wall``.
    engine : str
        What computes the kernels: ``numpy``, or ``null`` for shapes, addresses and times without values.
    seed : int
        Seed of everything random that the script does not seed itself.
    faults : str or None
        Path of a fault plan.
    manifest : str or None
        Path of the manifest, None for none.
    append : bool
        Continue in a dump root that already holds this rank's files.
    durable : bool
        Bring the dump's files and directories to stable storage (fsync).
    quiet : bool
        No summary on stderr.
    reduce_order : str
        In which order collectives reduce: ``rank``, ``ring``, ``tree``, ``fp32acc`` or ``random:SEED``.
    collective_check : str
        Which collectives are compared between ranks: ``all``, those that are the ``first`` of their type in a group (as
        HCCL does), or ``off``.
    transport : str
        How ranks reach each other: ``local`` in one process, ``process`` through shared memory, ``mpi``.
    schedule : str
        In which order the ranks of one process take turns: ``rank``, ``reverse`` or ``random:SEED``.
    check_races : bool
        Stop where streams work on the same memory and no event orders them.
    plan : str or None
        Directory for the account of a dump that is planned: nothing of the dump is written.
    plan_steps : int
        Steps after which the script of a plan ends.

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
        """JSON for the environment variable."""
        return json.dumps(asdict(self) | {"overrides": dict(self.overrides)}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> "RunSettings":
        """The settings that `to_text` wrote."""
        return cls(**json.loads(text))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "RunSettings":
        """The settings of this process; the defaults where `dumpsim run` did not start it.

        An equal text gives the same object: operators of PYNATIVE ask in each call.
        """
        return _settings((os.environ if environment is None else environment).get(VARIABLE) or "{}")


@lru_cache(maxsize=32)
def _settings(text: str) -> RunSettings:
    return RunSettings.from_text(text)
