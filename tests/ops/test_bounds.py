"""Indices out of range: what the CPU says (texts of MindSpore 2.10), what the GPU leaves out, what stops an AI Core."""

import numpy as np
import pytest

from dumpsim.core.errors import DeviceError
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from dumpsim.ops.bounds import along, rows, vectors
from tests.dumpproto import messages
from tests.inprocess import dump, fresh

P = ops.operations
X = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
U = np.full((2, 3), 100, np.float32)
FAILED = "Launch kernel failed, name:Default/{}-op0"

# operator, call, indices, what the CPU raises and says, whether the GPU raises too
CASES = [
    (
        "Gather",
        lambda t, x, i, u: ops.gather(x, i, 0),
        [1, 4],
        RuntimeError,
        "For 'Gather', the 'input_indices' should be in the range [0, 4), but got 4, error_code[58]",
        True,
    ),
    (
        "Gather",
        lambda t, x, i, u: ops.gather(x, i, 0),
        [1, -5],
        RuntimeError,
        "For 'Gather', the 'input_indices' should be in the range [0, 4), but got -1, error_code[58]",
        True,
    ),
    (
        "GatherD",
        lambda t, x, i, u: ops.gather_elements(x, 0, i),
        [[1, 4], [0, 0]],
        RuntimeError,
        "For 'GatherD', the value of 'index' must be in [-4, 4), but got: 4",
        True,
    ),
    (
        "GatherNd",
        lambda t, x, i, u: ops.gather_nd(x, i),
        [[1], [-1]],
        RuntimeError,
        "For 'GatherNd', the indices[1]: [const vector]{-1}, does not index into input_shape: [const vector]{4, 3}.",
        True,
    ),
    (
        "ScatterUpdate",
        lambda t, x, i, u: ops.scatter_update(t, i, u),
        [1, 4],
        RuntimeError,
        "For 'ScatterUpdate', the value of indices should be in [0, 4), but got '4' in indices.",
        False,
    ),
    (
        "ScatterNdUpdate",
        lambda t, x, i, u: P.ScatterNdUpdate()(t, i, u),
        [[1], [4]],
        ValueError,
        "For 'ScatterNdUpdate', indices out of range for input_x. Please check the indices which is [const vector]{4}",
        False,
    ),
    (
        "ScatterNdAdd",
        lambda t, x, i, u: ops.scatter_nd_add(t, i, u),
        [[1], [4]],
        RuntimeError,
        FAILED.format("ScatterNdAdd"),
        False,
    ),
    (
        "ScatterNd",
        lambda t, x, i, u: ops.scatter_nd(i, u, (4, 3)),
        [[1], [4]],
        RuntimeError,
        "For 'ScatterNd', each element in 'indices' should be smaller than the value of shape, but got 4 and got the "
        "value of shape 4",
        False,
    ),
    (
        "ScatterNd",
        lambda t, x, i, u: ops.scatter_nd(i, u, (4, 3)),
        [[1], [-1]],
        RuntimeError,
        "For 'ScatterNd', each element in 'indice' must be greater than or equal to 0, but got -1",
        False,
    ),
    (
        "TensorScatterUpdate",
        lambda t, x, i, u: P.TensorScatterUpdate()(x, i, u),
        [[1], [4]],
        ValueError,
        "For 'TensorScatterUpdate', indices out of range for input_x. Please check the indices which is "
        "[const vector]{4}",
        False,
    ),
    (
        "TensorScatterAdd",
        lambda t, x, i, u: ops.tensor_scatter_add(x, i, u),
        [[1], [4]],
        RuntimeError,
        "For 'TensorScatterAdd', the 1-th value of 'indices'[4] is out of range[4].",
        False,
    ),
    (
        "UnsortedSegmentSum",
        lambda t, x, i, u: ops.unsorted_segment_sum(u, i, 4),
        [1, 4],
        RuntimeError,
        FAILED.format("UnsortedSegmentSum"),
        False,
    ),
    ("IndexAdd", lambda t, x, i, u: P.IndexAdd(0)(t, i, u), [1, 4], RuntimeError, FAILED.format("IndexAdd"), False),
    (
        "TensorScatterElements",
        lambda t, x, i, u: ops.tensor_scatter_elements(x, i, u),
        [[1, 1, 4], [1, 1, 1]],
        None,
        None,
        False,
    ),
]
IDS = [f"{op}{n}" for n, (op, *_) in enumerate(CASES)]


