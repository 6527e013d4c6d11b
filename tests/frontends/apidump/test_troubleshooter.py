"""Scripts of users of ``troubleshooter``, run as they are by ``dumpsim run``."""

import csv
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
NET = """
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.ln, self.fc2 = nn.Dense(8, 8), nn.LayerNorm((8,)), nn.Dense(8, 8)
        self.relu, self.drop = nn.ReLU(), nn.Dropout(p=0.3)

    def construct(self, x):
        x = ops.softmax(self.relu(self.ln(self.fc1(x))), -1)
        x = self.drop(x) @ x
        x = ops.relu(self.fc2(x))
        return ops.softmax(x @ x)


def data():
    return Tensor(np.random.RandomState(0).randn(8, 8).astype(np.float32))
"""
CALLS = [
    *("NN_Dense_0", "NN_LayerNorm_0", "NN_ReLU_0", "Functional_softmax_0", "NN_Dropout_0", "Tensor___matmul___0"),
    *("NN_Dense_1", "Functional_relu_0", "Tensor___matmul___1", "Functional_softmax_1"),
]
TITLES = {"origin": "ORIGIN NET (mindspore)", "target": "TARGET NET (mindspore)"}


def run(folder, code, *, status=0):
    """The process of a script in `folder`, in which the net of `NET` can be imported."""
    (folder / "net.py").write_text(NET)
    (folder / "script.py").write_text(code)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "dumpsim", "run", "--manifest", "none", "script.py"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=120)
    assert found.returncode == status, found.stderr
    return found


def lines(path):
    """The fields of an info file; records of one call in a row count once in `calls`."""
    return [json.loads(line) for line in (path / "rank0/mindspore_api_dump_info.pkl").read_text().splitlines()]


def calls(path, direction="forward"):
    found = [name.partition(f"_{direction}_")[0] for name, *_ in lines(path) if f"_{direction}_" in name]
    return list(dict.fromkeys(found))


def test_everything_into_the_default_directory(tmp_path):
    found = run(
        tmp_path,
        """
import troubleshooter as ts
from net import *

net = Net()
ts.migrator.api_dump_init(net)
ts.migrator.api_dump_start()
net(data())
ts.migrator.api_dump_stop()
""",
    )
    path = tmp_path / "ts_api_dump"
    assert calls(path) == CALLS
    arrays = sorted(file.stem for file in (path / "rank0/mindspore_api_dump").iterdir())
    assert arrays == sorted(name for name, *_ in lines(path))
    stacks = json.loads((path / "rank0/mindspore_api_dump_stack.json").read_text())
    assert list(stacks) == [f"{call}_forward_stack_info" for call in CALLS]
    assert {len(stack) for stack in stacks.values()} == {2}
    assert f"API dump has been stopped. Dump data has been saved to {path}." in found.stderr


def test_named_calls_of_several_steps_with_their_gradients(tmp_path):
    run(
        tmp_path,
        """
from troubleshooter.migrator import api_dump_init, api_dump_start, api_dump_stop
from net import *

net = Net().set_train()
api_dump_init(net, "dump", retain_backward=True, compare_statedict=False)
step = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
optimizer = nn.Adam(net.trainable_params())
for _ in range(3):
    api_dump_start(mode='list', scope=['Functional_softmax_1', 'NN_Dense_1', 'Tensor___matmul___1'])
    optimizer(step(data())[1])
    api_dump_stop()
""",
    )
    named = ["NN_Dense_1", "Tensor___matmul___1", "Functional_softmax_1"]
    assert calls(tmp_path / "dump") == named
    assert calls(tmp_path / "dump", "backward") == named[::-1]


def test_a_range_of_calls_of_a_training_cell(tmp_path):
    run(
        tmp_path,
        """
import troubleshooter as ts
from net import *

net = Net()
train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)).set_train()
ts.migrator.api_dump_init(net, output_path="dump", retain_backward=True)
for step in range(2):
    scope = [f'NN_Dense_{2 * step + 1}', f'Tensor___matmul___{2 * step + 1}']
    ts.migrator.api_dump_start(mode='range', scope=scope, dump_type='statistics')
    train(data(), data())
    ts.migrator.api_dump_stop()
""",
    )
    first, second = ([f"NN_Dense_{a}", f"Functional_relu_{b}", f"Tensor___matmul___{a}"] for a, b in ((1, 0), (3, 1)))
    assert calls(tmp_path / "dump") == first + second
    assert calls(tmp_path / "dump", "backward") == first[::-1] + second[::-1]
    assert list((tmp_path / "dump/rank0/mindspore_api_dump").iterdir()) == []


