"""API dump of torch in the hands of hostile programs: 1.0.17's twenty defects mended, nothing broken or left."""

import copy
import gc
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn, relu  # noqa: E402

import dumpsim  # noqa: E402
from dumpsim import migrator  # noqa: E402
from dumpsim.codecs.apidump import read_info, read_stack  # noqa: E402
from dumpsim.core.errors import DumpWriteError  # noqa: E402
from dumpsim.frontends.apidump.pytorch.callsite import CallSite, Load  # noqa: E402
from dumpsim.frontends.apidump.pytorch.early import Early  # noqa: E402
from dumpsim.frontends.apidump.pytorch.naming import Naming  # noqa: E402
from dumpsim.frontends.apidump.pytorch.session import Session  # noqa: E402
from dumpsim.frontends.apidump.selection import Request  # noqa: E402

pytestmark = pytest.mark.torch
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


class Dump:
    """A dump in a directory of its own, and what it wrote."""

    def __init__(self, path):
        self.rank = path / "rank0"

    @property
    def records(self):
        file = self.rank / "torch_api_dump_info.pkl"
        return {r.name: r for r in read_info(file)} if file.exists() else {}

    @property
    def lines(self):
        return [r.name for r in read_info(self.rank / "torch_api_dump_info.pkl")]

    @property
    def calls(self):
        return {n.split("_forward")[0].split("_backward")[0] for n in self.records}

    @property
    def stacks(self):
        return read_stack(self.rank / "torch_api_dump_stack.json")

    def array(self, name):
        return np.load(self.rank / "torch_api_dump" / f"{name}.npy")


@pytest.fixture
def made(tmp_path):
    return Dump(tmp_path)


@pytest.fixture(autouse=True)
def closed():
    yield
    if migrator._active().dump is not None:
        migrator._active().dump.close()
    assert torch._C._len_torch_function_stack() == 0
    assert threading.getprofile() is None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.head_d = nn.Linear(3, 3)

    def forward(self, x):
        return self.head_d(F.relu(self.drop(self.fc(x)))) + 1


X = torch.ones(2, 3)


