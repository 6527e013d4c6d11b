"""Arguments at and beyond their limits where MindSpore 2.10 on a CPU has no kernel or looks later; numpy formulas."""

import copy

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.abstract import NoneType, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import UnreadableError, UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Parameter, Tensor, mint, nn, ops, train
from dumpsim.frontends.mindspore import dataset as ds
from dumpsim.frontends.mindspore.mint.distributed import _objects
from dumpsim.frontends.mindspore.mint.nn import functional as F  # noqa: N812 - users' name
from dumpsim.frontends.mindspore.ops import PrimitiveWithInfer
from dumpsim.frontends.mindspore.ops._scripted import definition_of
from dumpsim.frontends.mindspore.parallel.auto_parallel import AutoParallel
from dumpsim.frontends.mindspore.train import RunContext, TimeMonitor
from dumpsim.frontends.mindspore.train.callback._callback import InternalCallbackParam
from dumpsim.runtime.session import Session

RNG = np.random.RandomState(3)
X, Y = (RNG.randn(4, 6).astype(np.float32) for _ in range(2))
P = RNG.uniform(0.1, 1, (4, 6)).astype(np.float32)
SEQ = RNG.randn(2, 3, 5).astype(np.float32)
SHARES = RNG.uniform(0.1, 1, (2, 3, 5)).astype(np.float32)
IMAGE = RNG.randn(1, 2, 4, 6).astype(np.float32)
W = np.float32([1, 0.5, 2, 3, 0.25, 1.5])
ROWS = np.int64([1, 0, 5, 2])
GRID = np.int64([[0, 2, 1, 1, 0], [2, 2, 0, 1, 2]])


@pytest.fixture(autouse=True)
def eager():
    session = Session(RunSettings(quiet=True), environment={})
    Session.use(session)
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    session.configure(target="CPU")


def log_softmax(x, axis):
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def glu(x, axis):
    first, second = np.split(x, 2, axis)
    return first / (1 + np.exp(-second))


def pooled(x, size, step, padding):
    (height, width), (down, across) = size, step
    x = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    rows = range(0, x.shape[2] - height + 1, down)
    columns = range(0, x.shape[3] - width + 1, across)
    parts = [[x[:, :, r : r + height, c : c + width].mean((2, 3)) for c in columns] for r in rows]
    return np.stack([np.stack(row, -1) for row in parts], -2)


def soft_cross_entropy(x, target, weight, smoothing):
    axis = min(x.ndim - 1, 1)
    target = (1 - smoothing) * target + smoothing / x.shape[axis]
    weight = np.ones(x.shape[axis]) if weight is None else weight
    weight = weight.reshape(-1, *(1,) * (x.ndim - axis - 1))
    return -(weight * target * log_softmax(x, axis)).sum(axis)


def chosen(x, classes, weight=None):
    """The negative elements of the classes along axis 1."""
    found = -np.take_along_axis(x, np.expand_dims(classes, 1), 1).squeeze(1)
    return found if weight is None else found * weight[classes]


