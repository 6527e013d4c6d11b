"""Optimizers that adapt the rate of each element: RMSProp, Adagrad, Adadelta, AdaMax, FTRL, ProximalAdagrad."""

from typing import Any

from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.api import jit
from dumpsim.frontends.mindspore.common.initializer import initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.optim.optimizer import Optimizer
from dumpsim.frontends.mindspore.ops import functional as F  # noqa: N812 - vendor's name
from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph

__all__ = ["FTRL", "AdaMax", "Adadelta", "Adagrad", "ProximalAdagrad", "RMSProp"]

_rms_prop_opt = MultitypeFuncGraph("rmsprop_opt")
_centered_rms_prop_opt = MultitypeFuncGraph("centered_rmsprop_opt")
_adagrad_opt = MultitypeFuncGraph("ada_grad_opt")
_adadelta_opt = MultitypeFuncGraph("adadelta_opt")
_adamax_opt = MultitypeFuncGraph("ada_max_opt")
_ftrl_opt = MultitypeFuncGraph("ftrl_opt")
_proximal_opt = MultitypeFuncGraph("proximal_ada_grad_opt")


@_rms_prop_opt.register("Function", *["Number"] * 3, *["Tensor"] * 5)
def _rms_prop_step(
    opt: Any, decay: Any, epsilon: Any, momentum: Any, learning_rate: Any, gradient: Any, weight: Any, square: Any,
    moment: Any,
) -> Any:  # fmt: skip
    """Update one parameter."""
    success = F.depend(True, opt(weight, square, moment, learning_rate, gradient, decay, momentum, epsilon))
    return success  # noqa: RET504 - the IR shows the name


@_centered_rms_prop_opt.register("Function", *["Number"] * 3, *["Tensor"] * 6)
def _centered_rms_prop_step(
    opt: Any, decay: Any, epsilon: Any, momentum: Any, learning_rate: Any, gradient: Any, weight: Any, square: Any,
    moment: Any, mean: Any,
) -> Any:  # fmt: skip
    """Update one parameter."""
    success = F.depend(True, opt(weight, mean, square, moment, gradient, learning_rate, decay, momentum, epsilon))
    return success  # noqa: RET504 - the IR shows the name


@_adagrad_opt.register("Function", *["Tensor"] * 4)
def _adagrad_step(opt: Any, learning_rate: Any, gradient: Any, weight: Any, accum: Any) -> Any:
    """Update one parameter."""
    success = F.depend(True, opt(weight, accum, learning_rate, gradient))
    return success  # noqa: RET504 - the IR shows the name


@_adadelta_opt.register("Function", "Number", "Number", *["Tensor"] * 5)
def _adadelta_step(
    opt: Any, rho: Any, epsilon: Any, learning_rate: Any, gradient: Any, weight: Any, accum: Any, update: Any
) -> Any:
    """Update one parameter."""
    success = F.depend(True, opt(weight, accum, update, learning_rate, rho, epsilon, gradient))
    return success  # noqa: RET504 - the IR shows the name


@_adamax_opt.register("Function", *["Tensor"] * 9)
def _adamax_step(
    opt: Any, power: Any, beta1: Any, beta2: Any, eps: Any, learning_rate: Any, gradient: Any, weight: Any,
    moment1: Any, moment2: Any,
) -> Any:  # fmt: skip
    """Update one parameter."""
    success = F.depend(True, opt(weight, moment1, moment2, power, learning_rate, beta1, beta2, eps, gradient))
    return success  # noqa: RET504 - the IR shows the name


@_ftrl_opt.register("Function", *["Number"] * 3, *["Tensor"] * 5)
def _ftrl_step(
    opt: Any, l1: Any, l2: Any, power: Any, learning_rate: Any, gradient: Any, weight: Any, moment: Any, linear: Any
) -> Any:
    """Update one parameter."""
    success = F.depend(True, opt(weight, moment, linear, gradient, learning_rate, l1, l2, power))
    return success  # noqa: RET504 - the IR shows the name


@_proximal_opt.register("Function", *["Tensor"] * 6)
def _proximal_step(opt: Any, l1: Any, l2: Any, learning_rate: Any, gradient: Any, weight: Any, accum: Any) -> Any:
    """Update one parameter."""
    success = F.depend(True, opt(weight, accum, learning_rate, l1, l2, gradient))
    return success  # noqa: RET504 - the IR shows the name


