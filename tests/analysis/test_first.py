"""The first bad operator of trees in which it is known."""

import csv
import json
import shutil

import numpy as np
import pytest
from rebuild import rebuild
from smalltree import api, chain, write

import dumpsim
from dumpsim.analysis.first import first as analysis_first
from dumpsim.core.errors import BadInputError, UnfinishedWarning, UnreadableError

GOOD = np.ones((2, 2), np.float32)
NAN = np.full((2, 2), np.nan, np.float32)
INF = np.array([[1, np.inf], [1, 1]], np.float32)
LOW = np.array([[1, -np.inf], [1, 1]], np.float32)


def told(search):
    return [(one.kind, one.what, one.op_name, one.tensor, one.basis) for one in search]


def test_a_maker_is_told_from_those_that_pass_it_on(tmp_path):
    found = dumpsim.first(write(tmp_path, chain(GOOD, GOOD, GOOD, NAN, NAN, NAN)))
    assert told(found) == [("made", "nan", "Default_Add-op2", "output.0", "inputs")]
    (finding,) = found
    assert (finding.detail, finding.iteration) == ("4 NaN", 0)
    assert np.isnan(np.load(finding.path)).all()
    assert finding.next == f"dumpsim show {tmp_path} --op Default_Add-op2 --iteration 0"
    assert dumpsim.first(tmp_path, everything=True).passed_on == 2


@pytest.mark.parametrize("one", [{"tol": ["*:1"]}, {"match": "order"}, {"name_map": {"NN.A": "NN.B"}}])
@pytest.mark.parametrize("two", [{"allow": ["*"]}, {"intended": ()}])
def test_what_means_nothing_for_so_many_dumps_is_refused(tmp_path, one, two):
    tree = write(tmp_path, chain(GOOD, GOOD))
    for dumps, arguments, said in (((tree,), one, "is for two dumps"), ((tree, tree), two, "is for one dump")):
        with pytest.raises(BadInputError, match=f"^{next(iter(arguments))}: {said}"):
            dumpsim.first(*dumps, **arguments)


def test_a_clean_dump_has_none(tmp_path):
    found = dumpsim.first(write(tmp_path, chain(GOOD, GOOD, GOOD)))
    assert (len(found), found.maker, found.operators) == (0, None, 2)


def test_an_infinity_that_becomes_nan_has_two_makers(tmp_path):
    write(tmp_path, chain(GOOD, INF, NAN, NAN))
    assert [(one.what, one.op_name) for one in dumpsim.first(tmp_path)] == [("inf", "Default_Add-op0")]
    everything = dumpsim.first(tmp_path, everything=True)
    assert [(one.what, one.op_name) for one in everything] == [("inf", "Default_Add-op0"), ("nan", "Default_Add-op1")]
    assert everything.findings[1].basis == "infinite"


def test_what_comes_from_outside_is_received(tmp_path):
    """A weight that is NaN already; nobody in the dump made it."""
    ops = [("MatMul", "Default/MatMul-op0", [GOOD, NAN], [NAN]), ("Add", "Default/Add-op0", [NAN], [NAN])]
    found = dumpsim.first(write(tmp_path, ops))
    assert told(found) == [("received", "nan", "Default_MatMul-op0", "input.1", "inputs")]
    assert found.maker is None


def test_a_bad_parameter_is_given(tmp_path):
    ops = [("Data", "weight", [], [NAN]), ("MatMul", "Default/MatMul-op0", [GOOD, NAN], [NAN])]
    assert told(dumpsim.first(write(tmp_path, ops))) == [("given", "nan", "weight", "output.0", "inputs")]


def test_intended_infinities(tmp_path):
    """-inf that fills a mask is expected, also where it is added; what makes NaN of it is found."""
    ops = [
        ("MaskedFill", "Default/MaskedFill-op0", [GOOD], [LOW]),
        ("Add", "Default/Add-op0", [GOOD, LOW], [LOW]),
        ("Softmax", "Default/Softmax-op0", [LOW], [GOOD]),
    ]
    write(tmp_path / "good", ops)
    assert not dumpsim.first(tmp_path / "good").findings
    assert [one.op_type for one in dumpsim.first(tmp_path / "good", intended=())] == ["MaskedFill"]
    write(tmp_path / "bad", [*ops[:2], ("Softmax", "Default/Softmax-op0", [LOW], [NAN])])
    assert told(dumpsim.first(tmp_path / "bad")) == [("made", "nan", "Default_Softmax-op0", "output.0", "infinite")]


def test_the_allow_list_is_for_infinities_of_either_sign_and_never_for_nan(tmp_path):
    write(tmp_path, [("Exp", "Default/Exp-op0", [GOOD], [INF]), ("Log", "Default/Log-op0", [GOOD], [NAN])])
    assert [one.op_type for one in dumpsim.first(tmp_path)] == ["Exp"]
    for pattern in ("exp", "*Exp-op0", "*exp-op0:output.0"):
        assert [one.op_type for one in dumpsim.first(tmp_path, allow=[pattern])] == ["Log"]
    assert [one.op_type for one in dumpsim.first(tmp_path, allow=["*"])] == ["Log"]


def test_whole_numbers_are_never_bad_and_halves_are_looked_at(tmp_path):
    whole = np.array([np.iinfo(np.int32).min], np.int32)
    ops = [("Cast", "Default/Cast-op0", [whole], [whole]), ("Mul", "Default/Mul-op0", [GOOD], [INF.astype(np.float16)])]
    assert [one.op_type for one in dumpsim.first(write(tmp_path, ops))] == ["Mul"]


