"""Start, replace and end the dump of an ACL config in the session of the rank. [spec ge 2, 2.4, 2.7]"""

import os
import sys
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

from dumpsim.core.errors import DumpConfigError, DumpWriteError, UnreadableError, UnsupportedError
from dumpsim.core.regular import read_bytes
from dumpsim.core.settings import RunSettings
from dumpsim.modes.aclfile import MAX_ACL_CONFIG, acl_profile, load_acl
from dumpsim.modes.request import DumpRequest
from dumpsim.runtime.session import Session
from dumpsim.world.context import current

if TYPE_CHECKING:
    from dumpsim.dump.exception import ExceptionDump
    from dumpsim.dump.service import DumpService

__all__ = ["dump_of", "finalize_dump", "set_dump"]


class _AclDump:
    """The dump of the rank."""

    def __init__(self) -> None:
        self.service: DumpService | None = None
        self.exceptions: ExceptionDump | None = None
        self.session: ref[Session] | None = None
        self.roots: set[str] = set()  # directories that this process has dumped to before


def dump_of() -> "DumpService | None":
    """Return the current dump, None if there is none."""
    return current().get(_AclDump).service


def set_dump(path: "str | os.PathLike[str]", *, known: Collection[str] = ()) -> None:
    """Set the dump of an ACL config, for models that are loaded from now on and operators outside models.

    A config that only adds models to the previous one extends its dump; any other one replaces it.

    Parameters
    ----------
    path : path-like
        The JSON file.
    known : collection of str
        Items of the file that are known to have no effect and need no warning.

    Raises
    ------
    DumpConfigError
        For a config that CANN rejects, with its code and text.
    UnsupportedError
        On a device that is not an Ascend, and for valid settings that are not emulated.
    """
    name = os.fspath(path)
    try:
        data = read_bytes(name, MAX_ACL_CONFIG, follow=True)
    except UnreadableError as error:
        raise DumpConfigError(error.what, where=name, code="DS-ACL-011") from error
    dump, warnings = load_acl(data, file=name)
    session = Session.current()
    if session.target != "Ascend":
        raise UnsupportedError(
            f"ACL's dump on {session.target}", where=name, allowed=("Ascend",), nearest="Ascend", code="DS-ACL-012"
        )
    for finding in warnings:
        if finding.where.removeprefix("$.dump.") not in known:
            _log("WARNING", "", f"{name}: {finding.where}: {finding.text}")
    state = current().get(_AclDump)
    if dump.request is not None and _extends(state, dump.request):
        assert state.service is not None
        state.service.reselect(dump.request)
        return
    finalize_dump()
    state.session = ref(session)
    if dump.scene:
        _arm(state, session, dump.scene, dump.path)
    if dump.request is not None:
        _start(state, session, dump.request)
    current().at_close(finalize_dump)


def finalize_dump() -> None:
    """End the current dump and report it; without one, do nothing."""
    state = current().get(_AclDump)
    session = state.session() if state.session is not None else None
    service, exceptions = state.service, state.exceptions
    state.service = state.exceptions = state.session = None
    for tap in (service, exceptions):
        if tap is not None and session is not None:
            session.remove_tap(tap)
    if service is None:
        return
    from dumpsim.dump.announce import announce
    from dumpsim.dump.job import VARIABLE

    try:
        summary = service.finish()
    except DumpWriteError as error:
        print(f"dumpsim: {error}", file=sys.stderr)
        return
    announce(summary, quiet=service.info.settings.quiet, job=os.environ.get(VARIABLE))


def _extends(state: _AclDump, request: DumpRequest) -> bool:
    """Whether a request differs from the current one only in its models."""
    if state.service is None or state.session is None or state.session() is not Session.current():
        return False
    present = state.service.request
    same = replace(request, selection=present.selection, text=present.text, file=present.file)
    return same == present and not request.watches and present.selection.models is not None


def _start(state: _AclDump, session: Session, request: DumpRequest) -> None:
    from dumpsim.device.chip import OverflowMode
    from dumpsim.device.overflow import overflow_mode
    from dumpsim.dump.service import DumpService, SessionInfo

    root = os.path.realpath(request.path)
    settings: RunSettings = session.settings
    if root in state.roots:
        settings = replace(settings, append=True)
    info = SessionInfo(
        target=session.target,
        chip=session.chip.name,
        jit_level="O2",  # models are whole graphs
        saturation=overflow_mode(session.chip, os.environ) is OverflowMode.SATURATION,
        rank=current().rank,
        device_id=session.device_id,
        member=current().rank,
        clock=session.clock,
        settings=settings,
        disk=session.disk,
        lifetimes=partial(_lifetimes, ref(session)),
        log=_log,
    )
    profile = acl_profile(settings.overrides)
    if settings.plan is None:
        state.service = DumpService(info, profile, request)
    else:
        from dumpsim.dump.planned import PlannedDump

        state.service = PlannedDump(info, profile, request)
    state.roots.add(root)
    session.add_tap(state.service)


def _arm(state: _AclDump, session: Session, scene: str, path: str | None) -> None:
    """Arm the exception dump of a scene."""
    from dumpsim.dump.exception import ExceptionDump
    from dumpsim.dump.scene import configured

    found = configured(os.environ, scene=scene, path=path, log=_log)
    state.exceptions = ExceptionDump(
        found, device_id=session.device_id, clock=session.clock, log=_log, disk=session.disk,
        durable=session.settings.durable,
    )  # fmt: skip
    session.add_tap(state.exceptions)


def _lifetimes(session: "ref[Session]") -> "tuple[object, ...]":
    """Return the lifetimes of the session's tensors; the dump does not keep the session alive."""
    alive = session()
    return () if alive is None else tuple(alive.lifetimes())


def _log(level: str, function: str, text: str) -> None:
    """Print a line of CANN's log."""
    print(
        f"[{level}] ACL({os.getpid()},python):{f' [{function}]' if function else ''} {text}",
        file=sys.stderr,
        flush=True,
    )
