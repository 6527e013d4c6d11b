"""Golden trees: what the comparison reports, and how trees are written."""

import itertools
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import dumpsim
from dumpsim.codecs.dumpdata import DumpData, Item, dtype_number, format_number, header
from dumpsim.codecs.irproto import encode
from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError
from dumpsim.core.irdoc import IrDoc, IrNode, SourceLine
from dumpsim.core.partname import CLAIM, part_name
from dumpsim.testing import golden as module
from dumpsim.testing.dump_dir import DumpDir
from dumpsim.testing.golden import Golden
from dumpsim.testing.localranks import LocalRanks
from dumpsim.testing.rankworld import RankWorld

STATISTICS = """Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,L2Norm Value,MD5
Log,Default_Log-op0,0,0,1700000000000296,input,0,8,float32,"(2)",1,1.5,aa
Log,Default_Log-op0,0,0,1700000000000321,output,0,8,float32,"(2)",2,2.5,bb
"""
NPY = "rank_0/Net/0/0/Log.Default_Log-op0.0.0.{}.output.0.DefaultFormat.float32.npy"


class Place:
    """A dump, a golden tree of it, and what they differ in."""

    def __init__(self, folder):
        self.dump = folder / "dump"
        self.directory = folder / "golden" / "test_x"

    def write(self, name, content):
        path = self.dump / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, np.ndarray):
            np.save(path, content)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content)
        return path

    def update(self, **options):
        return Golden(self.directory, update=True).write(self.dump, **options)

    def differences(self, **options):
        return Golden(self.directory).differences(self.dump, **options)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def array(*values):
    return np.array(values, np.float32)


def test_a_tree_that_was_never_written_is_the_difference(place):
    place.write("a.json", "{}")
    assert place.differences() == [f"no golden tree yet: {place.directory / 'dump'}"]
    assert repr(Golden(place.directory)) == f"<Golden {place.directory}: no tree yet>"


def test_equal_trees_have_no_difference(place):
    place.write(NPY.format(1700000000000321), array(1, np.nan))
    place.write("rank_0/Net/0/0/statistic.csv", STATISTICS)
    assert place.update()
    assert place.differences() == []


def test_missing_and_extra_files_are_named(place):
    place.write("a.json", "{}")
    place.write("b.json", "{}")
    place.update()
    (place.dump / "a.json").rename(place.dump / "c.json")
    assert place.differences() == ["a.json: missing", "c.json: extra"]


def test_a_changed_tensor_is_measured(place):
    name = NPY.format(1700000000000321)
    place.write(name, array(1, 2, 3, 4).reshape(2, 2))
    place.update()
    place.write(name, array(1, 2.5, 3, np.nan).reshape(2, 2))
    (found,) = place.differences()
    assert found == f"{name}: float32[2, 2]: 2 of 4 elements differ, most at [1, 1]: 4.0 -> nan; NaN: 0 -> 1"
    place.write(name, array(1, 2.5, 3, 4.25).reshape(2, 2))
    (found,) = place.differences()
    assert found.endswith("2 of 4 elements differ, most at [0, 1]: 2.0 -> 2.5 (by 0.5, relative 0.25)")


def test_a_tensor_of_another_type_or_shape_is_named(place):
    name = NPY.format(1700000000000321)
    place.write(name, array(1, 2))
    place.update()
    place.write(name, np.zeros((1, 2), np.float16))
    assert place.differences() == [f"{name}: float32[2] -> float16[1, 2]"]


def test_signs_of_zeros_count_without_a_tolerance(place):
    name = NPY.format(1700000000000321)
    place.write(name, array(0, 1))
    place.update()
    place.write(name, array(-0.0, 1))
    assert place.differences() == [f"{name}: float32[2]: the signs of zeros or the bits of NaN differ"]
    assert place.differences(atol=1e-9) == []


