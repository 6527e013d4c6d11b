"""Random number generators that reproduce those of the real system: Philox, Mersenne twisters, minimal standard.

MindSpore draws initial weights from Philox-4x32-10 [source include/common/random.h], Dropout on the CPU from C++'s
``std::default_random_engine`` [source dropout_cpu_kernel.cc], and orders data with ``std::mt19937`` and
``std::shuffle``, or ``std::mt19937_64`` [source sampler/*.cc, shuffle_op.cc]. What the C++ library does with them is
libstdc++'s.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

__all__ = [
    "Mersenne",
    "Mersenne64",
    "minimal_standard",
    "mixed_seed",
    "normal",
    "shuffled",
    "truncated_normal",
    "uniform",
]

Array = np.ndarray[Any, Any]

_WORD = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_PI = float(np.float32(3.1415926))
_ROOT_TWO = float(np.float32(1.4142135))
_SMALLEST = float(np.float32(1e-7))
_MODULUS = 2**31 - 1  # of the minimal standard generator, with the multiplier 16807
_MULTIPLIER = 16807


def _philox(counter: Sequence[Any], key: Sequence[int]) -> tuple[Any, Any, Any, Any]:
    """Return Philox-4x32-10 of one counter, or of counters in arrays of uint64."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _WORD, (p0 >> 32) ^ c3 ^ k1, p0 & _WORD
        k0, k1 = (k0 + _KEY_STEPS[0]) & _WORD, (k1 + _KEY_STEPS[1]) & _WORD
    return c0, c1, c2, c3


def _words(seed: int, count: int) -> Array:
    """Return the first words of the stream of a seed, which is the key and the upper half of the counter."""
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    low, high = seed & _WORD, seed >> 32 & _WORD
    zeros = np.zeros_like(blocks)
    parts = _philox((blocks, zeros, zeros + np.uint64(low), zeros + np.uint64(high)), (low, high))
    return np.stack(parts, axis=1).ravel()[:count]


def mixed_seed(first: int, second: int) -> int:
    """Return the seed of a kernel with two seeds, the global one and its own [source kernel/philox_random.cc].

    Examples
    --------
    >>> mixed_seed(5, 0) == mixed_seed(0, 5)
    False
    """
    counter = (first & _WORD, first >> 32 & _WORD, second & _WORD, second >> 32 & _WORD)
    low, high, _, _ = _philox(counter, (0x3EC8F720, 0x02461E29))
    return int(high) << 32 | int(low)


def uniform(seed: int, count: int, low: float, high: float) -> Array:
    """Return numbers between two bounds, as float64 that the caller narrows.

    Examples
    --------
    >>> uniform(1, 3, 0.0, 1.0).round(6).tolist() == uniform(1, 4, 0.0, 1.0).round(6).tolist()[:3]
    True
    """
    low, high = float(np.float32(low)), float(np.float32(high))
    return (high - low) * (_words(seed, count).astype(np.float64) / 2.0**32) + low


def normal(seed: int, count: int, mean: float, sigma: float) -> Array:
    """Return normal numbers by the method of Box and Muller, as float64."""
    mean, sigma = float(np.float32(mean)), float(np.float32(sigma))
    drawn = (_words(seed, count + count % 2) & np.uint64(0x7FFFFF)).astype(np.float64) / 2.0**23
    drawn = np.maximum(drawn, _SMALLEST)
    radius = np.sqrt(-2.0 * np.log(drawn[0::2])) * sigma
    angle = 2.0 * _PI * drawn[1::2]
    pairs = np.stack([mean + radius * np.cos(angle), mean + radius * np.sin(angle)], axis=1)
    return pairs.ravel()[:count]


def truncated_normal(seed: int, count: int, low: float, high: float, mean: float, sigma: float) -> Array:
    """Return normal numbers between two bounds by the inverse of the distribution, as float64."""
    low, high, mean, sigma = (float(np.float32(value)) for value in (low, high, mean, sigma))
    first, last = (math.erfc(-((bound - mean) / sigma) / _ROOT_TWO) / 2.0 for bound in (low, high))
    shares = first + _words(seed, count).astype(np.float64) / 2.0**32 * (last - first)
    shares = np.clip(shares, np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0))
    quantile = NormalDist().inv_cdf
    exact = np.fromiter((quantile(share) for share in shares.tolist()), np.float64, count)
    return mean + exact * (_ROOT_TWO / math.sqrt(2.0)) * sigma


