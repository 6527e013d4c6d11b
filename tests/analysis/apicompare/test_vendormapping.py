"""The real tool's own mapping and numbers, on request: against its recorded results."""

import importlib.util
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from dumpsim.analysis.apicompare import api_dump_compare, compare_api_dumps, vendormapping
from dumpsim.analysis.apicompare.difference import compare_arrays
from dumpsim.analysis.apicompare.options import EXACT, Options
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.core.errors import ScriptValueError, UnsupportedError
from tests.apifiles import call, dump, linears, mapping, ramp

TOLERANCE = Tolerance(rtol=1e-4, atol=1e-4)
TABLES = Path(__file__).parents[3] / "fixtures" / "apidump" / "tables"
DIGESTS = json.loads((TABLES / "random_pairs.json").read_text())["digests"]


def _random_pairs():
    spec = importlib.util.spec_from_file_location("random_pairs", TABLES / "random_pairs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pairs = _random_pairs()
GROUPS = [list(DIGESTS)[start::8] for start in range(8)]


@pytest.mark.parametrize("seeds", GROUPS, ids=range(8))
def test_recorded_pairs(seeds, tmp_path):
    for seed in seeds:
        root = tmp_path / seed
        arguments = pairs.write_pair(root, int(seed), npy=False)
        result, _ = compare_api_dumps(root / "origin", root / "target", Options(**arguments, compat=EXACT))
        result.to_csv(root / "ours")
        assert pairs.digest(pairs.texts(root / "ours")) == DIGESTS[seed], (seed, arguments)


def test_counts_that_differ_shift_the_mapping_of_the_real_tool(tmp_path):
    # [spec api_dump 2.2: the first of three maps to {0, 1, 2} of five, though the values are equal]
    paths = dump(tmp_path / "a", "torch", linears(0, 1, 2)), dump(tmp_path / "b", "torch", linears(*range(5)))
    result, _ = compare_api_dumps(*paths, Options(convinced_match_method="recursion"))
    assert mapping(result)[0] == ("NN_Linear_0", "NN_Linear_0\nNN_Linear_1\nNN_Linear_2")
    assert mapping(compare_api_dumps(*paths)[0])[0] == ("NN_Linear_0", "NN_Linear_0")


def test_arrays_inside_a_group_are_in_the_order_of_their_directory(tmp_path):
    """By the first two indices, keywords last, then as the directory lists the files. [1.0.17: seen]"""
    indices = {"input.0": (0, 0), "input.1.0": (1, 0), "input.1.1": (1, 1), "input.w": (math.inf, 0), "input.2": (2, 0),
               "output.0": (0, 0), "output.1": (1, 0), "output.2": (2, 0), "output.1.1": (1, 1)}  # fmt: skip
    middle = [(f"Torch_mul_0_forward_{end}", ramp(at)) for at, end in enumerate(indices)]
    ends = call("NN_ReLU_0", ramp(0), ramp(1)), call("NN_Sigmoid_0", ramp(3), ramp(4))
    parts = [*call("Torch_matmul_0", ramp(1), ramp(2)), *middle, *call("Torch_add_0", ramp(2), ramp(3))]
    origin = dump(tmp_path / "a", "torch", [*ends[0], *call("Torch_dense_0", ramp(1), ramp(3)), *ends[1]], npy=True)
    target = dump(tmp_path / "b", "torch", [*ends[0], *parts, *ends[1]], npy=True)
    result, _ = compare_api_dumps(origin, target, Options(compat=EXACT))
    assert mapping(result)[1] == ("Torch_dense_0", "Torch_matmul_0\nTorch_mul_0\nTorch_add_0")
    listed = [name.removesuffix(".npy") for name in os.listdir(target / "rank0" / "torch_api_dump")]
    places = {f"Torch_mul_0_forward_{end}": index for end, index in indices.items()}
    wanted = sorted(places, key=lambda name: (places[name], listed.index(name)))
    names = [row.cells[1] for row in result.steps[0].forward.rows]
    assert [name for name in names if name.startswith("Torch_mul")] == wanted
    assert names[names.index(wanted[0]) - 1] == "Torch_matmul_0_forward_output"
    assert names[names.index(wanted[-1]) + 1] == "Torch_add_0_forward_input.0"


def test_the_last_step_is_lost_as_there(tmp_path):
    step = [*call("NN_Linear_0", ramp(0), ramp(1)), ("NN_Linear_0_backward_input", ramp(2))]
    origin = dump(tmp_path / "a", "torch", step + call("NN_Linear_1", ramp(0), ramp(1)))
    assert len(compare_api_dumps(origin, origin, Options(compat=EXACT))[0].steps) == 1
    assert len(compare_api_dumps(origin, origin)[0].steps) == 2


def test_deep_mappings_do_not_recurse(tmp_path):
    # each key is found within the gap of the one before: the real tool ends in a RecursionError
    names = [f"Tensor_op{at}_0" for at in range(1200)]
    origin = dump(tmp_path / "a", "torch", [r for name in names for r in call(name, ramp(0), ramp(1))])
    target = dump(tmp_path / "b", "torch", [r for name in names[1:] for r in call(name, ramp(0), ramp(1))])
    result, _ = compare_api_dumps(origin, target, Options(convinced_match_method="recursion"))
    assert mapping(result) == [("Tensor_op0_0", ""), *((name, name) for name in names[1:])]


def test_gaps_that_are_too_wide_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(vendormapping, "_MAX_CELLS", 50)
    sides = [[r for at in range(9) for r in call(f"Tensor_{side}{at}_0", ramp(0), ramp(1))] for side in "ab"]
    paths = [dump(tmp_path / side, "torch", records) for side, records in zip("ab", sides, strict=True)]
    with pytest.raises(UnsupportedError, match="9 calls beside 9"):
        compare_api_dumps(*paths, Options(compat=EXACT))
    assert len(compare_api_dumps(*paths)[0].steps[0].mapping) == 9


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_exact_cosines_are_those_of_numpy(dtype):
    random = np.random.default_rng(5)
    for count in (1, 31, 32, 100, 4097):
        one = (random.standard_normal(count) * 9).astype(dtype)
        other = (one + random.standard_normal(count) * 0.01 + 1).astype(dtype)
        wide = [side if dtype is not np.int32 else side.astype(float) for side in (one, other)]
        lengths = np.linalg.norm(wide[0]) * np.linalg.norm(wide[1])
        cosine = compare_arrays(one, other, TOLERANCE, exact=True).cosine
        assert cosine == float((np.dot(*wide) / lengths).clip(-1, 1))


def test_exact_cosines_of_nothing():
    zeros, tiny, ones = np.zeros(4, np.float32), np.full(4, 1e-20, np.float32), np.ones(4, np.float32)
    assert compare_arrays(zeros, tiny, TOLERANCE, exact=True).cosine == 1.0
    assert math.isnan(compare_arrays(tiny, ones, TOLERANCE, exact=True).cosine)
    assert compare_arrays(ones, -ones, TOLERANCE, exact=True).cosine == -1.0


def test_exact_numbers_keep_their_type():
    big = np.full(2, 60000, np.float16)
    assert compare_arrays(big, -big, TOLERANCE, exact=True).max == np.inf
    assert compare_arrays(big, -big, TOLERANCE).max == 120000
    assert compare_arrays(np.array([1 + 2j]), np.array([1 + 3j]), TOLERANCE, exact=True).outcome.agrees
    assert not compare_arrays(np.array([1 + 2j]), np.array([1 + 3j]), TOLERANCE).outcome.agrees


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"convinced_match_method": "bad"}, NotImplementedError, r"^Not support bad now\."),
        ({"compat": "1.0.18"}, ScriptValueError, r"'1\.0\.18' is not known; allowed: None, 1\.0\.17"),
        ({"ignore_unmached": True}, TypeError, "unexpected keyword argument 'ignore_unmached'"),
    ],
)
def test_what_is_refused(tmp_path, arguments, kind, message):
    origin = dump(tmp_path / "a", "torch", linears(0))
    with pytest.raises(kind, match=message):
        api_dump_compare(origin, origin, **arguments)


def test_unknown_keywords_pass_as_there(tmp_path):
    origin = dump(tmp_path / "a", "torch", linears(0))
    assert api_dump_compare(origin, origin, compat=EXACT, anything=3).passes
