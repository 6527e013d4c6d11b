"""What a config would make of a dump that is there: counted from files whose sizes are known."""

import json

import dumprun
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


def account(folder, dump, device="ascend", jit_level="O0", **changes):
    config = folder / "plan.json"
    config.write_text(json.dumps(dumprun.config("/big", **changes)))
    return account_of(dump, config, device=device, jit_level=jit_level, release="seed", fields={}, environment={})


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
