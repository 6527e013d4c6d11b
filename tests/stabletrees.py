"""What of a dump tree must stay from one commit to the next, in short digests that tests keep."""

import csv
import hashlib
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

# columns of statistics that do not depend on what operators compute
_COLUMNS = ("Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type", "Shape")
_LIBRARY = re.compile(rb"# In file /[^\n]*\n?")  # lines of our own modules


def _content(path: Path, folder: Path) -> tuple[str, bytes]:
    """The kind of a file, and what of it must stay: all but what depends on the machine or on our own sources."""
    if path.suffix == ".npy":
        array = np.load(path, mmap_mode="r")
        return "tensors", f"{array.dtype.str} {array.shape}".encode()
    data = path.read_bytes().replace(str(folder).encode(), b"@")
    if path.name == "statistic.csv":
        rows = csv.DictReader(io.StringIO(data.decode()))
        return "statistics", json.dumps([[row.get(name) for name in _COLUMNS] for row in rows]).encode()
    if path.suffix == ".ir":
        return "graphs", _LIBRARY.sub(b"", data)
    if path.suffix in (".csv", ".json"):
        return "orders", data
    return "tensors", str(len(data)).encode() if path.suffix != ".pb" else b""


def digests(files: Iterable[Path], folder: Path) -> dict[str, str]:
    """A digest for each kind of file below a folder."""
    sums: dict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
    for path in files:
        kind, data = _content(path, folder)
        for part in (str(path.relative_to(folder)).encode(), data):
            sums[kind].update(len(part).to_bytes(8, "little") + part)
    return {kind: one.hexdigest()[:12] for kind, one in sorted(sums.items())}
