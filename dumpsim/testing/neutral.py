"""A dump tree with placeholders for paths of this machine, so that it can be stored and compared anywhere."""

import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISREG

from dumpsim.core.errors import BadInputError
from dumpsim.core.partname import is_ours
from dumpsim.core.regular import open_regular

__all__ = ["TEXT", "NeutralTree"]

TEXT = frozenset({".csv", ".dot", ".ir", ".json", ".log", ".pbtxt", ".txt", ".yaml"})


class NeutralTree:
    """The files of a directory; in text files and graphs ``<name>`` replaces each of the roots.

    Parameters
    ----------
    path : path
        The directory. Links in it are not followed.
    roots : mapping of str to str, optional
        Directories by name. If one contains another, the inner one is replaced first.
    ignore : sequence of str
        Globs on relative paths of files to leave out.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = Path(folder.name, "a.ir").write_text(f"In file {folder.name}/train.py:7")
    >>> NeutralTree(folder.name, {"tmp_path": folder.name}).data("a.ir")
    b'In file <tmp_path>/train.py:7'
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: "str | os.PathLike[str]",
        roots: Mapping[str, str] | None = None,
        *,
        ignore: Sequence[str] = (),
    ) -> None:
        self.path = Path(path)
        self._ignore = tuple(ignore)
        found: dict[str, str] = {}
        for name, root in (roots or {}).items():
            for spelled in (os.path.abspath(root), os.path.realpath(root)):
                found.setdefault(spelled, f"<{name}>")
        self._roots = sorted(found.items(), key=lambda item: -len(item[0]))

    def names(self) -> list[str]:
        """Return the sorted paths of the files, relative to the directory.

        Raises
        ------
        BadInputError
            For a link or another special file.
        """
        return sorted(name for name in self._walk() if not any(fnmatchcase(name, glob) for glob in self._ignore))

    def _walk(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.path):
            for name in [*files, *(one for one in folders if os.path.islink(os.path.join(folder, one)))]:
                full = os.path.join(folder, name)
                if is_ours(name):
                    continue
                if not S_ISREG(os.lstat(full).st_mode):
                    raise BadInputError("not a regular file", where=full, code="DS-TST-003")
                yield Path(full).relative_to(self.path).as_posix()

    def data(self, name: str) -> bytes:
        """The content of a file."""
        with open_regular(self.path / name, below=self.path) as file:
            data = file.read()
        if not self._roots:
            return data
        if Path(name).suffix in TEXT:
            return self._replaced(data)
        if Path(name).suffix == ".pb":
            return self._graph(data)
        return data

    def same(self, name: str, other: "NeutralTree", other_name: str) -> bool:
        """Whether two files have the same content."""
        return self.data(name) == other.data(other_name)

    def _replaced(self, data: bytes) -> bytes:
        for root, placeholder in self._roots:
            data = data.replace(os.fsencode(root), placeholder.encode())
        return data

    def _graph(self, data: bytes) -> bytes:
        """Return a graph file with placeholders; another file is returned unchanged."""
        from google.protobuf.message import DecodeError

        from dumpsim.codecs.irschema import messages

        model = messages()["ModelProto"]()
        try:
            model.ParseFromString(data)
            for node in model.graph.node:
                node.source_address = self._replaced(node.source_address.encode()).decode()
        except (DecodeError, UnicodeDecodeError, AttributeError):
            return data
        written: bytes = model.SerializeToString()
        return written
