"""``mindspore.nn.layer.normalization``."""

import hashlib
from itertools import chain
from typing import Any, ClassVar

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import _checkparam as validator
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "LayerNorm",
    "SyncBatchNorm",
]


class _BatchNorm(Cell):
    """Normalisation over the batch; training updates the running mean and variance."""

    ranks: ClassVar[tuple[int, ...]] = ()
    ranks_text: ClassVar[str] = ""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        owner = self.cls_name
        _check.typed(num_features, "num_features", [int], owner)
        if num_features < 1:
            raise ScriptValueError(f"For '{owner}', the 'num_features' must be at least 1, but got {num_features}.")
        if not 0 <= momentum <= 1:
            raise ScriptValueError(
                f"For '{owner}', the 'momentum' must be a number in range [0, 1], but got {momentum}."
            )
        if use_batch_statistics is not None and not isinstance(use_batch_statistics, bool):
            raise ScriptValueError(
                f"For '{owner}', the 'use_batch_statistics' must be a boolean value or None, "
                f"but got {use_batch_statistics}."
            )
        self.format = _check.choice(data_format, ["NCHW", "NHWC"], "format", owner)
        target = get_context("device_target")
        if self.format == "NHWC" and target != "GPU":
            raise ScriptValueError(
                f"For '{owner}', the 'NHWC' format only support in GPU target, but got device target {target}."
            )
        self.use_batch_statistics = use_batch_statistics
        self.num_features = num_features
        self.eps = eps
        self.moving_mean = _vector(moving_mean_init, num_features, dtype, "mean", trained=False)
        self.moving_variance = _vector(moving_var_init, num_features, dtype, "variance", trained=False)
        self.gamma = _vector(gamma_init, num_features, dtype, "gamma", trained=affine)
        self.beta = _vector(beta_init, num_features, dtype, "beta", trained=affine)
        self.shape = ops.Shape()
        self.reshape = ops.Reshape()
        self.momentum = 1.0 - momentum
        self.bn_train = ops.BatchNorm(
            is_training=True, epsilon=self.eps, momentum=self.momentum, data_format=self.format
        )
        self.bn_infer = ops.BatchNorm(is_training=False, epsilon=self.eps, data_format=self.format)

    def _check_input_dim(self, rank: int) -> None:
        if rank not in self.ranks:
            raise ScriptValueError(f"For '{self.cls_name}', the {self.ranks_text}, but got {rank}.")

    def construct(self, x: Any) -> Any:
        x_shape = self.shape(x)
        self._check_input_dim(len(x_shape))
        reshaped_x = x
        if len(x_shape) == 2:
            reshaped_x = self.reshape(x, (x_shape[0], x_shape[1], 1, 1))
        elif len(x_shape) == 3:
            reshaped_x = self.reshape(x, (x_shape[0], x_shape[1], x_shape[2], 1))
        if self.use_batch_statistics or (self.use_batch_statistics is None and self.training):
            return self.bn_train(x, self.gamma, self.beta, self.moving_mean, self.moving_variance)[0]
        bn_out = self.bn_infer(reshaped_x, self.gamma, self.beta, self.moving_mean, self.moving_variance)[0]
        if len(x_shape) < 4:
            bn_out = self.reshape(bn_out, x_shape)
        return bn_out

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={1.0 - self.momentum}, gamma={self.gamma}, "
            f"beta={self.beta}, moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


def _vector(init: Any, length: int, dtype: DType, name: str, *, trained: bool) -> Parameter:
    return Parameter(initializer(init, length, dtype=dtype), name=name, requires_grad=trained)


class BatchNorm1d(_BatchNorm):
    """Normalisation over the batch of ``(N, C)`` or ``(N, C, L)``."""

    ranks, ranks_text = (2, 3), "must have 2 dims or 3 dims"


