from typing import Any

MAX_DIMS: int

def copy(
    dst: Any,
    src: Any,
    itemsize: int,
    regions: list[tuple[int, int, tuple[tuple[int, int, int], ...]]],
    *,
    part: int = 0,
    parts: int = 1,
    level: int = -1,
    stream: int = -1,
    stop: bytearray | None = None,
) -> None: ...
