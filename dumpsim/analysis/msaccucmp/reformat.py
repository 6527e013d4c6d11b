"""Layouts of ``convert -f``: which pairs there are and what they do. [spec ge 4.3]"""

import importlib.util
import os
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.analysis.msaccucmp.dumpfile import RANKS, Tensor
from dumpsim.analysis.msaccucmp.journal import Journal
from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.codecs.dumpdata import FORMATS
from dumpsim.core.errors import FormatError
from dumpsim.tensor.layout import to_device, to_host

__all__ = ["PAIRS", "TARGETS", "check_target", "custom_converters", "reformat"]

Array = NDArray[Any]
Converter = Callable[[Sequence[int], Sequence[int], Array], Array]

_HIDDEN = {"FRACTAL_ZZ", "NC", "NCL", "FRACTAL_Z_WINO", "C1HWC0"}
_SPELLED = {f"HASHTABLE_{name}": name for name in ("LOOKUP_KEYS", "LOOKUP_VALUE", "LOOKUP_OUTPUT", "LOOKUP_HITS")}
_SPELLED |= {"HASHTABLE_LOOKUP_LOOKUPS": "LOOKUP_LOOKUPS"}
_SPELLED |= {"FRACTAL_DECONV_SP_STRIDE8_TRANS": "DECONV_SP_STRIDE8_TRANS"}
TARGETS = frozenset(_SPELLED.get(name, name) for name in FORMATS.values() if name not in _HIDDEN)

# (from, to) -> the way; groups of FRACTAL_Z are those of the tensor
PAIRS: MappingProxyType[tuple[str, str], str] = MappingProxyType(
    {
        ("NCHW", "NHWC"): "permute",
        ("NHWC", "NCHW"): "permute",
        ("NHWC", "HWCN"): "permute",
        ("HWCN", "NCHW"): "permute",
        ("HWCN", "NHWC"): "permute",
        ("NC1HWC0", "NCHW"): "unblock",
        ("NC1HWC0", "NHWC"): "unblock",
        ("NC1HWC0", "HWCN"): "unblock",
        ("NDC1HWC0", "NCDHW"): "unblock",
        ("NDC1HWC0", "ND"): "unblock",
        ("FRACTAL_Z", "NCHW"): "fractal_z",
        ("FRACTAL_Z", "HWCN"): "fractal_z",
        ("FRACTAL_NZ", "ND"): "fractal_nz",
        ("FRACTAL_NZ", "NCHW"): "fractal_nz",
        ("FRACTAL_NZ", "NHWC"): "fractal_nz",
        ("NCHW", "FRACTAL_Z"): "to_fractal_z",
        ("NHWC", "FRACTAL_Z"): "to_fractal_z",
        ("HWCN", "FRACTAL_Z"): "to_fractal_z",
    }
)


def check_target(name: str) -> str:
    """A layout that -f takes.

    Raises
    ------
    ToolError
        Exit code 6.
    """
    if name not in TARGETS:
        raise ToolError(Status.INVALID_PARAM, f'The format "{name}" is not supported. Please check the format.')
    return name


def custom_converters(directory: str, journal: Journal) -> dict[tuple[str, str], Converter]:
    """The user's own: ``format_convert/convert_{A}_to_{B}.py`` with ``convert(shape_from, shape_to, array)``.

    This runs the user's files; nothing but the option -c leads here.
    """
    found: dict[tuple[str, str], Converter] = {}
    folder = os.path.join(directory, "format_convert")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        stem, suffix = os.path.splitext(name)
        source, _, target = stem.removeprefix("convert_").partition("_to_")
        if suffix != ".py" or not stem.startswith("convert_") or not target:
            continue
        function = load_function(os.path.join(folder, name), stem, "convert")
        found[source, target] = function
        journal.info(f"The converter from {source} to {target} is that of {os.path.join(folder, name)}.")
    return found


