"""A dump root of one test, and the config that points to it."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["DumpDir"]

_COMMON = {
    "op_debug_mode": 0,
    "dump_mode": 0,
    "net_name": "Net",
    "iteration": "all",
    "saved_data": "tensor",
    "input_output": 0,
    "kernels": [],
    "support_device": [0, 1, 2, 3, 4, 5, 6, 7],
}
_E2E = {"enable": True, "trans_flag": True}


class DumpDir(os.PathLike[str]):
    """A directory for dumps; `os.fspath` and ``/`` work as on a Path.

    Parameters
    ----------
    path : Path
        The dump root, made on the first write.
    set_variable : callable
        ``set_variable(name, value)`` sets an environment variable for the test.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> variables = {}
    >>> dump = DumpDir(Path(folder.name, "dump"), variables.__setitem__)
    >>> config = dump.configure(saved_data="statistic", e2e={"stat_calc_mode": "host"})
    >>> json.loads(config.read_text())["e2e_dump_settings"]
    {'enable': True, 'trans_flag': True, 'stat_calc_mode': 'host'}
    >>> list(variables)
    ['MINDSPORE_DUMP_CONFIG']
    >>> dump.files()
    []
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, set_variable: Callable[[str, str], None]) -> None:
        self.path = path
        self._set_variable = set_variable

    def __fspath__(self) -> str:
        return str(self.path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __repr__(self) -> str:
        return f"DumpDir({str(self.path)!r})"

    def configure(self, *, e2e: Mapping[str, Any] | None = None, **common: Any) -> Path:
        """Write a dump config and let MINDSPORE_DUMP_CONFIG point to it.

        Parameters
        ----------
        e2e : mapping, optional
            Fields of ``e2e_dump_settings`` besides ``enable`` and ``trans_flag``.
        **common
            Fields of ``common_dump_settings``; by default everything is dumped as tensors.

        Returns
        -------
        Path
            ``data_dump.json`` beside the dump root.
        """
        content = {
            "common_dump_settings": {**_COMMON, "path": str(self.path), **common},
            "e2e_dump_settings": {**_E2E, **(e2e or {})},
        }
        path = self.path.parent / "data_dump.json"
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")
        self._set_variable("MINDSPORE_DUMP_CONFIG", str(path))
        return path

    def files(self, pattern: str = "*") -> list[str]:
        """Paths of the files below the root that match, relative to it, sorted."""
        return sorted(p.relative_to(self.path).as_posix() for p in self.path.rglob(pattern) if p.is_file())
