"""The config dialect of MindSpore's kernel-by-kernel dump: Ascend O0 and O1, GPU, CPU.

The rows stand in the vendor's order of checks. [spec mindspore 1.1-1.3, spec observed 2]
"""

from collections.abc import Callable
from typing import Any

from dumpsim.core.match import KernelRules
from dumpsim.core.steps import Steps
from dumpsim.modes.dialect import Draft, Effect, Field, Row, Rule, Section
from dumpsim.modes.profile import DEVICE_CATEGORIES
from dumpsim.modes.readers import (
    read_categories,
    read_debug_mode,
    read_devices,
    read_kernels,
    read_net_name,
    read_path,
    read_steps,
)

__all__ = ["COMMON", "E2E", "EFFECTS", "ROWS", "misses_device"]

COMMON = "common_dump_settings"
E2E = "e2e_dump_settings"
_ALERT = (
    "[Dump Alert {index}/3]: For 'Dump', in the scenario where 'backend' is 'ms_backend', please configure "
    "'e2e_dump_setting', otherwise there will be no data."
)


# -- conditions -------------------------------------------------------------------------------------------------------


def _is(name: str, *values: Any) -> Callable[[Draft], bool]:
    return lambda draft: draft.values.get(name) in values


def _not(name: str, *values: Any) -> Callable[[Draft], bool]:
    return lambda draft: draft.values.get(name) not in values


def _both(*tests: Callable[[Draft], bool]) -> Callable[[Draft], bool]:
    return lambda draft: all(test(draft) for test in tests)


def _profile(name: str, *values: Any) -> Callable[[Draft], bool]:
    return lambda draft: getattr(draft.profile, name) in values


def _present(section: str, name: str) -> Callable[[Draft], bool]:
    def test(draft: Draft) -> bool:
        found = draft.section(section)
        return isinstance(found, dict) and name in found

    return test


def _e2e(draft: Draft) -> bool:
    return draft.has_section(E2E)


def _no_e2e(draft: Draft) -> bool:
    return not draft.has_section(E2E)


def _always(draft: Draft) -> bool:
    return True


def misses_device(draft: Draft) -> bool:
    listed = draft.values.get("support_device")
    return draft.profile.device_filter and listed is not None and draft.device_id not in listed


_STATISTICS = _is("saved_data", "statistic", "full")
_HOST_ONLY_NAMES = _both(_STATISTICS, _is("stat_calc_mode", "device"))
_OFF_ASCEND = _profile("target", "GPU", "CPU")


# -- the table --------------------------------------------------------------------------------------------------------

