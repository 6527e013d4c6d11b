"""Callbacks that monitor values. The expected sequences were recorded from MindSpore 2.10 with the same values."""

import numpy as np
import pytest

from dumpsim.frontends.mindspore import Parameter, Tensor, nn
from dumpsim.frontends.mindspore import dataset as ds
from dumpsim.frontends.mindspore import train as t
from dumpsim.frontends.mindspore.train.callback._callback import InternalCallbackParam

LOSSES = [1.0, 0.9, 0.85, 0.86, 0.87, 0.88, 0.1, 0.2, 0.3, 0.4]
SCORES = [0.5, 0.6, 0.55, 0.56, 0.57, 0.9, 0.8, 0.8, 0.8]


def run(callback, values, monitor="loss"):
    """Learning rates after each epoch, up to the epoch that ends the training."""
    weight = Parameter(Tensor(np.ones(1, np.float32)), name="w")
    optimizer = nn.SGD([weight], learning_rate=0.1)
    params = InternalCallbackParam(optimizer=optimizer, cur_epoch_num=0, cur_step_num=0, batch_num=1)
    context = t.RunContext(params)
    callback.on_train_begin(context)
    rates = []
    for epoch, value in enumerate(values, 1):
        params.update(cur_epoch_num=epoch, cur_step_num=epoch, net_outputs=Tensor(np.float32(value)))
        if monitor != "loss":
            params.eval_results = {monitor: value}
        callback.on_train_step_end(context)
        callback.on_train_epoch_end(context)
        rates.append(round(float(optimizer.learning_rate.asnumpy()), 8))
        if context.get_stop_requested():
            break
    callback.on_train_end(context)
    return rates


@pytest.mark.parametrize(
    ("settings", "monitor", "epochs"),
    [
        ({"patience": 2}, "loss", 5),
        ({"patience": 2, "min_delta": 0.1}, "loss", 4),
        ({"patience": 1, "baseline": 0.5}, "loss", 1),
        ({"patience": 0}, "loss", 1),
        ({"patience": 2, "mode": "max"}, "loss", 3),
        ({"patience": 2}, "acc", 4),
        ({"patience": 2, "mode": "min"}, "acc", 3),
        ({"patience": 1}, "f1", 3),
    ],
)
def test_early_stopping(capsys, settings, monitor, epochs):
    callback = t.EarlyStopping(monitor=monitor, verbose=True, **settings)
    assert len(run(callback, LOSSES if monitor == "loss" else SCORES, monitor)) == epochs
    assert capsys.readouterr().out == f"Epoch {epochs:05d}: early stopping\n"


@pytest.mark.parametrize(("verbose", "values"), [(False, LOSSES), (True, [3.0, 2.0, 1.0]), (False, [2.0, 1.0])])
def test_early_stopping_prints_only_a_stop_and_on_request(capsys, verbose, values):
    run(t.EarlyStopping(monitor="loss", patience=2, verbose=verbose), values)
    assert capsys.readouterr().out == ""


def test_early_stopping_at_nan():
    assert len(run(t.EarlyStopping(monitor="loss", patience=1), [1.0, float("nan"), 1.0])) == 2


@pytest.mark.parametrize(
    ("settings", "monitor", "halved"),
    [
        ({"patience": 2}, "loss", [5, 9]),
        ({"patience": 2, "min_delta": 0.1}, "loss", [4, 6, 9]),
        ({"patience": 0}, "loss", [4, 5, 6, 8, 9, 10]),
        ({"patience": 2, "mode": "max"}, "loss", [3, 5, 7, 9]),
        ({"patience": 2}, "acc", [4, 8]),
        ({"patience": 2, "mode": "min"}, "acc", [3, 5, 7, 9]),
        ({"patience": 1}, "f1", [3, 4, 5, 7, 8, 9]),
    ],
)
def test_reduction_on_a_plateau(capsys, settings, monitor, halved):
    values = LOSSES if monitor == "loss" else SCORES
    callback = t.ReduceLROnPlateau(monitor=monitor, factor=0.5, verbose=True, **settings)
    expected = [0.1 * 0.5 ** sum(e <= epoch for e in halved) for epoch in range(1, len(values) + 1)]
    np.testing.assert_allclose(run(callback, values, monitor), expected, rtol=1e-5)
    lines = capsys.readouterr().out.splitlines()
    assert [int(line.split()[1].rstrip(":")) for line in lines] == halved
    assert lines[0] == f"Epoch {halved[0]:05d}: ReduceLROnPlateau reducing learning rate to 0.05."


