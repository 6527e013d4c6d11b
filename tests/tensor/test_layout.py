"""Layouts against the specifications' own index formulas, and both directions against each other.

The first half writes the layouts as the specifications do: one linear index per host coordinate, in slow loops.
It shares no code or idea with the package: no strides, no regions, no blocks that are cut.
"""

from itertools import product
from math import lcm, prod

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.errors import DumpsimError, FormatError
from dumpsim.core.format import FORMATS, cube_c0, find
from dumpsim.tensor import layout as module
from dumpsim.tensor.layout import device_shape, to_device, to_host
from dumpsim.tensor.region import Layout, plan, strides
from dumpsim.tensor.simd import simd_levels


def up(a, b):
    return (a + b - 1) // b


def pad_shape(shape, rank):
    """Host shape with the axes that spec A 10.1 adds."""
    if rank == 4:
        return {0: (1, 1, 1, 1), 1: (1, *shape, 1, 1), 2: (1, *shape, 1), 3: (1, *shape), 4: shape}[len(shape)]
    return {0: (1,) * 5, 1: (1, *shape, 1, 1, 1), 2: (1, *shape, 1, 1), 3: (1, *shape, 1), 4: (1, *shape), 5: shape}[
        len(shape)
    ]


def scatter(host, shape, index):
    """A device array of `shape` with every host element at its linear index; no two may meet."""
    flat = np.zeros(int(np.prod(shape)), host.dtype)
    seen = set()
    for coord in product(*(range(n) for n in host.shape)):
        at = index(*coord)
        assert at not in seen
        seen.add(at)
        flat[at] = host[coord]
    return flat.reshape(shape)


