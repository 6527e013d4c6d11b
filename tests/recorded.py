"""Reads the fixtures that real MindSpore 2.10 wrote on a CPU (``fixtures/mindspore_2_10``), for tests.

>>> case = load("lenet_train")
>>> file = case.files[0]
>>> file.name
'AssignAdd.Default_optimizer-Momentum_AssignAdd-op0.0.0.{time}.input.0.DefaultFormat.Int32.npy'
>>> case.value(file)
array([1], dtype=int32)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1] / "fixtures" / "mindspore_2_10"
REFERENCE = "reference_cases/"


def cases() -> list[str]:
    """Names of all cases: the training steps, and the reference cases with the prefix ``reference_cases/``."""
    return sorted(path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("case.json"))


def load(name: str) -> "Case":
    """The case of that name; the prefix of reference cases may be left out."""
    for path in (ROOT / name, ROOT / REFERENCE / name):
        if (path / "case.json").exists():
            return Case(name=name, path=path)
    raise KeyError(f"no case {name!r}; there are {', '.join(cases())}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Statistics, in float64, of a tensor that is too large to be stored whole."""

    max: float
    min: float
    sum: float
    l2norm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One npy file of the recorded tree."""

    directory: str  # relative to the dump path: "rank_0/LeNet/0/0"
    name: str  # "{time}" in place of the time stamp
    mode: str  # "0400"
    descr: str  # of the npy header; "<E2" is bfloat16
    shape: tuple[int, ...]
    mapped: bool  # on disk under a random number, this name in mapping.csv
    summary: Summary | None  # present for a tensor of which only the head is stored
    pool: tuple[str, int, int]  # where the elements are: pool, offset, count

    @property
    def whole(self) -> bool:
        """Whether all elements are stored."""
        return self.summary is None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One recorded run."""

    name: str
    path: Path

    @cached_property
    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads((self.path / "case.json").read_text())
        return settings

    @property
    def script(self) -> Path:
        """The script; it loads ``weights.npz`` from its own folder, if there is one."""
        return self.path / str(self._settings["script"])

    @property
    def arguments(self) -> list[str]:
        """Command line arguments of the script."""
        return list(self._settings["arguments"])

    def dump_config(self, path: Path | str) -> str:
        """Text of the ``dump.json`` of this run with ``path`` as the dump path."""
        return (self.path / "dump.json").read_text().replace("{path}", str(path))

    @property
    def weights(self) -> Mapping[str, np.ndarray]:
        """Initial parameters by parameter name; empty if the script has none."""
        file = self.path / "weights.npz"
        if not file.exists():
            return {}
        with np.load(file) as arrays:
            return dict(arrays)

    @cached_property
    def files(self) -> tuple[File, ...]:
        """The npy files in the order in which they were written."""
        result = []
        for record in json.loads((self.path / "files.json").read_text()):
            directory, _, name = record["name"].rpartition("/")
            pool, offset, count = record["pool"]
            result.append(
                File(
                    directory=directory,
                    name=name,
                    mode=record["mode"],
                    descr=record["descr"],
                    shape=tuple(record["shape"]),
                    mapped=record.get("mapped", False),
                    summary=Summary(**record["summary"]) if "summary" in record else None,
                    pool=(pool, offset, count),
                )
            )
        return tuple(result)

    @cached_property
    def _pools(self) -> dict[str, np.ndarray]:
        with np.load(self.path / "values.npz") as arrays:
            return dict(arrays)

    def elements(self, file: File) -> np.ndarray:
        """Stored elements, flat: all of them, or the first 64. bfloat16 comes as its bits in uint16."""
        pool, offset, count = file.pool
        return self._pools[pool][offset : offset + count]

    def value(self, file: File) -> np.ndarray:
        """The whole tensor in its shape; ValueError if only its head and summary are stored."""
        if not file.whole:
            raise ValueError(f"{file.name}: only the head and the summary of this tensor are recorded")
        return self.elements(file).reshape(file.shape)

    @cached_property
    def listing(self) -> tuple[str, ...]:
        """Sorted paths of all files, ``{time}`` for time stamps; a path is repeated where files differ only in that."""
        return tuple((self.path / "names.txt").read_text().splitlines())

    @property
    def names(self) -> frozenset[tuple[str, str]]:
        """(directory, name) of all files of the tree, without time stamps; mapped files by their full names."""
        split = (line.rpartition("/") for line in self.listing)
        return frozenset((directory, name) for directory, _, name in split)

    @property
    def modes(self) -> dict[str, str]:
        """Permissions such as "0400" of directories (ending in a slash) and of files other than npy."""
        modes: dict[str, str] = json.loads((self.path / "modes.json").read_text())
        return modes

    @property
    def execution_order(self) -> dict[str, str]:
        """Text of the ``execution_order`` files by file name."""
        return {path.name: path.read_text() for path in sorted((self.path / "execution_order").iterdir())}

    @property
    def graph_texts(self) -> dict[str, str]:
        """IR text by file name, without the source lines of the framework and without pointers."""
        return {path.name: path.read_text() for path in sorted((self.path / "graphs").glob("*.ir"))}

    @property
    def graph_models(self) -> dict[str, dict[str, Any]]:
        """Decoded ``.pb`` by file name; ``source_address`` keeps the script's own lines only."""
        found = sorted((self.path / "graphs").glob("*.pb.json"))
        return {path.name.removesuffix(".json"): json.loads(path.read_text()) for path in found}
