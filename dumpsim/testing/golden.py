"""The fixture ``golden``: a dump compared with the tree that an earlier run of the test left."""

import errno
import hashlib
import itertools
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from dumpsim.core.errors import BadInputError
from dumpsim.testing.neutral import NeutralTree
from dumpsim.testing.treediff import Tolerance, tree_differences

__all__ = ["Golden", "place"]

_SHOWN = 20  # differences that a failure shows; the whole list is in a file
_LINES = 40  # of one unified diff
_LONGEST = 100  # characters of a directory's name
_COUNTER = itertools.count()


class Golden:
    """Compares dump trees with golden ones, or writes those under ``--update-golden``.

    Parameters
    ----------
    directory : Path
        Where the golden trees of this test are.
    update : bool
        Write instead of comparing.
    roots : mapping of str to str
        Directories of this machine, by the name that stands for them in golden trees.
    test : str
        The test's id, for messages.

    Notes
    -----
    In a golden tree ``<dump>``, ``<tmp_path>``, ``<rootdir>`` and ``<dumpsim>`` stand for the directories of the
    machine that wrote it, in text files and in graphs. Each test writes a directory of its own, as a whole, so tests
    may run in parallel; a golden tree that is up to date is not touched.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> dump = Path(folder.name, "dump")
    >>> dump.mkdir()
    >>> _ = (dump / "a.csv").write_text("x")
    >>> Golden(Path(folder.name, "golden"), update=True)(dump)
    >>> _ = (dump / "b.csv").write_text("y")
    >>> Golden(Path(folder.name, "golden")).differences(dump)
    ['b.csv: extra']
    >>> folder.cleanup()
    """

    def __init__(
        self, directory: Path, *, update: bool = False, roots: Mapping[str, str] | None = None, test: str = ""
    ) -> None:
        self.directory = directory
        self.update = update
        self._roots = dict(roots or {})
        self._test = test
        self._used: set[str] = set()

    def __repr__(self) -> str:
        found = sorted(path.name for path in self.directory.glob("*")) if self.directory.is_dir() else []
        state = f"trees: {', '.join(found)}" if found else "no tree yet"
        return f"<Golden {self.directory}: {state}{', update' if self.update else ''}>"

    def __call__(
        self,
        dump: "str | os.PathLike[str]",
        name: str = "dump",
        *,
        rtol: float = 0.0,
        atol: float = 0.0,
        stamps: bool = True,
        ignore: Sequence[str] = (),
    ) -> None:
        """Compare a dump with the golden tree, and fail the test with what differs.

        Parameters
        ----------
        dump : path
            The directory of the dump, such as the fixture ``dump_dir``.
        name : str
            Name of the golden tree, for a test that compares several.
        rtol, atol : float
            How much elements of npy and binary files and real statistics may differ; by default not at all. With a
            tolerance, digests are not compared.
        stamps : bool
            Whether time stamps in names and statistics count; False for a dump under the wall clock.
        ignore : sequence of str
            Globs on relative paths (``*/graphs/*``) of files that are neither compared nor written.

        Raises
        ------
        BadInputError
            For a dump that is empty or no directory, and for a name that the test has used before.
        """
        __tracebackhide__ = True
        import pytest

        self._claim(name)
        if self.update:
            self.write(dump, name, ignore=ignore)
            return
        found = self.differences(dump, name, rtol=rtol, atol=atol, stamps=stamps, ignore=ignore)
        if found:
            pytest.fail(self._message(found, name), pytrace=False)

    def differences(
        self,
        dump: "str | os.PathLike[str]",
        name: str = "dump",
        *,
        rtol: float = 0.0,
        atol: float = 0.0,
        stamps: bool = True,
        ignore: Sequence[str] = (),
    ) -> list[str]:
        """Return what differs, one text a difference."""
        tree, target = self._tree(dump, ignore), self.directory / _plain(name)
        if not target.is_dir():
            return [f"there is no golden tree {target}"]
        return tree_differences(
            tree, NeutralTree(target, ignore=ignore), Tolerance(rtol=rtol, atol=atol, stamps=stamps)
        )

    def write(self, dump: "str | os.PathLike[str]", name: str = "dump", *, ignore: Sequence[str] = ()) -> bool:
        """Make the golden tree this dump; return whether anything changed."""
        tree, target = self._tree(dump, ignore), self.directory / _plain(name)
        try:
            if target.is_dir() and not tree_differences(tree, NeutralTree(target, ignore=ignore), Tolerance()):
                return False
        except FileNotFoundError:
            pass  # another process is replacing it
        part = _beside(target)
        try:
            for path in tree.names():
                (part / path).parent.mkdir(parents=True, exist_ok=True)
                (part / path).write_bytes(tree.data(path))
            _swap(part, target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return True

    def _claim(self, name: str) -> None:
        if _plain(name) in self._used:
            raise BadInputError(
                f"the test has compared a tree {name!r} already",
                where="golden",
                allowed=("another name: golden(dump_dir, 'second')",),
                code="DS-TST-003",
            )
        self._used.add(_plain(name))

    def _tree(self, dump: "str | os.PathLike[str]", ignore: Sequence[str]) -> NeutralTree:
        """The dump without paths of this machine."""
        path = Path(os.fspath(dump))
        package = str(Path(__file__).resolve().parents[2])
        tree = NeutralTree(path, {"dump": str(path), **self._roots, "dumpsim": package}, ignore=ignore)
        if not path.is_dir():
            raise BadInputError("is not a directory: nothing was dumped", where=str(path), code="DS-TST-003")
        if not tree.names():
            raise BadInputError("holds no files: nothing was dumped", where=str(path), code="DS-TST-003")
        return tree

    def _message(self, found: Sequence[str], name: str) -> str:
        count = f"{len(found)} difference{'s' * (len(found) != 1)}"
        lines = [f"{count} from the golden tree {self.directory / _plain(name)} (golden -> dump):"]
        for text in found[:_SHOWN]:
            head, *rest = text.split("\n")
            lines.append(f"  {head}")
            lines += [f"    {line}" for line in rest[:_LINES]]
            if len(rest) > _LINES:
                lines.append(f"    and {len(rest) - _LINES} more lines")
        if len(found) > _SHOWN:
            lines.append(f"  and {len(found) - _SHOWN} more")
        lines.append(f"to make this dump the golden tree: pytest --update-golden {self._test!r}")
        return "\n".join(lines)


def place(directory: Path, file: Path, test: str) -> Path:
    """Where the golden trees of a test are.

    Examples
    --------
    >>> place(Path("golden"), Path("tests/test_net.py"), "tests/test_net.py::TestStep::test_loss[fp16]").as_posix()
    'golden/test_net/TestStep.test_loss[fp16]'
    """
    return directory / file.stem / _plain(test.partition("::")[2].replace("::", "."))


def _plain(name: str) -> str:
    """A name that every file system takes; a digest tells apart what would be equal."""
    plain = re.sub(r"[^A-Za-z0-9_.,=+\[\]-]+", "-", name).strip("-.")[:_LONGEST]
    if plain == name:
        return plain
    return f"{plain}-{hashlib.sha1(name.encode('utf-8', 'surrogatepass'), usedforsecurity=False).hexdigest()[:8]}"


def _beside(target: Path) -> Path:
    """A new directory beside the target, which no other process uses."""
    target.parent.mkdir(parents=True, exist_ok=True)
    path = target.with_name(f".{target.name}.{os.getpid()}-{next(_COUNTER)}")
    shutil.rmtree(path, ignore_errors=True)  # left by a process of that number that was killed
    path.mkdir()
    return path


def _swap(part: Path, target: Path) -> None:
    """Put a directory in the place of another one; another process may do the same."""
    while True:
        try:
            os.rename(part, target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return
        old = _beside(target)
        try:
            os.rename(target, old / "old")
        except FileNotFoundError:
            pass  # somebody else has taken it away
        finally:
            shutil.rmtree(old, ignore_errors=True)
