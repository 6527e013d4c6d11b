"""Whole programs of small networks: which kernel graphs a cut makes of them, and the steps that connect these."""

import numpy as np
import pytest

from dumpsim.graph.builder import constant
from dumpsim.graph.gradient import reverse
from dumpsim.graph.gradient_control import below
from dumpsim.graph.mindspore.gradient_nodes import NodeBuilder
from dumpsim.ops.table import find
from tests.graph.compiled import pieces_of
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
        steps: 0(0) -> 2; if 1 [4 = 2; 2(4) -> 5; 3 = 5] else [6 = 2; 3(6) -> 7; 3 = 7]; 1(3,0) -> 8
        outputs (8,), 9 slots, 0 stacks, roots [0, 1]
    """,
    two_branches: """
        _: %0 = Exp(_); %1 = Mul(%0, 2.0); %2 = MakeTuple(%0, %1)
        _ _ ?: %0 = Add(_, _); %1 = MakeTuple(%0, in2); %2 = MakeTuple(%1)
        ?: %0 = Sin(in0); %1 = MakeTuple(%0)
        x: %0 = Tanh(x); %1 = MakeTuple(%0)
        x: %0 = Neg(x); %1 = MakeTuple(%0)
        steps: if 1 [3(0) -> 3; 2 = 3] else [4(0) -> 4; 2 = 4]; 0(2) -> 5,6; if 1 [8 = 5; 2(8) -> 9; 7 = 9] else
          [10 = 5; 7 = 10]; 1(7,2,6) -> 11,12
        outputs (11, 12), 13 slots, 0 stacks, roots [0, 1]
    """,
    nested: """
        x: %0 = Sin(x); %1 = MakeTuple(%0)
        _: %0 = Cos(_); %1 = MakeTuple(%0)
        ?: %0 = Tanh(in0); %1 = MakeTuple(%0)
        ?: %0 = Neg(in0); %1 = MakeTuple(%0)
        steps: if 1 [0(0) -> 3; if 1 [5 = 3; 2(5) -> 6; 4 = 6] else [7 = 3; 3(7) -> 8; 4 = 8]; 1(4) -> 9; 2 = 9]
          else [2 = 0]
        outputs (2,), 10 slots, 0 stacks, roots []
    """,
    loop_twice: """
        x: %0 = Exp(x); %1 = MakeTuple(%0)
        y: %0 = ReduceSum(y, [], False, False); %1 = Less(%0, 9.0); %2 = MakeTuple(%1)
        y: %0 = Mul(y, 2.0); %1 = MakeTuple(%0)
        x y: %0 = Neg(y); %1 = Sin(x); %2 = MakeTuple(%0, %1)
        y: %0 = ReduceSum(y, [], False, False); %1 = Less(%0, 9.0); %2 = MakeTuple(%1)
        y ?: %0 = Add(y, in1); %1 = MakeTuple(%0)
        y ?: %0 = Cos(y); %1 = MakeTuple(%0, in1); %2 = MakeTuple(%1)
        steps: 0(0) -> 1; 4 = 1; while [1(4) -> 5] 5 [6 = 4; 2(6) -> 7; 4 = 7]; 8 = 4; 3(0,8) -> 9,10; 13 = 10;
          14 = 9; while [4(14) -> 15] 15 [16 = 14; 17 = 13; 5(16,17) -> 18; 13 = 17; 14 = 18]; 19 = 13; 20 = 14;
          6(20,19) -> 21,22; 11 = 21; 12 = 22; 2 = 11; 3 = 12
        outputs (2, 3), 23 slots, 0 stacks, roots [0]
    """,
    branch_in_loop: """
        x: %0 = Exp(x); %1 = MakeTuple(%0)
        flag: %0 = LogicalNot(flag); %1 = MakeTuple(%0)
        ?: %0 = Mul(in0, 2.0); %1 = MakeTuple(%0)
        y: %0 = Tanh(y); %1 = MakeTuple(%0)
        y: %0 = Neg(y); %1 = MakeTuple(%0)
        y z: %0 = Add(y, z); %1 = MakeTuple(%0)
        steps: 0(0) -> 2; 4 = 2; 5 = 0; while [1(1) -> 6] 6 [7 = 4; if 1 [9 = 7; 3(9) -> 10; 8 = 10] else [11 =
          7; 4(11) -> 12; 8 = 12]; 13 = 7; 14 = 8; 2(14) -> 15; 4 = 15; 5 = 13]; 16 = 4; 17 = 5; 5(16,17) -> 18;
          3 = 18
        outputs (3,), 19 slots, 0 stacks, roots [0]
    """,
    write: """
        _ w: %0 = UpdateState(U, _); %1 = Load(w, %0); %2 = Exp(%1); %3 = Add(_, %2); %4 = UpdateState(%0, %1);
          %5 = Depend(%3, %4); %6 = MakeTuple(%5)
        w x: %0 = Assign(w, x, U); %1 = UpdateState(U, %0); %2 = Depend(%0, %1); %3 = MakeTuple(%2)
        x: %0 = Neg(x); %1 = MakeTuple(%0)
        steps: if 1 [1(0) -> 3; 2 = 3] else [2(0) -> 4; 2 = 4]; 0(2) -> 5
        outputs (5,), 6 slots, 0 stacks, roots [0]
    """,
    gradient: """
        x: %0 = ReduceSum(x, [], False, False); %1 = Greater(%0, 0.0); %2 = MakeTuple(%1)
        -: %0 = MakeTuple()
        _ _: %0 = Reshape(0.0, [1]); %1 = Tile(%0, [3]); %2 = MakeTuple(%1, _); %3 = AddN(%2); %4 = MakeTuple(_,
          %3); %5 = MakeTuple(%4)
        x: %0 = Exp(x); %1 = MakeTuple(%0)
        ? x: %0 = Mul(in0, x); %1 = MakeTuple(%0, 1); %2 = MakeTuple(%1)
        x ?: %0 = Mul(x, in1); %1 = MakeTuple(%0, in1); %2 = AddN(%1); %3 = MakeTuple(%2); %4 = MakeTuple(%3)
        x: %0 = Tanh(x); %1 = MakeTuple(%0)
        ?: %0 = MakeTuple(in0, 1); %1 = MakeTuple(%0)
        ?: %0 = TanhGrad(in0, [1.0, 1.0, 1.0]); %1 = MakeTuple(%0); %2 = MakeTuple(%1)
        steps: 0(0) -> 1; if 1 [3(0) -> 3; 4(3,0) -> 4; 2 = 4; 5 = 3] else [6(0) -> 6; 7(6) -> 7; 2 = 7; 8 = 6];
          if 1 [10 = [1.0, 1.0, 1.0]; 5(0,5) -> 11; 9 = 11] else [12 = [1.0, 1.0, 1.0]; 8(8) -> 13; 9 = 13];
          2(9,2) -> 14,15
        outputs (14, 15), 16 slots, 0 stacks, roots [0, 1, 2]
    """,
    gradient_weight: """
        x: %0 = ReduceSum(x, [], False, False); %1 = Greater(%0, 0.0); %2 = MakeTuple(%1)
        _: %0 = UpdateState(U, _); %1 = MakeTuple(%0)
        _ _ _: %0 = Reshape(0.0, [1]); %1 = Tile(%0, [3]); %2 = MakeTuple(%1, _); %3 = AddN(%2); %4 =
          MakeTuple(_, %3, _); %5 = Depend(%4, 2); %6 = MakeTuple(%5)
        x w: %0 = Load(w, U); %1 = Exp(x); %2 = MakeTuple(%0, %1)
        ? ?: %0 = Mul(in1, in0); %1 = UpdateState(U, in0); %2 = Depend(%0, %1); %3 = MakeTuple(%2, 1); %4 =
          MakeTuple(%3)
        ? ?: %0 = Mul(in0, in1); %1 = MakeTuple(%0, in1); %2 = MakeTuple(%1)
        x: %0 = Tanh(x); %1 = MakeTuple(%0)
        ?: %0 = MakeTuple(in0, 1); %1 = MakeTuple(%0)
        ?: %0 = TanhGrad(in0, [1.0, 1.0, 1.0]); %1 = MakeTuple(%0, [0.0, 0.0, 0.0]); %2 = MakeTuple(%1)
        steps: 0(0) -> 1; if 1 [3(0) -> 3,4; 4(3,4) -> 5; 2 = 5; 6 = 4; 7 = 3] else [6(0) -> 8; 7(8) -> 9; 2 =
          9; 10 = 8]; 1(2) -> ; if 1 [13 = [1.0, 1.0, 1.0]; 5(7,6) -> 14,15; 11 = 14; 12 = 15] else [16 = [1.0,
          1.0, 1.0]; 8(10) -> 17,18; 11 = 17; 12 = 18]; 2(11,2,12) -> 19,20,21
        outputs (19, 20, 21), 22 slots, 0 stacks, roots [0, 1, 2]
    """,
    gradient_loop: """
        _: %0 = UpdateState(U, _); %1 = MakeTuple(%0)
        _ _ _: %0 = MakeTuple(_, _, _); %1 = Depend(%0, 2); %2 = MakeTuple(%1)
        x: %0 = ReduceSum(x, [], False, False); %1 = Less(%0, 20.0); %2 = MakeTuple(%1)
        -: %0 = MakeTuple()
        _: %0 = MakeTuple(_, 1); %1 = MakeTuple(%0)
        _ _: %0 = Reshape(0.0, [1]); %1 = Tile(%0, [2]); %2 = MakeTuple(%1, _); %3 = AddN(%2); %4 = MakeTuple(_,
          %3); %5 = MakeTuple(%4)
        w x: %0 = Load(w, U); %1 = UpdateState(U, %0); %2 = Mul(x, %0); %3 = MakeTuple(%0, %1, %2)
        -: %0 = MakeTuple()
        _: %0 = UpdateState(2, _); %1 = Depend(_, %0); %2 = MakeTuple(%1, 1); %3 = MakeTuple(%2)
        x _ _ ?: %0 = Mul(in3, _); %1 = Mul(x, _); %2 = MakeTuple(%1, _); %3 = AddN(%2); %4 = MakeTuple(%0, %3);
          %5 = MakeTuple(%4)
        x: %0 = MakeTuple(x, 1); %1 = MakeTuple(%0)
        ?: %0 = MakeTuple(in0, [0.0, 0.0]); %1 = MakeTuple(%0)
        steps: 2 = 0; while [2(2) -> 3] 3 counted 0 [5 = 2; 6(5) -> 6,7; 2 = 7; 9 = 5; 10 = 6; keep 1 (9,10)];
          11 = 2; 10(11) -> 12; 1 = 12; 0(1) -> ; 17 = [1.0, 1.0]; 11(17) -> 18,19; 15 = 18; 16 = 19; 5(15,16)
          -> 23,24; 13 = 23; 14 = 24; repeat 0 [restore 1 (9,10); 20 = [1.0, 1.0]; 9(9,14,13,10) -> 21,22; 15 =
          21; 16 = 22; 5(15,16) -> 23,24; 13 = 23; 14 = 24]; 1(1,14,13) -> 25,26,27
        outputs (25, 26, 27), 28 slots, 2 stacks, roots [0, 1]
    """,
    gradient_loop2: """
        x: %0 = Exp(x); %1 = MakeTuple(%0)
        -: %0 = MakeTuple()
        _ ? _ _ _: %0 = Mul(_, in1); %1 = MakeTuple(%0, _); %2 = AddN(%1); %3 = MakeTuple(_, %2, _); %4 =
          MakeTuple(%3)
        x: %0 = ReduceSum(x, [], False, False); %1 = Less(%0, 20.0); %2 = MakeTuple(%1)
        -: %0 = MakeTuple()
        _: %0 = MakeTuple(_, 1); %1 = MakeTuple(%0)
        _ _ _: %0 = Reshape(0.0, [1]); %1 = Tile(%0, [2]); %2 = MakeTuple(%1, _); %3 = AddN(%2); %4 =
          MakeTuple(_, %3, _); %5 = MakeTuple(%4)
        x w n: %0 = Add(n, x); %1 = Sin(x); %2 = Mul(%1, w); %3 = MakeTuple(%0, %1, %2)
        -: %0 = MakeTuple()
        _: %0 = MakeTuple(_, 1); %1 = MakeTuple(%0)
        ? _ _ x w _: %0 = Mul(w, _); %1 = Cos(x); %2 = Mul(%0, %1); %3 = MakeTuple(%2, _); %4 = AddN(%3); %5 =
          Mul(in0, _); %6 = MakeTuple(%5, _); %7 = AddN(%6); %8 = MakeTuple(_, %4, %7); %9 = MakeTuple(%8)
        x n: %0 = Add(x, n); %1 = MakeTuple(%0, 1); %2 = MakeTuple(%1)
        ?: %0 = MakeTuple(in0, in0, [0.0, 0.0]); %1 = MakeTuple(%0)
        steps: 0(0) -> 2; 4 = 0; 5 = 2; while [3(4) -> 6] 6 counted 0 [8 = 5; 9 = 4; 7(9,1,8) -> 10,11,12; 4 =
          12; 5 = 10; 14 = 11; 15 = 9; keep 1 (14,15,1)]; 16 = 5; 17 = 4; 11(17,16) -> 18; 3 = 18; 25 = [1.0,
          1.0]; 12(25) -> 26,27,28; 22 = 26; 23 = 27; 24 = 28; 6(23,24,22) -> 33,34,35; 19 = 33; 20 = 34; 21 =
          35; repeat 0 [restore 1 (14,15,1); 29 = [1.0, 1.0]; 10(14,20,19,15,1,21) -> 30,31,32; 22 = 30; 23 =
          31; 24 = 32; 6(23,24,22) -> 33,34,35; 19 = 33; 20 = 34; 21 = 35]; 2(21,2,20,3,19) -> 36,37,38
        outputs (36, 37, 38), 39 slots, 2 stacks, roots [0, 1, 2]
    """,
}


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_program(net, build):
    build(net)
    pieces = pieces_of(net.graph)
    rows = [
        f"{' '.join(p.name or '?' for p in graph.parameters) or '-'}: {'; '.join(lines_of(graph))}"
        for graph in pieces.graphs
    ]
    rows.append(f"steps: {steps_of(pieces.steps)}")
    rows.append(f"outputs {pieces.outputs}, {pieces.slots} slots, {pieces.stacks} stacks, roots {sorted(pieces.roots)}")
    assert " ".join(rows).split() == PROGRAMS[build].split()
