"""The cells of ``mindspore.mint.nn``."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore._vendor import entries
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import expect
from dumpsim.frontends.mindspore.common.initializer import HeUniform, Normal, Uniform, initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.mint._renamed import signature_of
from dumpsim.frontends.mindspore.mint.nn import functional
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Identity",
    "LayerNorm",
    "Linear",
]


_OF_CELLS = ("auto_prefix", "flags")  # what cells without settings of their own inherit


_REDUCTIONS = ("mean", "sum", "none")
_CHECKED_REDUCTION = ("L1LossExt", "BCELoss")  # the others refuse it when they are called [2.10 observed]


class _Applied(Cell):
    """A cell that calls a function with its inputs and settings."""

    function: Callable[..., Any]
    signature: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        self.settings = {name: value for name, value in bound.arguments.items() if name not in _OF_CELLS}
        how = self.settings.get("reduction")
        if self.cls_name in _CHECKED_REDUCTION and how not in _REDUCTIONS:
            allowed = list(_REDUCTIONS)
            raise ScriptValueError(f"For '{self.cls_name}', the 'reduction' must be in {allowed}, but got {how}.")
        if bound.arguments.get("flags"):
            self.add_flags(**bound.arguments["flags"])

    def construct(self, *inputs: Any) -> Any:
        return type(self).function(*inputs, **self.settings)

    def extend_repr(self) -> str:
        """Return the settings of the one cell that shows them. [observed 2.10]"""
        return f"output_size={self.settings['output_size']}" if self.cls_name == "AdaptiveAvgPool2d" else ""


@cache
def applied(row: str) -> type[Cell]:
    """Generate the class of one row, ``GELU(approximate='none'): gelu``.

    Examples
    --------
    >>> applied("GELU(approximate='none'): gelu")(approximate="tanh").settings
    {'approximate': 'tanh'}
    """
    head, _, called = row.partition("): ")
    name, _, arguments = head.partition("(")
    body = {
        "function": staticmethod(getattr(functional, called)),
        "signature": signature_of(arguments),
        "__doc__": f"``{name}({arguments})``: `functional.{called}`.",
        "__module__": __name__,
    }
    entry = entries("mindspore.mint.nn").get(name)
    home = entry.detail[1] if entry is not None and entry.kind == "from" else name  # Softmax is SoftmaxExt there
    return type(home, (_Applied,), body)


def _type(dtype: DType | None) -> DType:
    return mstype.float32 if dtype is None else dtype


def _trained(init: Any, shape: Any, dtype: DType | None, name: str) -> Parameter:
    return Parameter(initializer(init, shape, dtype=_type(dtype)), name=name)


class Identity(Cell):
    """Return the input.

    Examples
    --------
    >>> Identity()(3)
    3
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def construct(self, input: Any) -> Any:
        return input


class Flatten(Cell):
    """Join axes.

    Examples
    --------
    >>> Flatten()(ops.ones((2, 3, 4), mstype.float32)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def construct(self, input: Any) -> Any:
        expect("FlattenExt", input, self.start_dim, self.end_dim)
        rank = max(input.ndim, 1)
        for axis in (self.start_dim, self.end_dim):
            if not -rank <= axis < rank:
                raise ScriptValueError(
                    f"Dimension out of range (expected to be in range of [-{rank}, {rank}), but got {axis})"
                )
        return ops.flatten(input, start_dim=self.start_dim, end_dim=self.end_dim)


class DropoutExt(Cell):
    """Set elements to 0 at random in training.

    Examples
    --------
    >>> Dropout(0.2), Dropout(0.2).p
    (DropoutExt(), 0.2)
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def construct(self, x: Any) -> Any:
        return functional.dropout(x, self.p, self.training)


Dropout = DropoutExt  # the vendor's class [2.10 observed]


