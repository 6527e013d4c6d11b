"""Runs that nobody watches go through bound kernels: same results, clock and overflow flag as with tasks."""

import random

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair._result import Pick, ResultKernel, _At  # noqa: E402
from dumpsim.frontends.torchair._weights import Weights  # noqa: E402
from dumpsim.runtime.prepared import Prepared  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from dumpsim.world.context import RankContext, use  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

RUNS = 5


@pytest.fixture
def prepared(monkeypatch):
    """How many runs went without tasks."""
    seen = []
    collect = Prepared.collect
    monkeypatch.setattr(Prepared, "collect", lambda self: seen.append(self) or collect(self))
    return seen


def runs(function, inputs, *, tasks=False, between=lambda run: None, grad=False):
    """Results, clocks and overflow counts of some runs; `tasks`: somebody looks at every task."""
    torch._dynamo.reset()
    found = []
    with use(RankContext()), torch.set_grad_enabled(grad):
        session = Session(RunSettings(), environment={})
        Session.use(session)
        compiled = torch.compile(function, backend=get_npu_backend())
        for run in range(RUNS):
            between(run)
            if tasks:
                session.device.trace = lambda task: None
            result = compiled(*inputs[run])
            device = session.device
            tails = [stream.tail_ns for stream in device.streams]
            found.append((result, device.clock.now_ns, tails, device.status.count))
    return found


def check(function, inputs, prepared, **keywords):
    """Bound kernels give what tasks and eager torch give."""
    fast = runs(function, inputs, **keywords)
    assert prepared
    count = len(prepared)
    slow = runs(function, inputs, tasks=True, **keywords)
    assert len(prepared) == count
    for (ours, *state), (theirs, *other), arguments in zip(fast, slow, inputs, strict=True):
        assert state == other
        with torch.no_grad():
            want = function(*arguments)
        for one, two, three in zip(flat(ours), flat(theirs), flat(want), strict=True):
            assert one.dtype == three.dtype
            assert one.stride() == two.stride() == three.stride()
            assert torch.equal(one.nan_to_num(), two.nan_to_num())
            assert torch.equal(one.nan_to_num(), three.nan_to_num())


def flat(what):
    return list(what) if isinstance(what, (tuple, list)) else [what]


def some(*shape, seed=0):
    """New inputs for every run."""
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randn(*shape, generator=generator),) for _ in range(RUNS)]


def test_a_net(prepared):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4), nn.Softmax(-1)).eval()
    check(net, some(5, 40), prepared)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_halves(kind, prepared):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(40, 64), nn.SiLU(), nn.Linear(64, 4)).to(kind).eval()
    check(net, [(x.to(kind),) for (x,) in some(5, 40)], prepared)


def test_views_of_what_is_overwritten_are_not_read_later(prepared):
    """Memory of dead tensors is used again: a transposition whose source is gone has to be stored."""

    def function(x):
        a = x.exp()
        b = a.t()
        c = (x + 1).sigmoid()
        d = (c * 2).tanh() + c
        return (d.t() @ a).sin(), b.softmax(-1), (b[:, ::2].contiguous() + 1).sum(1), b.sum(0)

    check(function, some(64, 64), prepared)


def test_overflows_raise_the_flag(prepared):
    def function(x):
        return (x * 1e25) * 1e25, torch.where(x > 0, x, float("-inf")).softmax(-1), x * 1e30

    found = some(4, 8)
    check(function, found, prepared)
    with_flag = runs(function, found)
    assert with_flag[-1][-1] > with_flag[0][-1] > 0


def test_results_are_not_written_by_the_next_run(prepared):
    inputs = some(3, 4)
    results = [result for result, *_ in runs(lambda x: x * 2, inputs)]
    assert prepared
    assert all(torch.equal(result, x * 2) for result, (x,) in zip(results, inputs, strict=True))


def test_weights_that_change_or_move_are_seen(prepared):
    torch.manual_seed(0)
    net = nn.Linear(64, 64).eval()
    want = []

    def between(run):
        if run == 3:
            net.weight.mul_(2)
        if run == 4:
            net.weight.data = torch.ones(64, 64)
        want.append(net(inputs[run][0]))

    inputs = some(2, 64)
    found = runs(net, inputs, between=between)
    assert len(prepared) >= 2
    assert all(torch.equal(result, other) for (result, *_), other in zip(found, want, strict=True))


def test_training_steps(prepared):
    torch.manual_seed(0)
    nets = [nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 8)) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in nets]
    torch._dynamo.reset()
    with use(RankContext()):
        Session.use(Session(RunSettings(), environment={}))
        both = nets[0], torch.compile(nets[1], backend=get_npu_backend())
        for (x,) in some(6, 32):
            losses = []
            for net, optimizer in zip(both, optimizers, strict=True):
                optimizer.zero_grad()
                loss = functional.cross_entropy(net(x), torch.arange(6))
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
            assert torch.equal(*losses)
    assert len({id(one) for one in prepared}) >= 2  # forward and backward
    assert all(torch.equal(p, q) for p, q in zip(nets[0].parameters(), nets[1].parameters(), strict=True))


