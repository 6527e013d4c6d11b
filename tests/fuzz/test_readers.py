"""A short fuzz of every reader in each run of the tests; ``python -m tests.fuzz`` is the long one."""

import os

import pytest
from fuzz.mutation import KINDS, Change, mutate
from fuzz.targets import targets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("DUMPSIM_FUZZ_EXAMPLES", "25"))
fraction = st.integers(0, (1 << 16) - 1)
changes = st.lists(st.builds(Change, st.sampled_from(KINDS), fraction, fraction, fraction), min_size=1, max_size=5)
TARGETS = targets()


@pytest.mark.parametrize("name", TARGETS)
def test_sound_inputs_are_read(name):
    """Else the search would start from inputs that go nowhere."""
    target = TARGETS[name]
    assert all(target.accepts(seed) for seed in target.seeds)


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs_are_read_or_refused(name):
    """Any other exception than the target's own is a crash, and fails this test."""
    target = TARGETS[name]

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(target.seeds), changes)
    def run(seed, applied):
        target.accepts(mutate(seed, applied))

    run()
