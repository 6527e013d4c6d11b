from collections.abc import Callable
from types import CodeType, FrameType

def places(
    frame: FrameType | None, kinds: dict[int, int], classify: Callable[[CodeType], int], filtered: bool
) -> bytes: ...
