"""Options of GE for the process, and the dump of each graph. [spec ge 1.3] [spec aten 9.10]

GE is initialised when the first graph of a process is compiled; its options cannot be changed afterwards. Each graph
that is dumped adds an entry to a JSON file, which ACL's dump reads.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dumpsim.analysis.wholefile import write_whole
from dumpsim.core.errors import DumpsimError, DumpWriteError, ScriptRuntimeError, ScriptValueError
from dumpsim.frontends.acl.dump import set_dump
from dumpsim.frontends.torchair.configs.dump_config import world
from dumpsim.modes.gesteps import check_ge_steps
from dumpsim.world.context import current

__all__ = ["MARK", "initialise", "load"]

MARK = "torchair_enable_data_dump"  # attribute of the nodes of a block `scope.data_dump()`
_JSON = "ge_dump_with_acl_config"
_PRECISION = MappingProxyType({"ge.exec.staticMemoryPolicy": "2", "ge.opSelectImplmode": "high_precision"})


@dataclass(slots=True)
class _Engine:
    """The state of GE in a process.

    Attributes
    ----------
    options : dict or None
        Options of the process; None before the first graph.
    root : dict or None
        The document of the options file; its path, mode and data are those of the first graph.
    warned : set of str
        Warnings that were printed.
    """

    options: dict[str, Any] | None = None
    root: dict[str, Any] | None = None
    warned: set[str] = field(default_factory=set)


def initialise(config: Any) -> dict[str, Any]:
    """Initialise GE for a graph that is about to be compiled; return its options.

    Parameters
    ----------
    config : CompilerConfig

    Raises
    ------
    ScriptValueError
        For options that differ from those of the process's first graph.
    ScriptRuntimeError
        For a JSON file of the dump that ACL rejects.
    DumpConfigError
        For steps that GE does not accept.
    """
    engine = current().get(_Engine)
    _, wanted = config.as_dict()
    wanted = {**wanted, **_PRECISION}
    if engine.options is None:
        if "ge.exec.dumpStep" in wanted:
            check_ge_steps(wanted["ge.exec.dumpStep"])
        engine.options = wanted
        if _JSON in wanted:
            _by_file(engine, wanted)
    for key, value in wanted.items():
        if engine.options.get(key) != value:
            raise ScriptValueError(
                f"{key} is {value!r}, but GE was initialised "
                + (f"with {engine.options[key]!r}" if key in engine.options else "without it"),
                where="CompilerConfig",
                allowed=("the options of the first graph of the process",),
                vendor=f"Unsupport twice initialtion with different options, new option key {key} value {value}, and "
                f"all recorded options are {engine.options}. Please check your compile config for torch.compile()",
                code="DS-TAR-003",
            )
    return {**engine.options, "ge.exec.deviceId": "0", "ge_run_with_torch_npu": "1"}


def _by_file(engine: _Engine, options: Mapping[str, Any]) -> None:
    """Start the dump of ``dump_config_path``; beside other options of a dump the file has no effect. [decisions]"""
    path = options[_JSON]
    if any(key.startswith(("ge.exec.enableDump", "aclgraph.enableDump")) for key in options):
        _warn_once(engine, f"dump_config_path {path} has no effect: other options of dump_config are set, too")
        return
    try:
        set_dump(path)
    except DumpsimError as error:
        raise ScriptRuntimeError(
            f"ACL rejects {path}: {error.explain()}",
            where="config.dump_config.dump_config_path",
            vendor=f"Fail in acl set dump, return 100009\n{error}",
            code="DS-TAR-004",
        ) from error


def load(
    config: Any, graph_name: str, nodes: Iterable[tuple[str, Mapping[str, Any]]] = (), *, keeps: bool = False
) -> Path | None:
    """Request the dump of a graph, just before GE loads it.

    Parameters
    ----------
    config : CompilerConfig
    graph_name : str
    nodes : iterable of (str, mapping)
        Type and attributes of each node of GE's graph.
    keeps : bool
        Whether the graph has an operator that would be folded without ``quant_dumpable``.

    Returns
    -------
    Path or None
        The options file; None if the graph is not dumped.
    """
    options, mode = config.dump_config, config.mode.value
    if not options.enable_dump or mode != "max-autotune":
        return None
    engine = current().get(_Engine)
    entry: dict[str, Any] = {"model_name": graph_name}
    named = [name for name in options.dump_layer.value.split(" ") if name]
    marked = [kind for kind, attrs in nodes if attrs.get(MARK) == "True"]
    layers = list(dict.fromkeys([*named, *marked]))
    if layers:
        entry["layer"] = layers
    if engine.root is None:
        engine.root = {
            "dump_path": options.full_path(),
            "dump_mode": options.dump_mode.value,
            "dump_data": options.dump_data.value,
            **({"dump_step": options.dump_step.value} if options.dump_step.value else {}),
            "quant_dumpable": options.quant_dumpable.value,
            "dump_list": [],
        }
    engine.root["dump_list"].append(entry)
    if options.quant_dumpable.value == "1" and not keeps:
        text = "no operator before a pair of npu_quantize and npu_anti_quant is in the graph"
        _warn_once(engine, f"quant_dumpable has no effect: {text}")
    size, rank = world()
    path = Path("ge_dump_data_json").absolute() / f"dump_options_worldsize{size}_rank{rank}_pid{os.getpid()}.json"
    _write(path, json.dumps({"dump": engine.root}, indent=4))
    try:
        set_dump(path, known=("quant_dumpable",))
    except DumpsimError as error:  # the real one only logs it
        _warn_once(engine, f"nothing is dumped: {error}")
    return path


def _write(path: Path, text: str) -> None:
    """Write the options file, which another process may be reading.

    Raises
    ------
    DumpWriteError
        If the file cannot be written.
    """
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise DumpWriteError(
            f"cannot be created: {error.strerror}", where=str(path.parent), code="DS-ARC-010"
        ) from error
    write_whole(str(path), [text.encode()], mode=0o644)


def _warn_once(engine: _Engine, text: str) -> None:
    """Print a warning once."""
    if text not in engine.warned:
        engine.warned.add(text)
        print(f"[WARNING] TORCHAIR({os.getpid()},python): {text}", file=sys.stderr, flush=True)
