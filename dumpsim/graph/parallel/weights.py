"""The weights of a split network: their layouts, and the operators between a weight and its users.

[spec parallel 2.7]
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import prod

from dumpsim.core.abstract import TensorType
from dumpsim.core.cutting import StrategyError
from dumpsim.core.tensorlayout import TensorLayout, dims_of
from dumpsim.graph.graph import Node, Parameter, Value, text_of
from dumpsim.graph.parallel.inserted import Inserter
from dumpsim.graph.parallel.settings import Settings

__all__ = ["Weights"]


class Weights:
    """The weights of one rank.

    Parameters
    ----------
    settings : Settings
    insert : Inserter
    accumulators : mapping of str to Parameter
        The Parameters in which gradients are accumulated, by the names of the weights.
    is_trained : bool
        Whether gradients are taken.

    Attributes
    ----------
    layouts : dict of str to TensorLayout
        The layouts that the users of the weights want, by name.
    """

    def __init__(
        self, settings: Settings, insert: Inserter, accumulators: Mapping[str, Parameter], *, is_trained: bool
    ) -> None:
        self._settings, self._insert, self._accumulators = settings, insert, accumulators
        self._is_trained = is_trained
        self._clones = dict(settings.clones)
        self.layouts: dict[str, TensorLayout] = {}
        self._optimizer_cuts: dict[str, TensorLayout] = {}
        self._mirrors: dict[str, Value] = {}  # the users of a weight share its mirror

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Insert nodes into a block, whose mirrors are not shared with users outside."""
        before = dict(self._mirrors)
        yield
        self._mirrors = before

    def cut(self, weight: Parameter, layout: TensorLayout) -> None:
        """Record the layout that a user of a weight wants.

        Raises
        ------
        StrategyError
            If another user wants a different one.
        """
        before = self.layouts.setdefault(weight.name, layout)
        if before != layout:
            raise StrategyError(
                f"The parameter {weight.name!r} is cut in two ways by its users: {before.cuts} and {layout.cuts} over "
                f"the devices {before.device_matrix} and {layout.device_matrix}; allowed: one layout for all users"
            )

    def brought(self, value: Value, weight: Parameter, layout: TensorLayout, node: Node) -> Value:
        """Return the operand for a user of a weight.

        It is gathered if the parallel optimizer has cut it, and mirrored if several ranks have the same part.
        """
        ranks = layout.replicas(self._settings.rank)
        if not self._is_trained or weight.name in self._settings.frozen:
            return value
        into = self._accumulators.get(weight.name)
        if len(ranks) > 1:
            is_cut = self._settings.enable_parallel_optimizer and self._is_divisible(weight, layout, len(ranks))
            if not is_cut:
                text_of(node).attrs["mirror_user_id"] = weight.name
            if weight.name not in self._mirrors:
                insert = self._insert.optimizer_gather if is_cut else self._insert.mirror
                self._mirrors[weight.name] = insert(value, ranks, weight.name, node, into)
            if is_cut:
                self._optimizer_cuts[weight.name] = _cut_further(layout)
            value = self._mirrors[weight.name]
        return value if into is None else self._insert.assign_add(value, into, node)

    def _is_divisible(self, weight: Parameter, layout: TensorLayout, count: int) -> bool:
        """Whether the parallel optimizer cuts a weight: small ones it does not. [source opt_param_mgr.cc]"""
        assert isinstance(weight.abstract, TensorType)
        size = prod(layout.shape) * weight.abstract.dtype.itemsize
        if weight.name in self._settings.alone or not layout.shape or size < self._settings.optimizer_threshold:
            return False
        return layout.slice_shape[0] % count == 0

    def layout_of(self, weight: str) -> TensorLayout | None:
        """Return the layout of a weight; accumulated gradients are not cut further."""
        name = self._clones.get(weight, weight)
        is_accumulated = any(weight == one.name for one in self._accumulators.values())
        return (None if is_accumulated else self._optimizer_cuts.get(name)) or self.layouts.get(name)


def _cut_further(layout: TensorLayout) -> TensorLayout:
    """Return the layout of a weight that the parallel optimizer cuts along axis 0 over all ranks with the same part."""
    free = sorted(set(range(len(layout.device_matrix))) - layout.used, reverse=True)
    axis = (*dims_of(layout.tensor_map[0]), *free)
    return replace(layout, tensor_map=(axis if len(axis) > 1 else axis[0], *layout.tensor_map[1:]))
