"""API dump of cells: against a dump of the real package, and what it promises beyond that."""

import contextlib
import copy
import dataclasses
import json
import math
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim import migrator
from dumpsim.analysis.apicompare.compare import api_dump_compare
from dumpsim.codecs.apidump import read_info, read_stack
from dumpsim.core.errors import ScriptRuntimeError, UnsupportedError
from dumpsim.frontends.apidump.mindspore.calls import listed_class, listed_names
from dumpsim.frontends.apidump.mindspore.session import CellSession
from dumpsim.frontends.apidump.selection import Request
from dumpsim.frontends.mindspore import _listener as listener
from dumpsim.frontends.mindspore import mint, nn, ops

ROOT = Path(__file__).parents[3]
X01 = ROOT / "fixtures" / "apidump" / "x01_torch_vs_ms"
FRAMEWORK = "mindspore_api_dump"


@pytest.fixture(autouse=True)
def op_by_op():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    yield
    assert listener.listeners() == ()


class Net(nn.Cell):
    """A listed cell, a listed function of operators, methods; dropout on the way."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)
        self.drop = nn.Dropout(p=0.5)
        self.blocks = nn.SequentialCell(nn.Dense(3, 3), nn.ReLU())

    def construct(self, x):
        x = self.drop(self.fc(x))
        y = self.blocks(x) + ops.softmax(x, -1)
        return ops.dropout(y, 0.5).sum()


def tensor(*shape, seed=0):
    return ms.Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def infos(path):
    return list(read_info(path / "rank0" / f"{FRAMEWORK}_info.pkl"))


def names(path):
    return [record.name for record in infos(path)]


def calls(path):
    """Calls in the order of the stack file."""
    stacks = read_stack(path / "rank0" / f"{FRAMEWORK}_stack.json")
    return [key.removesuffix("_forward_stack_info") for key in stacks]


def dumped(path, run, net=None, *, exact=False, backward=False, coverage="listed", **request):
    """Start, run, stop; the session is closed and `skipped` of it is returned."""
    cell = Net().set_train() if net is None else net
    with CellSession(cell, path, retain_backward=backward, exact=exact, coverage=coverage) as session:
        session.start(Request.checked(**{**STARTS, **request}))
        run(cell)
        session.stop()
    return session.skipped


STARTS = {"mode": "all", "scope": None, "dump_type": "all", "filter_data": True, "filter_stack": True}


# -- the real package's dump of the same script


@pytest.fixture(scope="module")
def x01(tmp_path_factory):
    folder = tmp_path_factory.mktemp("x01")
    script = folder / "x01_ms.py"
    shutil.copyfile(X01 / "x01_ms.txt", script)
    command = [sys.executable, "-m", "dumpsim", "run", "--manifest", "none", str(script), str(X01 / "w.npz")]
    found = subprocess.run([*command, str(folder / "out")], capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 0, found.stderr
    return folder


def test_the_records_are_those_of_the_real_package(x01):
    """Names, order, types and shapes are equal, numbers within the rounding of two machines."""
    ours, theirs = infos(x01 / "out"), infos(X01 / "ms")
    assert [(r.name, r.dtype, r.shape) for r in ours] == [(r.name, r.dtype, r.shape) for r in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert (one.max, one.min, one.mean) == pytest.approx((other.max, other.min, other.mean), abs=1e-5)


def test_the_lines_are_spelt_as_the_real_package_spells_them(x01):
    """Everything but the digits of the numbers, byte for byte."""

    def spelling(path):
        lines = (path / "rank0" / f"{FRAMEWORK}_info.pkl").read_text().splitlines()
        fields = [json.loads(line) for line in lines]
        assert [json.dumps(field) for field in fields] == lines
        return [line.rpartition("[")[0] for line in lines]

    assert spelling(x01 / "out") == spelling(X01 / "ms")


def test_the_arrays_are_those_of_the_real_package(x01):
    ours, theirs = x01 / "out" / "rank0" / FRAMEWORK, X01 / "ms" / "rank0" / FRAMEWORK
    assert sorted(os.listdir(ours)) == sorted(os.listdir(theirs))
    for path in theirs.iterdir():
        one, other = np.load(ours / path.name), np.load(path)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5, err_msg=path.name)


def test_the_stacks_are_those_of_the_real_package(x01):
    """Keys, order, frames and the format of the file; only the folder of the script differs."""
    text = (x01 / "out" / "rank0" / f"{FRAMEWORK}_stack.json").read_text()
    assert text.replace(f"{x01}/", "/home/user/nets/") == (X01 / "ms" / "rank0" / f"{FRAMEWORK}_stack.json").read_text()


@pytest.mark.parametrize("order", ["pt_ms", "ms_pt", "ms_ms"])
def test_calls_are_matched_as_those_of_the_real_package_are(x01, tmp_path, order, capsys):
    """With the real package's dump of the same network in torch, and with its dump in MindSpore."""
    origin, target = order.split("_")
    places = {"pt": X01 / "pt", "ms": x01 / "out"}
    api_dump_compare(places[origin], X01 / "ms" if order == "ms_ms" else places[target], tmp_path)
    ours, theirs = tmp_path / "ts_api_mapping_0.csv", X01 / f"cmp_{order}" / "ts_api_mapping_0.csv"
    assert ours.read_text() == theirs.read_text()


