"""Table of the chips that can be emulated: memory, formats, overflow mode, streams and durations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from dumpsim.core.errors import BadInputError, nearest

__all__ = ["CHIPS", "DEFAULT_CHIP", "Chip", "OverflowMode", "Prices", "chip", "chip_for"]

GIB = 1 << 30


class OverflowMode(StrEnum):
    """What a float unit does with a result that is too large for its type."""

    SATURATION = "saturation"
    INFNAN = "infnan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Durations on the virtual clock. All figures are assumptions. [spec parallel 7.4]

    Attributes
    ----------
    flops : int
        Operations per second of the matrix unit.
    bandwidth : int
        Bytes per second of device memory.
    launch_ns : int
        Latency of one kernel.
    copy_bandwidth, copy_ns : int
        Bytes per second and latency of a copy between host and device.
    host_ns : int
        Host time of one launch.
    """

    flops: int
    bandwidth: int
    launch_ns: int = 5_000
    copy_bandwidth: int = 20 * 10**9
    copy_ns: int = 10_000
    host_ns: int = 1_000

    def kernel_ns(self, flops: int, nbytes: int) -> int:
        """Return the duration of a kernel that does `flops` operations on `nbytes` of memory."""
        return self.launch_ns + max(flops * 10**9 // self.flops, nbytes * 10**9 // self.bandwidth)

    def copy_duration_ns(self, nbytes: int) -> int:
        """Return the duration of a copy between host and device."""
        return self.copy_ns + nbytes * 10**9 // self.copy_bandwidth


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A chip.

    Attributes
    ----------
    name : str
        Name for ``--chip``.
    target : str
        MindSpore's device_target: ``Ascend``, ``GPU`` or ``CPU``.
    soc : str
        The vendor's SoC version, empty if there is none.
    memory : int
        Bytes of device memory.
    private_levels : frozenset of str
        jit levels at which convolutions and matmuls use private formats and `cube_dtype`. [decisions: chip]
    cube_dtype : str or None
        Number type of the matrix unit for float32 operands at those levels; None keeps float32.
    overflow : OverflowMode or None
        Mode after a reset; None for a chip with IEEE arithmetic and no status register. [spec parallel 4.4]
    overflow_switch : bool
        Whether ``MS_ASCEND_CHECK_OVERFLOW_MODE`` has an effect. [spec parallel 4.4]
    streams : int
        Number of streams of a device. [spec parallel 4.1]
    engines : tuple of str
        Engines that operators can be placed on.
    prices : Prices
        Durations on the virtual clock.
    """

    name: str
    target: str
    soc: str = ""
    memory: int
    private_levels: frozenset[str] = frozenset()
    cube_dtype: str | None = None
    overflow: OverflowMode | None = None
    overflow_switch: bool = False
    streams: int = 2024
    engines: tuple[str, ...] = ("aicore", "aivector", "aicpu", "hccl", "host")
    prices: Prices
    cube_ops: frozenset[str] = field(
        default=frozenset(
            {
                "BatchMatMul",
                "BatchMatMulV2",
                "Conv2D",
                "Conv2DBackpropFilter",
                "Conv2DBackpropInput",
                "Conv2DTranspose",
                "Conv3D",
                "Dense",
                "DepthwiseConv2dNative",
                "MatMul",
                "MatMulV2",
            }
        )
    )

    def private_formats(self, jit_level: str) -> bool:
        """Whether graphs of that level use private formats.

        Examples
        --------
        >>> chip("910A").private_formats("O0"), chip("910B").private_formats("O0"), chip("910B").private_formats("O2")
        (True, False, True)
        """
        return (jit_level or "O0") in self.private_levels

    @property
    def default_level(self) -> str:
        """The default jit_level of 2.4 and 2.5. [decisions]

        Examples
        --------
        >>> [chip(name).default_level for name in ("910A", "310P", "910B", "CPU")]
        ['O2', 'O2', 'O0', 'O0']
        """
        return "O2" if self.target == "Ascend" and self.private_levels == _ALL_LEVELS else "O0"


_ALL_LEVELS = frozenset({"O0", "O1", "O2"})
_O2 = frozenset({"O2"})

CHIPS: Mapping[str, Chip] = MappingProxyType(
    {
        row.name: row
        for row in (
            Chip(
                name="910A",
                target="Ascend",
                soc="Ascend910",
                memory=32 * GIB,
                private_levels=_ALL_LEVELS,
                cube_dtype="float16",
                overflow=OverflowMode.SATURATION,
                prices=Prices(flops=256 * 10**12, bandwidth=1_200 * 10**9),
            ),
            Chip(
                name="910B",
                target="Ascend",
                soc="Ascend910B",
                memory=64 * GIB,
                private_levels=_O2,
                cube_dtype="float16",
                overflow=OverflowMode.INFNAN,
                overflow_switch=True,
                prices=Prices(flops=320 * 10**12, bandwidth=1_600 * 10**9),
            ),
            Chip(
                name="910_93",
                target="Ascend",
                soc="Ascend910_93",
                memory=64 * GIB,
                private_levels=_O2,
                cube_dtype="float16",
                overflow=OverflowMode.INFNAN,
                overflow_switch=True,
                prices=Prices(flops=350 * 10**12, bandwidth=1_600 * 10**9),
            ),
            Chip(
                name="310P",
                target="Ascend",
                soc="Ascend310P",
                memory=24 * GIB,
                private_levels=_ALL_LEVELS,
                cube_dtype="float16",
                overflow=OverflowMode.SATURATION,
                prices=Prices(flops=70 * 10**12, bandwidth=200 * 10**9),
            ),
            Chip(
                name="GPU",
                target="GPU",
                memory=32 * GIB,
                engines=("aicore", "host"),
                prices=Prices(flops=100 * 10**12, bandwidth=900 * 10**9, launch_ns=4_000),
            ),
            Chip(
                name="CPU",
                target="CPU",
                memory=64 * GIB,
                engines=("aicore", "host"),
                prices=Prices(
                    flops=10**12, bandwidth=50 * 10**9, launch_ns=2_000, copy_ns=500, copy_bandwidth=10 * 10**9
                ),
            ),
        )
    }
)

# [decisions: device, chip]
DEFAULT_CHIP: Mapping[str, str] = MappingProxyType({"Ascend": "910B", "GPU": "GPU", "CPU": "CPU"})


def chip(name: str) -> Chip:
    """Return the chip of that name.

    Raises
    ------
    BadInputError
        If the name is not in the table.

    Examples
    --------
    >>> chip("910A").overflow.value
    'saturation'
    """
    for row in CHIPS.values():
        if row.name.lower() == name.lower() or (row.soc and row.soc.lower() == name.lower()):
            return row
    raise BadInputError(f"unknown chip {name!r}", where="--chip", allowed=CHIPS, nearest=nearest(name, CHIPS))


def chip_for(target: str, name: str | None = None) -> Chip:
    """Return the chip of a device_target: `name`, or the target's default.

    Raises
    ------
    BadInputError
        For an unknown target, or a chip that belongs to another target.

    Examples
    --------
    >>> chip_for("Ascend").name
    '910B'
    """
    known = {key.lower(): key for key in DEFAULT_CHIP}
    if target.lower() not in known:
        raise BadInputError(
            f"unknown device target {target!r}",
            where="device_target",
            allowed=DEFAULT_CHIP,
            nearest=nearest(target, DEFAULT_CHIP),
        )
    target = known[target.lower()]
    found = chip(name or DEFAULT_CHIP[target])
    if found.target != target:
        raise BadInputError(
            f"chip {found.name} is not a chip of {target}",
            where="--chip",
            allowed=[row.name for row in CHIPS.values() if row.target == target],
            nearest=DEFAULT_CHIP[target],
        )
    return found
