"""The emulation against the recorded nets: rates per feature, with floors that only go up.

`python tests/corpus/rates.py --floors` measures the whole corpus again and raises the floors.
"""

import pytest
from corpus import compare, pack, rates


def below(kind, measured) -> tuple[list[str], str]:
    """Rates below their floor, and the causes of differences."""
    known = rates.floors()[kind]
    nets = {name: pack.load(name) for name in known["nets"]}
    results = measured(nets)
    found = rates.percentages(nets, results)
    failed = [
        f"{feature}: {measure} {found[feature].get(measure, 0)} % of at least {floor} %"
        for feature, floors in known["floors"].items()
        for measure, floor in floors.items()
        if found[feature].get(measure, 0) < floor
    ]
    return failed, rates.causes(results)


def test_rates_of_the_sample(measured):
    failed, causes = below("sample", measured)
    assert not failed, causes


@pytest.mark.slow
def test_rates_of_the_corpus(measured):
    failed, causes = below("corpus", measured)
    assert not failed, causes


def test_the_corpus_has_every_kind_of_net():
    features = {feature for name in pack.names() for feature in pack.load(name)["features"]}
    assert features >= {
        *("line", "helper", "shared", "recurrent", "celllist", "if", "while", "for", "nested", "break", "continue"),
        *("early return", "parameter", "multi-output", "dynamic", "jit", "recompile", "several nets", "train", "eval"),
        *("optimizer", "gradient", "pynative", "conv", "attention", "groups"),
    }


@pytest.mark.parametrize("name", ["h_line", "h_while", "h_train"])
def test_a_record_equals_itself(name):
    net = pack.load(name)
    result = compare.compare(net, net["tree"])
    assert not result.causes
    assert all(equal == total for equal, total in result.counts.values())
