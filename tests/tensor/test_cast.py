"""Casts against ml_dtypes, en_dtypes and numpy: every code, and floats wherever rounding can go wrong."""

import math

import en_dtypes
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dumpsim._ext import cast as kernel
from dumpsim.core.errors import BadInputError, DtypeError, DumpsimError
from dumpsim.tensor.cast import FLOATS, from_numpy, to_numpy, widen
from dumpsim.tensor.simd import simd_levels

ORACLE = {name: getattr(ml_dtypes, name) for name in FLOATS - {"float16", "hifloat8"}}
ORACLE |= {"float16": np.float16, "hifloat8": en_dtypes.hifloat8}
NAMES = sorted(ORACLE)
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in cast:RuntimeWarning")


def codes_of(name):
    """All 256 or 65536 codes."""
    size = np.dtype(ORACLE[name]).itemsize
    return np.arange(256**size, dtype=f"u{size}")


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def same_values(ours, theirs):
    """Equal bits where there is a number, NaN where there is NaN."""
    nan = np.isnan(theirs)
    assert (np.isnan(ours) == nan).all()
    assert (bits(ours)[~nan] == bits(theirs)[~nan]).all()


def rounding_cases(name):
    """float32 at, just below and just above every code, every middle of two codes, and everything beyond."""
    values = codes_of(name).view(ORACLE[name]).astype(np.float32).astype(np.float64)
    values = np.unique(values[np.isfinite(values)])
    middles = (values[1:] + values[:-1]) / 2
    exact = np.concatenate([values, middles]).astype(np.float32)
    rng = np.random.default_rng(7)
    return np.concatenate(
        [
            exact,
            np.nextafter(exact, np.float32(np.inf)),
            np.nextafter(exact, np.float32(-np.inf)),
            np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 3e38, -3e38, 1e-45, -1e-45, 1e-38, 6e-39]),
            (values.max() * np.linspace(0.9, 2.1, 500)).clip(max=3.4e38).astype(np.float32),
            np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32),
            rng.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32),
            rng.standard_normal(50_000).astype(np.float32),
        ]
    )


@pytest.fixture(params=simd_levels())
def level(request, monkeypatch):
    """Every level that this CPU has."""
    monkeypatch.setenv("DUMPSIM_SIMD", request.param)
    return request.param


def test_every_float_of_the_kernel_has_an_oracle():
    assert set(kernel.KINDS) == set(ORACLE)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"float16"}))
def test_every_code_is_decoded(name, level):
    codes = codes_of(name)
    theirs = codes.view(ORACLE[name]).astype(np.float32)
    ours = to_numpy(codes.tobytes(), name, codes.shape)
    assert ours.dtype == np.float32
    same_values(ours, theirs)
    same_values(widen(codes, name), theirs)


def test_every_half_is_decoded_with_its_payload(level):
    codes = codes_of("float16")
    out = np.empty(65536, np.float32)
    kernel.to_float(out, codes, 65536, kernel.KINDS["float16"], simd_levels().index(level))
    same_values(out, codes.view(np.float16).astype(np.float32))
    nan = np.isnan(out)
    assert (
        bits(out)[nan]
        == (codes[nan].astype("u4") & 0x8000) << 16 | 0x7F800000 | (codes[nan].astype("u4") & 0x3FF) << 13
    ).all()


def test_bfloat16_is_the_upper_half_of_a_float(level):
    codes = codes_of("bfloat16")
    assert (bits(to_numpy(codes.tobytes(), "bfloat16", codes.shape)) == codes.astype("u4") << 16).all()


@pytest.mark.parametrize("name", NAMES)
def test_every_float_is_rounded_like_the_oracle(name, level):
    values = rounding_cases(name)
    theirs = bits(values.astype(ORACLE[name]))
    ours = bits(from_numpy(values, name))
    number = ~np.isnan(values) if name == "float16" else slice(None)
    wrong = np.flatnonzero(ours[number] != theirs[number])
    assert not wrong.size, [(values[number][k], hex(ours[number][k]), hex(theirs[number][k])) for k in wrong[:5]]


