"""API dump of torch: it neither breaks nor changes what it watches, and nothing stays behind."""

import copy
import io
import json
import math
import os
import pickle
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402

import dumpsim  # noqa: E402
from dumpsim import migrator  # noqa: E402
from dumpsim.codecs.apidump import read_info, read_stack  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def closed():
    """No dump goes on into the next test."""
    yield
    if migrator._active().dump is not None:
        migrator._active().dump.close()
    assert torch._C._len_torch_function_stack() == 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(F.relu(self.drop(self.fc(x))) * 2)


def names(path, rank=0):
    return [record.name for record in read_info(path / f"rank{rank}" / "torch_api_dump_info.pkl")]


def records(path):
    return {record.name: record for record in read_info(path / "rank0" / "torch_api_dump_info.pkl")}


def seeded():
    torch.manual_seed(3)
    return Net(), torch.randn(3, 4)


def test_statistics_and_arrays_are_those_of_the_tensor(tmp_path):
    net, x = seeded()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start()
        y = net(x)
        y.square().mean().backward()
        dump.stop()
        found = records(tmp_path)
        record = found["NN_Linear_1_forward_output"]
        truth = y.detach().numpy()
        assert (record.max, record.min) == (truth.max(), truth.min())
        assert math.isclose(record.mean, truth.astype(np.float64).mean(), rel_tol=1e-6)
        assert np.array_equal(np.load(tmp_path / "rank0/torch_api_dump/NN_Linear_1_forward_output.npy"), truth)
        gradient = np.load(tmp_path / "rank0/torch_api_dump/NN_Linear_1_backward_input.npy")
        assert np.allclose(gradient, 2 * truth / truth.size)
        assert not dump.skipped


def test_results_and_gradients_are_not_changed(tmp_path):
    net, x = seeded()
    net.drop.p = 0.0

    def step():
        net.zero_grad()
        y = net(x)
        y.sum().backward()
        return [y.detach(), *(p.grad.clone() for p in net.parameters())]

    plain = step()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start()
        watched = step()
        dump.stop()
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


def test_dropout_is_neutral_from_init_to_close(tmp_path):
    class Droppy(nn.Module):
        def __init__(self):
            super().__init__()
            self.drops = nn.ModuleList([nn.Dropout(0.5), nn.Dropout1d(0.5), nn.AlphaDropout(0.5)])
            self.rnn = nn.LSTM(4, 4, num_layers=2, dropout=0.9)
            self.attention = nn.MultiheadAttention(4, 2, dropout=0.9)

        def forward(self, x):
            for drop in self.drops:
                x = drop(x)
            x = torch.dropout(F.feature_alpha_dropout(x, 0.5, self.training), 0.5, self.training)
            x, _ = self.rnn(x)
            x, _ = self.attention(x, x, x, need_weights=False)
            return F.scaled_dot_product_attention(x, x, x, dropout_p=0.9 * self.training)

    torch.manual_seed(0)
    net, x = Droppy(), torch.randn(5, 2, 4)
    with migrator.api_dump_init(net, tmp_path) as dump:
        idle = net(x)
        assert torch.equal(idle, net(x))
        dump.start(dump_type="statistics")
        assert torch.equal(idle, net(x))
        dump.stop()
        assert torch.equal(idle, net(x))
    assert torch.allclose(idle, net.eval()(x), atol=1e-5)
    assert not torch.equal(net.train()(x), net(x))


def test_nothing_stays_behind(tmp_path):
    net, x = seeded()
    before = {name: getattr(torch, name) for name in ("add", "relu", "softmax")}, nn.Module.__call__, torch.Tensor.add
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start()
        y = net(x)
        assert torch._C._len_torch_function_stack() == 1
        pickle.dumps(y.detach())
    hooks = nn.modules.module
    assert not hooks._global_forward_hooks
    assert not hooks._global_forward_pre_hooks
    assert torch._C._len_torch_function_stack() == 0
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    after = {name: getattr(torch, name) for name in ("add", "relu", "softmax")}, nn.Module.__call__, torch.Tensor.add
    assert before == after
    assert not [t for t in threading.enumerate() if t.name == "dumpsim-apidump"]
    with pytest.raises(RuntimeError, match="You must call"):
        migrator.api_dump_start()


