"""The fixture ``golden``: compares a dump with the tree that an earlier run of the test wrote."""

import errno
import hashlib
import itertools
import numbers
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dumpsim.archive.naming import is_dump_file
from dumpsim.core.errors import BadInputError
from dumpsim.testing.dump_dir import DumpDir
from dumpsim.testing.neutral import NeutralTree
from dumpsim.testing.treediff import Tolerance, tree_differences

if TYPE_CHECKING:
    from dumpsim.testing.rankworld import RankWorld

__all__ = ["Golden", "place"]

_SHOWN = 20  # differences to show
_LINES = 40  # lines to show of a unified diff
_LONGEST = 100  # longest name of a directory
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
        Directories of this machine, by their placeholders in golden trees.
    test : str
        The test's id, for messages.
    world : RankWorld, optional
        The ranks of the test.

    Notes
    -----
    In the text files and graphs of a golden tree, ``<dump>``, ``<tmp_path>``, ``<rootdir>`` and ``<dumpsim>`` replace
    the directories of the machine that wrote it. Each test replaces a directory of its own atomically, so tests may
    run in parallel; a golden tree that is up to date is not rewritten.

    In a test on ranks, a call waits until every other rank has made it or has ended. Ranks that pass the same
    directory, such as ``dump_dir`` with its ``rank_N``, compare one tree: the lowest rank does it for all. Ranks that
    pass directories of their own compare them with ``rank_N`` of the golden tree.

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
        self,
        directory: Path,
        *,
        update: bool = False,
        roots: Mapping[str, str] | None = None,
        test: str = "",
        world: "RankWorld | None" = None,
    ) -> None:
        self.directory = directory
        self.update = update
        self._roots = dict(roots or {})
        self._test = test
        self._world = world
        self._used: set[tuple[int, str]] = set()  # rank and name

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
        """Compare a dump with the golden tree, and fail the test if they differ.

        Parameters
        ----------
        dump : path
            The directory of the dump, such as the fixture ``dump_dir``.
        name : str
            Name of the golden tree, for a test that compares several.
        rtol, atol : float
            Tolerances for elements of npy and binary files and for statistics that are real numbers; 0 by default.
            With a tolerance, digests are not compared.
        stamps : bool
            Compare time stamps in names and statistics; False for a dump under the wall clock.
        ignore : sequence of str
            Globs on relative paths (``*/graphs/*``) of files that are neither compared nor written.

        Raises
        ------
        BadInputError
            For an empty dump, a path that is not a directory, and a name that the test has used before.
        """
        __tracebackhide__ = True

        target = self.directory / _plain(name)
        _check(rtol, atol, ignore)
        compare = {"rtol": rtol, "atol": atol, "stamps": stamps}
        world = self._world
        if world is None or world.members is None:
            self._claim(name, 0)
            self._compare(dump, target, compare, ignore)
            return
        self._claim(name, world.rank)
        part, first = _share(world, dump, name)
        if first == world.rank:
            self._compare(dump, target / part if part else target, compare, ignore)
        world.meet("the end of golden()")  # if the comparison fails, the other ranks are stopped here

    def _compare(
        self, dump: "str | os.PathLike[str]", target: Path, compare: Mapping[str, Any], ignore: Sequence[str]
    ) -> None:
        """Write the tree, or fail the test with what differs."""
        __tracebackhide__ = True
        import pytest

        reason = dump.why_empty() if isinstance(dump, DumpDir) else ""
        if self.update or not target.is_dir():
            names = self._tree(dump, ignore).names()
            if reason and not any(is_dump_file(os.path.basename(name)) for name in names):
                raise BadInputError(f"holds no tensors: {reason}", where=os.fspath(dump), code="DS-TST-003")
        if self.update:
            self._write(dump, target, ignore)
            return
        if not target.is_dir():
            pytest.fail("\n".join((f"no golden tree yet: {target}", self._update_hint())), pytrace=False)
        found = self._differences(dump, target, Tolerance(**compare), ignore)
        if found:
            pytest.fail("\n".join([self._message(found, target), *([reason] if reason else [])]), pytrace=False)

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
        """Return a text for each difference."""
        __tracebackhide__ = True
        tolerance = Tolerance(rtol=rtol, atol=atol, stamps=stamps)
        return self._differences(dump, self.directory / _plain(name), tolerance, ignore)

    def _differences(
        self, dump: "str | os.PathLike[str]", target: Path, tolerance: Tolerance, ignore: Sequence[str]
    ) -> list[str]:
        __tracebackhide__ = True
        tree = self._tree(dump, ignore)
        if not target.is_dir():
            return [f"no golden tree yet: {target}"]
        return tree_differences(tree, NeutralTree(target, ignore=ignore), tolerance)

    def write(self, dump: "str | os.PathLike[str]", name: str = "dump", *, ignore: Sequence[str] = ()) -> bool:
        """Write the dump as the golden tree; return whether that changed anything."""
        __tracebackhide__ = True
        return self._write(dump, self.directory / _plain(name), ignore)

    def _write(self, dump: "str | os.PathLike[str]", target: Path, ignore: Sequence[str]) -> bool:
        __tracebackhide__ = True
        tree = self._tree(dump, ignore)
        try:
            if target.is_dir() and not tree_differences(tree, NeutralTree(target, ignore=ignore), Tolerance()):
                return False
        except FileNotFoundError:
            pass  # another process is replacing it now
        part = _beside(target)
        try:
            for path in tree.names():
                (part / path).parent.mkdir(parents=True, exist_ok=True)
                (part / path).write_bytes(tree.data(path))
            _swap(part, target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return True

    def _claim(self, name: str, rank: int) -> None:
        __tracebackhide__ = True
        if (rank, _plain(name)) in self._used:
            raise BadInputError(
                f"the test has already compared a tree {name!r}",
                where="golden",
                allowed=("another name: golden(dump_dir, 'second')",),
                code="DS-TST-003",
            )
        self._used.add((rank, _plain(name)))

    def _tree(self, dump: "str | os.PathLike[str]", ignore: Sequence[str]) -> NeutralTree:
        """Return the dump with placeholders for the paths of this machine."""
        __tracebackhide__ = True
        path = Path(os.fspath(dump))
        package = str(Path(__file__).resolve().parents[2])
        tree = NeutralTree(path, {"dump": str(path), **self._roots, "dumpsim": package}, ignore=ignore)
        reason = (dump.why_empty() if isinstance(dump, DumpDir) else "") or "nothing was dumped"
        if not path.is_dir():
            what = "is not a directory" if path.exists() else "does not exist"
            raise BadInputError(f"{what}: {reason}", where=str(path), code="DS-TST-003")
        if not tree.names():
            raise BadInputError(f"holds no files: {reason}", where=str(path), code="DS-TST-003")
        return tree

    def _message(self, found: Sequence[str], target: Path) -> str:
        count = f"{len(found)} difference{'s' * (len(found) != 1)}"
        lines = [f"{count} from the golden tree {target} (golden -> dump):"]
        for text in found[:_SHOWN]:
            head, *rest = text.split("\n")
            lines.append(f"  {head}")
            lines += [f"    {line}" for line in rest[:_LINES]]
            if len(rest) > _LINES:
                lines.append(f"    and {len(rest) - _LINES} more lines")
        if len(found) > _SHOWN:
            lines.append(f"  and {len(found) - _SHOWN} more")
        lines.append(self._update_hint())
        return "\n".join(lines)

    def _update_hint(self) -> str:
        """The command that writes the golden tree."""
        return f"to make this dump the golden tree: pytest --update-golden {self._test!r}"


def _check(rtol: float, atol: float, ignore: Sequence[str]) -> None:
    """Refuse invalid tolerances, and one pattern in place of a list."""
    __tracebackhide__ = True
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not isinstance(value, numbers.Real) or not value >= 0:
            raise BadInputError(
                f"{value!r} is not a tolerance", where=f"golden({name}=...)", allowed=("a number, 0 or more",),
                code="DS-TST-003",
            )  # fmt: skip
    if isinstance(ignore, str):
        raise BadInputError(
            f"{ignore!r} is one pattern", where="golden(ignore=...)", allowed=(f"a list: [{ignore!r}]",),
            code="DS-TST-003",
        )  # fmt: skip


def _share(world: "RankWorld", dump: "str | os.PathLike[str]", name: str) -> tuple[str, int]:
    """Return which part of the golden tree belongs to this rank's directory, and which rank compares it."""
    path = os.path.abspath(dump)
    came = world.meet("golden()", (name, path))
    paths = {other for given, other in came.values() if given == name}
    first = min(rank for rank, given in came.items() if given == (name, path))
    return (f"rank_{first}" if len(paths) > 1 else ""), first


def place(directory: Path, file: Path, test: str) -> Path:
    """Return the directory of a test's golden trees.

    Examples
    --------
    >>> place(Path("golden"), Path("tests/test_net.py"), "tests/test_net.py::TestStep::test_loss[fp16]").as_posix()
    'golden/test_net/TestStep.test_loss[fp16]'
    """
    return directory / file.stem / _plain(test.partition("::")[2].replace("::", "."))


def _plain(name: str) -> str:
    """Return a name that every file system accepts; a digest distinguishes names that would become equal."""
    plain = re.sub(r"[^A-Za-z0-9_.,=+\[\]-]+", "-", name).strip("-.")[:_LONGEST]
    if plain == name:
        return plain
    return f"{plain}-{hashlib.sha1(name.encode('utf-8', 'surrogatepass'), usedforsecurity=False).hexdigest()[:8]}"


def _beside(target: Path) -> Path:
    """Create a directory beside the target that no other process uses."""
    target.parent.mkdir(parents=True, exist_ok=True)
    path = target.with_name(f".{target.name}.{os.getpid()}-{next(_COUNTER)}")
    shutil.rmtree(path, ignore_errors=True)  # left by a killed process with the same id
    path.mkdir()
    return path


def _swap(part: Path, target: Path) -> None:
    """Replace a directory by another one; other processes may do the same."""
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
            pass  # another process has removed it
        finally:
            shutil.rmtree(old, ignore_errors=True)