@pytest.mark.parametrize(
    ("tolerance", "good", "bad"),
    [
        ({"atol": 0.5}, 10.5, 10.51),
        ({"rtol": 0.25}, 12.5, 12.51),
        ({"rtol": 0.25, "atol": 1}, 13.5, 13.51),
        ({"rtol": 9}, -80, np.inf),
    ],
)
def test_the_tolerance_is_numpys(place, tolerance, good, bad):
    name = NPY.format(1700000000000321)
    place.write(name, array(10, np.inf, np.nan))
    place.update()
    place.write(name, array(good, np.inf, np.nan))
    assert place.differences(**tolerance) == []
    place.write(name, array(bad, np.inf, np.nan))
    assert len(place.differences(**tolerance)) == 1


def test_other_time_stamps_are_one_difference(place):
    for stamp, value in ((1700000000000321, 1), (1700000000000400, 2)):
        place.write(NPY.format(stamp), array(value))
    place.update()
    for stamp in (1700000000000321, 1700000000000400):
        (place.dump / NPY.format(stamp)).rename(place.dump / NPY.format(stamp + 5))
    (found,) = place.differences()
    assert found.startswith("2 files with other time stamps: rank_0/Net/0/0/Log.Default_Log-op0.0.0.1700000000000321.")
    assert place.differences(stamps=False) == []
    place.write(NPY.format(1700000000000405), array(3))
    (found,) = place.differences(stamps=False)
    assert "1 of 1 elements differ, most at [0]: 2.0 -> 3.0" in found


def test_statistics_are_compared_by_cell(place):
    name = "rank_0/Net/0/0/statistic.csv"
    place.write(name, STATISTICS)
    place.update()
    place.write(name, STATISTICS.replace("2,2.5,bb", "2,nan,cc").replace("0296", "0299"))
    assert place.differences() == [
        f"{name}: row Log Default_Log-op0 input.0: Timestamp 1700000000000296 -> 1700000000000299",
        f"{name}: row Log Default_Log-op0 output.0: L2Norm Value 2.5 -> nan; MD5 bb -> cc",
    ]
    assert len(place.differences(stamps=False)) == 1
    place.write(name, STATISTICS.replace("2,2.5,bb", "2,2.6,cc"))
    assert place.differences(atol=0.2) == []
    assert place.differences(atol=0.05) == [f"{name}: row Log Default_Log-op0 output.0: L2Norm Value 2.5 -> 2.6"]


def test_rows_and_columns_of_statistics_are_named(place):
    name = "rank_0/Net/0/0/statistic.csv"
    place.write(name, STATISTICS)
    place.update()
    head, first, second = STATISTICS.splitlines(keepends=True)
    place.write(name, head.replace("MD5", "SHA1") + first + second.replace("output", "input"))
    assert place.differences() == [
        f"{name}: column MD5: missing",
        f"{name}: column SHA1: extra",
        f"{name}: row Log Default_Log-op0 output.0: missing",
        f"{name}: row Log Default_Log-op0 input.0 (number 2): extra",
    ]


def test_text_is_compared_by_line(place):
    place.write("rank_0/graphs/a.ir", "one\ntwo\nthree\n")
    place.update()
    place.write("rank_0/graphs/a.ir", "one\n2\nthree\n")
    (found,) = place.differences()
    assert found.splitlines()[:2] == ["--- golden/rank_0/graphs/a.ir", "+++ dump/rank_0/graphs/a.ir"]
    assert found.splitlines()[3:] == [" one", "-two", "+2", " three"]


def binary(*tensors):
    items = tuple(
        Item(dtype=dtype_number("float32"), format=format_number("ND"), shape=t.shape, size=t.nbytes) for t in tensors
    )
    data = DumpData(op_name="Default/Log-op0", dump_time=1700000000000321, inputs=items[:1], outputs=items[1:])
    return b"".join([header(data), *(tensor.tobytes() for tensor in tensors)])


