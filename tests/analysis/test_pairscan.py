"""How the operators of two dumps are ranked and accused: by recomputation, by excess, and by their gradients."""

import math

import numpy as np
import pytest
from smalltree import api, chain, write

import dumpsim
from dumpsim.analysis.first import first
from dumpsim.core.evidence import Evidence

X = np.array([1, 2], np.float32)
G = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)


def one_operator(tmp_path, scale=1.5):
    """An operator whose inputs agree and whose results are half apart, of a type that nothing is known of."""
    return [
        write(tmp_path / side, [("Mystery", "Default/Mystery-op0", [X], [made])])
        for side, made in (("a", X * np.float32(scale)), ("b", X))
    ]


ROUNDING = 16 * 2.0**-24  # of float32: what is explained of the result of equal inputs


@pytest.mark.parametrize(
    ("evidence", "kind", "verdict", "explained", "basis", "reason"),
    [
        (Evidence.skip("draws"), "made", "suspect", ROUNDING, "growth", ""),
        (Evidence(0.0, 1.0, "ok"), "made", "ok", 0.5, "recomputed", "its inputs explain it"),
        (Evidence(8.0, 2.0, "suspect", "output.0"), "made", "suspect", ROUNDING, "recomputed", "output.0"),
        (Evidence(2e9, 1.0, "suspect", "r"), "made", "suspect", 0.5 / 2e9, "recomputed", "r"),
        (Evidence(1.0, 1.0, "suspect", "r"), "made", "suspect", 0.0, "recomputed", "r"),
        (Evidence(1.0, 0.0, "suspect", "r"), "made", "suspect", 0.0, "recomputed", "r"),  # infinitely much
    ],
)
def test_recomputation_decides_what_inputs_explain(tmp_path, evidence, kind, verdict, explained, basis, reason):
    found = first(*one_operator(tmp_path), recompute=lambda dump, operator, on=None: evidence)
    (row,) = found.ranking
    assert (row.verdict, row.basis, row.reason) == (verdict, basis, reason)
    assert row.explained == pytest.approx(explained, rel=1e-6)
    assert (row.error_in, row.error_out) == (0.0, 0.5)
    (finding,) = found
    assert finding.kind == kind  # "amplified" only if its inputs differ
    assert (finding.verdict, finding.explained) == (verdict, row.explained)


def test_a_call_in_place_is_not_explained_by_its_own_result(tmp_path):
    """Its dumped input is its result. [spec api_dump 1.9]"""
    sides = []
    for side, value in (("a", X), ("b", X * np.float32(1.5))):
        calls = [("Tensor_div__0_forward_input.0", value), ("Tensor_div__0_forward_output", value)]
        sides.append(api(tmp_path / side, calls))
    (finding,) = first(*sides)
    assert (finding.kind, finding.basis, finding.verdict, finding.error_in) == ("made", "order", "suspect", 0.0)
    assert finding.explained == pytest.approx(ROUNDING, rel=1e-6)


SKIP, OK, BAD = Evidence.skip("why"), Evidence(0.0, 1.0, "ok"), Evidence(9.0, 1.0, "suspect", "bad")