class Whole(nn.Module):
    """Linear layers without bias, whose weights the graph of the gradient takes transposed, as torch keeps them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(48, 64, bias=False), nn.Linear(64, 48, bias=False)

    def forward(self, x):
        return self.second(functional.silu(self.first(x))) @ self.second.weight


def test_gradients_of_transposed_weights(prepared):
    """They are read where the host has them, and follow weights that change or move."""
    torch.manual_seed(0)
    nets = [Whole(), Whole()]
    nets[1].load_state_dict(nets[0].state_dict())
    optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in nets]
    torch._dynamo.reset()
    gradients = []
    with use(RankContext()):
        Session.use(Session(RunSettings(), environment={}))
        both = nets[0], torch.compile(nets[1], backend=get_npu_backend())
        for run in range(9):
            if run == 6:
                for net in nets:
                    net.first.weight.data = torch.full((64, 48), 0.125)
            found = []
            for net, optimizer in zip(both, optimizers, strict=True):
                optimizer.zero_grad()
                net(torch.linspace(0, 1, 2 * 5 * 48).reshape(2, 5, 48)).pow(2).mean().backward()
                optimizer.step()
                found.append([p.grad for p in net.parameters()])
            gradients.append(found)
            assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    assert all(p.is_contiguous() for p in gradients[-1][1])
    assert len(prepared) > 9
    early, late = gradients[3][1], gradients[5][1]
    assert not torch.equal(early[0], late[0])  # what a run gave is not written by later ones
    assert all(torch.equal(p, q) for p, q in zip(nets[0].parameters(), nets[1].parameters(), strict=True))


def test_results_that_are_moved_numbers(prepared):
    """A transposition is a result, twice a result, an operand too, or of memory that is used again."""

    def function(x):
        a = x @ x
        b = (a + 1).t()
        c = (x @ a).t()
        return b, c, c, c @ x, a.cos().t()[1:], (x * 2).t().contiguous()

    check(function, some(40, 40), prepared)


def test_graphs_do_not_keep_what_was_weight(prepared):
    weights = Weights()
    weight = nn.Parameter(torch.ones(64, 64))
    assert weights.has(weight)
    view = weight.detach()[1:].t()
    assert weights.has(view)
    others = [nn.Parameter(torch.ones(1)) for _ in range(200)]
    assert all(weights.has(other) for other in others)
    assert weights.has(view)
    del weight, view, others
    assert not weights.has(torch.ones(64, 64).t())


def test_a_fault_or_a_listener_brings_the_tasks_back(prepared):
    with use(RankContext()), torch.no_grad():
        torch._dynamo.reset()
        session = Session(RunSettings(), environment={})
        Session.use(session)
        compiled = torch.compile(lambda x: x.exp() + 1, backend=get_npu_backend())
        x = torch.ones(4, 4)
        for _ in range(RUNS):
            compiled(x)
        count = len(prepared)
        assert count
        traced = []
        session.device.trace = traced.append
        assert torch.equal(compiled(x), x.exp() + 1)
        assert len(prepared) == count
        assert len(traced) >= 2


OPERATIONS = [
    lambda x, y: x + y,
    lambda x, y: x.t(),
    lambda x, y: x @ y.t(),
    lambda x, y: (x * y).exp().clamp(max=3),
    lambda x, y: x.sigmoid(),
    lambda x, y: torch.cat([x[:8], y[8:]]),
    lambda x, y: x[:, :1].expand(-1, 16) * y,
    lambda x, y: x.reshape(4, 4, 16).transpose(0, 1).reshape(16, 16),
    lambda x, y: x.chunk(2, 1)[1].repeat(1, 2),
    lambda x, y: x.softmax(-1),
    lambda x, y: x - y.mean(0, keepdim=True),
    lambda x, y: x.chunk(2, 1)[0].tanh() @ y.chunk(2, 0)[1],
]


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs(seed, prepared):
    draw = random.Random(seed)
    chosen = [(draw.choice(OPERATIONS), draw.random(), draw.random()) for _ in range(14)]

    def function(x):
        made = [x, x.cos()]
        for operation, first, second in chosen:
            made.append(operation(made[-1 - int(first * min(3, len(made)))], made[int(second * len(made))]))
        return tuple(made[-3:])

    check(function, some(16, 16, seed=seed), prepared)


def test_two_graphs_keep_apart(prepared):
    with use(RankContext()), torch.no_grad():
        torch._dynamo.reset()
        Session.use(Session(RunSettings(), environment={}))
        backend = get_npu_backend()
        one = torch.compile(lambda x: x.exp() @ x, backend=backend)
        two = torch.compile(lambda x: (x + 1) @ x.t(), backend=backend)
        for (x,) in some(32, 32):
            assert torch.equal(one(x), x.exp() @ x)
            assert torch.equal(two(x), (x + 1) @ x.t())
    assert len({id(one) for one in prepared}) == 2


def test_an_operand_is_read_from_a_view_if_the_result_is_the_same():
    """Any view will do if strides do not matter; else the view must have those of eager torch."""
    memory = [torch.zeros(3, 4), torch.zeros(3, 4)]
    rows, turned = torch.arange(24.0).reshape(6, 4)[3:], torch.arange(12.0).reshape(4, 3).t()
    sample = torch.empty(3, 4, device="meta")
    for free, strides, view, is_read in [
        (True, None, turned, False), (False, None, turned, True), (False, None, rows, False),
        (False, (4, 1), rows, False), (False, (4, 1), turned, True), (False, (1, 3), turned, False),
    ]:  # fmt: skip
        arguments = _At(0, strides, free), _At(1)
        kernel = ResultKernel(torch.ops.aten.sub.Tensor, arguments, {}, [Pick(0)], [sample], [])
        call, read, writes = kernel.bind(memory, {0: view}, None)
        assert (read, writes) == ({0, 1} if is_read else {1}, False)
        memory[0].copy_(view)  # the kernel that makes the view runs only if its result is read
        assert torch.equal(call(), view)
        memory[0].zero_()
        assert torch.equal(call(), torch.zeros(3, 4) if is_read else view)
