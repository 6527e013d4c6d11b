"""Attention, weights of few bits, masks of dropout, the overflow register and collectives of one rank."""

import numpy as np
import pytest
from ops.evaluator import Builder, Value

import dumpsim.frontends.mindspore as ms
from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, context, nn, ops
from dumpsim.frontends.mindspore.communication import init
from dumpsim.ops.attention import LAYOUTS
from dumpsim.runtime.session import Session

RNG = np.random.RandomState(0)


@pytest.fixture
def machine():
    """Makes a process on a device."""

    def made(mode=ms.GRAPH_MODE, target="Ascend", chip=None, **environment):
        session = Session(RunSettings(quiet=True, chip=chip), environment=environment)
        Session.use(session)
        context.set_context(mode=mode, device_target=target)
        session.configure(target=target)
        return session

    return made


def value(array):
    array = np.asarray(array)
    return Value(TensorType(dtype=from_numpy(array.dtype), shape=array.shape), array)


def plain_attention(q, k, v, scale=1.0, shift=0.0, allowed=None, factors=1.0):
    """Attention written with loops over batch and head; (batch, heads, sequence, depth)."""
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for batch, head in np.ndindex(*q.shape[:2]):
        kv = head * k.shape[1] // q.shape[1]
        scores = (q[batch, head] @ k[batch, kv].T + shift) * scale
        if allowed is not None:
            scores = np.where(allowed, scores, -1e30)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        dropped = weights * (factors[batch, head] if isinstance(factors, np.ndarray) else factors)
        out[batch, head] = dropped @ v[batch, kv]
    return out


def laid_out(x, layout):
    batch, heads, sequence, depth = x.shape
    if layout == "BNSD":
        return x
    x = x.transpose(0, 2, 1, 3)
    if layout == "BSND":
        return x
    x = x.reshape(batch, sequence, heads * depth)
    return x.transpose(1, 0, 2) if layout == "SBH" else x


def flash(
    q, k, v, layout="BNSD", heads=4, keep=1.0, scale=1.0, mode=0, pre=2147483647, following=2147483647, **tensors
):
    extra = [tensors.get(name) for name in ("real_shift", "drop_mask", "padding_mask", "attn_mask")]
    operands = [value(laid_out(x.astype(np.float32), layout)) for x in (q, k, v)]
    operands += [None if x is None else value(x) for x in extra]
    number = LAYOUTS.index(layout)
    return Builder().emit(
        "FlashAttentionScore", *operands, None, None, None, heads, keep, scale, pre, following, 0, number, mode
    )


