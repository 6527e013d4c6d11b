"""Values that are computed once for a version of a buffer."""

from dumpsim.dump.cache import Cache


def found(cache, names):
    return [name for name in names if cache.get(name) is not None]


def test_a_value_costs_at_most_half_of_the_budget():
    cache = Cache(10)
    cache.put("a", 1, 6)
    cache.put("b", 2, 5)
    cache.put("c", 3, 5)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (None, 2, 3)


def test_the_values_that_were_used_longest_ago_go_first():
    cache = Cache(10)
    for name in "abc":
        cache.put(name, name, 3)
    assert cache.get("a") == "a"
    cache.put("d", "d", 3)
    assert found(cache, "abcd") == ["a", "c", "d"]
    cache.put("e", "e", 5)
    assert found(cache, "abcde") == ["d", "e"]
    cache.put("f", "f", 2)
    assert found(cache, "def") == ["d", "e", "f"]


def test_a_value_that_is_stored_again_costs_what_it_costs_now():
    cache = Cache(10)
    for cost in (5, 2, 1, 4):
        cache.put("a", cost, cost)
    cache.put("b", "b", 3)
    cache.put("c", "c", 3)
    assert (cache.get("a"), found(cache, "abc")) == (4, ["a", "b", "c"])
    cache.put("a", 0, 5)
    assert found(cache, "abc") == ["a", "c"]
