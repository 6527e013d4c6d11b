"""The optimizers of ``mindspore.mint.optim``: groups of parameters with their own settings, one call per step."""

from collections.abc import Iterable, Mapping
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.api import jit
from dumpsim.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["SGD", "Adam", "AdamW"]


class _Optimizer(Cell):
    """Base of the optimizers; learning rates of the groups are Parameters that a script may assign."""

    def __init__(self, params: Any, defaults: Mapping[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        listed = list(params)
        if not listed:
            raise ScriptValueError("For 'Optimizer', the argument params must not be empty.")
        groups = listed if isinstance(listed[0], dict) else [{"params": listed}]
        self.defaults = dict(defaults)
        self.param_groups = [self._group(number, group) for number, group in enumerate(groups)]
        every = [p for group in self.param_groups for p in group["params"]]
        if len({id(p) for p in every}) < sum(len({id(p) for p in group["params"]}) for group in self.param_groups):
            raise ScriptValueError("some parameters appear in more than one parameter group.")
        self.parameters = ParameterTuple(every)

    @property
    def lrs(self) -> list[Parameter]:
        """The learning rates of the groups."""
        return [group["lr"] for group in self.param_groups]

    def _group(self, number: int, given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise ScriptTypeError("Param group must be a dict.")
        members = given["params"]
        members = [members] if isinstance(members, Parameter) else list(members)
        group = {**self.defaults, **given, "params": members}
        for parameter in members:
            if not isinstance(parameter, Parameter):
                raise ScriptTypeError(f"optimizer can only optimize Parameters, but one of the params is {parameter!r}")
        for name, shown in (("lr", "learning rate"), ("weight_decay", "weight_decay")):
            if group[name] < 0:
                raise ScriptValueError(
                    f"For '{self.cls_name}', the '{shown}' must be float and must >= 0, but got '{float(group[name])}' "
                    "with type 'float'."
                )
        group["lr"] = Parameter(Tensor(float(group["lr"]), mstype.float32), name=f"learning_rate_group_{number}")
        return group

    def __repr__(self) -> str:
        texts = []
        for number, group in enumerate(self.param_groups):
            shown = {**group, "lr": str(group["lr"].asnumpy())}
            rows = (f"    {name}: {shown[name]}\n" for name in sorted(shown) if name != "params")
            texts.append(f"Parameter Group {number}\n{''.join(rows)}")
        joined = "\n".join(texts)
        return f"{self.cls_name} (\n{joined})"

    def _zeros(self, prefix: str) -> ParameterTuple:
        return self.parameters.clone(prefix=prefix, init="zeros")

    @jit
    def construct(self, gradients: Any) -> Any:
        self.begin()
        index = 0
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = gradients[index]
                self.update(parameter, ops.neg(gradient) if group["maximize"] else gradient, index, group)
                index += 1
        self.end()
        return True

    def begin(self) -> None:
        """Do what comes before the updates of a step."""

    def end(self) -> None:
        """Do what comes after the updates of a step."""

    def update(self, parameter: Any, gradient: Any, index: int, group: Mapping[str, Any]) -> None:
        """Update one Parameter."""
        raise NotImplementedError


def _checked(lr: Any, weight_decay: Any) -> None:
    if lr < 0.0:
        raise ScriptValueError(f"Invalid learning rate: {lr}")
    if weight_decay < 0.0:
        raise ScriptValueError(f"Invalid weight_decay value: {weight_decay}")


def _iterable(params: Any) -> Any:
    if params is None:
        raise ScriptValueError("For 'Optimizer', the argument params can not be None.")
    if not isinstance(params, Iterable):
        raise ScriptTypeError(f"For 'Optimizer', the argument params must be Iterable type, but got {type(params)}.")
    return params


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
        owner = type(self).__name__
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay)):
            _check.typed(value, name, [float], owner)
        _check.typed(betas, "betas", [tuple], owner)
        if len(betas) != 2:
            raise ScriptValueError(f"For '{owner}', the betas size should be in : [2], but got {len(betas)}.")
        for index, beta in enumerate(betas):
            _check.typed(beta, f"betas[{index}]", [float], owner)
        for name, value in (("amsgrad", amsgrad), ("maximize", maximize)):
            _check.typed(value, name, [bool], owner)
        _checked(lr, weight_decay)
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ScriptValueError(f"Invalid beta parameter at index {index}: {beta}")
        if eps < 0.0:
            raise ScriptValueError(f"Invalid epsilon value: {eps}")
        if amsgrad:
            raise UnsupportedError("amsgrad is not emulated", where="mindspore.mint.optim")
        settings = {"betas": betas, "eps": eps, "amsgrad": amsgrad, "maximize": maximize}
        super().__init__(_iterable(params), {"lr": lr, "weight_decay": weight_decay, **settings})
        self.exp_avg = self._zeros("exp_avg")
        self.exp_avg_sq = self._zeros("exp_avg_sq")
        self.state_step = Parameter(Tensor([0], mstype.float32), name="state_step")
        self.step_increase = Tensor([1], mstype.float32)

    def begin(self) -> None:
        ops.assign_add(self.state_step, self.step_increase)

    def update(self, parameter: Any, gradient: Any, index: int, group: Mapping[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        lr, decay = group["lr"], group["weight_decay"]
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
        numbers = {"momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        _check.typed(lr, "lr", [float, int, bool, Tensor], "SGD")
        for name, value in numbers.items():
            _check.typed(value, name, [float, int, bool], "SGD")
        for name, value in (("nesterov", nesterov), ("maximize", maximize)):
            _check.typed(value, name, [bool], "SGD")
        _checked(lr, weight_decay)
        if momentum < 0.0:
            raise ScriptValueError(f"Invalid momentum value: {momentum}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ScriptValueError(
                "For 'SGD', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal to 0.0, but got "
                f"'momentum' {momentum}, 'dampening' {dampening}"
            )
        numbers["weight_decay"] = float(weight_decay)
        super().__init__(params, {"lr": lr, **numbers, "nesterov": nesterov, "maximize": maximize})
        self.momentum_buf = self._zeros("momentum_buf")
        self.step_t = Parameter(Tensor(0, mstype.int32), name="step_t")
        self.step_increase = Tensor(1, mstype.int32)

    def _group(self, number: int, given: Any) -> dict[str, Any]:
        group = super()._group(number, given)
        return {**group, "lr_float": given.get("lr", self.defaults["lr"])}

    def end(self) -> None:
        ops.assign_add(self.step_t, self.step_increase)

    def update(self, parameter: Any, gradient: Any, index: int, group: Mapping[str, Any]) -> None:
        momentum = group["momentum"]
        if group["weight_decay"]:
            gradient = gradient + parameter * group["weight_decay"]
        if momentum:
            # the first step uses the gradient without dampening
            later, buffer = ops.minimum(self.step_t, 1), self.momentum_buf[index]
            moved = buffer * momentum + gradient * (1 - group["dampening"] * later)
            ops.assign(buffer, moved)
            gradient = gradient + moved * momentum if group["nesterov"] else moved
        ops.assign(parameter, parameter - group["lr"] * gradient)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint.optim.adam", name)
