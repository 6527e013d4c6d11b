"""The session of the script, configured by its context, for captures and operators."""

from pathlib import Path

from dumpsim.frontends.mindspore.context import GRAPH_MODE, get_context, use_device_id
from dumpsim.runtime.irsave import GraphSaver
from dumpsim.runtime.session import Session
from dumpsim.world.context import current

__all__ = ["context_level", "current_session", "graph_saver", "observe_failures", "with_class_names"]


def current_session(jit_level: str | None = None) -> Session:
    """Return the session, configured by the script's context or a JitConfig and observed by the configured dump."""
    session = Session.current()
    use_device_id()
    session.configure(
        target=get_context("device_target"),
        jit_level=jit_level or context_level(),
        exec_order=get_context("exec_order"),
    )
    _ensure_dump(session)
    return session


def context_level() -> str:
    """Return the jit_level of the script's context; if unset, the chip decides in GRAPH_MODE. [decisions]"""
    level: str = get_context("jit_level")
    return level or ("" if get_context("mode") == GRAPH_MODE else "O0")


def observe_failures() -> None:
    """Make sure that the exception dump observes the session, since PYNATIVE may not have compiled any graph."""
    _ensure_dump(Session.current())


def _ensure_dump(session: Session) -> None:
    # imported here, so that a script that runs no operator loads no module of the dump
    from dumpsim.frontends.mindspore._dumping import ensure_dump

    ensure_dump(session)


def with_class_names() -> bool:
    """Return whether the scopes of cells contain the names of their classes."""
    return bool(get_context("reserve_class_name_in_scope"))


def graph_saver(session: Session) -> GraphSaver:
    """Return the saver of graphs, configured by ``MS_DEV_SAVE_GRAPHS`` and its path, else by the script's context."""
    level = session.environment.get("MS_DEV_SAVE_GRAPHS") or get_context("save_graphs")
    path = Path(session.environment.get("MS_DEV_SAVE_GRAPHS_PATH") or get_context("save_graphs_path") or ".")
    if session.environment.get("MS_ROLE") or current().world.ranks > 1:  # as under msrun [spec observed 5.3]
        path /= f"rank_{session.rank}"
    saver: GraphSaver | None = getattr(session, "graph_saver", None)
    if saver is None or (saver.directory, saver.level) != (path, int(level)):
        saver = GraphSaver(directory=path, level=int(level), release=session.settings.mindspore)
        session.graph_saver = saver
    return saver