class BatchNorm2d(_BatchNorm):
    """Normalisation over batch, height and width of ``(N, C, H, W)``.

    Examples
    --------
    >>> [p.name for p in BatchNorm2d(3).trainable_params()]
    ['gamma', 'beta']
    """

    ranks, ranks_text = (4,), "in_shape must have 4 dims"


class BatchNorm3d(Cell):
    """Normalisation over batch, depth, height and width of ``(N, C, D, H, W)``; arguments as for `BatchNorm2d`."""

    def __init__(self, num_features: int, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.bn2d = BatchNorm2d(num_features, *args, **kwargs)
        self.shape = ops.Shape()
        self.reshape = ops.Reshape()

    def construct(self, x: Any) -> Any:
        x_shape = self.shape(x)
        if len(x_shape) != 5:
            raise ScriptValueError(f"For '{self.cls_name}', the in_shape must have 5 dims, but got {len(x_shape)}.")
        x = self.reshape(x, (x_shape[0], x_shape[1], x_shape[2] * x_shape[3], x_shape[4]))
        bn2d_out = self.bn2d(x)
        bn3d_out = self.reshape(bn2d_out, x_shape)
        return bn3d_out  # noqa: RET504 - the IR shows the name


class SyncBatchNorm(_BatchNorm):
    """Normalisation over the batches of all ranks of a group, which all have the same number of rows.

    AllReduce operators on the ranks' sums compute mean and variance, and have gradients; the real chip computes both
    within a dedicated operator.

    Parameters
    ----------
    num_features : int
    eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, use_batch_statistics, dtype
        As for `BatchNorm2d`.
    process_groups : list of list of int, optional
        Ranks that normalise together. With None all ranks do, with 0 each rank normalises for itself, and so do ranks
        in none of the lists.

    Raises
    ------
    ValueError
        For groups that are not lists, and for ranks outside the world or in two groups.
    """

    ranks, ranks_text = (2, 4), "must have 2 dims or 4 dims"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        process_groups: Any = None,
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, dtype=dtype,
        )  # fmt: skip
        self.process_groups = process_groups
        group, self.group_device_num = _sync_group(process_groups, self.cls_name)
        self.is_global = self.group_device_num > 1
        self.group_name = group if self.is_global else None
        if self.is_global:
            self.all_reduce = ops.AllReduce("sum", group)

    def construct(self, x: Any) -> Any:
        if not self.is_global or not (
            self.use_batch_statistics or (self.use_batch_statistics is None and self.training)
        ):
            return super().construct(x)
        shape = self.shape(x)
        self._check_input_dim(len(shape))
        axes = (0,) if len(shape) == 2 else (0, 2, 3)
        broadcast = (1, shape[1]) if len(shape) == 2 else (1, shape[1], 1, 1)
        count = x.size // shape[1] * self.group_device_num
        wide = ops.cast(x, mstype.float32)
        mean = self.all_reduce(wide.sum(axes)) / count
        centred = wide - self.reshape(mean, broadcast)
        variance = self.all_reduce((centred * centred).sum(axes)) / count
        scale = self.reshape(ops.rsqrt(variance + self.eps) * self.gamma, broadcast)
        out = ops.cast(centred * scale + self.reshape(self.beta, broadcast), x.dtype)
        kept, unbiased = 1 - self.momentum, count / max(count - 1, 1)
        moved = ops.stop_gradient(mean * self.momentum)
        out = ops.depend(out, ops.assign(self.moving_mean, self.moving_mean * kept + moved))
        spread = ops.stop_gradient(variance * (unbiased * self.momentum))
        return ops.depend(out, ops.assign(self.moving_variance, self.moving_variance * kept + spread))


