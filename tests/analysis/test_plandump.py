"""What a config would make of a dump that is there: counted from files whose sizes are known."""

import json

import dumprun
import ml_dtypes
import numpy as np
import pytest
from binfile import bin_bytes, item
from hypothesis import given, settings
from hypothesis import strategies as st
from smalltree import api, write

from dumpsim.analysis.plandump import account_of
from dumpsim.analysis.projection import OTHER, project
from dumpsim.core.errors import BadInputError, DumpConfigError, UnreadableError

X = np.zeros((2, 3), np.float32)


def npy_bytes(count, size=4):
    """A file of npy: a head of 128 bytes and the elements."""
    return 128 + count * size


def account(folder, dump, device="ascend", jit_level="O0", release="seed", fields=None, **changes):
    config = folder / "plan.json"
    config.write_text(json.dumps(dumprun.config("/big", **changes)))
    return account_of(
        dump, config, device=device, jit_level=jit_level, release=release, fields=fields or {}, environment={}
    )


@pytest.fixture
def dump(tmp_path):
    """Two iterations on two ranks of an operator with two inputs, and one without."""
    for rank in (0, 1):
        for iteration in (0, 2):
            ops = [("Add", "Default/Add-op0", [X, X], [X]), ("Data", "w", [], [np.zeros(5 + rank, np.float16)])]
            write(tmp_path / "dump", ops, rank=rank, iteration=iteration)
    graphs = tmp_path / "dump" / "rank_1" / "graphs"
    graphs.mkdir()
    (graphs / "ms_output_0.ir").write_bytes(b"x" * 77)
    return tmp_path / "dump"


def steps(one, name=""):
    return dict(one["counts"][name]["steps"])


def test_files_that_the_config_asks_for_are_counted(tmp_path, dump):
    first, second = account(tmp_path, dump, saved_data="tensor", iteration="all", support_device=[0, 15])
    add = {"files": 3, "bytes": 3 * npy_bytes(6)}
    assert steps(first) == {
        **{number: {"Add": add, "Data": {"files": 1, "bytes": npy_bytes(5, 2)}} for number in (0, 2)},
        None: {OTHER: {"files": 0, "bytes": 0}},
    }
    assert steps(second) == {
        **{number: {"Add": add, "Data": {"files": 1, "bytes": npy_bytes(6, 2)}} for number in (0, 2)},
        None: {OTHER: {"files": 1, "bytes": 77}},
    }
    assert (first["rank"], second["rank"], first["measured"], first["devices"]) == (0, 1, [0, 2], [0, 15])
    assert (first["profile"], first["chip"], first["path"]) == ("seed/ascend_o0", "ascend", "/big")
    assert (first["trigger"], first["estimate"], first["iteration"]["every"]) == ("every", "", True)
    assert first["dump"]["notes"] == ["counted from a dump: what that dump left out is not in the plan"]
    assert first["counts"][""]["skipped"] == {}
    outputs = {"Add": {"files": 1, "bytes": npy_bytes(6)}, "Data": {"files": 1, "bytes": npy_bytes(5, 2)}}
    assert steps(first, "input_output: 2 (outputs only)")[0] == outputs
    inputs = account(tmp_path, dump, saved_data="tensor", input_output=1)[0]
    assert steps(inputs)[0] == {"Add": {"files": 2, "bytes": 2 * npy_bytes(6)}}
    for name, found in (("Default/Add-op0", set()), ("Default_Add-op0", {"Add"})):  # as a dump without graphs has it
        chosen = account(tmp_path, dump, saved_data="tensor", dump_mode=1, kernels=[name])[0]
        assert set(steps(chosen).get(0, ())) == found
        note = "no tensor is of a kernel that the config names; without graphs, a dump does not tell scopes"
        assert (note in chosen["dump"]["notes"]) is not bool(found)


def test_all_devices_of_a_server_may_dump(tmp_path, dump):
    one, _ = account(tmp_path, dump, device="cpu", saved_data="tensor", support_device=[])
    assert one["devices"] == list(range(16))


def test_samples_are_as_long_as_asked(tmp_path, dump):
    for sample, counts in ((4, (4, 4)), (5, (5, 5)), (100, (6, 5))):
        one, _ = account(tmp_path, dump, saved_data="tensor", sample_mode=1, sample_num=sample)
        assert steps(one)[0] == {
            "Add": {"files": 3, "bytes": 3 * npy_bytes(counts[0])},
            "Data": {"files": 1, "bytes": npy_bytes(counts[1], 2)},
        }


