"""Scripts under `dumpsim run`, from the config file to the tree."""

import hashlib
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.dump.machine import config

SCRIPT = """
    import sys
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE, jit_level="O0")

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(4, 3)
            self.relu = nn.ReLU()
            self.exp = ops.Exp()
            self.head = nn.SequentialCell([nn.Dense(3, 2), nn.Tanh()])
            self.shift = Tensor(np.arange(3, dtype=np.float32))

        def construct(self, x):
            return self.head(self.exp(self.relu(self.fc(x)) + self.shift))

    ms.set_seed(1)
    net = Net()
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "cell":
        ms.set_dump(net.head)
    if what == "primitive":
        ms.set_dump(net.exp)
    if what == "cell without":
        ms.set_dump(net)
        ms.set_dump(net.head, enabled=False)
    for _ in range(2):
        net(Tensor(np.ones((2, 4), np.float32)))
"""


@pytest.fixture
def run(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def runner(*arguments, options=(), name="dump", faults=None, code=0, **changes):
        root = tmp_path / name
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(config(root, **changes)))
        if faults is not None:
            (tmp_path / "faults.json").write_text(json.dumps({"faults": faults}))
            options = (*options, "--faults", str(tmp_path / "faults.json"))
        found = subprocess.run(
            [sys.executable, "-m", "dumpsim", "run", *options, str(script), *arguments],
            env={**os.environ, "MINDSPORE_DUMP_CONFIG": str(file), "PYTHONPATH": str(Path(__file__).parents[2])},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert found.returncode == code, found.stderr
        return root / "rank_0", found.stderr

    return runner


def tensors(rank):
    """npy names from the net's directory on, without time stamps."""
    return sorted({re.sub(r"\.\d{16}", "", str(p.relative_to(rank))) for p in rank.rglob("*.npy")})


def operators(rank):
    return sorted({Path(name).name.split(".")[0] for name in tensors(rank)})


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("cell", ["BiasAdd", "MatMul", "Tanh"]),
        ("primitive", ["Exp"]),
        ("cell without", ["Add", "BiasAdd", "Exp", "MatMul", "ReLU"]),
        ("", []),
    ],
)
def test_set_dump(run, what, expected):
    rank, told = run(what, dump_mode=2, iteration="0")
    assert operators(rank) == expected
    assert ("no operator has the mark of set_dump" in told) == (not expected)


def test_two_runs_write_the_same_bytes(run):
    digests = []
    for name in ("one", "two"):
        rank, told = run(options=("--device", "gpu"), name=name, saved_data="full", save_kernel_args=True)
        found = hashlib.sha256()
        for path in sorted(rank.rglob("*")):
            if path.is_file() and path.name != "data_dump.json":
                found.update(str(path.relative_to(rank)).encode() + path.read_bytes())
        digests.append(found.hexdigest())
        assert "skipped" not in told
    assert digests[0] == digests[1]
    (constant,) = [name for name in tensors(rank) if "constants" in name]
    assert re.fullmatch(r"Net/0/constants/Parameter\.data-\d+\.0\.0\.output\.0\.DefaultFormat\.npy", constant)
    arguments = json.loads((rank / "Net/0/0/MatMul.Default_fc-Dense_MatMul-op0.json").read_text())
    assert arguments == {"transpose_a": "False", "transpose_b": "True"}


def test_the_manifest_names_the_lives_of_buffers(run, tmp_path):
    rank, _ = run(iteration="0", options=("--manifest", "m.json"))
    found = json.loads((tmp_path / "m.json").read_text())
    lives = {(entry["owner"], entry["kind"]): entry for entry in found["buffers"]}
    relu = lives["Default/relu-ReLU/ReLU-op0", "activation"]
    assert (relu["born"], relu["dead"], relu["nbytes"]) == ("Default/relu-ReLU/ReLU-op0", "Default/Add-op0", 24)
    assert {entry["path"] for entry in found["files"]} == {str(p.relative_to(rank)) for p in rank.rglob("*.npy")}
    addresses = {entry["address"] for entry in found["files"] if entry["full_name"] == "Default/relu-ReLU/ReLU-op0"}
    assert relu["address"] in addresses


def test_overflow_by_a_fault(run):
    rank, _ = run(faults=[{"kind": "overflow", "op": "ReLU"}], op_debug_mode=3)
    assert operators(rank)[-1] == "ReLU"
    assert "Net/0/0/ReLU.Default_relu-ReLU_ReLU-op0.0.0.output.0.DefaultFormat.float32.npy" in tensors(rank)
    assert not [name for name in tensors(rank) if name.startswith("Net/0/1")]


def test_exception_by_a_fault(run):
    rank, told = run(faults=[{"kind": "aicore_error", "op": "Exp", "nth": 2}], op_debug_mode=4, code=1)
    assert tensors(rank) == ["Net/0/1/Exp.Default_Exp-op0.0.0.input.0.DefaultFormat.float32.npy"]
    assert "Aicore kernel execute failed" in told


def test_a_full_disk_by_a_fault(run):
    faults = [{"kind": "disk_full", "after_bytes": 25_000}]
    rank, told = run(faults=faults, iteration="all", code=1)
    assert "the disk is full" in told
    sizes = [path.stat().st_size for path in rank.rglob("*") if path.is_file()]
    assert sum(sizes) <= 25_000
    assert not list(rank.rglob(".dumpsim*"))


@pytest.mark.parametrize("trans_flag", [True, False])
def test_private_layouts(run, trans_flag):
    rank, _ = run(options=("--chip", "910A"), trans_flag=trans_flag, iteration="0")
    (name,) = [n for n in tensors(rank) if "fc-Dense_MatMul-op0.0.0.input.0" in n]
    assert name.endswith("DefaultFormat.float32.npy" if trans_flag else "FRACTAL_NZ.float16.npy")


def test_the_error_of_a_config_that_is_no_json_is_the_vendors_only(run, tmp_path, monkeypatch):
    monkeypatch.setattr(json, "dumps", lambda document: '{"common_dump_settings": {"dump_mode": 0,}')
    _, told = run(code=1)
    assert (
        "DumpConfigError: Parse dump json failed, error:[json.exception.parse_error.101] parse error at line 1" in told
    )
    assert "JsonTextError" not in told
    assert "direct cause" not in told


def test_an_unset_jit_level_follows_the_chip(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(script.read_text().replace(', jit_level="O0"', ""))
    run(options=("--chip", "910A"), name="old")
    run(options=("--chip", "910A", "--mindspore", "2.7"), name="later")
    run(name="default")
    trees = {name: {p.name for p in (tmp_path / name).iterdir()} for name in ("old", "later", "default")}
    assert "0" in trees["old"]  # the step of a whole graph's dump
    assert "rank_0" in trees["later"] & trees["default"]
    assert "rank_0" not in trees["old"]


def test_a_bad_config_stops_the_script_with_the_vendors_text(run):
    _, told = run(input_output=3, code=1)
    assert "Dump Json Parse Failed. input_output should be 0, 1, 2" in told
    assert "$.common_dump_settings.input_output" in told
