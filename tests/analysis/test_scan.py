"""How far one dump is searched, and which bad values are received, given, passed on or meant to be there."""

import numpy as np
import pytest
from smalltree import api, chain, write

import dumpsim

GOOD = np.ones((2, 2), np.float32)
NAN = np.full((2, 2), np.nan, np.float32)
INF = np.array([[1, np.inf], [1, 1]], np.float32)
LOW = np.array([[1, -np.inf], [1, 1]], np.float32)
BOTH = np.array([[np.nan, np.inf], [1, 1]], np.float32)


def said(search):
    return [(one.kind, one.what, one.rank, one.iteration, one.op_name.removeprefix("Default_")) for one in search]


def test_a_search_ends_at_the_first_maker_unless_everything_is_asked_for(tmp_path):
    root = write(tmp_path, chain(GOOD, GOOD, NAN, GOOD, NAN, NAN))
    found = dumpsim.first(root)
    assert (said(found), found.operators, found.tensors, found.passed_on) == (
        [("made", "nan", 0, 0, "Add-op1")],
        2,
        4,
        0,
    )
    found = dumpsim.first(root, everything=True)
    assert (found.operators, found.tensors, found.passed_on) == (5, 10, 1)
    assert said(found) == [("made", "nan", 0, 0, "Add-op1"), ("made", "nan", 0, 0, "Add-op3")]


def test_of_several_ranks_all_are_searched_in_the_first_bad_iteration(tmp_path):
    for rank in (0, 1):
        for iteration in (0, 1):
            bad = NAN if iteration == 0 else INF
            write(tmp_path, chain(GOOD, GOOD, bad, bad), rank=rank, iteration=iteration)
    found = dumpsim.first(tmp_path)
    assert said(found) == [("made", "nan", rank, 0, "Add-op1") for rank in (0, 1)]
    assert (found.operators, found.tensors) == (4, 8)
    found = dumpsim.first(tmp_path, everything=True)
    assert said(found) == [
        ("made", what, rank, iteration, "Add-op1") for iteration, what in ((0, "nan"), (1, "inf")) for rank in (0, 1)
    ]
    assert (found.operators, found.tensors, found.passed_on) == (12, 24, 4)


def test_an_iteration_that_is_clean_does_not_end_the_search(tmp_path):
    for iteration, made in ((0, GOOD), (1, NAN), (2, INF)):
        write(tmp_path, chain(GOOD, GOOD, made), iteration=iteration)
    found = dumpsim.first(tmp_path)
    assert (said(found), found.operators) == ([("made", "nan", 0, 1, "Add-op1")], 4)


def test_what_comes_from_another_rank_is_received_once(tmp_path):
    for rank in (0, 1):
        ops = [("AllReduce", f"Default/AllReduce-op{n}", [GOOD], [NAN]) for n in range(2)]
        ops.append(("AllReduce", "Default/AllReduce-op2", [GOOD], [BOTH]))  # an infinity is news
        ops.append(("Add", "Default/Add-op0", [NAN], [NAN]))
        write(tmp_path, ops, rank=rank)
    found = dumpsim.first(tmp_path, everything=True)
    assert said(found) == [
        ("received", what, rank, 0, f"AllReduce-op{n}") for n, what in ((0, "nan"), (2, "nan, inf")) for rank in (0, 1)
    ]
    assert {one.note for one in found} == {"from another rank"}
    assert found.passed_on == 2


def test_a_collective_without_inputs_or_of_one_rank_makes_what_it_shows(tmp_path):
    for rank in (0, 1):
        write(tmp_path / "two", [("AllReduce", "Default/AllReduce-op0", [], [NAN])], rank=rank)
        write(tmp_path / "received", [("AllReduce", "Default/AllReduce-op0", [NAN], [NAN])], rank=rank)
    write(tmp_path / "one", [("AllReduce", "Default/AllReduce-op0", [GOOD], [NAN])])
    assert {one.kind for one in dumpsim.first(tmp_path / "two")} == {"made"}
    assert {one.kind for one in dumpsim.first(tmp_path / "one")} == {"made"}
    notes = {(one.kind, one.tensor, one.note) for one in dumpsim.first(tmp_path / "received")}
    assert notes == {("received", "input.0", "no operator before it in the dump has it")}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("div_", "made"), ("__iadd__", "made"), ("__add__", "received"), ("add", "received"), ("__iadd", "received"),
        ("iadd__", "received"), ("add__", "received"),
    ],
)  # fmt: skip
def test_calls_that_work_in_place_are_known_by_their_names(tmp_path, name, kind):
    """Its dumped input is its result. [spec api_dump 1.9]"""
    records = [(f"Tensor_{name}_0_forward_input.0", NAN), (f"Tensor_{name}_0_forward_output", NAN)]
    (finding,) = dumpsim.first(api(tmp_path, records))
    assert (finding.kind, finding.basis) == (kind, "order" if kind == "made" else "inputs")
    assert (
        finding.note
        == {
            "made": "works in place: its input was dumped after it ran",
            "received": "no operator before it in the dump has it",
        }[kind]
    )


