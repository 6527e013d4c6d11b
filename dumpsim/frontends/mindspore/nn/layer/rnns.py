"""``mindspore.nn.layer.rnns``: recurrent networks over whole sequences.

They are unrolled into elementary operators. MindSpore does the same for RNN on every device and for GRU on the CPU;
otherwise its GRU and LSTM are one fused operator (DynamicGRUV2, DynamicRNN, LSTM), and a warning here names it.
"""

import math
from types import MappingProxyType
from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import log, ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import Uniform, initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter, ParameterTuple
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.nn.layer import rnn_cells
from dumpsim.frontends.mindspore.nn.layer.basic import Dropout

__all__ = ["GRU", "LSTM", "RNN"]

_STEPS = MappingProxyType(
    {"RNN_TANH": rnn_cells.rnn_tanh, "RNN_RELU": rnn_cells.rnn_relu, "LSTM": rnn_cells.lstm, "GRU": rnn_cells.gru}
)
_GATES = MappingProxyType({"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3})
# fused operators that the real system runs instead, by network and device [source of 2.10]
_FUSED = MappingProxyType(
    {
        ("LSTM", "Ascend"): "DynamicRNN",
        ("LSTM", "GPU"): "LSTM",
        ("LSTM", "CPU"): "LSTM",
        ("GRU", "Ascend"): "DynamicGRUV2",
        ("GRU", "GPU"): "CudnnGRU",
    }
)


class _Unrolled(Cell):
    """One layer in one direction, step by step."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.mode = mode
        self.is_lstm = mode == "LSTM"

    def construct(self, x: Any, h: Any, seq_length: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Any, Any]:
        step = _STEPS[self.mode]
        kind = x.dtype
        w_ih, w_hh = w_ih.astype(kind), w_hh.astype(kind)
        if b_ih is not None:
            b_ih, b_hh = b_ih.astype(kind), b_hh.astype(kind)
        outputs = []
        state = h
        zero = ops.ZerosLike()(h[0] if self.is_lstm else h)
        lengths = None if seq_length is None else self._lengths(seq_length, zero.shape[-1])
        for t in range(x.shape[0]):
            x_t = ops.Squeeze(0)(x[t : t + 1 : 1])
            new = step(x_t, state, w_ih, w_hh, b_ih, b_hh)
            output = new[0] if self.is_lstm else new
            if lengths is None:
                state = new
            else:
                inside = lengths > t
                if self.is_lstm:
                    state = (ops.Select()(inside, new[0], state[0]), ops.Select()(inside, new[1], state[1]))
                else:
                    state = ops.Select()(inside, new, state)
                output = ops.Select()(inside, output, zero)
            outputs.append(output)
        return ops.Stack()(outputs), state

    @staticmethod
    def _lengths(seq_length: Any, width: int) -> Any:
        """Repeat the lengths for every element of the state."""
        lengths = ops.Cast()(seq_length, mstype.float32)
        lengths = ops.broadcast_to(lengths, (width, lengths.shape[0]))
        lengths = ops.Cast()(lengths, mstype.int32)
        return ops.Transpose()(lengths, (1, 0))


class _DynamicRNNTanh(_Unrolled):
    """One layer of an RNN with tanh."""


class _DynamicRNNRelu(_Unrolled):
    """One layer of an RNN with ReLU."""


class _DynamicGRUCPUGPU(_Unrolled):
    """One layer of a GRU."""


class _DynamicLSTMCPUGPU(_Unrolled):
    """One layer of an LSTM."""


# the names are in the text of a network and in the scopes of its operators [2.10 observed on a CPU]
_UNROLLED = MappingProxyType(
    {"RNN_TANH": _DynamicRNNTanh, "RNN_RELU": _DynamicRNNRelu, "LSTM": _DynamicLSTMCPUGPU, "GRU": _DynamicGRUCPUGPU}
)


class _Recurrent(Cell):
    """Layers of a recurrent network, in one or both directions."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        owner = self.cls_name
        _check.positive_int(hidden_size, "hidden_size", owner)
        _check.positive_int(input_size, "input_size", owner)
        _check.positive_int(num_layers, "num_layers", owner)
        if not isinstance(dropout, float):
            raise ScriptTypeError(
                f"For '{owner}', the type of 'dropout' must be 'float', but got '{type(dropout).__name__}'."
            )
        for name, value in (("has_bias", has_bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            _check.typed(value, name, [bool], owner)
        if not 0 <= dropout < 1:
            raise ScriptValueError(
                f"For '{owner}', the 'dropout' must be a number in range [0, 1) representing the probability of an "
                f"element being zeroed, but got {dropout}."
            )
        target = get_context("device_target")
        if mode == "GRU" and target == "Ascend" and hidden_size % 16:
            raise ScriptValueError(
                "GRU on ascend do not support hidden size that is not divisible by 16, "
                f"but get hidden size {hidden_size}, please reset the argument."
            )
        if (mode, target) in _FUSED:
            operator = _FUSED[mode, target]
            log.warning(f"nn.{owner}: the operator {operator} is not emulated; elementary operators are used instead.")
        self.rnn = _UNROLLED[mode](mode)
        self.reverse = ops.ReverseV2([0])
        self.reverse_sequence = ops.ReverseSequence(0, 1)
        self.hidden_size, self.num_layers = hidden_size, num_layers
        self.batch_first, self.bidirectional, self.has_bias = batch_first, bidirectional, has_bias
        self.dropout = dropout
        self.dropout_op = Dropout(p=float(dropout))
        self.is_lstm = mode == "LSTM"
        self.directions = 2 if bidirectional else 1
        rows, uniform = _GATES[mode] * hidden_size, Uniform(1 / math.sqrt(hidden_size))

        def drawn(name: str, *shape: int) -> Parameter:
            return Parameter(initializer(uniform, shape, dtype), name=name)

        places = [(layer, suffix) for layer in range(num_layers) for suffix in ("", "_reverse")[: self.directions]]
        width = hidden_size * self.directions
        self.w_ih_list = ParameterTuple(
            [drawn(f"weight_ih_l{layer}{s}", rows, width if layer else input_size) for layer, s in places]
        )
        self.w_hh_list = ParameterTuple([drawn(f"weight_hh_l{layer}{s}", rows, hidden_size) for layer, s in places])
        biases = places if has_bias else []
        self.b_ih_list = ParameterTuple([drawn(f"bias_ih_l{layer}{s}", rows) for layer, s in biases])
        self.b_hh_list = ParameterTuple([drawn(f"bias_hh_l{layer}{s}", rows) for layer, s in biases])

    def _layer(self, x: Any, h: Any, seq_length: Any, place: int) -> tuple[Any, Any]:
        """One layer in one direction."""
        h_i = (h[0][place], h[1][place]) if self.is_lstm else h[place]
        b_ih, b_hh = (self.b_ih_list[place], self.b_hh_list[place]) if self.has_bias else (None, None)
        output, state = self.rnn(x, h_i, seq_length, self.w_ih_list[place], self.w_hh_list[place], b_ih, b_hh)
        return output, state

    def construct(self, x: Any, hx: Any = None, seq_length: Any = None) -> Any:
        batch, kind = x.shape[0 if self.batch_first else 1], x.dtype
        if hx is None:
            shape = (self.num_layers * self.directions, batch, self.hidden_size)
            hx = (ops.zeros(shape, kind), ops.zeros(shape, kind)) if self.is_lstm else ops.zeros(shape, kind)
        elif self.is_lstm and (not isinstance(hx, tuple) or len(hx) != 2):
            raise ScriptTypeError(f"For '{self.cls_name}', the 'hx' must be a tuple of two tensors.")
        else:
            self._check_types(kind, hx if self.is_lstm else (hx,))
        if self.batch_first:
            x = ops.Transpose()(x, (1, 0, 2))
        states = []
        for layer in range(self.num_layers):
            place = layer * self.directions
            output, state = self._layer(x, hx, seq_length, place)
            states.append(state)
            if self.bidirectional:
                backward, state = self._layer(self._turned(x, seq_length), hx, seq_length, place + 1)
                states.append(state)
                output = ops.Concat(2)((output, self._turned(backward, seq_length)))
            x = output
            if self.dropout != 0 and layer < self.num_layers - 1:
                x = self.dropout_op(output)
        if self.batch_first:
            output = ops.Transpose()(output, (1, 0, 2))
        if self.is_lstm:
            return output, (self._joined(states, 0, hx[0].shape), self._joined(states, 1, hx[1].shape))
        return output.astype(kind), ops.Concat(0)(tuple(states)).view(hx.shape)

    def _check_types(self, kind: Any, given: tuple[Any, ...]) -> None:
        """Refuse number types beside a given state; without one, float64 is taken, too. [2.10 observed]"""
        allowed = (mstype.float32, mstype.float16)
        if kind not in allowed:
            raise ScriptTypeError(
                f"For '{self.cls_name}', the element of 'x' must be one of Float32, Float16, but got {kind}."
                "The supported data types depend on the hardware that executes the operator, for more details, please "
                "refer to the MindSpore official website to get more information about the data type."
            )
        for one in given:
            if one.dtype != kind:
                raise ScriptTypeError(
                    f"For '{self.cls_name}', the type of 'hx' should be same as 'x', but got 'x' with type {kind} and "
                    f"'hx' with type {one.dtype}."
                )

    def _turned(self, x: Any, seq_length: Any) -> Any:
        """Reverse the steps, of each sequence only as many as it has."""
        return self.reverse(x) if seq_length is None else self.reverse_sequence(x, seq_length)

    @staticmethod
    def _joined(states: Any, part: int, shape: Any) -> Any:
        """Join the states, or memories, of all layers."""
        return ops.Concat(0)(tuple(state[part] for state in states)).view(shape)


class RNN(_Recurrent):
    """A plain recurrent network.

    Parameters
    ----------
    input_size, hidden_size : int
    num_layers : int
    nonlinearity : {"tanh", "relu"}
    has_bias, batch_first, bidirectional : bool
    dropout : float
        Between the layers.

    Examples
    --------
    >>> [p.name for p in RNN(3, 4).trainable_params()]
    ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ScriptValueError(
                f"For '{type(self).__name__}', the 'nonlinearity' must be in ['tanh', 'relu'], but got {nonlinearity}."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)


class GRU(_Recurrent):
    """Gated recurrent units; arguments as for `RNN`, without `nonlinearity`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class LSTM(_Recurrent):
    """Long short-term memory: takes and returns state and memory; arguments as for `GRU`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.rnns", name)