def test_cooldown_and_lower_bound():
    ones = [1.0] * 6
    plateau = t.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, cooldown=2)
    assert run(plateau, ones) == [0.1, 0.05, 0.05, 0.025, 0.025, 0.0125]
    assert run(t.ReduceLROnPlateau(monitor="loss", patience=1, min_lr=0.02), ones) == [0.1] + [0.02] * 5
    falling = [1.0, 0.0, -1.0, -2.0, -3.0]  # 0 is not a value
    rates = run(t.ReduceLROnPlateau(monitor="acc", patience=1), falling, "acc")
    assert rates == [0.1, 0.1, 0.01, 0.001, 0.0001]


@pytest.mark.parametrize(
    ("callback", "settings", "error", "text"),
    [
        ("EarlyStopping", {"monitor": 3}, TypeError, "The type of 'monitor' should be 'str', but got type 'int'."),
        ("EarlyStopping", {"patience": -1}, ValueError, "must be int and must >= 0, but got '-1' with type 'int'."),
        ("EarlyStopping", {"patience": 1.5}, TypeError, "The input value must be int, but got 'float'"),
        ("EarlyStopping", {"verbose": 3}, TypeError, "The input value must be a bool, but got int."),
        ("EarlyStopping", {"mode": "x"}, ValueError, "mode should be 'auto', 'min' or 'max', but got x."),
        ("ReduceLROnPlateau", {"factor": 1}, TypeError, "The input value must be 'float',  but got 'int'."),
        ("ReduceLROnPlateau", {"factor": 2.0}, ValueError, "must be in range of (0.0, 1.0), but got 2.0"),
        ("ReduceLROnPlateau", {"cooldown": -1}, ValueError, "must be int and must >= 0, but got '-1'"),
    ],
)
def test_invalid_settings_are_refused(callback, settings, error, text):
    with pytest.raises(error) as caught:
        getattr(t, callback)(**settings)
    assert text in str(caught.value)


def test_a_callback_begins_anew_with_each_training():
    for callback in (
        t.EarlyStopping(monitor="loss", patience=2),
        t.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=2, cooldown=2),
    ):
        assert run(callback, LOSSES[:5]) == run(callback, LOSSES[:5])
    stop, plateau = t.EarlyStopping("loss"), t.ReduceLROnPlateau("loss")
    assert (stop.wait, stop.stopped_epoch, stop.best, stop.patience) == (0, 0, float("inf"), 0)
    assert (plateau.wait, plateau.cooldown_counter, plateau.best, plateau.patience) == (0, 0, float("inf"), 10)


def test_without_an_improvement_the_weights_of_the_first_epoch_are_restored():
    network = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    params = InternalCallbackParam(train_network=network)
    context = t.RunContext(params)
    stop = t.EarlyStopping(monitor="loss", patience=2, restore_best_weights=True)
    stop.on_train_begin(context)
    for epoch in (1, 2):
        network.weight.set_data(Tensor(np.full((1, 1), epoch, np.float32)))
        params.update(cur_epoch_num=epoch, net_outputs=Tensor(np.float32("nan")))
        stop.on_train_epoch_end(context)
    assert context.get_stop_requested()
    assert network.weight.asnumpy().tolist() == [[1.0]]


def test_functions_of_the_script():
    seen = []
    scheduler = t.LearningRateScheduler(lambda rate, step: seen.append((rate, step)) or rate * 0.5)
    assert run(scheduler, [1.0, 1.0]) == [0.05, 0.025]
    assert seen == [(0.1, 1), (0.05, 2)]
    events = []
    run(
        t.LambdaCallback(
            on_train_epoch_end=lambda context: events.append(context.original_args().cur_epoch_num),
            on_train_end=lambda context: events.append("end"),
        ),
        [1.0, 1.0],
    )
    assert events == [1, 2, "end"]


def test_history():
    history = t.History()
    run(history, [1.0, 0.5])
    assert (history.epoch, history.history) == ({"epoch": [1, 2]}, {"net_output": [1.0, 0.5]})


def test_the_best_weights_are_restored():
    data = ds.NumpySlicesDataset(
        (np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)), ["data", "label"], shuffle=False
    ).batch(4)
    network = nn.Dense(2, 1, weight_init="zeros")
    before = network.weight.asnumpy().copy()
    optimizer = nn.SGD(network.trainable_params(), learning_rate=10.0)
    model = t.Model(network, nn.MSELoss(), optimizer)
    after = []
    watch = t.LambdaCallback(on_train_epoch_end=lambda _: after.append(network.weight.asnumpy().copy()))
    stop = t.EarlyStopping(monitor="loss", patience=1, restore_best_weights=True)
    model.train(6, data, callbacks=[watch, stop], dataset_sink_mode=False)
    assert len(after) == 2  # the loss grows in the second epoch
    assert not np.array_equal(after[0], before)
    np.testing.assert_array_equal(network.weight.asnumpy(), after[0])