def test_the_earliest_iteration_of_any_rank_is_first(tmp_path):
    """And what an operator between ranks brings was made on another one."""
    good = chain(GOOD, GOOD, GOOD)
    for rank in (0, 1):
        write(tmp_path, good, rank=rank, iteration=0)
    write(tmp_path, [("AllReduce", "Default/AllReduce-op0", [GOOD], [NAN]), *chain(NAN, NAN)], rank=0, iteration=1)
    write(
        tmp_path,
        [*chain(GOOD, NAN, kind="Log"), ("AllReduce", "Default/AllReduce-op0", [NAN], [NAN])],
        rank=1,
        iteration=1,
    )
    found = dumpsim.first(tmp_path)
    assert (found.maker.rank, found.maker.iteration, found.maker.op_type) == (1, 1, "Log")
    assert [(one.rank, one.kind, one.note) for one in found if one.kind != "made"] == [
        (0, "received", "from another rank")
    ]
    assert found.maker.next.endswith("--iteration 1 --rank 1")


def test_an_iteration_is_before_the_next_one_whatever_the_clocks_of_the_ranks_say(tmp_path):
    write(tmp_path, chain(GOOD, NAN), rank=0, iteration=0)
    for iteration, operators in enumerate((chain(GOOD, GOOD), chain(GOOD, NAN, kind="Log"))):
        write(tmp_path, operators, rank=1, iteration=iteration, start_us=1_600_000_000_000_000)
    found = dumpsim.first(tmp_path, everything=True)
    assert [(one.rank, one.iteration, one.op_type) for one in found] == [(0, 0, "Add"), (1, 1, "Log")]


@pytest.mark.parametrize("worst", ["Flatten.Default_flatten", "BiasAdd.Default_fc2"])
def test_outputs_alone_are_judged_by_the_graph(tmp_path, worst):
    """A real tree without the inputs: the graph names who made them."""
    rebuild("lenet_fwd", tmp_path)
    for path in tmp_path.rglob("*.input.*.npy"):
        path.parent.chmod(0o700)
        path.unlink()
    bad = next(tmp_path.rglob(f"{worst}*output.0*.npy"))
    later = [path for path in bad.parent.glob("*.output.*.npy") if _stamp(path) >= _stamp(bad)]
    assert len(later) > 2
    for path in later:
        array = np.load(path)
        path.chmod(0o600)
        if array.dtype.kind == "f" and not path.name.startswith("Parameter"):
            np.save(path, np.full_like(array, np.nan))
    found = dumpsim.first(tmp_path)
    assert (found.maker.op_type, found.maker.basis) == (worst.split(".")[0], "graph")
    assert worst.partition("_")[2] in found.maker.op_name
    assert found.maker.source.rpartition(":")[0].endswith(".py")
    assert found.maker.code


def _stamp(path):
    return int(path.name.split(".")[4])


def test_outputs_alone_without_graph_are_judged_by_order(tmp_path):
    ops = [("Add", f"Default/Add-op{n}", [], [NAN if n > 1 else GOOD]) for n in range(4)]
    assert told(dumpsim.first(write(tmp_path, ops))) == [("made", "nan", "Default_Add-op2", "output.0", "order")]


