"""What the end of a run says of NaN, infinities and overflows that the dump has noticed."""

import inspect
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import inprocess
import numpy as np
import pytest

from dumpsim.core.irdoc import IrDoc, IrNode, SourceLine
from dumpsim.core.record import Record
from dumpsim.dump.findings import Fact, Findings
from dumpsim.dump.measure import finite
from dumpsim.frontends.mindspore import Tensor, nn, ops
from tests.dump.machine import task

HERE = Path(__file__).name


class Net(nn.Cell):
    def construct(self, x):
        x = ops.exp(x)
        y = ops.log(x - 2)
        return ops.relu(y)


class Large(nn.Cell):
    def construct(self, x):
        x = x * x
        return ops.exp(x)


class Spoilt(nn.Cell):
    def construct(self, x):
        y = ops.log(x)
        return y - y


LINE = inspect.getsourcelines(Net)[1] + 3
LARGE_LINE = inspect.getsourcelines(Large)[1] + 3
SPOILT_LINE = inspect.getsourcelines(Spoilt)[1] + 2


def dump(folder, monkeypatch, mode, values, *, net=Net, dtype=np.float32, **changes):
    return inprocess.dump(
        folder, monkeypatch, mode, lambda: net()(Tensor(np.array(values, dtype))).asnumpy(), iteration="all", **changes
    )


FEW = [[0.0, 1.0, 2.0]]
MANY = [np.linspace(0, 2, 200)]  # more than what is looked at for nothing
NAN = "NaN Log Default/Log-op0 output.0 x3"
OVERFLOW = "overflow Log Default/Log-op0  x1"


@pytest.mark.parametrize(
    ("mode", "values", "changes", "expected"),
    [
        ("O0", MANY, {"saved_data": "statistic"}, [NAN, OVERFLOW]),
        ("O0", MANY, {"saved_data": "full", "statistic_category": ["max"]}, [NAN, OVERFLOW]),
        ("O0", MANY, {"saved_data": "statistic", "stat_calc_mode": "device"}, [NAN, OVERFLOW]),
        (
            "O0",
            MANY,
            {"saved_data": "statistic", "input_output": 1},
            ["NaN ReLU Default/ReLU-op0 input.0 x1", OVERFLOW],
        ),
        ("O0", MANY, {"saved_data": "tensor"}, [NAN, OVERFLOW]),
        ("O0", FEW, {"saved_data": "tensor"}, [NAN, OVERFLOW]),
        ("GPU", MANY, {"saved_data": "statistic"}, [NAN]),
        ("CPU", FEW, {"saved_data": "tensor"}, [NAN.replace("x3", "x2")]),  # ReLU makes NaN 0 there
        ("CPU", MANY, {"saved_data": "tensor"}, [NAN.replace("x3", "x2")]),
        ("CPU", FEW, {"saved_data": "tensor", "kernels": ["Exp"], "dump_mode": 1}, []),
    ],
)
def test_what_was_measured_is_said(tmp_path, monkeypatch, mode, values, changes, expected):
    left = dump(tmp_path, monkeypatch, mode, values, **changes)
    found = left.summary.facts
    assert [f"{fact.kind} {fact.op_type} {fact.op_name} {fact.tensor} x{fact.count}" for fact in found] == expected
    for fact in found:
        assert (Path(fact.path).name, fact.line) == (HERE, LINE + (fact.op_type == "ReLU"))
        assert fact.iteration == 0
    command = "dumpsim first {}" if expected else "dumpsim ls {} --summary"
    assert left.summary.following == command.format(left.root)


def test_whole_graphs_report_what_the_hardware_did(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "O2", MANY, saved_data="tensor")
    (fact,) = left.summary.facts
    assert (fact.kind, fact.count) == ("overflow", 1)
    assert "Log" in fact.op_type + fact.op_name
    assert left.summary.following == f"dumpsim first {left.root}"


def test_infinities_are_told_from_nan(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "GPU", [np.linspace(50, 1000, 100)], net=Large, saved_data="statistic")
    (fact,) = left.summary.facts
    assert (fact.kind, fact.op_type, fact.tensor, fact.count, fact.line) == (
        "infinity",
        "Exp",
        "output.0",
        1,
        LARGE_LINE,
    )


def test_what_saturates_is_finite(tmp_path, monkeypatch):
    chip = {"chip": "910A"}
    left = dump(
        tmp_path, monkeypatch, "O0", [[300.0] * 99], net=Large, dtype=np.float16, saved_data="full", settings=chip
    )
    (fact,) = left.summary.facts
    assert (fact.kind, fact.op_type) == ("overflow", "Mul")
    assert left.summary.following == f"dumpsim ls {left.root} --summary"


