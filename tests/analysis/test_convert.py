"""dumpsim.convert and the command: trees of bin files to arrays, on files made without our codec."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from binfile import bin_bytes, item

import dumpsim
from dumpsim.analysis import convert as converting
from dumpsim.analysis.convert import Converted, Job, convert, convert_each, find
from dumpsim.core.errors import BadInputError, UnsupportedError
from dumpsim.tensor.layout import to_device

STAMP = "1700000000000000"


def blocked(x, c0=16):
    """NC1HWC0 by numpy alone."""
    n, c, h, w = x.shape
    padded = np.zeros((n, -(-c // c0) * c0, h, w), x.dtype)
    padded[:, :c] = x
    return np.ascontiguousarray(padded.reshape(n, -1, c0, h, w).transpose(0, 1, 3, 4, 2))


@pytest.fixture
def tree(tmp_path):
    """Two steps of a net, an Opdebug file, a short name, and files that are none of ours."""
    x = np.arange(2 * 3 * 4 * 5, dtype=np.float16).reshape(2, 3, 4, 5)
    for step in "01":
        place = tmp_path / "dump" / step / "model" / "1"
        place.mkdir(parents=True)
        (place / f"Conv2D.conv.3.5.{STAMP}").write_bytes(
            bin_bytes(
                [item(blocked(x + int(step)), format="NC1HWC0", original_shape=x.shape)],
                [item(x.astype(ml_dtypes.bfloat16).tobytes(), dtype="bfloat16", format="NCHW", shape=x.shape)],
            )
        )
        (place / "notes.txt").write_text("mine")
    (place / "77").write_bytes(bin_bytes([item(np.arange(3, dtype=np.int32))]))
    (place / "mapping.csv").write_text(f"77,Add.{'n' * 230}.1.2.{STAMP}\n")
    report = item(bytes(2048), dtype="uint8", shape=(2048,))
    (place / f"Opdebug.Node_OpDebug.9.2.{STAMP}").write_bytes(bin_bytes([], [report], op_name="Node_OpDebug"))
    return tmp_path / "dump"


def files(root):
    return {str(path.relative_to(root)) for path in Path(root).rglob("*") if path.is_file()}


def test_a_tree_keeps_its_shape_and_opens_again(tree, tmp_path):
    out = tmp_path / "out"
    summary = convert(tree, out)
    assert (summary.files, summary.tensors, summary.failures) == (4, 6, ())
    stem = f"Conv2D.conv.3.5.{STAMP}"
    expected = {
        f"{step}/model/1/{stem}.{end}"
        for step in "01"
        for end in ("input.0.NCHW.float16.npy", "output.0.NCHW.bfloat16.npy")
    }
    (long,) = (
        files(out) - expected - {"1/model/1/mapping.csv", f"1/model/1/Opdebug.Node_OpDebug.9.2.{STAMP}.output.0.json"}
    )
    assert expected < files(out)
    line = (out / "1/model/1/mapping.csv").read_text()
    assert line == f"{Path(long).name},Add.{'n' * 230}.1.2.{STAMP}.input.0.ND.int32.npy\n"
    assert np.load(out / long).tolist() == [0, 1, 2]
    x = np.arange(120, dtype=np.float16).reshape(2, 3, 4, 5)
    assert np.array_equal(np.load(out / f"1/model/1/{stem}.input.0.NCHW.float16.npy"), x + 1)
    assert np.load(out / f"0/model/1/{stem}.output.0.NCHW.bfloat16.npy").dtype == np.float32
    back = {(entry.op_name, entry.io): entry for entry in dumpsim.open(out / "0")}
    assert np.array_equal(back["conv", "input"].array(), x)
    assert back["conv", "output"].dtype == "bfloat16"
    assert summary.nbytes == sum((out / name).stat().st_size for name in files(out) if not name.endswith("mapping.csv"))


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_the_number_of_jobs_changes_nothing(tree, tmp_path, jobs):
    convert(tree, tmp_path / "one", jobs=1)
    convert(tree, tmp_path / "out", jobs=jobs)
    assert files(tmp_path / "one") == files(tmp_path / "out")
    for name in files(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_layouts_on_request(tree, tmp_path):
    x = np.arange(120, dtype=np.float16).reshape(2, 3, 4, 5)
    stem = f"Conv2D.conv.3.5.{STAMP}"
    convert(tree / "0", tmp_path / "nhwc", format="NHWC")
    assert np.array_equal(
        np.load(tmp_path / "nhwc" / "model" / "1" / f"{stem}.input.0.NHWC.float16.npy"), x.transpose(0, 2, 3, 1)
    )
    convert(tree / "0", tmp_path / "device", format="device")
    device = np.load(tmp_path / "device" / "model" / "1" / f"{stem}.input.0.NC1HWC0.float16.npy")
    assert np.array_equal(device, blocked(x))
    convert(tree / "0", tmp_path / "bin", to="bin")
    raw = tmp_path / "bin" / "model" / "1" / f"{stem}.input.0.NCHW.float16.2x3x4x5.bin"
    assert raw.read_bytes() == x.tobytes()


@pytest.mark.parametrize(
    ("raw", "dtype", "shape", "expected"),
    [
        (np.array([0xF1, 0x08], np.uint8), "int4", (4,), np.array([1, -1, -8, 0], np.int8)),
        (np.array([0b10100000], np.uint8), "uint1", (3,), np.array([1, 0, 1], np.uint8)),
        (np.array([1.5, -448], ml_dtypes.float8_e4m3fn), "float8_e4m3fn", (2,), np.array([1.5, -448], np.float32)),
        (np.array([2.0, 0.5], ml_dtypes.float8_e8m0fnu), "float8_e8m0", (2,), np.array([2.0, 0.5], np.float32)),
        (np.array([1 + 2j], np.complex128), "complex128", (1,), np.array([1 + 2j])),
    ],
)
def test_types_of_few_bits(tmp_path, raw, dtype, shape, expected):
    path = tmp_path / f"Add.a.1.2.{STAMP}"
    path.write_bytes(bin_bytes([item(raw.tobytes(), dtype=dtype, shape=shape)]))
    assert convert(path, tmp_path / "out").failures == ()
    array = np.load(tmp_path / "out" / f"{path.name}.input.0.ND.{dtype}.npy")
    assert array.dtype == expected.dtype
    assert np.array_equal(array, expected)


def test_failures_are_told_and_stop_nothing(tree, tmp_path):
    cut = tree / "0" / f"Add.cut.1.2.{STAMP}"
    cut.write_bytes(bin_bytes([item(np.ones(9))])[:-8])
    odd = tree / "0" / f"Add.odd.1.2.{STAMP}"
    odd.write_bytes(bin_bytes([item(b"abc", dtype="string", shape=(1,)), item(np.ones(2))]))
    summary = convert(tree, tmp_path / "out")
    assert [(Path(one.path).name, one.tensor) for one in summary.failures] == [(cut.name, ""), (odd.name, "input 0")]
    assert summary.failures[0].reason.startswith("byte ")
    assert "string" in summary.failures[1].reason
    assert (tmp_path / "out" / "0" / f"{odd.name}.input.1.ND.float64.npy").exists()
    assert summary.tensors == 7


def test_results_are_not_replaced_unasked(tree, tmp_path):
    out = tmp_path / "out"
    convert(tree, out)
    victim = next(out.rglob("*.input.0.NCHW.float16.npy"))
    victim.write_bytes(b"precious")
    again = convert(tree, out)
    assert again.tensors == 0
    assert len(again.failures) == 6
    assert "exists already" in again.failures[0].reason
    assert victim.read_bytes() == b"precious"
    assert convert(tree, out, overwrite=True).failures == ()
    assert np.load(victim).shape == (2, 3, 4, 5)


def test_nothing_half_written_is_left_when_the_disk_is_full(tree, tmp_path, monkeypatch):
    import os

    def full(descriptor, parts):
        os.write(descriptor, parts[0][:50])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", full)
    summary = convert(tree, tmp_path / "out", jobs=1)
    assert summary.tensors == 0
    assert all("No space left" in one.reason for one in summary.failures)
    assert {name for name in files(tmp_path / "out") if not name.endswith("mapping.csv")} == set()


def test_several_paths_and_patterns_get_directories_of_their_own(tree, tmp_path):
    found = find([f"{tree}/*"], tmp_path / "out")
    assert {Path(job.directory).relative_to(tmp_path / "out").parts[0] for job in found} == {"0", "1"}
    assert len(find([tree, tree / "0"], tmp_path / "out")) == 4  # each file once
    assert next(convert_each(found)).failures == ()


def test_results_below_the_dump_are_not_converted_again(tree):
    convert(tree, tree / "npy")
    assert convert(tree, tree / "npy", overwrite=True).files == 4


@pytest.mark.parametrize(
    ("options", "text"),
    [({"to": "npz"}, "did you mean 'npy'"), ({"format": "NHCW"}, "did you mean"), ({"jobs": 0}, "1 or more")],
)
def test_options_that_mean_nothing(tree, tmp_path, options, text):
    with pytest.raises(BadInputError, match=text):
        convert(tree, tmp_path / "out", **options)


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(BadInputError, match="does not exist"):
        convert(tmp_path / "nothing*", tmp_path / "out")
    with pytest.raises(BadInputError, match="no binary dump file found; npy files need no conversion"):
        convert(tmp_path, tmp_path / "out")


def test_the_command(tree, tmp_path):
    def command(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "dumpsim", "convert", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=60,
        )

    done = command(tree, "-o", tmp_path / "out", "--jobs", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("4 files, 6 results, ")
    again = command(tree, "-o", tmp_path / "out", "--json")
    told = json.loads(again.stdout)
    assert again.returncode == 1
    assert (told["files"], told["written"], len(told["failed"])) == (4, 0, 6)
    assert command(tmp_path / "nope").returncode == 2


def plain(path):
    """A file of one tensor."""
    path.write_bytes(bin_bytes([item(np.zeros(1, np.int8))]))
    return path


def test_files_that_wait_are_not_converted_for_a_caller_who_has_seen_enough(tmp_path, monkeypatch):
    """Two threads: the first file is given back, two more may run, and the others are cancelled."""
    monkeypatch.setattr(converting, "_LARGE", 0)
    gone, started = threading.Event(), []

    class Pool(ThreadPoolExecutor):
        def shutdown(self, *arguments, **options):
            gone.set()
            super().shutdown(*arguments, **options)

    def file(self, job):
        started.append(job.name)
        if len(started) > 1:
            gone.wait(20)
        return Converted(path=job.path)

    monkeypatch.setattr(converting, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(converting._Writer, "file", file)
    found = [Job(path=str(plain(tmp_path / f"Add.a{n}.1.2.{STAMP}")), directory="", name=str(n)) for n in range(20)]
    results = convert_each(found, jobs=2)
    assert next(results).path == found[0].path
    results.close()
    assert started[0] == "0"
    assert set(started) <= {"0", "1", "2"}


def test_files_of_a_mebibyte_have_a_thread_of_their_own(tmp_path, monkeypatch):
    where = {}

    def file(self, job):
        where[job.name] = threading.current_thread().name.rpartition("_")[0]
        return Converted(path=job.path)

    monkeypatch.setattr(converting._Writer, "file", file)
    sizes = {"small": (1 << 20) - 1, "large": 1 << 20, "gone": None}
    for name, size in sizes.items():
        if size is not None:
            with (tmp_path / name).open("wb") as empty:
                empty.truncate(size)
    found = [Job(path=str(tmp_path / name), directory="", name=name) for name in sizes]
    assert [result.path for result in convert_each(found, jobs=2)] == [job.path for job in found]
    here = threading.current_thread().name.rpartition("_")[0]
    assert where == {"small": here, "large": "dumpsim-convert", "gone": here}
    list(convert_each(found, jobs=1))
    assert set(where.values()) == {here}


def test_the_files_of_several_paths(tree, tmp_path):
    """Links inside a tree are skipped, those that the user names are followed; each file is there once."""
    out, stem = tmp_path / "out", f"Conv2D.conv.3.5.{STAMP}"
    inside, model = tree / "0" / "link", tree / "0" / "model" / "1"
    inside.symlink_to(model / stem)
    for name in (f"Add.a.1.2.{STAMP}.output.0.ND.npy", "ms.pb", "g.ir", "x.txt", "statistic.csv", "a.json"):
        (tree / "0" / name).write_bytes(b"")
    (tree / "mapping.csv").write_text(f"78,Add.a/b.1.2.{STAMP}\n")
    plain(tree / "78")
    long = Job(path=str(tree / "1/model/1/77"), directory=str(out / "1/model/1"), name=f"Add.{'n' * 230}.1.2.{STAMP}")
    conv = [Job(path=str(tree / f"{n}/model/1/{stem}"), directory=str(out / f"{n}/model/1"), name=stem) for n in "01"]
    other = Job(
        path=str(tree / f"1/model/1/Opdebug.Node_OpDebug.9.2.{STAMP}"), directory=str(out / "1/model/1"),
        name=f"Opdebug.Node_OpDebug.9.2.{STAMP}",
    )  # fmt: skip
    assert find([tree / "0"], out) == [Job(path=conv[0].path, directory=str(out / "model/1"), name=stem)]
    both = find([str(tree / "?"), tree / "0"], out)
    assert both == [conv[0], *sorted([long, conv[1], other], key=lambda job: Path(job.path).name)]
    assert find([inside], out) == [Job(path=str(model / stem), directory=str(out), name="link")]
    assert find([tree / "1/model/1/77"], out) == [Job(path=long.path, directory=str(out), name=long.name)]
    (tree / "1" / "res").mkdir()
    plain(tree / "1" / "res" / f"Add.a.1.2.{STAMP}")
    assert len(find([tree / "1"], tree / "1" / "res")) == 3
    assert len(find([tree / "1"], tree / "1" / "re")) == 4


HOST = np.arange(2 * 3 * 4 * 5, dtype=np.float16).reshape(2, 3, 4, 5)
DEEP = np.arange(1 * 3 * 2 * 4 * 5, dtype=np.float16).reshape(1, 3, 2, 4, 5)
FLAT = np.arange(20 * 40, dtype=np.float16).reshape(20, 40)
LAYOUTS = [
    # layout in the file, array on the host, array on the device, the order's name, the same as NHWC
    ("NC1HWC0", HOST, blocked(HOST), "NCHW", HOST.transpose(0, 2, 3, 1)),
    ("NC1HWC0", HOST[:, :2], blocked(HOST[:, :2].transpose(0, 3, 1, 2)), "NHWC", HOST[:, :2]),
    ("NDC1HWC0", DEEP, to_device(DEEP, "NDC1HWC0", dialect="ge"), "NCDHW", None),
    ("FRACTAL_NZ", FLAT, to_device(FLAT, "FRACTAL_NZ", dialect="ge"), "ND", None),
    ("NCHW", HOST, HOST, "NCHW", HOST.transpose(0, 2, 3, 1)),
    ("NHWC", HOST, HOST, "NHWC", HOST),
    ("ND", HOST, HOST, "ND", None),
]


@pytest.mark.parametrize(("layout", "host", "device", "order", "nhwc"), LAYOUTS)
def test_a_result_is_named_by_the_order_of_its_axes(tmp_path, layout, host, device, order, nhwc):
    """The shape on the device of the second one fits no other order than NHWC."""
    path = tmp_path / f"Add.a.1.2.{STAMP}"
    path.write_bytes(bin_bytes([item(np.ascontiguousarray(device), format=layout, original_shape=host.shape)]))
    turned = (order, host) if nhwc is None else ("NHWC", nhwc)
    for target, name, array in (("host", order, host), ("device", layout, device), ("NHWC", *turned)):
        summary = convert(path, tmp_path / target, format=target)
        assert (summary.files, summary.tensors, summary.failures) == (1, 1, ())
        (made,) = os.listdir(tmp_path / target)
        assert made == f"{path.name}.input.0.{name}.float16.npy"
        np.testing.assert_array_equal(np.load(tmp_path / target / made), array, strict=True)
        assert summary.nbytes == (tmp_path / target / made).stat().st_size


def test_a_tensor_that_does_not_fit_into_memory_is_a_failure(tree, tmp_path, monkeypatch):
    monkeypatch.setattr(converting, "npy_parts", lambda array: (_ for _ in ()).throw(MemoryError))
    path = tree / "0" / "model" / "1" / f"Conv2D.conv.3.5.{STAMP}"
    found = convert(path, tmp_path / "out").failures
    assert [(one.path, one.tensor, one.reason) for one in found] == [
        (str(path), "input 0", "not enough memory"), (str(path), "output 0", "not enough memory")
    ]  # fmt: skip


def test_a_file_that_vanished_is_a_failure(tree, tmp_path):
    found = find([tree], tmp_path / "out")
    Path(found[0].path).unlink()
    first, *others = convert_each(found)
    assert [one.tensor for one in first.failures] == [""]
    assert not first.failures[0].reason.startswith(found[0].path)
    assert not any(one.failures for one in others)


def test_without_torch_no_file_is_tried(tree, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnsupportedError, match=r"to: pt files need torch: pip install 'dumpsim\[torch\]'"):
        convert(tree, tmp_path / "out", to="pt")
    assert not (tmp_path / "out").exists()
