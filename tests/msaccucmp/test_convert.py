"""msaccucmp convert: names, contents and exit codes of the real tool, on files made without our codec."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import en_dtypes
import ml_dtypes
import numpy as np
import pytest
from binfile import bin_bytes, item
from dumpproto import messages

import dumpsim
from dumpsim.analysis.msaccucmp.command import run
from dumpsim.analysis.msaccucmp.dumpfile import Tensor
from dumpsim.core.partname import CLAIM

STEM = "Op.name.1.2.1700000000000000"


@pytest.fixture
def dump(tmp_path):
    """dump(inputs, outputs, name=...) -> path of a file in its own directory."""
    folder = tmp_path / "dump"
    folder.mkdir()

    def make(inputs=(), outputs=(), name=STEM, **options):
        path = folder / name
        path.write_bytes(bin_bytes(inputs, outputs, **options))
        return path

    return make


def convert(path, out, *flags):
    return run(["convert", "-d", str(path), "-out", str(out), *flags])


def names(out):
    return sorted(path.name for path in out.iterdir())


def nc1hwc0(x, c0=16):
    """An index loop over blocks: numpy, no layout code of the package."""
    n, c, h, w = x.shape
    blocks = -(-c // c0)
    padded = np.zeros((n, blocks * c0, h, w), x.dtype)
    padded[:, :c] = x
    return np.ascontiguousarray(padded.reshape(n, blocks, c0, h, w).transpose(0, 1, 3, 4, 2))


def fractal_z(x, c0=16):
    n, c, h, w = x.shape
    c1, n1 = -(-c // c0), -(-n // 16)
    padded = np.zeros((n1 * 16, c1 * c0, h, w), x.dtype)
    padded[:n, :c] = x
    blocks = padded.reshape(n1, 16, c1, c0, h, w).transpose(2, 4, 5, 0, 1, 3)
    return np.ascontiguousarray(blocks).reshape(c1 * h * w, n1, 16, c0)


def fractal_nz(x, c0=16):
    m, n = x.shape[-2:]
    m1, n1 = -(-m // 16), -(-n // c0)
    padded = np.zeros((*x.shape[:-2], m1 * 16, n1 * c0), x.dtype)
    padded[..., :m, :n] = x
    blocks = padded.reshape(*x.shape[:-2], m1, 16, n1, c0)
    return np.ascontiguousarray(np.moveaxis(blocks, -2, -4))


def grouped_fractal_z(x, groups, c0=16):
    """The index rule of GE, element by element."""
    total, cin, height, width = x.shape
    cout = total // groups
    merged = min(np.lcm(np.lcm(cin, c0) // cin, np.lcm(cout, 16) // cout), groups)
    c1, co = -(-merged * cin // c0), -(-merged * cout // 16) * 16
    supers = -(-groups // merged)
    flat = np.zeros(supers * c1 * height * width * co * c0, x.dtype)
    for k, c, n, h, w in np.ndindex(groups, cin, cout, height, width):
        e = k % merged
        ci, out = e * cin + c, e * cout + n
        at = ((k // merged * c1 + ci // c0) * height + h) * width + w
        flat[at * co * c0 + out * c0 + ci % c0] = x[k * cout + n, c, h, w]
    return flat.reshape(supers * c1 * height * width, co // 16, 16, c0)


def test_the_seeds_example_has_its_three_names(tmp_path, dump):
    # [seed 001]
    name = "Conv2D.Default_network-WithLossCell__backbone-AlexNet_conv3-Conv2d_Conv2D-op12.2.7.161243956333802"
    random = np.random.default_rng(0)
    x, weight, y = (
        random.integers(-9, 9, shape).astype(np.float16)
        for shape in ((32, 256, 13, 13), (384, 256, 3, 3), (32, 384, 13, 13))
    )
    path = dump(
        [
            item(nc1hwc0(x), format="NC1HWC0", original_shape=x.shape),
            item(fractal_z(weight), format="FRACTAL_Z", original_shape=weight.shape),
        ],
        [item(nc1hwc0(y), format="NC1HWC0", original_shape=y.shape)],
        name=name,
    )
    out = tmp_path / "output"
    assert convert(path, out, "-f", "NCHW", "-t", "npy") == 0
    expected = {
        f"{name}.input.0.32x256x13x13.npy": x,
        f"{name}.input.1.384x256x3x3.npy": weight,
        f"{name}.output.0.32x384x13x13.npy": y,
    }
    assert names(out) == sorted(expected)
    for file, array in expected.items():
        assert np.array_equal(np.load(out / file), array)


def test_parsed_files_have_the_tools_names_and_permissions(tmp_path, dump):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = dump([item(x)], [item(x, dtype="float32")], buffers=[b"abc"], spaces=[b"defg"], op_name="Default/a/Conv-op1")
    assert convert(path, tmp_path / "npy") == 0
    assert names(tmp_path / "npy") == [
        f"{STEM}.{end}" for end in ("input.0.npy", "l1buffer.0.bin", "output.0.npy", "space.0.bin")
    ]
    assert (tmp_path / "npy" / f"{STEM}.l1buffer.0.bin").read_bytes() == b"abc"
    assert (tmp_path / "npy" / f"{STEM}.input.0.npy").stat().st_mode & 0o777 == 0o600
    assert convert(path, tmp_path / "bin", "-t", "bin") == 0
    assert (tmp_path / "bin" / f"{STEM}.input.0.6.float32.ND.bin").read_bytes() == x.tobytes()
    assert convert(path, tmp_path / "ms", "-t", "msnpy") == 0
    assert "Op.Conv-op1.1.2.1700000000000000.input.0.ND.npy" in names(tmp_path / "ms")
    assert convert(path, tmp_path / "nd", "-f", "ND", "-t", "bin", "-o", "0") == 0
    assert names(tmp_path / "nd") == [f"{STEM}.output.0.2_3.float32.ND.bin"]


CODES = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize(
    ("raw", "dtype", "shape", "expected"),
    [
        (np.array([1.5, -2], ml_dtypes.bfloat16), "bfloat16", (2,), np.array([1.5, -2], np.float32)),
        (CODES, "hifloat8", (256,), CODES.view(en_dtypes.hifloat8).astype(np.float64)),
        (CODES, "float8_e4m3fn", (256,), CODES.view(ml_dtypes.float8_e4m3fn).astype(np.float64)),
        (CODES, "float8_e5m2", (256,), CODES.view(ml_dtypes.float8_e5m2).astype(np.float64)),
        (np.array([0b10100000], np.uint8), "uint1", (3,), np.array([1, 0, 1], np.uint8)),
        (np.array([255, 1, 2], np.uint8), "undefined", (1,), np.array([-1, 1, 2], np.int8)),
        (np.array([3 + 4j], np.complex64), "complex64", (1,), np.array([3 + 4j], np.complex64)),
        (np.array([7.0], np.float32), "float32", (), np.array([7.0], np.float32)),
        (np.empty(0, np.float32), "float32", (0, 3), np.empty((0, 3), np.float64)),
        (np.arange(5, dtype=np.float16), "float16", (3,), np.arange(3, dtype=np.float16)),
        (np.array([True, False]), "bool", (2,), np.array([True, False])),
    ],
)
def test_types(tmp_path, dump, raw, dtype, shape, expected):
    path = dump([item(raw.tobytes(), dtype=dtype, shape=shape)])
    assert convert(path, tmp_path / "out") == 0
    array = np.load(tmp_path / "out" / f"{STEM}.input.0.npy")
    assert array.dtype == expected.dtype
    assert np.array_equal(array, expected, equal_nan=expected.dtype.kind == "f")


def test_a_type_that_the_tool_has_not_fails_the_file(tmp_path, dump, capsys):
    x = np.ones(2, np.float32)
    assert convert(dump([item(b"ab", dtype="int4", shape=(4,)), item(x)]), tmp_path / "out") == 21
    assert "[ERROR] The output data type (28) does not support." in capsys.readouterr().err
    assert names(tmp_path / "out") == []


@pytest.mark.parametrize("target", ["NCHW", "NHWC", "HWCN"])
@pytest.mark.parametrize("told", ["target", "NCHW"])
def test_blocked_layouts(tmp_path, dump, target, told):
    x = np.arange(2 * 19 * 3 * 5, dtype=np.float16).reshape(2, 19, 3, 5)
    moved = x.transpose(["NCHW".index(axis) for axis in target])
    path = dump([item(nc1hwc0(x), format="NC1HWC0", original_shape=moved.shape if told == "target" else x.shape)])
    assert convert(path, tmp_path / "out", "-f", target) == 0
    array = np.load(tmp_path / "out" / f"{STEM}.input.0.{'x'.join(map(str, moved.shape))}.npy")
    assert np.array_equal(array, moved)


def test_without_an_original_shape_the_padding_stays(tmp_path, dump):
    x = np.ones((2, 3, 4, 5), np.float16)
    path = dump([item(nc1hwc0(x), format="NC1HWC0", original_shape=())])
    assert convert(path, tmp_path / "out", "-f", "NCHW") == 0
    assert names(tmp_path / "out") == [f"{STEM}.input.0.2x16x4x5.npy"]


def test_five_dimensions(tmp_path, dump):
    x = np.arange(2 * 5 * 2 * 3 * 4, dtype=np.float32).reshape(2, 5, 2, 3, 4)  # NCDHW
    blocks = np.stack([nc1hwc0(x[:, :, d]) for d in range(2)], axis=1)
    path = dump([item(blocks, format="NDC1HWC0", original_shape=x.shape)])
    for target in ("NCDHW", "ND"):
        assert convert(path, tmp_path / target, "-f", target) == 0
        assert np.array_equal(np.load(tmp_path / target / f"{STEM}.input.0.2x5x2x3x4.npy"), x)
    assert convert(path, tmp_path / "no", "-f", "NCHW") == 22


@pytest.mark.parametrize(("cin", "cout", "groups"), [(3, 5, 1), (3, 5, 4), (16, 16, 2), (1, 1, 32), (8, 8, 3)])
def test_groups_of_fractal_z_there_and_back(tmp_path, dump, cin, cout, groups):
    """The real tool refuses the way there and overwrites blocks on the way back where they are several."""
    x = np.arange(cout * groups * cin * 2 * 3, dtype=np.float32).reshape(cout * groups, cin, 2, 3)
    device = grouped_fractal_z(x, groups)
    path = dump(
        [
            item(device, format="FRACTAL_Z", original_shape=x.shape, groups=groups if groups > 1 else 0),
            item(x, format="NCHW", groups=groups),
        ]
    )
    assert convert(path, tmp_path / "host", "-f", "NCHW", "-i", "0") == 0
    assert np.array_equal(np.load(next((tmp_path / "host").glob("*.npy"))), x)
    assert convert(path, tmp_path / "device", "-f", "FRACTAL_Z", "-i", "1") == 0
    assert np.array_equal(np.load(next((tmp_path / "device").glob("*.npy"))), device)


@pytest.mark.parametrize(("dtype", "c0"), [(np.int8, 32), (np.float32, 16), (np.float32, 8)])
def test_blocks_of_fractal_z_are_as_wide_as_the_file_says(tmp_path, dump, dtype, c0):
    x = np.arange(5 * 40 * 2).astype(dtype).reshape(5, 40, 2, 1)
    path = dump([item(fractal_z(x, c0), format="FRACTAL_Z", original_shape=x.shape)])
    assert convert(path, tmp_path / "host", "-f", "NCHW") == 0
    assert np.array_equal(np.load(next((tmp_path / "host").glob("*.npy"))), x)


def test_fractal_nz_needs_a_shape(tmp_path, dump, capsys):
    x = np.arange(2 * 20 * 30, dtype=np.float16).reshape(2, 20, 30)
    path = dump([item(fractal_nz(x), format="FRACTAL_NZ", original_shape=())])
    assert convert(path, tmp_path / "no", "-f", "ND") == 6
    assert convert(path, tmp_path / "no", "-f", "ND", "-s", "2,50,30") == 6
    assert "The recommended shape is (2, 32, 32)." in capsys.readouterr().err
    assert convert(path, tmp_path / "yes", "-f", "ND", "-s", "2,20,30") == 0
    assert np.array_equal(np.load(tmp_path / "yes" / f"{STEM}.input.0.2x20x30.npy"), x)


def test_empty_and_forged_shapes(tmp_path, dump):
    empty = np.empty((1, 1, 0, 16), np.float16)
    path = dump(
        [
            item(empty, format="FRACTAL_NZ", original_shape=(0, 3)),
            item(empty, format="FRACTAL_NZ", original_shape=(2, 3)),
            item(np.empty((2, 1, 3, 4, 0), np.float16), format="NC1HWC0", original_shape=(0, 3, 3, 4)),
        ]
    )
    assert convert(path, tmp_path / "out", "-f", "ND", "-i", "0") == 0
    assert names(tmp_path / "out") == [f"{STEM}.input.0.0x3.npy"]
    assert convert(path, tmp_path / "out", "-f", "ND", "-i", "1") == 27
    assert convert(path, tmp_path / "out", "-f", "NCHW", "-i", "2") == 0
    assert convert(dump([item(b"", dtype="float16", shape=(0, 1 << 63))]), tmp_path / "forged") == 40
    assert convert(dump([item(b"12", dtype="float16", shape=(1 << 31, 1 << 31))]), tmp_path / "forged") == 40
    assert names(tmp_path / "forged") == []


def test_one_tensor_that_cannot_be_converted_does_not_stop_the_others(tmp_path, dump, capsys):
    x = np.ones((2, 3), np.float32)
    path = dump([item(x), item(np.ones((1, 2, 3, 4), np.float32), format="NCHW")])
    assert convert(path, tmp_path / "out", "-f", "NCHW") == 22
    assert names(tmp_path / "out") == [f"{STEM}.input.1.1x2x3x4.npy"]
    assert "[WARNING] Not supported from ND to NCHW." in capsys.readouterr().err
    assert convert(path.parent, tmp_path / "all", "-f", "NCHW") == 22
    assert (tmp_path / "all" / "convert_failed_file_list.txt").read_text() == f"{path},input:0\n"
    assert convert(path, tmp_path / "ms", "-f", "NCHW", "-t", "msnpy") == 22
    assert "Op.Add_1.1.2.1700000000000000.input.0.ND.npy" in names(tmp_path / "ms")


def test_the_older_container_holds_its_data_in_the_message(tmp_path):
    """Which the real tool lists as -v 1 and cannot read."""
    message = messages()["DumpData"](version="1.0", dump_time=1, op_name="Add_1")
    tensor = message.output.add(data_type=7, format=2, size=12, data=np.arange(3, dtype=np.int32).tobytes())
    tensor.shape.dim.append(3)
    path = tmp_path / STEM
    path.write_bytes(message.SerializeToString())
    assert convert(path, tmp_path / "out", "-v", "1") == 0
    assert np.load(tmp_path / "out" / f"{STEM}.output.0.npy").tolist() == [0, 1, 2]


def test_torch_files_need_torch(tmp_path, dump):
    path = dump([item(np.arange(3, dtype=np.int32))])
    code = convert(path, tmp_path / "out", "-t", "pt")
    if importlib.util.find_spec("torch") is None:
        assert code == 6
        assert not (tmp_path / "out").exists()
    else:
        import torch

        assert code == 0
        assert torch.load(tmp_path / "out" / f"{STEM}.input.0.pt").tolist() == [0, 1, 2]


def test_a_directory_with_good_and_bad_files(tmp_path, dump, capsys):
    x = np.ones(3, np.float32)
    for number in range(30):
        dump([item(x + number)], name=f"Add.a{number}.1.2.1700000000000000")
    broken = dump([item(x)], name="Add.broken.1.2.1700000000000000")
    broken.write_bytes(broken.read_bytes()[:-4])
    (broken.parent / "mapping.csv").write_text("1,2\n")
    (broken.parent / "below").mkdir()
    (broken.parent / f"{CLAIM}rank_0").write_text("a process that was killed")
    assert convert(broken.parent, tmp_path / "out") == 11
    assert (tmp_path / "out" / "convert_failed_file_list.txt").read_text() == f"{broken}\n"
    assert len(names(tmp_path / "out")) == 31
    for number in range(30):
        assert np.load(tmp_path / "out" / f"Add.a{number}.1.2.1700000000000000.input.0.npy")[0] == 1 + number
    assert f"[ {'>' * 50} 100%]" in capsys.readouterr().err


def test_long_names_go_to_mapping_csv(tmp_path, dump):
    name = f"A.{'n' * 222}.1.2.1700000000000000"
    assert convert(dump([item(np.ones((20, 30), np.float16))], name=name), tmp_path / "out") == 0
    # recorded from the tool: uuid3 of the whole name
    assert names(tmp_path / "out") == ["abc9c720a3f13fee8e373555464a4a4d.npy", "mapping.csv"]
    assert (
        tmp_path / "out" / "mapping.csv"
    ).read_text() == f"abc9c720a3f13fee8e373555464a4a4d.npy,{name}.input.0.npy\n"


def test_own_converters_run_only_when_asked_for(tmp_path, dump):
    folder = tmp_path / "own" / "format_convert"
    folder.mkdir(parents=True)
    (folder / "convert_ND_to_NCHW.py").write_text(
        "def convert(shape_from, shape_to, array):\n    return array.reshape(shape_from)[None, None] + sum(shape_to)\n"
    )
    (folder / "convert_NHWC_to_NCHW.py").write_text(
        "def convert(shape_from, shape_to, array):\n    raise KeyError(7)\n"
    )
    path = dump([item(np.ones((2, 3), np.float32)), item(np.ones((1, 1, 1, 1), np.float32), format="NHWC")])
    assert convert(path, tmp_path / "no", "-f", "NCHW", "-i", "0") == 22
    assert convert(path, tmp_path / "yes", "-f", "NCHW", "-i", "0", "-c", str(folder.parent)) == 0
    assert np.load(next((tmp_path / "yes").iterdir())).max() == 6
    assert convert(path, tmp_path / "bad", "-f", "NCHW", "-i", "1", "-c", str(folder.parent)) == 26


@pytest.mark.parametrize(
    ("flags", "code"),  # recorded from the tool
    [
        ([], 2),
        (["-d", "a b"], 2),
        (["-d", "{dump}", "-t", "foo"], 2),
        (["-d", "{dump}", "-o", "1", "-i", "1"], 2),
        (["-d", "/nonexistent"], 3),
        (["-d", "{dump}", "-f", "BAD"], 6),
        (["-d", "{dump}", "-s", "1,2"], 6),
        (["-d", "{dump}", "-o", "0"], 6),
        (["-d", "{dump}", "-f", "ND", "-o", "-1"], 6),
        (["-d", "{dump}", "-f", "ND", "-o", "9"], 12),
        (["-d", "{dump}", "-f", "ND", "-s", "0,2"], 23),
        (["-d", "{dump}", "-f", "ND", "-c", "/nonexistent"], 3),
        (["-d", "{dump},/nonexistent"], 0),
        (["-d", "{empty}"], 6),
        (["-d", "{small}"], 0),
        (["-d", "{length}"], 11),
    ],
)
def test_exit_codes(tmp_path, dump, flags, code):
    paths = {"dump": dump([item(np.ones(2, np.float32))]), "empty": tmp_path / "empty"}
    paths["empty"].mkdir()
    paths["small"] = tmp_path / "small"
    paths["small"].write_bytes(bytes(8))
    paths["length"] = tmp_path / "length"
    paths["length"].write_bytes((1 << 40).to_bytes(8, "little") + b"abc")
    given = [flag.format(**paths) for flag in flags]
    assert run(["convert", *given, "-out", str(tmp_path / "out")]) == code


def test_no_command_is_code_six_and_shows_the_help(capsys):
    assert run([]) == 6
    assert "{compare,convert,overflow,file_compare}" in capsys.readouterr().out


def test_the_script_runs_by_its_path_and_as_a_module(tmp_path, dump):
    """Run by path, the script's directory is the package: its rooms must hide neither modules nor themselves."""
    root = Path(dumpsim.__file__).parent
    assert list(root.rglob("msaccucmp.py")) == [root / "msaccucmp.py"]  # find -name msaccucmp.py [seed 001]
    path = dump([item(np.ones(2, np.float32))])
    for number, start in enumerate(([str(root / "msaccucmp.py")], ["-m", "dumpsim.msaccucmp"])):
        out = tmp_path / str(number)
        done = subprocess.run(
            [sys.executable, *start, "convert", "-d", path, "-out", out], capture_output=True, text=True, timeout=60,
            cwd=root if number == 0 else root.parent,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "")
        assert names(out) == [f"{STEM}.input.0.npy"]


