"""Guess the settings of an operator whose graph is not in the dump from its shapes.

A bin dump of a whole graph has no attributes. Few settings are consistent with the shapes of operands and result, and
a wrong element does not make a wrong setting fit, so the best fit decides whether the result is right.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from types import MappingProxyType
from typing import Any

__all__ = ["guesses"]

Shape = tuple[int, ...]
Settings = dict[str, Any]
Guess = Callable[[Sequence[Shape], Shape], Iterator[Settings]]

_STRIDES = range(1, 9)
_LARGEST_RANK = 5


def guesses(op_type: str, shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    """Yield the settings and attributes, by name, that fit the shapes; nothing for a type that has no rule.

    Examples
    --------
    >>> list(guesses("MatMul", [(32, 400), (120, 400)], (32, 120)))
    [{'transpose_a': False, 'transpose_b': True}]
    >>> [one["stride"] for one in guesses("Conv2D", [(1, 3, 227, 227), (96, 3, 11, 11)], (1, 96, 55, 55))][:1]
    [(4, 4)]
    """
    rule = _GUESSES.get(op_type)
    if rule is not None:
        yield from rule(shapes, output)


def _product(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    a, b = shapes[:2]
    for turned_a, turned_b in product((False, True), repeat=2):
        rows, inner = (a[-1], a[-2]) if turned_a else (a[-2], a[-1])
        other, columns = (b[-1], b[-2]) if turned_b else (b[-2], b[-1])
        if inner == other and (rows, columns) == output[-2:]:
            yield {"transpose_a": turned_a, "transpose_b": turned_b}


def _windows(size: int, kernel: int, out: int) -> Iterator[tuple[int, int, int]]:
    """Yield strides and pads before and after, which are smaller than the kernel."""
    for stride in _STRIDES:
        least = (out - 1) * stride + kernel - size
        if least <= 0 < least + stride:
            yield stride, 0, 0
        for total in range(max(least, 1), min(least + stride, 2 * kernel - 1)):
            yield stride, total // 2, total - total // 2
        if out == 1:
            return


def _convolution(x: Shape, w: Shape, out: Shape) -> Iterator[Settings]:
    if len(x) != 4 or len(w) != 4 or len(out) != 4 or not w[1] or x[1] % w[1]:
        return
    both = product(_windows(x[2], w[2], out[2]), _windows(x[3], w[3], out[3]))
    for down, across in sorted(both, key=lambda pair: pair[0] != pair[1]):  # square ones first
        yield {
            "kernel_size": w[2:],
            "stride": (down[0], across[0]),
            "pad_mode": "pad",
            "pad": (*down[1:], *across[1:]),
            "dilation": (1, 1),
            "group": x[1] // w[1],
            "out_channel": w[0],
        }


def _conv(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    yield from _convolution(shapes[0], shapes[1], output)


def _conv_input(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    yield from ({**one, "input_sizes": output} for one in _convolution(output, shapes[1], shapes[0]))


def _conv_filter(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    yield from ({**one, "filter_sizes": output} for one in _convolution(shapes[1], output, shapes[0]))


def _pools(x: Shape, out: Shape) -> Iterator[tuple[tuple[int, int], tuple[int, int], str]]:
    if len(x) != 4 or len(out) != 4:
        return
    for kernel in (2, 3, 4, 5, 7, 1):
        for stride in _STRIDES:
            for mode in ("VALID", "SAME"):
                reach = [-(-n // stride) if mode == "SAME" else (n - kernel) // stride + 1 for n in x[2:]]
                if tuple(reach) == out[2:] and (mode == "VALID" or kernel > 1):
                    yield (kernel, kernel), (stride, stride), mode


def _pool(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    for kernel, stride, mode in _pools(shapes[0], output):
        yield {"kernel_size": (1, 1, *kernel), "strides": (1, 1, *stride), "pad_mode": mode}


def _pool_back(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    for kernel, stride, mode in _pools(output, shapes[1]):
        yield {"kernel_size": (1, 1, *kernel), "strides": (1, 1, *stride), "pad_mode": mode}


def _average(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    for kernel, stride, mode in _pools(shapes[0], output):
        yield {"kernel_size": kernel, "strides": stride, "pad_mode": {"SAME": 1, "VALID": 2}[mode]}


def _average_back(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    for kernel, stride, mode in _pools(output, shapes[1]):
        yield {"kernel_size": kernel, "strides": stride, "pad_mode": {"SAME": 1, "VALID": 2}[mode]}


def _reduction(names: tuple[str, str]) -> Guess:
    axis, keep = names

    def rule(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
        x = shapes[0]
        if len(x) > _LARGEST_RANK:
            return
        for count in range(1, len(x) + 1):
            for axes in combinations(range(len(x)), count):
                dropped = tuple(n for at, n in enumerate(x) if at not in axes)
                with_ones = tuple(1 if at in axes else n for at, n in enumerate(x))
                if output in (dropped, with_ones):
                    yield {axis: axes, keep: output == with_ones}

    return rule


def _axis(name: str) -> Guess:
    def rule(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
        yield from ({name: axis} for axis in reversed(range(len(shapes[0]))))

    return rule


def _join(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    for axis in range(len(output)):
        if sum(one[axis] for one in shapes if len(one) == len(output)) == output[axis]:
            yield {"axis": axis}


def _turn(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    x = shapes[0]
    if len(x) <= _LARGEST_RANK:
        for order in permutations(range(len(x))):
            if tuple(x[at] for at in order) == output:
                yield {"input_perm": order}


def _shape(name: str) -> Guess:
    def rule(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
        yield {name: output}

    return rule


def _either(**values: tuple[Any, ...]) -> Guess:
    """Return a rule that yields every combination of some values."""

    def rule(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
        yield from (dict(zip(values, one, strict=True)) for one in product(*values.values()))

    return rule


def _sparse(shapes: Sequence[Shape], output: Shape) -> Iterator[Settings]:
    yield {"is_grad": output == shapes[0], "sens": 1.0}


_EPSILONS = (1e-5, 1e-7, 1e-6, 1e-12)
_GUESSES: Mapping[str, Guess] = MappingProxyType(
    {
        "MatMul": _product,
        "BatchMatMul": _product,
        "Conv2D": _conv,
        "Conv2DBackpropInput": _conv_input,
        "Conv2DBackpropFilter": _conv_filter,
        "MaxPool": _pool,
        "MaxPoolGrad": _pool_back,
        "AvgPool": _average,
        "AvgPoolGrad": _average_back,
        **dict.fromkeys(
            ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceAll", "ReduceAny"),
            _reduction(("axis", "keep_dims")),
        ),
        "Softmax": _axis("axis"),
        "LogSoftmax": _axis("axis"),
        "LogSoftmaxGrad": _axis("axis"),
        "Concat": _join,
        "Transpose": _turn,
        "Reshape": _shape("shape"),
        "BroadcastTo": _shape("shape"),
        "BiasAdd": _either(data_format=(0, 1)),
        "BiasAddGrad": _either(data_format=(0, 1)),
        "SparseSoftmaxCrossEntropyWithLogits": _sparse,
        "ApplyMomentum": _either(use_nesterov=(False, True)),
        "Adam": _either(use_nesterov=(False, True)),
        "LayerNorm": _either(begin_norm_axis=(-1, 1), begin_params_axis=(-1, 1), epsilon=_EPSILONS),
        "LayerNormGrad": _either(begin_norm_axis=(-1, 1), begin_params_axis=(-1, 1), epsilon=_EPSILONS),
    }
)
