"""Let the CPU wheel of MindSpore 2.10 believe that it is one rank of an Ascend cluster.

The wheel has the whole parallel front end; only the back end is missing. Its device target becomes Ascend in memory,
and the manager of communication, a default one that answers 2048 ranks, answers the size and rank of the pretended
cluster. A compile ends after the front end's passes with "Create device context failed".
"""

import ctypes
from pathlib import Path
from typing import Any

_TARGET = b"Ascend"
_CONTEXT = "_ZN9mindspore9MsContext13inst_context_E"
_GET_PARAM = "_ZNK9mindspore9MsContext9get_paramISsEERKT_NS_10MsCtxParamE"
_MANAGER = "_ZN9mindspore11CommManager11GetInstanceEv"
_CREATE, _RANK, _SIZE = 5, 6, 7  # entries of the manager's table, two words of type information before the first
_ENTRIES = 16
_HEADER = 24  # of a string: length, capacity, number of owners


def pretend(size: int, rank: int) -> list[Any]:
    """Become rank `rank` of `size`; what is returned has to stay alive."""
    import mindspore
    import mindspore._c_expression as expression

    folder = Path(mindspore.__file__).parent / "lib"
    core, common = (ctypes.CDLL(str(folder / f"libmindspore_{name}.so")) for name in ("core", "common"))
    mindspore.get_context("device_target")
    get = core[_GET_PARAM]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]
    place = get(ctypes.c_void_p.in_dll(core, _CONTEXT).value, int(expression.ms_ctx_param.device_target))
    text = ctypes.cast(place, ctypes.POINTER(ctypes.c_void_p))
    assert ctypes.string_at(text[0]) == b"CPU"
    length = len(_TARGET).to_bytes(8, "little")
    name = ctypes.create_string_buffer(length * 2 + (1 << 20).to_bytes(8, "little") + _TARGET + b"\0")
    text[0] = ctypes.addressof(name) + _HEADER

    instance = common[_MANAGER]
    instance.restype = ctypes.c_void_p
    manager = ctypes.cast(instance(), ctypes.POINTER(ctypes.c_void_p))
    old = ctypes.cast(manager[0] - 16, ctypes.POINTER(ctypes.c_void_p))
    table = (ctypes.c_void_p * _ENTRIES)(*[old[at] for at in range(_ENTRIES)])
    kind = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint))

    def answering(value: int) -> Any:
        def answer(this: Any, group: Any, out: Any) -> bool:
            out[0] = value
            return True

        return kind(answer)

    calls = {_CREATE: kind(lambda this, group, out: True), _RANK: answering(rank), _SIZE: answering(size)}
    for at, call in calls.items():
        table[at] = ctypes.cast(call, ctypes.c_void_p)
    manager[0] = ctypes.addressof(table) + 16
    return [name, table, calls]
