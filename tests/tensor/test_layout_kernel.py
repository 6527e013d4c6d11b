"""The compiled copy against numpy: any axes, any strides, every level, every way to divide the work."""

import signal
import threading
import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim._ext import layout as kernel
from dumpsim.tensor.layout import to_device
from dumpsim.tensor.simd import simd_levels

LEVELS = range(len(simd_levels()))


def expected(src, dims, src_start, dst_start, size, dtype):
    """The copy by numpy: strided views on both sides."""
    out = np.zeros(size, dtype)
    shape = [n for n, _, _ in dims]
    step = out.itemsize
    to = np.lib.stride_tricks.as_strided(out[dst_start:], shape, [d * step for _, d, _ in dims])
    to[...] = np.lib.stride_tricks.as_strided(src[src_start:], shape, [s * step for _, _, s in dims])
    return out


@st.composite
def permuted(draw):
    """Axes that tile a source in one order and a destination in another, with gaps."""
    ndim = draw(st.integers(1, 5))
    extents = [draw(st.sampled_from([1, 2, 3, 5, 8, 9, 15, 16, 17, 31, 32, 33, 70])) for _ in range(ndim)]
    while np.prod(extents) > 40_000:
        extents[int(np.argmax(extents))] = 2
    strides = []
    for order in (draw(st.permutations(range(ndim))), draw(st.permutations(range(ndim)))):
        step, of = draw(st.sampled_from([1, 1, 1, 2])), [0] * ndim
        for k in order:
            of[k] = step
            step = step * extents[k] + draw(st.sampled_from([0, 0, 0, 1, 5]))
        strides.append((of, step))
    (d, d_size), (s, s_size) = strides
    return list(zip(extents, d, s, strict=True)), d_size, s_size


