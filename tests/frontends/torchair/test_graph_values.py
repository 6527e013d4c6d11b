"""Graphs of several nodes compute what torch's operator computes, by the meaning of GE's nodes."""

import itertools
import re
from functools import partial

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from dumpsim.frontends.torchair._convert import Converter  # noqa: E402
from tests.frontends.torchair.convertcases import call_of, converted, resolved  # noqa: E402
from tests.frontends.torchair.gevalues import evaluated  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def tensor(kind, dims):
    """A tensor in the words of a case."""
    return f"{kind}[{','.join(map(str, dims))}]"


def drawn(value, generator):
    """Numbers for a tensor of a case."""
    if isinstance(value, list):
        return [drawn(one, generator) for one in value]
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype == torch.bool:
        return torch.rand(value.shape, generator=generator) < 0.5
    if value.dtype.is_floating_point or value.dtype.is_complex:
        made = torch.randn(value.shape, dtype=value.dtype, generator=generator)
        return made.abs() + 0.5 if value.dim() == 1 and value.dtype.is_floating_point else made  # a variance
    return torch.randint(0, 2, value.shape, dtype=value.dtype, generator=generator)


def assert_same(ours, real):
    assert len(ours) == len(real)
    for one, other in zip(ours, real, strict=True):
        if other is None or one is None:
            assert one is other
        elif isinstance(other, torch.Tensor):
            assert one.shape == other.shape
            close = 1e-2 if other.dtype == torch.float16 else 1e-4
            torch.testing.assert_close(one.to(other.dtype), other, rtol=close, atol=close, equal_nan=True)
        else:
            assert one == other


def check(name, text, count=None, *, view=True):
    """Whether the graph of a call has the operator's results, or the first ones of them."""
    graph, results = converted(name, text, view=view)
    function = resolved(name)
    arguments, keywords = call_of(text)
    generator = torch.Generator().manual_seed(3)
    arguments = [drawn(one, generator) for one in arguments]
    keywords = {key: drawn(one, generator) for key, one in keywords.items()}
    given = [one for one in (*arguments, *keywords.values()) if isinstance(one, torch.Tensor)]
    names = [node.name for node in graph.nodes if node.type == "Data"]
    feeds = {key: one.clone() for key, one in zip(names, given, strict=True)}
    real = function(*arguments, **keywords)
    real = list(real) if isinstance(real, (list, tuple)) else [real]
    assert len(results) == len(real)
    assert_same(evaluated(graph, feeds, results[:count]), real[:count])
    return [node.type for node in graph.nodes]


@pytest.mark.parametrize("normalization", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 5), (2, 1, 3, 4)])
def test_fourier_transforms_of_one_and_two_dimensions(shape, normalization):
    rank = len(shape)
    for count in (1, 2):
        for dims in itertools.permutations(range(rank), count):
            kinds = check("aten._fft_c2c.default", f"{tensor('c64', shape)}, {list(dims)}, {normalization}, True")
            assert ("FFT" if count == 1 else "FFT2D") in kinds
            assert kinds.count("Sqrt") == (normalization == 1)
            assert kinds.count("RealDiv") == (normalization != 0)


@pytest.mark.parametrize(
    ("dims", "error", "text"),
    [
        ([-1], AssertionError, "torch.ops.aten._fft_c2c.default the dim [-1] is out of range of 4."),
        ([0, -1], AssertionError, "torch.ops.aten._fft_c2c.default the dim [0, -1] is out of range of 4."),
        ([0, 1, 2], NotImplementedError, "ge_converter is not implemented, when len(dim)>2"),
        ([0, 1, 2, 3], NotImplementedError, "ge_converter is not implemented, when len(dim)>2"),
    ],
)
def test_fourier_transforms_that_the_real_converter_refuses(dims, error, text):
    with pytest.raises(error, match=re.escape(text)):
        converted("aten._fft_c2c.default", f"c64[2,3,4,5], {dims}, 0, True")


@pytest.mark.parametrize(("shape", "keepdim"), [*itertools.product([(0, 3), (2, 0, 3), (3, 0)], [True, False])])
def test_sums_of_no_elements(shape, keepdim):
    for count in range(1, len(shape) + 1):
        for dims in itertools.combinations(range(-1, len(shape) - 1), count):
            if not all(extent for at, extent in enumerate(shape) if at not in {dim % len(shape) for dim in dims}):
                continue  # a result without elements has no nodes
            assert "Fill" in check("aten.sum.dim_IntList", f"{tensor('f32', shape)}, {list(dims)}, {keepdim}")


