"""Watch mode: outputs of some operators are read again after others have run. [spec ge 2.8]

The dump shows operators that overwrite the memory of others: a file ``A_To_C`` has the bytes in the memory of C's
outputs after A has run. The header's attributes have what the emulated device knows in addition: whether C has already
run, which of its outputs are still needed, and whose tensors are in that memory now.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dumpsim.core.events import GraphEvent, NodeOutputs, TaskEvent
from dumpsim.dump.capture import Capture
from dumpsim.dump.iteration import Moment
from dumpsim.dump.modelchoice import Names
from dumpsim.modes.request import Watch

__all__ = ["WatchTrigger", "attributes"]

_COLLECTIVE = "Hcom"  # prefix of types after which nothing is read
_DATA = "Data"


class WatchTrigger:
    """Dumps watched outputs after the operators of a watch, and after the watched operators themselves.

    Parameters
    ----------
    capture : Capture
    watches : sequence of Watch
    """

    def __init__(self, capture: Capture, watches: Sequence[Watch]) -> None:
        self._capture = capture
        self._watches = tuple(watches)
        self._watched = frozenset(name for watch in watches for name in watch.nodes)
        self.names = Names()

    def concerns(self, event: TaskEvent) -> bool:
        """Return whether something is read after an operator."""
        return event.full_name in self._watched or next(self._nodes(event), None) is not None

    def loaded(self, event: GraphEvent) -> tuple[str, ...]:
        """Add a loaded model; return warnings."""
        if not event.static:
            text = f"watch mode has no effect on {event.model_name}: its shapes are known only at run time"
            return (text,)
        self.names.add(event)
        return ()

    def unused(self) -> Iterator[str]:
        """Iterate over messages for names that no static model has."""
        wanted = [name for watch in self._watches for name in (*watch.nodes, *(watch.layers or ()))]
        yield from self.names.missing(dict.fromkeys(wanted), fused=False)

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Do nothing before an operator."""

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Read the watched outputs."""
        if event.error is not None or event.outputs_of is None:
            return
        if event.full_name in self._watched:
            self._capture.watched(event, moment, event.full_name, ())
        for node in self._nodes(event):
            found = event.outputs_of(node)
            if found is not None:
                seen = replace(event, op_type=found.op_type, operands=(), outputs=found.outputs, original_names=())
                attrs = (*attributes(found), ("dumpsim.written", _written(event, found)))
                self._capture.watched(seen, moment, f"{event.full_name}_To_{node}", attrs)

    def _nodes(self, event: TaskEvent) -> Iterator[str]:
        """Iterate over the nodes whose outputs are read after another operator."""
        if event.op_type == _DATA or event.op_type.startswith(_COLLECTIVE):
            return
        name = event.full_name
        seen: set[str] = set()
        for watch in self._watches:
            if name not in watch.nodes and (watch.layers is None or name in watch.layers):
                for node in watch.nodes:
                    if node not in seen:
                        seen.add(node)
                        yield node


def _written(event: TaskEvent, found: NodeOutputs) -> str:
    """Return for each output of a node whether the operator is meant to write there, as an in-place operator is."""
    written = [*(ref for ref in event.operands if ref.written), *event.outputs]
    flags = [
        alive
        and any(ref.address < out.address + out.nbytes and out.address < ref.address + ref.nbytes for ref in written)
        for out, alive in zip(found.outputs, found.alive, strict=True)
    ]
    return ",".join(str(int(flag)) for flag in flags)


def attributes(found: NodeOutputs) -> tuple[tuple[str, str], ...]:
    """Return the header's attributes of a read, by output.

    Examples
    --------
    >>> attributes(NodeOutputs(op_type="Add", full_name="c", outputs=(), ran=True, alive=(True, False),
    ...                        owners=((), ("d:0",))))
    (('dumpsim', '{}'), ('dumpsim.ran', '1'), ('dumpsim.alive', '1,0'), ('dumpsim.owners', ';d:0'))
    """
    return (
        (
            "dumpsim",
            "{}",
        ),  # msaccucmp reads the first attribute as JSON of FFTS+ threads; {} has none [observed 26.2.0]
        ("dumpsim.ran", str(int(found.ran))),
        ("dumpsim.alive", ",".join(str(int(alive)) for alive in found.alive)),
        ("dumpsim.owners", ";".join(",".join(owners) for owners in found.owners)),
    )
