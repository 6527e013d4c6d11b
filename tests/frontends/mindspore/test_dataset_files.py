"""Samplers, files, images and batches of data sets, against numpy."""

import struct

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import dataset as ds
from dumpsim.frontends.mindspore.dataset import transforms, vision

IMAGE = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


def values(dataset):
    return [row[0].tolist() for row in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1)]


def numbers(count=5, **options):
    return ds.NumpySlicesDataset(np.arange(count), ["a"], **options)


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (ds.SequentialSampler(), [0, 1, 2, 3, 4]),
        (ds.SequentialSampler(1, 3), [1, 2, 3]),
        (ds.SubsetSampler([3, 1]), [3, 1]),
        (ds.DistributedSampler(2, 1, shuffle=False), [1, 3, 0]),
        (ds.DistributedSampler(3, 2, shuffle=False), [2, 0]),
        ([4, 0], [4, 0]),
    ],
)
def test_samplers_choose_rows(sampler, expected):
    dataset = numbers(sampler=sampler)
    assert values(dataset) == expected
    assert dataset.get_dataset_size() == len(expected)


def test_random_samplers_follow_the_seed_and_the_epoch():
    ds.config.set_seed(3)
    dataset = numbers(50, sampler=ds.RandomSampler())
    iterator = dataset.create_tuple_iterator(output_numpy=True)
    first, second = ([row[0].item() for row in iterator] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert values(numbers(50, sampler=ds.RandomSampler())) == first
    assert sorted(values(numbers(50, sampler=ds.SubsetRandomSampler([7, 8, 9])))) == [7, 8, 9]
    assert len(values(numbers(50, sampler=ds.RandomSampler(True, 20)))) == 20
    drawn = values(numbers(4000, sampler=ds.WeightedRandomSampler([0, 1, 3], 4000)))
    assert 0 not in drawn
    assert drawn.count(2) / drawn.count(1) == pytest.approx(3, rel=0.15)
    shards = [values(numbers(50, sampler=ds.DistributedSampler(2, rank))) for rank in (0, 1)]
    assert sorted(shards[0] + shards[1]) == list(range(50))


def test_a_sampler_of_the_script():
    class Odd(ds.Sampler):
        def __iter__(self):
            return iter(range(1, self.dataset_size, 2))

    assert values(numbers(sampler=Odd())) == [1, 3]
    assert values(numbers(sampler=Odd(1))) == [1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: numbers(sampler=ds.SubsetSampler([9])).create_tuple_iterator().get_next(),
            RuntimeError,
            "out of bounds",
        ),
        (
            lambda: numbers(sampler=ds.SequentialSampler(), shuffle=True),
            ValueError,
            "Conflicting arguments during sampler assignments",
        ),
        (lambda: numbers(sampler=3), TypeError, "sampler should be either iterable"),
        (lambda: ds.DistributedSampler(2, 2), ValueError, "shard_id 2"),
        (lambda: ds.MnistDataset("nowhere"), ValueError, "does not exist"),
        (lambda: numbers().concat(ds.NumpySlicesDataset([1], ["b"])), ValueError, "columns"),
        (lambda: vision.RandomCrop(9)(IMAGE), RuntimeError, "greater than the image"),
        (lambda: vision.Normalize([1, 2], [1, 2])(IMAGE), RuntimeError, "number of channels"),
        (lambda: transforms.OneHot(2)(np.array(2)), RuntimeError, "num classes"),
        (lambda: vision.MixUp(), UnsupportedError, "MixUp is not emulated"),
        (lambda: ds.TFRecordDataset(), UnsupportedError, "TFRecordDataset is not emulated"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_pipelines_are_joined():
    joined = numbers(2, shuffle=False) + numbers(3, shuffle=False)
    assert values(joined) == [0, 1, 0, 1, 2]
    assert joined.get_dataset_size() == 5
    assert values(joined.skip(1).take(3).repeat(2).batch(4)) == [[1, 0, 1, 1], [0, 1]]


def test_a_function_changes_batches():
    def weighted(column, info):
        return ([value * (info.get_batch_num() + 1) for value in column],)

    dataset = numbers(shuffle=False).batch(2, per_batch_map=weighted, input_columns=["a"])
    assert values(dataset) == [[0, 1], [4, 6], [12]]

    def split(column, info):
        return [v // 2 for v in column], [v % 2 for v in column]

    dataset = numbers(shuffle=False).batch(5, per_batch_map=split, input_columns=["a"], output_columns=["half", "rest"])
    assert dataset.get_col_names() == ["half", "rest"]
    assert values(dataset) == [[0, 0, 1, 1, 2]]


def test_mnist_files(tmp_path):
    images = np.random.RandomState(0).randint(0, 256, (3, 28, 28), np.uint8)
    for stem in ("train", "t10k"):
        header = struct.pack(">IIII", 2051, 3, 28, 28)
        (tmp_path / f"{stem}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        (tmp_path / f"{stem}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, 3) + bytes([7, 0, 9]))
    dataset = ds.MnistDataset(tmp_path, "train", shuffle=False)
    rows = list(dataset.create_dict_iterator(output_numpy=True, num_epochs=1))
    assert [int(row["label"]) for row in rows] == [7, 0, 9]
    assert rows[0]["label"].dtype == np.uint32
    np.testing.assert_array_equal(rows[1]["image"], images[1, :, :, None])
    assert ds.MnistDataset(str(tmp_path)).get_dataset_size() == 6
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"\0" * 9)
    with pytest.raises(RuntimeError, match="2049"):
        ds.MnistDataset(tmp_path, "train")


def test_cifar_files(tmp_path):
    rows = np.random.RandomState(0).randint(0, 256, (4, 3073), np.uint8)
    (tmp_path / "data_batch_1.bin").write_bytes(rows[:3].tobytes())
    (tmp_path / "test_batch.bin").write_bytes(rows[3:].tobytes())
    images = [row[0] for row in ds.Cifar10Dataset(tmp_path, "train", shuffle=False).create_tuple_iterator(
        output_numpy=True, num_epochs=1)]  # fmt: skip
    assert images[0].shape == (32, 32, 3)
    assert images[2][5, 7].tolist() == [rows[2, 1 + channel * 1024 + 5 * 32 + 7] for channel in range(3)]
    assert ds.Cifar10Dataset(tmp_path).get_dataset_size() == 4
    (tmp_path / "test_batch.bin").write_bytes(b"123")
    with pytest.raises(RuntimeError, match="not a multiple of"):
        ds.Cifar10Dataset(tmp_path, "test")


def test_transforms_of_images():
    scaled = vision.Rescale(1 / 255, 0.5)(IMAGE)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, IMAGE / 255 + 0.5, rtol=1e-6)
    normal = vision.Normalize([1, 2, 3], [2, 4, 5])(IMAGE)
    np.testing.assert_allclose(normal, (IMAGE - np.array([1, 2, 3.0])) / [2, 4, 5], rtol=1e-6)
    np.testing.assert_allclose(vision.Normalize([1, 2, 3], [2, 4, 5], False)(IMAGE.transpose(2, 0, 1)),
                               normal.transpose(2, 0, 1))  # fmt: skip
    np.testing.assert_allclose(vision.ToTensor()(IMAGE), IMAGE.transpose(2, 0, 1) / 255, rtol=1e-6)
    np.testing.assert_array_equal(vision.HWC2CHW()(IMAGE), IMAGE.transpose(2, 0, 1))
    np.testing.assert_array_equal(vision.HorizontalFlip()(IMAGE), IMAGE[:, ::-1])
    np.testing.assert_array_equal(vision.VerticalFlip()(IMAGE), IMAGE[::-1])
    np.testing.assert_array_equal(vision.CenterCrop(2)(IMAGE), IMAGE[1:3, 1:3])
    np.testing.assert_array_equal(vision.CenterCrop((6, 5))(IMAGE)[1:5], IMAGE)


