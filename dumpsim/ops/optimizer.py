"""Optimizer steps: each writes the Parameter and its state in place."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.opdef import Infer, OpDef
from dumpsim.ops.rules import output, same_dtype, tensor_of, tuple_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]


def _infer(name: str, tensors: Mapping[int, str], outputs: int) -> Infer:
    """Return a rule: the operands `tensors` (index -> name) must be like the first one, and so are all outputs."""

    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        first = tensor_of(name, abstracts[0], tensors[0])
        for index, operand in tensors.items():
            other = tensor_of(name, abstracts[index], operand)
            if other.shape != first.shape:
                raise ScriptValueError(
                    f"For '{name}', the shape of '{operand}' must be that of '{tensors[0]}', but got {other.shape} "
                    f"and {first.shape}."
                )
            same_dtype(name, {tensors[0]: first, operand: other})
        result: TensorType = output(first.dtype, first.shape)
        return result if outputs == 1 else tuple_of(*(result,) * outputs)

    return infer


# number of elements per block, so that the temporaries of a step fit into the cache
_BLOCK = 1 << 18


def _blocks(*arrays: Array) -> Iterator[list[Array]]:
    """Yield views of the same elements of several arrays of one shape."""
    if not all(a.flags.c_contiguous for a in arrays) or arrays[0].size <= _BLOCK:
        yield list(arrays)
        return
    flat = [a.reshape(-1) for a in arrays]
    for start in range(0, flat[0].size, _BLOCK):
        yield [a[start : start + _BLOCK] for a in flat]


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
    for var, total, slope in _blocks(variable, accumulation, gradient):
        if gradient_scale != 1.0:
            slope = slope * np.asanyarray(gradient_scale, slope.dtype)
        total *= momentum
        total += slope
        if use_nesterov:
            var -= slope * learning_rate + total * (momentum * learning_rate)
        else:
            var -= total * learning_rate
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
    for var, slope, total, first in _blocks(parameters, gradient, accum, stat):
        if weight_decay:
            slope = slope + var * np.asanyarray(weight_decay, kind)
        if np.asanyarray(momentum) > 0:
            later = total * momentum + slope * np.asanyarray(1 - dampening, kind)
            total[...] = np.where(first > 0, slope, later)
            first[...] = 0
            slope = slope + total * momentum if nesterov else total
        var -= slope * learning_rate
    return parameters


def _moments(m: Array, v: Array, slope: Array, beta1: Any, beta2: Any) -> None:
    """Update the running means of the gradient and of its square in place."""
    one = np.asanyarray(1, m.dtype)
    m += (slope - m) * (one - beta1)
    v += (slope * slope - v) * (one - beta2)


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
    one = np.asanyarray(1, var.dtype)
    rate = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
    for part, mean, square, slope in _blocks(var, m, v, grad):
        _moments(mean, square, slope, beta1, beta2)
        step = mean * beta1 + (one - beta1) * slope if use_nesterov else mean
        part -= rate * step / (np.sqrt(square) + epsilon)
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
    use_locking: Any = False,
) -> tuple[Array, Array, Array]:
    for part, mean, square, slope in _blocks(var, m, v, gradient):
        _moments(mean, square, slope, beta1, beta2)
        part -= lr * (mean / (np.sqrt(square) + epsilon) + decay * part)
    return var, m, v


OPS = (
    OpDef(
        name="ApplyMomentum",
        operands=("variable", "accumulation", "learning_rate", "gradient", "momentum"),
        infer=_infer("ApplyMomentum", {0: "variable", 1: "accumulation", 3: "gradient"}, 1),
        kernel=_momentum,
        attrs={"use_nesterov": False, "use_locking": False, "gradient_scale": 1.0},
        ignored={"CPU": ("use_nesterov",)},  # [observed 2.10; source apply_momentum_cpu_kernel.cc]
        fixed={"side_effect_mem": True},
        input_names=["variable", "accumulation", "learning_rate", "gradient", "momentum"],
        output_names=["output"],
        updates=(0, 1),
        alias={0: 0},
        side_effect="mem",
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
    ),
    OpDef(
        name="AdamWeightDecay",
        operands=("var", "m", "v", "lr", "beta1", "beta2", "epsilon", "decay", "gradient", "use_locking"),
        infer=_infer("AdamWeightDecay", {0: "var", 1: "m", 2: "v", 8: "gradient"}, 3),
        kernel=_adam_weight_decay,
        fixed={"side_effect_mem": True},
        prim_func=True,
        updates=(0, 1, 2),
        alias={0: 0, 1: 1, 2: 2},
        side_effect="mem",
    ),
)
