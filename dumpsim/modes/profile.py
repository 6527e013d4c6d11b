"""Profiles: the differences between the vendor's modes and releases, as data.

Profile ``seed`` follows the documents, ``2.7`` and ``2.10`` the observed behaviour of those releases. Each field can be
set by name (``dumpsim run --set FIELD=VALUE``). [decisions]
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from dumpsim.archive.naming import NameRule
from dumpsim.codecs.statcsv import Dialect
from dumpsim.core.errors import BadInputError, UnsupportedError, nearest
from dumpsim.modes.releases import (
    DEVICES,
    HOST_CATEGORIES,
    RELEASES,
    REMOVED,
    TARGETS,
    VERSIONS,
    differences,
)

__all__ = ["CHOICES", "Profile", "device_of", "find", "names"]

# the allowed values of string fields
CHOICES: dict[str, tuple[str, ...]] = {
    "support_device": ("optional", "required"),
    "enable": ("any", "true"),
    "dialect": ("kernel", "graph"),
    "tree": ("rank", "model"),
    "stamps": ("tensor", "operator"),
    "step_grammar": ("mindspore", "ge"),
    "debug_modes": ("all", "zero", "folded", "overflow"),
    "overflow_check": ("finite", "flags", "none"),
    "overflow_scan": ("all", "stops"),
    "overflow_ids": ("operator", "debug"),
    "opdebug": ("chip", "old", "new"),
    "exception": ("inputs", "lite", "none"),
    "o2": ("present", "removed"),
    "o2_dtype": ("title", "lower"),
    "host_layout": ("always", "rank4"),
    "sink": ("any", "one", "error"),
    "statistics": ("device", "host", "error"),
    "no_e2e": ("alerts", "nothing"),
    "dtype_in_name": ("lower", "title", "none"),
    "op_name": ("escaped", "short"),
    "task_id": ("zero", "device"),
    "bfloat16": ("float32", "raw"),
    "complex_numbers": ("save", "skip64", "error"),
    "parameters": ("none", "weights", "all"),
    "ir_text": ("old", "new"),
    "inplace": ("before", "after"),
    "async_conversion": ("sync", "raw"),
    "iteration_rule": ("process", "graph", "model"),
    "graph_level": ("root", "own"),
    "csv_op_name": ("escaped", "raw"),
    "csv_brackets": ("()", "[]"),
    "over_long": ("hash", "random"),
    "skip_tables": ("ascend", "cpu", "ge", "none"),
    "unwritable": ("error", "log"),
    "heterogeneous": ("error", "allowed"),
    "tensordump": ("A", "B", "C"),
    "tensordump_step": ("caller", "graph"),
    "torchair": ("extended", "strict"),
    "dispatch": ("npu", "cpu"),
    "attention": ("math", "fused"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One vendor mode of one release.

    Attributes
    ----------
    release, device, target, ms_version : str
        Identity of the profile; `ms_version` is the version in ``config.json`` and ``mindspore.__version__``.
    dialect : str
        Dialect of the config: that of dumps by ``kernel``, or of whole graphs (``graph``).
    iteration_blanks : bool
        Whether ``iteration`` may contain spaces.
    step_grammar : str
        ``iteration`` is parsed by ``mindspore`` alone, or by ``ge``, too.
    support_device : str
        ``required``, or ``optional`` with the default ``[0..7]``.
    device_filter : bool
        Whether a device that ``support_device`` does not list dumps nothing.
    enable : str
        ``e2e_dump_settings.enable`` may be ``any`` or must be ``true``.
    debug_modes : str
        Values of op_debug_mode: ``all`` documented ones, only ``zero``, 0 and 3 (``overflow``), or also 1 and 2, which
        count as 3 (``folded``).
    debug_mode_needs_e2e : bool
        Whether op_debug_mode may be missing only if there is an e2e section.
    statistics : str
        Statistics are computed on the ``device`` or the host, on the ``host`` only, or are an ``error``.
    statistics_in_overflow : bool
        Whether op_debug_mode 3 allows statistics.
    categories : tuple of str
        Allowed names in ``statistic_category``.
    set_dump : bool
        Whether dump_mode 2 is allowed.
    sampling, trans_flag, kernel_arguments : bool
        Whether the field has an effect.
    overflow_number_error : bool
        Whether ``overflow_number`` without op_debug_mode 3 is an error; otherwise it is ignored with a warning.
    overflow_check : str
        op_debug_mode 3 checks whether outputs are ``finite``, or the device's ``flags``, or dumps everything
        (``none``).
    overflow_scan : str
        The second output of a data type that is not tested ``stops`` the test of its operator, or ``all`` outputs are
        tested.
    overflow_ids : str
        Ids in the names of an overflowing operator's files: those of the ``operator``, which the overflow record
        contains, so that tools can find the file, or those of the ``debug`` task. [spec ge 3.8, spec mindspore 3.7]
    opdebug : str
        Layout of the overflow record: ``old``, ``new``, or that of the ``chip``.
    exception : str
        op_debug_mode 4 saves the failing operator's ``inputs``, CANN's ``lite`` dump, or nothing (``none``).
    no_e2e : str
        Without an e2e section there are three ``alerts`` and a dump, or three alerts and ``nothing``.
    o2 : str
        Dumps of whole graphs are ``present``, or ``removed``.
    tree : str
        Directories by ``rank``, net and graph, or by time, device and ``model``.
    step_level, acl_json, graph_files : bool
        Whether a tree of models begins with the step; whether there is ``acl_dump_{device}.json``; whether there are
        IR and execution orders.
    stamps : str
        Every ``tensor`` has its own time stamp, or all of an ``operator`` share one.
    dtype_in_name, o2_dtype : str
        Last field of npy names: ``lower``, ``title`` or ``none``; `o2_dtype` is that of whole graphs.
    op_name : str
        op_name of npy names: the ``escaped`` full scope, or its ``short`` last part.
    task_id : str
        ``zero``, or the ``device``'s id in names and rows.
    bfloat16 : str
        bfloat16 is stored as ``float32`` or ``raw``.
    complex_numbers : str
        Complex numbers: ``save`` (without statistics), ``skip64`` (skip complex64) or ``error`` at compilation.
    constants, metadata, global_order : bool
        Whether these additional files exist.
    parameters : str
        Parameter files: ``none``, of ``weights``, or of ``all`` inputs of a graph.
    empty_rows : bool
        Whether tensors without elements have a row of statistics, which are all null.
    ir_text : str
        Form of names and source lines in the graph's text: as in the documents (``old``) or ``new``.
    host_layout : str
        Device layouts are converted ``always``, or only for tensors of four dimensions (``rank4``).
    inplace : str
        Inputs are read ``before`` or ``after`` the kernel.
    async_conversion : str
        ``enable: false`` converts as ``sync`` does, or copies ``raw`` bytes.
    iteration_rule : str
        Iterations are numbered for the ``process``, by the rule of counts for each ``graph``, or for each ``model``.
    graph_level : str
        graph_id in data paths: the ``root`` graph's or the kernel graph's ``own``.
    csv_op_name, csv_brackets, csv_trailing, csv_unique : str, str, bool, bool
        The form of statistic.csv; `csv_unique`: of repeated categories, only the first is written.
    over_long : str
        Number in place of a name that is too long: its ``hash``, or a replacement for the vendor's ``random`` number.
    host_operands : bool
        Whether operands outside of device memory are dumped; otherwise they count as attributes.
    segment_inputs : bool
        Whether inputs that come from a control-flow segment are dumped.
    skip_tables : str
        The table of operands and outputs that are never dumped: ``ascend``, ``cpu``, ``ge`` or ``none``.
    unwritable : str
        A path that cannot be written is an ``error`` before the first step, or is only logged (``log``).
    heterogeneous : str
        A graph with operators of another device is an ``error``, or ``allowed``.
    sink : str
        A data sink may have ``any`` size, only size ``one``, or is an ``error``.
    file_mode, binary_mode, directory_mode : int
        Permissions of files, of binary files, and of directories.
    tensordump : str
        Generation of the operator TensorDump. [spec parallel 1.1]
    tensordump_step : str
        Count of steps in ``{step}``: that of the ``caller`` (Python or graphs), or, a defect of 2.10, always that of
        the ``graph``; a file is then an error unless both of its steps are selected. [spec mindspore 9]
    torchair : str
        Operators that TorchAir's real converter refuses become the nearest types (``extended``), or are refused
        (``strict``).
    dispatch : str
        Graphs of TorchAir do not decompose operators that have a kernel on an ``npu``, or decompose them as on a
        ``cpu``.
    attention : str
        Attention in graphs of TorchAir: decomposed (``math``), or one ``fused`` operator.
    bug_compat : bool
        Whether known defects of packed types are reproduced.
    """

    release: str
    device: str
    target: str
    ms_version: str
    dialect: str = "kernel"
    iteration_blanks: bool = False
    step_grammar: str = "mindspore"
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
    overflow_check: str = "finite"
    overflow_scan: str = "all"
    overflow_ids: str = "operator"
    opdebug: str = "chip"
    exception: str = "inputs"
    no_e2e: str = "nothing"
    o2: str = "present"
    tree: str = "rank"
    step_level: bool = False
    acl_json: bool = False
    graph_files: bool = True
    stamps: str = "tensor"
    dtype_in_name: str = "lower"
    o2_dtype: str = "title"
    op_name: str = "escaped"
    task_id: str = "zero"
    bfloat16: str = "float32"
    complex_numbers: str = "save"
    constants: bool = False
    parameters: str = "none"
    metadata: bool = False
    global_order: bool = False
    host_layout: str = "always"
    inplace: str = "before"
    async_conversion: str = "sync"
    iteration_rule: str = "graph"
    graph_level: str = "root"
    csv_op_name: str = "escaped"
    csv_brackets: str = "()"
    csv_trailing: bool = True
    csv_unique: bool = False
    empty_rows: bool = False
    ir_text: str = "new"
    over_long: str = "random"
    host_operands: bool = True
    segment_inputs: bool = True
    skip_tables: str = "ascend"
    memory_reuse: bool = False
    unwritable: str = "log"
    heterogeneous: str = "allowed"
    sink: str = "any"
    file_mode: int = 0o400
    binary_mode: int = 0o600
    directory_mode: int = 0o700
    tensordump: str = "A"
    tensordump_step: str = "caller"
    torchair: str = "extended"
    dispatch: str = "npu"
    attention: str = "math"
    bug_compat: bool = False

    @property
    def name(self) -> str:
        """``seed/ascend_o0``."""
        return f"{self.release}/{self.device}"

    @property
    def names(self) -> NameRule:
        """The rule for names of npy files."""
        word = self.dtype_in_name if self.dialect == "kernel" else self.o2_dtype
        return NameRule(dtype_in_name=word, op_name=self.op_name, over_long=self.over_long)

    @property
    def csv(self) -> Dialect:
        """The form of rows of statistic.csv."""
        return Dialect(brackets=self.csv_brackets, trailing_field=self.csv_trailing)

    def with_overrides(self, overrides: Mapping[str, str]) -> "Profile":
        """Return the profile with other values of some fields, given as text.

        Raises
        ------
        BadInputError
            For an unknown field or value, with the nearest known one.

        Examples
        --------
        >>> find("seed", "cpu").with_overrides({"bfloat16": "raw"}).bfloat16
        'raw'
        """
        return replace(self, **{name: _value(self, name, text) for name, text in overrides.items()})


