"""Which kernels of the CPU have no input file, against real dumps of the same functions, in both orders of launch."""

import pytest
from corpus import emulated

SCRIPT = """
import mindspore as ms
import numpy as np
from mindspore import Tensor, jit, ops

ms.set_context(device_target="CPU")

@jit
def function(x):
    {body}

for _ in range(2):
    function(Tensor(np.ones((3, 3), np.float32)))
"""
FUNCTIONS = {
    "reshape": ("y = ops.reshape(ops.exp(x), (9,)); return y, ops.sin(y)", ["Sin"], ["Sin"]),
    "parameter": ("y = ops.reshape(x, (9,)); return y, ops.sin(y)", [], []),
    "expand": ("y = ops.expand_dims(ops.exp(x), 0); return y, ops.sin(y)", ["Sin"], ["Sin"]),
    "chain": (
        "y = ops.reshape(ops.exp(x), (9,)); z = ops.expand_dims(y, 0); return z, ops.sin(y), ops.cos(z)", ["Cos"], []
    ),
    "both": ("e = ops.exp(x); y = ops.reshape(e, (9,)); return y, e, ops.sin(y), ops.cos(e)", [], []),
    "source": ("e = ops.exp(x); y = ops.reshape(e, (9,)); return e, ops.sin(y), ops.cos(e)", [], []),
}  # fmt: skip


@pytest.fixture(scope="module")
def trees():
    return dict(emulated.run({name: SCRIPT.format(body=body) for name, (body, _, _) in FUNCTIONS.items()}))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_users_of_a_reshaped_output_find_no_memory(name, trees):
    _, *expected = FUNCTIONS[name]
    for step, missing in enumerate(expected):
        files = [file for file, *_ in trees[name]["npy"] if file.startswith(f"0/{step}/") and "Parameter" not in file]
        kernels = {
            kind: {file.split("/")[2].split(".")[0] for file in files if kind in file}
            for kind in ("input.0", "output.0")
        }
        assert sorted(kernels["output.0"] - kernels["input.0"]) == missing
