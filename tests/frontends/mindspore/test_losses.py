"""Losses with every reduction and weight, against their formulas written with numpy in 64 bits."""

import math

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, context, nn
from dumpsim.runtime.session import Session

RNG = np.random.RandomState(21)
X, Y = (RNG.randn(5, 3).astype(np.float32) for _ in range(2))
P, Q = (RNG.uniform(0.1, 0.9, (5, 3)).astype(np.float32) for _ in range(2))
COUNTS = np.float32([[0, 1, 2], [0.5, 1, 3], [1, 1, 0], [2, 5, 1], [0, 0, 7]])
CLASSES = np.int32([0, 2, 1, 1, 0])
SIGN = np.float32([[1, -1, 1], [-1, -1, 1], [1, 1, 1], [-1, 1, -1], [-1, -1, -1]])
ROWS = np.int32([1, -1, 1, -1, -1])
MASK = (P > 0.5).astype(np.float32)
WEIGHT = np.float32([1.0, 0.5, 3.0])
REDUCTIONS = ["mean", "sum", "none"]


class OperatorTypes:
    """A tap that records the types of the operators that ran."""

    def __init__(self):
        self.ran = []

    def wants(self, event):
        return True

    def after_task(self, event):
        self.ran.append(event.op_type)

    def __getattr__(self, name):
        if name in ("graph_compiled", "run_begin", "run_end", "before_task"):
            return lambda event: None
        raise AttributeError(name)


def start(mode):
    session = Session(RunSettings(quiet=True, chip="CPU"), environment={})
    Session.use(session)
    context.set_context(mode=mode, device_target="CPU")
    session.configure(target="CPU")
    return session


@pytest.fixture(autouse=True)
def eager():
    return start(ms.PYNATIVE_MODE)


def log_softmax(x):
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cosines(a, b):
    return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))


def smooth(x, y, beta):
    z = np.abs(x - y)
    return np.where(z < beta, z * z / (2 * beta), z - beta / 2)


def huber(x, y, delta):
    z = np.abs(x - y)
    return np.where(z < delta, z * z / 2, delta * (z - delta / 2))


def poisson(x, y, log_input, full):
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + 1e-8)
    for index in np.ndindex(y.shape) if full else ():
        n = y[index]
        if n > 1:  # Stirling's approximation of log(n!)
            loss[index] += n * math.log(n) - n + 0.5 * math.log(2 * math.pi * n)
    return loss


def gaussian(x, y, var, full):
    return 0.5 * (np.log(var) + (x - y) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0)


def embedding(x, y, margin):
    cosine = cosines(x, y)
    return np.where(ROWS == 1, 1 - cosine, np.maximum(cosine - margin, 0))


def crossed(x, y):
    """Of logits, stable for these sizes."""
    return -(y * np.log(sigmoid(x)) + (1 - y) * np.log(1 - sigmoid(x)))


