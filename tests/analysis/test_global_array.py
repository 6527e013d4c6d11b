"""Slices of ranks put together by their layouts, and compared with a dump of one device."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dumpsim
from dumpsim.analysis.compareglobal import compare_global
from dumpsim.cli.app import app
from dumpsim.core.errors import BadInputError, UnreadableError
from dumpsim.core.tensorlayout import TensorLayout

RANKS = 4
# operator, io, slot -> device matrix, tensor map, and dimensions that are summed
LAYOUTS = {
    ("MatMul", "input", 0): ((2, 2), (1, 0), ()),
    ("MatMul", "input", 1): ((2, 2), (0, -1), ()),
    ("MatMul", "output", 0): ((2, 2), (1, -1), (0,)),
    ("ReLU", "output", 0): ((2, 2), (1, -1), ()),  # two replicas of each half
    ("Gather", "output", 0): ((2, 2), ((1, 0), -1), ()),  # an axis that two dimensions cut
    ("BiasAdd", "input", 1): ((4,), (-1,), ()),  # four replicas
}


def values():
    """Whole tensors of one step; small integers, so that sums are exact."""
    generator = np.random.default_rng(7)
    x, w = generator.integers(-4, 5, (8, 4)).astype(np.float32), generator.integers(-4, 5, (4, 6)).astype(np.float32)
    return {
        ("MatMul", "input", 0): x,
        ("MatMul", "input", 1): w,
        ("MatMul", "output", 0): x @ w,
        ("ReLU", "output", 0): np.maximum(x @ w, 0),
        ("Gather", "output", 0): np.arange(24, dtype=np.int32).reshape(8, 3),
        ("BiasAdd", "input", 1): np.arange(5, dtype=np.float32),
    }


def save(place, key, array, stamp):
    op, io, slot = key
    place.mkdir(parents=True, exist_ok=True)
    np.save(place / f"{op}.Default_net-Net_{op}-op0.0.0.17000000000000{stamp:02}.{io}.{slot}.DefaultFormat.npy", array)


def slices_of(key, whole):
    """What each rank holds: its part of a tensor, or its term of a sum."""
    matrix, axes, summed = LAYOUTS[key]
    layout = TensorLayout(matrix, axes, whole.shape)
    for rank in range(RANKS):
        part = whole[layout.region(rank)]
        if summed:  # integers that add up
            part = part - 3 if layout.coordinate(rank, summed[0]) else np.full_like(part, 3)
        yield rank, part


@pytest.fixture
def sliced(tmp_path):
    """A dump of four ranks with its manifests, and the same network on one device."""
    for stamp, (key, whole) in enumerate(values().items()):
        for rank, part in slices_of(key, whole):
            save(tmp_path / "many" / "dump" / f"rank_{rank}" / "Net" / "0" / "0", key, part, stamp)
        save(tmp_path / "one" / "rank_0" / "Net" / "0" / "0", key, whole, stamp)
    layouts = [
        {
            "graph_id": 0, "op": f"Default/net-Net/{op}-op0", "io": io, "slot": slot, "device_matrix": matrix,
            "tensor_map": axes, "shape": values()[op, io, slot].shape, "summed": summed,
        }
        for (op, io, slot), (matrix, axes, summed) in LAYOUTS.items()
    ]  # fmt: skip
    for rank in range(RANKS):
        name = "dumpsim-manifest.json" if rank == 0 else f"dumpsim-manifest-rank{rank}.json"
        text = json.dumps({"path": "dump", "rank": rank, "layouts": layouts})
        (tmp_path / "many" / name).write_text(text)
    return tmp_path


def change(sliced, rank, op, io, slot, at, by):
    """Add to one element of one rank's slice."""
    (path,) = (sliced / "many" / "dump" / f"rank_{rank}").rglob(f"{op}.*.{io}.{slot}.DefaultFormat.npy")
    array = np.load(path)
    array[at] += by
    np.save(path, array)


