"""Readers of single fields: they convert a JSON value, with the vendor's errors. [spec observed 2]"""

import posixpath
from dataclasses import replace
from typing import Any

from dumpsim.core.errors import DumpConfigError, nearest
from dumpsim.core.match import KernelRules
from dumpsim.core.steps import Steps
from dumpsim.modes.dialect import Draft, shown
from dumpsim.modes.gesteps import check_ge_steps
from dumpsim.modes.releases import DEVICE_CATEGORIES

__all__ = [
    "element_kinds",
    "read_categories",
    "read_debug_mode",
    "read_devices",
    "read_kernels",
    "read_net_name",
    "read_path",
    "read_steps",
]

PATH_VARIABLE = "MS_DIAGNOSTIC_DATA_PATH"
_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_EMPTY_PATH = "Dump path is empty. Please set it in dump json file or environment variable `MS_DIAGNOSTIC_DATA_PATH`."


def read_path(value: str, draft: Draft) -> str:
    """Read the dump root; an empty string selects the environment's directory."""
    source = "$.common_dump_settings.path"
    if value == "":
        base = draft.environment.get(PATH_VARIABLE, "")
        if not base:
            raise DumpConfigError(
                f"no path, and {PATH_VARIABLE} is not set", where=source, vendor=_EMPTY_PATH, code="DS-CFG-012"
            )
        value, source = f"{base}/debug_dump", PATH_VARIABLE
    if not _WORD.union("/").issuperset(value):
        raise DumpConfigError(
            f"{value!r} holds other characters than letters, digits, '-', '_' and '/'",
            where=source,
            nearest=_absolute(value, draft),
            vendor=f"Dump path only support alphabets, digit or {{'-', '_', '/'}}, but got:{value}",
            code="DS-CFG-013",
        )
    if not value.startswith("/"):
        raise DumpConfigError(
            f"{value!r} is not absolute",
            where=source,
            nearest=_absolute(value, draft),
            vendor="Dump path only support absolute path and should start with '/'",
            code="DS-CFG-014",
        )
    return value


def _absolute(value: str, draft: Draft) -> str | None:
    """Return the absolute path of a relative one in the shell that runs the script, if the vendor accepts it."""
    here = draft.environment.get("PWD", "")
    if value.startswith(("/", "~")) or not here.startswith("/"):
        return None
    meant = posixpath.normpath(f"{here}/{value}")
    return meant if _WORD.union("/").issuperset(meant) else None


def read_net_name(value: str, draft: Draft) -> str:
    """Read a directory name."""
    if not value or not _WORD.issuperset(value):
        meant = "".join(c if c in _WORD else "_" for c in value)
        raise DumpConfigError(
            f"{value!r} is empty or holds other characters than letters, digits, '-' and '_'",
            where="$.common_dump_settings.net_name",
            nearest=meant if meant.strip("_") else None,
            vendor=f"net_name only supports alphabetic, digit, or {{'-', '_'}}, but got: {value}",
            code="DS-CFG-016",
        )
    return value


def read_steps(value: str, draft: Draft) -> Steps:
    """Read the iterations; GE parses the text, too, as an option of its own."""
    steps = Steps.parse(value, blanks=draft.profile.iteration_blanks)
    if draft.profile.step_grammar == "ge" and not steps.every:
        check_ge_steps(value)
    return steps


def read_debug_mode(value: int, draft: Draft) -> int:
    """Read op_debug_mode; quirk: the releases take 1 and 2 as 3 without a message. [spec mindspore 1.2]"""
    return 3 if value in (1, 2) and draft.profile.debug_modes == "folded" else value


def read_kernels(value: list[Any], draft: Draft) -> KernelRules:
    """Read the rules for operators; patterns are compiled only in dump_mode 1. [spec observed 1.7]

    Names in whole graphs may have neither ``/`` nor ``-op``, so that any text but a pattern is a name. [seed 001]
    """
    rules = KernelRules.parse(value, patterns=draft.values.get("dump_mode") == 1)
    if draft.profile.dialect == "kernel":
        return rules
    named = (replace(rule, kind="name") if rule.kind == "type" else rule for rule in rules.rules)
    return replace(rules, rules=tuple(named))


def element_kinds(elements: list[Any]) -> list[tuple[str, str]]:
    """Return text and kind (``regex``, ``name``, ``type``) of the distinct elements of ``kernels``."""
    return [(rule.text, rule.kind) for rule in KernelRules.parse(elements, patterns=False).rules]


def read_devices(value: list[Any], draft: Draft) -> tuple[int, ...]:
    """Read device ids: all values that the C++ library converts to a 32-bit number."""
    for index, element in enumerate(value):
        if not isinstance(element, int | float):
            raise DumpConfigError(
                f"{shown(element)} is not a device id",
                where=f"$.common_dump_settings.support_device[{index}]",
                vendor=f"[json.exception.type_error.302] type must be number, but is {_json_type(element)}",
                nearest=element if isinstance(element, str) and element.isdigit() else None,
                code="DS-CFG-026",
            )
    return tuple(int(element) % 2**32 for element in value)


def read_categories(value: list[Any], draft: Draft) -> tuple[str, ...]:
    """Read names of statistics, in device mode without those that the device cannot compute."""
    where = "$.common_dump_settings.statistic_category"
    for element in value:
        if not isinstance(element, str):
            vendor = f"[json.exception.type_error.302] type must be string, but is {_json_type(element)}"
            raise DumpConfigError(f"{shown(element)} is not a name", where=where, vendor=vendor, code="DS-CFG-040")
    legal = draft.profile.categories
    wrong = [name for name in value if name not in legal]
    if wrong:
        raise DumpConfigError(
            f"unknown statistics {', '.join(map(repr, wrong))}",
            where=where,
            allowed=legal,
            nearest=nearest(wrong[0], legal),
            vendor=f"The following statistic_category is invalid:{wrong}, "
            f"the valid statistic_category are as follows:{list(legal)}",
            code="DS-CFG-041",
        )
    if draft.values.get("stat_calc_mode") == "device":
        return tuple(name for name in value if name in DEVICE_CATEGORIES)
    return tuple(dict.fromkeys(value)) if draft.profile.csv_unique else tuple(value)


def _json_type(value: Any) -> str:
    """Return the C++ library's name of a JSON type."""
    names = {str: "string", bool: "boolean", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), "number")