def test_idle_intercepts_nothing_without_dropout(tmp_path):
    net = nn.Sequential(nn.Linear(2, 2))
    with migrator.api_dump_init(net, tmp_path) as dump:
        assert torch._C._len_torch_function_stack() == 0
        dump.start()
        dump.stop()
        assert torch._C._len_torch_function_stack() == 0
        assert not nn.modules.module._global_forward_hooks


@pytest.mark.parametrize("own", [False, True])
def test_dropout_counts_in_functions_of_the_network_s_own_module(tmp_path, monkeypatch, own):
    """Not in those that it imports and may never call."""

    def drops(x):
        return nn.functional.dropout(x)

    module = types.ModuleType("net_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.drops = drops
    drops.__module__ = module.__name__ if own else "elsewhere"
    module.Net = type("Net", (nn.Module,), {"__module__": module.__name__})
    with migrator.api_dump_init(module.Net(), tmp_path) as dump:
        dump.start()
        dump.stop()
        assert (torch._C._len_torch_function_stack() > 0) is own


ZOO = [
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "complex32"),
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
]


@pytest.mark.parametrize("exact", [None, "1.0.17"])
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_number_types_never_raise(tmp_path, exact):
    data = torch.tensor([[1.0, 2.0], [4.0, 0.5]])
    same = nn.Identity()
    with migrator.api_dump_init(same, tmp_path, compat=exact) as dump:
        dump.start(filter_data=False)
        for name in ZOO:
            if hasattr(torch, name):
                value = data.to(getattr(torch, name))
                assert same(value) is value
        same(torch.empty(0, 3))
        same(torch.tensor(2.5))
        dump.stop()
        found = {r.dtype: r for r in reversed(list(read_info(tmp_path / "rank0/torch_api_dump_info.pkl")))}
    for name in ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"):
        record = found[f"torch.{name}"]
        if exact is None:
            wide = data.to(getattr(torch, name)).double()
            assert (record.max, record.min) == (wide.max(), wide.min())
            array = np.load(tmp_path / "rank0/torch_api_dump" / f"{record.name}.npy")
            assert np.array_equal(array.astype(np.float64), wide.numpy())
    assert math.isnan(found["torch.bool"].max)
    assert math.isnan(found["torch.complex64"].max)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:Sparse CSR tensor support")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:.*quantiz.*")
def test_what_cannot_be_read_is_counted(tmp_path):
    same = nn.Identity()
    with migrator.api_dump_init(same, tmp_path) as dump:
        dump.start(filter_data=False)
        same(torch.ones(2, device="meta"))
        same(torch.eye(2).to_sparse())
        same(torch.eye(2).to_sparse_csr())
        same(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
        same(2**100)
        torch.vmap(lambda row: torch.sin(row))(torch.ones(2, 2))
        torch.func.grad(lambda row: torch.sin(row).sum())(torch.ones(2))
        dump.stop()
        assert {
            "meta tensor",
            "layout sparse_coo",
            "layout sparse_csr",
            "tensor inside vmap or grad",
            "integer beyond 64 bits",
        } <= set(dump.skipped)
        assert any("nested" in reason or "jagged" in reason for reason in dump.skipped)


def test_inputs_of_in_place_calls_are_those_before(tmp_path):
    relu = nn.ReLU(inplace=True)
    with migrator.api_dump_init(relu, tmp_path) as dump:
        dump.start(dump_type="all")
        x = torch.tensor([-1.0, 2.0])
        x.add_(1)
        x += 10
        relu(x.sub_(12))
        dump.stop()
    found = records(tmp_path)
    assert found["Tensor_add__0_forward_input.0"].min == -1.0
    assert found["Tensor___iadd___0_forward_input.0"].max == 3.0
    assert found["NN_ReLU_0_forward_input.0"].min == -2.0
    assert found["NN_ReLU_0_forward_output"].min == 0.0
    assert np.load(tmp_path / "rank0/torch_api_dump/Tensor_add__0_forward_input.0.npy").tolist() == [-1.0, 2.0]


def test_threads_deepcopy_pickle_and_workers(tmp_path):
    net, x = seeded()
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        thread = threading.Thread(target=lambda: net(x))
        thread.start()
        thread.join()
        assert "Functional_relu_0_forward_output" in [*_flushed(dump, tmp_path)]
        other = copy.deepcopy(net)
        assert torch.equal(other(x), net(x))
        buffer = io.BytesIO()
        torch.save(net, buffer)
        buffer.seek(0)
        again = torch.load(buffer, weights_only=False)
        assert torch.equal(again(x), net(x))
        data = torch.utils.data.TensorDataset(torch.arange(8.0))
        loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="fork")
        assert sum(batch.sum().item() for (batch,) in loader) == 28.0
        dump.stop()
    assert b"dumpsim" not in pickle.dumps(net)


