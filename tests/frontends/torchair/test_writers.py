"""Operators that write their result where it lies give the bits of those that make it."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.frontends.torchair._writers import writer  # noqa: E402

pytestmark = pytest.mark.torch

aten = torch.ops.aten


def numbers(*shape, kind=torch.float32):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator).to(kind)


A, B = numbers(33, 47), numbers(47, 29)
SAME = numbers(33, 47).abs() + 0.5
BATCH = numbers(2, 3, 17, 47)
WRITTEN = [
    (aten.mm.default, (A, B), {}),
    (aten.mm.default, (A, numbers(29, 47).t()), {}),
    (aten.mm.default, (numbers(47, 33).t(), B), {}),
    (aten.addmm.default, (numbers(29), A, B), {"beta": 2, "alpha": 3}),
    (aten.bmm.default, (numbers(3, 17, 47), numbers(3, 47, 5)), {}),
    (aten.matmul.default, (BATCH, numbers(47, 5)), {}),
    (aten.matmul.default, (BATCH, numbers(5, 47).t()), {}),
    (aten.matmul.default, (BATCH, numbers(2, 3, 47, 5)), {}),
    (aten.matmul.default, (BATCH, numbers(2, 3, 5, 47).transpose(2, 3)), {}),
    (aten.matmul.default, (BATCH.to(torch.bfloat16), numbers(47, 5, kind=torch.bfloat16)), {}),
    (aten.add.Tensor, (A, SAME), {"alpha": 0.3}),
    (aten.add.Tensor, (A, numbers(47)), {}),
    (aten.mul.Tensor, (A, 0.1), {}),
    (aten.div.Tensor, (A, SAME), {}),
    (aten.sub.Tensor, (A, SAME), {}),
    (aten.where.self, (A > 0, A, SAME), {}),
    (aten.cat.default, ([A, SAME], 1), {}),
    (aten.mean.dim, (A, [1], True), {}),
    (aten.sum.dim_IntList, (A, [0]), {}),
    (aten.pow.Tensor_Scalar, (A, 3), {}),
    (aten._softmax.default, (A, -1, False), {}),
    (aten._log_softmax.default, (A, 1, False), {}),
    (aten.silu_backward.default, (A, SAME), {}),
    (aten._softmax_backward_data.default, (A, SAME, 1, torch.float32), {}),
    *((getattr(aten, name).default, (SAME,), {}) for name in ("cos", "exp", "neg", "rsqrt", "sigmoid", "silu")),
    *((getattr(aten, name).default, (SAME,), {}) for name in ("sin", "sqrt", "tanh")),
]
MADE = [
    (aten.add.Tensor, (A.t().contiguous().t(), SAME.t().contiguous().t()), {}),  # the result would be transposed
    (aten.matmul.default, (BATCH.transpose(0, 1), numbers(47, 5)), {}),
    (aten.matmul.default, (BATCH, numbers(3, 47, 5)), {}),
    (aten.erf.default, (A,), {}),
    (aten.exp.default, (A[:0],), {}),
]


@pytest.mark.parametrize(("function", "arguments", "keywords"), WRITTEN, ids=lambda one: str(one)[:30])
def test_the_same_bits(function, arguments, keywords):
    want = function(*arguments, **keywords)
    out = torch.full(want.shape, float("nan"), dtype=want.dtype)
    place = out.data_ptr()
    call = writer(function, arguments, keywords, out)
    assert call is not None
    for _ in range(2):
        call()
        assert out.data_ptr() == place
        assert torch.equal(out, want)


@pytest.mark.parametrize(("function", "arguments", "keywords"), MADE, ids=lambda one: str(one)[:30])
def test_those_that_have_to_make_their_result(function, arguments, keywords):
    want = function(*arguments, **keywords)
    assert writer(function, arguments, keywords, torch.empty(want.shape)) is None


def test_a_result_in_the_memory_of_an_operand_is_made():
    room = torch.zeros(64)
    assert writer(aten.neg.default, (room[:16],), {}, room[8:24]) is None
    assert writer(aten.neg.default, (room[:16],), {}, room[16:32]) is not None
    assert writer(aten.cat.default, ([room[:4], room[8:12]],), {}, room[4:12]) is None


def test_other_number_types_and_shapes_are_made():
    assert writer(aten.add.Tensor, (A, SAME), {}, torch.empty(33, 47, dtype=torch.float64)) is None
    assert writer(aten.add.Tensor, (A, SAME), {}, torch.empty(33 * 47)) is None
    assert writer(aten.add.Tensor, (A, SAME), {}, torch.empty(47, 33).t()) is None