def test_statistics_are_enough(tmp_path):
    """statistic.csv without any tensor, as real trees have it."""
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    head = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value"
    with open(place / "statistic.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head.split(","))
        for n, (io, largest) in enumerate([("input", 1.0), ("output", 2.0), ("input", 2.0), ("output", "nan")]):
            row = ["Add", f"Default/Add-op{n // 2}", 0, 0, 1700000000000000 + n, io, 0, 4, "float32", "(1,)"]
            writer.writerow([*row, largest, largest])
    assert told(dumpsim.first(tmp_path)) == [("made", "nan", "Default/Add-op1", "output.0", "inputs")]


def test_the_first_difference_of_two_dumps(tmp_path):
    v = [np.full((3, 3), float(n), np.float32) for n in range(6)]
    a = write(tmp_path / "a", chain(*v))
    b = write(tmp_path / "b", chain(*v[:3], v[3] + 1, v[4] + 1, v[5] + 1))
    found = dumpsim.first(b, a)
    assert told(found) == [("made", "difference", "Default_Add-op2", "output.0", "inputs")]
    assert found.maker.detail.startswith("9 of 9 elements")
    assert found.maker.next == f"dumpsim compare {b} {a} --all --op Default_Add-op2 --iteration 0"
    assert np.array_equal(np.load(found.maker.path) - 1, np.load(found.maker.other_path))
    assert not dumpsim.first(b, a, tol=["*:0:1"]).findings


def test_a_difference_that_enters_is_received(tmp_path):
    v = [np.full(3, float(n), np.float32) for n in range(4)]
    a, b = write(tmp_path / "a", chain(*v)), write(tmp_path / "b", chain(v[0] + 9, *(x + 9 for x in v[1:])))
    assert told(dumpsim.first(a, b)) == [("received", "difference", "Default_Add-op0", "input.0", "inputs")]


def test_api_dumps_tell_the_line_and_judge_gradients_by_order(tmp_path):
    """What flows into a call's backward was made by the backward before it."""
    records = [
        ("NN_Linear_0_forward_input.0", GOOD),
        ("NN_Linear_0_forward_output", GOOD),
        ("Torch_sqrt_0_forward_input.0", GOOD),
        ("Torch_sqrt_0_forward_output", GOOD),
        ("Torch_sqrt_0_backward_input", GOOD),
        ("NN_Linear_0_backward_input", NAN),
    ]
    root = api(tmp_path, records)
    stack = '{"torch.sqrt(0) forward": ["File net.py, line 7, in forward, \\n y = torch.sqrt(x)"]}'
    (root / "rank0" / "torch_api_dump_stack.json").write_text(stack)
    (finding,) = dumpsim.first(root)
    assert (finding.kind, finding.op_name, finding.basis) == ("made", "Torch_sqrt_0_backward", "gradient")
    assert (finding.source, finding.code) == ("net.py:7", "y = torch.sqrt(x)")
    assert finding.note == "seen as the gradient that flows into NN_Linear_0_backward"


def test_a_call_that_works_in_place_made_it(tmp_path):
    """API dumps show its input as it left it."""
    records = [("Tensor_div__0_forward_input.0", NAN), ("Tensor_div__0_forward_output", NAN)]
    assert told(dumpsim.first(api(tmp_path, records))) == [
        ("made", "nan", "Tensor_div__0_forward", "output.0", "order")
    ]


def test_files_that_cannot_be_read_are_told_and_do_not_hide_the_rest(tmp_path):
    write(tmp_path, chain(GOOD, GOOD, NAN))
    next(tmp_path.rglob("*Add-op0*output*")).write_bytes(b"\x93NUMPY\x01")
    found = dumpsim.first(tmp_path)
    assert found.maker.op_name == "Default_Add-op1"
    assert len(found.unreadable) == 1
    with pytest.raises(UnreadableError):
        dumpsim.first(tmp_path / "nowhere")


def steps(scale, extra=()):
    """Values that operators hand on; `extra` are put in behind the second one."""
    v = [np.random.default_rng(n).normal(size=(4, 4)).astype(np.float32) for n in range(4)]
    ops = chain(*v[:3], kind="MatMul")
    at = v[2]
    for kind in extra:
        ops.append((kind, f"Default/{kind}-op0", [at], [at * scale]))
        at = at * scale
    return [*ops, ("ReLU", "Default/ReLU-op0", [at], [v[3] * (scale if extra else 1)])]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("extra", [("Mul",), ("Mul", "Exp")])
def test_an_operator_that_one_dump_alone_has_is_named(tmp_path, swapped, extra):
    dumps = [write(tmp_path / "with", steps(1.5, extra)), write(tmp_path / "without", steps(1.5))]
    found = dumpsim.first(*(dumps[::-1] if swapped else dumps))
    assert told(found) == [("made", "difference", "Default_Mul-op0", "Default_ReLU-op0:input.0", "alone")]
    assert found.maker.note == (
        f"{'BA'[swapped]} has no such operator; its result reaches Default_ReLU-op0:input.0"
        + (" through Default_Exp-op0" if len(extra) > 1 else "")
    )
    assert found.skipped == ((f"in {'AB'[swapped]} only", 2 * len(extra)),)


def test_what_compilers_put_in_made_nothing(tmp_path):
    """A cast that one dump alone has hands on what came from elsewhere."""
    v = [np.full((2, 2), float(n), np.float32) for n in range(3)]
    a = write(tmp_path / "a", [("Cast", "Default/Cast-op7", [v[1]], [v[1]]), *chain(v[1], v[1])])
    b = write(tmp_path / "b", chain(v[2], v[2]))
    assert told(dumpsim.first(a, b)) == [("received", "difference", "Default_Add-op0", "input.0", "inputs")]


def test_later_iterations_are_not_to_blame(tmp_path):
    """A weight that no dump shows went bad in iteration 0; what differs in iteration 3 comes from there."""
    v = [np.full(3, float(n), np.float32) for n in range(3)]
    for name, shift in (("a", 0), ("b", 1)):
        write(tmp_path / name, chain(v[0] + shift, v[1] + shift))
        write(tmp_path / name, chain(v[0], v[1] + shift), iteration=3)
    a, b = tmp_path / "a", tmp_path / "b"
    assert [(one.kind, one.iteration) for one in dumpsim.first(a, b)] == [("received", 0)]
    assert [one.kind for one in dumpsim.first(a, b, everything=True)] == ["received", "made"]
    gap = dumpsim.first(write(write(tmp_path / "c", chain(v[0], v[1])), chain(NAN, NAN), iteration=3))
    assert gap.findings[0].note.endswith("the iterations between 0 and 3 were not dumped")


def test_dumps_that_have_nothing_in_common_do_not_agree(tmp_path):
    a = write(tmp_path / "a", [("Add", "Default/Add-op0", [GOOD], [])])
    b = write(tmp_path / "b", [("Add", "Default/Add-op0", [], [NAN])])
    found = dumpsim.first(a, b)
    assert (found.tensors, found.operators, found.findings) == (0, 0, ())
    assert found.skipped == (("in A only", 1), ("in B only", 1))
    other = write(tmp_path / "other", [("Add", "Default/Add-op0", [GOOD], [])], iteration=4)
    assert dumpsim.first(a, other).unmatched == ("rank 0, iteration 0: in A only", "rank 0, iteration 4: in B only")


@pytest.mark.parametrize("swapped", [False, True])
def test_both_orders_of_a_pair_name_the_same_operator(tmp_path, swapped):
    v = [np.full((3, 3), float(n + 1), np.float32) for n in range(5)]
    dumps = [write(tmp_path / "a", chain(*v)), write(tmp_path / "b", chain(*v[:2], v[2] * 1.01, *v[3:]))]
    assert dumpsim.first(*(dumps[::-1] if swapped else dumps)).maker.op_name == "Default_Add-op1"


def test_a_difference_that_shrinks_is_still_told_where_it_began(tmp_path):
    v = [np.full((3, 3), float(n + 1), np.float32) for n in range(5)]
    a = write(tmp_path / "a", chain(*v))
    b = write(tmp_path / "b", chain(v[0], v[1] + 1, v[2] + 0.1, v[3], v[4] + 1))
    assert [one.op_name for one in dumpsim.first(b, a)] == ["Default_Add-op0"]


def test_a_rank_alone_is_compared_with_the_other_dumps_only_rank(tmp_path):
    a = write(tmp_path / "a", chain(GOOD, GOOD), rank=0)
    b = write(tmp_path / "b", chain(GOOD, GOOD * 2), rank=3)
    maker = dumpsim.first(a, b).maker
    assert maker.op_name == "Default_Add-op0"
    assert maker.next.endswith("--op Default_Add-op0 --iteration 0")  # the other one has no rank 0
    assert dumpsim.first(b, b, tol=["*:0:0"]).maker is None
    assert dumpsim.first(write(tmp_path / "c", chain(GOOD, NAN), rank=3)).maker.next.endswith("--iteration 0 --rank 3")


def test_what_is_damaged_is_told_and_the_rest_is_looked_at(tmp_path):
    """A row in the middle of statistic.csv has lost fields; an unfinished last row is reported and costs nothing."""
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    head = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value"
    rows = [f'Add,Default/Add-op{n},0,0,{n + 1},output,0,4,float32,"(1,)",{v},{v}' for n, v in enumerate((1, "nan", 1))]
    (place / "statistic.csv").write_text("\n".join([head, *rows[:2], rows[2][:-9], ""]))
    found = dumpsim.first(tmp_path)
    assert found.maker.op_name == "Default/Add-op1"
    (said,) = found.unreadable
    assert "statistic.csv:4: " in said
    (place / "statistic.csv").write_text("\n".join([head, *rows[:2], rows[2]]))
    with pytest.warns(UnfinishedWarning, match=r"statistic\.csv:4: the last line is unfinished"):
        cut = dumpsim.first(tmp_path)
    assert (cut.maker.op_name, cut.unreadable) == ("Default/Add-op1", ())
    (place / "statistic.csv").write_text("\n".join([head, *rows, ""]))
    whole = dumpsim.first(tmp_path)
    assert (whole.unreadable, whole.tensors) == ((), 2)


def test_a_damaged_graph_leaves_the_tensors(tmp_path):
    rebuild("simple_3steps", tmp_path)
    before = dumpsim.first(tmp_path)
    for path in (tmp_path / "rank_0" / "graphs").iterdir():
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    bad = next(path for path in tmp_path.rglob("*MatMul*output*.npy"))
    array = np.load(bad)
    bad.chmod(0o600)
    np.save(bad, np.full_like(array, np.nan))
    found = dumpsim.first(tmp_path)
    assert not before.findings
    assert found.maker.op_type == "MatMul"
    assert any("graphs" in said for said in found.unreadable)


def test_low_infinities_from_outside_are_a_masks(tmp_path):
    """And do not end the search: what is bad in a later iteration is found."""
    masked = [("Add", "Default/Add-op0", [GOOD, LOW], [LOW]), ("Softmax", "Default/Softmax-op0", [LOW], [GOOD])]
    write(tmp_path, masked)
    write(tmp_path, [*masked, ("Log", "Default/Log-op0", [GOOD], [NAN])], iteration=1)
    assert told(dumpsim.first(tmp_path)) == [("made", "nan", "Default_Log-op0", "output.0", "inputs")]
    assert [one.kind for one in dumpsim.first(tmp_path, intended=())] == ["received"]
    high = write(tmp_path / "high", [("Add", "Default/Add-op0", [GOOD, INF], [INF])])
    assert told(dumpsim.first(high)) == [("received", "inf", "Default_Add-op0", "input.1", "inputs")]


def test_the_run_of_an_operator_in_a_loop_is_told(tmp_path):
    v = [np.full(3, float(n), np.float32) for n in range(5)]
    loop = [("Add", "Default/Add-op0", [v[n]], [v[n + 1]]) for n in range(4)]
    other = [*loop[:2], ("Add", "Default/Add-op0", [v[2]], [v[3] + 1]), ("Add", "Default/Add-op0", [v[3] + 1], [v[4]])]
    found = dumpsim.first(write(tmp_path / "a", loop), write(tmp_path / "b", other))
    assert found.maker.note == "in its run number 3 of the iteration"


def test_a_bad_weight_has_its_name(tmp_path):
    """The graph reads it through a Load node."""
    rebuild("lenet_fwd", tmp_path)
    path = next(tmp_path.rglob("MatMul.*fc3*.input.1.*.npy"))
    array = np.load(path)
    path.chmod(0o600)
    np.save(path, np.where(np.arange(array.size).reshape(array.shape) == 3, np.nan, array))
    (finding,) = dumpsim.first(tmp_path)
    assert (finding.kind, finding.tensor, finding.detail) == ("received", "input.1", "1 NaN")
    assert finding.note == "it is fc3.weight"


def test_a_parameter_that_one_dump_alone_shows_is_given(tmp_path):
    w = [np.full((2, 2), float(n), np.float32) for n in range(3)]
    a = write(
        tmp_path / "a", [("Data", "fc.weight", [], [w[1]]), ("MatMul", "Default/MatMul-op0", [w[0], w[1]], [w[0]])]
    )
    b = write(tmp_path / "b", [("MatMul", "Default/MatMul-op0", [w[0], w[2]], [w[0]])])
    (finding,) = dumpsim.first(a, b)
    assert (finding.kind, finding.op_name, finding.basis) == ("given", "fc_weight", "alone")
    assert finding.note == "only A dumped it; it reaches Default_MatMul-op0:input.1"


@pytest.mark.parametrize("near", [False, True])
def test_a_jump_is_told_from_an_error(tmp_path, near):
    """Two maxima that are a rounding apart change places; of the same inputs it is no excuse."""
    one = np.array([[1.0, 1.0 + 2**-20], [0.5, 0.25]], np.float32)
    other = one[:, ::-1].copy() if near else one
    trees = []
    for name, value, chosen in (("a", one, int(one.argmax())), ("b", other, int(other.argmax()) if near else 0)):
        result = np.zeros(4, np.float32)
        result[chosen] = 1.0
        ops = [("MaxPoolGrad", "Default/MaxPoolGrad-op0", [value[:1], GOOD], [result.reshape(2, 2)])]
        trees.append(write(tmp_path / name, ops))
    (finding,) = dumpsim.first(*trees)
    assert (finding.kind, finding.what, finding.op_type) == ("made", "difference", "MaxPoolGrad")
    assert finding.note == ("tied or nearly tied maxima can choose another element" if near else "")


def test_what_has_neither_values_nor_statistics_is_not_called_good(tmp_path):
    """The info file of a dump of stacks: names, types and shapes."""
    place = tmp_path / "rank0"
    place.mkdir()
    nan = [float("nan")] * 3
    names = ("NN_Linear_0_forward_input.0", "NN_Linear_0_forward_output")
    lines = [[name, 1, [], "torch.float32", [2, 2], nan] for name in names]
    (place / "torch_api_dump_info.pkl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = dumpsim.first(tmp_path)
    assert (found.tensors, found.skipped) == (0, (("neither values nor statistics", 2),))
    other = tmp_path / "other" / "rank0"
    other.mkdir(parents=True)
    shutil.copy(place / "torch_api_dump_info.pkl", other)
    found = dumpsim.first(place.parent / "rank0", other)
    assert (found.tensors, found.skipped) == (0, (("neither values nor common statistics", 2),))


def test_the_average_and_the_norm_tell_too(tmp_path):
    """statistic.csv of a dump that was asked for one of them alone."""
    for column in ("Avg Value", "L2Norm Value"):
        place = tmp_path / column[:3] / "rank_0" / "Net" / "0" / "0"
        place.mkdir(parents=True)
        head = f"Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,{column}"
        rows = [
            f'Log,Default/Log-op0,0,0,{n},{io},0,4,float32,"(2,)",{v}'
            for n, io, v in ((1, "input", 1), (2, "output", "nan"))
        ]
        (place / "statistic.csv").write_text("\n".join([head, *rows]) + "\n")
        assert told(dumpsim.first(tmp_path / column[:3])) == [("made", "nan", "Default/Log-op0", "output.0", "inputs")]


def test_a_difference_that_crept_in_is_told_from_one_that_was_made(tmp_path):
    """The result is beyond the tolerance, the input a little within it."""
    v = [np.random.default_rng(n).normal(size=(8, 8)).astype(np.float32) for n in range(3)]
    a = write(tmp_path / "a", chain(*v))
    for name, before in (("crept", 8e-5), ("made", 1e-7)):
        b = write(tmp_path / name, chain(v[0], v[1] * np.float32(1 + before), v[2] * np.float32(1 + 3e-4)))
        (finding,) = dumpsim.first(b, a)
        assert finding.op_name == ("Default_Add-op0" if name == "crept" else "Default_Add-op1")
        assert finding.note == ("its result is within the tolerance, and what follows is not" * (name == "crept"))
        assert (finding.error_in < 2e-7, finding.verdict) == (True, "suspect")
    assert dumpsim.first(tmp_path / "crept", a, tol=["*:2e-5"]).maker.op_name == "Default_Add-op0"


def test_a_difference_that_grew_little_by_little_is_told_where_it_crossed_the_tolerance(tmp_path):
    v = [np.random.default_rng(n).normal(size=(8, 8)).astype(np.float32) for n in range(6)]
    a = write(tmp_path / "a", chain(*v, kind="Exp"))
    grown = [one * np.float32(1 + 3e-6 * 3**n) for n, one in enumerate(v)]
    (finding,) = dumpsim.first(write(tmp_path / "b", chain(*grown, kind="Exp")), a)
    assert (finding.op_name, finding.verdict) == ("Default_Exp-op3", "ok")
    assert finding.note.startswith("its inputs differ too, within the tolerance (relative 8.1e-05)")


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("call", ["Functional_max_pool2d", "NN_ReLU", "NN_GELU"])
def test_gradients_of_an_api_dump_jump_too(tmp_path, call, near):
    """Not those of calls that got the same, forward and backward."""
    gradient = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    trees = [
        api(
            tmp_path / name,
            [
                ("NN_Conv2d_0_forward_input.0", GOOD),
                ("NN_Conv2d_0_forward_output", GOOD),
                (f"{call}_0_forward_input.0", GOOD + np.float32(1e-6 * (near and name == "b"))),
                (f"{call}_0_forward_output", GOOD),
                (f"{call}_0_backward_input", gradient),
                ("NN_Conv2d_0_backward_input", value),
            ],
        )
        for name, value in (("a", gradient), ("b", gradient[::-1]))
    ]
    (finding,) = dumpsim.first(*trees)
    assert (finding.op_name, finding.basis) == (f"{call}_0_backward", "gradient")
    said = ("max_pool" in call and near, "ReLU" in call and near)
    assert ("tied" in finding.note, "near a step" in finding.note) == said


def test_of_statistics_no_more_is_said_than_they_tell(tmp_path):
    records = [("Torch_add_0_forward_input.0", GOOD), ("Torch_add_0_forward_output", GOOD)]
    a = api(tmp_path / "a", records, npy=False)
    b = api(tmp_path / "b", [records[0], (records[1][0], 2 * GOOD)], npy=False)
    assert told(dumpsim.first(a, b)) == [("made", "difference", "Torch_add_0_forward", "output.0", "statistics")]


def test_a_bad_constant_of_the_graph_is_called_one(tmp_path):
    """Half precision makes infinity of a scale."""
    rebuild("simple_3steps", tmp_path)
    path = next(tmp_path.rglob("BiasAdd.*fc1*.input.2.*.npy"))
    path.chmod(0o600)
    np.save(path, np.array([np.inf], np.float32))
    path.rename(path.with_name(path.name.replace("Int64", "Float32")))
    (finding,) = dumpsim.first(tmp_path)
    assert (finding.kind, finding.tensor, finding.note) == ("received", "input.2", "it is a constant")


def test_what_ran_before_in_one_dump_alone_is_named(tmp_path):
    """No inputs and no graph: an operator that only one dump has may be what made the difference."""
    v = [np.full((2, 2), float(n), np.float32) for n in range(4)]
    extra = ("Mul", "Default/Mul-op0", [], [v[1]])
    a = write(tmp_path / "a", [("Exp", "Default/Exp-op0", [], [v[0]]), extra, ("ReLU", "Default/ReLU-op0", [], [v[2]])])
    b = write(tmp_path / "b", [("Exp", "Default/Exp-op0", [], [v[0]]), ("ReLU", "Default/ReLU-op0", [], [v[3]])])
    maker = dumpsim.first(a, b).maker
    assert (maker.op_name, maker.basis) == ("Default_ReLU-op0", "order")
    assert maker.note == "ran before it in one dump alone: Default_Mul-op0"


@pytest.mark.parametrize(("bad", "note"), [(0, ""), (1, "in its run number 2 of the iteration")])
def test_the_first_run_of_an_operator_has_no_number(tmp_path, bad, note):
    v = [np.ones((2, 2), np.float32), np.full((2, 2), 2.0, np.float32)]
    runs = [[v[0], NAN if n == bad else v[1]] for n in range(2)]
    root = write(tmp_path, [("Exp", "Default/Exp-op0", [got], [made]) for got, made in runs])
    assert dumpsim.first(root).maker.note == note


# -- evidence


def normalised(x, axes, epsilon):
    x = x.astype(np.float64)
    shifted = x - x.mean(axis=axes, keepdims=True)
    return (shifted / np.sqrt((shifted**2).mean(axis=axes, keepdims=True) + epsilon)).astype(np.float32)


def norms(layer_epsilon, moved):
    """A BatchNorm of tiny variance, and a LayerNorm of which what comes in differs a little."""
    rng = np.random.default_rng(0)
    x = (1 + 2e-3 * rng.normal(size=(8, 3, 4, 4)) + moved * 7.5e-8 * rng.normal(size=(8, 3, 4, 4))).astype(np.float32)
    y = (0.05 * rng.normal(size=(8, 16)) * (1 + moved * 1.1e-5 * rng.normal(size=(8, 16)))).astype(np.float32)
    return [
        ("NN_BatchNorm2d_0_forward_input.0", x),
        ("NN_BatchNorm2d_0_forward_output", normalised(x, (0, 2, 3), 1e-5)),
        ("NN_LayerNorm_0_forward_input.0", y),
        ("NN_LayerNorm_0_forward_output", normalised(y, (1,), layer_epsilon)),
    ]


def test_an_operator_is_blamed_for_what_its_input_does_not_explain(tmp_path):
    """BatchNorm amplifies 7.5e-8 by its tiny variance; LayerNorm has another epsilon."""
    golden = api(tmp_path / "b", norms(1e-5, 0))
    found = dumpsim.first(api(tmp_path / "a", norms(3e-5, 1)), golden, tol=["*:1e-5:1e-5"])
    assert found.maker.op_name == "NN_LayerNorm_0_forward"
    assert (found.maker.verdict, found.maker.explained < 1e-4 < 1e-3 < found.maker.error_out) == ("suspect", True)
    ranked = {one.op_type: one for one in found.ranking}
    assert list(ranked) == ["LayerNorm", "BatchNorm2d"]
    batch = ranked["BatchNorm2d"]
    assert (batch.verdict, batch.basis, batch.error_out > 100 * batch.error_in) == ("ok", "function", True)


def test_what_is_amplified_has_no_maker(tmp_path):
    golden = api(tmp_path / "b", norms(1e-5, 0)[:2])
    found = dumpsim.first(api(tmp_path / "a", norms(1e-5, 1)[:2]), golden, tol=["*output*:1e-5:1e-5"])
    assert [(one.kind, one.op_name, one.verdict) for one in found] == [("amplified", "NN_BatchNorm2d_0_forward", "ok")]
    assert found.maker is None


def test_weights_are_missed_only_where_there_are_any(tmp_path):
    def both(name, call):
        value = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
        trees = [
            api(tmp_path / f"{name}_{side}", [(f"{call}_forward_input.0", value), (f"{call}_forward_output", made)])
            for side, made in (("a", value), ("b", value * 2))
        ]
        return dumpsim.first(*trees).maker.note

    assert "does not have its weights" in both("dense", "NN_Linear_0")
    mode = "a new cell of MindSpore is in evaluation mode until net.set_train()"
    assert mode in both("norm", "NN_BatchNorm2d_0")
    assert mode not in both("layernorm", "NN_LayerNorm_0")
    for call in ("NN_GELU_0", "NN_MaxPool2d_0", "NN_CrossEntropyLoss_0", "Functional_linear_0"):
        assert both(call, call) == ""


def backward_chain(scale=1.0, forward=1.0):
    """A product, its loss, whose result is a number and was not dumped, and gradients."""
    g = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)
    return [
        ("NN_Conv2d_0_forward_input.0", GOOD),
        ("NN_Conv2d_0_forward_output", g * 2),
        ("NN_Linear_0_forward_input.0", g * 2),
        ("NN_Linear_0_forward_output", g * 3 * np.float32(forward)),
        ("NN_CrossEntropyLoss_0_forward_input.0", g * 3 * np.float32(forward)),
        ("NN_Linear_0_backward_input", g * np.float32(scale)),
        ("NN_Conv2d_0_backward_input", g * np.float32(5 * scale)),
    ]


def test_a_bug_in_the_loss_names_the_loss(tmp_path):
    a, b = api(tmp_path / "a", backward_chain(4.0)), api(tmp_path / "b", backward_chain())
    found = dumpsim.first(a, b)
    assert told(found) == [
        ("made", "difference", "NN_CrossEntropyLoss_0_forward", "NN_Linear_0_backward:input.0", "gradient")
    ]
    assert found.maker.note == (
        "the first gradient of the step, made by the backward of its result; "
        "seen as the gradient that flows into NN_Linear_0_backward"
    )


@pytest.mark.parametrize("side", "AB")
def test_a_call_whose_backward_one_dump_alone_has_is_named(tmp_path, side):
    """The convolution has no gradient on one side, though the layer after it has one on both."""
    dumps = [api(tmp_path / "a", backward_chain()), api(tmp_path / "b", backward_chain()[:-1])]
    found = dumpsim.first(*(dumps if side == "B" else dumps[::-1]))
    assert told(found) == [("made", "difference", "NN_Conv2d_0_forward", "output.0", "detached")]
    assert found.maker.note == (
        f"{side} has no gradient of its result, the other dump has one; NN_Linear_0, which reads it, has one in both: "
        f"{side} detaches the tensor there or before"
    )


def test_a_number_that_the_script_gave_is_told(tmp_path):
    value = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    trees = []
    for side, axis in (("a", 0), ("b", -1)):
        made = np.exp(value) / np.exp(value).sum(axis, keepdims=True)
        root = api(
            tmp_path / side,
            [
                ("Functional_softmax_0_forward_input.0", value),
                ("Functional_softmax_0_forward_input.1", axis),
                ("Functional_softmax_0_forward_output", made),
            ],
        )
        info = root / "rank0" / "torch_api_dump_info.pkl"
        lines = info.read_text().splitlines()
        lines[1] = lines[1].replace("torch.float32", "<class 'int'>")
        info.write_text("\n".join(lines) + "\n")
        trees.append(root)
    found = dumpsim.first(*trees)
    assert told(found) == [("made", "difference", "Functional_softmax_0_forward", "output.0", "argument")]
    assert found.maker.note == "its argument input.1 is 0 in A and -1 in B"


def test_weights_that_an_optimizer_updated_differently_are_told(tmp_path):
    """All of the first step agrees; the first layer of the second one does not."""
    later = [(name.replace("_0_", "_1_"), value) for name, value in backward_chain(forward=1.01)]
    a = api(tmp_path / "a", [*backward_chain(), *later])
    b = api(tmp_path / "b", [*backward_chain(), *((n.replace("_0_", "_1_"), v) for n, v in backward_chain())])
    maker = dumpsim.first(a, b).maker
    assert (maker.op_name, maker.iteration) == ("NN_Linear_1_forward", 1)
    assert maker.note.endswith(
        "all of iteration 0 agrees, gradients too: look at the optimizer, which updated its weights"
    )


@pytest.mark.parametrize("altered", [False, True])
def test_operators_of_trees_are_recomputed(tmp_path, altered):
    """exp of 80 enlarges a relative error 80 times, which is not a fault of its own."""
    x = np.linspace(79, 81, 16, dtype=np.float32).reshape(4, 4)
    near = x * (1 + np.float32(2e-6))
    made = np.exp(near.astype(np.float64)).astype(np.float32) * np.float32(1.01 if altered else 1)
    golden = np.exp(x.astype(np.float64)).astype(np.float32)
    a = write(tmp_path / "a", [("Exp", "Default/Exp-op0", [near], [made])])
    b = write(tmp_path / "b", [("Exp", "Default/Exp-op0", [x], [golden])])
    (finding,) = dumpsim.first(a, b)
    assert (finding.kind, finding.verdict) == (("made", "suspect") if altered else ("amplified", "ok"))
    (ranked,) = dumpsim.first(a, b).ranking
    assert ranked.basis == "recomputed"
    plain = analysis_first(a, b)
    assert plain.ranking[0].basis == "growth"


def test_of_several_readers_one_that_is_no_sum_made_the_gradient(tmp_path):
    """A residual hands its gradient on; the norm beside it changed it."""
    g = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)

    def records(scale):
        return [
            ("NN_Linear_0_forward_input.0", GOOD),
            ("NN_Linear_0_forward_output", g),
            ("NN_LayerNorm_0_forward_input.0", g),
            ("NN_LayerNorm_0_forward_output", g * 2),
            ("Tensor___add___0_forward_input.0", g),
            ("Tensor___add___0_forward_input.1", g * 2),
            ("Tensor___add___0_forward_output", g * 3),
            ("Tensor___add___0_backward_input", g),
            ("NN_LayerNorm_0_backward_input", g),
            ("NN_Linear_0_backward_input", g * np.float32(scale)),
        ]

    maker = dumpsim.first(api(tmp_path / "a", records(4.0)), api(tmp_path / "b", records(3.0))).maker
    assert (maker.op_name, maker.basis) == ("NN_LayerNorm_0_backward", "gradient")


