"""Arguments of compiled graphs that are weights or views of weights."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

__all__ = ["Weights"]

_LIMIT = 64


class Weights:
    """Weak references to the memory of the weights that were arguments.

    The graph of a gradient takes weights as other tensors: transposed, and detached from their Parameter.

    Examples
    --------
    >>> weights, weight = Weights(), torch.nn.Parameter(torch.ones(2, 3))
    >>> weights.has(weight), weights.has(weight.detach().t()), weights.has(torch.ones(2, 3))
    (True, True, False)
    """

    def __init__(self) -> None:
        self._known: dict[int, StorageWeakRef] = {}  # by the storage's address, which the weak reference keeps in use
        self._limit = _LIMIT

    def has(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is a weight, or a view of one that was an argument."""
        storage = tensor.untyped_storage()
        address = storage._cdata
        if type(tensor) is torch.nn.Parameter:
            if address not in self._known:
                self._add(storage)
            return True
        found = self._known.get(address)
        return found is not None and not found.expired()

    def _add(self, storage: torch.UntypedStorage) -> None:
        if len(self._known) >= self._limit:
            self._known = {address: found for address, found in self._known.items() if not found.expired()}
            self._limit = 2 * len(self._known) + _LIMIT
        reference = StorageWeakRef(storage)
        self._known[reference.cdata] = reference