@pytest.mark.parametrize("key", LAYOUTS)
def test_slices_are_put_together(sliced, key):
    op, io, slot = key
    found = dumpsim.open(sliced / "many").filter(op_type=op, io=io, slot=slot).global_array()
    np.testing.assert_array_equal(found, values()[key])
    assert (found.disagreements, found.missing, found.holes) == ((), (), ())
    assert sorted(found.entries) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        found.array[:] = 0


def test_replicas_that_disagree_are_named(sliced):
    change(sliced, 2, "BiasAdd", "input", 1, 3, 0.5)
    dump = dumpsim.open(sliced / "many" / "dump")
    found = dump.filter(op_type="BiasAdd").global_array()
    np.testing.assert_array_equal(found, values()["BiasAdd", "input", 1])  # what most ranks hold
    (odd,) = found.disagreements
    assert (odd.ranks, odd.replicas, odd.elements) == ((2,), (0, 1, 2, 3), 1)
    assert str(odd) == "rank 2 of the replicas (0, 1, 2, 3) (1 elements)"
    change(sliced, 1, "ReLU", "output", 0, (0, 0), 1)  # of two replicas neither is the odd one
    (odd,) = dump.filter(op_type="ReLU").global_array().disagreements
    assert (odd.ranks, odd.replicas) == ((0, 1), (0, 1))


def test_ranks_that_dumped_nothing_are_named(sliced):
    for rank in (1, 3):
        for path in (sliced / "many" / "dump" / f"rank_{rank}").rglob("*.npy"):
            path.unlink()
    dump = dumpsim.open(sliced / "many")
    relu = dump.filter(op_type="ReLU").global_array()  # ranks 0 and 2 have both halves
    assert (relu.missing, relu.holes) == ((1, 3), ())
    np.testing.assert_array_equal(relu, values()["ReLU", "output", 0])
    gather = dump.filter(op_type="Gather").global_array()
    assert gather.holes == ((slice(2, 4), slice(0, 3)), (slice(6, 8), slice(0, 3)))
    assert not np.asarray(gather)[2:4].any()


def test_one_tensor_must_be_chosen(sliced):
    dump = dumpsim.open(sliced / "many")
    with pytest.raises(BadInputError, match="slices of 3 tensors, not of one"):
        dump.filter(op_type="MatMul").global_array()
    with pytest.raises(BadInputError, match="slices of 0 tensors"):
        dump.filter(op_type="Conv2D").global_array()
    with pytest.raises(UnreadableError, match="no manifest and no graph has the layout of"):
        dumpsim.open(sliced / "one").filter(op_type="ReLU").global_array()
    (path,) = (sliced / "many" / "dump" / "rank_3").rglob("ReLU.*.npy")
    np.save(path, np.zeros((8, 6), np.float32))
    with pytest.raises(UnreadableError, match=r"rank 3 dumped \(8, 6\), its layout says \(4, 6\)"):
        dump.filter(op_type="ReLU").global_array()


def test_a_manifest_elsewhere(sliced):
    (moved := sliced / "elsewhere").mkdir()
    for path in (sliced / "many").glob("*.json"):
        path.rename(moved / path.name)
    dump = dumpsim.open(sliced / "many").filter(op_type="ReLU")
    with pytest.raises(UnreadableError, match="no manifest"):
        dump.global_array()
    np.testing.assert_array_equal(dump.global_array([moved / "dumpsim-manifest.json"]), values()["ReLU", "output", 0])
    (moved / "bad.json").write_text("[1]")
    with pytest.raises(UnreadableError, match="is not a manifest"):
        dump.global_array([moved / "bad.json"])


def test_a_sliced_network_agrees_with_one_device(sliced):
    found = compare_global(sliced / "many", sliced / "one")
    assert found.ok
    assert found.counts == {"equal": len(LAYOUTS)}
    assert found.unmatched == ()