@pytest.mark.parametrize(
    ("answers", "asked", "basis", "reason"),
    [
        # B's function on A's inputs, A's function on B's inputs, then each on its own
        ([OK], ["b on a"], "recomputed", "its inputs explain it"),
        ([SKIP, BAD], ["b on a", "a on b"], "recomputed", "bad"),
        ([SKIP, SKIP, SKIP, BAD], ["b on a", "a on b", "a", "b"], "recomputed", "bad"),
        ([SKIP, SKIP, BAD, OK], ["b on a", "a on b", "a", "b"], "recomputed", "bad"),
        ([SKIP, SKIP, OK, OK], ["b on a", "a on b", "a", "b"], "growth", ""),
    ],
)
def test_functions_are_tried_on_the_other_side_first(tmp_path, answers, asked, basis, reason):
    trees = one_operator(tmp_path)
    waiting, calls = list(answers), []

    def recompute(dump, operator, on=None):
        names = ["ab"[[str(tree) for tree in trees].index(str(dump.root))]]
        names += [] if on is None else ["on", {"a": "b", "b": "a"}[names[0]]]
        assert [str(one.entries[0].path).startswith(str(trees["ab".index(names[n])])) for n, one in
                ((0, operator), (-1, on)) if one is not None] == [True] * (1 + (on is not None))  # fmt: skip
        calls.append(" ".join(names))
        return waiting.pop(0)

    (row,) = first(*trees, recompute=recompute).ranking
    assert (calls, row.basis, row.reason) == (asked, basis, reason)


def test_those_with_the_largest_excess_are_recomputed_and_no_more_than_64(tmp_path):
    """Seventy operators, each with a difference of its own: the later the larger, by a factor of more than ten."""
    values = [np.full(2, 2.0, np.float32) for _ in range(70)]
    golden = [("Mystery", f"Default/Mystery-op{n}", [X], [value]) for n, value in enumerate(values)]
    own = [(kind, name, got, [made[0] * np.float32(1 + (n + 1) / 1000)]) for n, (kind, name, got, made) in
           enumerate(golden)]  # fmt: skip
    asked = []

    def recompute(dump, operator, on=None):
        asked.append(operator.number)
        return OK

    found = first(write(tmp_path / "a", own), write(tmp_path / "b", golden), recompute=recompute)
    assert asked == list(range(69, 5, -1))
    assert sorted(row.op_name for row in found.ranking if row.basis == "growth") == sorted(
        f"Default_Mystery-op{n}" for n in range(6)
    )


def independent(tmp_path, *factors):
    """Operators of their own inputs, whose results are multiples of what they should be."""
    for side in "ab":
        ops = [
            ("Mystery", f"Default/Mystery-op{n}", [X * (n + 1)], [X * np.float32(factor if side == "a" else 1)])
            for n, factor in enumerate(factors)
        ]
        write(tmp_path / side, ops)
    return tmp_path / "a", tmp_path / "b"


def test_the_operator_with_the_largest_power_of_ten_is_accused_and_the_others_on_demand(tmp_path):
    """What cannot be explained counts by powers of ten, up to an error of a tenth; of equal ones the first is named."""
    trees = independent(tmp_path, 1.002, 1.05, 1.5, 1.6, 1.0)
    found = first(*trees)
    names = [f"Default_Mystery-op{n}" for n in (2, 3, 1, 0)]
    assert [row.op_name for row in found.ranking] == names
    assert [row.verdict for row in found.ranking] == ["suspect"] * 4
    assert [(one.kind, one.op_name) for one in found] == [("made", names[0])]
    everything = first(*trees, everything=True)
    assert sorted((one.kind, one.op_name) for one in everything) == sorted(("made", name) for name in names)
    assert [row.op_name for row in everything.ranking] == names


def test_dumps_that_agree_are_ranked_only_on_demand(tmp_path):
    trees = independent(tmp_path, 1.000001, 1.0, 1.000002)  # 8 and 17 last bits of float32; 8 are explained
    assert (len(first(*trees)), first(*trees).ranking) == (0, ())
    ranked = first(*trees, everything=True)
    assert [row.op_name for row in ranked.ranking] == ["Default_Mystery-op2", "Default_Mystery-op0"]
    assert [row.verdict for row in ranked.ranking] == ["ok", "ok"]
    assert len(ranked) == 0


def test_a_rank_that_differs_says_nothing_about_another_one(tmp_path):
    for side in "ab":
        for rank in (0, 1):
            made = X * np.float32(1.5 if (side, rank) == ("a", 1) else 1)
            write(tmp_path / side, [("Mystery", "Default/Mystery-op0", [X], [made])], rank=rank)
    found = first(tmp_path / "a", tmp_path / "b")
    assert [(one.rank, one.kind) for one in found] == [(1, "made")]
    assert [row.rank for row in found.ranking] == [1]


