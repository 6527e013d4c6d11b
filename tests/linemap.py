"""Which tests execute which lines: recorded once with ``coverage``, read by ``tests/mutate.py``.

``python tests/mutate.py --record FILE [PYTEST ARGUMENT ...]`` runs the tests with this module as a plugin of pytest and
adds what they executed to FILE: the tests with their seconds, the lines of each, and the sources as they were. Programs
that a test starts are recorded too. ``LineMap`` reads such a file; sources that have changed since are matched line by
line.
"""

import ast
import contextlib
import difflib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import greenlet
import pytest

_FILE = "DUMPSIM_LINEMAP_FILE"  # where a process of the recording writes, without the suffix
_CHOICE = "DUMPSIM_LINEMAP_TESTS"  # a list of tests: run these, in this order
_TEST = "DUMPSIM_LINEMAP_TEST"  # the test that runs, for the programs that it starts
_START_FILE = "COVERAGE_PROCESS_START"
_FIXTURE = "fixture "
_START = f"""
import os
if "{_TEST}" in os.environ:
    import coverage
    coverage.process_startup()
"""
_SETTINGS = """
[run]
source = {source}
data_file = {data}
parallel = true
context = ${{{test}-}}
concurrency = thread,greenlet
patch = _exit
disable_warnings = module-not-imported,no-data-collected,trace-changed,already-imported,module-not-measured
"""


# -- recording ---------------------------------------------------------------------------------------------------------


