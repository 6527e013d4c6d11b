"""One operator recomputed alone, as `dumpsim.first` asks for it: the same evidence as of a whole replay, less work."""

import numpy as np
import pytest

import dumpsim
from dumpsim.analysis.operator import series
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from dumpsim.replay import call as calls
from dumpsim.replay import recompute
from dumpsim.replay.recompute import Recomputer
from tests.inprocess import dump


class Chain(nn.Cell):
    def __init__(self, length):
        super().__init__()
        self.length = length
        self.w = Parameter(Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)), name="w")

    def construct(self, x):
        for _ in range(self.length):
            x = ops.tanh(x * self.w)
        return x


def train():
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(4, 3), nn.ReLU(), nn.Dense(3, 2))
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.05, 0.9)
    ).set_train()
    rng = np.random.default_rng(0)
    for _ in range(3):
        step(Tensor(rng.standard_normal((5, 4), np.float32)), Tensor(rng.standard_normal((5, 2), np.float32)))


def chain():
    Chain(40)(Tensor(np.full((3, 4), 0.5, np.float32)))


PROFILES = {"O0": {}, "CPU": {"mindspore": "2.10"}, "O2": {}}


def tree(tmp_path, monkeypatch, profile, action, **options):
    run = dump(tmp_path, monkeypatch, profile, action, iteration="all", settings=PROFILES[profile], **options)
    assert run.error is None
    return run.root


def evidence(root, *, backwards=False):
    """By name and iteration, each operator asked for alone."""
    opened = dumpsim.open(root)
    every = [one for group in series(opened) for one in group.operators]
    ask = Recomputer()
    return {(one.op_name, one.iteration): ask(opened, one) for one in (reversed(every) if backwards else every)}


@pytest.mark.parametrize("profile", PROFILES)
def test_an_operator_asked_for_alone_has_the_evidence_of_the_whole_replay(tmp_path, monkeypatch, profile):
    root = tree(tmp_path, monkeypatch, profile, train)
    rows = dumpsim.replay(root).rows
    assert len(rows) > 20
    assert any(row.verdict == "ok" for row in rows)
    for backwards in (False, True):
        found = evidence(root, backwards=backwards)
        for row in rows:
            one = found[row.op_name, row.iteration]
            assert (one.verdict, one.reason) == (row.verdict, row.reason), row
            if row.verdict == "ok":
                assert (one.error, one.explained) == (row.error, row.explained)


def test_outputs_of_earlier_operators_stand_in_for_inputs_that_were_not_dumped(tmp_path, monkeypatch):
    root = tree(tmp_path, monkeypatch, "O0", train, input_output=2)
    assert not list(dumpsim.open(root).filter(io="input"))
    found = evidence(root)
    rows = dumpsim.replay(root).rows
    assert sum(row.verdict == "ok" for row in rows) > 10
    for row in rows:
        one = found[row.op_name, row.iteration]
        assert (one.verdict, one.reason) == (row.verdict, row.reason), row


def test_only_operators_that_need_other_files_have_an_iteration_planned(tmp_path, monkeypatch):
    root = tree(tmp_path, monkeypatch, "O0", chain)
    planned = []
    monkeypatch.setattr(recompute, "plan", lambda *args, **options: planned.append(args) or iter(()))
    found = evidence(root)
    assert {one.verdict for name, one in found.items() if "Parameter" not in name[0]} == {"ok"}
    assert planned == []


def test_nodes_of_one_kind_are_not_all_measured_for_each_of_their_runs(tmp_path, monkeypatch):
    root = tree(tmp_path, monkeypatch, "O0", chain)
    fits, seen = calls._fits, []
    monkeypatch.setattr(calls, "_fits", lambda node, operator: seen.append(node) or fits(node, operator))
    found = evidence(root)
    assert len(found) >= 80
    assert len(seen) <= len(found)  # before: 40 for each


def test_nan_that_was_there_before_is_not_taken_for_what_was_overwritten(tmp_path, monkeypatch):
    def action():
        class Net(nn.Cell):
            def construct(self, x):
                return ops.neg(ops.reduce_sum(ops.mul(x, x)))

        Net()(Tensor(np.full(4, np.nan, np.float32)))

    found = evidence(tree(tmp_path, monkeypatch, "O0", action))
    assert {name.rpartition("/")[2].partition("-")[0]: one.verdict for (name, _), one in found.items()} == {
        "Mul": "ok", "ReduceSum": "ok", "Neg": "ok"
    }  # fmt: skip


def test_attributes_that_a_machine_ignores_are_left_out(tmp_path, monkeypatch):
    """ApplyMomentum of the CPU does not look at use_nesterov."""

    def action():
        net = nn.Dense(3, 2, has_bias=False)
        optimizer = nn.Momentum(net.trainable_params(), 0.5, 0.9, use_nesterov=True)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
        rng = np.random.default_rng(0)
        for _ in range(2):
            step(Tensor(rng.standard_normal((5, 3), np.float32)), Tensor(rng.standard_normal((5, 2), np.float32)))

    found = evidence(tree(tmp_path, monkeypatch, "CPU", action))
    verdicts = {one.verdict for key, one in found.items() if "Momentum" in key[0]}
    assert verdicts == {"ok", "skipped"}  # of the first step the old values are not in the dump
