"""Parts of the analysis by themselves: damaged files, what is said of them, and numbers that follow by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from smalltree import api, chain, write

import dumpsim
from dumpsim.analysis import remark
from dumpsim.analysis.align import _fingerprint
from dumpsim.analysis.amplify import _NORMS, _dtype
from dumpsim.analysis.apicompare.difference import mean_max_min
from dumpsim.analysis.choice import missing, ranges
from dumpsim.analysis.convert import Job, _in_order, _is_large, _reason, convert
from dumpsim.analysis.operator import operators, squeezed
from dumpsim.analysis.overflow import _ids
from dumpsim.analysis.pairing import _side_by_side
from dumpsim.analysis.projection import OTHER, project
from dumpsim.analysis.spread import WORTH, spread, worth
from dumpsim.core.errors import BadInputError, UnreadableError

V = [np.full((2, 3), float(n), np.float32) for n in range(4)]


@pytest.fixture
def tree(tmp_path):
    return write(tmp_path / "dump", chain(*V))


def broken(tree):
    """The entries of a tree whose files cannot be read."""
    entries = list(dumpsim.open(tree))
    for path in tree.rglob("*.npy"):
        path.write_bytes(b"\x93NUMPY")
    return entries


def test_objects_say_what_they_hold(tree, tmp_path):
    dump = dumpsim.open(tree)
    assert repr(dump) == f"<DumpSet {tree}: 6 tensors of 3 operators, rank 0, iteration 0>"
    assert repr(dump.filter(op="add-op1")).endswith("2 tensors of 1 operators, rank 0, iteration 0 (filtered)>")
    assert repr(operators(dump)[0]) == "<Add Default_Add-op0, 1 inputs, 1 outputs>"
    assert repr(dumpsim.compare(tree, tree)) == "<Comparison of 6 tensors: 6 equal>"
    other = write(tmp_path / "other", [("ReLU", "Default/ReLU-op0", [V[1]], [V[1]]),
                                       ("ReLU", "Default/ReLU-op1", [V[1]], [V[2]])])  # fmt: skip
    replayed = dumpsim.replay(other)
    assert (len(replayed), repr(replayed)) == (2, "<Replay of 2 operators: 1 ok, 1 suspect>")
    csv = next(iter(tree.rglob("*.npy"))).parent / "statistic.csv"
    csv.write_text("no header of a statistic\n1,2\n")
    assert repr(dumpsim.open(tree)) == f"<DumpSet {tree}: damaged>"


def test_progress_is_told_with_every_tensor(tree, tmp_path):
    seen = []
    dumpsim.compare(tree, tree, progress=lambda *counts: seen.append(counts))
    assert seen == [(n, 6) for n in range(1, 7)]
    other = write(tmp_path / "other", [("ReLU", f"Default/ReLU-op{n}", [V[n]], [V[n]]) for n in range(3)])
    seen.clear()
    dumpsim.replay(other, progress=lambda *counts: seen.append(counts))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_files_that_cannot_be_read_have_no_shape_and_no_numbers(tree):
    entries = broken(tree)
    assert squeezed(entries[0]) == ()
    assert _dtype(entries[0]) == _dtype(None) == ""
    assert all(math.isnan(number) for number in _fingerprint(operators(entries)[0]))


def slot(number, *shape):
    return SimpleNamespace(slot=number, shape=shape)


def test_tensors_are_paired_by_slot_and_then_by_shape():
    left = [slot(0, 2, 3), slot(1, 4), slot(2, 1, 5), slot(3, 9)]
    right = [slot(5, 5), slot(0, 7), slot(6, 8), slot(7, 4)]
    found = [(pair.left and pair.left.slot, pair.right and pair.right.slot) for pair in _side_by_side(left, right)]
    assert found == [(0, 0), (1, 7), (2, 5), (3, None), (None, 6)]


WORDS = [f"op_{n:02d}" for n in range(12)]


@pytest.mark.parametrize(
    ("name", "asked", "there", "said"),
    [
        ("where", len, [], "no tensor passes the test"),
        ("rank", 3, [], "no rank 3; the dump counts none"),
        ("op", "x", [], "no operator called 'x'; the dump names none"),
        ("rank", 3, [5], "no rank 3; there is 5"), ("rank", 3, [1, 0, 2, 7], "no rank 3; there are 0-2, 7"),
        ("op_type", "Ad", ["Add"], "no operator of type 'Ad'; there is Add"),
        ("op_type", "Ad", ["Mul", "Add"], "no operator of type 'Ad'; there are Add, Mul (did you mean 'Add'?)"),
        ("op_type", "zzzz", ["Mul", "Add"], "no operator of type 'zzzz'; there are Add, Mul"),
        ("dtype", "fp32", ["float32", "int8"], "no dtype 'fp32'; there are float32, int8 (did you mean 'float32'?)"),
    ],
)  # fmt: skip
def test_what_there_is_instead(name, asked, there, said):
    assert missing(name, asked, there) == said


def test_of_many_the_nearest_are_told_and_of_types_first_what_is_meant():
    said = missing("op", "*op_07*", WORDS)
    assert said.startswith("no operator called '*op_07*'; nearest of 12: op_07, ")
    kinds = ["bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint16", "uint8"]
    shown = missing("dtype", "fp32", kinds).partition(f"nearest of {len(kinds)}: ")[2].split(", ")
    assert shown[0] == "float32"
    assert len(set(shown)) == len(shown) == len(said.rpartition(": ")[2].split(", "))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([4], "4"), ([4, 4, 5], "4-5"), ([3, 1, 2, 7, 9, 10], "1-3, 7, 9-10"),
     (range(0, 16, 2), "0, 2, 4, 6, 8, 10, 12, 14"), (range(0, 20, 2), "0, 2, 4, 6, 8, 10, 12, 14 and 2 more")],
)  # fmt: skip
def test_numbers_in_a_row_are_ranges(numbers, text):
    assert ranges(numbers) == text


X = np.random.default_rng(5).standard_normal((2, 4, 3, 5))
AXES = {"batchnorm": (0, 2, 3), "batchnormalization": (0, 2, 3), "instancenorm": (2, 3), "instancenorm2d": (2, 3),
        "groupnorm": (1, 2, 3), "layernorm": (3,)}  # fmt: skip


@pytest.mark.parametrize("name", _NORMS)
def test_a_normalisation_has_mean_0_and_variance_1_and_one_of_roots_keeps_the_mean(name):
    found = _NORMS[name](X * 7 + 3)
    assert found.shape == X.shape
    if name == "rmsnorm":
        assert np.allclose((found**2).mean(-1), 1, atol=1e-5)
        assert np.allclose(found / (X * 7 + 3), (found / (X * 7 + 3))[..., :1])
    else:
        assert np.allclose(found.mean(AXES[name]), 0, atol=1e-9)
        assert np.allclose(found.var(AXES[name]), 1, atol=1e-5)
    assert np.isfinite(_NORMS[name](np.zeros((2, 2, 2, 2)))).all()


def test_an_empty_array_has_no_mean():
    assert all(math.isnan(value) for value in mean_max_min(np.zeros(0, np.float32)))
    assert mean_max_min(np.float32([1, 3, -1])) == (1.0, 3.0, -1.0)


def test_names_of_files_tell_the_task(tree):
    npy = "Add.Default_Add-op0.3.7.1700000000000001.input.0.DefaultFormat.npy"
    assert _ids(npy) == ((3, 7), (), "Add", "Default_Add-op0")
    assert _ids("Add.Add_1.3.5.1700000000000000")[0] == (3, 5)
    assert _ids("readme.txt") is None


def test_a_line_for_each_step_grows_with_its_number():
    """Steps 8 and 9 were counted; up to 11 two lines a step: 2 * (1 + 1) bytes, then 2 * (2 + 1)."""
    amount = {"Add": {"files": 1, "bytes": 10}, OTHER: {"files": 0, "bytes": 2 * (1 + 1)}}
    account = {"iteration": {"every": False, "ranges": [[8, 11]]}, "measured": [8, 9],
               "counts": {"": {"steps": [[8, amount], [9, amount]]}}}  # fmt: skip
    found = project(account)
    assert (found.files, found.bytes, found.steps, found.estimated) == (4, 40 + 2 * 2 * 2 + 2 * 3 * 2, 4, True)
    assert found.types[OTHER] == (0, 20)
    assert project(account, steps=10).estimated is False


def test_processes_pay_for_many_tensors_or_large_files(tmp_path):
    path = tmp_path / "large"
    with open(path, "wb") as file:
        file.truncate(WORTH[1] - 1)
    assert [worth(count, []) for count in (WORTH[0] - 1, WORTH[0])] == [False, True]
    assert worth(1, [None, path, tmp_path / "missing"]) is False
    (tmp_path / "more").write_bytes(b"1")
    assert worth(1, [path, tmp_path / "more"]) is True
    assert list(spread(len, ["a", "bc"])) == [1, 2]
    with pytest.raises(BadInputError, match="jobs: 0 processes; allowed: 1 or more"):
        spread(len, [], jobs=0)


def test_why_a_file_was_not_converted_is_one_line(tmp_path):
    job = SimpleNamespace(path="d/Add.a.1.2.3")
    for error, text in (
        (MemoryError(), "not enough memory"), (PermissionError(13, "Permission denied", "x"), "Permission denied"),
        (OSError("odd"), "odd"), (UnreadableError("is cut", where="d/Add.a.1.2.3: byte 8"), "byte 8: is cut"),
        (UnreadableError("is cut", where="d/Add.a.1.2.3"), "is cut"),
        (BadInputError("is there already", where="d/Add.a.1.2.3"), "is there already"),
        (BadInputError("is there already", where="other"), "other: is there already"),
    ):  # fmt: skip
        assert _reason(error, job) == text
    assert _is_large(str(tmp_path / "missing")) is False


def test_results_come_in_order_whatever_takes_long(tmp_path, monkeypatch):
    monkeypatch.setattr("dumpsim.analysis.convert._LARGE", 10)
    jobs = []
    for n in range(20):
        path = tmp_path / str(n)
        path.write_bytes(bytes(20 if n % 3 else 1))
        jobs.append(Job(path=str(path), directory=str(tmp_path), name=str(n)))
    writer = SimpleNamespace(file=lambda job: dumpsim.analysis.convert.Converted(path=job.path))
    assert [one.path for one in _in_order(jobs, writer, 2)] == [job.path for job in jobs]
    some = _in_order(jobs, writer, 2)
    assert next(some).path == jobs[0].path
    some.close()


@pytest.mark.torch
def test_tensors_for_torch_are_loaded_by_it(tmp_path):
    import torch
    from binfile import bin_bytes, item

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "Add.a.1.2.1700000000000000").write_bytes(bin_bytes([], [item(x)]))
    convert(tmp_path / "dump", tmp_path / "out", to="pt")
    (path,) = (tmp_path / "out").rglob("*.pt")
    assert torch.load(path).tolist() == x.tolist()


def test_a_broken_file_of_stacks_is_reported_or_raised(tmp_path):
    root = api(tmp_path, [("Torch_abs_0_forward_input.0", V[0]), ("Torch_abs_0_forward_output", V[0])])
    (root / "rank0" / "torch_api_dump_stack.json").write_text("[1]\n")
    (one, *_) = dumpsim.open(root)
    with pytest.raises(UnreadableError, match=r"torch_api_dump_stack\.json"):
        _ = one.source
    seen = []
    (one, *_) = dumpsim.open(root).lenient(seen.append)
    assert (one.source, len(seen)) == ((), 1)
    assert (one.graphs.documents, one.source) == ({}, ())


@pytest.mark.parametrize(
    ("result", "inputs", "said"),
    [
        (0.5, [0.2, 0.1], "0.2"), (0.5, [None, 0.25], "0.25"), (None, [0.2], ""), (math.inf, [0.2], ""),
        (0.5, [math.inf], ""), (0.5, [], ""), (0.5, [None], ""), (1e3, [1e-3], ""), (0.0, [], "0"),
    ],
)  # fmt: skip
def test_inputs_that_differ_nearly_as_much_are_told(monkeypatch, result, inputs, said):
    monkeypatch.setattr(remark, "_distance", lambda value: value and SimpleNamespace(relative_euclidean=value.size))
    monkeypatch.setattr(remark, "_task", lambda value: None)
    monkeypatch.setattr(remark, "replace", lambda value, task: value)
    tensors = [value if value is None else SimpleNamespace(size=value) for value in (result, *inputs)]
    text = f"its inputs differ too, within the tolerance (relative {said}): a smaller one shows where that began"
    assert remark.crept(tensors[0], tensors[1:]) == (text if said else "")


def test_a_row_of_another_name_is_that_of_the_only_file_of_its_time(tmp_path):
    from dumpsim.analysis.listing import _Found, _Waiting
    from dumpsim.core.record import Record

    def record(name, slot=0, stamp=5):
        return Record(op_type="Add", op_name=name, io="output", slot=slot, dtype="", shape=(), timestamp=stamp)

    found = [_Found(record=record(f"Default_{n}", slot), path=tmp_path) for n, slot in (("a", 0), ("b", 1), ("c", 1))]
    waiting = _Waiting([*found, _Found(record=record("x", 7), path=tmp_path, bin=True)])
    assert waiting.wants(found[0].key)
    assert not waiting.wants(("Add", "output", 7, 5))  # a bin file has no rows
    assert waiting.take(0, (record("Default/c", 1), {"max": 3.0}))
    assert not waiting.take(1, (record("Default/c", 1), {"max": 4.0}))  # it has one
    assert not waiting.take(2, (record("other", 0), {"max": 1.0}))
    assert not waiting.take(3, (record("other", 3), {"max": 9.0}))
    assert waiting.rest() == {1, 2}
    assert [one.values for one in found] == [{"max": 1.0}, {"max": 4.0}, {"max": 3.0}]
    two = _Waiting([_Found(record=record("Default_a"), path=tmp_path)])
    for number in range(3):
        assert not two.take(number, (record(f"other{number}"), {}))
    assert two.rest() == set()  # nobody knows which
