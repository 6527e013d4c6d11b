"""The optimizers of ``mindspore.mint.optim``: groups of parameters with their own settings, one call per step."""

from collections.abc import Mapping
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.api import jit
from dumpsim.frontends.mindspore.common.initializer import initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["SGD", "Adam", "AdamW"]


class _Optimizer(Cell):
    """Base of the optimizers; learning rates of the groups are Parameters that a script may assign."""

    def __init__(self, params: Any, defaults: Mapping[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        listed = list(params)
        if not listed:
            raise ScriptValueError("optimizer got an empty parameter list")
        groups = listed if isinstance(listed[0], dict) else [{"params": listed}]
        self.defaults = dict(defaults)
        self.param_groups = [self._group(number, group) for number, group in enumerate(groups)]
        self.parameters = ParameterTuple([p for group in self.param_groups for p in group["params"]])
        self.lrs = ParameterTuple([group["lr"] for group in self.param_groups])
        self.state_step = Parameter(Tensor([0], mstype.float32), name="state_step", requires_grad=False)
        self.step_increase = Tensor([1], mstype.float32)

    def _group(self, number: int, given: Mapping[str, Any]) -> dict[str, Any]:
        unknown = set(given) - {"params", *self.defaults}
        if unknown:
            raise ScriptValueError(f"unknown keys {sorted(unknown)} of a group", allowed=("params", *self.defaults))
        group = {**self.defaults, **given, "params": list(given["params"])}
        for parameter in group["params"]:
            if not isinstance(parameter, Parameter):
                raise ScriptTypeError(f"optimizer can only optimize Parameters, but one of the params is {parameter!r}")
        if group["lr"] < 0:
            raise ScriptValueError(f"Invalid learning rate: {group['lr']}")
        if group["weight_decay"] < 0:
            raise ScriptValueError(f"Invalid weight_decay value: {group['weight_decay']}")
        group["lr"] = Parameter(
            Tensor(float(group["lr"]), mstype.float32), name=f"learning_rate_group_{number}", requires_grad=False
        )
        return group

    def _zeros(self, prefix: str) -> ParameterTuple:
        return self.parameters.clone(prefix=prefix, init="zeros")

    @jit
    def construct(self, gradients: Any) -> Any:
        ops.assign_add(self.state_step, self.step_increase)
        index = 0
        for number, group in enumerate(self.param_groups):
            for parameter in group["params"]:
                gradient = gradients[index]
                self.update(parameter, ops.neg(gradient) if group["maximize"] else gradient, index, group, number)
                index += 1
        return True

    def update(self, parameter: Any, gradient: Any, index: int, group: Mapping[str, Any], number: int) -> None:
        """Update one Parameter."""
        raise NotImplementedError


def _adam_defaults(
    lr: float, betas: tuple[float, float], eps: float, weight_decay: float, amsgrad: bool, maximize: bool
) -> dict[str, Any]:
    for index, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ScriptValueError(f"Invalid beta parameter at index {index}: {beta}")
    if eps < 0.0:
        raise ScriptValueError(f"Invalid epsilon value: {eps}")
    if amsgrad:
        raise UnsupportedError("amsgrad is not emulated", where="mindspore.mint.optim")
    return {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "maximize": maximize}


class Adam(_Optimizer):
    """Adam; weight decay is part of the gradient.

    Parameters
    ----------
    params : iterable of Parameter, or of dict
    lr, eps, weight_decay : float
    betas : pair of float
    amsgrad : bool
        Not emulated.
    maximize : bool

    Examples
    --------
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = Adam([weight], lr=0.1)((Tensor([2.0]),))
    >>> weight.asnumpy().round(4)
    array([0.9], dtype=float32)
    """

    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, _adam_defaults(lr, betas, eps, weight_decay, amsgrad, maximize))
        self.exp_avg = self._zeros("exp_avg")
        self.exp_avg_sq = self._zeros("exp_avg_sq")

    def update(self, parameter: Any, gradient: Any, index: int, group: Mapping[str, Any], number: int) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = self.lrs[number], group["weight_decay"]
        value = parameter
        if decay and self.decoupled:
            value = parameter * (1 - lr * decay)
        elif decay:
            gradient = gradient + parameter * decay
        mean = self.exp_avg[index] * beta1 + gradient * (1 - beta1)
        square = self.exp_avg_sq[index] * beta2 + gradient * gradient * (1 - beta2)
        ops.assign(self.exp_avg[index], mean)
        ops.assign(self.exp_avg_sq[index], square)
        step = ops.reshape(self.state_step, ())
        size = lr / (1 - ops.pow(Tensor(beta1, mstype.float32), step))
        root = ops.sqrt(square) / ops.sqrt(1 - ops.pow(Tensor(beta2, mstype.float32), step)) + group["eps"]
        ops.assign(parameter, value - size * mean / root)


class AdamW(Adam):
    """Adam with decoupled weight decay.

    Parameters
    ----------
    params, lr, betas, eps, weight_decay, amsgrad, maximize
        As in `Adam`; the default weight decay is 0.01.

    Examples
    --------
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = AdamW([weight], lr=0.1, weight_decay=0.5)((Tensor([2.0]),))
    >>> weight.asnumpy().round(4)
    array([0.85], dtype=float32)
    """

    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class SGD(_Optimizer):
    """Gradient descent with optional momentum.

    Parameters
    ----------
    params : iterable of Parameter, or of dict
    lr, momentum, dampening, weight_decay : float
    nesterov : bool
        Needs a momentum and no dampening.
    maximize : bool

    Examples
    --------
    >>> weight = Parameter(Tensor([1.0]), name="w")
    >>> _ = SGD([weight], lr=0.1)((Tensor([2.0]),))
    >>> weight.asnumpy().round(4)
    array([0.8], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        if momentum < 0.0:
            raise ScriptValueError(f"Invalid momentum value: {momentum}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ScriptValueError("Nesterov momentum requires a momentum and zero dampening")
        settings = {"momentum": momentum, "dampening": dampening, "nesterov": nesterov}
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "maximize": maximize, **settings})
        self.accum = self._zeros("accum")
        self.first = ParameterTuple(
            [Parameter(initializer("ones", [], mstype.float32), name=f"stat.{p.name}") for p in self.parameters]
        )

    def update(self, parameter: Any, gradient: Any, index: int, group: Mapping[str, Any], number: int) -> None:
        momentum = group["momentum"]
        if group["weight_decay"]:
            gradient = gradient + parameter * group["weight_decay"]
        if momentum:
            # the first step uses the gradient without dampening
            first, accum = self.first[index], self.accum[index]
            moved = accum * momentum + gradient * (1 - group["dampening"] * (1 - first))
            ops.assign(accum, moved)
            ops.assign(first, first * 0)
            gradient = gradient + moved * momentum if group["nesterov"] else moved
        ops.assign(parameter, parameter - self.lrs[number] * gradient)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint.optim.adam", name)
