"""Preparation of operands: default values and implicit conversions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import ScalarType, TensorType
from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._capture import values
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.promotion import common_type, number_type, operand_type

__all__ = ["complete"]


def complete(definition: OpDef, operands: Sequence[Any], cast: Callable[[Any, DType], Any]) -> list[Any]:
    """Return the operands of a call with defaults and implicit conversions.

    Parameters
    ----------
    definition : OpDef
        The operands in its `promotes` are converted to one number type: tensors by `cast`, host numbers to constant
        tensors.
    operands : sequence
        The given operands; trailing ones may be missing.
    cast : callable
        ``cast(tensor, dtype)`` converts a tensor.

    Raises
    ------
    ScriptTypeError
        For too few or too many operands.
    """
    given = list(operands)
    if definition.operands and definition.operands[-1].startswith("*"):  # any number of operands
        return given
    missing = len(definition.operands) - len(given)
    if missing < 0 or missing > len(definition.defaults):
        raise ScriptTypeError(
            f"For '{definition.name}', wrong number of operands: {len(given)}",
            allowed=[", ".join(definition.operands)],
        )
    if missing:
        given += definition.defaults[len(definition.defaults) - missing :]
    return _promoted(definition, _with_numbers(definition, given), cast)


def _with_numbers(definition: OpDef, operands: list[Any]) -> list[Any]:
    """Convert host numbers to constant tensors, for an operator that accepts mixed number types."""
    indices = [i for i in definition.mixed if i < len(operands)]
    abstracts = {i: values.abstract_of(operands[i]) for i in indices}
    tensors = [a for a in abstracts.values() if isinstance(a, TensorType)]
    if tensors and len(tensors) < len(indices):
        for i, abstract in abstracts.items():
            if isinstance(abstract, ScalarType):
                wanted = operand_type([tensors[0], abstract])
                kind = number_type(tensors[0].dtype, abstract.dtype) or wanted
                if not definition.stop and wanted == tensors[0].dtype != common_type(wanted, kind):
                    kind = wanted  # a number does not widen small integers
                operands[i] = values.tensor_of_array(np.array(operands[i], kind.numpy), kind)
    return operands


def _promoted(definition: OpDef, operands: list[Any], cast: Callable[[Any, DType], Any]) -> list[Any]:
    indices = [i for i in definition.promotes if i < len(operands)]
    abstracts = {i: values.abstract_of(operands[i]) for i in indices}
    numeric = [i for i in indices if isinstance(abstracts[i], (TensorType, ScalarType))]
    if not numeric:
        return operands
    kind = operand_type([abstracts[i] for i in numeric])
    for i in numeric:
        abstract = abstracts[i]
        if isinstance(abstract, ScalarType):
            operands[i] = values.tensor_of_array(np.array(operands[i], kind.numpy), kind)
        elif isinstance(abstract, TensorType) and abstract.dtype != kind:
            operands[i] = cast(operands[i], kind)
    return operands
