"""Training on a batch in parts: the network runs once for each part, and the gradients are accumulated.

In networks split over devices, the compiler adds the gradients of the parts to the Parameters ``accu_grads.*``, which
the training step here defines, uses and clears. [vendor nn/wrap/cell_wrapper.py]
"""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.nn.layer.container import CellList
from dumpsim.frontends.mindspore.nn.wrap.cell_wrapper import TrainOneStepCell
from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph
from dumpsim.frontends.mindspore.parallel._context import get_auto_parallel_context

__all__ = ["GradAccumulationCell", "MicroBatchInterleaved"]

PARTS = "grad_accu_num"  # attribute of the slices by which the compiler recognizes the parts

_scaled = MultitypeFuncGraph("grad_scale")
_cleared = MultitypeFuncGraph("pipeline_clear_grad")


@_scaled.register("Number", "Tensor")
def _scale(scale: Any, grad: Any) -> Any:
    """Return the scaled gradient, and clear its accumulator."""
    new_grad = scale * grad
    grad = ops.depend(grad, new_grad)
    zeros = ops.zeros_like(grad)
    return ops.depend(new_grad, ops.assign(grad, zeros))


@_cleared.register("Tensor", "Tensor")
def _clear(accu_grad: Any, grad: Any) -> Any:
    """Clear the accumulator of a gradient."""
    accu_grad = ops.depend(accu_grad, grad)
    zeros = ops.zeros_like(accu_grad)
    return ops.assign(accu_grad, zeros)


class _MicroBatch(Cell):
    """Part `i` of the arguments."""

    def __init__(self, micro_size: int) -> None:
        super().__init__()
        self.shape = ops.Shape()
        self.micro_size = micro_size
        self.strided_slice = ops.StridedSlice()

    def construct(self, i: int, *inputs: Any) -> Any:
        micro_inputs: tuple[Any, ...] = ()
        for each_input in inputs:
            input_shape = self.shape(each_input)
            rows = _rows(input_shape, self.micro_size)
            begin = (rows * i, *[0] * (len(input_shape) - 1))
            end = (rows * (i + 1), *input_shape[1:])
            strides = (1,) * len(input_shape)
            micro_input = self.strided_slice(each_input, begin, end, strides)
            micro_inputs += (micro_input,)
        return micro_inputs


def _rows(shape: tuple[int, ...], count: int) -> int:
    if shape[0] % count:
        raise ScriptValueError(
            f"For micro batch initialization, the 0th dimension shape of input({shape[0]}) must be divided by "
            f"micro size({count})"
        )
    return shape[0] // count


class GradAccumulationCell(Cell):
    """A network that processes its batch in parts and returns the sum of the losses.

    In semi_auto_parallel and auto_parallel, the training step that `Model` or `amp.build_train_network` builds from it
    accumulates the gradients of the parts.

    Parameters
    ----------
    network : Cell
    micro_size : int
        Number of parts.

    Raises
    ------
    TypeError, ValueError
        For another kind of argument, and for a number that is not positive.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore import Tensor, nn
    >>> import numpy as np
    >>> GradAccumulationCell(nn.ReLU(), 2)(Tensor(np.array([1.0, 2.0, 3.0, -4.0], np.float32))).asnumpy()
    array([4., 2.], dtype=float32)
    >>> GradAccumulationCell(nn.ReLU(), 0)
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptValueError: For 'GradAccumulationCell', the argument 'micro_size' must be large than 0, \
but got 0.
    """

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        self.network = network
        self.micro_inputs = CellList()
        self.micro_size = micro_size
        self.add_list: list[Any] = []
        _check_parts(name, network, "micro_size", micro_size)
        for i in range(micro_size):
            micro_input = _MicroBatch(micro_size)
            micro_input.strided_slice.add_prim_attr(PARTS, micro_size)
            self.micro_inputs.append(micro_input)
            self.add = ops.Add().add_prim_attr("forward_end", i)
            self.add_list.append(self.add)
        self._get_attr_from_cell(network)

    def construct(self, *inputs: Any) -> Any:
        ret = None
        for i in range(self.micro_size):
            micro_input = self.micro_inputs[i](i, *inputs)
            output = self.network(*micro_input)
            if ret is not None:
                ret = self.add_list[i](ret, output)
            else:
                ret = output
        return ret


