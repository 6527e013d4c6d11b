"""The state of TorchAir on a rank: its graphs, and how they are converted."""

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
        ``extended``: convert overloads that the real converter refuses to the nearest types; ``strict``: raise the real
        converter's error.
    dispatch : str
        ``npu``: do not decompose operators that have a kernel on an NPU; ``cpu``: decompose them, as in recordings.
    attention : str
        ``math``, or ``fused``: one FlashAttentionScore.
    """

    torchair: str = "extended"
    dispatch: str = "npu"
    attention: str = "math"

    @property
    def strict(self) -> bool:
        """Whether refused overloads raise the real converter's error."""
        return self.torchair == "strict"

    @classmethod
    def of(cls, overrides: Any) -> "Choices":
        """Read the choices from the fields of ``--set``.

        Raises
        ------
        BadInputError
            For a value that a field does not allow.

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
        Overloads that the real converter refuses, with how often they were converted.
    weights : Weights
        Weights of all graphs.
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
        """The engine that computes the kernels: torch, or the session's if that computes no values."""
        if self._engine is None:
            values = self.session.engine.values
            self._engine = engine("torch") if values else self.session.engine
        return self._engine

    def next_name(self) -> str:
        """Return the name of the next graph; a compilation that fails uses one, too."""
        self._number += 1
        return f"graph_{self._number}"

    def expect_graphs(self) -> None:
        """Warn at the end of the process if no graph was compiled, since a dump is configured."""
        if not self._expects:
            self._expects = True
            current().at_close(self._warn_if_no_graph)

    def _warn_if_no_graph(self) -> None:
        if not self._number:
            text = (
                "dump_config: nothing was dumped, because torch.compile captured no graph: no compiled model was "
                "called, or every call had a graph break (run with TORCH_LOGS=graph_breaks to see where)"
            )
            print(f"dumpsim: {text}", file=sys.stderr)

    def extended(self, target: str) -> None:
        """Count an overload that the real converter refuses, and warn once."""
        if target not in self.refused and not self.session.settings.quiet:
            text = f"the real TorchAir refuses {target}; it is converted to the nearest operators of GE"
            print(f"dumpsim: {text} (use --set torchair=strict to refuse it)", file=sys.stderr)
        self.refused[target] = self.refused.get(target, 0) + 1


def state() -> TorchAir:
    """Return the state of the current rank."""
    return current().get(TorchAir)