REDUCE = {"none": np.asarray, "sum": np.sum}
CASES = {
    **{
        f"log_softmax {axis}": (lambda axis=axis: F.log_softmax(Tensor(X), axis), log_softmax(X, axis))
        for axis in (-2, -1, 0, 1)
    },
    "log_softmax of a number": (lambda: F.log_softmax(Tensor(np.float32(3)), 0), np.float32(0)),
    **{f"glu {axis}": (lambda axis=axis: F.glu(Tensor(X), axis), glu(X, axis)) for axis in (-2, -1, 0, 1)},
    "pad all": (lambda: F.pad(Tensor(X), (1, 0, 2, 1)), np.pad(X, ((2, 1), (1, 0)))),
    "pad last": (lambda: F.pad(Tensor(X), (1, 2), value=3), np.pad(X, ((0, 0), (1, 2)), constant_values=3)),
    **{
        f"avg_pool2d {size} {step} {padding}": (
            lambda size=size, step=step, padding=padding: F.avg_pool2d(Tensor(IMAGE), size, step, padding),
            pooled(IMAGE, size, step or size, padding),
        )
        for size, step, padding in (
            ((2, 2), None, (0, 0)), ((2, 3), (1, 2), (1, 0)), ((2, 3), (2, 1), (0, 1)), ((3, 2), (1, 1), (1, 1)),
        )
    },
    **{
        f"batch_norm {x.ndim}": (
            lambda x=x: F.batch_norm(Tensor(x), None, None, Tensor(W[: x.shape[1]]), eps=0.5),
            x / np.sqrt(1.5) * W[: x.shape[1]].reshape(-1, *(1,) * (x.ndim - 2)),
        )
        for x in (X, IMAGE)
    },
    **{
        f"nll_loss {x.ndim} {reduction}": (
            lambda x=x, classes=classes, reduction=reduction: F.nll_loss(
                Tensor(x), Tensor(classes), reduction=reduction
            ),
            REDUCE[reduction](chosen(x, classes)),
        )
        for x, classes in ((X, ROWS), (SEQ, GRID))
        for reduction in REDUCE
    },
    **{
        f"cross_entropy {x.ndim} {reduction}": (
            lambda x=x, classes=classes, reduction=reduction: F.cross_entropy(
                Tensor(x), Tensor(classes), reduction=reduction
            ),
            REDUCE[reduction](chosen(log_softmax(x, 1), classes)),
        )
        for x, classes in ((X, ROWS), (SEQ, GRID))
        for reduction in REDUCE
    },
    **{
        f"cross_entropy {x.ndim} {reduction} {smoothing} {'' if weight is None else 'weighted'}": (
            lambda x=x, target=target, weight=weight, reduction=reduction, smoothing=smoothing: F.cross_entropy(
                Tensor(x), Tensor(target), None if weight is None else Tensor(weight), -100, reduction, smoothing
            ),
            REDUCE[reduction](soft_cross_entropy(x, target, weight, smoothing)),
        )
        for x, target in ((X[0], P[0]), (X, P), (SEQ, SHARES))
        for weight in (None, W[: x.shape[min(x.ndim - 1, 1)]])
        for reduction in REDUCE
        for smoothing in (0.0, 0.25, 1.0)
    },
    **{
        f"normalize {order} {axis}": (
            lambda order=order, axis=axis: F.normalize(Tensor(X), order, axis),
            X / (np.abs(X) ** order).sum(axis, keepdims=True) ** (1 / order),
        )
        for order in (1.0, 2.0, 3.0)
        for axis in (0, 1)
    },
    "kl_div": (lambda: F.kl_div(Tensor(X), Tensor(P)), (P * (np.log(P) - X)).mean()),
    "kl_div none": (lambda: F.kl_div(Tensor(X), Tensor(P), "none"), P * (np.log(P) - X)),
    "kl_div batchmean": (lambda: F.kl_div(Tensor(X), Tensor(P), "batchmean"), (P * (np.log(P) - X)).sum() / 4),
    "kl_div log": (lambda: F.kl_div(Tensor(X), Tensor(Y), "sum", True), (np.exp(Y) * (Y - X)).sum()),
    "narrow to the end": (lambda: mint.narrow(Tensor(X), 1, -2, 2), X[:, -2:]),
    "pad circular by the extent": (lambda: ops.pad(Tensor(X), (6, 0), "circular"), np.pad(X, ((0, 0), (6, 0)), "wrap")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_formulas(name):
    run, expected = CASES[name]
    found = run().asnumpy()
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


class Rows:
    def __getitem__(self, number):
        return (np.array(number),)

    def __len__(self):
        return 3


REFUSED = {
    "weight below 0": (lambda: ds.WeightedRandomSampler([-1.0, 2.0]), ValueError),
    "no weight": (lambda: ds.WeightedRandomSampler([]), ValueError),
    "no weight above 0": (lambda: ds.WeightedRandomSampler([0.0, 0.0]), ValueError),
    "rows of weights": (lambda: ds.WeightedRandomSampler([[1.0]]), ValueError),
    **{
        f"shard {one}": (lambda one=one: ds.DistributedSampler(*one), ValueError)
        for one in ((0, 0), (-1, 0), (2, 2), (2, -1))
    },
    **{
        f"offset {offset}": (lambda offset=offset: ds.DistributedSampler(2, 0, offset=offset), ValueError)
        for offset in (-2, 2)
    },
    **{
        f"num_samples {count}": (lambda count=count: ds.RandomSampler(True, count), kind)
        for count, kind in ((-1, ValueError), (True, TypeError), (1.5, TypeError))
    },
    **{
        f"start {start}": (lambda start=start: ds.SequentialSampler(start), kind)
        for start, kind in ((-1, ValueError), (True, TypeError), (1.5, TypeError))
    },
    "rows by True": (lambda: ds.SubsetSampler([True]), TypeError),
    "shard below 0": (lambda: ds.NumpySlicesDataset([1], num_shards=2, shard_id=-1), ValueError),
    **{
        f"a sampler and {name}": (
            lambda options=options: ds.NumpySlicesDataset([1], sampler=[0], **options), ValueError
        )
        for name, options in {
            "an order": {"shuffle": False}, "a number": {"num_samples": 1}, "shards": {"num_shards": 1, "shard_id": 0},
        }.items()
    },
    "rows by number without a length": (
        lambda: ds.GeneratorDataset(type("Half", (), {"__getitem__": Rows.__getitem__})(), ["a"]), TypeError
    ),
    "too large a picture": (lambda: ds.vision.Resize((1001, 1))(np.ones((1, 1), np.uint8)), RuntimeError),
    "too wide a picture": (lambda: ds.vision.Resize((1, 1001))(np.ones((1, 1), np.uint8)), RuntimeError),
    "a row of pixels": (lambda: ds.vision.Resize(2)(np.ones(4, np.uint8)), RuntimeError),
    "glu of an odd extent": (lambda: F.glu(Tensor(X[:, :5])), RuntimeError),
    "a write beyond the rows": (lambda: Tensor(X).__setitem__((4, 0), 1.0), IndexError),
    "a write before the rows": (lambda: Tensor(X).__setitem__((-5, 0), 1.0), IndexError),
    "a write with too many indices": (lambda: Tensor(X).__setitem__((0, 0, 0), 1.0), IndexError),
    "another average": (lambda: F.avg_pool2d(Tensor(IMAGE), 2, ceil_mode=True), UnsupportedError),
    "another divisor": (lambda: F.avg_pool2d(Tensor(IMAGE), 2, divisor_override=3), UnsupportedError),
    "an average without zeros": (
        lambda: F.avg_pool2d(Tensor(IMAGE), 2, padding=(0, 1), count_include_pad=False), UnsupportedError
    ),
    "a forecast elsewhere": (lambda: train.Model(nn.ReLU()).predict(Tensor(X), backend="lite"), UnsupportedError),
    "a forecast with settings": (lambda: train.Model(nn.ReLU()).predict(Tensor(X), config={}), UnsupportedError),
    "no steps between checkpoints": (lambda: train.CheckpointConfig(0), UnsupportedError),
    "any number of checkpoints": (lambda: train.CheckpointConfig(1, keep_checkpoint_max=0), UnsupportedError),
    **{
        f"{name}={value}": (
            lambda name=name, value=value: ms.set_auto_parallel_context(parallel_optimizer_config={name: value}),
            UnsupportedError,
        )
        for name, value in (
            ("optimizer_level", "level2"), ("gradient_accumulation_shard", True), ("optimizer_weight_shard_size", 2),
        )
    },
    **{
        f"hsdp{settings}": (
            lambda settings=settings: AutoParallel(nn.ReLU()).hsdp(*settings), UnsupportedError
        )
        for settings in ((2,), (-1, 64, "level2"))
    },
    "another amount": (lambda: ops.pad(Tensor(X), (7, 0), "circular"), UnsupportedError),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_calls(name):
    call, kind = REFUSED[name]
    with pytest.raises(kind):
        call()


def test_no_padding_needs_no_zeros_in_the_mean():
    found = F.avg_pool2d(Tensor(IMAGE), 2, count_include_pad=False)
    np.testing.assert_allclose(found.asnumpy(), pooled(IMAGE, (2, 2), (2, 2), (0, 0)), rtol=1e-5)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("device_id", (0,)),
        ("device_id", (4095,)),
        ("save_graphs", (0, 1, 2, 3)),
        ("max_call_depth", (1,)),
        ("op_timeout", (0,)),
        ("runtime_num_threads", (0,)),
        ("mode", (0, 1)),
    ],
)
def test_the_largest_and_smallest_settings_are_taken(key, values):
    for value in values:
        ms.set_context(**{key: value})
        assert ms.get_context(key) == value


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def test_objects_are_sent_up_to_a_depth_of_100():
    assert _objects.decode(_objects.encode(nested(100))) == nested(100)
    for value in (nested(101), {1: nested(100)}, (nested(100),), {"a": {"b": nested(99)}}):
        with pytest.raises(UnsupportedError, match="more than 100 deep"):
            _objects.encode(value)


@pytest.mark.parametrize(("of_run", "own", "steps"), [(4, None, 4), (4, 2, 4), (None, 2, 2), (0, 2, 2)])
def test_the_time_of_a_step_is_that_of_an_epoch_divided_by_the_steps(of_run, own, steps, capsys):
    params = InternalCallbackParam(mode="train")
    if of_run is not None:
        params.batch_num = of_run
    monitor = TimeMonitor(own)
    monitor.epoch_begin(RunContext(params))
    monitor._start -= 1
    monitor.epoch_end(RunContext(params))
    words = capsys.readouterr().out.replace(",", "").split()
    assert words[:3] == ["Train", "epoch", "time:"]
    assert float(words[3]) >= 1000
    assert float(words[8]) == pytest.approx(float(words[3]) / steps, abs=0.01)


class Described(PrimitiveWithInfer):
    """Records how its operands are described."""

    def __init__(self):
        super().__init__("Described")
        self.seen = []

    def __infer__(self, *operands):
        self.seen = list(operands)
        return {"shape": [2], "dtype": ms.float32, "value": None}


def test_shape_rules_see_shapes_numbers_and_tuples():
    primitive, number = Described(), ScalarType(dtype=dtype("int64"), value=3)
    tensor = TensorType(dtype=dtype("float16"), shape=(4, 3))
    definition_of(primitive).infer([tensor, number, TupleType(items=(tensor, number)), NoneType()], {})
    assert primitive.seen == [
        {"shape": [4, 3], "dtype": ms.float16, "value": None},
        {"shape": (), "dtype": ms.int64, "value": 3},
        {"shape": ([4, 3], ()), "dtype": (ms.float16, ms.int64), "value": (None, 3)},
        {"shape": (), "dtype": None, "value": None},
    ]


@pytest.mark.parametrize(("shape", "kind"), [(None, ms.float32), ([2], None), (None, None)])
def test_a_shape_rule_without_shape_or_number_type_gives_nothing(shape, kind):
    primitive = Described()
    primitive.__infer__ = lambda x: {"shape": shape, "dtype": kind, "value": None}
    found = definition_of(primitive).infer([TensorType(dtype=dtype("float16"), shape=(4, 3))], {})
    assert found == NoneType()


def varint(number):
    """A number in groups of seven bits, the lowest first; the highest bit of a byte says that more follow."""
    bits = f"{number:b}"
    bits = bits.zfill(-(-len(bits) // 7) * 7)
    groups = [int(bits[at : at + 7], 2) for at in range(0, len(bits), 7)][::-1]
    return bytes([*(group + 128 for group in groups[:-1]), groups[-1]])


def field(number, content):
    return varint(number * 8 + 2) + varint(len(content)) + content


@pytest.mark.parametrize("extent", [1, 127, 128, 16383, 16384])
def test_checkpoints_are_protocol_buffers(extent, tmp_path):
    """Of each Parameter its name and a tensor: extents, the name of the number type and the elements."""
    array = np.arange(extent, dtype=np.int8)
    ms.save_checkpoint({"w": Parameter(Tensor(array), name="w")}, str(tmp_path / "net"))
    tensor = varint(8) + varint(extent) + field(2, b"Int8") + field(3, array.tobytes())
    expected = field(1, field(1, b"w") + field(2, tensor))
    assert (tmp_path / "net.ckpt").read_bytes() == expected
    np.testing.assert_array_equal(ms.load_checkpoint(str(tmp_path / "net.ckpt"))["w"].asnumpy(), array)


def test_every_part_of_a_checkpoint_is_unreadable(tmp_path):
    path = tmp_path / "net.ckpt"
    ms.save_checkpoint({"w": Parameter(Tensor(np.ones((2, 3), np.int8)), name="w")}, str(path))
    whole = path.read_bytes()
    part = tmp_path / "part.ckpt"
    for size in range(1, len(whole)):
        part.write_bytes(whole[:size])
        with pytest.raises(UnreadableError):
            ms.load_checkpoint(str(part))
    for number, text in (
        (b"\xff" * 9 + b"\x01", "truncated|wire type"),
        (b"\xff" * 10 + b"\x01", "does not end at byte 10"),
    ):
        part.write_bytes(number)
        with pytest.raises(UnreadableError, match=text):
            ms.load_checkpoint(str(part))


def test_a_picture_is_flipped_when_the_random_number_is_below_the_probability():
    ds.config.set_seed(4)
    numbers, picture = np.random.RandomState(4).random_sample(3), np.array([[1, 2]], np.uint8)
    for at, expected in enumerate(([1, 2], [2, 1])):
        flip = ds.vision.RandomHorizontalFlip(float(np.nextafter(numbers[0], at + numbers[0]) if at else numbers[0]))
        assert flip(picture).tolist() == [expected]


def test_numbers_of_modes_and_of_ways_to_blend_pixels():
    """[observed 2.10]"""
    names = ("GRAPH_MODE", "PYNATIVE_MODE", "STRICT", "COMPATIBLE", "LAX", "DEBUG", "RELEASE")
    assert [getattr(ms.context, name) for name in names] == [0, 1, 0, 1, 2, 1, 0]
    names = ("NEAREST", "ANTIALIAS", "LINEAR", "BILINEAR", "CUBIC", "BICUBIC", "AREA", "PILCUBIC")
    assert [int(getattr(ds.vision.Inter, name)) for name in names] == [0, 1, 2, 2, 3, 3, 4, 5]


def test_what_gives_back_what_it_is_given():
    weight = Parameter(Tensor(X), name="w")
    gradients = (Tensor(Y),)
    assert nn.SGD([weight], 0.1).flatten_gradients(gradients) is gradients
    assert weight.data is weight
    assert copy.copy(ms.float32) is ms.float32
    resize = ds.vision.Resize(2)
    assert resize.device("CPU") is resize


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_norm_takes_its_axis_in_a_list(order, axis):
    expected = (np.abs(X) ** order).sum(axis) ** (1 / order)
    np.testing.assert_allclose(mint.norm(Tensor(X), order, [axis]).asnumpy(), expected, rtol=1e-5)
    found = mint.norm(Tensor(X), order, (axis,), True).asnumpy()
    np.testing.assert_allclose(found, np.expand_dims(expected, axis), rtol=1e-5)