# name -> the loss for a reduction, what it is given, and its elements by formula
ELEMENTWISE = {
    "mse": (nn.MSELoss, (X, Y), lambda x, y: (x - y) ** 2),
    "mae": (nn.MAELoss, (X, Y), lambda x, y: np.abs(x - y)),
    "l1": (nn.L1Loss, (X, Y), lambda x, y: np.abs(x - y)),
    "smooth": (lambda r: nn.SmoothL1Loss(0.7, r), (X, Y), lambda x, y: smooth(x, y, 0.7)),
    "huber": (lambda r: nn.HuberLoss(r, 0.7), (X, Y), lambda x, y: huber(x, y, 0.7)),
    "ranking": (lambda r: nn.MarginRankingLoss(0.3, r), (X, Y, SIGN), lambda x, y, s: np.maximum(0.3 - s * (x - y), 0)),
    "cosine": (lambda r: nn.CosineEmbeddingLoss(0.1, r), (X, Y, ROWS), lambda x, y, rows: embedding(x, y, 0.1)),
    "cosine-0": (lambda r: nn.CosineEmbeddingLoss(reduction=r), (X, Y, ROWS), lambda x, y, rows: embedding(x, y, 0)),
    "divergence": (nn.KLDivLoss, (X, Q), lambda x, q: q * (np.log(q) - x)),
    "poisson": (lambda r: nn.PoissonNLLLoss(reduction=r), (X, COUNTS), lambda x, y: poisson(x, y, True, False)),
    "poisson-full": (
        lambda r: nn.PoissonNLLLoss(full=True, reduction=r), (X, COUNTS), lambda x, y: poisson(x, y, True, True)
    ),
    "poisson-plain": (
        lambda r: nn.PoissonNLLLoss(False, True, reduction=r), (P, COUNTS), lambda x, y: poisson(x, y, False, True)
    ),
    "gaussian": (lambda r: nn.GaussianNLLLoss(reduction=r), (X, Y, P), lambda x, y, v: gaussian(x, y, v, False)),
    "gaussian-full": (
        lambda r: nn.GaussianNLLLoss(full=True, reduction=r), (X, Y, P), lambda x, y, v: gaussian(x, y, v, True)
    ),
    "hinge": (
        lambda r: nn.HingeEmbeddingLoss(0.5, r), (X, SIGN), lambda x, s: np.where(s > 0, x, np.maximum(0.5 - x, 0))
    ),
    "soft-margin": (
        lambda r: nn.MultiLabelSoftMarginLoss(reduction=r), (X, MASK), lambda x, y: crossed(x, y).mean(1)
    ),
    "soft-margin-weighted": (
        lambda r: nn.MultiLabelSoftMarginLoss(Tensor(WEIGHT), r), (X, MASK),
        lambda x, y: (crossed(x, y) * WEIGHT).mean(1),
    ),
    "bce": (
        lambda r: nn.BCELoss(reduction=r), (P, Q), lambda p, q: -(q * np.log(p) + (1 - q) * np.log(1 - p))
    ),
    "bce-weighted": (
        lambda r: nn.BCELoss(Tensor(np.broadcast_to(WEIGHT, P.shape).copy()), r), (P, Q),
        lambda p, q: -WEIGHT * (q * np.log(p) + (1 - q) * np.log(1 - p)),
    ),
    "logits": (nn.BCEWithLogitsLoss, (X, Q), crossed),
    "logits-weighted": (
        lambda r: nn.BCEWithLogitsLoss(r, Tensor(WEIGHT), Tensor(WEIGHT + 1)), (X, Q),
        lambda x, q: -WEIGHT * ((WEIGHT + 1) * q * np.log(sigmoid(x)) + (1 - q) * np.log(1 - sigmoid(x))),
    ),
    "softmax": (
        lambda r: nn.SoftmaxCrossEntropyWithLogits(reduction=r), (X, P), lambda x, p: -(p * log_softmax(x)).sum(1)
    ),
    "softmax-sparse": (
        lambda r: nn.SoftmaxCrossEntropyWithLogits(True, r), (X, CLASSES),
        lambda x, c: -log_softmax(x)[np.arange(5), CLASSES],
    ),
}  # fmt: skip
REDUCE = {"mean": np.mean, "sum": np.sum, "none": np.asarray}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_losses_are_those_of_their_formulas(name, reduction):
    make, given, formula = ELEMENTWISE[name]
    loss = make(reduction)
    expected = REDUCE[reduction](formula(*(np.array(a, np.float64) for a in given)))
    ours = loss(*(Tensor(array) for array in given)).asnumpy()
    assert ours.dtype == np.float32
    assert ours.shape == np.shape(expected)
    np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("ignored", [-100, 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_class_losses_weigh_ignore_and_smooth(weight, ignored, smoothing, reduction):
    weights = np.ones(3) if weight is None else weight.astype(np.float64)
    logs = log_softmax(X.astype(np.float64))
    kept = np.not_equal(CLASSES, ignored)
    each = np.zeros(5)
    for row in np.flatnonzero(kept):
        label = CLASSES[row]
        each[row] -= (1 - smoothing) * weights[label] * logs[row, label]
        each[row] -= smoothing / 3 * (weights * logs[row]).sum()
    total = weights[CLASSES][kept].sum()
    expected = {"none": each, "sum": each.sum(), "mean": each.sum() / total}[reduction]
    tensor = None if weight is None else Tensor(weight)
    loss = nn.CrossEntropyLoss(tensor, ignored, reduction, smoothing)
    np.testing.assert_allclose(loss(Tensor(X), Tensor(CLASSES)).asnumpy(), expected, rtol=2e-5, atol=2e-6)
    if not smoothing:
        loss = nn.NLLLoss(tensor, ignored, reduction)
        ours = loss(Tensor(logs.astype(np.float32)), Tensor(CLASSES)).asnumpy()
        np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_targets_of_cross_entropy_may_be_probabilities(weight, smoothing, reduction):
    targets = (1 - smoothing) * P.astype(np.float64) + smoothing / 3
    each = -((1.0 if weight is None else weight) * targets * log_softmax(X.astype(np.float64))).sum(1)
    loss = nn.CrossEntropyLoss(None if weight is None else Tensor(weight), -100, reduction, smoothing)
    ours = loss(Tensor(X), Tensor(P)).asnumpy()
    np.testing.assert_allclose(ours, REDUCE[reduction](each), rtol=2e-5, atol=2e-6)


def test_divergence_may_be_taken_as_the_mean_over_rows():
    expected = (Q * (np.log(Q) - X)).sum() / 5
    assert nn.KLDivLoss("batchmean")(Tensor(X), Tensor(Q)).asnumpy() == pytest.approx(expected, rel=1e-5)


def test_the_root_of_the_mean_of_squares():
    expected = math.sqrt(((X - Y) ** 2).mean())
    assert nn.RMSELoss()(Tensor(X), Tensor(Y)).asnumpy() == pytest.approx(expected, rel=1e-5)


def dice(p, mask):
    return 1 - 2 * (p * mask).sum() / ((p * p).sum() + (mask * mask).sum() + 1e-5)


def test_dice_losses():
    assert nn.DiceLoss()(Tensor(P), Tensor(MASK)).asnumpy() == pytest.approx(dice(P, MASK), rel=1e-5)
    soft = np.exp(log_softmax(X))
    columns = np.array([dice(soft[:, at], MASK[:, at]) for at in range(3)])
    loss = nn.MultiClassDiceLoss()
    assert loss(Tensor(X), Tensor(MASK)).asnumpy() == pytest.approx(columns.mean(), rel=1e-5)
    loss = nn.MultiClassDiceLoss(Tensor(WEIGHT[:, None]), ignore_indiex=1, activation=None)
    columns = np.array([WEIGHT[at] * dice(P[:, at], MASK[:, at]) for at in (0, 2)])
    assert loss(Tensor(P), Tensor(MASK)).asnumpy() == pytest.approx(columns.sum() / 3, rel=1e-5)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
def test_focal_losses_count_easy_rows_less(weight, reduction):
    logs = log_softmax(X.astype(np.float64))[np.arange(5), CLASSES]
    weights = 1.0 if weight is None else weight[CLASSES]
    each = -((1 - np.exp(logs)) ** 1.5) * logs * weights
    loss = nn.FocalLoss(None if weight is None else Tensor(weight), 1.5, reduction)
    ours = loss(Tensor(X), Tensor(CLASSES[:, None])).asnumpy()
    np.testing.assert_allclose(ours.reshape(np.shape(REDUCE[reduction](each))), REDUCE[reduction](each), rtol=2e-5)


def test_weights_of_a_loss_base_multiply_before_the_reduction():
    for reduction in REDUCTIONS:
        base = nn.LossBase(reduction)
        expected = REDUCE[reduction](X * np.float64(WEIGHT))
        np.testing.assert_allclose(base.get_loss(Tensor(X), Tensor(WEIGHT)).asnumpy(), expected, rtol=1e-5, atol=1e-6)
        assert base.get_loss(Tensor(X.astype(np.float16))).dtype == ms.float16
    with pytest.raises(ValueError, match="'reduction' must be in"):
        nn.LossBase("average")


def test_comparisons_of_a_poisson_loss_are_those_of_real_mindspore():
    """In a graph of 2.10: one Greater and one LessEqual, which a dump shows by name. [observed 2.10]"""
    session = start(ms.GRAPH_MODE)
    types = OperatorTypes()
    session.add_tap(types)
    x, y = Tensor(np.float32([[0.5, 1, 2]])), Tensor(np.float32([[0.5, 1, 3]]))
    assert nn.PoissonNLLLoss(True, True)(x, y).asnumpy() == pytest.approx(2.0900476, rel=1e-6)
    comparing = {"Greater", "GreaterEqual", "Less", "LessEqual", "Equal"}
    assert sorted(comparing.intersection(types.ran)) == ["Greater", "LessEqual"]
    assert types.ran.count("MaskedFill") == types.ran.count("Maximum") == types.ran.count("ReduceMean") == 1
