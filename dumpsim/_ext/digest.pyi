from collections.abc import Sequence
from threading import Event
from typing import Any

from numpy.typing import NDArray
from typing_extensions import Buffer

MD5: int
SHA1: int

def many(buffers: Sequence[Buffer | NDArray[Any]], algorithm: int, level: int, stop: Event) -> list[str]: ...

class Stream:
    def __init__(self, algorithm: int, level: int) -> None: ...
    def update(self, buffer: Buffer | NDArray[Any]) -> None: ...
    def hexdigest(self) -> str: ...