def test_results_of_other_shapes_are_infinitely_far_apart(tmp_path):
    """Shapes that nothing explains have an infinite difference."""
    for side, made in (("a", np.zeros((2, 3), np.float32)), ("b", np.zeros((3, 3), np.float32))):
        write(tmp_path / side, [("Mystery", "Default/Mystery-op0", [X], [made])])
    found = first(tmp_path / "a", tmp_path / "b")
    (row,) = found.ranking
    assert (row.error_out, row.verdict, row.excess) == (math.inf, "suspect", math.inf)
    assert [(one.kind, one.what) for one in found] == [("made", "difference")]


def calls(conv=1.0, linear=1.0, loss=1.0, leave=(), late=1.0):
    """A convolution, a layer and a loss that reads it, and the gradients of both, the last one first."""
    f = np.float32
    records = [
        ("NN_Conv2d_0_forward_input.0", G), ("NN_Conv2d_0_forward_output", G * 2 * f(conv)),
        ("NN_Linear_0_forward_input.0", G * 2 * f(conv)), ("NN_Linear_0_forward_output", G * 3 * f(linear)),
        ("NN_MSELoss_0_forward_input.0", G * 3 * f(linear)),
        ("NN_Linear_0_backward_input", G * 5 * f(loss)), ("NN_Conv2d_0_backward_input", G * 7 * f(loss) * f(late)),
    ]  # fmt: skip
    return [one for one in records if one[0] not in leave]


def compared(tmp_path, own, golden, **options):
    found = dumpsim.first(api(tmp_path / "a", own), api(tmp_path / "b", golden), **options)
    return [(one.kind, one.op_name, one.tensor, one.basis) for one in found]


FIRST_GRADIENT = ("made", "NN_MSELoss_0_forward", "NN_Linear_0_backward:input.0", "gradient")
SECOND_GRADIENT = ("made", "NN_Linear_0_backward", "NN_Conv2d_0_backward:input.0", "gradient")


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ({}, []),
        ({"loss": 4.0}, [FIRST_GRADIENT]),
        ({"late": 4.0}, [SECOND_GRADIENT]),
        ({"conv": 4.0}, [("made", "NN_Conv2d_0_forward", "output.0", "inputs")]),
        ({"linear": 4.0}, [("made", "NN_Linear_0_forward", "output.0", "inputs")]),
    ],
)
def test_a_gradient_is_made_by_the_calls_that_read_the_result(tmp_path, own, found):
    assert compared(tmp_path, calls(**own), calls()) == found


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ({}, []),
        ({"loss": 4.0}, [FIRST_GRADIENT]),
        ({"late": 4.0}, [SECOND_GRADIENT]),
    ],
)
def test_where_no_value_tells_who_reads_a_result_the_backward_before_made_its_gradient(tmp_path, own, found):
    """The inputs of the layer and of the loss are other tensors than the results before them."""

    def apart(records):
        other = {"NN_Linear_0_forward_input.0": G * 11, "NN_MSELoss_0_forward_input.0": G * 13}
        return [(name, other.get(name, value)) for name, value in records]

    assert compared(tmp_path, apart(calls(**own)), apart(calls())) == found


def test_a_gradient_that_no_maker_explains_is_ranked_under_the_maker(tmp_path):
    found = dumpsim.first(api(tmp_path / "a", calls(late=4.0)), api(tmp_path / "b", calls()), everything=True)
    (row,) = found.ranking
    assert (row.op_type, row.op_name, row.tensor, row.other_name) == (
        "Linear", "NN_Linear_0_backward", "NN_Conv2d_0_backward:input.0", "",
    )  # fmt: skip
    assert (row.basis, row.verdict, row.error_in) == ("gradient", "suspect", 0.0)
    assert row.error_out == pytest.approx(3.0)  # four times the golden one
    assert row.explained == pytest.approx(10 * ROUNDING)  # of a gradient ten times as much


