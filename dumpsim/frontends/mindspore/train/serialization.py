"""Checkpoints in MindSpore's format.

A checkpoint is a protobuf message of repeated ``Value {tag = 1; tensor = 2}`` with
``TensorProto {dims = 1 (int64, not packed); tensor_type = 2; tensor_content = 3}``.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dumpsim.archive.part import create
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnreadableError, UnsupportedError
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["load_checkpoint", "load_param_into_net", "save_checkpoint"]

_VARINT, _BYTES = 0, 2


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(payload)) + payload


def _encoded(name: str, array: "np.ndarray[Any, Any]", title: str) -> bytes:
    tensor = b"".join(_varint(1 << 3 | _VARINT) + _varint(dim) for dim in array.shape)
    tensor += _field(2, title.encode()) + _field(3, np.ascontiguousarray(array).tobytes())
    return _field(1, _field(1, name.encode()) + _field(2, tensor))


def _read_varint(data: memoryview, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if offset >= len(data) or shift > 63:
            raise UnreadableError(f"a number does not end at byte {offset}", where="checkpoint")
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield number and value of every field."""
    offset = 0
    while offset < len(data):
        key, offset = _read_varint(data, offset)
        if key & 7 == _VARINT:
            value, offset = _read_varint(data, offset)
            yield key >> 3, value
        elif key & 7 == _BYTES:
            length, offset = _read_varint(data, offset)
            if length > len(data) - offset:
                raise UnreadableError(f"a field of {length} bytes at byte {offset} is truncated", where="checkpoint")
            yield key >> 3, data[offset : offset + length]
            offset += length
        else:
            raise UnreadableError(f"unknown wire type {key & 7} at byte {offset}", where="checkpoint")


def _decoded(data: bytes) -> Iterator[tuple[str, "np.ndarray[Any, Any]"]]:
    for number, value in _fields(memoryview(data)):
        if number != 1:
            continue
        name, dims, title, content = "", [], "", b""
        for inner, part in _fields(value):
            if inner == 1:
                name = bytes(part).decode()
            elif inner == 2:
                for leaf, item in _fields(part):
                    if leaf == 1:
                        dims.append(item)
                    elif leaf == 2:
                        title = bytes(item).decode()
                    elif leaf == 3:
                        content += bytes(item)
        kind = dtype(title).numpy
        shape = () if dims == [0] else tuple(dims)
        if len(content) != int(np.prod(shape, dtype=np.int64)) * kind.itemsize:
            raise UnreadableError(f"{len(content)} bytes do not match the shape {shape}", where=f"checkpoint: {name}")
        yield name, np.frombuffer(content, kind).reshape(shape)


def _named(save_obj: Any) -> list[tuple[str, Any]]:
    if isinstance(save_obj, Cell):
        return [(parameter.name, parameter) for parameter in save_obj.get_parameters()]
    if isinstance(save_obj, dict):
        return list(save_obj.items())
    if isinstance(save_obj, list):
        return [(row["name"], row["data"]) for row in save_obj]
    raise ScriptTypeError(
        f"For 'save_checkpoint', the parameter 'save_obj' must be nn.Cell, list or dict, but got {type(save_obj)}."
    )


