"""``mindspore.nn.wrap.loss_scale``: training steps with a scaled loss, skipped where gradients overflow."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.device.chip import OverflowMode
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell
from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph
from dumpsim.frontends.mindspore.parallel._context import ParallelMode

__all__ = ["DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "TrainOneStepWithLossScaleCell"]

_grad_scale = MultitypeFuncGraph("grad_scale")
_grad_overflow = MultitypeFuncGraph("_grad_overflow")


@_grad_scale.register("Tensor", "Tensor")
def _unscaled(scale: Any, grad: Any) -> Any:
    """Divide the gradient by the scale of the loss."""
    return grad * ops.cast(ops.Reciprocal()(scale), grad.dtype)


@_grad_overflow.register("Tensor")
def _overflows(grad: Any) -> Any:
    """Return 1 if an element is not finite, else 0."""
    if get_context("device_target") == "GPU":
        return call("FloatStatus", [grad])
    return ops.reshape(1.0 - ops.cast(ops.reduce_all(ops.isfinite(grad)), mstype.float32), (-1,))


class DynamicLossScaleUpdateCell(Cell):
    """A scale that shrinks at every overflow and grows after `scale_window` steps without one.

    Parameters
    ----------
    loss_scale_value : float
        The initial scale.
    scale_factor : int
    scale_window : int
        Steps without overflow before the scale grows.

    Examples
    --------
    >>> DynamicLossScaleUpdateCell(4096, 2, 1000).get_loss_scale()
    4096
    """

    def __init__(self, loss_scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__()
        self.scale_window = Tensor(scale_window, mstype.int32)
        self.scale_factor = Tensor(scale_factor, mstype.float32)
        self.loss_scale_value = loss_scale_value
        self.cur_iter = Parameter(Tensor(1, mstype.int32), name="current_iterator_step")
        self.last_overflow_iter = Parameter(Tensor(0, mstype.int32), name="last_overflow_iterator_step")
        self.select = ops.Select()
        self.max = ops.Maximum()
        self.minimum_loss_scale = Tensor(1.0, mstype.float32)
        self.reciprocal = ops.Reciprocal()
        self.less_equal = ops.LessEqual()
        self.logic_and = ops.LogicalAnd()
        self.logic_not = ops.LogicalNot()
        self.logic_or = ops.LogicalOr()

    def get_loss_scale(self) -> float:
        """Return the initial scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Any, overflow: Any) -> Any:
        smaller = self.max(loss_scale * self.reciprocal(self.scale_factor), self.minimum_loss_scale)
        loss_scale_on_overflow = self.select(overflow, smaller, loss_scale)
        should_inc = self.less_equal(self.scale_window, self.cur_iter - self.last_overflow_iter)
        last_iter_cond = self.logic_or(overflow, should_inc)
        last_overflow_iter = self.select(last_iter_cond, self.cur_iter, self.last_overflow_iter)
        last_iter = ops.assign(self.last_overflow_iter, last_overflow_iter)
        update_scale_cond = self.logic_and(should_inc, self.logic_not(overflow))
        scale_mul_res = loss_scale_on_overflow * self.scale_factor
        scaled_loss_scale = self.select(update_scale_cond, scale_mul_res, loss_scale_on_overflow)
        ops.assign(loss_scale, scaled_loss_scale)
        inc_cur_iter = self.cur_iter + 1
        inc_cur_iter = ops.depend(inc_cur_iter, last_iter)
        ops.assign(self.cur_iter, inc_cur_iter)
        return overflow


