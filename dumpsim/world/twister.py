"""The states of the global random generators, read and written as bytes.

Both `random` and `numpy.random` draw from a Mersenne Twister of 624 words and a position, 2,500 contiguous bytes in
memory. Their own functions for the state create a Python number for each word, which takes a hundred times as long.
The rest of the state is the cached second value of a pair of normal values.
"""

import ctypes
import random
import struct
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

__all__ = ["NumpyRandom", "PythonRandom", "RandomState"]

_KEY = 624 * 4
_WORDS: Final = ctypes.c_char * (_KEY + 4)
_PYTHON: Final[Any] = cast(Any, random.getstate).__self__  # the generator whose methods are the module's functions


class _Pair(ctypes.Structure):
    """The second value of a pair of normal values in a numpy `RandomState`."""

    _fields_ = (("has_gauss", ctypes.c_int), ("gauss", ctypes.c_double))


@dataclass(frozen=True, slots=True)
class RandomState:
    """The state of a generator.

    Attributes
    ----------
    words : bytes
        Key and position as in memory; empty if `whole` is set.
    half : float or None
        The second normal value of a pair, which the next call returns.
    whole : object
        The state as the generator's own functions take it, if `words` and `half` cannot represent it.
    generator : object
        The numpy bit generator, if a script has set one of another kind.
    """

    words: bytes
    half: float | None = None
    whole: Any = None
    generator: Any = None


class PythonRandom:
    """The generator of the module `random`.

    Examples
    --------
    >>> state = PythonRandom.take()
    >>> value = random.random()
    >>> PythonRandom.take(state) is state
    False
    >>> PythonRandom.install(state)
    >>> PythonRandom.take(state) is state, random.random() == value
    (True, True)
    """

    @staticmethod
    def take(before: RandomState | None = None) -> RandomState:
        """Return the state; `before` itself if no number was drawn since then."""
        if not _python_is_known():
            return RandomState(b"", whole=random.getstate())
        words, half = _python_words(_PYTHON).raw, _PYTHON.gauss_next
        if before is not None and before.words == words and before.half == half:
            return before
        return RandomState(words, half)

    @staticmethod
    @cache
    def seeded(seed: int) -> RandomState:
        """Return the state of a generator with that seed."""
        generator = random.Random(seed)
        if not _python_is_known():
            return RandomState(b"", whole=generator.getstate())
        return RandomState(_python_words(generator).raw)

    @staticmethod
    def install(state: RandomState, present: RandomState | None = None) -> None:
        """Set the state; `present` is the current state of the generator, if it is known."""
        if state is present:
            return
        if state.words:
            _python_words(_PYTHON).raw = state.words
            _PYTHON.gauss_next = state.half
        else:
            random.setstate(state.whole)


class NumpyRandom:
    """The generator of the module `numpy.random`.

    Examples
    --------
    >>> import numpy as np
    >>> state = NumpyRandom.take()
    >>> values = np.random.standard_normal(3)
    >>> NumpyRandom.install(state)
    >>> NumpyRandom.take(state) is state, bool((np.random.standard_normal(3) == values).all())
    (True, True)
    """

    @staticmethod
    def take(before: RandomState | None = None) -> RandomState:
        """Return the state; `before` itself if no number was drawn since then."""
        of = _numpy_random()
        generator = of.get_bit_generator()
        if not isinstance(generator, of.MT19937):
            return RandomState(b"", whole=generator.state, generator=generator)
        offset = _numpy_pair_offset()
        if not offset:
            return RandomState(b"", whole=of.get_state(legacy=False))
        words: bytes = _numpy_words(generator).raw
        pair = _Pair.from_address(id(_owner(of)) + offset)
        half = pair.gauss if pair.has_gauss else None
        if before is not None and before.words == words and before.half == half:
            return before
        return RandomState(words, half)

    @staticmethod
    @cache
    def seeded(seed: int) -> RandomState:
        """Return the state of a generator with that seed."""
        generator = _numpy_random().RandomState(seed)
        if not _numpy_pair_offset():
            return RandomState(b"", whole=generator.get_state(legacy=False))
        return RandomState(_numpy_words(generator._bit_generator).raw)

    @staticmethod
    def install(state: RandomState, present: RandomState | None = None) -> None:
        """Set the state; `present` is the current state of the generator, if it is known."""
        if state is present:
            return
        of = _numpy_random()
        if state.generator is not None:
            of.set_bit_generator(state.generator)
            state.generator.state = state.whole
            return
        if not isinstance(of.get_bit_generator(), of.MT19937):
            of.set_bit_generator(of.MT19937(0))
        if not state.words:
            of.set_state(state.whole)
            return
        _numpy_words(of.get_bit_generator()).raw = state.words
        pair = _Pair.from_address(id(_owner(of)) + _numpy_pair_offset())
        pair.has_gauss, pair.gauss = state.half is not None, state.half or 0.0


def _numpy_random() -> Any:
    import numpy as np  # imported late: a process that only asks for its rank does not need it

    return np.random


def _python_words(generator: random.Random) -> Any:
    """Position and key of a generator, which follow the object's header."""
    return _WORDS.from_address(id(generator) + object.__basicsize__)


def _owner(of: Any) -> Any:
    """The `RandomState` whose methods are the functions of `numpy.random`."""
    return of.get_state.__self__


def _numpy_words(generator: Any) -> Any:
    """Key and position of a bit generator."""
    return _WORDS.from_address(generator.ctypes.state_address)


@cache
def _python_is_known() -> bool:
    """Whether this Python's generator has the expected memory layout."""
    kind = random.Random.__mro__[1]  # the part that is written in C
    if sys.implementation.name != "cpython" or kind.__basicsize__ < object.__basicsize__ + _KEY + 4:
        return False
    generator = random.Random(5)
    generator.random()
    *key, position = generator.getstate()[1]
    return bool(_python_words(generator).raw == _bytes([position, *key]))


@cache
def _numpy_pair_offset() -> int:
    """Return the offset of the second normal value of a pair in a `RandomState`; 0 if numpy's layout is unknown."""
    generator = _numpy_random().RandomState(5)
    generator.standard_normal()
    state = generator.get_state(legacy=False)
    words = _bytes([*state["state"]["key"].tolist(), state["state"]["pos"]])
    if sys.implementation.name != "cpython" or _numpy_words(generator._bit_generator).raw != words:
        return 0
    content = ctypes.string_at(id(generator), type(generator).__basicsize__)
    offset: int = content.find(struct.pack("id", 1, state["gauss"]))
    if offset <= 0:
        return 0
    pair = _Pair.from_address(id(generator) + offset)
    generator.standard_normal()
    return offset if pair.has_gauss == 0 else 0


def _bytes(words: list[int]) -> bytes:
    return b"".join(word.to_bytes(4, sys.byteorder) for word in words)
