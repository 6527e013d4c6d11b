"""The config dialect of MindSpore's kernel-by-kernel dump: Ascend O0 and O1, GPU, CPU.

The rows are in the vendor's order of checks. [spec mindspore 1.1-1.3, spec observed 2]
"""

from dumpsim.core.steps import Steps
from dumpsim.modes.commonsettings import (
    DEBUG_MODE,
    FORCED_BY_DEBUG_MODE,
    HEAD,
    INITIAL_ITERATION,
    KERNELS_IN_VAIN,
    MISSES_DEVICE,
    OVERFLOW_NUMBER,
    SAVED_DATA,
    STATISTIC_CATEGORY,
    STATISTIC_CATEGORY_IN_VAIN,
    STATISTICS_IN_DEBUG_MODE,
    STEPS_IN_VAIN,
)
from dumpsim.modes.conditions import (
    COMMON,
    E2E,
    always,
    both,
    has_section,
    isnt,
    lacks_section,
    off_ascend,
    profile_is,
    some_iterations,
    value_is,
    wants_statistics,
)
from dumpsim.modes.dialect import Draft, Effect, Field, Row, Rule
from dumpsim.modes.releases import DEVICE_CATEGORIES

__all__ = ["EFFECTS", "ROWS"]

_ALERT = (
    "[Dump Alert {index}/3]: For 'Dump', in the scenario where 'backend' is 'ms_backend', please configure "
    "'e2e_dump_setting', otherwise there will be no data."
)
_E2E = has_section(E2E)
_NO_E2E = lacks_section(E2E)
_HOST_ONLY_NAMES = both(wants_statistics, value_is("stat_calc_mode", "device"))


def _host_only(draft: Draft) -> list[str]:
    """Return statistics of the config that the device cannot compute."""
    section = draft.section(COMMON)
    listed = section.get("statistic_category", ()) if isinstance(section, dict) else ()
    return [name for name in listed if name not in DEVICE_CATEGORIES] if isinstance(listed, list) else []


def _samples_nothing(draft: Draft) -> bool:
    """Return whether op_debug_mode rules out samples: 4 does, in the documents each mode but 0."""
    mode = draft.values["op_debug_mode"]
    return mode == 4 or (mode != 0 and draft.profile.debug_modes == "all")


