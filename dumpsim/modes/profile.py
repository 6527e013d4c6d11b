"""A profile: everything in which one vendor mode and release differs from another, as data.

Profile ``seed`` is the documents as written, ``2.7`` and ``2.10`` are what those releases were seen to do. Any one
field can be set by name (``dumpsim run --set FIELD=VALUE``). [decisions]
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from dumpsim.archive.naming import NameRule
from dumpsim.codecs.statcsv import Dialect
from dumpsim.core.errors import BadInputError, nearest

__all__ = ["DEVICES", "RELEASES", "Profile", "find", "names"]

RELEASES = ("seed", "2.7", "2.10")
DEVICES = ("ascend_o0", "gpu", "cpu")

HOST_CATEGORIES = (
    "max",
    "min",
    "avg",
    "count",
    "negative zero count",
    "positive zero count",
    "nan count",
    "negative inf count",
    "positive inf count",
    "zero count",
    "md5",
    "l2norm",
)
DEVICE_CATEGORIES = ("max", "min", "avg", "l2norm")

# the legal values of the fields that are words
CHOICES: dict[str, tuple[str, ...]] = {
    "support_device": ("optional", "required"),
    "enable": ("any", "true"),
    "debug_modes": ("all", "zero", "folded"),
    "statistics": ("device", "host", "error"),
    "no_e2e": ("alerts", "nothing"),
    "dtype_in_name": ("lower", "title", "none"),
    "op_name": ("escaped", "short"),
    "task_id": ("zero", "device"),
    "bfloat16": ("float32", "raw"),
    "complex_numbers": ("save", "skip64", "error"),
    "inplace": ("before", "after"),
    "async_conversion": ("sync", "raw"),
    "iteration_rule": ("process", "graph"),
    "graph_level": ("root", "own"),
    "csv_op_name": ("escaped", "raw"),
    "csv_brackets": ("()", "[]"),
    "over_long": ("hash", "random"),
    "skip_tables": ("ascend", "cpu", "none"),
    "unwritable": ("error", "log"),
    "heterogeneous": ("error", "allowed"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One vendor mode of one release.

    Attributes
    ----------
    release, device, target, ms_version : str
        Which one it is; `ms_version` is what ``config.json`` and ``mindspore.__version__`` print.
    iteration_blanks : bool
        Blanks in ``iteration`` are legal.
    support_device : str
        ``required``, or ``optional`` with the default ``[0..7]``.
    device_filter : bool
        A device that ``support_device`` does not list dumps nothing.
    enable : str
        ``e2e_dump_settings.enable`` may be ``any`` or must be ``true``.
    debug_modes : str
        op_debug_mode takes ``all`` documented values, only ``zero``, or 1 and 2 too, ``folded`` into 3.
    debug_mode_needs_e2e : bool
        op_debug_mode may only be left out where there is an e2e section.
    statistics : str
        Computed on the ``device`` or the host, on the ``host`` only, or an ``error``.
    statistics_in_overflow : bool
        op_debug_mode 3 and statistics go together.
    categories : tuple of str
        Legal ``statistic_category`` names.
    set_dump : bool
        dump_mode 2 is legal.
    sampling, trans_flag, kernel_arguments : bool
        The field has an effect.
    overflow_number_error : bool
        ``overflow_number`` outside op_debug_mode 3 is an error, else it is ignored with a warning.
    overflow_check, exception_inputs : bool
        op_debug_mode 3 and 4 do what they say.
    no_e2e : str
        Without an e2e section: three ``alerts`` and a dump, or three alerts and ``nothing``.
    dtype_in_name : str
        Last field of npy names: ``lower``, ``title`` or ``none``.
    op_name : str
        op_name of npy names: the ``escaped`` full scope, or its ``short`` last part.
    task_id : str
        ``zero``, or the ``device``'s id in names and rows.
    bfloat16 : str
        Stored as ``float32`` or ``raw``.
    complex_numbers : str
        ``save`` (no statistics), ``skip64`` (complex64 is dropped) or ``error`` at compile.
    constants, parameters, metadata, global_order : bool
        Which of the extra files exist.
    inplace : str
        Inputs are read ``before`` or ``after`` the kernel.
    async_conversion : str
        ``enable: false`` converts like ``sync`` or copies ``raw`` bytes.
    iteration_rule : str
        One count for the ``process``, or the rule with a count per ``graph``.
    graph_level : str
        graph_id in data paths: the ``root`` graph's or the kernel graph's ``own``.
    csv_op_name, csv_brackets, csv_trailing, csv_unique : str, str, bool, bool
        The dialect of statistic.csv; `csv_unique` keeps the first of repeated categories.
    over_long : str
        Number of an over-long name: the name's ``hash``, or what stands for the vendor's ``random`` number.
    segment_inputs : bool
        Inputs that a control-flow segment hands over are dumped.
    skip_tables : str
        Which fixed tables of operands and outputs that are never dumped apply: ``ascend``, ``cpu`` or ``none``.
    unwritable : str
        A path that cannot be written is an ``error`` before the first step, or only ``log`` lines.
    heterogeneous : str
        A graph with operators of another device is an ``error``, or ``allowed``.
    sink_error : bool
        A data sink together with dump is an error.
    file_mode, directory_mode : int
        Permissions.
    bug_compat : bool
        Known defects of packed types are copied, too.
    """

    release: str
    device: str
    target: str
    ms_version: str
    iteration_blanks: bool = False
    support_device: str = "required"
    device_filter: bool = True
    enable: str = "any"
    debug_modes: str = "folded"
    debug_mode_needs_e2e: bool = False
    statistics: str = "device"
    statistics_in_overflow: bool = True
    categories: tuple[str, ...] = HOST_CATEGORIES
    set_dump: bool = True
    sampling: bool = True
    trans_flag: bool = True
    kernel_arguments: bool = True
    overflow_number_error: bool = True
    overflow_check: bool = True
    exception_inputs: bool = True
    no_e2e: str = "nothing"
    dtype_in_name: str = "lower"
    op_name: str = "escaped"
    task_id: str = "zero"
    bfloat16: str = "float32"
    complex_numbers: str = "save"
    constants: bool = False
    parameters: bool = False
    metadata: bool = False
    global_order: bool = False
    inplace: str = "before"
    async_conversion: str = "sync"
    iteration_rule: str = "graph"
    graph_level: str = "root"
    csv_op_name: str = "escaped"
    csv_brackets: str = "()"
    csv_trailing: bool = True
    csv_unique: bool = False
    over_long: str = "random"
    segment_inputs: bool = True
    skip_tables: str = "ascend"
    unwritable: str = "log"
    heterogeneous: str = "allowed"
    sink_error: bool = False
    file_mode: int = 0o400
    directory_mode: int = 0o700
    bug_compat: bool = False

    @property
    def name(self) -> str:
        """``seed/ascend_o0``."""
        return f"{self.release}/{self.device}"

    @property
    def names(self) -> NameRule:
        """How npy names are made and read."""
        return NameRule(dtype_in_name=self.dtype_in_name, op_name=self.op_name, over_long=self.over_long)

    @property
    def csv(self) -> Dialect:
        """How rows of statistic.csv are written."""
        return Dialect(brackets=self.csv_brackets, trailing_field=self.csv_trailing)

    def with_overrides(self, overrides: Mapping[str, str]) -> "Profile":
        """The profile with single fields set from text.

        Raises
        ------
        BadInputError
            For a field or a value that there is not, naming the nearest.

        Examples
        --------
        >>> find("seed", "cpu").with_overrides({"bfloat16": "raw"}).bfloat16
        'raw'
        """
        return replace(self, **{name: _value(self, name, text) for name, text in overrides.items()})


