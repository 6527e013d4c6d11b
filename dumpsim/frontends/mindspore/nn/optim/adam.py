"""``mindspore.nn.Adam`` and ``AdamWeightDecay``."""

from typing import Any

import numpy as np

from dumpsim.core.errors import DumpsimError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.api import jit
from dumpsim.frontends.mindspore.common.initializer import initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.optim.optimizer import Optimizer
from dumpsim.frontends.mindspore.ops import functional as F  # noqa: N812 - vendor's name
from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph

__all__ = ["Adam", "AdamWeightDecay"]

_adam_opt = MultitypeFuncGraph("adam_opt")
_fused_adam_weight_decay = MultitypeFuncGraph("fused_adam_weight_decay")


@_adam_opt.register("Function", *["Tensor"] * 10)
def _adam_step(
    opt: Any, beta1_power: Any, beta2_power: Any, beta1: Any, beta2: Any, eps: Any, lr: Any, gradient: Any, params: Any,
    moment1: Any, moment2: Any,
) -> Any:  # fmt: skip
    """Update one parameter."""
    success = F.depend(True, opt(params, moment1, moment2, beta1_power, beta2_power, lr, beta1, beta2, eps, gradient))
    return success  # noqa: RET504 - the IR shows the name


@_fused_adam_weight_decay.register("Function", *["Tensor"] * 9, "Bool")
def _decay_step(
    opt: Any, beta1: Any, beta2: Any, eps: Any, lr: Any, weight_decay: Any, param: Any, m: Any, v: Any, gradient: Any,
    decay_flag: bool,
) -> Any:  # fmt: skip
    """Update one parameter; weights named beta or gamma do not decay."""
    decay = weight_decay if decay_flag else Tensor(0.0, mstype.float32)
    opt(param, m, v, lr, beta1, beta2, eps, decay, gradient)
    return True


class _KeywordError(DumpsimError, KeyError):
    """The KeyError for an unknown keyword."""


def _between_0_and_1(value: Any, name: str, owner: str) -> float:
    number: float = _check.typed(value, name, [float], owner)
    if not 0.0 < number < 1.0:
        raise ScriptValueError(
            f"For '{owner}', the '{name}' must be in range of (0.0, 1.0), but got {number} with type 'float'."
        )
    return number


def _positive(value: Any, name: str, owner: str) -> float:
    number: float = _check.typed(value, name, [float], owner)
    if number <= 0.0:
        raise ScriptValueError(
            f"For '{owner}', the '{name}' must be float and must > 0, but got '{number}' with type 'float'."
        )
    return number


class Adam(Optimizer):
    """Adam.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As in `Optimizer`.
    beta1, beta2 : float
        Between 0 and 1.
    eps : float
        Above 0.
    use_locking, use_nesterov : bool
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Any = 0.0,
        loss_scale: Any = 1.0,
        use_amsgrad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        unknown = set(kwargs) - {"use_lazy", "use_offload"}
        if unknown:
            raise _KeywordError(
                "For 'Adam', invalid keys are passed as kwargs, supported keys are 'use_lazy' and 'use_offload', "
                f"but got {kwargs.keys()}."
            )
        if use_amsgrad or any(kwargs.values()):
            raise UnsupportedError("use_amsgrad, use_lazy and use_offload are not emulated", where="nn.Adam")
        self.beta1 = Tensor(_between_0_and_1(beta1, "beta1", self.cls_name), mstype.float32)
        self.beta2 = Tensor(_between_0_and_1(beta2, "beta2", self.cls_name), mstype.float32)
        self.eps = Tensor(_positive(eps, "eps", self.cls_name), mstype.float32)
        self.beta1_power = Parameter(initializer(1, (), mstype.float32), name="beta1_power")
        self.beta2_power = Parameter(initializer(1, (), mstype.float32), name="beta2_power")
        self.use_nesterov = _check.bool_value(use_nesterov, "use_nesterov", self.cls_name)
        self.use_locking = _check.typed(use_locking, "use_locking", [bool], self.cls_name)
        self.moment1 = self._parameters.clone(prefix="moment1", init="zeros")
        self.moment2 = self._parameters.clone(prefix="moment2", init="zeros")
        self.opt = ops.Adam(use_locking, use_nesterov)

    @jit
    def construct(self, gradients: Any) -> Any:
        params = self._parameters
        moment1 = self.moment1
        moment2 = self.moment2
        gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        gradients = self.scale_grad(gradients)
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        beta1_power = self.beta1_power * self.beta1
        self.beta1_power = beta1_power
        beta2_power = self.beta2_power * self.beta2
        self.beta2_power = beta2_power
        if self.is_group_lr:
            success = self.map_(
                F.partial(_adam_opt, self.opt, beta1_power, beta2_power, self.beta1, self.beta2, self.eps),
                lr, gradients, params, moment1, moment2,
            )  # fmt: skip
        else:
            success = self.map_(
                F.partial(_adam_opt, self.opt, beta1_power, beta2_power, self.beta1, self.beta2, self.eps, lr),
                gradients, params, moment1, moment2,
            )  # fmt: skip
        return success


class AdamWeightDecay(Optimizer):
    """Adam with decoupled weight decay, by one fused operator per parameter.

    Parameters
    ----------
    params, learning_rate, weight_decay
        As in `Optimizer`.
    beta1, beta2, eps : float
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.beta1 = Tensor(np.array([_between_0_and_1(beta1, "beta1", self.cls_name)], np.float32))
        self.beta2 = Tensor(np.array([_between_0_and_1(beta2, "beta2", self.cls_name)], np.float32))
        self.eps = Tensor(np.array([_positive(eps, "eps", self.cls_name)], np.float32))
        self.moments1 = self._parameters.clone(prefix="adam_m", init="zeros")
        self.moments2 = self._parameters.clone(prefix="adam_v", init="zeros")
        self.fused_opt = ops.AdamWeightDecay()

    @jit
    def construct(self, gradients: Any) -> Any:
        weight_decay = self.get_weight_decay()
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        fixed = F.partial(_fused_adam_weight_decay, self.fused_opt, self.beta1, self.beta2, self.eps)
        members = (self._parameters, self.moments1, self.moments2, gradients, self.decay_flags)
        if self.is_group and self.is_group_lr:
            optim_result = self.hyper_map(fixed, lr, weight_decay, *members)
        elif self.is_group:
            optim_result = self.hyper_map(F.partial(fixed, lr), weight_decay, *members)
        else:
            optim_result = self.hyper_map(F.partial(fixed, lr, weight_decay), *members)
        return optim_result


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.optim.adam", name)