ROWS: tuple[Row, ...] = (
    Rule(
        where=f"$.{E2E}",
        code="DS-CFG-001",
        level="warning",
        when=_NO_E2E,
        repeat=3,
        vendor=_ALERT,
        what="there is no e2e_dump_settings section",
        function="ParseE2eDumpSetting",
    ),
    Field(
        name="enable",
        section=E2E,
        kind="boolean",
        code="DS-CFG-002",
        default=False,
        about="true: dump synchronously; false: on Ascend, asynchronously.",
    ),
    Rule(
        where=f"$.{E2E}.enable",
        code="DS-CFG-003",
        level="error",
        when=both(profile_is("enable", "true"), value_is("enable", False)),
        reads=("enable",),
        what="on {target} this field must be true",
        allowed=("true",),
    ),
    Field(
        name="trans_flag",
        section=E2E,
        kind="boolean",
        code="DS-CFG-004",
        default=True,
        about="true: save tensors in the host layout; false: in the device's.",
    ),
    Field(
        name="save_kernel_args",
        section=E2E,
        kind="boolean",
        code="DS-CFG-005",
        default=False,
        about="Save the arguments that kernels were made with.",
    ),
    Field(
        name="stat_calc_mode",
        section=E2E,
        kind="string",
        code="DS-CFG-006",
        default="host",
        allowed=("host", "device"),
        refusal="Dump Json parse failed, 'stat_calc_mode' only supports 'host' or 'device', but got: {value}. "
        "Please set 'stat_cal_mode' to 'host' or 'device'",
        about="Where statistics are computed.",
    ),
    Field(
        name="device_stat_precision_mode",
        section=E2E,
        kind="string",
        code="DS-CFG-007",
        default="high",
        allowed=("high", "low"),
        refusal="Dump Json parse failed, 'device_stat_precision_mode' only supports 'high' or 'low', but got: {value}. "
        "Please set 'stat_cal_mode' to 'high' or 'low'",
        about="Number type in which the device computes avg and l2norm.",
    ),
    Field(
        name="sample_mode",
        section=E2E,
        kind="unsigned",
        code="DS-CFG-008",
        default=0,
        allowed=(0, 1),
        refusal="Dump Json Parse Failed. sample_mode should be 0, 1",
        about="1: keep only the first sample_num elements of a tensor.",
    ),
    Field(
        name="sample_num",
        section=E2E,
        kind="unsigned",
        code="DS-CFG-009",
        default=100,
        when=value_is("sample_mode", 1),
        reads=("sample_mode",),
        complains_as="sample_mode",  # quirk: the vendor's text names the other field [spec mindspore 1.3]
        about="Elements that a sample keeps.",
    ),
    Rule(
        where=f"$.{E2E}.sample_num",
        code="DS-CFG-009",
        level="error",
        when=value_is("sample_num", 0),
        vendor="Dump Json Parse Failed. sample_num should be greater than 0",
        what="0 elements are no sample",
        allowed=("1 and more",),
        reads=("sample_num",),
    ),
    *HEAD,
    *DEBUG_MODE,
    Rule(
        where=f"$.{COMMON}.op_debug_mode",
        code="DS-CFG-032",
        level="warning",
        when=both(value_is("op_debug_mode", 4), off_ascend),
        vendor="Abnormal dump is not supported on {target} backend, and none operator data would be saved when "
        "abnormal dump is enabled. ",
        what="op_debug_mode 4 saves no operator on {target}",
        function="ParseOpDebugMode",
        reads=("op_debug_mode",),
    ),
    Rule(
        where=f"$.{COMMON}.iteration",
        code="DS-CFG-033",
        level="warning",
        when=both(some_iterations, _E2E, value_is("op_debug_mode", 4)),
        what="op_debug_mode 4 looks at every iteration; iteration is set to all",
        force={"iteration": Steps(text="all", every=True)},
        function="ParseOpDebugMode",
        reads=("op_debug_mode", "iteration"),
    ),
    Rule(
        where=f"$.{E2E}.sample_mode",
        code="DS-CFG-034",
        level="warning",
        when=both(_samples_nothing, _E2E, isnt("sample_mode", 0)),
        what="sampling works with op_debug_mode 0 only; sample_mode is set to 0",
        force={"sample_mode": 0},
        function="ParseOpDebugMode",
        reads=("op_debug_mode", "sample_mode"),
    ),
    *FORCED_BY_DEBUG_MODE,
    Rule(
        where=f"$.{E2E}.stat_calc_mode",
        code="DS-CFG-037",
        level="warning",
        when=both(value_is("op_debug_mode", 3), value_is("stat_calc_mode", "device"), value_is("enable", False)),
        what="asynchronous overflow dump computes statistics on the host; stat_calc_mode is set to host",
        force={"stat_calc_mode": "host"},
        function="CheckOverflowSetting",
        reads=("op_debug_mode", "stat_calc_mode", "enable"),
    ),
    *OVERFLOW_NUMBER,
    SAVED_DATA,
    Rule(
        where=f"$.{COMMON}.saved_data",
        code="DS-CFG-039",
        level="error",
        when=both(wants_statistics, profile_is("statistics", "error")),
        vendor="Dump Json parse failed, storing statistic dump is only supported on GPU and Ascend, please set "
        "saved_data to tensor or use a GPU or Ascend device",
        what="there are no statistics on {target}",
        allowed=("tensor",),
        reads=("saved_data",),
    ),
    Rule(
        where=f"$.{COMMON}.saved_data",
        code="DS-CFG-042",
        level="warning",
        when=both(_E2E, wants_statistics, value_is("op_debug_mode", 4), profile_is("statistics_in_overflow", True)),
        what="op_debug_mode 4 saves tensors only; saved_data is set to tensor",
        force={"saved_data": "tensor"},
        function="ParseOpDebugMode",
        reads=("saved_data", "op_debug_mode"),
    ),
    STATISTICS_IN_DEBUG_MODE,
    INITIAL_ITERATION,
    Rule(
        where=f"$.{E2E}.stat_calc_mode",
        code="DS-CFG-045",
        level="warning",
        when=both(value_is("stat_calc_mode", "device"), value_is("saved_data", "tensor", "full")),
        vendor="When 'saved_data' is 'tensor' or 'full', the device cannot be used to calculate statistics and the "
        "'stat_calc_mode' is forced to 'host'.",
        what="the device computes statistics with saved_data statistic only; stat_calc_mode is set to host",
        force={"stat_calc_mode": "host"},
        function="CheckStatCalcModeVaild",
        reads=("stat_calc_mode", "saved_data"),
    ),
    Rule(
        where=f"$.{E2E}.stat_calc_mode",
        code="DS-CFG-046",
        level="warning",
        when=both(value_is("stat_calc_mode", "device"), off_ascend),
        what="only Ascend computes statistics on the device; stat_calc_mode is set to host",
        force={"stat_calc_mode": "host"},
        function="CheckStatCalcModeVaild",
        reads=("stat_calc_mode", "saved_data"),
    ),
    MISSES_DEVICE,
    STATISTIC_CATEGORY,
    Rule(
        where=f"$.{COMMON}.statistic_category",
        code="DS-CFG-048",
        level="warning",
        when=both(_HOST_ONLY_NAMES, lambda draft: bool(_host_only(draft))),
        value=lambda draft: ", ".join(_host_only(draft)),
        what="the device computes max, min, avg and l2norm only; dropped: {value}",
        function="ParseStatisticCategory",
        reads=("statistic_category", "stat_calc_mode", "saved_data"),
        allowed=DEVICE_CATEGORIES,
    ),
)

