"""``mindspore.nn.Momentum``."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._checkparam import check_bool
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.api import jit
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn.optim.optimizer import Optimizer
from dumpsim.frontends.mindspore.ops import functional as F  # noqa: N812 - vendor's name
from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph

__all__ = ["Momentum"]

_momentum_opt = MultitypeFuncGraph("momentum_opt")


@_momentum_opt.register("Function", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor")
def _step(opt: Any, momentum: Any, learning_rate: Any, gradient: Any, weight: Any, moment: Any) -> Any:
    """Update one parameter."""
    success = F.depend(True, opt(weight, moment, learning_rate, gradient, momentum))
    return success  # noqa: RET504 - the IR shows the name


class Momentum(Optimizer):
    """Gradient descent with a running mean of the gradients.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As in `Optimizer`.
    momentum : float
    use_nesterov : bool
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        momentum: float,
        weight_decay: Any = 0.0,
        loss_scale: Any = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if not isinstance(momentum, float):
            raise ScriptTypeError(
                f"For '{self.cls_name}', the type of 'momentum' should be 'float', but got type "
                f"'{type(momentum).__name__}'."
            )
        if momentum < 0.0:
            raise ScriptValueError(f"For 'Momentum', the argument 'momentum' must be at least 0.0, but got {momentum}")
        self.momentum = Parameter(Tensor(momentum, mstype.float32), name="momentum")
        self.params = self._parameters
        self.use_nesterov = check_bool(use_nesterov)
        self.moments = self.params.clone(prefix="moments", init="zeros")
        self.opt = ops.ApplyMomentum(use_nesterov=self.use_nesterov)

    @jit
    def construct(self, gradients: Any) -> Any:
        params = self.params
        moments = self.moments
        gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        gradients = self.scale_grad(gradients)
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        if self.is_group_lr:
            success = self.hyper_map_reverse(
                F.partial(_momentum_opt, self.opt, self.momentum), lr, gradients, params, moments
            )
        else:
            success = self.hyper_map_reverse(
                F.partial(_momentum_opt, self.opt, self.momentum, lr), gradients, params, moments
            )
        return success


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.optim.momentum", name)