def test_nan_of_half_keeps_the_upper_payload(level):
    patterns = np.uint32([0x7F800001, 0x7FA12345, 0xFFC12345, 0xFF812345, 0x7FFFFFFF, 0x7FC00000])
    payload = patterns >> 13 & 0x3FF
    expected = patterns >> 16 & 0x8000 | 0x7C00 | np.where(payload == 0, 1, payload)
    assert (bits(from_numpy(patterns.view(np.float32), "float16")) == expected).all()


@pytest.mark.parametrize("name", NAMES)
def test_codes_survive_the_way_there_and_back(name, level):
    codes = codes_of(name)
    values = codes.view(ORACLE[name]).astype(np.float32)
    keep = ~np.isnan(values)
    assert (bits(from_numpy(values[keep], name)) == codes[keep]).all()


@pytest.mark.parametrize("name", NAMES)
def test_float64_is_rounded_once(name, level):
    values = codes_of(name).view(ORACLE[name]).astype(np.float32).astype(np.float64)
    values = np.unique(values[np.isfinite(values)])
    middles = (values[1:] + values[:-1]) / 2
    if name == "float8_e8m0fnu":  # all between its two smallest numbers goes up
        values, middles = values[1:], middles[1:]
    reach = np.spacing(np.abs(middles))  # far below what float32 can tell from the middle

    def rounded(x):
        return to_numpy(bits(from_numpy(x, name)), name, x.shape).astype(np.float64)

    assert (rounded(middles - reach) == values[:-1]).all()
    assert (rounded(middles + reach) == values[1:]).all()
    assert (rounded(middles) == rounded(middles.astype(np.float32))).all()
    tiny = [] if name == "float8_e8m0fnu" else [1e-300, -1e-300]
    extremes = np.array([1e300, -1e300, *tiny, np.inf, -np.inf, 0.0, -0.0])
    with np.errstate(all="ignore"):
        single = extremes.astype(np.float32)
    assert (bits(from_numpy(extremes, name)) == bits(from_numpy(single, name))).all()
    assert math.isnan(to_numpy(from_numpy(np.array([np.nan]), name).tobytes(), name, (1,))[0])


def test_other_floats_as_input():
    half = np.arange(0x7C00, dtype=np.uint16).view(np.float16)
    for name in ("bfloat16", "hifloat8", "float8_e5m2"):
        expected = bits(from_numpy(half.astype(np.float32), name))
        assert (bits(from_numpy(half, name)) == expected).all()
        assert (bits(from_numpy(half.astype(">f4"), name)) == expected).all()
        assert (bits(from_numpy(half.reshape(2, -1)[:, ::-1], name)) == expected.reshape(2, -1)[:, ::-1]).all()
    same = from_numpy(np.array([1, 2], ml_dtypes.bfloat16), "bfloat16")
    assert same.dtype == ml_dtypes.bfloat16
    assert from_numpy(np.array([1, 2], ml_dtypes.bfloat16), "float8_e5m2").tolist() == [1, 2]
    assert from_numpy(np.float32(1.5), "bfloat16").shape == ()
    assert from_numpy(np.zeros((2, 0), np.float32), "bfloat16").shape == (2, 0)


def test_levels_agree_on_long_arrays(monkeypatch):
    values = np.random.default_rng(3).integers(0, 1 << 32, 100_003, dtype=np.uint32).view(np.float32)
    for name in NAMES:
        results = set()
        for one in simd_levels():
            monkeypatch.setenv("DUMPSIM_SIMD", one)
            codes = from_numpy(values, name)
            wide = np.empty(values.size, np.float32)
            kernel.to_float(wide, bits(codes), values.size, kernel.KINDS[name], simd_levels().index(one))
            results.add((codes.tobytes(), wide.tobytes()))
        assert len(results) == 1


@given(
    hnp.arrays(np.int8, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9), elements=st.integers(-8, 7))
)
@settings(max_examples=80, deadline=None)
def test_int4_there_and_back(values):
    raw = from_numpy(values, "int4")
    assert raw.dtype == np.uint8
    flat = [int(v) & 15 for v in values.reshape(-1)] + [0] * (values.size % 2)
    assert raw.tolist() == [a | b << 4 for a, b in zip(flat[::2], flat[1::2], strict=True)]
    back = to_numpy(raw.tobytes(), "int4", values.shape)
    assert back.dtype == np.int8
    assert back.shape == values.shape
    assert (back == values).all()