def load_function(path: str, stem: str, function: str) -> Any:
    """A function of a user's file.

    Raises
    ------
    ToolError
        Exit code 26 where the file does not run or has no such function.
    """
    spec = importlib.util.spec_from_file_location(stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ToolError(Status.INVALID_CONVERT_FUNCTION, f"Failed to load '{path}'. {error}") from error
    if not callable(getattr(module, function, None)):
        raise ToolError(Status.INVALID_CONVERT_FUNCTION, f"There is no function '{function}' in '{path}'.")
    return getattr(module, function)


def reformat(
    tensor: Tensor,
    target: str,
    journal: Journal,
    *,
    shape: Sequence[int] = (),
    custom: "dict[tuple[str, str], Converter] | None" = None,
) -> Array:
    """A tensor in another layout, cut to its shape on the host.

    Raises
    ------
    ToolError
        Exit code 6 for FRACTAL_NZ without or with a wrong shape, 22 for a pair that is not there, 26 where the
        conversion fails.
    """
    array = tensor.array()
    source = tensor.real_format
    if source != tensor.format:
        journal.warning(
            f"The format({tensor.format}) of the dump data is {RANKS[tensor.format]} dimensions, but the shape "
            f"{tensor.shape} does not have them: {tensor.label} is taken as ND."
        )
    wanted = tensor.original_shape
    if 0 in tensor.shape and source != target:
        return _empty(tensor, array)
    if source == "FRACTAL_NZ" and source != target:
        wanted = tuple(wanted or shape)
        _check_nz(tensor, wanted)
    journal.info(f"Before transferring the format, the data of {tensor.label} is {source}{_text(array.shape)}.")
    if source == target:
        return array if tensor.shape else array.reshape(())  # a scalar has one dimension only when it is parsed
    own = (custom or {}).get((source, target))
    way = PAIRS.get((source, target))
    if own is None and way is None:
        journal.warning(f"Not supported from {source} to {target}.")
        raise ToolError(Status.INVALID_FORMAT, f"Not supported from {source} to {target}.")
    try:
        if own is not None:
            made = np.asarray(own(list(tensor.shape), list(wanted), array.reshape(-1)))
        else:
            assert way is not None
            made = _WAYS[way](array, tensor, source, target, wanted)
    except ToolError:
        raise
    except FormatError as error:
        what = f"Failed to convert {tensor.label} from {source} to {target}. {error}"
        raise ToolError(Status.INVALID_CONVERT_FUNCTION, what) from error
    except Exception as error:
        if own is None:
            raise
        what = f"Failed to execute 'convert' in 'convert_{source}_to_{target}'. {error}"
        raise ToolError(Status.INVALID_CONVERT_FUNCTION, what) from error
    journal.info(f"After transferring the format, the data of {tensor.label} is {target}{_text(made.shape)}.")
    return made if own is None else _slice(made, wanted, tensor, journal)  # our own ways need no cut


def _empty(tensor: Tensor, array: Array) -> Array:
    """No element has a place to go to; the shape is all that changes."""
    if 0 in tensor.original_shape:
        return np.empty(tensor.original_shape, array.dtype)
    what = f"{tensor.label} has no elements on the device, and {_text(tensor.original_shape)} of them on the host."
    raise ToolError(Status.SHAPE_CONVERT, what)


def _text(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _slice(array: Array, wanted: Sequence[int], tensor: Tensor, journal: Journal) -> Array:
    """The part of the original shape; the whole where it does not fit. The original shape has the target's order."""
    if not wanted:
        return array
    if len(wanted) != array.ndim or any(w > n for w, n in zip(wanted, array.shape, strict=True)):
        journal.warning(
            f"The data of {tensor.label} stays {_text(array.shape)}: its original shape {_text(tuple(wanted))} has "
            "another order or rank."
        )
        return array
    cut = array[tuple(slice(n) for n in wanted)]
    journal.info(f"The data of {tensor.label} has been sliced from {_text(array.shape)} to {_text(cut.shape)}.")
    return cut


def _check_nz(tensor: Tensor, wanted: Sequence[int]) -> None:
    """FRACTAL_NZ does not tell where its padding begins, so a shape that fits is needed."""
    if not wanted:
        raise ToolError(Status.INVALID_PARAM, "The format before transfer is FRACTAL_NZ. Please enter a valid shape.")
    if len(tensor.shape) < 4:
        raise ToolError(
            Status.INVALID_FRACTAL_NZ, f"{tensor.label} has the shape {_text(tensor.shape)}, not one of FRACTAL_NZ."
        )
    *lead, n1, m1, m0, n0 = tensor.shape
    padded = (*lead, m1 * m0, n1 * n0)
    matrix = tuple(wanted) if len(wanted) > 1 else (1, *wanted)
    fits = len(matrix) == len(padded) and matrix[:-2] == tuple(lead)
    fits = fits and -(-matrix[-2] // m0) == m1 and -(-matrix[-1] // n0) == n1
    if not fits:
        raise ToolError(
            Status.INVALID_PARAM,
            f"The target shape {_text(tuple(wanted))} is invalid. The recommended shape is {_text(padded)}.",
        )


def _permute(array: Array, tensor: Tensor, source: str, target: str, wanted: Sequence[int]) -> Array:
    return np.ascontiguousarray(array.transpose([source.index(axis) for axis in target]))


def _unblock(array: Array, tensor: Tensor, source: str, target: str, wanted: Sequence[int]) -> Array:
    """Straight to the original shape, in the target's order or the usual one, else with the padding."""
    order = "NCDHW" if source == "NDC1HWC0" else target
    extents = dict(zip(source.replace("C1", "c").replace("C0", "k"), tensor.shape, strict=True))
    block = extents["k"]
    extents["C"] = extents["c"] * block
    shape = tuple(extents[axis] for axis in order)
    for told in (order, "NCHW") if len(wanted) == len(order) else ():
        host = dict(zip(told, wanted, strict=True))
        if all(
            _up(host[axis], block) == extents[axis] if axis == "C" else host[axis] == extents[axis] for axis in host
        ):
            shape = tuple(host[axis] for axis in order)
            break
    return to_host(array, source, shape, host_format=order, c0=block, dialect="ge")


def _up(extent: int, block: int) -> int:
    return -(-extent // block) * block


def _fractal_z(array: Array, tensor: Tensor, source: str, target: str, wanted: Sequence[int]) -> Array:
    if len(wanted) != 4:
        raise ToolError(
            Status.INVALID_CONVERT_FUNCTION,
            f"Failed to convert {tensor.label}: FRACTAL_Z needs an original shape of four dimensions, "
            f"got {_text(tuple(wanted))}.",
        )
    return to_host(array, source, wanted, host_format=target, c0=tensor.shape[-1], groups=tensor.groups, dialect="ge")


def _fractal_nz(array: Array, tensor: Tensor, source: str, target: str, wanted: Sequence[int]) -> Array:
    return to_host(array, source, wanted, c0=tensor.shape[-1], dialect="ge")


def _to_fractal_z(array: Array, tensor: Tensor, source: str, target: str, wanted: Sequence[int]) -> Array:
    return to_device(array, target, host_format=source, groups=tensor.groups, dialect="ge")


_WAYS = {
    "permute": _permute,
    "unblock": _unblock,
    "fractal_z": _fractal_z,
    "fractal_nz": _fractal_nz,
    "to_fractal_z": _to_fractal_z,
}
