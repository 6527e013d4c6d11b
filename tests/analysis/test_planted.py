"""Which operator a search names when one mistake is planted in the port of a net."""

import pytest

pytest.importorskip("torch", reason="needs the extra torch")

from plantedbugs import BUGS, FURTHER
from plantednets import NETS, Bug, mindspore_half, torch_half

import dumpsim

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Dumps of torch, one for each net and way."""
    found = {}

    def half(net, seed=0, filtered=False):
        key = (net, seed, filtered)
        if key not in found:
            root = tmp_path_factory.mktemp("torch")
            found[key] = root, torch_half(net, root, seed, filtered=filtered)
        return found[key]

    return half


def searched(halves, tmp_path, bug, *, seed=0, filtered=False, **options):
    golden, weights = halves(bug.net, seed, filtered)
    mindspore_half(bug, tmp_path / "ms", weights, seed, filtered=filtered)
    return dumpsim.first(tmp_path / "ms", golden, **options)


def named(bug, found):
    """Whether what is reported first is what was planted."""
    assert found.findings
    top = found.maker or found.findings[0]
    said = f"{top.op_name} {top.other_name} {top.note}"
    return any(all(word in said for word in words.split()) for words in bug.named), said


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_named_first(halves, tmp_path, name):
    right, said = named(BUGS[name], searched(halves, tmp_path, BUGS[name]))
    assert right, said


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FURTHER if name != "last norm with another epsilon"])
def test_a_further_bug_is_named_first(halves, tmp_path, name):
    right, said = named(FURTHER[name], searched(halves, tmp_path, FURTHER[name], seed=1))
    assert right, said


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_numbers_among_the_arguments_are_not_needed(halves, tmp_path, name):
    """A dump with the tool's own filter has no scalars: neither losses nor arguments."""
    right, said = named(BUGS[name], searched(halves, tmp_path, BUGS[name], seed=2, filtered=True))
    assert right, said


@pytest.mark.parametrize("net", NETS)
def test_a_faithful_port_has_no_finding(halves, tmp_path, net):
    found = searched(halves, tmp_path, Bug(net))
    assert not found.findings
    assert found.ranking == ()
    assert found.tensors > 150


def test_what_is_within_the_tolerance_leads_the_ranking(halves, tmp_path):
    """An epsilon whose effect is below 1e-4 is not a finding; asked for everything, the ranking names it."""
    found = searched(halves, tmp_path, FURTHER["last norm with another epsilon"], seed=1, everything=True)
    assert not found.findings
    assert found.ranking[0].op_name == "NN_LayerNorm_4_forward"
    assert found.ranking[0].excess > 2


def test_torch_is_asked_what_a_call_makes(halves, tmp_path):
    """GELU by tanh: torch makes of MindSpore's input what torch has, not what MindSpore has."""
    found = searched(halves, tmp_path, BUGS["GELU by tanh"])
    top = found.ranking[0]
    assert (top.op_name, top.basis, top.verdict) == ("NN_GELU_0_forward", "recomputed", "suspect")
    assert top.reason.startswith("output.0[")
    assert 1e-4 < top.error_out < 1e-2
    assert "weights" not in found.maker.note
