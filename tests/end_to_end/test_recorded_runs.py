"""The recorded scripts under `--mindspore 2.10 --device cpu`, held against what real MindSpore 2.10 wrote."""

import json
import os
import re
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import recorded

from dumpsim.codecs import npy
from dumpsim.core.settings import RunSettings
from dumpsim.emulate import environment

REFERENCE = [name for name in recorded.cases() if name.startswith(recorded.REFERENCE)]
TRAINING = [name for name in recorded.cases() if not name.startswith(recorded.REFERENCE)]
# of floating point, relative to the largest value of the tensor; training accumulates over layers, forward and back
TOLERANCE = {"reference": 1e-6, "training": 2e-5}

# absolute, in training: the gradient of an attention's key bias is zero but for rounding, and Adam scales it up
ROUNDING = 5e-5

# the CPU's Adam never writes its outputs: the recorded files hold what was in memory
GARBAGE = re.compile(r"/Adam\..*\.output\.\d\.")

# the rule of the real order is not known for graphs that are no chain; the operators are the same
UNKNOWN_ORDER = {"reference_cases/multi_output_constants"}


def run_case(name: str, root: Path) -> tuple[recorded.Case, Path]:
    case = recorded.load(name)
    out = root / "out"
    config = root / "dump.json"
    config.write_text(case.dump_config(out))
    settings = RunSettings(mindspore="2.10", device="cpu", manifest=None, quiet=True)
    env = environment(settings, {"PATH": os.environ["PATH"], "MINDSPORE_DUMP_CONFIG": str(config)})
    command = [sys.executable, str(case.script), *case.arguments]
    result = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    return case, out


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Every case runs once in a worker, whatever number of tests looks at it."""
    done: dict[str, tuple[recorded.Case, Path]] = {}

    def run(name: str) -> tuple[recorded.Case, Path]:
        if name not in done:
            # a path with a dot is not a legal dump path [spec mindspore 1.2]
            done[name] = run_case(name, tmp_path_factory.mktemp(re.sub(r"\W", "_", name)))
        return done[name]

    return run


def tree(out: Path) -> list[tuple[str, str, Path]]:
    """(directory, name without time stamp, path) of every file, mapped names resolved, in the order of time."""
    found = []
    for path in sorted(out.rglob("*")):
        if not path.is_file():
            continue
        name = path.name
        mapping = path.parent / "mapping.csv"
        if mapping.is_file() and name != "mapping.csv":
            name = dict(line.split(",", 1) for line in mapping.read_text().splitlines()).get(name, name)
        stamp = re.search(r"\.(\d{16})\.", name)
        found.append((int(stamp.group(1)) if stamp else 0, path.parent.relative_to(out).as_posix(), name, path))
    found.sort(key=lambda item: item[:3])
    return [(directory, re.sub(r"\.\d{16}\.", ".{time}.", name), path) for _, directory, name, path in found]


@pytest.mark.parametrize("name", recorded.cases())
def test_directories_and_names_are_equal(name, runs):
    case, out = runs(name)
    assert Counter(f"{d}/{n}" for d, n, _ in tree(out)) == Counter(case.listing)


@pytest.mark.parametrize("name", recorded.cases())
def test_values_are_equal(name, runs):
    case, out = runs(name)
    tolerance, absolute = (TOLERANCE["reference"], 0.0) if name in REFERENCE else (TOLERANCE["training"], ROUNDING)
    found: dict[tuple[str, str], list[Path]] = {}
    for directory, file_name, path in tree(out):
        found.setdefault((directory, file_name), []).append(path)
    wrong = []
    for file in case.files:
        array = npy.read(found[file.directory, file.name].pop(0))
        assert array.shape == file.shape, file.name
        expected = case.elements(file)
        got = np.asarray(array).reshape(-1)[: expected.size]
        if file.descr == "<E2":
            got = got.view(np.uint16)
        assert got.dtype == expected.dtype, file.name
        if not GARBAGE.search(f"/{file.name}") and not close(got, expected, tolerance, absolute, file.summary):
            wrong.append(file.name)
    assert not wrong


def close(got, expected, tolerance, absolute, summary) -> bool:
    """Equal, or for floating point within `tolerance` of the largest value of the whole tensor."""
    if expected.dtype.kind != "f":
        return np.array_equal(got, expected)
    largest = float(np.abs(expected).max(initial=0))
    if summary is not None:
        largest = max(largest, abs(summary.max), abs(summary.min))
    gap = max(tolerance * largest, absolute)
    return np.allclose(got.astype(np.float64), expected.astype(np.float64), 0, gap, equal_nan=True)


@pytest.mark.parametrize("name", REFERENCE)
def test_permissions_are_equal(name, runs):
    case, out = runs(name)
    for path in [out, *out.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o400), path
    assert set(case.modes.values()) == {"0700", "0400"}


def node_lines(text: str) -> list[str]:
    """The graph without source lines, their headings and pointers."""
    drop = ("# In file", "# Corresponding", "subgraph instance")
    lines = [line for line in text.splitlines() if not line.strip().startswith(drop)]
    # the label of a nameless parameter is an id of the process that moves with every edit of the script
    return [re.sub(r"^(%para\d+_)_\d+:", r"\1_N:", line) for line in lines]


@pytest.mark.parametrize("name", REFERENCE)
def test_graph_texts_are_equal(name, runs):
    case, out = runs(name)
    texts = case.graph_texts
    found = {path.name: path.read_text("utf-8") for path in (out / "rank_0" / "graphs").glob("*.ir")}
    assert found.keys() == texts.keys()
    for file, text in texts.items():
        assert node_lines(found[file]) == node_lines(text), file


def plain(model: dict) -> dict:
    model = json.loads(json.dumps(model))
    for node in model["graph"]["node"]:
        node.pop("source_address", None)
    return model


@pytest.mark.parametrize("name", REFERENCE)
def test_graph_protobufs_are_equal_after_decoding(name, runs, graph_proto):
    case, out = runs(name)
    for file, model in case.graph_models.items():
        assert plain(graph_proto.decode((out / "rank_0" / "graphs" / file).read_bytes())) == plain(model), file


@pytest.mark.parametrize("name", REFERENCE)
def test_execution_orders_are_equal(name, runs):
    case, out = runs(name)
    found = {path.name: path.read_text() for path in (out / "rank_0" / "execution_order").iterdir()}
    recorded_order = case.execution_order
    if name in UNKNOWN_ORDER:
        found, recorded_order = (
            {file: sorted(text.splitlines()) for file, text in texts.items()} for texts in (found, recorded_order)
        )
    assert found == recorded_order


@pytest.mark.parametrize("name", TRAINING)
def test_execution_orders_of_training_hold_the_same_operators(name, runs):
    case, out = runs(name)
    for file, text in case.execution_order.items():
        found = (out / "rank_0" / "execution_order" / file).read_text()
        assert sorted(found.splitlines()) == sorted(text.splitlines())