def run(script, tmp_path, *, code=0):
    """A program of its own; what it printed."""
    file = tmp_path / "script.py"
    file.write_text(script)
    done = subprocess.run([sys.executable, file], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stdout


# the twenty defects of 1.0.17 [spec api_dump 1.9]


def test_01_scopes_are_those_of_the_last_start(tmp_path, made):
    net = Net()
    for word, found in (("relu", "Functional_relu_1"), ("dropout", "NN_Dropout_1")):
        with migrator.api_dump_init(net, tmp_path) as dump:
            dump.start("list", ["Functional_relu_5"], "statistics")
            net(X)
            dump.start("api_list", [word], "statistics")
            net(X)
            dump.stop()
        assert {c for c in made.calls if not c.startswith("LAYER")} == {found}


def test_02_a_second_range_is_a_range(tmp_path, made):
    net = Net()
    with migrator.api_dump_init(net, tmp_path) as dump:
        for n in (0, 1):
            dump.start("range", [f"NN_Dropout_{n}", f"Functional_relu_{n}"], "statistics")
            net(X)
            dump.stop()
    assert made.calls >= {"NN_Dropout_0", "Functional_relu_0", "NN_Dropout_1", "Functional_relu_1"}
    assert not {c for c in made.calls if c.startswith(("NN_Linear", "Tensor"))}


def test_03_inputs_that_a_users_forward_overwrites(tmp_path, made):
    class Overwrites(nn.Linear):
        def forward(self, x):
            return super().forward(x.mul_(10))

    net = nn.Sequential(Overwrites(3, 3), nn.ReLU(inplace=True))
    with migrator.api_dump_init(net, tmp_path, coverage="full") as dump:
        dump.start()
        net(X.clone())
        net[1](input=-X)
        dump.stop()
    assert made.records["NN_Linear_0_forward_input.0"].max == 1.0
    assert made.array("NN_Linear_0_forward_input.0").tolist() == X.tolist()
    assert made.records["NN_ReLU_1_forward_input.input"].min == -1.0
    assert made.records["NN_ReLU_1_forward_output"].min == 0.0


@pytest.mark.parametrize("coverage", ["listed", "full"])
def test_04_keywords_and_dicts_are_recorded_or_counted(tmp_path, made, coverage):
    class Keywords(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.attention = nn.MultiheadAttention(4, 2)
            self.same = nn.Identity()

        def forward(self, x):
            x = self.fc(input=x)
            self.attention(query=x, key=x, value=x)
            torch.stack(tensors=[x, x])
            return self.same({"a": x})

    net = Keywords()
    with migrator.api_dump_init(net, tmp_path, coverage=coverage) as dump:
        dump.start()
        net(torch.ones(2, 1, 4))
        dump.stop()
        skipped = dump.skipped
    wanted = {
        "NN_Linear_0_forward_input.input",
        "NN_MultiheadAttention_0_forward_input.key",
        "Torch_stack_0_forward_input.tensors.1",
        "NN_Identity_0_forward_output.a",
    }
    if coverage == "full":
        assert wanted <= set(made.records)
        assert not skipped
    else:
        assert not wanted & set(made.records)
        assert skipped == {"keyword argument": 1 + 3 + 2, "tensor in a dict": 2}


def test_05_a_second_init_takes_the_place_of_the_first(tmp_path):
    net, other = Net(), nn.Linear(3, 3)
    migrator.api_dump_init(net, tmp_path / "a")
    with migrator.api_dump_init(net, tmp_path / "b") as dump:
        dump.start(dump_type="statistics")
        net(X)
        dump.stop()
    with migrator.api_dump_init(other, tmp_path / "c") as dump:
        dump.start(dump_type="statistics")
        net(X)
        other(X)
        dump.stop()
    found = Dump(tmp_path / "b").lines
    assert len(found) == len(set(found))
    assert "NN_Linear_2_forward_output" not in found
    assert not Dump(tmp_path / "a").records
    assert not [n for n in Dump(tmp_path / "c").lines if n.startswith("LAYER")]


@pytest.mark.filterwarnings("ignore")
def test_06_no_kind_of_tensor_raises(tmp_path, made):
    same = nn.Identity()
    values = [
        X.to_sparse(),
        X.to_sparse_csr(),
        X.to_sparse_csc(),
        torch.eye(4).to_sparse_bsr((2, 2)),
        X.to_mkldnn(),
        torch.nested.nested_tensor([X, X], layout=torch.jagged),
        torch.quantize_per_tensor(X, 0.1, 0, torch.qint8),
        torch.quantize_per_channel(X, torch.ones(2), torch.zeros(2), 0, torch.quint8),
        torch._efficientzerotensor(3),
        X.to("meta"),
        *(torch.empty(4, dtype=kind) for kind in (torch.uint4, torch.int4, torch.bits8, torch.float4_e2m1fn_x2)),
    ]
    read = {"conj": torch.view_as_complex(torch.ones(3, 2)).conj(), "neg": torch._neg_view(X), "strided": X.t()[1:]}
    with migrator.api_dump_init(same, tmp_path) as dump:
        dump.start(filter_data=False)
        for value in (*values, *read.values()):
            assert same(value) is value
        dump.stop()
        counted = sum(dump.skipped.values())
    assert counted == 2 * len(values)
    assert np.array_equal(made.array(f"NN_Identity_{len(values)}_forward_output"), np.full(3, 1 - 1j, np.complex64))
    assert made.records[f"NN_Identity_{len(values) + 1}_forward_output"].max == -1.0


def test_06_values_that_are_no_tensors_are_counted(tmp_path, made):
    @dataclass
    class Box:
        a: object

    pair = namedtuple("pair", "a b")
    same = nn.Identity()
    endless = [X]
    endless.append(endless)
    with migrator.api_dump_init(same, tmp_path) as dump:
        dump.start()
        for value in (Box(X), {X}, np.ones(3), 1j, None, "text", pair(X, X)):
            assert same(value) is value
        once = dump.skipped
        assert same(endless) is endless
        dump.stop()
        assert once == {
            "tensor in a dataclass": 2,
            "tensor in a set": 2,
            "value of numpy": 2,
            "complex number": 2,
        }
        assert dump.skipped == once
    ends = ("input.0.0", "output.0", "output.1.0")
    assert made.lines[-3:] == [f"NN_Identity_7_forward_{end}" for end in ends]


def test_06_keys_are_words_of_file_names(tmp_path, made):
    class Keys(nn.Linear):
        def forward(self, value, **kwargs):
            return super().forward(value)

    net, deep = Keys(3, 3), X
    for at in range(60):
        deep = {f"key{at}": deep}
    with migrator.api_dump_init(net, tmp_path / "in", coverage="full") as dump:
        dump.start()
        net(X, **{"../../out": X, "a" * 300: X, "d": {0: X, "0": X}, "deep": deep})
        dump.stop()
        assert dump.skipped == {"place too deep for the name of a file": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    names = [name for name in Dump(tmp_path / "in").records if "NN_" in name and "input." in name]
    ends = ["0", "______out", "a" * 64, "d.0", "d.0_2"]
    assert names == [f"NN_Linear_0_forward_input.{end}" for end in ends]


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_07_a_trace_by_jit_and_fx_is_that_without_the_dump(tmp_path, made):
    net = nn.Sequential(nn.Linear(3, 3), nn.GELU())  # a trace is without dropout, too, from init on
    plain = torch.jit.trace(net, X).code
    symbolic = str(torch.fx.symbolic_trace(net).graph)
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(filter_data=False)
        assert torch.jit.trace(net, X, check_trace=False).code == plain
        assert str(torch.fx.symbolic_trace(net).graph) == symbolic
        assert not [r for r in made.records.values() if not all(isinstance(n, int) for n in r.shape)]
        assert torch.equal(torch.jit.script(nn.Linear(3, 3))(X).isnan(), torch.zeros(2, 3, dtype=torch.bool))
        assert torch.equal(torch.vmap(lambda row: F.relu(row) + 1)(X), X + 1)
        assert torch.equal(torch.func.grad(lambda row: F.relu(row).sum())(X), X)
        dump.stop()
        assert {"traced by torch.jit", "tensor inside vmap or grad"} <= set(dump.skipped)
    json.loads(f"[{','.join((made.rank / 'torch_api_dump_info.pkl').read_text().splitlines())}]")


def test_07_what_is_compiled_for_the_first_time_in_a_dump_runs(tmp_path):
    out = run(
        f"""
import sys, torch, torch.nn.functional as F
from dumpsim.migrator import api_dump_init
net, x = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), torch.ones(2, 3)
assert "torch._dynamo" not in sys.modules
finders = list(sys.meta_path)
with api_dump_init(net, {str(tmp_path / "d")!r}, retain_backward=True) as dump:
    dump.start(dump_type="statistics")
    function = torch.compile(lambda v: F.relu(v) * 2, backend="eager", fullgraph=True)
    assert torch.equal(function(x), 2 * x)
    whole = torch.compile(net, backend="eager")
    whole(x).sum().backward()
    dump.stop()
from torch._dynamo.utils import counters
assert not counters["frames"], counters
assert torch.equal(whole(x), net(x))
assert counters["frames"]["ok"] == 1, counters
assert finders == [f for f in sys.meta_path if f in finders]
assert not [f for f in sys.meta_path if type(f).__module__.startswith("dumpsim")]
assert type(sys.modules["torch._dynamo"].__spec__.loader).__module__ == "_frozen_importlib_external"
print(dump.skipped)
""",
        tmp_path,
    )
    assert out.strip() == "{}"
    assert {"Functional_relu_0_forward_output", "NN_ReLU_0_backward_input"} <= set(Dump(tmp_path / "d").records)


@pytest.mark.parametrize("reentrant", [True, False])
def test_07_recomputation_changes_neither_counters_nor_gradients(tmp_path, made, reentrant):
    from torch.utils.checkpoint import checkpoint

    net = Net()
    net.drop.p = 0.0

    def step():
        net.zero_grad()
        F.gelu(checkpoint(net, X.clone().requires_grad_(), use_reentrant=reentrant)).sum().backward()
        return [p.grad.clone() for p in net.parameters()]

    plain = step()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start(dump_type="statistics")
        assert all(torch.equal(a, b) for a, b in zip(plain, step(), strict=True))
        F.relu(X)
        dump.stop()
        assert dump.skipped["recomputed in backward"]
    assert {"Functional_relu_1", "NN_Linear_1"} <= made.calls
    assert not {"Functional_relu_2", "NN_Linear_2"} & made.calls
    assert "Functional_gelu_0_backward_input" in made.records


def test_08_a_second_backward_has_records_of_its_own(tmp_path, made):
    net = Net()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start()
        loss = net(X).sum()
        loss.backward(retain_graph=True)
        first = {n: made.array(n).copy() for n in ("NN_Linear_0_backward_input",)} if not dump.stop() else {}
        dump.start()
        (loss * 5).backward()
        dump.stop()
        assert not dump.skipped
    assert len(made.lines) == len(set(made.lines))
    assert np.allclose(made.array("NN_Linear_0_backward_input.pass2"), 5 * first["NN_Linear_0_backward_input"])
    for name, array in first.items():
        assert np.array_equal(made.array(name), array)


def test_09_backward_after_stop_is_counted_not_written(tmp_path, made):
    net = Net()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start(dump_type="statistics")
        loss = net(X).sum()
        dump.stop()
        loss.backward()
        assert dump.skipped["backward after stop"] == 5
    assert not [n for n in made.lines if "backward" in n]


def test_10_api_list_knows_the_whole_name_of_a_layer(tmp_path, made):
    net = Net()
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start("api_list", ["head"], "statistics")
        net(X)
        dump.stop()
    assert made.lines == ["LAYER_head_d_forward_input"]


def test_11_layers_whose_names_collide_keep_both_lines(tmp_path, made):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.b = nn.Linear(3, 3)

        def forward(self, x):
            return self.b(x)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = Inner()
            self.a_b = nn.Linear(3, 3)

        def forward(self, x):
            return self.a_b(self.a(x))

    net = Outer()
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        net(X)
        dump.stop()
    # the names are 1.0.17's and stay so; neither call nor its NN record is lost
    assert made.lines.count("LAYER_a_b_forward_input") == 2
    assert {"NN_Linear_0", "NN_Linear_1"} <= made.calls


def test_12_early_imports_and_shared_modules(tmp_path, made):
    net = nn.Sequential(nn.Linear(3, 3))
    net.append(net[0])
    early = F.softmax
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        relu(net(X))
        early(X, -1)
        dump.stop()
    assert {"Torch_relu_0", "Functional_softmax_0", "NN_Linear_0", "NN_Linear_1"} <= made.calls
    assert "Tensor_softmax_0" not in made.calls


def test_a_program_with_a_deep_structure_is_not_searched_to_its_end(tmp_path, made):
    chain = []
    for _ in range(20_000):
        chain = [chain]
    net = nn.Linear(3, 3)
    net.history = [chain]
    with migrator.api_dump_init(net, tmp_path, compat="1.0.17") as dump:
        dump.start(dump_type="statistics")
        net(X)
        dump.stop()
    assert "NN_Linear_0" in made.calls


def test_13_full_coverage_sees_what_is_not_listed(tmp_path, made):
    net = nn.ModuleList([nn.Mish(), nn.RMSNorm(3), nn.Flatten()])
    with migrator.api_dump_init(net, tmp_path, coverage="full") as dump:
        dump.start(dump_type="statistics", filter_data=False)
        x = X.clone()
        x[0] = x[1] * 2
        [module(x) for module in net]
        (-x, x**2, 1 - x, x < 1, x <= 1, ~x.bool(), x.contiguous(), x.half(), x.norm())
        torch.linalg.norm(x), torch.fft.fft(x), torch.special.expit(x)
        F.scaled_dot_product_attention(x, x, x), F.rms_norm(x, (3,)), F.huber_loss(x, x)
        dump.stop()
    bases = {c.rpartition("_")[0] for c in made.calls}
    assert bases >= {
        *("NN_Mish", "NN_RMSNorm", "NN_Flatten", "Tensor___getitem__", "Tensor___setitem__", "Tensor___neg__"),
        *(
            "Tensor___lt__",
            "Tensor___le__",
            "Tensor___invert__",
            "Tensor___pow__",
            "Tensor___rsub__",
            "Tensor_contiguous",
            "Tensor_half",
        ),
        *("Torch_linalg_norm", "Torch_fft_fft", "Torch_special_expit", "Functional_scaled_dot_product_attention"),
        *("Functional_rms_norm", "Functional_huber_loss"),
    }


@pytest.mark.parametrize("coverage", ["listed", "full"])
def test_14_printing_records_nothing(tmp_path, made, coverage, capsys):
    with migrator.api_dump_init(Net(), tmp_path, coverage=coverage) as dump:
        dump.start(dump_type="statistics", filter_data=False)
        print(X, repr(X), f"{X}", str(X), "%s" % X, f"{X.sum(0):}")  # noqa: UP031
        dump.stop()
    assert made.calls == {"Tensor_sum_0"}
    assert capsys.readouterr().out.count("tensor") == 6


def test_15_every_step_has_its_own_backward(tmp_path, made):
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start()
        for _ in range(3):
            optimizer.zero_grad()
            net(X).square().mean().backward()
            optimizer.step()
        dump.stop()
        assert not dump.skipped
    assert {f"NN_Linear_{n}_backward_input" for n in range(6)} <= set(made.records)
    assert len(made.lines) == len(set(made.lines))
    assert not np.array_equal(made.array("NN_Linear_1_backward_input"), made.array("NN_Linear_3_backward_input"))


def test_17_backward_in_another_thread_is_recorded(tmp_path, made):
    net = Net()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start(dump_type="statistics")
        for _ in range(2):
            thread = threading.Thread(target=net(X).sum().backward)
            thread.start()
            thread.join()
        dump.stop()
        assert not dump.skipped
    assert {f"NN_Linear_{n}_backward_input" for n in range(4)} <= set(made.records)


def test_18_arguments_of_1_0_18_are_refused_by_name(tmp_path):
    with migrator.api_dump_init(Net(), tmp_path), pytest.raises(TypeError, match="overflow_check"):
        migrator.api_dump_start(overflow_check=True)


def test_19_stacks_are_kept_once_and_written_once(tmp_path, made):
    net = Net()
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="stack")
        for _ in range(50):
            net(X)
        assert not (made.rank / "torch_api_dump_stack.json").exists()
        dump.stop()
    stacks = made.stacks
    assert len(stacks) >= 4 * 50
    assert stacks["torch.nn.functional.relu(0) forward"] == stacks["torch.nn.functional.relu(49) forward"]


def test_20_the_text_at_stop(tmp_path, caplog):
    net = Net()
    with caplog.at_level(logging.WARNING, "troubleshooter.log"), migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="stack")
        net(X)
        dump.stop()
    assert f"has been saved to {tmp_path}." in caplog.text
    assert "to to" not in caplog.text


def test_an_unknown_keyword_of_init_is_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match=r"no argument 'retain_backwards'") as caught:
        migrator.api_dump_init(Net(), tmp_path, retain_backwards=True)
    assert "retain_backward" in str(getattr(caught.value, "__notes__", "")) + str(caught.value)
    migrator.api_dump_init(Net(), tmp_path, retain_backwards=True, compat="1.0.17").close()  # as the real one


