"""api_dump_compare of many calls: `pytest tests/bench/bench_apicompare.py -s`."""

import json

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


CASES = {
    "4000_calls": (["NN_Linear", "NN_ReLU", "Torch_add", "NN_LayerNorm"] * 1000, None),
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
}


@pytest.mark.parametrize("npy", [False, True], ids=["statistics", "npy"])
@pytest.mark.parametrize("name", list(CASES))
def test_compare(benchmark, tmp_path, name, npy):
    if npy and name.startswith("20000"):
        pytest.skip("the arrays are not what this case is about")
    first, second = CASES[name]
    origin = dump(tmp_path / "a", first, npy)
    target = dump(tmp_path / "b", first if second is None else second, npy)
    result, _ = benchmark.pedantic(lambda: compare_api_dumps(origin, target), rounds=1)
    assert len(result.steps[0].mapping) >= 800
