"""``acl_dump_{device_id}.json``: the config that MindSpore passes to ACL. [spec mindspore 5.7]"""

import json
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

from dumpsim.archive.modeltree import ModelTree
from dumpsim.archive.sink import Sink
from dumpsim.modes.request import DumpRequest

__all__ = ["NO_TARGET", "AclJson", "contents"]

NO_TARGET = "NoSetDumpTarget"  # the layer for dump_mode 2 without set_dump [spec mindspore 2.3]
_MODES = MappingProxyType({(True, True): "all", (True, False): "input", (False, True): "output"})
_NEVER = "2147483647"  # a step that is never reached, so that nothing is dumped
_MODE = 0o400


class AclJson:
    """Writes the file of one device, at the start and in each dumped step.

    Parameters
    ----------
    tree : ModelTree
    request : DumpRequest
    sink : Sink
    """

    def __init__(self, tree: ModelTree, request: DumpRequest, sink: Sink) -> None:
        self._tree = tree
        self._request = request
        self._sink = sink

    def begin(self) -> None:
        """Write the file at the start of the process."""
        self._write(contents(self._request, self._tree.root, None))

    def step(self, number: int, layers: Iterable[str]) -> None:
        """Write the file of a step, after creating the step's directory."""
        if self._request.trigger != "failure":
            self._sink.make(self._tree.step(number))
        self._write(contents(self._request, self._tree.step(number), layers))

    def _write(self, found: dict[str, Any]) -> None:
        text = json.dumps({"dump": found}, separators=(",", ":"), sort_keys=True)  # sorted, as by the vendor's library
        self._sink.write(self._tree.root, self._tree.acl_json, [text.encode()], mode=_MODE)


def contents(request: DumpRequest, path: str, layers: "Iterable[str] | None") -> dict[str, Any]:
    """Return the object under ``dump``.

    Parameters
    ----------
    request : DumpRequest
    path : str
        ``dump_path``.
    layers : iterable of str or None
        Selected operators of a step; None at the start of the process.
    """
    if layers is not None and request.trigger == "failure":
        return {"dump_scene": "lite_exception"}
    if layers is not None and request.trigger == "overflow":
        return {"dump_path": path, "dump_debug": "on"}
    found: dict[str, Any] = {
        "dump_path": path,
        "dump_mode": _MODES[request.inputs, request.outputs],
        "dump_op_switch": "on",
        "dump_list": [],
    }
    if layers is None:
        found["dump_step"] = _NEVER
    elif not request.selection.everything:
        found["dump_list"] = [{"layer": list(layers) or [NO_TARGET]}]
    return found