class Linear(Cell):
    """``x @ weight.T + bias``.

    Examples
    --------
    >>> [(p.name, p.shape) for p in Linear(3, 2).get_parameters()]
    [('weight', (2, 3)), ('bias', (2,))]
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features = _check.positive_int(in_features, "in_features", self.cls_name)
        self.out_features = _check.positive_int(out_features, "out_features", self.cls_name)
        first = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = _trained(first, [out_features, in_features], dtype, "weight")
        self.bias: Any = None
        if bias:
            shift = Uniform(1 / math.sqrt(in_features)) if bias_init is None else bias_init
            self.bias = _trained(shift, [out_features], dtype, "bias")

    def construct(self, input: Any) -> Any:
        return functional.linear(input, self.weight, self.bias)

    def extend_repr(self) -> str:
        return (
            f"input_features={self.in_features}, output_features={self.out_features}"
            f"{', has_bias=True' if self.bias is not None else ''}"
        )


class Conv2d(Cell):
    """Convolution of (N, C, H, W) images, with a bias by default.

    Examples
    --------
    >>> [(p.name, p.shape) for p in Conv2d(3, 4, 2).get_parameters()]
    [('weight', (4, 3, 2, 2)), ('bias', (4,))]
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if padding_mode != "zeros":
            raise UnsupportedError(
                f"padding mode {padding_mode!r} is not emulated", where="mint.nn.Conv2d", allowed=("zeros",)
            )
        extent = _check.positive_pair(kernel_size, "kernel_size", self.cls_name)
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        shape = [out_channels, in_channels // groups, *extent]
        self.weight = _trained(HeUniform(math.sqrt(5)), shape, dtype, "weight")
        self.bias: Any = None
        if bias:
            self.bias = _trained(Uniform(1 / math.sqrt(math.prod(shape[1:]))), [out_channels], dtype, "bias")

    def construct(self, input: Any) -> Any:
        return functional.conv2d(
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )  # fmt: skip

    def extend_repr(self) -> str:
        _, channels, *extent = self.weight.shape
        given = {name: getattr(self, name) for name in ("stride", "padding", "dilation")}
        pairs = {name: one if isinstance(one, str) else functional._pair(one) for name, one in given.items()}
        return (
            f"input_channels={channels * self.groups}, output_channels={self.weight.shape[0]}, "
            f"kernel_size={tuple(extent)}, {', '.join(f'{name}={pair}' for name, pair in pairs.items())}, "
            f"groups={self.groups}, bias={self.bias is not None}"
        )


class Embedding(Cell):
    """Rows of a table.

    Examples
    --------
    >>> Embedding(10, 4).weight.shape
    (10, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None or max_norm is not None or scale_grad_by_freq:
            raise UnsupportedError(
                "padding_idx, max_norm and scale_grad_by_freq are not emulated", where="mint.nn.Embedding"
            )
        table = Normal(1.0) if _weight is None else _weight
        self.weight = _trained(table, [num_embeddings, embedding_dim], dtype, "weight")
        self.weight.requires_grad = not _freeze

    def construct(self, input: Any) -> Any:
        return functional.embedding(input, self.weight)


class LayerNormExt(Cell):
    """Normalisation of the last axes, which are then scaled and shifted.

    Examples
    --------
    >>> [(p.name, p.shape) for p in LayerNorm((2, 3)).get_parameters()]
    [('weight', (2, 3)), ('bias', (2, 3))]
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        extents = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = extents, eps, elementwise_affine
        self.weight: Any = _trained("ones", extents, dtype, "weight") if elementwise_affine else None
        self.bias: Any = _trained("zeros", extents, dtype, "bias") if elementwise_affine and bias else None

    def construct(self, input: Any) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        return f"normalized_shape={self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


LayerNorm = LayerNormExt  # the vendor's class [source 2.10 nn/layer/normalization.py]


class GroupNorm(Cell):
    """Normalisation of groups of channels, which are then scaled and shifted.

    Examples
    --------
    >>> [p.name for p in GroupNorm(2, 4, affine=False).trainable_params()]
    []
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        _check.positive_int(num_groups, "num_groups", "GroupNorm")
        _check.positive_int(num_channels, "num_channels", "GroupNorm")
        if num_channels % num_groups:
            raise ScriptValueError(
                "For 'GroupNorm', the 'num_channels' must be divided by 'num_groups', but got 'num_channels': "
                f"{num_channels}, 'num_groups': {num_groups}."
            )
        _check.typed(eps, "eps", [float], "GroupNorm")
        _check.bool_value(affine, "affine", "GroupNorm")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = _trained("ones", [num_channels], dtype, "weight")
        self.bias = _trained("zeros", [num_channels], dtype, "bias")
        self.weight.requires_grad = self.bias.requires_grad = affine  # they are there either way [2.10 observed]

    def construct(self, input: Any) -> Any:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}, eps={self.eps}, affine={self.affine}"


class _BatchNorm(Cell):
    """Normalisation over the batch; training updates the running mean and variance with `momentum`."""

    ranks: tuple[int, ...]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight: Any = _trained("ones", [num_features], dtype, "weight") if affine else None
        self.bias: Any = _trained("zeros", [num_features], dtype, "bias") if affine else None
        self.running_mean: Any = None
        self.running_var: Any = None
        if track_running_stats:
            self.running_mean = _trained("zeros", [num_features], dtype, "running_mean")
            self.running_var = _trained("ones", [num_features], dtype, "running_var")
            self.num_batches_tracked = Parameter(initializer("zeros", [], mstype.int64), name="num_batches_tracked")
            for parameter in (self.running_mean, self.running_var, self.num_batches_tracked):
                parameter.requires_grad = False

    def construct(self, input: Any) -> Any:
        if input.ndim not in self.ranks:
            wanted = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ScriptValueError(f"expected {wanted} input, but got {input.ndim}D input")
        if self.training and self.track_running_stats:
            ops.assign_add(self.num_batches_tracked, 1)
        batch = self.training or not self.track_running_stats
        return functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, batch, self.momentum, self.eps
        )  # fmt: skip

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Normalisation over the batch of (N, C) or (N, C, L).

    Examples
    --------
    >>> [p.name for p in BatchNorm1d(3).trainable_params()]
    ['weight', 'bias']
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalisation over batch, height and width of (N, C, H, W).

    Examples
    --------
    >>> BatchNorm2d(3).running_mean.shape
    (3,)
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalisation over batch and extents of (N, C, D, H, W).

    Examples
    --------
    >>> BatchNorm3d(3).num_batches_tracked.item()
    0
    """

    ranks = (5,)


__path__ = ()  # the vendor's module has submodules


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint.nn.layer", name)