def _float(value: Any, name: str, owner: str, *, above: float | None = None, least: float | None = None) -> float:
    """Return `value` if it is a float within the given bounds."""
    number: float = _check.typed(value, name, [float], owner)
    wanted = None
    if above is not None and number <= above:
        wanted = f"> {above:g}"
    elif least is not None and number < least:
        wanted = f">= {least:g}"
    if wanted is not None:
        raise ScriptValueError(
            f"For '{owner}', the '{name}' must be float and must {wanted}, but got '{number}' with type 'float'."
        )
    return number


class _Adaptive(Optimizer):
    """Base of these optimizers: a graph function `step`, and tuples of Parameters with their `state`."""

    step: Any
    opt: Any
    numbers: tuple[Any, ...] = ()
    state: tuple[Any, ...] = ()
    reverse = True

    def now(self) -> tuple[Any, ...]:
        """Return the numbers that `step` takes before the learning rate."""
        return self.numbers

    @jit
    def construct(self, gradients: Any) -> Any:
        params = self._parameters
        gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        gradients = self.scale_grad(gradients)
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        numbers = self.now()
        each = self.map_reverse if self.reverse else self.map_
        if self.is_group_lr:
            success = each(F.partial(self.step, self.opt, *numbers), lr, gradients, params, *self.state)
        else:
            success = each(F.partial(self.step, self.opt, *numbers, lr), gradients, params, *self.state)
        return success


