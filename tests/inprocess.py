"""Small nets under a dump in the test's own process: no interpreter to start, no script to write."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dumprun import config

from dumpsim.core.settings import RunSettings
from dumpsim.device.faults import make_plan
from dumpsim.dump.summary import Summary
from dumpsim.frontends.mindspore import _dumping, context
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

TARGETS = {"O0": "Ascend", "O1": "Ascend", "O2": "Ascend", "GPU": "GPU", "CPU": "CPU"}


@dataclass(frozen=True)
class Left:
    """What a run left."""

    root: Path
    error: Exception | None
    summary: Summary | None
    result: Any

    def files(self, pattern: str = "*") -> list[Path]:
        """Files below the dump's path, in the order of their names."""
        return sorted(path for path in self.root.rglob(pattern) if path.is_file())

    def tensors(self) -> list[Path]:
        """npy files and bin files of operators."""
        found = (path for path in self.files() if path.name.count(".") >= 4 and path.suffix != ".json")
        return sorted(found, key=lambda path: path.name.split(".")[4])

    def types(self) -> set[str]:
        """Operator types that have files."""
        return {path.name.split(".")[0] for path in self.tensors()}


@contextmanager
def fresh(
    mode: str, monkeypatch: Any, *, faults: list[Mapping[str, Any]] | None = None, **settings: Any
) -> Iterator[Session]:
    """A session with the context of a fresh process on a mode: ``O0``, ``O1``, ``O2``, ``GPU`` or ``CPU``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    session = Session(RunSettings(**{"manifest": None, "quiet": True, **settings}), environment=environment)
    with use(RankContext.from_environment()):
        Session.use(session)
        context.set_context(mode=context.GRAPH_MODE, device_target=TARGETS[mode])
        if mode in ("O0", "O1", "O2"):
            context.set_context(jit_config={"jit_level": mode})
        if faults:
            session.inject(make_plan(faults))
        yield session


def dump(
    folder: Path,
    monkeypatch: Any,
    mode: str,
    steps: Callable[[], Any],
    *,
    faults: list[Mapping[str, Any]] | None = None,
    ascend_config: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Left:
    """Run `steps` with a dump into ``folder/dump``; the changes are fields of the config."""
    root = folder / "dump"
    document = config(root, **changes)
    if mode == "O2":
        del document["e2e_dump_settings"]
    file = folder / "dump.json"
    file.write_text(json.dumps(document))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(file))
    monkeypatch.chdir(folder)
    with fresh(mode, monkeypatch, faults=faults, **(settings or {})) as session:
        if ascend_config:
            context.set_context(ascend_config=dict(ascend_config))
        error, result, summary = None, None, None
        try:
            result = steps()
        except Exception as raised:
            error = raised
        service = _dumping.dump_of(session)
        if service is not None:
            summary = service.finish()
    return Left(root=root, error=error, summary=summary, result=result)
