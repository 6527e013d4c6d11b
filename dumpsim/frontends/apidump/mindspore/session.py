"""One API dump of a MindSpore network of the front end, from init to close."""

import logging
import os
import sys
from collections.abc import Callable
from typing import Any, Literal

from dumpsim.codecs.apidump import tail_of
from dumpsim.core.errors import DumpsimError
from dumpsim.frontends.apidump.arrays import ArrayValues, described, npy_parts
from dumpsim.frontends.apidump.mindspore.calls import CellCalls
from dumpsim.frontends.apidump.output import Output
from dumpsim.frontends.apidump.session import ApiSession, is_durable
from dumpsim.frontends.apidump.stack import Stacks
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import Cell

__all__ = ["HIDDEN", "CellSession"]

LOG = logging.getLogger("troubleshooter.log")
# [troubleshooter 1.0.17: its list for MindSpore, with its misspelling] and the front end, which is MindSpore here
HIDDEN = (
    "/mindspore/ops/",
    "/mindspore/nn/",
    "/mindsproe/amp.py",
    "/mindspore/numpy/",
    "/mindspore/dataset/",
    "/mindspore/common/",
    "/mindspore/train/",
    "/mindspore/boost/",
    "/mindspore/parallel/",
    "/mindspore/profiler/",
    "/mindspore/rewrite/",
    "/mindspore/scipy/",
    "/troubleshooter/migrator/api_dump/",
    "/mindtorch/torch",
    "/mindtorch/tools/",
    "/mindtorch/torchaudio/",
    "/mindtorch/torchvision/",
    "/dumpsim/frontends/mindspore/",
)
_UNASKED = ArrayValues(float("nan"), float("nan"), float("nan"))


class CellSession(ApiSession):
    """Records the APIs that a MindSpore network calls op by op.

    Parameters
    ----------
    net : Cell
        The cells that it has now get ``NN`` records.
    output_path : path
    retain_backward : bool
        Record gradients with respect to recorded outputs too.
    compare_statedict : bool
        Has no effect but a warning: the parameters of cells are not compared. [seed 002]
    coverage : {"listed", "full"}
        The APIs of 1.0.17, or all functions, methods, layers and losses, with keyword arguments and values of dicts.
    exact : bool
        Behave as 1.0.17: count while stopped, use numpy's reductions, record gradients after stop.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import dumpsim.frontends.mindspore as ms
    >>> from dumpsim.frontends.apidump.selection import Request
    >>> from dumpsim.frontends.mindspore import nn
    >>> ms.set_context(mode=ms.PYNATIVE_MODE)
    >>> net = nn.ReLU()
    >>> with TemporaryDirectory() as path, CellSession(net, path) as session:
    ...     session.start(Request())
    ...     out = net(ms.Tensor([-1.0, 2.0]))
    ...     session.stop()
    ...     print(Path(path, "rank0/mindspore_api_dump_info.pkl").read_text(), end="")
    ["NN_ReLU_0_forward_input.0", 1, [], "Float32", [2], [2.0, -1.0, 0.5]]
    ["NN_ReLU_0_forward_output", 1, [], "Float32", [2], [2.0, 0.0, 1.0]]
    """

    def __init__(
        self,
        net: Cell,
        output_path: "str | os.PathLike[str]",
        *,
        retain_backward: bool = False,
        compare_statedict: bool = False,
        coverage: Literal["listed", "full"] = "listed",
        exact: bool = False,
    ) -> None:
        output = Output(output_path, "mindspore", 0 if exact else _rank(), durable=is_durable())
        super().__init__(output, Stacks(HIDDEN), exact=exact, retain_backward=retain_backward)
        self._calls = CellCalls(net, self, full=coverage == "full", exact=exact)
        if compare_statedict:
            LOG.warning("[*User Warning*] compare_statedict: parameters of MindSpore cells are not kept.")
        self._calls.attach()

    def leave(self) -> None:
        """Unsubscribe, which makes dropout active again."""
        self._calls.detach()

    # -- Dump, for the calls

    @property
    def is_counting(self) -> bool:
        """See `Dump`."""
        return self.recording or self.exact

    def take(self, call: str) -> bool:
        """See `Dump`."""
        if not self.recording or not self.selection.takes(call):
            return False
        if not self.begun:
            self.begin()
        self.stacks.keep(f"{call}_forward_stack_info", sys._getframe(1), filtered=self.request.filter_stack)
        return True

    def write(self, name: str, value: Any) -> bool:
        """See `Dump`: by default only floats with axes and elements are recorded. [spec api_dump 1.6]"""
        if isinstance(value, Tensor):
            if value._array is None or (self.request.filter_data and not _is_data(value)):
                return False
            return self._written(name, value.asnumpy(), value._dtype.title, value.shape)
        if isinstance(value, (bool, int, float)) and not self.request.filter_data:
            return self._written(name, value, str(type(value)), ())
        return False

    def write_gradient(self, name: str, gradient: Callable[[], Tensor]) -> None:
        """See `Dump`; after stop only with `exact`."""
        if self.recording or self.exact:
            self.write(name, gradient())
        else:
            self.skipped["backward after stop"] += 1

    def _written(self, name: str, value: Any, dtype: str, shape: tuple[int, ...]) -> bool:
        try:
            values = described(value, exact=self.exact) if self.request.statistics else _UNASKED
            parts = npy_parts(value) if self.request.npy else None
        except (DumpsimError, ValueError, TypeError, OverflowError) as error:  # never out of the user's forward
            self.skipped[f"{dtype}: {error}"] += 1
            return False
        self.lines.add(name, tail_of(dtype, shape, values))
        if parts is not None:
            self.output.array(name, parts)
        return True


def _is_data(tensor: Tensor) -> bool:
    return tensor._dtype.kind == "float" and tensor.ndim > 0 and tensor.size > 0


def _rank() -> int:
    """Return the rank of this process. [spec api_dump 1.2: RANK_ID]"""
    rank = os.environ.get("RANK_ID", "0")
    return int(rank) if rank.isdigit() else 0