class Net(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.table = Parameter(Tensor(X.copy()), name="table")

    def construct(self, x, index, updates):
        return self.function(self.table, x, index, updates)


def call(function, indices):
    return Net(function)(Tensor(X), Tensor(np.array(indices, np.int32)), Tensor(U)).asnumpy()


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize(("op", "function", "indices", "kind", "text", "gpu"), CASES, ids=IDS)
def test_the_cpu_refuses_with_the_vendors_text(monkeypatch, mode, op, function, indices, kind, text, gpu):
    with fresh("CPU", monkeypatch):
        ms.set_context(mode=mode)
        if kind is None:  # quirk: it leaves them out [observed 2.10]
            assert (call(function, indices)[1:2] == 100).any()
            return
        with pytest.raises(kind) as caught:
            call(function, indices)
    said = str(caught.value)
    if text is not None:
        assert said == (text if mode == ms.GRAPH_MODE else text.replace("-op0", ""))
    assert "is outside [" in caught.value.__notes__[0]
    assert f"Default/{op}" in caught.value.__notes__[0]


@pytest.mark.parametrize(("op", "function", "indices", "kind", "text", "gpu"), CASES, ids=IDS)
def test_scatters_of_the_gpu_leave_them_out(monkeypatch, op, function, indices, kind, text, gpu):
    with fresh("GPU", monkeypatch):
        if gpu:
            with pytest.raises(RuntimeError, match=op):
                call(function, indices)
            return
        found = call(function, indices)
    # the update of row 1 is there, the other one nowhere; negative numbers do not count from the end
    assert (found[1] != X[1]).all()
    rest = [0, 2, 3]
    begin = np.zeros_like(X) if op in ("ScatterNd", "UnsortedSegmentSum") else X
    np.testing.assert_array_equal(found[rest], begin[rest])


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize(("op", "function", "indices", "kind", "text", "gpu"), CASES, ids=IDS)
def test_an_ai_core_stops(tmp_path, monkeypatch, mode, op, function, indices, kind, text, gpu):
    """The script sees it at the next synchronisation, and CANN leaves its exception dump, without a fault plan."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    with fresh("O0", monkeypatch) as session:
        ms.set_context(mode=mode)
        good = np.clip(indices, 0, 3)
        call(function, good)
        with pytest.raises(DeviceError, match=f"error code 507015. EZ9999: .*fault kernel_name=Default/{op}") as caught:
            call(function, indices)
        wrong = next(n for n in np.ravel(indices) if not 0 <= n < 4)
        assert f"index {wrong} at [" in caught.value.__notes__[0]
        with pytest.raises(DeviceError):  # the stream stays stopped
            session.device.synchronize()
    assert len(list(tmp_path.glob("extra-info/data-dump/0/exception_info.0.*"))) == 1


@pytest.mark.parametrize("level", ["O0", "O1"])
def test_mode_4_saves_the_operands(tmp_path, monkeypatch, level):
    def steps():
        net = Net(lambda t, x, i, u: ops.exp(ops.gather(ops.relu(x), i, 0)))
        for last in (3, 4):
            net(Tensor(X), Tensor(np.array([1, last], np.int32)), Tensor(U)).asnumpy()

    left = dump(tmp_path, monkeypatch, level, steps, op_debug_mode=4, iteration="all")
    assert isinstance(left.error, DeviceError)
    found = {path.name.split(".")[5] + path.name.split(".")[6]: path for path in left.tensors()}
    assert left.types() == {"Gather"}
    assert {path.relative_to(left.root).parts[:4] for path in found.values()} == {("rank_0", "Net", "0", "1")}
    np.testing.assert_array_equal(np.load(found["input0"]), X)
    np.testing.assert_array_equal(np.load(found["input1"]), [1, 4])
    assert not [name for name in found if name.startswith("output")]


def test_the_full_exception_dump_of_a_gather(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    with fresh("O0", monkeypatch):
        ms.set_context(ascend_config={"exception_dump": "1"})
        with pytest.raises(DeviceError):
            call(CASES[0][1], [1, 4])
    (path,) = tmp_path.glob("extra-info/data-dump/0/Gather.*")
    raw = path.read_bytes()
    head = messages()["DumpData"].FromString(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert [list(entry.shape.dim) for entry in head.input][:2] == [[4, 3], [2]]
    payload = raw[8 + int.from_bytes(raw[:8], "little") :]
    assert payload.startswith(X.tobytes() + np.array([1, 4], np.int32).tobytes())


def test_one_hot_has_no_range(monkeypatch):
    """Every device gives a row of off values. [observed 2.10]"""
    for mode in ("CPU", "GPU", "O0"):
        with fresh(mode, monkeypatch):
            found = ops.one_hot(Tensor(np.array([0, 3, -1], np.int32)), 3, Tensor(1.0), Tensor(0.0)).asnumpy()
            np.testing.assert_array_equal(found, [[1, 0, 0], [0, 0, 0], [0, 0, 0]])


def test_indices_at_both_ends_come_before_those_beyond():
    x, low = np.zeros((4, 3)), np.array([[-4, 3], [0, 4], [-5, 0]])
    first = along(1, None, "{wrapped}", operand="indices")(x, low)
    assert (first.place, first.value, first.text) == ((1, 1), 4, "4")
    assert along(1, None, "{wrapped}", operand="indices")(x, low[2:]).text == "-1"
    found = rows(1, lambda x, index: 4, "")(x, np.array([0, 3, 4, -1]))
    assert (found.place, found.value) == ((2,), 4)
    found = rows(1, lambda x, index: 4, "")(x, np.array([0, 3, -1, 4]))
    assert (found.place, found.value) == ((2,), -1)
    assert rows(1, lambda x, index: 0, "")(x, np.zeros((0, 2), np.int32)) is None


def test_a_single_vector_is_the_first_row():
    texts = {"text": "{row} {value} {vector} {shape}", "negative": "below {row} {value}"}
    bounds = vectors(1, lambda x, index: x.shape, **texts)
    assert bounds(np.zeros((4, 3)), np.array([1, 3])).text == "0 3 1, 3 4, 3"
    assert bounds(np.zeros((4, 3)), np.array([-1, 3])).text == "below 0 -1"
    assert bounds(np.zeros((4, 0)), np.array([3, 0])).text == "0 0 3, 0 4, 0"
    assert bounds(np.zeros((4, 3)), np.array([[0, 0], [3, 3], [4, 0]])).text == "1 3 3, 3 4, 3"
