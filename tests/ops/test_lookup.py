"""Rows of embedding tables; values and texts of MindSpore 2.10 on a CPU."""

import numpy as np
import pytest

from dumpsim.core.errors import DeviceError, UnsupportedError
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Tensor, nn, ops
from tests.inprocess import fresh

TABLE = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
ROWS = {n: TABLE[n].tolist() for n in range(4)}
ZEROS = [0, 0]


@pytest.fixture(params=["GRAPH", "PYNATIVE"])
def mode(request, monkeypatch):
    with fresh("CPU", monkeypatch):
        ms.set_context(mode=getattr(ms, f"{request.param}_MODE"))
        yield request.param


class Lookup(nn.Cell):
    def __init__(self, offset):
        super().__init__()
        self.lookup, self.offset = ops.EmbeddingLookup(), offset

    def construct(self, params, indices):
        return self.lookup(params, indices, self.offset)


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize(
    ("indices", "offset", "wanted"),
    [
        ([[5, 2], [8, 5]], 4, [[ROWS[1], ZEROS], [ZEROS, ROWS[1]]]),
        ([-1, -4, -5, 0, 3, 4], 0, [ZEROS, ZEROS, ZEROS, ROWS[0], ROWS[3], ZEROS]),
        ([1, 3, 4, 5, 9], 1, [ROWS[0], ROWS[2], ROWS[3], ZEROS, ZEROS]),
        ([1, 3, 4, 5, 9], -1, [ROWS[2], ZEROS, ZEROS, ZEROS, ZEROS]),
        ([2147483647, 1], -1, [ZEROS, ROWS[2]]),
    ],
)
def test_rows_that_do_not_exist_are_zeros(mode, kind, indices, offset, wanted):
    found = Lookup(offset)(Tensor(TABLE), Tensor(np.array(indices, kind)))
    np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize("kind", ["float16", "int32", "bool"])
def test_tables_have_any_number_type(mode, kind):
    found = Lookup(0)(Tensor(TABLE.astype(kind)), Tensor([1, 9], ms.int32)).asnumpy()
    assert found.dtype == kind
    np.testing.assert_array_equal(found, [TABLE[1].astype(kind), [0, 0]])


def test_a_table_of_one_axis_holds_numbers(mode):
    table = Tensor(np.arange(8, dtype=np.float32))
    assert Lookup(0)(table, Tensor([1, 9], ms.int32)).asnumpy().tolist() == [1, 0]


@pytest.mark.parametrize(
    ("table", "indices", "offset", "error", "text"),
    [
        ((2, 2, 2), np.int32([1]), 0, ValueError, "the dimension of params must be in [1,2], but got 3."),
        ((4, 2), np.int32(1), 0, ValueError, "the dimension of indices  must be greater than 0 , but got 0."),
        (
            (4, 2), np.int16([1]), 0, TypeError,
            "the input argument[indices] must be a type of {Tensor[Int32], Tensor[Int64]}, but got Tensor[Int16].",
        ),
        (
            (4, 2), np.int32([1]), 1.5, TypeError,
            "the input argument[offset] must be a type of {Int32, Int64}, but got Float32.",
        ),
        (
            (4, 2), np.int32([1]), True, TypeError,
            "the input argument[offset] must be a type of {Int32, Int64}, but got Bool.",
        ),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit(mode, table, indices, offset, error, text):
    with pytest.raises(error) as caught:
        Lookup(offset)(Tensor(np.zeros(table, np.float32)), Tensor(indices))
    assert str(caught.value) == f"For primitive[EmbeddingLookup], {text}"


def test_the_gradient_is_refused(mode):
    cell = nn.EmbeddingLookup(4, 2)
    with pytest.raises(UnsupportedError, match="EmbeddingLookup"):
        ms.value_and_grad(cell, None, cell.trainable_params())(Tensor([1, 3], ms.int32))


# -- the cell


def test_the_cell_looks_up_on_the_host(mode):
    cell = nn.EmbeddingLookup(4, 2, "ones")
    assert cell.embeddinglookup.attrs["primitive_target"] == "CPU"
    assert [(each.name, each.shape) for each in cell.get_parameters()] == [("embedding_table", (4, 2))]
    np.testing.assert_array_equal(cell(Tensor([[1, 2], [3, 7]], ms.int32)).asnumpy()[:, 1], [[1, 1], [0, 0]])


def test_the_gather_of_the_device_has_a_range_and_a_gradient(mode):
    cell = nn.EmbeddingLookup(4, 2, "ones", target="DEVICE", sparse=False)
    weights = Tensor(np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    total = ms.value_and_grad(lambda x: (cell(x) * weights).sum(), None, cell.trainable_params())
    value, (slope,) = total(Tensor([1, 1, 3], ms.int32))
    assert value == 21
    np.testing.assert_array_equal(slope.asnumpy(), [[0, 0], [4, 6], [0, 0], [5, 6]])
    with pytest.raises(RuntimeError, match=r"should be in the range \[0, 4\), but got 7, error_code\[58\]"):
        cell(Tensor([[1, 2], [3, 7]], ms.int32)).asnumpy()


def test_the_cpu_has_no_sparse_gather(mode):
    with pytest.raises(RuntimeError, match=r"Unsupported op \[SparseGatherV2\] on CPU"):
        nn.EmbeddingLookup(4, 2, target="DEVICE")(Tensor([1], ms.int32))


@pytest.mark.parametrize(("sparse", "op"), [(True, "SparseGatherV2"), (False, "Gather")])
def test_a_row_that_does_not_exist_stops_an_ai_core(tmp_path, monkeypatch, sparse, op):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    with fresh("O0", monkeypatch):
        cell = nn.EmbeddingLookup(4, 2, "ones", target="DEVICE", sparse=sparse)
        np.testing.assert_array_equal(cell(Tensor([0, 3], ms.int32)).asnumpy(), np.ones((2, 2)))
        with pytest.raises(DeviceError, match=f"/{op}-op") as caught:
            cell(Tensor([0, 4], ms.int32)).asnumpy()
        assert "index 4 at [1]" in caught.value.__notes__[0]


def test_an_ascend_looks_up_on_its_host_without_a_range(monkeypatch):
    with fresh("O0", monkeypatch):
        cell = nn.EmbeddingLookup(4, 2, "ones")
        np.testing.assert_array_equal(cell(Tensor([4, 3], ms.int32)).asnumpy(), [[0, 0], [1, 1]])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"target": "X"}, ValueError, "the 'target' must be str and must be in '['CPU', 'DEVICE']', but got 'X'."),
        (
            {"sparse": False}, ValueError,
            "'sparse' must be True when 'target' is \"CPU\", but got 'sparse': False and 'target': CPU",
        ),
        ({"sparse": 1}, TypeError, "the type of 'sparse' should be 'bool', but got type 'int'."),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit(arguments, error, text):
    with pytest.raises(error) as caught:
        nn.EmbeddingLookup(4, 2, **arguments)
    assert str(caught.value) == f"For 'EmbeddingLookup', {text}"


@pytest.mark.parametrize("name", ["max_norm", "manual_shapes"])
def test_settings_that_are_not_emulated_are_refused(name):
    with pytest.raises(UnsupportedError, match=name):
        nn.EmbeddingLookup(4, 2, **{name: 1.0})


def test_the_cache_of_older_releases_is_no_argument():
    with pytest.raises(TypeError, match="unexpected keyword argument 'vocab_cache_size'"):
        nn.EmbeddingLookup(4, 2, vocab_cache_size=2)
