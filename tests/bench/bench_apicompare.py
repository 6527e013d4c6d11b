"""api_dump_compare of many calls: `pytest tests/bench/bench_apicompare.py -s`.

With DUMPSIM_REAL_PYTHON, a Python that has torch and troubleshooter 1.0.17, each case is given to the real tool too,
for two minutes at most; CPU seconds of both, children included, are in the last lines.
"""

import json
import os
import subprocess
import time

import numpy as np
import pytest

from dumpsim.analysis.apicompare import compare_api_dumps


def dump(root, apis, npy):
    """One array in, one out, for each API named."""
    rank = root / "rank0"
    (rank / "torch_api_dump").mkdir(parents=True)
    random = np.random.default_rng(0)
    counts: dict[str, int] = {}
    with open(rank / "torch_api_dump_info.pkl", "w") as info:
        for api in apis:
            count = counts[api] = counts.get(api, -1) + 1
            for tail in ("forward_input.0", "forward_output"):
                array = random.standard_normal((16, 16), np.float32)
                name = f"{api}_{count}_{tail}"
                if npy:
                    np.save(rank / "torch_api_dump" / f"{name}.npy", array)
                values = [float(array.max()), float(array.min()), float(array.mean())]
                info.write(json.dumps([name, 1, [], "torch.float32", [16, 16], values]) + "\n")
    return root


REAL_TOOL = """
import contextlib, io, os, sys
from troubleshooter.migrator import api_dump_compare
start = sum(os.times()[:4])
with contextlib.redirect_stdout(io.StringIO()):
    try:
        api_dump_compare(sys.argv[1], sys.argv[2])
    except RecursionError:
        sys.exit("RecursionError")
print("seconds", sum(os.times()[:4]) - start)
"""


def real_seconds(origin, target):
    """CPU seconds of the real tool, or why there are none; None without it."""
    python = os.environ.get("DUMPSIM_REAL_PYTHON")
    if python is None:
        return None
    command = [python, "-c", REAL_TOOL, str(origin), str(target)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "no end in 120 s"
    return float(run.stdout.split()[-1]) if run.returncode == 0 else run.stderr.strip().splitlines()[-1]


BLOCK = ["NN_Linear", "NN_ReLU", "Torch_add", "NN_LayerNorm"]

CASES = {
    "4000_calls": (BLOCK * 1000, None),
    "4000_equal_calls_one_missing": (["NN_Linear"] * 4000, ["NN_Linear"] * 3999),
    "4000_distinct_calls": (
        [f"Tensor_op{at}" for at in range(4000)],
        [f"Tensor_op{at}" for at in range(4000) if at % 9],
    ),
    "800_against_800_unmatched": (
        [f"Tensor_left{at}" for at in range(800)],
        [f"Tensor_right{at}" for at in range(800)],
    ),
    "20000_calls_half_missing": (["NN_Linear", "NN_ReLU"] * 10000, ["NN_Linear", "NN_ReLU"] * 5000),
    "20000_calls_of_one_name": (["NN_Linear"] * 20000, ["NN_Linear"] * 18000),
    "20000_against_20000_unmatched": (
        [f"Tensor_left{at}" for at in range(20000)],
        [f"Tensor_right{at}" for at in range(20000)],
    ),
    "20000_in_blocks_one_missing": (BLOCK * 5000, BLOCK * 1250 + BLOCK[1:] + BLOCK * 3749),
}


@pytest.mark.parametrize("npy", [False, True], ids=["statistics", "npy"])
@pytest.mark.parametrize("name", list(CASES))
def test_compare(benchmark, tmp_path, name, npy):
    if npy and name.startswith("20000"):
        pytest.skip("the arrays are not what this case is about")
    first, second = CASES[name]
    origin = dump(tmp_path / "a", first, npy)
    target = dump(tmp_path / "b", first if second is None else second, npy)
    start = time.process_time()
    result, _ = benchmark.pedantic(lambda: compare_api_dumps(origin, target), rounds=1)
    ours = time.process_time() - start
    assert len(result.steps[0].mapping) >= 800
    real = real_seconds(origin, target)
    told = f"{real:.2f} s, {real / ours:.1f} times ours" if isinstance(real, float) else real
    print(f"\n{name}: {ours:.2f} s CPU" + (f"; the real tool: {told}" if told else ""))