def _flushed(dump, path):
    dump._session.flush()
    return names(path)


def test_a_user_mode_may_come_and_go(tmp_path):
    with migrator.api_dump_init(nn.Identity(), tmp_path) as dump:
        with torch.device("meta"):
            dump.start(dump_type="statistics")
            assert torch.ones(2).is_meta
        assert not torch.ones(2).is_meta
        context = torch.device("meta")
        context.__enter__()
        dump.stop()
        assert torch.ones(2).is_meta
        context.__exit__(None, None, None)


def test_checkpointing_is_not_recorded_twice(tmp_path):
    from torch.utils.checkpoint import checkpoint

    net, x = seeded()
    x.requires_grad_()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start(dump_type="statistics")
        checkpoint(net, x, use_reentrant=False).sum().backward()
        dump.stop()
        assert dump.skipped["recomputed in backward"]
    found = names(tmp_path)
    assert len(found) == len(set(found))
    assert "NN_Linear_2_forward_output" not in found


def test_autocast(tmp_path):
    net, x = seeded()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            plain = net(x)
            dump.start()
            watched = net(x)
        watched.float().sum().backward()
        dump.stop()
    assert torch.equal(plain, watched)
    assert records(tmp_path)["NN_Linear_1_forward_output"].dtype == "torch.bfloat16"
    assert "NN_Linear_1_backward_input" in names(tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_run_and_are_seen(tmp_path):
    net, x = seeded()
    net.drop.p = 0.0
    compiled = torch.compile(net, backend="eager")
    plain = compiled(x)
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        assert torch.equal(compiled(x), plain)
        dump.stop()
        assert torch.equal(compiled(x), plain)
    assert "Functional_relu_0_forward_output" in names(tmp_path)


def test_an_error_in_the_forward_is_the_users_own(tmp_path):
    class Bad(nn.Linear):
        def forward(self, x):
            super().forward(x)
            raise KeyError("mine")

    net, x = seeded()
    net.fc = Bad(4, 4)
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        with pytest.raises(KeyError, match="mine"):
            net(x)
        with pytest.raises(TypeError):
            torch.add(x, "a")
        F.relu(x)
        dump.stop()
    assert "Functional_relu_0_forward_output" in names(tmp_path)


def test_steps_and_a_second_start_with_another_scope(tmp_path):
    net, x = seeded()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        for words in (["NN_Linear_0"], ["Functional_relu_1"]):
            dump.start("list", words, "statistics")
            net(x).sum().backward()
            dump.stop()
    assert {n.split("_forward")[0].split("_backward")[0] for n in names(tmp_path)} == {
        "NN_Linear_0",
        "Functional_relu_1",
    }


def test_backward_twice_and_after_stop(tmp_path):
    net, x = seeded()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start()
        loss = net(x).sum()
        loss.backward(retain_graph=True)
        loss.backward(retain_graph=True)
        dump.stop()
        loss.backward()
        found = names(tmp_path)
        assert len(found) == len(set(found))
        assert {"NN_Linear_0_backward_input", "NN_Linear_0_backward_input.pass2"} <= set(found)
        assert set(dump.skipped) == {"backward after stop"}


def test_full_coverage_adds_calls_keywords_and_leaves(tmp_path):
    with migrator.api_dump_init(nn.Identity(), tmp_path, coverage="full") as dump:
        dump.start(dump_type="statistics")
        x = torch.ones(2, 4)
        F.mish(input=x)[0]
        torch.linalg.norm(x, dim=1)
        -x.clone()
        F.scaled_dot_product_attention(x, x, x)
        nn.Identity()({"a/b": [x, x]})
        dump.stop()
    found = names(tmp_path)
    for name in (
        "Functional_mish_0_forward_input.input",
        "Functional_mish_0_forward_output",
        "NN_Identity_0_forward_output.a_b.1",
        "Tensor___getitem___0_forward_output",
        "Torch_linalg_norm_0_forward_output",
        "Tensor_clone_0_forward_output",
        "Tensor___neg___0_forward_output",
        "Functional_scaled_dot_product_attention_0_forward_output",
    ):
        assert name in found


def test_stacks_name_the_callers_line(tmp_path):
    with migrator.api_dump_init(nn.Identity(), tmp_path) as dump:
        dump.start(dump_type="stack")
        F.relu(torch.ones(2))  # here
        dump.stop()
    frames = read_stack(tmp_path / "rank0/torch_api_dump_stack.json")["torch.nn.functional.relu(0) forward"]
    assert frames[0].endswith("\n F.relu(torch.ones(2))  # here")


def test_state_dict(tmp_path):
    net, _ = seeded()
    migrator.api_dump_init(net, tmp_path, compare_statedict=True).close()
    path = tmp_path / "rank0/pt_net.pth"
    assert path.stat().st_mode & 0o777 == 0o400
    assert set(torch.load(path, weights_only=True)) == set(net.state_dict())


def test_a_full_disk_is_an_error_of_stop_not_of_the_forward(tmp_path):
    net, x = seeded()
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="npy")
        net(x)
        dump._session.flush()
        directory = tmp_path / "rank0" / "torch_api_dump"
        for file in directory.iterdir():
            file.unlink()
        directory.rmdir()
        net(x)
        with pytest.raises(OSError, match="vanished"):
            dump.stop()