def test_kinds_of_calls_with_every_frame(tmp_path):
    run(
        tmp_path,
        """
import troubleshooter.migrator as migrator
from net import *

net = Net()
migrator.api_dump_init(net, "dump")
migrator.api_dump_start(mode='api_list', scope=['relu', 'softmax', 'layernorm'], dump_type='stack', filter_stack=False)
net(data())
migrator.api_dump_stop()
""",
    )
    words = ("relu", "softmax", "layernorm")
    assert calls(tmp_path / "dump") == [call for call in CALLS if any(word in call.lower() for word in words)]
    assert "NaN" in (tmp_path / "dump/rank0/mindspore_api_dump_info.pkl").read_text()
    stacks = json.loads((tmp_path / "dump/rank0/mindspore_api_dump_stack.json").read_text())
    assert all(len(stack) > 2 and "script.py" in stack[-1] for stack in stacks.values())


def test_two_runs_of_a_model_compared(tmp_path):
    found = run(
        tmp_path,
        """
import troubleshooter as ts
from mindspore import Model, dataset
from net import *

for name in ("one", "other"):
    ms.set_seed(1)
    net = Net()
    ts.migrator.api_dump_init(net, output_path=name, retain_backward=True)
    ts.migrator.api_dump_start(filter_data=False)
    batches = dataset.NumpySlicesDataset((np.ones((2, 8, 8), 'f4'), np.zeros((2, 8, 8), 'f4')), ["x", "y"])
    model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    model.train(1, batches, dataset_sink_mode=False)
    ts.migrator.api_dump_stop()
ts.migrator.api_dump_compare("one", "other", "tables", rtol=1e-4, atol=1e-4, equal_nan=False, ignore_unmatched=False)
""",
    )
    tables = [
        f"ts_api_{kind}_{step}.csv" for kind in ("backward_compare", "forward_compare", "mapping") for step in (0, 1)
    ]
    assert sorted(os.listdir(tmp_path / "tables")) == tables
    for name in tables:
        with (tmp_path / "tables" / name).open(newline="") as file:
            head, *rows = [row for row in csv.reader(file) if row]
        assert head[:2] == list(TITLES.values())
        assert rows
        assert all(one == other for one, other, *_ in rows)
        assert "mapping" in name or all(row[4] == "True" for row in rows)
    assert "The APIs mapping results of the two frameworks (step 1)" in found.stdout


def test_arguments_and_defaults_are_the_documented_ones():
    from dumpsim.emulate.troubleshooter import migrator

    def documented(function):
        parameters = inspect.signature(function).parameters.values()
        ours = ("coverage", "compat", "kwargs")
        return {p.name: p.default for p in parameters if p.name not in ours and p.kind is not p.VAR_KEYWORD}

    none = inspect.Parameter.empty
    init = {"net": none, "output_path": "ts_api_dump", "retain_backward": False, "compare_statedict": False}
    start = {"mode": "all", "scope": None, "dump_type": "all", "filter_data": True, "filter_stack": True}
    compare = {"rtol": 1e-4, "atol": 1e-4, "equal_nan": False, "ignore_unmatched": False}
    assert documented(migrator.api_dump_init) == init
    assert documented(migrator.api_dump_start) == start
    assert documented(migrator.api_dump_stop) == {}
    compared = documented(migrator.api_dump_compare)
    assert {name: compared[name] for name in compare} == compare
    assert [*compared][:3] == ["origin_path", "target_path", "output_path"]


ERRORS = [
    ("ts.migrator.api_dump_start()", "You must call 'troubleshooter.api_dump.init' before calling"),
    ("ts.migrator.api_dump_init(3)", "but got <class 'int'>"),
    (
        "ts.migrator.api_dump_init(Net(), retain_backward='yes')",
        "The parameter 'retain_backward' must be <class 'bool'>",
    ),
    (
        "ts.migrator.api_dump_init(Net()); ts.migrator.api_dump_start(mode='foo')",
        "For parameter 'mode', value 'foo'",
    ),
    ("ts.migrator.api_dump_compare('a', 'b')", "origin_path is not a valid dump path"),
    ("ts.tracking", "troubleshooter.tracking is not emulated"),
    ("ts.migrator.compare_npy_dir('a', 'b')", "troubleshooter.migrator.compare_npy_dir is not emulated"),
    ("from troubleshooter.migrator import save", "troubleshooter.migrator.save is not emulated"),
    ("import troubleshooter.widget", "troubleshooter.widget"),
    ("import troubleshooter.migrator.api_dump", "the emulation has no module 'troubleshooter.migrator.api_dump'"),
    ("ts.migrator.api_dmp_init", "has no attribute 'api_dmp_init'"),
]


def test_what_does_not_work_says_so_by_name(tmp_path):
    found = run(
        tmp_path,
        f"""
import troubleshooter as ts
from net import *

for statement, _ in {ERRORS!r}:
    try:
        exec(statement)
    except Exception as error:
        print(str(error).replace(chr(10), " "))
""",
    )
    for (statement, error), line in zip(ERRORS, found.stdout.splitlines(), strict=True):
        assert error in line, statement