def _sync_group(process_groups: Any, owner: str) -> tuple[str, int]:
    """Return the group in which this rank normalises, and its number of ranks."""
    from dumpsim.frontends.mindspore.communication import management

    world = management.HCCL_WORLD_COMM_GROUP
    if process_groups is None:
        return world, management.get_group_size()
    if process_groups == 0:
        return world, 1
    rank, size = management.get_rank(), management.get_group_size()
    validator.check_isinstance("process_groups", process_groups, list)
    seen: set[int] = set()
    for number in chain(*process_groups):
        validator.check_int_range(number, 0, size, validator.INC_LEFT, "rank id in process_groups", owner)
        if number in seen:
            raise ScriptValueError(
                f"For '{owner}', rank id in 'process_groups' must not be duplicated, but got {process_groups}."
            )
        seen.add(number)
    for members in process_groups:
        validator.check_isinstance("sub group", members, list)
        if rank in members and len(members) > 1:
            digest = hashlib.sha256("_".join(map(str, members)).encode()).hexdigest()
            group = f"{len(members)}_{digest}"  # as MindSpore names it
            management.create_group(group, members)
            return group, len(members)
    return world, 1


class GroupNorm(Cell):
    """Normalisation of groups of channels; every channel is then scaled and shifted.

    Parameters
    ----------
    num_groups, num_channels : int
    eps : float
    affine : bool
        Train the scale and the shift.
    gamma_init, beta_init : Tensor, str, Initializer or number
    dtype : number type

    Examples
    --------
    >>> [p.name for p in GroupNorm(2, 4).trainable_params()]
    ['gamma', 'beta']
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        self.num_groups = _check.positive_int(num_groups, "num_groups", self.cls_name)
        self.num_channels = _check.positive_int(num_channels, "num_channels", self.cls_name)
        if num_channels % num_groups:
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'num_channels' must be divided by 'num_groups', "
                f"but got 'num_channels': {num_channels}, 'num_groups': {num_groups}."
            )
        self.eps = _check.typed(eps, "eps", [float], self.cls_name)
        self.affine = _check.bool_value(affine, "affine", self.cls_name)
        self.gamma = _vector(gamma_init, num_channels, dtype, "gamma", trained=affine)
        self.beta = _vector(beta_init, num_channels, dtype, "beta", trained=affine)

    def construct(self, x: Any) -> Any:
        gamma, beta = self.gamma.astype(x.dtype), self.beta.astype(x.dtype)
        output, _, _ = call("GroupNorm", [x, self.num_groups, gamma, beta, self.eps])
        return output

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


class LayerNorm(Cell):
    """Normalisation of the last axes, which are then scaled and shifted.

    Parameters
    ----------
    normalized_shape : tuple or list of int
    begin_norm_axis, begin_params_axis : int
    gamma_init, beta_init : Tensor, str, Initializer or number
    epsilon : float
    dtype : number type
    """

    def __init__(
        self,
        normalized_shape: Any,
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        epsilon: float = 1e-7,
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)):
            raise ScriptTypeError(
                f"For '{self.cls_name}', the type of 'normalized_shape' must be tuple[int] or list[int], "
                f"but got {normalized_shape} and the type is {type(normalized_shape)}."
            )
        if not normalized_shape:
            raise ScriptValueError(
                "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
                f"but got normalized_shape = {normalized_shape}"
            )
        self.normalized_shape = normalized_shape
        self.begin_norm_axis = begin_norm_axis
        self.begin_params_axis = begin_params_axis
        self.epsilon = epsilon
        self.gamma = Parameter(initializer(gamma_init, normalized_shape, dtype=dtype), name="gamma")
        self.beta = Parameter(initializer(beta_init, normalized_shape, dtype=dtype), name="beta")
        self.layer_norm = ops.LayerNorm(
            begin_norm_axis=begin_norm_axis, begin_params_axis=begin_params_axis, epsilon=epsilon
        )

    def construct(self, input_x: Any) -> Any:
        y, _, _ = self.layer_norm(input_x, self.gamma.astype(input_x.dtype), self.beta.astype(input_x.dtype))
        return y

    def extend_repr(self) -> str:
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma{self.gamma}, beta={self.beta}"
        )


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.normalization", name)
