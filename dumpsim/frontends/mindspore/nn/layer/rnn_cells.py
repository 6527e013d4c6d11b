"""``mindspore.nn.layer.rnn_cells``: one time step of the recurrent networks."""

import math
from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import Uniform, initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["GRUCell", "LSTMCell", "RNNCell"]


def gates(inputs: Any, weight: Any, bias: Any) -> Any:
    """Multiply by a weight and add the bias, if any."""
    product = ops.MatMul(False, True)(inputs, weight)
    return product if bias is None else product + bias


def rnn_tanh(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """One step of a plain network with tanh."""
    return ops.Tanh()(gates(x, w_ih, b_ih) + gates(h, w_hh, b_hh))


def rnn_relu(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """One step of a plain network with ReLU."""
    return ops.ReLU()(gates(x, w_ih, b_ih) + gates(h, w_hh, b_hh))


def lstm(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """One step of long short-term memory; `h` is the pair of state and memory."""
    hx, cx = h
    total = ops.MatMul(False, True)(x, w_ih) + ops.MatMul(False, True)(hx, w_hh)
    if b_ih is not None:
        total = total + b_ih + b_hh
    ingate, forgetgate, cellgate, outgate = ops.Split(1, 4)(total)
    ingate = ops.Sigmoid()(ingate)
    forgetgate = ops.Sigmoid()(forgetgate)
    cellgate = ops.Tanh()(cellgate)
    outgate = ops.Sigmoid()(outgate)
    cy = forgetgate * cx + ingate * cellgate
    hy = outgate * ops.Tanh()(cy)
    return hy, cy


def gru(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """One step of a gated recurrent unit."""
    i_r, i_i, i_n = ops.Split(1, 3)(gates(x, w_ih, b_ih))
    h_r, h_i, h_n = ops.Split(1, 3)(gates(h, w_hh, b_hh))
    resetgate = ops.Sigmoid()(i_r + h_r)
    inputgate = ops.Sigmoid()(i_i + h_i)
    newgate = ops.Tanh()(i_n + resetgate * h_n)
    return newgate + inputgate * (h - newgate)


class _StepCell(Cell):
    """Base of the cells: the weights of one step, for `chunks` gates."""

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool, chunks: int, dtype: DType) -> None:
        super().__init__()
        self.has_bias = _check.typed(has_bias, "has_bias", [bool], self.cls_name)
        self.hidden_size = _check.positive_int(hidden_size, "hidden_size", self.cls_name)
        self.input_size = _check.positive_int(input_size, "input_size", self.cls_name)
        uniform, rows = Uniform(1 / math.sqrt(hidden_size)), chunks * hidden_size

        def drawn(*shape: int) -> Parameter:
            return Parameter(initializer(uniform, shape, dtype))

        self.weight_ih = drawn(rows, input_size)
        self.weight_hh = drawn(rows, hidden_size)
        self.bias_ih: Any = drawn(rows) if has_bias else None
        self.bias_hh: Any = drawn(rows) if has_bias else None

    def _floats(self, **tensors: Any) -> None:
        for name, tensor in tensors.items():
            if tensor.dtype not in (mstype.float16, mstype.float32):
                raise ScriptTypeError(
                    f"For '{self.cls_name}', the '{name}' should be one of [mindspore.float32, mindspore.float16], "
                    f"but got 'mindspore.{tensor.dtype.name}'."
                )


class RNNCell(_StepCell):
    """One step of a plain recurrent network.

    Parameters
    ----------
    input_size, hidden_size : int
    has_bias : bool
    nonlinearity : {"tanh", "relu"}
    dtype : number type

    Examples
    --------
    >>> RNNCell(3, 4).weight_ih.shape
    (4, 3)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, has_bias, 1, dtype)
        self.nonlinearity = _check.choice(nonlinearity, ["tanh", "relu"], "nonlinearity", self.cls_name)

    def construct(self, x: Any, hx: Any) -> Any:
        self._floats(x=x, hx=hx)
        if self.nonlinearity == "tanh":
            return rnn_tanh(x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return rnn_relu(x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class LSTMCell(_StepCell):
    """One step of long short-term memory: takes and returns state and memory.

    Parameters
    ----------
    input_size, hidden_size : int
    has_bias : bool
    dtype : number type
    """

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: DType = mstype.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, 4, dtype)

    def construct(self, x: Any, hx: Any) -> Any:
        if not isinstance(hx, tuple):
            kind = f"[{hx.dtype}]" if isinstance(hx, Tensor) else ""
            raise ScriptTypeError(
                f"For '{self.cls_name}', the 'hx' must be '<class 'mindspore._c_expression.typing.Tuple'>', "
                f"but got '{type(hx).__name__}{kind}'"
            )
        if len(hx) != 2:
            raise ScriptTypeError(f"For '{self.cls_name}', the length of 'hx' must be '2', but got '{len(hx)}'")
        self._floats(x=x, **{"hx[0]": hx[0], "hx[1]": hx[1]})
        return lstm(x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class GRUCell(_StepCell):
    """One step of a gated recurrent unit.

    Parameters
    ----------
    input_size, hidden_size : int
    has_bias : bool
    dtype : number type
    """

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: DType = mstype.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, 3, dtype)

    def construct(self, x: Any, hx: Any) -> Any:
        self._floats(x=x, hx=hx)
        return gru(x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.rnn_cells", name)