def test_only_the_owner_sees_the_files(x01):
    rank = x01 / "out" / "rank0"
    modes = {path.name: path.stat().st_mode & 0o777 for path in [rank, *rank.iterdir()]}
    assert modes == {"rank0": 0o700, FRAMEWORK: 0o700, f"{FRAMEWORK}_info.pkl": 0o600, f"{FRAMEWORK}_stack.json": 0o600}
    assert {path.stat().st_mode & 0o777 for path in (rank / FRAMEWORK).iterdir()} == {0o400}


# -- names and counters


def test_lists_are_those_of_the_package():
    listed = listed_names()
    assert {"Dense", "LayerNorm"} <= listed["NN"]
    assert "SequentialCell" not in listed["NN"]
    assert {"cat", "dropout"} <= listed["Functional"]
    assert {"__add__", "swapaxes"} <= listed["Tensor"]
    assert not {"__getitem__", "astype"} & listed["Tensor"]


def emulated(room, names):
    """What a room of the front end has of these names; what stands in for the rest has the vendor's module."""
    for name in names:
        with contextlib.suppress(UnsupportedError, AttributeError):
            value = getattr(room, name)
            if not getattr(value, "__module__", "").startswith("mindspore"):
                yield value


def test_what_the_front_end_has_of_the_lists_is_heard():
    listed = listed_names()
    functions = list(emulated(ops, listed["Functional"]))
    methods = [getattr(ms.Tensor, name) for name in listed["Tensor"] - {"from_numpy"} if hasattr(ms.Tensor, name)]
    cells = [cell for cell in emulated(nn, listed["NN"]) if isinstance(cell, type)]
    assert len(functions) > 250
    assert len(methods) > 130
    assert len(cells) > 70
    assert [each.__name__ for each in functions + methods if listener.unobserved(each) is each] == []
    assert [cell for cell in cells if listed_class(cell) != cell.__name__] == []


def test_functions_of_the_list_that_run_no_operator_are_recorded(tmp_path):
    x = ms.Tensor(np.array([0.0, 0.5], np.float32))

    def run(net):
        assert ops.is_tensor(x) is True
        assert ms.is_tensor(1) is False  # the tool replaces functions of ops alone
        made = ops.tuple_to_array((1, 2.5))
        assert (made.asnumpy().tolist(), made.dtype) == ([1, 2], ms.int32)  # as real 2.10: the first one decides
        np.testing.assert_allclose(ops.arctanh(x).asnumpy(), np.arctanh([0, 0.5]), rtol=1e-6)

    dumped(tmp_path, run)
    assert calls(tmp_path) == ["Functional_is_tensor_0", "Functional_tuple_to_array_0", "Functional_arctanh_0"]
    records = [record.name for record in infos(tmp_path)]  # floating-point tensors
    assert records == [
        "Functional_is_tensor_0_forward_input.0",
        "Functional_arctanh_0_forward_input.0",
        "Functional_arctanh_0_forward_output",
    ]


def test_a_cell_of_the_script_has_the_name_of_the_listed_class():
    class Dense(nn.Dense):
        pass

    class ReLU(nn.Cell):
        pass

    assert listed_class(type("Mine", (Dense,), {})) == "Dense"
    assert listed_class(ReLU) is None


def test_calls_inside_of_listed_cells_and_functions_are_not_recorded(tmp_path):
    dumped(tmp_path, lambda net: net(tensor(2, 4)))
    assert calls(tmp_path) == [
        *("NN_Dense_0", "NN_Dropout_0", "NN_Dense_1", "NN_ReLU_0"),
        *("Functional_softmax_0", "Tensor___add___0", "Functional_dropout_0", "Tensor_sum_0"),
    ]


def test_listed_cells_inside_of_listed_cells_are_recorded_inner_first(tmp_path):
    net = nn.TransformerEncoderLayer(4, 2, 8).set_train(False)
    dumped(tmp_path, lambda net: net(tensor(3, 2, 4)), net)
    found = calls(tmp_path)
    assert found[-1] == "NN_TransformerEncoderLayer_0"
    assert "NN_LayerNorm_1" in found
    assert not [name for name in found if not name.startswith("NN_")]