@pytest.mark.parametrize("side", "AB")
def test_a_missing_gradient_is_a_finding_only_beside_weights_or_other_gradients(tmp_path, side):
    """A product without weights has no gradient on one side: nothing is wrong as long as the others agree."""

    def records(scale=1.0, leave=()):
        found = [
            ("Torch_mul_0_forward_input.0", G), ("Torch_mul_0_forward_output", G * 2),
            ("Torch_exp_0_forward_input.0", G * 2), ("Torch_exp_0_forward_output", G * 3),
            ("Torch_sum_0_forward_input.0", G * 3), ("Torch_sum_0_forward_output", G * 4),
            ("Torch_sum_0_backward_input", G), ("Torch_exp_0_backward_input", G * np.float32(scale)),
            ("Torch_mul_0_backward_input", G),
        ]  # fmt: skip
        return [one for one in found if one[0] not in leave]

    without = records(leave=("Torch_mul_0_backward_input",))
    for name, scale, kinds in (("same", 1.0, []), ("other", 4.0, ["detached"])):
        trees = [api(tmp_path / name / "a", records(scale)), api(tmp_path / name / "b", without)]
        found = dumpsim.first(*(trees if side == "B" else trees[::-1]), everything=True)
        assert [one.basis for one in found if one.basis == "detached"] == kinds
        for one in found:
            if one.basis == "detached":
                assert (one.op_name, one.tensor, one.verdict) == ("Torch_mul_0_forward", "output.0", "suspect")
                assert (one.error_in, one.error_out, one.explained) == (0.0, math.inf, 0.0)


def test_without_any_common_gradient_none_is_missed(tmp_path):
    gradients = ("NN_Linear_0_backward_input", "NN_Conv2d_0_backward_input")
    assert compared(tmp_path, calls(), calls(leave=gradients)) == []


def test_the_last_of_several_detached_calls_is_named(tmp_path):
    """Both layers lack their gradient on one side; the one whose reader has its gradient is the place."""

    def records(leave=()):
        found = []
        for n in range(3):
            found += [(f"NN_Linear_{n}_forward_input.0", G * (n + 1)), (f"NN_Linear_{n}_forward_output", G * (n + 2))]
        found += [(f"NN_Linear_{n}_backward_input", G) for n in (2, 1, 0)]
        return [one for one in found if one[0] not in leave]

    for name, missing in (("one", (1,)), ("two", (0, 1))):
        leave = tuple(f"NN_Linear_{n}_backward_input" for n in missing)
        found = dumpsim.first(api(tmp_path / name / "a", records()), api(tmp_path / name / "b", records(leave)))
        assert [(one.op_name, one.basis) for one in found] == [("NN_Linear_1_forward", "detached")]
        assert found.maker.note.startswith(
            "B has no gradient of its result, the other dump has one; NN_Linear_2, which"
        )


def two_steps(first_scale=1.0, second_scale=1.0, gradient=1.0):
    """Two steps of a layer; the weights of the second one are those that the first one updated."""
    found = []
    for n, scale in enumerate((first_scale, second_scale)):
        found += [
            (f"NN_Linear_{n}_forward_input.0", G), (f"NN_Linear_{n}_forward_output", G * 3 * np.float32(scale)),
            (f"NN_Linear_{n}_backward_input", G * np.float32(gradient if n == 0 else 1)),
        ]  # fmt: skip
    return found


