"""Rewritten functions have the results of the original functions on plain Python values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.core.errors import CaptureError
from dumpsim.frontends.mindspore._capture.control import rewritten


def early(x, y):
    if x > 3:
        return "large"
    if x > y:
        y = y + 10
    elif x == y:
        return y
    else:
        x = -x
        if x < -2:
            return "low"
    return x, y


def loops(x, y):
    total = 0
    seen = []
    for i in range(x + 4):
        if i == y:
            continue
        if i > 5:
            break
        total += i * y
        if total > 7 and i % 2:
            seen.append(i)
        else:
            seen.append(-i)
    else:
        total = -total
    while total > 3 and not total == 5:  # noqa: SIM201
        total -= 2
    while True:
        total += 1
        if total > x:
            break
    return total, seen


def expressions(x, y):
    a = x if x > y else -y
    b = (x and y) or "none"
    c = [i * x for i in range(3) if i != y]
    d = (x < y < 5, x is y, x in (1, 2))
    e = {"k": x[0] if isinstance(x, list) else abs(x)}
    f = [1, 2, 3, 4][max(0, min(y, 3)) :: 2]
    (g, h), k = (x, y), x**2 // 3 % 5
    return a, b, c, d, e, f, g, h, k


def nested(x, y):
    count = 0

    def step(n, *more, scale=2, **rest):
        nonlocal count
        count += n
        if count > 3:
            return count * scale
        return sum(more) + rest.get("z", 0)

    values = [step(x, y, z=1), step(y, scale=x), (lambda a: a + count)(x)]
    try:
        if y > 2:
            raise ValueError(y)
    except ValueError as error:
        values.append(str(error))
    with_default = late(x)
    return values, count, with_default


def late(n, k=3, *, extra=None):
    if extra is None:
        extra = k
    return n + extra


@pytest.mark.parametrize("function", [early, loops, expressions, nested, late])
@given(x=st.integers(-4, 6), y=st.integers(-2, 6))
def test_same_results(function, x, y):
    assert rewritten(function).function(x, y) == function(x, y)


def test_closure_defaults_and_globals_are_those_of_the_function():
    factor = 3

    def scaled(x, by=2, *, shift=1):
        return x * by * factor + shift + len(__name__)

    new = rewritten(scaled).function
    assert new(5) == scaled(5)
    assert new(5, 7, shift=0) == scaled(5, 7, shift=0)
    with pytest.raises(TypeError):
        new(5, shif=0)


class Base:
    def value(self, x):
        return x + 1


class Derived(Base):
    def value(self, x):
        if x > 1:
            return super().value(x) * 2
        return super().value(x)


@pytest.mark.parametrize("x", [0, 5])
def test_super_works_in_branches(x):
    assert rewritten(Derived.value).function(Derived(), x) == Derived().value(x)


def test_unassigned_variables_are_an_error_when_used():
    def maybe(x):
        if x > 0:
            y = x
        return y + 1

    assert rewritten(maybe).function(1) == 2
    with pytest.raises(UnboundLocalError, match="'y'"):
        rewritten(maybe).function(-1)


def test_lines_of_the_definition_are_those_of_its_file():
    line = rewritten(early).definition
    assert line.path == __file__
    assert line.code == "def early(x, y):"
    assert line.end_line - line.line == 11


def test_a_function_without_source_is_named():
    scope: dict[str, Any] = {}
    exec("def made_up(x):\n    return x", scope)
    with pytest.raises(CaptureError, match="source of made_up is missing"):
        rewritten(scope["made_up"])


def test_generators_are_refused():
    def generator(x):
        yield x

    with pytest.raises(CaptureError, match="yield"):
        rewritten(generator)


def test_classes_are_refused_with_their_line():
    def made(x):
        class Local:
            value = 1

        return x + Local.value

    line = made.__code__.co_firstlineno + 1
    with pytest.raises(CaptureError, match="made defines a class") as caught:
        rewritten(made)
    assert f"{__file__}:{line}" in str(caught.value)


def test_equal_functions_of_two_files_keep_their_files(tmp_path):
    found = []
    for name in ("one.py", "two.py"):
        path, scope = tmp_path / name, {}
        path.write_text("def plain(x):\n    return x + 1\n")
        exec(compile(path.read_text(), str(path), "exec"), scope)
        found.append(rewritten(scope["plain"]).definition.path)
    assert found == [str(tmp_path / "one.py"), str(tmp_path / "two.py")]