def test_attention_has_no_dropout_of_its_own(tmp_path):
    """In MindSpore its dropout is an operator, not a cell: the numbers of Dropout are those of the layer's cells."""
    net, x = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5).set_train(), tensor(3, 2, 4)
    results = []
    dumped(tmp_path, lambda net: results.extend(net(x).asnumpy() for _ in range(2)), net)
    np.testing.assert_array_equal(*results)  # it is neutral all the same
    assert calls(tmp_path)[:7] == [
        *("NN_MultiheadAttention_0", "NN_Dropout_0", "NN_LayerNorm_0", "NN_Dense_0", "NN_Dropout_1"),
        *("NN_Dense_1", "NN_Dropout_2"),
    ]
    assert [name for name, _ in net.self_attn.cells_and_names()] == ["", "out_proj"]


def test_listed_cells_outside_of_the_net_hide_what_they_call(tmp_path):
    loss = nn.MSELoss()
    skipped = dumped(tmp_path, lambda net: loss(net(tensor(2, 4)), tensor()), nn.Dense(4, 3))
    assert calls(tmp_path) == ["NN_Dense_0"]
    assert dict(skipped) == {"cell outside the network": 1}


def test_an_operator_that_passes_the_question_on_is_no_call(tmp_path):
    class Other:
        def __radd__(self, tensor):
            return "answered"

    dumped(tmp_path, lambda net: [tensor(2) + Other(), tensor(2) + 1])
    assert calls(tmp_path) == ["Tensor___add___0"]


def test_what_an_optimizer_calls_is_not_recorded(tmp_path):
    net = nn.Dense(4, 3)
    step = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), step).set_train()
    dumped(tmp_path, lambda _: train(tensor(2, 4), tensor(2, 3)), train)
    assert calls(tmp_path) == ["NN_Dense_0", "NN_MSELoss_0", "NN_Identity_0"]  # the last one reduces gradients


def test_an_optimizer_of_mint_is_no_graph_of_the_script(tmp_path):
    net = nn.Dense(4, 3)
    step = mint.optim.AdamW(net.trainable_params())
    slope = ms.grad(net, None, net.trainable_params())
    assert not dumped(tmp_path, lambda net: step(slope(tensor(2, 4))), net)
    assert calls(tmp_path) == ["NN_Dense_0"]


@pytest.mark.parametrize(
    ("exact", "expected"), [(False, ["NN_ReLU_0", "NN_ReLU_1"]), (True, ["NN_ReLU_1", "NN_ReLU_3"])]
)
def test_counters_go_over_the_calls_between_start_and_stop(tmp_path, exact, expected):
    """The real tool counts what it does not record too."""
    net = nn.ReLU()
    with CellSession(net, tmp_path, exact=exact) as session:
        for _ in range(2):
            net(tensor(2))
            session.start(Request())
            net(tensor(2))
            session.stop()
    assert calls(tmp_path) == expected


def test_lists_and_tuples_are_notified_by_place(tmp_path):
    def run(net):
        ops.cat((tensor(2, 2), tensor(2, 2)), 0)
        ops.split(tensor(4, 2), 2)

    dumped(tmp_path, run)
    assert names(tmp_path) == [
        *(
            "Functional_cat_0_forward_input.0.0",
            "Functional_cat_0_forward_input.0.1",
            "Functional_cat_0_forward_output",
        ),
        *("Functional_split_0_forward_input.0", "Functional_split_0_forward_output.0"),
        "Functional_split_0_forward_output.1",
    ]


# -- what start asks for


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"mode": "list", "scope": ["NN_Dense_1"]}, ["NN_Dense_1"]),
        ({"mode": "range", "scope": ["NN_Dropout_0", "NN_ReLU_0"]}, ["NN_Dropout_0", "NN_Dense_1", "NN_ReLU_0"]),
        ({"mode": "api_list", "scope": ["DROP", "add"]}, ["NN_Dropout_0", "Tensor___add___0", "Functional_dropout_0"]),
    ],
)
def test_modes_select_calls_and_their_gradients(tmp_path, request_, expected):
    def run(net):
        ms.grad(net)(tensor(2, 4))

    dumped(tmp_path, run, backward=True, **request_)
    assert calls(tmp_path) == expected
    backward = [name for name in names(tmp_path) if "_backward_" in name]
    assert backward == [f"{call}_backward_input" for call in reversed(expected)]


@pytest.mark.parametrize("word", [3, None])
def test_words_of_api_list_are_text(word):
    with pytest.raises(TypeError, match="object has no attribute 'lower'"):
        Request.checked(**{**STARTS, "mode": "api_list", "scope": ["relu", word]})


@pytest.mark.parametrize("dump_type", ["all", "npy", "statistics", "stack"])
def test_dump_types(tmp_path, dump_type):
    dumped(tmp_path, lambda net: net(tensor(2, 4)), dump_type=dump_type)
    files = sorted(path.stem for path in (tmp_path / "rank0" / FRAMEWORK).iterdir())
    assert files == (sorted(names(tmp_path)) if dump_type in ("all", "npy") else [])
    assert all(math.isnan(record.mean) == (dump_type in ("npy", "stack")) for record in infos(tmp_path))