def test_rows_of_statistics_have_one_head_a_directory(tmp_path, dump):
    one, _ = account(tmp_path, dump, saved_data="statistic", statistic_category=["max"])
    found = steps(one)[0]
    assert (found["Add"]["files"], found["Data"]["files"]) == (1, 0)
    assert one["estimate"] == "rows of statistics are an estimate"
    both, _ = account(tmp_path, dump, saved_data="full", statistic_category=["max"])
    assert steps(both)[0]["Add"] == {"files": 4, "bytes": found["Add"]["bytes"] + 3 * npy_bytes(6)}


def test_a_dump_without_inputs_says_so(tmp_path):
    tree = write(tmp_path / "dump", [("Add", "Default/Add-op0", [], [X])])
    note = "the dump has no inputs, and the config asks for them"
    assert note in account(tmp_path, tree, saved_data="tensor")[0]["dump"]["notes"]
    assert note not in account(tmp_path, tree, saved_data="tensor", input_output=2)[0]["dump"]["notes"]


def test_what_no_plan_follows_from_is_refused(tmp_path, dump):
    with pytest.raises(UnreadableError, match=r"none\.json"):
        account_of(dump, tmp_path / "none.json", device="cpu", jit_level="O0", release="seed", fields={})
    with pytest.raises(
        BadInputError, match="the dump is of single kernels, which --jit-level O2 does not write: give --jit-level O0"
    ):
        account(tmp_path, dump, jit_level="O2")
    calls = api(tmp_path / "api", [("Torch_abs_0_forward_input.0", X), ("Torch_abs_0_forward_output", X)])
    with pytest.raises(BadInputError, match="an API dump has calls, not operators: plan from the script"):
        account(tmp_path, calls, saved_data="tensor")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "Add.a.1.2.1700000000000000").write_bytes(bin_bytes([], [item(X)]))
    with pytest.raises(BadInputError, match="the dump is of whole graphs, which --jit-level O0 does not write"):
        account(tmp_path, tmp_path / "bin", saved_data="tensor")
    with pytest.raises(DumpConfigError):
        account(tmp_path, dump, iteration="x")


def test_the_sizes_of_sampled_types_are_those_of_the_machine(tmp_path):
    ops = [("Add", "Default/Add-op0", [], [np.zeros((3, 0), np.float32), np.zeros(7, np.int8), np.array(1.0)])]
    tree = write(tmp_path / "dump", ops)
    one, *_ = account(tmp_path, tree, saved_data="tensor", sample_mode=1, sample_num=3)
    assert steps(one)[0]["Add"] == {"files": 2, "bytes": npy_bytes(3, 1) + npy_bytes(1, 8)}


HEAD = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape"  # [spec mindspore 4.1]


def test_a_row_of_statistics_is_as_long_as_its_names_and_cells(tmp_path, dump):
    """A number has nine characters, most often: -0.123457; a digest as many as it has."""
    for names, title, cells in (
        (["max"], "Max Value", "-0.123457"),
        (["max", "md5"], "Max Value,MD5", f"-0.123457,{'f' * 32}"),
        (["hash:sha1", "l2norm"], "SHA1,L2Norm Value", f"{'f' * 40},-0.123457"),
    ):
        one, other = account(tmp_path, dump, release="2.10", saved_data="statistic", statistic_category=names)
        head = f"{HEAD},{title}\n"
        add = [f"Add,Default_Add-op0,0,0,1700000000000000,{io},{slot},24,float32,\"(2,3)\",{cells},\n"
               for io, slot in (("input", 0), ("input", 1), ("output", 0))]  # fmt: skip
        assert steps(one)[0]["Add"] == {"files": 1, "bytes": len(head) + sum(map(len, add))}
        for account_of_rank, size, count in ((one, 10, 5), (other, 12, 6)):
            data = f'Data,w,0,0,1700000000000000,output,0,{size},float16,"({count})",{cells},\n'
            assert steps(account_of_rank)[0]["Data"] == {"files": 0, "bytes": len(data)}


@pytest.fixture
def whole(tmp_path):
    """A dump of whole graphs: one file of an operator with two inputs and two outputs, and one without elements."""
    for step in (3, 5):
        place = tmp_path / "whole" / str(step) / "20231114221320" / "2" / "model" / "1" / "0"
        place.mkdir(parents=True)
        y = np.zeros(4, np.int8)
        (place / "Add.a.1.2.1700000000000000").write_bytes(bin_bytes([item(X), item(X)], [item(y), item(y)]))
        (place / "Sub.b.1.2.1700000000000001").write_bytes(bin_bytes([], [item(np.zeros((0, 3), np.float32))]))
    (tmp_path / "whole" / "acl_dump_2.json").write_text("12345")
    return tmp_path / "whole"


