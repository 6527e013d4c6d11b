"""``troubleshooter.migrator``: the functions of `dumpsim.migrator`."""

from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.migrator import api_dump_compare, api_dump_init, api_dump_start, api_dump_stop

__all__ = ["api_dump_compare", "api_dump_init", "api_dump_start", "api_dump_stop"]

# [recorded: dir() of troubleshooter.migrator 1.0.17]
_ABSENT = frozenset(
    [
        "FRAMEWORK_TYPE",
        "api_dump",
        "cal_algorithm",
        "cal_cosine_sim",
        "compare_dict_dir",
        "compare_grads_dir",
        "compare_list_dir",
        "compare_npy_dir",
        "diff_handler",
        "get_name_map_list_by_name",
        "get_name_map_list_by_number",
        "get_name_map_list_by_shape_edit_distance",
        "save",
        "save_grad",
    ]
)


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise UnsupportedError(f"troubleshooter.migrator.{name} is not emulated", code="DS-EMU-002")
    raise AttributeError(f"module 'troubleshooter.migrator' has no attribute {name!r}")