@pytest.mark.parametrize("correction", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("keepdim", [True, False])
def test_standard_deviations(correction, keepdim):
    for shape in ((1,), (2,), (3, 4), (1, 3), (2, 3, 2), (0, 3)):
        wanted = [
            (-1,),
            *(one for n in range(1, len(shape) + 1) for one in itertools.combinations(range(len(shape)), n)),
        ]
        for dims in wanted:
            check(
                "aten.std.correction",
                f"{tensor('f32', shape)}, {list(dims)}, correction={correction}, keepdim={keepdim}",
            )


@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (2, 3, 4)])
def test_sorting_along_each_dimension(shape):
    for dim, descending in itertools.product(range(-len(shape), len(shape)), (True, False)):
        check("aten.sort.default", f"{tensor('f32', shape)}, {dim}, {descending}")


BOUNDS = [0, 1, 2, 4, 5, 9, -1, -3, 9223372036854775807]


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("dim", [0, 1])
def test_gradients_of_slices(dim, step):
    sizes = [3, 3]
    sizes[dim] = 5
    for start, end in itertools.product(BOUNDS, BOUNDS):
        part = len(range(5)[start:end:step])
        if not part or (step != 1 and start < 0):
            continue  # the real converter's scatter takes no negative start
        grad = list(sizes)
        grad[dim] = part
        check("aten.slice_backward.default", f"{tensor('f32', grad)}, {sizes}, {dim}, {start}, {end}, {step}")


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("dim", [0, 1])
def test_writes_to_slices(dim, step):
    sizes = [3, 3]
    sizes[dim] = 5
    for start, end in itertools.product([None, *BOUNDS], [None, *BOUNDS]):
        part = list(sizes)
        part[dim] = len(range(5)[start:end:step])
        negative = any(one is not None and one < 0 for one in (start, end))
        if part[dim] and not (step != 1 and negative):  # the real converter's scatter takes no negative bounds
            check(
                "aten.slice_scatter.default",
                f"{tensor('f32', sizes)}, {tensor('f32', part)}, {dim}, {start}, {end}, {step}",
            )


@pytest.mark.parametrize(("name", "more"), [("slice.Tensor", ""), ("slice_scatter.default", "f32[4], ")])
def test_ends_of_slices_between_the_largest_numbers_of_32_and_64_bits_are_refused(name, more):
    most, last = 2**31 - 1, 2**63 - 1
    for end in (5, most - 1, most, last):
        check(f"aten.{name}", f"f32[5], {more}0, 1, {end}, 1")
    for end in (most + 1, last - 1):
        with pytest.raises(RuntimeError, match="does not support shapes exceeding the INT32_MAX!"):
            converted(f"aten.{name}", f"f32[5], {more}0, 1, {end}, 1")


def _of_shape(call):
    return lambda grad, x: call(grad, x.shape)


@pytest.mark.parametrize("size", [5, 6])
@pytest.mark.parametrize(("start", "end"), [(1, 3), (0, 2), (2, 99), (-3, -1), (-4, 99)])
def test_gradients_of_slices_of_open_extents(start, end, size):
    for dim, step in itertools.product((0, 1), (1, 2)):
        if step != 1 and start < 0:
            continue  # not supported by the real converter

        extents = [3, 3]
        extents[dim] = size
        x = torch.zeros(extents)
        grad = torch.randn(x[(slice(None),) * dim + (slice(start, end, step),)].shape)
        call = partial(torch.ops.aten.slice_backward.default, dim=dim, start=start, end=end, step=step)
        module = make_fx(_of_shape(call), tracing_mode="symbolic")(grad, x)
        converter = Converter("graph_1", strict=True)
        converter.capture(module.graph)
        graph = converter.graph
        names = [node.name for node in graph.nodes if node.type == "Data"]
        results = next(call for call in graph.calls if "slice_backward" in call.target).results
        found = evaluated(graph, dict(zip(names, (grad, x), strict=True)), results)
        assert_same(found, [call(grad, x.shape)])