# dropout of all kinds [spec api_dump 1.7]


@pytest.mark.parametrize(
    "kind", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]
)
@pytest.mark.parametrize("inplace", [False, True])
def test_modules_that_drop_are_neutral(tmp_path, kind, inplace):
    net = nn.Sequential(getattr(nn, kind)(0.9, inplace=inplace))
    x = torch.randn(2, 3, 4, 4, 4)[(slice(None),) * (3 if kind.endswith("1d") else 4 if kind.endswith("2d") else 5)]
    x = x[..., 0, 0] if kind.endswith("1d") else x[..., 0] if kind.endswith("2d") else x
    with migrator.api_dump_init(net, tmp_path) as dump:
        assert torch.equal(net(x.clone()), x)
        assert torch.equal(net[0](input=x.clone()), x)
        dump.start(dump_type="statistics")
        assert torch.equal(net(x.clone()), x)
        dump.stop()
    assert not torch.equal(net(x.clone()), x)


@pytest.mark.parametrize("weights", [False, True])
def test_attention_recurrent_nets_and_transformers_are_neutral(tmp_path, weights):
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, dropout=0.2)
            self.rnns = nn.ModuleList(kind(4, 4, num_layers=2, dropout=0.2) for kind in (nn.LSTM, nn.GRU, nn.RNN))
            self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2)

        def forward(self, x):
            x, _ = self.attention(x, x, x, need_weights=weights)
            for rnn in self.rnns:
                x, _ = rnn(x)
            x = self.layer(x)
            x = torch.feature_dropout(F.dropout(x, training=True), 0.2, True)
            return F.scaled_dot_product_attention(x, x, x, None, 0.2)

    net, x = Mixed(), torch.randn(5, 64, 4)
    with migrator.api_dump_init(net, tmp_path) as dump:
        first = net(x)
        dump.start(dump_type="statistics")
        assert torch.equal(net(x), first)
        dump.stop()
    assert not torch.equal(net(x), net(x))


