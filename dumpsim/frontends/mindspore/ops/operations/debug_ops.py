"""Primitives that show tensors: TensorDump, DumpGradient, Print; `mindspore.ops.operations` answers for the others."""

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
        For another word.

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
    """Save the gradient that flows back to a tensor, as `TensorDump` does.

    Examples
    --------
    >>> DumpGradient()
    Prim[DumpGradient]
    """

    def __init__(self) -> None:
        super().__init__("DumpGradient")

    def __call__(self, path: str, x: Tensor, input_output: str) -> Any:
        """Return `x`, whose gradient is saved; nothing is saved where no gradient is taken.

        Parameters
        ----------
        path : str
            As `file` of `TensorDump`; checked when a gradient arrives.
        x : Tensor
        input_output : str
            Which side of a redistribution of the gradient is saved; one device has no such sides, and any word passes.
        """
        from dumpsim.frontends.mindspore.ops._channels import dump_gradient

        return dump_gradient(path, x, input_output)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.operations.debug_ops", name, _own)
