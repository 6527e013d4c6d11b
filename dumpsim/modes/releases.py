"""Values of the profiles of releases and devices that differ from the defaults. [decisions]"""

from typing import Any

from dumpsim.core.statistic import DIGESTS, STATISTICS, Digest, Statistic

__all__ = [
    "DEVICES",
    "DEVICE_CATEGORIES",
    "HOST_CATEGORIES",
    "RELEASES",
    "REMOVED",
    "TARGETS",
    "VERSIONS",
    "differences",
]

RELEASES = ("seed", "2.7", "2.10")
DEVICES = ("ascend_o0", "ascend_o2", "ascend_ge", "gpu", "cpu")

_OLD, *_NEW = DIGESTS
_SINCE_THE_SEED: tuple[Statistic | Digest, ...] = (*STATISTICS, _OLD)
HOST_CATEGORIES = tuple(row.category for row in sorted(_SINCE_THE_SEED, key=lambda row: row.listed))
DEVICE_CATEGORIES = tuple(row.category for row in STATISTICS if row.device)

VERSIONS = {"seed": "2.5.0", "2.7": "2.7.0", "2.10": "2.10.0"}  # [decisions]
TARGETS = {"ascend_o0": "Ascend", "ascend_o2": "Ascend", "ascend_ge": "Ascend", "gpu": "GPU", "cpu": "CPU"}
REMOVED = "2.6"  # release without O2 and GE dump [spec mindspore 0.2]

# whole graphs: one file per operator, written by the device [spec mindspore 3.1, 3.7, 5.2, 5.6] [seed 001]
_WHOLE: dict[str, Any] = {
    "dialect": "graph",
    "tree": "model",
    "stamps": "operator",
    "graph_files": False,
    "statistics": "host",
    "sampling": False,
    "trans_flag": False,
    "kernel_arguments": False,
    "overflow_check": "flags",
    "exception": "lite",
    "task_id": "device",
    "host_layout": "rank4",
    "host_operands": False,
    "skip_tables": "ge",
    "sink": "one",
    "memory_reuse": True,
}

# GPU and CPU: the host writes all tensors, with constants and parameters [spec mindspore 3.2-3.4, 3.9-3.11]
_BY_THE_HOST: dict[str, Any] = {
    "sampling": False,
    "trans_flag": False,
    "overflow_check": "none",
    "exception": "none",
    "no_e2e": "alerts",
    "constants": True,
    "parameters": "all",
    "metadata": True,
    "global_order": True,
    "graph_level": "own",
}

# values of a device in all releases [spec mindspore 1.3, 3.1-3.4, 3.9-3.11] [seed 001]
_BY_DEVICE: dict[str, dict[str, Any]] = {
    "ascend_o0": {},
    "ascend_o2": {**_WHOLE, "step_level": True, "acl_json": True},
    "ascend_ge": {**_WHOLE, "exception": "none", "step_grammar": "ge"},
    "gpu": {
        **_BY_THE_HOST,
        "statistics": "host",
        "skip_tables": "none",
        "sink": "error",
        "parameters": "weights",  # parameters that stay on the device [source debug/data_dump/e2e_dump.cc, utils.cc]
        "empty_rows": True,
    },
    "cpu": {
        **_BY_THE_HOST,
        "device_filter": False,
        "statistics": "error",
        "kernel_arguments": False,
        "segment_inputs": False,
        "skip_tables": "cpu",
    },
}

# behaviour according to the documents, if the releases differ [decisions]
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
    "ir_text": "old",
}
_SEED_BY_DEVICE: dict[str, dict[str, Any]] = {
    "ascend_o0": {"metadata": True},  # it is in the documents' tree, and MindInsight reads it
    "ascend_o2": {},
    "ascend_ge": {"debug_modes": "overflow"},
    "gpu": {"enable": "true", "debug_modes": "zero", "dtype_in_name": "none"},
    "cpu": {"enable": "true", "debug_modes": "zero", "dtype_in_name": "none", "support_device": "required"},
}
_OBSERVED: dict[str, Any] = {"overflow_scan": "stops", "tensordump": "C"}  # [spec mindspore 5.1, spec parallel 1.1]
_OBSERVED_BY_DEVICE: dict[str, dict[str, Any]] = {
    "ascend_o0": {"complex_numbers": "skip64", "async_conversion": "raw", "debug_mode_needs_e2e": True},
    "ascend_o2": {"o2": "removed", "debug_mode_needs_e2e": True},
    "ascend_ge": {"o2": "removed", "debug_mode_needs_e2e": True, "debug_modes": "overflow"},
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
        "tensordump_step": "graph",
        "csv_brackets": "[]",
        "csv_unique": True,
        "categories": (*HOST_CATEGORIES, *(row.category for row in _NEW)),
    },
}


def differences(release: str, device: str) -> dict[str, Any]:
    """Return the fields of a profile that differ from the defaults of `Profile`."""
    if release == "seed":
        by_age = _SEED | _SEED_BY_DEVICE[device]
    else:
        by_age = _OBSERVED | _OBSERVED_BY_DEVICE[device]
    return {**_BY_DEVICE[device], **by_age, **_BY_RELEASE[release]}