class FixedLossScaleUpdateCell(Cell):
    """A constant scale.

    Examples
    --------
    >>> FixedLossScaleUpdateCell(1024).get_loss_scale()
    1024
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self) -> float:
        """Return the scale."""
        return self.loss_scale_value

    def construct(self, _: Any, overflow: Any) -> Any:
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """A training step that skips the update when a gradient overflows; returns loss, overflow and scale.

    On chips that saturate, the flags of the device report an overflow; elsewhere the gradients are checked.

    Parameters
    ----------
    network : Cell
        Returns a loss.
    optimizer : Optimizer
    scale_sense : Cell or Tensor
        A cell with `get_loss_scale` that updates the scale, or a constant scale.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For another kind of scale.
    """

    def __init__(self, network: Cell, optimizer: Any, scale_sense: Any) -> None:
        super().__init__(network, optimizer, sens=None)
        self.hyper_map = ops.HyperMap()
        self.base = Tensor(1, mstype.float32)
        self.base0 = Tensor(0, mstype.int32)
        self.reduce_all = ops.ReduceAll(keep_dims=False)
        self.less_equal = ops.LessEqual()
        self.equal = ops.Equal()
        self.logic_not = ops.LogicalNot()
        self.allreduce = ops.AllReduce()
        self.is_distributed = self.parallel_mode != ParallelMode.STAND_ALONE
        self.loss_scaling_manager: Any = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            scale: Any = Tensor(scale_sense.get_loss_scale(), mstype.float32)
        elif isinstance(scale_sense, Tensor):
            if tuple(scale_sense.shape) not in ((1,), ()):
                raise ScriptValueError(
                    "For 'TrainOneStepWithLossScaleCell', the shape of 'scale_sense' must be (1,) or (), "
                    f"but got {scale_sense.shape}."
                )
            scale = scale_sense
        else:
            raise ScriptTypeError(
                "For 'TrainOneStepWithLossScaleCell', the 'scale_sense' must be Cell or Tensor, but got 'scale_sense' "
                f"type: {type(scale_sense)}."
            )
        self.scale_sense = Parameter(scale, name="scale_sense")

    def construct(self, *inputs: Any) -> Any:
        weights = self.weights
        loss = self.network(*inputs)
        scaling_sens = self.scale_sense
        scaling_sens_filled = ops.ones_like(loss) * ops.cast(scaling_sens, loss.dtype)
        grads = self.grad(self.network, weights)(*inputs, scaling_sens_filled)
        grads = self.hyper_map(ops.partial(_grad_scale, scaling_sens), grads)
        grads = self.grad_reducer(grads)
        cond = self.get_overflow_status(Tensor([0] * 8, mstype.int32), grads)
        overflow = self.process_loss_scale(cond)
        if not overflow:
            loss = ops.depend(loss, self.optimizer(grads))
        return loss, cond, scaling_sens

    def set_sense_scale(self, sens: Tensor) -> None:
        """Set the scale for the following steps."""
        if not isinstance(sens, Tensor):
            raise ScriptTypeError(
                f"For 'TrainOneStepWithLossScaleCell', the type of 'sens' must be Tensor, but got {type(sens)}"
            )
        self.scale_sense.set_data(sens)

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> Any:
        """Return the status before the gradients, and their input ordered after it."""
        status = Tensor([0] * 8, mstype.int32)
        if _saturates():
            status = ops.depend(status, pre_cond)
            clear_status = call("NPUClearFloatStatusV2", [status])
            compute_input = ops.depend(compute_input, clear_status)
        return status, compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Any:
        """Return whether any gradient overflowed."""
        if _reads_flag():
            return self._flag_of_device(status, compute_output)
        if _has_all_finite():
            overflow = call("AllFinite", [tuple(compute_output)])
            if self.is_distributed:
                overflow = ops.cast(overflow, mstype.float32)
                overflow = ops.cast(self.allreduce(overflow), mstype.bool_)
            return ops.reshape(overflow, ())
        flags = self.hyper_map(ops.partial(_grad_overflow), compute_output)
        flag_sum = ops.AddN()(tuple(flags)) if len(flags) > 1 else flags[0]
        flag_sum = ops.reshape(flag_sum, ())
        if self.is_distributed:
            flag_sum = self.allreduce(flag_sum)
        return self.less_equal(self.base, flag_sum)

    def _flag_of_device(self, status: Any, compute_output: Any) -> Any:
        """Read and clear the overflow flags of a chip that saturates."""
        status = ops.depend(status, compute_output)
        get_status = call("NPUGetFloatStatusV2", [status])
        if self.is_distributed:  # cleared after the AllReduce, whose own overflow must not reach the next step
            flag_reduce = self.allreduce(get_status)
            flag = self.equal(self.base0, flag_reduce)
            status = ops.depend(status, flag)
            clear_status = call("NPUClearFloatStatusV2", [status])
            flag = ops.depend(flag, clear_status)
            return self.logic_not(self.reduce_all(flag))
        status = ops.depend(status, get_status)
        clear_status = call("NPUClearFloatStatusV2", [status])
        get_status = ops.depend(get_status, clear_status)
        flag = self.equal(self.base0, get_status)
        return self.logic_not(self.reduce_all(flag))

    def process_loss_scale(self, overflow: Any) -> Any:
        """Let the manager update the scale."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow


def _saturates() -> bool:
    """Whether too large results become the largest number: on 910A, and where configured."""
    if get_context("device_target") != "Ascend":
        return False
    from dumpsim.runtime.session import Session  # importing nn loads no runtime

    return Session.current().device.overflow is OverflowMode.SATURATION


def _reads_flag() -> bool:
    """Whether the device's flag is read: where results saturate, and on the CPU.

    The CPU has no such operator and refuses it, but clears no flag before. [observed 2.10]
    """
    return _saturates() or bool(get_context("device_target") == "CPU")


def _has_all_finite() -> bool:
    """Whether one operator checks all gradients: on Ascend, in kernel-by-kernel mode."""
    if get_context("device_target") != "Ascend":
        return False
    from dumpsim.runtime.session import Session  # importing nn loads no runtime

    return Session.current().options().jit_level != "O2"


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.wrap.loss_scale", name)
