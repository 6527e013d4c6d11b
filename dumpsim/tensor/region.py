"""Plans of device layouts: the position of every element of a host tensor on the device.

A layout is one line in `_RULES`, or one function if a line is not enough. A plan expresses it by a few rectangular
regions: lists of axes with a stride on the device and one on the host. No data are read here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from dumpsim.core.errors import FormatError, nearest
from dumpsim.core.format import FRACTAL, HOST_ORDERS, Dialect, Format, cube_c0, dialect, find

__all__ = ["Layout", "Plan", "Shape", "plan", "strides"]

Shape = tuple[int, ...]
Dim = tuple[int, int, int]  # extent, stride on the device, stride on the host, in elements
Piece = tuple[int, int, tuple[Dim, ...]]  # offset on the device, offset on the host, axes

_LIMIT = 1 << 62  # bytes; larger shapes are forged


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A device layout with all its options; see `to_device`.

    Examples
    --------
    >>> Layout(format="FRACTAL_Z", groups=2).c0 is None
    True
    """

    format: str
    groups: int = 1
    c0: int | None = None
    host_format: str | None = None
    input_size: int | None = None
    hidden_size: int | None = None
    dialect: str = "mindspore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The positions of a host tensor's elements on the device.

    Attributes
    ----------
    shape : tuple of int
        Shape on the device, with padding.
    regions : list of Piece
        Rectangles that together have every element once.
    """

    shape: Shape
    regions: list[Piece]

    @property
    def padded(self) -> bool:
        """Whether the device tensor has padding."""
        return math.prod(self.shape) != sum(math.prod(n for n, _, _ in dims) for _, _, dims in self.regions)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A layout: its device axes, outermost first, merged as the vendor merges them, and its blocks.

    An axis `x` with blocks is split into ``x1`` (index of the block) and ``x0`` (index in the block). A block of 0
    means C0.
    """

    device: tuple[tuple[str, ...], ...]
    blocks: dict[str, int]


def _rule(device: str, **blocks: int) -> _Rule:
    return _Rule(device=tuple(tuple(part.split("*")) for part in device.split()), blocks=blocks)


# [spec mindspore 10.2, 10.3] [spec ge 5.2]
_RULES = {
    "NCHW": _rule("n c h w"),
    "NHWC": _rule("n h w c"),
    "HWCN": _rule("h w c n"),
    "CHWN": _rule("c h w n"),
    "NCDHW": _rule("n c d h w"),
    "NDHWC": _rule("n d h w c"),
    "DHWCN": _rule("d h w c n"),
    "DHWNC": _rule("d h w n c"),
    "NC1HWC0": _rule("n c1 h w c0", c=0),
    "NC1HWC0_C04": _rule("n c1 h w c0", c=0),
    "NDC1HWC0": _rule("n d c1 h w c0", c=0),
    "FRACTAL_Z": _rule("c1*h*w n1 n0 c0", c=0, n=FRACTAL),
    "FRACTAL_Z_3D": _rule("d*c1*h*w n1 n0 c0", c=0, n=FRACTAL),
    "FRACTAL_Z_3D_TRANSPOSE": _rule("d*n1*h*w c1 c0 n0", n=0, c=FRACTAL),
}
_MATRIX_NZ = _rule("n1 m1 m0 n0", m=FRACTAL, n=0)
_MATRIX_Z = _rule("k1 n1 n0 k0", k=0, n=FRACTAL)  # FRACTAL_Z of a matrix, GE only [spec ge 5.2]

_PADDED = {4: ("", "c", "ch", "chw", "nchw"), 5: ("", "c", "cd", "cdh", "cdhw", "ncdhw")}  # [spec mindspore 10.1]
_MISSING = (1, 0)  # extent and stride of an axis that the host tensor does not have
_ANY_RANK = ("ND", "DefaultFormat")
_RECURRENT = ("FRACTAL_ZN_RNN", "ND_RNN_BIAS")  # layouts that need the sizes of their cell