def test_what_an_operator_read_and_nobody_dumped_is_named(tmp_path):
    """A graph names the weight; its file, like those of all inputs, is missing."""
    rebuild("simple_3steps", tmp_path)
    paths = sorted(tmp_path.rglob("*.npy"))
    for path in paths:
        path.chmod(0o600)
        if ".input." in path.name or path.name.startswith("Parameter"):
            path.unlink()
    (bad,) = [path for path in paths if path.name.startswith("MatMul") and "fc1" in path.name and "/0/" in str(path)][
        -1:
    ]
    np.save(bad, np.full_like(np.load(bad), np.nan))
    finding = dumpsim.first(tmp_path).maker
    assert (finding.kind, finding.basis) == ("made", "graph")
    assert finding.note == "not dumped, and perhaps bad before: x, fc1.weight"


FLAT = [np.full((2, 3), float(n), np.float32) for n in range(5)]


def noted(search):
    return [(one.kind, one.what, one.op_name, one.tensor, one.basis, one.note) for one in search]


def test_what_a_collective_of_several_ranks_brings_is_received(tmp_path):
    for name, result in (("a", FLAT[2]), ("b", FLAT[3])):
        ops = [("AllReduce", "Default/AllReduce-op0", [FLAT[1]], [result]),
               ("Add", "Default/Add-op0", [result], [result + 1])]  # fmt: skip
        for rank in (0, 1):
            write(tmp_path / name, ops, rank=rank)
        write(tmp_path / f"{name}_alone", ops)
    found = dumpsim.first(tmp_path / "a", tmp_path / "b", everything=True)
    said = ("received", "difference", "Default_AllReduce-op0", "output.0", "inputs", "from another rank")
    assert noted(found) == [said, said]
    assert [(one.rank, one.next.split()[-2:]) for one in found] == [(0, ["--rank", "0"]), (1, ["--rank", "1"])]
    (alone,) = dumpsim.first(tmp_path / "a_alone", tmp_path / "b_alone")
    assert (alone.kind, "--rank" in alone.next) == ("made", False)