def test_filter_data(tmp_path):
    """Numbers, booleans, integers, tensors without axes or elements only without the filter."""

    def run(net):
        ops.sum(tensor(2, 2), 1)
        ops.equal(tensor(2), tensor(2))
        ops.abs(ms.Tensor(-1.5))
        ops.abs(ms.Tensor(np.zeros((0, 2), np.float32)))

    filtered, whole = tmp_path / "filtered", tmp_path / "whole"
    dumped(filtered, run)
    dumped(whole, run, filter_data=False)
    assert names(filtered) == [
        *("Functional_sum_0_forward_input.0", "Functional_sum_0_forward_output"),
        *("Functional_equal_0_forward_input.0", "Functional_equal_0_forward_input.1"),
    ]
    found = {record.name: record for record in infos(whole)}
    axis = found["Functional_sum_0_forward_input.1"]
    assert (axis.dtype, axis.shape, axis.max) == ("<class 'int'>", (), 1)
    equal = found["Functional_equal_0_forward_output"]
    assert equal.dtype == "Bool"
    assert math.isnan(equal.max)
    assert found["Functional_abs_0_forward_output"].mean == 1.5
    assert found["Functional_abs_1_forward_input.0"].shape == (0, 2)


def test_number_types_have_mindspores_names(tmp_path):
    kinds = {
        "Float16": ms.float16,
        "BFloat16": ms.bfloat16,
        "Float64": ms.float64,
        "Int32": ms.int32,
        "UInt8": ms.uint8,
    }

    def run(net):
        for kind in kinds.values():
            ops.cat((ms.Tensor([1, 2], kind), ms.Tensor([3, 6], kind)))

    assert not dumped(tmp_path, run, filter_data=False)
    records = [record for record in infos(tmp_path) if record.name.endswith("output")]
    assert [record.dtype for record in records] == list(kinds)
    assert {(record.max, record.min, record.mean) for record in records} == {(6, 1, 3)}
    wide = np.load(tmp_path / "rank0" / FRAMEWORK / "Functional_cat_1_forward_output.npy")
    assert (wide.dtype, wide.tolist()) == (np.float32, [1, 2, 3, 6])


def test_stacks_name_the_script_only_unless_notified_otherwise(tmp_path):
    for filtered in (True, False):
        dumped(tmp_path / str(filtered), lambda net: net(tensor(2, 4)), filter_stack=filtered)
        stacks = read_stack(tmp_path / str(filtered) / "rank0" / f"{FRAMEWORK}_stack.json")
        first = stacks["NN_Dense_0_forward_stack_info"]
        assert first[0 if filtered else -1].startswith("File ")
        assert any("/frontends/mindspore/nn/" in frame for frame in first) is not filtered
        assert any("in construct, \n x = self.drop(self.fc(x))" in frame for frame in first)


# -- gradients


def test_gradients_are_those_by_the_outputs(tmp_path):
    """Of sum((2 x)^2): 8 x by x, so 4 x by 2 x, and 1 by the squares."""
    x = tensor(3, 2)

    def run(net):
        ms.grad(lambda x: ops.square(ops.mul(x, 2.0)).sum())(x)

    dumped(tmp_path, run, backward=True)
    arrays = tmp_path / "rank0" / FRAMEWORK
    assert [name for name in names(tmp_path) if "backward" in name] == [
        "Functional_square_0_backward_input",
        "Functional_mul_0_backward_input",
    ]
    np.testing.assert_array_equal(np.load(arrays / "Functional_square_0_backward_input.npy"), np.ones((3, 2)))
    np.testing.assert_allclose(np.load(arrays / "Functional_mul_0_backward_input.npy"), 4 * x.asnumpy(), rtol=1e-6)


def test_every_step_has_gradients_of_its_own(tmp_path):
    """1.0.17 writes those of the second step under the names of the first."""

    def run(net):
        for seed in range(2):
            ms.grad(lambda x: ops.square(x).mean(0).sum())(tensor(2, 2, seed=seed))

    dumped(tmp_path, run, backward=True)
    found = [name for name in names(tmp_path) if "backward" in name]
    assert found == [
        *("Tensor_mean_0_backward_input", "Functional_square_0_backward_input"),
        *("Tensor_mean_1_backward_input", "Functional_square_1_backward_input"),
    ]


@pytest.mark.parametrize("exact", [False, True])
def test_gradients_after_stop(tmp_path, exact):
    net = nn.SequentialCell(nn.Dense(4, 3), nn.ReLU())
    net.set_grad()
    x = tensor(2, 4)
    with CellSession(net, tmp_path, retain_backward=True, exact=exact) as session:
        session.start(Request())
        net(x)
        session.stop()
        ms.grad(net)(x)  # of the call before
        session.flush()
    late = [name for name in names(tmp_path) if "backward" in name]
    assert late == (["NN_ReLU_0_backward_input", "NN_Dense_0_backward_input"] if exact else [])
    assert dict(session.skipped) == ({} if exact else {"backward after stop": 2})


