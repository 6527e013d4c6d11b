"""The rows of ``common_dump_settings`` in all dialects, in the vendor's order. [spec mindspore 1.2]"""

from dumpsim.core.match import KernelRules
from dumpsim.core.steps import Steps
from dumpsim.modes.conditions import (
    COMMON,
    E2E,
    always,
    both,
    has,
    isnt,
    lacks_section,
    misses_device,
    profile_is,
    value_is,
    wants_statistics,
)
from dumpsim.modes.dialect import Effect, Field, Row, Rule, Section
from dumpsim.modes.readers import (
    read_categories,
    read_debug_mode,
    read_devices,
    read_kernels,
    read_net_name,
    read_path,
    read_steps,
)

__all__ = [
    "DEBUG_MODE",
    "FORCED_BY_DEBUG_MODE",
    "HEAD",
    "INITIAL_ITERATION",
    "KERNELS_IN_VAIN",
    "MISSES_DEVICE",
    "OVERFLOW_NUMBER",
    "SAVED_DATA",
    "STATISTICS_IN_DEBUG_MODE",
    "STATISTIC_CATEGORY",
    "STATISTIC_CATEGORY_IN_VAIN",
    "STEPS_IN_VAIN",
]

_NO_E2E = lacks_section(E2E)


def _repeated(values: tuple[int, ...]) -> int | None:
    """Return the first repeated value."""
    return next((value for index, value in enumerate(values) if value in values[:index]), None)


# the fields that every config has
HEAD: tuple[Row, ...] = (
    Section(name=COMMON, code="DS-CFG-010", vendor="Check dump json failed, common_dump_settings not found"),
    Field(
        name="dump_mode",
        section=COMMON,
        kind="unsigned",
        code="DS-CFG-011",
        required=always,
        allowed=(0, 1, 2),
        default=0,
        refusal="Dump config parse failed, dump_mode should be 0, 1 or 2, but got {value}",
        about="0: all kernels; 1: those that `kernels` names; 2: the targets of set_dump.",
    ),
    Rule(
        where=f"$.{COMMON}.dump_mode",
        code="DS-CFG-011",
        level="error",
        when=both(value_is("dump_mode", 2), profile_is("set_dump", False)),
        vendor="Set dump is only supported in Ascend async dump. Please set dump_mode to 0 or 1.",
        what="set_dump does not work on {target}",
        allowed=("0", "1"),
        reads=("dump_mode",),
    ),
    Field(
        name="path",
        section=COMMON,
        kind="string",
        code="DS-CFG-012",
        default="",
        read=read_path,
        read_default=True,
        about="Absolute directory of the dump; empty or missing: $MS_DIAGNOSTIC_DATA_PATH/debug_dump.",
    ),
    Field(
        name="net_name",
        section=COMMON,
        kind="string",
        code="DS-CFG-016",
        default="",
        required=always,
        read=read_net_name,
        about="Name of the net's directory.",
    ),
    Field(
        name="iteration",
        section=COMMON,
        kind="string",
        code="DS-CFG-020",
        default=Steps(text="all", every=True),
        required=always,
        read=read_steps,
        about='"all", or numbers and ranges separated by |, such as 0|5-8|100-120.',
    ),
    Field(
        name="input_output",
        section=COMMON,
        kind="unsigned",
        code="DS-CFG-022",
        required=always,
        default=0,
        allowed=(0, 1, 2),
        refusal="Dump Json Parse Failed. input_output should be 0, 1, 2",
        about="0: inputs and outputs; 1: inputs; 2: outputs.",
    ),
    Field(
        name="kernels",
        section=COMMON,
        kind="array",
        code="DS-CFG-024",
        required=always,
        default=KernelRules(),
        read=read_kernels,
        about="Full names, operator types or name-regex(...); looked at in dump_mode 1.",
    ),
    Rule(
        where=f"$.{COMMON}.kernels",
        code="DS-CFG-025",
        level="warning",
        when=lambda draft: bool(draft.values["kernels"].duplicates),
        vendor="Duplicate dump kernel name:{value}",
        value=lambda draft: draft.values["kernels"].duplicates[0],
        what="a kernel is named more than once",
        function="ParseKernels",
        reads=("kernels",),
    ),
    Field(
        name="support_device",
        section=COMMON,
        kind="array",
        code="DS-CFG-026",
        required=profile_is("support_device", "required"),
        default=tuple(range(8)),
        read=read_devices,
        about="Device ids that dump.",
    ),
    Rule(
        where=f"$.{COMMON}.support_device",
        code="DS-CFG-027",
        level="warning",
        when=lambda draft: _repeated(draft.values["support_device"]) is not None,
        vendor="Duplicate support device:{value}",
        value=lambda draft: _repeated(draft.values["support_device"]),
        what="a device is listed more than once",
        function="ParseSupportDevice",
        reads=("support_device",),
    ),
)