def test_the_summary_and_the_manifest_say_it_and_the_command_helps(tmp_path, monkeypatch):
    manifest = tmp_path / "manifest.json"
    left = dump(tmp_path, monkeypatch, "O0", MANY, saved_data="full", settings={"manifest": str(manifest)})
    lines = str(left.summary).splitlines()
    assert lines[-3:] == [
        f"dumpsim: NaN first in Log, {HERE}:{LINE} (Default/Log-op0 output.0, iteration 0); 3 tensors have it",
        f"dumpsim: overflow first in Log, {HERE}:{LINE} (Default/Log-op0, iteration 0)",
        f"dumpsim: next: dumpsim first {left.root}",
    ]
    found = json.loads(manifest.read_text())
    assert found["next"] == f"dumpsim first {left.root}"
    assert found["findings"][0] == {
        "kind": "NaN", "op_type": "Log", "op_name": "Default/Log-op0", "tensor": "output.0", "graph_id": 0,
        "iteration": 0, "count": 3, "path": __file__, "line": LINE,
    }  # fmt: skip
    command = [sys.executable, "-m", "dumpsim", *found["next"].split()[1:]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.lower().startswith("nan made by log  default/log-op0")


def test_nan_and_infinity_share_a_line_in_the_order_of_appearance(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "GPU", [0.0, 1.0], net=Spoilt, saved_data="tensor", input_output=2)
    assert [line for line in str(left.summary).splitlines() if " first " in line and "next:" not in line] == [
        f"dumpsim: infinity first in Log, {HERE}:{SPOILT_LINE} (Default/Log-op0 output.0, iteration 0), "
        f"then NaN in Sub, {HERE}:{SPOILT_LINE + 1}; 1 tensor has infinity, 1 NaN"
    ]


def test_nan_and_infinity_of_one_tensor_are_named_once(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "GPU", [0.0, -1.0], net=Spoilt, saved_data="tensor", input_output=2)
    assert (
        f"dumpsim: NaN and infinity first in Log, {HERE}:{SPOILT_LINE} (Default/Log-op0 output.0, iteration 0); "
        "2 tensors have NaN, 1 infinity" in str(left.summary)
    )


def test_an_input_and_several_runs_are_worded():
    fact = Fact(kind="NaN", op_type="ReLU", op_name="n", tensor="input.0", graph_id=0, iteration=None, count=1)
    assert str(fact) == "NaN first in input 0 of ReLU (n input.0)"
    fact = Fact(kind="overflow", op_type="Mul", op_name="n", tensor="", graph_id=0, iteration=3, count=2)
    assert str(fact) == "overflow first in Mul (n, iteration 3); 2 runs of operators overflow"


@pytest.mark.parametrize("size", [1, 64, 65, 100_000])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_tensors_of_any_size_are_looked_at(size, kind):
    values = np.ones(size, kind)
    assert finite(values)
    for bad in (np.nan, np.inf, -np.inf):
        values[size // 2] = bad
        assert not finite(values)
    assert finite(np.zeros(size, np.int32))


def test_the_maker_is_named_although_no_statistics_are_dumped(tmp_path, monkeypatch):
    """The results of Log are many."""
    left = dump(tmp_path, monkeypatch, "O0", [[-1.0] * 1000], saved_data="tensor")
    nan = next(fact for fact in left.summary.facts if fact.kind == "NaN")
    assert (nan.op_type, nan.tensor) == ("Log", "output.0")


def test_overflows_come_last_and_each_kind_has_its_first_place_and_its_number():
    findings = Findings()
    log = Record(op_type="Log", op_name="Default/Log-op0", io="output", slot=1, dtype="float32", shape=(2,),
                 timestamp=1, graph_id=4, iteration=2)  # fmt: skip
    event = task("Default/Exp-op0", graph_id=4)
    findings.overflow(event, 4, 1)
    findings.see(log, nan=False, infinite=True)
    findings.see(replace(log, io="input", slot=0, iteration=3), nan=True, infinite=True)
    findings.see(replace(log, iteration=5), nan=False, infinite=False)
    findings.overflow(event, 4, 2)
    first = {"op_type": "Log", "op_name": "Default/Log-op0", "graph_id": 4, "path": "", "line": 0}
    assert findings.facts({}) == (
        Fact(kind="infinity", tensor="output.1", iteration=2, count=2, **first),
        Fact(kind="NaN", tensor="input.0", iteration=3, count=1, **first),
        Fact(
            kind="overflow", op_type="Exp", op_name="Default/Exp-op0", tensor="", graph_id=4, iteration=1, count=2,
            path="", line=0,
        ),
    )  # fmt: skip


def compiled(graph_id, line):
    """A graph with one operator, which a line of the script made."""
    source = SourceLine(path="net.py", line=line, end_line=line, column=0, end_column=1, code="x")
    node = IrNode(
        index=0, name="n", op_type="Log", prim_func=True, operands=(), operand_types=(), output=None,
        full_name="Default/Log-op0", sources=(source,),
    )  # fmt: skip
    return IrDoc(name=f"kernel_graph{graph_id}", graph_id=graph_id, params=(), nodes=(node,))


@pytest.mark.parametrize(("graph_id", "line"), [(0, 10), (1, 20), (2, 30), (None, 10), (7, 10)])
def test_the_line_is_that_of_the_operators_own_graph(graph_id, line):
    """Several graphs have an operator of this name; without its own graph, the first one is used."""
    findings = Findings()
    record = Record(op_type="Log", op_name="Default/Log-op0", io="output", slot=0, dtype="float32", shape=(),
                    timestamp=0, graph_id=graph_id, iteration=0)  # fmt: skip
    findings.see(record, nan=True, infinite=False)
    docs = {number: compiled(number, 10 * number + 10) for number in range(3)}
    assert [(fact.path, fact.line) for fact in findings.facts(docs)] == [("net.py", line)]