# nothing stays behind, nothing is disturbed


def test_after_close_nothing_differs(tmp_path):
    import builtins
    import signal

    from torch.optim import optimizer

    net = Net()

    def state():
        hooks = nn.modules.module
        return {
            "hooks": [
                len(v) for k, v in sorted(vars(hooks).items()) if k.startswith("_global") and isinstance(v, dict)
            ],
            "optimizers": (len(optimizer._global_optimizer_pre_hooks), len(optimizer._global_optimizer_post_hooks)),
            "modes": (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
            "threads": sorted(t.name for t in threading.enumerate()),
            "names": [
                {k: id(v) for k, v in vars(space).items()}
                for space in (builtins, torch, F, torch.Tensor, nn.Module, nn.Linear, nn.Dropout, torch.optim.SGD)
            ],
            "signals": {s: signal.getsignal(s) for s in signal.valid_signals()},
            "tracing": (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()),
            "streams": (sys.excepthook, sys.displayhook, sys.stdout, threading.excepthook),
            "finders": list(sys.meta_path),
            "environment": (dict(os.environ), os.getcwd()),
            "torch": (torch.is_grad_enabled(), torch.get_num_threads(), torch.get_rng_state().tolist()),
            "net": [(len(m._forward_hooks), len(m._forward_pre_hooks), sorted(vars(m))) for m in net.modules()],
            "files": sorted(os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if _is_open(n)),
        }

    def whole(path):
        with migrator.api_dump_init(net, path, retain_backward=True) as dump:
            dump.start()
            y = net(X)
            y.sum().backward(retain_graph=True)
            dump.stop()
        return y

    whole(tmp_path / "imports")
    net.zero_grad()
    before = state()
    y = whole(tmp_path / "d")
    assert state() == before
    assert not y._backward_hooks


def test_after_close_nothing_holds_the_network(tmp_path):
    net = Net()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start()
        y = net(X)
        dump.stop()
    gone = [weakref.ref(value) for value in (net, y, dump, dump._session._interception)]
    del net, y, dump
    gc.collect()
    assert [ref() for ref in gone] == [None] * 4


def _is_open(number):
    return os.path.exists(f"/proc/self/fd/{number}")


def test_threads_that_start_are_heard_and_older_ones_are_told(tmp_path, made):
    net = Net()
    with ThreadPoolExecutor(1) as old:
        old.submit(int).result()
        with migrator.api_dump_init(net, tmp_path) as dump:
            dump.start(dump_type="statistics")
            thread = threading.Thread(target=F.silu, args=(X,))
            thread.start()
            thread.join()
            old.submit(F.silu, X).result()
            for _ in range(2):
                old.submit(net, X).result()
            dump.stop()
            assert dump.skipped == {"calls outside modules in a thread that was started before the dump": 1}
        assert old.submit(torch._C._len_torch_function_stack).result() == 0
    assert made.calls >= {"Functional_silu_0", "NN_Linear_0", "NN_Linear_3", "Functional_relu_1"}
    assert "Functional_silu_1" not in made.calls


def test_a_users_profiler_of_threads_stays(tmp_path):
    events = []

    def profiler(frame, event, argument):
        events.append(event)

    threading.setprofile(profiler)
    try:
        with migrator.api_dump_init(Net(), tmp_path) as dump:
            dump.start(dump_type="stack")
            thread = threading.Thread(target=F.relu, args=(X,))
            thread.start()
            thread.join()
            dump.stop()
        assert threading.getprofile() is profiler
        assert "return" in events
    finally:
        threading.setprofile(None)


def test_names_of_calls_under_a_mode_of_the_users(tmp_path, made):
    torch.set_default_device("cpu")
    try:
        with migrator.api_dump_init(Net(), tmp_path) as dump:
            dump.start(dump_type="stack")
            2 * X
            F.max_pool2d(torch.ones(1, 1, 4, 4), 2)
            dump.stop()
    finally:
        torch.set_default_device(None)
    assert made.calls == {"Tensor___rmul___0", "Functional_max_pool2d_0"}
    assert all(frames[0].startswith(f"File {__file__}") for frames in made.stacks.values())


def test_a_subclass_of_tensor_sees_only_the_users_calls(tmp_path, made):
    seen = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    net = nn.Linear(3, 3)
    x = X.clone().requires_grad_().as_subclass(Logged)

    def step():
        seen.clear()
        y = net(F.relu(x + x))
        assert type(y) is Logged
        y.sum().backward()
        return list(seen)

    plain = step()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start()
        assert step() == plain
        dump.stop()
        assert not dump.skipped
    assert {"NN_Linear_0_backward_input", "Tensor___add___0_forward_output"} <= set(made.records)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader(tmp_path, made, method):
    net = nn.Linear(2, 2)
    data = torch.utils.data.TensorDataset(torch.arange(8.0).reshape(4, 2))
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        loader = torch.utils.data.DataLoader(
            data, batch_size=2, num_workers=1, multiprocessing_context=method, persistent_workers=True
        )
        for (batch,) in loader:
            net(batch)
        del loader
        dump.stop()
        assert not dump.skipped
    assert {c for c in made.calls if "Linear" in c} == {"NN_Linear_0", "NN_Linear_1"}


def test_a_forked_child_writes_nothing(tmp_path):
    out = run(
        f"""
import os, torch
from dumpsim.migrator import api_dump_init
net, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
with api_dump_init(net, {str(tmp_path / "d")!r}) as dump:
    dump.start()
    net(x)
    for way in ("stop", "exit"):
        pid = os.fork()
        if pid == 0:
            net(x)
            if way == "stop":
                dump.stop()
                dump.close()
                os._exit(torch._C._len_torch_function_stack())
            raise SystemExit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    net(x)
    dump.stop()
print("whole")
""",
        tmp_path,
    )
    assert out.strip() == "whole"
    made = Dump(tmp_path / "d")
    assert [n.rpartition("_forward")[0] for n in made.lines] == ["NN_Linear_0"] * 2 + ["NN_Linear_1"] * 2
    assert len(list((made.rank / "torch_api_dump").iterdir())) == 4


def test_a_disk_that_is_full_is_an_error_of_stop(tmp_path):
    out = run(
        f"""
import resource, signal, torch
from dumpsim.migrator import api_dump_init
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
big, small = torch.nn.Linear(4, 40000), torch.nn.Linear(3, 3)
dump = api_dump_init(torch.nn.ModuleList([big, small]), {str(tmp_path / "d")!r})
dump.start()
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
small(torch.ones(2, 3))
print(tuple(big(torch.ones(2, 4)).shape))
small(torch.ones(2, 3))
try:
    dump.stop()
except OSError as error:
    print(error)
dump.start(dump_type="statistics")
for _ in range(3000):
    small(torch.ones(2, 3))
try:
    dump.stop()
except OSError as error:
    print(error)
dump.close()
""",
        tmp_path,
    )
    forward, arrays, lines = out.splitlines()
    assert forward == "(2, 40000)"
    assert "NN_Linear_1_forward_output.npy: cannot be written" in arrays
    assert "torch_api_dump_info.pkl: cannot be written" in lines
    made = Dump(tmp_path / "d")
    for number in (0, 2):  # a file that is too big takes no others with it
        assert np.array_equal(made.array(f"NN_Linear_{number}_forward_input.0"), np.ones((2, 3)))
    assert len(made.lines) >= 8  # whole lines only, and none of those before is lost
    assert "torch.nn.Linear(2) forward" in made.stacks


@pytest.mark.parametrize("end", ["raise KeyError('mine')", "sys.exit(1)", "import _thread; _thread.interrupt_main()"])
def test_a_program_that_ends_by_an_error_leaves_whole_files(tmp_path, end):
    script = f"""
import signal, sys, torch
from dumpsim.migrator import api_dump_init
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background of a shell ignores it
net = torch.nn.Linear(2, 2)
api_dump_init(net, {str(tmp_path / "d")!r}).start()
net(torch.ones(1, 2))
{end}
"""
    run(script, tmp_path, code=-2 if "interrupt" in end else 1)
    made = Dump(tmp_path / "d")
    assert made.lines == ["NN_Linear_0_forward_input.0", "NN_Linear_0_forward_output"]
    assert made.array("NN_Linear_0_forward_input.0").tolist() == [[1.0, 1.0]]
    assert "torch.nn.Linear(0) forward" in made.stacks


def test_names_of_modules_that_no_file_can_have(tmp_path):
    keys = ("a/b", "line\n", "\udc80", "x" * 250, "größe")
    net = nn.ModuleDict({key: nn.Linear(3, 3) for key in keys})
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start()
        for layer in net.values():
            layer(X)
        with pytest.raises(DumpWriteError, match="the name is too long") as caught:
            dump.stop()
    assert not hasattr(caught.value, "__notes__")
    made = Dump(tmp_path)
    names = ["a_b", "line_", "_", "x" * 250, "größe"]
    assert [name for name in made.lines if "LAYER" in name] == [f"LAYER_{name}_forward_input" for name in names]
    assert len(list((made.rank / "torch_api_dump").iterdir())) == len(made.lines) - 1
    assert len(list(dumpsim.open(tmp_path))) == len(made.lines)


def test_a_program_that_ends_says_what_it_could_not_write(tmp_path):
    """The directory is gone that the first record makes room in, and then the place of every file."""
    script = f"""
import logging, os, sys, torch
from dumpsim.migrator import api_dump_init
logging.basicConfig(stream=sys.stdout)
net = torch.nn.Linear(2, 2)
dump = api_dump_init(net, {str(tmp_path / "d")!r})
os.rmdir({str(tmp_path / "d/rank0")!r})
open({str(tmp_path / "d/rank0")!r}, "w").close()
dump.start()
net(torch.ones(1, 2))
net(torch.ones(1, 2))
"""
    told = [line for line in run(script, tmp_path).splitlines() if "cannot be written" in line]
    assert len(told) == 1
    assert "Linear_1_forward_input.0.npy: cannot be written: a parent is a file" in told[0]
    assert "torch_api_dump_info.pkl: cannot be written" in told[0]


def test_copies_and_pickles_in_a_dump(tmp_path, made):
    net = Net()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start(dump_type="statistics")
        y = net(X)
        assert b"dumpsim" not in pickle.dumps(net) + pickle.dumps(y.detach()) + pickle.dumps(copy.deepcopy(net))
        torch.save(net, tmp_path / "net.pt")
        torch.save(net.state_dict(), tmp_path / "state.pt")
        dump.stop()
    assert set(torch.load(tmp_path / "state.pt", weights_only=True)) == set(net.state_dict())


def _doubled(module, given, result):
    return result * 2


def test_copies_of_a_module_with_hooks_of_the_user_compute_as_it_does(tmp_path, made):
    net = nn.Sequential(nn.ReLU())
    net[0].register_forward_hook(_doubled)
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        net(X)
        twin, loaded = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
        for one in (twin, loaded):
            assert torch.equal(one(X), 2 * X)
        dump.stop()
    assert made.records["NN_ReLU_0_forward_output"].max == 2.0
    for one in (net, twin, loaded):
        assert torch.equal(one(X), 2 * X)


@pytest.mark.parametrize("exact", [False, True])
def test_a_thread_that_outlives_the_dump_computes_as_before(tmp_path, made, exact):
    first, stopped, found = threading.Event(), threading.Event(), []

    def work():
        found.append(F.relu(X))
        first.set()
        stopped.wait(20)
        found.append(F.relu(-X))

    with Session(nn.ReLU(), tmp_path, exact=exact) as session:
        session.start(Request())
        thread = threading.Thread(target=work)
        thread.start()
        first.wait(20)
        session.stop()
    stopped.set()
    thread.join()
    assert [one.tolist() for one in found] == [X.tolist(), (0 * X).tolist()]
    assert made.calls == {"Functional_relu_0"}


def test_a_thread_that_announces_itself_has_records_outside_of_modules(tmp_path, made):
    """A new thread does so by its profile function, of which no line is traced: here an older one calls it."""
    begun, net = threading.Event(), nn.Sequential(nn.ReLU())

    def work():
        begun.wait(20)
        F.relu(X)  # not recorded: the thread is older than the dump
        threading.getprofile()(sys._getframe(), "call", None)
        F.relu(X)
        net(X)
        F.relu(X)

    thread = threading.Thread(target=work)
    thread.start()
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        begun.set()
        thread.join()
        dump.stop()
    assert [line for line in made.lines if line.startswith("Functional") and "output" in line] == [
        "Functional_relu_0_forward_output",
        "Functional_relu_1_forward_output",
    ]


@pytest.mark.parametrize(
    ("owner", "name", "exact", "said"),
    [
        (Naming, "identify", False, {"call site: OSError": 2}),  # sigmoid and neg
        (Naming, "identify", True, {"call site: OSError": 2}),
        (Session, "returned", False, {"record: OSError": 2}),  # two modules
        (Session, "returned", True, {"record: OSError": 4}),  # each with a hook for its LAYER and one for its NN
    ],
)
def test_errors_of_the_dump_stay_inside(tmp_path, monkeypatch, owner, name, exact, said):
    def fail(*_):
        raise OSError("no room")

    class Two(Net):
        def forward(self, x):
            return self.head_d(torch.neg(torch.sigmoid(self.fc(x))))

    net = Two().eval()
    bare = net(X)
    with Session(net, tmp_path, retain_backward=True, exact=exact) as session:
        session.start(Request())
        monkeypatch.setattr(owner, name, fail)
        result = net(X)
        monkeypatch.undo()
        assert dict(session.skipped) == said
        session.stop()
    assert torch.equal(result, bare)


@pytest.mark.parametrize("kind", ["all", "statistics"])
def test_an_integer_beyond_a_double_is_counted_and_the_dump_stays_readable(tmp_path, kind):
    class Takes(nn.Linear):
        def forward(self, v, number):
            return super().forward(v)

    net = Takes(3, 3)
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type=kind, filter_data=False)
        net(X, 10**400)
        dump.stop()
        assert list(dump.skipped.values()) == [1]
    assert Dump(tmp_path).lines == ["NN_Linear_0_forward_input.0", "NN_Linear_0_forward_output"]