def test_a_binary_file_is_compared_by_tensor(place):
    name = "20231114/0/Net/0/0/Log.Default_Log-op0.1.0.1700000000000321"
    place.write(name, binary(array(1, 2), array(3, 4)))
    place.update()
    place.write(name, binary(array(1, 2), array(3, 5)))
    assert place.differences() == [
        f"{name} output.0: float32[2]: 1 of 2 elements differ, most at [1]: 4.0 -> 5.0 (by 1, relative 0.25)"
    ]
    place.write(name, binary(array(1, 2)))
    assert place.differences() == [f"{name} output.0: missing"]
    place.write(name, binary(array(1, 2), array(3, 4), array(5)))
    assert place.differences() == [f"{name} output.1: extra"]


def test_other_files_are_compared_by_byte(place):
    place.write("unknown.dat", b"abcd")
    place.update()
    place.write("unknown.dat", b"abXd")
    assert place.differences() == ["unknown.dat: bytes differ from offset 2 on"]
    place.write("unknown.dat", b"ab")
    assert place.differences() == ["unknown.dat: 4 -> 2 bytes"]


def graph(path, line):
    kind = TensorType(dtype=dtype("float32"), shape=(2,))
    source = SourceLine(path=path, line=line, end_line=line, column=0, end_column=4, code="x + y")
    node = IrNode(
        index=0, name="", op_type="Add", prim_func=False, operands=(), operand_types=(), output=kind,
        full_name="Default/Add-op0", sources=(source,),
    )  # fmt: skip
    return encode(IrDoc(name="kernel_graph0", graph_id=0, params=(), nodes=(node,)))


def test_directories_of_the_machine_do_not_count(tmp_path):
    for machine in ("here", "elsewhere"):
        dump = Place(tmp_path / machine)
        dump.write("a.json", json.dumps({"path": str(dump.dump), "script": str(tmp_path / machine / "train.py")}))
        dump.write("a.pb", graph(str(tmp_path / machine / "train.py"), 7))
        golden = Golden(tmp_path / "golden", roots={"rootdir": str(tmp_path / machine)})
        if machine == "here":
            golden.write(dump.dump)
        assert golden.differences(dump.dump) == []
    found = json.loads((tmp_path / "golden" / "dump" / "a.json").read_text())
    assert found == {"path": "<dump>", "script": "<rootdir>/train.py"}
    assert b"<rootdir>/train.py" in (tmp_path / "golden" / "dump" / "a.pb").read_bytes()
    dump.write("a.pb", graph(str(tmp_path / machine / "train.py"), 8))
    (difference,) = golden.differences(dump.dump)
    assert "<rootdir>/train.py:8" in difference
    assert "<rootdir>/train.py:7" in difference


def test_ignored_files_are_neither_written_nor_compared(place):
    place.write("a.json", "{}")
    place.write("graphs/a.ir", "one")
    place.update(ignore=["graphs/*"])
    assert not (place.directory / "dump" / "graphs").exists()
    assert place.differences() == ["graphs/a.ir: extra"]
    assert place.differences(ignore=["graphs/*"]) == []


def test_an_update_replaces_the_whole_tree_and_touches_no_equal_one(place):
    place.write("a.json", "1")
    place.write("b.json", "2")
    assert place.update()
    before = (place.directory / "dump" / "a.json").stat().st_mtime_ns
    assert not place.update()
    assert (place.directory / "dump" / "a.json").stat().st_mtime_ns == before
    (place.dump / "a.json").unlink()
    assert place.update()
    assert sorted(os.listdir(place.directory / "dump")) == ["b.json"]
    assert os.listdir(place.directory) == ["dump"]


def test_updates_of_one_tree_do_not_mix(place):
    dumps = []
    for number in range(4):
        other = Place(place.directory.parent.parent / str(number))
        for name in "abcdefgh":
            other.write(f"{name}.json", str(number))
        dumps.append(other.dump)
    golden = Golden(place.directory)
    threads = [threading.Thread(target=lambda d=d: [golden.write(d) for _ in range(5)]) for d in dumps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({path.read_text() for path in (place.directory / "dump").iterdir()}) == 1
    assert len(os.listdir(place.directory / "dump")) == 8
    assert os.listdir(place.directory) == ["dump"]


def test_an_empty_dump_is_refused(place):
    with pytest.raises(BadInputError, match="nothing was dumped"):
        place.differences()
    place.dump.mkdir(parents=True)
    with pytest.raises(BadInputError, match="holds no files"):
        place.update()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ignore": "*.npy"}, "is one pattern"),
        ({"rtol": "1e-3"}, "is not a tolerance"),
        ({"atol": -1.0}, "is not a tolerance"),
        ({"rtol": float("nan")}, "is not a tolerance"),
    ],
)
def test_wrong_arguments_are_refused(place, options, text):
    place.write("a.json", "{}")
    with pytest.raises(BadInputError, match=text):
        Golden(place.directory, update=True)(place.dump, **options)
    assert not place.directory.exists()


