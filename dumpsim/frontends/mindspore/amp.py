"""``mindspore.amp``: loss scaling, and mixed precision of cells (levels O1, O2 and O3)."""

from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import _autocast, nn, ops
from dumpsim.frontends.mindspore._checkparam import check_positive_int
from dumpsim.frontends.mindspore._scaler import DynamicLossScaler, StaticLossScaler
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn.wrap._accumulation import _TrainGradAccuStepCell

__all__ = [
    "DynamicLossScaleManager",
    "DynamicLossScaler",
    "FixedLossScaleManager",
    "LossScaleManager",
    "StaticLossScaler",
    "all_finite",
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
]

_LEVELS = ("O0", "O1", "O2", "O3", "auto")
# cells that stay in float32 at level O2 [2.10]
_BLACK_LIST = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm)


class LossScaleManager:
    """Base of the loss scale managers."""

    def get_loss_scale(self) -> float:
        """Return the scale."""
        raise NotImplementedError

    def update_loss_scale(self, overflow: bool) -> None:
        """Update the scale after a step with or without an overflow."""

    def get_update_cell(self) -> nn.Cell | None:
        """Return the cell that updates the scale, or None if no step is skipped."""


class FixedLossScaleManager(LossScaleManager):
    """A constant scale.

    Examples
    --------
    >>> FixedLossScaleManager(1024.0).get_loss_scale()
    1024.0
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        if loss_scale < 1:
            raise ScriptValueError(f"The argument 'loss_scale' must be >= 1, but got {loss_scale}")
        self._loss_scale = loss_scale
        self._drop = drop_overflow_update

    def get_loss_scale(self) -> float:
        """Return the scale."""
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Return whether steps with an overflow are skipped."""
        return self._drop

    def get_update_cell(self) -> nn.Cell | None:
        """Return the cell with the constant scale, or None if no step is skipped."""
        cell: nn.Cell = nn.FixedLossScaleUpdateCell(self._loss_scale)
        return cell if self._drop else None


class _OverflowError(DumpsimError, RuntimeError):
    """The RuntimeError for too many overflows in a row."""