# what the dump looks for
DEBUG_MODE: tuple[Row, ...] = (
    Field(
        name="op_debug_mode",
        section=COMMON,
        kind="unsigned",
        code="DS-CFG-030",
        default=0,
        required=both(profile_is("debug_mode_needs_e2e", True), _NO_E2E),
        allowed=(0, 3, 4),
        tolerated=(1, 2),
        refusal="Dump Json Parse Failed. op_debug_mode should be 0, 3, 4",
        read=read_debug_mode,
        about="0: dump; 3: only operators that overflow; 4: only the inputs of the operator that fails.",
    ),
    Rule(
        where=f"$.{COMMON}.op_debug_mode",
        code="DS-CFG-031",
        level="error",
        when=both(profile_is("debug_modes", "zero"), isnt("op_debug_mode", 0)),
        what="on {target} only op_debug_mode 0 is supported",
        allowed=("0",),
        reads=("op_debug_mode",),
    ),
    Rule(
        where=f"$.{COMMON}.op_debug_mode",
        code="DS-CFG-030",
        level="warning",
        when=both(profile_is("debug_modes", "all"), value_is("op_debug_mode", 1, 2)),
        what="op_debug_mode {value} is not documented and is taken as 3",
        force={"op_debug_mode": 3},
        reads=("op_debug_mode",),
    ),
)

# fields that are overruled unless op_debug_mode is 0
FORCED_BY_DEBUG_MODE: tuple[Row, ...] = (
    Rule(
        where=f"$.{COMMON}.dump_mode",
        code="DS-CFG-035",
        level="warning",
        when=both(isnt("op_debug_mode", 0), isnt("dump_mode", 0)),
        vendor="Overflow dump or exception dump do not support specify kernels, the dump_mode is set to 0 ",
        what="op_debug_mode is not 0; dump_mode is set to 0",
        force={"dump_mode": 0},
        function="ParseOpDebugMode",
        reads=("op_debug_mode", "dump_mode"),
    ),
    Rule(
        where=f"$.{COMMON}.input_output",
        code="DS-CFG-036",
        level="warning",
        when=both(value_is("op_debug_mode", 3), isnt("input_output", 0)),
        vendor="When the `op_debug` mode is set to 3, `input_output` should be set to 0.",
        what="op_debug_mode is 3; input_output is set to 0",
        force={"input_output": 0},
        function="CheckOverflowSetting",
        reads=("op_debug_mode", "input_output"),
    ),
)

OVERFLOW_NUMBER: tuple[Row, ...] = (
    Field(
        name="overflow_number",
        section=COMMON,
        kind="unsigned",
        code="DS-CFG-038",
        default=0,
        when=value_is("op_debug_mode", 3),
        reads=("op_debug_mode",),
        about="Overflowing operators to save; 0: all of them.",
    ),
    Rule(
        where=f"$.{COMMON}.overflow_number",
        code="DS-CFG-038",
        level="error",
        when=both(
            has(COMMON, "overflow_number"), value_is("op_debug_mode", 0, 4), profile_is("overflow_number_error", True)
        ),
        vendor="overflow_number only need to be set when op_debug_mode is 3.",
        what="the field belongs to op_debug_mode 3",
        reads=("op_debug_mode",),
    ),
    Rule(
        where=f"$.{COMMON}.overflow_number",
        code="DS-CFG-038",
        level="warning",
        when=both(
            has(COMMON, "overflow_number"), value_is("op_debug_mode", 0, 4), profile_is("overflow_number_error", False)
        ),
        what="the field is looked at in op_debug_mode 3 only",
        reads=("op_debug_mode",),
    ),
)

SAVED_DATA: Row = Field(
    name="saved_data",
    section=COMMON,
    kind="string",
    code="DS-CFG-039",
    default="tensor",
    allowed=("statistic", "tensor", "full"),
    refusal="Dump Json parse failed, saved_data only supports statistic, tensor, or full, but got: {value}. "
    "Please set saved_data to either statistic, tensor, or full",
    about="What is saved of a tensor.",
)

STATISTICS_IN_DEBUG_MODE: Row = Rule(
    where=f"$.{COMMON}.saved_data",
    code="DS-CFG-042",
    level="warning",
    when=both(wants_statistics, isnt("op_debug_mode", 0), profile_is("statistics_in_overflow", False)),
    what="statistics work with op_debug_mode 0 only; saved_data is set to tensor and stat_calc_mode to host",
    force={"saved_data": "tensor", "stat_calc_mode": "host"},
    reads=("saved_data", "op_debug_mode"),
)

INITIAL_ITERATION: Row = Field(
    name="initial_iteration",
    section=COMMON,
    kind="unsigned",
    code="DS-CFG-044",
    default=0,
    about="Number of the first iteration (undocumented).",
)

MISSES_DEVICE: Row = Rule(
    where=f"$.{COMMON}.support_device",
    code="DS-CFG-047",
    level="warning",
    when=misses_device,
    what="device {device_id} is not listed; nothing is dumped",
    function="JudgeDumpEnabled",
    reads=("support_device",),
)

STATISTIC_CATEGORY: Row = Field(
    name="statistic_category",
    section=COMMON,
    kind="array",
    code="DS-CFG-040",
    default=("max", "min", "l2norm"),
    when=wants_statistics,
    reads=("saved_data",),
    read=read_categories,
    about="Statistics to save, in the order of their columns.",
)

STEPS_IN_VAIN = Effect(
    COMMON,
    "iteration",
    lambda draft: bool(draft.values["iteration"].idle),
    "{part} matches no iteration; a range goes up, as 5-8",
    part=lambda draft: ", ".join(map(repr, draft.values["iteration"].idle)),
)
KERNELS_IN_VAIN = Effect(
    COMMON,
    "kernels",
    both(isnt("dump_mode", 1), lambda draft: bool(draft.values["kernels"].rules)),
    "dump_mode is not 1",
    ("dump_mode",),
)

STATISTIC_CATEGORY_IN_VAIN = Effect(
    COMMON, "statistic_category", value_is("saved_data", "tensor"), "saved_data is tensor", ("saved_data",)
)
