"""Which graphs a process makes: graph breaks, several models, new shapes, attention in one operator."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch.nn import functional  # noqa: E402

import dumpsim  # noqa: E402
from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.acl.dump import finalize_dump  # noqa: E402
from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair._state import state  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from dumpsim.world.context import RankContext, current, use  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def rank(tmp_path, monkeypatch):
    """A fresh process; gives what makes its back end."""
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    with use(context := RankContext.from_environment()):

        def backend(*, dump=False, **overrides):
            Session.use(Session(RunSettings(quiet=True, manifest=None, overrides=overrides), environment={}))
            config = CompilerConfig()
            config.dump_config.enable_dump = dump
            return get_npu_backend(compiler_config=config)

        yield backend
        finalize_dump()
        context.close()


def graphs():
    """Types of the operators of each graph, as GE is given them."""
    others = ("Data", "Const", "NetOutput")
    return {graph.name: [node.type for node in graph.nodes if node.type not in others] for graph in state().graphs}


def test_each_piece_between_graph_breaks_is_a_graph(rank, tmp_path):
    def function(x):
        y = x.exp()
        torch._dynamo.graph_break()
        if y.sum() > 0:  # depends on values: another break
            y = y + 1
        return y * 2

    x = torch.randn(3, 3)
    with torch.no_grad():
        compiled = torch.compile(function, backend=rank(dump=True))
        for _ in range(2):
            assert torch.equal(compiled(x), function(x))
    assert [name for name, _ in graphs().items()] == ["graph_1", "graph_2", "graph_3"]
    assert [types[0] for types in graphs().values()] == ["Exp", "Cast", "Add"]
    finalize_dump()
    found = {entry.op_name: entry.array() for entry in dumpsim.open(tmp_path / "worldsize1_global_rank0")}
    torch.testing.assert_close(torch.from_numpy(found["Exp"]), x.exp(), rtol=0, atol=0)
    names = {path.parent.parent.parent.name for path in tmp_path.rglob("*.*.*.*.*") if path.is_file()}
    assert names == {"graph_1", "graph_2", "graph_3"}


def test_sizes_that_values_decide_are_breaks(rank):
    def function(x):
        return x[x > 0].exp() * x.sum().item()

    with torch.no_grad():
        compiled = torch.compile(function, backend=rank())
        for _ in range(3):
            x = torch.randn(5, 3)
            assert torch.equal(compiled(x), function(x))
    assert not {kind for types in graphs().values() for kind in types} & {"NonZero", "MaskedSelect", "IndexByTensor"}


def test_a_model_that_breaks_everywhere_runs_and_the_missing_dump_is_said(rank, capsys):
    def function(x):
        for _ in range(3):
            x = x + 1
            torch._dynamo.graph_break()
        return x

    x = torch.ones(2)
    with torch.no_grad():
        compiled = torch.compile(function, backend=rank(dump=True))
        assert torch.equal(compiled(x), x + 3)
    assert not graphs()
    current().close()
    assert "torch.compile captured no graph" in capsys.readouterr().err


def test_a_dump_that_has_graphs_is_not_called_missing(rank, capsys):
    with torch.no_grad():
        torch.compile(lambda x: x + 1, backend=rank(dump=True))(torch.ones(2))
    finalize_dump()
    current().close()
    assert "captured no graph" not in capsys.readouterr().err


def test_models_of_a_process_share_numbers_and_device(rank, tmp_path):
    backend = rank(dump=True)
    one, two = torch.nn.Linear(3, 4).eval(), torch.nn.Conv1d(2, 3, 2).eval()
    x, y = torch.randn(2, 3), torch.randn(1, 2, 5)
    with torch.no_grad():
        first, second = torch.compile(one, backend=backend), torch.compile(two, backend=backend)
        for _ in range(3):
            assert torch.equal(first(x), one(x))
            assert torch.equal(second(y), two(y))
    assert list(graphs()) == ["graph_1", "graph_2"]
    finalize_dump()
    folders = {path.parent for path in tmp_path.rglob("*.*.*.*.*") if path.is_file()}
    assert sorted("/".join(path.parts[-3:]) for path in folders) == [
        f"graph_{model}/{model}/{run}" for model in (1, 2) for run in (0, 1, 2)
    ]


def test_new_shapes_are_compiled_static_then_symbolic(rank):
    def function(x):
        return (x @ x.t()).reshape(-1).softmax(0)

    with torch.no_grad():
        compiled = torch.compile(function, backend=rank())
        for rows in (2, 3, 4, 9, 3):
            x = torch.randn(rows, 7)  # another extent than the rows ever have
            assert torch.equal(compiled(x), function(x))
    made = state().graphs
    assert [graph.name for graph in made] == ["graph_1", "graph_2"]
    shapes = [[node.outputs[0].shape for node in graph.of_type("Data")] for graph in made]
    assert shapes[0] == [(2, 7)]
    assert any(isinstance(one, torch.SymInt) for shape in shapes[1] for one in shape)


def test_halves_of_an_open_extent(rank):
    """The size of the parts is an extent, too."""

    def function(x):
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    with torch.no_grad():
        compiled = torch.compile(function, backend=rank(), dynamic=True)
        for size in (8, 7):
            x = torch.randn(3, 5, size)
            assert torch.equal(compiled(x), function(x))


def test_arithmetic_of_extents_runs_as_in_eager_torch(rank):
    """Sums of extents, their quotients by whole numbers, and fractions of them in a gradient."""

    def function(x):
        y = functional.max_pool2d(x, 3, stride=2, padding=1)
        columns = torch.arange(y.shape[-1], dtype=y.dtype)
        return (y * columns).flatten(2).mean(2).std(0).sum() + x.std(-1).sum()

    compiled = torch.compile(function, backend=rank(), dynamic=True)
    for rows, columns in ((2, 9), (4, 7)):
        ours = torch.randn(rows, 2, 8, columns, requires_grad=True)
        theirs = ours.detach().clone().requires_grad_()
        result, want = compiled(ours), function(theirs)
        assert torch.equal(result, want)
        result.backward()
        want.backward()
        assert torch.equal(ours.grad, theirs.grad)
    assert {"ReduceSum", "FloorDiv", "Div"} <= {kind for types in graphs().values() for kind in types}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_attention_stays_one_operator_on_request(causal, grad, rank):
    torch.manual_seed(0)
    shape = 2, 4, 8, 16
    ours = [torch.randn(shape, requires_grad=grad) for _ in range(3)]
    theirs = [one.detach().clone().requires_grad_(grad) for one in ours]

    def function(q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    result = torch.compile(function, backend=rank(attention="fused"))(*ours)
    want = function(*theirs)
    assert torch.equal(result, want)
    assert next(iter(graphs().values()))[0] == "FlashAttentionScore"
    assert not {"BatchMatMul", "SoftmaxV2"} & {kind for types in graphs().values() for kind in types}
    if grad:
        result.square().sum().backward()
        want.square().sum().backward()
        assert all(torch.equal(one.grad, other.grad) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize(
    ("left", "right", "wanted", "kind"),
    [
        ((2, 3, 4), (4, 5), (True, True), "BatchMatMul"),
        ((4, 5), (5, 3), (False, True), "MatMul"),
        ((2, 1, 3, 4), (5, 4, 2), (True, False), "BatchMatMul"),
        ((4,), (4, 3), (True, True), "MatMul"),
    ],
)
def test_products_stay_whole_in_training(left, right, wanted, kind, rank):
    ours = [torch.randn(shape, requires_grad=one) for shape, one in zip((left, right), wanted, strict=True)]
    theirs = [one.detach().clone().requires_grad_(one.requires_grad) for one in ours]
    made = torch.compile(torch.matmul, backend=rank())(*ours)
    want = torch.matmul(*theirs)
    assert torch.equal(made, want)
    made.square().sum().backward()
    want.square().sum().backward()
    for one, other in zip(ours, theirs, strict=True):
        assert one.grad is other.grad is None or torch.equal(one.grad, other.grad)
    forward, backward = graphs().values()
    assert forward == [kind]
    inner = "BatchMatMul" if len(left) > 2 < len(right) else "MatMul"
    assert backward.count(inner) == sum(wanted)


def gradients_of(product, left, right, wanted):
    """A product and its gradients by those operands that need one."""
    operands = [one.clone().requires_grad_(grad) for one, grad in zip((left, right), wanted, strict=True)]
    made = product(*operands)
    (made * torch.arange(made.numel()).reshape(made.shape).sin()).sum().backward()
    return [made.detach(), *(one.grad for one in operands)]


def differs(backend, left, right, turned, wanted):
    """Whether a captured product or its gradients differ from eager torch's in any bit."""

    def product(left, right):
        left, right = (one.mT if turn else one for one, turn in zip((left, right), turned, strict=True))
        return left @ right

    want = gradients_of(product, left, right, wanted)
    torch._dynamo.reset()
    got = gradients_of(torch.compile(product, backend=backend), left, right, wanted)
    return [one is not other and not torch.equal(one, other) for one, other in zip(got, want, strict=True)]