class RMSProp(_Adaptive):
    """Divide gradients by the root of a running mean of their squares.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As in `Optimizer`.
    decay, momentum : float
        At least 0.
    epsilon : float
        Above 0.
    use_locking : bool
    centered : bool
        Subtract the square of the mean from the mean of the squares.

    Examples
    --------
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = RMSProp([weight], 0.1)((Tensor([2.0]),))
    >>> weight.asnumpy().round(4)
    array([0.8246], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        loss_scale: Any = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay = _float(decay, "decay", self.cls_name, least=0.0)
        self.momentum = _float(momentum, "momentum", self.cls_name, least=0.0)
        self.epsilon = _float(epsilon, "epsilon", self.cls_name, above=0.0)
        _check.typed(use_locking, "use_locking", [bool], self.cls_name)
        self.centered = _check.typed(centered, "centered", [bool], self.cls_name)
        self.step = _centered_rms_prop_opt if centered else _rms_prop_opt
        self.opt = ops.ApplyCenteredRMSProp(use_locking) if centered else ops.ApplyRMSProp(use_locking)
        if centered:
            self.mg = self._parameters.clone(prefix="mean_grad", init="zeros")
        self.ms = self._parameters.clone(prefix="mean_square", init="ones")
        self.moment = self._parameters.clone(prefix="moment", init="zeros")
        self.numbers = (self.decay, self.epsilon, self.momentum)
        self.state = (self.ms, self.moment, self.mg) if centered else (self.ms, self.moment)


class Adagrad(_Adaptive):
    """Divide gradients by the root of the sum of their squares.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As in `Optimizer`.
    accum : float
        The initial value of the sum, at least 0.
    update_slots : bool
        Whether to update the sum.

    Examples
    --------
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = Adagrad([weight], learning_rate=0.1)((Tensor([2.0]),))
    >>> weight.asnumpy().round(4)
    array([0.9012], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 0.001,
        update_slots: bool = True,
        loss_scale: Any = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _float(accum, "accum", self.cls_name, least=0.0)
        _check.typed(update_slots, "update_slots", [bool], self.cls_name)
        self.step = _adagrad_opt
        self.opt = ops.ApplyAdagrad(update_slots=update_slots)
        self.accum = self._parameters.clone(prefix="accum", init=accum)
        self.state = (self.accum,)


class Adadelta(_Adaptive):
    """Steps in the unit of the parameters: running means of squared gradients and of squared steps.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As in `Optimizer`.
    rho : float
        From 0 to 1.
    epsilon : float
        At least 0.

    Examples
    --------
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = Adadelta([weight], 1.0)((Tensor([2.0]),))
    >>> weight.asnumpy().round(4)
    array([0.9968], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        loss_scale: Any = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho = _float(rho, "rho", self.cls_name)
        if not 0.0 <= rho <= 1.0:
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'rho' must be in range of [0.0, 1.0], but got {rho} with type 'float'."
            )
        self.epsilon = _float(epsilon, "epsilon", self.cls_name, least=0.0)
        self.step = _adadelta_opt
        self.opt = ops.ApplyAdadelta()
        self.accum = self._parameters.clone(prefix="accum", init="zeros")
        self.accum_update = self._parameters.clone(prefix="accum_update", init="zeros")
        self.numbers = (self.rho, self.epsilon)
        self.state = (self.accum, self.accum_update)


class AdaMax(_Adaptive):
    """Adam with the largest gradient instead of the mean of squares.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As in `Optimizer`.
    beta1, beta2 : float
        Between 0 and 1.
    eps : float
        Above 0.

    Examples
    --------
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = AdaMax([weight], 0.1)((Tensor([2.0]),))
    >>> weight.asnumpy().round(4)
    array([0.9], dtype=float32)
    """

    reverse = False

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: Any = 0.0,
        loss_scale: Any = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        for name, value in (("beta1", beta1), ("beta2", beta2)):
            if not 0.0 < _float(value, name, self.cls_name) < 1.0:
                raise ScriptValueError(
                    f"For '{self.cls_name}', the '{name}' must be in range of (0.0, 1.0), but got {value} with type "
                    "'float'."
                )
        self.beta1 = Tensor(beta1, mstype.float32)
        self.beta2 = Tensor(beta2, mstype.float32)
        self.eps = Tensor(_float(eps, "eps", self.cls_name, above=0.0), mstype.float32)
        self.beta1_power = Parameter(initializer(1, [1], mstype.float32), name="beta1_power")
        self.step = _adamax_opt
        self.opt = ops.ApplyAdaMax()
        self.moment1 = self._parameters.clone(prefix="moment1", init="zeros")
        self.moment2 = self._parameters.clone(prefix="moment2", init="zeros")
        self.state = (self.moment1, self.moment2)

    def now(self) -> tuple[Any, ...]:
        power = self.beta1_power * self.beta1
        self.beta1_power = power
        return power, self.beta1, self.beta2, self.eps


class FTRL(_Adaptive):
    """Follow the regularised leader.

    Parameters
    ----------
    params, weight_decay, loss_scale
        As in `Optimizer`.
    initial_accum, l1, l2 : float
        At least 0.
    learning_rate : float
        Above 0; a single number for all steps and groups.
    lr_power : float
        At most 0.
    use_locking : bool

    Examples
    --------
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = FTRL([weight], learning_rate=0.1)((Tensor([2.0]),))
    >>> weight.asnumpy().round(4)
    array([0.7451], dtype=float32)
    """

    reverse = False

    def __init__(
        self,
        params: Any,
        initial_accum: float = 0.1,
        learning_rate: float = 0.001,
        lr_power: float = -0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: Any = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ScriptValueError(
                "For 'FTRL', dynamic learning rate and group learning rate are currently not supported in FTRL, they "
                f"should all be false, but got dynamic learning rate {self.dynamic_lr} and group learning rate "
                f"{self.is_group_lr}."
            )
        for name, value in (("initial_accum", initial_accum), ("l1", l1), ("l2", l2)):
            if _float(value, name, self.cls_name) < 0.0:
                raise ScriptValueError(f"For '{self.cls_name}', the argument '{name}' must >= 0.0, but got {value}.")
        _float(learning_rate, "learning_rate", self.cls_name, above=0.0)
        _float(lr_power, "lr_power", self.cls_name)
        if lr_power > 0.0:
            raise ScriptValueError(f"For '{self.cls_name}', the argument 'lr_power' must <= 0.0, but got {lr_power}.")
        _check.typed(use_locking, "use_locking", [bool], self.cls_name)
        self.step = _ftrl_opt
        self.opt = ops.ApplyFtrl(use_locking=use_locking)
        self.moments = self._parameters.clone(prefix="moments", init=initial_accum)
        self.linear = self._parameters.clone(prefix="linear", init="zeros")
        self.numbers = (l1, l2, lr_power)
        self.state = (self.moments, self.linear)
        if not self.is_group:
            self.decay_flags = tuple(True for _ in self._parameters)


class ProximalAdagrad(_Adaptive):
    """Adagrad with L1 and L2 penalties.

    Parameters
    ----------
    params, learning_rate, weight_decay, loss_scale
        As in `Optimizer`.
    accum, l1, l2 : float
        At least 0.
    use_locking : bool

    Examples
    --------
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = ProximalAdagrad([weight], learning_rate=0.1)((Tensor([2.0]),))
    >>> weight.asnumpy().round(4)
    array([0.9012], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 0.001,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: Any = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        for name, value in (("accum", accum), ("l1", l1), ("l2", l2)):
            _float(value, name, self.cls_name, least=0.0)
        _check.typed(use_locking, "use_locking", [bool], self.cls_name)
        self.step = _proximal_opt
        self.opt = ops.ApplyProximalAdagrad(use_locking=use_locking)
        self.accum = self._parameters.clone(prefix="accum", init=accum)
        self.l1, self.l2 = Tensor(l1, mstype.float32), Tensor(l2, mstype.float32)
        self.numbers = (self.l1, self.l2)
        self.state = (self.accum,)
