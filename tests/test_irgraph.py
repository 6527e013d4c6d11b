"""The comparison of kernel graphs that tests use."""

from dataclasses import replace

import recorded
from irgraph import difference

from dumpsim.codecs import irtext


def test_the_first_differing_node_is_shown():
    (text,) = recorded.load("simple_3steps").graph_texts.values()
    doc = irtext.parse(text)
    assert difference(doc, doc, names=True) == ""
    swapped = replace(doc.nodes[9], operands=doc.nodes[9].operands[::-1])
    other = replace(doc, nodes=(*doc.nodes[:9], swapped, *doc.nodes[10:]))
    shown = difference(doc, other)
    assert shown.startswith("node 9 of 14 (got) and 14 (want)")
    assert "  9 MakeTuple(%5, %0, %2, %7)" in shown
    assert "  9 MakeTuple(%7, %2, %0, %5)" in shown
