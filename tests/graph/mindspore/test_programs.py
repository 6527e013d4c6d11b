"""Whole programs of small networks: which kernel graphs a cut makes of them, and the steps that connect these."""

import numpy as np
import pytest

from dumpsim.graph.builder import constant
from dumpsim.graph.gradient import reverse
from dumpsim.graph.gradient_control import below
from dumpsim.graph.mindspore.cut import cut
from dumpsim.graph.mindspore.gradient_nodes import NodeBuilder
from dumpsim.graph.mindspore.monads import add_monads
from dumpsim.ops.table import find
from tests.graph.described import lines_of, steps_of

TWO = np.float32(2)


def branch(net):
    """A branch between two segments."""
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    a = net.op("Exp", x)
    b = net.op("Neg", a)
    (m,) = net.branch(flag, lambda: [net.op("Tanh", net.op("Sin", b))], lambda: [net.op("Neg", b)])
    c = net.op("Mul", m, x)
    d = net.op("Cos", c)
    net.give(net.op("Add", d, d))


def two_branches(net):
    """What stands between two branches."""
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    (a,) = net.branch(flag, lambda: [net.op("Tanh", x)], lambda: [net.op("Neg", x)])
    e = net.op("Exp", a)
    (b,) = net.branch(flag, lambda: [net.op("Sin", e)], lambda: [e])
    net.give(net.op("Add", b, a), net.op("Mul", e, TWO))


def nested(net):
    """A branch in a branch."""
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")

    def then():
        s = net.op("Sin", x)
        (i,) = net.branch(flag, lambda: [net.op("Tanh", s)], lambda: [net.op("Neg", s)])
        return [net.op("Cos", i)]

    (a,) = net.branch(flag, then, lambda: [x])
    net.give(a)


def loop_twice(net):
    """Two loops, and a value that neither of them needs."""
    x = net.input("x", (3,))

    def lt(i):
        return net.op("Less", net.op("ReduceSum", i["y"], (), False), np.float32(9))

    a = net.loop({"y": net.op("Exp", x)}, lt, lambda i: {"y": net.op("Mul", i["y"], TWO)})["y"]
    free = net.op("Sin", x)
    n = net.op("Neg", a)
    b = net.loop({"y": n}, lt, lambda i: {"y": net.op("Add", i["y"], free)})["y"]
    net.give(net.op("Cos", b), free)


def branch_in_loop(net):
    """A branch in the body of a loop of two variables."""
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")

    def body(i):
        (m,) = net.branch(flag, lambda: [net.op("Tanh", i["y"])], lambda: [net.op("Neg", i["y"])])
        return {"y": net.op("Mul", m, TWO), "z": i["y"]}

    r = net.loop({"y": net.op("Exp", x), "z": x}, lambda i: net.op("LogicalNot", flag), body)
    net.give(net.op("Add", r["y"], r["z"]))


def write(net):
    """A branch that writes memory."""
    x, flag, w = net.input("x", (3,)), net.input("flag", (), "bool"), net.weight("w", np.ones(3, np.float32))
    (a,) = net.branch(flag, lambda: [net.op("Assign", w, x)], lambda: [net.op("Neg", x)])
    net.give(net.op("Add", a, net.op("Exp", w)))


def chosen(net, w=None):
    x = net.input("x", (3,))
    c = net.op("Greater", net.op("ReduceSum", x, (), False), np.float32(0))
    f = x if w is None else w
    (y,) = net.branch(c, lambda: [net.op("Mul", net.op("Exp", x), f)], lambda: [net.op("Tanh", x)])
    return x, y


def grads(net, output, wanted):
    b = NodeBuilder(find, net.place, {}, block=net.block, graphs=[net.graph])
    return reverse(output, constant(np.ones(output.abstract.shape, np.float32)), wanted, b, nodes=below([output]))


def gradient(net):
    """A branch and its gradient."""
    x, y = chosen(net)
    net.give(y, *grads(net, y, [x]))


def gradient_weight(net):
    """A branch that reads a weight, and its gradient."""
    w = net.weight("w", np.ones(3, np.float32))
    x, y = chosen(net, w)
    net.give(y, *grads(net, y, [x, w]))


