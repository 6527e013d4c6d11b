"""Small dump trees with chosen operators and values."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Op = tuple[str, str, Sequence[Any], Sequence[Any]]  # type, name, inputs, outputs


def write(
    root: Path,
    operators: Sequence[Op],
    *,
    rank: int = 0,
    iteration: int = 0,
    layout: str = "DefaultFormat",
    start_us: int = 1_700_000_000_000_000,
) -> Path:
    """A tree of npy files as O0 and O1 leave it, without graphs; stamps are the order."""
    place = root / f"rank_{rank}" / "Net" / "0" / str(iteration)
    place.mkdir(parents=True, exist_ok=True)
    stamp = start_us + iteration * 100_000
    for kind, name, inputs, outputs in operators:
        for io, arrays in (("input", inputs), ("output", outputs)):
            for slot, array in enumerate(arrays):
                stamp += 1
                escaped = name.replace("/", "_").replace(".", "_")
                np.save(place / f"{kind}.{escaped}.0.0.{stamp}.{io}.{slot}.{layout}.npy", array)
    return root


def chain(*values: Any, kind: str = "Add", scope: str = "Default") -> list[Op]:
    """Operators one after the other: each reads what the one before it made."""
    return [(kind, f"{scope}/{kind}-op{n}", [a], [b]) for n, (a, b) in enumerate(itertools.pairwise(values))]


def api(
    root: Path, calls: Sequence[tuple[str, Any]], *, framework: str = "torch", version: str = "1.0.17", npy: bool = True
) -> Path:
    """An API dump: names of records and their arrays, in order; written here by json, not by our codec."""
    place = root / "rank0"
    arrays = place / f"{framework}_api_dump"
    arrays.mkdir(parents=True)
    lines = []
    for name, array in calls:
        array = np.asarray(array) if isinstance(array, np.integer | np.ndarray) else np.asarray(array, np.float32)
        array = array if array.dtype.kind in "ic" else array.astype(np.float32)
        real = array.real
        stats = [float(real.max()), float(real.min()), float(real.mean(dtype=np.float64))]
        dtype = f"torch.{array.dtype}" if framework == "torch" else array.dtype.name.capitalize()
        line = [name, 1, [], dtype, list(array.shape), stats]
        if version == "1.0.18":
            line[5][2] = float("nan")
            line += [[], float(np.sqrt((array.astype(np.float64) ** 2).sum()))]
        lines.append(json.dumps(line) + "\n")
        if npy:
            np.save(arrays / f"{name}.npy", array)
    suffix = "pkl" if version == "1.0.17" else "csv"
    (place / f"{framework}_api_dump_info.{suffix}").write_text("".join(lines))
    return root
