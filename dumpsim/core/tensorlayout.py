"""How a tensor is distributed over devices: a device matrix and, for each axis, the device dimension that cuts it.

The ranks of a stage are laid out row-major in the device matrix. Device dimensions are counted from the right, as the
vendor does. [spec parallel 2.1]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

__all__ = ["WHOLE", "Axis", "TensorLayout", "dims_of"]

WHOLE = -1  # in a tensor map: the axis is not cut
Axis = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """The layout of a tensor over the devices of a stage.

    Attributes
    ----------
    device_matrix : tuple of int
    tensor_map : tuple of int or of tuple of int
        For each axis the device dimension that cuts it, counted from the right, or `WHOLE`; a tuple names several
        dimensions, the major one first.
    shape : tuple of int
        The shape of the whole tensor.

    Examples
    --------
    >>> layout = TensorLayout((2, 2), (1, -1), (16, 32))
    >>> layout.slice_shape, layout.region(3), layout.replicas(3)
    ((8, 32), (slice(8, 16, None), slice(0, 32, None)), (2, 3))
    """

    device_matrix: tuple[int, ...]
    tensor_map: tuple[Axis, ...]
    shape: tuple[int, ...]

    @classmethod
    def whole(cls, shape: Sequence[int], devices: int) -> "TensorLayout":
        """Return the layout of a tensor that every device has whole."""
        return cls((devices,), (WHOLE,) * len(shape), tuple(shape))

    @property
    def devices(self) -> int:
        """Number of devices."""
        return prod(self.device_matrix)

    @property
    def is_whole(self) -> bool:
        """Whether each device has the whole tensor."""
        return all(count == 1 for count in self.cuts)

    @property
    def cuts(self) -> tuple[int, ...]:
        """Number of parts of each axis."""
        return tuple(prod(self.extent(dim) for dim in dims_of(axis)) for axis in self.tensor_map)

    @property
    def slice_shape(self) -> tuple[int, ...]:
        """The shape of one device's part."""
        return tuple(extent // count for extent, count in zip(self.shape, self.cuts, strict=True))

    @property
    def used(self) -> frozenset[int]:
        """Device dimensions that cut an axis."""
        return frozenset(dim for axis in self.tensor_map for dim in dims_of(axis))

    def fits(self) -> bool:
        """Whether every axis can be cut into equal parts."""
        return all(extent % count == 0 for extent, count in zip(self.shape, self.cuts, strict=True))

    def extent(self, dim: int) -> int:
        """Return the number of devices along a dimension, which is counted from the right."""
        return self.device_matrix[len(self.device_matrix) - 1 - dim]

    def stride(self, dim: int) -> int:
        """Return the distance in ranks between neighbours along a dimension."""
        return prod(self.device_matrix[len(self.device_matrix) - dim :])

    def coordinate(self, rank: int, dim: int) -> int:
        """Return the coordinate of a rank along a dimension."""
        return rank // self.stride(dim) % self.extent(dim)

    def index(self, rank: int, axis: int) -> int:
        """Return which part of an axis a rank has."""
        found = 0
        for dim in dims_of(self.tensor_map[axis]):
            found = found * self.extent(dim) + self.coordinate(rank, dim)
        return found

    def region(self, rank: int) -> tuple[slice, ...]:
        """Return the position of a rank's part in the whole tensor."""
        starts = [self.index(rank, axis) * size for axis, size in enumerate(self.slice_shape)]
        return tuple(slice(start, start + size) for start, size in zip(starts, self.slice_shape, strict=True))

    def group(self, dims: Iterable[int], rank: int) -> tuple[int, ...]:
        """Return the ranks that differ from a rank only in the dimensions `dims`, ascending."""
        found = [rank]
        for dim in set(dims):
            own, stride = self.coordinate(rank, dim), self.stride(dim)
            found = [r + (place - own) * stride for r in found for place in range(self.extent(dim))]
        return tuple(sorted(found))

    def replicas(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that have the same part as a rank, including itself."""
        return self.group(set(range(len(self.device_matrix))) - self.used, rank)

    def split(self) -> "TensorLayout":
        """Return the same parts with one device dimension per axis; an axis cut by several ones becomes several axes.

        Examples
        --------
        >>> TensorLayout((2, 4), ((1, 0),), (32,)).split()
        TensorLayout(device_matrix=(2, 4), tensor_map=(1, 0), shape=(2, 16))
        """
        axes: list[Axis] = []
        shape: list[int] = []
        for axis, extent in zip(self.tensor_map, self.shape, strict=True):
            dims = dims_of(axis) or (WHOLE,)
            left = extent
            for dim in dims[:-1]:
                shape.append(self.extent(dim))
                left //= shape[-1]
            shape.append(left)
            axes += dims
        return TensorLayout(self.device_matrix, tuple(axes), tuple(shape))

    def squeezed(self, *, axes: bool = False) -> "TensorLayout":
        """Return the layout without device dimensions of size 1 and, on request, without axes of extent 1.

        Examples
        --------
        >>> TensorLayout((2, 1, 4), (1, 0), (16, 32)).squeezed()
        TensorLayout(device_matrix=(2, 4), tensor_map=(-1, 0), shape=(16, 32))
        """
        number: dict[int, int] = {WHOLE: WHOLE}
        matrix: list[int] = []
        for dim in range(len(self.device_matrix)):
            number[dim] = len(matrix) if self.extent(dim) > 1 else WHOLE
            if self.extent(dim) > 1:
                matrix.insert(0, self.extent(dim))
        found = [(_renumbered(a, number), n) for a, n in zip(self.tensor_map, self.shape, strict=True)]
        if axes:
            found = [(a, n) for a, n in found if n > 1] or [(WHOLE, 1)]
        return TensorLayout(tuple(matrix) or (1,), tuple(a for a, _ in found), tuple(n for _, n in found))


def dims_of(axis: Axis) -> tuple[int, ...]:
    """Return the device dimensions that cut an axis."""
    if isinstance(axis, tuple):
        return tuple(dim for dim in axis if dim != WHOLE)
    return () if axis == WHOLE else (axis,)


def _renumbered(axis: Axis, number: dict[int, int]) -> Axis:
    dims = tuple(number[dim] for dim in dims_of(axis) if number[dim] != WHOLE)
    return WHOLE if not dims else dims[0] if len(dims) == 1 else dims