def test_results_are_those_of_a_run_without_a_dump(tmp_path):
    net = nn.SequentialCell(nn.Dense(4, 3), nn.GELU(), nn.Dense(3, 2))
    step = ms.value_and_grad(lambda x: ops.square(net(x)).sum(), 0, net.trainable_params())
    bare = step(tensor(5, 4))
    seen = []
    dumped(tmp_path, lambda _: seen.append(step(tensor(5, 4))), net, backward=True)
    flat = [bare[0], bare[1][0], *bare[1][1]], [seen[0][0], seen[0][1][0], *seen[0][1][1]]
    for one, other in zip(*flat, strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


# -- dropout, and what stays behind


def test_dropout_is_neutral_from_init_to_close(tmp_path):
    cell, x = nn.Dropout(p=0.5).set_train(), ms.Tensor(np.ones((8, 8), np.float32))
    before = []
    cell.register_forward_pre_hook(lambda cell, args: before.append(args))

    def neutral():
        return bool((cell(x).asnumpy() == 1).all()), bool((ops.dropout(x, 0.5).asnumpy() == 1).all())

    assert neutral() == (False, False)
    with CellSession(nn.ReLU(), tmp_path) as session:
        assert neutral() == (True, True)
        session.start(Request())
        assert neutral() == (True, True)
        session.stop()
        assert neutral() == (True, True)
        assert cell(x=x) is x
    assert neutral() == (False, False)
    assert len(before) == 6  # hooks of the script run in any case


def test_assigned_items_are_recorded_as_they_were(tmp_path):
    def run(net):
        x = tensor(3)
        kept.append(x.asnumpy().copy())
        x[0] = 7.0

    kept = []
    dumped(tmp_path, run, coverage="full")
    [name, *_] = names(tmp_path)
    assert name == "Tensor___setitem___0_forward_input.0"
    np.testing.assert_array_equal(np.load(tmp_path / "rank0" / FRAMEWORK / f"{name}.npy"), kept[0])


def test_functions_imported_before_are_seen_and_are_the_same_after(tmp_path):
    relu, add = ops.relu, ms.Tensor.__add__
    dumped(tmp_path, lambda net: relu(tensor(2)))
    assert calls(tmp_path) == ["Functional_relu_0"]
    assert ops.relu is relu
    assert ms.Tensor.__add__ is add


def test_nets_run_in_threads_too(tmp_path):
    """Every call has a number and a name of its own, and dropout is neutral there as well."""
    cell, x = nn.Dropout(p=0.5).set_train(), ms.Tensor(np.ones((8, 8), np.float32))
    neutral, go = [], threading.Event()

    def run():
        go.wait()
        neutral.extend(bool((ops.relu(cell(x)).asnumpy() == 1).all()) for _ in range(20))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    with CellSession(cell, tmp_path) as session:
        session.start(Request())
        go.set()
        for thread in threads:
            thread.join()
        session.stop()
    assert neutral == [True] * 80
    assert sorted(calls(tmp_path)) == sorted(
        f"{api}_{n}" for api in ("NN_Dropout", "Functional_relu") for n in range(80)
    )
    found = names(tmp_path)
    assert len(set(found)) == len(found) == 320
    assert [name.replace("_input.0", "_output") for name in found[::2]] == found[1::2]


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_dropout_is_neutral_in_graphs_too(tmp_path, mode):
    """A graph that was compiled before is not the one that runs during the dump, nor after it."""

    class Dropping(nn.Cell):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(p=0.5)
            self.attend = nn.MultiheadAttention(8, 2, dropout=0.5)

        @ms.jit
        def construct(self, x):
            return ops.dropout(self.drop(x), 0.5) + self.attend(x, x, x)[0]

    ms.set_context(mode=mode)
    net, x = Dropping().set_train(), ms.Tensor(np.ones((4, 2, 8), np.float32))
    step = ms.value_and_grad(net, None, net.trainable_params())

    def results():
        value, slopes = step(x)
        return [array.asnumpy() for array in (net(x), value, *slopes)]

    def equal(one, other):
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))

    assert not equal(results(), results())
    session = CellSession(net, tmp_path)
    assert equal(results(), results())
    session.close()
    assert not equal(results(), results())


def test_a_dropout_that_a_script_wrote_stays_as_it_is(tmp_path):
    class Doubling(nn.Dropout):
        def construct(self, x):
            return x * 2

    class Renamed(nn.Dropout):
        pass

    x = ms.Tensor(np.ones((8, 8), np.float32))
    with CellSession(nn.ReLU(), tmp_path):
        assert (Doubling(p=0.5).set_train()(x).asnumpy() == 2).all()
        assert (Renamed(p=0.5).set_train()(x).asnumpy() == 1).all()


