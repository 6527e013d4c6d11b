"""The dump configured by the environment: its start at the first compile, and its end with the process."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from dumpsim.core.errors import DumpWriteError, ScriptTypeError, ScriptValueError, UnsupportedError, nearest
from dumpsim.dump.control import DumpControl
from dumpsim.frontends.mindspore import log
from dumpsim.frontends.mindspore.communication.management import output_rank
from dumpsim.world.context import current, root

if TYPE_CHECKING:
    from dumpsim.dump.exception import ExceptionDump
    from dumpsim.dump.info import SessionInfo
    from dumpsim.dump.service import DumpService
    from dumpsim.modes.environment import Asked
    from dumpsim.runtime.session import Session

__all__ = [
    "advance",
    "begin_sink",
    "config_was_read",
    "dump_of",
    "ensure_dump",
    "finish_dump",
    "set_aclinit",
    "set_dynamic",
    "set_initial_iteration",
    "start",
    "stop",
]

_DEVICES = 16  # the most devices of a server
_SOURCE = "mindspore/ccsrc/tools/data_dump"
_LEVELS = MappingProxyType({"DEBUG": 0, "INFO": 1, "WARNING": 2, "ERROR": 3})


class _Dumps:
    """The dumps of the rank, one per session."""

    def __init__(self) -> None:
        self.of: WeakKeyDictionary[Session, DumpService | None] = WeakKeyDictionary()
        self.exceptions: WeakKeyDictionary[Session, ExceptionDump | None] = WeakKeyDictionary()
        self.scene = "lite_exception"  # dump_scene of the config passed to ACL [spec mindspore 5.4]
        self.control = DumpControl()


@dataclass(slots=True)
class _Compiled:
    """Whether any rank of the process has compiled a graph, which is when the config is read."""

    compiled: bool = False


def _dumps() -> _Dumps:
    return current().get(_Dumps)


def ensure_dump(session: "Session", environment: Mapping[str, str] | None = None) -> "DumpService | None":
    """Return the session's dump, which starts at the first call, as in the real system at the first compile.

    Parameters
    ----------
    session : Session
    environment : mapping, optional
        The process's current environment if None: a script may set ``MINDSPORE_DUMP_CONFIG`` until its first
        compile. [spec observed 1.5]

    Raises
    ------
    DumpConfigError
        For a config that the vendor refuses; the next compile reads the file again, as in the vendor.
    """
    found = dict(os.environ) if environment is None else environment
    root().get(_Compiled).compiled = True
    dumps = _dumps()
    if session not in dumps.of:
        dumps.of[session] = _start(session, found)
    service = dumps.of[session]
    if session.target == "Ascend" and session.observers.failing is None:
        # the exception dump is attached at the first failure, since most runs have no failure
        session.observers.failing = partial(_fail, ref(session), found)
    return service


def _fail(session: "ref[Session]", environment: Mapping[str, str]) -> None:
    """Attach the exception dump when a kernel fails."""
    dumps, owner = _dumps(), session()
    if owner is not None and owner not in dumps.exceptions:
        service = dumps.of.get(owner)
        dumps.exceptions[owner] = _arm(owner, environment, None if service is None else service.exception_path)


def _start(session: "Session", environment: Mapping[str, str]) -> "DumpService | None":
    """Start the dump of MINDSPORE_DUMP_CONFIG."""
    if not environment.get("MINDSPORE_DUMP_CONFIG"):
        return None  # without a config, no module of the dump is loaded
    from dumpsim.device.chip import OverflowMode
    from dumpsim.device.overflow import overflow_mode
    from dumpsim.dump.service import DumpService, SessionInfo
    from dumpsim.frontends.mindspore._latechanges import LateChanges
    from dumpsim.modes.environment import read_environment

    options = session.options()
    asked = read_environment(
        environment,
        release=session.settings.mindspore,
        target=session.target,
        jit_level=options.jit_level,
        device_id=session.device_id,
        exception_dump=_exception_dump(),
        overrides=session.settings.overrides,
    )
    if asked is None:
        return None
    for function, text in asked.warnings:
        _log("WARNING", function, text)
    info = SessionInfo(
        target=session.target,
        chip=session.chip.name,
        jit_level=options.jit_level,
        saturation=overflow_mode(session.chip, environment) is OverflowMode.SATURATION,
        rank=output_rank(),
        device_id=session.device_id,
        member=current().rank,
        clock=session.clock,
        settings=session.settings,
        disk=session.disk,
        control=_dumps().control,
        late_changes=LateChanges(environment) if asked.profile.release == "seed" else tuple,
        lifetimes=_lifetimes(ref(session)),
        layouts=_layouts(ref(session)),
        log=_log,
    )
    if session.settings.plan is None:
        service = DumpService(info, asked.profile, asked.request)
    else:
        service = _planned(info, asked, environment)
    session.memory_reuse = service.compile_options(options).memory_reuse
    session.add_tap(service)
    current().at_close(partial(_finish, ref(session)))
    return service


def _planned(info: "SessionInfo", asked: "Asked", environment: Mapping[str, str]) -> "DumpService":
    """Create a dump that only counts, for this config and for smaller ones."""
    from dumpsim.dump.planned import PlannedDump
    from dumpsim.modes.variants import dumping_devices, smaller

    text, profile = asked.request.text, asked.profile
    device_id = next(iter(dumping_devices(text, environment, profile, _DEVICES)), 0)
    return PlannedDump(
        info,
        profile,
        asked.request,
        smaller=smaller(text, environment, profile, device_id=device_id),
        devices=dumping_devices(text, environment, profile, _DEVICES),
    )


def _arm(session: "Session", environment: Mapping[str, str], path: str | None) -> "ExceptionDump | None":
    """Start CANN's exception dump, which needs no config."""
    from dumpsim.dump.exception import ExceptionDump
    from dumpsim.dump.scene import choose

    scene = choose(environment, exception_dump=_exception_dump(), scene=_dumps().scene, path=path, log=_log)
    if scene is None:
        return None
    tap = ExceptionDump(
        scene, device_id=session.device_id, clock=session.clock, log=_log, disk=session.disk,
        durable=session.settings.durable,
    )  # fmt: skip
    session.add_tap(tap)
    return tap


