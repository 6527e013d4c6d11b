"""A profile: everything in which one vendor mode and release differs from another, as data.

Profile ``seed`` is the documents as written, ``2.7`` and ``2.10`` are what those releases were seen to do. Any one
field can be set by name (``dumpsim run --set FIELD=VALUE``). [decisions]
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from dumpsim.archive.naming import NameRule
from dumpsim.codecs.statcsv import Dialect
from dumpsim.core.errors import BadInputError, UnsupportedError, nearest
from dumpsim.modes import releases
from dumpsim.modes.releases import DEVICES, HOST_CATEGORIES, RELEASES, TARGETS

__all__ = ["CHOICES", "Profile", "device_of", "find", "names"]

# the legal values of the fields that are words
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
        Which one it is; `ms_version` is what ``config.json`` and ``mindspore.__version__`` print.
    dialect : str
        Config of dumps ``kernel`` by kernel, or of whole ``graph``s.
    iteration_blanks : bool
        Blanks in ``iteration`` are legal.
    step_grammar : str
        ``iteration`` is MindSpore's, or is read once more by ``ge``.
    support_device : str
        ``required``, or ``optional`` with the default ``[0..7]``.
    device_filter : bool
        A device that ``support_device`` does not list dumps nothing.
    enable : str
        ``e2e_dump_settings.enable`` may be ``any`` or must be ``true``.
    debug_modes : str
        op_debug_mode takes ``all`` documented values, only ``zero``, 0 and ``overflow``, or 1 and 2 too, ``folded``
        into 3.
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
    overflow_check : str
        op_debug_mode 3 looks for outputs that are not ``finite``, or at the device's ``flags``, or dumps everything
        (``none``).
    overflow_scan : str
        The second output of a number type that is not tested ``stops`` the test of its operator, or ``all`` outputs are
        tested.
    overflow_ids : str
        Ids in the names of an overflowing operator's files: the ``operator``'s own, which the overflow record holds, so
        that tools find the file by them, or those of the ``debug`` task. [spec ge 3.8, spec mindspore 3.7]
    opdebug : str
        Layout of the overflow record: ``old``, ``new``, or that of the ``chip``.
    exception : str
        op_debug_mode 4 saves the failing operator's ``inputs``, the ``lite`` dump of CANN, or nothing (``none``).
    no_e2e : str
        Without an e2e section: three ``alerts`` and a dump, or three alerts and ``nothing``.
    o2 : str
        Dumps of whole graphs are ``present``, or ``removed``.
    tree : str
        Directories by ``rank``, net and graph, or by time, device and ``model``.
    step_level, acl_json, graph_files : bool
        Whether a tree of models begins with the step; ``acl_dump_{device}.json``; IR and execution orders.
    stamps : str
        Every ``tensor`` has a time stamp of its own, or all of an ``operator`` share one.
    dtype_in_name, o2_dtype : str
        Last field of npy names: ``lower``, ``title`` or ``none``; `o2_dtype` is that of whole graphs.
    op_name : str
        op_name of npy names: the ``escaped`` full scope, or its ``short`` last part.
    task_id : str
        ``zero``, or the ``device``'s id in names and rows.
    bfloat16 : str
        Stored as ``float32`` or ``raw``.
    complex_numbers : str
        ``save`` (no statistics), ``skip64`` (complex64 is dropped) or ``error`` at compile.
    constants, metadata, global_order : bool
        Which of the extra files exist.
    parameters : str
        Parameter files: ``none``, of ``weights``, or of ``all`` inputs of a graph.
    empty_rows : bool
        Tensors without elements have a row of statistics, which are all null.
    ir_text : str
        Lines of the graph's text that name an operator and its source: as the documents show them (``old``) or ``new``.
    host_layout : str
        Device layouts are converted for every shape, or for tensors of ``rank4`` only.
    inplace : str
        Inputs are read ``before`` or ``after`` the kernel.
    async_conversion : str
        ``enable: false`` converts like ``sync`` or copies ``raw`` bytes.
    iteration_rule : str
        One count for the ``process``, the rule with a count per ``graph``, or the runs of each ``model``.
    graph_level : str
        graph_id in data paths: the ``root`` graph's or the kernel graph's ``own``.
    csv_op_name, csv_brackets, csv_trailing, csv_unique : str, str, bool, bool
        The dialect of statistic.csv; `csv_unique` keeps the first of repeated categories.
    over_long : str
        Number of an over-long name: the name's ``hash``, or what stands for the vendor's ``random`` number.
    host_operands : bool
        Operands that lie in no device memory are dumped; else they count as attributes.
    segment_inputs : bool
        Inputs that a control-flow segment hands over are dumped.
    skip_tables : str
        Which fixed tables of operands and outputs that are never dumped apply: ``ascend``, ``cpu`` or ``none``.
    unwritable : str
        A path that cannot be written is an ``error`` before the first step, or only ``log`` lines.
    heterogeneous : str
        A graph with operators of another device is an ``error``, or ``allowed``.
    sink : str
        A data sink may have ``any`` size, size ``one`` only, or is an ``error``.
    file_mode, binary_mode, directory_mode : int
        Permissions; those of binary files differ.
    tensordump : str
        Generation of the operator TensorDump. [spec parallel 1.1]
    tensordump_step : str
        Whose count of steps ``{step}`` shows: that of the ``caller``, Python or graphs, or, a defect of 2.10, that of
        the ``graph`` for all; a file whose two steps are not both wanted is an error then. [spec mindspore 9]
    torchair : str
        What TorchAir's real converter refuses becomes the nearest types (``extended``), or is refused (``strict``).
    dispatch : str
        Graphs of TorchAir keep operators whole that have a kernel on an ``npu``, or take them apart as on a ``cpu``.
    attention : str
        Attention in graphs of TorchAir: its ``math``, or one ``fused`` operator.
    bug_compat : bool
        Known defects of packed types are copied, too.
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
        """How npy names are made and read."""
        word = self.dtype_in_name if self.dialect == "kernel" else self.o2_dtype
        return NameRule(dtype_in_name=word, op_name=self.op_name, over_long=self.over_long)

    @property
    def csv(self) -> Dialect:
        """How rows of statistic.csv are written."""
        return Dialect(brackets=self.csv_brackets, trailing_field=self.csv_trailing)

    def with_overrides(self, overrides: Mapping[str, str]) -> "Profile":
        """The profile with single fields set from text.

        Raises
        ------
        BadInputError
            For an unknown field or value, naming the nearest.

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