@pytest.mark.parametrize(
    ("rank", "exact", "folder"), [("3", False, "rank3"), ("3", True, "rank0"), ("x", False, "rank0")]
)
def test_ranks_have_directories_of_their_own(tmp_path, monkeypatch, rank, exact, folder):
    """1.0.17 knows one only."""
    monkeypatch.setenv("RANK_ID", rank)
    dumped(tmp_path, lambda net: net(tensor(2)), nn.ReLU(), exact=exact)
    assert [path.name for path in tmp_path.iterdir()] == [folder]
    assert (tmp_path / folder / f"{FRAMEWORK}_info.pkl").exists()


def test_nothing_is_written_without_a_record(tmp_path):
    with CellSession(nn.ReLU(), tmp_path) as session:
        session.start(Request())
        session.stop()
        assert not session.recorded
    assert list(tmp_path.rglob("*")) == [tmp_path / "rank0"]


def test_graphs_have_no_records_and_are_counted(tmp_path):
    @ms.jit
    def double(x):
        return ops.mul(x, 2.0)

    def run(net):
        double(tensor(2))
        ops.abs(tensor(2))

    skipped = dumped(tmp_path, run)
    assert calls(tmp_path) == ["Functional_abs_0"]
    assert [reason.rpartition(".")[2] for reason in skipped] == ["double"]


# -- beyond the real tool


def test_weights_are_recorded_as_they_were_before_the_call(tmp_path):
    for exact in (False, True):
        weight = ms.Parameter(np.zeros(2, np.float32), name="w")
        dumped(
            tmp_path / str(exact), lambda net, w=weight: ops.assign_add(w, tensor(2)), exact=exact, coverage="listed"
        )
        first = np.load(tmp_path / str(exact) / "rank0" / FRAMEWORK / "Functional_assign_add_0_forward_input.0.npy")
        assert bool(first.any()) is exact


def test_full_coverage_adds_calls_keywords_and_dicts(tmp_path):
    class Named(nn.Cell):
        def construct(self, x):
            return {"first": ops.abs(input=x), "second": x.astype(ms.float16)}

    def run(net):
        net(tensor(2))

    skipped = dumped(tmp_path / "listed", run, Named())
    assert names(tmp_path / "listed") == ["Functional_abs_0_forward_output"]
    assert dict(skipped) == {"keyword argument": 1}
    dumped(tmp_path / "full", run, Named(), coverage="full")
    assert names(tmp_path / "full") == [
        *("Functional_abs_0_forward_input.input", "Functional_abs_0_forward_output"),
        *("Tensor_astype_0_forward_input.0", "Tensor_astype_0_forward_output"),
    ]


def test_full_coverage_names_what_scripts_name(tmp_path):
    """Public layers, those of mint too, but neither containers nor parts of a layer that only the front end has."""
    net = nn.SequentialCell(nn.LSTM(4, 4), Second(), mint.nn.Linear(4, 3), nn.CellList([]))
    dumped(tmp_path, lambda net: net[2](net[1](net[0](tensor(2, 1, 4)))), net, coverage="full")
    found = [call for call in calls(tmp_path) if call.startswith("NN_")]
    assert found == ["NN_LSTM_0", "NN_Linear_0"]


def test_functions_of_mint_are_recorded_under_those_of_ops(tmp_path):
    skipped = dumped(tmp_path, lambda net: mint.cumsum(mint.cat([tensor(2), tensor(2)]), 0))
    assert not skipped
    assert names(tmp_path) == [
        *(f"Functional_cat_0_forward_{place}" for place in ("input.0.0", "input.0.1", "output")),
        *(f"Functional_cumsum_0_forward_{place}" for place in ("input.0", "output")),
    ]


def test_what_is_not_recorded_is_counted_however_deep(tmp_path):
    class Deep(nn.Cell):
        def construct(self, x):
            return ops.cat(tensors=(x, ops.stack(tensors=[x, x])[0]))

    skipped = dumped(tmp_path, lambda net: net(tensor(2)), Deep())
    assert dict(skipped) == {"keyword argument": 4}


def test_keys_of_dicts_are_words_in_file_names(tmp_path):
    class Keyed(nn.Dense):
        def construct(self, x):
            y = super().construct(x)
            return {"a/b": y, "../../../up": y, "x" * 300: y, 0: y, "0": [y]}

    skipped = dumped(tmp_path / "dump", lambda net: net(tensor(2, 4)), Keyed(4, 3), coverage="full", backward=True)
    assert not skipped
    words = ["a_b", "_________up", "x" * 64, "0", "0_2.0"]
    assert names(tmp_path / "dump")[1:] == [f"NN_Dense_0_forward_output.{word}" for word in words]
    files = {path.name for path in (tmp_path / "dump" / "rank0" / FRAMEWORK).iterdir()}
    assert files == {f"{name}.npy" for name in names(tmp_path / "dump")}
    assert os.listdir(tmp_path) == ["dump"]