@pytest.mark.parametrize(("name", "dimensions"), [
    *((name, len(name)) for name in ("NCHW", "NHWC", "HWCN", "CHWN", "NCDHW", "NDHWC", "DHWCN")),  # a letter each
    ("NC1HWC0", 5), ("NDC1HWC0", 6), ("FRACTAL_Z", 4), ("FRACTAL_Z_3D", 4),
])  # fmt: skip
def test_a_layout_of_other_dimensions_than_its_name_says_is_nd(name, dimensions):
    found = [
        Tensor(
            io="input", index=0, dtype="float16", format=name, shape=(2,) * rank, original_shape=(), groups=1,
            address=0, raw=np.zeros(2**rank, np.float16),
        ).real_format
        for rank in range(1, 8)
    ]  # fmt: skip
    assert found == [name if rank == dimensions else "ND" for rank in range(1, 8)]


def test_the_first_failure_is_the_exit_code_and_an_index_ends_before_the_number(tmp_path, dump):
    nz = item(np.zeros((1, 1, 16, 16), np.float16), format="FRACTAL_NZ", original_shape=())
    plain = item(np.ones((2, 3), np.float32))
    assert convert(dump([plain, nz]), tmp_path / "a", "-f", "NCHW") == 22
    assert convert(dump([nz, plain]), tmp_path / "b", "-f", "NCHW") == 6
    path = dump([plain], [plain, plain])
    for flag, codes in (("-i", (0, 12)), ("-o", (0, 0, 12))):
        for index, code in enumerate(codes):
            assert convert(path, tmp_path / "c", "-f", "ND", flag, str(index)) == code
    assert names(tmp_path / "c") == [f"{STEM}.{end}.2x3.npy" for end in ("input.0", "output.0", "output.1")]


