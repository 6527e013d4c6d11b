"""Compute one kernel on an engine, in graphs and in PYNATIVE alike."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import DeviceError, UnknownValueError
from dumpsim.device.device import Device
from dumpsim.ops.bounds import OutOfRange
from dumpsim.ops.cpu import on_target
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.engine.engine import Computed, Engine
from dumpsim.runtime.result import spoil

__all__ = ["AICORE_EXCEPTION", "compute", "skip", "stopping_index"]

AICORE_EXCEPTION = 507015  # [spec parallel 4.5]


def compute(
    engine: Engine,
    device: Device,
    definition: OpDef,
    operands: Sequence[Any],
    attrs: Mapping[str, Any],
    *,
    full_name: str,
    counter: int,
    outputs: int,
    unwritten: Sequence[int] = (),
    faults: Sequence[Any] = (),
) -> Computed:
    """Compute one kernel.

    Parameters
    ----------
    engine : Engine
    device : Device
        For kernels that work on the device itself.
    definition, operands, attrs
        See `Engine.compute`.
    full_name : str
        Of the node, for messages.
    counter : int
        Earlier runs, for random kernels.
    outputs : int
        Expected number of results.
    unwritten : sequence of int
        Outputs that the target's kernel leaves at zero.
    faults : sequence
        The faults of this launch; overflows change the results.

    Raises
    ------
    DeviceError
        If the number of results is wrong.
    """
    ignored = definition.ignored.get(device.chip.target)
    if ignored:
        attrs = {name: value for name, value in attrs.items() if name not in ignored}
    if definition.device:
        attrs = {**attrs, "device": device}
    if definition.random:
        attrs = {**attrs, "counter": counter}
    computed = engine.compute(on_target(definition, device.chip.target, operands), operands, attrs)
    results = computed.results
    for at in unwritten:
        results[at] = np.zeros_like(results[at])
    if len(results) != outputs:
        raise DeviceError(
            f"the kernel of {definition.name} gave {len(results)} results for {outputs} outputs", where=full_name
        )
    for fault in faults:
        if fault.kind == "overflow":
            spoil(full_name, results, fault)
    return computed


def stopping_index(
    device: Device, definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any], *, full_name: str
) -> OutOfRange | None:
    """Find an index that is out of range, and act on it as the target's kernels do.

    Returns
    -------
    OutOfRange or None
        The index that stops an AI Core; None if the kernel runs.

    Raises
    ------
    ScriptRuntimeError, ScriptValueError
        If the index makes a kernel of the CPU, or a reading kernel of the GPU, raise an error.
    """
    found = definition.bounds(*operands, **attrs) if definition.bounds is not None else None
    target = device.chip.target
    if found is None or target == "Ascend":
        return found
    if found.text is None or (target == "GPU" and not found.reads):
        return None  # the kernel ignores the index
    error = found.error(found.text or f"Launch kernel failed, name:{full_name}")
    error.add_note(f"dumpsim: {full_name}: {found}")
    raise error


def skip(engine: Engine, definition: OpDef, *, full_name: str, open_shape: bool, faults: Sequence[Any] = ()) -> None:
    """Check that a kernel can be skipped on an engine without values.

    Parameters
    ----------
    open_shape : bool
        Whether the values decide the shape of a result.

    Raises
    ------
    UnknownValueError
        If something other than the values of its results depends on values.
    """
    if open_shape:
        unknown = f"the shape of the result of {definition.name}"
    elif definition.side_effect == "io" and definition.device:
        unknown = f"the data that {definition.name} sends to the host"
    elif any(fault.kind == "overflow" for fault in faults):
        unknown = "the result that an overflow fault changes"
    else:
        return
    raise UnknownValueError(f"{unknown} is not known: the {engine.name} engine computes no values", where=full_name)