def _exception_dump() -> str:
    """Return ``exception_dump`` of the context's ``ascend_config``, or "" if it is not set."""
    from dumpsim.frontends.mindspore.context import get_context

    return str((get_context("ascend_config") or {}).get("exception_dump", ""))


def set_aclinit(config: Mapping[str, Any]) -> None:
    """Configure ACL, as at its start; only the scene of the exception dump has an effect.

    Parameters
    ----------
    config : mapping
        ``{"dump": {"dump_scene": "lite_exception"}}``, or ``lite_exception:disable``. [spec mindspore 5.4]

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For anything but such a mapping.
    UnsupportedError
        For other settings of ACL.

    Examples
    --------
    >>> set_aclinit({"dump": {"dump_scene": "lite_exception"}})
    """
    from dumpsim.dump.scene import LITE, LITE_OFF

    if not isinstance(config, Mapping) or not isinstance(config.get("dump", {}), Mapping):
        raise ScriptTypeError(f"{config!r} is not a dict", where="aclinit_config", allowed=("dict",))
    others = [key for key in config if key != "dump"] + [key for key in config.get("dump", {}) if key != "dump_scene"]
    if others:
        raise UnsupportedError(
            f"the setting {others[0]!r} is not emulated", where="aclinit_config", allowed=("dump", "dump.dump_scene")
        )
    scene = config.get("dump", {}).get("dump_scene", LITE)
    if scene not in (LITE, LITE_OFF):
        raise ScriptValueError(
            f"unknown scene {scene!r}", where="aclinit_config: dump.dump_scene", allowed=(LITE, LITE_OFF),
            nearest=nearest(str(scene), (LITE, LITE_OFF)),
        )  # fmt: skip
    _dumps().scene = scene


def begin_sink(size: int) -> None:
    """Start the dump at the start of a data sink, whose graph is the first that the real system compiles.

    Parameters
    ----------
    size : int
        Number of steps in one call of the network.

    Raises
    ------
    DumpConfigError, ScriptValueError
        If the dump does not support a data sink, or not one of that size.
    """
    from dumpsim.runtime.session import Session

    service = ensure_dump(Session.current())
    if service is not None:
        service.refuse_sink(size)


def has_compiled() -> bool:
    """Whether a graph was compiled in this process, which is when the dump config is read."""
    return root().get(_Compiled).compiled


def dump_of(session: "Session") -> "DumpService | None":
    """Return the session's dump, or None if none was started."""
    return _dumps().of.get(session)


def config_was_read(session: "Session") -> bool:
    """Whether the session has read the dump config, which it does once, before its first graph is compiled."""
    return session in _dumps().of


def finish_dump(session: "Session") -> None:
    """End the session's dump: write its manifest, and print its summary to stderr."""
    service = _dumps().of.pop(session, None)
    if service is None:
        return
    from dumpsim.dump.announce import announce
    from dumpsim.dump.job import VARIABLE

    session.remove_tap(service)
    try:
        summary = service.finish()
    except DumpWriteError as error:
        print(f"dumpsim: {error}", file=sys.stderr)
        return
    announce(summary, quiet=session.settings.quiet, job=os.environ.get(VARIABLE))


def set_dynamic() -> None:
    """Dump only between `start` and `stop`, regardless of ``iteration``. [spec mindspore 1.6]"""
    _dumps().control.dynamic = True


def start() -> None:
    """Dump every step from now on, in dynamic mode."""
    _dumps().control.running = True


def stop() -> None:
    """Stop dumping steps, in dynamic mode."""
    _dumps().control.running = False


def set_initial_iteration(number: int) -> None:
    """Let the script count the steps, starting at `number`; the numbers name the directories."""
    _dumps().control.user_step = number


def advance(steps: int = 1) -> None:
    """Advance the script's step counter."""
    control = _dumps().control
    if control.user_step is None:
        _log("WARNING", "DumpStep", "the step is not counted by the script: call _set_init_iter first")
        return
    control.user_step += steps


def _lifetimes(session: "ref[Session]") -> Callable[[], Iterable[object]]:
    """Return a function for the lifetimes of a session's tensors, which does not keep the session alive."""

    def found() -> Iterable[object]:
        alive = session()
        return () if alive is None else alive.lifetimes()

    return found


def _layouts(session: "ref[Session]") -> Callable[[], Iterable[object]]:
    """Return a function for the layouts of a session's tensors on the ranks, which does not keep the session alive."""

    def found() -> Iterable[object]:
        alive = session()
        return () if alive is None else alive.slices()

    return found


def _finish(session: "ref[Session]") -> None:
    """End a session's dump when its rank ends."""
    alive = session()
    if alive is not None:
        finish_dump(alive)


def _log(level: str, function: str, text: str) -> None:
    """Print a line in the form of the vendor's C++ side. [spec observed 1.11]"""
    if _LEVELS[level] < int(log.get_level()):
        return
    now = datetime.now(UTC)
    stamp = f"{now:%Y-%m-%d-%H:%M:%S}.{now.microsecond // 1000:03}.{now.microsecond % 1000:03}"
    place = f" [{_SOURCE}] {function}]" if function else " [dumpsim]"
    print(f"[{level}] ME({os.getpid()},0,python):{stamp}{place} {text}", file=sys.stderr, flush=True)
