"""Names of calls read off instructions, on whichever CPython runs this; run also on 3.12, 3.13 and 3.14."""

import dis
import math
import os
import sys
import types

import pytest

from dumpsim.frontends.apidump.pytorch.callsite import CallSite, Sites, _positional, base_module, evaluate
from dumpsim.frontends.apidump.pytorch.operands import SOME_NUMBER, Load


class Recorder:
    """Stands for a tensor: each operator and method notes the site that it was called from."""

    def __init__(self):
        self.sites = Sites()
        self.seen = None

    def _note(self, *_, **__):
        frame = sys._getframe(1)
        site = self.sites.find(frame)
        self.seen = site, evaluate(site.left, frame), evaluate(site.right, frame), base_module(site.callee, frame)
        return self

    method = other = _note
    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __truediv__ = _note
    __matmul__ = __mod__ = __pow__ = __iadd__ = __imatmul__ = _note
    __neg__ = __invert__ = __eq__ = __lt__ = __ge__ = __getitem__ = size = _note
    shape = (3,)


@pytest.fixture
def x():
    return Recorder()


# often, since the interpreter replaces what runs often by instructions of its own
@pytest.mark.parametrize("times", [1, 60])
def test_operators_and_their_operands(x, times):
    scale = 2.0
    for _ in range(times):
        x + scale
        assert x.seen[:3] == (x.seen[0], (True, x), (True, scale))
        assert x.seen[0].operator
        scale + x
        assert x.seen[1:3] == ((True, scale), (True, x))
        2 + x
        assert x.seen[1:3] == ((True, 2), (True, x))
        y = x
        y + scale
        assert x.seen[2] == (True, scale)
        (x + 1).method() + scale
        assert (x.seen[0].operator, x.seen[1][0], x.seen[2]) == (True, False, (True, scale))


@pytest.mark.parametrize("times", [1, 60])
def test_every_operator_is_one(x, times):
    for _ in range(times):
        for _ in (x - x, x * x, x @ x, x % 2, x**2, -x, ~x, x == x, x < x, x >= 1, x[0]):
            pass
        y = x
        for source in ("-x", "~x", "x == 1", "x < 1", "x[0]", "x @ x", "(x +\n 1)"):
            x.seen = None
            eval(source, {"x": x})
            assert x.seen[0].operator, source
        y += 1
        assert x.seen[0].operator
        y @= 1
        assert x.seen[0].operator


@pytest.mark.parametrize("times", [1, 60])
def test_calls_their_names_and_arguments_by_position(x, times):
    space = types.ModuleType("space")
    space.function = x.method
    alias = space.function

    def last():
        site = x.seen[0]
        assert not site.operator
        return site.name, site.positional

    for _ in range(times):
        x.method()
        assert last() == ("method", 0)
        x.method(1, x)
        assert last() == ("method", 2)
        x.method(1, key=2)
        assert last() == ("method", 1)
        x.method(*[1, 2])
        assert last() == ("method", None)
        x.other(1).method(x)
        assert last() == ("method", 1)
        (x + 1).other(x)
        assert last() == ("other", 1)
        x.method(
            x.other(2),
            3,
        )
        assert last() == ("method", 2)
        space.function(x, key=3)
        assert last() == ("function", 1)
        assert x.seen[3] == "space"
        alias(x)
        assert last() == ("alias", 1)
        assert [x.method(n) for n in (1,)]
        assert last() == ("method", 1)


@pytest.mark.parametrize("wrong", ["raises", "unknown"])
def test_instructions_of_the_future_are_no_error(x, monkeypatch, wrong):
    plain = dis.get_instructions

    def future(code, **kwargs):
        if wrong == "raises":
            raise IndexError("tuple index out of range")
        return [i._replace(opname="SOMETHING_ELSE", opcode=255) for i in plain(code, **kwargs)]

    monkeypatch.setattr(dis, "get_instructions", future)
    x.method(x + 1)
    assert x.seen == (CallSite(False), (False, None), (False, None), None)


