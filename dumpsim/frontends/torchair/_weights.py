"""Which arguments of compiled graphs are weights or show the memory of one."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

__all__ = ["Weights"]

_ROOM = 64


class Weights:
    """The memory of the weights that were arguments, without keeping it alive.

    The graph of a gradient takes weights as tensors without a name: transposed, and cut off from their Parameter.

    Examples
    --------
    >>> weights, weight = Weights(), torch.nn.Parameter(torch.ones(2, 3))
    >>> weights.has(weight), weights.has(weight.detach().t()), weights.has(torch.ones(2, 3))
    (True, True, False)
    """

    def __init__(self) -> None:
        self._known: dict[int, StorageWeakRef] = {}  # by the address of torch's storage, which a reference holds
        self._room = _ROOM

    def has(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a weight, or shows the memory of one that was an argument."""
        storage = tensor.untyped_storage()
        address = storage._cdata
        if type(tensor) is torch.nn.Parameter:
            if address not in self._known:
                self._add(storage)
            return True
        found = self._known.get(address)
        return found is not None and not found.expired()

    def _add(self, storage: torch.UntypedStorage) -> None:
        if len(self._known) >= self._room:
            self._known = {address: found for address, found in self._known.items() if not found.expired()}
            self._room = 2 * len(self._known) + _ROOM
        reference = StorageWeakRef(storage)
        self._known[reference.cdata] = reference