def test_an_iteration_of_one_dump_alone_is_told(sliced):
    (place,) = {path.parent for path in (sliced / "one").rglob("*.npy")}
    later = place.with_name("7")
    later.mkdir()
    for path in place.glob("*.npy"):
        (later / path.name).write_bytes(path.read_bytes())
    found = compare_global(sliced / "many", sliced / "one")
    assert (found.ok, found.unmatched) == (True, ("rank 0, iteration 7: in B only",))


@pytest.mark.parametrize("rank", range(RANKS))
def test_the_rank_and_the_operator_of_a_wrong_weight_are_named(sliced, rank):
    """The weight's slice is wrong on one rank; what is computed from it follows."""
    change(sliced, rank, "MatMul", "input", 1, (0, 0), 64)
    change(sliced, rank, "MatMul", "output", 0, (0, 0), 64)
    found = compare_global(sliced / "many", sliced / "one")
    assert not found.ok
    first = found.first
    assert (first.op_name, first.io, first.slot) == ("Default_net-Net_MatMul-op0", "input", 1)
    assert first.ranks == (rank,)  # its replica, rank ^ 2, holds what the device alone has
    assert "replicas disagree: ranks" in first.note
    assert [(row.op_type, row.io) for row in found.findings] == [("MatMul", "input"), ("MatMul", "output")]


def test_the_command_names_operator_and_rank(sliced):
    runner = CliRunner()
    words = ["compare", str(sliced / "many"), str(sliced / "one"), "--global"]
    agreed = runner.invoke(app, words)
    assert (agreed.exit_code, agreed.stdout) == (0, "")
    assert "6 whole tensors compared: 6 equal" in agreed.stderr
    change(sliced, 3, "MatMul", "input", 1, (0, 0), 64)
    found = runner.invoke(app, words)
    assert found.exit_code == 1
    assert "first difference: Default_net-Net_MatMul-op0:input.1 on rank 3" in found.stderr
    (row,) = [line for line in found.stdout.splitlines() if "MatMul" in line]
    assert "differs" in row or "replicas" in row
    rows = [json.loads(line) for line in runner.invoke(app, [*words, "--json"]).stdout.splitlines()]
    assert len(rows) == len(LAYOUTS)
    assert [row["ranks"] for row in rows if row["verdict"] not in ("equal", "close")] == [[3]]


def test_options_that_do_not_go_together_are_refused(sliced):
    words = ["compare", str(sliced / "many"), str(sliced / "one"), "--global"]
    found = CliRunner().invoke(app, [*words, "--rank", "1"])
    assert isinstance(found.exception, BadInputError)
    assert "--rank: cannot be combined with --global" in str(found.exception)
    found = CliRunner().invoke(app, [*words, "--op", "*relu*"])
    assert "1 whole tensors compared: 1 equal" in found.stderr


def test_no_layout_no_comparison(sliced):
    with pytest.raises(BadInputError, match="has the layout of a tensor"):
        compare_global(sliced / "one", sliced / "one")


def lines_of(sliced, *words):
    found = CliRunner().invoke(app, ["compare", str(sliced / "many"), str(sliced / "one"), "--global", *words])
    return found.exit_code, found.stdout.splitlines(), found.stderr.splitlines()