def record(root: Path, file: Path, arguments: Sequence[str]) -> int:
    """Run tests in a checkout of its own, and add what they executed to a file; return pytest's exit code."""
    try:
        import coverage
    except ImportError:
        print("mutate.py --record: needs the package coverage (pip install coverage)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="linemap-") as name:
        folder = Path(name)
        settings = folder / "coveragerc"
        settings.write_text(_SETTINGS.format(source=root / "dumpsim", data=folder / "lines", test=_TEST))
        (root / "sitecustomize.py").write_text(_START)  # programs of the tests find the checkout by PYTHONPATH
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MS_", "DUMPSIM"))}
        environment |= {"PYTHONPATH": str(root), "PWD": str(root), _FILE: str(folder / "tests")}
        environment[_START_FILE] = str(settings)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.linemap", *arguments]
        code = subprocess.run(command, cwd=root, env=environment, check=False).returncode
        everything = coverage.CoverageData(basename=str(folder / "all"))
        for path in folder.glob("lines.*"):
            part = coverage.CoverageData(basename=str(path))
            try:
                part.read()
                everything.update(part)
            except coverage.exceptions.DataError as error:  # of a program that a test killed while it wrote
                print(f"left out: {error}", file=sys.stderr)
        with contextlib.closing(sqlite3.connect(file)) as data, data:
            _add(data, root, folder)
    return code


def _add(data: sqlite3.Connection, root: Path, folder: Path) -> None:
    """Add a run to a recording; what it says of a test replaces what was there."""
    data.execute("create table if not exists test (name text primary key, seconds real, fixtures text)")
    data.execute("create table if not exists source (path text primary key, text text)")
    data.execute("create table if not exists line (path text, test text, bits blob, primary key (path, test))")
    for path in folder.glob("tests.*"):
        rows = (json.loads(line) for line in path.read_text("utf-8").splitlines())
        data.executemany("insert or replace into test values (?, ?, ?)", rows)
    with contextlib.closing(sqlite3.connect(folder / "all")) as run:
        for (name,) in run.execute("select path from file"):
            text = Path(name).read_text("utf-8")
            _carry(data, _short(name, root), text)
            data.execute("insert or replace into source values (?, ?)", (_short(name, root), text))
        lines = run.execute(
            "select path, context, numbits from line_bits"
            " join file on file_id = file.id join context on context_id = context.id where context != ''"
        )
        data.executemany(
            "insert or replace into line values (?, ?, ?)",
            ((_short(name, root), test, bits) for name, test, bits in lines),
        )


def _carry(data: sqlite3.Connection, path: str, text: str) -> None:
    """Bring the lines that earlier runs recorded to the places that they have in a module as it is now."""
    row = data.execute("select text from source where path = ?", (path,)).fetchone()
    if row is None or row[0] == text:
        return
    places = _places(row[0], text)
    for test, bits in data.execute("select test, bits from line where path = ?", (path,)).fetchall():
        moved = 0
        for was, now in places.items():
            moved |= _bit(bits, was) << now
        size = (moved.bit_length() + 7) // 8
        data.execute(
            "update line set bits = ? where path = ? and test = ?", (moved.to_bytes(size, "little"), path, test)
        )


def _places(old: str, new: str) -> dict[int, int]:
    """Numbers of the lines that two texts share: that in the old one, that in the new one.

    Examples
    --------
    >>> _places("a\\nb\\nc", "a\\nx\\nb\\nc")
    {1: 1, 2: 3, 3: 4}
    """
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    blocks = matcher.get_matching_blocks()
    return {was + at + 1: now + at + 1 for was, now, size in blocks for at in range(size)}


def _short(path: str, root: Path) -> str:
    return Path(path).relative_to(root).as_posix()


class _Program(subprocess.Popen[bytes]):
    """A program whose lines are recorded, whatever environment a test gives it."""

    def __init__(self, *arguments: Any, env: Mapping[str, str] | None = None, **keywords: Any) -> None:
        if env is not None:
            env = {**env, **{name: os.environ[name] for name in (_START_FILE, _TEST) if name in os.environ}}
        super().__init__(*arguments, env=env, **keywords)


class _Recorder:
    """Tell coverage which test runs, and count its seconds."""

    def __init__(self, file: str) -> None:
        import coverage

        self._coverage = coverage.Coverage(config_file=os.environ[_START_FILE], data_suffix=True)
        self._coverage.start()
        _keep_greenlets()
        self._file = Path(f"{file}.{os.getpid()}")
        self._context = ""
        subprocess.Popen = _Program  # type: ignore[misc]

    def _switch(self, context: str) -> None:
        self._context = context
        self._coverage.switch_context(context)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start = time.perf_counter()
        os.environ[_TEST] = item.nodeid
        self._switch(item.nodeid)
        yield
        self._switch("")
        del os.environ[_TEST]
        definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        shared = [_named(one) for found in definitions.values() for one in found if one.scope != "function"]
        row = [item.nodeid, time.perf_counter() - start, json.dumps(shared)]
        with self._file.open("a", encoding="utf-8") as file:
            print(json.dumps(row), file=file)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: object) -> Iterator[None]:
        """What a shared fixture executes belongs to all tests that use it, not to the first one."""
        before = self._context
        shared = getattr(fixturedef, "scope", "function") != "function"
        if shared:
            os.environ[_TEST] = _named(fixturedef)
            self._switch(_named(fixturedef))
        yield
        if shared:
            os.environ[_TEST] = before
            self._switch(before)

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()


def _keep_greenlets() -> None:
    """Keep the main greenlet of each recorded thread alive, since freeing it may hang CPython 3.11.

    greenlet frees it in a pending call, and coverage's weak reference to it then runs a callback in Python. There, a
    traced function that is called while other pending calls wait never executes its first instruction.
    """
    greenlet._greenlet.enable_optional_cleanup(False)  # else it searches all objects for references to the greenlet
    install = threading.gettrace()
    assert install is not None
    kept = []

    def start(*arguments: Any) -> Any:
        kept.append(greenlet.getcurrent())
        return install(*arguments)

    threading.settrace(start)


def _named(fixture: object) -> str:
    return f"{_FIXTURE}{fixture.baseid}::{fixture.argname}"  # type: ignore[attr-defined]


class _Chooser:
    """Run the tests of a list, in its order."""

    def __init__(self, file: str) -> None:
        names = Path(file).read_text("utf-8").split("\n")
        self._order = {name: number for number, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self._order), key=lambda i: self._order[i.nodeid])


def pytest_configure(config: pytest.Config) -> None:
    """Register what the environment asks for; the process that only distributes tests records nothing."""
    distributes = getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput")
    if _FILE in os.environ and not distributes:
        config.pluginmanager.register(_Recorder(os.environ[_FILE]))
    if _CHOICE in os.environ:
        config.pluginmanager.register(_Chooser(os.environ.pop(_CHOICE)))


