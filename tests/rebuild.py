"""A recorded run as the tree that real MindSpore left on disk, rebuilt from the compact fixtures."""

from pathlib import Path

import numpy as np
import recorded

from dumpsim.codecs import npy

FIRST_STAMP = 1_795_210_000_000_000


def rebuild(name: str, root: Path) -> recorded.Case:
    """Write the case's tree below `root`; tensors of which only the head is recorded are left out."""
    case = recorded.load(name)
    for number, file in enumerate(case.files):
        if not file.whole:
            continue
        directory = root / file.directory
        directory.mkdir(parents=True, exist_ok=True)
        full_name = file.name.replace("{time}", str(FIRST_STAMP + number))
        path = directory / full_name
        if file.mapped:
            path = directory / f"{1_000_000 + number}.npy"
            with (directory / "mapping.csv").open("a") as lines:
                lines.write(f"{path.name},{full_name}\n")
        path.write_bytes(npy.header(file.descr, file.shape) + np.ascontiguousarray(case.value(file)).tobytes())
    graphs = root / "rank_0" / "graphs"
    graphs.mkdir(parents=True)
    for name_, text in case.graph_texts.items():
        (graphs / name_).write_text(text, "utf-8")
    return case
