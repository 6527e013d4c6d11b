"""Compiled graphs on the emulated device give the bits that eager torch gives."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch import nn  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

import dumpsim  # noqa: E402
from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.acl.dump import finalize_dump  # noqa: E402
from dumpsim.frontends.torchair._backend import get_compiler, get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair._dispatch import whole_operators  # noqa: E402
from dumpsim.frontends.torchair._lower import array_where  # noqa: E402
from dumpsim.frontends.torchair._state import state  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from dumpsim.world.context import RankContext, use  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def backend():
    torch._dynamo.reset()
    torch.manual_seed(2)
    with use(RankContext()):
        Session.use(Session(RunSettings(), environment={}))
        yield get_npu_backend()


def same(left, right):
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and left.stride() == right.stride() and torch.equal(left, right)
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def check(function, backend, *arguments):
    """Compiled and eager runs give the same, and write the same into their arguments."""
    own, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    torch.manual_seed(1)
    want = function(*theirs)
    torch.manual_seed(1)
    assert same(torch.compile(function, backend=backend)(*own), want)
    assert same(own, theirs)


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.line = nn.Linear(128, 5)
        self.last = nn.LayerNorm(5)

    def forward(self, x, labels):
        x = functional.max_pool2d(functional.silu(self.norm(self.conv(x))), 2)
        return functional.cross_entropy(self.last(self.line(x.flatten(1))), labels)


def trained(net, compile, *arguments):
    """Loss, gradients and buffers of a step."""
    net = copy.deepcopy(net).train()
    loss = compile(net)(*arguments)
    loss.backward()
    return loss.detach(), [p.grad for p in net.parameters()], list(net.buffers())


def test_views_writes_and_indices(backend):
    def function(x, counter, index, mask):
        counter.add_(1)
        y = x.clone()
        y[:, 1:3] = 0.5
        y[0].mul_(2)
        y = y.masked_fill(mask, -1.0)
        left, right = x.chunk(2, dim=1)
        order = torch.sort(y, dim=0, descending=True)[1]
        return x.t(), x[:, ::2], order, torch.topk(y, 2, dim=1)[1], torch.cat([left, right * 2], 1), x @ x.t(), x[index]

    mask = torch.tensor([[True, False, True, False]] * 3)
    with torch.no_grad():
        check(function, backend, torch.randn(3, 4), torch.zeros((), dtype=torch.int32), torch.tensor([0, 2]), mask)


def sums_of_products(b, x, y, halves, k):
    """Every share of both addends, with a matrix and with a vector, in single and in half precision."""
    return (
        *(torch.addmm(b, x, y, beta=n, alpha=m) for n in (0, 1, 0.5) for m in (0, 1, 2)),
        torch.addmm(b[0], x, y, beta=2),
        torch.addmm(halves, halves[:, :2], k, beta=2),
        torch.addmm(halves[0], halves[:, :2], k, beta=2, alpha=3),
    )


def deviations(x, q):
    """Corrections below, at and above the number of elements; one element and no dimension."""
    return (
        *(x.std(1, correction=n) for n in range(6)),
        x.std(1, correction=2, keepdim=True),
        *(x.std(dims) for dims in (0, 1, -1, (0, 1))),
        x.std((0, 1), keepdim=True),
        *(x[:, :1].std(1, correction=n, keepdim=keep) for n in (0, 1, 2) for keep in (False, True)),
        q.std((0, 2)),
        q.std(1, correction=3),
        q.std((0, 2), correction=8, keepdim=True),
    )


def choices(x, y, k, q):
    """Types with and without a kernel of their own, and axes other than the last one."""
    return (
        torch.minimum(x > 0, y > 0),
        torch.minimum(k.to(torch.uint8), k.to(torch.uint8) + 1),
        torch.minimum(k.to(torch.int16), k.to(torch.int16) - 1),
        torch.minimum(x, y),
        x * (x > 0),
        (x > 0) * (x < 1),
        k.half() * 2,
        k.half() * k.half(),
        *(torch.argmax(x, dim, keepdim=keep) for dim in (0, 1) for keep in (False, True)),
        x.argmax(),
        x.argmin(),
        x.argmin(0, keepdim=True),
        *(one for dim in range(3) for down in (False, True) for one in torch.sort(q, dim, descending=down)),
        *torch.sort(q[0, 0, 0]),
        *torch._foreach_floor([x, y]),
        *torch._foreach_ceil([x, y]),
        *torch._foreach_round([x]),
        *torch._foreach_trunc([x]),
        *torch._foreach_frac([x, y]),
    )


def parts(x, q):
    """Views, slices and ranges."""
    return (
        torch.as_strided(x, (2, 2), (1, 1)),
        torch.as_strided(x, (2, 3), (2, 2)),
        torch.as_strided(x, (3, 2), (2, 1), 1),
        *(q.permute(order) for order in ((2, 0, 1), (0, 2, 1), (0, 1, 2))),
        q[:1].permute(1, 0, 2),
        q[:, :1].permute(1, 2, 0),
        *(x[at] for at in (slice(-2, None), slice(1, 3), slice(1, 100), slice(2, 1), slice(None, None, 2))),
        x[:, 1:-1],
        torch.arange(5),
        torch.arange(1, 7),
        torch.arange(0.0, 2.0, 0.5),
        torch.arange(7, 1, -2, dtype=torch.float32),
        torch.arange(3, dtype=torch.int32),
    )


def assigned(x, y):
    """Slices that are written: at the start, at the end, beyond it, and the whole tensor."""
    found = [x.clone() for _ in range(6)]
    found[0][:, 1:3] = 0.5
    found[1][-2:] = y[-2:]
    found[2][:] = 1
    found[3][1:-1] = 2
    found[4][:, :1] = 3
    found[5][2:100] = 4
    return found


@pytest.mark.parametrize("function", [sums_of_products, deviations, choices, parts, assigned])
def test_arguments_that_no_record_of_the_converters_has(function, backend):
    given = {
        "b": torch.randn(4, 4), "x": torch.randn(4, 3), "y": torch.randn(3, 4), "q": torch.randn(2, 3, 4),
        "halves": torch.randn(4, 4).half(), "k": torch.randint(0, 9, (2, 4)).half(),
    }  # fmt: skip
    if function is not sums_of_products:
        given |= {"x": torch.randn(4, 4), "y": torch.randn(4, 4)}
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    arguments = [given[name] for name in names]
    with torch.no_grad():
        want = function(*copy.deepcopy(arguments))
        found = torch.compile(function, backend=backend)(*arguments)
    assert len(found) == len(want)
    for at, (ours, theirs) in enumerate(zip(found, want, strict=True)):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), at
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True, msg=f"result {at}")


@pytest.mark.parametrize("dynamic", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_gradients_of_slices(dynamic, backend):
    """With symbols, the step and the end of a slice meet extents that only the run knows."""

    def total(x, w):
        pieces = [
            x[1:3], x[:, 1:], x[::2], x[:, ::3], x[-2:], x[:, :-1], x[1:100], x[:, -3:-1], x[:1], x[1:3, 1:2], x[3:1],
            x[1::2], x[:, 1:5:3], x.flatten()[1:5], x.flatten()[::2], x[:],
        ]  # fmt: skip
        return sum((one * w[: one.numel()].reshape(one.shape)).sum() * n for n, one in enumerate(pieces, 1))

    w = torch.randn(40)
    compiled = torch.compile(total, backend=backend, dynamic=dynamic)
    for rows in (5, 6) if dynamic else (5,):
        x = torch.randn(rows, 6)
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        result = compiled(ours, w)
        result.backward()
        total(theirs, w).backward()
        assert torch.equal(result, total(x, w))
        assert torch.equal(ours.grad, theirs.grad)


def test_a_product_sees_the_strides_of_eager_torch_along_dimensions_of_extent_one(backend):
    """torch.matmul multiplies once or in a batch by those strides, which the capture has wrong after a view."""

    def function(x, weight):
        return torch.matmul(x.view(2, 4, 1, 8).transpose(1, 2).reshape(2, 1, 32), weight.t())

    with torch.no_grad():
        for _ in range(20):
            check(function, backend, torch.randn(8, 1, 8), torch.randn(32, 32))


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_number_types(kind, backend):
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1)).to(kind).eval()
    with torch.no_grad():
        check(net, backend, torch.randn(5, 8).to(kind))


def test_a_training_step(backend):
    net, image, labels = Image(), torch.randn(2, 3, 8, 8), torch.tensor([1, 2])
    want = trained(net, lambda one: one, image, labels)
    got = trained(net, lambda one: torch.compile(one, backend=backend), image, labels)
    assert same(got, want)
    assert [graph.name for graph in state().graphs] == ["graph_1", "graph_2"]


def test_what_the_real_converter_refuses_is_converted_and_said_once(backend, capsys):
    def function(x):
        return (
            x.prod(),
            x.amax(1),
            x.var(1),
            x.isnan(),
            torch.fmod(x, 0.5),
            x.roll(1),
            functional.softplus(x),
            x.amax(0),
        )

    with torch.no_grad():
        check(function, backend, torch.randn(2, 3))
    assert state().refused["aten.amax.default"] == 2
    assert capsys.readouterr().err.count("refuses aten.amax.default") == 1


ORDERS = [
    (lambda x: x.clone(memory_format=torch.channels_last), "clone.default have some unprocessed parameters or cases"),
    (lambda x: x.to(torch.float64, memory_format=torch.channels_last), "_to_copy.default input memory_format only"),
    (lambda x: torch.empty_like(x, memory_format=torch.channels_last).fill_(1) + x, "empty_like.default is only"),
]


@pytest.mark.parametrize(("function", "text"), ORDERS)
def test_orders_of_memory_are_refused_in_strict_mode(function, text, backend):
    x = torch.randn(1, 2, 3, 4)
    check(function, backend, x)
    torch._dynamo.reset()
    with use(RankContext()):
        Session.use(Session(RunSettings(overrides={"torchair": "strict"}, quiet=True), environment={}))
        with torch.no_grad(), pytest.raises(Exception, match=text):
            torch.compile(function, backend=get_npu_backend())(x)


def test_strict_refuses_with_the_real_text():
    torch._dynamo.reset()
    with use(RankContext()):
        Session.use(Session(RunSettings(overrides={"torchair": "strict"}), environment={}))
        backend = get_npu_backend()
        text = r"torch\.ops\.aten\.prod\.default ge_converter is not implemented!"
        with torch.no_grad(), pytest.raises(Exception, match=text):
            torch.compile(lambda x: x.prod(), backend=backend)(torch.ones(3))
        with torch.no_grad():
            torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
        assert [graph.name for graph in state().graphs] == ["graph_2"]  # the refused one used a number up


def test_a_new_shape_is_compiled_with_a_symbol(backend):
    net = nn.Linear(4, 4).eval()
    compiled = torch.compile(net, backend=backend)
    with torch.no_grad():
        for rows in (2, 5, 6, 5):
            x = torch.randn(rows, 4)
            assert torch.equal(compiled(x), net(x))
    assert next(graph.nodes[-1].inputs[0].output.shape[0] for graph in state().graphs) == 2
    assert len(state().graphs) == 2


def test_many_shapes_take_no_more_memory_than_a_few(backend):
    compiled = torch.compile(lambda x: x.exp() + 1, backend=backend, dynamic=True)
    used = []
    with torch.no_grad():
        for rows in range(2, 14):
            x = torch.randn(rows, 4)
            assert torch.equal(compiled(x), x.exp() + 1)
            used.append(state().session.device.memory.used)
    assert used[0] < used[7] == max(used)


def test_results_have_the_strides_of_eager_torch_along_extents_of_one(backend):
    with torch.no_grad():
        check(lambda x: (x + 1).t(), backend, torch.randn(4, 1))
        check(lambda x: (x + 1).transpose(0, 2), backend, torch.randn(1, 1, 5))


class Frozen(nn.Module):
    """Normalisations of which only a part is trained."""

    def __init__(self):
        super().__init__()
        self.line, self.batch, self.last = nn.Linear(6, 4), nn.BatchNorm1d(4), nn.LayerNorm(4)
        self.last.bias.requires_grad_(False)

    def forward(self, x):
        return self.last(self.batch(self.line(x)))


def test_gradients_of_a_part_of_a_normalisation(backend):
    net, x = Frozen(), torch.randn(5, 6)
    ours, theirs = copy.deepcopy(net), copy.deepcopy(net)
    for one, run in ((theirs, theirs), (ours, torch.compile(ours, backend=backend))):
        run(x).square().sum().backward()
        assert one.last.bias.grad is None
    assert same([p.grad for p in kept(ours)], [p.grad for p in kept(theirs)])


def test_gradients_of_a_batch_of_open_extents(backend):
    """Eager torch multiplies such a batch as batches of rows, whose number is a symbol."""

    def function(x, weight):
        return x.mT @ weight

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for rows in (8, 6):
        x, weight = torch.randn(2, 33, rows), torch.randn(33, 16)
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        for run, one in ((compiled, ours), (function, theirs)):
            made = run(one, weight)
            (made * torch.arange(made.numel()).reshape(made.shape).sin()).sum().backward()
        assert torch.equal(ours.grad, theirs.grad)


def test_the_compiler_of_one_graph(backend):
    """With and without a configuration, which may ask for a graph of torch instead of one of GE."""
    x = torch.randn(3, 4)
    plain = CompilerConfig()
    plain.mode = "reduce-overhead"
    for given, count in (((), 1), ((CompilerConfig(),), 2), ((plain,), 2)):
        torch._dynamo.reset()
        compiler = get_compiler(*given)
        with torch.no_grad():
            assert torch.equal(torch.compile(torch.exp, backend=aot_autograd(fw_compiler=compiler))(x), x.exp())
        assert len(state().graphs) == count


def test_products_of_a_capture_are_those_of_eager_torch():
    for left, right in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4,))):
        x, y = torch.randn(left), torch.randn(right)
        with whole_operators("npu"):
            made = torch.matmul(x, y)
        assert torch.equal(made, torch.matmul(x, y))


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x.conj(), lambda x: x.conj().imag, lambda x: x.mT.conj()])
def test_arrays_of_weights_have_the_elements_that_torch_reads(part):
    x = part(torch.randn(3, 4, dtype=torch.complex64))
    assert array_where(x).tolist() == x.tolist()


def models():
    import transformers as hf

    llama = hf.LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=50, max_position_embeddings=32,
    )  # fmt: skip
    bert = hf.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=60,
        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    vit = hf.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=8
    )
    gpt2 = hf.GPT2Config(
        n_embd=32, n_layer=2, n_head=4, vocab_size=50, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    words = {"input_ids": torch.randint(0, 50, (2, 6))}
    return {
        "llama": (lambda: hf.LlamaForCausalLM(llama), words, words["input_ids"]),
        "bert": (lambda: hf.BertForMaskedLM(bert), words, words["input_ids"]),
        "vit": (
            lambda: hf.ViTForImageClassification(vit),
            {"pixel_values": torch.randn(2, 3, 16, 16)},
            torch.tensor([0, 1]),
        ),
        "gpt2": (lambda: hf.GPT2LMHeadModel(gpt2), words, words["input_ids"]),
    }


@pytest.mark.dev
@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "bert", "vit", "gpt2"])
def test_a_model_of_transformers_runs_and_trains(name, backend):
    make, inputs, labels = models()[name]
    net = make().eval()
    with sdpa_kernel(SDPBackend.MATH):
        with torch.no_grad():
            assert torch.equal(torch.compile(net, backend=backend)(**inputs).logits, net(**inputs).logits)
        torch._dynamo.reset()
        other = copy.deepcopy(net).train()
        net.train()
        want = net(**inputs, labels=labels).loss
        got = torch.compile(other, backend=backend)(**inputs, labels=labels).loss
        want.backward()
        got.backward()
    assert torch.equal(got, want)
    pairs = [(p.grad, q.grad) for p, q in zip(net.parameters(), other.parameters(), strict=True) if p.grad is not None]
    assert all(torch.equal(theirs, ours) for theirs, ours in pairs)


@pytest.mark.dev
@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "bert", "vit", "gpt2"])
def test_a_step_of_a_model_of_transformers_is_dumped(name, tmp_path, monkeypatch):
    """Each operator of forward and backward has its file, results are eager's, and the dump has them."""
    monkeypatch.chdir(tmp_path)  # the options for GE are written there
    torch._dynamo.reset()
    torch.manual_seed(2)
    make, inputs, labels = models()[name]
    net = make().train()
    other = copy.deepcopy(net)
    with use(RankContext.from_environment()), sdpa_kernel(SDPBackend.MATH):
        Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))
        config = CompilerConfig()
        config.dump_config.enable_dump = True
        config.dump_config.dump_path = str(tmp_path)
        result = torch.compile(other, backend=get_npu_backend(compiler_config=config))(**inputs, labels=labels)
        result.loss.backward()
        made = [graph.name for graph in state().graphs]
        finalize_dump()
        want = net(**inputs, labels=labels)
        want.loss.backward()
    assert torch.equal(result.loss, want.loss)
    assert torch.equal(result.logits, want.logits)
    gradients = [p.grad for p in net.parameters() if p.grad is not None]
    assert all(torch.equal(a, b.grad) for a, b in zip(gradients, kept(other), strict=True))
    found = list(dumpsim.open(tmp_path / "worldsize1_global_rank0"))
    folders = {path.parent.parent.parent.name for path in tmp_path.rglob("*.*.*.*.*") if path.is_file()}
    assert folders == set(made)
    assert len(made) >= 2
    outputs = [entry for entry in found if entry.io == "output"]
    for one in (want.logits, gradients[0], gradients[-1]):
        number = one.detach().numpy().reshape(-1)
        assert any(
            entry.array().size == number.size and (entry.array().reshape(-1) == number).all() for entry in outputs
        )


def kept(net):
    """Parameters that have a gradient."""
    return [p for p in net.parameters() if p.grad is not None]


@pytest.mark.dev
@pytest.mark.slow
@pytest.mark.parametrize("sequences", [1, 2])
def test_three_steps_of_decoding_with_a_cache(sequences, backend):
    make, inputs, _ = models()["llama"]
    inputs = {"input_ids": inputs["input_ids"][:sequences]}
    net = make().eval()
    compiled = torch.compile(net, backend=backend)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        want, got = net(**inputs, use_cache=True), compiled(**inputs, use_cache=True)
        for _ in range(3):
            assert torch.equal(got.logits, want.logits)
            word = want.logits[:, -1:].argmax(-1)
            want = net(input_ids=word, past_key_values=want.past_key_values, use_cache=True)
            got = compiled(input_ids=word, past_key_values=got.past_key_values, use_cache=True)
        assert torch.equal(got.logits, want.logits)
    assert [graph.name for graph in state().graphs] == ["graph_1", "graph_2", "graph_3"]  # prefill, static, symbolic
