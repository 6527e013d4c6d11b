"""Operators that show tensors to the host: TensorDump, Print and the summaries.

Their kernels post copies to a queue of the device, whose receiver writes or prints them. [spec parallel 1.7]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, StringType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.device.device import Device
from dumpsim.device.queue import Message
from dumpsim.ops.opdef import Infer, OpDef
from dumpsim.ops.rules import output, tensor_of

__all__ = ["OPS", "PRINT_QUEUE", "TENSOR_DUMP_QUEUE"]

Attrs = Mapping[str, Any]

TENSOR_DUMP_QUEUE, PRINT_QUEUE = "ms_tensor_dump", "ms_print"


def _infer_nothing(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return output("int32", (1,))


def _infer_dump(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    if not isinstance(abstracts[0], StringType):
        raise ScriptTypeError("For 'TensorDump', the type of 'file' should be 'str'.")
    if not abstracts[0].value:
        raise ScriptValueError("For 'TensorDump', the input argument[file] cannot be an empty string.")
    tensor_of("TensorDump", abstracts[1], "input_x")
    return output("int32", (1,))


def _nothing() -> Any:
    return np.zeros((1,), np.int32)


def _dump(file: str, input_x: Any, *, input_output: str = "out", device: Device) -> Any:
    device.queues[TENSOR_DUMP_QUEUE].post(Message(items=(file, input_x), attrs={"input_output": input_output}))
    return _nothing()


def _print(*inputs: Any, device: Device) -> Any:
    device.queues[PRINT_QUEUE].post(Message(items=tuple(_leaves(inputs)), attrs={}))
    return _nothing()


def _leaves(values: Sequence[Any]) -> Any:
    """Yield the values that Print shows; tuples are flattened."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _leaves(value)
        else:
            yield value


def _summary(name: str, value: Any) -> Any:
    """Do nothing: there is no summary record."""
    return _nothing()


def _infer_summary(op: str, rank: range) -> Infer:
    """Return the rule of a tag and a tensor of a rank that the summary supports."""

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        if not isinstance(abstracts[0], StringType) or not abstracts[0].value:
            raise ScriptTypeError(f"For '{op}', the type of 'name' should be 'str' and it cannot be empty.")
        value = tensor_of(op, abstracts[1], "value")
        if len(value.shape) not in rank and value.shape != (1,):
            raise ScriptValueError(
                f"For '{op}', the dimension of 'value' should be in {list(rank)[:5]}, but got {len(value.shape)}."
            )
        return output("int32", (1,))

    return infer


OPS = (
    OpDef(
        name="TensorDump",
        operands=("file", "input_x"),
        infer=_infer_dump,
        kernel=_dump,
        attrs={"input_output": "out"},
        fixed={"side_effect_io": True, "channel_name": TENSOR_DUMP_QUEUE},
        side_effect="io",
        stop=True,
        device=True,
        targets=("Ascend",),
        engine="aicpu",
    ),
    OpDef(
        name="Print",
        operands=("*inputs",),
        infer=_infer_nothing,
        kernel=_print,
        fixed={"side_effect_io": True},
        side_effect="io",
        stop=True,
        device=True,
        engine="host",
    ),
    *(
        OpDef(
            name=name,
            operands=("name", "value"),
            infer=_infer_summary(name, rank),
            kernel=_summary,
            fixed={"side_effect_io": True},
            side_effect="io",
            stop=True,
            engine="host",
        )
        for name, rank in (
            ("ScalarSummary", range(1)),
            ("TensorSummary", range(1, 9)),
            ("ImageSummary", range(4, 5)),
            ("HistogramSummary", range(1, 9)),
        )
    ),
)
