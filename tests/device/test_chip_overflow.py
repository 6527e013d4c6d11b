"""Chips as data, and how each stores what does not fit."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError
from dumpsim.device.chip import CHIPS, OverflowMode, chip, chip_for
from dumpsim.device.device import Device
from dumpsim.device.halves import floating, to_half, to_single
from dumpsim.device.overflow import narrow, overflow_mode, status_bits

SATURATION, INFNAN = OverflowMode.SATURATION, OverflowMode.INFNAN
VARIABLE = "MS_ASCEND_CHECK_OVERFLOW_MODE"


def test_defaults_of_the_targets():
    assert [chip_for(target).name for target in ("Ascend", "GPU", "CPU")] == ["910B", "GPU", "CPU"]
    assert [chip(n).private_formats("O0") for n in ("910A", "910B", "GPU", "CPU")] == [True, False, False, False]
    assert [chip(n).private_formats("O2") for n in ("910A", "910B")] == [True, True]
    assert [chip(n).overflow for n in ("910A", "910B", "910_93", "GPU", "CPU")] == [
        SATURATION,
        INFNAN,
        INFNAN,
        None,
        None,
    ]


def test_unknown_chips_name_the_nearest():
    with pytest.raises(BadInputError, match=r"unknown chip '910C'; allowed: 910A, 910B.*did you mean '910"):
        chip("910C")
    with pytest.raises(BadInputError, match="chip GPU is not a chip of Ascend"):
        chip_for("Ascend", "GPU")
    with pytest.raises(BadInputError, match=r"unknown device target 'Ascnd'.*'Ascend'"):
        chip_for("Ascnd")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("910A", "INFNAN_MODE", SATURATION),
        ("910A", "nonsense", SATURATION),
        ("910B", "SATURATION_MODE", SATURATION),
        ("910B", "INFNAN_MODE", INFNAN),
        ("910_93", "SATURATION_MODE", SATURATION),
        ("GPU", "SATURATION_MODE", None),
    ],
)
def test_only_the_910b_class_reads_the_variable(name, value, expected):
    assert overflow_mode(chip(name), {VARIABLE: value}) == expected


def test_a_wrong_mode_is_an_error_on_a_chip_that_reads_it():
    with pytest.raises(BadInputError, match="SATURATION_MODE, INFNAN_MODE"):
        Device(chip("910B"), environment={VARIABLE: "SATURATE"})


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_saturation_clamps_where_infnan_gives_inf(name):
    target = dtype(name).numpy
    limit = float(ml_dtypes.finfo(target).max)
    exact = np.array([limit * 2, -limit * 2, 1, 0], np.float64)
    stored, overflow = narrow(exact, dtype(name), SATURATION)
    assert overflow
    assert stored.dtype == target
    assert stored.astype(np.float64).tolist() == [limit, -limit, 1, 0]
    stored, overflow = narrow(exact, dtype(name), INFNAN)
    assert overflow
    assert stored.astype(np.float64).tolist() == [np.inf, -np.inf, 1, 0]


def test_nan_and_inf_operands_saturate_without_an_overflow():
    stored, overflow = narrow(np.array([np.inf, np.nan], np.float32), dtype("float16"), SATURATION, inputs_finite=False)
    assert stored.tolist() == [65504.0, 0.0]
    assert not overflow


def test_a_result_that_rounds_down_to_the_largest_number_is_no_overflow():
    for value, expected in ((65519.0, False), (65520.0, True)):
        assert narrow(np.array([value], np.float32), dtype("float16"), INFNAN)[1] is expected


@settings(max_examples=80, deadline=None)
@given(
    arrays(np.float32, array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5), elements=st.floats(width=32)),
    st.sampled_from(["float16", "bfloat16", "float32"]),
)
def test_narrowing_is_ieee_rounding_where_everything_fits(values, name):
    with np.errstate(all="ignore"):
        rounded = values.astype(dtype(name).numpy)
    for mode in (INFNAN, None):
        assert narrow(values, dtype(name), mode)[0].tobytes() == rounded.tobytes()
    stored, overflow = narrow(values, dtype(name), SATURATION)
    finite = np.isfinite(rounded.astype(np.float64))
    kept = np.isnan(values) & (name == "float32")  # float32 units keep NaN, those of 16 bits store 0
    assert (np.isnan(stored.astype(np.float64)) == kept).all()
    assert np.isfinite(stored[~kept].astype(np.float64)).all()
    assert (stored[np.isnan(values) & ~kept] == 0).all()
    assert stored[finite].tobytes() == rounded[finite].tobytes()
    assert overflow == (not finite.all())


@pytest.mark.parametrize("kind", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
def test_compiled_and_plain_conversions_give_the_same_bits(kind):
    codes = np.arange(1 << 16, dtype=np.uint16)
    single = to_single(codes.view(kind))
    assert single.dtype == np.float32
    assert single.tobytes() == codes.view(kind).astype(np.float32).tobytes()
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1 << 32, 1 << 18, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        beside = [np.nextafter(single, np.float32(np.inf)), single * np.float32(1.0009765)]
        values = np.concatenate([values, single, *beside])
        values[np.isnan(values)] = np.nan
        assert to_half(values, kind).tobytes() == values.astype(kind).tobytes()
    assert to_half(values.reshape(-1, 2)[::2].T, kind).shape == (2, values.size // 4)


def test_the_status_register_is_sticky_until_it_is_cleared():
    device = Device(chip("910A"), environment={})
    assert not device.status.raised
    assert device.status.count == 0
    assert device.status.read().tolist() == [0] * 8
    device.status.set()
    device.status.set()
    assert device.status.read().tolist() == [1] + [0] * 7
    assert device.status.read().dtype == np.int32
    device.status.clear()
    assert not device.status.raised
    assert device.status.count == 2


ALL, LAST = ("", "O0", "O1", "O2"), ("O2",)
# the vendors' data sheets: GiB, 10**12 operations and 10**9 bytes a second; formats and modes are of [decisions: chip]
# and [spec parallel 4.4]
ROWS = [
    ("910A", "Ascend", "Ascend910", 32, ALL, "float16", SATURATION, False, "O2", 256, 1200),
    ("910B", "Ascend", "Ascend910B", 64, LAST, "float16", INFNAN, True, "O0", 320, 1600),
    ("910_93", "Ascend", "Ascend910_93", 64, LAST, "float16", INFNAN, True, "O0", 350, 1600),
    ("310P", "Ascend", "Ascend310P", 24, ALL, "float16", SATURATION, False, "O2", 70, 200),
    ("GPU", "GPU", "", 32, (), None, None, False, "O0", 100, 900),
    ("CPU", "CPU", "", 64, (), None, None, False, "O0", 1, 50),
]


@pytest.mark.parametrize(
    ("name", "target", "soc", "gib", "private", "cube", "mode", "switch", "level", "teraops", "gigabytes"), ROWS
)
def test_the_table_of_chips(name, target, soc, gib, private, cube, mode, switch, level, teraops, gigabytes):
    row = chip(name)
    assert (row.target, row.soc, row.memory, row.cube_dtype) == (target, soc, gib * 2**30, cube)
    assert (row.overflow, row.overflow_switch, row.default_level) == (mode, switch, level)
    assert tuple(each for each in ("", "O0", "O1", "O2") if row.private_formats(each)) == private
    assert ("hccl" in row.engines) is (target == "Ascend")
    assert chip(name.lower()) is row
    assert chip((soc or name).upper()) is row
    assert chip_for(target.upper(), name) is row
    prices = row.prices
    assert prices.kernel_ns(10**15, 0) - prices.kernel_ns(0, 0) == 10**12 // teraops
    assert prices.kernel_ns(0, 10**15) - prices.kernel_ns(0, 0) == 10**15 // gigabytes
    assert prices.kernel_ns(10**15, 10**15) - prices.kernel_ns(0, 0) == max(10**12 // teraops, 10**15 // gigabytes)


def test_latencies_of_kernels_copies_and_launches():
    """PCIe has 10 us and 20 GB a second [spec parallel 7.4]; all the others are assumptions."""
    assert len(CHIPS) == len(ROWS)
    found = {
        row.name: (
            row.prices.kernel_ns(0, 0),
            row.prices.copy_duration_ns(0),
            row.prices.copy_duration_ns(10**9) - row.prices.copy_duration_ns(0),
            row.prices.host_ns,
        )
        for row in CHIPS.values()
    }
    pcie = (10_000, 10**9 // 20, 1_000)
    assert found == {
        **dict.fromkeys(("910A", "910B", "910_93", "310P"), (5_000, *pcie)),
        "GPU": (4_000, *pcie),
        "CPU": (2_000, 500, 10**9 // 10, 1_000),
    }


@pytest.mark.parametrize(
    ("kind", "cube", "bits"),
    [
        ("float32", False, 0x20), ("float32", True, 0x400), ("bfloat16", False, 0x20), ("bfloat16", True, 0x400),
        ("float16", False, 0x100), ("float16", True, 0x100),
    ],
)  # fmt: skip
def test_bits_of_the_status_word(kind, cube, bits):
    assert status_bits(dtype(kind), cube=cube) == bits  # [spec mindspore 5.2]


@pytest.mark.parametrize("values", [(1e6, 1.0), (-1e6, 1.0), (np.inf, 2.0), (1.0, -np.inf)])
@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_one_number_that_is_too_large_on_either_side_is_an_overflow(kind, values):
    wide = np.array(values, np.float64) * (1e35 if kind == "float32" else 1)
    largest = float(np.finfo(kind).max)
    stored, overflow = narrow(wide, dtype(kind), SATURATION)
    assert overflow
    assert stored.tolist() == np.clip(wide, -largest, largest).astype(kind).tolist()
    for finite in (True, False):
        assert narrow(wide, dtype(kind), INFNAN, inputs_finite=finite)[1] is finite
        assert narrow(wide, dtype(kind), SATURATION, inputs_finite=finite)[1] is finite
    for mode in (INFNAN, None):
        with np.errstate(over="ignore"):
            assert narrow(wide, dtype(kind), mode)[0].tolist() == wide.astype(kind).tolist()
    assert not narrow(wide, dtype(kind), None)[1]  # nobody detects it


def test_a_result_that_fits_is_the_very_array():
    for kind in ("float32", "int32", "int4"):
        values = np.zeros(3, dtype(kind).numpy)
        stored, overflow = narrow(values, dtype(kind), SATURATION)
        assert stored is values
        assert not overflow


def test_int4_is_packed_in_pairs():
    stored, overflow = narrow(np.array([[1, 2, -8, -1], [0, 7, 3, 4]], np.int8), dtype("int4"), SATURATION)
    assert not overflow
    assert stored.shape == (2, 2)
    assert stored.tobytes() == bytes([0x21, 0xF8, 0x70, 0x43])  # the first number is the low half


def test_which_numbers_are_floats():
    kinds = ("float16", "bfloat16", "float32", "float64", "int4", "uint1", "int8", "bool", "complex64")
    assert [name for name in kinds if floating(np.zeros(2, dtype(name).numpy))] == list(kinds[:4])


@pytest.mark.parametrize("count", [1, 5000])  # large arrays have a compiled cast, which takes float32 alone
def test_doubles_are_rounded_once(count):
    """Through float32 the tie would be to even, which is 1."""
    value = 1 + 2**-11 + 2**-40
    assert set(to_half(np.full(count, value), np.dtype(np.float16)).tolist()) == {1 + 2**-10}


@pytest.mark.parametrize("kind", ["int16", "uint16", "float16", "float64", "int32"])
@pytest.mark.parametrize("times", [1, 1000])  # large 16-bit floats have a compiled cast
def test_results_of_other_types_become_float32_by_value(kind, times):
    values = np.tile(np.array([0, 1, 2, 1000, 30000], kind), times)
    got, overflowed = narrow(values, dtype("float32"), None)
    assert got.dtype == np.float32
    assert got.tolist() == [0.0, 1.0, 2.0, 1000.0, 30000.0] * times
    assert not overflowed


@pytest.mark.parametrize("kind", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
def test_how_a_double_is_rounded_does_not_depend_on_those_beside_it(kind):
    eps = float(ml_dtypes.finfo(kind).eps)
    few = np.concatenate([1 + (at + 0.5) * eps + np.array([0, 2.0**-40, -(2.0**-40)]) for at in range(4)])
    alone = to_half(few, kind)
    assert to_half(np.tile(few, 1000), kind).tobytes() == np.tile(alone, 1000).tobytes()
    if kind == np.float16:
        assert ((alone.astype(np.float64) - 1) / eps).tolist() == [0, 1, 0, 2, 2, 1, 2, 3, 2, 4, 4, 3]
