"""Process state that ranks switch when they take turns: only differences, and random states as in Python and numpy."""

import os
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.world import twister
from dumpsim.world.process import ProcessState, Variables
from dumpsim.world.twister import NumpyRandom, PythonRandom

DRAWS = {
    "nothing": lambda: None,
    "a value": lambda: (random.random(), np.random.rand()),
    "half a pair": lambda: (random.gauss(0, 1), np.random.standard_normal()),
    "both of a pair": lambda: [(random.gauss(0, 1), np.random.standard_normal()) for _ in range(2)],
    "a whole period of words": lambda: (random.getrandbits(32 * 624), np.random.bytes(4 * 624)),
    "a seed": lambda: (random.seed(8), np.random.seed(8)),
}


@pytest.fixture(autouse=True)
def outside():
    """The process's own state, put back by the functions of the modules themselves."""
    python, numpy, generator = random.getstate(), np.random.get_state(), np.random.get_bit_generator()
    yield
    np.random.set_bit_generator(generator)
    random.setstate(python)
    np.random.set_state(numpy)


def states():
    """Return the states from the modules' own functions."""
    kind, key, *others = np.random.get_state()
    return random.getstate(), (kind, key.tolist(), *others)


@pytest.mark.parametrize("known", [True, False])
def test_the_states_of_seeds_are_bytes_where_the_layout_is_known(known, monkeypatch):
    if known and not twister._python_is_known():
        pytest.skip("another layout of this Python")
    if not known:
        monkeypatch.setattr(twister, "_python_is_known", lambda: False)
        monkeypatch.setattr(twister, "_numpy_pair_offset", lambda: 0)
    for of in (PythonRandom, NumpyRandom):
        for state in (of.seeded.__wrapped__(9), of.take()):
            assert len(state.words) == (4 * 625 if known else 0)
            assert (state.whole is None) is known
        of.install(of.seeded.__wrapped__(9))
    assert random.random() == random.Random(9).random()
    assert np.random.rand() == np.random.RandomState(9).rand()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("second", DRAWS)
@pytest.mark.parametrize("first", DRAWS)
def test_two_ranks_draw_as_they_would_alone(first, second, known, monkeypatch):
    if not known:  # a Python and a numpy whose generators lie elsewhere
        monkeypatch.setattr(twister, "_python_is_known", lambda: False)
        monkeypatch.setattr(twister, "_numpy_pair_offset", lambda: 0)
        PythonRandom.seeded.cache_clear()
        NumpyRandom.seeded.cache_clear()
    expected = []
    for draw in (first, second):
        random.seed(3)
        np.random.seed(3)
        found = []
        for _ in range(3):
            DRAWS[draw]()
            found.append(states())
        expected.append(found)
    ranks = [
        ProcessState(
            variables=Variables.take(),
            directory=os.getcwd(),
            python_random=PythonRandom.seeded(3),
            numpy_random=NumpyRandom.seeded(3),
            stdout=None,
            stderr=None,
        )
    ] * 2
    here = present = ProcessState.take()
    outside = states()
    for at in range(3):
        for rank, draw in enumerate((first, second)):
            resumed = ranks[rank]
            resumed.install(present)
            DRAWS[draw]()
            found = states()
            present = ranks[rank] = ProcessState.take(resumed)
            here.install()
            assert found == expected[rank][at]
            ranks[rank].install(present := ProcessState.take(here))
            present = ProcessState.take(ranks[rank])
    here.install(present)
    assert states() == outside
    PythonRandom.seeded.cache_clear()
    NumpyRandom.seeded.cache_clear()


def test_another_bit_generator_belongs_to_the_rank_that_chose_it():
    np.random.seed(4)
    before = ProcessState.take()
    np.random.set_bit_generator(np.random.PCG64(7))
    drawn = np.random.rand()
    chosen = ProcessState.take(before)
    rest = np.random.rand(2)
    before.install()
    assert np.random.rand() == np.random.RandomState(4).rand()
    chosen.install()
    np.testing.assert_array_equal(np.random.rand(2), rest)
    before.install()
    np.testing.assert_array_equal(np.random.rand(2), np.random.RandomState(4).rand(2))
    assert drawn == np.random.Generator(np.random.PCG64(7)).random()


def test_what_has_not_changed_is_shared(monkeypatch):
    before = ProcessState.take()
    after = ProcessState.take(before)
    assert after.python_random is before.python_random
    assert after.numpy_random is before.numpy_random
    assert after.variables is before.variables
    monkeypatch.setenv("MINE", "1")
    random.random()
    changed = ProcessState.take(after)
    assert changed.environment["MINE"] == "1"
    assert "MINE" not in after.environment
    assert changed.python_random is not after.python_random
    assert changed.numpy_random is after.numpy_random


def test_random_states_are_exchanged_without_their_slow_functions(monkeypatch):
    called = []
    for module, name in ((random, "setstate"), (np.random, "set_state"), (os, "chdir"), (os, "putenv")):
        monkeypatch.setattr(module, name, lambda *args, name=name: called.append(name))
    state = ProcessState.take()
    random.gauss(0, 1)
    np.random.standard_normal()
    other = ProcessState.take(state)
    state.install(other)
    other.install(state)
    assert called == []


def test_variables_that_come_and_go():
    here = ProcessState.take()
    own = Variables({**here.variables.table, b"MINE": b"\xff=2", b"OTHER": b""})
    other = Variables({name: value for name, value in own.table.items() if name != b"MINE"})
    try:
        for _ in range(2):
            own.install(here.variables)
            assert os.environb[b"MINE"] == b"\xff=2"
            other.install(own)
            assert "MINE" not in os.environ
            assert os.environ["OTHER"] == ""
            assert other.holds()
            here.variables.install(other)
            assert here.variables.holds()
        other.install(here.variables)
        here.variables.install(other)
    finally:
        here.install()


def test_the_generators_of_this_interpreter_lie_in_memory_as_expected(monkeypatch):
    """Only then a switch of ranks is quick; otherwise the slow functions are used."""
    known = sys.implementation.name == "cpython"
    assert twister._python_is_known.__wrapped__() is known
    assert (twister._numpy_pair_offset.__wrapped__() > 0) is known
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="other"))
    assert twister._python_is_known.__wrapped__() is False
    assert twister._numpy_pair_offset.__wrapped__() == 0
