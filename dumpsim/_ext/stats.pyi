from typing import Any

from numpy.typing import NDArray
from typing_extensions import Buffer

CHUNK: int

def measure(
    buffer: Buffer | NDArray[Any], dtype: int, level: int
) -> tuple[float, float, float, float, int, int, int, int, int, int]: ...
def read_words(buffer: Buffer | NDArray[Any], level: int) -> int: ...
