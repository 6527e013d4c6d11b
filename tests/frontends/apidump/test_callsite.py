"""Names of calls read off instructions, on whichever CPython runs this; run also on 3.12, 3.13 and 3.14."""

import dis
import math
import os
import sys
import types

import numpy as np
import pytest

from dumpsim.frontends.apidump.pytorch import operands
from dumpsim.frontends.apidump.pytorch.callsite import CallSite, Sites, _positional, _variables, base_module, evaluate
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


def roots(loads):
    return [".".join((str(load.root), *load.attributes)) for load in loads]


@pytest.mark.parametrize("times", [1, 60])
def test_variables_of_each_operand(x, times):
    held, n, other = Held(x), 1, 2.0
    expected = {"left": ["x.method", "n", "held.factor"], "right": ["other", "n"]}

    def found():
        site = x.seen[0]
        return {"left": roots(site.left_loads), "right": roots(site.right_loads)}

    for _ in range(times):
        other * n  # operands of other expressions do not count
        (x.method(n) + held.factor) * (other - n)
        assert found() == expected
        (
            x.method(n) + held.factor
        ) * (
            other
            - n
        )  # fmt: skip
        assert found() == expected
        held.weight = x
        held.weight + n
        assert found() == {"left": ["held.weight"], "right": ["n"]}
        assert roots([x.seen[0].left, x.seen[0].right]) == ["held.weight", "n"]
        x + 1
        assert found() == {"left": ["x"], "right": []}
        _ = -x
        assert (x.seen[0].left, roots([x.seen[0].right])) == (None, ["x"])
        [x.method(n), other]
        assert (x.seen[0].left_loads, x.seen[0].right_loads) == ((), ())


@pytest.mark.parametrize("times", [1, 60])
def test_operands_beside_one_that_branches(x, times):
    n, other = 1, 2.0
    for _ in range(times):
        x + (other if n else 2)
        assert x.seen[1] == (True, x)
        assert x.seen[2] == (False, None)
        x.method() + (other if n else 2)
        assert x.seen[0].left is None


class Binding(Recorder):
    def bound(self):
        return self.method


@pytest.mark.parametrize("times", [1, 60])
def test_what_a_call_returned_has_no_name(times):
    x = Binding()
    for _ in range(times):
        x.bound()(1)
        assert x.seen[0].callee is None
        x.bound()(1).method(2)
        assert x.seen[0].name == "method"


def test_variables_of_operands_whose_positions_are_not_known():
    class Step:
        opname, argval, positions = "LOAD_FAST", "x", None

    place = types.SimpleNamespace(lineno=1, col_offset=0)
    known = types.SimpleNamespace(opname="LOAD_FAST", argval="x", positions=place)
    for here, before in ((known, []), (Step, [known]), (known, [Step])):
        assert _variables(here, before) == ((), ())
    assert _variables(known, [known]) == ((), (Load("LOAD_FAST", "x"),))


def variable(name, *attributes):
    return Load("LOAD_FAST", name, attributes)


def constant(value):
    return Load("LOAD_CONST", value)


def called(callee, *arguments):
    return Load("CALL", (callee, arguments))


def element(container, index):
    return Load("SUBSCRIPT", (container, index))


def builtin(name):
    return Load("LOAD_GLOBAL", name)


class Thing:
    """Has numbers and other attributes, of the class and of its own."""

    number, flag, share, text = 3, True, 0.5, "x"

    def __init__(self, inner=None):
        self.own, self.inner = "own", inner
        self._parameters, self._buffers, self._modules = {"weight": 1}, {"mean": 2}, {"part": 3}
        self._others = {"hidden": 4}


class Slotted:
    __slots__ = ()
    number = 5