def test_what_holds_tensors_in_other_ways_is_counted(tmp_path):
    @dataclasses.dataclass
    class Pair:
        one: ms.Tensor
        other: int

    class Holders(nn.Dense):
        def construct(self, x):
            y = super().construct(x)
            deep = y
            for _ in range(200):
                deep = [deep]
            around = [y]
            around.append(around)
            return Pair(y, 1), {y}, {"k": [y, y]}, np.ones(3), 1j, None, 2, around, deep

    skipped = dumped(tmp_path, lambda net: net(tensor(2, 4)), Holders(4, 3))
    assert names(tmp_path) == ["NN_Dense_0_forward_input.0", "NN_Dense_0_forward_output.7.0"]
    assert dict(skipped) == {
        "tensor in a dataclass": 1,
        "tensor in a set": 1,
        "tensor in a dict": 2,
        "value of numpy": 1,
        "complex number": 1,
        "place too deep for the name of a file": 1,
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_was_forked_writes_nothing(tmp_path):
    net, x = nn.SequentialCell(nn.Dense(4, 3), nn.ReLU()), tensor(2, 4)
    with CellSession(net, tmp_path, retain_backward=True) as session:
        session.start(Request())
        ms.grad(net)(x)
        session.output.flush()
        child = os.fork()
        if not child:
            code = 1
            with contextlib.suppress(BaseException):
                for _ in range(200):  # more lines than wait in memory
                    ms.grad(net)(x)
                code = 0
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        session.stop()
    assert calls(tmp_path) == ["NN_Dense_0", "NN_ReLU_0"]
    assert len(names(tmp_path)) == 6


def test_operators_that_assign_are_calls_of_their_own(tmp_path):
    """As in torch and MindSpore 2.0; ``/=`` is not listed, the division that it makes is."""

    def run(net):
        x = kept = tensor(2)
        x += 1
        x *= tensor(2)
        x /= 2
        assert x is not kept
        np.testing.assert_allclose(x.asnumpy(), (kept.asnumpy() + 1) * kept.asnumpy() / 2)

    dumped(tmp_path / "listed", run)
    assert calls(tmp_path / "listed") == ["Tensor___iadd___0", "Tensor___imul___0", "Tensor___truediv___0"]


# -- what scripts do besides


class Second(nn.Cell):
    """Takes the sequence of what a recurrent layer gives."""

    def construct(self, x):
        return x[0]


class Failing(nn.Dense):
    """Fails inside of a listed cell, of which nothing is recorded then."""

    def construct(self, x):
        ops.relu(x)
        raise ValueError("failed")


def test_errors_of_the_script_pass_through_and_leave_nothing_behind(tmp_path):
    cell = nn.SequentialCell(nn.Dense(4, 4), Failing(4, 4))
    x = tensor(2, 4)

    def run(net):
        for attempt in (net, ms.grad(net), lambda x: ops.matmul(x, x)):
            with pytest.raises(ValueError):  # noqa: PT011  # the front end's own texts
                attempt(x)
            ops.exp(x)

    assert not dumped(tmp_path, run, cell)
    assert calls(tmp_path) == ["NN_Dense_0", "Functional_exp_0", "NN_Dense_1", "Functional_exp_1", "Functional_exp_2"]


def test_errors_of_the_dump_stay_inside(tmp_path, monkeypatch):
    net, x = nn.SequentialCell(nn.Dense(4, 3), nn.ReLU()), tensor(2, 4)
    bare = ms.grad(net)(x)

    def fail(*_):
        raise OSError("no room")

    with CellSession(net, tmp_path, retain_backward=True) as session:
        session.start(Request())
        with monkeypatch.context() as patch:
            patch.setattr(session.output, "array", fail)
            np.testing.assert_array_equal(ms.grad(net)(x).asnumpy(), bare.asnumpy())
        assert dict(session.skipped) == {"record: OSError": 2}
        ms.grad(net)(x)
        session.stop()
    assert calls(tmp_path) == ["NN_Dense_0", "NN_ReLU_0", "NN_Dense_1", "NN_ReLU_1"]


@pytest.mark.parametrize(
    "gradient",
    [
        lambda net, x: ms.grad(net)(x),
        lambda net, x: ms.value_and_grad(net, None, net.trainable_params())(x),
        lambda net, x: ops.GradOperation(get_all=True, sens_param=True)(net)(x, tensor(2, 3)),
        lambda net, x: nn.TrainOneStepCell(
            nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)
        ).set_train()(x, tensor(2, 3)),
    ],
)
def test_all_ways_to_gradients_are_heard(tmp_path, gradient):
    shared = nn.Dense(4, 4)
    net = nn.SequentialCell(shared, shared, nn.CellList([nn.ReLU()])[0], nn.SequentialCell(nn.Dense(4, 3)))
    for step in range(2):
        dumped(tmp_path / str(step), lambda net: gradient(net, tensor(2, 4)), net, backward=True)
        found = [name for name in names(tmp_path / str(step)) if name.endswith(("output", "backward_input"))]
        order = ["NN_Dense_0", "NN_Dense_1", "NN_ReLU_0", "NN_Dense_2"]
        forward = [f"{call}_forward_output" for call in order]
        assert found == forward + [f"{call}_backward_input" for call in reversed(order)]