RANKS = [(4, 3), (4, 3, 1), (2, 3, 1, 2), (2, 3, 2, 1, 2), (2, 3, 2, 1, 2, 2), (2, 3, 1, 2, 1, 2, 2)]


@pytest.mark.parametrize("shape", RANKS)
def test_batch_normalisations_of_each_rank(shape):
    for weight, bias in itertools.product(("f32[3]", "None"), repeat=2):
        x = f"{tensor('f32', shape)}, {weight}, {bias}, f32[3], f32[3]"
        check("aten._native_batch_norm_legit_functional.default", f"{x}, True, 0.1, 0.001", 1)


@pytest.mark.parametrize("shape", RANKS)
@pytest.mark.parametrize("train", [True, False])
def test_gradients_of_batch_normalisations_of_each_rank(shape, train):
    for weight, wanted in itertools.product(("f32[3]", "None"), ([True, True], [True, False], [False, True])):
        x = tensor("f32", shape)
        text = f"{x}, {x}, {weight}, f32[3], f32[3], f32[3], f32[3], {train}, 0.001, {[True, *wanted]}"
        check("aten.native_batch_norm_backward.default", text, 3 if train else 1)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_sums_at_places(shape):
    for dim, alpha in itertools.product(range(-len(shape), len(shape)), (1, 3)):
        source = list(shape)
        source[dim] = 2
        text = f"{tensor('f32', shape)}, {dim}, i64[2], {tensor('f32', source)}, alpha={alpha}"
        check("aten.index_add.default", text)


@pytest.mark.parametrize("shape", [(1,), (3, 1), (1, 3), (2, 1, 3), (1, 1, 3), (2, 3, 4), (1, 2, 1, 3)])
def test_permutations(shape):
    for dims in itertools.permutations(range(len(shape))):
        for signed in (dims, [dim - len(shape) for dim in dims]):
            text = f"{tensor('f32', shape)}, {list(signed)}"
            kinds = check("aten.permute.default", text, view=False)
            moved = [dim for dim in dims if shape[dim] != 1]
            assert ("Transpose" in kinds) == (moved != sorted(moved) or 1 not in shape)


@pytest.mark.parametrize("bias", ["f32[4]", "f32[1,4]", "f32[1,1]", "f32[2,4]", "f32[2,1]", "f32[1]", "f32[]"])
def test_sums_with_products(bias):
    for kind, beta, alpha in itertools.product(("f32", "f16"), (0, 1, 2), (0, 1, 3)):
        text = f"{bias.replace('f32', kind)}, {kind}[2,3], {kind}[3,4], beta={beta}, alpha={alpha}"
        if alpha == 0 and bias != "f32[2,4]":
            continue  # the real converter's product of a bias alone keeps the bias's shape
        check("aten.addmm.default", text)


def _viewed(x):
    """Shapes of numbers and symbols."""
    n = x.shape[0]
    return x.view(n, 2, 2) * 2, x.view(n, 1, 4).permute(2, 1, 0) + 1


def _permuted(x):
    return x.permute(1, 0)[:, None] * 2, x[:, None].permute(2, 1, 0) + 1


def _between(x):
    """An extent that only the tensor's shape has."""
    return x.view(x.shape[0], 4).t() + 1, (x[None] + 1).permute(2, 0, 1) + 1


@pytest.mark.parametrize("function", [_viewed, _permuted, _between])
def test_views_of_open_extents(function):
    module = make_fx(function, tracing_mode="symbolic")(torch.rand(3, 4))
    converter = Converter("graph_1", strict=True)
    converter.capture(module.graph)
    graph = converter.graph
    named = [node.name for node in module.graph.output_node().args[0]]
    results = [call.results[0] for call in graph.calls if call.name in named]
    (name,) = (node.name for node in graph.nodes if node.type == "Data")
    for rows in (3, 5):
        x = torch.rand(rows, 4)
        found = evaluated(graph, {name: x}, results)
        assert_same(found, list(function(x)))
    ways = {"batch_dims": 0, "is_preprocessed": False, "negative_index_support": False, "validate_indices": True}
    read = [node.attrs for node in graph.nodes if node.type == "Gather"]
    assert read
    assert [{key: one for key, one in attrs.items() if key in ways} for attrs in read] == [ways] * len(read)
