"""Distances of names and the alignment of calls, against slow and plain truths."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.analysis.apicall import Call
from dumpsim.analysis.apiname import RENAMES
from dumpsim.analysis.apitree import ApiEntry, StackIndex
from dumpsim.analysis.callgroup import _agreement, align, align_arrays, gap_groups
from dumpsim.analysis.meaning import meaning
from dumpsim.analysis.namedistance import name_distances
from dumpsim.analysis.place import Place
from dumpsim.codecs.apidump import ApiRecord, parse_name
from dumpsim.core.record import Record


def edits(a, b):
    line = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        line, above = [i], line
        for j, y in enumerate(b, 1):
            line.append(min(above[j - 1] + (x != y), above[j] + 1, line[j - 1] + 1))
    return line[-1]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("abcd", max_size=7), min_size=1, max_size=5))
def test_distances_of_names(names):
    distance = name_distances(names)
    for at, name in enumerate(names):
        expected = [edits(name, other) / max(len(name), len(other), 1) for other in names]
        np.testing.assert_array_equal(distance(at), expected)


def call(api, shape=(2, 8), at=0, framework="torch", kind="Tensor", values=(math.nan,) * 6, made=None):
    """A call of one input and one output, of the shape `made`; `values` are maximum, minimum and mean of both."""
    name = f"{kind}_{api}_{at}"

    def entry(tail, statistics, shape):
        line = ApiRecord(
            name=name + tail,
            dtype="torch.float32",
            shape=shape,
            **dict(zip(("max", "min", "mean"), statistics, strict=True)),
        )
        parts = parse_name(line.name)
        return ApiEntry(
            name=Record(op_type=api, op_name=name, io=parts.io, slot=0, dtype="float32", shape=shape, timestamp=0),
            place=Place(path=Path(), api=framework),
            path=None,
            row={},
            graphs=StackIndex(Path()),
            line=line,
            parts=parts,
        )

    return Call(
        name=name,
        kind=kind,
        api=api,
        meaning=meaning(framework, kind, api),
        inputs=(entry("_forward_input.0", values[:3], shape),),
        outputs=(entry("_forward_output", values[3:], shape if made is None else made),),
    )


def sizes(groups):
    return [(len(group.origin), len(group.target)) for group in groups]


@pytest.mark.parametrize(
    ("torch", "mindspore"),
    [
        (("Tensor", "permute"), ("Functional", "transpose")),
        (("Torch", "transpose"), ("Tensor", "swapaxes")),
        (("Functional", "layer_norm"), ("NN", "LayerNorm")),
        (("Functional", "embedding"), ("NN", "Embedding")),
        (("Torch", "cat"), ("Functional", "concat")),
        (("Tensor", "view"), ("Functional", "reshape")),
        (("Torch", "clamp"), ("Functional", "clip_by_value")),
        (("Tensor", "add_"), ("Tensor", "__add__")),
        (("Functional", "linear"), ("NN", "Dense")),
        (("NN", "GELU"), ("Functional", "gelu")),
        (("Torch", "relu"), ("NN", "ReLU")),
        (("NN", "Linear"), ("NN", "Linear")),  # mint.nn.Linear
        (("Torch", "bmm"), ("Functional", "bmm")),  # mint.bmm
        (("Functional", "cross_entropy"), ("NN", "CrossEntropyLoss")),
        (("NN", "MultiheadAttention"), ("NN", "MultiheadAttention")),
        (("NN", "BatchNorm2d"), ("Functional", "batch_norm")),
        (("Tensor", "expand"), ("Functional", "broadcast_to")),
        (("Tensor", "__getitem__"), ("Tensor", "__getitem__")),
        (("Functional", "scaled_dot_product_attention"), ("Functional", "flash_attention_score")),
    ],
)
def test_pairs_by_meaning(torch, mindspore):
    assert meaning("torch", *torch).sense == meaning("mindspore", *mindspore).sense
    assert meaning("mindtorch", *torch) == meaning("torch", *torch)


def test_renames_lead_to_other_names():
    same = {key for key, (_, name) in RENAMES.items() if key[1] == name}
    assert not same
    assert len(RENAMES) == 34
    assert meaning("torch", "Torch", "relu").word == meaning("mindspore", "Functional", "relu").word


def test_order_of_meanings_is_kept():
    origin = [call("relu"), call("abs"), call("exp")]
    target = [call("relu"), call("exp"), call("abs")]
    assert sizes(align(origin, target)) in (
        [(1, 1), (0, 1), (1, 1), (1, 0)],
        [(1, 1), (1, 0), (1, 1), (0, 1)],
    )


def test_one_side_without_calls():
    assert sizes(align([call("relu"), call("abs")], [])) == [(2, 0)]
    assert align([], []) == []
    assert gap_groups([], []) == []


def test_every_call_is_in_one_group():
    random = np.random.default_rng(7)
    names = ["relu", "abs", "exp", "foo", "bar"]
    sides = [
        [call(names[k], shape=(int(s),), at=at) for at, (k, s) in enumerate(random.integers(0, 5, (60, 2)))]
        for _ in range(2)
    ]
    groups = align(*sides)
    assert [c for group in groups for c in group.origin] == sides[0]
    assert [c for group in groups for c in group.target] == sides[1]


def common(a, b):
    """The length of the longest common subsequence, by the textbook."""
    line = [0] * (len(b) + 1)
    for x in a:
        above = list(line)
        for j, y in enumerate(b, 1):
            line[j] = above[j - 1] + 1 if x == y else max(above[j], line[j - 1])
    return line[-1]


CALLS = st.lists(st.tuples(st.sampled_from(["relu", "abs", "exp"]), st.sampled_from([(2, 8), (3,)])), max_size=9)


@settings(deadline=None, max_examples=150)
@given(CALLS, CALLS)
def test_as_many_equal_calls_are_pairs_as_keep_their_order(ours, theirs):
    """A shape that is equal on both sides of a call leaves nothing to cut but what is equal."""
    sides = [[call(api, shape, at=at) for at, (api, shape) in enumerate(side)] for side in (ours, theirs)]
    groups = align(*sides)
    assert [c for group in groups for c in group.origin] == sides[0]
    assert [c for group in groups for c in group.target] == sides[1]
    assert all(group.origin or group.target for group in groups)
    pairs = [(g.origin[0].key, g.target[0].key) for g in groups if len(g.origin) == len(g.target) == 1]
    assert sum(one == other for one, other in pairs) == common(ours, theirs)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_gap_of_one_side_is_one_group(swapped):
    """Also of modules, which are put apart where both sides have calls."""
    side = [call("relu"), call("foo", kind="LAYER"), call("abs")]
    (group,) = gap_groups([], side) if swapped else gap_groups(side, [])
    assert (list(group.origin), list(group.target)) == (([], side) if swapped else (side, []))
    ends = [call("exp", made=(3,)), *side, call("log", shape=(4,))]
    short = [ends[0], ends[-1]]
    groups = align(short, ends) if swapped else align(ends, short)
    assert sizes(groups) == [(1, 1), (0, 3) if swapped else (3, 0), (1, 1)]


def test_long_chains_of_distinct_calls_do_not_recurse():
    origin = [call(f"op{at}", at=at) for at in range(1500)]
    target = [c for c in origin if int(c.api[2:]) % 10]
    groups = align(origin, target)
    assert [(g.origin[-1].api, g.target[-1].api) for g in groups if g.target] == [(c.api, c.api) for c in target]


def test_many_calls_against_as_many_others():
    origin = [call(f"left{at}", at=at) for at in range(300)]
    target = [call(f"right{at}", at=at) for at in range(300)]
    assert sizes(align(origin, target)) == [(1, 1)] * 300


def numbered(at):
    """Values that tell every call apart."""
    return tuple(np.sin(at + np.arange(6.0)).tolist())


def test_calls_of_one_name_beyond_the_window_meet_by_values():
    origin = [call("same", at=at, values=numbered(at)) for at in range(9000)]
    target = [c for at, c in enumerate(origin) if at % 10 != 7 and at > 4000]
    groups = align(origin, target)
    assert [(g.origin[-1].name, g.target[-1].name) for g in groups if g.target] == [(c.name, c.name) for c in target]


def test_repeated_blocks_of_which_one_is_missing():
    names = ["linear", "relu", "add", "layer_norm"]
    origin = [call(name, at=at, values=numbered(at * 4 + n)) for at in range(1500) for n, name in enumerate(names)]
    target = [c for at, c in enumerate(origin) if not 2000 <= at < 2004]
    groups = align(origin, target)
    assert [g for g in groups if not g.target] == [
        g for g in groups if g.origin and g.origin[0].name.rpartition("_")[2] == "500"
    ]


def test_thousands_of_others_take_seconds(monkeypatch):
    # names beyond the window are not measured against each other, which took minutes
    monkeypatch.setattr("dumpsim.analysis.callgroup.WINDOW", 64)
    monkeypatch.setattr("dumpsim.analysis.callgroup.name_distances", lambda names: pytest.fail("all names measured"))
    sides = [[call(f"{side}{at}", at=at) for at in range(300)] for side in "ab"]
    assert sizes(align(*sides)) == [(1, 1)] * 300


def test_many_calls_of_which_each_is_two_others():
    dense = [call("linear", at=at, kind="Functional") for at in range(500)]
    parts = [call(name, at=at, kind="Torch") for at in range(500) for name in ("matmul", "add")]
    groups = align(dense, parts)
    assert sizes(groups) == [(1, 2)] * 500
    assert sizes(align(parts, dense)) == [(2, 1)] * 500


@pytest.mark.parametrize(
    ("origin", "target", "rows"),
    [
        ([2, 3], [2, 3], [(2, 2), (3, 3)]), ([2, 3], [3], [(2, None), (3, 3)]), ([3], [2, 3], [(None, 2), (3, 3)]),
        ([2], [3], [(None, 3), (2, None)]), ([], [2], [(None, 2)]), ([2], [], [(2, None)]), ([], [], []),
        ([2, 3, 4], [4, 3, 2], [(None, 4), (None, 3), (2, 2), (3, None), (4, None)]),
        ([2, 2], [2], [(2, 2), (2, None)]), ([2, 3, 2], [2, 5, 2], [(2, 2), (None, 5), (3, None), (2, 2)]),
    ],
)  # fmt: skip
def test_arrays_of_equal_shapes_are_pairs_in_order(origin, target, rows):
    assert align_arrays(origin, target, lambda size: (size,)) == rows


def agreement(one, *many):
    return _agreement(np.array(one, float), np.array(many, float)).tolist()


def test_values_agree_by_their_digits():
    """A difference of 10**-n of the larger one is n of eight digits; less than two say nothing."""
    assert agreement([1.0], [1.0], [-1.0], [0.0]) == [1.0, 0.0, 0.0]
    for digits in (3, 4, 6):
        (found,) = agreement([1.0], [1 - 10.0**-digits])
        assert found == pytest.approx(digits / 8, abs=1e-3)
        assert agreement([1 - 10.0**-digits], [1.0]) == pytest.approx([found])
    assert agreement([1.0], [0.98], [0.995]) == [0.0, pytest.approx(-math.log10(0.005) / 8, abs=1e-4)]
    assert agreement([math.nan, 1.0], [math.nan, 1.0], [2.0, 1.0]) == [1.0, 0.5]  # unknown on both sides: not counted
    assert agreement([math.nan], [math.nan], [1.0]) == [0.0, 0.0]
    assert agreement([math.inf, 0.0], [math.inf, 0.0], [-math.inf, 0.0]) == [1.0, 0.5]


def test_values_decide_between_calls_of_one_name():
    """One of three calls is left out on the other side: which one, their values say."""
    values = [(1.0, 0.0, 0.5, 2.0, 1.0, 1.5), (5.0, 4.0, 4.5, 6.0, 5.0, 5.5), (9.0, 8.0, 8.5, 3.0, 2.0, 2.5)]
    three = [call("relu", at=at, values=row) for at, row in enumerate(values)]
    for left_out in range(3):
        two = [call("relu", at=at, values=row) for at, row in enumerate(values) if at != left_out]
        for origin, target in ((three, two), (two, three)):
            found = [(one.origin, one.target) for one in align(origin, target)]
            pairs = [(a[0].signature, b[0].signature) for a, b in found if a and b]
            assert all(a == b for a, b in pairs)
            assert len(pairs) == 2
            assert sum(not (a and b) for a, b in found) == 1


def test_equal_ends_are_paired_without_a_search():
    """What is equal at both ends in name, shape and values stays together, though a name repeats in between."""

    def one(value, at):
        return call("relu", at=at, values=(value,) * 6)

    origin = [one(v, at) for at, v in enumerate((1.0, 2.0, 3.0, 4.0))]
    target = [one(v, at) for at, v in enumerate((1.0, 2.0, 7.0, 8.0, 3.0, 4.0))]
    found = [(len(group.origin), len(group.target)) for group in align(origin, target)]
    assert found == [(1, 1), (1, 1), (0, 2), (1, 1), (1, 1)]
    assert [(len(g.origin), len(g.target)) for g in align(target, origin)] == [(1, 1), (1, 1), (2, 0), (1, 1), (1, 1)]


def steps(text, kind="Tensor"):
    """Calls as ``api:in>out``; the sizes of their input and output, both (2, 8) without."""
    found = []
    for at, word in enumerate(text.split()):
        api, _, sizes = word.partition(":")
        got, _, made = sizes.partition(">")
        where = {"kind": "LAYER"} if api.startswith("layer") else {"kind": kind}
        shapes = {"shape": (2, int(got)), "made": (2, int(made or got))} if got else {}
        found.append(call(api, at=at, **where, **shapes))
    return found


def named(groups):
    return ["+".join(c.api for c in one.origin) + " | " + "+".join(c.api for c in one.target) for one in groups]


GAPS = [
    # calls of the origin, of the target -> groups
    ("linear", "matmul add", "linear | matmul+add"),
    ("linear", "transpose matmul add", "linear | transpose+matmul+add"),
    ("linear", "foo matmul add", " | foo, linear | matmul+add"),
    ("linear", "matmul add foo", "linear | matmul+add,  | foo"),
    ("foo linear", "matmul add", "foo | , linear | matmul+add"),
    ("linear foo", "matmul add", "linear | matmul+add, foo | "),
    # nothing else cuts these: the sizes between the calls are others on the two sides
    ("linear:8>4 linear:5>3", "matmul:8>4 add:4 foo:6 matmul:7>3 add:3",
     "linear | matmul+add,  | foo, linear | matmul+add"),
    ("linear:8>4 foo:6 linear:5>3", "matmul:8>4 add:4 matmul:7>3 add:3",
     "linear | matmul+add, foo | , linear | matmul+add"),
    ("matmul:8>4 add:4 foo:6 matmul:7>3 add:3", "linear:8>4 linear:5>3",
     "matmul+add | linear, foo | , matmul+add | linear"),
    ("linear:8>4", "matmul:8>4 add:4>5", "linear | matmul+add"),  # no other way to cut
    ("foo:8>1 linear:8>4", "matmul:8>4 add:4>5", "foo+linear | matmul+add"),  # it ends in another shape
    ("foo:8>1 linear:8>5", "matmul:8>4 add:4>5", "foo | , linear | matmul+add"),
    # two compounds share a product: the first one has it
    ("scaled_dot_product_attention linear", "matmul softmax matmul add",
     "scaled_dot_product_attention | matmul+softmax+matmul, linear | add"),
    ("log_softmax rsqrt", "softmax log sqrt reciprocal", "log_softmax | softmax+log, rsqrt | sqrt+reciprocal"),
    ("softmax log rsqrt", "log_softmax sqrt reciprocal", "softmax+log | log_softmax, rsqrt | sqrt+reciprocal"),
    ("mse_loss", "sub square mean", "mse_loss | sub+square+mean"), ("silu", "sigmoid mul", "silu | sigmoid+mul"),
    ("mse_loss", "sub pow mean", "mse_loss | sub+pow+mean"),
    # cuts: where the same sizes pass, the rest is one group
    ("a:1>2 b:2>3 c:3>4", "d:1>2 e:2>4", "a | d, b+c | e"), ("a:1>2 b:2>3", "c:1>3", "a+b | c"),
    ("a:1>2", "b:1>2 c:2>3", "a | b+c"),
    ("a:1>2 b:2>3 c:3>4", "d:1>3 e:3>4", "a+b | d, c | e"), ("a:1>2 b:2>3", "d:1>5 e:5>3", "a+b | d+e"),
    ("a:1>2 b:2>3 c:3>4 d:4>5", "e:1>2 f:2>4 g:4>5", "a | e, b+c | f, d | g"),
    ("a:1>2 b:3>4", "c:1>2 d:2>4", "a+b | c+d"), ("a:1>2 b:3>4", "c:1>2 d:3>4", "a | c, b | d"),
    # of equal sizes the names decide, else the later edges
    ("foo bar baz", "qux baz", "foo+bar | qux, baz | baz"), ("foo baz bar", "foo qux", "foo | foo, baz+bar | qux"),
    ("aa bb cc", "xx yy", "aa+bb | xx, cc | yy"), ("xx yy", "aa bb cc", "xx | aa+bb, yy | cc"),
    ("", "a b", " | a+b"), ("a b", "", "a+b | "), ("", "", ""), ("a", "b", "a | b"),
    # names of modules on one side alone take no part
    ("layer1 a layer2", "b", "layer1 | , a | b, layer2 | "), ("b", "layer1 a layer2", " | layer1, b | a,  | layer2"),
    ("layer1 matmul layer2 add layer3", "linear", "layer1 | , matmul+layer2+add | linear, layer3 | "),
    ("linear", "matmul layer2 add layer3", "linear | matmul+layer2+add,  | layer3"),
    ("layer1 layer2", "a", " | a, layer1+layer2 | "), ("a", "layer1 layer2", "a | ,  | layer1+layer2"),
    ("layer1 a", "layer2 b", "layer1 | layer2, a | b"),
]  # fmt: skip


@pytest.mark.parametrize(("origin", "target", "groups"), GAPS)
def test_groups_of_the_calls_between_two_pairs(origin, target, groups):
    found = gap_groups(steps(origin), steps(target))
    assert ", ".join(named(found)) == groups
    assert [c.api for group in found for c in group.origin] == [w.partition(":")[0] for w in origin.split()]
    assert [c.api for group in found for c in group.target] == [w.partition(":")[0] for w in target.split()]


KINDS = {"n": ("NN", "ReLU"), "f": ("Functional", "relu"), "t": ("Tensor", "relu")}


@pytest.mark.parametrize(
    ("origin", "target", "groups"),
    [
        ("fn", "t", ["f-", "nt"]), ("nf", "t", ["nt", "f-"]), ("tf", "n", ["t-", "fn"]), ("ft", "n", ["fn", "t-"]),
        ("tn", "t", ["tt", "n-"]), ("nt", "t", ["n-", "tt"]),  # the same kind is more than a better one
        ("tfn", "tn", ["tt", "f-", "nn"]), ("fn", "tf", ["ft", "nf"]),  # and one pair more is more than that
    ],
)  # fmt: skip
def test_of_several_calls_of_a_sense_the_best_kind_is_chosen(origin, target, groups):
    sides = [[call(KINDS[k][1], at=at, kind=KINDS[k][0]) for at, k in enumerate(side)] for side in (origin, target)]
    letter = {kind: k for k, (kind, _) in KINDS.items()}
    found = ["".join(letter[side[0].kind] if side else "-" for side in (g.origin, g.target)) for g in align(*sides)]
    assert found == groups


def test_values_are_more_than_the_kind_of_a_call_and_less_than_one_pair_more():
    near, far = (1.0, 0.0, 0.5, 2.0, 1.0, 1.5), (7.0, 6.0, 6.5, 8.0, 7.0, 7.5)
    origin = [call("relu", at=0, kind="Functional", values=near), call("ReLU", at=1, kind="NN", values=far)]
    target = [call("relu", at=0, values=near)]
    assert [len(group.target) for group in align(origin, target)] == [1, 0]
    two = [call("relu", at=0, values=far), call("relu", at=1, values=far)]
    assert sizes(align(origin, two)) == [(1, 1), (1, 1)]


@pytest.mark.parametrize(("edges", "groups"), [(39, 40), (41, 42)])
def test_forty_edges_of_other_names_are_as_much_as_one_edge_more(edges, groups):
    """A pair of edges of wholly other names costs a twentieth of what it is worth to leave out one on both sides."""
    letters = [chr(0x4E00 + at) for at in range(edges + 2)]
    origin = [call(letter, at=at) for at, letter in enumerate(letters[:-1])]
    target = [call(letter, at=at) for at, letter in enumerate(letters[1:])]
    found = gap_groups(origin, target)
    same = sum(one.origin[-1].api == one.target[-1].api for one in found)
    assert (len(found), same) == ((groups, 0) if edges < 40 else (groups - 1, edges - 1))


@pytest.mark.parametrize(("origin", "target", "groups"), [
    ("foo bar baz", "qux baz", "foo+bar | qux, baz | baz"), ("foo baz bar", "foo qux", "foo | foo, baz+bar | qux"),
    ("aa bb cc", "xx yy", "aa+bb | xx, cc | yy"), ("a:1>2 b:2>3 c:3>4", "d:1>3 e:3>4", "a+b | d, c | e"),
])  # fmt: skip
def test_beyond_the_window_names_are_equal_or_not(monkeypatch, origin, target, groups):
    monkeypatch.setattr("dumpsim.analysis.callgroup.WINDOW", 1)
    assert ", ".join(named(gap_groups(steps(origin), steps(target)))) == groups


@pytest.mark.parametrize("window", [1, 4, 2048])
def test_every_call_is_in_one_group_of_any_window(monkeypatch, window):
    """Calls that tell themselves by their values are landmarks; between two of them pairs keep the order."""
    monkeypatch.setattr("dumpsim.analysis.callgroup.WINDOW", window)
    random = np.random.default_rng(3)
    for _ in range(40):
        drawn = [random.integers(0, 3, (random.integers(1, 12), 2)) for _ in range(2)]
        sides = [
            [call(("relu", "abs", "exp")[k], at=at, values=numbered(int(v))) for at, (k, v) in enumerate(side)]
            for side in drawn
        ]
        groups = align(*sides)
        assert [c for group in groups for c in group.origin] == sides[0]
        assert [c for group in groups for c in group.target] == sides[1]
