"""``mindspore.nn.wrap.cell_wrapper``: networks with loss, gradients and training step."""

from importlib import import_module
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.parameter import ParameterTuple
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.nn.layer.basic import Identity
from dumpsim.frontends.mindspore.nn.wrap.grad_reducer import DistributedGradReducer
from dumpsim.frontends.mindspore.parallel._utils import (
    _get_device_num,
    _get_gradients_mean,
    _get_parallel_mode,
    _reduces_gradients,
)

__all__ = ["ForwardValueAndGrad", "TrainOneStepCell", "WithEvalCell", "WithGradCell", "WithLossCell"]


class WithLossCell(Cell):
    """A network and its loss: takes data and label, returns the loss."""

    def __init__(self, backbone: Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn
        self._get_attr_from_cell(backbone)

    def construct(self, data: Any, label: Any) -> Any:
        out = self._backbone(data)
        return self._loss_fn(out, label)

    @property
    def backbone_network(self) -> Cell:
        """The network."""
        return self._backbone


class WithGradCell(Cell):
    """A network and its loss: returns the gradients of the trainable parameters."""

    def __init__(self, network: Cell, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss_fn = loss_fn
        self.weights = ParameterTuple(network.trainable_params())
        self.grad = ops.GradOperation(get_by_list=True, sens_param=sens is not None)
        self.sens = sens
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()
        self._get_attr_from_cell(network)

    def construct(self, *inputs: Any) -> Any:
        weights = self.weights
        if self.sens is None:
            grads = self.grad(self.network_with_loss, weights)(*inputs)
        else:
            grads = self.grad(self.network_with_loss, weights)(*inputs, self.sens)
        return grads


class ForwardValueAndGrad(Cell):
    """A network that returns its gradients beside its result."""

    def __init__(
        self,
        network: Any,
        weights: Any = None,
        get_all: bool = False,
        get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise ScriptTypeError(
                "For 'ForwardValueAndGrad', the argument 'network' must be cell, function type or method type, "
                f"but got '{type(network)}'"
            )
        if get_by_list and not isinstance(weights, (ParameterTuple, tuple, list)):
            raise ScriptTypeError(
                "For 'ForwardValueAndGrad', when 'get_by_list' is set to True, the argument 'weights' must be "
                f"Parameters array, but got '{type(weights)}'"
            )
        self.network = network
        if isinstance(network, Cell):
            network.set_grad()
        self.weights = weights
        self.get_all = get_all
        self.get_by_list = get_by_list
        self.sens_param = sens_param
        self.grad = ops.GradOperation(get_all=get_all, get_by_list=get_by_list, sens_param=sens_param)
        self._get_attr_from_cell(network)

    def construct(self, *inputs: Any) -> Any:
        grad_inputs = inputs
        if self.sens_param:
            inputs = inputs[:-1]
        loss = self.network(*inputs)
        if self.get_by_list:
            grads = self.grad(self.network, self.weights)(*grad_inputs)
        else:
            grads = self.grad(self.network)(*grad_inputs)
        return loss, grads


class TrainOneStepCell(Cell):
    """A network that returns a loss, and an optimizer: one call is one training step.

    Parameters
    ----------
    network : Cell
    optimizer : Optimizer
    sens : number, optional
        Gradient of the loss, 1 if None.
    return_grad : bool
        Return the gradients by name as well.
    """

    def __init__(self, network: Cell, optimizer: Any, sens: Any = None, return_grad: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = self.optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = ops.GradOperation(get_by_list=True)
        self.sens = sens
        if sens == 0:
            raise ScriptValueError("The input argument of 'sens' can not be 0.")
        self.sense_flag = sens is not None
        self.return_grad = return_grad
        if return_grad:
            self.weights_name = [weight.name for weight in self.optimizer.parameters]
        self.parallel_mode = _get_parallel_mode()
        self.reducer_flag = _reduces_gradients()
        self.grad_reducer: Cell = Identity()
        if self.reducer_flag:
            self.mean, self.degree = _get_gradients_mean(), _get_device_num()
            self.grad_reducer = DistributedGradReducer(self.weights, self.mean, self.degree)
        self._get_attr_from_cell(network)

    def construct(self, *inputs: Any) -> Any:
        if not self.sense_flag:
            return self._no_sens_impl(*inputs)
        loss = self.network(*inputs)
        sens = ops.fill(loss.dtype, loss.shape, self.sens)
        grads = self.grad(self.network, self.weights)(*inputs, sens)
        grads = self.grad_reducer(grads)
        loss = ops.depend(loss, self.optimizer(grads))
        if self.return_grad:
            return loss, dict(zip(self.weights_name, grads, strict=True))
        return loss

    def _no_sens_impl(self, *inputs: Any) -> Any:
        """Run a step without a scaled loss."""
        loss = self.network(*inputs)
        grads = self.grad_no_sens(self.network, self.weights)(*inputs)
        grads = self.grad_reducer(grads)
        loss = ops.depend(loss, self.optimizer(grads))
        if self.return_grad:
            return loss, dict(zip(self.weights_name, grads, strict=True))
        return loss


class WithEvalCell(Cell):
    """A network and its loss: returns loss, outputs and label."""

    def __init__(self, network: Cell, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = _check.typed(add_cast_fp32, "add_cast_fp32", [bool], self.cls_name)
        self._get_attr_from_cell(network)

    def construct(self, data: Any, label: Any) -> Any:
        outputs = self._network(data)
        if self.add_cast_fp32:
            outputs = ops.cast(outputs, mstype.float32)
        loss = self._loss_fn(outputs, label)
        return loss, outputs, label


def __getattr__(name: str) -> Any:
    if name in ("GradAccumulationCell", "MicroBatchInterleaved", "_TrainGradAccuStepCell"):
        return getattr(import_module("dumpsim.frontends.mindspore.nn.wrap._accumulation"), name)
    return vendored("mindspore.nn.wrap.cell_wrapper", name)
