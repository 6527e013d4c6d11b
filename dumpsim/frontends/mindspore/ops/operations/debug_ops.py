"""Primitives that save or print tensors: TensorDump, DumpGradient, Print."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function.debug import print_
from dumpsim.frontends.mindspore.ops.operations import _own
from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = ["DumpGradient", "Print", "TensorDump"]


class Print(Primitive):
    """Print tensors and strings when the operator runs."""

    def __init__(self) -> None:
        super().__init__("Print")

    def __call__(self, *values: Any) -> None:
        print_(*values)


class TensorDump(Primitive):
    """Save a tensor as an npy file when the operator runs.

    Parameters
    ----------
    input_output : str
        ``out``, ``in`` or, in generation A, ``all``.

    Raises
    ------
    ValueError
        For an unknown mode.

    Examples
    --------
    >>> TensorDump("both")
    Traceback (most recent call last):
    ...
    dumpsim.core.errors.ScriptValueError: The 'input_output' argument should be one of ['in', 'out', 'all'], \
but got: both
    """

    def __init__(self, input_output: str = "out") -> None:
        from dumpsim.frontends.mindspore.ops._channels import check_mode

        super().__init__("TensorDump")
        check_mode(input_output, "TensorDump")
        self.input_output = input_output
        self._given = {"input_output": input_output}

    def __call__(self, file: str, input_x: Tensor) -> None:
        from dumpsim.frontends.mindspore.ops._channels import dump

        dump(file, input_x, self.input_output, self.instance_name or None)


class DumpGradient(Primitive):
    """Save the gradient of a tensor in the files of `TensorDump`.

    Examples
    --------
    >>> DumpGradient()
    Prim[DumpGradient]
    """

    def __init__(self) -> None:
        super().__init__("DumpGradient")

    def __call__(self, path: str, x: Tensor, input_output: str) -> Any:
        """Return `x`, and save its gradient if one is computed.

        Parameters
        ----------
        path : str
            Like `file` of `TensorDump`; checked when a gradient is computed.
        x : Tensor
        input_output : str
            The side of a redistribution of the gradient that is saved; on one device, any value is accepted.
        """
        from dumpsim.frontends.mindspore.ops._channels import dump_gradient

        return dump_gradient(path, x, input_output)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.operations.debug_ops", name, _own)