class Barred(list):
    """A list that does not show what it holds."""

    def __iter__(self):
        raise KeyError("mine")


@pytest.mark.parametrize("coverage", ["listed", "full"])
@pytest.mark.parametrize("shape", ["deep", "barred"])
def test_a_container_that_cannot_be_walked_is_counted(tmp_path, shape, coverage):
    class Takes(nn.Linear):
        def forward(self, v, container):
            return super().forward(v)

    container = [X]
    if shape == "deep":
        for _ in range(5000):
            container = [container]
    else:
        container = Barred(container)
    net = Takes(3, 3)
    with migrator.api_dump_init(net, tmp_path, coverage=coverage) as dump:
        dump.start(dump_type="statistics")
        net(X, container)
        dump.stop()
        assert sum(dump.skipped.values()) == 1
    assert "NN_Linear_0_forward_output" in Dump(tmp_path).lines


def test_keyword_arguments_are_counted_by_the_tensors_they_hold(made):
    class Takes(nn.Linear):
        def forward(self, v, **others):
            return super().forward(v)

    net = Takes(3, 3)
    with migrator.api_dump_init(net, made.rank.parent) as dump:
        dump.start(dump_type="stack")
        net(X, one=X, more=[X, {"k": (X, None)}], none=2)
        dump.stop()
        assert dump.skipped == {"keyword argument": 3}