def test_random_transforms_follow_the_seed():
    ds.config.set_seed(5)
    crop = vision.RandomCrop((2, 3), padding=1)
    padded = np.pad(IMAGE, [(1, 1), (1, 1), (0, 0)])
    windows = [padded[y : y + 2, x : x + 3].tolist() for y in range(5) for x in range(5)]
    found = [crop(IMAGE).tolist() for _ in range(40)]
    assert all(window in windows for window in found)
    assert len({str(window) for window in found}) > 10
    again = vision.RandomCrop((2, 3), padding=1)
    assert [again(IMAGE).tolist() for _ in range(40)] == found
    flip = vision.RandomHorizontalFlip(0.25)
    turned = sum(flip(IMAGE)[0, 0, 0] != 0 for _ in range(400))
    assert turned == pytest.approx(100, abs=35)


def test_one_hot_labels():
    np.testing.assert_array_equal(transforms.OneHot(3)(np.array([2, 0], np.int32)), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose(transforms.OneHot(4, 0.2)(np.array(1)), [0.05, 0.85, 0.05, 0.05])
    np.testing.assert_array_equal(transforms.Concatenate(0, np.array([1]), np.array([3]))(np.array([2])), [1, 2, 3])
    dataset = numbers(3, shuffle=False).map([transforms.OneHot(3), transforms.TypeCast(ms.float32)], ["a"])
    assert values(dataset) == np.eye(3).tolist()
