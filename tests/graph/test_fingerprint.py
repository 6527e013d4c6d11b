"""Fingerprints of captured graphs: equal networks have equal ones, and every difference shows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import SourceLine
from dumpsim.graph.fingerprint import fingerprint
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, text_of

OPS = ("Add", "Mul", "Sub")
KINDS = ("float32", "float16", "int32")

# one node: operator, operands (numbers of earlier values), number type, attributes, constant operand
nodes = st.tuples(
    st.sampled_from(OPS),
    st.tuples(st.integers(0, 30), st.integers(0, 30)),
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(("axis", "keep")), st.integers(-1, 3) | st.booleans(), max_size=2),
    st.none() | st.floats(width=32) | st.integers(-3, 3),
)
networks = st.tuples(
    st.lists(st.tuples(st.booleans(), st.sampled_from(KINDS)), min_size=1, max_size=3),  # parameters
    st.lists(nodes, min_size=1, max_size=6),
)


def build(network):
    parameters, steps = network
    made = [
        Parameter(
            name=f"p{at}",
            abstract=TensorType(dtype=dtype(kind), shape=(2,)),
            is_weight=is_weight,
            storage=object() if is_weight else None,
        )
        for at, (is_weight, kind) in enumerate(parameters)
    ]
    known, trail = list(made), []
    for op_type, operands, kind, attrs, constant in steps:
        abstract = TensorType(dtype=dtype(kind), shape=(2,))
        values = [known[at % len(known)] for at in operands]
        if constant is not None:
            values.append(Constant(value=constant, abstract=abstract))
        trail.append(Node(op_type=op_type, operands=values, abstract=abstract, attrs=dict(attrs)))
        known.append(trail[-1])
    return Graph(name="net", parameters=made, trail=trail, output=trail[-1])


def digest(graph):
    return fingerprint(graph).digest


def canonical(network):
    """The network as a value that tells every difference, also that of 1, True and 1.0."""
    parameters, steps = network
    shown = [
        (op, tuple(at % (len(parameters) + number) for at in operands), kind, repr(list(attrs.items())), repr(constant))
        for number, (op, operands, kind, attrs, constant) in enumerate(steps)
    ]
    return repr((parameters, shown))


@settings(max_examples=150, deadline=None)
@given(one=networks, other=networks)
def test_graphs_have_equal_fingerprints_exactly_where_they_are_equal(one, other):
    assert digest(build(one)) == digest(build(one))
    assert (digest(build(one)) == digest(build(other))) == (canonical(one) == canonical(other))


CHANGES = {
    "operator": lambda g: setattr(g.trail[1], "op_type", "Sub"),
    "order of operands": lambda g: g.trail[1].operands.reverse(),
    "attribute": lambda g: g.trail[0].attrs.update(axis=1),
    "kind of an attribute": lambda g: g.trail[0].attrs.update(axis=False),
    "order of attributes": lambda g: setattr(g.trail[0], "attrs", {"keep": True, "axis": 0}),
    "one bit of a constant": lambda g: setattr(g.trail[2].operands[1], "value", np.float32([1, 2.0000002])),
    "shape of a constant": lambda g: setattr(g.trail[2].operands[1], "value", np.float32([[1, 2]])),
    "number type of a constant": lambda g: setattr(g.trail[2].operands[1], "value", np.float64([1, 2])),
    "constants that are not shared": lambda g: g.trail[3].operands.__setitem__(1, replace(g.trail[2].operands[1])),
    "type of a node": lambda g: setattr(g.trail[0], "abstract", TensorType(dtype=dtype("float16"), shape=(2,))),
    "name of a weight": lambda g: setattr(g.parameters[1], "name", "other"),
    "type of a weight": lambda g: setattr(g.parameters[1], "abstract", TensorType(dtype=dtype("int8"), shape=(2,))),
    "weight or argument": lambda g: setattr(g.parameters[1], "is_weight", False),
    "weights that are one": lambda g: setattr(g.parameters[2], "storage", g.parameters[1].storage),
    "scope": lambda g: setattr(g.trail[0], "scope", "Default/fc1"),
    "dump mark": lambda g: setattr(g.trail[0], "dump_mark", "true"),
    "variable": lambda g: setattr(text_of(g.trail[0]), "variable", "x"),
    "source line": lambda g: setattr(
        text_of(g.trail[0]),
        "sources",
        (SourceLine(path="net.py", line=3, end_line=3, column=0, end_column=1, code="x"),),
    ),
    "output": lambda g: setattr(g, "output", g.trail[0]),
    "dead node": lambda g: g.trail.append(Node(op_type="Neg", operands=[g.trail[0]], abstract=g.trail[0].abstract)),
    "block": lambda g: setattr(g.trail[0], "blocks", (Graph(name="then"),)),
    "tied output": lambda g: setattr(g, "is_tied", False),
    "name": lambda g: setattr(g, "name", "other"),
}


def sample():
    kind = TensorType(dtype=dtype("float32"), shape=(2,))
    x = Parameter(name="x", abstract=kind)
    w, m = (Parameter(name=name, abstract=kind, is_weight=True, storage=object()) for name in "wm")
    constant = Constant(value=np.float32([1, 2]), abstract=kind)
    first = Node(op_type="Add", operands=[x, w], abstract=kind, attrs={"axis": 0, "keep": True})
    second = Node(op_type="Mul", operands=[first, m], abstract=kind)
    third = Node(op_type="Mul", operands=[second, constant], abstract=kind)
    fourth = Node(op_type="Mul", operands=[third, constant], abstract=kind)
    trail = [first, second, third, fourth]
    return Graph(name="net", parameters=[x, w, m], trail=trail, output=fourth)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_changes_the_fingerprint(change):
    assert digest(sample()) == digest(sample())
    changed = sample()
    CHANGES[change](changed)
    assert digest(changed) != digest(sample())


def test_constants_of_objects_are_equal_where_their_items_and_shapes_are():
    def with_texts(*texts, shape=(2,)):
        graph = sample()
        graph.trail[2].operands[1].value = np.array(texts, object).reshape(shape)
        return digest(graph)

    assert with_texts("a", "b") == with_texts("a", "b")
    assert len({with_texts("a", "b"), with_texts("a", "c"), with_texts("a", "b", shape=(2, 1))}) == 3


def test_weights_come_in_an_order_that_equal_graphs_share():
    found = fingerprint(sample())
    assert [weight.name for weight in found.weights] == ["w", "m"]


def test_objects_compared_by_identity_are_only_equal_to_themselves():
    graphs = [sample() for _ in range(3)]
    functions = [lambda: 1, lambda: 1]
    for graph, function in zip(graphs, (*functions, functions[0]), strict=True):
        graph.trail[0].attrs["hook"] = function
    first, second, third = map(fingerprint, graphs)
    assert first.digest == third.digest != second.digest
    assert functions[0] in first.anchors  # alive as long as the digest is kept