def _up(a: int, b: int) -> int:
    return -(-a // b)


def strides(shape: Sequence[int]) -> Shape:
    """Return the strides of a contiguous array, in elements.

    Parameters
    ----------
    shape : sequence of int

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> strides((2, 3, 4))
    (12, 4, 1)
    """
    out: list[int] = []
    step = 1
    for extent in reversed(shape):
        out.append(step)
        step *= extent
    return tuple(reversed(out))


def _cut(extent: int, host: int, outer: int, inner: int, block: int, start: int = 0) -> list[Piece]:
    """Split an axis, which begins at index `start` of an axis in blocks, into head, whole blocks and tail."""
    if outer == block * inner:  # the blocks are adjacent
        return [(start * inner, 0, ((extent, inner, host),))]
    head = min(extent, -start % block)
    whole, tail = divmod(extent - head, block)
    pieces: list[Piece] = []
    if head:
        pieces.append((start // block * outer + start % block * inner, 0, ((head, inner, host),)))
    first = _up(start, block)
    if whole:
        pieces.append((first * outer, head * host, ((whole, outer, block * host), (block, inner, host))))
    if tail:
        done = head + whole * block
        pieces.append(((first + whole) * outer, done * host, ((tail, inner, host),)))
    return pieces


def _join(dims: Iterable[Dim]) -> tuple[Dim, ...]:
    """Merge neighbouring axes if the strides on both sides allow it."""
    out: list[Dim] = []
    for n, device, host in dims:
        if out and out[-1][1] == n * device and out[-1][2] == n * host:
            out[-1] = (out[-1][0] * n, device, host)
        elif n != 1:
            out.append((n, device, host))
    return tuple(out)


def _cross(*axes: Iterable[Piece]) -> list[Piece]:
    """Combine the pieces of the axes: one region for each combination."""
    return [
        (sum(p[0] for p in chosen), sum(p[1] for p in chosen), _join(d for p in chosen for d in p[2]))
        for chosen in product(*axes)
    ]


def _apply(rule: _Rule, axes: dict[str, tuple[int, int]], c0: int, lead: Sequence[tuple[int, int]] = ()) -> Plan:
    """Return the plan of a rule for host axes {name: (extent, host stride)} and leading axes, which are not changed."""
    blocks = {name: size or c0 for name, size in rule.blocks.items()}
    extents: dict[str, int] = {}
    for name, (extent, _) in axes.items():
        if name in blocks:
            extents[name + "1"], extents[name + "0"] = _up(extent, blocks[name]), blocks[name]
        else:
            extents[name] = extent
    flat = [name for part in rule.device for name in part]
    step = dict(zip(flat, strides([extents[name] for name in flat]), strict=True))
    tile = math.prod(extents[name] for name in flat)
    lead_steps = [s * tile for s in strides([n for n, _ in lead])]
    pieces = [[(0, 0, tuple((n, d, s) for (n, s), d in zip(lead, lead_steps, strict=True)))]]
    for name, (extent, host) in axes.items():
        if name in blocks:
            pieces.append(_cut(extent, host, step[name + "1"], step[name + "0"], blocks[name]))
        else:
            pieces.append([(0, 0, ((extent, step[name], host),))])
    shape = tuple(n for n, _ in lead) + tuple(math.prod(extents[name] for name in part) for part in rule.device)
    return Plan(shape=shape, regions=_cross(*pieces))


def _grouped(axes: dict[str, tuple[int, int]], c0: int, groups: int) -> Plan:
    """Plan FRACTAL_Z of a grouped convolution. [spec mindspore 10.4] [spec ge 5.3]

    MindSpore's function for the shape uses lcm(cout, C0), the one for the data lcm(cout, 16): for C0 = 32 the shape may
    not fit the bytes. The rule for the data is used here.
    """
    (total, n_step), (cin, c_step), (height, h_step), (width, w_step) = (axes[x] for x in "nchw")
    if total % groups:
        divisors = [d for d in range(1, min(total, 4096) + 1) if total % d == 0]
        raise FormatError(
            f"{groups} groups do not divide {total} output channels",
            where="groups",
            nearest=str(min(divisors, key=lambda d: abs(d - groups))),
            code="DS-FMT-004",
        )
    cout = total // groups
    if not (cin and cout):
        return Plan(shape=(0, 0, FRACTAL, c0), regions=[])
    merged = min(math.lcm(math.lcm(cin, c0) // cin, math.lcm(cout, FRACTAL) // cout), groups)
    blocks = _up(merged * cin, c0)
    rows = _up(merged * cout, FRACTAL)
    slab = rows * FRACTAL * c0
    supers = _up(groups, merged)
    plane = height * width * slab
    regions: list[Piece] = []
    for e in range(merged):
        count = _up(groups - e, merged)
        regions += _cross(
            [
                (
                    e * cout * c0,
                    e * cout * n_step,
                    (
                        (count, blocks * plane, merged * cout * n_step),
                        (cout, c0, n_step),
                        (height, width * slab, h_step),
                        (width, slab, w_step),
                    ),
                )
            ],
            _cut(cin, c_step, plane, 1, c0, start=e * cin),
        )
    return Plan(shape=(supers * blocks * height * width, rows, FRACTAL, c0), regions=regions)


def _fractal_z_c04(axes: dict[str, tuple[int, int]], c0: int) -> Plan:
    """Plan FRACTAL_Z_C04: four channels, then width and height, as one axis k in blocks of C0. [spec ge 5.2]

    MindSpore has only the conversion from host to device, with blocks of 16. Its rule fills the last block of k with
    channels 4 and up as far as they fit; a tensor with more channels is an error, because it would lose data.
    [spec mindspore 10.3]
    """
    (total, n_step), (channels, c_step), (height, h_step), (width, w_step) = (axes[x] for x in "nchw")
    if c0 % 4:
        raise FormatError(f"c0 {c0} is not a multiple of 4", where="c0", nearest=str(_up(c0, 4) * 4), code="DS-FMT-003")
    pixels = height * width
    k1 = _up(4 * pixels, c0)
    n1 = _up(total, FRACTAL)
    if _up(channels, 4) * 4 * pixels > k1 * c0:
        raise FormatError(
            f"{channels} channels of {height}x{width} do not fit FRACTAL_Z_C04",
            where="shape",
            allowed=("at most 4 channels",),
            nearest="FRACTAL_Z",
            code="DS-FMT-005",
        )
    shape = (k1, n1, FRACTAL, c0)
    if not pixels:
        return Plan(shape=shape, regions=[])
    outer = n1 * FRACTAL * c0
    regions: list[Piece] = []
    step = w_step or h_step  # h and w are one axis, since the host tensor is contiguous; w may be missing
    for first in range(0, channels, 4):
        regions += _cross(
            [(0, first * c_step, ((min(4, channels - first), 1, c_step), (total, c0, n_step)))],
            _cut(pixels, step, outer, 4, c0 // 4, start=first // 4 * pixels),
        )
    return Plan(shape=shape, regions=regions)


def _diagonal(axes: dict[str, tuple[int, int]], c0: int) -> Plan:
    """Plan C1HWNCoC0: every channel is on the diagonal of a C0 x C0 square. [spec mindspore 10.3] [spec ge 5.2]"""
    (total, n_step), (channels, c_step), (height, h_step), (width, w_step) = (axes[x] for x in "nchw")
    square = c0 * c0
    rest: tuple[Dim, ...] = (
        (height, width * total * square, h_step),
        (width, total * square, w_step),
        (total, square, n_step),
    )
    regions = _cross([(0, 0, rest)], _cut(channels, c_step, height * width * total * square, c0 + 1, c0))
    return Plan(shape=(_up(channels, c0), height, width, total, c0, c0), regions=regions)


def _gates(
    rows: tuple[int, int],
    cols: tuple[int, int],
    segments: Sequence[int],
    hidden: int,
    c0: int,
    lead: Sequence[tuple[int, int]],
) -> Plan:
    """Plan weights of recurrent cells: row segments are padded to 16, columns of each gate to C0. [spec ge 5.2]

    Blocks are (k1, n1), with the columns outside of the rows in each block, as in FRACTAL_Z of a matrix. If C0 is not
    16, a block has C0 columns by 16 rows, although the vendor's shape is (..., 16, C0).
    """
    per_gate = _up(hidden, c0)
    gates = cols[0] // hidden if hidden else 0
    row_blocks = sum(_up(length, FRACTAL) for length in segments)
    block = FRACTAL * c0
    line = gates * per_gate * block
    lead_steps = [s * row_blocks * line for s in strides([n for n, _ in lead])]
    outside: tuple[Dim, ...] = tuple((n, d, s) for (n, s), d in zip(lead, lead_steps, strict=True))
    regions: list[Piece] = []
    row = at = 0
    for length in segments:
        regions += _cross(
            [(at * line, row * rows[1], (*outside, (gates, per_gate * block, hidden * cols[1])))],
            _cut(length, rows[1], line, 1, FRACTAL),
            _cut(hidden, cols[1], block, FRACTAL, c0),
        )
        row += length
        at += _up(length, FRACTAL)
    return Plan(shape=(*(n for n, _ in lead), row_blocks, gates * per_gate, FRACTAL, c0), regions=regions)


def _lstm(axes: dict[str, tuple[int, int]], shape: Shape) -> Plan:
    """Plan FRACTAL_ZN_LSTM: a weight of (input + hidden) x (4 hidden); N is 4 hidden, C is input + hidden."""
    (total, n_step), (channels, c_step), (height, _), (width, _) = (axes[x] for x in "nchw")
    hidden = total // 4
    if total % 4 or channels < hidden or (height, width) != (1, 1):
        raise FormatError(
            f"{shape} is not the weight of an LSTM: needs N = 4*hidden, C = input + hidden, H = W = 1",
            where="shape",
            code="DS-FMT-005",
        )
    return _gates((channels, c_step), (total, n_step), (channels - hidden, hidden), hidden, FRACTAL, ())


def _rnn_size(value: int | None, name: str, fmt: str) -> int:
    """Check input_size or hidden_size, which the layouts of recurrent cells need."""
    if value is None or isinstance(value, bool) or value <= 0:
        raise FormatError(f"{fmt} needs a positive {name}, got {value!r}", where=name, code="DS-FMT-006")
    return int(value)


def _rnn(shape: Shape, steps: Shape, c0: int, fmt: Format, layout: Layout) -> Plan:
    """Plan FRACTAL_ZN_RNN and ND_RNN_BIAS. [spec mindspore 10.2] [spec ge 5.2]"""
    hidden = _rnn_size(layout.hidden_size, "hidden_size", fmt.name)
    bias = fmt.name == "ND_RNN_BIAS"
    least = 1 if bias else 2
    if len(shape) < least:
        raise FormatError(f"{fmt.name} needs at least {least} dimensions, got shape {shape}", code="DS-FMT-005")
    if shape[-1] % hidden:
        raise FormatError(
            f"last dimension {shape[-1]} is not a multiple of hidden_size {hidden}",
            where="shape",
            nearest=str(max(1, round(shape[-1] / hidden)) * hidden),
            code="DS-FMT-005",
        )
    if bias:
        gates, per_gate = shape[-1] // hidden, _up(hidden, c0) * c0
        device = (*shape[:-1], gates * per_gate)
        out = strides(device)
        dims = [(n, d, s) for n, d, s in zip(shape[:-1], out, steps, strict=False)]
        dims += [(gates, per_gate, hidden * steps[-1]), (hidden, 1, steps[-1])]
        return Plan(shape=device, regions=[(0, 0, _join(dims))])
    inputs = _rnn_size(layout.input_size, "input_size", fmt.name)
    length = shape[-2]
    if length == inputs + hidden:
        segments = [inputs, hidden]
    elif length in (inputs, hidden) or layout.dialect == "ge":  # GE pads any other length as one segment
        segments = [length]
    else:
        raise FormatError(
            f"second last dimension {length} is neither input_size nor hidden_size nor their sum",
            where="shape",
            allowed=(inputs, hidden, inputs + hidden),
            nearest=str(min((inputs, hidden, inputs + hidden), key=lambda x: abs(x - length))),
            code="DS-FMT-005",
        )
    lead = list(zip(shape[:-2], steps[:-2], strict=True))
    return _gates((length, steps[-2]), (shape[-1], steps[-1]), segments, hidden, c0, lead)


def _plain(shape: Shape, steps: Shape, order: Sequence[int] | None = None) -> Plan:
    """Plan a permutation of the host's axes; by default they are unchanged."""
    order = range(len(shape)) if order is None else order
    device = tuple(shape[k] for k in order)
    dims = _join((n, d, steps[k]) for n, d, k in zip(device, strides(device), order, strict=True))
    return Plan(shape=device, regions=[(0, 0, dims)])


def _nz(shape: Shape, steps: Shape, c0: int, rules: Dialect) -> Plan:
    """Plan FRACTAL_NZ of any rank. [spec mindspore 10.2, 10.3] [spec ge 5.2]"""
    if len(shape) < 2:
        length = math.prod(shape)
        if rules == "mindspore" and (length == 1 or length % c0 == 0):
            return _plain(shape, steps)  # MindSpore does not change such vectors
        return _apply(_MATRIX_NZ, {"m": _MISSING, "n": (length, sum(steps))}, c0)
    lead = list(zip(shape[:-2], steps[:-2], strict=True))
    return _apply(_MATRIX_NZ, {"m": (shape[-2], steps[-2]), "n": (shape[-1], steps[-1])}, c0, lead)


def _host_axes(
    fmt: Format, shape: Shape, steps: Shape, host_format: str | None, rules: Dialect
) -> dict[str, tuple[int, int]]:
    """Return the host axes by letter; missing ones have extent 1. [spec mindspore 10.1]"""
    canonical = "NCHW" if fmt.rank == 4 else "NCDHW"
    if host_format is None and rules == "ge" and len(shape) == fmt.rank:
        host_format = fmt.ge_host
    if host_format is None or host_format in _ANY_RANK or host_format == canonical:
        if len(shape) > fmt.rank:
            raise FormatError(
                f"{fmt.name} takes at most {fmt.rank} dimensions, got shape {shape}", where="shape", code="DS-FMT-005"
            )
        letters = _PADDED[fmt.rank][len(shape)]
    else:
        allowed = [name for name, order in HOST_ORDERS.items() if len(order) == fmt.rank]
        if host_format not in allowed:
            raise FormatError(
                f"{fmt.name} cannot be converted from {host_format!r}",
                where="host_format",
                allowed=[*_ANY_RANK, *allowed],
                nearest=nearest(host_format, allowed),
                code="DS-FMT-007",
            )
        letters = HOST_ORDERS[host_format]
        if len(shape) != len(letters):
            raise FormatError(
                f"host_format {host_format} needs {len(letters)} dimensions, got shape {shape}",
                where="shape",
                code="DS-FMT-005",
            )
    axes = dict.fromkeys("nchw" if fmt.rank == 4 else "ncdhw", _MISSING)
    axes.update(zip(letters, zip(shape, steps, strict=True), strict=True))
    return axes


def _check(shape: Shape, dtype: np.dtype[Any], fmt: Format, layout: Layout) -> None:
    """Check shape, type and options."""
    groups = layout.groups
    if dtype.itemsize not in (1, 2, 4, 8) or dtype.hasobject:
        raise FormatError(
            f"elements of type {dtype} have no device layout",
            where="dtype",
            allowed=("1, 2, 4 or 8 bytes",),
            code="DS-FMT-008",
        )
    if any(n < 0 for n in shape) or math.prod(n for n in shape if n) * dtype.itemsize >= _LIMIT:
        raise FormatError(f"{shape} is not a shape that memory can hold", where="shape", code="DS-FMT-005")
    if not fmt.known:
        raise FormatError(f"the index rule of {fmt.name} is not documented", code="DS-FMT-009")
    if isinstance(groups, bool) or not isinstance(groups, int | np.integer) or groups < 1:
        raise FormatError(f"{groups!r} is not a number of groups", where="groups", nearest="1", code="DS-FMT-004")
    if groups > 1 and fmt.name != "FRACTAL_Z":
        raise FormatError(f"{fmt.name} has no groups", where="groups", allowed=(1,), nearest="1", code="DS-FMT-004")
    if fmt.name not in _RECURRENT and (layout.input_size is not None or layout.hidden_size is not None):
        raise FormatError(
            f"{fmt.name} does not take input_size and hidden_size",
            where="input_size, hidden_size",
            allowed=_RECURRENT,
            code="DS-FMT-006",
        )
    if layout.c0 is not None and not fmt.blocked:
        raise FormatError(f"{fmt.name} has no C0", where="c0", code="DS-FMT-003")


@lru_cache(maxsize=256)  # the tensors of a dump have few shapes, and planning takes longer than copying a small tensor
def plan(shape: Shape, steps: Shape, dtype: np.dtype[Any], layout: Layout) -> Plan:
    """Check shape and options, and plan a layout.

    Parameters
    ----------
    shape, steps : tuple of int
        Host shape, and its strides in elements.
    dtype : dtype
    layout : Layout

    Returns
    -------
    Plan

    Raises
    ------
    FormatError
        As in `dumpsim.tensor.layout.to_device`.

    Examples
    --------
    >>> found = plan((17, 16), (16, 1), np.dtype(np.float16), Layout(format="FRACTAL_NZ"))
    >>> found.shape, found.padded, found.regions[0]
    ((1, 2, 16, 16), True, (0, 0, ((272, 1, 1),)))
    """
    fmt, rules = find(layout.format), dialect(layout.dialect)
    groups, c0, host_format = layout.groups, layout.c0, layout.host_format
    _check(shape, dtype, fmt, layout)
    fixed = fmt.c0
    if fmt.name == "FRACTAL_Z_C04" and rules == "mindspore":
        fixed = FRACTAL  # 16 x 16 for all types [spec mindspore 10.2]
    if fixed is not None and c0 not in (None, fixed):
        raise FormatError(
            f"{fmt.name} has C0 {fixed}, not {c0}", where="c0", allowed=(fixed,), nearest=str(fixed), code="DS-FMT-003"
        )
    block = cube_c0(dtype.name, itemsize=dtype.itemsize, dialect=rules, override=c0 if fixed is None else fixed)
    if fmt.rank == 0:
        if host_format is not None and host_format not in (*_ANY_RANK, *HOST_ORDERS):
            raise FormatError(
                f"unknown host format {host_format!r}",
                where="host_format",
                allowed=[*_ANY_RANK, *HOST_ORDERS],
                nearest=nearest(host_format, [*_ANY_RANK, *HOST_ORDERS]),
                code="DS-FMT-007",
            )
        if fmt.name in _RECURRENT:
            return _rnn(shape, steps, block, fmt, layout)
        if fmt.name == "FRACTAL_NZ":
            return _nz(shape, steps, block, rules)
        if fmt.name == "ChannelLast" and len(shape) > 2:
            return _plain(shape, steps, [0, *range(2, len(shape)), 1])
        return _plain(shape, steps)
    if fmt.dump == "copy" and host_format in (None, *_ANY_RANK, fmt.name):
        return _plain(shape, steps)
    if fmt.name == "FRACTAL_Z" and rules == "ge" and len(shape) == 2 and groups == 1:
        return _apply(_MATRIX_Z, {"k": (shape[0], steps[0]), "n": (shape[1], steps[1])}, block)
    if fmt.name == "FRACTAL_ZN_LSTM" and rules == "ge" and len(shape) == 2:  # HWCN without H and W
        shape, steps = (1, 1, *shape), (0, 0, *steps)
    axes = _host_axes(fmt, shape, steps, host_format, rules)
    if fmt.name == "FRACTAL_ZN_LSTM":
        return _lstm(axes, shape)
    if fmt.name == "FRACTAL_Z_C04":
        return _fractal_z_c04(axes, block)
    if fmt.name == "C1HWNCoC0":
        return _diagonal(axes, block)
    if groups > 1:
        return _grouped(axes, block, int(groups))
    return _apply(_RULES[fmt.name], axes, block)
