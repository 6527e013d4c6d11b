"""Data flow between the calls of an API dump: dumps have no edges, so equal values connect calls."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator

from dumpsim.analysis.apitree import ApiEntry
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.operator import Operator

__all__ = ["PASSING", "call_of", "readers"]

# operations that pass gradients on unchanged, in canonical words
PASSING = (
    *("add", "sub", "reshape", "transpose", "flatten", "identity", "dropout", "squeeze", "unsqueeze", "stopgradient"),
)


def call_of(one: Operator) -> str:
    """Return the name of a call without its direction: ``NN_Dense_0``."""
    return one.op_name.removesuffix("_forward").removesuffix("_backward")


def readers(calls: Iterable[tuple[str, Iterable[Entry], Iterable[Entry]]]) -> dict[str, list[str]]:
    """Return the readers of each call's results, in the order of the run.

    Parameters
    ----------
    calls : iterable of (str, inputs, outputs)
        The forward calls of one side in their order. A result belongs to the latest call that made such a tensor: of
        this shape and these values, or of these values in another shape, where the reshaping was not recorded.
    """
    makers: dict[Hashable, str] = {}
    found: dict[str, list[str]] = defaultdict(list)
    for name, inputs, outputs in calls:
        for entry in inputs:
            maker = next((makers[key] for key in _keys(entry) if key in makers), None)
            if maker is not None and name not in found[maker]:
                found[maker].append(name)
        for entry in outputs:
            makers.update(dict.fromkeys(_keys(entry), name))
    return dict(found)


def _keys(entry: Entry) -> Iterator[Hashable]:
    """The key that identifies a tensor; empty if its statistics are unknown."""
    if not isinstance(entry, ApiEntry) or not entry.line.shape:
        return
    values = tuple(f"{value:.5g}" for value in entry.extremes)
    if "nan" not in values:
        yield (entry.line.shape, *values)
        yield values
