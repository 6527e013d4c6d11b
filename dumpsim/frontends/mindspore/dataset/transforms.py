"""``mindspore.dataset.transforms``: functions for `Dataset.map`."""

from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.common import dtype as mstype

__all__ = ["Compose", "TypeCast"]


class TypeCast:
    """Values in another number type.

    Examples
    --------
    >>> import numpy as np
    >>> TypeCast(mstype.int32)(np.array([1.5])).dtype
    dtype('int32')
    """

    def __init__(self, output_type: DType | type) -> None:
        self.kind = mstype.type_of(output_type, "TypeCast")

    def __call__(self, value: Any) -> Any:
        return value.astype(self.kind.numpy)


class Compose:
    """Functions one after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = list(transforms)

    def __call__(self, *values: Any) -> Any:
        for transform in self.transforms:
            made = transform(*values)
            values = made if isinstance(made, tuple) else (made,)
        return values if len(values) > 1 else values[0]


def __getattr__(name: str) -> Any:
    raise absent("mindspore.dataset.transforms", name)
