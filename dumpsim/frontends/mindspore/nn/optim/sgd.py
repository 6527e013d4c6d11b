"""``mindspore.nn.SGD``."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.api import jit
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.optim.optimizer import Optimizer
from dumpsim.frontends.mindspore.ops import functional as F  # noqa: N812 - vendor's name
from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph

__all__ = ["SGD"]

_sgd_opt = MultitypeFuncGraph("sgd_opt")


@_sgd_opt.register("Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Function")
def _step(momentum: Any, learning_rate: Any, gradient: Any, weight: Any, accum: Any, stat: Any, opt: Any) -> Any:
    """Update one parameter."""
    success = F.depend(True, opt(weight, gradient, learning_rate, accum, momentum, stat))
    return success  # noqa: RET504 - the IR shows the name


def _not_negative(value: Any, name: str) -> float:
    if not isinstance(value, (int, float)):
        raise ScriptTypeError(f"For 'SGD', the argument '{name}' must be float type, but got {type(value)}.")
    if value < 0.0:
        shown = f"{float(value)}." if name == "momentum" else f"'{name}' {float(value)}"  # [observed 2.10]
        raise ScriptValueError(f"For 'SGD', the argument '{name}' must be at least 0.0, but got {shown}")
    return float(value)


class SGD(Optimizer):
    """Gradient descent with optional momentum.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As in `Optimizer`.
    momentum, dampening : float
    nesterov : bool
        Needs a momentum and no dampening.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        momentum: Any = 0.0,
        dampening: Any = 0.0,
        weight_decay: Any = 0.0,
        nesterov: bool = False,
        loss_scale: Any = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        momentum = _not_negative(momentum, "momentum")
        self.dampening = _not_negative(dampening, "dampening")
        self.nesterov = _check.typed(nesterov, "nesterov", [bool], self.cls_name)
        if nesterov and (momentum <= 0.0 or self.dampening != 0.0):
            raise ScriptValueError(
                "For 'SGD', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal to 0.0, "
                f"but got 'momentum' {momentum}, 'dampening' {self.dampening}."
            )
        self.opt = (ops.SGD(self.dampening, 0.0, nesterov),) * len(self._parameters)
        self.momentum = Parameter(Tensor(momentum, mstype.float32), name="momentum")
        self.accum = self._parameters.clone(prefix="accum", init="zeros")
        self.stat = self._parameters.clone(prefix="stat", init="ones")

    @jit
    def construct(self, gradients: Any) -> Any:
        params = self._parameters
        accum = self.accum
        stat = self.stat
        gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        gradients = self.scale_grad(gradients)
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        if self.is_group_lr:
            success = self.hyper_map_reverse(
                F.partial(_sgd_opt, self.momentum), lr, gradients, params, accum, stat, self.opt
            )
        else:
            success = self.hyper_map_reverse(
                F.partial(_sgd_opt, self.momentum, lr), gradients, params, accum, stat, self.opt
            )
        return success


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.optim.sgd", name)