def test_a_call_in_place_made_only_what_is_in_its_result(tmp_path):
    records = [("Tensor_div__0_forward_input.0", NAN), ("Tensor_div__0_forward_output", GOOD)]
    (finding,) = dumpsim.first(api(tmp_path, records))
    assert (finding.kind, finding.tensor) == ("received", "input.0")


def test_a_tree_of_operators_has_no_calls_in_place(tmp_path):
    (finding,) = dumpsim.first(write(tmp_path, [("Add_", "Default/Add_-op0", [NAN], [NAN])]))
    assert finding.kind == "received"


@pytest.mark.parametrize(
    ("made", "intended", "allow", "found"),
    [
        (LOW, None, (), []), (INF, None, (), ["inf"]), (NAN, None, (), ["nan"]), (BOTH, None, (), ["nan, inf"]),
        (LOW, (), (), ["inf"]), (LOW, ("mul",), (), ["inf"]), (LOW, ("MASKEDFILL",), (), []),
        (LOW, ("*MaskedFill-op0",), (), []), (LOW, ("*-op0:output.0",), (), []),
        (LOW, ("*-op0:output.1",), (), ["inf"]),
        (INF, ("*",), (), ["inf"]), (INF, None, ("*",), []), (BOTH, None, ("*",), ["nan"]), (LOW, (), ("masked*",), []),
    ],
)  # fmt: skip
def test_which_infinities_are_meant_to_be_there(tmp_path, made, intended, allow, found):
    """Those of -inf alone for the operators that fill masks; of either sign on request; NaN never."""
    root = write(tmp_path, [("MaskedFill", "Default/MaskedFill-op0", [GOOD], [made])])
    options = {} if intended is None else {"intended": intended}
    search = dumpsim.first(root, allow=allow, **options)
    assert [one.what for one in search] == found


def test_an_allowed_infinity_is_known_to_those_after_it(tmp_path):
    """Exp may make it; Mul, which has it, passes it on; and NaN that is made of it has its basis."""
    ops = [
        ("Exp", "Default/Exp-op0", [GOOD], [INF]), ("Mul", "Default/Mul-op0", [INF], [INF]),
        ("Sub", "Default/Sub-op0", [INF], [NAN]),
    ]  # fmt: skip
    found = dumpsim.first(write(tmp_path, ops), allow=["exp"], everything=True)
    assert [(one.kind, one.what, one.op_type, one.basis) for one in found] == [("made", "nan", "Sub", "infinite")]


def test_values_from_outside_that_are_bad_are_given_once_a_kind(tmp_path):
    ops = [("Data", "a", [], [NAN]), ("Parameter", "b", [], [NAN]), ("Data", "c", [], [BOTH]), ("Data", "d", [], [LOW])]
    found = dumpsim.first(write(tmp_path, ops), everything=True)
    assert [(one.kind, one.what, one.op_name) for one in found] == [("given", "nan", "a"), ("given", "inf", "c")]
    found = dumpsim.first(write(tmp_path / "low", ops[3:]), everything=True)
    assert len(found) == 0  # a mask
    found = dumpsim.first(tmp_path / "low", intended=(), everything=True)
    assert [(one.kind, one.what) for one in found] == [("given", "inf")]


def test_gradients_that_pass_a_bad_value_on_are_counted(tmp_path):
    records = [
        ("Torch_a_0_forward_input.0", GOOD), ("Torch_a_0_forward_output", GOOD),
        ("Torch_b_0_forward_input.0", GOOD), ("Torch_b_0_forward_output", GOOD),
        ("Torch_c_0_forward_input.0", GOOD), ("Torch_c_0_forward_output", GOOD),
        ("Torch_c_0_backward_input", GOOD), ("Torch_b_0_backward_input", NAN), ("Torch_a_0_backward_input", NAN),
    ]  # fmt: skip
    found = dumpsim.first(api(tmp_path, records), everything=True)
    assert [(one.kind, one.op_name, one.tensor, one.basis) for one in found] == [
        ("made", "Torch_c_0_backward", "Torch_b_0_backward:input.0", "gradient")
    ]
    assert (found.passed_on, found.operators, found.tensors) == (1, 6, 9)


