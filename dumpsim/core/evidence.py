"""Evidence from recomputing an operator: the interface between `first` and the code that recomputes."""

from dataclasses import dataclass
from math import inf, nan
from typing import Literal, Protocol, TypeVar

__all__ = ["Evidence", "Recompute"]

DumpT_contra = TypeVar("DumpT_contra", contravariant=True)
OperatorT_contra = TypeVar("OperatorT_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Evidence:
    """How far the dumped results of an operator are from those recomputed from its dumped inputs.

    Attributes
    ----------
    error : float
        The largest ``|output - recomputed|``; NaN if nothing was recomputed.
    explained : float
        The error that the number type, the operator and the length of its reduction can explain, for the element with
        the largest ``error / explained``; NaN if nothing was recomputed.
    verdict : str
        ``ok``, ``suspect`` or ``skipped``.
    reason : str
        Why it was skipped, or what stands out; empty for ``ok``.

    Examples
    --------
    >>> Evidence(0.5, 0.25, "suspect", "output.0").excess
    2.0
    >>> Evidence.skip("draws random numbers").verdict
    'skipped'
    """

    error: float
    explained: float
    verdict: Literal["ok", "suspect", "skipped"]
    reason: str = ""

    @classmethod
    def skip(cls, reason: str) -> "Evidence":
        """Return the evidence of an operator that cannot be recomputed."""
        return cls(nan, nan, "skipped", reason)

    @property
    def excess(self) -> float:
        """The error as a multiple of the explained error; NaN if nothing was recomputed."""
        if self.explained > 0:
            return self.error / self.explained
        return inf if self.error > 0 else self.error


class Recompute(Protocol[DumpT_contra, OperatorT_contra]):
    """Recompute one run of one operator of a dump from its dumped inputs."""

    def __call__(
        self, dumpset: DumpT_contra, operator: OperatorT_contra, *, on: OperatorT_contra | None = None
    ) -> Evidence:
        """Return the evidence for or against `operator` of `dumpset`.

        With `on`, its counterpart in another dump, the function and the attributes of `operator` are applied to the
        inputs of `on` and compared with the results of `on`: an error there means that the two operators compute
        different things, although each may do what its own attributes say. An operator that cannot be recomputed is
        skipped with a reason; no exception is raised.
        """
        ...