def choice(file: Path) -> dict[str, str]:
    """What to set in the environment so that pytest with this plugin runs the tests that a file lists."""
    return {_CHOICE: str(file)}


# -- reading -----------------------------------------------------------------------------------------------------------


class LineMap:
    """A recording.

    Parameters
    ----------
    file : Path
        What ``record`` wrote.
    root : Path
        The checkout whose lines are asked for.
    """

    def __init__(self, file: Path, root: Path) -> None:
        self._root = root
        self._data = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        self.seconds: dict[str, float] = {}
        self._users: dict[str, list[str]] = {}  # tests of a shared fixture
        for name, seconds, fixtures in self._data.execute("select name, seconds, fixtures from test"):
            self.seconds[name] = seconds
            for fixture in json.loads(fixtures):
                self._users.setdefault(fixture, []).append(name)
        self._modules: dict[str, _Module] = {}

    def module(self, path: str) -> "_Module":
        """The lines of one module."""
        if path not in self._modules:
            text = (self._root / path).read_text("utf-8")
            row = self._data.execute("select text from source where path = ?", (path,)).fetchone()
            bits = self._data.execute("select test, bits from line where path = ?", (path,))
            tests: dict[str, bytes] = {}
            for context, numbits in bits:
                for name in self._users.get(context, [context]):
                    if name in self.seconds:
                        tests[name] = _union(tests.get(name, b""), numbits)
            self._modules[path] = _Module(text, row[0] if row else text, tests)
        return self._modules[path]

    def tests(self, path: str, line: int) -> tuple[list[str], list[str]]:
        """Tests that execute a line, and then others of the same files, each group in the order to run them.

        A statement outside of functions runs when its module is imported. For it, the first group are, in turns, the
        tests with the name of an entry of a table as a parameter (for a default, of the package), those that call what
        stands beside it, and those that execute a function which names what it defines, here or else in another module;
        the second are all that execute a function of the module. A function that a module calls when it is imported is
        treated alike. For a line that nothing is known to execute, the second group are all of the module, too: a
        process that was killed recorded nothing.
        """
        module = self.module(path)
        first, others = module.around(line)
        near = self._ordered(path, module.executing(first))
        if others is not None:
            words = module.words(line) | (_packages(path) if module.is_default(line) else set())
            near = _in_turns(self._about(path, words), self._ordered(path, module.beside(line)), near)
            near = near or self._ordered(path, self._elsewhere(path, module.defined(line)))
            far = module.executing(others) or self._importing(path)
        elif module.importing().issuperset(near):
            near = [*self._ordered(path, module.calling(line)), *near]
            far = module.executing(module.functions())
        else:
            files = {name.partition("::")[0] for name in near}
            far = {name for name in self.seconds if name.partition("::")[0] in files}
        return list(dict.fromkeys(near)), self._ordered(path, far - set(near))

    def _importing(self, path: str) -> set[str]:
        """Tests of the files that import a module."""
        dotted = path.removesuffix(".py").replace("/", ".")
        pattern = re.compile(rf"^\s*(?:from|import) {re.escape(dotted)}\b", re.MULTILINE)
        files = {name: self._root / name for name in {test.partition("::")[0] for test in self.seconds}}
        found = {name for name, file in files.items() if file.is_file() and pattern.search(file.read_text("utf-8"))}
        return {test for test in self.seconds if test.partition("::")[0] in found}

    def _about(self, path: str, words: set[str]) -> list[str]:
        """Tests with one of these words as a parameter: they may read an entry of a table and call nothing of it."""
        found = [name for name in self.seconds if words & {*re.split(r"[\[\]-]", name.partition("::")[2])[1:]}]
        return self._ordered(path, found)

    def _elsewhere(self, path: str, names: set[str]) -> set[str]:
        """Tests that execute a function of another module which imports this one and uses one of these names."""
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, names or {' '}))})\b")
        package, name = path.removesuffix(".py").replace("/", ".").rpartition(".")[::2]
        imports = re.compile(rf"^\s*(?:from|import) {re.escape(package)}(?:\.| import .*\b){name}\b", re.MULTILINE)
        found = set()
        for (other,) in self._data.execute("select path from source where path != ?", (path,)).fetchall():
            file = self._root / other
            text = file.read_text("utf-8") if file.is_file() else ""
            if imports.search(text) and pattern.search(text):
                module = self.module(other)
                found |= module.executing(module.using(names))
        return found

    def _ordered(self, path: str, names: Iterable[str]) -> list[str]:
        """Quick tests first; of a test with parameters one after the other tests' ones, those of the room first."""
        room = "tests/" + "/".join(Path(path).parts[1:-1])
        counts: dict[str, int] = {}
        keys = {}
        for name in sorted(names, key=lambda name: (self.seconds[name], name)):
            function = name.partition("[")[0]
            counts[function] = counts.get(function, 0) + 1
            own = name.startswith((room + "/", path + "::"))
            keys[name] = (self.seconds[name] * (0.2 if own else 1.0) + 0.2 * counts[function] + 0.1 * (not own), name)
        return sorted(keys, key=keys.__getitem__)


