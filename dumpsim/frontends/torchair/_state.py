"""What the TorchAir of a rank knows: numbers of graphs, how it converts, what it has converted."""

import sys
from dataclasses import dataclass, field
from typing import Any

from dumpsim.core.errors import BadInputError, nearest
from dumpsim.frontends.torchair._ge import GeGraph
from dumpsim.frontends.torchair._weights import Weights
from dumpsim.modes.profile import CHOICES
from dumpsim.runtime.engine.engine import Engine
from dumpsim.runtime.engine.table import engine
from dumpsim.runtime.session import Session
from dumpsim.world.context import current

__all__ = ["Choices", "TorchAir", "state"]


@dataclass(frozen=True, slots=True)
class Choices:
    """How graphs are captured and converted.

    Attributes
    ----------
    torchair : str
        ``extended`` converts what the real converter refuses to the nearest types, ``strict`` raises its text.
    dispatch : str
        ``npu``: operators that have a kernel on an NPU stay whole; ``cpu``: they are taken apart, as in recordings.
    attention : str
        ``math``, or ``fused``: one FlashAttentionScore.
    """

    torchair: str = "extended"
    dispatch: str = "npu"
    attention: str = "math"

    @property
    def strict(self) -> bool:
        """Whether refused overloads raise."""
        return self.torchair == "strict"

    @classmethod
    def of(cls, overrides: Any) -> "Choices":
        """The choices among the fields of ``--set``.

        Raises
        ------
        BadInputError
            For a value that a field does not have.

        Examples
        --------
        >>> Choices.of({"dispatch": "cpu"}).dispatch
        'cpu'
        """
        found = {}
        for name in ("torchair", "dispatch", "attention"):
            allowed = CHOICES[name]
            value = overrides.get(name, allowed[0])
            if value not in allowed:
                raise BadInputError(
                    f"{value!r} is not a value of {name}",
                    where="--set",
                    allowed=allowed,
                    nearest=nearest(value, allowed),
                )
            found[name] = value
        return cls(**found)


@dataclass(slots=True)
class TorchAir:
    """The TorchAir of a rank.

    Attributes
    ----------
    graphs : list of GeGraph
        In the order of their conversion.
    refused : dict of str to int
        Overloads that the real converter refuses, and how often they were converted.
    weights : Weights
        Those of all graphs.
    """

    graphs: list[GeGraph] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    weights: Weights = field(default_factory=Weights)
    _number: int = 0
    _expects: bool = False
    _engine: Engine | None = None

    @property
    def session(self) -> Session:
        """The emulated device."""
        return Session.current()

    @property
    def choices(self) -> Choices:
        """How graphs are captured and converted."""
        return Choices.of(self.session.settings.overrides)

    @property
    def engine(self) -> Engine:
        """What computes the kernels: torch, or nothing where the run knows no values."""
        if self._engine is None:
            values = self.session.engine.values
            self._engine = engine("torch") if values else self.session.engine
        return self._engine

    def next_name(self) -> str:
        """The name of the next graph of the process; a refused compilation uses one up."""
        self._number += 1
        return f"graph_{self._number}"

    def expect_graphs(self) -> None:
        """Say at the end of the process if a dump was asked for and there was no graph to dump."""
        if not self._expects:
            self._expects = True
            current().at_close(self._say_if_none)

    def _say_if_none(self) -> None:
        if not self._number:
            text = (
                "dump_config: nothing was dumped, since torch.compile has captured no graph: either no compiled model"
            )
            text += " was called, or every call broke its graph (run with TORCH_LOGS=graph_breaks to see where)"
            print(f"dumpsim: {text}", file=sys.stderr)

    def extended(self, target: str) -> None:
        """Count an overload that the real converter refuses, and say so once."""
        if target not in self.refused and not self.session.settings.quiet:
            text = f"the real TorchAir refuses {target}; it is converted to the nearest operators of GE"
            print(f"dumpsim: {text} (--set torchair=strict refuses it, too)", file=sys.stderr)
        self.refused[target] = self.refused.get(target, 0) + 1


def state() -> TorchAir:
    """The TorchAir of the rank that runs."""
    return current().get(TorchAir)