def test_names_of_msnpy_files_have_the_last_word_of_the_operators_name(tmp_path, dump):
    x = np.ones((2, 3), np.float32)
    for name, op_name, stem in (
        ("Op.Add_1.1.2.1700000000000000", "a/b/Add-op7", "Op.Add-op7.1.2.1700000000000000"),
        ("Op.Add_1.1.2.1700000000000000", "", "Op.Add_1.1.2.1700000000000000"),
        ("Op.Add_1.1.1700000000000000", "a/b/Add-op7", "Op.Add_1.1.1700000000000000"),  # no stream
    ):
        out = tmp_path / f"{len(name)}{op_name[-1:]}"
        assert convert(dump([item(x)], name=name, op_name=op_name), out, "-t", "msnpy") == 0
        assert names(out) == [f"{stem}.input.0.ND.npy"]
        assert np.array_equal(np.load(out / f"{stem}.input.0.ND.npy"), x)


def test_bits_without_a_shape_are_eight_a_byte(tmp_path, dump):
    raw = np.array([0b10100000, 0b00000001, 0xFF], np.uint8)
    assert convert(dump([item(raw.tobytes(), dtype="uint1", shape=())]), tmp_path / "out") == 0
    assert np.load(tmp_path / "out" / f"{STEM}.input.0.npy").tolist() == np.unpackbits(raw).tolist()


@pytest.mark.parametrize("known", [True, False])
def test_the_tool_finds_its_package_when_it_is_run_by_its_path(monkeypatch, known):
    """Python puts the file's own directory first, where modules have the names of standard ones."""
    from dumpsim import msaccucmp

    own = Path(msaccucmp.__file__).resolve().parent
    others = ["", "/elsewhere", *([str(own.parent)] if known else [])]
    monkeypatch.setattr(sys, "path", [str(own), *others])
    msaccucmp._by_path()
    assert sys.path == ["", "/elsewhere", str(own.parent)]
