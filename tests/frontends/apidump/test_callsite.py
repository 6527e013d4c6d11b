"""Names of calls read off instructions, on whichever CPython runs this; run also on 3.12, 3.13 and 3.14."""

import dis
import sys
import types

import pytest

from dumpsim.frontends.apidump.pytorch.callsite import CallSite, Sites, base_module, evaluate


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
    __add__ = __radd__ = __sub__ = __mul__ = __matmul__ = __mod__ = __pow__ = __iadd__ = __imatmul__ = _note
    __neg__ = __invert__ = __eq__ = __lt__ = __ge__ = __getitem__ = _note


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
