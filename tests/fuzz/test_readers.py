"""A short fuzz of every reader in each run of the tests; ``python -m tests.fuzz`` is the long one."""

import os

import pytest
from fuzz.mutation import KINDS, Change, mutate
from fuzz.targets import targets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dumpsim.codecs import irproto, npy
from dumpsim.core.errors import UnreadableError

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

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES <= 25, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(target.seeds), changes)
    def run(seed, applied):
        target.accepts(mutate(seed, applied))

    run()


def _config(old, new):
    """The config with a part replaced."""
    (seed,) = TARGETS["config"].seeds
    assert old.encode() in seed
    return seed.replace(old.encode(), new.encode())


# inputs that once crashed a reader: target, input, what its refusal says
FOUND = {
    "a digit that is none": ("config", '{"a": ¹}'.encode("latin-1"), None),
    "a number of 5000 digits in JSON": ("config", b'{"a": ' + b"9" * 5000 + b"}", None),
    "an iteration of 5000 digits": ("config", _config('"0|5-8|100-120"', f'"{"9" * 5000}|{"0" * 5000}-1"'), None),
    "a pattern of 5000 brackets": ("config", _config("(conv.+)", "(" * 5000 + ")" * 5000), None),
    "a descr that numpy evaluates": ("npy", npy.header("(,2)f4,f4", (2,)) + bytes(8), "is not a number type"),
    "a count that is none": ("ir", b"Total number of cnodes: x\n", "x' is not a number"),
    "a shape that is none": ("ir", b"Float32xDefaultFormat[const vector]{<>}", "'<>' is not a shape"),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_crashed_once_is_refused(name):
    kind, data, why = FOUND[name]
    target = TARGETS[kind]
    if kind == "ir":  # into a sound graph, where such text stands
        first, second = {
            "a count that is none": (b"Total number of cnodes: ", b"\n"),
            "a shape that is none": (b"Float32xDefaultFormat[const vector]{", b"}"),
        }[name]
        seed = target.seeds[0]
        start = seed.index(first)
        end = seed.index(second, start) + len(second)
        data = seed[:start] + data + seed[end:]
    if why is None:
        assert target.accepts(data)  # check reports what is wrong, it does not raise
        return
    with pytest.raises(UnreadableError, match=why):
        target.run(data)


def test_text_that_is_not_utf8_is_read():
    """A source path in GBK is no reason to refuse a graph."""
    seed = next(seed for seed in TARGETS["pb"].seeds if b"Default/" in seed)
    doc = irproto.decode(seed.replace(b"Default/", b"Defau\xb0\xa1/"))
    assert any("Defau\\xb0\\xa1/" in node.full_name for node in doc.nodes)