@given(case=permuted(), size=st.sampled_from([1, 2, 4, 8]), start=st.integers(0, 3), parts=st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_copy_is_the_one_of_numpy(case, size, start, parts):
    dims, d_size, s_size = case
    dtype = f"u{size}"
    src = (np.arange(s_size + start) * 2654435761 + 7).astype(dtype)
    want = expected(src, dims, start, start, d_size + start, dtype)
    for level, stream in product(LEVELS, (0, 1)):
        out = np.zeros(d_size + start, dtype)
        for part in reversed(range(parts)):
            kernel.copy(
                out, src, size, [(start, start, tuple(dims))], part=part, parts=parts, level=level, stream=stream
            )
        assert out.tobytes() == want.tobytes(), (level, stream)


@given(
    rows=st.integers(1, 40),
    blocks=st.integers(1, 40),
    run=st.sampled_from([8, 16, 24, 32, 48, 64]),
    gap=st.sampled_from([0, 1, 8, 16]),
    start=st.sampled_from([0, 1, 8, 16]),
)
@settings(max_examples=100, deadline=None)
def test_runs_that_join_in_the_destination(rows, blocks, run, gap, start):
    """FRACTAL_NZ to the host, with rows at every alignment."""
    pitch = blocks * run + gap
    dims = [(rows, pitch, run), (blocks, run, rows * run), (run, 1, 1)]
    src = (np.arange(rows * blocks * run) % 251).astype("u1")
    size = start + rows * pitch
    want = expected(src, dims, 0, start, size, "u1")
    for level, stream in product(LEVELS, (0, 1)):
        room = np.zeros(size + 64, "u1")
        out = room[-room.ctypes.data % 64 :][:size]
        kernel.copy(out, src, 1, [(start, 0, tuple(dims))], level=level, stream=stream)
        assert out.tobytes() == want.tobytes(), (level, stream)


@pytest.mark.parametrize("stream", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("pixels", [4, 8, 9, 10, 25])
def test_panels_of_weights(pixels, size, stream):
    """FRACTAL_Z of small kernels both ways: blocks that join, panels of 16 x 9, ends of tiles."""
    for kernels, blocks, start in product((1, 3, 17, 70), (1, 2, 3, 5), (0, 1)):
        dims = [
            (blocks, pixels * kernels * 16, 16 * pixels),
            (16, 1, pixels),
            (kernels, 16, blocks * 16 * pixels),
            (pixels, kernels * 16, 1),
        ]
        count = kernels * blocks * 16 * pixels
        host = (np.arange(count) * 40503 >> 3).astype(f"u{size}")
        device = expected(host, dims, 0, start, start + count, host.dtype)
        for level in LEVELS:
            out = np.zeros_like(device)
            kernel.copy(out, host, size, [(start, 0, tuple(dims))], level=level, stream=stream)
            assert (out == device).all(), (kernels, blocks, level)
            back = np.zeros(count + start, host.dtype)
            inverse = tuple((n, s, d) for n, d, s in dims)
            kernel.copy(back, device, size, [(start, start, inverse)], level=level, stream=stream)
            assert (back[start:] == host).all(), (kernels, blocks, level)


@pytest.mark.parametrize("stream", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_transposes_of_every_small_size(size, stream):
    src = np.arange(40 * 40, dtype=f"u{size}") if size > 1 else (np.arange(1600) % 251).astype("u1")
    for rows, cols in product(range(1, 36), repeat=2):
        for level in LEVELS:
            out = np.zeros((cols, rows), src.dtype)
            kernel.copy(
                out.reshape(-1), src, size, [(0, 3, ((cols, rows, 1), (rows, 1, 40)))], level=level, stream=stream
            )
            assert (out == np.lib.stride_tricks.as_strided(src[3:], (cols, rows), (size, 40 * size))).all()


def test_negative_strides():
    src = np.arange(12, dtype="u2")
    out = np.zeros(12, "u2")
    kernel.copy(out, src, 2, [(0, 11, ((12, 1, -1),))])
    assert out.tolist() == list(range(12))[::-1]


@pytest.mark.parametrize(
    "region",
    [
        (0, 0, ((13, 1, 1),)),
        (1, 0, ((12, 1, 1),)),
        (0, 1, ((12, 1, 1),)),
        (-1, 0, ((2, 1, 1),)),
        (0, 0, ((2, -1, 1),)),
        (0, 0, ((2, 1, -1),)),
        (0, 0, ((2, 1 << 40, 1),)),
        (12, 12, ()),
    ],
)
def test_regions_outside_the_buffers_are_refused(region):
    out = np.zeros(12, "u4")
    with pytest.raises(IndexError, match="region covers bytes"):
        kernel.copy(out, np.arange(12, dtype="u4"), 4, [region])
    assert not out.any()


FAR, HALF = (1 << 62) - 1, 1 << 61


@pytest.mark.parametrize(
    "region",
    [
        # spans and offsets whose sums wrap around at 64 bits, to a place inside the buffers
        (0, 0, ((HALF + 1, 2, 0),)),
        (0, 0, ((HALF + 1, 0, 2),)),
        (0, 0, ((3, HALF // 2, 1), (3, HALF // 2, 1), (3, HALF // 2, 1), (3, HALF // 2, 1))),
        (0, 0, ((2, HALF // 2, 1), (2, -(HALF // 2), 1), (3, HALF // 2, HALF // 2))),
        (-HALF, 0, ((2, HALF, 1),)),
        (FAR // 4, 0, ((3, FAR // 4, 1),)),
        (0, -(1 << 61), ((5, 1, 1 << 59),)),
        (0, 0, ((2, -(1 << 61), 1),)),
        # numbers of more than 64 bits
        (1 << 70, 0, ((1, 1, 1),)),
        (0, 0, ((1 << 64, 0, 0),)),
        (0, 0, ((2, 1 << 63, 1),)),
        # so many elements that counting them wraps around, and copying them would take centuries
        (0, 0, ((1 << 40, 0, 0), (1 << 40, 0, 0))),
    ],
)
def test_forged_plans_whose_sums_overflow_are_refused(region):
    out = np.zeros(12, "u4")
    with pytest.raises(IndexError, match=r"region|elements"):
        kernel.copy(out, np.arange(12, dtype="u4"), 4, [region])
    assert not out.any()


def test_arguments_are_checked():
    a, b = np.zeros(4, "u4"), np.zeros(4, "u4")
    with pytest.raises(ValueError, match="elements of 4 and 4 bytes, not 2"):
        kernel.copy(a, b, 2, [])
    with pytest.raises(ValueError, match="part 2 of 2"):
        kernel.copy(a, b, 4, [], part=2, parts=2)
    with pytest.raises(ValueError, match="level 9 is not on this CPU"):
        kernel.copy(a, b, 4, [], level=9)
    with pytest.raises(ValueError, match="17 axes"):
        kernel.copy(a, b, 4, [(0, 0, ((1, 0, 0),) * 17)])
    with pytest.raises(ValueError, match="no copy for elements of 16 bytes"):
        kernel.copy(np.zeros(4, "c16"), np.zeros(4, "c16"), 16, [(0, 0, ((4, 1, 1),))])
    a.flags.writeable = False
    with pytest.raises((BufferError, ValueError)):
        kernel.copy(a, b, 4, [])


def test_work_stops_at_the_flag():
    src = np.ones((64 << 20) // 4, "u4")
    out = np.zeros_like(src)
    kernel.copy(out, src, 4, [(0, 0, ((src.size, 1, 1),))], stop=bytearray([1]))
    assert out[0] == 1
    assert out[-1] == 0


def test_ctrl_c_is_seen_between_slabs():
    """A signal that arrives while a long list of regions is copied ends it with KeyboardInterrupt."""
    src = np.zeros((2, 64, 128, 128), "f2")
    out = to_device(src, "NC1HWC0").view("u2")
    region = (0, 0, ((2, 64 * 16384, 64 * 16384), (4, 16 * 16384, 16 * 16384), (16384, 16, 1), (16, 1, 16384)))
    main = threading.get_ident()

    def interrupt():
        time.sleep(0.1)
        signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            kernel.copy(out, src.view("u2"), 2, [region] * 200_000)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