class DynamicLossScaleManager(LossScaleManager):
    """A scale that shrinks at every overflow and grows after `scale_window` steps without one.

    Examples
    --------
    >>> manager = DynamicLossScaleManager(1024.0)
    >>> manager.update_loss_scale(True)
    >>> manager.get_loss_scale()
    512.0
    """

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000) -> None:
        if init_loss_scale < 1.0:
            raise ScriptValueError(f"The argument 'init_loss_scale' must be > 1, but got {init_loss_scale}")
        if scale_factor <= 0:
            raise ScriptValueError(f"The argument 'scale_factor' must be > 0, but got {scale_factor}")
        check_positive_int(scale_window, "scale_window", "DynamicLossScaleManager")
        self.loss_scale = init_loss_scale
        self.scale_factor, self.scale_window = scale_factor, scale_window
        self.cur_iter = 1
        self.last_overflow_iter = 0
        self.bad_step, self.bad_step_max = 0, 1000

    def get_loss_scale(self) -> float:
        """Return the scale."""
        return self.loss_scale

    def update_loss_scale(self, overflow: bool) -> None:
        """Update the scale after a step with or without an overflow."""
        if overflow:
            self.loss_scale = max(self.loss_scale / self.scale_factor, 1)
            self.last_overflow_iter = self.cur_iter
            self.bad_step += 1
        else:
            if (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
                self.loss_scale *= self.scale_factor
            self.bad_step = 0
        if self.bad_step > self.bad_step_max:
            raise _OverflowError(
                f"('Dynamic loss scale Continuous overflow ', {self.bad_step}, ' times, has exceeded maximum "
                "threshold.')"
            )
        self.cur_iter += 1

    def get_drop_overflow_update(self) -> bool:
        """Return True: steps with an overflow are skipped."""
        return True

    def get_update_cell(self) -> nn.Cell | None:
        """Return the cell that updates the scale in a graph."""
        cell: nn.Cell = nn.DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
        return cell


def all_finite(inputs: Any) -> Tensor:
    """Return whether all elements of all tensors are finite.

    Examples
    --------
    >>> bool(all_finite([Tensor([1.0, float("inf")])]))
    False
    """
    finite = [ops.reduce_all(ops.isfinite(tensor)) for tensor in inputs]
    result: Tensor = finite[0]
    for other in finite[1:]:
        result = ops.logical_and(result, other)
    return result


def _in_float32(value: Any) -> Any:
    """Cast the float tensors of a result to float32."""
    if isinstance(value, Tensor):
        return ops.cast(value, mstype.float32) if value.dtype.kind == "float" else value
    return tuple(_in_float32(item) for item in value) if isinstance(value, tuple) else value


class _OutputTo16(nn.Cell):
    """A cell that computes in float32 and returns 16 bits."""

    def __init__(self, backbone: nn.Cell, dtype: DType = mstype.float16) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self.dtype = dtype
        self._get_attr_from_cell(backbone)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        return ops.cast(self._backbone(*args, **kwargs), self.dtype)


class _OutputTo32(nn.Cell):
    """A network whose results are float32."""

    def __init__(self, backbone: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._get_attr_from_cell(backbone)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        out = self._backbone(*args, **kwargs)
        return _in_float32(out)


class _Float32WithLossCell(nn.Cell):
    """A network and its loss, which is computed in float32."""

    def __init__(self, backbone: nn.Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn
        self._get_attr_from_cell(backbone)

    def construct(self, data: Any, label: Any) -> Any:
        out = self._backbone(data)
        label = _in_float32(label)
        return self._loss_fn(_in_float32(out), label)


_Float32WithLossCell.__name__ = "WithLossCell"  # the name in scopes


def _keep_float32(network: nn.Cell, black_list: tuple[type, ...], dtype: DType) -> None:
    """Make the cells of a black list compute in float32."""
    for name, cell in list(network.name_cells().items()):
        if isinstance(cell, black_list):
            network._cells[name] = _OutputTo16(cell.to_float(mstype.float32), dtype)
        else:
            _keep_float32(cell, black_list, dtype)


def auto_mixed_precision(network: nn.Cell, amp_level: str = "O0", dtype: DType = mstype.float16) -> nn.Cell:
    """Make a network compute in 16 bits.

    Parameters
    ----------
    network : Cell
        It is modified.
    amp_level : {"O0", "O1", "O2", "O3"}
        O1 affects only the cells and primitives of `get_white_list`; O2 keeps batch and layer norms in float32.
    dtype : float16 or bfloat16

    Raises
    ------
    UnsupportedError
        For "auto", which casts operator by operator.
    ScriptTypeError, ScriptValueError
        For a network that is not a cell, and for unknown levels and types.
    """
    if not isinstance(network, nn.Cell):
        raise ScriptTypeError(f"For amp_level '{amp_level}', the network type should be Cell.")
    if dtype not in (mstype.float16, mstype.bfloat16):
        raise ScriptValueError(f"The dtype should be one of (mstype.float16, mstype.bfloat16), but got {dtype}.")
    if amp_level == "O0":
        return network
    if amp_level == "auto":
        raise UnsupportedError(
            "mixed precision of every operator, level 'auto', is not emulated", where="amp.auto_mixed_precision",
            allowed=("O0", "O1", "O2", "O3"),
        )  # fmt: skip
    if amp_level == "O1":
        _autocast.autocast(network, _autocast.white_list(), dtype)
        network._amp_level = amp_level
        return network
    if amp_level not in _LEVELS:
        raise ScriptValueError(f"The amp level {amp_level} is not supported")
    network.to_float(dtype)
    if amp_level == "O2":
        _keep_float32(network, _BLACK_LIST, dtype)
    wrapped = _OutputTo32(network)
    wrapped._amp_level = amp_level
    return wrapped


def get_black_list() -> list[type]:
    """Return the kinds of cells that stay in float32 at level O2.

    Examples
    --------
    >>> nn.LayerNorm in get_black_list()
    True
    """
    return list(_BLACK_LIST)


def get_white_list() -> list[type]:
    """Return the kinds of cells and primitives that compute in 16 bits at level O1.

    Examples
    --------
    >>> nn.Dense in get_white_list()
    True
    """
    return _autocast.white_list()


def custom_mixed_precision(
    network: nn.Cell, *, white_list: Any = None, black_list: Any = None, dtype: DType = mstype.float16
) -> nn.Cell:
    """Make a network compute in 16 bits in the cells of a white list, or everywhere except those of a black list.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For a network that is not a cell, for no list or both lists, and for another type.
    """
    if not isinstance(network, nn.Cell):
        raise ScriptTypeError("The network type should be Cell.")
    if white_list is None and black_list is None:
        raise ScriptValueError("For custom_mixed_precision, one of white_list and black_list must be provided.")
    if white_list is not None and black_list is not None:
        raise ScriptValueError(
            "For custom_mixed_precision, the white_list or black_list cannot be provided at the same time, "
            "please provide one or the other."
        )
    for name, given in (("white_list", white_list), ("black_list", black_list)):
        if given is not None and not isinstance(given, list):
            raise ScriptTypeError(f"The type of {name} should be list, but got {type(given)}")
    if dtype not in (mstype.float16, mstype.bfloat16):
        raise ScriptValueError(f"The dtype should be one of (mstype.float16, mstype.bfloat16), but got {dtype}.")
    if white_list is not None:
        _autocast.autocast(network, white_list, dtype)
        return network
    network.to_float(dtype)
    _keep_float32(network, tuple(black_list), dtype)
    return _OutputTo32(network)


def _accumulates(network: nn.Cell) -> bool:
    """Whether a cell in a network processes its batch in parts and accumulates gradients."""
    return any(isinstance(cell, nn.GradAccumulationCell) for _, cell in network.cells_and_names())


def build_train_network(
    network: nn.Cell,
    optimizer: Any,
    loss_fn: Any = None,
    level: str = "O0",
    boost_level: str = "O0",
    **kwargs: Any,
) -> nn.Cell:
    """Build the cell that trains a network step by step.

    Parameters
    ----------
    network : Cell
        It is modified if it shall compute in 16 bits.
    optimizer : Optimizer
    loss_fn : Cell, optional
    level : {"O0", "O1", "O2", "O3"}
        O2 uses a `DynamicLossScaleManager` by default.
    boost_level : {"O0"}
    **kwargs
        ``cast_model_type``, ``keep_batchnorm_fp32``, ``loss_scale_manager``.

    Raises
    ------
    UnsupportedError
        For levels that rewrite the network, and for boost.
    ScriptValueError
        For unknown levels and keywords, and for skipped steps on a CPU. [observed 2.10]
    """
    from dumpsim.frontends.mindspore.context import get_context

    if not isinstance(optimizer, nn.Optimizer):
        raise ScriptTypeError(
            "The type of 'optimizer' should be one of '['Optimizer', 'FreezeOpt', 'AdaSumByGradWrapCell', "
            f"'AdaSumByDeltaWeightWrapCell']', but got type '{type(optimizer).__name__}'."
        )
    if level not in _LEVELS:
        raise ScriptValueError(f"The 'level' should be in : {list(_LEVELS)}, but got {level}.")
    if boost_level != "O0":
        raise UnsupportedError("boost is not emulated", where="build_train_network(boost_level)", allowed=("O0",))
    for name in kwargs:
        if name not in ("cast_model_type", "keep_batchnorm_fp32", "loss_scale_manager"):
            raise ScriptValueError(f"Unsupported arg '{name}'")
    halves = mstype.float16 if level in ("O2", "O3") else mstype.float32
    kind = kwargs.get("cast_model_type", halves)
    keep = kwargs.get("keep_batchnorm_fp32", level == "O2")
    manager = kwargs.get("loss_scale_manager", DynamicLossScaleManager() if level == "O2" else None)
    if kind == mstype.float16:
        network.to_float(mstype.float16)
        if keep:
            _keep_float32(network, _BLACK_LIST, mstype.float16)
    elif level not in ("O2", "O3"):
        network = auto_mixed_precision(network, level)
    elif level == "O2" and not keep:
        network.to_float(mstype.float16)
    if loss_fn is not None:
        mixed = kind == mstype.float16 or getattr(network, "_amp_level", "O0") != "O0"
        network = (_Float32WithLossCell if mixed else nn.WithLossCell)(network, loss_fn)
    update = None if manager is None else manager.get_update_cell()
    if update is None:
        scale = None if manager is None else manager.get_loss_scale()
        if _accumulates(network):
            return _TrainGradAccuStepCell(network, optimizer).set_train()
        step: nn.Cell = nn.TrainOneStepCell(network, optimizer, scale)
        return step.set_train()
    if get_context("device_target") == "CPU":
        raise ScriptValueError(
            "Only `loss_scale_manager=None` or `loss_scale_manager=FixedLossScaleManager(drop_overflow_update=False)`"
            "are supported on device `CPU`. "
        )
    if _accumulates(network):
        raise UnsupportedError(
            "accumulated gradients with a dynamic loss scale are not emulated",
            where="build_train_network.loss_scale_manager",
            allowed=("None", "FixedLossScaleManager(drop_overflow_update=False)"),
        )
    step = nn.TrainOneStepWithLossScaleCell(network, optimizer, update)
    return step.set_train()


def __getattr__(name: str) -> Any:
    return vendored("mindspore.amp", name)