class _Module:
    """The statements of a module, and the tests that execute its lines as they were recorded."""

    def __init__(self, text: str, recorded: str, tests: dict[str, bytes]) -> None:
        self._tests = tests
        self._tree = ast.parse(text)
        self._bodies = [node for node in ast.walk(self._tree) if isinstance(node, _FUNCTION)]
        self._was: dict[int, int] = {}
        if text != recorded:
            self._was = _places(text, recorded)
        else:
            self._was = {line: line for line in range(1, text.count("\n") + 2)}

    def executing(self, lines: Iterable[int]) -> set[str]:
        """Tests that execute one of these lines."""
        asked = [self._was[line] for line in lines if line in self._was]
        return {name for name, bits in self._tests.items() if any(_bit(bits, line) for line in asked)}

    def around(self, line: int) -> tuple[set[int], set[int] | None]:
        """Lines that run with a line; for one that runs at import, those that use it and those of all functions."""
        function, statement = _innermost(self._tree, line)
        if function is not None:
            return _header(statement), None
        return self.using(self.defined(line)), self.functions()

    def defined(self, line: int) -> set[str]:
        """Names that the statement of a line defines."""
        return _defined(self._tree, line)

    def using(self, names: set[str]) -> set[int]:
        """Lines of the functions that use one of these names."""
        return set().union(*(_body(node) for node in self._bodies if names & _names(node)))

    def functions(self) -> set[int]:
        """Lines of all functions."""
        return set().union(*map(_body, self._bodies))

    def importing(self) -> set[str]:
        """Tests that import the module, or start a program that does."""
        return self.executing({_first(self._tree.body[-1])})

    def beside(self, line: int) -> set[str]:
        """Tests that call a function of the innermost expression around a line, as of an entry of a table."""
        around = [node for node in ast.walk(self._tree) if _first(node) <= line <= _last(node)]
        for node in sorted(around, key=lambda node: _last(node) - _first(node)):
            inner, names = list(ast.walk(node)), _names(node)
            found = self.executing(
                set().union(*(_body(one) for one in self._bodies if one in inner or one.name in names))
            )
            lambdas = {place for one in inner if isinstance(one, ast.Lambda) for place in _body(one)}
            found |= self.executing(lambdas) - self.importing()
            if found:
                return found
        return set()

    def words(self, line: int) -> set[str]:
        """Texts that may be the name of a table's entry: in calls around a line or with what it defines, and keys.

        So are those in calls of a function that passes on what the line defines.
        """
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call)]
        around = [node for node in calls if _first(node) <= line <= _last(node)]
        chosen = [min(around, key=lambda node: _last(node) - _first(node))] if around else []
        names = self.defined(line)
        for node in calls:
            values = (*node.args, *(keyword.value for keyword in node.keywords))
            if any(isinstance(value, ast.Name) and value.id in names for value in values):
                chosen.append(node)
                maker, _ = _innermost(self._tree, node.lineno)  # it makes entries, and is called with their names
                name = getattr(maker, "name", None)
                chosen += [one for one in calls if isinstance(one.func, ast.Name) and one.func.id == name]
        found = {one.value for node in chosen for one in ast.walk(node) if isinstance(one, ast.Constant)}
        for node in ast.walk(self._tree):
            for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
                if isinstance(key, ast.Constant) and _first(key) <= line <= _last(value):
                    found.add(key.value)
        return {word for word in found if isinstance(word, str) and word.isidentifier()}

    def is_default(self, line: int) -> bool:
        """Whether a line has the default of a parameter, which a test may compare without a call."""
        given = [
            one for node in self._bodies for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None
        ]
        return any(_first(one) <= line <= _last(one) for one in given)

    def calling(self, line: int) -> set[str]:
        """The same for the expressions that call the function of a line when the module is imported."""
        function, _ = _innermost(self._tree, line)
        name = getattr(function, "name", "")
        inside = self.functions()
        named = [node for node in ast.walk(self._tree) if isinstance(node, ast.Name) and node.id == name]
        return set().union(*(self.beside(node.lineno) for node in named if node.lineno not in inside))