class MicroBatchInterleaved(Cell):
    """A network that processes its batch in parts and returns the sum of the results.

    On real devices, one part computes while another communicates; here the parts run one after another.

    Parameters
    ----------
    network : Cell
    interleave_num : int
        Number of parts.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore import Tensor, nn
    >>> import numpy as np
    >>> MicroBatchInterleaved(nn.ReLU())(Tensor(np.array([1.0, 2.0, 3.0, -4.0], np.float32))).asnumpy()
    array([4., 2.], dtype=float32)
    """

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(auto_prefix=False)
        _check_parts("MicroBatchInterleaved", None, "interleave_num", interleave_num)
        self.network = network
        self.interleave_num = interleave_num
        self.interleave_inputs = CellList()
        self.add = ops.Add().add_prim_attr("micro_interleaved_add_flag", True)
        for _ in range(interleave_num):
            interleave_data = _MicroBatch(interleave_num)
            interleave_data.strided_slice.add_prim_attr("strided_slice_flag", True)
            interleave_data.strided_slice.add_prim_attr("interleave_num", interleave_num)
            self.interleave_inputs.append(interleave_data)
        self._get_attr_from_cell(network)

    def construct(self, *inputs: Any) -> Any:
        output = 0.0
        for i in range(self.interleave_num):
            interleave_input = self.interleave_inputs[i](i, *inputs)
            output = self.add(output, self.network(*interleave_input))
        return output


def _check_parts(name: str, network: Any, argument: str, count: Any) -> None:
    if network is not None and not isinstance(network, Cell):
        raise ScriptTypeError(
            f"For '{name}', the argument 'network' must cell type, but got the type : {type(network)}."
        )
    if not isinstance(count, int):
        raise ScriptTypeError(
            f"For '{name}', the argument '{argument}' must be integer, but got the type : {type(count)}."
        )
    if count <= 0:
        raise ScriptValueError(f"For '{name}', the argument '{argument}' must be large than 0, but got {count}.")


class _TrainGradAccuStepCell(TrainOneStepCell):
    """A training step of a network that processes its batch in parts.

    Without `sens`, the gradients are divided by the number of parts.
    """

    def __init__(self, network: Cell, optimizer: Any, sens: Any = None) -> None:
        super().__init__(network, optimizer, sens)
        self.accu_grads = self.weights.clone(prefix="accu_grads", init="zeros")
        self.hyper_map = ops.HyperMap()
        self.opt_shard = get_auto_parallel_context("enable_parallel_optimizer")
        self._get_attr_from_cell(network)
        if not self.sense_flag:
            parts = [cell.micro_size for _, cell in network.cells_and_names() if hasattr(cell, "micro_size")]
            self.sens = 1 / (parts or [1.0])[0]

    def construct(self, *inputs: Any) -> Any:
        if not self.sense_flag:
            return self._no_sens_impl(*inputs)
        loss = self.network(*inputs)
        sens = ops.fill(loss.dtype, loss.shape, self.sens)
        grads = self.grad(self.network, self.weights)(*inputs, sens)
        accu_grads = ops.depend(self.accu_grads, grads)
        succ = self.optimizer(grads if self.opt_shard else accu_grads)
        loss = ops.depend(loss, succ)
        clear = self.hyper_map(_cleared, accu_grads, grads)
        return ops.depend(loss, clear)

    def _no_sens_impl(self, *inputs: Any) -> Any:
        """Run a step without a scaled loss."""
        loss = self.network(*inputs)
        grads = self.grad_no_sens(self.network, self.weights)(*inputs)
        accu_grads = ops.depend(self.accu_grads, grads)
        if self.opt_shard:
            grads = self.hyper_map(ops.partial(_scaled, self.sens), grads)
            succ = self.optimizer(grads)
        else:
            accu_grads = self.hyper_map(ops.partial(_scaled, self.sens), accu_grads)
            succ = self.optimizer(accu_grads)
        loss = ops.depend(loss, succ)
        clear = self.hyper_map(_cleared, accu_grads, grads)
        return ops.depend(loss, clear)
