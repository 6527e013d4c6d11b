"""Fingerprints of captured graphs, equal if two ranks have captured the same network from different objects."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.graph.graph import Constant, Graph, Node, Parameter
from dumpsim.ops.opdef import OpDef

__all__ = ["Fingerprint", "fingerprint"]

_ATOMS = frozenset({bool, int, str, bytes, type(None)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The identity of a captured graph.

    Attributes
    ----------
    digest : bytes
        Digest of the structure, operators, attributes, types, constants, and the text of nodes and parameters.
    weights : tuple of Parameter
        The graph's weights in an order that equal graphs share.
    anchors : tuple of object
        Objects that are compared by identity, such as functions; the digest is valid while they are alive.
    """

    digest: bytes
    weights: tuple[Parameter, ...]
    anchors: tuple[Any, ...]


def fingerprint(graph: Graph) -> Fingerprint:
    """Return the fingerprint of a captured graph.

    Examples
    --------
    >>> from dumpsim.core.abstract import TensorType
    >>> from dumpsim.core.dtype import dtype
    >>> def square(op_type):
    ...     x = Parameter(name="x", abstract=TensorType(dtype=dtype("float32"), shape=(2,)))
    ...     node = Node(op_type=op_type, operands=[x, x], abstract=x.abstract)
    ...     return fingerprint(Graph(parameters=[x], trail=[node], output=node)).digest
    >>> square("Mul") == square("Mul"), square("Mul") == square("Add")
    (True, False)
    """
    writer = _Writer()
    writer.graph(graph)
    return Fingerprint(digest=writer.digest(), weights=tuple(writer.weights), anchors=tuple(writer.anchors.values()))


class _Writer:
    """Writes a graph as a stream of bytes; values are numbered in the order of their first occurrence."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.weights: list[Parameter] = []
        self.anchors: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._storages: dict[int, int] = {}
        self._names: dict[type, tuple[str, ...]] = {}
        self._values: list[Any] = []  # keeps numbered values alive, so that their ids stay valid

    def digest(self) -> bytes:
        """Return the digest of everything that was written."""
        return blake2b(b"".join(self.parts), digest_size=32).digest()

    def _tag(self, name: str, count: int = 0) -> None:
        self.parts.append(b"\0%b:%d\0" % (name.encode(), count))

    def _is_new(self, value: Any) -> bool:
        """Write the number of a value; return whether it occurs for the first time."""
        number = self._numbers.get(id(value))
        new = number is None
        if number is None:
            number = self._numbers[id(value)] = len(self._values)
            self._values.append(value)
        self._tag("new" if new else "old", number)
        return new

    def graph(self, graph: Graph) -> None:
        """Write a graph, its parameters and every node of its program."""
        if not self._is_new(graph):
            return
        for parameter in graph.parameters:
            self.value(parameter)
        self.value(graph.trail)
        self.value(graph.output)
        self._fields(graph, skipped=("parameters", "trail", "output"))

    def value(self, value: Any) -> None:
        """Write any value of a graph."""
        kind = type(value)
        if kind in _ATOMS:
            text = repr(value).encode()
            self._tag(kind.__name__, len(text))
            self.parts.append(text)
        elif kind is tuple or kind is list:
            self._tag(kind.__name__, len(value))
            for item in value:
                self.value(item)
        elif kind is float:
            self._tag("float")
            self.parts.append(np.float64(value).tobytes())
        elif kind is Node or kind is Constant:
            if self._is_new(value):
                self._fields(value)
        elif kind is Parameter:
            self._parameter(value)
        elif kind is Graph:
            self.graph(value)
        elif isinstance(value, DType):
            self.value(value.name)
        elif isinstance(value, (np.ndarray, np.generic)):
            self._array(np.asarray(value))
        elif isinstance(value, Mapping):
            self._tag("mapping", len(value))
            for key, item in value.items():
                self.value(key)
                self.value(item)
        elif isinstance(value, Set) and all(isinstance(item, str) for item in value):
            self.value(sorted(value))
        elif is_dataclass(value) and not isinstance(value, (OpDef, type)):
            self._fields(value)
        else:
            self.anchors[id(value)] = value
            self._tag("object", id(value))

    def _parameter(self, parameter: Parameter) -> None:
        if not self._is_new(parameter):
            return
        self._fields(parameter, skipped=("storage",))
        if parameter.is_weight:
            first = self._storages.setdefault(id(parameter.storage), len(self.weights))  # two may share a storage
            self._tag("weight", first)
            self.weights.append(parameter)

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        if array.dtype.hasobject:
            self.value(array.tolist())
        self._tag(f"array {array.dtype.name} {array.dtype.str} {array.shape}", array.nbytes)
        if not array.dtype.hasobject:
            self.parts.append(array.tobytes())

    def _fields(self, value: Any, skipped: tuple[str, ...] = ()) -> None:
        kind = type(value)
        self._tag(kind.__qualname__)
        names = self._names.get(kind)
        if names is None:
            names = self._names[kind] = tuple(each.name for each in fields(value))
        for name in names:
            if name not in skipped:
                self.value(getattr(value, name))
