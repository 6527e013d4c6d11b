"""The config dialect of dumps of whole graphs: Ascend O2, and O2 by GE's own options (ENABLE_MS_GE_DUMP=1).

There is no section ``e2e_dump_settings``; ``file_format`` chooses between GE's binary files and npy. [seed 001]
[spec mindspore 1.2, 5.8]
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
    both,
    has,
    has_section,
    isnt,
    profile_is,
    some_iterations,
    value_is,
    wants_statistics,
)
from dumpsim.modes.dialect import Draft, Effect, Field, Row, Rule
from dumpsim.modes.readers import element_kinds

__all__ = ["EFFECTS", "ROWS"]


def _types(draft: Draft) -> list[str]:
    """Return the elements of ``kernels`` that are operator types in other modes."""
    section = draft.section(COMMON)
    listed = section.get("kernels", ()) if isinstance(section, dict) else ()
    return [text for text, kind in element_kinds(listed) if kind == "type"] if isinstance(listed, list) else []


def _names_types(draft: Draft) -> bool:
    return bool(_types(draft))


ROWS: tuple[Row, ...] = (
    Rule(
        where=f"$.{E2E}",
        code="DS-CFG-050",
        level="warning",
        when=has_section(E2E),
        what="dumps of whole graphs (jit_level O2) have no e2e_dump_settings; the section is ignored",
    ),
    *HEAD,
    Rule(
        where=f"$.{COMMON}.kernels",
        code="DS-CFG-051",
        level="warning",
        when=both(_names_types, value_is("dump_mode", 1)),
        value=lambda draft: ", ".join(_types(draft)),
        what="whole graphs know no operator types; only an operator of that very name is dumped: {value}",
        reads=("dump_mode", "kernels"),
    ),
    *DEBUG_MODE,
    Rule(
        where=f"$.{COMMON}.op_debug_mode",
        code="DS-CFG-052",
        level="error",
        when=both(profile_is("debug_modes", "overflow"), value_is("op_debug_mode", 4)),
        what="GE dump (ENABLE_MS_GE_DUMP=1) has no exception dump",
        allowed=("0", "3"),
        reads=("op_debug_mode",),
    ),
    Rule(
        where=f"$.{COMMON}.iteration",
        code="DS-CFG-033",
        level="warning",
        when=both(some_iterations, isnt("op_debug_mode", 0)),
        what="op_debug_mode {value} looks at every iteration; iteration is set to all",
        value=lambda draft: draft.values["op_debug_mode"],
        force={"iteration": Steps(text="all", every=True)},
        reads=("op_debug_mode", "iteration"),
    ),
    *FORCED_BY_DEBUG_MODE,
    Field(
        name="file_format",
        section=COMMON,
        kind="string",
        code="DS-CFG-053",
        default="bin",
        allowed=("bin", "npy"),
        refusal="Dump Json Parse Failed. 'file_format' only supports 'bin' or 'npy', but got: {value}. "
        "Please set 'file_format' to 'bin' or 'npy'",
        about="bin: one protobuf file an operator, in the device's layout; npy: one file a tensor, in the host's.",
    ),
    *OVERFLOW_NUMBER,
    Rule(
        where=f"$.{COMMON}.overflow_number",
        code="DS-CFG-054",
        level="warning",
        when=both(isnt("overflow_number", 0), isnt("file_format", "npy")),
        what="the number of overflows is limited with file_format npy only; all of them are saved",
        force={"overflow_number": 0},
        reads=("overflow_number", "file_format"),
    ),
    SAVED_DATA,
    Rule(
        where=f"$.{COMMON}.saved_data",
        code="DS-CFG-055",
        level="error",
        when=both(wants_statistics, isnt("file_format", "npy")),
        vendor="Dump Json parse failed, storing statistic dump is only supported on Ascend when 'file_format' is set "
        "to 'npy'.",
        what="statistics need file_format npy",
        allowed=("tensor",),
        reads=("saved_data", "file_format"),
    ),
    STATISTICS_IN_DEBUG_MODE,
    INITIAL_ITERATION,
    MISSES_DEVICE,
    STATISTIC_CATEGORY,
)


# fields that may have no effect
EFFECTS: tuple[Effect, ...] = (
    KERNELS_IN_VAIN,
    STEPS_IN_VAIN,
    STATISTIC_CATEGORY_IN_VAIN,
    Effect(COMMON, "net_name", has(COMMON, "net_name"), "directories have the names of models"),
    Effect(
        COMMON,
        "initial_iteration",
        both(profile_is("step_level", False), isnt("initial_iteration", 0)),
        "GE counts the iterations of a model itself",
    ),
    Effect(
        COMMON,
        "input_output",
        both(value_is("op_debug_mode", 4), isnt("input_output", 0)),
        "the exception dump saves inputs and outputs",
        ("op_debug_mode",),
    ),
    *(
        Effect(E2E, name, has(E2E, name), "dumps of whole graphs do not read this section")
        for name in (
            "enable",
            "trans_flag",
            "save_kernel_args",
            "stat_calc_mode",
            "device_stat_precision_mode",
            "sample_mode",
            "sample_num",
        )
    ),
)