class Held:
    """Stands for a module: an attribute of the object, one of the class, and what a module keeps aside."""

    factor = 3.0
    half = property(lambda self: 1 / 0)

    def __init__(self, x):
        self.table = [x, 0.5, {"key": 2}]
        self._parameters = {"weight": x}

    def number(self):
        return 7


@pytest.mark.parametrize("times", [1, 60])
def test_operands_that_are_more_than_a_variable(x, times):
    held, n, rows = Held(x), 1, [x]
    number = (True, SOME_NUMBER)
    for _ in range(times):
        held.table[1] * x
        assert x.seen[1:3] == ((True, 0.5), (True, x))
        x * held.table[-2]
        assert x.seen[2] == (True, 0.5)
        held.table[2]["key"] * rows[n - 1].method(n)
        assert x.seen[1] == (True, 2)
        held.factor * held.weight(x) if n > 1 else held.factor * rows[0]
        assert x.seen[1:3] == ((True, 3.0), (True, x))
        (1 - held.factor) * x.method(1, key=[n, n + 1])
        assert x.seen[1:3] == (number, (False, None))
        -math.sqrt(n + 1) * x.method(rows)
        assert x.seen[1] == number
        x.method(rows) / max(len(rows), 2) ** 0.5
        assert x.seen[2] == number
        x.shape[0] * x.method(n)
        assert x.seen[1] == number
        rows[0].size(-1) ** -0.5 * (x + x)
        assert x.seen[1] == number


@pytest.mark.parametrize("times", [1, 60])
def test_what_would_need_the_users_code_is_not_known(x, times):
    held, n = Held(x), 2
    unknown = (False, None)
    for _ in range(times):
        held.number() * x
        assert x.seen[1:3] == (unknown, (True, x))
        max(held.number(), 2) * x
        assert x.seen[1] == unknown
        (held if n > 2 else 4) * x
        assert x.seen[1:3] == (unknown, (True, x))
        x * (n and 3)
        assert x.seen[1:3] == ((True, x), unknown)
        math.prod([n]) * x
        assert x.seen[1] == unknown
        held.table[n - 1] * x
        assert x.seen[1] == unknown
        [*range(3)][n] * x
        assert x.seen[1:3] == (unknown, (True, x))
    load = Load("LOAD_FAST", "held", ("half",))
    assert evaluate(load, sys._getframe()) == unknown  # a property is code


def test_a_long_sum_is_read_from_its_end(x):
    names = {"x": x, **{f"n{i}": i for i in range(60)}}
    eval("(" + " + ".join(f"n{i}" for i in range(60)) + ") * x", names)
    assert x.seen[1:3] == ((False, None), (True, x))


@pytest.mark.parametrize("named", [0, 2])
def test_arguments_by_position_are_those_without_a_name_on_each_cpython(named):
    """The names stand in another instruction from 3.13 on."""
    names = tuple("ab"[:named])
    code = types.SimpleNamespace(co_consts=(None, names))

    def step(opname, arg=None, argval=None):
        return types.SimpleNamespace(opname=opname, arg=arg, argval=argval)

    before = [step("LOAD_FAST"), step("LOAD_FAST")]
    if named:
        assert _positional(code, step("CALL", 3), [*before, step("KW_NAMES", 1), step("PRECALL", 3)]) == 3 - named
        assert _positional(code, step("CALL_KW", 3), [*before, step("LOAD_CONST", 1, names)]) == 3 - named
    else:
        assert _positional(code, step("CALL", 3), before) == 3
    assert _positional(code, step("CALL_FUNCTION_EX", 1), before) is None
    assert _positional(code, step("CALL"), before) is None


def test_the_module_that_a_callee_was_looked_up_in():
    frame = sys._getframe()
    assert base_module(Load("LOAD_GLOBAL", "os", ("path", "join")), frame) == os.path.__name__
    assert base_module(Load("LOAD_GLOBAL", "os", ("getcwd",)), frame) == "os"
    assert base_module(Load("LOAD_GLOBAL", "os", ()), frame) is None
    assert base_module(Load("LOAD_GLOBAL", "os", ("path", "sep", "join")), frame) is None
    assert base_module(None, frame) is None