class Alias(nn.Module):
    """Calls functions of torch by other names."""

    def forward(self, x):
        function, product = torch.Tensor.abs, torch.einsum
        return function(product("ij,kj->ik", x, x))


def test_calls_by_another_name_have_the_name_of_the_function(tmp_path, made):
    net = Alias()
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        net(X)
        dump.stop()
        assert not dump.skipped
    assert made.calls >= {"Tensor_abs_0", "Torch_einsum_0"}
    assert {f"Torch_einsum_0_forward_input.{at}" for at in (1, 2)} <= set(made.lines)


@pytest.mark.parametrize("levels", [79, 80])
def test_places_too_long_for_the_name_of_a_file_are_counted(tmp_path, made, levels):
    """A place of 160 characters has a file, one of 161 none."""

    class Takes(nn.Linear):
        def forward(self, v, container):
            return super().forward(v)

    container = X
    for _ in range(79):
        container = [container]
    container = [container] if levels == 80 else [None] * 10 + [container]
    net = Takes(3, 3)
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="all")
        net(X, container)
        dump.stop()
        assert dict(dump.skipped) == ({} if levels == 80 else {"place too deep for the name of a file": 1})
    place = ".0" * 80
    assert (f"NN_Linear_0_forward_input.1{place}" in made.lines) == (levels == 80)


