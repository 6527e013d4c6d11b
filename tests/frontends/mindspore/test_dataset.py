"""Data sets: rows, order, sizes, errors. The sizes, names and error texts are those of MindSpore 2.10."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import Tensor
from dumpsim.frontends.mindspore import dataset as ds
from dumpsim.frontends.mindspore.dataset import config

X = np.arange(12, dtype=np.float32).reshape(6, 2)
Y = np.arange(6, dtype=np.int32)


@pytest.fixture(autouse=True)
def seed():
    """Set a seed for every test."""
    config.set_seed(1)


class Source:
    """Five rows by number."""

    def __getitem__(self, number):
        return np.array([number], np.float32), np.array(number)

    def __len__(self):
        return 5


def generate():
    for number in range(4):
        yield np.array([number], np.float32), np.array(number * 2)


def labels(dataset, column="label"):
    return [row[column].tolist() for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def rows(**kwargs):
    return ds.NumpySlicesDataset((X, Y), ["data", "label"], **kwargs)


def test_rows_of_arrays():
    dataset = rows(shuffle=False)
    assert (dataset.get_dataset_size(), len(dataset), dataset.get_batch_size(), dataset.get_repeat_count()) == (
        6,
        6,
        1,
        1,
    )
    assert dataset.get_col_names() == ["data", "label"]
    assert dataset.output_shapes() == [[2], []]
    assert dataset.output_types() == [np.float32, np.int32]
    first = next(iter(dataset.create_dict_iterator()))
    assert isinstance(first["data"], Tensor)
    np.testing.assert_array_equal(first["data"].asnumpy(), X[0])
    assert [int(row[1]) for row in dataset] == list(range(6))


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ({"a": X, "b": Y}, ["a", "b"]),
        ((X, Y), ["column_0", "column_1"]),
        (X, ["column_0"]),
        ([1, 2, 3], ["column_0"]),
    ],
    ids=["dict", "tuple", "array", "list"],
)
def test_column_names(data, names):
    assert ds.NumpySlicesDataset(data, shuffle=False).get_col_names() == names


@pytest.mark.parametrize(("drop", "sizes"), [(False, [4, 2]), (True, [4])])
def test_batches(drop, sizes):
    dataset = rows(shuffle=False).batch(4, drop_remainder=drop)
    assert [len(row["data"]) for row in dataset.create_dict_iterator(output_numpy=True)] == sizes
    assert dataset.get_dataset_size() == len(sizes)
    assert dataset.get_batch_size() == 4


def test_rows_of_different_shapes_make_no_batch():
    dataset = ds.GeneratorDataset(lambda: ((np.ones(n),) for n in (1, 2)), ["a"]).batch(2)
    with pytest.raises(RuntimeError, match="column 'a'"):
        list(dataset.create_tuple_iterator(num_epochs=1))


def test_repeat_skip_take_project_rename_filter():
    dataset = rows(shuffle=False)
    assert labels(dataset.repeat(2)) == [*range(6), *range(6)]
    assert dataset.repeat(2).get_dataset_size() == 12
    assert labels(dataset.skip(1).take(2)) == [1, 2]
    assert dataset.skip(1).take(2).get_dataset_size() == 2
    assert dataset.project(["label"]).get_col_names() == ["label"]
    assert labels(dataset.rename("label", "q"), "q") == list(range(6))
    assert labels(dataset.filter(lambda label: label % 2 == 0, ["label"])) == [0, 2, 4]
    with pytest.raises(ValueError, match="'nope' does not exist"):
        dataset.project("nope")


def test_map():
    dataset = ds.GeneratorDataset(Source(), ["u", "v"], shuffle=False)
    assert labels(dataset.map(lambda u: u + 1, ["u"]).batch(2), "u") == [[[1.0], [2.0]], [[3.0], [4.0]], [[5.0]]]
    wider = dataset.map(lambda u, v: (u, v, u + v), input_columns=["u", "v"], output_columns=["u", "v", "w"])
    assert wider.get_col_names() == ["u", "v", "w"]
    assert labels(wider, "w")[2] == [4.0]
    both = dataset.map([lambda v: v + 1, lambda v: v * 2], ["v"])
    assert labels(both, "v") == [2, 4, 6, 8, 10]
    with pytest.raises(RuntimeError, match="2 values for the columns"):
        labels(dataset.map(lambda v: (v, v), ["v"]), "v")


def test_generators():
    dataset = ds.GeneratorDataset(generate, ["u", "v"])
    assert dataset.get_dataset_size() == 4
    assert labels(dataset, "v") == [0, 2, 4, 6]
    assert labels(ds.GeneratorDataset(Source(), ["u", "v"], shuffle=False, num_samples=2), "v") == [0, 1]
    with pytest.raises(RuntimeError, match="number of columns of a row is 2, but 1"):
        labels(ds.GeneratorDataset(generate, ["u"]), "u")
    with pytest.raises(TypeError, match="should be callable, iterable or random accessible"):
        ds.GeneratorDataset(3, ["u"])


def test_zip():
    both = ds.zip((rows(shuffle=False), ds.GeneratorDataset(generate, ["u", "v"])))
    assert both.get_col_names() == ["data", "label", "u", "v"]
    assert (labels(both), labels(both, "v")) == ([0, 1, 2, 3], [0, 2, 4, 6])


def test_shuffles_follow_the_seed_and_differ_by_epoch():
    iterator = rows().create_tuple_iterator(output_numpy=True)
    first, second = ([int(row[1]) for row in iterator] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(6))
    assert first != second
    again = rows().create_tuple_iterator(output_numpy=True)
    assert [int(row[1]) for row in again] == first
    config.set_seed(2)
    assert [int(row[1]) for row in rows().create_tuple_iterator(output_numpy=True)] != first


@settings(deadline=None)
@given(st.integers(2, 10), st.integers(1, 4), st.integers(1, 3))
def test_no_row_is_lost(buffer_size, batch, repeat):
    dataset = rows(shuffle=False).shuffle(buffer_size).repeat(repeat).batch(batch)
    found = [label for group in labels(dataset) for label in group]
    assert sorted(found) == sorted([*range(6)] * repeat)
    assert dataset.get_dataset_size() == len(labels(dataset))


def test_shards():
    parts = [labels(rows(shuffle=False, num_shards=2, shard_id=shard)) for shard in (0, 1)]
    assert parts == [[0, 2, 4], [1, 3, 5]]
    with pytest.raises(ValueError, match="shard_id"):
        rows(num_shards=2, shard_id=2)


#: (rows, shards): the rows of each shard, as MindSpore 2.10 distributed them
SHARDS = {
    (7, 2): [[0, 2, 4, 6], [1, 3, 5, 0]],
    (7, 3): [[0, 3, 6], [1, 4, 0], [2, 5, 1]],
    (3, 4): [[0], [1], [2], [0]],
    (1, 3): [[0], [0], [0]],
    (8, 4): [[0, 4], [1, 5], [2, 6], [3, 7]],
}
# offset: the rows of three shards of seven rows
OFFSETS = {
    -1: [[0, 3, 6], [1, 4, 0], [2, 5, 1]],
    0: [[0, 3, 6], [1, 4], [2, 5]],
    1: [[2, 5], [0, 3, 6], [1, 4]],
    2: [[1, 4], [2, 5], [0, 3, 6]],
}


def count(number, **options):
    class Numbers:
        def __getitem__(self, index):
            return np.array(index)

        def __len__(self):
            return number

    dataset = ds.GeneratorDataset(Numbers(), ["label"], **options)
    found = labels(dataset)
    assert dataset.get_dataset_size() == len(found)
    return found


@pytest.mark.parametrize(("number", "shards"), SHARDS)
def test_all_shards_have_as_many_rows(number, shards):
    for shard, expected in enumerate(SHARDS[number, shards]):
        options = {"shuffle": False, "num_shards": shards, "shard_id": shard}
        assert count(number, **options) == expected
        assert labels(ds.NumpySlicesDataset(np.arange(number), ["label"], **options)) == expected
        sampler = ds.DistributedSampler(shards, shard, shuffle=False)
        assert count(number, sampler=sampler) == expected


@pytest.mark.parametrize("offset", OFFSETS)
def test_an_offset_pads_nothing(offset):
    samplers = [ds.DistributedSampler(3, shard, shuffle=False, offset=offset) for shard in range(3)]
    assert [count(7, sampler=sampler) for sampler in samplers] == OFFSETS[offset]


def test_samples_of_a_shard():
    options = {"shuffle": False, "num_shards": 2, "shard_id": 1}
    assert count(7, num_samples=3, **options) == [1, 3, 5]
    assert count(7, num_samples=10, **options) == [1, 3, 5, 0]


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: count(7, num_shards=2), ValueError, "num_shards and shard_id need to be passed in together"),
        (
            lambda: count(7, num_shards=0, shard_id=0),
            ValueError,
            "Input num_shards is not within the required interval",
        ),
        (lambda: count(7, num_shards="2", shard_id=0), TypeError, "num_shards with value 2 is not of type"),
        (
            lambda: ds.GeneratorDataset(generate, ["a", "b"], num_shards=2, shard_id=0),
            ValueError,
            "num_shards is not supported if source does not have attribute '__getitem__'",
        ),
        (lambda: ds.DistributedSampler("2", 0), TypeError, "num_shards must be integer but was: 2"),
        (lambda: ds.DistributedSampler(2, "0"), TypeError, "shard_id must be integer but was: 0"),
        (lambda: ds.DistributedSampler(2, 0, offset="a"), TypeError, "offset must be integer but was: a"),
    ],
)
def test_invalid_shards(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


def test_an_iterator_ends_after_its_epochs():
    iterator = rows(shuffle=False).create_tuple_iterator(num_epochs=1)
    assert len(list(iterator)) == 6
    with pytest.raises(RuntimeError, match="1 epochs"):
        list(iterator)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: rows().shuffle(0),
            ValueError,
            r"Input buffer_size is not within the required interval of \[2, 2147483647\]",
        ),
        (
            lambda: rows().batch(0),
            ValueError,
            r"Input batch_size is not within the required interval of \[1, 2147483647\]",
        ),
        (lambda: rows().repeat(0), ValueError, "count should be either -1 or positive integer"),
        (lambda: rows().repeat(-1), UnsupportedError, "an infinite epoch is not emulated"),
        (lambda: rows().batch(2.0), TypeError, "batch_size"),
        (
            lambda: ds.NumpySlicesDataset((X, Y), ["a"]),
            ValueError,
            "Num of input column names is 1, but required is 2.",
        ),
        (lambda: ds.NumpySlicesDataset((X, Y[:3])), ValueError, "Data length in each column is not equal."),
        (lambda: ds.GeneratorDataset(Source()), ValueError, "Neither columns_names nor schema are provided."),
        (lambda: rows(sampler=3), TypeError, "sampler should be either iterable"),
        (lambda: ds.MindDataset(), UnsupportedError, "MindDataset"),
        (lambda: ds.GeneratorDataset(Source(), ["u", "v"], shufle=False), TypeError, "unexpected keyword .*'shufle'"),
        (lambda: ds.GeneratorDataset(Source(), ["u", "v"], collate_fn=len), UnsupportedError, "collate_fn"),
        (lambda: rows().map(len, max_rowsiz=1), TypeError, "unexpected keyword argument 'max_rowsiz'"),
        (lambda: rows().map(len, callbacks=[len]), UnsupportedError, "the option callbacks is not emulated"),
        (lambda: rows().filter(len, input_column="data"), TypeError, "unexpected keyword argument 'input_column'"),
        (lambda: rows().batch(2, drop=True), TypeError, "unexpected keyword argument 'drop'"),
        (lambda: ds.MnistDataset("/", cache=1), UnsupportedError, "MnistDataset: the option cache"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_options_about_workers_change_no_row():
    plain = labels(rows(shuffle=False).map(lambda x: x + 1, ["label"]).batch(2))
    options = {"num_parallel_workers": 2, "python_multiprocessing": True, "max_rowsize": 6}
    assert labels(rows(shuffle=False).map(lambda x: x + 1, ["label"], **options).batch(2, **options)) == plain


def test_transforms():
    dataset = rows(shuffle=False).map(ds.transforms.TypeCast(np.float16), ["data"])
    assert dataset.output_types()[0] == np.float16


def test_the_columns_that_do_not_fit_are_named():
    one, other = (ds.NumpySlicesDataset([1], [name], shuffle=False) for name in "ab")
    with pytest.raises(ValueError, match=r"the columns \['b'\].*\['a'\]"):
        one + other
    assert one.concat([]).get_dataset_size() == 1