def gradient_loop(net):
    """A loop and its gradient, with a weight."""
    x, w = net.input("x", (2,)), net.weight("w", np.ones(2, np.float32))
    y = net.loop(
        {"x": x},
        lambda i: net.op("Less", net.op("ReduceSum", i["x"], (), False), np.float32(20)),
        lambda i: {"x": net.op("Mul", i["x"], w)},
    )["x"]
    net.give(y, *grads(net, y, [x, w]))


def gradient_loop2(net):
    """A loop of two variables that uses an input, and its gradient."""
    x, w = net.input("x", (2,)), net.input("w", (2,))
    r = net.loop(
        {"x": x, "n": net.op("Exp", x)},
        lambda i: net.op("Less", net.op("ReduceSum", i["x"], (), False), np.float32(20)),
        lambda i: {"x": net.op("Mul", net.op("Sin", i["x"]), w), "n": net.op("Add", i["n"], i["x"])},
    )
    y = net.op("Add", r["x"], r["n"])
    net.give(y, *grads(net, y, [x, w]))


PROGRAMS = {
    branch: """
        x: %0 = Exp(x); %1 = Neg(%0); %2 = MakeTuple(%1)
        _ x: %0 = Mul(_, x); %1 = Cos(%0); %2 = Add(%1, %1); %3 = MakeTuple(%2)
        ?: %0 = Sin(in0); %1 = Tanh(%0); %2 = MakeTuple(%1)
        ?: %0 = Neg(in0); %1 = MakeTuple(%0)
        steps: 0(0) -> 3; if 1 [2(3) -> 4; 2 = 4] else [3(3) -> 5; 2 = 5]; 1(2,0) -> 6
        outputs (6,), 7 slots, 0 stacks, 3 functions, roots [0, 1]
    """,
    two_branches: """
        _: %0 = Exp(_); %1 = Mul(%0, 2.0); %2 = MakeTuple(%0, %1)
        _ _ ?: %0 = Add(_, _); %1 = MakeTuple(%0, in2); %2 = MakeTuple(%1)
        ?: %0 = Sin(in0); %1 = MakeTuple(%0)
        x: %0 = Tanh(x); %1 = MakeTuple(%0)
        x: %0 = Neg(x); %1 = MakeTuple(%0)
        steps: if 1 [3(0) -> 4; 2 = 4] else [4(0) -> 5; 2 = 5]; 0(2) -> 6,7; if 1 [2(6) -> 8; 3 = 8] else [3 =
          6]; 1(3,2,7) -> 9,10
        outputs (9, 10), 11 slots, 0 stacks, 5 functions, roots [0, 1]
    """,
    nested: """
        x: %0 = Sin(x); %1 = MakeTuple(%0)
        _: %0 = Cos(_); %1 = MakeTuple(%0)
        ?: %0 = Tanh(in0); %1 = MakeTuple(%0)
        ?: %0 = Neg(in0); %1 = MakeTuple(%0)
        steps: if 1 [0(0) -> 4; if 1 [2(4) -> 5; 3 = 5] else [3(4) -> 6; 3 = 6]; 1(3) -> 7; 2 = 7] else [2 =
          0]
        outputs (2,), 8 slots, 0 stacks, 5 functions, roots []
    """,
    loop_twice: """
        x: %0 = Exp(x); %1 = MakeTuple(%0)
        y: %0 = ReduceSum(y, [], False, False); %1 = Less(%0, 9.0); %2 = MakeTuple(%1)
        y: %0 = Mul(y, 2.0); %1 = MakeTuple(%0)
        x y: %0 = Neg(y); %1 = Sin(x); %2 = MakeTuple(%0, %1)
        y: %0 = ReduceSum(y, [], False, False); %1 = Less(%0, 9.0); %2 = MakeTuple(%1)
        y ?: %0 = Add(y, in1); %1 = MakeTuple(%0)
        y ?: %0 = Cos(y); %1 = MakeTuple(%0, in1); %2 = MakeTuple(%1)
        steps: 0(0) -> 2; 1 = 2; while [1(1) -> 3] 3 [2(1) -> 4; 1 = 4]; 3(0,1) -> 6,7; 5 = 6; while [4(5) ->
          8] 8 [5(5,7) -> 9; 5 = 9]; 6(5,7) -> 10,11
        outputs (10, 11), 12 slots, 0 stacks, 7 functions, roots [0]
    """,
    branch_in_loop: """
        x: %0 = Exp(x); %1 = MakeTuple(%0)
        flag: %0 = LogicalNot(flag); %1 = MakeTuple(%0)
        ?: %0 = Mul(in0, 2.0); %1 = MakeTuple(%0)
        y: %0 = Tanh(y); %1 = MakeTuple(%0)
        y: %0 = Neg(y); %1 = MakeTuple(%0)
        y z: %0 = Add(y, z); %1 = MakeTuple(%0)
        steps: 0(0) -> 4; 2 = 4; 3 = 0; while [1(1) -> 5] 5 [if 1 [3(2) -> 7; 6 = 7] else [4(2) -> 8; 6 = 8];
          2(6) -> 9; 10 = 2; 2 = 9; 3 = 10]; 5(2,3) -> 11
        outputs (11,), 12 slots, 0 stacks, 7 functions, roots [0]
    """,
    write: """
        w _: %0 = Load(w, U); %1 = Exp(%0); %2 = Add(_, %1); %3 = UpdateState(U, %0); %4 = Depend(%2, %3); %5
          = MakeTuple(%4)
        w x: %0 = Assign(w, x, U); %1 = MakeTuple(%0); %2 = UpdateState(U, %0); %3 = Depend(%1, %2); %4 =
          MakeTuple(%3)
        x: %0 = Neg(x); %1 = MakeTuple(%0)
        steps: if 1 [1(0) -> 3; 2 = 3] else [2(0) -> 4; 2 = 4]; 0(2) -> 5
        outputs (5,), 6 slots, 0 stacks, 3 functions, roots [0]
    """,
    gradient: """
        x: %0 = ReduceSum(x, [], False, False); %1 = Greater(%0, 0.0); %2 = MakeTuple(%1)
        -: %0 = MakeTuple()
        _ _: %0 = Reshape(0.0, [1]); %1 = Tile(%0, [3]); %2 = MakeTuple(%1, _); %3 = AddN(%2); %4 =
          MakeTuple(_, %3); %5 = MakeTuple(%4)
        x: %0 = Exp(x); %1 = MakeTuple(%0)
        ? x: %0 = Mul(in0, x); %1 = MakeTuple(%0)
        x ?: %0 = Mul(x, in1); %1 = MakeTuple(%0, in1); %2 = AddN(%1); %3 = MakeTuple(%2)
        x: %0 = Tanh(x); %1 = MakeTuple(%0)
        -: %0 = MakeTuple()
        ?: %0 = TanhGrad(in0, [1.0, 1.0, 1.0]); %1 = MakeTuple(%0)
        steps: 0(0) -> 5; if 5 [3(0) -> 6; 4(6,0) -> 7; 1 = 7; 2 = 6; 3 = [0.0, 0.0, 0.0]] else [6(0) -> 8; 1
          = 8; 2 = [0.0, 0.0, 0.0]; 3 = 8]; if 5 [5(0,2) -> 9; 4 = 9] else [8(3) -> 10; 4 = 10]; 2(4,1) ->
          11,12
        outputs (11, 12), 13 slots, 0 stacks, 5 functions, roots [0, 1, 2]
    """,
    gradient_weight: """
        x: %0 = ReduceSum(x, [], False, False); %1 = Greater(%0, 0.0); %2 = MakeTuple(%1)
        -: %0 = MakeTuple()
        _ _ _: %0 = Reshape(0.0, [1]); %1 = Tile(%0, [3]); %2 = MakeTuple(%1, _); %3 = AddN(%2); %4 =
          MakeTuple(_, %3, _); %5 = MakeTuple(%4)
        w x: %0 = Exp(x); %1 = Load(w, U); %2 = TensorMove(%1); %3 = MakeTuple(%0, %2)
        ? ?: %0 = Mul(in1, in0); %1 = MakeTuple(%0, in0, in1, [0.0, 0.0, 0.0]); %2 = UpdateState(U, in0); %3 =
          Depend(%1, %2); %4 = MakeTuple(%3)
        ? ?: %0 = Mul(in0, in1); %1 = MakeTuple(%0)
        x: %0 = Tanh(x); %1 = MakeTuple(%0)
        -: %0 = MakeTuple()
        ?: %0 = TanhGrad(in0, [1.0, 1.0, 1.0]); %1 = MakeTuple(%0)
        steps: 0(0) -> 7; if 7 [3(0) -> 8,9; 4(9,8) -> 10,11,12,13; 1 = 10; 2 = 11; 3 = 12; 4 = 13] else [6(0)
          -> 14; 1 = 14; 2 = [0.0, 0.0, 0.0]; 3 = [0.0, 0.0, 0.0]; 4 = 14]; if 7 [5(2,3) -> 15; 5 = 15; 6 = 3]
          else [8(4) -> 16; 5 = 16; 6 = [0.0, 0.0, 0.0]]; 2(5,1,6) -> 17,18,19
        outputs (17, 18, 19), 20 slots, 0 stacks, 5 functions, roots [0, 1, 2]
    """,
    gradient_loop: """
        x: %0 = ReduceSum(x, [], False, False); %1 = Less(%0, 20.0); %2 = MakeTuple(%1)
        w x: %0 = Load(w, U); %1 = UpdateState(U, %0); %2 = Mul(x, %0); %3 = MakeTuple(%1, %2)
        -: %0 = MakeTuple()
        x _ _: %0 = MakeTuple(x, _, _); %1 = MakeTuple(%0)
        w ? ? ?: %0 = Load(w, U); %1 = Mul(%0, in2); %2 = Mul(in1, in2); %3 = MakeTuple(in3, %2); %4 =
          AddN(%3); %5 = MakeTuple(%1, %4); %6 = UpdateState(U, %0); %7 = Depend(%5, %6); %8 = MakeTuple(%7)
        steps: 1 = 0; while [0(1) -> 2] 2 counted 0 [1(1) -> 3; keep 1 (1); 1 = 3]; 4 = [1.0, 1.0]; 5 = [0.0,
          0.0]; repeat 0 [restore 1 (6); 4(6,4,5) -> 7,8; 4 = 7; 5 = 8]; 3(1,4,5) -> 9,10,11
        outputs (9, 10, 11), 12 slots, 2 stacks, 5 functions, roots []
    """,
    gradient_loop2: """
        x: %0 = Exp(x); %1 = MakeTuple(%0)
        x: %0 = ReduceSum(x, [], False, False); %1 = Less(%0, 20.0); %2 = MakeTuple(%1)
        x w n: %0 = Add(n, x); %1 = Sin(x); %2 = Mul(%1, w); %3 = MakeTuple(%0, %1, %2)
        _ ? _ x n _: %0 = Add(x, n); %1 = Mul(_, in1); %2 = MakeTuple(%1, _); %3 = AddN(%2); %4 =
          MakeTuple(%0, %3, _); %5 = MakeTuple(%4)
        ? w ? ? ? ?: %0 = Mul(in4, in2); %1 = MakeTuple(in5, %0); %2 = AddN(%1); %3 = Mul(w, in2); %4 =
          Cos(in0); %5 = Mul(%3, %4); %6 = MakeTuple(%5, in3); %7 = AddN(%6); %8 = MakeTuple(%2, %7)
        steps: 0(0) -> 4; 2 = 0; 3 = 4; while [1(2) -> 5] 5 counted 0 [2(2,1,3) -> 6,7,8; keep 1 (7,2); 2 = 8;
          3 = 6]; 9 = [1.0, 1.0]; 10 = [1.0, 1.0]; 11 = [0.0, 0.0]; repeat 0 [restore 1 (12,13);
          4(13,1,9,10,12,11) -> 14,15; 9 = 15; 11 = 14]; 3(10,4,9,2,3,11) -> 16,17,18
        outputs (16, 17, 18), 19 slots, 2 stacks, 5 functions, roots [0]
    """,
}


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_program(net, build):
    build(net)
    pieces = cut(add_monads(net.graph, find))
    rows = [
        f"{' '.join(p.name or '?' for p in graph.parameters) or '-'}: {'; '.join(lines_of(graph))}"
        for graph in pieces.graphs
    ]
    rows.append(f"steps: {steps_of(pieces.steps)}")
    rows.append(
        f"outputs {pieces.outputs}, {pieces.slots} slots, {pieces.stacks} stacks, {pieces.functions} functions, "
        f"roots {sorted(pieces.roots)}"
    )
    assert " ".join(rows).split() == PROGRAMS[build].split()
