"""A script that sets a dump by an ACL config, under ``dumpsim run`` with a fault plan."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import numpy as np
from dumpsim import acl
from mindspore import Tensor, context, nn, ops

context.set_context(mode=context.GRAPH_MODE, device_target="Ascend", jit_level="O2")


class Net(nn.Cell):
    def construct(self, x):
        kept = ops.tanh(x)
        y = ops.matmul(kept, x)
        for _ in range(3):
            y = ops.matmul(y, x)
        return y + kept


acl.set_dump("acl.json")
net = Net()
net(Tensor(np.full((4, 4), 0.5, np.float32)))
"""


def run(root, *command):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MS_", "MINDSPORE"))}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-m", "dumpsim", *command],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_an_overwrite_in_a_script_is_found(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "out").mkdir()
    watch = {"dump_path": "out", "dump_scene": "watcher", "dump_list": [{"watcher_nodes": ["Default/Tanh-op0"]}]}
    (tmp_path / "acl.json").write_text(json.dumps({"dump": watch}))
    fault = {"kind": "stomp", "after": "*MatMul*", "nth": 3, "target": "Default/Tanh-op0", "offset": 8, "nbytes": 4}
    (tmp_path / "plan.json").write_text(json.dumps({"faults": [fault]}))
    ran = run(tmp_path, "run", "--device", "ascend", "--chip", "910B", "--faults", "plan.json", "script.py")
    assert ran.returncode == 0, ran.stderr
    assert "dumpsim: out" in ran.stderr
    found = run(tmp_path, "watchdiff", "out", "--json")
    assert found.returncode == 1, found.stderr
    (change,) = map(json.loads, found.stdout.splitlines())
    assert (change["node"], change["slot"], change["verdict"]) == ("Default/Tanh-op0", 0, "trampled")
    assert "MatMul" in change["after"]
    assert 8 <= change["first"] <= change["last"] <= 11


def test_a_config_that_is_refused_ends_the_script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "acl.json").write_text(json.dumps({"dump": {"dump_path": "missing", "dump_list": [{}]}}))
    ran = run(tmp_path, "run", "--device", "ascend", "script.py")
    assert ran.returncode != 0
    assert (
        "EP0003: Value missing for configuration item dump_path in configuration file acl.json is invalid" in ran.stderr
    )
    assert "The path does not exist" in ran.stderr
