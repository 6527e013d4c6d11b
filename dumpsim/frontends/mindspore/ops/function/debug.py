"""Functions that show tensors: printing them, and saving them to files."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.device.queue import Message
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._capture.dispatch import call, capturing
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["print_", "tensordump"]


def print_(*values: Any) -> None:
    """Print the values: at once in PYNATIVE, when the graph runs otherwise."""
    for value in values:
        if not isinstance(value, (Tensor, str, int, float, bool, tuple, list)):
            raise ScriptTypeError(f"a value of type {type(value).__name__}", where="ops.Print")
    if capturing() is not None:
        from dumpsim.frontends.mindspore.ops._channels import listen_to_print
        from dumpsim.runtime.session import Session

        listen_to_print(Session.current())
        call("Print", list(values))
        return
    for value in values:
        print(repr(value) if isinstance(value, Tensor) else value, flush=True)


def tensordump(file_name: str, tensor: Tensor, mode: str = "out") -> None:
    """Save a tensor as an npy file; in a graph when the graph runs.

    Parameters
    ----------
    file_name : str
        Path; its last part becomes part of the file's name, ``{id}_{name}.npy`` by default and
        ``{name}_{dtype}_{id}.npy`` with ``--set tensordump=C``. [seed 000] [spec parallel 1.1]
    tensor : Tensor
    mode : str
        ``out``, or ``in`` and ``all`` (generation A) for networks that are sliced; one device saves the same for all.

    Raises
    ------
    TypeError, ValueError
        For arguments of other types, or another mode, with MindSpore's texts.
    RuntimeError
        In a graph on another device than Ascend.

    Examples
    --------
    >>> tensordump("mul", 3)
    Traceback (most recent call last):
    ...
    dumpsim.core.errors.ScriptTypeError: Parameter tensor should only be Tensor type, but got: <class 'int'>
    """
    if not isinstance(file_name, str):
        raise ScriptTypeError(f"Parameter file_name should only be build_in str type but got: {type(file_name)}")
    if not isinstance(tensor, Tensor):
        raise ScriptTypeError(f"Parameter tensor should only be Tensor type, but got: {type(tensor)}")
    if not isinstance(mode, str):
        raise ScriptTypeError(f"Parameter mode should only be build_in str type, but got: {type(mode)}")
    check_mode(mode, "tensordump")
    dump(file_name, tensor, mode)


def check_mode(mode: Any, where: str) -> None:
    """Refuse a mode that this generation of TensorDump does not have.

    Raises
    ------
    ScriptValueError
        With MindSpore's text for the function or the primitive.
    """
    from dumpsim.frontends.mindspore.ops._channels import dump_writer
    from dumpsim.runtime.session import Session

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
    """Post a tensor to the queue of TensorDump: by a node of the graph, or at once."""
    from dumpsim.frontends.mindspore.ops._channels import dump_writer
    from dumpsim.runtime.session import Session

    for name, value, kind in (("file", file, str), ("input_x", tensor, Tensor)):
        if not isinstance(value, kind):
            raise ScriptTypeError(
                f"For 'TensorDump', the type of '{name}' should be '{kind.__name__}', "
                f"but got type '{type(value).__name__}'."
            )
    if not file:
        raise ScriptValueError("For 'TensorDump', the input argument[file] cannot be an empty string.")
    session = Session.current()
    dump_writer(session)
    if mode != "out":
        logger.warning(f"TensorDump: nothing is sliced on one device, so mode '{mode}' saves what 'out' saves.")
    if capturing() is not None:
        call("TensorDump", [file, tensor], {"input_output": mode}, instance_name=instance_name)
        return
    queue = session.queues["ms_tensor_dump"]
    queue.post(Message(items=(file, tensor._values("TensorDump")), source="host", attrs={"input_output": mode}))
    queue.deliver()
