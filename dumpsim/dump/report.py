"""The report at the end of a dump: why it is empty, the next command, and the manifest."""

import shlex
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from dumpsim.core.version import __version__
from dumpsim.dump.findings import Fact
from dumpsim.dump.info import SessionInfo
from dumpsim.dump.summary import Summary, Tally
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest

if TYPE_CHECKING:
    from dumpsim.dump.manifest import Manifest

__all__ = ["following", "manifest", "why_nothing"]


_NO_OPERATOR = MappingProxyType({"overflow": "no operator overflowed", "failure": "no operator failed"})


def why_nothing(request: DumpRequest, info: SessionInfo, tally: Tally, *, ran: bool) -> str:
    """Return the reason for an empty dump; `ran`: whether a graph has run."""
    if info.control.dynamic and not tally.iterations:
        return "nothing was dumped: no graph ran between _dump_start and _dump_stop"
    if request.steps.never:
        return f"nothing was dumped: iteration {request.steps.text!r} matches nothing"
    if not ran:
        return "nothing was dumped: no graph ran"
    if not tally.iterations:
        return "nothing was dumped: no graph ran in an iteration that the config asks for"
    reason = _NO_OPERATOR.get(request.trigger)
    if reason is None and request.selection.everything:
        reason = "no kernel ran"
    elif reason is None:
        marks = request.selection.marked and request.selection.rules is None
        reason = (
            "no operator has the mark of set_dump"
            if marks
            else f"{'dump_list' if request.dialect == 'acl' else 'kernels'} matches no operator"
        )
    return f"nothing was dumped: {reason}"


def following(request: DumpRequest, profile: Profile, info: SessionInfo, tally: Tally, facts: Sequence[Fact]) -> str:
    """Return a command that shows the dump, or that explains why it is empty."""
    if tally.elsewhere:
        return ""
    where = shlex.quote(request.path.rstrip("/"))
    if not (tally.tensors or tally.rows) and request.dialect == "acl":
        return f"dumpsim check {shlex.quote(request.file)} --dialect acl"
    if not (tally.tensors or tally.rows):
        release = "" if profile.release == "seed" else f" --mindspore {profile.release}"
        level = " --jit-level O2" if profile.dialect == "graph" else ""
        fields = "".join(f" --set {shlex.quote(f'{k}={v}')}" for k, v in info.settings.overrides.items())
        return f"dumpsim check {shlex.quote(request.file)} --device {profile.target.lower()}{level}{release}{fields}"
    if request.trigger == "overflow":
        flags = profile.overflow_check == "flags"  # on a chip that saturates, results are finite
        return f"dumpsim ls {where} --overflow" if flags else f"dumpsim stat {where} --bad"
    kinds = {fact.kind for fact in facts}
    if kinds and not (kinds == {"overflow"} and info.saturation):  # saturated results are finite
        return f"dumpsim first {where}"
    return f"dumpsim ls {where} --summary" if tally.tensors else f"dumpsim stat {where}"


def manifest(request: DumpRequest, profile: Profile, info: SessionInfo, summary: Summary) -> "tuple[Manifest, str]":
    """Return the manifest without its files, and its path."""
    from dumpsim.dump.manifest import BufferEntry, FindingEntry, LayoutEntry, Manifest, path_for

    settings = info.settings
    found = Manifest(
        dumpsim=__version__,
        profile=profile.name,
        target=info.target,
        chip=info.chip,
        jit_level=info.jit_level,
        rank=info.rank,
        device_id=info.device_id,
        clock=settings.clock,
        seed=settings.seed,
        overrides=dict(settings.overrides),
        config=request.file,
        path=summary.path,
        asked=summary.asked,
        captured=summary.captured,
        skipped=dict(summary.skipped),
        tensors=summary.tensors,
        rows=summary.rows,
        written_files=summary.files,
        written_bytes=summary.bytes,
        iterations=list(summary.iterations),
        notes=list(summary.notes),
        findings=[FindingEntry.model_validate(fact) for fact in summary.facts],
        next=summary.following,
        buffers=[BufferEntry.model_validate(entry) for entry in info.lifetimes()],
        layouts=[LayoutEntry.model_validate(entry) for entry in info.layouts()],
    )
    return found, path_for(settings.manifest or "", info.member)
