"""Receivers of the debug operators' queues: the files of TensorDump, the screen or file of Print."""

import sys
from dataclasses import replace
from typing import Any
from weakref import ref

import numpy as np

from dumpsim.codecs import printfile
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.device.queue import HostQueues, Message
from dumpsim.dump.tensordump import CHANNEL, TensorDumpWriter, profile_of
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._capture.custom_gradient import with_gradient
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._dumping import _log
from dumpsim.frontends.mindspore.common._format import graph_text
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication.management import output_rank
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.parallel._context import slices
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.tensordumps import GRADIENT_MODE
from dumpsim.ops.debug import PRINT_QUEUE
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session
from dumpsim.world.context import current

__all__ = ["check_mode", "dump", "dump_gradient", "dump_writer", "listen_to_print"]


def dump_writer(session: Session) -> TensorDumpWriter:
    """Return the receiver of the session's TensorDump, created on first use."""
    queue = session.queues[CHANNEL]
    if isinstance(queue.receiver, TensorDumpWriter):
        return queue.receiver
    settings = session.settings
    writer = TensorDumpWriter(
        profile_of(settings.mindspore, session.target, settings.overrides),
        rank=output_rank(),
        disk=session.disk,
        durable=settings.durable,
        log=_log,
    )
    queue.receiver = writer
    _deliver_at_exit(session.queues)
    return writer


def check_mode(mode: Any, where: str) -> None:
    """Check that this generation of TensorDump has the mode.

    Raises
    ------
    ScriptValueError
        For an unknown mode, with MindSpore's message for the function or the primitive.
    """
    modes = list(dump_writer(Session.current()).rule.modes)
    if mode in modes:
        return
    if where == "TensorDump":
        raise ScriptValueError(
            f"The 'input_output' argument should be one of {sorted(modes, key=['in', 'out', 'all'].index)}, "
            f"but got: {mode}"
        )
    if mode == "all":
        raise ScriptValueError("Argument [mode] has been not supported value of 'all'.")
    raise ScriptValueError(f"Parameter mode should in {modes}, but got {mode}")


def dump(file: Any, tensor: Any, mode: str, instance_name: str | None = None) -> None:
    """Post a tensor to the queue of TensorDump: by a node of the graph, or immediately."""
    _check_operands(file, tensor)
    session = Session.current()
    dump_writer(session)
    tracer = capturing()
    _warn(file, mode, is_in_control_flow=tracer is not None and len(tracer.open_graphs) > 1)
    if tracer is not None:
        call("TensorDump", [file, tensor], {"input_output": mode}, instance_name=instance_name)
        return
    _post(session, file, tensor, mode)


def _check_operands(file: Any, tensor: Any) -> None:
    for name, value, kind in (("file", file, str), ("input_x", tensor, Tensor)):
        if not isinstance(value, kind):
            raise ScriptTypeError(
                f"For 'TensorDump', the type of '{name}' should be '{kind.__name__}', "
                f"but got type '{type(value).__name__}'."
            )
    if not file:
        raise ScriptValueError("For 'TensorDump', the input argument[file] cannot be an empty string.")


def _post(session: Session, file: str, tensor: Tensor, mode: str) -> None:
    queue = session.queues[CHANNEL]
    queue.post(Message(items=(file, tensor._values("TensorDump")), source="host", attrs={"input_output": mode}))
    queue.deliver()


def _warn(file: str, mode: str, *, is_in_control_flow: bool) -> None:
    """Warn about two documented restrictions, which no release enforces. [seed 000] [spec parallel 1.1]"""
    if mode != "out" and not slices():
        logger.warning(
            f"TensorDump: the parallel mode is stand_alone, which allows mode 'out' only; mode '{mode}' saves the same "
            "as 'out'."
        )
    if is_in_control_flow:
        logger.warning(f"TensorDump: {file!r} is saved inside control flow, which MindSpore does not support.")


def dump_gradient(file: Any, tensor: Any, mode: str) -> Any:
    """Return `tensor`, and post its gradient to the queue of TensorDump when it is computed."""
    if not isinstance(tensor, Tensor):
        raise ScriptTypeError(
            f"For 'DumpGradient', the type of 'x' should be 'Tensor', but got type '{type(tensor).__name__}'."
        )

    def rule(gradients: tuple[Any, ...]) -> list[Any]:
        (dout,) = gradients
        _check_operands(file, dout)
        session = Session.current()
        dump_writer(session)
        tracer = capturing()
        if tracer is None:
            _post(session, file, dout, mode)
            return [dout]
        # the gradient waits for its dump and no other effect does [observed 2.10]
        definition = replace(find("TensorDump"), side_effect=None)
        if session.target not in definition.targets:
            call("TensorDump", [file, dout])  # raises the error of the unsupported device
        marks = {"side_effect_io": False, "td_flag": True}
        done = tracer.emit(definition, [file, dout], dict(definition.attrs), NodeText(attrs=marks), is_own=True)
        return [tracer.depend(dout, done)]

    result = with_gradient(tensor, [tensor], rule)
    if capturing() is not None:
        result._symbol.operands[0].attrs[GRADIENT_MODE] = mode
    return result


def listen_to_print(session: Session) -> None:
    """Attach a receiver to the print queue of a session."""
    queue = session.queues[PRINT_QUEUE]
    if queue.receiver is None:
        queue.receiver = _show
        _deliver_at_exit(session.queues)


def _deliver_at_exit(queues: HostQueues) -> None:
    """Deliver the queued messages when the rank ends."""
    alive = ref(queues)

    def deliver() -> None:
        found = alive()
        if found is not None:
            found.deliver()

    current().at_close(deliver)


def _show(message: Message) -> None:
    """Print the operands of a graph's Print, or append them to the context's ``print_file_path``."""
    path = get_context("print_file_path") if Session.current().target == "Ascend" else ""
    if path:
        items = [item if isinstance(item, (str, np.ndarray)) else np.asarray(item) for item in message.items]
        with open(path, "ab") as file:
            file.write(printfile.encode(items))
        return
    for item in message.items:
        print(shown(item), file=sys.stdout, flush=True)


def shown(item: Any) -> str:
    """Format an operand of a graph's Print: numbers bare, bools as 1 and 0. [observed 2.10]

    Examples
    --------
    >>> shown(True), shown(2.5), shown(np.float32(15)), shown("loss")
    ('1', '2.5', '15', 'loss')
    """
    if isinstance(item, (np.ndarray, np.generic)):
        kind = from_numpy(item.dtype)
        return graph_text(np.asarray(item, np.float32 if kind.name == "bfloat16" else None), kind.title)
    if isinstance(item, bool):
        return str(int(item))
    return f"{item:g}" if isinstance(item, float) else str(item)
