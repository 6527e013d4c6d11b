"""Products at indexed places, and complex numbers: right results are explained, wrong ones are not."""

import numpy as np
import pytest

import dumpsim
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from dumpsim.ops.table import find
from dumpsim.replay.kernel import PRODUCTS, Refusal, compute
from dumpsim.replay.measure import measure
from dumpsim.replay.slope import MACHINES, Machine
from tests.inprocess import dump

SINGLE = Machine(unit=2.0**-24, slopes=MACHINES["device"])


def complex64(seed, *shape):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def excess(op_type, operands, dumped, **attrs):
    definition = find(op_type)
    (computed,) = compute(definition, operands, {**definition.attrs, **attrs}, machine=SINGLE, real=True)
    return measure(dumped, computed, dumped.dtype.name, 2.0**-24).excess


def operands_of(op_type, *, repeats=40):
    """A row of nine and indices that name its places again and again, in the form that an operator takes."""
    rng = np.random.default_rng(11)
    index, values = rng.integers(0, 9, repeats).astype(np.int32), rng.uniform(0.5, 2, repeats).astype(np.float32)
    if op_type == "UnsortedSegmentProd":
        return values, index, 9
    return (
        rng.standard_normal(9).astype(np.float32),
        index if op_type in ("ScatterMul", "ScatterDiv") else index[:, None],
        values,
    )


def one_by_one(op_type, operands):
    """The result in single precision, the factors in another order."""
    first, index, last = operands
    segments = op_type == "UnsortedSegmentProd"
    out, values = (np.ones(9, np.float32), first) if segments else (first.copy(), last)
    for place, value in list(zip(index.reshape(-1), values, strict=True))[::-1]:
        out[place] = out[place] / value if op_type.endswith("Div") else out[place] * value
    return out


@pytest.mark.parametrize("op_type", PRODUCTS)
def test_products_in_any_order_are_explained_and_wrong_ones_are_not(op_type):
    operands = operands_of(op_type)
    right = one_by_one(op_type, operands)
    assert excess(op_type, operands, right) <= 1
    wrong = right.copy()
    wrong[4] *= np.float32(1.0001)
    assert excess(op_type, operands, wrong) > 1


def test_a_product_that_may_leave_the_range_in_some_order_is_not_judged():
    index, values = np.zeros((3, 1), np.int32), np.float32([1e30, 1e30, 1e-30])
    x = np.float32([1, 2])
    for made in (np.float32([1e30, 2]), np.float32([np.inf, 2])):
        assert excess("TensorScatterMul", (x, index, values), made) <= 1
    assert excess("TensorScatterMul", (x, index, values), np.float32([1e30, 2.001])) > 1


def test_a_quotient_that_may_leave_the_range_in_some_order_is_not_judged():
    """Small divisors first overflow, large ones first underflow; the quotient by all of them is in the range."""
    for x, divisors in ((1e25, [1e-20, 1e20]), (1e-25, [1e20, 1e-20])):
        index, values, x = np.zeros((2, 1), np.int32), np.float32(divisors), np.float32([x])
        assert excess("TensorScatterDiv", (x, index, values), x * np.float32(1.5)) <= 1
    for x, divisors in ((1e15, [1e-20, 1e20]), (1e-15, [1e20, 1e-20])):
        index, values, x = np.zeros((2, 1), np.int32), np.float32(divisors), np.float32([x])
        assert excess("TensorScatterDiv", (x, index, values), x * np.float32(1.5)) > 1