_FIXED = ("release", "device", "target")


def _value(profile: Profile, name: str, text: str) -> Any:
    """A field's value from its text, checked."""
    known = [f.name for f in fields(Profile) if f.name not in _FIXED]
    if name not in known:
        raise BadInputError(
            f"{name!r} is not a field of a profile",
            where="--set",
            allowed=known,
            nearest=nearest(name, known),
            code="DS-PRO-001",
        )
    present = getattr(profile, name)
    allowed: tuple[str, ...] = CHOICES.get(name, ())
    if isinstance(present, bool):
        allowed = ("true", "false")
        if text.lower() in allowed:
            return text.lower() == "true"
    elif isinstance(present, int):
        allowed = ("an octal number such as 0o400",)
        try:
            return int(text, 8)
        except ValueError:
            pass
    elif isinstance(present, tuple):
        return tuple(part.strip() for part in text.split(","))
    elif not allowed or text in allowed:
        return text
    raise BadInputError(
        f"{text!r} is not a value of {name}",
        where=f"--set {name}",
        allowed=allowed,
        nearest=nearest(text, allowed),
        code="DS-PRO-002",
    )


_VERSIONS = {"seed": "2.5.0", "2.7": "2.7.0", "2.10": "2.10.0"}  # [decisions]
_TARGETS = {"ascend_o0": "Ascend", "gpu": "GPU", "cpu": "CPU"}

