"""`dumpsim.compare` and `api_dump_compare` pair the same arrays of two API dumps and judge them alike."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import dumpsim
from dumpsim.analysis.apicompare import compare_api_dumps
from dumpsim.analysis.apicompare.options import Options
from dumpsim.analysis.apitree import api_entries
from dumpsim.analysis.place import places
from tests.apifiles import call, dump, ramp

FIXTURES = Path(__file__).parents[3] / "fixtures" / "apidump"
REFERENCE = FIXTURES / "x01_torch_vs_ms"
TOLERANCES = ("rtol", "atol", "equal_nan")


def _module(name):
    spec = importlib.util.spec_from_file_location(name, FIXTURES / "tables" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = _module("table_cases")
random_pairs = _module("random_pairs")


def by_tables(origin, target, options):
    """Verdicts by step and the names of both records; None where nothing is known."""
    result, _ = compare_api_dumps(origin, target, options)
    return {
        (step.step, one.origin.line.name, one.target.line.name): one.passes
        for step in result.steps
        for one in step.findings
        if one.outcome is not None and not one.is_layer
    }


def records(root):
    """Names of records by what a row of a comparison says of them."""
    found = {}
    for place in places(Path(root)):
        info = next(place.path.glob("*_api_dump_info.*")).read_text().splitlines()
        names = [json.loads(line)[0] for line in info]
        for name, entry in zip(names, api_entries(place), strict=True):
            found[entry.iteration, entry.op_name, entry.io, entry.slot] = name
    return found


def by_rows(origin, target, options):
    """The same, as `dumpsim.compare` has it."""
    names = records(origin), records(target)
    tol = [f"*:{options.rtol}:{options.atol}"]
    rows = dumpsim.compare(origin, target, tol=tol, equal_nan=options.equal_nan, name_map=options.name_map)
    return {
        (
            row.iteration,
            names[0][row.iteration, row.op_name, row.io, row.slot],
            names[1][row.iteration, row.other_name, row.other_io, row.other_slot],
        ): None if row.verdict == "unknown" else row.verdict in ("equal", "close")
        for row in rows
        if row.verdict not in ("only_a", "only_b")
    }


def check(origin, target, options):
    tables, rows = by_tables(origin, target, options), by_rows(origin, target, options)
    if not tables:  # there are none where no statistic is known, and where nothing is a pair
        assert set(rows.values()) <= {None}
    else:
        assert tables == rows


@pytest.mark.parametrize("name", list(cases.CASES))
def test_dumps_of_recorded_tables(name, tmp_path):
    origin, target, arguments = cases.write_case(name, tmp_path)
    check(origin, target, Options(**{key: value for key, value in arguments.items() if key in TOLERANCES}))


@pytest.mark.parametrize(("origin", "target"), [("ms", "pt"), ("pt", "ms"), ("ms", "ms")])
@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_the_stored_pair(origin, target, rtol):
    check(REFERENCE / origin, REFERENCE / target, Options(rtol=rtol, atol=rtol))


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_random_pairs(tmp_path, first):
    """Calls dropped and swapped, several steps, modules, all pairs of frameworks, with and without values."""
    for seed in range(first, first + 20):
        root = tmp_path / str(seed)
        random_pairs.write_pair(root, seed)
        check(root / "origin", root / "target", Options())


@pytest.mark.parametrize("npy", [True, False])
@pytest.mark.parametrize("name_map", [None, {"Torch.mine": "Torch.mish"}])
def test_calls_that_only_the_user_knows(tmp_path, npy, name_map):
    origin = dump(tmp_path / "a", "torch", call("Torch_mine_0", ramp(0), ramp(1)), npy=npy)
    others = [*call("Torch_lgamma_0", ramp(0), ramp(2)), *call("Torch_mish_0", ramp(0), ramp(1.5))]
    check(origin, dump(tmp_path / "b", "torch", others, npy=npy), Options(name_map=name_map))


@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize("npy", [True, False])
def test_nan(tmp_path, npy, equal_nan):
    hole = np.where(ramp(0) > 0.9, np.nan, ramp(0))
    paths = [dump(tmp_path / side, "torch", call("NN_ReLU_0", ramp(0), hole), npy=npy) for side in "ab"]
    check(*paths, Options(equal_nan=equal_nan))
    assert compare_api_dumps(*paths, Options(equal_nan=equal_nan))[0].passes == equal_nan


def test_files_of_one_side_alone(tmp_path):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)), npy=True)
    check(origin, dump(tmp_path / "b", "torch", call("NN_ReLU_0", ramp(0), ramp(2))), Options())