def test_a_path_that_does_not_exist_is_named(place):
    with pytest.raises(BadInputError, match="does not exist"):
        place.update()


def test_a_link_in_a_dump_is_refused(place):
    place.write("a.json", "{}")
    (place.dump / "b.json").symlink_to(place.dump / "a.json")
    with pytest.raises(BadInputError, match="not a regular file"):
        place.update()


def test_a_failure_shows_a_screen_of_differences(place):
    for number in range(30):
        place.write(f"{number:02}.json", "\n".join(map(str, range(100))))
    place.update()
    for number in range(30):
        place.write(f"{number:02}.json", "\n".join(map(str, range(100, 200))))
    with pytest.raises(pytest.fail.Exception) as failure:
        Golden(place.directory, test="test_x.py::test_y")(place.dump)
    lines = str(failure.value).splitlines()
    assert lines[0] == f"30 differences from the golden tree {place.directory / 'dump'} (golden -> dump):"
    assert lines[-2:] == [
        "  and 10 more",
        "to make this dump the golden tree: pytest --update-golden 'test_x.py::test_y'",
    ]
    assert "    and 162 more lines" in lines


def test_a_failure_counts_what_it_does_not_show(place):
    """Twenty differences, and forty lines of each."""
    golden, target = Golden(place.directory, test="t.py::test_y"), place.directory / "dump"
    hint = "to make this dump the golden tree: pytest --update-golden 't.py::test_y'"
    for count, lines in itertools.product((1, 2, 19, 20, 21, 30), (0, 1, 39, 40, 41, 60)):
        texts = ["\n".join([f"file {at}", *(f"line {n}" for n in range(lines))]) for at in range(count)]
        wanted = [f"{count} difference{'s' if count > 1 else ''} from the golden tree {target} (golden -> dump):"]
        for at in range(min(count, 20)):
            wanted += [f"  file {at}", *(f"    line {n}" for n in range(min(lines, 40)))]
            wanted += [f"    and {lines - 40} more lines"] * (lines > 40)
        wanted += [f"  and {count - 20} more"] * (count > 20)
        assert golden._message(texts, target).split("\n") == [*wanted, hint]


def test_a_test_without_a_golden_tree_fails_with_the_way_to_write_it(place):
    place.write("a.json", "{}")
    with pytest.raises(pytest.fail.Exception) as failure:
        Golden(place.directory, test="t.py::test_y")(place.dump)
    assert str(failure.value) == (
        f"no golden tree yet: {place.directory / 'dump'}\n"
        "to make this dump the golden tree: pytest --update-golden 't.py::test_y'"
    )
    assert failure.value.pytrace is False
    assert not place.directory.exists()


def test_a_tree_that_cannot_be_written_leaves_nothing(place, monkeypatch):
    def fail(part, target):
        assert (part / "a.json").read_text() == "{}"
        raise OSError("disk full")

    place.write("a.json", "{}")
    monkeypatch.setattr(module, "_swap", fail)
    with pytest.raises(OSError, match="disk full"):
        place.update()
    assert list(place.directory.iterdir()) == []


def test_what_a_killed_process_left_is_not_in_the_way(place, monkeypatch):
    place.write("a.json", "{}")
    monkeypatch.setattr(module, "_COUNTER", itertools.count(7))
    left = place.directory / f".dump.{os.getpid()}-7"
    left.mkdir(parents=True)
    (left / "b.json").touch()
    assert place.update()
    assert [path.name for path in place.directory.iterdir()] == ["dump"]
    assert [path.name for path in (place.directory / "dump").iterdir()] == ["a.json"]


