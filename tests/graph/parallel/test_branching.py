"""Networks with branches and loops, compiled by MindSpore 2.10 for a pretended cluster: their functions, node by node.

The nets are those of `branching.py`, some of them trained, and nets whose blocks give parts that do not fit together.
"""

import contextlib
import io
import json
import lzma
import re
from collections import Counter
from pathlib import Path

import pytest
from graph.parallel.stages import read
from graph.parallel.texts import operators_of, texts_of

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "mindspore_2_10" / "parallel"
RECORDED = FOLDER / "branches.json.xz"
TRAINING = FOLDER / "training_branches.json.xz"


def load(path=RECORDED):
    return json.loads(lzma.decompress(path.read_bytes()))


def rows_of(stage):
    """What is compared of each node: operator, kind of its instance name, strategy and operands."""
    for line in stage.lines:
        call = re.sub(r"^%\d+\[.*|^call .*", "call", line.call)
        operands = ["outer" if is_outer(text) else text for text in line.operands if not is_monad(text)]
        if call in ("call", "Switch"):  # functions have names of their own
            operands = []
        yield call, re.sub(r"\d{6,}", "", line.instance or ""), line.strategy, operands


def is_monad(text):
    return "Monad" in text or text.endswith("_u")


def is_outer(text):
    """Whether a function takes a value from outside: the vendor's parser makes some of them formal parameters."""
    return text.startswith("$(") or "ф" in text


def functions_of(text):
    return sorted([list(rows_of(stage)) for stage in read(text)], key=str)


def parents_of(text):
    """The marks of functions and of those around them; not of the code after a branch, see `is_outer`."""
    found = re.findall(r"^subgraph @(\S+?)(?: parent: \[subgraph @(\S+?)\])?\(", text, re.MULTILINE)
    marks = ([re.sub(r"[\w.]", "", name) for name in names] for names in found)
    return Counter((mark.removesuffix("↓"), around.removesuffix("↓")) for mark, around in marks if mark[:1] != "↓")


def formals_of(text):
    """The numbers of formal parameters, which count on through all functions."""
    heads = re.findall(r"^subgraph @[^\n]*\(([^\n]*)\)", text, re.MULTILINE)
    return sorted(int(number) for head in heads for number in re.findall(r"%para(\d+)_", head))


def ours(net):
    with contextlib.redirect_stderr(io.StringIO()) as log:
        text = texts_of(net["script"])["end"]
    return text, "wrong parts" in log.getvalue()


def check(name, net):
    mine, differ = ours(net)
    assert not differ
    assert functions_of(mine) == functions_of(net["end"]), name
    assert parents_of(mine) == parents_of(net["end"]), name
    return mine


def test_recorded_nets():
    for name, net in list(load().items())[::6]:
        if name.startswith("net"):
            assert formals_of(check(name, net)) == formals_of(net["end"])


@pytest.mark.parametrize("name", ["net_pieces", "net_round"])
def test_results_that_are_an_item_of_a_tuple_or_variables_of_a_loop_that_change_places(name):
    check(name, load()[name])


def test_a_network_that_only_returns_its_weight_has_no_data_set():
    script = load()["net_round"]["script"]
    script = re.sub(r"(def construct[^\n]*\n).*?\n\n", r"\1        return self.w1\n\n", script, flags=re.DOTALL)
    for text in texts_of(script).values():  # [2.10 observed]
        assert "_VirtualDataset" not in text
        assert "Return(" in text


JUMPS = """    def construct(self, x, c):
        x = self.tiles(x)
        while c > 0:
            c = c - 1
            if c > 3:
                x = self.sine(self.rows(x))
                {first}
            else:
                x = self.cosine(self.columns(x))
                {second}
            x = self.rows(x)
            x = self.tiles(x)
        return x
"""
CUTS = {"rows": ("ReLU", (4, 1)), "columns": ("Tanh", (1, 4)), "tiles": ("Neg", (2, 2)),
        "sine": ("Sin", (1, 4)), "cosine": ("Cos", (1, 4))}  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [("break", "pass"), ("pass", "break")])
def test_the_code_after_a_branch_that_leaves_a_loop_is_a_function_with_its_redistributions(first, second):
    fields = (f"self.{name} = P.{kind}().shard(({cut},))" for name, (kind, cut) in CUTS.items())
    script = load()["net_round"]["script"]
    script = re.sub(
        r"    def construct.*?\n\n", lambda _: JUMPS.format(first=first, second=second) + "\n", script, flags=re.DOTALL
    )
    script = script.replace("super().__init__()", "\n        ".join(["super().__init__()", *fields]))
    found = [
        [kind.removeprefix("PrimFunc_") for kind, *_ in rows] for rows in functions_of(ours({"script": script})[0])
    ]
    kinds = {kind for kind, _ in CUTS.values()}
    words = [" ".join(kind for kind in function if kind in kinds) for function in found]
    assert sorted(filter(None, words)) == sorted(["ReLU Sin", "Tanh Cos", "Neg", "ReLU Neg"])
    ends = {" ".join(kind for kind in function if kind in kinds): function for function in found}
    assert "AlltoAll" in ends["ReLU Neg"][: ends["ReLU Neg"].index("ReLU")]


@pytest.mark.slow
def test_all_recorded_nets():
    for name, net in load().items():
        if name.startswith("net"):
            check(name, net)


def kinds_of(functions):
    return [[row[0] for row in function if row[0] not in ("Depend", "UpdateState")] for function in functions]


def test_for_mismatched_layouts_only_redistributions_are_added():
    nets = {name: net for name, net in load().items() if not name.startswith("net")}
    added = 0
    for name, net in list(nets.items())[::3]:
        mine, differ = ours(net)
        mine, real = (sorted(kinds_of(functions_of(text)), key=root_first) for text in (mine, net["end"]))
        assert len(mine) == len(real)
        for one, two in zip(mine, real, strict=True):
            rest = iter(one)
            assert all(kind in rest for kind in two), f"{name}: {two} is no part of {one}"
        more = sum(map(len, mine)) - sum(map(len, real))
        assert bool(more) == differ, name
        added += more
    assert added


def root_first(kinds):
    """Functions in an order that inserted nodes do not change."""
    names = "VirtualDataset", "ReLU", "Neg", "Switch"
    return next((at for at, name in enumerate(names) if any(name in kind for kind in kinds)), len(names))


# MindSpore takes the result of a branch whose side reads a weight for that weight, and inserts its mirror there
MIRRORED = ("train_104", "train_110", "train_113")


@pytest.mark.parametrize("name", load(TRAINING))
def test_training_with_branches_and_loops(name):
    """Texts of such steps show no functions of gradients, so the operators are compared, not their order."""
    net = load(TRAINING)[name]
    names_weights = "enable_parallel_optimizer" not in net["script"] and name not in MIRRORED
    with contextlib.redirect_stderr(io.StringIO()):
        mine = operators_of(texts_of(net["script"])["end"], names_weights=names_weights)
    real = operators_of(net["end"], names_weights=names_weights)
    missing = Counter(row[0] for row in (real - mine).elements())
    more = Counter(row[0] for row in (mine - real).elements())
    if name in ("after", "both"):  # the network computes its loss and its gradient: here in one function
        assert (missing, more) == ({"_VirtualDataset": 1}, {"PrimFunc_Greater": 1})
        return
    assert not more
    assert missing.pop("_GetTensorSlice", 0) == name.startswith("train")  # of the incoming gradient
    assert missing == ({"_MirrorOperator": 1} if name in MIRRORED else {})
