from collections.abc import Callable
from typing import Any

class Outlines:
    def __init__(
        self, plain: frozenset[type], strided: Any, wrapped: Callable[[Any], bool], spell: Callable[[Any, Any], Any]
    ) -> None: ...
    def take(
        self, name: str, value: Any, filtered: bool, otherwise: Callable[[list[Any], str, Any], None]
    ) -> list[tuple[str, Any, Any]]: ...