# fields that may have no effect
EFFECTS: tuple[Effect, ...] = (
    Effect(COMMON, "file_format", always, "kernel-by-kernel dump always writes npy"),
    KERNELS_IN_VAIN,
    STEPS_IN_VAIN,
    Effect(
        COMMON,
        "input_output",
        both(both(value_is("op_debug_mode", 4), profile_is("exception", "inputs")), isnt("input_output", 1)),
        "the exception dump saves the inputs alone",
        ("op_debug_mode",),
    ),
    Effect(COMMON, "support_device", profile_is("device_filter", False), "a CPU has no device ids"),
    STATISTIC_CATEGORY_IN_VAIN,
    Effect(COMMON, "overflow_number", profile_is("overflow_check", "none"), "this device looks for no overflow"),
    Effect(E2E, "enable", both(off_ascend, profile_is("enable", "any")), "only Ascend dumps asynchronously"),
    Effect(E2E, "trans_flag", profile_is("trans_flag", False), "this device has no private layouts"),
    Effect(E2E, "save_kernel_args", profile_is("kernel_arguments", False), "this device does not save them"),
    Effect(
        E2E,
        "save_kernel_args",
        both(profile_is("kernel_arguments", True), value_is("save_kernel_args", True), value_is("enable", False)),
        "only the synchronous dump saves them",
        ("enable",),
    ),
    Effect(E2E, "stat_calc_mode", value_is("saved_data", "tensor"), "saved_data is tensor", ("saved_data",)),
    Effect(
        E2E,
        "device_stat_precision_mode",
        value_is("stat_calc_mode", "host"),
        "statistics are computed on the host",
        ("stat_calc_mode",),
    ),
    Effect(
        E2E, "sample_mode", both(profile_is("sampling", False), isnt("sample_mode", 0)), "this device does not sample"
    ),
    Effect(E2E, "sample_num", value_is("sample_mode", 0), "sample_mode is 0", ("sample_mode",)),
    Effect(
        E2E,
        "sample_num",
        both(profile_is("sampling", False), isnt("sample_mode", 0)),
        "this device does not sample",
        ("sample_mode",),
    ),
)