@given(
    hnp.arrays(np.uint8, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9), elements=st.integers(0, 1))
)
@settings(max_examples=80, deadline=None)
def test_uint1_there_and_back(values):
    raw = from_numpy(values, "uint1")
    assert raw.tobytes() == np.packbits(values.reshape(-1)).tobytes()
    back = to_numpy(raw, "uint1", values.shape)
    assert back.dtype == np.uint8
    assert (back == values).all()


def test_packed_types_at_every_level_and_length(level):
    rng = np.random.default_rng(1)
    for count in [*range(70), 1000, 4099]:
        raw = rng.integers(0, 256, count, dtype=np.uint8)
        nibbles = np.stack([raw & 15, raw >> 4], -1).reshape(-1).astype(np.int8)
        assert (widen(raw, "int4") == np.where(nibbles > 7, nibbles - 16, nibbles)).all()
        assert (widen(raw, "uint1") == np.unpackbits(raw)).all()
        assert (from_numpy(widen(raw, "int4"), "int4") == raw).all()
        assert (from_numpy(widen(raw, "uint1").astype(bool), "uint1") == raw).all()


@pytest.mark.parametrize("count", range(25))
def test_uint1_with_the_defect_of_mindspore(count):
    raw = bytes([0xFF] * ((count + 7) // 8))
    got = to_numpy(raw, "uint1", (count,), bug_compat=True)
    whole, rest = divmod(count, 8)
    taken = min(count, whole * 8 + (8 - rest if rest else 0))
    assert got.tolist() == [1] * taken + [0] * (count - taken)


def test_shapes_without_elements_and_up_to_the_limit():
    for name in ("float32", "bfloat16", "int4", "uint1"):
        for shape in ((0,), (3, 0), (0, 1 << 48), (1 << 24, 0, 1 << 24)):
            assert to_numpy(b"", name, shape).shape == shape
        with pytest.raises(BadInputError, match="is not a shape that memory can hold"):
            to_numpy(b"", name, (0, (1 << 48) + 1))


@pytest.mark.parametrize("name", NAMES)
def test_numbers_that_have_the_type_already_are_copied(name):
    codes = np.arange(8, dtype=f"u{np.dtype(ORACLE[name]).itemsize}")
    if name == "hifloat8":  # its codes are uint8, which are numbers of another type
        with pytest.raises(DtypeError, match="uint8 cannot become hifloat8"):
            from_numpy(codes, name)
        return
    given = codes.view(ORACLE[name])
    found = from_numpy(given, name)
    assert found.dtype == given.dtype
    assert bits(found).tolist() == codes.tolist()
    assert not np.shares_memory(found, given)


def test_widen_follows_the_dump():
    packed = np.array([[0x10, 0x32], [0x54, 0xF6]], np.uint8)
    assert widen(packed, "int4").tolist() == [[0, 1, 2, 3], [4, 5, 6, -1]]
    assert widen(packed.view(np.int8), "int4").shape == (2, 4)
    assert widen(np.array([1, -8], ml_dtypes.int4), "int4").tolist() == [1, -8]
    assert widen(np.uint8(0x81), "uint1").tolist() == [1, 0, 0, 0, 0, 0, 0, 1]
    assert widen(packed, "uint1").shape == (2, 16)
    assert widen(np.array([0x3F80], ">u2"), "bfloat16").tolist() == [1.0]
    assert widen(np.zeros((2, 0), ml_dtypes.bfloat16), "bfloat16").shape == (2, 0)
    for dtype in (np.float16, np.int8, np.bool_, np.float64, np.complex64):
        array = np.ones(3, dtype)
        assert widen(array, np.dtype(dtype).name) is array


def test_native_types_are_read_as_they_are():
    values = np.arange(6, dtype="<i4")
    raw = b"x" + values.tobytes()
    assert to_numpy(memoryview(raw)[1:], "Int32", (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert to_numpy(b"\x00\x3c", "float16", ()).dtype == np.float16
    assert to_numpy(values.astype(">i4"), "int32", (6,)).tolist() == values.tolist()
    assert from_numpy(values, "int32").tobytes() == values.tobytes()
    assert from_numpy(values.astype(">i4"), "int32").tobytes() == values.tobytes()


def test_bytes_at_any_address_are_aligned_and_copied_only_where_they_are_not():
    values = np.arange(3, dtype="<f8")
    whole = np.zeros(1 << 10, np.uint8)
    for start in range(600):
        whole[start : start + values.nbytes] = values.view(np.uint8)
        raw = whole[start : start + values.nbytes]
        found = to_numpy(raw, "float64", (3,))
        assert found.tolist() == values.tolist()
        assert found.ctypes.data % 16 == 0
        assert np.shares_memory(found, whole) == (raw.ctypes.data % 16 == 0)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: to_numpy(b"", "float99", (0,)), DtypeError, "unknown number type 'float99'.*did you mean"),
        (lambda: to_numpy(b"abc", "bfloat16", (2,)), BadInputError, "raw: bfloat16 of shape .2,. has 4 bytes, got 3"),
        (lambda: to_numpy(b"abc", "int4", (8,)), BadInputError, "has 4 bytes, got 3.*did you mean '6 elements'"),
        (lambda: to_numpy(b"abc", "uint1", (1 << 40,)), BadInputError, "bytes, got 3"),
        (lambda: to_numpy(b"", "uint1", (0, 1 << 60)), BadInputError, "not a shape that memory can hold"),
        (lambda: to_numpy(b"", "uint1", (-1,)), BadInputError, "not a shape that memory can hold"),
        (
            lambda: from_numpy(np.float32([1]), "hifloat8", "nearest_even"),
            BadInputError,
            "allowed: nearest, nearest_away",
        ),
        (
            lambda: from_numpy(np.float32([1]), "bfloat16", "down"),
            BadInputError,
            "rounding: bfloat16 is not rounded 'down'",
        ),
        (lambda: from_numpy([1, 2], "bfloat16"), DtypeError, "int64 cannot become bfloat16"),
        (lambda: from_numpy([8], "int4"), BadInputError, "8 is not an int4; allowed: -8..7 .did you mean '7'"),
        (lambda: from_numpy([-9], "int4"), BadInputError, "did you mean '-8'"),
        (lambda: from_numpy([2], "uint1"), BadInputError, "2 is not a uint1; allowed: 0..1"),
        (lambda: from_numpy([0.5], "int4"), DtypeError, "float64 cannot become int4"),
        (lambda: from_numpy([0.5], "float32"), DtypeError, "float64 cannot become float32"),
        (
            lambda: widen(np.zeros(2, np.float32), "bfloat16"),
            DtypeError,
            "elements of 2 bytes in an array, got float32",
        ),
        (lambda: widen(np.zeros(2, np.float16), "bfloat16"), DtypeError, "float16 has no codes of bfloat16"),
        (lambda: widen(np.zeros(2, np.int16), "int4"), DtypeError, "elements of 1 bytes in an array, got int16"),
    ],
)
def test_errors_name_what_where_and_the_way_out(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert isinstance(caught.value, DumpsimError)


def test_the_kernel_checks_sizes_and_kinds():
    out, src = np.zeros(4, np.float32), np.zeros(4, np.uint16)
    with pytest.raises(ValueError, match="3 elements do not go from 8 to 16 bytes"):
        kernel.to_float(out, src, 3, 0, 0)
    with pytest.raises(ValueError, match="no float of kind 99"):
        kernel.to_float(out, src, 4, 99, 0)
    with pytest.raises(ValueError, match="elements"):
        kernel.to_float(out, src, -1, 0, 0)
    with pytest.raises((ValueError, BufferError)):
        kernel.to_float(out[::2], src[:2], 2, 0, 0)


@pytest.mark.parametrize("kind", [np.uint16, np.int16, np.dtype(">u2"), ml_dtypes.bfloat16])
def test_few_elements_of_bfloat16_are_widened_to_the_same_bits(kind):
    codes = np.arange(1 << 16, dtype=np.uint16)
    whole = (codes.astype(np.uint32) << 16).tolist()
    given = codes.astype(">u2") if kind == np.dtype(">u2") else codes.view(kind)
    assert widen(given, "bfloat16").view(np.uint32).tolist() == whole
    parts = [widen(part, "bfloat16").view(np.uint32) for part in np.split(given, 64)]
    assert np.concatenate(parts).tolist() == whole
    assert widen(given[::2][:7], "bfloat16").view(np.uint32).tolist() == whole[:14:2]
    assert widen(given[5], "bfloat16").shape == ()