@pytest.mark.parametrize(
    ("left", "right", "turned", "wanted"),
    [
        ((33, 8), (33, 33), (True, False), (True, True)),  # factors swapped
        ((3, 16), (8, 16), (False, True), (True, True)),
        ((1, 16), (1, 1), (True, False), (True, True)),
        ((2, 3, 8, 33), (2, 33), (False, True), (True, True)),  # a batch as one matrix
        ((33, 16), (2, 8, 33), (True, True), (True, True)),
        ((8, 33), (2, 3, 3, 33), (False, True), (False, True)),  # a batch of products
        ((2, 33, 8), (33, 16), (True, False), (True, False)),
        ((2, 33, 8), (33, 16), (True, False), (True, True)),  # one matrix in spite of its strides
        ((33, 8), (2, 16, 33), (True, True), (True, True)),
        ((2, 8), (1, 8, 33), (False, False), (True, False)),  # the batch is a view of one matrix
        ((33, 8), (33,), (True, False), (False, True)),  # a product with a vector
        ((2, 3, 33), (33,), (False, False), (True, True)),
        ((33,), (2, 33, 5), (False, False), (True, True)),
        ((1, 8, 33), (3, 33, 16), (False, False), (True, True)),  # a batch with a single matrix
        ((5, 16, 33), (1, 8, 33), (False, True), (True, True)),
        ((5, 3, 16), (1, 16, 33), (False, False), (True, False)),
        ((5, 2), (3, 1, 16, 2), (False, True), (True, False)),  # an extent of 1 beside transposed dimensions
        ((8,), (1, 8, 5), (False, False), (True, False)),
        ((2, 3, 3, 5), (3, 3, 33), (True, False), (True, False)),  # repeated matrices
    ],
)
def test_gradients_of_products_are_those_of_eager_torch(left, right, turned, wanted, rank):
    assert not any(differs(rank(), torch.randn(left), torch.randn(right), turned, wanted))


