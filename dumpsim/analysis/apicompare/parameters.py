"""Compares the parameters of a MindTorch net with those of its PyTorch original, from files of state_dicts."""

import os
from pathlib import Path
from typing import Any

from dumpsim.analysis.apicompare.difference import compare_arrays, percent, truncated
from dumpsim.analysis.apicompare.table import Row, Table
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.core.errors import UnreadableError, UnsupportedError

__all__ = ["PARAMETER_FILES", "compare_parameters"]

PARAMETER_FILES = {"torch": "pt_net.pth", "mindtorch": "ad_net.pth"}  # [spec api_dump 1.2]
_HEADER = (
    "ORIGIN NET",
    "TARGET NET",
    "shape of orig",
    "shape of target",
    "result of allclose",
    "ratio of allclose",
    "cosine similarity",
    "mean & max diffs",
)


def compare_parameters(
    origin: "str | os.PathLike[str]", target: "str | os.PathLike[str]", tolerance: Tolerance, *, equal_nan: bool = False
) -> Table:
    """Compare two files of state_dicts by name; names of one file only have a row of their own.

    Raises
    ------
    UnsupportedError
        Without torch, which reads such files; names the extra.
    UnreadableError
        For a file that is not a dict of tensors. Files are read with ``weights_only=True``: nothing in them is run.
    """
    one, other = _load(Path(origin)), _load(Path(target))
    rows = [_row(name, one[name], other.get(name), tolerance, equal_nan) for name in one]
    rows += [Row((None, name, None, str(other[name].shape), *_ALONE)) for name in other if name not in one]
    return Table(title="The parameters of the two networks", header=_HEADER, rows=tuple(rows))


_ALONE = ("False", "0.00%", "nan", "nan, nan")


def _row(name: str, one: Any, other: Any, tolerance: Tolerance, equal_nan: bool) -> Row:
    """Return the row of a parameter."""
    if other is None:
        return Row((name, None, str(one.shape), None, *_ALONE))
    found = compare_arrays(one, other, tolerance, equal_nan=equal_nan)
    cells = (
        (
            str(found.outcome.agrees),
            percent(found.ratio),
            truncated(found.cosine),
            f"{truncated(found.mean)}, {truncated(found.max)}",
        )
        if found.same_shape
        else ("Shape is inconsistent",) * 4
    )
    return Row(
        (name, name, str(one.shape), str(other.shape), *cells), frozenset() if found.outcome.agrees else frozenset({4})
    )


def _load(path: Path) -> dict[str, Any]:
    """Load arrays by name."""
    try:
        import torch
    except ImportError:
        raise UnsupportedError(
            "files of state_dicts are read by torch, which is not installed: pip install 'dumpsim[torch]'",
            where=os.fspath(path),
            code="DS-API-011",
        ) from None
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise UnreadableError(f"is not a file of a state_dict: {error}"[:400], where=os.fspath(path)) from error
    if not isinstance(loaded, dict):
        raise UnreadableError("is not a dict of tensors", where=os.fspath(path))
    # what modules add by get_extra_state need be no tensor, and is not compared
    found = {str(name): _array(torch, value) for name, value in loaded.items() if isinstance(value, torch.Tensor)}
    if loaded and not found:
        raise UnreadableError("is not a dict of tensors", where=os.fspath(path))
    return found


def _array(torch: Any, tensor: Any) -> Any:
    """Convert to numpy; bfloat16 and float8 become float32."""
    tensor = tensor.detach()
    if tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float32, torch.float64):
        tensor = tensor.to(torch.float32)
    return tensor.numpy()