def test_a_value_from_outside_that_differs_is_given(tmp_path):
    for name, value in (("a", FLAT[1]), ("b", FLAT[2])):
        write(tmp_path / name, [("Data", "w", [], [value]), ("Add", "Default/Add-op0", [value], [value + 1])])
    assert noted(dumpsim.first(tmp_path / "a", tmp_path / "b", everything=True)) == [
        ("given", "difference", "w", "output.0", "order", "")
    ]


def test_an_infinity_from_outside_of_which_nan_is_made_is_received_and_made(tmp_path):
    write(tmp_path, [("Log", "Default/Log-op0", [INF], [NAN])])
    assert noted(dumpsim.first(tmp_path, everything=True)) == [
        ("received", "inf", "Default_Log-op0", "input.0", "inputs", "no operator before it in the dump has it"),
        ("made", "nan", "Default_Log-op0", "output.0", "infinite", ""),
    ]


def calls_of(mul, absolute):
    """Two calls and the gradients that flow into them, the later one first."""
    values = [(f"Torch_{name}_0_forward_{io}", FLAT[1]) for name in ("mul", "abs") for io in ("input.0", "output")]
    return [*values, ("Torch_abs_0_backward_input.0", absolute), ("Torch_mul_0_backward_input.0", mul)]


SEEN = "seen as the gradient that flows into Torch_mul_0_backward"
GRADIENTS = [
    # gradients of one dump and of the other: what is found
    ((NAN, NAN), None,
     ("received", "nan", "Torch_abs_0_backward", "input.0", "inputs", "the first gradient of the step")),
    ((NAN, GOOD), None,
     ("made", "nan", "Torch_abs_0_backward", "Torch_mul_0_backward:input.0", "gradient", SEEN)),
    ((FLAT[2], FLAT[1]), (FLAT[3], FLAT[1]),
     ("made", "difference", "Torch_abs_0_backward", "Torch_mul_0_backward:input.0", "gradient", SEEN)),
]  # fmt: skip


