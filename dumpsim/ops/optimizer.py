"""Optimizer steps: each writes the Parameter and its state in place."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.opdef import Infer, OpDef
from dumpsim.ops.rules import output, same_dtype, tensor_of, tuple_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]


def _infer(name: str, tensors: Mapping[int, str], outputs: int) -> Infer:
    """Operands `tensors` (index -> name) have the shape and type of the first; that many outputs like it."""

    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        first = tensor_of(name, abstracts[0], tensors[0])
        for index, operand in tensors.items():
            other = tensor_of(name, abstracts[index], operand)
            if other.shape != first.shape:
                raise ScriptValueError(
                    f"For '{name}', the shape of '{operand}' must be that of '{tensors[0]}', but got {other.shape} and {first.shape}."
                )
            same_dtype(name, {tensors[0]: first, operand: other})
        result: TensorType = output(first.dtype, first.shape)
        return result if outputs == 1 else tuple_of(*(result,) * outputs)

    return infer


@np.errstate(all="ignore")
def _momentum(
    variable: Array,
    accumulation: Array,
    learning_rate: Any,
    gradient: Array,
    momentum: Any,
    *,
    use_nesterov: bool = False,
    use_locking: bool = False,
    gradient_scale: float = 1.0,
) -> Array:
    if gradient_scale != 1.0:
        gradient = gradient * np.asarray(gradient_scale, gradient.dtype)
    accumulation[...] = accumulation * momentum + gradient
    if use_nesterov:
        variable -= gradient * learning_rate + accumulation * (momentum * learning_rate)
    else:
        variable -= accumulation * learning_rate
    return variable


@np.errstate(all="ignore")
def _sgd(
    parameters: Array,
    gradient: Array,
    learning_rate: Any,
    accum: Array,
    momentum: Any,
    stat: Array,
    *,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    dampening: float = 0.0,
) -> Array:
    """`stat` is 1 before the first step, which takes the gradient undampened, and 0 afterwards."""
    kind = parameters.dtype
    if weight_decay:
        gradient = gradient + parameters * np.asarray(weight_decay, kind)
    if np.asarray(momentum) > 0:
        later = accum * momentum + gradient * np.asarray(1 - dampening, kind)
        accum[...] = np.where(stat > 0, gradient, later)
        stat[...] = 0
        gradient = gradient + accum * momentum if nesterov else accum
    parameters -= gradient * learning_rate
    return parameters


@np.errstate(all="ignore")
def _adam(
    var: Array,
    m: Array,
    v: Array,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Array,
    *,
    use_locking: bool = False,
    use_nesterov: bool = False,
) -> tuple[Array, Array, Array]:
    one = np.asarray(1, var.dtype)
    rate = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
    m += (grad - m) * (one - beta1)
    v += (grad * grad - v) * (one - beta2)
    step = m * beta1 + (one - beta1) * grad if use_nesterov else m
    var -= rate * step / (np.sqrt(v) + epsilon)
    return var, m, v


@np.errstate(all="ignore")
def _adam_weight_decay(
    var: Array,
    m: Array,
    v: Array,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    decay: Any,
    gradient: Array,
    *,
    use_locking: bool = False,
) -> tuple[Array, Array, Array]:
    one = np.asarray(1, var.dtype)
    m += (gradient - m) * (one - beta1)
    v += (gradient * gradient - v) * (one - beta2)
    var -= lr * (m / (np.sqrt(v) + epsilon) + decay * var)
    return var, m, v


OPS = (
    OpDef(
        name="ApplyMomentum",
        operands=("variable", "accumulation", "learning_rate", "gradient", "momentum"),
        infer=_infer("ApplyMomentum", {0: "variable", 1: "accumulation", 3: "gradient"}, 1),
        kernel=_momentum,
        attrs={"use_nesterov": False, "use_locking": False, "gradient_scale": 1.0},
        fixed={"side_effect_mem": True},
        input_names=["variable", "accumulation", "learning_rate", "gradient", "momentum"],
        output_names=["output"],
        updates=(0, 1),
        alias={0: 0},
        side_effect="mem",
        stop=True,
    ),
    OpDef(
        name="SGD",
        operands=("parameters", "gradient", "learning_rate", "accum", "momentum", "stat"),
        infer=_infer("SGD", {0: "parameters", 1: "gradient", 3: "accum", 5: "stat"}, 1),
        kernel=_sgd,
        attrs={"weight_decay": 0.0, "nesterov": False, "dampening": 0.0},
        fixed={"side_effect_mem": True},
        input_names=["parameters", "gradient", "learning_rate", "accum", "momentum", "stat"],
        output_names=["output"],
        updates=(0, 3, 5),
        alias={0: 0},
        side_effect="mem",
        stop=True,
    ),
    OpDef(
        name="Adam",
        operands=("var", "m", "v", "beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"),
        infer=_infer("Adam", {0: "var", 1: "m", 2: "v", 9: "grad"}, 3),
        kernel=_adam,
        attrs={"use_nesterov": False, "use_locking": False},
        fixed={"side_effect_mem": True},
        updates=(0, 1, 2),
        alias={0: 0, 1: 1, 2: 2},
        side_effect="mem",
        stop=True,
    ),
    OpDef(
        name="AdamWeightDecay",
        operands=("var", "m", "v", "lr", "beta1", "beta2", "epsilon", "decay", "gradient"),
        infer=_infer("AdamWeightDecay", {0: "var", 1: "m", 2: "v", 8: "gradient"}, 3),
        kernel=_adam_weight_decay,
        attrs={"use_locking": False},
        fixed={"side_effect_mem": True},
        prim_func=True,
        updates=(0, 1, 2),
        alias={0: 0, 1: 1, 2: 2},
        side_effect="mem",
        stop=True,
    ),
)
