"""Digests against hashlib."""

import hashlib
import threading
import time
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim._ext.digest import MD5, SHA1, Stream
from dumpsim.core.errors import BadInputError
from dumpsim.tensor import digest as module
from dumpsim.tensor.digest import digest
from dumpsim.tensor.simd import simd_levels

ALGORITHMS = ("md5", "sha1")


def expected(arrays, algorithm):
    return [hashlib.new(algorithm, np.asarray(a).tobytes()).hexdigest() for a in arrays]


def random_arrays(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, n, dtype=np.uint8) for n in sizes]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("level", simd_levels())
def test_every_length_around_the_block(algorithm, level):
    arrays = random_arrays(range(300))
    assert digest(arrays, algorithm, _level=level) == expected(arrays, algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("level", simd_levels())
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 9, 16, 17, 40])
def test_any_number_of_arrays(algorithm, level, count):
    rng = np.random.default_rng(count)
    arrays = random_arrays(rng.integers(0, 20000, count), count)
    assert digest(arrays, algorithm, _level=level) == expected(arrays, algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_and_unequal_lengths(algorithm, threads):
    arrays = random_arrays([5_000_000, 1, 0, 64, 3_000_000, 100_000, *range(1000, 1040)])
    assert digest(arrays, algorithm, threads) == expected(arrays, algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(deadline=None, max_examples=80)
@given(st.lists(st.binary(max_size=400), max_size=20))
def test_any_messages(algorithm, messages):
    arrays = [np.frombuffer(m, np.uint8) for m in messages]
    assert digest(arrays, algorithm) == [hashlib.new(algorithm, m).hexdigest() for m in messages]


def test_types_strides_and_shapes():
    base = np.arange(24 * 1000 * 3, dtype=np.float32).reshape(24, 1000, 3)
    arrays = [
        base,
        base[::2],
        base.T,
        base[:, ::-1, 1:],
        np.asfortranarray(base),
        base.astype(">f4"),
        base.astype(">f4")[:, ::3],
        base.astype(ml_dtypes.bfloat16),
        base.astype(ml_dtypes.bfloat16)[..., 0],
        base > 5,
        base + 1j,
        np.float64(3),
        np.array(7, np.int16),
        np.zeros((0, 5)),
        np.zeros((4, 0))[::2],
        np.array([(1, 2.0)], "i4,f8"),
        np.array(["abc", "de"]),
        np.broadcast_to(np.uint16(9), (50, 70)),
    ]
    for algorithm in ALGORITHMS:
        want = expected(arrays, algorithm)
        assert digest(arrays, algorithm) == want
        assert digest(arrays, algorithm, threads=3) == want


def test_threads_without_work():
    assert digest([], "md5", threads=2) == []
    assert digest([np.zeros(0)], "sha1", threads=2) == expected([np.zeros(0)], "sha1")


def test_elements_that_are_longer_than_a_slab():
    x = np.array(["a", "b", "c", "d"], "U300000")[::2]
    assert digest([x], "md5") == expected([x], "md5")


def test_several_slabs_of_a_strided_array():
    x = np.arange(3_000_001, dtype=np.int32)[::2]
    assert digest([x], "sha1") == expected([x], "sha1")


@pytest.mark.parametrize("level", range(len(simd_levels())))
@pytest.mark.parametrize(("code", "algorithm"), [(MD5, "md5"), (SHA1, "sha1")])
def test_stream_in_pieces(code, algorithm, level):
    rng = np.random.default_rng(1)
    stream, truth = Stream(code, level), hashlib.new(algorithm)
    for n in [0, 1, 62, 1, 1, 63, 64, 65, 0, 128, *rng.integers(0, 300, 50)]:
        piece = rng.bytes(n)
        stream.update(piece)
        truth.update(piece)
        assert stream.hexdigest() == truth.hexdigest()


@pytest.mark.parametrize("wrong", ["md-5", "sha256", "MD5"])
def test_an_unknown_algorithm(wrong):
    with pytest.raises(BadInputError, match=rf"unknown digest '{wrong}'; allowed: md5, sha1"):
        digest([], wrong)
    with pytest.raises(ValueError, match="did you mean 'md5'"):
        digest([], "md-5")


def test_objects_and_threads_are_refused():
    with pytest.raises(BadInputError, match=r"arrays\[1\]"):
        digest([np.zeros(1), np.array([None])], "md5")
    for threads in (0, 1.5, "2", True):
        with pytest.raises(BadInputError, match="threads"):
            digest([], "md5", threads=threads)
    for single in (np.zeros(3), b"abc", "abc"):
        with pytest.raises(BadInputError, match="a single array"):
            digest(single, "md5")


def test_threads_stop_when_one_of_them_fails(monkeypatch):
    """An array that is hashed in pieces stops between two of them."""
    begun, pieces = threading.Event(), []

    class Stream:
        def __init__(self, code, level):
            pass

        def update(self, data):
            if data.any():
                assert begun.wait(60)
                raise KeyboardInterrupt
            pieces.append(len(data))
            begun.set()
            time.sleep(0.001)

        def hexdigest(self):
            return "late"

    monkeypatch.setattr(module, "_digest", SimpleNamespace(Stream=Stream))
    monkeypatch.setattr(module, "SLAB_BYTES", 4)
    arrays = [np.full((size, 2), fill, np.int16)[:, 0] for size, fill in ((2, 1), (40_000, 0))]  # 20 s of pieces
    with pytest.raises(KeyboardInterrupt):
        digest(arrays, "md5", threads=2)
    for thread in threading.enumerate():
        if thread.name.startswith("dumpsim-digest"):
            thread.join(60)
    assert set(pieces) == {4}
    assert len(pieces) < 20_000