@pytest.mark.parametrize(("own", "other", "said"), GRADIENTS)
def test_gradients_are_followed_backwards(tmp_path, own, other, said):
    dumps = [api(tmp_path / str(n), calls_of(*values)) for n, values in enumerate((own, other)) if values is not None]
    assert noted(dumpsim.first(*dumps, everything=True)) == [said]


def test_of_backward_calls_alone_the_first_gradient_is_received(tmp_path):
    gradients = [calls_of(FLAT[n], FLAT[n])[4:] for n in (2, 3)]
    dumps = [api(tmp_path / str(n), found) for n, found in enumerate(gradients)]
    assert noted(dumpsim.first(*dumps, everything=True)) == [
        ("received", "difference", "Torch_abs_0_backward", "input.0", "inputs", "the first gradient of the step")
    ]


def test_the_next_command_names_the_step(tmp_path):
    for step in (2, 3):
        api(tmp_path / f"step{step}", calls_of(NAN, GOOD))
    (found,) = dumpsim.first(tmp_path, everything=True)
    assert found.next == f"dumpsim show {tmp_path} --op Torch_abs_0_backward --iteration 0 --step 2"


def test_inputs_that_one_dump_alone_has_judge_nothing(tmp_path):
    """Whether the result follows from them cannot be seen; with both it can."""
    for name, inputs, result in (("a", [FLAT[1]], FLAT[2]), ("b", [], FLAT[3]), ("c", [FLAT[1]], FLAT[3])):
        write(tmp_path / name, [("Add", "Default/Add-op0", inputs, [result])])
    assert [one.basis for one in dumpsim.first(tmp_path / "a", tmp_path / "b")] == ["order"]
    assert [one.basis for one in dumpsim.first(tmp_path / "b", tmp_path / "a")] == ["order"]
    assert [one.basis for one in dumpsim.first(tmp_path / "a", tmp_path / "c")] == ["inputs"]


