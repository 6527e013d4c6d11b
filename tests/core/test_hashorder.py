"""The order of the entries of the vendor's hash tables: printed attributes, unused variables, axes."""

import random

import pytest
import recorded

from dumpsim.codecs import irtext
from dumpsim.core.hashorder import hash_order, number_order

# arguments and variables of a function as they are set, and the unused ones as MindSpore 2.10 evaluates them
# [observed 2.10: 01_type_inference of random networks]
RECORDED = [
    ("self x0 x1 t0 y t1 t2 t3 t4 t5 t6 t7", "t6 t2 t3 t5"),
    ("self x0 x1 t2 t3 t4 t5 t6", "t3 t5 t4"),
    ("self x0 x1 t0 y t1 t2 t3 t4 t5 t6 t7 t8 t9 t10", "t4 t8 t1"),
    ("self x0 x1 t0 y t1 t2 t3 t4 t5 t6 t7", "t3 t5 t4"),
    ("self x0 x1 t4 t5 t6 t7 t8 t9 t10", "t6 t5 t7 t9"),
    ("self x0 x1 t0 y t1 a0 t2 t3 t4", "t2 t3 t1"),
    ("self x0 x1 y t0 t1 t2 t3 t4 t5 t6 t7 t8 t9", "t5 t0 t8 t6"),
    ("self x0 x1 t0 y t1 t2 t3 t4 t5", "t2 t3 t4"),
    ("self x0 x1 y a0 b0 t0 t1 a1 t2 t3 t4", "t2 t3 t1"),
    ("self x0 x1 t0 y t1 t2 t3 t4 t5 t6 t7 t8 t9 t10", "t4 t7 t8 t9 t6"),
    ("self x0 x1 t0 y t1 t2 t3 t4 a0 b0 t5 t6 t7", "b0 t4 t6 t1"),
    ("self x0 x1 t0 y t1 t2 t3 t4 t5 t6 t7 t8 t9 t10", "t3 t7 t9"),
    (
        "self x0 x1 temperature down norm_out value_projection logits loss_scale",
        "value_projection logits norm_out loss_scale down temperature",
    ),
    (
        "self x0 x1 attention up a temperature query logits norm_out gate down i mask x_long_variable_name_42",
        "attention a gate i norm_out query logits down mask up temperature x_long_variable_name_42",
    ),
    (
        "self x0 x1 temperature loss_scale logits b residual attention hidden_state query norm_out gate "
        "output_of_first_layer mask up position_embedding x_long_variable_name_42 a key i",
        "attention a gate residual i norm_out loss_scale key output_of_first_layer hidden_state "
        "position_embedding query b logits mask up temperature x_long_variable_name_42",
    ),
    ("self x0 x1 t3 t4 t5 t6", "t5 t4"),
]


@pytest.mark.parametrize(("variables", "evaluated"), RECORDED)
def test_unused_variables_are_evaluated_in_the_recorded_order(variables, evaluated):
    unused = set(evaluated.split())
    assert [name for name in hash_order(variables.split()) if name in unused] == evaluated.split()


def test_every_name_is_there_once():
    rng = random.Random(2)
    for count in (1, 6, 7, 12, 13, 26, 200):
        names = [f"name{rng.randrange(10**9)}" for _ in range(count)]
        assert sorted(hash_order(names)) == sorted(names)


@pytest.mark.parametrize("name", recorded.cases())
def test_attributes_of_recorded_graphs(name):
    for text in recorded.load(name).graph_texts.values():
        for node in irtext.parse(text).nodes:
            for attrs in (node.primitive_attrs, node.node_attrs):
                names = [key for key, _ in attrs]
                assert list(hash_order(sorted(names))) == names


@pytest.mark.parametrize(
    "order",
    [
        (0, 1, 3, 2),
        (0, 1, 4, 3, 2),
        (0, 1, 4, 5, 3, 2),
        (0, 4, 3, 1, 5, 6, 2),
        (0, 4, 3, 1, 5, 6, 7, 2),
        (0, 4, 8, 3, 1, 5, 6, 7, 2),
        (0, 4, 8, 3, 1, 5, 6, 7, 9, 2),
    ],
)
def test_axes_that_are_redistributed(order):  # [spec parallel 2.5]
    assert number_order(len(order)) == order