def minimal_standard(seed: int, skipped: int, count: int) -> Array:
    """Return float32 numbers in [0, 1) of ``std::minstd_rand0``, after the first `skipped` ones.

    Examples
    --------
    >>> minimal_standard(1, 1, 2).tolist() == minimal_standard(1, 0, 3).tolist()[1:]
    True
    """
    state = seed % _MODULUS or 1
    state = state * pow(_MULTIPLIER, skipped + 1, _MODULUS) % _MODULUS
    states = np.array([state], np.uint64)
    while states.size < count:  # each pass doubles the number of states
        states = np.concatenate([states, states * np.uint64(pow(_MULTIPLIER, states.size, _MODULUS)) % _MODULUS])
    drawn = (states[:count] - 1).astype(np.float32) / np.float32(2.0**31)
    below: Array = np.minimum(drawn, np.nextafter(np.float32(1), np.float32(0)))
    return below


class Mersenne:
    """``std::mt19937``.

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> Mersenne(5489).word()
    3499211612
    """

    def __init__(self, seed: int) -> None:
        # RandomState and C++ seed it in the same way
        self._bits = np.random.MT19937()
        state: Any = np.random.RandomState(seed & _WORD).get_state(legacy=False)
        self._bits.state = state

    def word(self) -> int:
        """Return the next 32 bits."""
        return int(self._bits.random_raw())

    def below(self, count: int) -> int:
        """Return an integer in [0, count) as ``std::uniform_int_distribution`` draws it."""
        if count > _WORD:
            raise OverflowError(f"{count} does not fit in 32 bits")
        scaling = _WORD // count
        while (word := self.word()) >= count * scaling:
            pass
        return word // scaling

    def real(self) -> float:
        """Return a number in [0, 1) with 53 bits."""
        low = self.word()
        return min((low + self.word() * 2.0**32) / 2.0**64, math.nextafter(1.0, 0.0))


def shuffled(values: Sequence[int], generator: Mersenne) -> list[int]:
    """Return values in the order of ``std::shuffle``, which takes two indices from one random number while both fit.

    Examples
    --------
    >>> shuffled(range(12), Mersenne(1))
    [9, 10, 2, 5, 11, 4, 6, 3, 1, 8, 0, 7]
    """
    listed = list(values)
    count = len(listed)
    if not count:
        return listed
    if _WORD // count < count:
        for at in range(1, count):
            place = generator.below(at + 1)
            listed[at], listed[place] = listed[place], listed[at]
        return listed
    start = 2 - count % 2
    if start == 2:
        place = generator.below(2)
        listed[1], listed[place] = listed[place], listed[1]
    for at in range(start, count, 2):
        first, second = divmod(generator.below((at + 1) * (at + 2)), at + 2)
        listed[at], listed[first] = listed[first], listed[at]
        listed[at + 1], listed[second] = listed[second], listed[at + 1]
    return listed


class Mersenne64:
    """``std::mt19937_64``.

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> Mersenne64(5489).word()
    14514284786278117030
    """

    _SIZE, _MIDDLE = 312, 156

    def __init__(self, seed: int) -> None:
        full = 2**64 - 1
        state = [seed & full]
        for place in range(1, self._SIZE):
            state.append(6364136223846793005 * (state[-1] ^ state[-1] >> 62) + place & full)
        self._state = state
        self._place = self._SIZE

    def _twist(self) -> None:
        state, size = self._state, self._SIZE
        for at in range(size):
            joined = state[at] & 0xFFFFFFFF80000000 | state[(at + 1) % size] & 0x7FFFFFFF
            state[at] = state[(at + self._MIDDLE) % size] ^ joined >> 1 ^ (0xB5026F5AA96619E9 if joined & 1 else 0)
        self._place = 0

    def skip(self, count: int) -> None:
        """Skip `count` numbers.

        Examples
        --------
        >>> other, same = Mersenne64(5), Mersenne64(5)
        >>> other.skip(400), [same.word() for _ in range(400)][:0], other.word() == same.word()
        (None, [], True)
        """
        self._place += count
        while self._place > self._SIZE:
            rest = self._place - self._SIZE
            self._twist()
            self._place = rest

    def word(self) -> int:
        """Return the next 64 bits."""
        if self._place == self._SIZE:
            self._twist()
        word = self._state[self._place]
        self._place += 1
        word ^= word >> 29 & 0x5555555555555555
        word ^= word << 17 & 0x71D67FFFEDA60000
        word ^= word << 37 & 0xFFF7EEE000000000
        return word ^ word >> 43