def test_a_bin_file_is_counted_once_with_what_it_keeps(tmp_path, whole):
    options = {"jit_level": "O2", "file_format": "bin", "iteration": "all", "saved_data": None}
    one, *rest = account(tmp_path, whole, **options)
    y = np.zeros(4, np.int8)
    both = len(bin_bytes([item(X), item(X)], [item(y), item(y)]))
    assert (rest, one["rank"], one["measured"]) == ([], 2, [3, 5])
    assert steps(one) == {
        **{step: {"Add": {"files": 1, "bytes": both}, "Sub": {"files": 0, "bytes": 0}} for step in (3, 5)},
        None: {OTHER: {"files": 1, "bytes": 5}},
    }
    inputs, outputs = (account(tmp_path, whole, **options, input_output=number)[0] for number in (1, 2))
    assert steps(inputs)[3] == {"Add": {"files": 1, "bytes": len(bin_bytes([item(X), item(X)]))}}
    assert steps(outputs)[3]["Add"] == {"files": 1, "bytes": len(bin_bytes([], [item(y), item(y)]))}
    assert steps(one, "input_output: 2 (outputs only)") == steps(outputs)


def test_npy_files_of_a_whole_graph_have_the_types_and_shapes_of_the_profile(tmp_path):
    """bfloat16 becomes float32, and a layout that of the host only for four dimensions. [spec mindspore 5.6]"""
    place = tmp_path / "whole" / "3" / "20231114221320" / "2" / "model" / "1" / "0"
    place.mkdir(parents=True)
    half = np.zeros(7, ml_dtypes.bfloat16)
    block = np.zeros((1, 1, 2, 3, 16), np.float16)
    nz = np.zeros((1, 1, 16, 16), np.float16)
    (place / "Add.a.1.2.1700000000000000").write_bytes(bin_bytes([], [item(half)]))
    (place / "Conv.c.1.2.1700000000000000").write_bytes(
        bin_bytes([], [item(block, format="NC1HWC0", original_shape=(1, 5, 2, 3))])
    )
    (place / "MatMul.m.1.2.1700000000000000").write_bytes(
        bin_bytes([], [item(nz, format="FRACTAL_NZ", original_shape=(3, 5))])
    )
    (place / "Pack.p.1.2.1700000000000000").write_bytes(bin_bytes([], [item(b"ab", dtype="int4", shape=(4,))]))
    for fields, sizes in (
        ({}, {"Add": (7, 4), "Conv": (30, 2), "MatMul": (256, 2)}),
        ({"bfloat16": "raw"}, {"Add": (7, 2), "Conv": (30, 2), "MatMul": (256, 2)}),
        ({"host_layout": "always"}, {"Add": (7, 4), "Conv": (30, 2), "MatMul": (15, 2)}),
    ):
        one, *_ = account(
            tmp_path, tmp_path / "whole", jit_level="O2", fields=fields, iteration="all", saved_data=None,
            file_format="npy",
        )  # fmt: skip
        found = steps(one)[3]
        assert {kind: found[kind] for kind in sizes} == {
            kind: {"files": 1, "bytes": npy_bytes(*size)} for kind, size in sizes.items()
        }
        assert found["Pack"] == {"files": 1, "bytes": 0}  # npy has no such type


@pytest.mark.parametrize(("variable", "name"), [("1", "ascend_ge"), ("0", "ascend_o2"), (None, "ascend_o2")])
def test_a_dump_of_whole_graphs_is_by_the_options_of_ge_on_demand(tmp_path, whole, variable, name):
    (config := tmp_path / "plan.json").write_text(json.dumps(dumprun.config("/big", saved_data=None)))
    environment = {} if variable is None else {"ENABLE_MS_GE_DUMP": variable}
    one, *_ = account_of(whole, config, jit_level="O2", environment=environment)
    assert (one["profile"], one["chip"]) == (f"seed/{name}", "ascend")


def test_what_belongs_to_no_operator_is_counted_for_its_rank(tmp_path, dump):
    rank = dump / "rank_0"
    for name, size in (("execution_order", 3), (".dump_metadata", 5), ("graphs", 7), ("elsewhere", 11)):
        (rank / name).mkdir()
        (rank / name / "file").write_bytes(b"x" * size)
        (rank / name / "link").symlink_to(rank / name / "file")
        (rank / name / "folder").mkdir()
    (dump / "acl_dump_0.json").write_bytes(b"x" * 13)
    (dump / "acl_dump_2.json").write_bytes(b"x" * 17)
    (dump / "acl_dump_1.json").symlink_to(dump / "acl_dump_0.json")
    one, other = account(tmp_path, dump, saved_data="tensor")
    assert steps(one)[None] == {OTHER: {"files": 4, "bytes": 3 + 5 + 7 + 13}}
    assert steps(other)[None] == {OTHER: {"files": 1, "bytes": 77}}
    (alone,) = account(tmp_path, rank, saved_data="tensor")  # the directory of the rank itself
    assert steps(alone)[None] == {OTHER: {"files": 3, "bytes": 3 + 5 + 7}}


