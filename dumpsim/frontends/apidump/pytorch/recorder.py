"""The interface between interception and the recording session."""

from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Protocol

from torch import nn

from dumpsim._ext.recorder import Gate
from dumpsim.frontends.apidump.pytorch.catalogue import Api, Catalogue
from dumpsim.frontends.apidump.pytorch.dropout import Neutral
from dumpsim.frontends.apidump.stack import layer_key

__all__ = ["Layer", "Recorder"]

Found = list[tuple[str, Any, Any]]  # name, measured values, tensor


class Layer:
    """A module of the network: its name, and the names of its record and its stack."""

    __slots__ = ("key", "name", "record")

    def __init__(self, name: str) -> None:
        self.name = f"LAYER_{name}"
        self.record = f"LAYER_{name}_forward_input"
        self.key = layer_key(name)


class Recorder(Protocol):
    """The session, as interception sees it: it selects and records calls.

    Attributes
    ----------
    catalogue : Catalogue
        The APIs that are recorded.
    neutral : Neutral
        The replacements of dropout functions.
    net : nn.Module
        The network, whose modules are `layers`.
    recording : bool
        Whether the session is between start and stop.
    full, exact, retain_backward : bool
        Whether coverage is full, behaviour is that of 1.0.17, and gradients are recorded.
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
        """Raise the error of a saved-tensor hook that occurred while a call was recorded."""
        ...

    def skip(self, reason: str, number: int = ...) -> None:
        """Count values or calls that are not recorded, by reason."""
        ...

    def captured(self, name: str, value: Any, single: bool) -> Found:
        """Measure the tensors among positional arguments or results."""
        ...

    def keywords(self, name: str, values: dict[str, Any]) -> Found:
        """Measure the tensors among keyword arguments."""
        ...

    def made_again(self, api: Any, frame: FrameType | None, result: Any) -> None:
        """Record the gradients of a call that backward repeats."""
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
