from typing import Any

from numpy.typing import NDArray

OPS: dict[str, int]

def left(total: NDArray[Any], terms: NDArray[Any], op: int) -> bool: ...
