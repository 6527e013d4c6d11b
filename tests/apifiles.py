"""Small API dumps, written by hand, and the mapping of a comparison."""

import json
from pathlib import Path

import numpy as np


def dump(root, framework, records, *, npy=False, suffix="pkl", rank="rank0", stacks=None, extra=()):
    """Write records (name, array)."""
    directory = Path(root) / rank
    (directory / f"{framework}_api_dump").mkdir(parents=True)
    lines = []
    for name, array in records:
        array = np.asarray(array, np.float32)
        if npy:
            np.save(directory / f"{framework}_api_dump" / f"{name}.npy", array)
        values = [float(array.max()), float(array.min()), float(array.mean())]
        lines.append(json.dumps([name, 1, [], "torch.float32", list(array.shape), values, *extra]) + "\n")
    (directory / f"{framework}_api_dump_info.{suffix}").write_text("".join(lines))
    if stacks is not None:
        (directory / f"{framework}_api_dump_stack.json").write_text(json.dumps(stacks))
    return Path(root)


def call(name, *arrays):
    """A call with one input and one output."""
    return [(f"{name}_forward_input.0", arrays[0]), (f"{name}_forward_output", arrays[-1])]


def linears(*seeds):
    return [r for at, seed in enumerate(seeds) for r in call(f"NN_Linear_{at}", ramp(seed), ramp(seed + 0.5))]


def ramp(seed):
    return np.sin(np.arange(16, dtype=np.float32).reshape(2, 8) + np.float32(seed))


def mapping(result, step=0):
    return [row.cells for row in result.steps[step].mapping.rows]