@pytest.mark.parametrize(
    ("values", "detail"),
    [
        ([np.nan, np.nan, 1], "2 NaN"), ([np.inf, 1, 1], "1 +Inf"), ([-np.inf, -np.inf, 1], "2 -Inf"),
        ([np.nan, np.inf, -np.inf], "1 NaN, 1 +Inf, 1 -Inf"), ([np.inf, -np.inf, np.inf], "2 +Inf, 1 -Inf"),
    ],
)  # fmt: skip
def test_bad_elements_are_counted_by_kind(tmp_path, values, detail):
    made = np.array(values, np.float32)
    (finding,) = dumpsim.first(write(tmp_path, [("Log", "Default/Log-op0", [GOOD], [made])]))
    assert finding.detail == detail


@pytest.mark.parametrize(
    ("columns", "cells", "detail"),
    [
        ("Max Value,Min Value", "inf,1", "+Inf"), ("Max Value,Min Value", "1,-inf", "-Inf"),
        ("Max Value,Min Value", "inf,-inf", "+Inf, -Inf"), ("Avg Value", "nan", "NaN"),
    ],
)  # fmt: skip
def test_statistics_tell_the_kinds_alone(tmp_path, columns, cells, detail):
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    head = f"Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,{columns}"
    good = ",".join("1" for _ in columns.split(","))
    rows = [f'Log,Default/Log-op0,0,0,{n},{io},0,4,float32,"(2,)",{values}'
            for n, io, values in ((1, "input", good), (2, "output", cells))]  # fmt: skip
    (place / "statistic.csv").write_text("\n".join([head, *rows]) + "\n")
    (finding,) = dumpsim.first(tmp_path)
    assert (finding.kind, finding.detail) == ("made", detail)


def test_what_was_not_judged_is_counted_by_the_reason(tmp_path):
    root = write(tmp_path / "a", [("Add", "Default/Add-op0", [GOOD, GOOD], [GOOD, NAN]), *chain(NAN, NAN, kind="Exp")])
    for path in [*root.rglob("Add.*.input.1.*"), *root.rglob("Exp.*.output.0.*")]:
        path.write_bytes(b"\x93NUMPY\x01")
    found = dumpsim.first(root, everything=True)
    assert (found.skipped, len(found.unreadable)) == ((("unreadable", 2),), 2)
    assert (found.operators, found.tensors) == (2, 4)
    other = write(tmp_path / "b", [("Add", "Default/Add-op0", [GOOD], [GOOD]), *chain(GOOD, GOOD, kind="Exp"),
                                   ("Neg", "Default/Neg-op0", [GOOD[0], GOOD[0]], [GOOD[0]])])  # fmt: skip
    found = dumpsim.first(root, other, everything=True)
    assert found.skipped == (("in A only", 2), ("in B only", 3), ("unreadable", 1))
    assert (len(found.unreadable), found.operators, found.tensors) == (1, 2, 3)
    assert (found.unmatched, found.idle) == ((), ())


def test_a_difference_is_told_by_elements_statistics_or_shapes(tmp_path):
    x = np.array([1, 2, 3, 4], np.float32)
    golden = write(tmp_path / "golden", [("Mystery", "Default/Mystery-op0", [x], [x])])

    def detail(name, made):
        (finding,) = dumpsim.first(
            write(tmp_path / name, [("Mystery", "Default/Mystery-op0", [x], [made])]), golden, tol=["*:0.5:0.25"]
        )
        return finding.detail

    assert detail("shapes", np.ones((2, 3), np.float32)) == "shapes (2, 3) and (4,)"
    beyond = "of 4 elements beyond the tolerance (rtol 0.5, atol 0.25)"
    assert detail("elements", x * 2 + 1).startswith(f"4 {beyond}; largest difference 5, relative ")
    one = x.copy()
    one[1] = 3.5  # 1.25 are allowed
    assert detail("one", one).startswith(f"1 {beyond}; largest difference 1.5, relative ")
    one[0] = np.nan
    assert detail("nan", one) == f"2 {beyond}; 1 NaN or Inf in A only"


def test_a_difference_of_rows_is_told_by_the_statistics_that_differ(tmp_path):
    head = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value"
    for side, largest in (("a", 9), ("b", 4)):
        place = tmp_path / side / "rank_0" / "Net" / "0" / "0"
        place.mkdir(parents=True)
        rows = [f'Mystery,Default/Mystery-op0,0,0,{n},{io},0,8,float32,"(2,)",{top},1'
                for n, io, top in ((1, "input", 2), (2, "output", largest))]  # fmt: skip
        (place / "statistic.csv").write_text("\n".join([head, *rows]) + "\n")
    (finding,) = dumpsim.first(tmp_path / "a", tmp_path / "b", tol=["*:0.5:0.25"])
    assert (finding.kind, finding.basis) == ("made", "statistics")
    assert finding.detail == "1 of 2 statistics beyond the tolerance (rtol 0.5, atol 0.25); max 9 and 4"


