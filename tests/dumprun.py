"""Runs scripts under `dumpsim run` as a user does, and looks at what they leave on disk."""

import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dumpsim.core.settings import RunSettings
from dumpsim.emulate import environment

ROOT = Path(__file__).parents[1]
_E2E = {
    "enable",
    "trans_flag",
    "save_kernel_args",
    "stat_calc_mode",
    "device_stat_precision_mode",
    "sample_mode",
    "sample_num",
}  # fields of the second section

NET = """
    import sys
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE, jit_level="O0")

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 20, 3, pad_mode="same", has_bias=False)
            self.relu = nn.ReLU()
            self.flat = nn.Flatten()
            self.fc = nn.Dense(20 * 4 * 4, 5)
            self.shift = Tensor(np.arange(5, dtype=np.float32))

        def construct(self, x):
            x = self.relu(self.conv(x))
            return self.fc(self.flat(x)) + self.shift

    ms.set_seed(1)
    net = Net()
    for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        y = net(Tensor(np.random.RandomState(step).randn(2, 3, 4, 4).astype(np.float32)))
    print("shape", y.shape)
"""


def config(root: Path | str, **changes: Any) -> dict[str, Any]:
    """A config of the documents; names of fields choose their section, None takes a field away."""
    common = {"dump_mode": 0, "path": str(root), "net_name": "Net", "iteration": "0", "input_output": 0}
    found: dict[str, Any] = {
        "common_dump_settings": {**common, "kernels": [], "support_device": [0]},
        "e2e_dump_settings": {"enable": True},
    }
    for name, value in changes.items():
        section = found["e2e_dump_settings" if name in _E2E else "common_dump_settings"]
        if value is None:
            section.pop(name, None)
        else:
            section[name] = value
    return found


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    root: Path
    code: int
    out: str
    err: str

    @property
    def rank(self) -> Path:
        return self.root / "rank_0"

    def files(self) -> list[Path]:
        """Every file below the rank."""
        return sorted(path for path in self.rank.rglob("*") if path.is_file())

    def names(self) -> list[str]:
        """Paths of tensors below the rank, time stamps aside, in the order of time."""
        found = [path for path in self.files() if path.suffix == ".npy"]
        return [unstamped(path.relative_to(self.rank).as_posix()) for path in sorted(found, key=stamp)]

    def types(self) -> list[str]:
        """Operator types with tensors."""
        return sorted({Path(name).name.split(".")[0] for name in self.names()})

    def tensor(self, part: str, iteration: int = 0, graph: int = 0) -> Path:
        """The one file whose name, time stamp aside, holds `part`."""
        found = [p for p in (self.rank / f"Net/{graph}/{iteration}").glob("*.npy") if part in unstamped(p.name)]
        assert len(found) == 1, (part, [p.name for p in found])
        return found[0]

    def rows(self, iteration: int = 0, graph: int = 0) -> list[dict[str, str]]:
        """statistic.csv."""
        with open(self.rank / f"Net/{graph}/{iteration}/statistic.csv", newline="") as file:
            return list(csv.DictReader(file))

    def digest(self) -> str:
        """One hash of the tree: paths and bytes."""
        found = hashlib.sha256()
        for path in self.files():
            if path.name != "data_dump.json":  # it states where the dump is
                found.update(path.relative_to(self.rank).as_posix().encode() + b"\0" + path.read_bytes())
        return found.hexdigest()


def unstamped(name: str) -> str:
    return re.sub(r"\.\d{16}\.", ".", name)


def stamp(path: Path) -> int:
    found = re.search(r"\.(\d{16})\.", path.name)
    return int(found.group(1)) if found else 0


def dump(
    folder: Path,
    script: str = NET,
    *,
    name: str = "dump",
    arguments: Iterable[str] = (),
    options: Sequence[str] = (),
    document: Mapping[str, Any] | str | None = None,
    faults: Sequence[Mapping[str, Any]] | None = None,
    env: Mapping[str, str] | None = None,
    code: int = 0,
    **changes: Any,
) -> Run:
    """Run a script with a dump of `folder/name`; the changes are fields of the config."""
    root = folder / name
    file = folder / f"{name}.json"
    text = document if isinstance(document, str) else json.dumps(document or config(root, **changes))
    file.write_text(text)
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    plan = folder / f"{name}-faults.json"
    if faults is not None:
        plan.write_text(json.dumps({"faults": faults}))
        options = [*options, "--faults", str(plan)]
    run = {**environment(_settings(options), {}), "MINDSPORE_DUMP_CONFIG": str(file), **(env or {})}
    return finish([sys.executable, str(path), *arguments], folder, root, run, code)


def _settings(options: Sequence[str]) -> RunSettings:
    """What `dumpsim run` makes of its options, without the process that it takes."""
    found: dict[str, Any] = {"manifest": None, "overrides": {}}
    words = iter(options)
    for word in words:
        field = word.removeprefix("--")
        if field in ("append", "durable", "quiet"):
            found[field] = True
        elif field == "set":
            key, _, value = next(words).partition("=")
            found["overrides"][key] = value
        else:
            found[field] = next(words)
    found["seed"] = int(found.get("seed", 0))
    return RunSettings(**found)


def finish(
    command: Sequence[str], folder: Path, root: Path, env: Mapping[str, str] | None = None, code: int | None = 0
) -> Run:
    """Run a command to its end and look at its exit code."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("MS_", "MINDSPORE_", "GLOG"))}
    found = subprocess.run(
        command,
        env={**clean, "PYTHONPATH": str(ROOT), **(env or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert code is None or found.returncode == code, found.stdout[-2000:] + found.stderr[-4000:]
    return Run(root=root, code=found.returncode, out=found.stdout, err=found.stderr)


def cli(folder: Path, *arguments: str, code: int | None = 0) -> Run:
    """Run a command of dumpsim."""
    return finish([sys.executable, "-m", "dumpsim", *arguments], folder, folder, None, code)