def test_copies_of_a_net_are_nets_of_their_own(tmp_path):
    """What they call is heard as functions and methods are; their cells are not those of the dumped net."""
    net, x = nn.Dense(4, 3), tensor(2, 4)

    def run(net):
        twin = copy.deepcopy(net)
        np.testing.assert_array_equal(twin(x).asnumpy(), net(x).asnumpy())

    dumped(tmp_path, run, net)
    assert calls(tmp_path) == ["NN_Dense_0"]


def test_the_second_init_ends_the_first(tmp_path):
    one, other = nn.ReLU(), nn.Tanh()
    first = migrator.api_dump_init(one, tmp_path / "one")
    first.start()
    one(tensor(2))
    second = migrator.api_dump_init(other, tmp_path / "other")
    assert listener.listeners() == (second._session._calls,)
    assert names(tmp_path / "one") == ["NN_ReLU_0_forward_input.0", "NN_ReLU_0_forward_output"]
    with pytest.raises(RuntimeError, match="closed"):
        first.start()
    second.close()


@pytest.mark.parametrize(
    ("package", "hint"), [("mindspore", "dumpsim run"), ("mindtorch", "read and compared"), ("x", "")]
)
def test_nets_of_other_frameworks_are_notified_the_way(tmp_path, package, hint):
    net = type("Net", (type("Cell", (), {"__module__": f"{package}.nn.cell"}),), {})()
    with pytest.raises(TypeError, match=r"must be mindspore\.nn\.Cell") as error:
        migrator.api_dump_init(net, tmp_path)
    assert hint in "".join(error.value.__notes__)
    assert bool(hint) == (";" in "".join(error.value.__notes__))


def test_a_directory_that_cannot_be_made_is_notified_where_nobody_stops(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import os, mindspore as ms
from mindspore import nn
from troubleshooter.migrator import api_dump_init, api_dump_start
ms.set_context(mode=ms.PYNATIVE_MODE)
net = nn.ReLU()
api_dump_init(net, {str(tmp_path / "d")!r})
os.makedirs({str(tmp_path / "d/rank0/mindspore_api_dump_info.pkl")!r})
api_dump_start()
net(ms.Tensor([1.0, 2.0]))
net(ms.Tensor([1.0, 2.0]))
""")
    command = [sys.executable, "-m", "dumpsim", "run", "--manifest", "none", str(script)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 0, found.stderr
    assert "mindspore_api_dump_info.pkl: cannot be written: Is a directory" in found.stderr


def test_a_number_that_no_file_can_hold_is_skipped_and_said(tmp_path):
    with CellSession(Net(), tmp_path) as session:
        session.start(Request(filter_data=False))
        assert session.take("NN_Dense_0")
        assert not session.write("NN_Dense_0_forward_input.0", 10**400)
        assert session.write("NN_Dense_0_forward_input.1", 10)
        assert [(reason.partition(":")[0], number) for reason, number in session.skipped.items()] == [
            ("<class 'int'>", 1)
        ]
        session.stop()
    assert names(tmp_path) == ["NN_Dense_0_forward_input.1"]


def test_a_gradient_that_cannot_be_read_is_counted(tmp_path, monkeypatch):
    net, x = nn.SequentialCell(nn.Dense(4, 3), nn.ReLU()), tensor(2, 4)
    bare = ms.grad(net)(x)

    def fail(*_):
        raise OSError("no room")

    with CellSession(net, tmp_path, retain_backward=True) as session:
        session.start(Request())
        monkeypatch.setattr(session, "write_gradient", fail)
        np.testing.assert_array_equal(ms.grad(net)(x).asnumpy(), bare.asnumpy())
        assert dict(session.skipped) == {"record: OSError": 2}
        session.stop()


def test_a_closed_dump_neither_starts_nor_stops(tmp_path):
    with CellSession(Net(), tmp_path) as session:
        session.start(Request())
        session.stop()
    for call in (lambda: session.start(Request()), session.stop):
        with pytest.raises(ScriptRuntimeError, match="has been closed"):
            call()


@pytest.mark.parametrize("asked", [True, False])
def test_parameters_to_compare_are_refused_aloud(tmp_path, caplog, asked):
    with CellSession(Net(), tmp_path, compare_statedict=asked):
        pass
    assert ("compare_statedict" in caplog.text) is asked