@pytest.mark.parametrize("layout", ["BSH", "BNSD", "SBH", "BSND"])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_attention_in_every_layout(layout, kv_heads):
    q, k, v = RNG.randn(2, 4, 3, 8), RNG.randn(2, kv_heads, 5, 8), RNG.randn(2, kv_heads, 5, 8)
    largest, total, nothing, out = flash(q, k, v, layout, scale=0.3).content
    np.testing.assert_allclose(out, laid_out(plain_attention(q, k, v, 0.3), layout), rtol=2e-5, atol=2e-5)
    assert largest.shape == total.shape == (2, 4, 3, 8)
    assert nothing.shape == (1,)
    assert (largest == largest[..., :1]).all()
    scores = np.einsum("bnsd,bnkd->bnsk", q, np.repeat(k, 4 // kv_heads, 1)) * 0.3
    np.testing.assert_allclose(largest[..., 0], scores.max(-1), rtol=1e-5)
    np.testing.assert_allclose(total[..., 0], np.exp(scores - scores.max(-1, keepdims=True)).sum(-1), rtol=1e-5)


ROWS, COLUMNS = np.arange(4)[:, None], np.arange(6)[None, :]


@pytest.mark.parametrize(
    ("mode", "allowed"),
    [(2, COLUMNS <= ROWS), (3, COLUMNS <= ROWS + 2), (4, (COLUMNS >= ROWS + 2 - 1) & (COLUMNS <= ROWS + 2 + 1))],
)
def test_sparse_modes(mode, allowed):
    q, k, v = RNG.randn(1, 4, 4, 8), RNG.randn(1, 4, 6, 8), RNG.randn(1, 4, 6, 8)
    out = flash(q, k, v, mode=mode, pre=1, following=1).content[3]
    np.testing.assert_allclose(out, plain_attention(q, k, v, allowed=allowed), rtol=2e-5, atol=2e-5)


def test_masks_shifts_and_rows_without_a_key():
    q, k, v = RNG.randn(1, 4, 4, 8), RNG.randn(1, 4, 6, 8), RNG.randn(1, 4, 6, 8)
    hidden = RNG.rand(4, 6) > 0.5
    hidden[:, 0] = False
    shift = RNG.randn(1, 1, 4, 6).astype(np.float32)
    out = flash(q, k, v, attn_mask=hidden, real_shift=shift).content[3]
    np.testing.assert_allclose(out, plain_attention(q, k, v, shift=shift[0, 0], allowed=~hidden), rtol=2e-5, atol=2e-5)
    hidden[2] = True
    assert (flash(q, k, v, attn_mask=hidden).content[3][:, :, 2] == 0).all()


def test_dropout_of_attention_takes_bits():
    q, k, v = RNG.randn(1, 4, 4, 8), RNG.randn(1, 4, 8, 8), RNG.randn(1, 4, 8, 8)
    kept = RNG.rand(1, 4, 4, 8) > 0.3
    mask = np.packbits(kept.reshape(-1), bitorder="little")
    out = flash(q, k, v, keep=0.7, drop_mask=mask).content[3]
    np.testing.assert_allclose(out, plain_attention(q, k, v, factors=kept / 0.7), rtol=2e-5, atol=2e-5)


def test_attention_refuses_what_it_does_not_do():
    q = RNG.randn(1, 4, 4, 8)
    with pytest.raises(UnsupportedError, match="sparse_mode 7"):
        flash(q, q, q, mode=7)
    with pytest.raises(ScriptValueError, match="'head_num' is 3"):
        flash(q, q, q, heads=3)
    with pytest.raises(ScriptValueError, match="keep_prob"):
        flash(q, q, q, keep=0.0)


class Attention(nn.Cell):
    def construct(self, q, k):
        return ops.flash_attention_score(q, k, k, 2, input_layout="BSH", scalar_value=0.5)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_attention_and_its_gradient_in_scripts(machine, mode):
    machine(mode)
    q, k = RNG.randn(2, 3, 8).astype(np.float16), RNG.randn(2, 5, 8).astype(np.float16)

    def split(x):
        return x.astype(np.float64).reshape(2, -1, 2, 4).transpose(0, 2, 1, 3)

    expected = laid_out(plain_attention(split(q), split(k), split(k), 0.5), "BSH")
    out = Attention()(Tensor(q), Tensor(k))
    assert out.dtype == ms.float16
    np.testing.assert_allclose(out.asnumpy().astype(np.float64), expected, atol=3e-3)
    dq, dk = ms.grad(Attention(), grad_position=(0, 1))(Tensor(q), Tensor(k))
    step = 1e-4
    for gradient, at in ((dq, 0), (dk, 1)):
        for place in [(0, 1, 2), (1, 0, 7), (1, 2, 0)]:
            moved = [q.astype(np.float64), k.astype(np.float64)]
            moved[at][place] += step
            above = plain_attention(split_wide(moved[0]), split_wide(moved[1]), split_wide(moved[1]), 0.5).sum()
            moved[at][place] -= 2 * step
            below = plain_attention(split_wide(moved[0]), split_wide(moved[1]), split_wide(moved[1]), 0.5).sum()
            assert float(gradient.asnumpy()[place]) == pytest.approx((above - below) / (2 * step), abs=5e-3)


def split_wide(x):
    return x.reshape(2, -1, 2, 4).transpose(0, 2, 1, 3)


def test_attention_has_no_kernel_on_the_cpu(machine):
    machine(target="CPU")
    q = Tensor(RNG.randn(2, 3, 8).astype(np.float16))
    with pytest.raises(RuntimeError, match=r"Unsupported op \[FlashAttentionScore\] on CPU"):
        Attention()(q, q)


@pytest.mark.parametrize("group", [0, 32])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bits", [8, 4])
def test_quantised_weights(machine, group, transposed, bits):
    machine(ms.PYNATIVE_MODE)
    x = RNG.randint(-3, 4, (2, 64)).astype(np.float16)
    weight = RNG.randint(-8, 8, (64, 6)).astype(np.int8)
    shape = (2, 6) if group else (6,)
    scale, offset = RNG.randint(1, 3, shape), RNG.randint(-2, 3, shape)
    spread = (lambda t: np.repeat(t, 32, 0)) if group else (lambda t: t)
    expected = x.astype(np.float64) @ ((weight + spread(offset)) * spread(scale))
    stored, factors = (weight.T, [scale.T, offset.T]) if transposed else (weight, [scale, offset])
    stored = np.ascontiguousarray(stored)
    if bits == 4:
        pairs = (stored[:, ::2] & 15) | (stored[:, 1::2] << 4)
        operand = Tensor(pairs.astype(np.int8), ms.qint4x2) if hasattr(ms, "qint4x2") else None
        assert operand is not None
    else:
        operand = Tensor(stored)
    out = ops.weight_quant_batch_matmul(
        Tensor(x), operand, *(Tensor(np.ascontiguousarray(t).astype(np.float16)) for t in factors),
        transpose_weight=transposed, antiquant_group_size=group,
    )  # fmt: skip
    np.testing.assert_array_equal(out.asnumpy(), expected.astype(np.float16))


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_masks_of_dropout_are_bits(p):
    x, seed, offset = RNG.randn(7, 50).astype(np.float32), value(np.int64(3)), value(np.int64(4))
    out = Builder().emit("DropoutExt", value(x), p, seed, offset)
    result, mask = out.content
    assert mask.dtype == np.uint8
    assert mask.shape == (48,)  # 350 bits in blocks of 128
    kept = np.unpackbits(mask, bitorder="little")[:350].reshape(7, 50).astype(bool)
    np.testing.assert_allclose(result, np.where(kept, x / max(1 - p, 1e-9), 0), rtol=1e-6)
    assert abs(kept.mean() - (1 - p)) < 0.1
    pair = Builder().emit("DropoutGenMaskExt", (7, 50), p, seed, offset, from_numpy(np.dtype("float32")))
    np.testing.assert_array_equal(pair.content, mask)
    again = Builder().emit("DropoutDoMaskExt", value(x), value(mask), p)
    np.testing.assert_array_equal(again.content, result)
    slope = Builder().emit("DropoutGradExt", value(np.ones_like(x)), value(mask), p)
    np.testing.assert_allclose(slope.content, np.where(kept, 1 / max(1 - p, 1e-9), 0), rtol=1e-6)


class Status(nn.Cell):
    """The sample of MindSpore's page on the status operators, version 2."""

    def __init__(self):
        super().__init__()
        self.clear = ops.NPUClearFloatStatusV2()
        self.get = ops.NPUGetFloatStatusV2()
        self.zero = Tensor([0], ms.int32)

    def construct(self, x, words):
        words = self.clear(words)
        x = ops.depend(x, words)
        result = x - (-x)
        words = ops.depend(words, result)
        return self.get(words), result


class OldStatus(nn.Cell):
    """Version 1: the register goes into what NPUAllocFloatStatus gave."""

    def __init__(self):
        super().__init__()
        self.alloc = ops.NPUAllocFloatStatus()
        self.clear = ops.NPUClearFloatStatus()
        self.get = ops.NPUGetFloatStatus()

    def construct(self, x):
        words = self.alloc()
        cleared = self.clear(words)
        x = ops.depend(x, cleared)
        result = x - (-x)
        words = ops.depend(words, result)
        read = self.get(words)
        words = ops.depend(words, read)
        return words, result


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize(("chip", "largest"), [("910A", 65504.0), ("910B", np.inf)])
def test_the_overflow_register(machine, mode, chip, largest):
    machine(mode, chip=chip)
    words = Tensor(np.zeros(8, np.int32))
    for number, overflows in ((65504, True), (10, False), (65504, True)):
        x = Tensor(np.full((2, 3), number, np.float16))
        status, result = Status()(x, words)
        assert bool(status.asnumpy().sum() > 0) is overflows
        assert result.asnumpy()[0, 0] == (largest if overflows else 20)
        old, _ = OldStatus()(x)
        assert old.asnumpy().dtype == np.float32
        assert bool(old.asnumpy().sum() > 0) is overflows


@pytest.mark.parametrize(("content", "found"), [([1.0, 2.0], False), ([1.0, np.inf], True), ([np.nan, 0.0], True)])
def test_all_finite_tells_of_overflow(content, found):
    tensors = (value(np.float32([1])), value(np.float32(content)))
    assert Builder().emit("AllFinite", tensors).content.tolist() == [found]
    assert Builder().emit("FloatStatus", tensors[1]).content.tolist() == [float(found)]


class Collectives(nn.Cell):
    def __init__(self):
        super().__init__()
        self.reduce, self.gather = ops.AllReduce(), ops.AllGather()
        self.scatter, self.broadcast = ops.ReduceScatter("sum"), ops.Broadcast(0)

    def construct(self, x):
        (y,) = self.broadcast((x,))
        return self.reduce(x * 2) + self.gather(x) + self.scatter(x) + y


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_collectives_of_one_rank(machine, mode):
    machine(mode)
    init()
    x = RNG.randn(4, 3).astype(np.float32)
    np.testing.assert_allclose(Collectives()(Tensor(x)).asnumpy(), 5 * x, rtol=1e-6)


def test_collectives_need_a_world_and_a_group(machine):
    machine()
    x = Tensor(np.ones(2, np.float32))
    with pytest.raises(RuntimeError, match="has not been inited"):
        ops.AllReduce()(x)
    init()
    with pytest.raises(RuntimeError, match="The group nobody does not exist"):
        ops.AllReduce(group="nobody")(x)
    with pytest.raises(TypeError, match="the 'op' must be str, but got int"):
        ops.AllReduce(1)