def test_whole_tensors_have_a_row_each(sliced):
    change(sliced, 3, "MatMul", "input", 1, (0, 0), 64)
    code, out, err = lines_of(sliced, "--all")
    assert code == 1
    rows = [line.split("\t") for line in out]
    names = ["iteration", "op_type", "op_name", "io", "slot", "verdict", "ranks", "outside", "count", "shape", "note"]
    assert rows[0] == names
    shapes = {key: f"({','.join(map(str, whole.shape))})" for key, whole in values().items()}
    for row, (op, io, slot) in zip(rows[1:], values(), strict=True):
        bad = (op, io, slot) == ("MatMul", "input", 1)
        size = values()[op, io, slot].size
        assert row[:-1] == [
            "0", op, f"Default_net-Net_{op}-op0", io, str(slot), "replicas" if bad else "equal", "(3)" if bad else "()",
            "0", str(size), shapes[op, io, slot],
        ]  # fmt: skip
        assert bool(row[-1]) is bad
    assert err == [
        "first difference: Default_net-Net_MatMul-op0:input.1 on rank 3",
        "6 whole tensors compared: 5 equal, 1 replicas",
    ]
    code, out, err = lines_of(sliced)
    assert [line.split("\t") for line in out] == [names, rows[2]]
    for rank in (0, 1):  # the two replicas of the upper half
        change(sliced, rank, "ReLU", "output", 0, (0, 0), 1)
    code, out, _ = lines_of(sliced, "--op", "relu")
    assert (code, out[1].split("\t")[5:8]) == (1, ["differs", "(0,1)", "1"])
    assert lines_of(sliced, "--op", "relu", "--tol", "relu:0:1")[0] == 0
    for words in (["--csv", "x"], ["--jobs", "1"], ["--scheduler", "x"], ["--rank", "0"]):
        found = CliRunner().invoke(app, ["compare", "a", "b", "--global", *words])
        assert str(found.exception) == f"{words[0]}: cannot be combined with --global"


def test_whole_tensors_of_ranks_that_dumped_nothing_are_noted(sliced):
    for path in (sliced / "many" / "dump" / "rank_1").rglob("ReLU*.npy"):
        path.unlink()
    rows = [json.loads(line) for line in lines_of(sliced, "--json")[1]]
    assert [(row["op_type"], row["note"]) for row in rows if row["note"]] == [("ReLU", "not dumped by rank 1")]


@pytest.mark.parametrize("count", [1, 8, 9, 11])
def test_tensors_that_are_not_compared_are_listed_up_to_eight(sliced, count):
    """Those without a layout in a manifest."""
    for n in range(count):
        for rank in range(RANKS):
            place = sliced / "many" / "dump" / f"rank_{rank}" / "Net" / "0" / "0"
            save(place, (f"Odd{n:02}", "output", 0), np.zeros(3, np.float32), 50 + n)
    code, out, err = lines_of(sliced)
    said = [f"not compared: Default_net-Net_Odd{n:02}-op0:output.0: no layout" for n in range(min(count, 8))]
    said += [f"not compared: {count - 8} more tensors"] * (count > 8)
    assert (code, out, err) == (0, [], [*said, "6 whole tensors compared: 6 equal"])
    assert lines_of(sliced, "--strict")[0] == 1


@pytest.mark.parametrize(
    ("changes", "ranks", "elements", "kept"),
    [
        # (rank, element, by) of four replicas -> those that differ from the most, differing elements, whose values hold
        ([(2, 3, 1)], (2,), 1, 0), ([(0, 3, 1)], (0,), 1, 1), ([(0, 3, 1), (1, 3, 1)], (0, 1, 2, 3), 1, 0),
        ([(2, 3, 1), (3, 3, 2)], (2, 3), 1, 0), ([(0, 0, 1), (1, 4, 1)], (0, 1), 2, 2),
        ([(0, 0, 1), (1, 1, 1), (2, 2, 1), (3, 3, 1)], (0, 1, 2, 3), 4, 0),
        ([(1, 2, 5), (2, 2, 5), (3, 2, 5)], (0,), 1, 1), ([(3, 0, 1), (3, 1, 1), (3, 2, 1)], (3,), 3, 0),
    ],
)  # fmt: skip
def test_most_of_the_replicas_are_right_and_a_tie_names_all(sliced, changes, ranks, elements, kept):
    for rank, at, by in changes:
        change(sliced, rank, "BiasAdd", "input", 1, at, by)
    dump = dumpsim.open(sliced / "many" / "dump").filter(op_type="BiasAdd")
    found = dump.global_array()
    (odd,) = found.disagreements
    assert (odd.ranks, odd.replicas, odd.elements) == (ranks, (0, 1, 2, 3), elements)
    expected = values()["BiasAdd", "input", 1].copy()
    for rank, at, by in changes:
        expected[at] += by * (rank == kept)
    np.testing.assert_array_equal(found, expected)
    plural = "s" if len(ranks) > 1 else ""
    assert str(odd) == f"rank{plural} {', '.join(map(str, ranks))} of the replicas (0, 1, 2, 3) ({elements} elements)"