_FIXED = ("release", "device", "target")


def _value(profile: Profile, name: str, text: str) -> Any:
    """Parse and check a field's value."""
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


def names() -> tuple[str, ...]:
    """Return all profiles, as ``release/device``, without modes that a release has removed."""
    found = ((release, device) for release in RELEASES for device in DEVICES)
    return tuple(
        f"{release}/{device}" for release, device in found if differences(release, device).get("o2") != "removed"
    )


def device_of(target: str, jit_level: str, *, ge: bool = False) -> str:
    """Return the name of a mode, from the target, the compile level and ENABLE_MS_GE_DUMP.

    Examples
    --------
    >>> device_of("Ascend", "O2"), device_of("Ascend", "O2", ge=True), device_of("Ascend", "O1", ge=True)
    ('ascend_o2', 'ascend_ge', 'ascend_o0')
    >>> device_of("CPU", "O2")
    'cpu'
    """
    if target == "Ascend" and jit_level == "O2":
        return "ascend_ge" if ge else "ascend_o2"
    return next((device for device, found in TARGETS.items() if found == target), target)


def find(release: str, device: str, overrides: Mapping[str, str] | None = None) -> Profile:
    """Return the profile of a release and a mode.

    Parameters
    ----------
    release : str
        ``seed``, ``2.7`` or ``2.10``.
    device : str
        ``ascend_o0`` (O0 and O1), ``ascend_o2``, ``ascend_ge`` (O2 with ENABLE_MS_GE_DUMP=1), ``gpu`` or ``cpu``; the
        targets ``Ascend`` (O0), ``GPU`` and ``CPU`` are accepted too.
    overrides : mapping of str to str, optional
        Fields to change.

    Raises
    ------
    BadInputError
        For an unknown name or field.
    UnsupportedError
        For a mode that the release has removed, unless ``o2=present`` is set.

    Examples
    --------
    >>> find("2.10", "CPU").dtype_in_name
    'title'
    >>> find("2.7", "ascend_o2")
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.UnsupportedError: jit_level: dumps of whole graphs (Ascend O2, GE) are gone since MindSpore \
2.6; allowed: O0, O1, --mindspore seed, --set o2=present (did you mean 'O1'?) [DS-CFG-070]
    """
    device = device_of(device, "O0")
    for where, value, allowed in (("release", release, RELEASES), ("device", device, DEVICES)):
        if value not in allowed:
            raise BadInputError(
                f"there is no profile for {value!r}",
                where=where,
                allowed=allowed,
                nearest=nearest(value, allowed),
                code="DS-PRO-003",
            )
    profile = Profile(
        release=release,
        device=device,
        target=TARGETS[device],
        ms_version=VERSIONS[release],
        **differences(release, device),
    ).with_overrides(overrides or {})
    if profile.o2 == "removed":
        raise UnsupportedError(
            f"dumps of whole graphs (Ascend O2, GE) are gone since MindSpore {REMOVED}",
            where="jit_level",
            allowed=("O0", "O1", "--mindspore seed", "--set o2=present"),
            nearest="O1",
            code="DS-CFG-070",
        )
    return profile