@pytest.mark.parametrize("everything", [False, True])
def test_of_values_from_outside_that_are_bad_alike_the_first_is_told(tmp_path, everything):
    ops = [("Data", "a", [], [NAN]), ("Data", "b", [], [NAN]), ("Data", "c", [], [INF])]
    told_of = [("given", "nan", "a"), ("given", "inf", "c")]
    one = dumpsim.first(write(tmp_path / "one", ops), everything=everything)
    assert [(found.kind, found.what, found.op_name) for found in one] == told_of
    golden = [(kind, name, [], [GOOD]) for kind, name, _, _ in ops]
    two = dumpsim.first(tmp_path / "one", write(tmp_path / "two", golden), everything=everything)
    assert [(found.kind, found.what, found.op_name) for found in two] == [("given", "difference", "a")]


def test_results_that_are_passed_on_are_counted_for_two_dumps(tmp_path):
    v = [np.full((2, 2), float(n + 1), np.float32) for n in range(5)]
    golden = chain(*v, kind="Mystery")
    bad = [v[0], v[1] * 2, v[2] * 2, v[3] * 2, v[4] * 2]
    a = write(tmp_path / "a", chain(*bad, kind="Mystery"))
    b = write(tmp_path / "b", golden)
    found = dumpsim.first(a, b, everything=True)
    assert [(one.kind, one.op_name) for one in found] == [("made", "Default_Mystery-op0")]
    assert (found.passed_on, found.operators, found.tensors) == (3, 4, 8)
