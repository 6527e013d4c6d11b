"""Number types that each operator has on a CPU, and the error of MindSpore for any other. [observed 2.10]

The texts are those that the real package gives op by op (``record_number_types.py``); graphs have other ones.
Accelerators have other kernels and are not checked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore.common._operandtypes import abstract_name, is_tensor

__all__ = ["refusal"]

_NO_KERNEL = "Select CPU operator"


@dataclass(frozen=True, slots=True)
class _Row:
    """What MindSpore says of one operator.

    Attributes
    ----------
    count : int
        Number of tensors.
    texts : mapping
        The text by operand (``all`` of them or the number of one) and type.
    """

    count: int
    texts: Mapping[str, Mapping[str, str]]


@cache
def _record() -> Mapping[str, _Row]:
    import gzip
    import json
    from importlib.resources import files

    data = files("dumpsim.frontends.mindspore").joinpath("number_types.json.gz").read_bytes()
    rows = json.loads(gzip.decompress(data))
    return MappingProxyType({name: _Row(parts.pop("count"), _by_type(parts)) for name, parts in rows.items()})


def _by_type(parts: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {which: {kind: text for text, kinds in texts for kind in kinds.split()} for which, texts in parts.items()}


def refusal(op_type: str, operands: Sequence[Any]) -> tuple[ScriptTypeError, bool] | None:
    """Return the error of an operator for the types of its tensors, or None.

    Parameters
    ----------
    op_type : str
    operands : sequence
        In their final types.

    Returns
    -------
    ScriptTypeError
    bool
        Whether it comes before the operator's rule for shapes; that of a missing kernel comes after it.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore import Tensor
    >>> error, is_early = refusal("Sigmoid", [Tensor([1])])
    >>> str(error).partition("!")[0], is_early
    ('Select CPU operator[Sigmoid] fail', False)
    """
    row = _record().get(op_type)
    if row is None:
        return None
    tensors = {str(at): operand._dtype for at, operand in enumerate(operands) if is_tensor(operand)}
    for at, operand in enumerate(operands):
        text = row.texts.get(str(at), {}).get("number")
        # a tuple may be what a primitive of ours has made of a tensor
        if text is not None and str(at) not in tensors and not (at and isinstance(operand, tuple)):
            return ScriptTypeError(text.replace("%s", abstract_name(operand))), True
    kinds = set(tensors.values())
    is_one = len(kinds) == 1 and len(tensors) == row.count
    for which, kind in [("all", *kinds)] if is_one else tensors.items():
        text = row.texts.get(which, {}).get(kind.name)
        if text is not None:
            return ScriptTypeError(text.replace("%s", kind.title)), not text.startswith(_NO_KERNEL)
    return None
