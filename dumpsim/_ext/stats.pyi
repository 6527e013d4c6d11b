from typing_extensions import Buffer

CHUNK: int

def measure(
    buffer: Buffer, dtype: int, level: int
) -> tuple[float, float, float, float, int, int, int, int, int, int]: ...
def read_words(buffer: Buffer, level: int) -> int: ...