def test_what_is_unwritten_is_flushed_when_a_script_fails(tmp_path):
    script = (
        "import torch\nfrom dumpsim import migrator\nnet = torch.nn.Linear(2, 2)\n"
        f"migrator.api_dump_init(net, {str(tmp_path / 'd')!r})\nmigrator.api_dump_start()\n"
        "net(torch.ones(1, 2))\nraise SystemExit(7)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], env=env, capture_output=True).returncode == 7
    assert names(tmp_path / "d") == ["NN_Linear_0_forward_input.0", "NN_Linear_0_forward_output"]
    assert len(list((tmp_path / "d/rank0/torch_api_dump").iterdir())) == 2
    assert json.loads((tmp_path / "d/rank0/torch_api_dump_stack.json").read_text())


def test_ranks_of_torch_distributed(tmp_path):
    """Whether the ranks are known at init or, as with ``mp.spawn``, by the first call only."""
    script = f"""
import sys, torch, torch.distributed as dist
from dumpsim import migrator
rank = int(sys.argv[1])
net = torch.nn.Linear(2, 2)
x = torch.ones(1, 2) * rank
for folder in ("first_call", "init"):
    with migrator.api_dump_init(net, {str(tmp_path)!r} + "/" + folder) as dump:
        if folder == "first_call":
            dist.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=rank, world_size=2)
        dump.start(dump_type="statistics")
        net(x)
        dump.stop()
dist.barrier()
dist.destroy_process_group()
"""
    unset = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    env = {**unset, "PYTHONPATH": os.pathsep.join(sys.path)}
    both = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", script, str(r)], env=env) for r in (0, 1)]
    assert [process.wait(60) for process in both] == [0, 0]
    for rank in (0, 1):
        for folder in ("first_call", "init"):
            record = next(read_info(tmp_path / folder / f"rank{rank}/torch_api_dump_info.pkl"))
            assert record.max == rank


@pytest.mark.parametrize(
    ("rank", "size", "wanted"),
    [("3", None, 0), ("3", "1", 0), ("3", "4", 3), ("0", "4", 0), ("x", "4", 0), (None, "4", 0)],
)
def test_the_rank_of_the_environment_counts_if_there_are_several(tmp_path, monkeypatch, rank, size, wanted):
    for name, value in (("RANK", rank), ("WORLD_SIZE", size)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with migrator.api_dump_init(nn.Linear(2, 2), tmp_path) as dump:
        dump.start()
        dump.stop()
    assert [path.name for path in tmp_path.iterdir()] == [f"rank{wanted}"]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"mode": "foo"}, ValueError, "For parameter 'mode', value 'foo' is illegal"),
        ({"scope": ["A_0"]}, ValueError, "the 'scope' muse be None"),
        ({"mode": "list"}, TypeError, "object of type 'NoneType' has no len"),
        ({"mode": "list", "scope": "a"}, TypeError, "must be <class 'list'>"),
        ({"mode": "list", "scope": []}, ValueError, "should not be an empty list"),
        ({"mode": "list", "scope": ["relu"]}, ValueError, "The list item should be in the 'Type_Name_ID' format"),
        ({"mode": "list", "scope": [1]}, TypeError, "expected string or bytes-like object, got 'int'"),
        ({"mode": "range", "scope": ["a_1"]}, ValueError, "must be .start, end."),
        ({"dump_type": "foo"}, ValueError, "For parameter 'support_dump_type'"),
        ({"dump_type": ["all"]}, TypeError, "unhashable type"),
        ({"filter_data": 1}, TypeError, "The parameter 'filter_data' must be <class 'bool'>"),
    ],
)
def test_errors_of_start(tmp_path, arguments, error, text):
    with migrator.api_dump_init(nn.Identity(), tmp_path), pytest.raises(error, match=text):
        migrator.api_dump_start(**arguments)