# what a device changes in every release [spec mindspore 1.3, 3.1-3.4, 3.9-3.11] [seed 001]
_BY_DEVICE: dict[str, dict[str, Any]] = {
    "ascend_o0": {},
    "gpu": {
        "statistics": "host",
        "sampling": False,
        "trans_flag": False,
        "overflow_check": False,
        "exception_inputs": False,
        "no_e2e": "alerts",
        "constants": True,
        "parameters": True,
        "metadata": True,
        "global_order": True,
        "graph_level": "own",
        "skip_tables": "none",
        "sink_error": True,
    },
    "cpu": {
        "device_filter": False,
        "statistics": "error",
        "sampling": False,
        "trans_flag": False,
        "kernel_arguments": False,
        "overflow_check": False,
        "exception_inputs": False,
        "no_e2e": "alerts",
        "constants": True,
        "parameters": True,
        "metadata": True,
        "global_order": True,
        "graph_level": "own",
        "segment_inputs": False,
        "skip_tables": "cpu",
    },
}

# what the documents say, against what the releases do [decisions]
_SEED: dict[str, Any] = {
    "iteration_blanks": True,
    "support_device": "optional",
    "debug_modes": "all",
    "statistics_in_overflow": False,
    "overflow_number_error": False,
    "iteration_rule": "process",
    "csv_trailing": False,
    "over_long": "hash",
    "unwritable": "error",
    "heterogeneous": "error",
}
_SEED_BY_DEVICE: dict[str, dict[str, Any]] = {
    "ascend_o0": {},
    "gpu": {"enable": "true", "debug_modes": "zero", "dtype_in_name": "none"},
    "cpu": {"enable": "true", "debug_modes": "zero", "dtype_in_name": "none", "support_device": "required"},
}
_OBSERVED_BY_DEVICE: dict[str, dict[str, Any]] = {
    "ascend_o0": {"complex_numbers": "skip64", "async_conversion": "raw", "debug_mode_needs_e2e": True},
    "gpu": {"complex_numbers": "skip64", "set_dump": False},
    "cpu": {
        "set_dump": False,
        "dtype_in_name": "title",
        "bfloat16": "raw",
        "complex_numbers": "error",
        "constants": False,
        "inplace": "after",
    },
}
_BY_RELEASE: dict[str, dict[str, Any]] = {
    "seed": {},
    "2.7": {},
    "2.10": {
        "csv_op_name": "raw",
        "csv_brackets": "[]",
        "csv_unique": True,
        "categories": (*HOST_CATEGORIES, "hash", "hash:sha1", "hash:md5"),
    },
}


def names() -> tuple[str, ...]:
    """All profiles, as ``release/device``."""
    return tuple(f"{release}/{device}" for release in RELEASES for device in DEVICES)


def find(release: str, device: str, overrides: Mapping[str, str] | None = None) -> Profile:
    """The profile of a release and a device.

    Parameters
    ----------
    release : str
        ``seed``, ``2.7`` or ``2.10``.
    device : str
        ``ascend_o0`` (O0 and O1), ``gpu`` or ``cpu``; the targets ``Ascend``, ``GPU`` and ``CPU`` are accepted too.
    overrides : mapping of str to str, optional
        Single fields.

    Raises
    ------
    BadInputError

    Examples
    --------
    >>> find("2.10", "CPU").dtype_in_name
    'title'
    """
    device = next((key for key, target in _TARGETS.items() if device == target), device)
    for where, value, allowed in (("release", release, RELEASES), ("device", device, DEVICES)):
        if value not in allowed:
            raise BadInputError(
                f"there is no profile for {value!r}",
                where=where,
                allowed=allowed,
                nearest=nearest(value, allowed),
                code="DS-PRO-003",
            )
    by_age = _SEED | _SEED_BY_DEVICE[device] if release == "seed" else _OBSERVED_BY_DEVICE[device]
    data: dict[str, Any] = {**_BY_DEVICE[device], **by_age, **_BY_RELEASE[release]}
    profile = Profile(release=release, device=device, target=_TARGETS[device], ms_version=_VERSIONS[release], **data)
    return profile.with_overrides(overrides or {})
