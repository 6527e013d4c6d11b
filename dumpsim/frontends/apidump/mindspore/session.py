"""One API dump of a MindSpore network of the front end, from init to close."""

import atexit
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from dumpsim.codecs.apidump import tail_of
from dumpsim.core.errors import DumpsimError, ScriptRuntimeError
from dumpsim.frontends.apidump.arrays import ArrayValues, described, npy_parts
from dumpsim.frontends.apidump.mindspore.calls import CellCalls
from dumpsim.frontends.apidump.output import Output
from dumpsim.frontends.apidump.selection import Request, Selection
from dumpsim.frontends.apidump.stack import Stacks
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import Cell

__all__ = ["HIDDEN", "CellSession"]

LOG = logging.getLogger("troubleshooter.log")
# [troubleshooter 1.0.17: its list for MindSpore, the misspelt one too] and the front end that is MindSpore here
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


class CellSession:
    """Records the APIs that a network of cells calls op by op.

    Parameters
    ----------
    net : Cell
        Its cells, as they are now, are those with ``NN`` records.
    output_path : path
    retain_backward : bool
        Also gradients by recorded outputs.
    compare_statedict : bool
        Nothing to keep: the parameters of cells are not compared, and a warning says so. [seed 002]
    coverage : {"listed", "full"}
        The APIs of 1.0.17, or all functions, methods, layers and losses, with keyword arguments and values of dicts.
    exact : bool
        As 1.0.17: counting while off, numpy's reductions, gradients after stop.

    Attributes
    ----------
    skipped : Counter
        Values that were not recorded, by reason.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import dumpsim.frontends.mindspore as ms
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
        self.exact = exact
        self.retain_backward = retain_backward
        self.skipped: Counter[str] = Counter()
        self.output = Output(output_path, "mindspore", 0 if exact else _rank())
        self.recording = False
        self.closed = False
        self.request = Request()
        self.selection = Selection(self.request)
        self._stacks = Stacks(HIDDEN)
        self._begun = False
        self._counts: Counter[str] = Counter()
        self._lines_at_start = 0
        self._calls = CellCalls(net, self, full=coverage == "full", exact=exact)
        if compare_statedict:
            LOG.warning("[*User Warning*] compare_statedict: parameters of MindSpore cells are not kept.")
        self._calls.attach()

    def __enter__(self) -> "CellSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- from init to close

    def start(self, request: Request) -> None:
        """Record from here; counters go on where they were."""
        self._check_open()
        self.request = request
        self.selection = Selection(request, exact=self.exact)
        self.recording = True
        self._lines_at_start = self.output.lines

    def stop(self) -> None:
        """Record no more, and write everything.

        Raises
        ------
        DumpWriteError
            If something could not be written.
        """
        self._check_open()
        self.recording = False
        self.flush()

    @property
    def recorded(self) -> bool:
        """Whether anything was recorded since the last start."""
        return self.output.lines > self._lines_at_start

    def flush(self) -> None:
        """Write what has been recorded so far; also done at stop and at the end of the process."""
        if self._stacks.changed:
            self.output.stacks(self._stacks.texts())
        self.output.flush()

    def close(self) -> None:
        """Stop, hear no more, and end the thread that writes; dropout drops again."""
        if self.closed:
            return
        self.recording = False
        self.closed = True
        self._calls.detach()
        atexit.unregister(self._at_exit)
        try:
            self.flush()
        finally:
            self.output.close()

    # -- what the calls ask and tell

    @property
    def is_counting(self) -> bool:
        """See `Dump`."""
        return self.recording or self.exact

    def take(self, label: str) -> int:
        """See `Dump`."""
        number = self._counts[label]
        self._counts[label] += 1
        return number

    def begin(self, call: str) -> bool:
        """See `Dump`."""
        if not self.recording or not self.selection.takes(call):
            return False
        if not self._begun:
            self._begun = True
            atexit.register(self._at_exit)  # first: a directory that cannot be made is told there, if nobody stops
            self.output.begin()
        self._stacks.keep(f"{call}_forward_stack_info", sys._getframe(1), filtered=self.request.filter_stack)
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

    def skip(self, reason: str, number: int) -> None:
        """See `Dump`."""
        if number:
            self.skipped[reason] += number

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
        self.output.write((name,), (tail_of(dtype, shape, values),))
        if parts is not None:
            self.output.array(name, parts)
        return True

    def _at_exit(self) -> None:
        """A process that ends without stop, by an error too, leaves whole files."""
        try:
            self.flush()
        except DumpsimError as error:
            LOG.warning("[*User Warning*] %s", "; ".join([str(error), *getattr(error, "__notes__", ())]))

    def _check_open(self) -> None:
        if self.closed:
            raise ScriptRuntimeError("this API dump has been closed", where="api_dump", code="DS-ADP-013")


def _is_data(tensor: Tensor) -> bool:
    return tensor._dtype.kind == "float" and tensor.ndim > 0 and tensor.size > 0


def _rank() -> int:
    """This process among those of a job. [spec api_dump 1.2: RANK_ID]"""
    rank = os.environ.get("RANK_ID", "0")
    return int(rank) if rank.isdigit() else 0