_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def _in_turns(*groups: Sequence[str]) -> list[str]:
    """Take the first of each group, then the second ones, so that no group takes the time of the others.

    Examples
    --------
    >>> _in_turns(["a", "b", "c"], [], ["d"])
    ['a', 'd', 'b', 'c']
    """
    return [name for turn in zip_longest(*groups) for name in turn if name is not None]


def _packages(path: str) -> set[str]:
    """Names of a module and of the packages around it, without those of the room."""
    parts = Path(path).with_suffix("").parts[2:]
    return {".".join(parts[: count + 1]) for count in range(len(parts))}


def _innermost(tree: ast.Module, line: int) -> tuple[ast.AST | None, ast.stmt]:
    """The innermost statement of a line, and the function whose body it is in."""
    function: ast.AST | None = None
    statement: ast.stmt = tree.body[0]
    found: ast.AST | None = tree
    while found is not None:
        parent, found = found, None
        for node in ast.iter_child_nodes(parent):
            for one in (node, *ast.iter_child_nodes(node)) if not isinstance(node, ast.stmt) else (node,):
                if isinstance(one, ast.stmt) and one.lineno <= line <= (one.end_lineno or one.lineno):
                    if isinstance(parent, _FUNCTION) and one in parent.body:
                        function = parent
                    found = statement = one
    return function, statement


def _header(statement: ast.stmt) -> set[int]:
    """Lines of a simple statement, or those of a compound one before its body."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    stop = statement.end_lineno or statement.lineno
    if body:
        first = getattr(body[0], "lineno", None) or body[0].pattern.lineno
        stop = max(statement.lineno, first - 1)
    return set(range(statement.lineno, stop + 1))


def _first(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _last(node: ast.AST) -> int:
    return getattr(node, "end_lineno", 0)


def _body(function: ast.AST) -> set[int]:
    body = function.body  # type: ignore[attr-defined]
    if isinstance(body, ast.expr):
        return set(range(_first(body), _last(body) + 1))
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return {line for node in body[documented:] for line in range(node.lineno, node.end_lineno + 1)}


def _defined(tree: ast.Module, line: int) -> set[str]:
    """Names that the statement of a line gives a value, in a module or a class."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno <= line <= (node.end_lineno or 0):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        elif isinstance(node, ast.FunctionDef) and node.lineno <= line < node.body[0].lineno:
            names.add(node.name)
    return names


def _names(node: ast.AST) -> set[str]:
    inner = list(ast.walk(node))
    found = {one.id for one in inner if isinstance(one, ast.Name)}
    found |= {one.attr for one in inner if isinstance(one, ast.Attribute)}
    return found | {one.name for one in inner if isinstance(one, _FUNCTION)}


def _bit(bits: bytes, line: int) -> bool:
    return line >> 3 < len(bits) and bool(bits[line >> 3] >> (line & 7) & 1)


def _union(one: bytes, other: bytes) -> bytes:
    size = max(len(one), len(other))
    return (int.from_bytes(one, "little") | int.from_bytes(other, "little")).to_bytes(size, "little")
