"""Tensors that TensorDump saves in split networks, compared with MindSpore 2.10 and the rules of the seed."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.codecs import irtext
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, context, nn, ops
from dumpsim.frontends.mindspore.common.api import _cell_graph_executor
from dumpsim.frontends.mindspore.ops import operations as P  # noqa: N812 - as scripts call it
from dumpsim.runtime.session import Session

# by the wheel with a pretended cluster, rank 1: file, what is saved, and whether the compiler made the node
REAL = json.loads(
    (Path(__file__).parents[3] / "fixtures" / "mindspore_2_10" / "tensordump_parallel.json").read_text("utf-8")
)
SPLIT = ((1, 2), (2, 1))  # the contracted axis: an AllReduce follows
ROWS, WHOLE, COLUMNS = ((2, 1), (1, 1)), ((1, 1), (1, 1)), ((1, 1), (1, 2))
# devices, strategies of two products and perhaps a third of the same tensor, modes, and the tensor that is saved
NETS = {
    "seed_in": (2, SPLIT, SPLIT, None, ["in"], "out1"),
    "seed_out": (2, SPLIT, SPLIT, None, ["out"], "out1"),
    "seed_both": (2, SPLIT, SPLIT, None, ["out", "in"], "out1"),
    "in3": (2, SPLIT, SPLIT, None, ["in", "in", "in"], "out1"),
    "out3": (2, SPLIT, SPLIT, None, ["out", "out", "out"], "out1"),
    "noredis": (2, ROWS, ROWS, None, ["in", "out"], "out1"),
    "gather": (2, ROWS, COLUMNS, None, ["in", "out"], "out1"),
    "concat": (2, COLUMNS, ROWS, None, ["in", "out"], "out1"),
    "concatonly": (2, COLUMNS, COLUMNS, None, ["in", "out"], "out1"),
    "two_one": (2, ROWS, ROWS, SPLIT, ["in", "out"], "out1"),
    "two_two": (2, SPLIT, SPLIT, ROWS, ["in", "out"], "out1"),
    "two_same": (2, SPLIT, SPLIT, SPLIT, ["in"], "out1"),
    "on_x": (2, SPLIT, SPLIT, None, ["in", "out"], "x"),
    "on_out2": (2, SPLIT, SPLIT, None, ["in", "out"], "out2"),
    "on_out2s": (2, SPLIT, ROWS, None, ["in", "out"], "out2"),
    "four": (4, ((2, 2), (2, 1)), ((2, 2), (2, 1)), None, ["in", "out"], "out1"),
}


class Net(nn.Cell):
    def __init__(self, first, second, third, modes, on):
        super().__init__()
        self.m1 = P.MatMul().shard(first)
        self.m2 = P.MatMul().shard(second)
        self.m3 = P.MatMul().shard(third) if third else None
        self.modes = modes
        self.on = on

    def construct(self, x, y, b):
        if self.on == "x":
            for mode in self.modes:
                ops.tensordump("d/t.npy", x, mode)
        out1 = self.m1(x, y)
        if self.on == "out1":
            for i, mode in enumerate(self.modes):
                ops.tensordump("d/t" + str(i) + ".npy", out1, mode)
        out2 = self.m2(out1, b)
        if self.on == "out2":
            for mode in self.modes:
                ops.tensordump("d/t.npy", out2, mode)
        if self.m3 is not None:
            return out2 + self.m3(out1, b)
        return out2


class Parts(nn.Cell):
    """A tensor that an operator gives in a tuple, and another takes in one."""

    def __init__(self, mode, strategy):
        super().__init__()
        self.split = P.Split(1, 2).shard((ROWS[0],))
        self.cat = P.Concat(1).shard(strategy)
        self.relu = P.ReLU().shard((ROWS[0],))
        self.mode = mode

    def construct(self, x, y, b):
        a, c = self.split(x)
        ops.tensordump("d/a.npy", a, self.mode)
        return self.relu(self.cat((a, c)))


class Held(nn.Cell):
    """A constant that is sliced, or a weight."""

    def __init__(self, mode, is_weight):
        super().__init__()
        self.add = P.Add().shard((ROWS[0], ROWS[0]))
        self.constant = Tensor(np.ones((64, 64), np.float32))
        self.weight = ms.Parameter(Tensor(np.ones((64, 64), np.float32)), name="w")
        self.product = P.MatMul().shard(SPLIT)
        self.mode, self.is_weight = mode, is_weight

    def construct(self, x, y, b):
        if self.is_weight:
            ops.tensordump("d/w.npy", self.weight, self.mode)
            return self.product(x, self.weight)
        ops.tensordump("d/c.npy", self.constant, self.mode)
        return self.product(self.add(x, self.constant), y)


OTHERS = {
    "tup_in": lambda: Parts("in", (ROWS[0], ROWS[0])),
    "tup_in2": lambda: Parts("in", WHOLE),
    "const_in": lambda: Held("in", False),
    "const_out": lambda: Held("out", False),
    "par_in": lambda: Held("in", True),
    "par_out": lambda: Held("out", True),
}


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    context.reset_auto_parallel_context()


def compiled(devices, rank, net, **settings):
    """The program of a network for one rank of a world that is not there."""
    Session.use(Session(RunSettings(quiet=True, **settings)))
    context.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    context.reset_auto_parallel_context()
    context.set_auto_parallel_context(
        device_num=devices, global_rank=rank, parallel_mode="semi_auto_parallel", full_batch=True
    )
    x = Tensor(np.ones((64, 64), np.float32))
    _cell_graph_executor.compile(net, x, x, x)
    (found,) = net.__dict__["_programs"].values()
    return found.program


def dumps_of(graph):
    """File, source and making of each TensorDump, in the order of the text; then those that no result needs."""
    nodes = graph.nodes()
    nodes += [node for node in graph.trail if not any(node is one for one in nodes)]
    labels, counts, found = {}, {}, []
    for node in nodes:
        number = counts.get(node.op_type, 0)
        counts[node.op_type] = number + 1
        labels[id(node)] = f"{node.op_type}{number}"
        if node.op_type == "TensorDump":
            file, source = node.operands[:2]
            is_made = "_new_generate" in (node.text.instance_name or "")
            kind = {"Constant": "constant", "Parameter": "Parameter"}.get(type(source).__name__)
            found.append([file.value, kind or labels[id(source)], is_made])
    return found


@pytest.mark.parametrize("name", NETS)
def test_generation_c_saves_what_mindspore_2_10_saves(name):
    devices, first, second, third, modes, on = NETS[name]
    program = compiled(devices, 1, Net(first, second, third, modes, on), mindspore="2.10")
    assert dumps_of(program.sharding.end) == REAL[name]


@pytest.mark.parametrize("name", OTHERS)
def test_tuples_constants_and_weights_are_saved_as_by_mindspore_2_10(name):
    assert dumps_of(compiled(2, 1, OTHERS[name](), mindspore="2.10").sharding.end) == REAL[name]


# generation A: what is saved, by the rule of the documents [spec parallel 1.3]
FIRST = {
    ("seed_in", "in"): [["d/t0_CNode_K_in_rank_1", "StridedSlice2", True]],
    ("seed_in", "all"): [["d/t0_CNode_K_all_rank_1", "StridedSlice2", True], ["d/t0.npy", "AllReduce0", False]],
    ("seed_in", "out"): [["d/t0.npy", "AllReduce0", False]],  # after the communication
    ("noredis", "in"): [["d/t0.npy", "MatMul0", False]],  # without redistribution it is an ordinary dump
    ("noredis", "all"): [["d/t0.npy", "MatMul0", False]],
    ("concat", "in"): [["d/t0_CNode_K_in_rank_1", "StridedSlice1", True]],
    ("two_two", "in"): [["d/t0_CNode_K_in_rank_1", "StridedSlice2", True]],  # only the first edge
    ("two_two", "all"): [
        ["d/t0_CNode_K_all_rank_1", "StridedSlice2", True],
        ["d/t0_CNode_K_all_rank_1", "StridedSlice5", True],
        ["d/t0.npy", "AllReduce0", False],
    ],
}


@pytest.mark.parametrize(("name", "mode"), FIRST)
def test_generation_a_saves_slices_by_redistribution(name, mode):
    devices, first, second, third, _, on = NETS[name]
    program = compiled(devices, 1, Net(first, second, third, [mode], on))
    found = [
        [re.sub(r"CNode_\d+", "CNode_K", file), source, made] for file, source, made in dumps_of(program.sharding.end)
    ]
    assert found == FIRST[name, mode]


def test_generation_b_names_the_mode_and_saves_after_the_communication():
    devices, first, second, third, _, on = NETS["seed_both"]
    program = compiled(devices, 1, Net(first, second, third, ["in"], on), overrides={"tensordump": "B"})
    assert dumps_of(program.sharding.end) == [["d/t0_in.npy", "StridedSlice2", True]]
    program = compiled(devices, 1, Net(first, second, third, ["out"], on), overrides={"tensordump": "B"})
    assert dumps_of(program.sharding.end) == [["d/t0.npy", "AllReduce0", False]]


def test_the_number_in_a_name_is_that_of_the_node_in_the_graph_that_is_saved(place):
    context.set_context(save_graphs=1, save_graphs_path=str(place / "ir"))
    devices, first, second, third, _, on = NETS["two_two"]
    try:
        compiled(devices, 1, Net(first, second, third, ["all"], on))
    finally:
        context.set_context(save_graphs=0)
    (path,) = (place / "ir").rglob("step_parallel_end_*.ir")
    doc = irtext.parse(path.read_text("utf-8"))
    named = [(node.name, str(node.operands[0].value)) for node in doc.nodes if node.op_type == "TensorDump"]
    made = [(name, file) for name, file in named if "CNode" in file]
    assert len(made) == 2
    assert len({name for name, _ in made}) == 2
    assert all(file.strip('"') == f"d/t0_{name}_all_rank_1" for name, file in made)
    (before,) = (place / "ir").rglob("step_parallel_begin_*.ir")
    begin = irtext.parse(before.read_text("utf-8"))
    shared = {node.op_type + str(node.name) for node in begin.nodes if node.op_type != "Return"}
    assert shared <= {node.op_type + str(node.name) for node in doc.nodes}  # nodes keep their names
    assert "(<null>, " in path.read_text("utf-8")  # what was inserted has no type yet
    assert "<null>" not in before.read_text("utf-8")


class Waiting(nn.Cell):
    """A dump without side effect, which the tensor that it saves waits for."""

    def __init__(self, mode):
        super().__init__()
        self.m1, self.m2 = P.MatMul().shard(SPLIT), P.MatMul().shard(SPLIT)
        self.dump = P.TensorDump(mode)
        self.dump.add_prim_attr("side_effect_io", False)

    def construct(self, x, y, b):
        out = self.m1(x, y)
        return self.m2(ops.depend(out, self.dump("d/r.npy", out)), b)


@pytest.mark.parametrize(
    ("mode", "found"), [("in", ["d/r_in.npy", "StridedSlice2", True]), ("out", ["d/r.npy", "MatMul0", False])]
)
def test_a_dump_by_depend_is_placed_as_a_statement(mode, found):
    end = compiled(2, 1, Waiting(mode), mindspore="2.10").sharding.end  # expected: the real 2.10
    assert dumps_of(end) == [found]


def test_a_dump_by_depend_in_generation_a():
    (found,) = dumps_of(compiled(2, 1, Waiting("in")).sharding.end)
    assert re.fullmatch(r"d/r_CNode_\d+_in_rank_1", found[0])
    assert found[1:] == ["StridedSlice2", True]


class Hooked(nn.Cell):
    """DumpGradient between two or three products."""

    def __init__(self, mode, first, second, third):
        super().__init__()
        self.m1, self.m2 = P.MatMul().shard(first), P.MatMul().shard(second)
        self.m3 = P.MatMul().shard(third) if third else None
        self.dump = ops.DumpGradient()
        self.mode = mode

    def construct(self, x, y, b):
        out = self.dump("d/g.npy", self.m1(x, y), self.mode)
        return self.m2(out, b) if self.m3 is None else self.m2(out, b) + self.m3(out, b)


class Gradient(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad = ops.GradOperation(get_all=True)

    def construct(self, x, y, b):
        return self.grad(self.net)(x, y, b)


def in_order(graph):
    """Whether each node comes after what it takes."""
    place = {id(node): at for at, node in enumerate(graph.trail)}
    taken = [(at, place.get(id(value), -1)) for at, node in enumerate(graph.trail) for value in node.operands]
    return all(before < at for at, before in taken)


# strategies, mode -> what each hook is on, and what reads it, in the order of the graph [observed 2.10]
HOOKS = {
    (SPLIT, SPLIT, None, "in"): [("MatMul", ["AllReduce"])],  # the operator's own result
    (SPLIT, SPLIT, None, "out"): [("StridedSlice", ["MatMul"])],  # what the consumer reads
    (SPLIT, SPLIT, ROWS, "in"): [("MatMul", ["AllReduce"])],
    (SPLIT, SPLIT, ROWS, "out"): [("StridedSlice", ["MatMul"]), ("StridedSlice", ["MatMul"])],
    (ROWS, ROWS, None, "in"): [("MatMul", ["MatMul"])],  # no communication follows
    (ROWS, ROWS, None, "out"): [("MatMul", ["MatMul"])],
    (ROWS, ROWS, ROWS, "out"): [("MatMul", ["MatMul", "MatMul"])],
    (SPLIT, WHOLE, None, "in"): [("MatMul", ["AllReduce"])],
    (SPLIT, WHOLE, None, "out"): [("AllReduce", ["MatMul"])],
    (SPLIT, WHOLE, SPLIT, "out"): [("AllReduce", ["MatMul"]), ("StridedSlice", ["MatMul"])],
}


@pytest.mark.parametrize("release", [None, "2.10"])
@pytest.mark.parametrize("case", HOOKS)
def test_a_hook_of_a_gradient_is_on_the_result_or_on_what_is_read(case, release):
    *strategies, mode = case
    versions = {} if release is None else {"mindspore": release}
    graph = compiled(2, 1, Hooked(mode, *strategies), **versions).sharding.end
    assert in_order(graph)
    found = []
    for node in graph.trail:
        if node.op_type == "CustomGradient":
            (item,) = (user for user in graph.trail if node in user.operands)
            assert (item.op_type, node.operands[0]) == ("TupleGetItem", node.operands[1])
            users = [user.op_type for user in graph.trail if any(one is item for one in user.operands)]
            found.append((node.operands[0].op_type, users))
    assert found == HOOKS[case]


@pytest.mark.parametrize("name", [*NETS, *OTHERS])
@pytest.mark.parametrize("release", [None, "2.10"])
def test_what_is_inserted_comes_after_what_it_takes(name, release):
    versions = {} if release is None else {"mindspore": release}
    devices, *others = NETS.get(name, (2,))
    net = Net(*others) if others else OTHERS[name]()
    assert in_order(compiled(devices, 1, net, **versions).sharding.end)


@pytest.mark.parametrize(("generation", "mode", "file"), [
    ("A", "in", "d/g.npy"), ("A", "out", "d/g.npy"), ("B", "in", "d/g_in.npy"), ("B", "out", "d/g.npy"),
    ("C", "in", "d/g_in.npy"), ("C", "out", "d/g.npy"),
])  # fmt: skip
def test_the_dump_of_a_gradient_has_the_mode_in_its_name(generation, mode, file):
    net = Gradient(Hooked(mode, SPLIT, SPLIT, None))
    graph = compiled(2, 1, net, overrides={"tensordump": generation}).sharding.end
    rules = [rule for node in graph.trail if (rule := node.attrs.get("rule")) is not None]
    dumps = [node for rule in rules for node in rule.trail if node.op_type == "TensorDump"]
    assert [dump.operands[0].value for dump in dumps] == [file]


class Unplanned(nn.Cell):
    """A product with a strategy, and a sum without."""

    def __init__(self):
        super().__init__()
        self.product, self.add = P.MatMul().shard(SPLIT), P.Add()

    def construct(self, x, y, b):
        return self.add(self.product(x, y), b)


# found by the compiler
STRATEGIES = {
    "Add": "gen_strategy: ((2, 1), (2, 1))",
    "_VirtualDataset": "in_strategy: ((1, 1), (1, 1), (1, 1))",
    "_VirtualOutput": "in_strategy: ((1, 1))",
}


def test_a_text_counts_nodes_and_names_the_strategies(place):
    context.set_context(save_graphs=1, save_graphs_path=str(place / "ir"))
    try:
        compiled(2, 1, Unplanned())
    finally:
        context.set_context(save_graphs=0)
    for stage in ("begin", "end"):
        (path,) = (place / "ir").rglob(f"step_parallel_{stage}_*.ir")
        doc = irtext.parse(path.read_text("utf-8"))
        constants = {repr(one.value) for node in doc.nodes for one in node.operands if hasattr(one, "value")}
        assert doc.total_nodes == 2 * len(doc.nodes) + len(doc.params) + len(constants)
        assert doc.total_cnodes == len(doc.nodes)
        shown = r"= (?:PrimFunc_)?(\w+)\(.*primitive_attrs: \{.*?(\w+_strategy: \(.*?\)\))\}"
        strategies = re.findall(shown, path.read_text("utf-8"))
        assert dict(strategies) == {"MatMul": "in_strategy: ((1, 2), (2, 1))"} | (
            {} if stage == "begin" else STRATEGIES
        )


@pytest.mark.parametrize(("first", "second", "count"), [(SPLIT, SPLIT, 2), (SPLIT, ROWS, 1), (ROWS, ROWS, 0)])
def test_the_sum_of_the_terms_of_ranks_is_recorded_with_its_operator(first, second, count):
    sharding = compiled(2, 1, Net(first, second, None, [], "x")).sharding
    assert [(last.op_type, one.op_type) for last, one in sharding.reduced.items()] == [("AllReduce", "MatMul")] * count
