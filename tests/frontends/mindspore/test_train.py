"""Training op by op and as a graph: gradients, optimizers, Model, checkpoints."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnreadableError, UnsupportedError
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from dumpsim.frontends.mindspore import dataset as ds
from dumpsim.frontends.mindspore.train import (
    Callback,
    CheckpointConfig,
    LossMonitor,
    Model,
    ModelCheckpoint,
    TimeMonitor,
)

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
RNG = np.random.RandomState(0)
INPUTS = RNG.randn(12, 4).astype(np.float32)
TARGETS = INPUTS @ RNG.randn(4, 1).astype(np.float32)


def net():
    ms.set_seed(1)
    return nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 1))


def batches(size=4):
    return ds.NumpySlicesDataset((INPUTS, TARGETS), ["data", "label"], shuffle=False).batch(size)


OPTIMIZERS = {
    "SGD": lambda p: nn.SGD(p, 0.05),
    "SGD with momentum": lambda p: nn.SGD(p, 0.02, momentum=0.9, weight_decay=1e-4),
    "Momentum": lambda p: nn.Momentum(p, 0.02, 0.9, loss_scale=2.0),
    "Adam": lambda p: nn.Adam(p, 0.02),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.01),
    "rates by step": lambda p: nn.SGD(p, [0.05] * 100),
}


@MODES
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_loss_falls(mode, name):
    ms.set_context(mode=mode)
    network = net()
    optimizer = OPTIMIZERS[name](network.trainable_params())
    scale = 2.0 if name == "Momentum" else None
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), optimizer, sens=scale).set_train()
    losses = [float(step(Tensor(INPUTS), Tensor(TARGETS))) for _ in range(12)]
    assert losses[-1] < 0.6 * losses[0]
    assert optimizer.global_step.item() == 12


def test_both_modes_train_alike():
    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        network = net()
        step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), nn.Adam(network.trainable_params(), 0.01))
        results.append([float(step(Tensor(INPUTS), Tensor(TARGETS))) for _ in range(3)])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_one_step_of_momentum_by_hand():
    weight = np.array([[2.0]], np.float32)
    dense = nn.Dense(1, 1, Tensor(weight), has_bias=False)
    optimizer = nn.Momentum(dense.trainable_params(), 0.1, 0.5)
    step = nn.TrainOneStepCell(nn.WithLossCell(dense, nn.MSELoss()), optimizer)
    value, moment = 2.0, 0.0
    for _ in range(3):
        step(Tensor([[3.0]]), Tensor([[1.0]]))
        moment = 0.5 * moment + 2 * (3 * value - 1) * 3
        value -= 0.1 * moment
    np.testing.assert_allclose(dense.weight.item(), value, rtol=1e-5)


def test_groups_have_their_own_rates():
    network = net()
    first, second = network[0].trainable_params(), network[2].trainable_params()
    optimizer = nn.SGD([{"params": first, "lr": 0.0}, {"params": second}], 0.1)
    assert [optimizer.get_lr_parameter(p[0]).item() for p in (first, second)] == [0.0, np.float32(0.1)]
    before = [p.asnumpy() for p in (*first, *second)]
    nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), optimizer)(Tensor(INPUTS), Tensor(TARGETS))
    same = [np.array_equal(a, p.asnumpy()) for a, p in zip(before, (*first, *second), strict=True)]
    assert same == [True, True, False, False]
    with pytest.raises(KeyError, match="order"):
        nn.SGD([{"params": first, "rate": 1}])


@MODES
def test_gradients_by_argument_and_by_weight(mode):
    ms.set_context(mode=mode)
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])

    def product(a, b):
        return ops.reduce_sum(a * a * b)

    value, by_first = ms.value_and_grad(product)(x, y)
    assert value.item() == 19
    np.testing.assert_allclose(by_first.asnumpy(), [6, 16])
    by_both = ms.grad(product, (0, 1))(x, y)
    np.testing.assert_allclose([g.asnumpy() for g in by_both], [[6, 16], [1, 4]])
    np.testing.assert_allclose(ops.GradOperation(get_all=True)(product)(x, y)[1].asnumpy(), [1, 4])
    scaled = ops.GradOperation(sens_param=True)(lambda a: a * a)(x, Tensor([10.0, 1.0]))
    np.testing.assert_allclose(scaled.asnumpy(), [20, 4])
    dense = nn.Dense(2, 1, "ones", "zeros")
    by_weight = ms.grad(dense, None, dense.trainable_params())(Tensor([[5.0, 6.0]]))
    np.testing.assert_allclose(by_weight[0].asnumpy(), [[5, 6]])


def test_vjp_and_aux():
    value, back = ms.vjp(lambda a: a * a, Tensor([3.0]))
    assert value.item() == 9
    assert back(Tensor([2.0]))[0].item() == 12
    gradient, aux = ms.grad(lambda a: (ops.reduce_sum(a), a * 2), has_aux=True)(Tensor([1.0, 1.0]))
    assert gradient.asnumpy().tolist() == [1, 1]
    assert aux[0].asnumpy().tolist() == [2, 2]


def test_gradients_against_finite_differences():
    network = net()
    loss = nn.WithLossCell(network, nn.MSELoss())
    weight = network[0].weight
    gradient = ms.grad(loss, None, weight)(Tensor(INPUTS), Tensor(TARGETS)).asnumpy()
    start = weight.asnumpy()
    for index in ((0, 0), (3, 2), (7, 3)):
        values = []
        for shift in (1e-2, -1e-2):
            moved = start.copy()
            moved[index] += shift
            weight.set_data(Tensor(moved))
            values.append(float(loss(Tensor(INPUTS), Tensor(TARGETS))))
        np.testing.assert_allclose(gradient[index], (values[0] - values[1]) / 2e-2, rtol=0.02, atol=1e-4)


class Log(Callback):
    """Records the events."""

    def __init__(self):
        self.seen = []

    def on_train_begin(self, run_context):
        params = run_context.original_args()
        self.seen.append(("begin", params.epoch_num, params.batch_num, params.dataset_sink_mode))

    def on_train_step_end(self, run_context):
        params = run_context.original_args()
        self.seen.append(("step", params.cur_epoch_num, params.cur_step_num))

    def on_train_epoch_end(self, run_context):
        self.seen.append("epoch end")

    def on_train_end(self, run_context):
        self.seen.append("end")


def model(**kwargs):
    network = net()
    return Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.05), **kwargs)


def test_model_calls_callbacks_as_mindspore_does(capsys):
    log = Log()
    model().train(2, batches(), callbacks=[LossMonitor(), log, TimeMonitor()])
    assert log.seen == [
        ("begin", 2, 3, False),
        *[("step", 1, n) for n in (1, 2, 3)],
        "epoch end",
        *[("step", 2, n) for n in (4, 5, 6)],
        "epoch end",
        "end",
    ]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(", loss is")[0] for line in lines if "loss" in line] == [
        f"epoch: {epoch} step: {step}" for epoch in (1, 2) for step in (1, 2, 3)
    ]
    assert sum(line.startswith("Train epoch time: ") for line in lines) == 2


def test_a_callback_can_stop():
    class Stop(Log):
        def on_train_step_end(self, run_context):
            super().on_train_step_end(run_context)
            if run_context.original_args().cur_step_num == 2:
                run_context.request_stop()

    log = Stop()
    model().train(5, batches(), callbacks=log)
    assert log.seen[-3:] == [("step", 1, 2), "epoch end", "end"]


def test_evaluation_and_prediction():
    trained = model(metrics={"loss", "mse", "mae"})
    outputs = trained.predict(Tensor(INPUTS)).asnumpy()
    found = trained.eval(batches())
    np.testing.assert_allclose(found["mse"], ((outputs - TARGETS) ** 2).mean(), rtol=1e-5)
    np.testing.assert_allclose(found["mae"], np.abs(outputs - TARGETS).mean(), rtol=1e-5)
    np.testing.assert_allclose(found["loss"], found["mse"], rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: model().train(0, batches()), ValueError, "must > 0, but got '0'"),
        (lambda: model().train(1.0, batches()), TypeError, "must be int"),
        (lambda: model().eval(batches()), ValueError, "'metrics' can not be None or empty"),
        (lambda: model(metrics={"accurac"}), KeyError, "did you mean 'accuracy'"),
        (lambda: model(amp_level="auto").train_network, UnsupportedError, "mixed precision"),
        (lambda: model().train(1, batches(), callbacks=[3]), TypeError, "must be Callback"),
        (lambda: LossMonitor(-1), ValueError, "must be int and must >= 0"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_nan_loss_ends_training():
    context = ms.train.RunContext({})
    context._original_args = type(
        "Args", (), {"net_outputs": Tensor(float("nan")), "cur_step_num": 1, "batch_num": 1}
    )()
    context._original_args.cur_epoch_num = 1
    with pytest.raises(ValueError, match="Invalid loss"):
        LossMonitor().step_end(context)


def test_checkpoints_are_loaded_as_saved(tmp_path):
    network = nn.SequentialCell(nn.Dense(3, 2), nn.BatchNorm1d(2))
    network.insert_param_to_cell("scale", Parameter(Tensor(2.5)))
    network.insert_param_to_cell("single", Parameter(Tensor([1.5])))
    path = tmp_path / "net.ckpt"
    ms.save_checkpoint(network, str(path))
    loaded = ms.load_checkpoint(str(path))
    assert list(loaded) == [p.name for p in network.get_parameters()]
    for parameter in network.get_parameters():
        np.testing.assert_array_equal(loaded[parameter.name].asnumpy(), parameter.asnumpy())
        assert loaded[parameter.name].shape == parameter.shape
    fresh = nn.SequentialCell(nn.Dense(3, 2), nn.BatchNorm1d(2))
    missing, unused = ms.load_param_into_net(fresh, loaded)
    assert (missing, unused) == ([], ["scale", "single"])
    np.testing.assert_array_equal(fresh[0].weight.asnumpy(), network[0].weight.asnumpy())


def test_options_of_checkpoints_that_change_nothing_are_accepted(tmp_path):
    network, path = nn.Dense(1, 1, "ones", "zeros"), tmp_path / "a.ckpt"
    ms.save_checkpoint(
        network, str(path), integrated_save=True, async_save=False, append_dict=None, enc_mode="AES-GCM", format="ckpt"
    )
    assert sorted(ms.load_checkpoint(str(path))) == ["bias", "weight"]
    for options in ({"async_save": True}, {"format": "safetensors"}, {"enc_key": b"0" * 16}):
        with pytest.raises(UnsupportedError, match="are not emulated"):
            ms.save_checkpoint(network, str(tmp_path / "b.ckpt"), **options)
    assert [found.name for found in tmp_path.iterdir()] == ["a.ckpt"]


def test_invalid_checkpoints(tmp_path):
    path = tmp_path / "bad.ckpt"
    path.write_bytes(b"\x0a\xff\xff\xff\x7f")
    with pytest.raises(UnreadableError, match="is truncated"):
        ms.load_checkpoint(str(path))
    with pytest.raises(ValueError, match="does not exist"):
        ms.load_checkpoint(str(tmp_path / "none.ckpt"))
    with pytest.raises(ValueError, match="ckpt"):
        ms.load_checkpoint(str(tmp_path / "net.npz"))


def test_checkpoints_while_training(tmp_path):
    callback = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=2))
    model().train(1, batches(), callbacks=callback)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net-1_2.ckpt", "net-1_3.ckpt"]


def test_rates_by_step():
    assert nn.piecewise_constant_lr([1, 3], [1.0, 0.1]) == [1.0, 0.1, 0.1]
    np.testing.assert_allclose(nn.exponential_decay_lr(1.0, 0.9, 6, 2, 1, is_stair=True), [1, 1, 0.9, 0.9, 0.81, 0.81])
    np.testing.assert_allclose(nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2), [0.1, 0.1, 0.055, 0.055, 0.01, 0.01])
    with pytest.raises(ValueError, match="size of 'milestone'"):
        nn.piecewise_constant_lr([1], [1.0, 2.0])
    with pytest.raises(ValueError, match="'max_lr' must be greater"):
        nn.cosine_decay_lr(1.0, 0.1, 1, 1, 1)


def test_the_package_works_without_dumpsim_run(tmp_path):
    script = (
        "from dumpsim.frontends.mindspore import nn, Tensor; import numpy as np; "
        "print(nn.Dense(2, 1, 'ones', 'zeros')(Tensor(np.ones((1, 2), np.float32))))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[3], check=True
    )
    assert run.stdout == "[[2.]]\n"
