"""Generators: known answers of their authors, of the C++ library (libstdc++), and the distributions they stand for."""

import cmath
import math
import struct
from statistics import NormalDist

import numpy as np
import pytest

from dumpsim.core import generator
from dumpsim.core.generator import (
    Mersenne,
    Mersenne64,
    _philox,
    minimal_standard,
    mixed_seed,
    normal,
    shuffled,
    truncated_normal,
    uniform,
)

ALL = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [  # Random123, kat_vectors
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ALL,) * 4, (ALL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)  # fmt: skip
def test_philox_gives_the_known_answers(counter, key, answer):
    assert _philox(counter, key) == answer


def test_every_bit_of_both_seeds_counts():
    bits = [1 << bit for bit in range(64)]
    found = {mixed_seed(0, 0), *(mixed_seed(bit, 0) for bit in bits), *(mixed_seed(0, bit) for bit in bits)}
    assert len(found) == 129


def test_a_seed_is_two_words_the_second_one_above():
    for first, second in ((0, 0), (5, 7), (2**40 + 3, 2**50 + 9)):
        halves = [number & ALL for number in (first, first >> 32, second, second >> 32)]
        low, high = _philox(halves, (0x3EC8F720, 0x02461E29))[:2]
        assert struct.pack("<Q", mixed_seed(first, second)) == struct.pack("<II", int(low), int(high))


def shares(values):
    """Deciles of a sample."""
    return np.quantile(values, np.linspace(0.1, 0.9, 9))


def test_numbers_have_the_distribution_that_is_asked_for():
    """The deciles of 20000 numbers: their standard deviation is at most 0.0035 of the probability."""
    tenths, count = np.linspace(0.1, 0.9, 9), 20000
    even = uniform(7, count, -2.0, 6.0)
    assert even.min() >= -2
    assert even.max() < 6
    np.testing.assert_allclose(shares(even), -2 + 8 * tenths, atol=0.12)
    bell = NormalDist(3.0, 0.5)
    want = [bell.inv_cdf(share) for share in tenths]
    np.testing.assert_allclose(shares(normal(7, count, 3.0, 0.5)), want, atol=0.03)
    for low, high in ((2.5, 4.5), (3.0, 3.25), (-math.inf, 2.0)):
        cut = truncated_normal(7, count, low, high, 3.0, 0.5)
        assert cut.min() >= low - 1e-6
        assert cut.max() <= high + 1e-6
        bottom, top = bell.cdf(low), bell.cdf(high)
        want = [bell.inv_cdf(bottom + share * (top - bottom)) for share in tenths]
        np.testing.assert_allclose(shares(cut), want, atol=0.03)


def words(seed, count):
    """The words of a seed's stream, from numbers in [0, 1) that have all their bits."""
    return (uniform(seed, count, 0, 1) * 2**32).astype(np.uint64).tolist()


@pytest.mark.parametrize(("mean", "sigma"), [(0.0, 1.0), (3.0, 0.5), (-2.0, 0.1)])
def test_normal_numbers_are_the_coordinates_of_points_in_the_plane(mean, sigma):
    """Of two words, 23 bits each, one gives the radius and one the angle (Box and Muller)."""
    mean, sigma = float(np.float32(mean)), float(np.float32(sigma))
    drawn = [(word & 0x7FFFFF) / 2**23 for word in words(5, 40)]
    points = [
        cmath.rect(math.sqrt(-2 * math.log(first)) * sigma, 2 * math.pi * second)
        for first, second in zip(drawn[::2], drawn[1::2], strict=True)
    ]
    want = [mean + part for point in points for part in (point.real, point.imag)]
    np.testing.assert_allclose(normal(5, 40, mean, sigma), want, rtol=0, atol=1e-6 * (abs(mean) + sigma))


def test_the_smallest_number_has_a_finite_radius(monkeypatch):
    """A word whose 23 bits are zero counts as 1e-7; the angle is a quarter turn."""
    monkeypatch.setattr(generator, "_words", lambda seed, count: np.array([1 << 23, 1 << 21], np.uint64))
    assert normal(0, 2, 0.0, 1.0) == pytest.approx(
        [0.0, math.sqrt(-2 * math.log(float(np.float32(1e-7))))], rel=1e-12, abs=1e-6
    )


@pytest.mark.parametrize(
    ("low", "high", "mean", "sigma"), [(-2, 2, 0, 1), (2.5, 4.5, 3.0, 0.5), (-math.inf, 2, 3, 0.5)]
)
def test_truncated_numbers_are_at_their_share_of_the_distribution(low, high, mean, sigma):
    bell = NormalDist(mean, sigma)
    bottom, top = bell.cdf(low), bell.cdf(high)
    for word, number in zip(words(9, 50), truncated_normal(9, 50, low, high, mean, sigma), strict=True):
        assert (bell.cdf(number) - bottom) / (top - bottom) == pytest.approx(word / 2**32, abs=1e-5)


def test_uniform_numbers_scale_with_their_bounds_in_float32():
    low, high = float(np.float32(-0.1)), float(np.float32(0.7))
    want = [low + (high - low) * (word / 2**32) for word in words(3, 20)]
    assert uniform(3, 20, -0.1, 0.7) == pytest.approx(want, rel=1e-15)