def test_a_config_that_dumps_nothing_is_refused_unless_another_device_dumps(tmp_path, dump):
    with pytest.raises(DumpConfigError, match="nothing is dumped: ") as caught:
        account(tmp_path, dump, saved_data="tensor", support_device=[99])
    assert caught.value.where == str(tmp_path / "plan.json")
    one, _ = account(tmp_path, dump, saved_data="tensor", support_device=[5, 15, 16])
    assert one["devices"] == [5, 15]
    alone, _ = account(tmp_path, dump, saved_data="tensor", support_device=[5])
    assert alone["devices"] == [5]
    assert "input_output: 2 (outputs only)" in one["counts"].keys() & alone["counts"].keys()
    with pytest.raises(BadInputError, match=r"marks of set_dump are not in a dump: plan from the script") as caught:
        account(tmp_path, dump, saved_data="tensor", dump_mode=2)
    assert (caught.value.where, caught.value.code) == ("--dump", "DS-RUN-012")
    with pytest.raises(UnreadableError) as caught:
        account_of(dump, tmp_path / "none.json")
    assert (caught.value.where, caught.value.code) == (str(tmp_path / "none.json"), "DS-RUN-006")
    place = tmp_path / "npy" / "3" / "20231114221320" / "2" / "model" / "1" / "0"
    place.mkdir(parents=True)
    np.save(place / "Add.a.1.2.1700000000000000.output.0.ND.npy", X)
    with pytest.raises(BadInputError, match="bin files have device layouts, which only a dump of bin files has"):
        account(tmp_path, tmp_path / "npy", jit_level="O2", saved_data=None, file_format="bin")


def written_by(iteration, measured, counted, once, steps):
    """The files and bytes of a run by types, step by step."""
    total = {}

    def add(amounts, leave=()):
        for kind, (files, size) in amounts.items():
            if kind not in leave:
                known = total.get(kind, (0, 0))
                total[kind] = (known[0] + files, known[1] + size)

    add(once)
    last = max((number for number in measured if number in counted), default=None)
    chosen = [n for n in range(steps) if iteration["every"] or any(a <= n <= b for a, b in iteration["ranges"])]
    for number in chosen:
        if number in measured:
            add(counted.get(number, {}))
        elif last is not None:
            add(counted[last], leave=(OTHER,))
            if OTHER in counted[last]:  # a line for each graph: the number of the step and a newline
                add({OTHER: (0, counted[last][OTHER][1] // (len(str(last)) + 1) * (len(str(number)) + 1))})
    return total, len(chosen), any(number not in measured for number in chosen)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_projection_is_the_sum_over_all_steps(data):
    ranges = data.draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 130)), max_size=3))
    every = data.draw(st.booleans())
    measured = sorted(data.draw(st.sets(st.integers(0, 12), max_size=4)))
    counted = {}
    for number in measured:
        if data.draw(st.integers(0, 3)):
            counted[number] = {"Add": (data.draw(st.integers(0, 3)), data.draw(st.integers(0, 99)))}
            if data.draw(st.booleans()):
                counted[number][OTHER] = (0, data.draw(st.integers(0, 3)) * (len(str(number)) + 1))
    once = {OTHER: (2, 70)} if data.draw(st.booleans()) else {}
    iteration = {"every": every, "ranges": ranges}
    steps = data.draw(st.none() | st.integers(0, 120))

    def amounts(of):
        return {kind: {"files": files, "bytes": size} for kind, (files, size) in of.items()}

    rows = [[number, amounts(of)] for number, of in counted.items()] + ([[None, amounts(once)]] if once else [])
    found = project({"iteration": iteration, "measured": measured, "counts": {"x": {"steps": rows}}}, "x", steps)
    if steps is None:
        ends = measured if every else [high for low, high in ranges if low <= high]
        steps = max(ends, default=-1) + 1
    total, chosen, estimated = written_by(iteration, measured, counted, once, steps)
    assert {kind: amount for kind, amount in found.types.items() if amount != (0, 0)} == {
        kind: amount for kind, amount in total.items() if amount != (0, 0)
    }
    assert (found.steps, found.estimated) == (chosen, estimated)
    assert (found.files, found.bytes) == tuple(sum(amount[at] for amount in total.values()) for at in (0, 1))
    assert found.once == once.get(OTHER, (0, 0))
    last = counted[max(counted)].values() if counted else ()
    assert found.step == tuple(sum(amount[at] for amount in last) for at in (0, 1))


def test_an_endless_range_is_as_long_as_the_run():
    endless = {"every": False, "ranges": [[0, 2**63], [1, 4]]}
    account = {"iteration": endless, "measured": [0], "counts": {"": {"steps": [[0, {}]]}}}
    assert project(account).steps == 5
    assert project(account, steps=9).steps == 9
    assert project({**account, "iteration": {**endless, "script": True}}).steps == 1