def test_a_path_of_bytes_is_the_same_path(tmp_path):
    with migrator.api_dump_init(nn.Identity(), os.fsencode(tmp_path / "d")) as dump:
        assert dump.path == str(tmp_path / "d")
    assert (tmp_path / "d" / "rank0").is_dir()


def test_errors_of_init(tmp_path):
    with pytest.raises(TypeError, match="but got <class 'NoneType'>"):
        migrator.api_dump_init(None)
    with pytest.raises(RuntimeError, match="set_dump_path 'None' error"):
        migrator.api_dump_init(nn.Identity(), None)
    with pytest.raises(TypeError, match="The parameter 'retain_backward' must be <class 'bool'>") as caught:
        migrator.api_dump_init(nn.Identity(), tmp_path, retain_backward="yes")
    assert "api_dump_init(retain_backward=)" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="coverage"):
        migrator.api_dump_init(nn.Identity(), tmp_path, coverage="all")
    with pytest.raises(TypeError, match="PathLike"):
        migrator.api_dump_init(nn.Identity(), 5)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        migrator.api_dump_init(nn.Identity(), tmp_path / "file")


def test_a_stopped_dump_runs_no_code(tmp_path):
    net, x = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4))), torch.randn(8, 8)
    own = os.path.dirname(dumpsim.__file__) + os.sep

    def own_calls():
        files = []
        sys.setprofile(lambda frame, event, function: event == "call" and files.append(frame.f_code.co_filename))
        try:
            net(x)
        finally:
            sys.setprofile(None)
        return sum(file.startswith(own) for file in files)

    assert own_calls() == 0
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="stack")
        assert own_calls() > 0
        dump.stop()
        assert own_calls() == 0
    assert own_calls() == 0


@pytest.mark.parametrize("exact", [False, True])
def test_a_stack_has_the_frames_of_the_call_without_a_dump(tmp_path, exact):
    def inverse(x):
        return 1.0 / x  # by a function of torch that calls two others

    plain = []

    def note(frame, event, function):
        if event == "c_call" and function.__name__ == "reciprocal":
            while frame is not None:
                plain.append(frame.f_code.co_name)
                frame = frame.f_back

    before = sys.getprofile()
    sys.setprofile(note)
    inverse(torch.ones(2))
    sys.setprofile(before)
    with migrator.api_dump_init(nn.Identity(), tmp_path, compat="1.0.17" if exact else None) as dump:
        dump.start(dump_type="stack", filter_stack=False)
        inverse(torch.ones(2))
        dump.stop()
    stack = read_stack(tmp_path / "rank0/torch_api_dump_stack.json")["torch.Tensor.reciprocal(0) forward"]
    found = [frame.partition(", in ")[2].partition(",")[0] for frame in stack]
    assert plain[:3] == ["__rdiv__", "wrapped", "inverse"]
    assert found == plain
