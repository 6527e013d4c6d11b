"""``mint`` has the names, arguments and defaults of PyTorch; values and gradients are compared with PyTorch."""

import gzip
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Parameter, Tensor, context, mint, nn, ops
from dumpsim.frontends.mindspore.mint.nn import functional as F  # noqa: N812 - users' name

FOLDER = Path(__file__).parents[3] / "fixtures" / "frontends" / "mindspore"
_SPEC = importlib.util.spec_from_file_location("mint_cases", FOLDER / "mint_cases.py")
cases = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cases)
RECORDED = json.loads(gzip.decompress((FOLDER / "mint.json.gz").read_bytes()))

KINDS = {"float32": np.float32, "float64": np.float64, "int64": np.int64, "bool": np.bool_}


def called(case, tensors):
    return cases.flat(eval(case, {"m": mint, "F": F, "T": ms, **tensors}))


@pytest.fixture
def pynative():
    context.set_context(mode=context.PYNATIVE_MODE, device_target="CPU")


@pytest.mark.parametrize("case", cases.CASES)
def test_results_are_those_of_pytorch(case, pynative):
    tensors = {name: Tensor(array) for name, array in cases.operands().items()}
    outputs = called(case, tensors)
    real = RECORDED["functions"][case]["values"]
    assert len(outputs) == len(real)
    for output, (kind, shape, values) in zip(outputs, real, strict=True):
        array = output.asnumpy()
        assert list(array.shape) == shape
        assert array.dtype == KINDS[kind]
        np.testing.assert_allclose(array, np.asarray(values, array.dtype).reshape(shape), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", [c for c in cases.CASES if "gradient" in RECORDED["functions"][c]])
def test_gradients_are_those_of_pytorch(case, pynative):
    tensors = {name: Tensor(array) for name, array in cases.operands().items()}
    wanted = cases.gradient_of(case)

    def total(x):
        outputs = called(case, {**tensors, wanted: x})
        floats = [(n, o) for n, o in enumerate(outputs) if o.dtype in (ms.float32, ms.float64)]
        return sum((ops.mul(o, Tensor(cases.weights(case, n, o.shape))).sum() for n, o in floats), Tensor(0.0))

    slope = ms.grad(total)(tensors[wanted]).asnumpy()
    np.testing.assert_allclose(slope, RECORDED["functions"][case]["gradient"], rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("case", cases.LAYERS)
def test_cells_are_those_of_pytorch(case, pynative):
    """Outputs in evaluation and of two steps of training, parameters, and what training counted."""
    made, _, inputs = case.partition(" | ")
    names = {name: Tensor(array) for name, array in cases.operands().items()}
    names |= {"m": mint, "N": mint.nn, "F": F, "T": ms}
    cell, inputs = eval(made, names), eval(f"({inputs},)", names)
    real = RECORDED["layers"][case]
    parameters = {one.name: one for one in cell.get_parameters()}
    trained = {name: [list(one.shape), True] for name, one in parameters.items() if one.requires_grad}
    for name, one in parameters.items():
        if one.dtype == ms.float32:
            one.set_data(Tensor(cases.filled(name, one.shape).astype(np.float32)))
    outputs = [cases.flat(cell.set_train(training)(*inputs)) for training in (False, True, True)]
    for found, wanted in zip(outputs, real["outputs"], strict=True):
        assert [list(one.shape) for one in found] == [shape for shape, _ in wanted]
        for one, (_, values) in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.asnumpy(), values, rtol=2e-5, atol=2e-5)
    assert trained == {name: row for name, row in real["parameters"].items() if row[1]}
    state = {name: value for name, value in real["state"].items() if name != "pos_weight"}  # of a loss
    assert set(parameters) == {*real["parameters"], *state}
    for name, value in state.items():
        np.testing.assert_allclose(parameters[name].asnumpy(), value, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
@pytest.mark.parametrize("case", RECORDED["steps"])
def test_optimizer_steps_are_those_of_pytorch(case, mode):
    context.set_context(mode=mode, device_target="CPU")
    name, _, settings = case.partition(" ")
    weight = Parameter(Tensor(cases.operands()["x"]), name="weight")
    settings = {key: tuple(one) if key == "betas" else one for key, one in json.loads(settings).items()}
    optimizer = getattr(mint.optim, name)([weight], **settings)
    for step, real in enumerate(RECORDED["steps"][case]):
        optimizer((Tensor(cases.weights(name, step, (3, 4))),))
        np.testing.assert_allclose(weight.asnumpy(), real, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_smoothed_labels_and_weights_of_classes_apply_together(reduction, pynative):
    """The formula of PyTorch: a share of the loss is that of all classes alike; ignored rows count nowhere."""
    logits, weight = cases.weights("smoothed", 0, (5, 3)), np.array([0.5, 2.0, 1.0], np.float32)
    classes, smoothing = np.array([0, 2, 1, 1, 0]), 0.3
    found = F.cross_entropy(Tensor(logits), Tensor(classes), Tensor(weight), 1, reduction, smoothing).asnumpy()
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    share = smoothing / 3 + (1 - smoothing) * np.eye(3)[classes]
    rows = -(logs * weight * share).sum(1) * (classes != 1)
    total = {"mean": rows.sum() / weight[[0, 2, 0]].sum(), "sum": rows.sum(), "none": rows}[reduction]
    np.testing.assert_allclose(found, total, rtol=1e-5)


def test_batch_norm_without_running_statistics_uses_those_of_the_batch(pynative):
    x = cases.weights("batch", 0, (4, 3))
    cell = mint.nn.BatchNorm1d(3, track_running_stats=False)
    assert [one.name for one in cell.get_parameters()] == ["weight", "bias"]
    for training in (False, True):
        found = cell.set_train(training)(Tensor(x)).asnumpy()
        np.testing.assert_allclose(found, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-4, atol=1e-5)


def test_a_learning_rate_of_a_group_may_be_changed():
    weight, bias = (Parameter(Tensor([1.0]), name=name) for name in ("weight", "bias"))
    optimizer = mint.optim.SGD([{"params": [weight], "lr": 0.5}, {"params": [bias]}], lr=0.1)
    gradients = (Tensor([1.0]), Tensor([1.0]))
    optimizer(gradients)
    assert [round(p.item(), 5) for p in (weight, bias)] == [0.5, 0.9]
    ops.assign(optimizer.param_groups[1]["lr"], Tensor(0.2))
    optimizer(gradients)
    assert [round(p.item(), 5) for p in (weight, bias)] == [0.0, 0.7]


class Net(nn.Cell):
    """One of each kind of cell."""

    def __init__(self):
        super().__init__()
        self.embedding = mint.nn.Embedding(5, 8)
        self.norm = mint.nn.LayerNorm(8)
        self.linear = mint.nn.Linear(8, 6)
        self.act = mint.nn.GELU(approximate="tanh")
        self.conv = mint.nn.Conv2d(1, 4, 3, padding=1)
        self.bn = mint.nn.BatchNorm2d(4)
        self.gn = mint.nn.GroupNorm(2, 4)
        self.pool = mint.nn.MaxPool2d(2)
        self.flat = mint.nn.Flatten()
        self.drop = mint.nn.Dropout(0.5)

    def construct(self, ids, image):
        x = self.act(self.linear(self.norm(self.embedding(ids))))
        y = self.flat(self.gn(self.pool(self.bn(self.conv(image)))))
        return self.drop(mint.sum(x) + mint.sum(y * y))


def test_cells_train_alike_in_both_modes():
    losses = []
    for mode in (context.GRAPH_MODE, context.PYNATIVE_MODE):
        context.set_context(mode=mode, device_target="CPU")
        net = Net()
        net.drop.p = 0.0
        draw = np.random.RandomState(1)
        for parameter in net.trainable_params():
            parameter.set_data(Tensor((draw.randn(*parameter.shape) * 0.3).astype(np.float32)))
        net.set_train()
        optimizer = mint.optim.AdamW(net.trainable_params(), lr=0.01)
        step = ms.value_and_grad(net, None, net.trainable_params())
        inputs = Tensor([[1, 2]], ms.int64), Tensor(draw.randn(1, 1, 4, 4).astype(np.float32))
        seen = []
        for _ in range(3):
            loss, gradients = step(*inputs)
            optimizer(gradients)
            seen.append(loss.item())
        assert seen[2] < seen[0]
        assert net.bn.num_batches_tracked.item() == 3
        losses.append(seen)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def test_parameters_have_the_names_of_pytorch():
    assert list(Net().parameters_dict()) == [
        "embedding.weight", "norm.weight", "norm.bias", "linear.weight", "linear.bias", "conv.weight", "conv.bias",
        "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked", "gn.weight", "gn.bias",
    ]  # fmt: skip


def test_every_listed_name_exists():
    from importlib import import_module

    from dumpsim.frontends.mindspore._api import rows

    for module in ("mint", "mint.nn", "mint.nn.functional"):
        package = import_module(f"dumpsim.frontends.mindspore.{module}")
        text = "".join(getattr(package, name, "") for name in ("_RENAMED", "_APPLIED"))
        same = [name.rpartition(".") for row in rows() for name in row.mint]
        listed = [name for _, _, name in (n for n in same if f"mint.{n[0]}".rstrip(".") == module)]
        for name in [*listed, *(r.partition("(")[0] for r in text.splitlines() if r)]:
            assert callable(getattr(package, name)), name


@pytest.mark.parametrize(
    ("module", "name"),
    [("mint", "histc"), ("mint.nn", "Fold"), ("mint.nn.functional", "fold"), ("mint.optim", "FusedAdamW")],
)
def test_a_missing_function_is_named(module, name):
    from importlib import import_module

    with pytest.raises(UnsupportedError, match=f"mindspore.{module}: {name} is not emulated"):
        getattr(import_module(f"dumpsim.frontends.mindspore.{module}"), name)()


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match=r"mint\.cumsum: missing a required argument: 'dim'"):
        mint.cumsum(Tensor([1.0]))
    with pytest.raises(UnsupportedError, match="amsgrad"):
        mint.optim.AdamW([Parameter(Tensor([1.0]), name="p")], amsgrad=True)
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        mint.optim.SGD([Parameter(Tensor([1.0]), name="p")], lr=-1)