class Sparse(nn.Module):
    """The gradient of an operator's result is sparse."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(4, 3))

    def forward(self, x):
        return F.embedding(x, torch.mul(self.table, 2.0), sparse=True)


@pytest.mark.parametrize("fails", [False, True])
def test_gradients_that_cannot_be_recorded_are_counted(tmp_path, monkeypatch, fails):
    net = Sparse()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start(dump_type="statistics")
        result = net(torch.tensor([1, 2]))
        if fails:

            def fail(*_):
                raise OSError("no room")

            monkeypatch.setattr(Session, "_gradient", fail)
        result.sum().backward()
        monkeypatch.undo()
        assert dump.skipped == {"gradient: OSError": 2} if fails else {"layout sparse_coo": 1}
        dump.stop()
    assert net.table.grad.to_dense().tolist() == [[0.0] * 3, [2.0] * 3, [2.0] * 3, [0.0] * 3]


def test_an_error_at_a_call_that_backward_repeats_stays_inside(tmp_path, monkeypatch):
    from torch.utils.checkpoint import checkpoint

    def fail(*_):
        raise OSError("no room")

    x = X.clone().requires_grad_()
    with migrator.api_dump_init(nn.Identity(), tmp_path, retain_backward=True) as dump:
        dump.start(dump_type="statistics")
        result = checkpoint(torch.sigmoid, x, use_reentrant=True)
        monkeypatch.setattr(Session, "made_again", fail)
        result.sum().backward()
        monkeypatch.undo()
        assert dump.skipped["record: OSError"] == 1
        dump.stop()
    sigmoid = torch.sigmoid(X)
    assert torch.allclose(x.grad, sigmoid * (1 - sigmoid))


def test_averages_of_parameters_are_not_recorded(tmp_path, made):
    """Code of torch.optim outside of an optimizer's step."""
    net = nn.Linear(3, 3)
    average = torch.optim.swa_utils.AveragedModel(net, avg_fn=None)
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="statistics")
        for _ in range(3):
            average.update_parameters(net)
        torch.add(net(X), 1)
        dump.stop()
    assert made.calls == {"NN_Linear_0", "Torch_add_0"}


