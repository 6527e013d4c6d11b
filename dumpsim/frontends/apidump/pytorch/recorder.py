"""What interception asks of the session that records, and the layers that it reports to it."""

from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Protocol

from torch import nn

from dumpsim._ext.recorder import Gate
from dumpsim.frontends.apidump.pytorch.catalogue import Api, Catalogue
from dumpsim.frontends.apidump.pytorch.dropout import Neutral
from dumpsim.frontends.apidump.stack import layer_key

__all__ = ["Layer", "Recorder"]

Found = list[tuple[str, Any, Any]]  # name, what was measured, tensor


class Layer:
    """A module of the network: its name, and how its records and its stack are called."""

    __slots__ = ("key", "name", "record")

    def __init__(self, name: str) -> None:
        self.name = f"LAYER_{name}"
        self.record = f"LAYER_{name}_forward_input"
        self.key = layer_key(name)


class Recorder(Protocol):
    """The session, as interception sees it: what to record, and where to report it.

    Attributes
    ----------
    catalogue : Catalogue
        The APIs that are recorded.
    neutral : Neutral
        What stands in for dropout.
    net : nn.Module
        The network, whose modules are `layers`.
    recording : bool
        Whether the session is between start and stop.
    full, exact, retain_backward : bool
        Coverage, whether everything is as 1.0.17 does it, and whether gradients are recorded.
    """

    catalogue: Catalogue
    neutral: Neutral
    net: nn.Module
    recording: bool
    full: bool

    @property
    def exact(self) -> bool: ...

    @property
    def retain_backward(self) -> bool: ...

    @property
    def layers(self) -> Mapping[nn.Module, Layer]: ...

    def touch(self) -> None:
        """Note that a call was seen, whether it is selected or not."""
        ...

    def raise_refusal(self) -> None:
        """Raise what a saved-tensor hook has raised while a record was made."""
        ...

    def skip(self, reason: str, number: int = 1) -> None:
        """Count what is not recorded, by reason."""
        ...

    def captured(self, name: str, value: Any, single: bool) -> Found:
        """Measure the tensors among positional arguments or results."""
        ...

    def keywords(self, name: str, values: dict[str, Any]) -> Found:
        """Measure the tensors among keyword arguments."""
        ...

    def made_again(self, api: Any, frame: FrameType | None, result: Any) -> None:
        """Record the gradients of a call that backward has made again."""
        ...

    def call(
        self,
        gate: Gate,
        api: Any,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType | None,
        given: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """Call a function and record it."""
        ...

    def returned(
        self,
        layer: Layer | None,
        api: Api | None,
        frame: FrameType | None,
        inputs: Found | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        """Record a module that has returned."""
        ...
