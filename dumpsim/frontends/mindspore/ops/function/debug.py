"""Functions that print tensors or save them to files."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["print_", "tensordump"]


def print_(*values: Any) -> None:
    """Print the values: immediately in PYNATIVE, otherwise when the graph runs."""
    if capturing() is not None:
        from dumpsim.frontends.mindspore.ops._channels import listen_to_print
        from dumpsim.runtime.session import Session

        listen_to_print(Session.current())
        call("Print", list(values))
        return
    for value in values:
        print(repr(value) if isinstance(value, Tensor) else value, flush=True)


def tensordump(file_name: str, tensor: Tensor, mode: str = "out") -> None:
    """Save a tensor as an npy file; a graph saves it when it runs.

    Parameters
    ----------
    file_name : str
        Path; its last part becomes part of the file's name, ``{id}_{name}.npy`` by default and
        ``{name}_{dtype}_{id}.npy`` with ``--set tensordump=C``. [seed 000] [spec parallel 1.1]
    tensor : Tensor
    mode : str
        ``out``, or ``in`` and ``all`` (generation A) for sliced networks; on one device, all modes save the same.

    Raises
    ------
    TypeError, ValueError
        For arguments of other types, or an unknown mode, with MindSpore's messages.
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
    from dumpsim.frontends.mindspore.ops._channels import check_mode, dump

    check_mode(mode, "tensordump")
    dump(file_name, tensor, mode)