def test_products_of_a_dump_are_recomputed(tmp_path, monkeypatch):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = Parameter(Tensor(np.linspace(1, 2, 5, dtype=np.float32)), name="p")
            self.index, self.by = Tensor(np.int32([1, 3, 1])), Tensor(np.float32([0.9, 1.1, 1.2]))
            self.scatter, self.segment = ops.ScatterMul(), ops.UnsortedSegmentProd()

        def construct(self, x):
            y = self.scatter(self.p, self.index, self.by)
            return self.segment(x * y, Tensor(np.int32([0, 1, 1, 0, 1])), 2)

    def train():
        net = Net()
        for step in range(2):
            net(Tensor(np.arange(1, 6, dtype=np.float32) + step))

    run = dump(tmp_path, monkeypatch, "CPU", train, iteration="all", settings={"mindspore": "2.10"})
    assert run.error is None
    verdicts = {(row.op_type, row.iteration): row.verdict for row in dumpsim.replay(run.root)}
    assert verdicts["UnsortedSegmentProd", 0] == verdicts["UnsortedSegmentProd", 1] == "ok"
    # what the first step overwrote is in no file; the second step began with what the first one left
    assert (verdicts["ScatterMul", 0], verdicts["ScatterMul", 1]) == ("skipped", "ok")


A, B = complex64(1, 6, 5), complex64(2, 6, 5)
COMPLEX = {
    "Add": ((A, B), {}),
    "Sub": ((A, B), {}),
    "Mul": ((A, B), {}),
    "RealDiv": ((A, B), {}),
    "Neg": ((A,), {}),
    "Square": ((A,), {}),
    "Reciprocal": ((A,), {}),
    "ReduceSum": ((A, (0,), False, False), {}),
    "ReduceMean": ((A, (1,), False), {}),
    "AddN": (((A, B, A),), {}),
    "MatMul": ((A, B, False, True), {}),
    "BatchMatMul": ((A[None], B[None], True, False), {}),
    "CumSum": ((A, 0, False, False), {}),
    "Transpose": ((A, (1, 0)), {}),
    "Concat": (((A, B), 1), {}),
    "Tile": ((A, (2, 1)), {}),
    "Pad": ((A,), {"paddings": ((1, 0), (0, 1))}),
    "GatherNd": ((A, np.int32([[1, 2], [3, 4]])), {}),
    "Select": ((np.abs(A) > 1, A, B), {}),
    "TensorScatterAdd": ((A, np.int32([[1], [1]]), B[:2]), {}),
}


@pytest.mark.parametrize("op_type", COMPLEX)
def test_complex_numbers_are_judged_by_their_parts(op_type):
    """Real 2.10's results of these operators on a CPU lie within the bounds too."""
    operands, attrs = COMPLEX[op_type]
    definition = find(op_type)
    right = np.array(definition.kernel(*operands, **{**definition.attrs, **attrs}))
    assert right.dtype == np.complex64
    assert excess(op_type, operands, right, **attrs) <= 1
    at = int(np.argmax(np.abs(right)))
    for change in (1.001, 1.001j):
        wrong = right.copy()
        wrong.reshape(-1)[at] += wrong.reshape(-1)[at] * np.complex64(change) / 1000
        assert excess(op_type, operands, wrong, **attrs) > 1


def test_functions_of_complex_numbers_are_refused_by_name():
    with pytest.raises(Refusal, match="no rule bounds the rounding errors of Tanh for complex numbers"):
        excess("Tanh", (A,), A)


def test_a_dump_with_complex_numbers(tmp_path):
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    stamp = 1_700_000_000_000_000
    made = (A * B).astype(np.complex64)
    wrong = made.copy()
    wrong[2, 3] += np.complex64(0.01j)
    for number, result in enumerate((made, wrong)):
        for io, slot, value in (("input", 0, A), ("input", 1, B), ("output", 0, result)):
            stamp += 1
            np.save(place / f"Mul.Default_Mul-op{number}.0.0.{stamp}.{io}.{slot}.DefaultFormat.npy", value)
    found = {row.op_name: (row.verdict, row.reason) for row in dumpsim.replay(tmp_path)}
    assert found == {"Default_Mul-op0": ("ok", ""), "Default_Mul-op1": ("suspect", "output.0[2, 3]")}
