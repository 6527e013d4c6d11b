"""``mindspore.nn.optim.optimizer``: the base class of the optimizers."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.nn.learning_rate_schedule import LearningRateSchedule, _IteratorLearningRate
from dumpsim.frontends.mindspore.ops import functional as F  # noqa: N812 - vendor's name
from dumpsim.frontends.mindspore.ops.composite.hyper_map import HyperMap, Map, MultitypeFuncGraph

__all__ = ["Optimizer", "opt_init_args_register"]

_GROUP_KEYS = ("params", "lr", "weight_decay", "order_params", "grad_centralization")

_apply_decay = MultitypeFuncGraph("apply_decay")
_grad_scale = MultitypeFuncGraph("grad_scale")


@_apply_decay.register("Tensor", "Bool", "Tensor", "Tensor")
def _decayed(weight_decay: Any, if_apply: bool, weight: Any, gradient: Any) -> Any:
    """Add the decay term of the weight to the gradient."""
    if if_apply:
        return ops.AddN()((ops.mul(weight, weight_decay), gradient))
    return gradient


@_grad_scale.register("Tensor", "Tensor")
def _scaled(scale: Any, grad: Any) -> Any:
    """Divide the gradient by the scale of the loss."""
    return ops.mul(grad, ops.cast(scale, grad.dtype))


class _GroupKeyError(DumpsimError, KeyError):
    """The KeyError for an unknown key of a parameter group."""


def opt_init_args_register(fn: Any) -> Any:
    """Decorate a constructor; does nothing here.

    Examples
    --------
    >>> opt_init_args_register(len) is len
    True
    """
    return fn


class Optimizer(Cell):
    """Base of the optimizers: parameters, learning rate, weight decay, scale of the loss.

    Parameters
    ----------
    learning_rate : float, int, Tensor, iterable or LearningRateSchedule
    parameters : iterable of Parameter, or of dict
        Dicts are groups with their own settings: params, lr, weight_decay, order_params.
    weight_decay : float or int
    loss_scale : float or int

    Raises
    ------
    ScriptTypeError, ScriptValueError
        As in MindSpore, with its messages.
    """

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: Any = 1.0) -> None:
        super().__init__(auto_prefix=False)
        listed = _listed(parameters, "parameters")
        if not all(isinstance(p, Parameter) for p in listed) and not all(isinstance(p, dict) for p in listed):
            raise ScriptTypeError(
                "For 'Optimizer', all elements of the argument 'parameters' must be 'Parameter' or 'dict', "
                "please check the 'parameters'."
            )
        if isinstance(weight_decay, Cell):
            raise UnsupportedError("a weight decay schedule is not emulated", where=f"nn.{self.cls_name}(weight_decay)")
        self.loss_scale = _loss_scale(loss_scale, self.cls_name)
        self.dynamic_lr = False
        self.dynamic_weight_decay = False
        self.assignadd = ops.AssignAdd()
        self.global_step = Parameter(initializer(0, [1], mstype.int32), name="global_step")
        self.is_group = isinstance(listed[0], dict)
        self.is_group_lr = False
        rate = self._rate(learning_rate)
        decay = self._decay(weight_decay)
        if self.is_group:
            self._take_groups(listed, rate, decay)
        else:
            self._take_all(listed, rate, decay)
        self._user_parameters.extend(parameter.name for parameter in self._parameters)
        self.reciprocal_scale = Tensor(1.0 / self.loss_scale, mstype.float32)
        self.need_scale = self.loss_scale != 1.0
        self.global_step_increase_tensor = Tensor([1], mstype.int32)
        self.param_length = len(self._parameters)
        self.map_ = Map()
        self.map_reverse = Map(None, True)
        self.hyper_map = HyperMap()
        self.hyper_map_reverse = HyperMap(None, True)
        self.add_flags(skip_auto_parallel_compile=True)

    # -- settings

    def _rate(self, value: Any) -> Any:
        """Return the rate as a float, a 0-d or 1-d Tensor or a schedule."""
        if isinstance(value, (float, int)):
            if value < 0:
                raise ScriptValueError(
                    f"For '{self.cls_name}', the 'learning rate' must be float and must >= 0, but got '{float(value)}' "
                    "with type 'float'."
                )
            return float(value)
        if isinstance(value, Tensor) and value.ndim == 0:
            return Tensor(value.asnumpy(), dtype=mstype.float32)
        self.dynamic_lr = True
        if isinstance(value, LearningRateSchedule):
            return value
        if isinstance(value, Tensor):
            if value.ndim > 1:
                raise ScriptValueError(
                    "For 'Optimizer', if 'learning_rate' is Tensor type, then the dimension of it should be 0 or 1, "
                    f"but got {value.ndim}."
                )
            return Tensor(value.asnumpy(), dtype=mstype.float32)
        if isinstance(value, Iterable):
            return Tensor(np.array(list(value)).astype(np.float32))
        raise ScriptTypeError(
            "For 'Optimizer', the argument 'learning_rate' must be int, float, Tensor, Iterable or "
            f"LearningRateSchedule, but got {type(value)}."
        )

    def _decay(self, value: Any) -> float:
        if not isinstance(value, (float, int)):
            raise ScriptTypeError(
                f"For 'Optimizer', the argument 'Weight_decay' must be int, float or Cell.but got {type(value)}"
            )
        if value < 0:
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'weight_decay' must be float and must >= 0, but got '{float(value)}' "
                "with type 'float'."
            )
        return float(value) * self.loss_scale

    @staticmethod
    def _readable(rate: Any, name: str) -> Any:
        """Return the rate in a form that a graph can read."""
        if isinstance(rate, float):
            return Parameter(Tensor(rate, mstype.float32), name)
        if isinstance(rate, Tensor):
            return Parameter(rate, name) if rate.ndim == 0 else _IteratorLearningRate(rate, name)
        return rate

    def _take_all(self, listed: list[Any], rate: Any, decay: float) -> None:
        self.learning_rate = self._readable(rate, "learning_rate")
        self.parameters = ParameterTuple(listed)
        self._parameters = self.parameters
        self.decay_flags = tuple("beta" not in p.name and "gamma" not in p.name for p in self._parameters)
        self.exec_weight_decay = decay > 0
        self.weight_decay: Any = Tensor(decay, mstype.float32)

    def _take_groups(self, groups: list[dict[str, Any]], rate: Any, decay: float) -> None:
        rates, decays, members = self._members(groups, rate, decay)
        order = next((list(group["order_params"]) for group in groups if "order_params" in group), None)
        if order is not None:
            if len(order) != len(members):
                raise ScriptValueError(
                    "For 'Optimizer',the length of order parameters must be the same as the length of group "
                    "parameters, "
                    f"but got order parameters' length {len(order)}, group parameters' length {len(members)}."
                )
            positions = [[p.name for p in members].index(parameter.name) for parameter in order]
            members = [members[i] for i in positions]
            rates, decays = [rates[i] for i in positions], [decays[i] for i in positions]
        if self.is_group_lr and self.dynamic_lr:
            raise UnsupportedError(
                "learning rate schedules of parameter groups are not emulated", where=f"nn.{self.cls_name}"
            )
        if self.is_group_lr:
            self.learning_rate = _SharedParameterTuple(rates)
        else:
            self.learning_rate = rates[0]
        self.parameters = ParameterTuple(members)
        self._parameters = self.parameters
        self.decay_flags = tuple(value > 0 for value in decays)
        self.exec_weight_decay = any(self.decay_flags)
        self.weight_decay = tuple(Tensor(value, mstype.float32) for value in decays)

    def _members(
        self, groups: list[dict[str, Any]], rate: Any, decay: float
    ) -> tuple[list[Any], list[float], list[Parameter]]:
        """Return the rate, decay and parameter of every member of every group."""
        rates: list[Any] = []
        decays: list[float] = []
        members: list[Parameter] = []
        names: set[str] = set()
        default = self._readable(rate, "learning_rate")
        for number, group in enumerate(groups):
            unknown = [key for key in group if key not in _GROUP_KEYS]
            if unknown:
                raise _GroupKeyError(
                    f"For 'Optimizer', the key in group params must be one of in {list(_GROUP_KEYS)}, "
                    f"but got {unknown}."
                )
            if group.get("grad_centralization"):
                raise UnsupportedError("gradient centralization is not emulated", where="grad_centralization")
            if "order_params" in group:
                continue
            own_rate = default
            if "lr" in group:
                self.is_group_lr = True
                own_rate = self._readable(self._rate(group["lr"]), f"learning_rate_group_{number}")
            own_decay = self._decay(group["weight_decay"]) if "weight_decay" in group else decay
            for index, parameter in enumerate(_listed(group.get("params"), "group `params`")):
                if not isinstance(parameter, Parameter):
                    raise ScriptTypeError(
                        "For 'Optimizer', the element in group parameters must be Parameter type, "
                        f"but got {type(parameter)} at index {index}."
                    )
                if parameter.name in names:
                    raise _RepeatedError(
                        f"For 'Optimizer', the {parameter.name} parameter already exists, it does not support repeated "
                        "setting. Please check whether the optimizer parameter has been set multiple times."
                    )
                names.add(parameter.name)
                rates.append(own_rate)
                decays.append(own_decay)
                members.append(parameter)
        return rates, decays, members

    # -- what the optimizers call

    def decay_weight(self, gradients: Any) -> Any:
        """Add the decay terms of the weights to the gradients."""
        if self.exec_weight_decay:
            params = self._parameters
            weight_decay = self.get_weight_decay()
            if self.is_group:
                gradients = self.map_(F.partial(_apply_decay), weight_decay, self.decay_flags, params, gradients)
            else:
                gradients = self.map_(F.partial(_apply_decay, weight_decay), self.decay_flags, params, gradients)
        return gradients

    def gradients_centralization(self, gradients: Any) -> Any:
        """Return the gradients unchanged: centralization is not supported."""
        return gradients

    def scale_grad(self, gradients: Any) -> Any:
        """Divide the gradients by the scale of the loss."""
        if self.need_scale:
            gradients = self.map_(F.partial(_grad_scale, self.reciprocal_scale), gradients)
        return gradients

    def flatten_gradients(self, gradients: Any) -> Any:
        """Return the gradients unchanged."""
        return gradients

    def get_weight_decay(self) -> Any:
        """Return the weight decay of this step."""
        return self.weight_decay

    def get_lr(self) -> Any:
        """Return the learning rate of this step."""
        lr = self.learning_rate
        if self.dynamic_lr:
            lr = self.learning_rate(self.global_step).reshape(())
        return lr

    def get_lr_parameter(self, param: Any) -> Any:
        """Return the learning rate of a parameter, or of each parameter in a list.

        Raises
        ------
        ScriptTypeError, ScriptValueError
            For anything that is not a Parameter of this optimizer.
        """
        wanted = param if isinstance(param, list) else [param]
        if not all(isinstance(parameter, Parameter) for parameter in wanted):
            raise ScriptTypeError(
                f"For 'get_lr_parameter', the 'param' must be 'Parameter' or 'list' type, but got {type(param)}."
            )
        positions = {id(parameter): index for index, parameter in enumerate(self._parameters)}
        rates = []
        for parameter in wanted:
            if id(parameter) not in positions:
                raise ScriptValueError(
                    f"For 'get_lr_parameter', the parameter {parameter.name} is not in optimizer, please check "
                    "whether the argument 'param' is correct."
                )
            rate = self.learning_rate[positions[id(parameter)]] if self.is_group_lr else self.learning_rate
            rates.append(rate.learning_rate if isinstance(rate, _IteratorLearningRate) else rate)
        return rates if isinstance(param, list) else rates[0]

    def construct(self, *hyper_params: Any) -> Any:
        raise NotImplementedError


class _RepeatedError(DumpsimError, RuntimeError):
    """The RuntimeError for a parameter in two groups."""


class _SharedParameterTuple(ParameterTuple):
    """Learning rates of groups, in which a Parameter may occur several times."""

    __slots__ = ()

    def __new__(cls, iterable: Iterable[Parameter]) -> "_SharedParameterTuple":
        return tuple.__new__(cls, tuple(iterable))


def _listed(parameters: Any, what: str) -> list[Any]:
    if parameters is None:
        raise ScriptValueError(f"For 'Optimizer', the argument {what} can not be None.")
    if not isinstance(parameters, Iterable):
        raise ScriptTypeError(
            f"For 'Optimizer', the argument {what} must be Iterable type, but got {type(parameters)}."
        )
    listed = list(parameters)
    if not listed:
        raise ScriptValueError(f"For 'Optimizer', the argument {what} must not be empty.")
    return listed


def _loss_scale(value: Any, owner: str) -> float:
    if not isinstance(value, (float, int)):
        raise ScriptTypeError(
            f"For '{owner}', the type of 'loss_scale' should be 'float', but got type '{type(value).__name__}'."
        )
    if value <= 0:
        raise ScriptValueError(
            f"For '{owner}', the 'loss_scale' must be float and must > 0, but got '{float(value)}' with type 'float'."
        )
    return float(value)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.optim.optimizer", name)
