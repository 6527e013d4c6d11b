"""Running or recording an operator, for all code of the front end."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError
from dumpsim.frontends.mindspore._capture import tape, values
from dumpsim.frontends.mindspore._capture.operands import complete
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common import _numbertypes, _operandtypes
from dumpsim.graph.graph import leaves_of
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.opdef import OpDef
from dumpsim.world.context import current

if TYPE_CHECKING:
    from dumpsim.runtime.session import Session

__all__ = ["call", "finish", "start"]


def call(
    op_type: str,
    operands: Sequence[Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    instance_name: str | None = None,
    printed: Mapping[str, Any] | None = None,
    primitive: str = "",
    is_inner: bool = False,
) -> Any:
    """Run or record one operator.

    Parameters
    ----------
    op_type : str
        Type as the vendor prints it.
    operands : sequence
        Tensors, Parameters, Python constants, tuples of them, DTypes, None; in the order of `OpDef.operands`.
    attrs : mapping, optional
        Arguments of the kernel that are not operands; they override the defaults of the operator's table row.
    instance_name : str, optional
        Name of the cell's attribute that holds the primitive object, such as ``matmul``.
    printed : mapping, optional
        Primitive attributes of the IR text, if they differ from `attrs`.
    primitive : str, optional
        Type of the primitive object, if it differs from that of its kernel.
    is_inner : bool
        Whether the primitive is one of the library's inner ones, whose constant is in the root scope.

    Returns
    -------
    Tensor or tuple
        Symbolic during a capture, otherwise with data.

    Raises
    ------
    UnsupportedError
        For an operator that is not in the tables.
    ScriptRuntimeError
        For an operator without a kernel on the device.
    ScriptValueError, ScriptTypeError
        For unsuitable operands, as in the vendor.
    """
    from dumpsim.ops.table import find

    definition = find(op_type)
    if definition.targets:
        _check_target(definition)
    merged = {**definition.attrs, **(attrs or {})}
    tracer = capturing()
    if tracer is not None:
        operands = _operandtypes.plain(definition, operands)
        names = NodeText(
            attrs=dict(printed or {}),
            instance_name=instance_name,
            primitive=primitive,
            constant_scope="Default" if is_inner else None,
        )
        return tracer.emit(definition, operands, merged, names)
    return _run(definition, operands, merged)


@dataclass(slots=True)
class _Started:
    """The launched operators of a rank that have not been waited for."""

    waits: list[Callable[[], None]] = field(default_factory=list)


def start(op_type: str, operands: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[Any, Callable[[], None]]:
    """Launch one operator in PYNATIVE without waiting for it; in a graph, record it.

    Parameters
    ----------
    op_type, operands, attrs
        As for `call`.

    Returns
    -------
    Tensor or tuple
        The results, which have the content of new device memory until they are waited for.
    callable
        A function that waits for them; a second call does nothing.
    """
    from dumpsim.ops.table import find

    if capturing() is not None:
        return call(op_type, operands, attrs), _no_wait
    definition = find(op_type)
    if definition.targets:
        _check_target(definition)
    merged = {**definition.attrs, **attrs}
    operands = complete(definition, operands, _cast)
    abstract = definition.output_type([values.abstract_of(operand) for operand in operands], merged)
    plain = [_plain(operand) for operand in operands]
    pending = _session().start_op(definition, plain, merged, output=abstract, failing=_failing)
    from dumpsim.device.memory import FILL

    leaves = [leaf for leaf in leaves_of(abstract) if isinstance(leaf, TensorType)]
    arrays = [np.full(leaf.nbytes, FILL, np.uint8).view(leaf.dtype.numpy).reshape(leaf.shape) for leaf in leaves]
    out = _wrap(abstract, list(arrays))
    tape.record(definition, operands, out, merged)
    waits = current().get(_Started).waits

    def wait() -> None:
        if wait not in waits:
            return
        waits.remove(wait)
        for array, result in zip(arrays, pending.wait(), strict=True):
            array[...] = result

    waits.append(wait)
    return out, wait


def _no_wait() -> None:
    """Do nothing, since a graph orders its operators."""


def finish() -> None:
    """Wait for every operator of the rank that `start` has launched."""
    waits = current().get(_Started).waits
    while waits:
        waits[0]()


def _check_target(definition: OpDef) -> None:
    """Raise for an operator without a kernel on the device, with the vendor's message. [observed 2.10]"""
    target = _session().target
    if target not in definition.targets:
        rule = "-" * 52
        raise ScriptRuntimeError(
            f"\n{rule}\n- Kernel select failed:\n{rule}\nUnsupported op [{definition.name}] on {target}, "
            "Please confirm whether the device target setting is correct, or refer to 'mindspore.ops' at "
            "https://www.mindspore.cn to query the operator support list.\n",
            allowed=definition.targets,
        )


def _session() -> "Session":
    """Return the session, configured for the target of the script's context."""
    from dumpsim.frontends.mindspore.context import get_context
    from dumpsim.runtime.session import Session

    session = Session.current()
    target = get_context("device_target")
    if target != session.target:
        session.configure(target=target)
    return session


def _run(definition: OpDef, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
    _operandtypes.check(definition, operands, attrs)
    operands = complete(definition, _operandtypes.plain(definition, operands), _cast)
    abstract = _inferred(definition, operands, attrs)
    for at in definition.updates:
        if values.is_tensor(operands[at]) and not values.is_parameter(operands[at]):
            operands[at]._array = _session().writable(operands[at]._array)  # a collective's results are shared
    plain = [_plain(operand) for operand in operands]
    arrays = _session().run_op(definition, plain, attrs, output=abstract, failing=_failing)
    out = _wrap(abstract, list(arrays))
    tape.record(definition, operands, out, attrs)
    return out


def _inferred(definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Abstract:
    """Return the type of the output; on the CPU, number types without a kernel are refused as MindSpore does."""
    refused = _numbertypes.refusal(definition.name, operands) if _session().target == "CPU" else None
    if refused is None:
        return definition.output_type([values.abstract_of(operand) for operand in operands], attrs)
    error, is_early = refused
    if not is_early:
        with suppress(ScriptTypeError):
            definition.output_type([values.abstract_of(operand) for operand in operands], attrs)
    raise error


def _failing() -> None:
    """Attach the exception dump when an operator fails."""
    from dumpsim.frontends.mindspore._session import observe_failures  # imported only after a failure

    observe_failures()


def _cast(tensor: Any, kind: DType) -> Any:
    return call("Cast", [tensor, kind])


def _plain(operand: Any) -> Any:
    """Return the operand for a kernel, with arrays for tensors."""
    if values.is_tensor(operand):
        return operand._array
    if isinstance(operand, (tuple, list)):
        return tuple(_plain(item) for item in operand)
    return operand


def _wrap(abstract: Abstract, arrays: list[Any]) -> Any:
    if isinstance(abstract, TupleType):
        return tuple(_wrap(item, arrays) for item in abstract.items)
    if isinstance(abstract, TensorType):
        return values.tensor_of_array(arrays.pop(0), abstract.dtype)
    return None
