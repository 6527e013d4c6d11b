"""Merging Loads of a weight that have no write between them. [source auto_monad_eliminate.cc]"""

import numpy as np
import pytest

from dumpsim.core.abstract import MonadType, TupleType
from dumpsim.graph.graph import Constant, Node
from dumpsim.graph.mindspore.enforce import _holds
from dumpsim.graph.mindspore.loads import merge_loads
from tests.graph.mindspore.test_monads import lines_of

U = MonadType(kind="U")


@pytest.fixture
def weights(net):
    return {name: net.weight(name, np.zeros(2, np.float32)) for name in "abcd"}


def made(net, op_type, *operands, abstract=U):
    node = Node(op_type=op_type, operands=list(operands), abstract=abstract)
    net.graph.trail.append(node)
    return node


def load(net, weight, token):
    return made(net, "Load", weight, token, abstract=weight.abstract)


def waiting(net, token, loads):
    """The token after these loads: one by itself, several as a tuple."""
    if len(loads) > 1:
        loads = [made(net, "MakeTuple", *loads, abstract=TupleType(items=tuple(one.abstract for one in loads)))]
    return made(net, "UpdateState", token, *loads)


def merged(net, weights, reads, *, writes="a"):
    """What is left where b is read, another weight is written, and then `reads` are read at one token."""
    x = net.input("x", (2,))
    first = load(net, weights["b"], Constant(value="U", abstract=U))
    token = waiting(net, Constant(value="U", abstract=U), [first])
    token = waiting(net, token, [made(net, "Assign", weights[writes], x, token, abstract=x.abstract)])
    later = [load(net, weights[name], token) for name in reads]
    total = first
    for one in later:
        total = net.op("Add", total, one)
    net.graph.output = made(net, "Depend", total, waiting(net, token, later), abstract=total.abstract)
    merge_loads(net.graph)
    return lines_of(net.graph)


@pytest.mark.parametrize(("is_read", "waits"), [(False, True), (True, False)])
def test_a_result_does_not_wait_for_a_token_that_a_load_takes(net, weights, is_read, waits):
    x = net.input("x", (2,))
    token = waiting(net, Constant(value="U", abstract=U), [load(net, weights["a"], Constant(value="U", abstract=U))])
    token = waiting(net, token, [made(net, "Assign", weights["c"], x, token, abstract=x.abstract)])
    total = net.op("Add", x, load(net, weights["b"], token)) if is_read else net.op("Neg", x)
    net.graph.output = made(net, "Depend", total, token, abstract=total.abstract)
    merge_loads(net.graph)
    assert (net.graph.output.op_type == "Depend") is waits


def test_a_token_that_only_the_second_load_delayed_is_the_one_before(net, weights):
    assert merged(net, weights, "b") == [
        "0 Load(b, U)",
        "1 Add(%0, %0)",
        "2 UpdateState(U, %0)",
        "3 Assign(a, x, %2)",
        "4 UpdateState(%2, %3)",
        "5 Depend(%1, %4)",
    ]


@pytest.mark.parametrize("reads", ["bc", "cb"])
def test_of_two_loads_in_a_tuple_the_other_one_is_left_alone(net, weights, reads):
    found = merged(net, weights, reads)
    assert sum(" Load(b" in line for line in found) == 1
    assert not any("MakeTuple" in line for line in found)
    (other,) = (line.split()[0] for line in found if " Load(c" in line)
    assert found[-2].split(" ", 1)[1].startswith("UpdateState(")
    assert found[-2].endswith(f", %{other})")


@pytest.mark.parametrize("reads", ["bcd", "cbd", "cdb"])
def test_of_three_loads_in_a_tuple_the_other_two_stay_in_their_order(net, weights, reads):
    found = merged(net, weights, reads)
    number = {line.split("(")[1][0]: f"%{line.split()[0]}" for line in found if " Load(" in line}
    (line,) = (line for line in found if "MakeTuple" in line)
    rest = [number[name] for name in reads if name != "b"]
    assert line.split(" ", 1)[1] == f"MakeTuple({', '.join(rest)})"
    bundle = next(one for one in net.graph.nodes() if one.op_type == "MakeTuple")
    assert len(bundle.abstract.items) == 2


@pytest.mark.parametrize("reads", ["b", "bc"])
def test_loads_around_a_write_of_the_weight_stay(net, weights, reads):
    found = merged(net, weights, reads, writes="b")
    assert sum(" Load(b" in line for line in found) == 2
    assert any("MakeTuple" in line for line in found) == (len(reads) > 1)


def test_a_token_holds_its_readers_and_those_of_its_tuples_alone(net, weights):
    start = Constant(value="U", abstract=U)
    one, other, third, fourth = (load(net, weights[name], start) for name in "abcd")
    by_itself = waiting(net, start, [one])
    both = waiting(net, by_itself, [other, third])
    mixed = made(net, "UpdateState", both, fourth, made(net, "MakeTuple", one, abstract=TupleType(items=())))
    held = {name: [_holds(state, reader) for reader in (one, other, third, fourth, by_itself)] for name, state in (
        ("by itself", by_itself), ("both", both), ("mixed", mixed))}  # fmt: skip
    assert held == {
        "by itself": [True, False, False, False, False],
        "both": [False, True, True, False, False],
        "mixed": [True, False, False, True, False],
    }