def test_an_optimizer_is_suspected_after_a_step_that_agrees(tmp_path):
    said = "all of iteration 0 agrees, gradients too: look at the optimizer, which updated its weights"
    for name, own, noted in (
        ("second", {"second_scale": 2.0}, True),
        ("both", {"first_scale": 2.0, "second_scale": 2.0}, False),
        ("gradient", {"gradient": 2.0, "second_scale": 2.0}, False),
    ):
        trees = api(tmp_path / name / "a", two_steps(**own)), api(tmp_path / name / "b", two_steps())
        found = dumpsim.first(*trees, everything=True)
        later = [one for one in found if one.iteration == 1 and one.op_name == "NN_Linear_1_forward"]
        assert len(later) == 1
        assert (said in later[0].note) is noted


def test_an_argument_that_differs_is_named_only_for_a_difference_of_its_call(tmp_path):
    """Three numbers of the script are reported; a call whose results agree is not blamed for them."""

    def tree(side, numbers, scale):
        records = [("Functional_f_0_forward_input.0", G)]
        records += [(f"Functional_f_0_forward_input.{n}", value) for n, value in enumerate(numbers, 1)]
        records += [("Functional_f_0_forward_output", G * np.float32(scale))]
        root = api(tmp_path / side, records)
        info = root / "rank0" / "torch_api_dump_info.pkl"
        lines = info.read_text().splitlines()
        lines[1:-1] = [line.replace("torch.float32", "<class 'float'>") for line in lines[1:-1]]
        info.write_text("\n".join(lines) + "\n")
        return root

    golden = tree("b", (1.0, 2.0, 3.0, 4.0), 1.0)
    same = dumpsim.first(tree("same", (9.0, 2.0, 3.0, 4.0), 1.0), golden)
    assert [one.kind for one in same if one.kind == "made"] == []
    found = dumpsim.first(tree("a", (1.5, 2.5, 3.5, 4.5), 4.0), golden)
    (maker,) = (one for one in found if one.kind == "made")
    assert maker.basis == "argument"
    assert maker.note == "; ".join(f"its argument input.{n} is {n + 0.5:g} in A and {n:g} in B" for n in (1, 2, 3))
    assert [row.basis for row in found.ranking] == ["argument"]


@pytest.mark.parametrize(("times", "basis"), [(10, "growth"), (11, "argument")])
def test_an_argument_is_to_blame_for_more_than_ten_times_what_is_explained(tmp_path, times, basis):
    """Of one element, the relative difference is exact; of equal inputs, the rounding is explained."""
    trees = []
    for side, number, made in (("a", 2.0, 1 + times * ROUNDING), ("b", 1.0, 1.0)):
        one = np.ones(1, np.float32)
        values = {"input.0": one, "input.1": one * np.float32(number), "output": one * np.float32(made)}
        trees.append(api(tmp_path / side, [(f"Functional_f_0_forward_{end}", value) for end, value in values.items()]))
        info = trees[-1] / "rank0" / "torch_api_dump_info.pkl"
        lines = info.read_text().splitlines()
        lines[1] = lines[1].replace("torch.float32", "<class 'float'>")
        info.write_text("\n".join(lines) + "\n")
    (row,) = dumpsim.first(*trees, everything=True).ranking
    assert (row.basis, row.excess) == (basis, times)
    assert row.reason == ("its argument input.1 is 2 in A and 1 in B" if basis == "argument" else "")


def test_a_chain_that_only_passes_a_difference_on_has_one_suspect(tmp_path):
    values = [np.full((2, 2), float(n + 1), np.float32) for n in range(5)]
    bad = [values[0], *(value * np.float32(1.5) for value in values[1:])]
    trees = [write(tmp_path / side, chain(*each, kind="Mystery")) for side, each in (("a", bad), ("b", values))]
    found = first(*trees, everything=True)
    assert [row.verdict for row in found.ranking] == ["suspect", "ok", "ok", "ok"]
    assert [row.error_in for row in found.ranking] == pytest.approx([0.0, 0.5, 0.5, 0.5])
    assert [row.explained for row in found.ranking] == pytest.approx([ROUNDING, *[1.5 + ROUNDING] * 3])
