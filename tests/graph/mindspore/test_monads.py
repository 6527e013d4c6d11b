"""Side effects in order."""

from dumpsim.graph.mindspore.monads import merged


def test_loads_are_merged_from_the_middle_to_both_ends():
    assert [merged(list(range(count))) for count in (1, 2, 3, 6)] == [[0], [0, 1], [1, 0, 2], [4, 2, 0, 1, 3, 5]]
