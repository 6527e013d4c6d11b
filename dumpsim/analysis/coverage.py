"""The share of operators with a counterpart: whether two dumps are of one network."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dumpsim.analysis.align import PUT_IN, Match
from dumpsim.analysis.apiname import canonical
from dumpsim.analysis.pairing import Pair

__all__ = ["MIN_MATCHED", "Coverage", "Group", "group_of"]

MIN_MATCHED = 0.5  # share of operators below which two dumps may be of different networks

# In canonical words what has no counterpart in another dump of one network: conversions that a compiler puts in, what
# comes from outside, and what orders and moves but computes nothing. [spec ge 4; MindSpore 2.10]
_OWN = frozenset(
    (
        *PUT_IN,
        *("data", "const", "constant", "netoutput", "identity", "noop", "load", "depend", "updatestate", "maketuple"),
        *("tuplegetitem", "return", "memcpyasync", "streamactive", "streamswitch", "send", "recv", "labelset"),
        *("labelgoto", "labelswitch", "formattransfer", "transfershape"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Names of matched operators of two dumps, or of operators of one dump alone.

    Attributes
    ----------
    left, right : tuple of str
    compared : bool
        Whether tensors of the two belong together; others only stand between operators that do.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    compared: bool = True

    def any(self, wanted: Callable[[str], bool]) -> bool:
        """Return whether one of the names is wanted."""
        return any(map(wanted, (*self.left, *self.right)))


def group_of(match: Match, pairs: Iterable[Pair]) -> Group:
    """The names of a match, without those that could have no counterpart where they have none.

    The parts of a fused operator have one: the fused operator.
    """
    compared = any(one.left is not None and one.right is not None for one in pairs)
    left, right = (
        tuple(one.op_name for one in side if compared or canonical(one.op_type) not in _OWN)
        for side in (match.left, match.right)
    )
    return Group(left=left, right=right, compared=compared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Numbers of operators that could have a counterpart, and that have one.

    Attributes
    ----------
    matched, operators : pair of int
        Of the first and the second dump.

    Examples
    --------
    >>> groups = [Group(left=("Conv2D", "BiasAdd"), right=("Conv2DBiasAdd",)), Group(left=("Exp",), right=())]
    >>> Coverage.of(groups)
    Coverage(matched=(2, 1), operators=(3, 1))
    >>> Coverage.of(groups).share
    1.0
    """

    matched: tuple[int, int] = (0, 0)
    operators: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, groups: Iterable[Group]) -> "Coverage":
        """Count the operators of some groups."""
        matched, operators = [0, 0], [0, 0]
        for group in groups:
            for side, names in enumerate((group.left, group.right)):
                operators[side] += len(names)
                matched[side] += len(names) if group.compared and group.left and group.right else 0
        return cls(matched=(matched[0], matched[1]), operators=(operators[0], operators[1]))

    @property
    def share(self) -> float:
        """The share that has a counterpart, of the dump of which it is larger; 0 without operators.

        The larger share, since a dump of a few operators may be of the same network as one of all.
        """
        return max((m / n for m, n in zip(self.matched, self.operators, strict=True) if n), default=0.0)

    def shortfall(self, least: float) -> str:
        """Return a sentence if the share is below `least`, else an empty string."""
        if self.share >= least or not any(self.operators):
            return ""
        (ours, theirs), (of_ours, of_theirs) = self.matched, self.operators
        return (
            f"only {ours} of {of_ours} operators of A and {theirs} of {of_theirs} of B have a counterpart, less than a "
            f"share of {least:g}: these may be dumps of different networks"
        )
