"""The steps by which a rank turns its part of a tensor into that of another layout. [spec parallel 2.5]"""

from dumpsim.core.hashorder import number_order
from dumpsim.core.tensorlayout import WHOLE, TensorLayout
from dumpsim.graph.parallel.shortening import shortened
from dumpsim.graph.parallel.transfer import Cut, Exchange, Join, Reshape, Transfer, shapes_after
from dumpsim.graph.parallel.unification import unified

__all__ = ["redistribution"]


def redistribution(
    source: TensorLayout, target: TensorLayout, rank: int, *, all_to_all: bool = False
) -> list[Transfer]:
    """Return the steps from one layout to another; the shapes of the tensors may differ, as for a Reshape.

    Parameters
    ----------
    source, target : TensorLayout
        Over the same number of devices.
    rank : int
    all_to_all : bool
        Whether to exchange parts by AlltoAll if possible.

    Examples
    --------
    >>> from dumpsim.core.tensorlayout import TensorLayout
    >>> rows, columns = TensorLayout((2,), (0, -1), (16, 32)), TensorLayout((2,), (-1, 0), (16, 32))
    >>> redistribution(rows, columns, 1)
    [Join(axis=0, count=2, stride=1), Cut(axis=1, count=2, index=1)]
    >>> redistribution(rows, columns, 1, all_to_all=True)
    [Exchange(cut=1, joined=0, count=2, stride=1)]
    """
    pair = unified(source, target)
    if pair is None:
        return shortened(_through_whole(source, target, rank), source.slice_shape)
    one, two = pair
    steps = _Moves(one, two, rank, all_to_all).steps
    if not steps:
        return [] if source.slice_shape == target.slice_shape else [Reshape(target.slice_shape)]
    front: list[Transfer] = [] if source.slice_shape == one.slice_shape else [Reshape(one.slice_shape)]
    end = list(shapes_after(steps, one.slice_shape))[-1]
    back: list[Transfer] = [] if target.slice_shape == end else [Reshape(target.slice_shape)]
    return shortened([*front, *steps, *back], source.slice_shape)


def _through_whole(source: TensorLayout, target: TensorLayout, rank: int) -> list[Transfer]:
    """Return the steps between layouts that have nothing in common: gather everything, then cut."""
    one, two = source.squeezed(), target.squeezed()
    steps: list[Transfer] = []
    if one.split() != one:
        one = one.split()
        steps.append(Reshape(one.slice_shape))
    for axis, dim in enumerate(one.tensor_map):
        assert isinstance(dim, int)
        if dim != WHOLE:
            steps.append(Join(axis, one.extent(dim), one.stride(dim)))
    split = two.split()
    if one.shape != split.shape:
        steps.append(Reshape(split.shape))
    for axis, dim in enumerate(split.tensor_map):
        assert isinstance(dim, int)
        if dim != WHOLE:
            steps.append(Cut(axis, split.extent(dim), split.coordinate(rank, dim)))
    if split.shape != two.shape:
        steps.append(Reshape(two.slice_shape))
    return steps


class _Moves:
    """The operators between two layouts over one device matrix and of one shape."""

    def __init__(self, source: TensorLayout, target: TensorLayout, rank: int, all_to_all: bool) -> None:
        self._layout, self._rank, self._all_to_all = source, rank, all_to_all
        count = len(source.shape)
        self._pending = {axis: _dim(source, axis) for axis in number_order(count)}  # [spec parallel 2.5]
        self._target = [_dim(target, axis) for axis in range(count)]
        self.steps: list[Transfer] = []
        while self._pending:
            before = len(self.steps)
            self._cut()
            self._permute()
            self._join()
            if len(self.steps) == before and self._pending:
                axis = next(iter(self._pending))
                self._emit_join(axis)
                self._pending[axis] = WHOLE

    def _cut(self) -> None:
        moved = True
        while moved:
            moved = False
            for axis, dim in list(self._pending.items()):
                wanted = self._target[axis]
                if dim == wanted:
                    del self._pending[axis]
                    moved = True
                elif dim == WHOLE and wanted not in self._pending.values():
                    self._emit_cut(axis, wanted)
                    del self._pending[axis]
                    moved = True

    def _permute(self) -> None:
        moved = True
        while moved:
            moved = False
            for axis, dim in list(self._pending.items()):
                wanted = self._target[axis]
                if dim != WHOLE or wanted == WHOLE:
                    continue
                other = next((a for a, d in self._pending.items() if d == wanted), None)
                if other is None:
                    continue
                if self._all_to_all:
                    self.steps.append(Exchange(axis, other, self._layout.extent(wanted), self._layout.stride(wanted)))
                else:
                    self._emit_join(other)
                    self._emit_cut(axis, wanted)
                del self._pending[axis]
                self._pending[other] = WHOLE
                moved = True
        self._cut()

    def _join(self) -> None:
        for axis, dim in list(self._pending.items()):
            if dim == WHOLE or dim in self._target:
                continue
            self._emit_join(axis)
            if self._target[axis] == WHOLE:
                del self._pending[axis]
            else:
                self._pending[axis] = WHOLE

    def _emit_cut(self, axis: int, dim: int) -> None:
        self.steps.append(Cut(axis, self._layout.extent(dim), self._layout.coordinate(self._rank, dim)))

    def _emit_join(self, axis: int) -> None:
        dim = self._pending[axis]
        self.steps.append(Join(axis, self._layout.extent(dim), self._layout.stride(dim)))


def _dim(layout: TensorLayout, axis: int) -> int:
    dim = layout.tensor_map[axis]
    assert isinstance(dim, int)
    return dim
