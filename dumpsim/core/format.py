"""Layouts of tensors on the device: their names, their block size C0, and what a dump does with them.

Names and numbers only; the conversion itself is in `dumpsim.tensor.layout`.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from dumpsim.core.errors import FormatError, nearest

__all__ = ["DIALECTS", "FORMATS", "FRACTAL", "HOST_ORDERS", "Dialect", "Format", "cube_c0", "dialect", "find"]

Dialect = Literal["mindspore", "ge"]
DIALECTS: tuple[Dialect, ...] = ("mindspore", "ge")

FRACTAL = 16  # Ni, M0, N0: the side of a cube that does not depend on the number type [spec mindspore 10.1]
_C0_LIMIT = 16384  # GE stores log2(C0) + 1 in four bits [spec ge 5.1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A layout.

    Attributes
    ----------
    name : str
        The vendor's name, as in file names and file headers.
    rank : int
        Rank that host shapes are padded to; 0 if the layout takes any rank.
    blocked : bool
        Whether it pads a channel axis to blocks of C0.
    c0 : int or None
        C0 that the layout fixes, None where the number type decides.
    dump : str
        What MindSpore's dump with ``trans_flag: true`` does with a device tensor: ``copy`` its bytes, ``convert`` them,
        report ``unsupported`` ("Unsupported to trans"; the tensor is skipped), or ``unexpected``: it is listed as
        convertible, but there is no routine, so that an exception "Unexpected format" follows. [spec mindspore 10.1]
    known : bool
        Whether an index rule is documented. The others are names only.
    ge_host : str or None
        The only host order that GE converts this layout from, if it is not NCHW or NCDHW. [spec ge 5.2]
    """

    name: str
    rank: int = 0
    blocked: bool = False
    c0: int | None = None
    dump: Literal["copy", "convert", "unsupported", "unexpected"] = "unsupported"
    known: bool = True
    ge_host: str | None = None


# [spec mindspore 10.1, 10.2] [spec ge 5.2]
FORMATS: MappingProxyType[str, Format] = MappingProxyType(
    {
        row.name: row
        for row in (
            Format(name="DefaultFormat", dump="copy"),
            Format(name="ND", dump="copy"),
            Format(name="NCHW", rank=4, dump="copy"),
            Format(name="NCDHW", rank=5, dump="copy"),
            Format(name="NHWC", rank=4, dump="convert"),
            Format(name="HWCN", rank=4, dump="convert"),
            Format(name="CHWN", rank=4),
            Format(name="NDHWC", rank=5),
            Format(name="DHWCN", rank=5),
            Format(name="DHWNC", rank=5),
            Format(name="NC1HWC0", rank=4, blocked=True, dump="convert"),
            Format(name="NC1HWC0_C04", rank=4, blocked=True, c0=4, dump="convert"),
            Format(name="NDC1HWC0", rank=5, blocked=True, dump="convert"),
            Format(name="FRACTAL_Z", rank=4, blocked=True, dump="convert"),
            Format(name="FRACTAL_Z_C04", rank=4, blocked=True, dump="unexpected"),
            Format(name="FRACTAL_Z_3D", rank=5, blocked=True, dump="convert"),
            Format(name="FRACTAL_Z_3D_TRANSPOSE", rank=5, blocked=True, ge_host="DHWNC"),
            Format(name="FRACTAL_NZ", blocked=True, dump="convert"),
            Format(name="C1HWNCoC0", rank=4, blocked=True, dump="convert", ge_host="HWCN"),
            Format(name="FRACTAL_ZN_LSTM", rank=4, blocked=True, c0=16, ge_host="HWCN"),
            Format(name="FRACTAL_ZN_RNN", blocked=True),
            Format(name="ND_RNN_BIAS", blocked=True),
            Format(name="NC1KHKWHWC0", known=False),
            Format(name="NCL"),
            Format(name="ChannelFirst"),
            Format(name="ChannelLast"),
        )
    }
)

# axes of the host orders that a layout of rank 4 or 5 may be converted from
HOST_ORDERS: MappingProxyType[str, str] = MappingProxyType(
    {
        "NCHW": "nchw",
        "NHWC": "nhwc",
        "HWCN": "hwcn",
        "CHWN": "chwn",
        "NCDHW": "ncdhw",
        "NDHWC": "ndhwc",
        "DHWCN": "dhwcn",
        "DHWNC": "dhwnc",
    }
)


def find(name: str) -> Format:
    """Return the layout of that name.

    Parameters
    ----------
    name : str
        A vendor name, in the vendor's case: ``NC1HWC0``, ``FRACTAL_NZ``, ``DefaultFormat``.

    Raises
    ------
    FormatError
        If the name is not in `FORMATS`.

    Examples
    --------
    >>> find("NC1HWC0_C04").c0
    4
    >>> find("FRACTAL_N")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dumpsim.core.errors.FormatError: unknown device format 'FRACTAL_N'; allowed: ... (did you mean 'FRACTAL_NZ'?) ...
    """
    try:
        return FORMATS[name]
    except (KeyError, TypeError):
        raise FormatError(
            f"unknown device format {name!r}", allowed=FORMATS, nearest=nearest(name, FORMATS), code="DS-FMT-001"
        ) from None


def dialect(name: str) -> Dialect:
    """Check the name of a dialect and return it.

    Raises
    ------
    FormatError
        For anything but ``mindspore`` and ``ge``.

    Examples
    --------
    >>> dialect("ge")
    'ge'
    """
    for known in DIALECTS:
        if name == known:
            return known
    raise FormatError(
        f"unknown dialect {name!r}",
        where="dialect",
        allowed=DIALECTS,
        nearest=nearest(name, DIALECTS),
        code="DS-FMT-002",
    )


def cube_c0(dtype: str, *, itemsize: int, dialect: Dialect = "mindspore", override: int | None = None) -> int:
    """Return C0, the number of channels in a block.

    MindSpore: 32 for int8 and uint8, 64 for int4, 16 for everything else, float32 and bool too. [spec mindspore 10.1]
    GE: 32 for types of one byte, 16 for the rest. [spec ge 5.1] A reader should trust the last dimension of the shape
    in the dump before either rule, and pass it as `override`.

    Parameters
    ----------
    dtype : str
        Name of the number type, ``float16``.
    itemsize : int
        Bytes of one element.
    dialect : {"mindspore", "ge"}
        Whose rule.
    override : int, optional
        The C0 to use instead: 1 to 16384.

    Raises
    ------
    FormatError
        If `override` is out of range.

    Examples
    --------
    >>> cube_c0("bool", itemsize=1), cube_c0("bool", itemsize=1, dialect="ge")
    (16, 32)
    """
    if override is not None:
        if not isinstance(override, int) or isinstance(override, bool) or not 1 <= override <= _C0_LIMIT:
            closest = None
            if isinstance(override, int):
                closest = str(int(min(max(override, 1), _C0_LIMIT)))
            raise FormatError(
                f"{override!r} is not a block size",
                where="c0",
                allowed=(f"1..{_C0_LIMIT}",),
                nearest=closest,
                code="DS-FMT-003",
            )
        return override
    if dtype == "int4":
        return 64 if dialect == "mindspore" else 16
    if dialect == "ge":
        return 32 if itemsize == 1 else 16
    return 32 if dtype in ("int8", "uint8") else 16