@pytest.mark.parametrize(
    ("iterations", "gap"),
    [((0, 3), "0 and 3"), ((0, 1), ""), ((0, 2), "0 and 2"), ((2,), ""), ((0, 1, 3), "1 and 3"), ((0, 3, 4), "")],
)
def test_iterations_that_nobody_dumped_are_named_where_a_bad_value_may_come_from_them(tmp_path, iterations, gap):
    clean = [("Data", "a", [], [GOOD]), *chain(GOOD, GOOD)]
    bad = [("Data", "a", [], [NAN]), ("Exp", "b", [INF], [INF]), ("Log", "c", [GOOD], [NAN])]
    for iteration in iterations:
        write(tmp_path, bad if iteration == iterations[-1] else clean, iteration=iteration)
    found = dumpsim.first(tmp_path, everything=True)
    gap = f"the iterations between {gap} were not dumped" if gap else ""
    assert [(one.kind, one.op_name, one.note) for one in found] == [
        ("given", "a", gap),
        ("received", "b", "no operator before it in the dump has it" + (f"; {gap}" if gap else "")),
        ("made", "c", ""),
    ]


@pytest.mark.parametrize(
    ("kinds", "named"),
    [([], ""), (["Mul"], "Mul"), (["Mul", "Sin"], "Sin, Mul"), (["Cast", "Mul", "TransData"], "Mul"), (["Cast"], "")],
)
def test_of_a_difference_that_entered_what_ran_before_in_one_dump_alone_is_named(tmp_path, kinds, named):
    """The latest first, without what compilers put in; none of them made the tensor that differs."""
    extra = [(kind, kind, [GOOD * 5], [GOOD * 7]) for kind in kinds]
    ours = [("Exp", "a", [GOOD], [GOOD]), *extra, ("ReLU", "b", [GOOD * 2], [GOOD * 2])]
    golden = [("Exp", "a", [GOOD], [GOOD]), ("ReLU", "b", [GOOD * 3], [GOOD * 3])]
    (finding,) = dumpsim.first(write(tmp_path / "a", ours), write(tmp_path / "b", golden))
    assert (finding.kind, finding.op_name, finding.tensor) == ("received", "b", "input.0")
    assert finding.note == "no operator before it in the dump has it" + (
        f"; ran before it in one dump alone: {named}" if named else ""
    )


def test_ranks_are_searched_in_the_order_of_the_first_dumps_iterations(tmp_path):
    """Matched by order, those of the second dump may have other numbers in one rank than in another."""
    good, bad = chain(GOOD, GOOD), chain(GOOD, GOOD * 2)
    for side, numbers in (("a", {0: (0, 1), 1: (0, 1)}), ("b", {0: (5, 6), 1: (0, 1)})):
        for rank, iterations in numbers.items():
            for at, iteration in enumerate(iterations):
                ops = bad if side == "a" and at == rank else good
                write(tmp_path / side, ops, rank=rank, iteration=iteration)
    found = dumpsim.first(tmp_path / "a", tmp_path / "b", match="order")
    assert said(found) == [("made", "difference", 0, 0, "Add-op0")]


@pytest.mark.parametrize("pair", [False, True])
def test_constants_are_searched_before_the_first_iteration(tmp_path, pair):
    """A bad one ends the search, as a bad iteration does."""
    for side, constant, made in (("a", NAN, NAN), ("b", GOOD, GOOD)):
        write(tmp_path / side, [("Parameter", "w", [], [constant])], iteration=7)
        places = tmp_path / side / "rank_0" / "Net" / "0"
        (places / "7").rename(places / "constants")
        write(tmp_path / side, chain(GOOD, made), iteration=0)
    found = dumpsim.first(tmp_path / "a", tmp_path / "b") if pair else dumpsim.first(tmp_path / "a")
    assert said(found) == [("given", "difference" if pair else "nan", 0, None, "w")]


def test_the_next_command_names_an_iteration_that_both_dumps_have(tmp_path):
    one, two = np.ones(3, np.float32), np.full(3, np.nan, np.float32)
    for name, made in (("a", two), ("b", one)):
        (tmp_path / name).mkdir()
        for number, (io, array) in enumerate((("input", one), ("output", made))):
            file = f"Add.Default_Add-op0.0.0.170000000000000{number}.{io}.0.DefaultFormat.npy"
            np.save(tmp_path / name / file, array)
    a, b = tmp_path / "a", tmp_path / "b"
    assert dumpsim.first(a).maker.next == f"dumpsim show {a} --op Default_Add-op0"
    assert dumpsim.first(a, b).maker.next == f"dumpsim compare {a} {b} --all --op Default_Add-op0"
    c = write(tmp_path / "c", chain(one, one))
    for pair in ((a, c), (write(tmp_path / "d", chain(one, two)), b)):
        assert all("--iteration" not in found.next for found in dumpsim.first(*pair))