UNKNOWN, NUMBER = (False, None), (True, SOME_NUMBER)
EVALUATED = [
    (None, UNKNOWN),
    (variable("items"), (True, [5, 6])),
    (variable("nothing"), UNKNOWN),
    (variable("math"), UNKNOWN),  # of the module, not of the function
    (Load("LOAD_GLOBAL", "math"), (True, math)),
    (Load("LOAD_NAME", "len"), (True, len)),
    (Load("LOAD_GLOBAL", "nothing"), UNKNOWN),
    (Load("LOAD_DEREF", "len"), UNKNOWN),
    (constant("c"), (True, "c")),
    (variable("thing", "own"), (True, "own")),
    (variable("thing", "number"), (True, 3)),
    (variable("thing", "flag"), (True, True)),
    (variable("thing", "share"), (True, 0.5)),
    (variable("thing", "text"), UNKNOWN),  # may be a descriptor
    (variable("thing", "__init__"), UNKNOWN),
    (variable("thing", "nothing"), UNKNOWN),
    (variable("thing", "weight"), (True, 1)),
    (variable("thing", "mean"), (True, 2)),
    (variable("thing", "part"), (True, 3)),
    (variable("thing", "hidden"), UNKNOWN),
    (variable("thing", "inner", "number"), (True, 3)),
    (variable("thing", "nothing", "number"), UNKNOWN),
    (variable("slotted", "number"), (True, 5)),
    (variable("slotted", "nothing"), UNKNOWN),
    (element(variable("items"), constant(1)), (True, 6)),
    (element(variable("items"), constant(-2)), (True, 5)),
    (element(variable("items"), constant(2)), UNKNOWN),
    (element(variable("items"), constant("k")), UNKNOWN),
    (element(variable("pair"), constant(0)), (True, 7)),
    (element(variable("table"), constant("k")), (True, 8)),
    (element(variable("table"), constant("z")), UNKNOWN),
    (element(variable("table"), constant(1.5)), UNKNOWN),
    (element(variable("table"), variable("nothing")), UNKNOWN),
    (element(variable("nothing"), constant(0)), UNKNOWN),
    (element(constant("abc"), constant(0)), UNKNOWN),
    (element(variable("nothing", "shape"), constant(0)), NUMBER),
    (element(variable("thing", "shape", "own"), constant(0)), UNKNOWN),
    *((called(builtin(name), variable("thing")), NUMBER) for name in ("int", "float", "len")),
    *((called(builtin(name), constant(2)), NUMBER) for name in ("abs", "max", "min", "pow", "round")),
    *((called(builtin(name), variable("thing")), UNKNOWN) for name in ("abs", "max", "min", "pow", "round")),
    (called(builtin("max"), constant(1), variable("thing")), UNKNOWN),
    (called(builtin("max"), constant(1), constant(2.5)), NUMBER),
    (called(builtin("max")), UNKNOWN),
    (called(builtin("repr"), constant(2)), UNKNOWN),
    (called(Load("LOAD_GLOBAL", "math", ("sqrt",)), variable("thing")), NUMBER),
    (called(Load("LOAD_GLOBAL", "math", ("prod",)), constant(2)), UNKNOWN),
    (called(Load("LOAD_GLOBAL", "np", ("sqrt",)), constant(2)), NUMBER),
    (called(Load("LOAD_GLOBAL", "np", ("sqrt",)), variable("thing")), UNKNOWN),
    *((called(variable("nothing", name)), NUMBER) for name in ("item", "numel", "nelement", "dim", "ndimension")),
    (called(variable("nothing", "size"), constant(0)), NUMBER),
    (called(variable("nothing", "size")), UNKNOWN),
    (called(variable("nothing", "sum"), constant(0)), UNKNOWN),
    (called(variable("nothing")), UNKNOWN),
    (Load("COMBINE", (constant(1), constant(True))), NUMBER),
    (Load("COMBINE", (constant(1), called(builtin("len"), variable("x")))), NUMBER),
    (Load("COMBINE", (constant(1), constant("a"))), UNKNOWN),
    (Load("COMBINE", (constant(1), None)), UNKNOWN),
    (Load("COMBINE", (variable("items"),)), UNKNOWN),
]


@pytest.mark.parametrize(("load", "wanted"), EVALUATED)
def test_values_of_operands(load, wanted):
    items, pair, table = [5, 6], (7,), {"k": 8, 1.5: 9}
    thing, slotted = Thing(Thing()), Slotted()
    assert [items, pair, table, thing, slotted, np]
    assert evaluate(load, sys._getframe()) == wanted


def steps(*texts):
    """Instructions as ``dis`` lists them: name, argument's value, argument."""
    return [
        types.SimpleNamespace(opname=op, argval=value, arg=arg, argrepr="", is_jump_target=False, positions=None)
        for op, value, arg in ((*text, None, None)[:3] for text in texts)
    ]