def save_checkpoint(save_obj: Any, ckpt_file_name: str, **options: Any) -> None:
    """Write parameters to a file.

    Parameters
    ----------
    save_obj : Cell, dict of Parameter, or list of dict with name and data
    ckpt_file_name : str
        ``.ckpt`` is added if it is missing.

    Raises
    ------
    ScriptTypeError
        For another object or a name that is not a string.
    UnsupportedError
        For encryption, asynchronous writing and other formats.
    """
    if not isinstance(ckpt_file_name, str):
        raise ScriptTypeError(
            f"For 'save_checkpoint', the parameter {ckpt_file_name} for checkpoint file name is invalid,"
            f"'ckpt_file_name' must be string, but got {type(ckpt_file_name)}."
        )
    asked = {name: value for name, value in options.items() if value not in (None, False, True, "AES-GCM", "ckpt")}
    if asked or options.get("async_save"):
        raise UnsupportedError(f"the settings {sorted(options)} are not emulated", where="save_checkpoint")
    path = Path(ckpt_file_name if ckpt_file_name.endswith(".ckpt") else f"{ckpt_file_name}.ckpt")
    whole = b"".join(_encoded(name, tensor.asnumpy(), tensor._dtype.title) for name, tensor in _named(save_obj))
    descriptor, part = create(str(path.parent), 0o400)
    try:
        with open(descriptor, "wb") as file:
            file.write(whole)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def load_checkpoint(
    ckpt_file_name: str, net: Cell | None = None, strict_load: bool = False, filter_prefix: Any = None, **options: Any
) -> dict[str, Parameter]:
    """Read parameters from a file, and load them into a network if one is given.

    Raises
    ------
    ScriptValueError
        For a file that does not exist or has another suffix.
    UnreadableError
        For a file that is not a checkpoint.
    """
    if not isinstance(ckpt_file_name, str):
        raise ScriptTypeError(
            f"For 'load_checkpoint', the argument 'ckpt_file_name' must be string, but got {type(ckpt_file_name)}."
        )
    path = Path(ckpt_file_name)
    if path.suffix != ".ckpt":
        raise ScriptValueError(
            "For 'load_checkpoint', the checkpoint file format must same with 'format', but got "
            f"file_name:'{ckpt_file_name}', format:'ckpt'"
        )
    if not path.is_file():
        raise ScriptValueError(
            f"For 'load_checkpoint', the checkpoint file: {path.absolute()} does not exist, please check whether the "
            "'ckpt_file_name' is correct."
        )
    prefixes = (filter_prefix,) if isinstance(filter_prefix, str) else tuple(filter_prefix or ())
    loaded = {
        name: Parameter(Tensor(array), name=name)
        for name, array in _decoded(path.read_bytes())
        if not name.startswith(prefixes or ("\0",))
    }
    if net is not None:
        load_param_into_net(net, loaded, strict_load)
    return loaded


def load_param_into_net(
    net: Cell, parameter_dict: dict[str, Parameter], strict_load: bool = False
) -> tuple[list[str], list[str]]:
    """Set the parameters of a network to the values with the same names.

    Returns
    -------
    names of the network's parameters without a value, and names of the values without a parameter

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For a network that is not a Cell, for values that are not Parameters, and for different shapes or types.
    """
    if not isinstance(net, Cell):
        raise ScriptTypeError(f"For 'load_param_into_net', the argument 'net' should be a Cell, but got {type(net)}.")
    if not isinstance(parameter_dict, dict):
        raise ScriptTypeError(
            "For 'load_param_into_net', the argument 'parameter_dict' should be a dict, but got "
            f"{type(parameter_dict)}."
        )
    missing = []
    used = set()
    for parameter in net.get_parameters():
        found = parameter_dict.get(parameter.name)
        if found is None:
            missing.append(parameter.name)
            continue
        if not isinstance(found, Parameter):
            raise ScriptTypeError(
                "For 'parameter_dict', the element in the argument 'parameter_dict' should be a 'str' and "
                f"'Parameter' , but got {str} and {type(found)}."
            )
        convertible = not strict_load and {found.dtype.kind, parameter.dtype.kind} in ({"float"}, {"int"})
        if found.shape == parameter.shape and found.dtype != parameter.dtype and not convertible:
            raise ScriptRuntimeError(
                f"For 'load_param_into_net', {parameter.name} in the argument 'net' should have the same type as "
                f"{parameter.name} in the argument 'parameter_dict'. but got its type {parameter.dtype} in the "
                f"argument 'net' and type {found.dtype} in the argument 'parameter_dict'.May you need to check "
                "whether the checkpoint you loaded is correct."
            )
        if found.shape != parameter.shape:
            raise ScriptRuntimeError(
                f"For 'load_param_into_net', {parameter.name} in the argument 'net' should have the same shape "
                f"as {parameter.name} in the argument 'parameter_dict'. But got its shape {parameter.shape} in the "
                f"argument 'net' and shape {found.shape} in the argument 'parameter_dict'."
                "May you need to check whether the checkpoint you loaded is correct or the batch size and so on in the "
                "'net' and 'parameter_dict' are same."
            )
        parameter.set_data(found)
        used.add(parameter.name)
    if missing:
        logger.warning(f"For 'load_param_into_net', {len(missing)} parameters in the 'net' are not loaded: {missing}")
    return missing, [name for name in parameter_dict if name not in used]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train.serialization", name)