def test_the_directory_of_the_package_has_a_placeholder(place):
    root = Path(dumpsim.__file__).resolve().parents[1]
    place.write("a.ir", f"In file {root}/train.py:3 and {place.dump}/b")
    place.update()
    assert (place.directory / "dump" / "a.ir").read_text() == "In file <dumpsim>/train.py:3 and <dump>/b"


def test_unfinished_files_are_no_part_of_a_tree(place):
    place.write("a.json", "{}")
    for name in (part_name(), f"x/{part_name()}", f"{CLAIM}owner"):
        place.write(name, "half")
    place.update()
    assert sorted(path.name for path in (place.directory / "dump").rglob("*")) == ["a.json"]


@pytest.mark.parametrize("reason", ["", "nothing ran"])
@pytest.mark.parametrize("tensors", [False, True])
def test_a_dump_without_tensors_is_refused_if_it_should_have_them(place, reason, tensors):
    dump = DumpDir(place.dump, {}.__setitem__, why_nothing=lambda: reason)
    dump.configure()
    place.write("graphs/a.ir", "x")
    if tensors:
        place.write(NPY.format(1700000000000321), array(1))
    golden = Golden(place.directory, update=True)
    if reason and not tensors:
        with pytest.raises(BadInputError, match="holds no tensors: nothing ran"):
            golden(dump)
        assert not place.directory.exists()
    else:
        golden(dump)
        assert Golden(place.directory).differences(dump) == []


# ---------------------------------------------------------------- ranks
def on_ranks(folder, paths, names=None, *, update=False):
    """Compare a directory on each rank; returns the files of the golden trees."""
    world = RankWorld(folder, LocalRanks)
    golden = Golden(folder / "golden", update=update, test="t.py::test_y", world=world)

    def body():
        rank = world.rank
        golden(folder / paths[rank], *([] if names is None else [names[rank]]))

    world.run(body, len(paths))
    return sorted(path.relative_to(golden.directory).as_posix() for path in golden.directory.rglob("*.json"))


@pytest.mark.parametrize(
    ("paths", "names", "files"),
    [
        ("a", None, ["dump/a.json"]), ("aa", None, ["dump/a.json"]), ("aaa", ["dump", "x", "x"], ["dump/a.json",
         "x/a.json"]), ("ab", None, ["dump/rank_0/a.json", "dump/rank_1/b.json"]),
        ("aba", None, ["dump/rank_0/a.json", "dump/rank_1/b.json"]),
        ("cbb", None, ["dump/rank_0/c.json", "dump/rank_1/b.json"]),
        ("ab", ["x", "y"], ["x/a.json", "y/b.json"]),
        ("abc", ["x", "y", "x"], ["x/rank_0/a.json", "x/rank_2/c.json", "y/b.json"]),
    ],
)  # fmt: skip
def test_ranks_with_one_directory_compare_one_tree(tmp_path, paths, names, files):
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.json").write_text("{}")
    assert on_ranks(tmp_path, paths, names, update=True) == files
    assert on_ranks(tmp_path, paths, names) == files  # equal
    (tmp_path / paths[-1] / f"{paths[-1]}.json").write_text("[]")
    with pytest.raises(pytest.fail.Exception, match=rf"(?s)^1 difference .*{paths[-1]}.json"):
        on_ranks(tmp_path, paths, names)