def test_a_rank_outside_of_the_layout_is_refused(sliced):
    (path,) = (sliced / "many" / "dump" / "rank_3").rglob("ReLU.*.npy")
    later = sliced / "many" / "dump" / "rank_4" / "Net" / "0" / "0"
    later.mkdir(parents=True)
    (later / path.name).write_bytes(path.read_bytes())
    with pytest.raises(UnreadableError, match="rank 4 is outside of its layout of 4 devices"):
        dumpsim.open(sliced / "many").filter(op_type="ReLU").global_array()


def test_a_slice_of_another_shape_and_the_same_size_is_taken(sliced):
    for path in (sliced / "many" / "dump").rglob("ReLU.*.npy"):
        np.save(path, np.load(path).reshape(2, 12))  # (4, 6) in the layout
    found = dumpsim.open(sliced / "many").filter(op_type="ReLU").global_array()
    np.testing.assert_array_equal(found, values()["ReLU", "output", 0])


def test_runs_of_an_operator_are_tensors_of_their_own(sliced):
    for rank in range(RANKS):
        (path,) = (sliced / "many" / "dump" / f"rank_{rank}").rglob("ReLU.*.npy")
        again = path.with_name(path.name.replace("0.0.17000000000000", "0.0.17000000001000"))
        np.save(again, np.load(path) * 2)
    dump = dumpsim.open(sliced / "many")
    label = "Default_net-Net_ReLU-op0:output.0 (iteration 0)"
    with pytest.raises(BadInputError, match="slices of 2 tensors, not of one") as caught:
        dump.filter(op_type="ReLU").global_array()
    assert f"slices of 2 tensors, not of one: {label}, {label}" in str(caught.value)
    with pytest.raises(BadInputError, match=r"slices of 7 tensors, not of one: .* and 3 more"):
        dump.global_array()


def test_a_whole_tensor_is_an_array_for_numpy(sliced):
    found = dumpsim.open(sliced / "many").filter(op_type="Gather").global_array()
    whole = values()["Gather", "output", 0]
    assert np.asarray(found) is found.array
    for made in (np.array(found), np.asarray(found, np.float64), np.array(found, np.float64)):
        np.testing.assert_array_equal(made, whole)
        made[:] = 0
    np.testing.assert_array_equal(found, whole)
    assert np.asarray(found, np.float64).dtype == np.float64
    assert (found.shape, found.entry.rank) == ((8, 3), 0)


def test_all_facts_of_a_row(sliced):
    """One element of one rank's term is 2 larger, and so is the sum, for which no rank is named."""
    change(sliced, 2, "MatMul", "output", 0, (0, 1), 2)
    found = compare_global(sliced / "many", sliced / "one", tol=["*:0:0.5"])
    (row,) = found.findings
    facts = row.as_dict()
    assert facts.pop("note") == ""
    assert facts == {
        "iteration": 0, "op_type": "MatMul", "op_name": "Default_net-Net_MatMul-op0", "io": "output", "slot": 0,
        "other_name": "Default_net-Net_MatMul-op0", "verdict": "differs", "ranks": (), "outside": 1,
        "count": 48, "shape": (8, 6), "source": "",
    }  # fmt: skip
    assert found.counts == {"equal": len(LAYOUTS) - 1, "differs": 1}
    assert (found.first, found.ok) == (row, False)
    assert compare_global(sliced / "many", sliced / "one", tol=["*:0:2"]).ok
