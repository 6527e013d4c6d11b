"""Errors of the real converter for overloads that it refuses. [spec aten 9.5]"""

import builtins
import re
from functools import cache
from importlib.resources import files
from types import MappingProxyType

__all__ = ["Refused", "refusal"]

_MISSING = (
    "Failed to auto-generated converter for {name} to AscendIR: PyTorch built-in ops not support auto-generate "
    "converters. If necessary, you can check the Ascend Extension for Pytorch version documentation and refer to the "
    "custom op guide to implement your own converter."
)
_PACKET = "torch.ops.aten._native_batch_norm_legit ge_converter is not implemented!"  # without the overload's name


class Refused(Exception):
    """The real converter refuses this use of an operator; `error` is its error."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def refusal(target: str) -> Exception:
    """Return the real converter's error for an overload.

    Examples
    --------
    >>> refusal("aten.prod.default")
    NotImplementedError('torch.ops.aten.prod.default ge_converter is not implemented!')
    >>> str(refusal("aten.median.default"))[:62]
    'Failed to auto-generated converter for aten.median.default to '
    """
    if target == "aten._native_batch_norm_legit.default":
        return NotImplementedError(_PACKET)
    if target == "aten._native_batch_norm_legit.no_stats":
        return NotImplementedError(f"torch.ops.{target} ge_converter is not implemented!")
    kind, text = _registered().get(target, ("RuntimeError", _MISSING))
    error: Exception = getattr(builtins, kind)(text.replace("{name}", target))
    return error


@cache
def _registered() -> MappingProxyType[str, tuple[str, str]]:
    """Return class and text of the errors of overloads whose registered converter only raises."""
    found: dict[str, tuple[str, str]] = {}
    heading = "", ""
    for line in files(__package__).joinpath("refused.txt").read_text("utf-8").splitlines():
        if line.startswith("= "):
            kind, _, text = line[2:].partition(": ")
            heading = kind, text
        elif not line.startswith("#"):
            for packet, overloads in re.findall(r"(\S+?\.\S+?)\.(\{\S+\}|\w+)", line):
                found.update({f"{packet}.{one}": heading for one in overloads.strip("{}").split(",")})
    return MappingProxyType(found)
