"""``nn.SyncBatchNorm`` on several ranks normalises as BatchNorm does over the whole batch."""

import hashlib

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn, ops
from dumpsim.frontends.mindspore.communication import get_group_size, get_rank, init
from dumpsim.world import launch

SETTINGS = RunSettings(quiet=True, manifest=None)
RNG = np.random.default_rng(2)
MODES = [pytest.param(ms.GRAPH_MODE, id="graph"), pytest.param(ms.PYNATIVE_MODE, id="pynative")]


def run(mode, data, weights, kind=nn.SyncBatchNorm, **options):
    """Output, slopes of the input and the weights, and running statistics of this rank's rows."""
    ms.set_context(mode=mode)
    init()
    rank, ranks = get_rank(), get_group_size()
    norm = kind(data.shape[1], gamma_init=Tensor([1.0, 2.0, 3.0]), beta_init="ones", **options).set_train()
    x, slopes = (Tensor(array[rank::ranks]) for array in (data, weights))

    def loss(x):
        return (norm(x) * slopes).sum()

    gradient, of_weights = ops.GradOperation(get_by_list=True, get_all=True)(
        loss, ms.ParameterTuple([norm.gamma, norm.beta])
    )(x)
    out = norm.set_train(False)(x)  # with the moved statistics
    kept = norm.moving_mean.asnumpy(), norm.moving_variance.asnumpy()
    return [gradient[0].asnumpy(), *(each.asnumpy() for each in of_weights), out.asnumpy(), *kept]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(8, 3), (8, 3, 4, 2)], ids=str)
def test_as_over_the_whole_batch(mode, shape):
    data, weights = RNG.standard_normal((2, *shape)).astype(np.float32)
    kind = nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d
    ((slope, gamma, beta, out, mean, variance),) = launch(run, 1, args=[mode, data, weights, kind], settings=SETTINGS)
    found = launch(run, 2, args=[mode, data, weights], settings=SETTINGS)
    close = {"rtol": 2e-4, "atol": 2e-5}
    for rank, each in enumerate(found):
        np.testing.assert_allclose(each[0], slope[rank::2], **close)
        np.testing.assert_allclose(each[3], out[rank::2], **close)
        np.testing.assert_allclose(each[4], mean, **close)
        np.testing.assert_allclose(each[5], variance, **close)
    # the ranks' own shares of the gradients of the weights, which the reducer adds up
    np.testing.assert_allclose(found[0][1] + found[1][1], gamma, **close)
    np.testing.assert_allclose(found[0][2] + found[1][2], beta, **close)


def test_groups_normalise_for_themselves():
    data = RNG.standard_normal((4, 3, 2, 2)).astype(np.float32)

    def main():
        init()
        norm = nn.SyncBatchNorm(3, process_groups=[[0, 2], [1, 3]]).set_train()
        return norm(Tensor(data[get_rank() : get_rank() + 1])).asnumpy(), norm.group_name

    (first, name), (second, other), _, _ = launch(main, 4, settings=SETTINGS)
    pair = data[[0, 2]]
    mean, variance = (getattr(pair, what)((0, 2, 3), keepdims=True) for what in ("mean", "var"))
    np.testing.assert_allclose(first, (data[:1] - mean) / np.sqrt(variance + 1e-5), rtol=1e-4, atol=1e-5)
    assert not np.allclose(second, (data[1:2] - mean) / np.sqrt(variance + 1e-5))
    assert name.startswith("2_")
    assert name != other


@pytest.mark.parametrize("groups", [0, [[0], [1]], []], ids=str)
def test_ranks_without_a_group_normalise_alone(groups):
    def main():
        init()
        norm = nn.SyncBatchNorm(3, process_groups=groups)
        with pytest.raises(RuntimeError):  # nor do they create one of a single rank
            get_group_size("1_" + hashlib.sha256(str(get_rank()).encode()).hexdigest())
        return norm.is_global, norm.group_name

    assert launch(main, 2, settings=SETTINGS) == [(False, None)] * 2


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ([[0, 0]], r"rank id in 'process_groups' must not be duplicated, but got \[\[0, 0\]\]"),
        ([[0, 9]], r"'rank id in process_groups' must be in range of \[0, 2\), but got 9"),
        ((0,), r"The parameter 'process_groups' must be isinstance of <class 'list'>, but got \(0,\)"),
    ],
)
def test_wrong_groups(groups, text):
    def main():
        init()
        with pytest.raises(ValueError, match=text):
            nn.SyncBatchNorm(3, process_groups=groups)

    launch(main, 2, settings=SETTINGS)