def test_a_rank_that_differs_stops_the_others_in_golden(tmp_path):
    for name in ("mine", "golden/dump"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.json").write_text(name)
    world, after = RankWorld(tmp_path, LocalRanks), []
    golden = Golden(tmp_path / "golden", world=world)

    def body():
        golden(tmp_path / "mine")
        after.append(world.rank)

    with pytest.raises(pytest.fail.Exception, match="1 difference from"):
        world.run(body, 3)
    assert after == []


def test_a_name_is_compared_once_by_each_rank(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    world = RankWorld(tmp_path, LocalRanks)
    golden = Golden(tmp_path / "golden", update=True, world=world)
    golden(tmp_path, "x")  # outside of the ranks
    world.run(lambda: golden(tmp_path, "y"), 1)
    for name in "xy":
        for size in (1, 2):
            with pytest.raises(BadInputError, match=f"has already compared a tree '{name}'"):
                world.run(lambda name=name: golden(tmp_path, name), size)

    def twice():
        golden(tmp_path, "z")
        golden(tmp_path, "z")

    with pytest.raises(BadInputError, match="has already compared a tree 'z'"):
        world.run(twice, 2)


def test_a_name_is_compared_once_in_a_test(place):
    place.write("a.json", "{}")
    golden = Golden(place.directory, update=True)
    golden(place.dump)
    golden(place.dump, "second")
    with pytest.raises(BadInputError, match="has already compared a tree 'second'"):
        golden(place.dump, "second")
    assert sorted(os.listdir(place.directory)) == ["dump", "second"]
    assert repr(golden) == f"<Golden {place.directory}: trees: dump, second, update>"


def test_an_empty_dump_says_why(run):
    """What a newcomer does: no config, no graph, the wrong iteration; none shows a line of ours."""
    found = run(
        """
def test_no_config(npu, dump_dir, golden):
    golden(dump_dir)

def test_eager(npu, dump_dir, golden):
    import mindspore as ms

    dump_dir.configure(saved_data="full")
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.ops.abs(ms.Tensor([1.0]))
    assert "PYNATIVE_MODE" in repr(dump_dir)
    golden(dump_dir)

def test_iteration(npu, dump_dir, golden):
    import mindspore as ms

    dump_dir.configure(iteration="7")
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.nn.ReLU()(ms.Tensor([1.0]))
    golden(dump_dir)

def test_field(npu, dump_dir):
    dump_dir.configure(iteration=0)

def test_late(npu, dump_dir, golden):
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.nn.ReLU()(ms.Tensor([1.0]))
    dump_dir.configure(saved_data="full")
    ms.nn.ReLU()(ms.Tensor([1.0]))
    golden(dump_dir)

def test_kernels(npu, dump_dir, golden):
    import mindspore as ms

    dump_dir.configure(dump_mode=1, kernels=["Softmax"])
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.nn.ReLU()(ms.Tensor([1.0]))
    golden(dump_dir)  # the graphs are dumped
""",
        "--update-golden",
    )
    assert "6 failed" in found
    assert "call dump_dir.configure() before that" in found
    assert "holds no tensors: nothing was dumped: kernels matches no operator" in found
    assert found.count("nothing was dumped: the test did not call dump_dir.configure()") > 0
    assert "nothing was dumped: no graph was compiled, and operators outside graphs (PYNATIVE_MODE)" in found
    assert "nothing was dumped: no graph ran in an iteration that the config asks for" in found
    assert "dump_dir.configure(iteration=...): 0 is not of type string" in found
    assert "__tracebackhide__" not in found
    assert "golden.py" not in found.replace("test_golden.py", "")


def test_a_tree_that_differs_from_an_empty_dump_says_why(run, tmp_path):
    for name in ("test_iteration", "test_other"):
        tree = tmp_path / "golden" / "test_inner" / name / "dump"
        tree.mkdir(parents=True)
        (tree / "file").write_text("x")
    found = run(
        """
def test_iteration(npu, dump_dir, golden):
    import mindspore as ms

    dump_dir.configure(iteration="7")
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.nn.ReLU()(ms.Tensor([1.0]))
    golden(dump_dir)

def test_other(golden, tmp_path):
    (tmp_path / "file").write_text("y")
    golden(tmp_path)
"""
    )
    hint = "to make this dump the golden tree: pytest --update-golden 'test_inner.py::test_{}'\n{}"
    assert hint.format("iteration", "nothing was dumped: no graph ran in an iteration") in found
    assert hint.format("other", "===") in found
