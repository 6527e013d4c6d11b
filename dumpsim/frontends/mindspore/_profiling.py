"""Profiles of the rank, which ``set_context(enable_profiling=True)`` records until it is unset or the rank ends."""

import sys

from dumpsim.core.errors import DumpWriteError, ScriptRuntimeError, nearest
from dumpsim.profiling.options import ProfilingOptions, parse_options
from dumpsim.profiling.output import write_profile
from dumpsim.profiling.record import Profile
from dumpsim.profiling.recorder import Recorder
from dumpsim.runtime.session import Arrivals, Session
from dumpsim.world.context import current

__all__ = ["record", "release", "switch_profiling"]


class _Profiling:
    """The profile of the rank."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None  # the active recorder, of any caller
        self.options: ProfilingOptions | None = None  # of set_context
        self.text = ""
        self.closes = False  # whether the profile is written when the rank ends


def _state() -> _Profiling:
    return current().get(_Profiling)


def switch_profiling(on: bool, text: str) -> None:
    """Apply ``enable_profiling`` and ``profiling_options``; if they change, write the profile recorded so far.

    Raises
    ------
    ScriptValueError, ScriptTypeError
        For unsupported options.
    """
    state = _state()
    if on and state.options is not None and state.text == text:
        return
    options = parse_options(text) if on else None
    _finish()
    if options is None:
        return
    record(Recorder(options.fp_point, options.bp_point))
    state.options, state.text = options, text
    if not state.closes:
        state.closes = True
        current().at_close(_finish)


def record(recorder: Recorder) -> None:
    """Let a recorder observe the rank's session, even if the session does not exist yet.

    Raises
    ------
    ScriptRuntimeError
        If another recorder is active.
    """
    state = _state()
    if state.recorder is not None:
        raise ScriptRuntimeError(
            "a profile is being recorded already: stop it first (Profiler.stop, set_context(enable_profiling=False))"
        )
    state.recorder = recorder
    if current().has(Session):
        recorder.start(Session.current())
    else:
        current().get(Arrivals).observers.append(recorder.start)


def release(recorder: Recorder) -> Profile | None:
    """Stop a recorder and return its profile, or None if the rank never had a session."""
    state = _state()
    assert state.recorder is recorder
    state.recorder = None
    if recorder.is_on:
        return recorder.stop()
    current().get(Arrivals).observers.remove(recorder.start)
    return None


def _finish() -> None:
    """Write the profile of set_context, if one is recorded."""
    state = _state()
    options, recorder = state.options, state.recorder
    if options is None or recorder is None:
        return
    state.options = None
    profile = release(recorder)
    if profile is None:
        return
    session = Session.current()
    _warn_of_points(profile, options)
    try:
        root = write_profile(profile, options, disk=session.disk, durable=session.settings.durable)
    except DumpWriteError as error:
        print(f"dumpsim: {error}", file=sys.stderr)
        return
    if not session.settings.quiet:
        counted = f"{len(profile.tasks)} tasks, {len(profile.iterations)} iterations"
        print(f"dumpsim: profile: {root}: {counted}", file=sys.stderr, flush=True)


def _warn_of_points(profile: Profile, options: ProfilingOptions) -> None:
    """Report the operators named in the options that never ran."""
    names = {task.name for task in profile.tasks if task.is_kernel}
    for key, name in (("fp_point", options.fp_point), ("bp_point", options.bp_point)):
        if name and name not in names:
            close = nearest(name, sorted(names))
            hint = f" (did you mean {close!r}?)" if close else ""
            print(f"dumpsim: profile: {key}: no operator {name!r} has run{hint}", file=sys.stderr)