def test_the_minimal_standard_generator_is_its_recurrence():
    """Multiply by 16807 modulo 2**31 - 1; a seed of 0 counts as 1. [ISO C++ rand.predef]"""
    for seed, skipped in ((1, 0), (0, 0), (2**31 - 1, 3), (12345, 7), (2**40, 100)):
        state = seed % (2**31 - 1) or 1
        states = []
        for _ in range(skipped + 9):
            state = state * 16807 % (2**31 - 1)
            states.append(state)
        for count in (1, 2, 3, 8, 9):
            want = [np.float32(one - 1) / np.float32(2**31) for one in states[skipped : skipped + count]]
            assert minimal_standard(seed, skipped, count).tolist() == [float(one) for one in want]
    state = 1
    for _ in range(10_000):
        state = state * 16807 % (2**31 - 1)
    assert state == 1043618065  # the 10000th number of minstd_rand0
    assert minimal_standard(1, 9999, 1) == np.float32(1043618064) / np.float32(2**31)


def test_the_10000th_number_of_both_twisters():
    """[ISO C++ rand.predef]"""
    narrow, wide, skipped = Mersenne(5489), Mersenne64(5489), Mersenne64(5489)
    for _ in range(9999):
        narrow.word()
        wide.word()
    skipped.skip(9999)
    assert (narrow.word(), wide.word(), skipped.word()) == (4123659995, 9981545732273789042, 9981545732273789042)


@pytest.mark.parametrize("count", [0, 1, 311, 312, 313, 623, 624, 625, 1000])
def test_skipped_numbers_are_those_that_would_have_been_drawn(count):
    drawn, skipped = Mersenne64(7), Mersenne64(7)
    for _ in range(count):
        drawn.word()
    skipped.skip(count)
    assert [skipped.word() for _ in range(3)] == [drawn.word() for _ in range(3)]
    drawn.skip(5)
    skipped.skip(2)
    skipped.skip(3)
    assert skipped.word() == drawn.word()


def test_a_long_shuffle_takes_one_index_from_each_number(monkeypatch):
    """Where the indices of two elements do not fit into one number; here from four elements on."""
    monkeypatch.setattr(generator, "_WORD", 15)

    class Listed:
        def __init__(self):
            self.asked = []

        def below(self, count):
            self.asked.append(count)
            return 0

    source = Listed()
    assert shuffled("abcd", source) == ["d", "a", "b", "c"]
    assert source.asked == [2, 3, 4]
    source = Listed()
    assert shuffled("abc", source) == ["c", "a", "b"]
    assert source.asked == [6]


@pytest.mark.parametrize("draw", [lambda n: uniform(3, n, 0, 1), lambda n: normal(3, n, 0, 1)])
def test_fewer_numbers_are_the_first_ones(draw):
    for count in range(1, 10):
        assert draw(count).tolist() == draw(10).tolist()[:count]


def test_simple_generators_give_what_the_library_gives():
    # uniform_real_distribution<float> with minstd_rand0(3)
    library = [2.34786421e-05, 0.394613355, 0.26681596, 0.375950396]
    np.testing.assert_allclose(minimal_standard(3, 0, 4), library, rtol=1e-6)
    assert minimal_standard(3, 2, 2).tolist() == minimal_standard(3, 0, 4).tolist()[2:]
    wide = Mersenne64(3)
    assert [wide.word() for _ in range(3)] == [10307413207671831467, 3611203882987592167, 10888029678232491475]
    narrow = Mersenne(3)  # uniform_real_distribution<double>, mt19937(3)
    assert [narrow.real() for _ in range(3)] == [0.070724880451056613, 0.83994904246836621, 0.12132857932963054]


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000, 2**31 + 1, ALL])
def test_integers_below_a_bound_are_words_in_equal_parts(count):
    """Words of the incomplete last part are passed over."""
    generator, words = Mersenne(7), Mersenne(7)
    part = ALL // count
    for _ in range(20):
        word = words.word()
        while word >= part * count:
            word = words.word()
        found = generator.below(count)
        assert found * part <= word < (found + 1) * part
    with pytest.raises(OverflowError):
        generator.below(2**32)


class Newer(Mersenne):
    """Draws integers as newer libraries do: the upper half of a product (Lemire)."""

    def below(self, count):
        product = self.word() * count
        while product % 2**32 < 2**32 % count:
            product = self.word() * count
        return product >> 32


@pytest.mark.parametrize(
    ("seed", "order"),
    [  # std::shuffle of libstdc++ 13 with std::mt19937
        (1, []), (1, [0]), (1, [1, 0]), (1, [1, 0, 2]), (1, [1, 0, 2, 3]), (1, [1, 0, 2, 3, 4]),
        (1, [1, 0, 6, 3, 5, 4, 2]), (1, [1, 0, 2, 5, 7, 4, 6, 3]),
        (2, [1, 0]), (2, [1, 0, 2]), (2, [2, 0, 3, 1]), (2, [3, 0, 2, 4, 1]), (2, [5, 6, 2, 4, 1, 3, 0]),
        (2, [5, 0, 3, 1, 7, 4, 6, 2]),
    ],
)  # fmt: skip
def test_a_shuffle_takes_the_places_that_the_library_takes(seed, order):
    assert shuffled(range(len(order)), Newer(seed)) == order
    assert sorted(shuffled(range(len(order)), Mersenne(seed))) == sorted(order)


def test_all_64_bits_of_a_seed_are_the_key_and_the_upper_counter():
    for seed in (7, 2**63 + 2**40 + 5):
        halves = seed & ALL, seed >> 32
        blocks = [_philox((at, 0, *halves), halves) for at in range(3)]
        words = [int(word) for block in blocks for word in block]
        assert (uniform(seed, 10, 0, 1) * 2**32).tolist() == words[:10]


def test_the_greatest_number_is_below_one():
    """As float32 it would be 1: the state before it is the one that the multiplier takes to the last state."""
    modulus = 2**31 - 1
    seed = -pow(16807, -1, modulus) % modulus
    assert minimal_standard(seed, 0, 1).tolist() == [1 - 2**-24]
