"""Dumps of runs whose tasks are known: the trees, manifests, clocks and overflows of runs that look at every task."""

import json

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch import nn  # noqa: E402

from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.acl.dump import finalize_dump  # noqa: E402
from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from dumpsim.runtime.kernel import Kernels  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from dumpsim.runtime.watched import WatchedBound  # noqa: E402
from dumpsim.world.context import RankContext, use  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

STEPS = 5


@pytest.fixture
def watched(monkeypatch):
    """How many runs knew their tasks."""
    seen = []
    results = WatchedBound.results
    monkeypatch.setattr(WatchedBound, "results", lambda self: seen.append(self) or results(self))
    return seen


def dumped(folder, function, inputs, *, train=False, between=lambda session, run: None, **settings):
    """The files that a dump of some steps leaves, what the steps returned, the clock and the overflows."""
    folder.mkdir()
    (folder / "dump").mkdir()
    torch._dynamo.reset()
    results = []
    with use(RankContext()), torch.set_grad_enabled(train):
        session = Session(RunSettings(quiet=True, manifest=str(folder / "manifest.json")), environment={})
        Session.use(session)
        config = CompilerConfig()
        values = {"enable_dump": True, "dump_mode": "all", "dump_path": str(folder / "dump"), **settings}
        for name, value in values.items():
            setattr(config.dump_config, name, value)
        compiled = torch.compile(function, backend=get_npu_backend(compiler_config=config))
        for run, x in enumerate(inputs):
            between(session, run)
            result = compiled(x)
            if train:
                result.sum().backward()
            results.append(result.detach().clone())
        finalize_dump()
        state = session.device.clock.now_ns, session.device.status.count
    found = {
        str(path.relative_to(folder)): path.read_bytes().replace(str(folder).encode(), b"")
        for path in folder.rglob("*")
        if path.is_file()
    }
    return found, results, state


def check(tmp_path, monkeypatch, watched, make, inputs, **keywords):
    """Runs that know their tasks leave what the others leave."""
    monkeypatch.chdir(tmp_path)
    ours, results, state = dumped(tmp_path / "known", make(), inputs, **keywords)
    count = len(watched)
    monkeypatch.setattr(Kernels, "watched", lambda *_: None)
    theirs, other, expected = dumped(tmp_path / "looked", make(), inputs, **keywords)
    assert count >= STEPS - 2
    assert len(watched) == count
    assert state == expected
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(results, other, strict=True))
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []
    return ours


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4), nn.Softmax(-1)).eval()


def some(*shape):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=generator) for _ in range(STEPS)]


@pytest.mark.parametrize("kind", ["tensor", "stats"])
@pytest.mark.parametrize("train", [False, True])
def test_a_net(tmp_path, monkeypatch, watched, kind, train):
    found = check(tmp_path, monkeypatch, watched, net, some(5, 40), train=train, dump_data=kind)
    assert (
        len(json.loads(found["manifest.json"])["files"]) > 20 * STEPS if kind == "tensor" else "manifest.json" in found
    )


def test_statistics_of_every_kind_of_number(tmp_path, monkeypatch, watched):
    """Types with and without a loop of their own, NaN and infinities, zeros below zero, no elements."""

    def function(x):
        huge = x * 1e38
        made = [huge * 10, (huge * 10) - (huge * 10), x > 0, (x * 100).to(torch.int8), (x * 1e6).to(torch.int64)]
        made += [x.half() / 3, x.to(torch.bfloat16) / 3, x.double().exp(), -(x * 0), x[:0] + 1]
        return sum(one.double().nan_to_num().sum() for one in made)

    check(tmp_path, monkeypatch, watched, lambda: function, some(5, 40), dump_data="stats")


def test_weights_that_change_in_place_are_dumped_anew(tmp_path, monkeypatch, watched):
    """Weights are read where torch has them."""
    nets = []

    def make():
        torch.manual_seed(0)
        nets.append(nn.Linear(64, 64).eval())
        return nets[-1]

    def change(session, run):
        nets[-1].weight.mul_(1.5)

    found = check(tmp_path, monkeypatch, watched, make, some(2, 64), between=change)
    weights = {data[-64 * 64 * 4 :] for name, data in found.items() if "/Data." in name and len(data) > 64 * 64 * 4}
    assert len(weights) == STEPS


def test_overflows_are_counted(tmp_path, monkeypatch, watched):
    found = check(tmp_path, monkeypatch, watched, lambda: lambda x: ((x * 1e25) * 1e25, x.relu())[0] + 1, some(4, 8))
    assert any(finding["kind"] == "overflow" for finding in json.loads(found["manifest.json"])["findings"])


def test_steps_that_are_not_dumped(tmp_path, monkeypatch, watched):
    found = check(tmp_path, monkeypatch, watched, net, some(5, 40), dump_step="1|4")
    assert {name.split("/")[-2] for name in found if name.startswith("dump/")} == {"1", "4"}


@pytest.mark.parametrize("settings", [{"dump_mode": "input"}, {"dump_mode": "output"}, {"dump_layer": "MatMul_1"}])
def test_a_part_of_the_tensors(tmp_path, monkeypatch, watched, settings):
    check(tmp_path, monkeypatch, watched, net, some(5, 40), **settings)
