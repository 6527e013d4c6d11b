"""The kind and directory of CANN's exception dump, which script, environment and ACL config determine. [spec ge 2.4,
2.9] [spec mindspore 5.4]"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dumpsim.core.errors import UnsupportedError
from dumpsim.dump.info import Log

__all__ = ["LITE", "LITE_OFF", "Scene", "choose", "configured"]

LITE = "lite_exception"  # the dump_scene that MindSpore passes to ACL by default
LITE_OFF = f"{LITE}:disable"
_KINDS = MappingProxyType(
    {LITE: "lite", "aic_err_brief_dump": "lite", "aic_err_norm_dump": "full", "aic_err_detail_dump": "detail"}
)
_PATHS = ("ASCEND_DUMP_PATH", "ASCEND_WORK_PATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A configured exception dump.

    Attributes
    ----------
    kind : str
        ``lite``: the arguments of the failing kernel; ``full``: its inputs, outputs and workspaces with their shapes.
    root : str
        Directory of ``extra-info/data-dump/{device}/``.
    """

    kind: str
    root: str


def choose(
    environment: Mapping[str, str], *, exception_dump: str, scene: str, path: str | None, log: Log
) -> Scene | None:
    """Return the exception dump of a run.

    Parameters
    ----------
    environment : mapping
        ``ASCEND_DUMP_SCENE``, ``ASCEND_DUMP_PATH``, ``ASCEND_WORK_PATH``, ``NPU_COLLECT_PATH``.
    exception_dump : str
        ``ascend_config["exception_dump"]``: ``0`` off, ``1`` full, ``2`` or "" lite.
    scene : str
        ``dump_scene`` of the ACL config.
    path : str or None
        ``dump_path`` of the ACL config.
    log : callable

    Raises
    ------
    UnsupportedError
        For ``aic_err_detail_dump``, whose core files are not emulated.

    Examples
    --------
    >>> def chosen(exception_dump="", scene=LITE, **environment):
    ...     return choose(environment, exception_dump=exception_dump, scene=scene, path=None, log=print)
    >>> chosen()
    Scene(kind='lite', root='.')
    >>> chosen(scene=LITE_OFF) is None
    True
    >>> chosen(exception_dump="0", NPU_COLLECT_PATH="/tmp").kind
    'full'
    """
    wanted = environment.get("ASCEND_DUMP_SCENE", "")
    collect = environment.get("NPU_COLLECT_PATH", "")
    if wanted and wanted not in _KINDS:
        log("WARNING", "", f"ASCEND_DUMP_SCENE {wanted!r} is not one of {', '.join(_KINDS)}; it is ignored")
        wanted = ""
    kind, places = "", [environment.get(name, "") for name in _PATHS]
    if exception_dump == "1":
        kind, places = "full", [*places, collect, path or ""]
    elif wanted:
        kind = _KINDS[wanted]
    elif collect:
        kind, places = "full", [collect]
    elif scene == LITE and (path is not None or exception_dump != "0"):
        kind, places = "lite", [*places, path or ""]
    if not kind:
        return None
    if kind == "detail":
        raise UnsupportedError(
            "the core file of aic_err_detail_dump",
            where="ASCEND_DUMP_SCENE",
            allowed=[name for name, found in _KINDS.items() if found != "detail"],
            nearest="aic_err_norm_dump",
            code="DS-EXC-001",
        )
    return Scene(kind=kind, root=_usable(places, log))


def configured(environment: Mapping[str, str], *, scene: str, path: str | None, log: Log) -> Scene:
    """Return the exception dump for ``dump_scene`` of an ACL config. [spec ge 2.4]

    Parameters
    ----------
    environment : mapping
        ``ASCEND_DUMP_PATH``, ``ASCEND_WORK_PATH``.
    scene : str
    path : str or None
        ``dump_path``.
    log : callable

    Examples
    --------
    >>> configured({}, scene="aic_err_norm_dump", path=None, log=print)
    Scene(kind='full', root='.')
    """
    places = [*(environment.get(name, "") for name in _PATHS), path or ""]
    return Scene(kind=_KINDS[scene], root=_usable(places, log))


def _usable(places: list[str], log: Log) -> str:
    """Return the first directory that can be written or created, otherwise the working directory."""
    for place in places:
        if not place:
            continue
        try:
            os.makedirs(place, exist_ok=True)
        except OSError as error:
            log("WARNING", "", f"exception dump: {place} cannot be created: {error.strerror}")
            continue
        if os.access(place, os.W_OK | os.X_OK):
            return place.rstrip("/") or "/"
        log("WARNING", "", f"exception dump: {place} cannot be written")
    return "."
