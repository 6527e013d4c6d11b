"""A dump tree of a net as plain data: what its files are called, hold and say, in a form that JSON can keep."""

import csv
import re
import warnings
from ast import literal_eval
from pathlib import Path
from typing import Any

import numpy as np

_TIME = re.compile(r"\.(\d{16})\.")
_BFLOAT16 = "<E2"  # numpy has no such type; its bits are kept
DIGITS = 7  # of a sum or norm
CLAIM = ".dumpsim-claim"  # the emulation removes it at the end of an ordinary process


def _array(path: Path) -> tuple[str, tuple[int, ...], np.ndarray]:
    data = path.read_bytes()
    length = int.from_bytes(data[8:10], "little")
    header = literal_eval(data[10 : 10 + length].decode("latin1").strip())
    dtype = np.dtype("<u2" if header["descr"] == _BFLOAT16 else header["descr"])
    values = np.frombuffer(data, dtype, offset=10 + length)
    if header["descr"] == _BFLOAT16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return header["descr"], header["shape"], values


def signature(values: np.ndarray) -> list[float]:
    """Norm and a weighted sum of the elements, as short numbers; two arrays that differ differ in one of them.

    >>> signature(np.array([3.0, -4.0]))
    [5.0, 3.285494]
    """
    if not values.size:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wide = values.astype(np.float64)
        weights = np.cos(np.arange(1, wide.size + 1))
        return [float(f"{number:.{DIGITS}g}") for number in (np.sqrt(wide @ wide), wide @ weights)]


def read(root: Path) -> dict[str, Any]:
    """The tree below `root`, the folder of ``rank_0``.

    Returns
    -------
    dict
        ``npy``: for each npy file, in the order of time stamps, name (``~`` for the time stamp), descr, shape and
        `signature`; ``orders``: lines of each file in ``execution_order`` by name; ``others``: the other files.
    """
    npy, orders, others = [], {}, []
    mappings: dict[Path, dict[str, str]] = {}
    for path in sorted(root.rglob("mapping.csv")):
        with path.open(newline="") as file:
            mappings[path.parent] = {row[0]: row[1] for row in csv.reader(file)}
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.name.startswith(CLAIM):
            continue
        folder = path.parent.relative_to(root).as_posix()
        if path.suffix == ".npy":
            name = mappings.get(path.parent, {}).get(path.name, path.name)
            match = _TIME.search(name)
            assert match, path
            descr, shape, values = _array(path)
            label = f"{folder.removeprefix('rank_0/Net/')}/{_TIME.sub('.~.', name).removesuffix('.npy')}"
            npy.append((int(match[1]), [label, descr, list(shape), signature(values)]))
        else:
            others.append(f"{folder}/{path.name}")
            if folder.endswith("execution_order"):
                orders[path.name] = path.read_text().splitlines()
    npy.sort(key=lambda item: item[0])
    return {"npy": [record for _, record in npy], "orders": orders, "others": others}
