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
from dumpsim.device.halves import to_half, to_single
from dumpsim.device.overflow import narrow, overflow_mode

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
    assert device.status.read().tolist() == [0] * 8
    device.status.set()
    device.status.set()
    assert device.status.read().sum() > 0
    assert device.status.read().dtype == np.int32
    device.status.clear()
    assert not device.status.raised
    assert device.status.count == 2


def test_every_chip_has_prices_and_memory():
    for row in CHIPS.values():
        assert row.memory > 1 << 30
        assert row.prices.kernel_ns(10**12, 10**9) > row.prices.launch_ns


@pytest.mark.parametrize("kind", ["int16", "uint16", "float16", "float64", "int32"])
@pytest.mark.parametrize("times", [1, 1000])  # large 16-bit floats have a compiled cast
def test_results_of_other_types_become_float32_by_value(kind, times):
    values = np.tile(np.array([0, 1, 2, 1000, 30000], kind), times)
    got, overflowed = narrow(values, dtype("float32"), None)
    assert got.dtype == np.float32
    assert got.tolist() == [0.0, 1.0, 2.0, 1000.0, 30000.0] * times
    assert not overflowed