F, A, B, O = builtin("f"), variable("a"), variable("b"), variable("o")
LOAD_F, LOAD_A, LOAD_B, LOAD_O = (("LOAD_GLOBAL", "f"), *(("LOAD_FAST", name) for name in "abo"))
NULL, METHOD = ("PUSH_NULL",), ("LOAD_ATTR", "m")


@pytest.mark.parametrize(
    ("null_after", "found", "wanted"),
    [
        (True, [LOAD_F, NULL, LOAD_A, LOAD_B, ("CALL", None, 2)], called(F, A, B)),
        (True, [LOAD_F, NULL, LOAD_A, LOAD_B, ("LOAD_CONST", ("k",)), ("CALL_KW", None, 2)], called(F, A, B)),
        (True, [LOAD_O, METHOD, LOAD_A, ("CALL", None, 1)], called(variable("o", "m"), A)),
        (True, [LOAD_F, NULL, ("CALL", None, 0)], called(F)),
        (False, [NULL, LOAD_F, LOAD_A, LOAD_B, ("CALL", None, 2)], called(F, A, B)),
        (False, [NULL, LOAD_F, LOAD_A, LOAD_B, ("KW_NAMES",), ("PRECALL",), ("CALL", None, 2)], called(F, A, B)),
        (False, [LOAD_O, METHOD, LOAD_A, ("CALL", None, 1)], called(variable("o", "m"), A)),
        (False, [NULL, LOAD_F, NULL, LOAD_F, ("CALL", None, 0), ("CALL", None, 1)], called(F, called(F))),
        (False, [LOAD_A, LOAD_B, ("BINARY_SUBSCR",)], element(A, B)),
        (False, [LOAD_A, LOAD_B, ("BINARY_OP",)], Load("COMBINE", (A, B))),
        (False, [LOAD_A, ("UNARY_NEGATIVE",)], Load("COMBINE", (A,))),
        (False, [LOAD_A, LOAD_B, ("COMPARE_OP",)], None),
        (False, [LOAD_O, LOAD_A, LOAD_B, ("BINARY_SLICE",)], None),
        (False, [LOAD_A, LOAD_B, ("BUILD_SLICE", None, 2)], None),
        (False, [LOAD_A, ("BUILD_TUPLE", None, 1)], None),
        (False, [("BUILD_LIST", None, 0)], None),
        (False, [LOAD_A, LOAD_B, ("COMPARE_OP",), LOAD_O, ("BINARY_OP",)], None),
        (False, [LOAD_O, *[METHOD] * 12], variable("o", *["m"] * 12)),
    ],
)
def test_operands_of_each_cpython_and_their_starts(monkeypatch, null_after, found, wanted):
    monkeypatch.setattr(operands, "_NULL_AFTER_CALLEE", null_after)
    before = steps(LOAD_B, ("POP_TOP",))
    listed = [*before, *steps(*found, ("RETURN_VALUE",))]
    assert operands.operand(listed, len(listed) - 2) == (wanted, 2)
    listed[-1].is_jump_target, listed[-1].positions = True, (1,)  # one of two values that a condition chooses
    assert operands.operand(listed, len(listed) - 2) == (None, -1)


@pytest.mark.parametrize(
    "found", [[("YIELD",)], [LOAD_A, ("BINARY_OP",)], [LOAD_A, ("CALL", None, 1)], [LOAD_O, *[METHOD] * 13]]
)
def test_operands_without_a_known_start(found):
    listed = steps(*found, ("RETURN_VALUE",))
    assert operands.operand(listed, len(listed) - 2)[1] == -1


def test_the_module_that_a_callee_was_looked_up_in():
    frame = sys._getframe()
    assert base_module(Load("LOAD_GLOBAL", "os", ("path", "join")), frame) == os.path.__name__
    assert base_module(Load("LOAD_GLOBAL", "os", ("getcwd",)), frame) == "os"
    assert base_module(Load("LOAD_GLOBAL", "os", ()), frame) is None
    assert base_module(Load("LOAD_GLOBAL", "os", ("path", "sep", "join")), frame) is None
    assert base_module(None, frame) is None