def names() -> tuple[str, ...]:
    """All profiles, as ``release/device``; modes that a release has dropped are left out."""
    found = ((release, device) for release in RELEASES for device in DEVICES)
    return tuple(f"{release}/{device}" for release, device in found if _data(release, device).get("o2") != "removed")


def device_of(target: str, jit_level: str, *, ge: bool = False) -> str:
    """The name of a mode: what the target, the compile level and ENABLE_MS_GE_DUMP choose.

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
    """The profile of a release and a mode.

    Parameters
    ----------
    release : str
        ``seed``, ``2.7`` or ``2.10``.
    device : str
        ``ascend_o0`` (O0 and O1), ``ascend_o2``, ``ascend_ge`` (O2 with ENABLE_MS_GE_DUMP=1), ``gpu`` or ``cpu``; the
        targets ``Ascend`` (O0), ``GPU`` and ``CPU`` are accepted too.
    overrides : mapping of str to str, optional
        Single fields.

    Raises
    ------
    BadInputError
        For an unknown name or field.
    UnsupportedError
        For a mode that the release has dropped, unless ``o2=present`` is set.

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
        ms_version=releases.VERSIONS[release],
        **_data(release, device),
    ).with_overrides(overrides or {})
    if profile.o2 == "removed":
        raise UnsupportedError(
            f"dumps of whole graphs (Ascend O2, GE) are gone since MindSpore {releases.REMOVED}",
            where="jit_level",
            allowed=("O0", "O1", "--mindspore seed", "--set o2=present"),
            nearest="O1",
            code="DS-CFG-070",
        )
    return profile


def _data(release: str, device: str) -> dict[str, Any]:
    """Where a profile differs from the defaults."""
    if release == "seed":
        by_age = releases.SEED | releases.SEED_BY_DEVICE[device]
    else:
        by_age = releases.OBSERVED | releases.OBSERVED_BY_DEVICE[device]
    return {**releases.BY_DEVICE[device], **by_age, **releases.BY_RELEASE[release]}
