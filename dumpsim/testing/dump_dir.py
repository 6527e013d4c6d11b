"""The dump root of a test, and the config that points to it."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dumpsim.core.partname import is_ours

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
        The dump root; it is created with the first file.
    set_variable : callable
        ``set_variable(name, value)`` sets an environment variable for the test.
    release : str
        The release whose fields and values `configure` accepts.
    why_nothing : callable
        Why the current session has dumped nothing, "" where that is unknown.

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
    >>> dump.configure(saved_dat="full")
    Traceback (most recent call last):
    dumpsim.core.errors.DumpConfigError: dump_dir.configure(saved_dat=...): unknown field of a dump config (did you \
mean 'saved_data'?) [DS-TST-002]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: Path,
        set_variable: Callable[[str, str], None],
        *,
        release: str = "seed",
        why_nothing: Callable[[], str] = str,
    ) -> None:
        self.path = path
        self._why_nothing = why_nothing
        self._set_variable = set_variable
        self._release = release
        self._config: Path | None = None

    def __fspath__(self) -> str:
        return str(self.path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __repr__(self) -> str:
        config = "no config" if self._config is None else f"config {self._config.name}"
        found = self.files() if self.path.is_dir() else []
        reason = self.why_empty()
        return f"<DumpDir {self.path}: {len(found)} files, {config}{'; ' if reason else ''}{reason}>"

    def why_empty(self) -> str:
        """Return why there are no tensors, if that is known; "" for a dump with tensors."""
        if self._config is not None:
            return self._why_nothing()
        return "" if self.files() else "nothing was dumped: the test did not call dump_dir.configure()"

    def configure(self, *, e2e: Mapping[str, Any] | None = None, check: bool = True, **common: Any) -> Path:
        """Write a dump config and set MINDSPORE_DUMP_CONFIG to its path.

        Parameters
        ----------
        e2e : mapping, optional
            Fields of ``e2e_dump_settings`` besides ``enable`` and ``trans_flag``.
        check : bool
            Refuse fields that do not exist, and values that no device of the release accepts. False for tests of wrong
            configs: then the run raises what the real system raises.
        **common
            Fields of ``common_dump_settings``; by default everything is dumped as tensors.

        Returns
        -------
        Path
            ``data_dump.json`` beside the dump root.

        Raises
        ------
        DumpConfigError
            For a wrong field or value; the message names the argument and the nearest allowed one.
        """
        __tracebackhide__ = True
        content = {
            "common_dump_settings": {**_COMMON, "path": str(self.path), **common},
            "e2e_dump_settings": {**_E2E, **(e2e or {})},
        }
        if check:
            given = {"common_dump_settings": common, "e2e_dump_settings": dict(e2e or {})}
            _check(content, given, self._release)
        self._config = path = self.path.parent / "data_dump.json"
        part = path.with_name(f".{path.name}.{os.getpid()}")  # other ranks may read it
        part.write_text(json.dumps(content, indent=2), encoding="utf-8")
        os.replace(part, path)
        self._set_variable("MINDSPORE_DUMP_CONFIG", str(path))
        return path

    def files(self, pattern: str = "*") -> list[str]:
        """Return the matching files below the root, as sorted paths relative to it."""
        found = (path for path in self.path.rglob(pattern) if path.is_file() and not is_ours(path.name))
        return sorted(path.relative_to(self.path).as_posix() for path in found)


def _check(content: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]], release: str) -> None:
    """Refuse a given field that exists in no dialect, or whose value is an error in every mode of the release."""
    __tracebackhide__ = True
    from dumpsim.core.errors import DumpConfigError, nearest
    from dumpsim.modes.configfile import check_all, fields_of
    from dumpsim.modes.profile import find, names

    prefix = {"common_dump_settings": "", "e2e_dump_settings": "e2e: "}
    for section, values in given.items():
        known = fields_of(section)
        for name in values:
            if name not in known:
                raise DumpConfigError(
                    "unknown field of a dump config",
                    where=f"dump_dir.configure({prefix[section]}{name}=...)",
                    nearest=nearest(name, known),
                    code="DS-TST-002",
                )
    try:
        text = json.dumps(content).encode()
    except TypeError as error:
        raise DumpConfigError(f"not JSON: {error}", where="dump_dir.configure", code="DS-TST-002") from None
    modes = [profile.partition("/")[2] for profile in names() if profile.startswith(f"{release}/")]
    found = [check_all(text, {}, find(release, mode)) for mode in modes]
    for section, values in given.items():
        for name in values:
            where = f"$.{section}.{name}"
            errors = [[one for one in findings if one.level == "error" and one.where == where] for findings in found]
            if all(errors):
                (first, *_), *_ = errors
                raise DumpConfigError(
                    first.what,
                    where=f"dump_dir.configure({prefix[section]}{name}=...)",
                    allowed=first.allowed,
                    nearest=first.nearest,
                    code=first.code,
                )