def test_products_for_a_single_matrix_are_added_up_after_both_gradients(rank):
    operands = [torch.randn(shape, requires_grad=True) for shape in ((1, 3, 4), (2, 4, 5))]
    torch.compile(torch.matmul, backend=rank())(*operands).sum().backward()
    _, backward = graphs().values()
    assert [kind for kind in backward if kind in ("BatchMatMul", "ReduceSum")] == ["BatchMatMul"] * 2 + ["ReduceSum"]


@pytest.mark.slow
def test_random_products_are_those_of_eager_torch(rank):
    random = np.random.default_rng(20261125)

    def batch(extents):
        count = random.integers(4)
        return [1 if random.random() < 0.3 else int(one) for one in extents[3 - count :]]

    for _ in range(60):
        rows, inner, columns = map(int, random.choice([1, 2, 3, 5, 8, 16, 33], 3))
        extents = random.integers(1, 4, 3)
        left, right = (*batch(extents), rows, inner), (*batch(extents), inner, columns)
        left, right = ((inner,) if random.random() < 0.1 else one for one in (left, right))
        wanted = [(True, True), (True, False), (False, True)][random.integers(3)]
        turned = [len(one) > 1 and random.random() < 0.5 for one in (left, right)]
        operands = [torch.randn(one) for one in (left, right)]
        operands = [one.mT.contiguous() if turn else one for one, turn in zip(operands, turned, strict=True)]
        assert not any(differs(rank(), *operands, turned, wanted)), (left, right, turned, wanted)


def test_attention_is_taken_apart_by_default(rank):
    q = torch.randn(1, 2, 4, 8)
    with torch.no_grad():
        torch.compile(lambda q: functional.scaled_dot_product_attention(q, q, q), backend=rank())(q)
    (types,) = graphs().values()
    assert "FlashAttentionScore" not in types
    assert types.count("BatchMatMul") == 2
