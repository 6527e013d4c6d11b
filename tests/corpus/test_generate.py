"""The generator of random nets."""

import ast

import pytest
from corpus import generate, pack


@pytest.mark.parametrize("number", range(2 * len(generate.KINDS)))
def test_a_net_is_the_same_again_and_says_what_it_has(number):
    name, script = generate.generate(5, number)
    assert (name, script) == generate.generate(5, number)
    ast.parse(script)
    assert "dumpsim" not in script
    features = pack.features(script)
    words = script.replace("(", " ").split()
    for word in ("while", "break", "continue"):
        assert (word in features) == (word in words), script


def test_seeds_give_other_nets():
    assert generate.generate(1, 0)[1] != generate.generate(2, 0)[1]