ROWS: tuple[Row, ...] = (
    Rule(
        where=f"$.{E2E}",
        code="DS-CFG-001",
        level="warning",
        when=_no_e2e,
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
        when=_both(_profile("enable", "true"), _is("enable", False)),
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
        when=_is("sample_mode", 1),
        reads=("sample_mode",),
        complains_as="sample_mode",  # quirk: the vendor's text names the other field [spec mindspore 1.3]
        about="Elements that a sample keeps.",
    ),
    Rule(
        where=f"$.{E2E}.sample_num",
        code="DS-CFG-009",
        level="error",
        when=_is("sample_num", 0),
        vendor="Dump Json Parse Failed. sample_num should be greater than 0",
        what="0 elements are no sample",
        allowed=("1 and more",),
        reads=("sample_num",),
    ),
    Section(name=COMMON, code="DS-CFG-010", vendor="Check dump json failed, common_dump_settings not found"),
    Field(
        name="dump_mode",
        section=COMMON,
        kind="unsigned",
        code="DS-CFG-011",
        required=_always,
        allowed=(0, 1, 2),
        default=0,
        refusal="Dump config parse failed, dump_mode should be 0, 1 or 2, but got {value}",
        about="0: all kernels; 1: those that `kernels` names; 2: the targets of set_dump.",
    ),
    Rule(
        where=f"$.{COMMON}.dump_mode",
        code="DS-CFG-011",
        level="error",
        when=_both(_is("dump_mode", 2), _profile("set_dump", False)),
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
        required=_always,
        read=read_net_name,
        about="Name of the net's directory.",
    ),
    Field(
        name="iteration",
        section=COMMON,
        kind="string",
        code="DS-CFG-020",
        default=Steps(text="all", every=True),
        required=_always,
        read=read_steps,
        about='"all", or numbers and ranges separated by |, such as 0|5-8|100-120.',
    ),
    Field(
        name="input_output",
        section=COMMON,
        kind="unsigned",
        code="DS-CFG-022",
        required=_always,
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
        required=_always,
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
        required=_profile("support_device", "required"),
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
    Field(
        name="op_debug_mode",
        section=COMMON,
        kind="unsigned",
        code="DS-CFG-030",
        default=0,
        required=_both(_profile("debug_mode_needs_e2e", True), _no_e2e),
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
        when=_both(_profile("debug_modes", "zero"), _not("op_debug_mode", 0)),
        what="on {target} only op_debug_mode 0 is supported",
        allowed=("0",),
        reads=("op_debug_mode",),
    ),
    Rule(
        where=f"$.{COMMON}.op_debug_mode",
        code="DS-CFG-030",
        level="warning",
        when=_both(_profile("debug_modes", "all"), _is("op_debug_mode", 1, 2)),
        what="op_debug_mode {value} is not documented and is taken as 3",
        force={"op_debug_mode": 3},
        reads=("op_debug_mode",),
    ),
    Rule(
        where=f"$.{COMMON}.op_debug_mode",
        code="DS-CFG-032",
        level="warning",
        when=_both(_is("op_debug_mode", 4), _OFF_ASCEND),
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
        when=_both(_e2e, _is("op_debug_mode", 4), lambda draft: not draft.values["iteration"].every),
        what="op_debug_mode 4 looks at every iteration; iteration is set to all",
        force={"iteration": Steps(text="all", every=True)},
        function="ParseOpDebugMode",
        reads=("op_debug_mode", "iteration"),
    ),
    Rule(
        where=f"$.{E2E}.sample_mode",
        code="DS-CFG-034",
        level="warning",
        when=_both(
            _e2e,
            _not("sample_mode", 0),
            lambda d: (
                d.values["op_debug_mode"] == 4 or (d.profile.debug_modes == "all" and d.values["op_debug_mode"] != 0)
            ),
        ),
        what="sampling works with op_debug_mode 0 only; sample_mode is set to 0",
        force={"sample_mode": 0},
        function="ParseOpDebugMode",
        reads=("op_debug_mode", "sample_mode"),
    ),
    Rule(
        where=f"$.{COMMON}.dump_mode",
        code="DS-CFG-035",
        level="warning",
        when=_both(_not("op_debug_mode", 0), _not("dump_mode", 0)),
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
        when=_both(_is("op_debug_mode", 3), _not("input_output", 0)),
        vendor="When the `op_debug` mode is set to 3, `input_output` should be set to 0.",
        what="op_debug_mode is 3; input_output is set to 0",
        force={"input_output": 0},
        function="CheckOverflowSetting",
        reads=("op_debug_mode", "input_output"),
    ),
    Rule(
        where=f"$.{E2E}.stat_calc_mode",
        code="DS-CFG-037",
        level="warning",
        when=_both(_is("op_debug_mode", 3), _is("stat_calc_mode", "device"), _is("enable", False)),
        what="asynchronous overflow dump computes statistics on the host; stat_calc_mode is set to host",
        force={"stat_calc_mode": "host"},
        function="CheckOverflowSetting",
        reads=("op_debug_mode", "stat_calc_mode", "enable"),
    ),
    Field(
        name="overflow_number",
        section=COMMON,
        kind="unsigned",
        code="DS-CFG-038",
        default=0,
        when=_is("op_debug_mode", 3),
        reads=("op_debug_mode",),
        about="Overflowing operators to save; 0: all of them.",
    ),
    Rule(
        where=f"$.{COMMON}.overflow_number",
        code="DS-CFG-038",
        level="error",
        when=_both(
            _present(COMMON, "overflow_number"), _is("op_debug_mode", 0, 4), _profile("overflow_number_error", True)
        ),
        vendor="overflow_number only need to be set when op_debug_mode is 3.",
        what="the field belongs to op_debug_mode 3",
        reads=("op_debug_mode",),
    ),
    Rule(
        where=f"$.{COMMON}.overflow_number",
        code="DS-CFG-038",
        level="warning",
        when=_both(
            _present(COMMON, "overflow_number"), _is("op_debug_mode", 0, 4), _profile("overflow_number_error", False)
        ),
        what="the field is looked at in op_debug_mode 3 only",
        reads=("op_debug_mode",),
    ),
    Field(
        name="saved_data",
        section=COMMON,
        kind="string",
        code="DS-CFG-039",
        default="tensor",
        allowed=("statistic", "tensor", "full"),
        refusal="Dump Json parse failed, saved_data only supports statistic, tensor, or full, but got: {value}. "
        "Please set saved_data to either statistic, tensor, or full",
        about="What is saved of a tensor.",
    ),
    Rule(
        where=f"$.{COMMON}.saved_data",
        code="DS-CFG-039",
        level="error",
        when=_both(_STATISTICS, _profile("statistics", "error")),
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
        when=_both(_e2e, _STATISTICS, _is("op_debug_mode", 4), _profile("statistics_in_overflow", True)),
        what="op_debug_mode 4 saves tensors only; saved_data is set to tensor",
        force={"saved_data": "tensor"},
        function="ParseOpDebugMode",
        reads=("saved_data", "op_debug_mode"),
    ),
    Rule(
        where=f"$.{COMMON}.saved_data",
        code="DS-CFG-042",
        level="warning",
        when=_both(_STATISTICS, _not("op_debug_mode", 0), _profile("statistics_in_overflow", False)),
        what="statistics work with op_debug_mode 0 only; saved_data is set to tensor and stat_calc_mode to host",
        force={"saved_data": "tensor", "stat_calc_mode": "host"},
        reads=("saved_data", "op_debug_mode"),
    ),
    Field(
        name="initial_iteration",
        section=COMMON,
        kind="unsigned",
        code="DS-CFG-044",
        default=0,
        about="Number of the first iteration (undocumented).",
    ),
    Rule(
        where=f"$.{E2E}.stat_calc_mode",
        code="DS-CFG-045",
        level="warning",
        when=_both(_is("stat_calc_mode", "device"), _is("saved_data", "tensor", "full")),
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
        when=_both(_is("stat_calc_mode", "device"), _OFF_ASCEND),
        what="only Ascend computes statistics on the device; stat_calc_mode is set to host",
        force={"stat_calc_mode": "host"},
        function="CheckStatCalcModeVaild",
        reads=("stat_calc_mode", "saved_data"),
    ),
    Rule(
        where=f"$.{COMMON}.support_device",
        code="DS-CFG-047",
        level="warning",
        when=misses_device,
        what="device {device_id} is not listed; nothing is dumped",
        function="JudgeDumpEnabled",
        reads=("support_device",),
    ),
    Field(
        name="statistic_category",
        section=COMMON,
        kind="array",
        code="DS-CFG-040",
        default=("max", "min", "l2norm"),
        when=_STATISTICS,
        reads=("saved_data",),
        read=read_categories,
        about="Statistics to save, in the order of their columns.",
    ),
    Rule(
        where=f"$.{COMMON}.statistic_category",
        code="DS-CFG-048",
        level="warning",
        when=_both(_HOST_ONLY_NAMES, lambda draft: bool(_host_only(draft))),
        value=lambda draft: ", ".join(_host_only(draft)),
        what="the device computes max, min, avg and l2norm only; dropped: {value}",
        function="ParseStatisticCategory",
        reads=("statistic_category", "stat_calc_mode", "saved_data"),
        allowed=DEVICE_CATEGORIES,
    ),
)


def _repeated(values: tuple[int, ...]) -> int | None:
    """The first value that stands twice."""
    return next((value for index, value in enumerate(values) if value in values[:index]), None)


def _host_only(draft: Draft) -> list[str]:
    """Legal statistics of the config that the device cannot compute."""
    section = draft.section(COMMON)
    listed = section.get("statistic_category", ()) if isinstance(section, dict) else ()
    return [name for name in listed if name not in DEVICE_CATEGORIES] if isinstance(listed, list) else []


# fields that a config may set in vain
EFFECTS: tuple[Effect, ...] = (
    Effect(COMMON, "file_format", _always, "kernel-by-kernel dump always writes npy"),
    Effect(
        COMMON,
        "kernels",
        _both(_not("dump_mode", 1), lambda d: bool(d.values["kernels"].rules)),
        "dump_mode is not 1",
        ("dump_mode",),
    ),
    Effect(COMMON, "support_device", _profile("device_filter", False), "a CPU has no device ids"),
    Effect(COMMON, "statistic_category", _is("saved_data", "tensor"), "saved_data is tensor", ("saved_data",)),
    Effect(COMMON, "overflow_number", _profile("overflow_check", False), "this device looks for no overflow"),
    Effect(E2E, "enable", _both(_OFF_ASCEND, _profile("enable", "any")), "only Ascend dumps asynchronously"),
    Effect(E2E, "trans_flag", _profile("trans_flag", False), "this device has no private layouts"),
    Effect(E2E, "save_kernel_args", _profile("kernel_arguments", False), "this device does not save them"),
    Effect(
        E2E,
        "save_kernel_args",
        _both(_profile("kernel_arguments", True), _is("save_kernel_args", True), _is("enable", False)),
        "only the synchronous dump saves them",
        ("enable",),
    ),
    Effect(E2E, "stat_calc_mode", _is("saved_data", "tensor"), "saved_data is tensor", ("saved_data",)),
    Effect(
        E2E,
        "device_stat_precision_mode",
        _is("stat_calc_mode", "host"),
        "statistics are computed on the host",
        ("stat_calc_mode",),
    ),
    Effect(
        E2E, "sample_mode", _both(_profile("sampling", False), _not("sample_mode", 0)), "this device does not sample"
    ),
    Effect(E2E, "sample_num", _is("sample_mode", 0), "sample_mode is 0", ("sample_mode",)),
    Effect(
        E2E,
        "sample_num",
        _both(_profile("sampling", False), _not("sample_mode", 0)),
        "this device does not sample",
        ("sample_mode",),
    ),
)
