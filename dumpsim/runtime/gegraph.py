"""Graphs of models as files, controlled by ``DUMP_GE_GRAPH``, ``DUMP_GRAPH_LEVEL`` and ``DUMP_GRAPH_PATH``.

A stage has two files, ``ge_proto_00000000_graph_1_PreRunBegin.txt`` and ``ge_onnx_00000000_graph_1_PreRunBegin.pbtxt``;
the first number counts the stages of the process, the second is the graph's. [seed 001; spec ge 1.5]
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dumpsim.graph.ge.text import LEVELS, MODES, onnx
from dumpsim.graph.program import KernelGraph
from dumpsim.runtime.graphfile import write_text

__all__ = ["GeGraphs"]

_FILE_MODE = 0o600


@dataclass(slots=True, kw_only=True)
class GeGraphs:
    """Writes text graphs, numbered throughout the process.

    Attributes
    ----------
    mode : str
        One of `dumpsim.graph.ge.text.MODES`; "" writes nothing.
    level : str
        One of `dumpsim.graph.ge.text.LEVELS`.
    directory : Path
    """

    mode: str = ""
    level: str = "2"
    directory: Path = Path()
    _count: int = 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "GeGraphs":
        """Return the writer that the environment asks for; an invalid value is reported on stderr and ignored.

        Examples
        --------
        >>> GeGraphs.from_environment({"DUMP_GE_GRAPH": "2", "DUMP_GRAPH_PATH": "/tmp/graphs"}).directory.name
        'graphs'
        """
        mode = _checked(environment, "DUMP_GE_GRAPH", MODES, "")
        level = _checked(environment, "DUMP_GRAPH_LEVEL", LEVELS, "2")
        return cls(mode=mode, level=level, directory=Path(environment.get("DUMP_GRAPH_PATH") or "."))

    def save(self, graphs: Iterable[KernelGraph]) -> list[Path]:
        """Write the stages of kernel graphs, and return the files.

        Raises
        ------
        DumpWriteError
            If the directory cannot be written.
        """
        written: list[Path] = []
        for graph in graphs:
            for stage, text in graph.stages:
                stem = f"{self._count:08d}_graph_{graph.graph_id}_{stage}"
                self._count += 1
                for name, content in ((f"ge_proto_{stem}.txt", text), (f"ge_onnx_{stem}.pbtxt", onnx(text))):
                    path = self.directory / name
                    write_text(path, content, _FILE_MODE)
                    written.append(path)
        return written


def _checked(environment: Mapping[str, str], name: str, allowed: tuple[str, ...], default: str) -> str:
    value = environment.get(name, "")
    if value in ("", *allowed):
        return value or default
    used = "nothing is written" if not default else f"{default} is used"
    print(f"dumpsim: {name}: invalid value {value!r} (allowed: {', '.join(allowed)}); {used}", file=sys.stderr)
    return default
