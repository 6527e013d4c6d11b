"""The order of printed attributes, against every graph that MindSpore 2.10 wrote."""

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs import irtext
from dumpsim.graph.mindspore.attrorder import printing_order


@pytest.mark.parametrize("name", recorded.cases())
def test_recorded_graphs(name):
    for text in recorded.load(name).graph_texts.values():
        for node in irtext.parse(text).nodes:
            for attrs in (node.primitive_attrs, node.node_attrs):
                names = [key for key, _ in attrs]
                assert list(printing_order(sorted(names))) == names


@given(st.lists(st.text(min_size=1), unique=True, max_size=60))
def test_a_permutation_of_the_names(names):
    assert sorted(printing_order(names)) == sorted(names)