def test_the_dump_of_a_mode_for_operators_is_not_seen_by_it(tmp_path, made):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    seen = []
    net = nn.ReLU()
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="all")
        with Seen():
            net(X)
        dump.stop()
        assert not dump.skipped
    assert seen == ["aten.relu.default"]
    assert (made.array("NN_ReLU_0_forward_output") == 1).all()


def test_stacks_that_could_not_be_written_are_written_later(tmp_path, monkeypatch):
    net = nn.ReLU()
    with Session(net, tmp_path) as dump:
        dump.start(Request())
        net(X)
        written = dump.output.stacks

        def full(stacks):
            raise DumpWriteError("no room", where="there", code="DS-ARC-010")

        monkeypatch.setattr(dump.output, "stacks", full)
        with pytest.raises(DumpWriteError):
            dump._write_stacks()
        monkeypatch.setattr(dump.output, "stacks", written)
        dump.stop()
    assert list(read_stack(tmp_path / "rank0" / "torch_api_dump_stack.json")) == ["torch.nn.ReLU(0) forward"]


class Drops(nn.Linear):
    def forward(self, x):
        return F.dropout(super().forward(x), 0.5, True)


def test_dropout_in_a_listed_module_is_neutral_in_the_exact_dump(tmp_path):
    net = Drops(3, 3)
    with Session(net, tmp_path, exact=True) as session:
        session.start(Request())
        assert torch.equal(net(X), F.linear(X, net.weight, net.bias))
        session.stop()


def test_functions_of_an_older_thread_are_recorded_in_the_exact_dump(tmp_path, made):
    begin, result = threading.Event(), []
    net = Net().eval()

    def work():
        begin.wait()
        result.append(net(X))

    thread = threading.Thread(target=work)
    thread.start()
    with Session(net, tmp_path, exact=True) as session:
        session.start(Request())
        begin.set()
        thread.join()
        session.stop()
    assert len(result) == 1
    assert "Functional_relu_0" in made.calls


def test_a_method_of_an_expression_is_not_taken_for_a_function_from_before():
    """torch.relu was kept in a list; the same word after an expression is a method of its value."""
    net = nn.Module()
    net.kept = [torch.relu]
    early = Early([torch.relu], net, None)
    frame = sys._getframe()
    for word, wanted in (("relu", False), ("other", True)):
        assert early.holds(torch.relu, CallSite(False, callee=Load("", "", (word,))), frame) is wanted
