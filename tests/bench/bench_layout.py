"""Layouts against memcpy and against numpy: `pytest tests/bench/bench_layout.py`.

Every comparison comes twice. `fresh`: each side writes into memory that it has just been given, so that both pay for
the pages, as a caller of `to_device` does. `warm`: each side writes into its own array that it has written before.
"""

import math

import numpy as np
import pytest

from dumpsim.tensor.layout import to_device, to_host

# layout, and the host shape for so many elements: activations, weights and matrices as large networks have them
SHAPES = {
    "NC1HWC0": lambda n: (max(1, n // (256 * 64 * 64)), 256, 64, 64),
    "NC1HWC0 odd": lambda n: (max(1, n // (250 * 55 * 55)), 250, 55, 55),
    "FRACTAL_Z 1x1": lambda n: (round(math.sqrt(n) / 16) * 16, round(math.sqrt(n) / 16) * 16, 1, 1),
    "FRACTAL_Z 3x3": lambda n: (round(math.sqrt(n / 9) / 16) * 16, round(math.sqrt(n / 9) / 16) * 16, 3, 3),
    "FRACTAL_Z 7x7": lambda n: (round(math.sqrt(n / 49) / 16) * 16, round(math.sqrt(n / 49) / 16) * 16, 7, 7),
    "FRACTAL_NZ": lambda n: (n // 8192, 8192),
    "FRACTAL_NZ odd": lambda n: (n // 8001, 8001),
}


def numpy_to_device(host, fmt):
    """The usual way: pad, reshape, transpose, copy."""
    if fmt == "FRACTAL_NZ":
        h, w = host.shape
        padded = np.pad(host, ((0, -h % 16), (0, -w % 16))) if h % 16 or w % 16 else host
        blocks = padded.reshape(padded.shape[0] // 16, 16, padded.shape[1] // 16, 16)
        return np.ascontiguousarray(blocks.transpose(2, 0, 1, 3))
    n, c, h, w = host.shape
    if fmt == "NC1HWC0":
        padded = np.pad(host, ((0, 0), (0, -c % 16), (0, 0), (0, 0))) if c % 16 else host
        return np.ascontiguousarray(padded.reshape(n, -1, 16, h, w).transpose(0, 1, 3, 4, 2))
    padded = np.pad(host, ((0, -n % 16), (0, -c % 16), (0, 0), (0, 0))) if n % 16 or c % 16 else host
    blocks = padded.reshape(padded.shape[0] // 16, 16, padded.shape[1] // 16, 16, h, w)
    return np.ascontiguousarray(blocks.transpose(2, 4, 5, 0, 1, 3)).reshape(-1, padded.shape[0] // 16, 16, 16)


def numpy_to_host(device, fmt, shape):
    """The inverse: reshape, transpose, slice, copy."""
    if fmt == "FRACTAL_NZ":
        w1, h1, _, _ = device.shape
        return np.ascontiguousarray(device.transpose(1, 2, 0, 3).reshape(h1 * 16, w1 * 16)[: shape[0], : shape[1]])
    n, c, h, w = shape
    if fmt == "NC1HWC0":
        whole = device.transpose(0, 1, 4, 2, 3).reshape(n, -1, h, w)
    else:
        blocks = device.reshape(-1, h, w, device.shape[1], 16, 16)
        whole = blocks.transpose(3, 4, 0, 5, 1, 2).reshape(device.shape[1] * 16, -1, h, w)
    return np.ascontiguousarray(whole[:n, :c])


def blocks(host, device, fmt):
    """Views of both sides, without padding, with the same axes: what numpy can copy from one to the other."""
    if fmt == "FRACTAL_NZ":
        h, w = host.shape
        return host.reshape(h // 16, 16, w // 16, 16).transpose(2, 0, 1, 3), device
    n, c, h, w = host.shape
    if fmt == "NC1HWC0":
        return host.reshape(n, c // 16, 16, h, w).transpose(0, 1, 3, 4, 2), device
    split = host.reshape(n // 16, 16, c // 16, 16, h, w).transpose(2, 4, 5, 0, 1, 3)
    return split, device.reshape(c // 16, h, w, n // 16, 16, 16)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("direction", ["to_device", "to_host"])
@pytest.mark.parametrize("memory", ["fresh", "warm"])
def test_against_memcpy_and_numpy(race, bench_bytes, dtype, case, direction, memory):
    fmt = case.split()[0]
    size = np.dtype(dtype).itemsize
    shape = SHAPES[case](bench_bytes // size)
    host = np.resize(np.arange(1 << 20, dtype=f"u{size}"), math.prod(shape)).view(dtype).reshape(shape)
    device = to_device(host, fmt)
    assert (numpy_to_device(host, fmt).view("u1") == device.view("u1")).all()
    source = host if direction == "to_device" else device
    rival = {"to_device": lambda: numpy_to_device(host, fmt), "to_host": lambda: numpy_to_host(device, fmt, shape)}
    into = {}
    if memory == "warm":  # an earlier result, which begins on a cache line
        into["out"] = to_device(host, fmt) if direction == "to_device" else to_host(device, fmt, shape)
    if direction == "to_device":
        subject = lambda: to_device(host, fmt, **into)  # noqa: E731
    else:
        subject = lambda: to_host(device, fmt, shape, **into)  # noqa: E731
    if memory == "fresh":
        race(host.nbytes, subject, memcpy=source.copy, numpy=rival[direction])
    else:
        target = np.zeros_like(source)
        rivals = {"memcpy": lambda: np.copyto(target, source)}
        if "odd" not in case:
            views = blocks(host, np.zeros_like(device), fmt)
            to, of = views[::-1] if direction == "to_device" else (blocks(np.zeros_like(host), device, fmt))
            rivals["numpy"] = lambda: np.copyto(to, of)
        race(host.nbytes, subject, **rivals)


@pytest.mark.parametrize("threads", [2])
@pytest.mark.parametrize("case", ["NC1HWC0", "FRACTAL_Z 3x3", "FRACTAL_NZ"])
def test_threads(race, bench_bytes, case, threads):
    shape = SHAPES[case](bench_bytes // 2)
    host = np.resize(np.arange(1 << 16, dtype=np.uint16), math.prod(shape)).reshape(shape)
    fmt = case.split()[0]
    race(host.nbytes, lambda: to_device(host, fmt, threads=threads), one_thread=lambda: to_device(host, fmt))