def nchw_formats(host, fmt, c0):
    """Spec A 10.2 and 10.3 for a host tensor in NCHW."""
    n_, c_, h_, w_ = host.shape
    c1, n1 = up(c_, c0), up(n_, 16)
    if fmt == "NHWC":
        return scatter(host, (n_, h_, w_, c_), lambda n, c, h, w: ((n * h_ + h) * w_ + w) * c_ + c)
    if fmt == "HWCN":
        return scatter(host, (h_, w_, c_, n_), lambda n, c, h, w: ((h * w_ + w) * c_ + c) * n_ + n)
    if fmt == "CHWN":
        return scatter(host, (c_, h_, w_, n_), lambda n, c, h, w: ((c * h_ + h) * w_ + w) * n_ + n)
    if fmt in ("NC1HWC0", "NC1HWC0_C04"):
        return scatter(
            host,
            (n_, c1, h_, w_, c0),
            lambda n, c, h, w: (((n * c1 + c // c0) * h_ + h) * w_ + w) * c0 + c % c0,
        )
    if fmt == "FRACTAL_Z":
        return scatter(
            host,
            (c1 * h_ * w_, n1, 16, c0),
            lambda n, c, h, w: (((c // c0) * h_ + h) * w_ + w) * (n1 * 16 * c0) + n * c0 + c % c0,
        )
    if fmt == "C1HWNCoC0":
        return scatter(
            host,
            (c1, h_, w_, n_, c0, c0),
            lambda n, c, h, w: ((((c // c0) * h_ + h) * w_ + w) * n_ + n) * c0 * c0 + (c % c0) * c0 + c % c0,
        )
    raise AssertionError(fmt)


def ncdhw_formats(host, fmt, c0):
    n_, c_, d_, h_, w_ = host.shape
    c1, n1 = up(c_, c0), up(n_, 16)
    if fmt == "NDHWC":
        return scatter(host, (n_, d_, h_, w_, c_), lambda n, c, d, h, w: (((n * d_ + d) * h_ + h) * w_ + w) * c_ + c)
    if fmt == "DHWCN":
        return scatter(host, (d_, h_, w_, c_, n_), lambda n, c, d, h, w: (((d * h_ + h) * w_ + w) * c_ + c) * n_ + n)
    if fmt == "DHWNC":
        return scatter(host, (d_, h_, w_, n_, c_), lambda n, c, d, h, w: (((d * h_ + h) * w_ + w) * n_ + n) * c_ + c)
    if fmt == "NDC1HWC0":
        return scatter(
            host,
            (n_, d_, c1, h_, w_, c0),
            lambda n, c, d, h, w: ((((n * d_ + d) * c1 + c // c0) * h_ + h) * w_ + w) * c0 + c % c0,
        )
    if fmt == "FRACTAL_Z_3D":
        return scatter(
            host,
            (d_ * c1 * h_ * w_, n1, 16, c0),
            lambda n, c, d, h, w: (((d * c1 + c // c0) * h_ + h) * w_ + w) * (n1 * 16 * c0) + n * c0 + c % c0,
        )
    if fmt == "FRACTAL_Z_3D_TRANSPOSE":  # spec D 5.2: D[((d K1 + k1) H + h) W + w, m1, m0, k0]
        k1, m1 = up(n_, c0), up(c_, 16)

        def index(n, c, d, h, w):
            return ((((((d * k1 + n // c0) * h_ + h) * w_ + w) * m1 + c // 16) * 16) + c % 16) * c0 + n % c0

        return scatter(host, (d_ * k1 * h_ * w_, m1, 16, c0), index)
    raise AssertionError(fmt)


def fractal_nz(host, c0, dialect):
    if host.ndim < 2:
        length = host.size
        if dialect == "mindspore" and (length == 1 or length % c0 == 0):
            return host.copy()
        w1 = up(length, c0)
        flat = host.reshape(-1)
        return scatter(flat, (w1, 1, 16, c0), lambda w: (w // c0) * (16 * c0) + w % c0)
    *lead, h_, w_ = host.shape
    w1, h1 = up(w_, c0), up(h_, 16)
    three = host.reshape(-1, h_, w_) if host.size else host.reshape(int(np.prod(lead)), h_, w_)

    def index(b, h, w):
        return b * (w1 * h1 * 16 * c0) + (w // c0) * (h1 * 16 * c0) + h * c0 + w % c0

    return scatter(three, (three.shape[0], w1, h1, 16, c0), index).reshape(*lead, w1, h1, 16, c0)


def matrix_z(host, c0):
    """Spec D 5.2: D[k1, n1, n0, k0] = X[k1 C0 + k0, n1 16 + n0]."""
    k_, n_ = host.shape
    n1 = up(n_, 16)
    return scatter(
        host,
        (up(k_, c0), n1, 16, c0),
        lambda k, n: (((k // c0) * n1 + n // 16) * 16 + n % 16) * c0 + k % c0,
    )


def grouped(host, groups, c0):
    """Spec A 10.4, D 5.3."""
    n_, cin, h_, w_ = host.shape
    cout = n_ // groups
    e_ = min(lcm(lcm(cin, c0) // cin, lcm(cout, 16) // cout), groups)
    c1 = up(e_ * cin, c0)
    co_opt = up(e_ * cout, 16) * 16
    g_ = up(groups, e_)

    def index(n, c, h, w):
        q, out = divmod(n, cout)
        ci = (q % e_) * cin + c
        co = (q % e_) * cout + out
        slab = h_ * w_ * co_opt * c0
        return ((q // e_) * c1 + ci // c0) * slab + (h * w_ + w) * co_opt * c0 + co * c0 + ci % c0

    return scatter(host, (g_ * c1 * h_ * w_, co_opt // 16, 16, c0), index)


def fractal_z_c04(host, block):
    """Spec A 10.3, D 5.2: destination order, source looked up; k runs over (h, w, 4 channels)."""
    n_, c_, h_, w_ = host.shape
    k1, n1 = up(4 * h_ * w_, block), up(n_, 16)
    out = np.zeros((k1, n1, 16, block), host.dtype)
    for vi, ni, col, row in product(range(k1), range(n1), range(16), range(block)):
        n, k = 16 * ni + col, block * vi + row
        group = 4 * h_ * w_
        h, w = (k % group) // (4 * w_), ((k % group) % (4 * w_)) // 4
        c = 4 * (k // group) + k % 4
        if n < n_ and c < c_:
            out[vi, ni, col, row] = host[n, c, h, w]
    return out


def pad_to(matrix, rows, cols):
    return np.pad(matrix, ((0, rows - matrix.shape[0]), (0, cols - matrix.shape[1])))


def recurrent(weight, segments, hidden, c0):
    """Spec D 5.2: row segments padded to 16, gates to C0; block (k1, n1) holds its columns outside its rows."""
    gates = weight.shape[1] // hidden
    row = 0
    rows = []
    for length in segments:
        part = weight[row : row + length]
        row += length
        padded = [
            pad_to(part[:, g * hidden : (g + 1) * hidden], up(length, 16) * 16, up(hidden, c0) * c0)
            for g in range(gates)
        ]
        rows.append(np.concatenate(padded, axis=1))
    whole = np.concatenate(rows, axis=0)
    k1, n1 = whole.shape[0] // 16, whole.shape[1] // c0
    out = np.zeros((k1, n1, 16 * c0), weight.dtype)
    for i, j in product(range(whole.shape[0]), range(whole.shape[1])):
        out[i // 16, j // c0, (j % c0) * 16 + i % 16] = whole[i, j]
    return out.reshape(k1, n1, 16, c0)


def bias(vector, hidden, c0):
    *lead, last = vector.shape
    size = up(hidden, c0) * c0
    out = np.zeros((*lead, last // hidden * size), vector.dtype)
    for gate in range(last // hidden):
        out[..., gate * size : gate * size + hidden] = vector[..., gate * hidden : (gate + 1) * hidden]
    return out


def reference(
    host, fmt, *, groups=1, c0=None, host_format=None, input_size=None, hidden_size=None, dialect="mindspore"
):
    """The device array that the specification asks for."""
    row = FORMATS[fmt]
    block = c0 or row.c0 or cube_c0(host.dtype.name, itemsize=host.dtype.itemsize, dialect=dialect)
    if fmt in ("FRACTAL_ZN_RNN", "ND_RNN_BIAS"):
        if fmt == "ND_RNN_BIAS":
            return bias(host, hidden_size, block)
        both = host.shape[-2] == input_size + hidden_size
        segments = [input_size, hidden_size] if both else [host.shape[-2]]
        lead = host.shape[:-2]
        parts = [recurrent(m, segments, hidden_size, block) for m in host.reshape(-1, *host.shape[-2:])]
        return np.array(parts, host.dtype).reshape(*lead, *parts[0].shape)
    if fmt == "FRACTAL_NZ":
        return fractal_nz(host, block, dialect)
    if fmt in ("ND", "DefaultFormat", "NCL", "ChannelFirst") or (fmt in ("NCHW", "NCDHW") and host_format is None):
        return host
    if fmt == "ChannelLast":
        return np.moveaxis(host, 1, -1) if host.ndim > 2 else host
    if fmt == "FRACTAL_Z" and dialect == "ge" and host.ndim == 2:
        return matrix_z(host, block)
    if fmt == "FRACTAL_ZN_LSTM":
        if dialect == "ge":
            weight = host.reshape(host.shape[-2:])
        else:
            weight = host.reshape(host.shape[:2]).T
        hidden = weight.shape[1] // 4
        return recurrent(weight, [weight.shape[0] - hidden, hidden], hidden, 16)
    if host_format is None and dialect == "ge" and host.ndim == row.rank:
        host_format = row.ge_host
    canonical = "nchw" if row.rank == 4 else "ncdhw"
    if host_format in (None, canonical.upper()):
        host = host.reshape(pad_shape(host.shape, row.rank))
    else:
        host = host.transpose([host_format.lower().index(x) for x in canonical])
    if groups > 1:
        return grouped(host, groups, block)
    if fmt == "FRACTAL_Z_C04":
        return fractal_z_c04(host, 16 if dialect == "mindspore" else block)
    return (nchw_formats if row.rank == 4 else ncdhw_formats)(host, fmt, block)


DTYPES = ["int8", "uint8", "bool", "float16", "int16", ml_dtypes.bfloat16, "float32", "int32", "int64", "complex64"]
DTYPES += [ml_dtypes.int4, ml_dtypes.float8_e5m2, ">f4"]


def filled(shape, dtype):
    """Distinct patterns as far as the type has them, none of them zero where that can be helped."""
    dtype = np.dtype(dtype)
    if dtype == ml_dtypes.int4:
        return (np.arange(prod(shape)) % 15 - 7).astype(np.int8).astype(dtype).reshape(shape)
    if dtype.kind == "b":
        return (np.arange(prod(shape)) % 3 != 0).reshape(shape)
    size = dtype.itemsize
    return (np.arange(prod(shape)) % (2 ** min(8 * size, 62) - 1) + 1).astype(f"u{size}").view(dtype).reshape(shape)


def same(a, b):
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def check_layout(host, fmt, **options):
    """The contract of every layout: the specification's bytes, its shape, and the way back."""
    device = to_device(host, fmt, **options)
    same(device, reference(host, fmt, **options))
    assert device_shape(host.shape, host.dtype, fmt, **options) == device.shape
    same(to_host(device, fmt, host.shape, **options), host)
    same(to_host(device.reshape(-1), fmt, host.shape, **options), host)


# a host shape and options for every layout; new rows of FORMATS fail test_every_layout_is_checked until they are here
CASES = {
    **{name: [((2, 3), {}), ((), {}), ((2, 3, 4, 5), {})] for name in ("ND", "DefaultFormat", "NCHW", "NCDHW")},
    **{name: [((2, 3, 4), {}), ((5,), {}), ((2, 3, 4, 5, 2), {})] for name in ("NCL", "ChannelFirst", "ChannelLast")},
    **{
        name: [((2, 3, 4, 5), {}), ((17, 33, 3, 3), {}), ((7,), {}), ((3, 4), {}), ((3, 4, 5), {}), ((), {})]
        for name in ("NHWC", "HWCN", "CHWN", "NC1HWC0", "NC1HWC0_C04")
    },
    **{
        name: [(s, {}) for s in ((2, 3, 4, 5, 2), (17, 33, 2, 3, 3), (7,), (3, 4), (3, 4, 5), (3, 2, 4, 5))]
        for name in ("NDHWC", "DHWCN", "DHWNC", "NDC1HWC0", "FRACTAL_Z_3D", "FRACTAL_Z_3D_TRANSPOSE")
    },
    "FRACTAL_Z": [
        ((2, 3, 4, 5), {}),
        ((33, 35, 3, 3), {}),
        ((20, 40), {}),
        ((40, 8, 1, 1), {}),
        ((12, 5, 2, 2), {"groups": 4}),
        ((32, 1, 3, 3), {"groups": 32}),
        ((32, 16, 1, 2), {"groups": 2}),
        ((21, 3, 2, 1), {"groups": 7, "c0": 8}),
    ],
    "FRACTAL_Z_C04": [(s, {}) for s in ((2, 3, 4, 5), (17, 4, 3, 3), (33, 1, 1, 1), (3, 2, 5), (3, 5), (4,), ())],
    "FRACTAL_NZ": [(s, {}) for s in ((20, 40), (), (1,), (7,), (32,), (2, 3, 17, 18), (2, 1, 1, 2, 33, 5))],
    "C1HWNCoC0": [((2, 3, 2, 3), {}), ((3, 20, 1, 2), {}), ((5,), {})],
    "FRACTAL_ZN_LSTM": [((12, 8, 1, 1), {}), ((80, 37, 1, 1), {})],
    "FRACTAL_ZN_RNN": [
        ((12, 21), {"input_size": 5, "hidden_size": 7}),
        ((2, 7, 28), {"input_size": 5, "hidden_size": 7}),
        ((2, 3, 40, 18), {"input_size": 22, "hidden_size": 18}),
        ((16, 32), {"input_size": 16, "hidden_size": 16}),
    ],
    "ND_RNN_BIAS": [((21,), {"hidden_size": 7}), ((2, 3, 36), {"hidden_size": 18}), ((16,), {"hidden_size": 16})],
}  # fmt: skip


def test_every_layout_is_checked():
    assert set(CASES) == {row.name for row in FORMATS.values() if row.known}


@pytest.mark.parametrize("dialect", ["mindspore", "ge"])
@pytest.mark.parametrize("fmt", CASES)
def test_layout_has_the_bytes_of_the_specification(fmt, dialect):
    for position, (shape, options) in enumerate(CASES[fmt]):
        if fmt == "FRACTAL_ZN_LSTM" and dialect == "ge":
            shape = (1, 1, shape[1], shape[0])
        for dtype in DTYPES if position < 1 else ("int8", "float16", "float32", "int64"):
            check_layout(filled(shape, dtype), fmt, dialect=dialect, **options)


def places(start, dims):
    """The linear indices of a rectangle."""
    found = np.array([start])
    for extent, step in dims:
        found = np.add.outer(found, np.arange(extent) * step)
    return found.reshape(-1)


@pytest.mark.parametrize("dialect", ["mindspore", "ge"])
@pytest.mark.parametrize("fmt", CASES)
def test_regions_have_every_element_once(fmt, dialect):
    """What is copied twice would depend on the order, and count against the padding."""
    many = [((16, 13, 1, 1), {})] if fmt == "FRACTAL_Z_C04" else []  # more channels than 4, which fit
    for shape, options in CASES[fmt] + many:
        if fmt == "FRACTAL_ZN_LSTM" and dialect == "ge":
            shape = (1, 1, shape[1], shape[0])
        planned = plan(shape, strides(shape), np.dtype("f2"), Layout(format=fmt, dialect=dialect, **options))
        device = [places(at, [(n, d) for n, d, _ in dims]) for at, _, dims in planned.regions]
        host = [places(at, [(n, h) for n, _, h in dims]) for _, at, dims in planned.regions]
        assert np.sort(np.concatenate(host)).tolist() == list(range(prod(shape)))
        used = np.concatenate(device)
        assert len(set(used.tolist())) == len(used)
        assert 0 <= used.min() <= used.max() < prod(planned.shape)
        assert planned.padded == (len(used) < prod(planned.shape))


@pytest.mark.parametrize("dialect", ["mindspore", "ge"])
@pytest.mark.parametrize("fmt", [name for name, row in FORMATS.items() if row.rank and name != "FRACTAL_ZN_LSTM"])
def test_every_host_order(fmt, dialect):
    orders = ("NCHW", "NHWC", "HWCN", "CHWN") if FORMATS[fmt].rank == 4 else ("NCDHW", "NDHWC", "DHWCN", "DHWNC")
    size = dict(zip("NCDHW", (3, 4, 2, 5, 6), strict=True))
    for order in orders:
        host = filled([size[x] for x in order], "float16")
        if fmt in ("NCHW", "NCDHW"):
            expected = host.transpose([order.index(x) for x in fmt])
            same(to_device(host, fmt, host_format=order, dialect=dialect), np.ascontiguousarray(expected))
            same(to_host(expected, fmt, host.shape, host_format=order, dialect=dialect), host)
        else:
            check_layout(host, fmt, host_format=order, dialect=dialect)


@pytest.mark.parametrize(("fmt", "canonical"), [("NC1HWC0", "NCHW"), ("NDC1HWC0", "NCDHW")])
def test_missing_axes_are_added_if_the_order_is_the_canonical_one(fmt, canonical):
    """[spec mindspore 10.1]"""
    for shape in [(3,), (3, 4), (3, 4, 5)]:
        host = filled(shape, "float16")
        same(to_device(host, fmt, host_format=canonical), to_device(host, fmt))
        with pytest.raises(FormatError, match=r"needs . dimensions, got shape"):
            to_device(host, fmt, host_format={"NCHW": "NHWC", "NCDHW": "NDHWC"}[canonical])


@given(
    fmt=st.sampled_from(["NC1HWC0", "FRACTAL_Z", "C1HWNCoC0", "NHWC", "HWCN", "CHWN"]),
    shape=st.tuples(st.integers(0, 20), st.integers(0, 40), st.integers(0, 4), st.integers(0, 4)),
    dtype=st.sampled_from(["int8", "float16", "float32", "float64"]),
    c0=st.sampled_from([None, None, 1, 4, 8, 16, 32, 5]),
    dialect=st.sampled_from(["mindspore", "ge"]),
)
@settings(max_examples=150, deadline=None)
def test_shapes_of_rank_4(fmt, shape, dtype, c0, dialect):
    if fmt == "C1HWNCoC0":
        shape = (shape[0] % 3, shape[1] % 21, *shape[2:])
    if not FORMATS[fmt].blocked:
        c0 = None
    check_layout(filled(shape, dtype), fmt, c0=c0, dialect=dialect)


@given(
    fmt=st.sampled_from([name for name, row in FORMATS.items() if row.rank == 5 and name != "NCDHW"]),
    shape=st.tuples(st.integers(0, 20), st.integers(0, 20), *[st.integers(0, 3)] * 3),
    dtype=st.sampled_from(["uint8", "float16", "int32", "int64"]),
    dialect=st.sampled_from(["mindspore", "ge"]),
)
@settings(max_examples=80, deadline=None)
def test_shapes_of_rank_5(fmt, shape, dtype, dialect):
    check_layout(filled(shape, dtype), fmt, dialect=dialect)


@given(
    shape=st.lists(st.integers(0, 35), max_size=2).flatmap(
        lambda tail: st.lists(st.integers(1, 3), max_size=2).map(lambda lead: (*lead, *tail))
    ),
    dtype=st.sampled_from(["int8", "float16", "float32", "float64"]),
    c0=st.sampled_from([None, 4, 8, 16, 32, 64]),
    dialect=st.sampled_from(["mindspore", "ge"]),
)
@settings(max_examples=120, deadline=None)
def test_shapes_of_fractal_nz(shape, dtype, c0, dialect):
    check_layout(filled(shape, dtype), "FRACTAL_NZ", c0=c0, dialect=dialect)


@given(
    groups=st.integers(2, 20),
    cout=st.integers(1, 20),
    cin=st.integers(1, 20),
    kernel=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    dtype=st.sampled_from(["int8", "float16", "float32"]),
    dialect=st.sampled_from(["mindspore", "ge"]),
)
@settings(max_examples=100, deadline=None)
def test_groups(groups, cout, cin, kernel, dtype, dialect):
    check_layout(filled((groups * cout, cin, *kernel), dtype), "FRACTAL_Z", groups=groups, dialect=dialect)


@given(
    channels=st.integers(0, 4),
    rest=st.tuples(st.integers(0, 20), st.integers(0, 5), st.integers(0, 5)),
    dialect=st.sampled_from(["mindspore", "ge"]),
    dtype=st.sampled_from(["int8", "float16"]),
)
@settings(max_examples=60, deadline=None)
def test_fractal_z_c04(channels, rest, dialect, dtype):
    check_layout(filled((rest[0], channels, *rest[1:]), dtype), "FRACTAL_Z_C04", dialect=dialect)


def test_fractal_z_c04_keeps_more_channels_while_they_fit():
    for shape in ((3, 16, 1, 1), (3, 5, 1, 1), (3, 5, 1, 2), (18, 7, 2, 1), (3, 8, 1, 2), (2, 9, 1, 1)):
        check_layout(filled(shape, "float16"), "FRACTAL_Z_C04")
    with pytest.raises(FormatError, match="17 channels of 1x1 do not fit"):
        to_device(filled((3, 17, 1, 1), "float16"), "FRACTAL_Z_C04")


@given(
    hidden=st.integers(1, 20),
    inputs=st.integers(1, 20),
    gates=st.integers(1, 4),
    rows=st.sampled_from(["both", "input", "hidden"]),
    dtype=st.sampled_from(["int8", "float16"]),
    dialect=st.sampled_from(["mindspore", "ge"]),
)
@settings(max_examples=60, deadline=None)
def test_weights_of_recurrent_cells(hidden, inputs, gates, rows, dtype, dialect):
    length = {"both": inputs + hidden, "input": inputs, "hidden": hidden}[rows]
    options = {"input_size": inputs, "hidden_size": hidden, "dialect": dialect}
    check_layout(filled((length, gates * hidden), dtype), "FRACTAL_ZN_RNN", **options)
    check_layout(filled((2, gates * hidden), dtype), "ND_RNN_BIAS", hidden_size=hidden, dialect=dialect)


def test_many_axes():
    host = filled((1, 2) * 9 + (17, 5), "float16")
    device = to_device(host, "FRACTAL_NZ")
    same(device.reshape(-1, 1, 2, 16, 16), reference(host.reshape(-1, 17, 5), "FRACTAL_NZ"))
    same(to_host(device, "FRACTAL_NZ", host.shape), host)
    same(to_device(host[..., ::-1], "FRACTAL_NZ"), to_device(host[..., ::-1].copy(), "FRACTAL_NZ"))
    same(to_device(host, "ChannelLast"), np.ascontiguousarray(np.moveaxis(host, 1, -1)))


def test_lstm_of_a_matrix_is_hwcn_without_h_and_w():
    weight = filled((8, 12), "float16")
    same(to_device(weight, "FRACTAL_ZN_LSTM", dialect="ge"), recurrent(weight, [5, 3], 3, 16))
    check_layout(weight, "FRACTAL_ZN_LSTM", dialect="ge")


@pytest.mark.parametrize("fmt", ["NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ", "NHWC", "FRACTAL_Z_C04"])
def test_the_stride_of_an_axis_of_one_element_is_any_number(fmt):
    base = filled((2, 3, 4), "float16")
    for view in (base[..., None], base[:, :, None], base[:, :, None].transpose(0, 1, 3, 2), base[:, None]):
        check_layout(view, fmt)


@pytest.mark.parametrize("fmt", ["NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ", "NHWC", "FRACTAL_Z_C04"])
def test_strided_hosts(fmt):
    base = filled((6, 8, 10, 12), "float32")
    for view in (
        base[::2, 1:5, ::-1, 3:],
        base.transpose(3, 2, 1, 0)[:, :4],
        np.broadcast_to(base[:1, :4], (5, 4, 10, 12)),
    ):
        if fmt == "FRACTAL_Z_C04":
            view = view[:, :4]
        same(to_device(view, fmt), to_device(np.ascontiguousarray(view), fmt))
    record = np.zeros(24, [("a", "u1"), ("b", "<f2")])  # steps that are no multiple of the element
    record["b"] = np.arange(24)
    same(
        to_device(record["b"].reshape(2, 3, 2, 2)[:, :2], fmt),
        to_device(record["b"].copy().reshape(2, 3, 2, 2)[:, :2], fmt),
    )


LARGE = [
    ("NC1HWC0", (4, 37, 123, 127), "n c h w"),
    ("NC1HWC0", (3, 64, 64, 64), "n c h w"),
    ("FRACTAL_Z", (530, 100, 3, 3), ""),
    ("FRACTAL_Z", (512, 128, 1, 1), ""),
    ("FRACTAL_Z", (100, 40, 7, 7), ""),
    ("FRACTAL_NZ", (1031, 1017), ""),
    ("FRACTAL_NZ", (3, 256, 512), ""),
    ("NHWC", (3, 100, 70, 60), ""),
    ("HWCN", (200, 100, 3, 3), ""),
]


def quick(host, fmt, c0):
    """The same layouts by numpy, for tensors that are too large for loops; held against the loops below."""
    if fmt in ("NHWC", "HWCN"):
        return np.ascontiguousarray(host.transpose(["nchw".index(x) for x in fmt.lower()]))
    if fmt == "FRACTAL_NZ":
        *lead, h, w = host.shape
        pads = [(0, 0)] * len(lead) + [(0, -h % 16), (0, -w % c0)]
        blocks = np.pad(host, pads).reshape(*lead, up(h, 16), 16, up(w, c0), c0)
        r = len(lead)
        return np.ascontiguousarray(blocks.transpose(*range(r), r + 2, r, r + 1, r + 3))
    n, c, h, w = host.shape
    c1 = up(c, c0)
    if fmt == "NC1HWC0":
        blocks = np.pad(host, ((0, 0), (0, -c % c0), (0, 0), (0, 0))).reshape(n, c1, c0, h, w)
        return np.ascontiguousarray(blocks.transpose(0, 1, 3, 4, 2))
    blocks = np.pad(host, ((0, -n % 16), (0, -c % c0), (0, 0), (0, 0))).reshape(up(n, 16), 16, c1, c0, h, w)
    return np.ascontiguousarray(blocks.transpose(2, 4, 5, 0, 1, 3)).reshape(c1 * h * w, up(n, 16), 16, c0)


@pytest.mark.parametrize("fmt", ["NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ", "NHWC", "HWCN"])
def test_quick_reference_is_the_slow_one(fmt):
    host = filled((18, 17, 3, 20), "float16")
    same(quick(host, fmt, 16), reference(host, fmt))


@pytest.mark.parametrize("level", simd_levels())
@pytest.mark.parametrize(("fmt", "shape"), [case[:2] for case in LARGE])
def test_large_tensors_at_every_level(fmt, shape, level, monkeypatch):
    monkeypatch.setenv("DUMPSIM_SIMD", level)
    for dtype in ("int8", "float16", "float32", "int64"):
        host = filled(shape, dtype)
        expected = quick(host, fmt, 32 if dtype == "int8" else 16)
        for threads in (1, 3):
            same(to_device(host, fmt, threads=threads), expected)
            same(to_host(expected, fmt, shape, threads=threads), host)


def test_results_go_into_out():
    host = filled((5, 20, 7, 9), "float16")
    device = to_device(host, "NC1HWC0")
    dirty = np.full(device.shape, np.nan, np.float16)
    assert to_device(host, "NC1HWC0", out=dirty) is dirty
    same(dirty, device)
    back = np.full(host.shape, np.nan, np.float16)
    assert to_host(device, "NC1HWC0", host.shape, out=back) is back
    same(back, host)
    for wrong in (
        dirty[:4],
        dirty.astype("float32"),
        dirty.transpose(1, 0, 2, 3, 4),
        np.frombuffer(dirty.tobytes(), "f2"),
    ):
        with pytest.raises(FormatError, match="out"):
            to_device(host, "NC1HWC0", out=wrong)
    with pytest.raises(FormatError, match="shares memory"):
        to_device(host, "NCHW", out=host)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (((2, 3, 4, 5), "NC1HWCO"), {}, "did you mean 'NC1HWC0'"),
        (((2, 3, 4, 5), "NC1KHKWHWC0"), {}, "index rule of NC1KHKWHWC0 is not documented"),
        (((2, 3, 4, 5), "NC1HWC0"), {"dialect": "cann"}, "dialect: unknown dialect 'cann'; allowed: mindspore, ge"),
        (((2, 3, 4, 5), "NC1HWC0"), {"c0": 0}, "c0: 0 is not a block size.*did you mean '1'"),
        (((2, 3, 4, 5), "NC1HWC0"), {"c0": 1 << 40}, "did you mean '16384'"),
        (((2, 3, 4, 5), "NC1HWC0"), {"c0": "16"}, "is not a block size"),
        (((2, 3, 4, 5), "NC1HWC0_C04"), {"c0": 16}, "has C0 4, not 16"),
        (((2, 3, 4, 5), "FRACTAL_Z_C04"), {"c0": 32}, "has C0 16, not 32"),
        (((2, 3, 4, 5), "FRACTAL_Z_C04"), {"c0": 6, "dialect": "ge"}, "not a multiple of 4"),
        (((2, 5, 4, 5), "FRACTAL_Z_C04"), {}, "at most 4 channels"),
        (((2, 3, 4, 5), "NHWC"), {"c0": 16}, "NHWC has no C0"),
        (((2, 3, 4, 5), "NC1HWC0"), {"groups": 2}, "NC1HWC0 has no groups"),
        (((2, 3, 4, 5), "FRACTAL_Z"), {"groups": 0}, "groups: 0 is not"),
        (((9, 3, 4, 5), "FRACTAL_Z"), {"groups": 2}, "2 groups do not divide 9 output channels.*did you mean '[13]'"),
        (((2, 3, 4, 5, 6), "NC1HWC0"), {}, "at most 4 dimensions"),
        (((2, 3, 4, 5, 6, 7), "NDC1HWC0"), {}, "at most 5 dimensions"),
        (((2, 3, 4, 5), "NC1HWC0"), {"host_format": "NHCW"}, "host_format: NC1HWC0 cannot.*did you mean '.*HW.*'"),
        (((2, 3, 4), "NC1HWC0"), {"host_format": "NHWC"}, "needs 4 dimensions"),
        (((2, 3), "FRACTAL_NZ"), {"host_format": "XY"}, "unknown host format"),
        (((12, 8, 2, 1), "FRACTAL_ZN_LSTM"), {}, "not the weight of an LSTM"),
        (((13, 8, 1, 1), "FRACTAL_ZN_LSTM"), {}, "not the weight of an LSTM"),
        (((12, 8), "FRACTAL_ZN_RNN"), {"input_size": 4}, "needs a positive hidden_size"),
        (((12, 8), "FRACTAL_ZN_RNN"), {"hidden_size": 4}, "needs a positive input_size"),
        (((12, 8), "FRACTAL_ZN_RNN"), {"hidden_size": 4, "input_size": 5}, "allowed: 5, 4, 9 .did you mean '9'"),
        (((12, 9), "FRACTAL_ZN_RNN"), {"hidden_size": 4, "input_size": 8}, "not a multiple of hidden_size 4.*'8'"),
        (((12,), "FRACTAL_ZN_RNN"), {"hidden_size": 4, "input_size": 8}, "at least 2 dimensions"),
        (((12, 8), "FRACTAL_NZ"), {"hidden_size": 4}, "does not take input_size"),
    ],
)
def test_errors_name_what_where_and_the_way_out(arguments, options, text):
    shape, fmt = arguments
    with pytest.raises(FormatError, match=text) as caught:
        to_device(np.zeros(shape, np.float16), fmt, **options)
    assert isinstance(caught.value, DumpsimError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code.startswith("DS-FMT-")


def test_elements_that_no_layout_has():
    for dtype in ("complex128", "O", "S3", "V12"):
        with pytest.raises(FormatError, match="have no device layout"):
            to_device(np.zeros((2, 2), dtype), "FRACTAL_NZ")


def test_wrong_byte_counts_and_forged_shapes_allocate_nothing():
    device = np.zeros((1, 1, 16, 16), np.float16)
    for fmt, shape in [
        ("FRACTAL_NZ", (17, 16)),
        ("FRACTAL_NZ", (1 << 30, 1 << 30)),
        ("FRACTAL_NZ", (0, 1 << 62)),
        ("FRACTAL_Z", (1 << 20, 1 << 20, 1, 1)),
        ("FRACTAL_Z_C04", (1, 4, 1 << 25, 1)),
        ("ND", (1 << 45,)),
        ("NC1HWC0", (-1, 16, 1, 1)),
        ("NC1HWC0", (1 << 63, 16, 1, 1)),
    ]:
        with pytest.raises(FormatError):
            to_host(device, fmt, shape)
    with pytest.raises(FormatError, match="do not divide"):
        to_host(device, "FRACTAL_Z", (1 << 40, 1, 1, 1), groups=3)
    with pytest.raises(FormatError, match="has 1099511627776 bytes, got 512"):
        to_host(device, "FRACTAL_Z", (1 << 35, 1, 1, 1), groups=1 << 35)
    with pytest.raises(FormatError, match="has 512 bytes, got 256"):
        to_host(device.astype("int8"), "FRACTAL_NZ", (16, 16))


def test_padding_cannot_grow_without_bound():
    with pytest.raises(FormatError, match="would take"):
        to_device(np.zeros((1000, 1, 1, 1), np.float32), "C1HWNCoC0", c0=16384)


def test_a_device_tensor_has_at_most_a_gibibyte_or_4096_times_the_bytes_of_the_host():
    device = to_device(np.ones((4, 1, 1, 1), np.int8), "C1HWNCoC0", c0=16384)  # its pages are not touched
    assert device.nbytes == 1 << 30
    assert device[0, 0, 0, :, 0, 0].tolist() == [1] * 4
    del device
    for shape, c0 in (((5, 1, 1, 1), 16384), ((135_000, 2, 1, 1), 91)):  # the second grows 4140.5 times
        with pytest.raises(FormatError, match="would take"):
            to_device(np.ones(shape, np.int8), "C1HWNCoC0", c0=c0)
    with pytest.raises(FormatError, match="out is"):  # the size, 4096 times that of the host, is allowed
        to_device(np.ones((270_000, 1, 1, 1), np.int8), "C1HWNCoC0", c0=64, out=np.empty(0, np.int8))


def test_device_shapes_of_layouts_in_blocks():
    """[spec mindspore 10.2] [spec ge 5.2]"""
    n, c, d, h, w = 33, 35, 2, 3, 5
    for dtype, c0 in (("int8", 32), ("float16", 16)):
        c1, n1 = up(c, c0), up(n, 16)
        expected = {
            (n, c, h, w): {
                "NC1HWC0": (n, c1, h, w, c0),
                "NC1HWC0_C04": (n, 9, h, w, 4),
                "FRACTAL_Z": (c1 * h * w, n1, 16, c0),
                "C1HWNCoC0": (c1, h, w, n, c0, c0),
                "FRACTAL_NZ": (n, c, up(w, c0), 1, 16, c0),
            },
            (n, c, d, h, w): {
                "NDC1HWC0": (n, d, c1, h, w, c0),
                "FRACTAL_Z_3D": (d * c1 * h * w, n1, 16, c0),
                "FRACTAL_Z_3D_TRANSPOSE": (d * up(n, c0) * h * w, up(c, 16), 16, c0),
            },
        }
        for host, layouts in expected.items():
            assert {fmt: device_shape(host, dtype, fmt) for fmt in layouts} == layouts
        assert device_shape((n, c), dtype, "FRACTAL_Z", dialect="ge") == (up(n, c0), up(c, 16), 16, c0)


def test_c0_of_number_types():
    expected = {"int8": (32, 32), "uint8": (32, 32), "bool": (16, 32), "float16": (16, 16), "float32": (16, 16)}
    expected |= {"int64": (16, 16), "int4": (64, 16), "float8_e5m2": (16, 32)}
    for name, (mindspore, ge) in expected.items():
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        assert device_shape((1, 1, 1, 1), dtype, "NC1HWC0")[-1] == mindspore
        assert device_shape((1, 1, 1, 1), dtype, "NC1HWC0", dialect="ge")[-1] == ge


def test_what_the_dump_of_mindspore_does_with_each_layout():
    by_dump = {
        kind: {n for n, row in FORMATS.items() if row.dump == kind} for kind in ("copy", "convert", "unexpected")
    }
    assert by_dump["copy"] == {"NCHW", "DefaultFormat", "NCDHW", "ND"}
    assert by_dump["convert"] | by_dump["unexpected"] == {
        "NHWC", "HWCN", "NC1HWC0", "FRACTAL_Z", "C1HWNCoC0", "FRACTAL_NZ", "NC1HWC0_C04", "FRACTAL_Z_C04", "NDC1HWC0",
        "FRACTAL_Z_3D",
    }  # fmt: skip
    assert find("FRACTAL_Z_C04").dump == "unexpected"
    assert find("CHWN").dump == find("FRACTAL_ZN_RNN").dump == "unsupported"


def test_threads_stop_when_one_of_them_fails(monkeypatch):
    real = module._kernel.copy
    seen = []

    class Broken:
        @staticmethod
        def copy(*args, part=0, stop=None, **options):
            if part == 0:
                raise KeyboardInterrupt
            real(*args, part=part, stop=stop, **options)
            seen.append(part)

    monkeypatch.setattr(module, "_kernel", Broken)
    with pytest.raises(KeyboardInterrupt):
        to_device(np.zeros((64, 64, 32, 32), np.float16), "NC1HWC0", threads=3)
    assert set(seen) <= {1, 2}


def test_grouped_weights_without_channels():
    for shape in ((0, 3, 2, 2), (4, 0, 2, 2)):
        device = to_device(np.zeros(shape, np.float16), "FRACTAL_Z", groups=2)
        assert device.shape == (0, 0, 16, 16)
        same(to_host(device, "FRACTAL_Z", shape, groups=2), np.zeros(shape, np.float16))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"groups": True}, "True is not a number of groups"),
        ({"groups": 2.0}, "2.0 is not a number of groups"),
        ({"groups": -1}, "-1 is not a number of groups"),
        ({"input_size": 4}, "does not take input_size"),
        ({"hidden_size": 4}, "does not take input_size"),
    ],
)
def test_options_that_no_weight_has(options, text):
    with pytest.raises(FormatError, match=text):
        to_device(np.zeros((4, 4, 1, 1), np.float16), "FRACTAL_Z", **options)


@pytest.mark.parametrize("size", [0, -1, True, None])
def test_sizes_of_recurrent_cells_are_positive(size):
    with pytest.raises(FormatError, match=f"needs a positive hidden_size, got {size!r}"):
        to_device(np.zeros((4, 4), np.float16), "FRACTAL_ZN_RNN", hidden_size=size, input_size=4)


def test_channels_of_a_matrix_stay_where_they_are():
    host = filled((3, 5), "float16")
    same(to_device(host, "ChannelLast"), host)


@pytest.mark.parametrize(
    ("shape", "fmt", "options", "nearest"),
    [
        ((9, 3, 4, 5), "FRACTAL_Z", {"groups": 2}, "1"),  # as near as 3
        ((12, 3, 1, 1), "FRACTAL_Z", {"groups": 5}, "4"),
        ((12, 3, 1, 1), "FRACTAL_Z", {"groups": 7}, "6"),
        ((12, 3, 1, 1), "FRACTAL_Z", {"groups": 11}, "12"),
        ((8192, 1, 1, 1), "FRACTAL_Z", {"groups": 8191}, "4096"),  # larger ones are not searched
        ((8194, 1, 1, 1), "FRACTAL_Z", {"groups": 4096}, "482"),  # 2 * 17 * 241
        ((8209, 1, 1, 1), "FRACTAL_Z", {"groups": 4000}, "1"),  # a prime
        ((2, 3, 4, 5), "FRACTAL_Z_C04", {"c0": 5, "dialect": "ge"}, "8"),
        ((2, 3, 4, 5), "FRACTAL_Z_C04", {"c0": 9, "dialect": "ge"}, "12"),
        ((12, 9), "FRACTAL_ZN_RNN", {"hidden_size": 4, "input_size": 8}, "8"),
        ((12, 11), "FRACTAL_ZN_RNN", {"hidden_size": 4, "input_size": 8}, "12"),
        ((12, 1), "FRACTAL_ZN_RNN", {"hidden_size": 4, "input_size": 8}, "4"),
        ((5, 8), "FRACTAL_ZN_RNN", {"hidden_size": 4, "input_size": 7}, "4"),
        ((6, 8), "FRACTAL_ZN_RNN", {"hidden_size": 4, "input_size": 7}, "7"),
        ((10, 8), "FRACTAL_ZN_RNN", {"hidden_size": 4, "input_size": 7}, "11"),
        ((2, 3, 4, 5), "NC1HWC0", {"groups": 2}, "1"),
        ((2, 3, 4, 5), "NC1HWC0_C04", {"c0": 16}, "4"),
    ],
)
def test_the_nearest_value_that_fits_is_named(shape, fmt, options, nearest):
    with pytest.raises(FormatError, match=rf"\(did you mean '{nearest}'\?\)"):
        device_shape(shape, np.float16, fmt, **options)


@pytest.mark.parametrize(("dtype", "bits"), [("int8", 62), ("float16", 61), ("float32", 60), ("int64", 59)])
def test_shapes_from_4_exbibytes_on_are_refused(dtype, bits):
    size = 1 << bits
    assert device_shape((size - 1,), dtype, "ND") == (size - 1,)
    assert device_shape((0, size - 1), dtype, "ND") == (0, size - 1)
    for shape in ((size,), (0, size), (2, 0, size // 2), (-1,), (size, -1)):
        with pytest.raises(FormatError, match="is not a shape that memory can hold"):
            device_shape(shape, dtype, "ND")


def test_forged_extents_of_empty_tensors_take_no_time():
    """[spec ge 5.2]: ceil(4 H W / C0), ceil(N / 16), 16, C0"""
    assert device_shape((33, 1 << 55, 0, 1), "float16", "FRACTAL_Z_C04") == (0, 3, 16, 16)
    assert device_shape((0, 1 << 55, 1 << 3, 1), "float16", "NC1HWC0") == (0, 1 << 51, 8, 1, 16)


@pytest.mark.parametrize("dialect", ["mindspore", "ge"])
def test_the_weight_of_an_lstm_has_at_least_its_hidden_channels(dialect):
    def shape(total, channels, height=1, width=1):
        return (total, channels, height, width) if dialect == "mindspore" else (height, width, channels, total)

    check_layout(filled(shape(12, 3), "float16"), "FRACTAL_ZN_LSTM", dialect=dialect)  # no input at all
    for wrong in (shape(12, 2), shape(11, 5), shape(12, 5, 2), shape(12, 5, 1, 2)):
        with pytest.raises(FormatError, match="is not the weight of an LSTM: needs N"):
            device_shape(wrong, "float16", "FRACTAL_ZN_LSTM", dialect=dialect)


@pytest.mark.parametrize(("fmt", "least"), [("ND_RNN_BIAS", 1), ("FRACTAL_ZN_RNN", 2)])
def test_parts_of_recurrent_cells_have_enough_axes(fmt, least):
    sizes = {"hidden_size": 4} if least == 1 else {"hidden_size": 4, "input_size": 4}
    text = f"{fmt} needs at least {least} dimensions, got shape "
    for count in range(least):
        with pytest.raises(FormatError, match=text):
            device_shape((4,) * count, "float16", fmt, **sizes)
    assert len(device_shape((4,) * least, "float16", fmt, **sizes)) == {1: 1, 2: 4}[least]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_any_number_of_threads_copies_all(threads):
    host = filled((3, 64, 64, 64), "float16")  # 1.5 MiB
    device = to_device(host, "NC1HWC0", threads=threads)
    same(device, quick(host, "NC1HWC0", 16))
    same(to_host(device, "NC1HWC0", host.shape, threads=threads), host)


@pytest.mark.parametrize("dialect", ["mindspore", "ge"])
def test_recurrent_cells_without_hidden_channels_are_empty(dialect):
    shape = (0, 5, 1, 1) if dialect == "mindspore" else (1, 1, 5, 0)
    assert device_shape(shape, "float16", "FRACTAL_ZN_LSTM", dialect=dialect) == (1, 0, 16, 16)
    device = to_device(np.zeros(shape, np.float16), "FRACTAL_ZN_LSTM", dialect=dialect)
    same(to_host(device, "FRACTAL_ZN_LSTM", shape, dialect=dialect), np.zeros(shape, np.float16))
